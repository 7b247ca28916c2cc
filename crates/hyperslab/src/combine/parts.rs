//! The stores of a combination: opened when they are needed, closed when too many are open.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyperslab_core::{Array, Error, Node, Result};

use super::rebase::Times;
use crate::{OpenOptions, OpenStore, open_with};

/// Stores that are open at once, at most: well below the number of files that systems let a process open.
const MOST_OPEN: usize = 256;

/// The stores of a combination, by number.
#[derive(Debug)]
pub(super) struct Parts {
    paths: Vec<PathBuf>,
    options: OpenOptions,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    stores: HashMap<usize, Arc<Part>>,
    /// The one that was opened first is in front.
    order: VecDeque<usize>,
}

/// An open store, and those of its arrays that were used.
#[derive(Debug)]
struct Part {
    store: OpenStore,
    arrays: Mutex<HashMap<String, Arc<dyn Array>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Parts {
    pub(super) fn new(paths: &[PathBuf], options: &OpenOptions) -> Self {
        // Read by position: another program may cut a file short meanwhile.
        let options = OpenOptions { mapped: false, ..options.clone() };
        Self { paths: paths.to_vec(), options, open: Mutex::default() }
    }

    /// A store.
    pub(super) fn store(&self, number: usize) -> Result<OpenStore> {
        self.part(number).map(|part| part.store.clone())
    }

    fn part(&self, number: usize) -> Result<Arc<Part>> {
        if let Some(part) = lock(&self.open).stores.get(&number) {
            return Ok(Arc::clone(part));
        }
        let store = open_with(&self.paths[number], &self.options)?;
        let part = Arc::new(Part { store, arrays: Mutex::default() });
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
        let node = part.store.node(path)?;
        let array = match (crate::fields::own_field(&part.store, path, &node)?, node) {
            (Some(Node::Array(array)), _) | (None, Node::Array(array)) => array,
            _ => return Err(Error::not_found(self.paths[number].display().to_string(), path)),
        };
        let array = match times {
            Some(times) => times.applied(array)?,
            None => array,
        };
        lock(&part.arrays).insert(path.to_owned(), Arc::clone(&array));
        Ok(array)
    }
}
