//! Single codecs: bytes to bytes, in either direction. [`crate::pipeline`] chains them.

mod number;
mod packbits;
mod parse;
mod zfp;

use hyperslab_codec::narrow::Narrow;
use hyperslab_codec::{CodecError, blosc, bzip2, checksum, deflate, lz4, lzma, pcodec, shuffle, zstd};
use hyperslab_core::{DType, Filter, StoredStep};
use serde_json::{Map, Value, json};

pub(crate) use number::{Number, NumberFilter};
pub(crate) use packbits::PackBits;
pub(crate) use parse::{parse_shown, parse_v2, parse_v3, short_name};
pub(crate) use zfp::Zfp;

use crate::fill::{decode_base64, encode_base64};

/// The result of a kernel. The caller adds the object's name to errors.
pub(crate) type Outcome<T> = std::result::Result<T, CodecError>;

/// The data that a codec is applied to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// Bytes per stored element; 1 if elements differ in length.
    pub(crate) item: usize,
    pub(crate) dtype: &'a DType,
    pub(crate) narrow: Option<Narrow>,
    /// The chunk's shape, in the order of the stored axes.
    pub(crate) shape: &'a [u64],
}

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
    /// numcodecs' number filters, which map each number to one number.
    Numbers(NumberFilter),
    /// Some bits of every number.
    PackBits(PackBits),
    /// Numbers stored as narrower ones, high byte first if `big`. Always the first step.
    Narrow {
        kind: Narrow,
        big: bool,
    },
    Lzma {
        container: lzma::Container,
        preset: u32,
    },
    Pcodec {
        number: pcodec::Number,
        level: usize,
    },
    /// A zfp stream that starts with a header.
    Zfpy,
    /// A zfp stream of the chunk.
    Zfp(Zfp),
    Base64,
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

/// A four-byte checksum.
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
    /// The encoded size of `decoded` bytes; `None` if it depends on their content.
    pub(crate) fn encoded_len(&self, decoded: usize) -> Option<usize> {
        match self {
            Self::Shuffle { .. } => Some(decoded),
            Self::Checksum { .. } => decoded.checked_add(4),
            Self::Numbers(filter) => filter.encoded_len(decoded),
            Self::PackBits(bits) => bits.encoded_len(decoded),
            Self::Narrow { kind, .. } => (decoded / kind.decoded_size()).checked_mul(kind.stored_size()),
            Self::Base64 => decoded.div_ceil(3).checked_mul(4),
            _ => None,
        }
    }

    /// The decoded bytes, if they are stored unchanged inside the encoded ones.
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
            Self::PackBits(bits) => bits.decode(src, out),
            Self::Narrow { kind, big } => kind.decode(*big, src, out),
            Self::Lzma { container, .. } => lzma::decode(*container, src, out),
            Self::Pcodec { number, .. } => pcodec::decode(*number, src, out),
            Self::Zfpy => hyperslab_codec::zfp::decode_with_header(src, out),
            Self::Zfp(zfp) => zfp.decode(src, out),
            Self::Base64 => {
                let decoded = base64(src)?;
                if decoded.len() != out.len() {
                    return Err(wrong_size("base64", out.len(), decoded.len()));
                }
                out.copy_from_slice(&decoded);
                Ok(())
            }
        }
    }

    /// Decodes all bytes, at most `limit`.
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
            Self::PackBits(bits) => {
                out.resize(bits.decoded_len(src.len()).min(limit), 0);
                bits.decode(src, out)
            }
            Self::Narrow { kind, big } => {
                out.resize(src.len() / kind.stored_size() * kind.decoded_size(), 0);
                kind.decode(*big, src, out)
            }
            Self::Lzma { container, .. } => lzma::decode_vec(*container, src, limit, out),
            Self::Zfpy => hyperslab_codec::zfp::decode_vec(src, limit, out),
            Self::Base64 => {
                out.extend(base64(src)?);
                Ok(())
            }
            // Their size is that of the chunk.
            Self::Pcodec { .. } | Self::Zfp(_) => {
                out.resize(limit, 0);
                self.decode(src, out)
            }
        }
    }

    /// Encodes `src` and appends the result to `out`.
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
            Self::PackBits(bits) => {
                bits.encode(src, out);
                Ok(())
            }
            Self::Narrow { kind, big } => kind.encode(*big, src, out),
            Self::Lzma { preset, .. } => lzma::encode(src, *preset, out),
            Self::Pcodec { number, level } => pcodec::encode(*number, src, *level, out),
            Self::Base64 => {
                out.extend(encode_base64(src).into_bytes());
                Ok(())
            }
            Self::Numbers(_) | Self::Zfpy | Self::Zfp(_) => Err(CodecError::Unsupported {
                codec: "zarr",
                feature: format!("writing the filter {:?}", self.shown().name).into(),
            }),
        }
    }

    /// Returns true if it can be written.
    pub(crate) const fn is_writable(&self) -> bool {
        match self {
            Self::Numbers(_) | Self::Zfpy | Self::Zfp(_) => false,
            Self::Lzma { container, .. } => matches!(container, lzma::Container::Xz),
            _ => true,
        }
    }

    /// Returns true if it precedes the codec `bytes` in documents of version 3.
    pub(crate) const fn is_array_to_array(&self) -> bool {
        matches!(self, Self::Numbers(_)) || matches!(self, Self::PackBits(bits) if bits.high_first)
    }

    /// Returns true if it turns an array into bytes, in place of the codec `bytes`.
    pub(crate) const fn is_serializer(&self) -> bool {
        match self {
            Self::Pcodec { .. } | Self::Zfpy | Self::Zfp(_) => true,
            Self::PackBits(bits) => !bits.high_first,
            _ => false,
        }
    }

    /// A format-independent description of the transform.
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

    /// The form shown by `tet info`.
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
            Self::PackBits(_) => Filter::new("packbits"),
            Self::Narrow { kind, .. } => Filter::new(kind.name()),
            Self::Lzma { preset, .. } => Filter::new("lzma").with("preset", *preset),
            Self::Pcodec { level, .. } => Filter::new("pcodec").with("level", *level),
            Self::Zfpy => Filter::new("zfpy"),
            Self::Zfp(_) => Filter::new("zfp"),
            Self::Base64 => Filter::new("base64"),
        }
    }

    /// The v3 metadata. numcodecs' own codecs use their registered names.
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
            Self::PackBits(bits) if !bits.high_first => json!({"name": "packbits"}),
            other => {
                let mut configuration = other.to_v2();
                if let Value::Object(object) = &mut configuration {
                    object.shift_remove("id");
                }
                numcodecs(configuration)
            }
        }
    }

    /// The v2 metadata.
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
            Self::Lzma { preset, .. } => {
                set("format", json!(1));
                set("check", json!(-1));
                set("preset", json!(preset));
                set("filters", Value::Null);
            }
            Self::Pcodec { level, .. } => {
                set("level", json!(level));
                set("mode_spec", json!("auto"));
                set("delta_spec", json!("auto"));
                set("paging_spec", json!("equal_pages_up_to"));
                set("delta_encoding_order", Value::Null);
                set("equal_pages_up_to", json!(262_144));
            }
            Self::Checksum { .. }
            | Self::Numbers(_)
            | Self::PackBits(_)
            | Self::Narrow { .. }
            | Self::Zfpy
            | Self::Zfp(_)
            | Self::Base64 => {}
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

fn base64(src: &[u8]) -> Outcome<Vec<u8>> {
    let text = std::str::from_utf8(src).ok().and_then(decode_base64);
    text.ok_or_else(|| corrupt("base64", format!("{} bytes are not base64", src.len())))
}
