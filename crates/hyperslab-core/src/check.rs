//! Deep checks on all cores. Chunks found by walking an index are checked in batches and reported in walk order.

use std::hint::black_box;
use std::ops::Range;

use bytes::Bytes;
use rayon::prelude::*;

use crate::pipeline::{BlobCache, fetch};
use crate::{Array, ArraySchema, Blob, Chunk, ChunkCoord, ChunkRef, Result, Span, product};

/// Batch size: enough to keep all cores busy, small enough that a large index is never held in memory as a whole.
const BATCH: usize = 1024;
/// A batch with fewer decoded bytes is checked on the caller's thread, because waking other threads would take longer.
const SMALL: u64 = 128 << 10;
/// The fixed cost of a check, as the number of bytes decoded in the same time.
const EACH: u64 = 512;
/// The smallest page size in use. Checks touch one byte of each page.
const PAGE: usize = 4096;
/// Plain chunks of up to this many bytes are fetched as for reading.
const AT_ONCE: u64 = 16 << 20;
/// Unmapped blobs are read in pieces of this many bytes.
const PIECE: u64 = 1 << 20;
/// Chunks of remote storage are fetched together up to this many bytes. A single chunk may be larger.
const GROUP: u64 = 8 << 20;

/// Runs `check` on every item that `walk` adds, on the caller's thread pool, and passes the outcomes to `tell` in the order in
/// which the items were added. The report therefore does not depend on the number of threads. `each` is the approximate number of
/// bytes to check per item.
///
/// If the walk fails, the items it added before are checked and reported first.
///
/// # Errors
///
/// Any error from `walk`.
pub fn check_in_order<T: Send, R: Send>(
    each: u64,
    walk: impl FnOnce(&mut dyn FnMut(T)) -> Result<()>,
    check: impl Fn(T) -> R + Sync,
    tell: impl FnMut(R),
) -> Result<()> {
    in_batches(walk, tell, |batch| {
        let bytes = each.saturating_add(EACH).saturating_mul(batch.len() as u64);
        if batch.len() < 2 || bytes < SMALL {
            return batch.drain(..).map(&check).collect();
        }
        batch.par_drain(..).with_max_len(1).map(&check).collect()
    })
}

/// Like [`check_in_order`], for items that may have a chunk of `array`, which `chunk_of` returns. The chunks of remote storage are fetched
/// in groups, each while the one before it is checked, and passed to `check`. In all other cases, `check` fetches the chunk.
///
/// # Errors
///
/// Any error from `walk`.
pub fn check_chunks_in_order<T: Send, R: Send>(
    array: &dyn Array,
    walk: impl FnOnce(&mut dyn FnMut(T)) -> Result<()>,
    chunk_of: impl Fn(&T) -> Option<&ChunkRef> + Sync,
    check: impl Fn(T, Option<Vec<Bytes>>) -> R + Sync,
    tell: impl FnMut(R),
) -> Result<()> {
    let fetch = array.is_remote().then_some(|group: &[T]| fetch_group(array, group, &chunk_of));
    let bytes_of = |item: &T| chunk_of(item).map_or(0, ChunkRef::stored_bytes);
    check_fetched_in_order(chunk_weight(array.schema()), walk, bytes_of, fetch, check, tell)
}

/// Like [`check_in_order`], for items with stored bytes. With `fetch`, which remote storage needs, items are fetched in groups, each
/// while the one before it is checked. `bytes_of` returns the size of an item's bytes, and `fetch` the byte ranges of each item of a
/// group. If it returns `None` for an item, or nothing at all, `check` fetches the bytes.
///
/// # Errors
///
/// Any error from `walk`.
pub fn check_fetched_in_order<T: Send, R: Send>(
    each: u64,
    walk: impl FnOnce(&mut dyn FnMut(T)) -> Result<()>,
    bytes_of: impl Fn(&T) -> u64,
    fetch: Option<impl Fn(&[T]) -> Vec<Option<Vec<Bytes>>> + Sync>,
    check: impl Fn(T, Option<Vec<Bytes>>) -> R + Sync,
    tell: impl FnMut(R),
) -> Result<()> {
    let Some(fetch) = fetch else {
        return check_in_order(each, walk, |item| check(item, None), tell);
    };
    in_batches(walk, tell, |batch| {
        let mut groups = grouped(batch, &bytes_of).into_iter();
        let with_bytes = |group: Option<Vec<T>>| {
            let group = group.unwrap_or_default();
            let mut stored = if group.is_empty() { Vec::new() } else { fetch(&group) };
            stored.resize(group.len(), None);
            (group, stored)
        };
        let mut outcomes = Vec::with_capacity(batch.len());
        let mut next = with_bytes(groups.next());
        while !next.0.is_empty() {
            let (group, stored) = next;
            let run =
                || group.into_par_iter().zip(stored).map(|(item, stored)| check(item, stored)).collect();
            let following = groups.next();
            let (fetched, checked): (_, Vec<R>) = rayon::join(|| with_bytes(following), run);
            outcomes.extend(checked);
            next = fetched;
        }
        outcomes
    })
}

/// Collects items in batches, and passes the outcomes of each batch on in order.
fn in_batches<T, R>(
    walk: impl FnOnce(&mut dyn FnMut(T)) -> Result<()>,
    mut tell: impl FnMut(R),
    run: impl Fn(&mut Vec<T>) -> Vec<R>,
) -> Result<()> {
    let mut batch = Vec::new();
    let mut run = |batch: &mut Vec<T>| {
        run(batch).into_iter().for_each(&mut tell);
        batch.clear();
    };
    let walked = walk(&mut |item| {
        batch.push(item);
        if batch.len() >= BATCH {
            run(&mut batch);
        }
    });
    run(&mut batch);
    walked
}

/// Divides a batch into groups of about [`GROUP`] stored bytes. An item of unknown size is a group of its own.
fn grouped<T>(batch: &mut Vec<T>, bytes_of: &impl Fn(&T) -> u64) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    let mut room = 0;
    for item in batch.drain(..) {
        let bytes = bytes_of(&item);
        match groups.last_mut() {
            Some(group) if bytes <= room => {
                group.push(item);
                room -= bytes;
            }
            _ => {
                groups.push(vec![item]);
                room = GROUP.saturating_sub(bytes);
            }
        }
    }
    groups
}

/// Fetches the chunks of a group in one call. `None` for an item without a chunk. If the call fails, the items are fetched one by one
/// later, so that the error is that of its chunk.
fn fetch_group<T>(
    array: &dyn Array,
    group: &[T],
    chunk_of: &impl Fn(&T) -> Option<&ChunkRef>,
) -> Vec<Option<Vec<Bytes>>> {
    let spans: Vec<&Span> = group.iter().filter_map(chunk_of).flat_map(ChunkRef::spans).collect();
    let Ok(fetched) = array.fetch(&spans) else { return group.iter().map(|_| None).collect() };
    if fetched.len() != spans.len() {
        return group.iter().map(|_| None).collect();
    }
    let mut fetched = fetched.into_iter();
    let mut stored_of = |item: &T| {
        let stored: Vec<_> = fetched.by_ref().take(chunk_of(item)?.spans().count()).collect();
        stored.into_iter().collect()
    };
    group.iter().map(&mut stored_of).collect()
}

/// Fetches one range of a blob for each item of a group, for [`check_fetched_in_order`]. Items without a range, or with a long one that
/// is better read in pieces, get `None`, and so do all if the blob cannot be read.
#[must_use]
pub fn fetch_ranges(blob: &dyn Blob, ranges: &[Option<Range<u64>>]) -> Vec<Option<Vec<Bytes>>> {
    let is_wanted = |range: &&Range<u64>| range.end.saturating_sub(range.start) <= AT_ONCE;
    let wanted: Vec<Range<u64>> = ranges.iter().flatten().filter(is_wanted).cloned().collect();
    let fetched = blob.read(&wanted).unwrap_or_default();
    if fetched.len() != wanted.len() {
        return Vec::new();
    }
    let mut fetched = fetched.into_iter();
    let one = |range: &Option<Range<u64>>| {
        range.as_ref().filter(is_wanted).and_then(|_| fetched.next()).map(|bytes| vec![bytes])
    };
    ranges.iter().map(one).collect()
}

/// The approximate number of bytes that a chunk of the array decodes to, for [`check_in_order`].
#[must_use]
pub fn chunk_weight(schema: &ArraySchema) -> u64 {
    /// Estimate for a variable-length element: its offset and a short text.
    const VARIABLE: usize = 32;
    let cells = product(schema.grid.chunk_shape()).unwrap_or(u64::MAX);
    cells.saturating_mul(schema.dtype.size().unwrap_or(VARIABLE) as u64)
}

/// Checks that a chunk can be read. Encoded bytes are decoded into the thread's scratch memory. For a chunk stored as is, every
/// page is touched and nothing is copied. `stored` are its bytes, if they were fetched.
///
/// # Errors
///
/// Any error from fetching or decoding.
pub fn check_chunk(
    array: &dyn Array,
    chunk: &ChunkCoord,
    reference: &ChunkRef,
    stored: Option<Vec<Bytes>>,
) -> Result<()> {
    let mut blobs = BlobCache::default();
    let mut chunk = Chunk::new(array, 0, chunk, Some(reference), None, &mut blobs);
    if stored.is_some() {
        chunk = chunk.with_fetched(stored);
    }
    chunk.check(|span| {
        if span.length > AT_ONCE {
            return check_readable(&*array.blob(&span.blob)?, span);
        }
        fetch(array, &[span])?.iter().for_each(|stored| touch(stored));
        Ok(())
    })
}

/// Checks that the bytes of the span exist and that the system can read them.
fn check_readable(blob: &dyn Blob, span: &Span) -> Result<()> {
    if blob.mapped().is_some() {
        touch(&blob.read_at(span.offset, span.length)?);
        return Ok(());
    }
    let mut done = 0;
    while done < span.length {
        let length = PIECE.min(span.length - done);
        blob.read_at(span.offset.saturating_add(done), length)?;
        done += length;
    }
    Ok(())
}

/// Reads one byte of every page, so that the system loads them all.
pub fn touch(bytes: &[u8]) {
    let pages = bytes.iter().step_by(PAGE).chain(bytes.last());
    black_box(pages.fold(0, |seen, byte| seen ^ byte));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, MemoryBlob};

    fn outcomes(threads: usize, each: u64, fail: bool) -> (Vec<u64>, bool) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut told = Vec::new();
        let walked = pool.install(|| {
            let walk = |put: &mut dyn FnMut(u64)| {
                (0..3000).for_each(put);
                if fail { Err(Error::invalid("no more")) } else { Ok(()) }
            };
            check_in_order(each, walk, |number| number * 2, |double| told.push(double))
        });
        (told, walked.is_ok())
    }

    #[test]
    fn outcomes_are_in_walk_order() {
        let expected: Vec<u64> = (0..3000).map(|number| number * 2).collect();
        for (threads, each) in [(1, 1 << 20), (4, 1 << 20), (4, 1)] {
            assert_eq!(outcomes(threads, each, false), (expected.clone(), true));
            assert_eq!(outcomes(threads, each, true), (expected.clone(), false));
        }
    }

    #[test]
    fn missing_bytes_are_detected_mapped_or_not() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![1; 3 << 20]).unwrap();
        let blobs: [Box<dyn Blob>; 3] = [
            Box::new(crate::MappedBlob::open(file.path()).unwrap()),
            Box::new(crate::FileBlob::open(file.path()).unwrap()),
            Box::new(MemoryBlob::new("memory", vec![1; 3 << 20])),
        ];
        for blob in &blobs {
            let check = |offset, length| {
                check_readable(&**blob, &Span { blob: crate::BlobKey::Main, offset, length })
            };
            check(0, 3 << 20).unwrap();
            check(5, 0).unwrap();
            assert!(check(5, 3 << 20).unwrap_err().is_corrupt());
            assert!(check(u64::MAX, 2).unwrap_err().is_corrupt());
        }
    }
}
