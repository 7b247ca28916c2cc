//! Memory for bytes that are read, used and dropped again, one object after the other: taken from those that came back.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Only sizes for which asking the system for memory, and giving it back, costs more than looking here.
const SMALLEST: usize = 64 << 10;
pub(super) const LARGEST: usize = 16 << 20;
/// Buffers that are kept, and all of their bytes.
const KEPT: usize = 64;
const KEPT_BYTES: usize = 64 << 20;

static FREE: Mutex<Vec<Vec<u64>>> = Mutex::new(Vec::new());

fn free() -> MutexGuard<'static, Vec<Vec<u64>>> {
    // The list is whole whatever a panicking thread was doing.
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A buffer that goes back to the others when it is dropped. Aligned to 8 bytes; what is in it is anything, until written.
#[derive(Debug)]
pub(super) struct Pooled {
    words: Vec<u64>,
    length: usize,
}

impl Pooled {
    pub(super) fn take(length: usize) -> Self {
        let words = length.div_ceil(8);
        let kept = (SMALLEST..=LARGEST).contains(&length).then(|| {
            let mut free = free();
            // The last that came back first: it may still be in the processor's cache.
            let fitting = free.iter().rposition(|kept| kept.len() >= words && kept.len() / 2 <= words)?;
            Some(free.remove(fitting))
        });
        let words = kept.flatten().unwrap_or_else(|| vec![0; words]);
        Self { words, length }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.length]
    }

    /// The bytes, shared and read-only from now on.
    pub(super) fn freeze(self) -> Bytes {
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
        if !(SMALLEST..=LARGEST).contains(&(words.len() * 8)) {
            return;
        }
        let mut free = free();
        if free.len() < KEPT && free.iter().map(|kept| kept.len() * 8).sum::<usize>() < KEPT_BYTES {
            free.push(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_comes_back_is_as_long_as_asked_for() {
        for length in [0, 7, SMALLEST, SMALLEST + 3, 3 * SMALLEST, LARGEST, LARGEST + 1, SMALLEST] {
            let mut buffer = Pooled::take(length);
            buffer.as_mut_slice().fill(7);
            let bytes = buffer.freeze();
            assert_eq!(bytes.len(), length);
            assert!(bytes.iter().all(|byte| *byte == 7));
            assert_eq!(bytes.as_ptr().align_offset(8), 0);
        }
        assert!(free().len() <= KEPT);
    }
}
