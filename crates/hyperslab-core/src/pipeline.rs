//! The chunk pipeline: plan → locate → fetch → decode → visitor.
//!
//! Everything that consumes chunks goes through [`visit_chunks`]: reads, queries, conversions, checks. It locates chunks in
//! batches, asks the visitor which of them it needs, fetches their bytes and passes each one on as a [`Chunk`], which decodes on
//! demand. How bytes are fetched depends on the storage:
//!
//! - Mapped or local files: the thread that visits a chunk fetches it, in place if it is mapped. There is no hand-over between
//!   threads.
//! - [Remote](Array::is_remote) storage: whole groups of chunks are requested at once, one group ahead of the visitor. The
//!   bytes in flight are bounded.
//!
//! | module | holds |
//! |---|---|
//! | `chunk` | [`Chunk`]: one located chunk; how its bytes become cells |
//! | `context` | [`Context`]: threads, memory, cancellation and progress of an operation |
//! | `output` | [`OutputSlots`]: the result of a read, handed out chunk by chunk |
//! | `scratch` | [`with_scratch`], [`take_scratch`]: memory that decoders reuse |
//! | `serial` | [`read_serial`]: a whole read on one thread, for formats that read other arrays |
//! | `threads` | [`Threads`]: on which threads an operation runs |

mod ahead;
mod chunk;
mod context;
mod output;
mod scratch;
mod serial;
mod threads;

use std::ops::Range;

use bytes::Bytes;

pub use ahead::{FetchRound, fetch_rounds};
pub(crate) use chunk::{BlobCache, check_fetched, spans_of};
pub use chunk::{Chunk, decoded_bytes, fetch, needs_elements};
pub use context::{Context, Progress};
pub use output::{OutputSlot, OutputSlots};
pub use scratch::{recycle_scratch, take_scratch, with_scratch};
pub use serial::{gather_elements, read_serial, result_bytes};
pub use threads::Threads;

use crate::{Array, ChunkCoord, ChunkRef, ChunkStatistics, Error, Plan, PlannedChunk, Result, Span};

/// Chunks located per call: enough to share index blocks, few enough to keep the batch small.
pub const LOCATE_BATCH: u64 = 256;

/// Like [`LOCATE_BATCH`], for remote storage, where each lookup costs a round trip.
const REMOTE_LOCATE_BATCH: u64 = 4096;

/// The chunks of a run, by number. They are computed on demand, never listed.
pub trait ChunkList: Sync {
    /// The coordinate of a chunk.
    fn coord(&self, index: u64) -> ChunkCoord {
        self.wanted(index).coord
    }

    /// A chunk and the part of it that is wanted.
    fn wanted(&self, index: u64) -> PlannedChunk;
}

impl ChunkList for Plan {
    fn wanted(&self, index: u64) -> PlannedChunk {
        self.chunk(index)
    }
}

/// A consumer of the chunks of a run.
pub trait ChunkVisitor {
    /// Statistics of these chunks, if the visitor can use them. An empty result means none.
    ///
    /// # Errors
    ///
    /// As [`Array::statistics`].
    fn statistics(
        &mut self,
        _array: &dyn Array,
        _chunks: &[ChunkCoord],
    ) -> Result<Vec<Option<ChunkStatistics>>> {
        Ok(Vec::new())
    }

    /// Returns true if the visitor needs the chunk. Called before the chunk is located.
    fn needs(&mut self, _index: u64, _chunk: &ChunkCoord, _known: Option<&ChunkStatistics>) -> bool {
        true
    }

    /// Returns true if the visitor uses stored bytes. If not, nothing is fetched, and [`would_fetch`](Self::would_fetch) is
    /// called instead.
    fn fetches(&self) -> bool {
        true
    }

    /// Takes the spans of a chunk that would be fetched from remote storage.
    fn would_fetch(&mut self, _spans: Vec<Span>) {}

    /// Visits a chunk.
    ///
    /// # Errors
    ///
    /// Any error from fetching, decoding or the visitor itself.
    fn visit(&mut self, chunk: &mut Chunk<'_>) -> Result<()>;
}

/// A visitor that takes every chunk.
impl<F: FnMut(&mut Chunk<'_>) -> Result<()>> ChunkVisitor for F {
    fn visit(&mut self, chunk: &mut Chunk<'_>) -> Result<()> {
        self(chunk)
    }
}

/// Visits the chunks of a list that have these numbers, in order, on the calling thread.
///
/// # Errors
///
/// Any error from locating, fetching or the visitor; [`Cancelled`](Error::Cancelled) if the operation was cancelled.
pub fn visit_chunks(
    array: &dyn Array,
    list: &impl ChunkList,
    range: Range<u64>,
    context: &Context,
    visitor: &mut impl ChunkVisitor,
) -> Result<()> {
    let mut blobs = chunk::BlobCache::default();
    let mut start = range.start;
    let batch = batch_of(array);
    while start < range.end {
        let end = range.end.min(start.saturating_add(batch));
        context.check_cancelled()?;
        let mut numbers: Vec<u64> = (start..end).collect();
        let mut coords: Vec<ChunkCoord> = numbers.iter().map(|number| list.coord(*number)).collect();
        let mut known = visitor.statistics(array, &coords)?;
        if !known.is_empty() {
            keep_needed(visitor, &mut numbers, &mut coords, &mut known);
        }
        let references = locate(array, &coords)?;
        let located = Located { numbers: &numbers, coords: &coords, references: &references, known: &known };
        if array.is_remote() && visitor.fetches() {
            ahead::visit(array, list, &located, context, &mut blobs, visitor)?;
        } else {
            if array.is_remote() {
                ahead::list_spans(array, list, &located, visitor)?;
            }
            for position in 0..coords.len() {
                visitor.visit(&mut located.chunk(array, position, &mut blobs))?;
            }
        }
        start = end;
    }
    Ok(())
}

/// The number of chunks located per call.
fn batch_of(array: &dyn Array) -> u64 {
    if array.is_remote() { REMOTE_LOCATE_BATCH } else { LOCATE_BATCH }
}

/// Locates the first chunks of a list before several threads do so. On remote storage their index is then read only once, in one
/// round per index level. Does nothing on local storage.
///
/// # Errors
///
/// As [`locate`].
pub fn prefetch_index(array: &dyn Array, list: &impl ChunkList, length: u64) -> Result<()> {
    if !array.is_remote() {
        return Ok(());
    }
    let coords: Vec<ChunkCoord> =
        (0..length.min(4 * REMOTE_LOCATE_BATCH)).map(|number| list.coord(number)).collect();
    locate(array, &coords).map(|_| ())
}

/// Locates chunks. Fails if the format returns more or fewer references than requested.
///
/// # Errors
///
/// Any error from [`Array::locate`].
pub fn locate(array: &dyn Array, coords: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
    let references = array.locate(coords)?;
    if references.len() != coords.len() {
        return Err(Error::invalid(format!(
            "{}: the format returned {} locations for {} chunks",
            array.name(),
            references.len(),
            coords.len()
        )));
    }
    Ok(references)
}

/// Drops the chunks that the visitor does not need.
fn keep_needed(
    visitor: &mut impl ChunkVisitor,
    numbers: &mut Vec<u64>,
    coords: &mut Vec<ChunkCoord>,
    known: &mut Vec<Option<ChunkStatistics>>,
) {
    let needed: Vec<bool> = numbers
        .iter()
        .zip(coords.iter())
        .zip(known.iter())
        .map(|((number, coord), known)| visitor.needs(*number, coord, known.as_ref()))
        .collect();
    if needed.iter().all(|needed| *needed) {
        return;
    }
    let mut each = needed.iter().copied();
    numbers.retain(|_| each.next().unwrap_or(true));
    let mut each = needed.iter().copied();
    coords.retain(|_| each.next().unwrap_or(true));
    let mut each = needed.iter().copied();
    known.retain(|_| each.next().unwrap_or(true));
}

/// A batch of located chunks.
struct Located<'a> {
    numbers: &'a [u64],
    coords: &'a [ChunkCoord],
    references: &'a [Option<ChunkRef>],
    known: &'a [Option<ChunkStatistics>],
}

impl<'a> Located<'a> {
    /// A chunk that is fetched on demand.
    fn chunk(&self, array: &'a dyn Array, position: usize, blobs: &'a mut chunk::BlobCache) -> Chunk<'a> {
        Chunk::new(
            array,
            self.numbers[position],
            &self.coords[position],
            self.references[position].as_ref(),
            self.known.get(position).and_then(Option::as_ref),
            blobs,
        )
    }

    /// A chunk that was fetched ahead; `None` if it turned out never to have been written.
    fn fetched_chunk(
        &self,
        array: &'a dyn Array,
        position: usize,
        stored: Option<Vec<Bytes>>,
        blobs: &'a mut chunk::BlobCache,
    ) -> Chunk<'a> {
        self.chunk(array, position, blobs).with_fetched(stored)
    }
}

#[cfg(test)]
mod tests;
