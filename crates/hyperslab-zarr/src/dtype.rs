//! Data types in the spellings of v2 and v3, and their byte swaps.

use std::sync::Arc;

use hyperslab_codec::narrow::Narrow;
use hyperslab_core::{DType, Member, OpaqueType, Result, StructType, TimeUnit, swap_bytes};
use serde_json::{Value, json};

use crate::json::Doc;

/// The maximum nesting depth of structs.
const MAX_DEPTH: usize = 16;

/// A run of equal numbers inside an element whose bytes must be swapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Swap {
    pub(crate) offset: usize,
    pub(crate) unit: usize,
    pub(crate) count: usize,
}

/// A stored element type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredType {
    /// The type after decoding.
    pub(crate) dtype: DType,
    /// The swaps in each stored element. v2 gives them with the type, v3 in the `bytes` codec.
    pub(crate) swaps: Vec<Swap>,
    /// Ticks per stored unit: NumPy's `datetime64[10us]` counts tens.
    pub(crate) scale: i64,
    /// Whether it is v2's `|O`, whose content a filter describes.
    pub(crate) object: bool,
    /// Set if values are stored as narrower numbers.
    pub(crate) narrow: Option<Narrow>,
}

impl StoredType {
    pub(crate) fn plain(dtype: DType) -> Self {
        Self { dtype, swaps: Vec::new(), scale: 1, object: false, narrow: None }
    }

    /// Bytes per stored element; `None` if elements differ in length.
    pub(crate) fn size(&self) -> Option<usize> {
        let size = self.dtype.size()?;
        Some(self.narrow.map_or(size, |narrow| size / narrow.decoded_size() * narrow.stored_size()))
    }
}

/// All parts of an element that have a byte order.
pub(crate) fn all_swaps(dtype: &DType) -> Vec<Swap> {
    let mut swaps = Vec::new();
    collect_swaps(dtype, 0, &mut swaps);
    swaps
}

fn collect_swaps(dtype: &DType, offset: usize, swaps: &mut Vec<Swap>) {
    match dtype {
        DType::Struct(fields) => {
            for member in &fields.members {
                collect_swaps(&member.dtype, offset + member.offset, swaps);
            }
        }
        DType::Array(base, shape) if matches!(**base, DType::Struct(_)) => {
            let (each, size) = (shape.iter().product::<usize>(), base.size().unwrap_or(0));
            (0..each).for_each(|i| collect_swaps(base, offset + i * size, swaps));
        }
        other => {
            if let (Some(unit), Some(size)) = (other.swap_unit(), other.size())
                && unit > 1
            {
                swaps.push(Swap { offset, unit, count: size / unit });
            }
        }
    }
}

/// Swaps the bytes of every element.
pub(crate) fn apply_swaps(swaps: &[Swap], item: usize, bytes: &mut [u8]) {
    if let [Swap { offset: 0, unit, count }] = swaps
        && unit * count == item
    {
        return swap_bytes(*unit, bytes);
    }
    if swaps.is_empty() || item == 0 {
        return;
    }
    for element in bytes.chunks_exact_mut(item) {
        for swap in swaps {
            if let Some(part) = element.get_mut(swap.offset..swap.offset + swap.unit * swap.count) {
                swap_bytes(swap.unit, part);
            }
        }
    }
}

const PLAIN: [(&str, DType); 14] = [
    ("bool", DType::Bool),
    ("int8", DType::Int8),
    ("int16", DType::Int16),
    ("int32", DType::Int32),
    ("int64", DType::Int64),
    ("uint8", DType::UInt8),
    ("uint16", DType::UInt16),
    ("uint32", DType::UInt32),
    ("uint64", DType::UInt64),
    ("float16", DType::Float16),
    ("float32", DType::Float32),
    ("float64", DType::Float64),
    ("complex64", DType::Complex64),
    ("complex128", DType::Complex128),
];

/// A narrow number type by its name. Floats are read as `float32`, integers as 8 bits, pairs as `complex64`.
fn narrow(name: &str) -> Option<StoredType> {
    let (narrow, dtype) = match name.strip_prefix("complex_") {
        Some(part) => (Narrow::parse(part).filter(|narrow| narrow.is_float())?, DType::Complex64),
        None => {
            let narrow = Narrow::parse(name).filter(|narrow| *narrow != Narrow::Float16)?;
            let integer = if narrow.is_signed() { DType::Int8 } else { DType::UInt8 };
            (narrow, if narrow.is_float() { DType::Float32 } else { integer })
        }
    };
    Some(StoredType { narrow: Some(narrow), ..StoredType::plain(dtype) })
}

/// The type name of elements stored as narrow numbers; `None` if they cannot be.
pub(crate) fn narrow_name(narrow: Narrow, dtype: &DType) -> Option<String> {
    match dtype {
        DType::Complex64 if narrow.is_float() => Some(format!("complex_{}", narrow.name())),
        DType::Float32 if narrow.is_float() && narrow != Narrow::Float16 => Some(narrow.name().to_owned()),
        DType::Int8 if narrow.is_signed() => Some(narrow.name().to_owned()),
        DType::UInt8 if !narrow.is_signed() && !narrow.is_float() => Some(narrow.name().to_owned()),
        _ => None,
    }
}

/// A v3 `data_type`: a name, or a name and a configuration.
pub(crate) fn parse_v3(value: &Value, doc: Doc<'_>) -> Result<StoredType> {
    parse_v3_at(value, doc, 0)
}

fn parse_v3_at(value: &Value, doc: Doc<'_>, depth: usize) -> Result<StoredType> {
    if depth > MAX_DEPTH {
        return Err(doc.corrupt("structs nested too deeply"));
    }
    let (name, configuration) = match value {
        Value::String(name) => (name.as_str(), None),
        Value::Object(object) => {
            (doc.text(doc.field(object, "name")?, "data_type name")?, object.get("configuration"))
        }
        _ => return Err(doc.corrupt(format!("data_type is {value}, expected a name or an object"))),
    };
    let parameter = |key: &str| configuration.and_then(|configuration| configuration.get(key));
    let size = |key: &str| {
        let size = parameter(key).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
        size.filter(|size| *size <= 1 << 30)
            .ok_or_else(|| doc.corrupt(format!("data_type {value} has no {key}")))
    };
    if let Some((_, dtype)) = PLAIN.iter().find(|(own, _)| *own == name) {
        return Ok(StoredType::plain(dtype.clone()));
    }
    if let Some(stored) = narrow(name) {
        return Ok(stored);
    }
    Ok(match name {
        "complex_float32" => StoredType::plain(DType::Complex64),
        "complex_float64" => StoredType::plain(DType::Complex128),
        "string" => StoredType::plain(DType::String),
        "bytes" | "variable_length_bytes" => StoredType::plain(DType::Bytes),
        "null_terminated_bytes" => StoredType::plain(DType::FixedBytes(size("length_bytes")?)),
        "fixed_length_utf32" => StoredType::plain(DType::FixedText(size("length_bytes")? / 4)),
        "raw_bytes" => StoredType::plain(opaque(size("length_bytes")?)),
        "numpy.datetime64" | "numpy.timedelta64" => {
            let unit = doc.text(parameter("unit").unwrap_or(&Value::Null), "the unit of a time")?;
            let scale = parameter("scale_factor").map_or(Some(1), Value::as_i64);
            let scale =
                scale.filter(|scale| *scale > 0).ok_or_else(|| doc.corrupt(format!("data_type {value}")))?;
            time(name == "numpy.datetime64", unit, scale, doc)?
        }
        "structured" | "struct" => {
            let fields = doc.list(parameter("fields").unwrap_or(&Value::Null), "the fields of a struct")?;
            let mut members = Vec::with_capacity(fields.len());
            for field in fields {
                let (name, dtype) = match field {
                    Value::Array(pair) if pair.len() == 2 => (&pair[0], &pair[1]),
                    Value::Object(object) => (doc.field(object, "name")?, doc.field(object, "data_type")?),
                    _ => return Err(doc.corrupt(format!("a struct field {field}"))),
                };
                let stored = parse_v3_at(dtype, doc, depth + 1)?;
                members.push((doc.text(name, "a field's name")?.to_owned(), stored));
            }
            structure(members, doc)?
        }
        _ => match name.strip_prefix('r').and_then(|bits| bits.parse::<usize>().ok()) {
            Some(bits) if bits > 0 && bits.is_multiple_of(8) => StoredType::plain(opaque(bits / 8)),
            _ => return Err(doc.unsupported(format!("data type {name:?}"))),
        },
    })
}

fn opaque(size: usize) -> DType {
    DType::Opaque(Arc::new(OpaqueType { size, tag: String::new() }))
}

fn time(date: bool, unit: &str, scale: i64, doc: Doc<'_>) -> Result<StoredType> {
    let code = if unit == "μs" { "us" } else { unit };
    if code == "generic" || code.is_empty() {
        return Ok(StoredType::plain(DType::Int64));
    }
    let unit = TimeUnit::from_code(code).ok_or_else(|| doc.corrupt(format!("time unit {unit:?}")))?;
    let dtype = if date { DType::DateTime(unit) } else { DType::Duration(unit) };
    Ok(StoredType { scale, ..StoredType::plain(dtype) })
}

/// Packs members, moving their swaps accordingly.
fn structure(members: Vec<(String, StoredType)>, doc: Doc<'_>) -> Result<StoredType> {
    let (mut size, mut swaps, mut built) = (0_usize, Vec::new(), Vec::new());
    for (name, stored) in members {
        if stored.scale != 1 || stored.object || stored.narrow.is_some() || !stored.dtype.is_fixed() {
            return Err(doc.unsupported(format!("the struct member {name:?} of type {}", stored.dtype)));
        }
        swaps.extend(stored.swaps.iter().map(|swap| Swap { offset: swap.offset + size, ..*swap }));
        let next = stored.dtype.size().and_then(|own| size.checked_add(own)).filter(|size| *size <= 1 << 30);
        built.push(Member { name, offset: size, dtype: stored.dtype });
        size = next.ok_or_else(|| doc.corrupt("a struct larger than 1 GiB"))?;
    }
    let dtype = StructType { members: built, size }.into();
    Ok(StoredType { swaps, ..StoredType::plain(dtype) })
}

/// A v2 `dtype`: NumPy's type string, or a list of members.
pub(crate) fn parse_v2(value: &Value, doc: Doc<'_>) -> Result<StoredType> {
    parse_v2_at(value, doc, 0)
}

fn parse_v2_at(value: &Value, doc: Doc<'_>, depth: usize) -> Result<StoredType> {
    if depth > MAX_DEPTH {
        return Err(doc.corrupt("structs nested too deeply"));
    }
    match value {
        // tensorstore's names for types that NumPy lacks.
        Value::String(text) => narrow(text).map_or_else(|| parse_numpy(text, doc), Ok),
        Value::Array(fields) => {
            let mut members = Vec::with_capacity(fields.len());
            for field in fields {
                let parts = doc.list(field, "a struct field")?;
                let [name, dtype, rest @ ..] = parts.as_slice() else {
                    return Err(doc.corrupt(format!("a struct field {field}")));
                };
                let mut stored = parse_v2_at(dtype, doc, depth + 1)?;
                if let [shape] = rest {
                    stored = sub_array(stored, &doc.extents(shape, "the shape of a field")?, doc)?;
                }
                members.push((doc.text(name, "a field's name")?.to_owned(), stored));
            }
            structure(members, doc)
        }
        _ => Err(doc.corrupt(format!("dtype is {value}, expected a string or a list"))),
    }
}

fn sub_array(stored: StoredType, shape: &[u64], doc: Doc<'_>) -> Result<StoredType> {
    // Walks over the dimensions of an element are recursive.
    if shape.len() > crate::metadata::MAX_RANK {
        return Err(doc.corrupt(format!("a field of {} dimensions", shape.len())));
    }
    let each = hyperslab_core::product(shape).and_then(|each| usize::try_from(each).ok());
    let size = stored.dtype.size().unwrap_or(0);
    let each = each.filter(|each| each.saturating_mul(size.max(1)) <= 1 << 20);
    let each = each.ok_or_else(|| doc.corrupt(format!("a field of shape {shape:?}")))?;
    let swaps = (0..each)
        .flat_map(|i| stored.swaps.iter().map(move |swap| Swap { offset: swap.offset + i * size, ..*swap }))
        .collect();
    let shape = shape.iter().map(|extent| *extent as usize).collect();
    Ok(StoredType { dtype: DType::Array(Arc::new(stored.dtype), shape), swaps, ..stored })
}

/// NumPy's type string: `<f4`, `|S5`, `>M8[10us]`.
pub(crate) fn parse_numpy(text: &str, doc: Doc<'_>) -> Result<StoredType> {
    let wrong = || doc.corrupt(format!("dtype {text:?}"));
    let (order, rest) = match text.chars().next() {
        Some(order @ ('<' | '>' | '|' | '=')) => (order, &text[1..]),
        _ => ('|', text),
    };
    let kind = rest.chars().next().filter(char::is_ascii).ok_or_else(wrong)?;
    let (digits, unit) = match rest[1..].split_once('[') {
        Some((digits, unit)) => (digits, Some(unit.strip_suffix(']').ok_or_else(wrong)?)),
        None => (&rest[1..], None),
    };
    if kind == 'O' {
        return Ok(StoredType { object: true, ..StoredType::plain(DType::Bytes) });
    }
    let size: usize = digits.parse().ok().filter(|size| *size <= 1 << 30).ok_or_else(wrong)?;
    let mut stored = match (kind, size) {
        ('b', 1) => StoredType::plain(DType::Bool),
        ('i' | 'u', _) => StoredType::plain(DType::integer(size, kind == 'i').ok_or_else(wrong)?),
        ('f', 2) => StoredType::plain(DType::Float16),
        ('f', 4) => StoredType::plain(DType::Float32),
        ('f', 8) => StoredType::plain(DType::Float64),
        ('f', 16) => StoredType::plain(DType::Float128),
        ('c', 8) => StoredType::plain(DType::Complex64),
        ('c', 16) => StoredType::plain(DType::Complex128),
        ('S', _) => StoredType::plain(DType::FixedBytes(size)),
        ('U', _) => StoredType::plain(DType::FixedText(size)),
        ('V', _) => StoredType::plain(opaque(size)),
        ('M' | 'm', 8) => {
            let unit = unit.unwrap_or("generic");
            let code = unit.trim_start_matches(|digit: char| digit.is_ascii_digit());
            let count = &unit[..unit.len() - code.len()];
            let scale = if count.is_empty() { 1 } else { count.parse().map_err(|_| wrong())? };
            time(kind == 'M', code, scale, doc)?
        }
        _ => return Err(doc.unsupported(format!("dtype {text:?}"))),
    };
    let native = if cfg!(target_endian = "little") { '<' } else { '>' };
    if (order == '<' || order == '>') && order != native {
        stored.swaps = all_swaps(&stored.dtype);
    }
    Ok(stored)
}

/// A type in v3 form; `None` if Zarr cannot hold it.
pub(crate) fn to_v3(dtype: &DType) -> Option<Value> {
    if let Some((name, _)) = PLAIN.iter().find(|(_, own)| own == dtype) {
        return Some(json!(name));
    }
    Some(match dtype {
        DType::String | DType::Reference => json!("string"),
        DType::Bytes => json!("variable_length_bytes"),
        DType::FixedBytes(size) if *size > 0 => {
            json!({"name": "null_terminated_bytes", "configuration": {"length_bytes": size}})
        }
        DType::FixedText(points) if *points > 0 => {
            json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": points.checked_mul(4)?}})
        }
        DType::Opaque(opaque) if opaque.size > 0 => {
            json!({"name": "raw_bytes", "configuration": {"length_bytes": opaque.size}})
        }
        DType::DateTime(unit) => {
            json!({"name": "numpy.datetime64", "configuration": {"unit": unit.code(), "scale_factor": 1}})
        }
        DType::Duration(unit) => {
            json!({"name": "numpy.timedelta64", "configuration": {"unit": unit.code(), "scale_factor": 1}})
        }
        DType::Enum(named) => return to_v3(&named.base),
        DType::Struct(fields) => {
            packed(fields)?;
            let fields: Option<Vec<Value>> = fields
                .members
                .iter()
                .map(|member| Some(json!([member.name, to_v3(&member.dtype)?])))
                .collect();
            json!({"name": "structured", "configuration": {"fields": fields?}})
        }
        _ => return None,
    })
}

/// A type in v2 form; `None` if Zarr cannot hold it.
pub(crate) fn to_v2(dtype: &DType) -> Option<Value> {
    Some(match dtype {
        DType::Bool => json!("|b1"),
        DType::Int8 => json!("|i1"),
        DType::UInt8 => json!("|u1"),
        DType::Int16 => json!("<i2"),
        DType::Int32 => json!("<i4"),
        DType::Int64 => json!("<i8"),
        DType::UInt16 => json!("<u2"),
        DType::UInt32 => json!("<u4"),
        DType::UInt64 => json!("<u8"),
        DType::Float16 => json!("<f2"),
        DType::Float32 => json!("<f4"),
        DType::Float64 => json!("<f8"),
        DType::Complex64 => json!("<c8"),
        DType::Complex128 => json!("<c16"),
        DType::DateTime(unit) => json!(format!("<M8[{}]", unit.code())),
        DType::Duration(unit) => json!(format!("<m8[{}]", unit.code())),
        DType::FixedBytes(size) if *size > 0 => json!(format!("|S{size}")),
        DType::FixedText(points) if *points > 0 => json!(format!("<U{points}")),
        DType::Opaque(opaque) if opaque.size > 0 => json!(format!("|V{}", opaque.size)),
        DType::Enum(named) => return to_v2(&named.base),
        DType::String | DType::Bytes | DType::Reference => json!("|O"),
        DType::List(_) => {
            object_filter(dtype)?;
            json!("|O")
        }
        DType::Struct(fields) => {
            packed(fields)?;
            let fields: Option<Vec<Value>> = fields
                .members
                .iter()
                .map(|member| Some(json!([member.name, to_v2(&member.dtype)?])))
                .collect();
            Value::Array(fields?)
        }
        _ => return None,
    })
}

/// The filter of v2 that writes elements of variable length; `None` if there is none.
pub(crate) fn object_filter(dtype: &DType) -> Option<Value> {
    Some(match dtype {
        DType::Bytes => json!({"id": "vlen-bytes"}),
        DType::String | DType::Reference => json!({"id": "vlen-utf8"}),
        DType::List(base) if base.is_numeric() && **base != DType::Float128 => {
            json!({"id": "vlen-array", "dtype": to_v2(base)?})
        }
        _ => return None,
    })
}

/// Fails for structs with padding, which Zarr does not have.
fn packed(fields: &StructType) -> Option<()> {
    let mut end = 0;
    for member in &fields.members {
        if member.offset != end {
            return None;
        }
        end += member.dtype.size()?;
    }
    (end == fields.size).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOC: Doc<'_> = Doc { store: "x.zarr", key: "zarr.json" };

    #[test]
    fn v2_and_v3_spellings_round_trip() -> Result<()> {
        let structure = StructType::packed([("a", DType::Int32), ("b", DType::FixedText(3))]);
        let types = [
            DType::Bool,
            DType::UInt16,
            DType::Complex128,
            DType::DateTime(TimeUnit::Nanosecond),
            DType::Duration(TimeUnit::Day),
            DType::FixedBytes(5),
            DType::FixedText(7),
            opaque(4),
            structure.into(),
        ];
        for dtype in types {
            let v3 = parse_v3(&to_v3(&dtype).unwrap(), DOC)?;
            let v2 = parse_v2(&to_v2(&dtype).unwrap(), DOC)?;
            assert_eq!((&v3.dtype, &v2.dtype), (&dtype, &dtype));
            assert_eq!((v2.scale, v3.scale), (1, 1));
        }
        Ok(())
    }

    #[test]
    fn big_endian_members_are_swapped_in_place() -> Result<()> {
        let stored =
            parse_v2(&json!([["a", "<i2"], ["n", [["x", ">f4"], ["s", "|S3"]]], ["v", ">u2", [2]]]), DOC)?;
        let mut bytes: Vec<u8> = (0..13).collect();
        apply_swaps(&stored.swaps, 13, &mut bytes);
        assert_eq!(bytes, [0, 1, 5, 4, 3, 2, 6, 7, 8, 10, 9, 12, 11]);
        Ok(())
    }

    #[test]
    fn unknown_types_are_named() {
        let error = parse_v3(&json!("float12"), DOC).unwrap_err();
        assert!(error.is_unsupported() && error.to_string().contains("float12"));
        assert!(parse_v2(&json!("<i3"), DOC).unwrap_err().is_corrupt());
        assert_eq!(parse_numpy(">M8[10us]", DOC).unwrap().scale, 10);
    }

    #[test]
    fn narrow_types_are_read_as_wider_ones() -> Result<()> {
        let types = [
            ("bfloat16", DType::Float32, 2),
            ("float8_e4m3fn", DType::Float32, 1),
            ("int4", DType::Int8, 1),
            ("uint2", DType::UInt8, 1),
            ("complex_float16", DType::Complex64, 4),
            ("complex_float8_e5m2", DType::Complex64, 2),
        ];
        for (name, dtype, size) in types {
            for stored in [parse_v3(&json!(name), DOC)?, parse_v2(&json!(name), DOC)?] {
                assert_eq!((&stored.dtype, stored.size()), (&dtype, Some(size)), "{name}");
                assert_eq!(narrow_name(stored.narrow.unwrap(), &dtype).as_deref(), Some(name));
            }
        }
        assert_eq!(parse_v3(&json!("float16"), DOC)?.dtype, DType::Float16);
        assert!(parse_v3(&json!("complex_int4"), DOC).is_err());
        Ok(())
    }
}
