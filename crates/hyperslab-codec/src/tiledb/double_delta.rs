//! Second differences (filter 6): the bits of the largest (u8) and the number of values (u64), then the values.
//!
//! Where the bits are within one of the type's width, the values follow as they are. Otherwise the first two do, and then for
//! each of the others a sign bit and the magnitude of its second difference, highest bit first, in words of 64 bits stored
//! little-endian; the last word is padded with zeros.

use super::{Integer, load_bits, store_bits};
use crate::bytes::Reader;
use crate::error::{Result, corrupt, invalid, size as size_error};

const CODEC: &str = "tiledb double delta";

/// Appends the part `src`, encoded, to `out`.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) where `src` is not whole values, or a difference does not fit 64 bits.
pub fn encode(integer: Integer, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let size = integer.size();
    if !src.len().is_multiple_of(size) {
        return Err(invalid(CODEC, format!("{} bytes of values of {size} bytes", src.len())));
    }
    let count = src.len() / size;
    let value = |i: usize| integer.load(&src[i * size..(i + 1) * size]);
    let second = |i: usize| value(i) - 2 * value(i - 1) + value(i - 2);
    let mut bits = 0;
    if count > 2 {
        let mut most = (value(1) - value(0)).unsigned_abs();
        for i in 2..count {
            most =
                most.max(second(i).unsigned_abs()).max((value(i) - value(i - 1)).unsigned_abs() >> 63 << 63);
        }
        if most > i64::MAX as u128 {
            return Err(invalid(CODEC, "a difference of more than 63 bits"));
        }
        bits = (128 - most.leading_zeros()).max(1);
    }
    out.push(bits as u8);
    out.extend((count as u64).to_le_bytes());
    if bits >= integer.width() - 1 || count <= 2 {
        out.extend_from_slice(src);
        return Ok(());
    }
    out.extend_from_slice(&src[..2 * size]);
    let mut packer = Packer { out, word: 0, room: 64 };
    for i in 2..count {
        let second = second(i);
        packer.put(u64::from(second < 0), 1);
        packer.put(second.unsigned_abs() as u64, bits);
    }
    packer.finish();
    Ok(())
}

/// Decodes the part `src` into `out`, which it must fill.
///
/// # Errors
///
/// [`Size`](crate::CodecError::Size) where it states another number of values, [`Corrupt`](crate::CodecError::Corrupt)
/// where it is cut off or too long.
pub fn decode(integer: Integer, src: &[u8], out: &mut [u8]) -> Result<()> {
    let size = integer.size();
    let mut reader = Reader::new(CODEC, src);
    let (bits, count) = (u32::from(reader.u8()?), reader.u64_le()?);
    if u64::try_from(out.len()).ok() != count.checked_mul(size as u64) {
        let found = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(size);
        return Err(size_error(CODEC, out.len(), found));
    }
    let plain = if bits >= integer.width() - 1 { out.len() } else { out.len().min(2 * size) };
    let (head, rest) = out.split_at_mut(plain);
    head.copy_from_slice(reader.take(plain)?);
    if rest.is_empty() {
        return if reader.is_empty() { Ok(()) } else { Err(corrupt(CODEC, "bytes after the last value")) };
    }
    let stored = reader.rest();
    let words = (rest.len() / size) as u128 * u128::from(bits + 1);
    if !stored.len().is_multiple_of(8) || stored.len() as u128 / 8 != words.div_ceil(64) {
        return Err(corrupt(CODEC, format!("{} bytes for {words} bits", stored.len())));
    }
    let mut unpacker = Unpacker { words: stored.as_chunks::<8>().0.iter(), word: 0, left: 0 };
    let mut before = load_bits(&head[..size]);
    let mut last = load_bits(&head[size..]);
    for to in rest.chunks_exact_mut(size) {
        let negative = unpacker.get(1) == 1;
        let magnitude = unpacker.get(bits);
        let second = if negative { magnitude.wrapping_neg() } else { magnitude };
        let value = second.wrapping_add(last.wrapping_mul(2)).wrapping_sub(before);
        store_bits(value, to);
        (before, last) = (last, value);
    }
    Ok(())
}

struct Packer<'a> {
    out: &'a mut Vec<u8>,
    word: u64,
    room: u32,
}

impl Packer<'_> {
    /// Puts the low `n` bits of `value`, 1 to 63.
    fn put(&mut self, value: u64, n: u32) {
        if n < self.room {
            self.room -= n;
            self.word |= value << self.room;
            return;
        }
        let over = n - self.room;
        self.out.extend((self.word | value >> over).to_le_bytes());
        self.room = 64 - over;
        self.word = if over == 0 { 0 } else { value << self.room };
    }

    fn finish(self) {
        if self.room < 64 {
            self.out.extend(self.word.to_le_bytes());
        }
    }
}

struct Unpacker<'a> {
    words: std::slice::Iter<'a, [u8; 8]>,
    word: u64,
    left: u32,
}

impl Unpacker<'_> {
    /// The next `n` bits, at most 63; zeros behind the end.
    fn get(&mut self, n: u32) -> u64 {
        if n == 0 {
            return 0;
        }
        if self.left == 0 {
            self.refill();
        }
        if n <= self.left {
            let value = self.word >> (64 - n);
            self.word = self.word << (n - 1) << 1;
            self.left -= n;
            return value;
        }
        let (high, more) = (self.word >> (64 - self.left), n - self.left);
        self.refill();
        let low = self.word >> (64 - more);
        self.word = self.word << (more - 1) << 1;
        self.left -= more;
        high << more | low
    }

    fn refill(&mut self) {
        self.word = self.words.next().map_or(0, |word| u64::from_le_bytes(*word));
        self.left = 64;
    }
}
