//! Salvages the intact parts of a damaged store into a new store.
//!
//! The damaged store is converted through a view in which unreadable content is missing: nodes are left out, and chunks hold the
//! fill value. The report lists both. A truncated file is treated as if it had the length that its structures claim, so that
//! content before the cut is found. A truncated zip archive gets a new directory of its whole members, an Arrow file a new footer for
//! its intact batches.

mod archive;
#[cfg(feature = "arrow")]
mod arrow;
mod joined;
mod view;

use std::fmt::Display;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyperslab_core::{Blob, Content, Depth, Error, Node, Report, Result, Severity, Store, normal_path};

use crate::convert::{ConvertOptions, ConvertReport, Progress, convert, convert_to_rows, is_file_of_rows};
use crate::{Format, OpenOptions, OpenStore, formats, location, location_name};
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
    /// The size of its elements in bytes. Zero if it is unknown.
    pub bytes: u64,
    /// Why it cannot be read.
    pub reason: String,
}

impl Lost {
    fn of(node: &str) -> Self {
        Self { node: node.to_owned(), chunk: None, positions: None, bytes: 0, reason: String::new() }
    }
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
    /// Notes a lost node.
    fn note(&self, node: &str, reason: &dyn Display) {
        self.push(Lost { reason: reason.to_string(), ..Lost::of(node) });
    }

    fn note_chunk(&self, node: &str, chunk: &[u64], bytes: u64, reason: &dyn Display) {
        self.push(Lost { chunk: Some(chunk.to_vec()), bytes, reason: reason.to_string(), ..Lost::of(node) });
    }

    fn push(&self, new: Lost) {
        let mut lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nodes and chunks are read more than once.
        if !lost.contains(&new) {
            lost.push(new);
        }
    }

    /// Notes what a check of the geometries finds: missing vertices are no errors when they are read, but links and objects refer to
    /// them.
    fn note_geometry(&self, source: &OpenStore) -> Result<()> {
        let mut found = false;
        source.walk(&mut |_, node| {
            found |= matches!(node, Ok(Node::Geometry(_)));
            Ok(())
        })?;
        if !found {
            return Ok(());
        }
        let mut report = Report::default();
        source.inner().verify(Depth::Deep, &mut report)?;
        for finding in
            report.findings.iter().filter(|finding| !finding.ok && finding.severity == Severity::Error)
        {
            let why = finding.detail.as_deref().unwrap_or(&finding.check);
            self.note(finding.node.as_deref().unwrap_or("/"), &why);
        }
        Ok(())
    }

    /// Notes that the members after the cut are lost, without their names.
    fn note_end_of_archive(&self, archive: &archive::RestoredArchive) {
        let members = archive.members;
        if let Some(name) = &archive.cut {
            let node = normal_path(name.strip_suffix(".npy").unwrap_or(name));
            self.note(&node, &"the end of this member is not in the file");
        }
        let reason = format!(
            "the archive is cut after {members} whole members; any further ones are lost, and their chunks appear unwritten"
        );
        self.note("/", &reason);
    }

    fn note_cut(&self, node: String, positions: Range<u64>) {
        let reason = format!("records {} to {} are not in the file", positions.start, positions.end - 1);
        self.push(Lost { positions: Some(positions), reason, ..Lost::of(&node) });
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
    let mut found = location::find(path, &OpenOptions { mapped: false, ..open.clone() })?;
    let losses = Losses::default();
    let original = found.content.clone();
    if let Content::File(blob) = &found.content
        && let Some(archive) = archive::restored(blob)?
    {
        losses.note_end_of_archive(&archive);
        found.content = Content::File(archive.blob);
        if open.format.is_none() {
            found.format = formats::recognise(&found.content)?.unwrap_or(found.format);
        }
    }
    #[cfg(feature = "arrow")]
    if let Content::File(blob) = &found.content
        && let Some(restored) = arrow::restored(blob)?
    {
        restored.lost.iter().for_each(|why| losses.note("/", why));
        found.content = Content::File(restored.blob);
    }
    let context = found.context(open);
    let driver = found.format.driver();
    let longer = match &original {
        Content::File(blob) => {
            let blob: Arc<dyn Blob> = Arc::new(UncutBlob { inner: Arc::clone(blob) });
            driver.open(Content::File(blob), &context)
        }
        Content::Directory(_) => Err(Error::unsupported(location_name(path), "a folder as one file")),
    };
    let own = driver.open(found.content.clone(), &context);
    // An intact part that the format knows is preferred to chunks that are read one by one.
    let intact = driver.open_damaged(found.content.clone(), &context).ok().flatten();
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    if let Some(intact) = intact {
        intact.cut.into_iter().for_each(|(node, positions)| losses.note_cut(node, positions));
        intact.lost.into_iter().for_each(|(node, reason)| losses.note(&node, &reason));
        stores.push(intact.store);
    }
    match (own, longer) {
        (Err(why), Err(_)) if stores.is_empty() => return Err(why),
        (own, longer) => stores.extend(own.ok().into_iter().chain(longer.ok())),
    }
    let view = SalvagedStore::new(stores, losses.clone())?;
    let source = OpenStore::from_store(Arc::new(view), location_name(path));
    losses.note_geometry(&source)?;
    let written = match format {
        None if is_file_of_rows(target) => convert_to_rows(&source, target, options, progress)?,
        format => convert(&source, target, format.unwrap_or(found.format), options, progress)?,
    };
    Ok(SalvageReport { written, lost: losses.sorted() })
}

/// The number of bytes that a truncated file may have had beyond its end.
const BEYOND: u64 = 1 << 40;

/// A file that claims the length given by its structures. Bytes beyond its real end cannot be read.
#[derive(Debug)]
struct UncutBlob {
    inner: Arc<dyn Blob>,
}

impl Blob for UncutBlob {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn len(&self) -> Result<u64> {
        Ok(self.inner.len()?.saturating_add(BEYOND))
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
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
