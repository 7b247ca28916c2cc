//! The header of a chunk, 16 or 32 bytes.

use super::CODEC;
use crate::bytes::Reader;
use crate::error::{Result, corrupt, unsupported};

/// The codec of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// Blosc's own variant of FastLZ.
    BloscLz,
    /// LZ4 blocks, of either compressor.
    Lz4,
    /// Raw Snappy.
    Snappy,
    /// zlib streams.
    Zlib,
    /// zstd frames.
    Zstd,
}

/// The filters applied to a block before compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Filter {
    /// Byte shuffle in groups of this many bytes.
    Shuffle {
        /// Bytes per group.
        size: usize,
    },
    /// Bit shuffle of whole groups of 8 elements.
    Bitshuffle,
    /// XOR with earlier data.
    Delta,
    /// Low bits were cleared, which cannot be undone.
    TruncatePrecision,
}

/// Special chunks of version 3 and up, which have no blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// An ordinary chunk.
    None,
    /// Zeros.
    Zeros,
    /// NaN of the element's size.
    Nan,
    /// The value after the header, repeated.
    Value,
    /// Never written; read as zeros.
    Unset,
}

/// A chunk's header. All sizes are unverified until the chunk is decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Format version.
    pub version: u8,
    /// The element size in bytes.
    pub element: usize,
    /// The size of the decoded chunk.
    pub decoded_len: usize,
    /// The size of every block except perhaps the last.
    pub block_len: usize,
    /// The stored size of the chunk, including the header.
    pub stored_len: usize,
    /// The codec of streams.
    pub codec: Codec,
    /// Whether the decoded bytes follow the header uncompressed.
    pub memcpyed: bool,
    /// Whether the chunk is special and has no blocks.
    pub special: Special,
    /// Whether blocks may be split into a stream per byte of an element.
    pub(super) split: bool,
    /// The size of the header itself.
    pub(super) len: usize,
    filters: [Option<Filter>; 6],
}

impl Header {
    /// The size of the shortest header.
    pub const MIN_LEN: usize = 16;

    /// Parses the header at the front of `src`.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::CodecError::Corrupt) if it is invalid, [`Unsupported`](crate::CodecError::Unsupported)
    /// if it uses codecs or filters that are not built in.
    pub fn parse(src: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(CODEC, src);
        let [version, _, flags, element] = reader.array()?;
        let mut field = |name: &str| -> Result<usize> {
            let value = reader.u32_le()?;
            if value > i32::MAX as u32 {
                return Err(corrupt(CODEC, format!("{name} of {value:#x} bytes")));
            }
            Ok(value as usize)
        };
        let (decoded_len, block_len, stored_len) =
            (field("a chunk")?, field("a block")?, field("a stored chunk")?);
        if version == 0 || version > 6 {
            return Err(unsupported(CODEC, format!("format version {version}")));
        }
        let element = usize::from(element);
        if element == 0 {
            return Err(corrupt(CODEC, "element size 0"));
        }
        let extended = flags & 5 == 5;
        let mut filters = [None; 6];
        let mut special = Special::None;
        let len = if extended { 32 } else { 16 };
        if extended {
            let codes: [u8; 6] = reader.array()?;
            let _codec: [u8; 2] = reader.array()?;
            let metas: [u8; 6] = reader.array()?;
            let [flags2, flags1] = reader.array()?;
            special = match flags1 >> 4 & 7 {
                0 => Special::None,
                1 => Special::Zeros,
                2 => Special::Nan,
                3 => Special::Value,
                4 => Special::Unset,
                other => return Err(corrupt(CODEC, format!("special value {other}"))),
            };
            for (bit, feature) in [
                (1, "a dictionary"),
                (2, "a longer header"),
                (8, "a lazy chunk"),
                (0x80, "an instrumented codec"),
            ] {
                if flags1 & bit != 0 && special == Special::None {
                    return Err(unsupported(CODEC, feature));
                }
            }
            if flags2 & 1 != 0 {
                return Err(unsupported(CODEC, "blocks of variable length"));
            }
            for ((slot, code), meta) in filters.iter_mut().zip(codes).zip(metas) {
                *slot = match code {
                    0 => None,
                    1 if meta == 0 => Some(Filter::Shuffle { size: element }),
                    1 => Some(Filter::Shuffle { size: meta.into() }),
                    2 => Some(Filter::Bitshuffle),
                    3 => Some(Filter::Delta),
                    4 => Some(Filter::TruncatePrecision),
                    other => return Err(unsupported(CODEC, format!("filter {other}"))),
                };
            }
        } else {
            if flags & 8 != 0 && version > 2 {
                filters[4] = Some(Filter::Delta);
            }
            filters[5] = match flags & 5 {
                1 => Some(Filter::Shuffle { size: element }),
                4 => Some(Filter::Bitshuffle),
                _ => None,
            };
        }
        let memcpyed = flags & 2 != 0;
        let codec = match flags >> 5 {
            0 => Codec::BloscLz,
            1 => Codec::Lz4,
            2 => Codec::Snappy,
            3 => Codec::Zlib,
            4 => Codec::Zstd,
            _ if memcpyed || special != Special::None => Codec::BloscLz,
            other => return Err(unsupported(CODEC, format!("codec {other}"))),
        };
        if stored_len < len {
            return Err(corrupt(CODEC, format!("stored size {stored_len} is less than the header's")));
        }
        if block_len == 0 && decoded_len > 0 {
            return Err(corrupt(CODEC, "block size 0"));
        }
        let block_len = block_len.min(decoded_len);
        let split = flags & 16 == 0;
        Ok(Self {
            version,
            element,
            decoded_len,
            block_len,
            stored_len,
            codec,
            memcpyed,
            special,
            split,
            len,
            filters,
        })
    }

    /// Number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        if self.block_len == 0 { 0 } else { self.decoded_len.div_ceil(self.block_len) }
    }

    /// The filters, in the order in which they were applied.
    pub fn filters(&self) -> impl Iterator<Item = Filter> + '_ {
        self.filters.iter().flatten().copied()
    }
}
