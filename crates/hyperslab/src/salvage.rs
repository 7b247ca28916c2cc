//! Whatever is whole in a damaged store, as a new store.
//!
//! The damaged store is converted through a view in which everything that cannot be read is missing: nodes are left out, and
//! chunks hold the fill value. The report lists both. A file that was cut short is looked at as if it were as long as its
//! structures say, so that what lies before the cut is found.

mod view;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyperslab_core::{Blob, Content, Error, FileBlob, Result, Store, StoreForm};

use crate::convert::{ConvertOptions, ConvertReport, Progress, convert};
use crate::{Format, OpenOptions, OpenStore, location};
use view::SalvagedStore;

/// Something that could not be saved.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Lost {
    /// The node.
    pub node: String,
    /// The chunk, by its coordinate; `None` when the whole node is lost.
    pub chunk: Option<Vec<u64>>,
    /// Why it cannot be read.
    pub reason: String,
}

/// What was saved, and what was not.
#[derive(Debug, Clone, Default)]
pub struct SalvageReport {
    /// What was written.
    pub written: ConvertReport,
    /// What was lost, by node and chunk.
    pub lost: Vec<Lost>,
}

/// What was lost so far, in a view that is being read on several threads.
#[derive(Debug, Clone, Default)]
struct Losses(Arc<Mutex<Vec<Lost>>>);

impl Losses {
    fn note(&self, node: &str, chunk: Option<&[u64]>, reason: &Error) {
        let mut lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let chunk = chunk.map(<[u64]>::to_vec);
        // Nodes and chunks are looked at more than once.
        if !lost.iter().any(|known| known.node == node && known.chunk == chunk) {
            lost.push(Lost { node: node.to_owned(), chunk, reason: reason.to_string() });
        }
    }

    fn sorted(&self) -> Vec<Lost> {
        let mut lost = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        lost.sort_by(|one, other| (&one.node, &one.chunk).cmp(&(&other.node, &other.chunk)));
        lost
    }
}

/// Copies what is whole in a store to a new store. The target appears whole or not at all.
///
/// # Errors
///
/// Whatever opening says when not even the root of the store can be read; as [`convert`].
pub fn salvage(
    path: &Path,
    target: &Path,
    format: Option<Format>,
    open: &OpenOptions,
    options: &ConvertOptions,
    progress: &Progress,
) -> Result<SalvageReport> {
    location::check_local(path, "salvaging")?;
    let found = location::find(path, &OpenOptions { mapped: false, ..open.clone() })?;
    let context = found.context(open);
    let driver = found.format.driver();
    let longer = match found.content.form() {
        StoreForm::File => {
            let blob: Arc<dyn Blob> = Arc::new(UncutBlob::open(path)?);
            driver.open(Content::File(blob), &context)
        }
        StoreForm::Directory => Err(Error::unsupported(path.display().to_string(), "a folder as one file")),
    };
    let own = driver.open(found.content.clone(), &context);
    let stores: Vec<Arc<dyn Store>> = match (own, longer) {
        (Ok(own), longer) => std::iter::once(own).chain(longer.ok()).collect(),
        (Err(_), Ok(longer)) => vec![longer],
        (Err(why), Err(_)) => return Err(why),
    };
    let losses = Losses::default();
    let view = SalvagedStore::new(stores, losses.clone())?;
    let source = OpenStore::from_store(Arc::new(view), path);
    let format = format.unwrap_or(found.format);
    let written = convert(&source, target, format, options, progress)?;
    Ok(SalvageReport { written, lost: losses.sorted() })
}

/// Bytes that a cut file may have had beyond its end.
const BEYOND: u64 = 1 << 40;

/// A file that claims to be as long as its structures say. Bytes beyond its end cannot be read.
#[derive(Debug)]
struct UncutBlob {
    inner: FileBlob,
}

impl UncutBlob {
    fn open(path: &Path) -> Result<Self> {
        Ok(Self { inner: FileBlob::open(path)? })
    }
}

impl Blob for UncutBlob {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn len(&self) -> Result<u64> {
        Ok(self.inner.len()?.saturating_add(BEYOND))
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        // A reader that takes memory for a range before it looks at the bytes is told first that they are not there.
        let length = self.inner.len()?;
        if let Some(range) = ranges.iter().find(|range| range.end > length) {
            return Err(Error::Corrupt(Box::new(hyperslab_core::Corrupt {
                store: Arc::clone(self.name()),
                structure: "bytes".into(),
                offset: Some(range.start),
                problem: format!(
                    "{} expected, the file ends at {length:#x}",
                    range.end.saturating_sub(range.start)
                ),
            })));
        }
        self.inner.read(ranges)
    }
}
