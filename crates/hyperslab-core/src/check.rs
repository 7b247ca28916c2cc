//! Deep checks on all cores. Chunks found by walking an index are checked in batches and reported in walk order.

use std::hint::black_box;

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
    mut tell: impl FnMut(R),
) -> Result<()> {
    let mut batch = Vec::new();
    let mut run = |batch: &mut Vec<T>| {
        let bytes = each.saturating_add(EACH).saturating_mul(batch.len() as u64);
        if batch.len() < 2 || bytes < SMALL {
            return batch.drain(..).map(&check).for_each(&mut tell);
        }
        let outcomes: Vec<R> = batch.par_drain(..).with_max_len(1).map(&check).collect();
        outcomes.into_iter().for_each(&mut tell);
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

/// The approximate number of bytes that a chunk of the array decodes to, for [`check_in_order`].
#[must_use]
pub fn chunk_weight(schema: &ArraySchema) -> u64 {
    /// Estimate for a variable-length element: its offset and a short text.
    const VARIABLE: usize = 32;
    let cells = product(schema.grid.chunk_shape()).unwrap_or(u64::MAX);
    cells.saturating_mul(schema.dtype.size().unwrap_or(VARIABLE) as u64)
}

/// Checks that a chunk can be read. Encoded bytes are decoded into the thread's scratch memory. For a chunk stored as is, every
/// page is touched and nothing is copied.
///
/// # Errors
///
/// Any error from fetching or decoding.
pub fn check_chunk(array: &dyn Array, chunk: &ChunkCoord, reference: &ChunkRef) -> Result<()> {
    let mut blobs = BlobCache::default();
    Chunk::new(array, 0, chunk, Some(reference), None, &mut blobs).check(|span| {
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
