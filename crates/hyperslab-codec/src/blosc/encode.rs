//! Writes version 2 chunks.

use super::{CODEC, Codec, Filter, MAX_SPLITS, MIN_SPLIT};
use crate::error::{Result, invalid, unsupported};
use crate::{bitshuffle, deflate, lz4, shuffle, snappy, zstd};

/// Shorter chunks are stored uncompressed, as in C-Blosc.
const MIN_LEN: usize = 128;
/// The maximum length of a chunk: the header has 31 bits for it.
const MAX_LEN: usize = i32::MAX as usize - 16;

/// Options for writing a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The codec for streams; not [`Codec::BloscLz`].
    pub codec: Codec,
    /// The codec's own level, if it has levels. 0 stores the bytes uncompressed.
    pub level: i32,
    /// [`Filter::Shuffle`], [`Filter::Bitshuffle`] or none. The shuffle's group size is the element size.
    pub filter: Option<Filter>,
    /// The element size, 1 to 255.
    pub element: usize,
    /// The block size in bytes; 0 to let the encoder choose.
    pub block_len: usize,
}

impl Options {
    /// A codec and a level for elements of `element` bytes, with byte shuffle if they are longer than one byte.
    #[must_use]
    pub const fn new(codec: Codec, level: i32, element: usize) -> Self {
        let filter = if element > 1 { Some(Filter::Shuffle { size: element }) } else { None };
        Self { codec, level, filter, element, block_len: 0 }
    }

    /// Sets the filter.
    #[must_use]
    pub const fn with_filter(self, filter: Option<Filter>) -> Self {
        Self { filter, ..self }
    }

    /// Sets the approximate block size in bytes.
    #[must_use]
    pub const fn with_block_len(self, block_len: usize) -> Self {
        Self { block_len, ..self }
    }

    /// Rounds to whole groups of 8 elements, which bit shuffle needs, but to no more than the chunk.
    fn block_len_for(&self, len: usize) -> usize {
        let wanted = match (self.block_len, self.codec) {
            (0, Codec::Zstd | Codec::Zlib) => 256 << 10,
            (0, _) => 128 << 10,
            (asked, _) => asked.max(MIN_LEN),
        };
        let group = self.element * 8;
        (wanted / group * group).max(group).min(len)
    }
}

/// Appends `src` to `out` as one chunk.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if `src` is 2 GiB or longer or an option is impossible,
/// [`Unsupported`](crate::CodecError::Unsupported) for [`Codec::BloscLz`] and for filters of version 3.
pub fn encode(src: &[u8], options: Options, out: &mut Vec<u8>) -> Result<()> {
    let base = out.len();
    encode_all(src, options, out).inspect_err(|_| out.truncate(base))
}

fn encode_all(src: &[u8], options: Options, out: &mut Vec<u8>) -> Result<()> {
    if src.len() > MAX_LEN {
        return Err(invalid(CODEC, format!("{} bytes are too many for a chunk", src.len())));
    }
    let element = u8::try_from(options.element).ok().filter(|&n| n > 0);
    let element = element.ok_or_else(|| invalid(CODEC, format!("element size {}", options.element)))?;
    let filter_flag = match options.filter {
        None => 0,
        Some(Filter::Shuffle { .. }) => 1,
        Some(Filter::Bitshuffle) => 4,
        Some(_) => return Err(unsupported(CODEC, "writing delta and truncation filters")),
    };
    let codec_flag = match options.codec {
        Codec::BloscLz => return Err(unsupported(CODEC, "compressing with blosclz")),
        Codec::Lz4 => 1,
        Codec::Snappy => 2,
        Codec::Zlib => 3,
        Codec::Zstd => 4,
    };
    // As in C-Blosc: fast codecs gain from one stream per byte, strong ones do not.
    let split = matches!(options.codec, Codec::Lz4 | Codec::Snappy);
    let flags = filter_flag | u8::from(!split) << 4 | codec_flag << 5;
    let block_len = options.block_len_for(src.len());
    let base = out.len();
    out.extend([2, 1, flags, element]);
    for field in [src.len(), block_len, 0] {
        out.extend((field as u32).to_le_bytes());
    }
    if options.level != 0 && src.len() >= MIN_LEN {
        encode_blocks(src, options, split, block_len, base, out)?;
    }
    if out.len() == base + 16 || out.len() - base >= src.len() + 16 {
        out.truncate(base + 16);
        out[base + 2] |= 2;
        out.extend_from_slice(src);
    }
    let stored = (out.len() - base) as u32;
    out[base + 12..base + 16].copy_from_slice(&stored.to_le_bytes());
    Ok(())
}

fn encode_blocks(
    src: &[u8],
    options: Options,
    split: bool,
    block_len: usize,
    base: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    let element = options.element;
    let places = out.len();
    out.resize(places + 4 * src.len().div_ceil(block_len), 0);
    let mut filtered = vec![0; block_len];
    for (i, block) in src.chunks(block_len).enumerate() {
        let filtered = &mut filtered[..block.len()];
        match options.filter {
            Some(Filter::Shuffle { .. }) => shuffle::encode(element, block, filtered)?,
            // Version 2 does not bit-shuffle a block that is not whole groups of 8 elements.
            Some(Filter::Bitshuffle) if (block.len() / element).is_multiple_of(8) => {
                let body = block.len() / element * element;
                bitshuffle::encode_block(element, &block[..body], &mut filtered[..body])?;
                filtered[body..].copy_from_slice(&block[body..]);
            }
            _ => filtered.copy_from_slice(block),
        }
        let place = (out.len() - base) as u32;
        out[places + 4 * i..places + 4 * i + 4].copy_from_slice(&place.to_le_bytes());
        let many =
            split && block.len() == block_len && element <= MAX_SPLITS && block_len / element >= MIN_SPLIT;
        // A shorter last block is not split, nor is one that does not divide evenly.
        let each = if many && block_len.is_multiple_of(element) { block_len / element } else { block.len() };
        for stream in filtered.chunks(each) {
            encode_stream(stream, options, out)?;
        }
    }
    Ok(())
}

/// Appends one stream and its size. It is stored uncompressed if it does not shrink.
fn encode_stream(stream: &[u8], options: Options, out: &mut Vec<u8>) -> Result<()> {
    let at = out.len();
    out.extend([0; 4]);
    match options.codec {
        Codec::Lz4 => lz4::encode(stream, out)?,
        Codec::Snappy => snappy::encode(stream, out)?,
        Codec::Zlib => deflate::encode(deflate::Wrapper::Zlib, stream, options.level, out)?,
        Codec::Zstd => zstd::encode(stream, zstd::Options::level(options.level), out)?,
        Codec::BloscLz => return Err(unsupported(CODEC, "compressing with blosclz")),
    }
    if out.len() - at - 4 >= stream.len() {
        out.truncate(at + 4);
        out.extend_from_slice(stream);
    }
    let stored = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&stored.to_le_bytes());
    Ok(())
}
