//! Attributes: their meaning above this crate, and their stored form.

use hyperslab_core::{Attribute, Attributes, DType, Data, Elements, Fill, Values, swap_bytes};
use serde_json::Value;

use crate::header::{RawAttribute, Variable};
use crate::types::NcType;

/// The missing-value marker, which has the type of its variable.
pub(crate) const FILL_VALUE: &str = "_FillValue";

/// The attributes of a variable or of the file.
pub(crate) fn read(raw: &[RawAttribute]) -> Attributes {
    let mut attributes = Attributes::new();
    for attribute in raw {
        attributes.set(attribute.name.as_str(), value(attribute));
    }
    attributes
}

/// Characters are one text, numbers a list.
fn value(raw: &RawAttribute) -> Attribute {
    if raw.kind == NcType::Char {
        return characters(&raw.bytes);
    }
    let count = raw.bytes.len() as u64 / raw.kind.size();
    let elements = Elements::fixed(native(raw.kind, raw.bytes.clone()));
    match Values::new(raw.kind.dtype(), &[count], elements) {
        Ok(values) => values.into(),
        Err(why) => Attribute::Unreadable(why.to_string()),
    }
}

/// Text without its padding. Text that is not UTF-8 stays bytes, of which none is lost.
fn characters(bytes: &[u8]) -> Attribute {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Attribute::from(text.trim_end_matches('\0'));
    }
    let elements = Elements::fixed(bytes.to_vec());
    match Values::scalar(DType::FixedBytes(bytes.len()), elements) {
        Ok(values) => values.into(),
        Err(why) => Attribute::Unreadable(why.to_string()),
    }
}

/// Converts big-endian numbers to native byte order, and back.
pub(crate) fn native(kind: NcType, mut bytes: Vec<u8>) -> Vec<u8> {
    if cfg!(target_endian = "little") {
        swap_bytes(kind.size() as usize, &mut bytes);
    }
    bytes
}

/// The value of a cell that was never written.
pub(crate) fn fill(variable: &Variable) -> Fill {
    let own = variable.attributes.iter().find(|attribute| attribute.name == FILL_VALUE);
    match own {
        Some(raw) if raw.kind == variable.kind && raw.bytes.len() as u64 == raw.kind.size() => {
            Fill::Element(Elements::fixed(native(raw.kind, raw.bytes.clone())))
        }
        // Some writers give it another type than the variable's.
        Some(raw) => converted(raw, variable.kind).unwrap_or_else(|| variable.kind.default_fill()),
        None => variable.kind.default_fill(),
    }
}

/// The only number of an attribute as a fill value of this type; `None` if the type has no such value.
fn converted(raw: &RawAttribute, kind: NcType) -> Option<Fill> {
    let Value::Array(numbers) = value(raw).to_json() else { return None };
    let [number] = numbers.as_slice() else { return None };
    match Attribute::from_json_of_type(number, &kind.dtype().to_string())? {
        Attribute::Values(values) => Some(Fill::Element(values.elements)),
        _ => None,
    }
}

/// The stored form of an attribute, in the smallest type that holds it. The types of CDF-5 are used only if no other type holds
/// the values, unless `extended` says that the file has them anyway.
///
/// # Errors
///
/// A description of what the format cannot hold.
pub(crate) fn stored(attribute: &Attribute, extended: bool) -> Result<(NcType, Vec<u8>), String> {
    match attribute {
        Attribute::Values(values) => stored_values(values, extended),
        Attribute::Json(document) => stored_document(document),
        other => Err(format!("NetCDF classic cannot hold {}", other.to_json())),
    }
}

fn text(text: impl AsRef<[u8]>) -> (NcType, Vec<u8>) {
    // The library writes an empty text as one NUL.
    let bytes = if text.as_ref().is_empty() { &[0] } else { text.as_ref() };
    (NcType::Char, bytes.to_vec())
}

fn stored_values(values: &Values, extended: bool) -> Result<(NcType, Vec<u8>), String> {
    let refused = |what: &str| Err(format!("NetCDF classic has no attributes {what}"));
    if values.shape.len() > 1 {
        return refused("of several dimensions");
    }
    if values.elements.validity.is_some() {
        return refused("with missing values");
    }
    match (&values.dtype, &values.elements.data) {
        (DType::String | DType::Bytes, Data::Variable { bytes, .. }) if values.len() == 1 => Ok(text(bytes)),
        (DType::FixedBytes(_), Data::Fixed(bytes)) if values.len() == 1 => {
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            Ok(text(&bytes[..end]))
        }
        (DType::FixedText(_), _) if values.len() == 1 => match values.to_json() {
            Value::Array(items) => Ok(text(items.first().and_then(Value::as_str).unwrap_or_default())),
            single => Ok(text(single.as_str().unwrap_or_default())),
        },
        // Single characters form a text.
        (DType::FixedBytes(1), Data::Fixed(bytes)) => Ok(text(bytes)),
        (DType::String | DType::Bytes | DType::FixedBytes(_) | DType::FixedText(_), _) => {
            refused("that are lists of texts")
        }
        (DType::Enum(named), Data::Fixed(bytes)) => numbers(&named.base, bytes.to_vec(), extended),
        (DType::Bool, Data::Fixed(bytes)) => Ok((NcType::Byte, bytes.to_vec())),
        (DType::Float16, Data::Fixed(_)) => floats(&values.to_json())
            .map(|floats| {
                let singles: Vec<u8> =
                    floats.iter().flat_map(|float| (*float as f32).to_be_bytes()).collect();
                (NcType::Float, singles)
            })
            .ok_or_else(|| "NetCDF classic cannot hold this attribute of float16".to_owned()),
        (dtype, Data::Fixed(bytes)) => numbers(dtype, bytes.to_vec(), extended),
        (dtype, _) => refused(&format!("of type {dtype}")),
    }
}

/// Numbers in their own type if the file has it, or in a wider or narrower one that holds all of them.
fn numbers(dtype: &DType, bytes: Vec<u8>, extended: bool) -> Result<(NcType, Vec<u8>), String> {
    let Some(kind) = NcType::of(dtype).filter(|kind| *kind != NcType::Char) else {
        return Err(format!("NetCDF classic has no attributes of type {dtype}"));
    };
    if extended || !kind.is_extended() {
        return Ok((kind, native(kind, bytes)));
    }
    let integers = integers(kind, &bytes);
    let fits = |low: i128, high: i128| integers.iter().all(|integer| (low..=high).contains(integer));
    Ok(if kind == NcType::UByte && fits(0, i128::from(i16::MAX)) {
        (NcType::Short, integers.iter().flat_map(|integer| (*integer as i16).to_be_bytes()).collect())
    } else if fits(i128::from(i32::MIN), i128::from(i32::MAX)) {
        (NcType::Int, integers.iter().flat_map(|integer| (*integer as i32).to_be_bytes()).collect())
    } else {
        (kind, native(kind, bytes))
    })
}

fn integers(kind: NcType, bytes: &[u8]) -> Vec<i128> {
    macro_rules! all {
        ($type:ty) => {
            bytes
                .as_chunks::<{ size_of::<$type>() }>()
                .0
                .iter()
                .map(|b| i128::from(<$type>::from_ne_bytes(*b)))
                .collect()
        };
    }
    match kind {
        NcType::UByte => all!(u8),
        NcType::UShort => all!(u16),
        NcType::UInt => all!(u32),
        NcType::UInt64 => all!(u64),
        _ => all!(i64),
    }
}

/// A JSON value: a text, a number, or a list of numbers.
fn stored_document(document: &Value) -> Result<(NcType, Vec<u8>), String> {
    let refused = || Err(format!("NetCDF classic has no attributes such as {document}"));
    let items = match document {
        Value::String(own) => return Ok(text(own)),
        Value::Bool(flag) => return Ok((NcType::Byte, vec![u8::from(*flag)])),
        Value::Array(items) => items.as_slice(),
        Value::Number(_) => std::slice::from_ref(document),
        Value::Null | Value::Object(_) => return refused(),
    };
    if let [Value::String(own)] = items {
        return Ok(text(own));
    }
    if items.iter().all(Value::is_boolean) && !items.is_empty() {
        return Ok((NcType::Byte, items.iter().map(|item| u8::from(*item == Value::Bool(true))).collect()));
    }
    let integers: Option<Vec<i128>> =
        items.iter().map(|item| item.as_i64().map(i128::from).or(item.as_u64().map(i128::from))).collect();
    if let Some(integers) = integers {
        let fits = |low: i128, high: i128| integers.iter().all(|integer| (low..=high).contains(integer));
        return if fits(i128::from(i32::MIN), i128::from(i32::MAX)) {
            Ok((NcType::Int, integers.iter().flat_map(|integer| (*integer as i32).to_be_bytes()).collect()))
        } else if fits(i128::from(i64::MIN), i128::from(i64::MAX)) {
            Ok((NcType::Int64, integers.iter().flat_map(|integer| (*integer as i64).to_be_bytes()).collect()))
        } else if fits(0, i128::from(u64::MAX)) {
            Ok((
                NcType::UInt64,
                integers.iter().flat_map(|integer| (*integer as u64).to_be_bytes()).collect(),
            ))
        } else {
            refused()
        };
    }
    match floats(document) {
        Some(floats) => Ok((NcType::Double, floats.iter().flat_map(|float| float.to_be_bytes()).collect())),
        None => refused(),
    }
}

/// The numbers of a JSON value. Texts represent numbers that JSON lacks.
fn floats(document: &Value) -> Option<Vec<f64>> {
    let float = |value: &Value| match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    };
    match document {
        Value::Array(items) => items.iter().map(float).collect(),
        single => float(single).map(|float| vec![float]),
    }
}
