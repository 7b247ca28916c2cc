//! Converts user-facing filters to pipeline messages: the inverse of describing.

use hyperslab_core::{DType, Error, Filter, Result, closest};
use serde_json::Value;

use super::{encode, id};
use crate::message::pipeline::FilterSpec;

/// The names of the filters that can be written.
pub(crate) const NAMES: [&str; 13] = [
    "gzip",
    "deflate",
    "zlib",
    "shuffle",
    "fletcher32",
    "bzip2",
    "bz2",
    "lzf",
    "zstd",
    "lz4",
    "bitshuffle",
    "blosc",
    "scaleoffset",
];

/// The properties of chunks that filters need.
#[derive(Debug, Clone)]
pub(crate) struct Chunks<'a> {
    /// The type of an element.
    pub(crate) dtype: &'a DType,
    /// Bytes of a stored element.
    pub(crate) element: usize,
    /// Cells of a chunk.
    pub(crate) cells: u64,
    /// The stored fill value, if set.
    pub(crate) fill: Option<&'a [u8]>,
}

/// The filter's number and parameters.
pub(crate) fn choose(filter: &Filter, chunks: &Chunks<'_>) -> Result<FilterSpec> {
    let number = |name: &str, default: i64| match filter.parameters.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => value.as_i64().ok_or_else(|| wrong(filter, name)),
    };
    // Parameters have 32 bits.
    let small = |name: &str, value: i64| {
        let refused = || Error::invalid(format!("{}: {name} cannot be {value}", filter.name));
        u32::try_from(value).map_err(|_| refused())
    };
    let signed = |name: &str, value: i64| {
        let refused = || Error::invalid(format!("{}: {name} cannot be {value}", filter.name));
        i32::try_from(value).map(i32::cast_unsigned).map_err(|_| refused())
    };
    let whole = u32::try_from(chunks.element)
        .map_err(|_| Error::invalid(format!("{}: elements of {} bytes", filter.name, chunks.element)))?;
    let element = || small("element_size", number("element_size", i64::from(whole))?);
    let block = || small("block_size", number("block_size", 0)?.max(0));
    let bytes = u32::try_from(chunks.cells.saturating_mul(chunks.element as u64)).unwrap_or(u32::MAX);
    let (id, name, values) = match filter.name.as_str() {
        "gzip" | "deflate" | "zlib" => {
            let level = number("level", 4)?;
            if !(0..=9).contains(&level) {
                return Err(wrong(filter, "level"));
            }
            (id::DEFLATE, "deflate", vec![small("level", level)?])
        }
        "shuffle" => (id::SHUFFLE, "shuffle", vec![element()?]),
        "fletcher32" => (id::FLETCHER32, "fletcher32", Vec::new()),
        "bzip2" | "bz2" => (id::BZIP2, "bzip2", vec![small("level", number("level", 9)?.clamp(1, 9))?]),
        "lzf" => (id::LZF, "lzf", vec![4, 0x105, bytes]),
        "zstd" => (id::ZSTD, "zstd", vec![signed("level", number("level", 3)?)?]),
        "lz4" => (id::LZ4, "lz4", vec![block()?]),
        "bitshuffle" => {
            let mut values = vec![0, 4, element()?, block()?];
            match filter.parameters.get("codec").and_then(Value::as_str) {
                None | Some("none" | "") => values.push(0),
                Some("lz4") => values.push(2),
                Some("zstd") => values.extend([3, signed("level", number("level", 3)?)?]),
                Some(_) => return Err(wrong(filter, "codec")),
            }
            (id::BITSHUFFLE, "bitshuffle", values)
        }
        "blosc" => {
            let codecs = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"];
            let named = filter.parameters.get("codec").or_else(|| filter.parameters.get("cname"));
            let named = named.and_then(Value::as_str).unwrap_or("lz4");
            let codec = (0_u32..).zip(codecs).find(|(_, codec)| *codec == named);
            let (codec, _) =
                codec.ok_or_else(|| Error::invalid(format!("{}: codec cannot be {named:?}", filter.name)))?;
            let level = small("level", number("level", number("clevel", 5)?)?.clamp(0, 9))?;
            let shuffle = match filter.parameters.get("shuffle").and_then(Value::as_str) {
                Some("noshuffle" | "none") => 0,
                Some("bitshuffle") => 2,
                Some(_) => 1,
                None => small("shuffle", number("shuffle", 1)?)?,
            };
            (id::BLOSC, "blosc", vec![2, 2, whole, bytes, level, shuffle, codec])
        }
        "scaleoffset" => (
            id::SCALE_OFFSET,
            "scaleoffset",
            scale_offset(filter, chunks, whole, signed("scale_factor", number("scale_factor", 0)?)?)?,
        ),
        other => {
            let hint = closest(other, NAMES).map(|name| format!(" (did you mean {name}?)"));
            let feature = format!("writing with the filter {other}{}", hint.unwrap_or_default());
            return Err(Error::unsupported("hdf5", feature));
        }
    };
    let spec = FilterSpec::new(id, name.to_owned(), values);
    encode::check(&spec)?;
    Ok(spec)
}

/// Adapts a filter of other chunks to these: some filters have the size of a chunk among their parameters. `None` if it cannot be
/// applied to these chunks.
pub(crate) fn refitted(filter: FilterSpec, chunks: &Chunks<'_>, chunk_shape: &[u64]) -> Option<FilterSpec> {
    let bytes = chunks.cells.saturating_mul(chunks.element as u64);
    let (index, value) = match filter.id {
        id::SCALE_OFFSET | id::NBIT => (2, chunks.cells),
        id::LZF => (2, bytes),
        id::BLOSC => (3, bytes),
        id::SZIP => (3, scanline(u64::from(*filter.values.get(1)?), chunks.cells, chunk_shape)?),
        _ => return Some(filter),
    };
    let mut filter = filter;
    if let Some(parameter) = filter.values.get_mut(index) {
        *parameter = u32::try_from(value).ok()?;
    }
    Some(filter)
}

/// The pixels per scanline of szip, as chosen by libhdf5; `None` for chunks smaller than a block.
fn scanline(block: u64, cells: u64, chunk_shape: &[u64]) -> Option<u64> {
    const BLOCKS_PER_SCANLINE: u64 = 128;
    let row = chunk_shape.last().copied().unwrap_or(1);
    let pixels = if row < block { cells } else { row };
    (cells >= block).then(|| pixels.min(block * BLOCKS_PER_SCANLINE))
}

fn wrong(filter: &Filter, parameter: &str) -> Error {
    Error::invalid(format!("{}: {parameter} cannot be {}", filter.name, filter.parameters[parameter]))
}

/// The twenty parameters of the scale-offset filter.
fn scale_offset(filter: &Filter, chunks: &Chunks<'_>, element: u32, factor: u32) -> Result<Vec<u32>> {
    let (method, class, sign) = match chunks.dtype {
        dtype if dtype.is_integer() => {
            let signed = matches!(dtype, DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64);
            (2, 0, u32::from(signed))
        }
        DType::Float32 | DType::Float64 => (0, 1, 0),
        other => return Err(Error::invalid(format!("{} has no meaning for {other}", filter.name))),
    };
    if class == 1 && !filter.parameters.contains_key("scale_factor") {
        return Err(Error::invalid(
            "scaleoffset: floats need scale_factor, the number of decimal places to keep",
        ));
    }
    let cells =
        u32::try_from(chunks.cells).map_err(|_| Error::invalid("scaleoffset: a chunk of 2^32 cells"))?;
    let mut values = vec![method, factor, cells, class, element, sign, 0];
    // An unset fill value is zero and counts as defined.
    let mut fill = [0; 8];
    if let Some(bytes) = chunks.fill {
        fill[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
    }
    let [a, b, c, d, e, f, g, h] = fill;
    values.extend([1, u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]);
    values.resize(20, 0);
    Ok(values)
}
