//! Datasets being written.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hyperslab_core::{
    ArraySink, ChunkCoord, DType, Elements, EncodedChunk, Error, Grid, Layout as Strides, Region, Result,
    StoredForm, StoredStep, copy_box,
};

use super::heap::HeapWriter;
use super::index::{Entries, IndexWriter, Patch};
use super::names::{HeapKeeper, Names};
use super::output::Output;
use super::plan::{Plan, PlannedLayout};
use crate::conversion::utf8_of;
use crate::file::{Sizes, lock};
use crate::header::kind;
use crate::index::Stored;
use crate::message::layout::{Chunked, encode_compact, encode_contiguous, encode_virtual};
use crate::virtuals::encode_mappings;
use crate::write::object::{NewHeader, NewMessage, Style};

/// State shared by all datasets of a file.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) output: Output,
    pub(crate) heap: Mutex<HeapWriter>,
    pub(crate) sizes: Sizes,
    pub(crate) style: Style,
    /// The future header addresses of objects that elements refer to before their headers are written.
    pub(crate) stubs: Mutex<BTreeMap<String, u64>>,
    /// The paths of the nodes.
    pub(crate) names: Mutex<Names>,
    /// All nodes are declared before the first chunk is written: a reference to any other is stored as null and reported.
    pub(crate) all_declared: bool,
}

impl Shared {
    pub(crate) const fn new(output: Output, sizes: Sizes, style: Style) -> Self {
        Self {
            output,
            heap: Mutex::new(HeapWriter::new(sizes)),
            sizes,
            style,
            stubs: Mutex::new(BTreeMap::new()),
            names: Mutex::new(Names::new()),
            all_declared: false,
        }
    }

    /// Makes all references to a node use its new path.
    pub(crate) fn move_node(&self, from: &str, to: &str) {
        let mut names = lock(&self.names);
        names.declare(to);
        names.alias(from, to);
        let mut stubs = lock(&self.stubs);
        if let Some(address) = stubs.remove(from) {
            stubs.insert(to.to_owned(), address);
        }
    }
}

/// A dataset being written.
#[derive(Debug)]
pub(crate) struct NewArray {
    pub(crate) plan: Plan,
    shared: Arc<Shared>,
    data: Mutex<Data>,
}

#[derive(Debug)]
enum Data {
    /// All bytes, and the grid chunks written so far.
    Compact(Vec<u8>, HashSet<ChunkCoord>),
    /// The address of the data once something was written, and the grid chunks written so far.
    Contiguous(Option<u64>, HashSet<ChunkCoord>),
    Chunked(IndexWriter),
    /// The location of the mappings in the file's heap.
    Virtual(u64, u32),
}

impl NewArray {
    pub(crate) fn new(plan: Plan, shared: &Arc<Shared>) -> Result<Self> {
        let data = match plan.layout {
            PlannedLayout::Compact => {
                let fill = plan.fill.clone().unwrap_or_else(|| vec![0; plan.element.stored]);
                Data::Compact(fill.repeat((plan.bytes() / fill.len() as u64) as usize), HashSet::new())
            }
            PlannedLayout::Contiguous => Data::Contiguous(None, HashSet::new()),
            PlannedLayout::Virtual => {
                let mappings = encode_mappings(plan.virtual_sources(), shared.sizes)?;
                let (address, index) = lock(&shared.heap).keep(&shared.output, &mappings)?;
                Data::Virtual(address, index)
            }
            PlannedLayout::Chunked { version, index, .. } => {
                let filtered = !plan.pipeline.specs.is_empty();
                let entries = Entries::new(shared.sizes, filtered, version, plan.chunk_bytes());
                let chunk = plan.spec.grid.chunk_shape();
                let index = IndexWriter::new(index, chunk, &plan.spec.max_shape, entries, &shared.output)?;
                // Chunks that are allocated before they are written hold zeros until then.
                if let (IndexWriter::Implicit(..), Some(fill)) = (&index, &plan.fill) {
                    let whole = fill.repeat(plan.chunk_bytes() as usize / fill.len());
                    let grid = &plan.spec.grid;
                    for number in 0..grid.chunks().unwrap_or(0) {
                        if let Some(address) = index.place(&grid.coord(number)) {
                            shared.output.write_at(address, &whole)?;
                        }
                    }
                }
                Data::Chunked(index)
            }
        };
        Ok(Self { plan, shared: Arc::clone(shared), data: Mutex::new(data) })
    }

    /// An existing dataset with this chunk index.
    pub(crate) fn existing(plan: Plan, shared: &Arc<Shared>, index: IndexWriter) -> Self {
        Self { plan, shared: Arc::clone(shared), data: Mutex::new(Data::Chunked(index)) }
    }

    /// Writes or rewrites a chunk. Returns its location.
    pub(crate) fn put(&self, chunk: &ChunkCoord, encoded: &EncodedChunk) -> Result<Stored> {
        match (&mut *lock(&self.data), &encoded.parts[..]) {
            (Data::Chunked(index), [bytes]) => {
                Ok(enter(index, chunk, bytes, encoded.filter_mask, &self.shared.output)?.0)
            }
            _ => Err(Error::invalid(format!("{}: only chunks can be added", self.plan.name))),
        }
    }

    /// The path of the dataset in the file.
    fn path(&self) -> &str {
        self.plan.name.strip_prefix(&**self.shared.output.name()).unwrap_or(&self.plan.name)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Frees the old space of a chunk that was rewritten elsewhere.
    pub(crate) fn release(&self, old: Stored) {
        if let Data::Chunked(IndexWriter::Implicit(..)) = &*lock(&self.data) {
            return;
        }
        self.shared.output.release(old.address, old.size);
    }

    /// The address of the index, once it was written.
    pub(crate) fn index_address(&self) -> Option<u64> {
        match &*lock(&self.data) {
            Data::Chunked(index) => index.address(),
            _ => None,
        }
    }

    /// The current layout message.
    pub(crate) fn layout_message(&self) -> Result<Vec<u8>> {
        let (plan, sizes) = (&self.plan, self.shared.sizes);
        match &*lock(&self.data) {
            Data::Compact(bytes, _) => encode_compact(bytes, sizes),
            Data::Contiguous(address, _) => encode_contiguous(*address, plan.bytes(), sizes),
            Data::Virtual(address, index) => encode_virtual(*address, *index, sizes),
            Data::Chunked(index) => {
                let version =
                    if let PlannedLayout::Chunked { version, .. } = plan.layout { version } else { 4 };
                Chunked {
                    version,
                    shape: plan.spec.grid.chunk_shape().to_vec(),
                    element: plan.element.stored as u64,
                    plain_edges: false,
                    index: index.kind(),
                    address: index.address(),
                }
                .encode(sizes)
            }
        }
    }

    /// Writes the index. Returns the in-place changes that must follow.
    pub(crate) fn flush(&self) -> Result<Vec<Patch>> {
        match &mut *lock(&self.data) {
            Data::Chunked(index) => index.flush(&self.shared.output),
            Data::Contiguous(Some(address), written) => {
                self.fill_rest(*address, written)?;
                Ok(Vec::new())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Contiguous data does not record which parts were never written, so those are filled explicitly.
    fn fill_rest(&self, address: u64, written: &HashSet<ChunkCoord>) -> Result<()> {
        let (grid, Some(fill)) = (&self.plan.spec.grid, &self.plan.fill) else { return Ok(()) };
        for number in 0..grid.chunks().unwrap_or(0) {
            let chunk = grid.coord(number);
            if !written.contains(&chunk) {
                let region = grid.region(&chunk);
                let bytes = fill.repeat(region.cells().unwrap_or(0) as usize);
                self.write_box(address, &region, &bytes)?;
            }
        }
        Ok(())
    }

    /// Writes a box of the contiguous data, run by run.
    fn write_box(&self, address: u64, region: &Region, bytes: &[u8]) -> Result<()> {
        let (shape, item) = (self.plan.spec.grid.shape(), self.plan.element.stored);
        for (offset, range) in runs(shape, region, item) {
            self.shared.output.write_at(address + offset, &bytes[range])?;
        }
        Ok(())
    }

    /// Adds the messages that describe the dataset.
    pub(crate) fn messages(&self, header: &mut NewHeader, named_type: Option<u64>) -> Result<()> {
        header.messages.extend(self.plan.messages(header.style, named_type, self.shared.sizes)?);
        Ok(())
    }

    /// Adds the messages that may change in place. They come last.
    pub(crate) fn last_messages(&self, header: &mut NewHeader) -> Result<()> {
        let (plan, sizes) = (&self.plan, self.shared.sizes);
        let layout = self.layout_message()?;
        let space = plan.space();
        let version = if header.style == Style::Old && !space.null { 1 } else { 2 };
        let space = space.encode(version, sizes)?;
        header.messages.push(NewMessage::new(kind::LAYOUT, 0, layout));
        header.messages.push(NewMessage::new(kind::DATASPACE, 0, space));
        Ok(())
    }

    /// A chunk's stored elements with all of its cells; those outside the array are fill.
    fn padded(&self, chunk: &[u64], stored: Vec<u8>) -> Result<Vec<u8>> {
        let grid = &self.plan.spec.grid;
        if !matches!(self.plan.layout, PlannedLayout::Chunked { .. }) || !grid.is_clipped(chunk) {
            return Ok(stored);
        }
        let item = self.plan.element.stored;
        let mut whole = match &self.plan.fill {
            Some(fill) => fill.repeat(self.plan.chunk_bytes() as usize / item),
            None => vec![0; self.plan.chunk_bytes() as usize],
        };
        let shape = grid.region(chunk).shape;
        let (from, to) = (Strides::packed(&shape, item), Strides::packed(grid.chunk_shape(), item));
        copy_box(&stored, &from, &mut whole, &to, &shape, item)?;
        Ok(whole)
    }
}

impl ArraySink for NewArray {
    fn grid(&self) -> &Grid {
        &self.plan.spec.grid
    }

    fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<EncodedChunk> {
        let plan = &self.plan;
        plan.spec.check_chunk(chunk, elements)?;
        let plain = elements.as_fixed().filter(|_| {
            plan.element.is_plain()
                && elements.validity.is_none()
                && plan.spec.dtype.size() == Some(plan.element.stored)
                && !matches!(plan.spec.dtype, DType::FixedText(_))
                && (!plan.spec.grid.is_clipped(chunk)
                    || !matches!(plan.layout, PlannedLayout::Chunked { .. }))
        });
        let raw: Bytes = match plain {
            Some(bytes) => bytes.clone(),
            None => {
                let mut stored = Vec::new();
                let mut keeper = HeapKeeper { shared: &self.shared, node: self.path() };
                match plan.spec.dtype {
                    DType::FixedText(points) => {
                        plan.element.store(&utf8_of(elements, points)?, &mut keeper, &mut stored)?;
                    }
                    _ => plan.element.store(elements, &mut keeper, &mut stored)?,
                }
                self.padded(chunk, stored)?.into()
            }
        };
        let (coded, filter_mask) = plan.pipeline.encode(&raw)?;
        let raw_length = raw.len() as u64;
        let bytes = match coded {
            Cow::Borrowed(_) => raw,
            Cow::Owned(coded) => coded.into(),
        };
        Ok(EncodedChunk { parts: vec![bytes], filter_mask, raw_length, tag: 0 })
    }

    fn leaves_out_fill(&self) -> bool {
        matches!(self.plan.layout, PlannedLayout::Chunked { early: false, .. })
    }

    fn adopt(&self, chunk: &ChunkCoord, form: &StoredForm, stored: &Bytes) -> Result<Option<EncodedChunk>> {
        let plan = &self.plan;
        let alike = plan.copies_stored_chunks
            && matches!(plan.layout, PlannedLayout::Chunked { .. })
            && form.shape[..] == *plan.spec.grid.chunk_shape()
            && plan.spec.grid.contains(chunk);
        let steps = match &form.steps[..] {
            [StoredStep::Typed, rest @ ..] => Some(rest).filter(|_| plan.element.size.is_some()),
            steps => Some(steps)
                .filter(|_| plan.element.is_plain() && plan.spec.dtype.size() == Some(plan.element.stored)),
        };
        let mask = steps.filter(|_| alike).and_then(|steps| plan.pipeline.mask_of(steps));
        let taken = |filter_mask| EncodedChunk {
            parts: vec![stored.clone()],
            filter_mask,
            raw_length: plan.chunk_bytes(),
            tag: 0,
        };
        Ok(mask.map(taken))
    }

    fn write(&self, chunk: &ChunkCoord, encoded: EncodedChunk) -> Result<()> {
        let [bytes] = &encoded.parts[..] else {
            return Err(Error::invalid(format!(
                "{}: {} parts for one chunk",
                self.plan.name,
                encoded.parts.len()
            )));
        };
        let again = || Error::invalid(format!("{}: chunk {chunk:?} was already written", self.plan.name));
        let output = &self.shared.output;
        let grid = &self.plan.spec.grid;
        let mut data = lock(&self.data);
        match &mut *data {
            Data::Compact(whole, written) => {
                if !written.insert(chunk.clone()) {
                    return Err(again());
                }
                for (offset, range) in runs(grid.shape(), &grid.region(chunk), self.plan.element.stored) {
                    whole[offset as usize..offset as usize + range.len()].copy_from_slice(&bytes[range]);
                }
                Ok(())
            }
            Data::Contiguous(address, written) => {
                if !written.insert(chunk.clone()) {
                    return Err(again());
                }
                let start = match address {
                    Some(start) => *start,
                    None => *address.insert(output.allocate_data(self.plan.bytes())?),
                };
                drop(data);
                self.write_box(start, &grid.region(chunk), bytes)
            }
            Data::Virtual(..) => {
                Err(Error::invalid(format!("{}: a virtual dataset has no chunks", self.plan.name)))
            }
            Data::Chunked(index) => {
                let (_, fresh) = enter(index, chunk, bytes, encoded.filter_mask, output)?;
                if fresh { Ok(()) } else { Err(again()) }
            }
        }
    }
}

/// Writes a chunk and adds it to the index. Returns its location and whether it is new.
fn enter(
    index: &mut IndexWriter,
    chunk: &[u64],
    bytes: &[u8],
    mask: u32,
    output: &Output,
) -> Result<(Stored, bool)> {
    let address = match index.place(chunk) {
        Some(address) => output.write_at(address, bytes).map(|()| address)?,
        None => output.store_data(bytes)?,
    };
    let stored = Stored { address, size: bytes.len() as u64, mask };
    let fresh = index.set(chunk, stored, output)?;
    Ok((stored, fresh))
}

/// The contiguous runs of a box in an array of this shape: byte offsets in the array, byte ranges of the box.
fn runs<'a>(
    shape: &'a [u64],
    region: &'a Region,
    item: usize,
) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> + 'a {
    // Axes from `joined` on are taken whole, so that they form one run with the axis before.
    let rank = shape.len();
    let mut joined = rank;
    while joined > 0 && region.shape[joined - 1] == shape[joined - 1] {
        joined -= 1;
    }
    let outer = joined.saturating_sub(1);
    let run: u64 = region.shape[outer..].iter().product::<u64>() * item as u64;
    let count: u64 = region.shape[..outer].iter().product();
    let count = if region.shape.contains(&0) { 0 } else { count };
    (0..count).map(move |number| {
        let (mut left, mut offset, mut stride) = (number, 0, item as u64);
        for axis in (0..rank).rev() {
            let mut at = region.start[axis];
            if axis < outer {
                at += left % region.shape[axis];
                left /= region.shape[axis];
            }
            offset += at * stride;
            stride *= shape[axis];
        }
        let start = (number * run) as usize;
        (offset, start..start + run as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_join_whole_axes() {
        let region = Region::new(&[1, 0, 0], &[2, 3, 4]);
        assert_eq!(runs(&[5, 3, 4], &region, 2).collect::<Vec<_>>(), [(24, 0..48)]);
        let region = Region::new(&[1, 1, 0], &[2, 2, 4]);
        assert_eq!(runs(&[5, 3, 4], &region, 1).collect::<Vec<_>>(), [(16, 0..8), (28, 8..16)]);
        let region = Region::new(&[], &[]);
        assert_eq!(runs(&[], &region, 4).collect::<Vec<_>>(), [(0, 0..4)]);
        let region = Region::new(&[2], &[3]);
        assert_eq!(runs(&[9], &region, 4).collect::<Vec<_>>(), [(8, 0..12)]);
    }
}
