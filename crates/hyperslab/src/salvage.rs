//! Salvages the intact parts of a damaged store into a new store.
//!
//! The damaged store is converted through a view in which unreadable content is missing: nodes are left out, and chunks hold the
//! fill value. The report lists both. A truncated file is treated as if it had the length that its structures claim, so that
//! content before the cut is found.

mod view;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyperslab_core::{Blob, Content, Error, FileBlob, Result, Store, StoreForm};

use crate::convert::{ConvertOptions, ConvertReport, Progress, convert};
use crate::{Format, OpenOptions, OpenStore, location};
use view::SalvagedStore;

/// A node or chunk that could not be saved.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Lost {
    /// The node.
    pub node: String,
    /// The chunk's coordinate; `None` if the whole node or its end is lost.
    pub chunk: Option<Vec<u64>>,
    /// The positions along the first axis that are lost at the end, where the saved array is shorter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions: Option<Range<u64>>,
    /// Why it cannot be read.
    pub reason: String,
}

/// What was saved and what was lost.
#[derive(Debug, Clone, Default)]
pub struct SalvageReport {
    /// The report of the conversion.
    pub written: ConvertReport,
    /// The losses, by node and chunk.
    pub lost: Vec<Lost>,
}

/// The losses so far, shared by the threads that read the view.
#[derive(Debug, Clone, Default)]
struct Losses(Arc<Mutex<Vec<Lost>>>);

impl Losses {
    fn note(&self, node: &str, chunk: Option<&[u64]>, reason: &Error) {
        let mut lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let chunk = chunk.map(<[u64]>::to_vec);
        // Nodes and chunks are read more than once.
        if !lost.iter().any(|known| known.node == node && known.chunk == chunk) {
            lost.push(Lost { node: node.to_owned(), chunk, positions: None, reason: reason.to_string() });
        }
    }

    fn note_cut(&self, node: String, positions: Range<u64>) {
        let mut lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = format!("records {} to {} are not in the file", positions.start, positions.end - 1);
        lost.push(Lost { node, chunk: None, positions: Some(positions), reason });
    }

    fn sorted(&self) -> Vec<Lost> {
        let mut lost = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        lost.sort_by(|one, other| (&one.node, &one.chunk).cmp(&(&other.node, &other.chunk)));
        lost
    }
}

/// Copies the intact content of a store to a new store. The target appears complete or not at all.
///
/// # Errors
///
/// Any error from opening if even the root of the store cannot be read; also as [`convert`].
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
    // An intact part that the format knows is preferred to chunks that are read one by one.
    let intact = driver.open_damaged(found.content.clone(), &context).ok().flatten();
    let losses = Losses::default();
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    if let Some(intact) = intact {
        intact.cut.into_iter().for_each(|(node, positions)| losses.note_cut(node, positions));
        stores.push(intact.store);
    }
    match (own, longer) {
        (Err(why), Err(_)) if stores.is_empty() => return Err(why),
        (own, longer) => stores.extend(own.ok().into_iter().chain(longer.ok())),
    }
    let view = SalvagedStore::new(stores, losses.clone())?;
    let source = OpenStore::from_store(Arc::new(view), path);
    let format = format.unwrap_or(found.format);
    let written = convert(&source, target, format, options, progress)?;
    Ok(SalvageReport { written, lost: losses.sorted() })
}

/// The number of bytes that a truncated file may have had beyond its end.
const BEYOND: u64 = 1 << 40;

/// A file that claims the length given by its structures. Bytes beyond its real end cannot be read.
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
        // Fail before the reader allocates memory for a range that does not exist.
        let length = self.inner.len()?;
        if let Some(range) = ranges.iter().find(|range| range.end > length) {
            return Err(Error::Corrupt(Box::new(hyperslab_core::Corrupt {
                store: Arc::clone(self.name()),
                structure: "bytes".into(),
                offset: Some(range.start),
                problem: format!(
                    "{} bytes expected, but the file ends at {length:#x}",
                    range.end.saturating_sub(range.start)
                ),
            })));
        }
        self.inner.read(ranges)
    }
}
