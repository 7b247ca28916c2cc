//! The stores of a combination: opened on demand, closed when too many are open.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyperslab_core::{Array, Error, Node, Result};

use super::CombineOptions;
use super::rebase::Times;
use crate::convert::restricted;
use crate::{OpenOptions, OpenStore, open_with};

/// The maximum number of open stores, well below common limits for open files.
const MOST_OPEN: usize = 256;

/// The stores of a combination, by number.
#[derive(Debug)]
pub(super) struct PartStores {
    paths: Vec<PathBuf>,
    options: OpenOptions,
    keep: Vec<String>,
    drop: Vec<String>,
    /// The nodes to drop that a store has.
    dropped: Mutex<HashSet<String>>,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    stores: HashMap<usize, Arc<OpenPart>>,
    /// The store that was opened first is in front.
    order: VecDeque<usize>,
}

/// An open store and its arrays used so far.
#[derive(Debug)]
struct OpenPart {
    store: OpenStore,
    arrays: Mutex<HashMap<String, Arc<dyn Array>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PartStores {
    pub(super) fn new(paths: &[PathBuf], options: &CombineOptions) -> Self {
        Self {
            paths: paths.to_vec(),
            // Read by position, because another program may truncate a file meanwhile.
            options: OpenOptions { mapped: false, ..options.open.clone() },
            keep: options.keep.clone(),
            drop: options.drop.clone(),
            dropped: Mutex::default(),
            open: Mutex::default(),
        }
    }

    /// Checks that every node to drop was in one of the stores opened so far.
    pub(super) fn check_dropped(&self) -> Result<()> {
        let unknown = self.drop.iter().find(|name| !lock(&self.dropped).contains(*name));
        unknown.map_or(Ok(()), |name| self.store(0)?.find(name).map(|_| ()))
    }

    /// Opens a store with the nodes that take part.
    fn opened(&self, number: usize) -> Result<OpenStore> {
        let store = open_with(&self.paths[number], &self.options)?;
        let has = |name: &&String| store.node(name).is_ok();
        let drop: Vec<String> = self.drop.iter().filter(has).cloned().collect();
        lock(&self.dropped).extend(drop.iter().cloned());
        restricted(store, &self.keep, &drop)
    }

    /// Opens a store.
    pub(super) fn store(&self, number: usize) -> Result<OpenStore> {
        self.part(number).map(|part| part.store.clone())
    }

    fn part(&self, number: usize) -> Result<Arc<OpenPart>> {
        if let Some(part) = lock(&self.open).stores.get(&number) {
            return Ok(Arc::clone(part));
        }
        let store = self.opened(number)?;
        let part = Arc::new(OpenPart { store, arrays: Mutex::default() });
        let mut open = lock(&self.open);
        if open.stores.insert(number, Arc::clone(&part)).is_none() {
            open.order.push_back(number);
        }
        if open.order.len() > MOST_OPEN
            && let Some(oldest) = open.order.pop_front()
        {
            open.stores.remove(&oldest);
        }
        Ok(part)
    }

    /// An array of a store, with times counted as in the first store.
    pub(super) fn array(&self, number: usize, path: &str, times: Option<&Times>) -> Result<Arc<dyn Array>> {
        let part = self.part(number)?;
        if let Some(array) = lock(&part.arrays).get(path) {
            return Ok(Arc::clone(array));
        }
        let array = match part.store.node(path)? {
            Node::Array(array) => array,
            _ => return Err(Error::not_found(crate::location_name(&self.paths[number]), path)),
        };
        let array = match times {
            Some(times) => times.applied(array)?,
            None => array,
        };
        lock(&part.arrays).insert(path.to_owned(), Arc::clone(&array));
        Ok(array)
    }
}
