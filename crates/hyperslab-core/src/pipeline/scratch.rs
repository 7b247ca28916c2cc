//! Scratch memory: the one pool of buffers that decoders reuse from chunk to chunk.
//!
//! Each thread has its own pool, so that taking a buffer needs no lock. The memory a thread keeps is bounded.

use std::cell::RefCell;

use crate::{Buffer, Result};

/// Larger buffers are freed instead of kept.
const KEPT_BUFFER: usize = 64 << 20;

/// The most bytes that a thread keeps in growable buffers.
const KEPT_BYTES: usize = 128 << 20;

/// Growable buffers, the most recently returned on top: the same step of the next chunk takes it again.
struct Pool {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

thread_local! {
    static GROWABLE: RefCell<Pool> = const { RefCell::new(Pool { buffers: Vec::new(), bytes: 0 }) };
    static ALIGNED: RefCell<Option<Buffer>> = const { RefCell::new(None) };
}

/// Runs `work` with scratch memory of this size, aligned for every element type. Its contents are arbitrary.
///
/// # Errors
///
/// [`Invalid`](crate::Error::Invalid) if the allocation fails; otherwise whatever `work` returns.
pub fn with_scratch<T>(bytes: usize, work: impl FnOnce(&mut [u8]) -> Result<T>) -> Result<T> {
    // The buffer is taken out, so that a decoder that reads other arrays finds none and allocates its own.
    let kept = ALIGNED.with(RefCell::take).filter(|kept| kept.as_ref().len() >= bytes);
    let mut buffer = match kept {
        Some(kept) => kept,
        None => Buffer::zeroed(bytes)?,
    };
    let result = work(&mut buffer.as_mut_slice()[..bytes]);
    if buffer.as_ref().len() <= KEPT_BUFFER {
        ALIGNED.with(|scratch| scratch.replace(Some(buffer)));
    }
    result
}

/// Takes a growable buffer from this thread's pool, with any length and arbitrary contents. [`recycle_scratch`] returns it.
#[must_use]
pub fn take_scratch() -> Vec<u8> {
    GROWABLE.with_borrow_mut(|pool| {
        let buffer = pool.buffers.pop().unwrap_or_default();
        pool.bytes -= buffer.capacity();
        buffer
    })
}

/// Returns a buffer to this thread's pool.
pub fn recycle_scratch(buffer: Vec<u8>) {
    let size = buffer.capacity();
    GROWABLE.with_borrow_mut(|pool| {
        if size > 0 && size <= KEPT_BUFFER && pool.bytes + size <= KEPT_BYTES {
            pool.bytes += size;
            pool.buffers.push(buffer);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused_in_reverse_order() {
        let (mut inner, mut outer) = (take_scratch(), take_scratch());
        inner.resize(100, 1);
        outer.resize(5000, 2);
        recycle_scratch(inner);
        recycle_scratch(outer);
        assert!(take_scratch().capacity() >= 5000);
        assert!((100..5000).contains(&take_scratch().capacity()));
        assert_eq!(take_scratch().capacity(), 0);
    }

    #[test]
    fn a_thread_keeps_a_bounded_number_of_bytes() {
        recycle_scratch(Vec::with_capacity(KEPT_BUFFER + 1));
        assert_eq!(take_scratch().capacity(), 0);
        for _ in 0..4 {
            recycle_scratch(Vec::with_capacity(KEPT_BUFFER));
        }
        let kept = std::iter::from_fn(|| Some(take_scratch()).filter(|buffer| buffer.capacity() > 0)).count();
        assert_eq!(kept, KEPT_BYTES / KEPT_BUFFER);
    }
}
