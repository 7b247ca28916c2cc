//! Copies one array: chunk by chunk if source and target have the same chunks, else by blocks that fit in memory.
//!
//! Chunks are encoded on all cores. Into a single file, they are written in order while the next are encoded, so that its bytes
//! do not depend on the timing of threads. Separate objects are written by the thread that encoded them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_core::{
    Array, ArraySink, ArraySpec, AxisPart, Buffer, Chunk, ChunkCoord, ChunkList, DType, Elements,
    EncodedChunk, Error, Grid, OutputSlots, Plan, PlannedChunk, Positions, Region, Result, Values,
    needs_elements, prefetch_index, product, visit_chunks,
};
use rayon::prelude::*;

use super::blocks::{block_grid, covering_grid, cut};
use super::spec::spec_of;
use super::{ConvertOptions, Progress};
use crate::ArrayReader;
use crate::written::written_chunks;

/// The maximum number of chunks encoded before the first of them is written.
const MOST_AT_ONCE: u64 = 512;
/// The maximum size of those chunks. This is enough to keep all cores busy; more only costs memory, and touching fresh memory
/// costs time.
const BYTES_AT_ONCE: u64 = 32 << 20;

/// The maximum number of neighbouring chunks that one task locates together.
const RUN: u64 = 32;
/// Like [`RUN`], for remote storage, where neighbours are requested together.
const REMOTE_RUN: u64 = 256;

/// The number of chunks of this size to process at once.
pub(crate) fn at_once(memory: u64, chunk_bytes: u64) -> u64 {
    let threads = rayon::current_num_threads() as u64;
    (memory.min(BYTES_AT_ONCE) / chunk_bytes.max(1)).clamp(threads, MOST_AT_ONCE.max(threads))
}

/// The copy of one array.
#[derive(Debug)]
pub(super) struct ArrayCopy {
    pub(super) reader: ArrayReader,
    pub(super) positions: Positions,
    pub(super) spec: ArraySpec,
    pub(super) bytes: u64,
    /// Whether the whole array is copied, without a selection.
    whole: bool,
}

impl ArrayCopy {
    pub(super) fn new(
        reader: ArrayReader,
        positions: Positions,
        options: &ConvertOptions,
        same_format: bool,
    ) -> Result<Self> {
        let schema = reader.schema();
        let spec = spec_of(schema, &positions, options, same_format)?;
        let item = schema.dtype.size().unwrap_or(16) as u64;
        let bytes = positions.cells().unwrap_or(u64::MAX).saturating_mul(item);
        let whole = positions == Positions::whole(schema.shape());
        Ok(Self { reader, positions, spec, bytes, whole })
    }

    /// Copies everything. Returns the number of chunks copied without decoding.
    pub(super) fn run(
        &self,
        sink: &dyn ArraySink,
        options: &ConvertOptions,
        progress: &Progress,
    ) -> Result<u64> {
        let schema = self.reader.schema();
        let mut written = written_chunks(&**self.reader.inner(), options.memory / 4)?;
        // Chunks left out of the target read as its fill value.
        let leaves_out = sink.leaves_out_fill() && self.spec.fill == schema.fill;
        if !leaves_out {
            check_dense(&self.reader, &self.positions, written.take().as_deref())?;
        }
        let done = progress.done.load(Ordering::Relaxed);
        let copied = if self.whole && schema.grid == *sink.grid() {
            self.chunk_by_chunk(sink, written.as_deref(), leaves_out, options, progress)?
        } else if let Some(written) = written {
            self.by_written_blocks(sink, &written, options.memory, progress)?;
            0
        } else {
            self.by_blocks(sink, options.memory, progress)?;
            0
        };
        progress.done.store(done.saturating_add(self.bytes), Ordering::Relaxed);
        Ok(copied)
    }

    /// For a source and target with the same chunks. Each chunk is copied as stored if the target stores it the same way, else
    /// decoded and encoded by the same thread. With `leaves_out`, chunks that were never written are left out.
    fn chunk_by_chunk(
        &self,
        sink: &dyn ArraySink,
        written: Option<&[ChunkCoord]>,
        leaves_out: bool,
        options: &ConvertOptions,
        progress: &Progress,
    ) -> Result<u64> {
        let array = &**self.reader.inner();
        let (grid, item) = (&self.reader.schema().grid, self.item());
        let chunk_bytes = product(grid.chunk_shape()).unwrap_or(u64::MAX).saturating_mul(item).max(1);
        // Two batches are in memory, and each chunk may be there both decoded and encoded.
        let at_once = at_once(options.memory / 4, chunk_bytes);
        let copied = AtomicU64::new(0);
        let count = |coord: &ChunkCoord| {
            let cells = grid.region(coord).cells().unwrap_or(0);
            progress.done.fetch_add(cells.saturating_mul(item), Ordering::Relaxed);
        };
        let chunks = WholeChunks { grid, written };
        // Neighbours are located together, in enough runs to keep all cores busy.
        let run = if array.is_remote() {
            (at_once / 4).clamp(1, REMOTE_RUN)
        } else {
            (at_once / (4 * self.reader.context().threads.count())).clamp(1, RUN)
        };
        let plan = |numbers: Range<u64>| {
            let starts = numbers.clone().step_by(run as usize);
            Ok(starts.map(|start| start..(start + run).min(numbers.end)).collect())
        };
        let make = |numbers: Range<u64>| {
            let mut made = Vec::new();
            let mut encode = |chunk: &mut Chunk<'_>| {
                progress.check_cancelled()?;
                if leaves_out && chunk.reference().is_none() {
                    return Ok(());
                }
                let prepared = encode_chunk(chunk, array, sink, &chunks, !options.append)?;
                // Encoding takes longer than writing, and copying stored bytes is writing.
                if !prepared.as_stored {
                    count(&prepared.coord);
                }
                made.push(prepared);
                Ok(())
            };
            visit_chunks(array, &chunks, numbers, self.reader.context(), &mut encode)?;
            Ok(made)
        };
        let write = |made: Vec<PreparedChunk>| {
            for PreparedChunk { coord, encoded, as_stored } in made {
                progress.check_cancelled()?;
                sink.write(&coord, encoded)?;
                if as_stored {
                    copied.fetch_add(1, Ordering::Relaxed);
                    count(&coord);
                }
            }
            Ok(())
        };
        let kept = if sink.any_order() { None } else { Some(at_once) };
        prefetch_index(array, &chunks, chunks.len())?;
        let threads = &self.reader.context().threads;
        threads.install(|| encode_and_write(chunks.len(), kept, plan, make, write))?;
        Ok(copied.into_inner())
    }

    /// Like [`by_blocks`](Self::by_blocks), but only for the blocks and target chunks that contain written source chunks.
    fn by_written_blocks(
        &self,
        sink: &dyn ArraySink,
        written: &[ChunkCoord],
        memory: u64,
        progress: &Progress,
    ) -> Result<()> {
        let item = self.spec.dtype.size().unwrap_or(64) as u64;
        let blocks = covering_grid(sink.grid(), &self.source_chunk_shape(), item, memory / 2)?;
        let grid = &self.reader.schema().grid;
        let plan = Plan::new(grid, self.positions.clone())?;
        let many =
            || Error::invalid(format!("{}: the number of chunks overflows", self.reader.inner().name()));
        let mut numbers = BTreeSet::new();
        for place in written.iter().filter_map(|chunk| plan.place_of(chunk)) {
            let parts = plan.at(&place);
            let kept = parts.axes.iter().zip(&self.positions.axes).filter(|(_, axis)| axis.keep);
            let (start, end): (Vec<u64>, Vec<u64>) = kept
                .zip(blocks.chunk_shape())
                .map(|((part, _), block)| {
                    let first = part.first_place();
                    (first / block, (first + part.count - 1) / block + 1)
                })
                .unzip();
            let shape: Vec<u64> = start.iter().zip(&end).map(|(start, end)| end - start).collect();
            let inside = Grid::new(&shape, &vec![1; shape.len()])?;
            for local in 0..inside.chunks().unwrap_or(0) {
                let block: ChunkCoord =
                    inside.coord(local).iter().zip(&start).map(|(at, start)| at + start).collect();
                numbers.insert(blocks.linear(&block).ok_or_else(many)?);
            }
        }
        let holds_written = |region: &Region| -> Result<bool> {
            let plan = Plan::new(grid, self.within(region))?;
            Ok(plan.iter().any(|chunk| written.binary_search(&chunk.coord).is_ok()))
        };
        for number in numbers {
            progress.check_cancelled()?;
            let region = blocks.region(&blocks.coord(number));
            let values = self.reader.read_positions(self.within(&region))?;
            write_block(sink, &self.spec.dtype, &region, &values, memory / 4, progress, &holds_written)?;
        }
        Ok(())
    }

    /// Reads blocks of whole target chunks that fit in memory, and writes their chunks.
    fn by_blocks(&self, sink: &dyn ArraySink, memory: u64, progress: &Progress) -> Result<()> {
        let item = self.spec.dtype.size().unwrap_or(64) as u64;
        let blocks = block_grid(sink.grid(), &self.source_chunk_shape(), item, memory / 2)?;
        for number in 0..blocks.chunks().unwrap_or(0) {
            progress.check_cancelled()?;
            let region = blocks.region(&blocks.coord(number));
            let values = self.reader.read_positions(self.within(&region))?;
            write_block(sink, &self.spec.dtype, &region, &values, memory / 4, progress, &|_| Ok(true))?;
        }
        Ok(())
    }

    fn item(&self) -> u64 {
        self.spec.dtype.size().unwrap_or(16) as u64
    }

    /// The shape of the source's chunks, along the axes that the result keeps.
    fn source_chunk_shape(&self) -> Vec<u64> {
        let chunks = self.reader.schema().grid.chunk_shape();
        self.positions
            .axes
            .iter()
            .zip(chunks)
            .filter(|(axis, _)| axis.keep)
            .map(|(_, chunk)| *chunk)
            .collect()
    }

    /// The source positions of a region of the result.
    fn within(&self, region: &Region) -> Positions {
        let mut positions = self.positions.clone();
        let kept = positions.axes.iter_mut().filter(|axis| axis.keep);
        for (axis, (start, count)) in kept.zip(region.start.iter().zip(&region.shape)) {
            axis.start = axis.start.wrapping_add_signed(axis.step.wrapping_mul(*start as i64));
            axis.count = *count;
        }
        positions
    }
}

/// If more never-written bytes than this would be stored, a target that stores every chunk is refused.
const MOST_FILL: u64 = 1 << 40;

/// Refuses to write fill values out of all proportion to the written data. `written` lists the written chunks, if they were
/// listed.
pub(super) fn check_dense(
    reader: &ArrayReader,
    positions: &Positions,
    written: Option<&[ChunkCoord]>,
) -> Result<()> {
    let (Some(written), schema) = (written, reader.schema()) else { return Ok(()) };
    let item = schema.dtype.size().unwrap_or(16) as u64;
    let chunk = product(schema.grid.chunk_shape()).unwrap_or(u64::MAX);
    let bytes = positions.cells().unwrap_or(u64::MAX).saturating_mul(item);
    let stored = (written.len() as u64).saturating_mul(chunk).saturating_mul(item);
    if bytes.saturating_sub(stored) > MOST_FILL {
        return Err(Error::invalid(format!(
            "{}: the target stores every element, but at most {stored} of the {bytes} selected bytes were ever \
             written; select a part, or convert to a format that leaves out chunks that were never written",
            reader.inner().name()
        )));
    }
    Ok(())
}

/// All chunks of a grid, or only the written ones, each as a whole.
struct WholeChunks<'a> {
    grid: &'a Grid,
    written: Option<&'a [ChunkCoord]>,
}

impl WholeChunks<'_> {
    fn len(&self) -> u64 {
        self.written.map_or_else(|| self.grid.chunks().unwrap_or(0), |written| written.len() as u64)
    }
}

impl ChunkList for WholeChunks<'_> {
    fn coord(&self, index: u64) -> ChunkCoord {
        self.written.map_or_else(|| self.grid.coord(index), |written| written[index as usize].clone())
    }

    fn wanted(&self, index: u64) -> PlannedChunk {
        let coord = self.coord(index);
        let part = |count: &u64| AxisPart { first: 0, step: 1, count: *count, place: 0, backwards: false };
        let axes = self.grid.region(&coord).shape.iter().map(part).collect();
        PlannedChunk { coord, axes }
    }
}

/// An encoded chunk, ready to be written.
struct PreparedChunk {
    coord: ChunkCoord,
    encoded: EncodedChunk,
    /// Whether it was copied without decoding.
    as_stored: bool,
}

/// Encodes one chunk for the target: its stored bytes if the target stores them the same way, else decoded and encoded.
fn encode_chunk(
    chunk: &mut Chunk<'_>,
    array: &dyn Array,
    sink: &dyn ArraySink,
    chunks: &WholeChunks<'_>,
    adopt: bool,
) -> Result<PreparedChunk> {
    let coord = chunk.coord().clone();
    if adopt
        && let Some((form, stored)) = chunk.stored()?
        && let Some(encoded) = sink.adopt(&coord, &form, &stored)?
    {
        return Ok(PreparedChunk { coord, encoded, as_stored: true });
    }
    let elements = if needs_elements(array) {
        chunk.elements()?
    } else {
        let wanted = chunks.wanted(chunk.index());
        let (shape, item) = (wanted.counts(), array.schema().dtype.size().unwrap_or(0));
        let bytes = product(&shape).and_then(|cells| usize::try_from(cells).ok()?.checked_mul(item));
        let bytes = bytes.ok_or_else(|| {
            Error::invalid(format!("{}: chunk {coord:?} is larger than memory", array.name()))
        })?;
        let mut cells = Buffer::zeroed(bytes)?;
        let plan = Plan::new(&array.schema().grid, Positions::region(&array.schema().grid.region(&coord)))?;
        let slots = OutputSlots::new(&plan, item, cells.as_mut_slice())?;
        if let Some((wanted, mut slot)) = slots.take(0) {
            chunk.copy_into(&wanted, &mut slot)?;
        }
        drop(slots);
        Elements::fixed(cells.freeze())
    };
    let encoded = sink.encode(&coord, &elements)?;
    Ok(PreparedChunk { coord, encoded, as_stored: false })
}

/// Divides a block into the target's chunks, and writes those whose region is `wanted`.
fn write_block(
    sink: &dyn ArraySink,
    dtype: &DType,
    region: &Region,
    values: &Values,
    memory: u64,
    progress: &Progress,
    wanted: &(dyn Fn(&Region) -> Result<bool> + Sync),
) -> Result<()> {
    let grid = sink.grid();
    let first: Vec<u64> =
        region.start.iter().zip(grid.chunk_shape()).map(|(start, chunk)| start / chunk).collect();
    let inside = Grid::new(&region.shape, grid.chunk_shape())?;
    let bytes = product(grid.chunk_shape()).unwrap_or(u64::MAX);
    let bytes = bytes.saturating_mul(dtype.size().unwrap_or(64) as u64).max(1);
    let item = dtype.size().unwrap_or(16) as u64;
    let make = |number: u64| {
        progress.check_cancelled()?;
        let local = inside.coord(number);
        let chunk: ChunkCoord = local.iter().zip(&first).map(|(at, first)| at + first).collect();
        if !wanted(&grid.region(&chunk))? {
            return Ok(None);
        }
        let elements: Elements = cut(dtype, values, &inside.region(&local))?;
        let encoded = sink.encode(&chunk, &elements)?;
        // Blocks are large, so progress counts each chunk as soon as it is encoded.
        let cells = grid.region(&chunk).cells().unwrap_or(0);
        progress.done.fetch_add(cells.saturating_mul(item), Ordering::Relaxed);
        Ok(Some((chunk, encoded)))
    };
    let write = |made: Option<(ChunkCoord, EncodedChunk)>| {
        made.map_or(Ok(()), |(chunk, encoded)| sink.write(&chunk, encoded))
    };
    let kept = if sink.any_order() { None } else { Some(at_once(memory / 2, bytes)) };
    encode_and_write(inside.chunks().unwrap_or(0), kept, |numbers| Ok(numbers.collect()), make, write)
}

/// Plans `count` items in batches, then encodes and writes each.
///
/// With `kept`, that many items are encoded on all cores and written in order while the next ones are encoded. Without it, each
/// item is written by the thread that encoded it, and none is kept.
pub(crate) fn encode_and_write<P: Send, T: Send>(
    count: u64,
    kept: Option<u64>,
    plan: impl Fn(Range<u64>) -> Result<Vec<P>> + Sync,
    make: impl Fn(P) -> Result<T> + Sync,
    write: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    let batch = kept.unwrap_or(MOST_AT_ONCE).max(1);
    let mut ready = Vec::new();
    let mut start = 0;
    while start < count || !ready.is_empty() {
        let end = start.saturating_add(batch).min(count);
        let planned = if start < end { plan(start..end)? } else { Vec::new() };
        let planned = planned.into_par_iter().with_max_len(1);
        if kept.is_none() {
            planned.try_for_each(|plan| write(make(plan)?))?;
        } else {
            let (made, written) = rayon::join(
                || planned.map(&make).collect::<Result<Vec<T>>>(),
                || ready.into_iter().try_for_each(&write),
            );
            written?;
            ready = made?;
        }
        start = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn items_are_written_in_order_until_a_failure() {
        for (count, kept) in [
            (0, Some(3)),
            (1, Some(3)),
            (10, Some(3)),
            (10, Some(1)),
            (3, Some(100)),
            (1000, None),
            (0, None),
        ] {
            let written = Mutex::new(Vec::new());
            let write = |number: u64| {
                written.lock().unwrap().push(number);
                Ok(())
            };
            encode_and_write(count, kept, |range| Ok(range.collect()), Ok, write).unwrap();
            let mut written = written.into_inner().unwrap();
            if kept.is_none() {
                written.sort_unstable();
            }
            assert_eq!(written, (0..count).collect::<Vec<_>>());
        }
        let all = |range: Range<u64>| Ok(range.collect::<Vec<_>>());
        let no = || Error::invalid("no");
        for kept in [Some(2), None] {
            let make = |number| if number == 5 { Err(no()) } else { Ok(number) };
            assert!(encode_and_write(10, kept, all, make, |_| Ok(())).is_err());
            assert!(encode_and_write(10, kept, all, Ok, |_| Err(no())).is_err());
            assert!(encode_and_write(10, kept, |_| Err::<Vec<u64>, _>(no()), Ok, |_| Ok(())).is_err());
        }
    }
}
