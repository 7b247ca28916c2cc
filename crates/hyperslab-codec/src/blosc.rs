//! Blosc chunks: a header, the offsets of the blocks, and independently encoded blocks.
//!
//! Both generations can be read: version 1 and 2 chunks of C-Blosc (Zarr's `blosc`, HDF5 filter 32001) and version 3 to 5
//! chunks of C-Blosc2, which occur inside [`blosc2`](crate::blosc2) frames. [`encode`] writes version 2.
//!
//! The header has 16 bytes: version, version of the codec's format, flags, element size; then decoded size, block size
//! and stored size, each 32 bits, little-endian. The flags are: 1 byte shuffle, 2 stored uncompressed, 4 bit shuffle,
//! 8 delta, 16 blocks are not split; the top three bits select the [`Codec`]. Flags 1 and 4 together announce 16 more
//! bytes, with up to six filters.
//!
//! A block is filtered, and may then be split into one stream for every byte of an element; the last, shorter block is
//! never split. A stream is its stored size (32 bits) and its bytes. If the stored size is the full size, it is not compressed.
//! From version 3 on, a stored size of 0 is a run of zeros, and a negative one a run of one byte.
//!
//! Since blocks are independent, [`Chunk::decode_block`] and [`Chunk::decode_range`] only decode the requested parts.

mod blosclz;
mod encode;
mod header;

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

pub use self::encode::{Options, encode};
pub use self::header::{Codec, Filter, Header, Special};
use crate::bytes::Reader;
use crate::error::{Result, corrupt, size, too_long, unsupported};
use crate::{bitshuffle, deflate, lz4, shuffle, snappy, zstd};

const CODEC: &str = "blosc";

/// The minimum number of elements in a block that C-Blosc 1 splits.
const MIN_SPLIT: usize = 128;
/// The maximum element size for which C-Blosc 1 splits blocks.
const MAX_SPLITS: usize = 16;

/// The largest buffer that a thread keeps for the next block.
const KEPT: usize = 16 << 20;

thread_local! {
    static SCRATCH: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with this thread's buffer, resized to `len` bytes. Calls may be nested.
fn with_scratch<T>(len: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut buffer = SCRATCH.with_borrow_mut(Vec::pop).unwrap_or_default();
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    let answer = work(&mut buffer[..len]);
    if buffer.len() <= KEPT {
        SCRATCH.with_borrow_mut(|buffers| buffers.push(buffer));
    }
    answer
}

/// A parsed chunk: its header, and the bytes that contain the blocks.
///
/// The sizes in the header are unverified: compare [`Header::decoded_len`] with the expected size of the chunk before
/// decoding parts of it, since a block may be as long as the chunk.
#[derive(Debug, Clone)]
pub struct Chunk<'a> {
    header: Header,
    /// The whole chunk, limited to its stored size.
    bytes: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// Parses a chunk's header and checks that its table of blocks is present. Bytes after the chunk are ignored.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::CodecError::Corrupt) if the header is impossible or `src` is truncated,
    /// [`Unsupported`](crate::CodecError::Unsupported) if it asks for codecs or filters that are not built in.
    pub fn parse(src: &'a [u8]) -> Result<Self> {
        let header = Header::parse(src)?;
        let bytes = src.get(..header.stored_len).ok_or_else(|| {
            corrupt(CODEC, format!("ends early: {} bytes stated, {} there", header.stored_len, src.len()))
        })?;
        let body = bytes.len().saturating_sub(header.len);
        if header.special != Special::None {
            if header.special == Special::Value && (body == 0 || !header.decoded_len.is_multiple_of(body)) {
                return Err(corrupt(CODEC, format!("a repeated value of {body} bytes")));
            }
        } else if header.memcpyed {
            if body != header.decoded_len {
                return Err(corrupt(
                    CODEC,
                    format!("{body} bytes stored as they are, expected {}", header.decoded_len),
                ));
            }
        } else if body / 4 < header.blocks() {
            return Err(corrupt(CODEC, format!("no room for the places of {} blocks", header.blocks())));
        }
        Ok(Self { header, bytes })
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The range of the decoded chunk in block `block`; empty if there is no such block.
    #[must_use]
    pub fn block_range(&self, block: usize) -> Range<usize> {
        let start = block.saturating_mul(self.header.block_len).min(self.header.decoded_len);
        start..start.saturating_add(self.header.block_len).min(self.header.decoded_len)
    }

    /// Decodes block `block` into `out`, whose length must be that of [`block_range`](Self::block_range).
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) if `out` is of another length, [`Corrupt`](crate::CodecError::Corrupt) if the
    /// block is damaged.
    pub fn decode_block(&self, block: usize, out: &mut [u8]) -> Result<()> {
        let range = self.block_range(block);
        if range.is_empty() || range.len() != out.len() {
            return Err(size(CODEC, out.len(), range.len()));
        }
        let header = &self.header;
        let body = self.bytes.get(header.len..).unwrap_or_default();
        match header.special {
            Special::None => {}
            Special::Zeros | Special::Unset => {
                out.fill(0);
                return Ok(());
            }
            Special::Nan => return fill_nan(header.element, out),
            Special::Value => {
                // Blocks are whole elements, and `parse` has checked that the chunk is too.
                for (i, byte) in out.iter_mut().enumerate() {
                    *byte = body[(range.start + i) % body.len()];
                }
                return Ok(());
            }
        }
        if header.memcpyed {
            out.copy_from_slice(&body[range]);
            return Ok(());
        }
        let place = Reader::new(CODEC, body.get(block * 4..).unwrap_or_default()).u32_le()? as usize;
        let streams = self.bytes.get(place..).filter(|_| place >= header.len);
        let streams = streams.ok_or_else(|| corrupt(CODEC, format!("block {block} at byte {place}")))?;
        let filters: Vec<Filter> =
            header.filters().filter(|f| !matches!(f, Filter::TruncatePrecision)).collect();
        if filters.is_empty() {
            return self.decode_streams(streams, block, out);
        }
        with_scratch(out.len(), |first| {
            self.decode_streams(streams, block, first)?;
            self.undo(&filters, block, first, out)
        })
    }

    /// Undoes `filters`, last first, from `src` to `out`.
    fn undo(&self, filters: &[Filter], block: usize, src: &mut [u8], out: &mut [u8]) -> Result<()> {
        let Some((last, before)) = filters.split_last() else {
            out.copy_from_slice(src);
            return Ok(());
        };
        match last {
            Filter::Shuffle { size } => shuffle::decode(*size, src, out)?,
            Filter::Bitshuffle => unbitshuffle(&self.header, src, out)?,
            Filter::Delta => {
                if !before.is_empty() {
                    return Err(unsupported(CODEC, "a delta filter after others"));
                }
                out.copy_from_slice(src);
                return self.undo_delta(block, out);
            }
            Filter::TruncatePrecision => out.copy_from_slice(src),
        }
        if before.is_empty() {
            return Ok(());
        }
        src.copy_from_slice(out);
        self.undo(before, block, src, out)
    }

    /// Block 0 is XORed with the element before, all others with block 0.
    fn undo_delta(&self, block: usize, out: &mut [u8]) -> Result<()> {
        let size = match self.header.element {
            element @ (1 | 2 | 4 | 8) => element,
            element if element.is_multiple_of(8) => 8,
            _ => 1,
        };
        let whole = out.len() / size * size;
        if block == 0 {
            for i in size..whole {
                out[i] ^= out[i - size];
            }
            return Ok(());
        }
        with_scratch(self.block_range(0).len(), |first| {
            self.decode_block(0, first)?;
            for (byte, reference) in out[..whole].iter_mut().zip(&*first) {
                *byte ^= reference;
            }
            Ok(())
        })
    }

    /// Decodes the streams of a block from the front of `src`.
    fn decode_streams(&self, src: &[u8], block: usize, out: &mut [u8]) -> Result<()> {
        let header = &self.header;
        let mut count = 1;
        if header.split && out.len() == header.block_len && header.element > 0 {
            let wanted = header.element <= MAX_SPLITS && header.block_len / header.element >= MIN_SPLIT
                || header.version > 2;
            if wanted {
                count = header.element;
            }
        }
        if out.is_empty() || !out.len().is_multiple_of(count) {
            return Err(corrupt(CODEC, format!("block {block} of {} bytes in {count} streams", out.len())));
        }
        let mut reader = Reader::new(CODEC, src);
        let each = out.len() / count;
        for out in out.chunks_exact_mut(each) {
            let stored = reader.u32_le()? as i32;
            if header.version > 2 && stored <= 0 {
                // The repeated byte is in the low bits of the negated size.
                if stored < 0 && reader.u8()? & 1 == 0 {
                    return Err(unsupported(CODEC, "a stream with an unknown token"));
                }
                out.fill(stored.unsigned_abs() as u8);
                continue;
            }
            let stored = usize::try_from(stored)
                .map_err(|_| corrupt(CODEC, format!("a stream of {stored} bytes in block {block}")))?;
            let stream = reader.take(stored)?;
            if stored == out.len() {
                out.copy_from_slice(stream);
                continue;
            }
            match header.codec {
                Codec::BloscLz => blosclz::decode(stream, out)?,
                Codec::Lz4 => lz4::decode(stream, out)?,
                Codec::Snappy => snappy::decode(stream, out)?,
                Codec::Zlib => deflate::decode(deflate::Wrapper::Zlib, stream, out)?,
                Codec::Zstd => zstd::decode(stream, out)?,
            }
        }
        Ok(())
    }

    /// Decodes the whole chunk into `out`, which it must fill.
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) if `out` is of another length, [`Corrupt`](crate::CodecError::Corrupt) if the
    /// chunk is damaged.
    pub fn decode(&self, out: &mut [u8]) -> Result<()> {
        if out.len() != self.header.decoded_len {
            return Err(size(CODEC, out.len(), self.header.decoded_len));
        }
        if out.is_empty() {
            return Ok(());
        }
        for (i, block) in out.chunks_mut(self.header.block_len).enumerate() {
            self.decode_block(i, block)?;
        }
        Ok(())
    }

    /// Decodes bytes `start..start + out.len()` of the chunk, decoding only the blocks that overlap them.
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) if the chunk is shorter than that, [`Corrupt`](crate::CodecError::Corrupt) if
    /// a block is damaged.
    pub fn decode_range(&self, start: usize, out: &mut [u8]) -> Result<()> {
        let end = start.checked_add(out.len()).filter(|&end| end <= self.header.decoded_len);
        let end = end.ok_or_else(|| size(CODEC, start.saturating_add(out.len()), self.header.decoded_len))?;
        let mut at = start;
        while at < end {
            let block = at / self.header.block_len;
            let range = self.block_range(block);
            let stop = range.end.min(end);
            let target = &mut out[at - start..stop - start];
            if target.len() == range.len() {
                self.decode_block(block, target)?;
            } else {
                with_scratch(range.len(), |whole| {
                    self.decode_block(block, whole)?;
                    target.copy_from_slice(&whole[at - range.start..stop - range.start]);
                    Ok(())
                })?;
            }
            at = stop;
        }
        Ok(())
    }
}

/// Fills with quiet NaNs of the element size.
fn fill_nan(element: usize, out: &mut [u8]) -> Result<()> {
    let nan: Cow<'static, [u8]> = match element {
        4 => Cow::Owned(f32::NAN.to_le_bytes().to_vec()),
        8 => Cow::Owned(f64::NAN.to_le_bytes().to_vec()),
        _ => return Err(unsupported(CODEC, format!("NaN of {element} bytes"))),
    };
    for (byte, value) in out.iter_mut().zip(nan.iter().cycle()) {
        *byte = *value;
    }
    Ok(())
}

/// Whole groups of 8 elements are shuffled. If elements are left over, version 2 does not shuffle at all.
fn unbitshuffle(header: &Header, src: &[u8], out: &mut [u8]) -> Result<()> {
    let element = header.element;
    let count = src.len() / element;
    let body =
        if header.version <= 2 && !count.is_multiple_of(8) { 0 } else { (count - count % 8) * element };
    bitshuffle::decode_block(element, &src[..body], &mut out[..body])?;
    out[body..].copy_from_slice(&src[body..]);
    Ok(())
}

/// Decodes the chunk `src` into `out`, which it must fill.
///
/// # Errors
///
/// As [`Chunk::parse`] and [`Chunk::decode`].
pub fn decode(src: &[u8], out: &mut [u8]) -> Result<()> {
    Chunk::parse(src)?.decode(out)
}

/// Decodes the chunk `src` and appends the result, at most `limit` bytes, to `out`.
///
/// # Errors
///
/// As [`decode`]; [`Size`](crate::CodecError::Size) if the result is longer than `limit`. `out` is then unchanged.
pub fn decode_vec(src: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    let chunk = Chunk::parse(src)?;
    if chunk.header.decoded_len > limit {
        return Err(too_long(CODEC, limit));
    }
    let base = out.len();
    out.resize(base + chunk.header.decoded_len, 0);
    chunk.decode(&mut out[base..]).inspect_err(|_| out.truncate(base))
}

#[cfg(test)]
mod tests;
