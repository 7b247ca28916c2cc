//! Differences (filter 19): the number of values (u64), the first value, and every difference, all wrapping.

use super::{Word, by_size};
use crate::bytes::Reader;
use crate::error::{Result, corrupt, invalid, size as size_error};

const CODEC: &str = "tiledb delta";

/// Appends the part `src`, values of `size` bytes (1, 2, 4 or 8), encoded, to `out`.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) where `src` is not such values.
pub fn encode(size: usize, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if !matches!(size, 1 | 2 | 4 | 8) || !src.len().is_multiple_of(size) {
        return Err(invalid(CODEC, format!("{} bytes of values of {size} bytes", src.len())));
    }
    out.extend((src.len() as u64 / size as u64).to_le_bytes());
    let base = out.len();
    out.resize(base + src.len(), 0);
    by_size!(size, encode_words(src, &mut out[base..]), else ());
    Ok(())
}

/// Decodes the part `src` into `out`, which it must fill.
///
/// # Errors
///
/// [`Size`](crate::CodecError::Size) where it states another number of values, [`Corrupt`](crate::CodecError::Corrupt)
/// where it is cut off or too long.
pub fn decode(size: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    if !matches!(size, 1 | 2 | 4 | 8) || !out.len().is_multiple_of(size) {
        return Err(invalid(CODEC, format!("{} bytes of values of {size} bytes", out.len())));
    }
    let mut reader = Reader::new(CODEC, src);
    let count = reader.u64_le()?;
    if count != out.len() as u64 / size as u64 {
        let found = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(size);
        return Err(size_error(CODEC, out.len(), found));
    }
    let values = reader.take(out.len())?;
    if !reader.is_empty() {
        return Err(corrupt(CODEC, "bytes after the last value"));
    }
    by_size!(size, decode_words(values, out), else ());
    Ok(())
}

fn encode_words<W: Word>(src: &[u8], out: &mut [u8]) {
    let mut last = W::zero();
    for (from, to) in src.chunks_exact(W::SIZE).zip(out.chunks_exact_mut(W::SIZE)) {
        let value = W::load(from);
        value.minus(last).store(to);
        last = value;
    }
}

fn decode_words<W: Word>(src: &[u8], out: &mut [u8]) {
    let mut last = W::zero();
    for (from, to) in src.chunks_exact(W::SIZE).zip(out.chunks_exact_mut(W::SIZE)) {
        last = last.plus(W::load(from));
        last.store(to);
    }
}
