//! One array on its way: chunk by chunk where both sides are cut alike, else by blocks that memory holds.
//!
//! Chunks are made on all cores and written in their own order while the next are made, so that a target's bytes do not
//! depend on which core was the fastest.

use std::ops::Range;
use std::sync::atomic::Ordering;

use hyperslab_core::{
    Array, ArraySink, ArraySpec, ChunkCoord, ChunkRef, DType, Elements, EncodedChunk, Error, Grid, Positions,
    Region, Result, Selection, Values, product, read_serial,
};
use rayon::prelude::*;

use super::blocks::{block_grid, cut};
use super::spec::spec_of;
use super::{ConvertOptions, Progress};
use crate::ArrayReader;

/// Chunks that are made before the first of them is written, at most.
const MOST_AT_ONCE: u64 = 512;
/// Bytes of them. Enough to keep all cores busy; more only takes memory, and memory that was not used before costs time.
const BYTES_AT_ONCE: u64 = 32 << 20;

/// How many chunks of so many bytes are made at once.
fn at_once(memory: u64, chunk_bytes: u64) -> u64 {
    let threads = rayon::current_num_threads() as u64;
    (memory.min(BYTES_AT_ONCE) / chunk_bytes.max(1)).clamp(threads, MOST_AT_ONCE.max(threads))
}

/// One array on its way.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) reader: ArrayReader,
    positions: Positions,
    pub(super) spec: ArraySpec,
    pub(super) bytes: u64,
    /// Is all of the array wanted, as it stands?
    whole: bool,
}

impl Copy {
    pub(super) fn new(reader: ArrayReader, options: &ConvertOptions) -> Result<Self> {
        let positions = reader.resolve(&options.selection)?;
        let schema = reader.schema();
        let spec = spec_of(schema, &positions, options)?;
        let item = schema.dtype.size().unwrap_or(16) as u64;
        let bytes = positions.cells().unwrap_or(u64::MAX).saturating_mul(item);
        let whole = options.selection == Selection::all();
        Ok(Self { reader, positions, spec, bytes, whole })
    }

    /// Brings everything over; how many chunks were taken as they were stored.
    pub(super) fn run(
        &self,
        sink: &dyn ArraySink,
        options: &ConvertOptions,
        progress: &Progress,
    ) -> Result<u64> {
        let own = &self.reader.schema().grid;
        if self.whole && *own == *sink.grid() {
            return self.chunk_by_chunk(sink, options, progress);
        }
        self.by_blocks(sink, options.memory, progress)?;
        Ok(0)
    }

    /// Both sides have the same chunks: each is taken as it is stored where the target stores it so, and else decoded
    /// and encoded by the same thread.
    fn chunk_by_chunk(
        &self,
        sink: &dyn ArraySink,
        options: &ConvertOptions,
        progress: &Progress,
    ) -> Result<u64> {
        let array = &**self.reader.inner();
        let (grid, item) = (&self.reader.schema().grid, self.item());
        let chunk_bytes = product(grid.chunk_shape()).unwrap_or(u64::MAX).saturating_mul(item).max(1);
        // Two batches are in memory, and each chunk may be there decoded and encoded.
        let at_once = at_once(options.memory / 4, chunk_bytes);
        let mut copied = 0;
        let make = |numbers: Range<u64>| {
            let coords: Vec<ChunkCoord> = numbers.map(|number| grid.coord(number)).collect();
            let references = array.locate(&coords)?;
            let made = coords.into_par_iter().zip(references).with_max_len(1).map(|(coord, reference)| {
                stopped(progress)?;
                let (encoded, as_stored) =
                    self.chunk(array, sink, &coord, reference.as_ref(), !options.append)?;
                Ok((coord, encoded, as_stored))
            });
            made.collect::<Result<Vec<_>>>()
        };
        let write = |(coord, encoded, as_stored): (ChunkCoord, EncodedChunk, bool)| {
            stopped(progress)?;
            sink.write(&coord, encoded)?;
            copied += u64::from(as_stored);
            let cells = grid.region(&coord).cells().unwrap_or(0);
            progress.done.fetch_add(cells.saturating_mul(item), Ordering::Relaxed);
            Ok(())
        };
        in_order(grid.chunks().unwrap_or(0), at_once, make, write)?;
        Ok(copied)
    }

    /// One chunk as the target will store it; was it taken as it is stored?
    fn chunk(
        &self,
        array: &dyn Array,
        sink: &dyn ArraySink,
        coord: &ChunkCoord,
        reference: Option<&ChunkRef>,
        adopt: bool,
    ) -> Result<(EncodedChunk, bool)> {
        if adopt
            && let Some(reference) = reference
            && let Some(form) = array.stored_form(coord, reference)
            && let [stored] = array.fetch(&reference.spans().collect::<Vec<_>>())?.as_slice()
            && let Some(encoded) = sink.adopt(coord, &form, stored)?
        {
            return Ok((encoded, true));
        }
        let region = self.reader.schema().grid.region(coord);
        let values = read_serial(array, self.within(&region))?;
        Ok((sink.encode(coord, &values.elements)?, false))
    }

    /// Reads blocks that memory holds, each of whole target chunks, and writes their chunks.
    fn by_blocks(&self, sink: &dyn ArraySink, memory: u64, progress: &Progress) -> Result<()> {
        let item = self.spec.dtype.size().unwrap_or(64) as u64;
        let blocks = block_grid(sink.grid(), &self.source_chunk_shape(), item, memory / 2)?;
        for number in 0..blocks.chunks().unwrap_or(0) {
            stopped(progress)?;
            let region = blocks.region(&blocks.coord(number));
            let values = self.reader.read_positions(self.within(&region))?;
            write_block(sink, &self.spec.dtype, &region, &values, memory / 4, progress)?;
            progress.done.fetch_add(region.cells().unwrap_or(0).saturating_mul(item), Ordering::Relaxed);
        }
        Ok(())
    }

    fn item(&self) -> u64 {
        self.spec.dtype.size().unwrap_or(16) as u64
    }

    /// The source's chunks, along the axes that the result keeps.
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

    /// The positions of a region of the result.
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

fn stopped(progress: &Progress) -> Result<()> {
    if progress.stop.load(Ordering::Relaxed) {
        return Err(Error::invalid("stopped; nothing was written"));
    }
    Ok(())
}

/// Cuts a block into the target's chunks.
fn write_block(
    sink: &dyn ArraySink,
    dtype: &DType,
    region: &Region,
    values: &Values,
    memory: u64,
    progress: &Progress,
) -> Result<()> {
    let grid = sink.grid();
    let first: Vec<u64> =
        region.start.iter().zip(grid.chunk_shape()).map(|(start, chunk)| start / chunk).collect();
    let inside = Grid::new(&region.shape, grid.chunk_shape())?;
    let bytes = product(grid.chunk_shape()).unwrap_or(u64::MAX);
    let bytes = bytes.saturating_mul(dtype.size().unwrap_or(64) as u64).max(1);
    let make = |numbers: Range<u64>| {
        let made = numbers.collect::<Vec<_>>().into_par_iter().with_max_len(1).map(|number| {
            stopped(progress)?;
            let local = inside.coord(number);
            let chunk: ChunkCoord = local.iter().zip(&first).map(|(at, first)| at + first).collect();
            let elements: Elements = cut(dtype, values, &inside.region(&local))?;
            let encoded = sink.encode(&chunk, &elements)?;
            Ok((chunk, encoded))
        });
        made.collect::<Result<Vec<_>>>()
    };
    let at_once = at_once(memory / 2, bytes);
    let write = |(chunk, encoded): (ChunkCoord, EncodedChunk)| sink.write(&chunk, encoded);
    in_order(inside.chunks().unwrap_or(0), at_once, make, write)
}

/// Makes so many things in batches on all cores, and writes those of a batch in their order while the next is made.
fn in_order<T: Send>(
    count: u64,
    at_once: u64,
    make: impl Fn(Range<u64>) -> Result<Vec<T>> + Sync,
    mut write: impl FnMut(T) -> Result<()> + Send,
) -> Result<()> {
    let mut ready = Vec::new();
    let mut start = 0;
    while start < count || !ready.is_empty() {
        let end = start.saturating_add(at_once.max(1)).min(count);
        let (made, written) = rayon::join(
            || if start < end { make(start..end) } else { Ok(Vec::new()) },
            || ready.into_iter().try_for_each(&mut write),
        );
        written?;
        (ready, start) = (made?, end);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_written_in_their_order_and_a_failure_ends_it() {
        for (count, at_once) in [(0, 3), (1, 3), (10, 3), (10, 1), (3, 100)] {
            let mut written = Vec::new();
            in_order(
                count,
                at_once,
                |range| Ok(range.collect()),
                |number: u64| {
                    written.push(number);
                    Ok(())
                },
            )
            .unwrap();
            assert_eq!(written, (0..count).collect::<Vec<_>>());
        }
        let failing = |range: Range<u64>| {
            if range.contains(&5) { Err(Error::invalid("no")) } else { Ok(range.collect::<Vec<_>>()) }
        };
        assert!(in_order(10, 2, failing, |_| Ok(())).is_err());
        assert!(
            in_order(10, 2, |range| Ok(range.collect::<Vec<_>>()), |_| Err(Error::invalid("full"))).is_err()
        );
    }
}
