//! Parses codecs from metadata: v3's names and configurations, numcodecs' ids.

use hyperslab_codec::narrow::Narrow;
use hyperslab_codec::{lzma, pcodec};
use hyperslab_core::{DType, Result, closest};
use serde_json::{Map, Value};

use super::number::{NumberKind, no_number};
use super::packbits::{PackBits, Padding};
use super::zfp::Zfp;
use super::{Blosc, Number, NumberFilter, Step, Subject, Sum};
use crate::json::Doc;

/// The prefix under which zarrs registered codecs before they had common names.
const ZARRS: &str = "https://codec.zarrs.dev/";

/// The short name of a v3 codec that is also a numcodecs codec.
pub(crate) fn short_name(name: &str) -> &str {
    if let Some(path) = name.strip_prefix(ZARRS) {
        return path.rsplit('/').next().unwrap_or(path);
    }
    name.strip_prefix("numcodecs.").or_else(|| name.strip_prefix("zarrs.")).unwrap_or(name)
}

/// A v3 codec, by name and configuration.
pub(crate) fn parse_v3(
    name: &str,
    configuration: &Map<String, Value>,
    subject: Subject<'_>,
    doc: Doc<'_>,
) -> Result<Step> {
    match name {
        "crc32c" => Ok(Step::Checksum { sum: Sum::Crc32c, at_start: false }),
        "packbits" => packbits(configuration, subject, doc).map(Step::PackBits),
        "zfp" => Zfp::parse(configuration, subject, doc).map(Step::Zfp),
        _ => match short_name(name) {
            "zfp" => Zfp::parse(configuration, subject, doc).map(Step::Zfp),
            short => numcodec(short, configuration, subject, doc),
        },
    }
}

/// A v2 filter or compressor.
pub(crate) fn parse_v2(value: &Value, subject: Subject<'_>, doc: Doc<'_>) -> Result<Step> {
    let object = doc.object(value, "a codec")?;
    numcodec(doc.text(doc.field(object, "id")?, "a codec's id")?, object, subject, doc)
}

/// The names of codecs that users choose, for suggestions.
const NAMES: [&str; 16] = [
    "gzip",
    "zlib",
    "zstd",
    "bz2",
    "lz4",
    "blosc",
    "shuffle",
    "crc32c",
    "crc32",
    "adler32",
    "fletcher32",
    "packbits",
    "lzma",
    "pcodec",
    "delta",
    "bitround",
];

/// A filter as users name it, with parameters in either spelling.
pub(crate) fn parse_shown(
    filter: &hyperslab_core::Filter,
    subject: Subject<'_>,
    doc: Doc<'_>,
) -> Result<Step> {
    let mut parameters = filter.parameters.clone();
    if filter.name == "shuffle" && !parameters.contains_key("elementsize") {
        let size = parameters.get("element_size").cloned().unwrap_or_else(|| Value::from(subject.item));
        parameters.insert("elementsize".to_owned(), size);
    }
    if filter.name == "blosc" {
        // Its parameters have other names in HDF5.
        for (other, own) in [("codec", "cname"), ("level", "clevel")] {
            if let Some(value) = parameters.get(other).filter(|_| !parameters.contains_key(own)).cloned() {
                parameters.insert(own.to_owned(), value);
            }
        }
    }
    if let Some(kind) = Narrow::parse(&filter.name) {
        return Ok(Step::Narrow { kind, big: false });
    }
    let id = match filter.name.as_str() {
        "deflate" => "gzip",
        "packbits" if subject.narrow.is_some() => {
            return packbits(&parameters, subject, doc).map(Step::PackBits);
        }
        name => name,
    };
    numcodec(id, &parameters, subject, doc).map_err(|why| match closest(id, NAMES) {
        _ if NAMES.contains(&id) => why,
        Some(name) => doc.unsupported(format!("codec {id:?} (did you mean {name}?)")),
        None => doc.unsupported(format!("codec {id:?} (there are {})", NAMES.join(", "))),
    })
}

/// The codec `packbits`, of which numcodecs' is a special case.
fn packbits(configuration: &Map<String, Value>, subject: Subject<'_>, doc: Doc<'_>) -> Result<PackBits> {
    let (dtype, narrow) = (subject.dtype, subject.narrow);
    let numeric = dtype.is_numeric() || matches!(dtype, DType::Bool | DType::Complex64 | DType::Complex128);
    let size =
        if matches!(dtype, DType::Complex64 | DType::Complex128) { subject.item / 2 } else { subject.item };
    if !numeric || size > 8 {
        return Err(doc.unsupported(format!("codec \"packbits\" for {dtype}")));
    }
    let width = match dtype {
        DType::Bool => 1,
        _ => narrow.map_or(8 * size as u32, Narrow::bits),
    };
    let bit = |name: &str, default: u32| match configuration.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => {
            let bit = value.as_u64().and_then(|bit| u32::try_from(bit).ok()).filter(|bit| *bit < width);
            bit.ok_or_else(|| doc.corrupt(format!("{name} of codec \"packbits\" is {value}")))
        }
    };
    let (first, last) = (bit("first_bit", 0)?, bit("last_bit", width - 1)?);
    if last < first {
        return Err(doc.corrupt(format!("codec \"packbits\" of the bits {first} to {last}")));
    }
    let whole = width == 8 * size as u32 && last - first + 1 == width;
    let padding = match configuration.get("padding_encoding").and_then(Value::as_str) {
        // Whole numbers are stored as by the codec `bytes`.
        _ if whole => Padding::Untold,
        None | Some("none") => Padding::Untold,
        Some("first_byte") => Padding::First,
        Some("last_byte") => Padding::Last,
        Some(other) => {
            return Err(doc.corrupt(format!("padding_encoding of codec \"packbits\" is {other:?}")));
        }
    };
    let signed = narrow.map_or_else(
        || matches!(dtype, DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64),
        Narrow::is_signed,
    );
    Ok(PackBits { size, first, bits: last - first + 1, signed, padding, high_first: false })
}

/// The type of Pcodec's numbers.
fn pcodec_number(subject: Subject<'_>, doc: Doc<'_>) -> Result<pcodec::Number> {
    use pcodec::Number;
    Ok(match subject.dtype {
        _ if subject.narrow.is_some() => return Err(doc.unsupported("codec \"pcodec\" for narrow numbers")),
        DType::Int16 => Number::I16,
        DType::Int32 => Number::I32,
        DType::Int64 | DType::DateTime(_) | DType::Duration(_) => Number::I64,
        DType::UInt16 => Number::U16,
        DType::UInt32 => Number::U32,
        DType::UInt64 => Number::U64,
        DType::Float16 => Number::F16,
        DType::Float32 | DType::Complex64 => Number::F32,
        DType::Float64 | DType::Complex128 => Number::F64,
        other => return Err(doc.unsupported(format!("codec \"pcodec\" for {other}"))),
    })
}

/// numcodecs' `lzma`, which takes the parameters of Python's module.
fn lzma(parameters: &Map<String, Value>, doc: Doc<'_>) -> Result<Step> {
    let wrong = |what: &Value| doc.unsupported(format!("codec \"lzma\" with {what}"));
    let preset =
        parameters.get("preset").and_then(Value::as_u64).and_then(|preset| u32::try_from(preset).ok());
    // Bit 31 requests extreme effort.
    let preset = preset.unwrap_or(6) & 0xf;
    let container = match parameters.get("format").and_then(Value::as_u64).unwrap_or(1) {
        0 | 1 => lzma::Container::Xz,
        2 => lzma::Container::Alone,
        3 => {
            let filters = parameters.get("filters").unwrap_or(&Value::Null);
            let (mut delta, mut dictionary) = (0, None);
            for filter in doc.list(filters, "filters of codec \"lzma\"")? {
                let number = |name: &str| filter.get(name).and_then(Value::as_u64);
                match number("id") {
                    Some(3) if delta == 0 && dictionary.is_none() => {
                        let distance = number("dist").unwrap_or(1);
                        delta = u16::try_from(distance)
                            .ok()
                            .filter(|own| (1..=256).contains(own))
                            .ok_or_else(|| wrong(filter))?;
                    }
                    Some(33) if dictionary.is_none() => {
                        let preset = number("preset").unwrap_or(6) & 0xf;
                        let usual = 1_u64 << [18, 20, 21, 22, 22, 23, 23, 24, 25, 26][preset.min(9) as usize];
                        let size = u32::try_from(number("dict_size").unwrap_or(usual));
                        dictionary = Some(size.map_err(|_| wrong(filter))?);
                    }
                    _ => return Err(wrong(filter)),
                }
            }
            lzma::Container::Raw { dictionary: dictionary.ok_or_else(|| wrong(filters))?, delta }
        }
        other => return Err(doc.corrupt(format!("format of codec \"lzma\" is {other}"))),
    };
    Ok(Step::Lzma { container, preset: preset.min(9) })
}

fn numcodec(id: &str, parameters: &Map<String, Value>, subject: Subject<'_>, doc: Doc<'_>) -> Result<Step> {
    let item = subject.item;
    let integer = |name: &str, default: i64| match parameters.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => {
            value.as_i64().ok_or_else(|| doc.corrupt(format!("{name} of codec {id:?} is {value}")))
        }
    };
    let level = |default| {
        let level = integer("level", default)?;
        i32::try_from(level).map_err(|_| doc.corrupt(format!("level of codec {id:?} is {level}")))
    };
    let at_start = |default: bool| match parameters.get("location").and_then(Value::as_str) {
        None => Ok(default),
        Some("start") => Ok(true),
        Some("end") => Ok(false),
        Some(other) => Err(doc.corrupt(format!("location of codec {id:?} is {other:?}"))),
    };
    Ok(match id {
        "gzip" => Step::Gzip { level: level(1)? },
        "zlib" => Step::Zlib { level: level(1)? },
        "zstd" => {
            let checksum = parameters.get("checksum").and_then(Value::as_bool).unwrap_or(false);
            Step::Zstd { level: level(1)?, checksum }
        }
        "bz2" => Step::Bz2 { level: level(1)?.clamp(1, 9) as u32 },
        "lz4" => Step::Lz4,
        "blosc" => Step::Blosc(blosc(parameters, item, doc)?),
        "shuffle" => {
            // numcodecs takes elements of no bytes for single bytes, and leaves both as they are.
            let size = usize::try_from(integer("elementsize", 4)?).ok().filter(|size| *size <= 1 << 20);
            Step::Shuffle {
                size: size.ok_or_else(|| doc.corrupt("elementsize of codec \"shuffle\""))?.max(1),
            }
        }
        "crc32c" => Step::Checksum { sum: Sum::Crc32c, at_start: at_start(false)? },
        "crc32" => Step::Checksum { sum: Sum::Crc32, at_start: at_start(true)? },
        "adler32" => Step::Checksum { sum: Sum::Adler32, at_start: at_start(true)? },
        "fletcher32" => Step::Checksum { sum: Sum::Fletcher32, at_start: false },
        "jenkins_lookup3" => {
            if parameters.get("prefix").is_some_and(|prefix| !prefix.is_null()) {
                return Err(doc.unsupported("a prefix of the codec \"jenkins_lookup3\""));
            }
            let initial = integer("initval", 0)? as u32;
            Step::Checksum { sum: Sum::Lookup3 { initial }, at_start: false }
        }
        "packbits" => Step::PackBits(PackBits::BOOLEANS),
        "lzma" => return lzma(parameters, doc),
        "pcodec" => {
            let level = usize::try_from(integer("level", 8)?).ok().filter(|level| *level <= 12);
            let level = level.ok_or_else(|| doc.corrupt("level of codec \"pcodec\""))?;
            Step::Pcodec { number: pcodec_number(subject, doc)?, level }
        }
        "zfpy" => Step::Zfpy,
        "base64" => Step::Base64,
        "delta" | "fixedscaleoffset" | "quantize" | "bitround" | "astype" => {
            return numbers(id, parameters, doc);
        }
        other => return Err(doc.unsupported(format!("codec {other:?}"))),
    })
}

fn blosc(parameters: &Map<String, Value>, item: usize, doc: Doc<'_>) -> Result<Blosc> {
    let size =
        |name: &str| parameters.get(name).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
    let shuffle = match parameters.get("shuffle") {
        Some(Value::String(name)) => match name.as_str() {
            "noshuffle" => 0,
            "shuffle" => 1,
            "bitshuffle" => 2,
            other => return Err(doc.corrupt(format!("shuffle of codec \"blosc\" is {other:?}"))),
        },
        // v2's -1 lets the library choose: bits for single bytes, bytes otherwise.
        Some(number) => match number.as_i64() {
            Some(-1) => 1 + u8::from(item == 1),
            Some(mode @ 0..=2) => mode as u8,
            _ => return Err(doc.corrupt(format!("shuffle of codec \"blosc\" is {number}"))),
        },
        None => 1,
    };
    Ok(Blosc {
        cname: parameters.get("cname").and_then(Value::as_str).unwrap_or("lz4").to_owned(),
        clevel: parameters.get("clevel").and_then(Value::as_i64).unwrap_or(5).clamp(0, 9) as i32,
        shuffle,
        typesize: size("typesize").unwrap_or(item).max(1),
        blocksize: size("blocksize").unwrap_or(0),
    })
}

fn numbers(id: &str, parameters: &Map<String, Value>, doc: Doc<'_>) -> Result<Step> {
    let number = |name: &str| match parameters.get(name).and_then(Value::as_str) {
        None => Ok(None),
        Some(text) => match Number::parse(text) {
            Some(number) => Ok(Some(number)),
            None => Err(doc.unsupported(no_number(text).to_string())),
        },
    };
    let needed = |name: &str| number(name)?.ok_or_else(|| doc.corrupt(format!("codec {id:?} has no {name}")));
    let float = |name: &str| {
        let value = parameters.get(name).and_then(Value::as_f64);
        value.ok_or_else(|| doc.corrupt(format!("codec {id:?} has no {name}")))
    };
    let (name, decoded, stored, kind) = match id {
        "astype" => ("astype", needed("decode_dtype")?, needed("encode_dtype")?, NumberKind::Convert),
        // Rounding keeps the type, which it does not name.
        "bitround" => {
            let byte = Number { kind: super::number::NumberClass::Unsigned, size: 1, big: false };
            ("bitround", byte, byte, NumberKind::Convert)
        }
        "quantize" => {
            let decoded = needed("dtype")?;
            ("quantize", decoded, number("astype")?.unwrap_or(decoded), NumberKind::Convert)
        }
        "delta" => {
            let decoded = needed("dtype")?;
            ("delta", decoded, number("astype")?.unwrap_or(decoded), NumberKind::Delta)
        }
        _ => {
            let decoded = needed("dtype")?;
            let kind = NumberKind::ScaleOffset { scale: float("scale")?, offset: float("offset")? };
            ("fixedscaleoffset", decoded, number("astype")?.unwrap_or(decoded), kind)
        }
    };
    Ok(NumberFilter { name, decoded, stored, kind }.into())
}
