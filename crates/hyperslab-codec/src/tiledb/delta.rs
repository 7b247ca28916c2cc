//! First differences, XOR with the value before, and floats as scaled integers.

use super::numbers::{Word, by_width};
use crate::bytes::Reader;
use crate::error::{Result, corrupt, invalid, size as size_error};

const DELTA: &str = "delta";
const XOR: &str = "xor";
const SCALE: &str = "float scale";

/// Decodes `u64 n, first value, differences`, wrapping, of integers of `size` bytes, into `out`, which it must fill.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) or [`Size`](crate::CodecError::Size) for invalid bytes.
pub fn decode_delta(size: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    let mut reader = Reader::new(DELTA, src);
    let count = reader.u64_le()?;
    if count.checked_mul(size as u64) != Some(out.len() as u64) {
        return Err(size_error(
            DELTA,
            out.len(),
            usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(size),
        ));
    }
    let values = reader.take(out.len())?;
    by_width!(size, DELTA, sum(values, out))
}

fn sum<W: Word>(values: &[u8], out: &mut [u8]) -> Result<()> {
    let mut last = W::from_u64(0);
    for (from, to) in values.chunks_exact(W::SIZE).zip(out.chunks_exact_mut(W::SIZE)) {
        last = last.plus(W::load(from));
        last.store(to);
    }
    Ok(())
}

/// Appends the encoding read by [`decode_delta`].
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if `src` is not whole integers.
pub fn encode_delta(size: usize, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if size == 0 || !src.len().is_multiple_of(size) {
        return Err(invalid(
            DELTA,
            format!("{} bytes are not a multiple of the integer size {size}", src.len()),
        ));
    }
    out.extend(((src.len() / size) as u64).to_le_bytes());
    let start = out.len();
    out.resize(start + src.len(), 0);
    by_width!(size, DELTA, differences(src, &mut out[start..]))
}

fn differences<W: Word>(values: &[u8], out: &mut [u8]) -> Result<()> {
    let mut last = W::from_u64(0);
    for (from, to) in values.chunks_exact(W::SIZE).zip(out.chunks_exact_mut(W::SIZE)) {
        let value = W::load(from);
        value.minus(last).store(to);
        last = value;
    }
    Ok(())
}

/// Undoes [`encode_xor`].
///
/// # Errors
///
/// [`Size`](crate::CodecError::Size) if the two differ in length.
pub fn decode_xor(size: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    if src.len() != out.len() {
        return Err(size_error(XOR, out.len(), src.len()));
    }
    by_width!(size, XOR, unxor(src, out))
}

fn unxor<W: Word>(values: &[u8], out: &mut [u8]) -> Result<()> {
    let mut last = W::from_u64(0);
    for (from, to) in values.chunks_exact(W::SIZE).zip(out.chunks_exact_mut(W::SIZE)) {
        last = last.xored(W::load(from));
        last.store(to);
    }
    let body = values.len() - values.len() % W::SIZE;
    out[body..].copy_from_slice(&values[body..]);
    Ok(())
}

/// Encodes the first value, then the XOR of each value with the one before.
///
/// # Errors
///
/// [`Size`](crate::CodecError::Size) if the two differ in length.
pub fn encode_xor(size: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    if src.len() != out.len() {
        return Err(size_error(XOR, out.len(), src.len()));
    }
    by_width!(size, XOR, xor(src, out))
}

fn xor<W: Word>(values: &[u8], out: &mut [u8]) -> Result<()> {
    let mut last = W::from_u64(0);
    for (from, to) in values.chunks_exact(W::SIZE).zip(out.chunks_exact_mut(W::SIZE)) {
        let value = W::load(from);
        value.xored(last).store(to);
        last = value;
    }
    let body = values.len() - values.len() % W::SIZE;
    out[body..].copy_from_slice(&values[body..]);
    Ok(())
}

/// Converts integers of `width` bytes to floats of `size` bytes: `scale * i + offset` in `f64`, rounded once.
///
/// # Errors
///
/// [`Size`](crate::CodecError::Size) if the counts differ, [`Invalid`](crate::CodecError::Invalid) for other sizes.
pub fn decode_float_scale(
    size: usize,
    scale: f64,
    offset: f64,
    width: usize,
    src: &[u8],
    out: &mut [u8],
) -> Result<()> {
    if !matches!(size, 4 | 8) || !matches!(width, 1 | 2 | 4 | 8) {
        return Err(invalid(SCALE, format!("floats of {size} bytes in integers of {width}")));
    }
    if src.len() / width * size != out.len() || !src.len().is_multiple_of(width) {
        return Err(size_error(SCALE, out.len(), src.len() / width * size));
    }
    for (from, to) in src.chunks_exact(width).zip(out.chunks_exact_mut(size)) {
        let mut wide = [0; 8];
        wide[..width].copy_from_slice(from);
        let shift = 64 - 8 * width as u32;
        let integer = ((u64::from_le_bytes(wide) << shift) as i64) >> shift;
        // Convert the integer to the float type first, like libtiledb.
        if size == 4 {
            let value = (scale * f64::from(integer as f32) + offset) as f32;
            to.copy_from_slice(&value.to_le_bytes());
        } else {
            to.copy_from_slice(&(scale * integer as f64 + offset).to_le_bytes());
        }
    }
    Ok(())
}

/// Appends `round((x - offset) / scale)` of each float, in its own precision, half away from zero.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) for other sizes.
pub fn encode_float_scale(
    size: usize,
    scale: f64,
    offset: f64,
    width: usize,
    src: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    if !matches!(size, 4 | 8) || !matches!(width, 1 | 2 | 4 | 8) || !src.len().is_multiple_of(size) {
        return Err(invalid(SCALE, format!("floats of {size} bytes in integers of {width}")));
    }
    let (low, high) = (i64::MIN >> (64 - 8 * width), i64::MAX >> (64 - 8 * width));
    for value in src.chunks_exact(size) {
        let rounded = if size == 4 {
            let value = f32::from_le_bytes(value.try_into().map_err(|_| corrupt(SCALE, "a short float"))?);
            f64::from(((value - offset as f32) / scale as f32).round())
        } else {
            let value = f64::from_le_bytes(value.try_into().map_err(|_| corrupt(SCALE, "a short float"))?);
            ((value - offset) / scale).round()
        };
        out.extend(&(rounded as i64).clamp(low, high).to_le_bytes()[..width]);
    }
    Ok(())
}
