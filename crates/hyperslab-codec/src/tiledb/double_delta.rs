//! Second differences, packed in as many bits as the largest one needs.
//!
//! `u8 bits, u64 n`; with `bits` so large that nothing is saved, the values as they are; else the first two values, then
//! per value a sign bit and `bits` bits of magnitude, highest first, in `u64` words that are stored little-endian.

use super::numbers::{Integer, Word, by_width};
use crate::bytes::Reader;
use crate::error::{Result, corrupt, invalid, size as size_error};

const CODEC: &str = "double delta";

/// Decodes `src` into `out`, which it must fill.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) or [`Size`](crate::CodecError::Size) for invalid bytes.
pub fn decode_double_delta(size: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    by_width!(size, CODEC, unpack(src, out))
}

fn unpack<W: Word>(src: &[u8], out: &mut [u8]) -> Result<()> {
    let mut reader = Reader::new(CODEC, src);
    let (bits, count) = (u32::from(reader.u8()?), reader.u64_le()?);
    if count.checked_mul(W::SIZE as u64) != Some(out.len() as u64) {
        let found = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(W::SIZE);
        return Err(size_error(CODEC, out.len(), found));
    }
    if bits as usize >= 8 * W::SIZE - 1 {
        out.copy_from_slice(reader.take(out.len())?);
        return Ok(());
    }
    let head = out.len().min(2 * W::SIZE);
    out[..head].copy_from_slice(reader.take(head)?);
    if out.len() == head {
        return Ok(());
    }
    let words = reader.rest();
    let needed = (out.len() / W::SIZE - 2) as u64 * u64::from(bits + 1);
    if needed.div_ceil(64) * 8 > words.len() as u64 {
        return Err(corrupt(CODEC, format!("{needed} bits expected, {} there", words.len() as u64 * 8)));
    }
    let mut stream = Bits { words, at: 0 };
    let (mut before, mut last) = (W::load(&out[..W::SIZE]), W::load(&out[W::SIZE..]));
    for to in out[2 * W::SIZE..].chunks_exact_mut(W::SIZE) {
        let negative = stream.take(1) == 1;
        let magnitude = if bits == 0 { 0 } else { stream.take(bits) };
        let difference = W::from_u64(if negative { magnitude.wrapping_neg() } else { magnitude });
        let value = difference.plus(last).plus(last).minus(before);
        value.store(to);
        (before, last) = (last, value);
    }
    Ok(())
}

struct Bits<'a> {
    words: &'a [u8],
    at: u64,
}

impl Bits<'_> {
    fn word(&self, index: usize) -> u64 {
        let mut word = [0; 8];
        if let Some(bytes) = self.words.get(index * 8..index * 8 + 8) {
            word.copy_from_slice(bytes);
        }
        u64::from_le_bytes(word)
    }

    /// The next `count` (1 to 63) bits.
    fn take(&mut self, count: u32) -> u64 {
        let (index, used) = ((self.at / 64) as usize, (self.at % 64) as u32);
        self.at += u64::from(count);
        let high = self.word(index) << used;
        let both = if used == 0 { high } else { high | self.word(index + 1) >> (64 - used) };
        both >> (64 - count)
    }
}

/// Appends the encoding read by [`decode_double_delta`].
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if `src` is not whole integers, or differences do not fit 64 bits.
pub fn encode_double_delta(integer: Integer, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if integer.size == 0 || !src.len().is_multiple_of(integer.size) {
        return Err(invalid(
            CODEC,
            format!("{} bytes are not a multiple of the integer size {}", src.len(), integer.size),
        ));
    }
    by_width!(integer.size, CODEC, pack(integer, src, out))
}

fn pack<W: Word>(integer: Integer, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let value = |index: usize| integer.value(W::load(&src[index * W::SIZE..]).to_u64());
    let count = src.len() / W::SIZE;
    let second = |index: usize| value(index) - 2 * value(index - 1) + value(index - 2);
    let mut bits = 0;
    if count > 2 {
        // The first difference counts for the maximum, although it is not stored.
        let largest =
            (2..count).map(|index| second(index).abs()).max().unwrap_or(0).max((value(1) - value(0)).abs());
        if largest > i128::from(i64::MAX) {
            return Err(invalid(CODEC, "differences that do not fit 64 bits"));
        }
        bits = (128 - largest.leading_zeros()).max(1);
    }
    out.push(bits as u8);
    out.extend((count as u64).to_le_bytes());
    if bits as usize >= 8 * W::SIZE - 1 || count <= 2 {
        out.extend_from_slice(src);
        return Ok(());
    }
    out.extend_from_slice(&src[..2 * W::SIZE]);
    let (mut word, mut used) = (0_u64, 0_u32);
    for index in 2..count {
        let second = second(index);
        let mut coded = (u128::from(second < 0) << bits) | second.unsigned_abs();
        let mut left = bits + 1;
        while left > 0 {
            let taken = left.min(64 - used);
            let high = (coded >> (left - taken)) as u64;
            word |= high.checked_shl(64 - used - taken).unwrap_or(0);
            coded &= (1_u128 << (left - taken)) - 1;
            (left, used) = (left - taken, used + taken);
            if used == 64 {
                out.extend(word.to_le_bytes());
                (word, used) = (0, 0);
            }
        }
    }
    if used > 0 {
        out.extend(word.to_le_bytes());
    }
    Ok(())
}
