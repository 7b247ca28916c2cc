//! Exclusive or of every value with the one before (filter 16).

use super::{Word, by_size};
use crate::error::{Result, invalid, size as size_error};

const CODEC: &str = "tiledb xor";

fn check(size: usize, src: &[u8], out: &[u8]) -> Result<()> {
    if src.len() != out.len() {
        return Err(size_error(CODEC, out.len(), src.len()));
    }
    if size == 0 || !src.len().is_multiple_of(size) {
        return Err(invalid(CODEC, format!("{} bytes of values of {size} bytes", src.len())));
    }
    Ok(())
}

/// Encodes the part `src`, values of `size` bytes (1, 2, 4 or 8), into `out` of the same length.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) where `src` is not such values, [`Size`](crate::CodecError::Size) where the
/// lengths differ.
pub fn encode(size: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    check(size, src, out)?;
    by_size!(size, encode_words(src, out), else return Err(invalid(CODEC, format!("values of {size} bytes"))));
    Ok(())
}

/// Undoes [`encode`].
///
/// # Errors
///
/// As [`encode`].
pub fn decode(size: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    check(size, src, out)?;
    by_size!(size, decode_words(src, out), else return Err(invalid(CODEC, format!("values of {size} bytes"))));
    Ok(())
}

fn encode_words<W: Word>(src: &[u8], out: &mut [u8]) {
    let mut last = W::zero();
    for (from, to) in src.chunks_exact(W::SIZE).zip(out.chunks_exact_mut(W::SIZE)) {
        let value = W::load(from);
        value.xor(last).store(to);
        last = value;
    }
}

fn decode_words<W: Word>(src: &[u8], out: &mut [u8]) {
    let mut last = W::zero();
    for (from, to) in src.chunks_exact(W::SIZE).zip(out.chunks_exact_mut(W::SIZE)) {
        last = W::load(from).xor(last);
        last.store(to);
    }
}
