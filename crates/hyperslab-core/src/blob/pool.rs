//! A pool of recycled buffers, for objects that are read, used and dropped one after another.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// The pool only serves sizes for which allocating and freeing costs more than a pool lookup.
const SMALLEST: usize = 16 << 10;
pub(super) const LARGEST: usize = 16 << 20;
/// The maximum number of bytes in the pool.
const KEPT_BYTES: usize = 96 << 20;
/// Number of size classes per doubling: sizes grow by a quarter or less.
const STEPS: usize = 4;
const SIZES: usize = (LARGEST / SMALLEST).ilog2() as usize * STEPS + 1;

static FREE: Mutex<Free> = Mutex::new(Free { by_size: [const { Vec::new() }; SIZES], bytes: 0 });

/// Recycled buffers.
#[derive(Debug)]
struct Free {
    /// The buffer returned last is reused first: it may still be in the processor's cache.
    by_size: [Vec<Vec<u64>>; SIZES],
    bytes: usize,
}

fn free() -> MutexGuard<'static, Free> {
    // The lists stay consistent whatever a panicking thread was doing.
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Index and size of the smallest size class that holds this many bytes; `None` outside the pool's range.
fn size_of_buffer(length: usize) -> Option<(usize, usize)> {
    if !(SMALLEST..=LARGEST).contains(&length) {
        return None;
    }
    let doublings = (length / SMALLEST).ilog2() as usize;
    let base = SMALLEST << doublings;
    let steps = (length - base).div_ceil(base / STEPS);
    Some((doublings * STEPS + steps, base + steps * (base / STEPS)))
}

/// A buffer that returns to the pool when it is dropped. Aligned to 8 bytes; its contents are arbitrary until written.
#[derive(Debug)]
pub(super) struct Pooled {
    words: Vec<u64>,
    length: usize,
}

impl Pooled {
    pub(super) fn take(length: usize) -> Self {
        let kept = size_of_buffer(length).map(|(number, size)| {
            let mut free = free();
            let kept = free.by_size[number].pop();
            free.bytes -= kept.as_ref().map_or(0, |_| size);
            kept.ok_or(size)
        });
        let words = match kept {
            Some(Ok(words)) => words,
            Some(Err(size)) => vec![0; size / 8],
            None => vec![0; length.div_ceil(8)],
        };
        Self { words, length }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.length]
    }

    /// Freezes the first `length` bytes into shared, read-only bytes.
    pub(super) fn freeze(mut self, length: usize) -> Bytes {
        self.length = self.length.min(length);
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Pooled {
    fn as_ref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.length]
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.words);
        let Some((number, size)) = size_of_buffer(words.len() * 8) else { return };
        let mut free = free();
        if free.bytes + size <= KEPT_BYTES {
            free.bytes += size;
            free.by_size[number].push(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recycled_buffers_have_the_requested_length() {
        for length in [0, 7, SMALLEST, SMALLEST + 3, 3 * SMALLEST, LARGEST, LARGEST + 1, SMALLEST] {
            let mut buffer = Pooled::take(length);
            buffer.as_mut_slice().fill(7);
            let bytes = buffer.freeze(length);
            assert_eq!(bytes.len(), length);
            assert!(bytes.iter().all(|byte| *byte == 7));
            assert_eq!(bytes.as_ptr().align_offset(8), 0);
        }
        assert!(free().bytes <= KEPT_BYTES);
        assert_eq!(Pooled::take(SMALLEST).freeze(5).len(), 5);
    }

    #[test]
    fn buffers_return_to_the_list_of_their_size() {
        let mut last = (0, 0);
        for length in (SMALLEST..=LARGEST).step_by(1000).chain([LARGEST]) {
            let (number, size) = size_of_buffer(length).unwrap();
            assert!(size >= length && size % 8 == 0 && size <= length + length / 4 && number < SIZES);
            assert_eq!(size_of_buffer(size), Some((number, size)));
            assert!(last <= (number, size) && (last.0 == number) == (last.1 == size) || last == (0, 0));
            last = (number, size);
        }
        assert!(size_of_buffer(SMALLEST - 1).is_none() && size_of_buffer(LARGEST + 1).is_none());
    }
}
