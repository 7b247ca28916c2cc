//! Bit shuffle: the bits of all elements of a block, lowest bits first.
//!
//! A block is a multiple of 8 elements. For byte `j` of an element (in memory order) and bit `k` of that byte (lowest
//! first) there is a row of `n / 8` bytes; bit `b` of byte `i` of that row comes from element `8 i + b`. This is
//! the transform of the bitshuffle library, of HDF5 filter 32008, of TileDB filter 8 and inside Blosc blocks.
//!
//! It is three transposes, two of them byte shuffles: the elements' bytes into planes, then the bits of
//! every eight bytes of a plane, then the bytes of those groups of eight into rows.
//!
//! [`encode`] and [`decode`] divide a chunk into blocks like the library; [`encode_stream`] and [`decode_stream`] handle the
//! compressed form of HDF5 filter 32008: the decoded size (u64) and the bytes per block (u32), then for every block
//! the stored length (u32) and an LZ4 block or zstd frame, then fewer than 8 unshuffled elements. All
//! integers are big-endian.

use std::cell::RefCell;

use crate::bytes::Reader;
use crate::error::{Result, corrupt, invalid, size as size_error, too_long};
use crate::{lz4, shuffle, zstd};

const CODEC: &str = "bitshuffle";

/// The largest buffer that a thread keeps for the next stream.
const KEPT: usize = 16 << 20;

thread_local! {
    static SCRATCH: RefCell<(Vec<u8>, Vec<u8>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// Runs `work` with this thread's buffer, resized to `len` bytes.
fn with_scratch<T>(len: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    SCRATCH.with_borrow_mut(|(scratch, _)| {
        if scratch.len() < len {
            scratch.resize(len, 0);
        }
        work(&mut scratch[..len])
    })
}

/// Transposes the 8×8 bits of every eight bytes.
fn transpose_bits(bytes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return wide::transpose_bits(bytes);
    }
    transpose_words(bytes);
}

#[inline(always)]
fn transpose_words(bytes: &mut [u8]) {
    let (words, _) = bytes.as_chunks_mut::<8>();
    for word in words {
        let mut x = u64::from_le_bytes(*word);
        let mut swap = |shift: u32, mask: u64| {
            let t = (x ^ (x >> shift)) & mask;
            x ^= t ^ (t << shift);
        };
        swap(7, 0x00aa_00aa_00aa_00aa);
        swap(14, 0x0000_cccc_0000_cccc);
        swap(28, 0x0000_0000_f0f0_f0f0);
        *word = x.to_le_bytes();
    }
}

/// The same loop, compiled for wider vectors.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "a call of code for a detected processor")]
mod wide {
    /// The caller has seen that the processor has AVX2.
    pub(super) fn transpose_bits(bytes: &mut [u8]) {
        // SAFETY: as the caller has seen.
        unsafe { with_avx2(bytes) }
    }

    #[target_feature(enable = "avx2")]
    fn with_avx2(bytes: &mut [u8]) {
        super::transpose_words(bytes);
    }
}

fn check(size: usize, src: &[u8], out: &[u8]) -> Result<()> {
    if size == 0 {
        return Err(invalid(CODEC, "element size 0"));
    }
    if src.len() != out.len() {
        return Err(size_error(CODEC, out.len(), src.len()));
    }
    Ok(())
}

fn check_block(size: usize, src: &[u8], out: &[u8]) -> Result<()> {
    check(size, src, out)?;
    if !src.len().is_multiple_of(size) || !(src.len() / size).is_multiple_of(8) {
        return Err(invalid(
            CODEC,
            format!("{} bytes are not a multiple of 8 elements of {size} bytes", src.len()),
        ));
    }
    Ok(())
}

/// Shuffles the bits of one block, a multiple of 8 elements of `size` bytes, into `out` of the same length.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if `src` is not such a multiple, [`Size`](crate::CodecError::Size) if
/// the lengths differ.
pub fn encode_block(size: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    check_block(size, src, out)?;
    if src.is_empty() {
        return Ok(());
    }
    let n = src.len() / size;
    let tile = tile_len(size).min(n);
    with_scratch(tile * (size + 1), |scratch| {
        for first in (0..n).step_by(tile) {
            let count = tile.min(n - first);
            let (planes, rest) = scratch.split_at_mut(count * size);
            let rows = &mut rest[..count];
            shuffle::encode(size, &src[first * size..(first + count) * size], planes)?;
            transpose_bits(planes);
            for (plane, out) in planes.chunks_exact(count).zip(out.chunks_exact_mut(n)) {
                shuffle::encode(8, plane, rows)?;
                for (row, out) in rows.chunks_exact(count / 8).zip(out.chunks_exact_mut(n / 8)) {
                    out[first / 8..(first + count) / 8].copy_from_slice(row);
                }
            }
        }
        Ok(())
    })
}

/// Undoes [`encode_block`].
///
/// # Errors
///
/// As [`encode_block`].
pub fn decode_block(size: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    check_block(size, src, out)?;
    if src.is_empty() {
        return Ok(());
    }
    let n = src.len() / size;
    let tile = tile_len(size).min(n);
    with_scratch(tile * (size + 1), |scratch| {
        for first in (0..n).step_by(tile) {
            let count = tile.min(n - first);
            let (planes, rest) = scratch.split_at_mut(count * size);
            let rows = &mut rest[..count];
            for (plane, src) in planes.chunks_exact_mut(count).zip(src.chunks_exact(n)) {
                for (row, src) in rows.chunks_exact_mut(count / 8).zip(src.chunks_exact(n / 8)) {
                    row.copy_from_slice(&src[first / 8..(first + count) / 8]);
                }
                shuffle::decode(8, rows, plane)?;
            }
            transpose_bits(planes);
            shuffle::decode(size, planes, &mut out[first * size..(first + count) * size])?;
        }
        Ok(())
    })
}

/// The number of elements transposed together, so that they stay in the L1 cache: a multiple of 256,
/// which fills the widest vectors when groups of eight are shuffled.
fn tile_len(size: usize) -> usize {
    (8192 / size / 256 * 256).max(256)
}

/// The library's default block size in elements: about 8 KiB, and at least 128 elements.
#[must_use]
pub const fn default_block(size: usize) -> usize {
    let block = match 8192usize.checked_div(size) {
        Some(elements) => elements / 8 * 8,
        None => 0,
    };
    if block < 128 { 128 } else { block }
}

/// The bytes per block, and the length of the part of `len` bytes that is divided into blocks. The last block may be
/// shorter, and fewer than 8 elements are left over. A `block` of 0 elements means the default.
fn geometry(size: usize, block: usize, len: usize) -> Result<(usize, usize)> {
    let block = if block == 0 { default_block(size) } else { block };
    if !block.is_multiple_of(8) {
        return Err(invalid(CODEC, format!("a block of {block} elements is not a multiple of 8")));
    }
    let bytes = block.checked_mul(size).ok_or_else(|| invalid(CODEC, "block size overflows"))?;
    let group = size.checked_mul(8).ok_or_else(|| invalid(CODEC, "element size overflows"))?;
    Ok((bytes, len - len % group))
}

/// Shuffles a chunk in blocks of `block` elements (0: [`default_block`]). Left-over elements are copied.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if `size` is 0 or `block` is not a multiple of 8,
/// [`Size`](crate::CodecError::Size) if the lengths differ.
pub fn encode(size: usize, block: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    check(size, src, out)?;
    let (bytes, body) = geometry(size, block, src.len())?;
    for (from, to) in src[..body].chunks(bytes).zip(out[..body].chunks_mut(bytes)) {
        encode_block(size, from, to)?;
    }
    out[body..].copy_from_slice(&src[body..]);
    Ok(())
}

/// Undoes [`encode`] with the same `block`.
///
/// # Errors
///
/// As [`encode`].
pub fn decode(size: usize, block: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    check(size, src, out)?;
    let (bytes, body) = geometry(size, block, src.len())?;
    for (from, to) in src[..body].chunks(bytes).zip(out[..body].chunks_mut(bytes)) {
        decode_block(size, from, to)?;
    }
    out[body..].copy_from_slice(&src[body..]);
    Ok(())
}

/// The compressor of a stream's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Inner {
    /// LZ4 blocks.
    Lz4,
    /// zstd frames. The level is only used when compressing.
    Zstd {
        /// The library's level.
        level: i32,
    },
}

/// The decoded size stated by a stream, unverified.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if the stream is shorter than its header.
pub fn stream_len(src: &[u8]) -> Result<u64> {
    Reader::new(CODEC, src).u64_be()
}

/// Decodes the stream `src` of elements of `size` bytes into `out`, which it must fill.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if it is damaged or truncated, [`Size`](crate::CodecError::Size) if it
/// decodes to any other size.
pub fn decode_stream(inner: Inner, size: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    if size == 0 {
        return Err(invalid(CODEC, "element size 0"));
    }
    let mut reader = Reader::new(CODEC, src);
    let total = reader.u64_be()?;
    if total != out.len() as u64 {
        return Err(size_error(CODEC, out.len(), usize::try_from(total).unwrap_or(usize::MAX)));
    }
    let stated = reader.u32_be()? as usize;
    if !stated.is_multiple_of(size) || !(stated / size).is_multiple_of(8) {
        return Err(corrupt(CODEC, format!("a block of {stated} bytes for elements of {size} bytes")));
    }
    let (bytes, body) = geometry(size, stated / size, out.len())?;
    let (blocks, rest) = out.split_at_mut(body);
    // A single buffer for all blocks, no longer than the output.
    let mut unpacked = SCRATCH.with_borrow_mut(|(_, buffer)| std::mem::take(buffer));
    unpacked.resize(unpacked.len().max(bytes.min(body)), 0);
    let mut decode_all = || {
        for block in blocks.chunks_mut(bytes) {
            let len = reader.u32_be()? as usize;
            let packed = reader.take(len)?;
            let unpacked = &mut unpacked[..block.len()];
            match inner {
                Inner::Lz4 => lz4::decode(packed, unpacked)?,
                Inner::Zstd { .. } => zstd::decode(packed, unpacked)?,
            }
            decode_block(size, unpacked, block)?;
        }
        rest.copy_from_slice(reader.take(rest.len())?);
        if reader.is_empty() { Ok(()) } else { Err(corrupt(CODEC, "bytes after the last element")) }
    };
    let done = decode_all();
    if unpacked.len() <= KEPT {
        SCRATCH.with_borrow_mut(|(_, buffer)| *buffer = unpacked);
    }
    done
}

/// Decodes the stream `src` and appends the result, at most `limit` bytes, to `out`.
///
/// # Errors
///
/// As [`decode_stream`]; [`Size`](crate::CodecError::Size) if the result is longer than `limit`. `out` is then unchanged.
pub fn decode_stream_vec(
    inner: Inner,
    size: usize,
    src: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    let total = usize::try_from(stream_len(src)?).ok().filter(|&n| n <= limit);
    let total = total.ok_or_else(|| too_long(CODEC, limit))?;
    let base = out.len();
    out.resize(base + total, 0);
    decode_stream(inner, size, src, &mut out[base..]).inspect_err(|_| out.truncate(base))
}

/// Appends `src`, elements of `size` bytes in blocks of `block` elements (0: [`default_block`]), to `out` as a stream.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if `size` is 0, `src` is not a multiple of it, `block` is not a multiple of 8, or a block
/// is longer than a 32-bit length.
pub fn encode_stream(inner: Inner, size: usize, block: usize, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if size == 0 || !src.len().is_multiple_of(size) {
        return Err(invalid(
            CODEC,
            format!("{} bytes are not a multiple of the element size {size}", src.len()),
        ));
    }
    let (bytes, body) = geometry(size, block, src.len())?;
    let stated = u32::try_from(bytes).map_err(|_| invalid(CODEC, "a block is too long"))?;
    out.extend((src.len() as u64).to_be_bytes());
    out.extend(stated.to_be_bytes());
    let mut shuffled = vec![0; bytes.min(body)];
    for from in src[..body].chunks(bytes) {
        let shuffled = &mut shuffled[..from.len()];
        encode_block(size, from, shuffled)?;
        let at = out.len();
        out.extend([0; 4]);
        match inner {
            Inner::Lz4 => lz4::encode(shuffled, out)?,
            Inner::Zstd { level } => zstd::encode(shuffled, zstd::Options::level(level), out)?,
        }
        let len = u32::try_from(out.len() - at - 4).map_err(|_| invalid(CODEC, "a block is too long"))?;
        out[at..at + 4].copy_from_slice(&len.to_be_bytes());
    }
    out.extend_from_slice(&src[body..]);
    Ok(())
}

#[cfg(test)]
mod tests;
