//! Converts the core's types and filters to TileDB's.

use hyperslab_codec::webp::Pixels;
use hyperslab_core::{ArraySpec, DType, Data, Elements, Error, Fill, Filter as ShownFilter, Result};

use crate::datatype::{CellValues, Datatype};
use crate::pipeline::{Filter, Pipeline, WebpOptions};
use crate::schema::Attribute;

/// The datatype and the number of values of a cell. Returns `None` if the format cannot represent it.
pub(crate) fn datatype(dtype: &DType) -> Option<(Datatype, CellValues)> {
    let one = |datatype| Some((datatype, CellValues::Fixed(1)));
    match dtype {
        DType::Bool => one(Datatype::Bool),
        DType::Int8 => one(Datatype::Int8),
        DType::Int16 => one(Datatype::Int16),
        DType::Int32 => one(Datatype::Int32),
        DType::Int64 => one(Datatype::Int64),
        DType::UInt8 => one(Datatype::UInt8),
        DType::UInt16 => one(Datatype::UInt16),
        DType::UInt32 => one(Datatype::UInt32),
        DType::UInt64 => one(Datatype::UInt64),
        DType::Float32 => one(Datatype::Float32),
        DType::Float64 => one(Datatype::Float64),
        DType::Complex64 => Some((Datatype::Float32, CellValues::Fixed(2))),
        DType::Complex128 => Some((Datatype::Float64, CellValues::Fixed(2))),
        DType::DateTime(unit) => one(Datatype::DateTime(*unit)),
        DType::Duration(unit) => {
            let datatype = Datatype::Time(*unit);
            // The longest time unit with a code is the hour.
            (Datatype::from_code(datatype.code()) == Some(datatype))
                .then_some((datatype, CellValues::Fixed(1)))
        }
        DType::FixedBytes(size) if *size > 0 => {
            Some((Datatype::Char, CellValues::Fixed(u32::try_from(*size).ok()?)))
        }
        DType::FixedText(size) if *size > 0 => {
            Some((Datatype::StringUcs4, CellValues::Fixed(u32::try_from(*size).ok()?)))
        }
        DType::Opaque(opaque) if opaque.size > 0 => {
            Some((Datatype::Char, CellValues::Fixed(u32::try_from(opaque.size).ok()?)))
        }
        DType::Enum(named) => datatype(&named.base),
        DType::String | DType::Reference => Some((Datatype::StringUtf8, CellValues::Variable)),
        DType::Bytes => Some((Datatype::Char, CellValues::Variable)),
        DType::List(base) => match datatype(base)? {
            (datatype, CellValues::Fixed(1)) if !datatype.is_bytes() => {
                Some((datatype, CellValues::Variable))
            }
            _ => None,
        },
        DType::Array(base, shape) => match datatype(base)? {
            (datatype, CellValues::Fixed(1)) if !datatype.is_bytes() => {
                let count = shape
                    .iter()
                    .try_fold(1_u32, |count, extent| count.checked_mul(u32::try_from(*extent).ok()?))?;
                (count > 0).then_some((datatype, CellValues::Fixed(count)))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Creates the attribute for an array's elements.
pub(crate) fn attribute(name: &str, spec: &ArraySpec) -> Result<Attribute> {
    let (datatype, values) = datatype(&spec.dtype)
        .ok_or_else(|| Error::unsupported("tiledb", format!("writing elements of type {}", spec.dtype)))?;
    let mut attribute = Attribute::new(name, datatype, values);
    attribute.nullable = spec.nullable;
    attribute.pipeline = pipeline(&spec.filters)?;
    match &spec.fill {
        Fill::Element(element) => {
            attribute.fill = fill_bytes(element).filter(|bytes| !bytes.is_empty()).unwrap_or(attribute.fill);
            attribute.fill_validity = u8::from(!element.is_missing(0));
        }
        Fill::Zero | Fill::Undefined => {
            attribute.fill.fill(0);
            attribute.fill_validity = u8::from(spec.nullable);
        }
    }
    Ok(attribute)
}

fn fill_bytes(element: &Elements) -> Option<Vec<u8>> {
    match &element.data {
        Data::Fixed(bytes) | Data::Variable { bytes, .. } => Some(bytes.to_vec()),
        Data::List { items, .. } => fill_bytes(items),
        _ => None,
    }
}

/// Builds a pipeline from common filter names, including those of other formats.
pub(crate) fn pipeline(filters: &[ShownFilter]) -> Result<Pipeline> {
    let level = |filter: &ShownFilter, default: i32| {
        filter
            .parameters
            .get("level")
            .and_then(serde_json::Value::as_i64)
            .map_or(default, |level| level as i32)
    };
    let window = |filter: &ShownFilter, default: u32| {
        filter
            .parameters
            .get("window")
            .and_then(serde_json::Value::as_u64)
            .map_or(default, |size| size as u32)
    };
    let mut pipeline = Pipeline::default();
    for filter in filters {
        pipeline.filters.push(match filter.name.as_str() {
            "gzip" | "deflate" | "zlib" => Filter::Gzip(level(filter, 6)),
            "zstd" => Filter::Zstd(level(filter, 3)),
            "lz4" => Filter::Lz4(level(filter, 1)),
            "bzip2" | "bz2" => Filter::Bzip2(level(filter, 9)),
            "rle" => Filter::Rle(level(filter, -1)),
            "double_delta" => Filter::DoubleDelta(level(filter, -1), None),
            "delta" => Filter::Delta(level(filter, -1), None),
            "float_scale" => {
                let number = |name: &str| filter.parameters.get(name).and_then(serde_json::Value::as_f64);
                let width = filter.parameters.get("bytewidth").and_then(serde_json::Value::as_u64);
                match (number("factor"), number("offset"), width) {
                    (Some(scale), Some(offset), Some(width @ (1 | 2 | 4 | 8))) => {
                        Filter::FloatScale { scale, offset, width }
                    }
                    _ => {
                        return Err(Error::unsupported(
                            "tiledb",
                            "the filter float_scale without its parameters",
                        ));
                    }
                }
            }
            "bit_width_reduction" => Filter::BitWidthReduction(window(filter, 256)),
            "positive_delta" => Filter::PositiveDelta(window(filter, 1024)),
            "shuffle" | "byteshuffle" => Filter::Byteshuffle,
            "bitshuffle" => Filter::Bitshuffle,
            "checksum_md5" => Filter::Md5,
            // Checksums of other formats are replaced by TileDB's strong one.
            "checksum_sha256" | "fletcher32" | "crc32" | "crc32c" => Filter::Sha256,
            "dictionary" => Filter::Dictionary(level(filter, -1)),
            "webp" => Filter::Webp(webp(filter)?),
            "xor" => Filter::Xor,
            "noop" => Filter::NoOp,
            other => return Err(Error::unsupported("tiledb", format!("writing through the filter {other}"))),
        });
    }
    Ok(pipeline)
}

/// A lossless webp filter. The tile's extents are set later, when they are known.
fn webp(filter: &ShownFilter) -> Result<WebpOptions> {
    let order = filter.parameters.get("input_format").and_then(serde_json::Value::as_str);
    let pixels = match order.unwrap_or("RGB") {
        "RGB" => Pixels::Rgb,
        "BGR" => Pixels::Bgr,
        "RGBA" => Pixels::Rgba,
        "BGRA" => Pixels::Bgra,
        other => return Err(Error::invalid(format!("webp: unknown colour order {other}"))),
    };
    if filter.parameters.get("lossless").and_then(serde_json::Value::as_bool) == Some(false) {
        return Err(Error::unsupported("tiledb", "writing through a lossy webp filter"));
    }
    Ok(WebpOptions { quality: 100.0, pixels, lossless: true, rows: 0, row_bytes: 0 })
}

/// Sets the tile's extents in a webp filter. Tiles must be rows of whole pixels.
pub(crate) fn set_image_size(attribute: &mut Attribute, tile_shape: &[u64]) -> Result<()> {
    let datatype = attribute.datatype;
    for filter in &mut attribute.pipeline.filters {
        let Filter::Webp(options) = filter else { continue };
        let sides = match *tile_shape {
            [rows, row_bytes] => u16::try_from(rows).ok().zip(u16::try_from(row_bytes).ok()),
            _ => None,
        };
        let whole = |row_bytes: u16| (row_bytes as usize).is_multiple_of(options.pixels.size());
        let Some((rows, row_bytes)) =
            sides.filter(|(_, row_bytes)| datatype == Datatype::UInt8 && whole(*row_bytes))
        else {
            return Err(Error::unsupported(
                "tiledb",
                format!("the filter webp on tiles of shape {tile_shape:?}; it takes rows of pixels as bytes"),
            ));
        };
        (options.rows, options.row_bytes) = (rows, row_bytes);
    }
    Ok(())
}
