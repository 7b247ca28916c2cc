//! Checks the integrity of a file: every object, address and checksum; in depth, every chunk too.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{
    Array, Attribute, Attributes, BlobKey, ChunkCoord, ChunkRef, Depth, Error, Place, Report, Result, Span,
    check_chunk, check_chunks_in_order, child_path, counted,
};

use crate::attributes;
use crate::dataset::Dataset;
use crate::file::File;
use crate::group::Group;
use crate::header::{Header, ObjectKind};
use crate::message::link::LinkTarget;
use crate::operation::outside;
use crate::store::{Hdf5Store, Resolved, find};

/// The memory used by the check for each chunk.
const VISITED: u64 = 96;

/// The maximum number of spans checked for overlaps; a file with more is not checked.
const MAX_SPANS: usize = 1 << 24;

/// Checks the file and reports the results.
pub(crate) fn verify(store: &Hdf5Store, depth: Depth, report: &mut Report) -> Result<()> {
    let mut check = Check {
        file: &store.file,
        depth,
        report,
        seen: HashSet::new(),
        others: HashSet::new(),
        spans: Vec::new(),
        counts: Counts::default(),
    };
    check.superblock();
    check.objects();
    check.overlaps();
    let Counts { groups, datasets, chunks, bytes, bad, .. } = check.counts;
    let how = if depth == Depth::Deep { "decoded" } else { "found" };
    if bad == 0 {
        report.passed(
            "objects",
            format!(
                "{}, {}, {} of {bytes} stored bytes {how}",
                counted(groups, "group"),
                counted(datasets, "dataset"),
                counted(chunks, "chunk")
            ),
        );
    }
    Ok(())
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    groups: u64,
    datasets: u64,
    chunks: u64,
    bytes: u64,
    bad: u64,
}

struct Check<'a> {
    file: &'a Arc<File>,
    depth: Depth,
    report: &'a mut Report,
    /// Checked objects, by address.
    seen: HashSet<u64>,
    /// Checked datasets of other files, by file and path.
    others: HashSet<(String, String)>,
    /// The byte ranges of stored data.
    spans: Vec<(u64, u64)>,
    counts: Counts,
}

impl Check<'_> {
    fn superblock(&mut self) {
        let (superblock, length) = (&self.file.superblock, self.file.length);
        if superblock.end > length {
            self.report.error(
                "file_length",
                format!(
                    "the file ends at {length:#x}, the superblock says {:#x}: it was truncated",
                    superblock.end
                ),
            );
        } else if superblock.end < length {
            self.report.warning(
                "file_length",
                format!(
                    "{} bytes past the end of the file stated by the superblock",
                    length - superblock.end
                ),
            );
        } else {
            self.report.passed("file_length", format!("{length} bytes"));
        }
        if superblock.flags & 5 != 0 {
            self.report.warning(
                "consistency_flags",
                format!("flags {:#x}: open for writing, or not closed by its writer", superblock.flags),
            );
            self.report.recommend(
                "clear_consistency_flags",
                "libhdf5 refuses the file until its flags are cleared; clear them once no program is writing the file",
                None,
            );
        }
    }

    fn failed(&mut self, check: &'static str, error: &Error, node: &str) {
        self.counts.bad += 1;
        self.report.failure(check, error);
        self.report.at_node(node);
    }

    /// Checks every object reachable by hard links, once.
    fn objects(&mut self) {
        let mut pending = vec![(self.file.superblock.root, "/".to_owned())];
        while let Some((address, path)) = pending.pop() {
            if !self.seen.insert(address) {
                continue;
            }
            // Memory used for an object is released after its check.
            if let Err(error) = self.file.releasing(|| self.object(address, &path, &mut pending)) {
                self.failed("object", &error, &path);
            }
        }
    }

    fn object(&mut self, address: u64, path: &str, pending: &mut Vec<(u64, String)>) -> Result<()> {
        let header = Header::read(self.file, address)?;
        match header.kind(self.file)? {
            ObjectKind::Group => {
                self.counts.groups += 1;
                let raw = attributes::raw(self.file, &header)?;
                self.attributes(&attributes::decode(self.file, &raw), path);
                self.links(address, path, pending)
            }
            ObjectKind::Dataset => {
                self.counts.datasets += 1;
                let dataset = Dataset::open(self.file, &header, path)?;
                self.attributes(&dataset.schema().attributes, path);
                self.sources(&dataset, path);
                self.chunks(&dataset, path)
            }
            ObjectKind::Type => {
                let raw = attributes::raw(self.file, &header)?;
                self.attributes(&attributes::decode(self.file, &raw), path);
                Ok(())
            }
        }
    }

    fn attributes(&mut self, attributes: &Attributes, path: &str) {
        for (name, attribute) in attributes.iter() {
            if let Attribute::Unreadable(reason) = attribute {
                self.counts.bad += 1;
                self.report.error("attribute", format!("{name:?}: {reason}"));
                self.report.at_node(path);
            }
        }
    }

    fn links(&mut self, address: u64, path: &str, pending: &mut Vec<(u64, String)>) -> Result<()> {
        let mut links = Group::open(self.file, address)?.all(self.file)?;
        links.reverse();
        for link in links {
            let below = child_path(path, &link.name);
            match &link.target {
                LinkTarget::Hard(address) => pending.push((*address, below)),
                target => {
                    let words = target.describe();
                    if !matches!(find(self.file, &below), Ok(Resolved::Object(_))) {
                        self.report.warning("link", format!("dangling link: {words}"));
                        self.report.at_node(&below);
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks the sources of a virtual dataset. Sources in this file are checked as objects of their own; sources in other
    /// files are checked here, chunk by chunk.
    fn sources(&mut self, dataset: &Dataset, path: &str) {
        let Some(own) = dataset.as_virtual() else { return };
        let (mut here, mut elsewhere) = (0, 0);
        for (file, name, source) in own.sources() {
            match source {
                Err(error @ Error::Invalid { .. }) if own.refuses(file) => {
                    self.report.warning("virtual_source", error.to_string());
                    self.report.at_node(path);
                }
                Ok(Some(_)) if file == "." => here += 1,
                Ok(Some(source)) => {
                    elsewhere += 1;
                    if self.others.insert((file.to_owned(), name.to_owned()))
                        && let Err(error) = self.chunks(&source, path)
                    {
                        self.failed("virtual_source", &error, path);
                    }
                }
                Ok(None) => {
                    self.report.warning(
                        "virtual_source",
                        format!("{name} of {file} does not exist: its part reads as the fill value"),
                    );
                    self.report.at_node(path);
                }
                Err(error) => self.failed("virtual_source", &error, path),
            }
        }
        self.report.passed(
            "virtual_source",
            format!(
                "{path}: {} in this file, {elsewhere} in others, whose chunks were also checked",
                counted(here, "source")
            ),
        );
    }

    fn chunks(&mut self, dataset: &Dataset, path: &str) -> Result<()> {
        let mut places = HashSet::new();
        let walk = |put: &mut dyn FnMut((ChunkCoord, ChunkRef))| {
            dataset.walk(&mut |chunk, reference| {
                if !places.insert(chunk.clone()) {
                    let place = Place::new(dataset.name(), "chunk index", 0);
                    return Err(place.corrupt(format!("chunk {:?} occurs twice", chunk.as_slice())));
                }
                // Chunks that share their bytes are decoded separately, so their total cost must stay in proportion to the file.
                let here = reference.spans().filter(|span| span.blob == BlobKey::Main);
                let stored = here.fold(0_u64, |sum, span| sum.saturating_add(span.length));
                dataset.file.spend(stored.min(dataset.file.stored), "chunk index")?;
                dataset.file.allocate(VISITED, "chunk index")?;
                put((chunk, reference));
                Ok(ControlFlow::Continue(()))
            })
        };
        let depth = self.depth;
        let check = |(chunk, reference): (ChunkCoord, ChunkRef), stored| {
            let outcome = check_stored(dataset, &chunk, &reference, depth, stored);
            (reference, outcome)
        };
        let tell = |(reference, outcome): (ChunkRef, Result<()>)| {
            self.counts.chunks += 1;
            self.counts.bytes = self.counts.bytes.saturating_add(reference.stored_bytes());
            self.keep_spans(&dataset.file, &reference);
            if let Err(error) = outcome {
                self.failed("chunk", &error, path);
            }
        };
        check_chunks_in_order(dataset, walk, |item| (depth == Depth::Deep).then_some(&item.1), check, tell)
    }

    /// Records where a chunk is stored in this file.
    fn keep_spans(&mut self, file: &Arc<File>, reference: &ChunkRef) {
        if !Arc::ptr_eq(file, self.file) {
            return;
        }
        for span in reference.spans().filter(|span| span.blob == BlobKey::Main) {
            let Some(end) = end_inside(file, span) else { return };
            if self.spans.len() < MAX_SPANS && span.length > 0 {
                self.spans.push((span.offset, end));
            }
        }
    }

    /// Checks that no byte belongs to two chunks.
    fn overlaps(&mut self) {
        self.spans.sort_unstable();
        let mut shared = 0;
        for pair in self.spans.windows(2) {
            if pair[1].0 < pair[0].1 {
                shared += 1;
                if shared <= 16 {
                    self.report.error(
                        "overlap",
                        format!("data at {:#x} reaches into data at {:#x}", pair[0].0, pair[1].0),
                    );
                }
            }
        }
        if shared == 0 {
            self.report.passed("overlap", format!("{} stored pieces, no byte in two", self.spans.len()));
        }
        self.counts.bad += shared;
    }
}

/// The end of the span; `None` if that is past the end of the file.
fn end_inside(file: &File, span: &Span) -> Option<u64> {
    span.offset.checked_add(span.length).filter(|end| *end <= file.length)
}

/// Checks that a chunk lies inside the file and, in depth, that it can be decoded.
fn check_stored(
    dataset: &Dataset,
    chunk: &ChunkCoord,
    reference: &ChunkRef,
    depth: Depth,
    stored: Option<Vec<Bytes>>,
) -> Result<()> {
    let file = &dataset.file;
    for span in reference.spans().filter(|span| span.blob == BlobKey::Main) {
        if end_inside(file, span).is_none() {
            let place = Place::new(dataset.name(), "chunk", span.offset);
            return Err(place.corrupt(format!(
                "chunk {:?} of {} bytes, the file ends at {:#x}",
                chunk.as_slice(),
                span.length,
                file.length
            )));
        }
    }
    if depth == Depth::Quick {
        return Ok(());
    }
    // A separate operation, as for reading the chunk.
    outside(|| check_chunk(dataset, chunk, reference, stored))
}
