//! Codecs out of metadata: v3's names and configurations, numcodecs' ids.

use hyperslab_core::Result;
use serde_json::{Map, Value};

use super::number::{NumberKind, no_number};
use super::{Blosc, Number, NumberFilter, Step, Sum};
use crate::json::Doc;

/// A v3 codec that turns bytes into bytes (or numbers into numbers), by name and configuration. `item` is the
/// element's size.
pub(crate) fn parse_v3(
    name: &str,
    configuration: &Map<String, Value>,
    item: usize,
    doc: Doc<'_>,
) -> Result<Step> {
    match name {
        "crc32c" => Ok(Step::Checksum { sum: Sum::Crc32c, at_start: false }),
        "gzip" | "zstd" | "blosc" => numcodec(name, configuration, item, doc),
        _ => match name.strip_prefix("numcodecs.") {
            Some(id) => numcodec(id, configuration, item, doc),
            None => Err(doc.unsupported(format!("codec {name:?}"))),
        },
    }
}

/// A v2 filter or compressor.
pub(crate) fn parse_v2(value: &Value, item: usize, doc: Doc<'_>) -> Result<Step> {
    let object = doc.object(value, "a codec")?;
    numcodec(doc.text(doc.field(object, "id")?, "a codec's id")?, object, item, doc)
}

/// A filter as people name it, with parameters of either spelling.
pub(crate) fn parse_shown(filter: &hyperslab_core::Filter, item: usize, doc: Doc<'_>) -> Result<Step> {
    let mut parameters = filter.parameters.clone();
    if filter.name == "shuffle" && !parameters.contains_key("elementsize") {
        let size = parameters.get("element_size").cloned().unwrap_or_else(|| Value::from(item));
        parameters.insert("elementsize".to_owned(), size);
    }
    let id = match filter.name.as_str() {
        "deflate" => "gzip",
        name => name,
    };
    numcodec(id, &parameters, item, doc)
}

fn numcodec(id: &str, parameters: &Map<String, Value>, item: usize, doc: Doc<'_>) -> Result<Step> {
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
            let size =
                usize::try_from(integer("elementsize", 4)?).ok().filter(|size| (1..=1 << 20).contains(size));
            Step::Shuffle { size: size.ok_or_else(|| doc.corrupt("elementsize of codec \"shuffle\""))? }
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
        "packbits" => Step::PackBits,
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
        // Rounding keeps the type, which it does not even name.
        "bitround" => {
            let byte = Number { kind: super::number::Kind::Unsigned, size: 1, big: false };
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
