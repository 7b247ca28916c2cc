//! Single codecs: bytes to bytes, in either direction. What chains them is [`crate::pipeline`].

mod number;
mod parse;

use hyperslab_codec::{CodecError, blosc, bzip2, checksum, deflate, lz4, shuffle, zstd};
use hyperslab_core::{Filter, StoredStep};
use serde_json::{Map, Value, json};

pub(crate) use number::{Number, NumberFilter};
pub(crate) use parse::{parse_shown, parse_v2, parse_v3};

/// A kernel's result; the caller knows the object.
pub(crate) type Outcome<T> = std::result::Result<T, CodecError>;

/// One reversible transform of bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    Gzip {
        level: i32,
    },
    Zlib {
        level: i32,
    },
    Zstd {
        level: i32,
        checksum: bool,
    },
    Blosc(Blosc),
    Bz2 {
        level: u32,
    },
    /// numcodecs' LZ4: a little-endian `u32` size, then one block.
    Lz4,
    Shuffle {
        size: usize,
    },
    Checksum {
        sum: Sum,
        at_start: bool,
    },
    /// numcodecs' filters of numbers: one stored number each.
    Numbers(NumberFilter),
    /// numcodecs' PackBits: a byte that counts the padding bits, then eight booleans a byte, highest bit first.
    PackBits,
}

/// Parameters of a Blosc codec, as Zarr names them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Blosc {
    pub(crate) cname: String,
    pub(crate) clevel: i32,
    /// 0 none, 1 bytes, 2 bits.
    pub(crate) shuffle: u8,
    pub(crate) typesize: usize,
    pub(crate) blocksize: usize,
}

/// Four bytes that check the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sum {
    Crc32c,
    Crc32,
    Adler32,
    Fletcher32,
    Lookup3 { initial: u32 },
}

impl Sum {
    fn of(self, bytes: &[u8]) -> u32 {
        match self {
            Self::Crc32c => checksum::crc32c(bytes),
            Self::Crc32 => checksum::crc32(bytes),
            Self::Adler32 => checksum::adler32(bytes),
            Self::Fletcher32 => checksum::fletcher32(bytes),
            Self::Lookup3 { initial } => checksum::lookup3(bytes, initial),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Crc32c => "crc32c",
            Self::Crc32 => "crc32",
            Self::Adler32 => "adler32",
            Self::Fletcher32 => "fletcher32",
            Self::Lookup3 { .. } => "jenkins_lookup3",
        }
    }
}

fn corrupt(codec: &'static str, reason: String) -> CodecError {
    CodecError::Corrupt { codec, reason: reason.into() }
}

impl Step {
    /// How many bytes `decoded` bytes become; `None` when it depends on them.
    pub(crate) fn encoded_len(&self, decoded: usize) -> Option<usize> {
        match self {
            Self::Shuffle { .. } => Some(decoded),
            Self::Checksum { .. } => decoded.checked_add(4),
            Self::Numbers(filter) => filter.encoded_len(decoded),
            Self::PackBits => Some(1 + decoded.div_ceil(8)),
            _ => None,
        }
    }

    /// The decoded bytes, where they stand as they are inside the encoded ones.
    pub(crate) fn strip<'a>(&self, src: &'a [u8]) -> Option<Outcome<&'a [u8]>> {
        let Self::Checksum { sum, at_start } = self else { return None };
        let split = if *at_start {
            src.split_first_chunk::<4>()
        } else {
            src.split_last_chunk::<4>().map(|(a, b)| (b, a))
        };
        Some(match split {
            None => Err(corrupt(sum.name(), format!("{} bytes, with no room for a checksum", src.len()))),
            Some((stored, data)) => {
                let (stored, computed) = (u32::from_le_bytes(*stored), sum.of(data));
                if checksum::agree(computed, stored) {
                    Ok(data)
                } else {
                    let (computed, stored) = (computed.into(), stored.into());
                    Err(CodecError::Checksum { codec: sum.name(), computed, stored })
                }
            }
        })
    }

    /// Decodes to exactly `out`.
    pub(crate) fn decode(&self, src: &[u8], out: &mut [u8]) -> Outcome<()> {
        match self {
            Self::Gzip { .. } => deflate::decode(deflate::Wrapper::Gzip, src, out),
            Self::Zlib { .. } => deflate::decode(deflate::Wrapper::Zlib, src, out),
            Self::Zstd { .. } => zstd::decode(src, out),
            Self::Blosc(_) => blosc::decode(src, out),
            Self::Bz2 { .. } => bzip2::decode(src, out),
            Self::Lz4 => {
                let (size, block) = lz4_block(src)?;
                if size != out.len() {
                    return Err(wrong_size("lz4", out.len(), size));
                }
                lz4::decode(block, out)
            }
            Self::Shuffle { size } => shuffle::decode(*size, src, out),
            Self::Checksum { .. } => {
                let data = self.strip(src).unwrap_or(Ok(src))?;
                if data.len() != out.len() {
                    return Err(wrong_size("checksum", out.len(), data.len()));
                }
                out.copy_from_slice(data);
                Ok(())
            }
            Self::Numbers(filter) => filter.decode(src, out),
            Self::PackBits => unpack_bits(src, out),
        }
    }

    /// Decodes to as many bytes as there are, at most `limit`.
    pub(crate) fn decode_vec(&self, src: &[u8], limit: usize, out: &mut Vec<u8>) -> Outcome<()> {
        match self {
            Self::Gzip { .. } => deflate::decode_vec(deflate::Wrapper::Gzip, src, limit, out),
            Self::Zlib { .. } => deflate::decode_vec(deflate::Wrapper::Zlib, src, limit, out),
            Self::Zstd { .. } => zstd::decode_vec(src, limit, out),
            Self::Blosc(_) => blosc::decode_vec(src, limit, out),
            Self::Bz2 { .. } => bzip2::decode_vec(src, limit, out),
            Self::Lz4 => {
                let (size, block) = lz4_block(src)?;
                lz4::decode_vec(block, size.min(limit), out)
            }
            Self::Shuffle { size } => {
                out.resize(src.len(), 0);
                shuffle::decode(*size, src, out)
            }
            Self::Checksum { .. } => {
                out.extend_from_slice(self.strip(src).unwrap_or(Ok(src))?);
                Ok(())
            }
            Self::Numbers(filter) => {
                out.resize(filter.decoded_len(src.len())?, 0);
                filter.decode(src, out)
            }
            Self::PackBits => {
                let padding = usize::from(src.first().copied().unwrap_or(0));
                let bits = src.len().saturating_sub(1) * 8;
                out.resize(bits.saturating_sub(padding), 0);
                unpack_bits(src, out)
            }
        }
    }

    /// Encodes; appends to `out`.
    pub(crate) fn encode(&self, src: &[u8], out: &mut Vec<u8>) -> Outcome<()> {
        match self {
            Self::Gzip { level } => deflate::encode(deflate::Wrapper::Gzip, src, *level, out),
            Self::Zlib { level } => deflate::encode(deflate::Wrapper::Zlib, src, *level, out),
            Self::Zstd { level, checksum } => {
                zstd::encode(src, zstd::Options::level(*level).with_checksum(*checksum), out)
            }
            Self::Bz2 { level } => bzip2::encode(src, *level, out),
            Self::Lz4 => {
                let size = u32::try_from(src.len())
                    .map_err(|_| corrupt("lz4", format!("{} bytes in one block", src.len())))?;
                out.extend(size.to_le_bytes());
                lz4::encode(src, out)
            }
            Self::Shuffle { size } => {
                out.resize(src.len(), 0);
                shuffle::encode(*size, src, out)
            }
            Self::Checksum { sum, at_start } => {
                let stored = sum.of(src).to_le_bytes();
                if *at_start {
                    out.extend(stored);
                }
                out.extend_from_slice(src);
                if !at_start {
                    out.extend(stored);
                }
                Ok(())
            }
            Self::Blosc(blosc) => blosc.encode(src, out),
            Self::Numbers(_) | Self::PackBits => Err(CodecError::Unsupported {
                codec: "zarr",
                feature: format!("writing the filter {:?}", self.shown().name).into(),
            }),
        }
    }

    /// Can it be written?
    pub(crate) const fn is_writable(&self) -> bool {
        !matches!(self, Self::Numbers(_) | Self::PackBits)
    }

    /// What it makes of bytes, in words that formats share.
    pub(crate) const fn stored(&self) -> Option<StoredStep> {
        Some(match self {
            Self::Gzip { .. } => StoredStep::Gzip,
            Self::Zlib { .. } => StoredStep::Zlib,
            Self::Zstd { .. } => StoredStep::Zstd,
            Self::Blosc(_) => StoredStep::Blosc,
            Self::Bz2 { .. } => StoredStep::Bzip2,
            Self::Shuffle { size } => StoredStep::Shuffle(*size),
            Self::Checksum { sum: Sum::Crc32c, at_start: false } => StoredStep::Crc32c,
            Self::Checksum { sum: Sum::Fletcher32, at_start: false } => StoredStep::Fletcher32,
            _ => return None,
        })
    }

    /// As `tet info` shows it.
    pub(crate) fn shown(&self) -> Filter {
        match self {
            Self::Gzip { level } => Filter::new("gzip").with("level", *level),
            Self::Zlib { level } => Filter::new("zlib").with("level", *level),
            Self::Zstd { level, checksum } => {
                let filter = Filter::new("zstd").with("level", *level);
                if *checksum { filter.with("checksum", true) } else { filter }
            }
            Self::Blosc(blosc) => Filter::new("blosc")
                .with("cname", blosc.cname.as_str())
                .with("clevel", blosc.clevel)
                .with("shuffle", blosc.shuffle_name())
                .with("typesize", blosc.typesize)
                .with("blocksize", blosc.blocksize),
            Self::Bz2 { level } => Filter::new("bz2").with("level", *level),
            Self::Lz4 => Filter::new("lz4"),
            Self::Shuffle { size } => Filter::new("shuffle").with("elementsize", *size),
            Self::Checksum { sum, .. } => Filter::new(sum.name()),
            Self::Numbers(filter) => filter.shown(),
            Self::PackBits => Filter::new("packbits"),
        }
    }

    /// As v3 metadata has it; numcodecs' own codecs under their registered names.
    pub(crate) fn to_v3(&self) -> Value {
        let numcodecs = |configuration: Value| json!({"name": format!("numcodecs.{}", self.shown().name), "configuration": configuration});
        match self {
            Self::Gzip { level } => json!({"name": "gzip", "configuration": {"level": level}}),
            Self::Zstd { level, checksum } => {
                json!({"name": "zstd", "configuration": {"level": level, "checksum": checksum}})
            }
            Self::Blosc(blosc) => json!({"name": "blosc", "configuration": {
                "typesize": blosc.typesize, "cname": blosc.cname, "clevel": blosc.clevel,
                "shuffle": blosc.shuffle_name(), "blocksize": blosc.blocksize,
            }}),
            Self::Checksum { sum: Sum::Crc32c, at_start: false } => json!({"name": "crc32c"}),
            other => {
                let mut configuration = other.to_v2();
                if let Value::Object(object) = &mut configuration {
                    object.shift_remove("id");
                }
                numcodecs(configuration)
            }
        }
    }

    /// As v2 metadata has it.
    pub(crate) fn to_v2(&self) -> Value {
        let mut object = Map::from_iter([("id".to_owned(), json!(self.shown().name))]);
        let mut set = |name: &str, value: Value| object.insert(name.to_owned(), value);
        match self {
            Self::Gzip { level } | Self::Zlib { level } => drop(set("level", json!(level))),
            Self::Zstd { level, checksum } => {
                set("level", json!(level));
                if *checksum {
                    set("checksum", json!(true));
                }
            }
            Self::Blosc(blosc) => {
                set("cname", json!(blosc.cname));
                set("clevel", json!(blosc.clevel));
                set("shuffle", json!(blosc.shuffle));
                set("blocksize", json!(blosc.blocksize));
            }
            Self::Bz2 { level } => drop(set("level", json!(level))),
            Self::Lz4 => drop(set("acceleration", json!(1))),
            Self::Shuffle { size } => drop(set("elementsize", json!(size))),
            Self::Checksum { sum: Sum::Crc32c | Sum::Crc32 | Sum::Adler32, at_start } => {
                set("location", json!(if *at_start { "start" } else { "end" }));
            }
            Self::Checksum { sum: Sum::Lookup3 { initial }, .. } => drop(set("initval", json!(initial))),
            Self::Checksum { .. } | Self::Numbers(_) | Self::PackBits => {}
        }
        Value::Object(object)
    }
}

impl Blosc {
    const fn shuffle_name(&self) -> &'static str {
        match self.shuffle {
            1 => "shuffle",
            2 => "bitshuffle",
            _ => "noshuffle",
        }
    }

    fn encode(&self, src: &[u8], out: &mut Vec<u8>) -> Outcome<()> {
        let codec = match self.cname.as_str() {
            "lz4" | "lz4hc" => blosc::Codec::Lz4,
            "zstd" => blosc::Codec::Zstd,
            "zlib" => blosc::Codec::Zlib,
            "snappy" => blosc::Codec::Snappy,
            other => {
                let feature = format!("writing with {other:?}").into();
                return Err(CodecError::Unsupported { codec: "blosc", feature });
            }
        };
        let filter = match self.shuffle {
            1 => Some(blosc::Filter::Shuffle { size: self.typesize }),
            2 => Some(blosc::Filter::Bitshuffle),
            _ => None,
        };
        let options = blosc::Options::new(codec, self.clevel, self.typesize);
        blosc::encode(src, options.with_filter(filter).with_block_len(self.blocksize), out)
    }
}

fn wrong_size(codec: &'static str, expected: usize, found: usize) -> CodecError {
    CodecError::Size { codec, expected, found, at_least: false }
}

fn lz4_block(src: &[u8]) -> Outcome<(usize, &[u8])> {
    match src.split_first_chunk::<4>() {
        Some((size, block)) => Ok((u32::from_le_bytes(*size) as usize, block)),
        None => Err(corrupt("lz4", format!("{} bytes, with no room for a size", src.len()))),
    }
}

fn unpack_bits(src: &[u8], out: &mut [u8]) -> Outcome<()> {
    let expected = 1 + out.len().div_ceil(8);
    if src.len() != expected {
        return Err(wrong_size("packbits", expected, src.len()));
    }
    for (i, truth) in out.iter_mut().enumerate() {
        *truth = src[1 + i / 8] >> (7 - i % 8) & 1;
    }
    Ok(())
}
