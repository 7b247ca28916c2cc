//! Writes values as JSON like h5grove: structs as lists, NaN as null, complex numbers as pairs.

use hyperslab::driver::{element_to_json, product};
use hyperslab::{Attribute, Attributes, DType, Data, Elements, Values};
use serde_json::{Value, json};

use super::types;
use crate::answer::Failure;

/// Writes values as nested lists, or as a flat list.
pub(crate) fn write(values: &Values, flatten: bool, out: &mut Vec<u8>) {
    let mut shape: Vec<u64> = values.shape.to_vec();
    // NumPy appends the shape of array elements to the array's own shape.
    let mut inner = Vec::new();
    let mut dtype = &values.dtype;
    while let DType::Array(base, own) = dtype {
        inner.extend(own.iter().map(|extent| *extent as u64));
        dtype = base;
    }
    let expanded = match (&values.elements.data, inner.is_empty()) {
        (Data::Fixed(_), false) => {
            shape.extend(&inner);
            Some(dtype)
        }
        _ => None,
    };
    let dtype = expanded.unwrap_or(&values.dtype);
    if flatten && !shape.is_empty() {
        shape = vec![product(&shape).unwrap_or(0)];
    }
    // orjson preserves single precision in arrays and for scalars.
    let writer =
        Writer { dtype, elements: &values.elements, narrow: true, pair_narrow: values.shape.is_empty() };
    writer.nested(&shape, &mut 0, out);
}

struct Writer<'a> {
    dtype: &'a DType,
    elements: &'a Elements,
    narrow: bool,
    pair_narrow: bool,
}

impl Writer<'_> {
    fn nested(&self, shape: &[u64], next: &mut usize, out: &mut Vec<u8>) {
        match shape {
            [] => {
                self.element(*next, out);
                *next += 1;
            }
            [extent, inner @ ..] => {
                out.push(b'[');
                for index in 0..*extent {
                    if index > 0 {
                        out.push(b',');
                    }
                    self.nested(inner, next, out);
                }
                out.push(b']');
            }
        }
    }

    fn element(&self, index: usize, out: &mut Vec<u8>) {
        if self.elements.is_missing(index) {
            return out.extend_from_slice(b"null");
        }
        match (&self.elements.data, self.dtype) {
            (Data::Fixed(bytes), dtype) => {
                let size = dtype.size().unwrap_or(0);
                let held = index.checked_mul(size).and_then(|at| bytes.get(at..at.checked_add(size)?));
                match held {
                    Some(held) => self.fixed(dtype, held, self.narrow, out),
                    None => out.extend_from_slice(b"null"),
                }
            }
            (Data::Variable { .. }, _) => text(self.elements.variable_at(index).unwrap_or_default(), out),
            (Data::List { offsets, items }, DType::List(base)) => {
                let range = offsets.get(index).zip(offsets.get(index + 1));
                let (start, end) = range.map_or((0, 0), |(start, end)| (*start as usize, *end as usize));
                let below = Writer { dtype: base, elements: items, narrow: true, pair_narrow: false };
                below.list(start..end, out);
            }
            (Data::FixedList { each, items }, DType::Array(base, _)) => {
                let below = Writer { dtype: base, elements: items, narrow: true, pair_narrow: false };
                below.list(index * each..(index + 1) * each, out);
            }
            (Data::Struct { members, .. }, DType::Struct(fields)) => {
                out.push(b'[');
                for (at, (member, held)) in fields.members.iter().zip(members).enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    let one =
                        Writer { dtype: &member.dtype, elements: held, narrow: false, pair_narrow: false };
                    one.element(index, out);
                }
                out.push(b']');
            }
            _ => out.extend_from_slice(b"null"),
        }
    }

    fn list(&self, range: std::ops::Range<usize>, out: &mut Vec<u8>) {
        out.push(b'[');
        for (at, index) in range.enumerate() {
            if at > 0 {
                out.push(b',');
            }
            self.element(index, out);
        }
        out.push(b']');
    }

    fn fixed(&self, dtype: &DType, bytes: &[u8], narrow: bool, out: &mut Vec<u8>) {
        match dtype {
            DType::Float32 => match <[u8; 4]>::try_from(bytes).map(f32::from_ne_bytes) {
                Ok(number) if narrow => float32(number, out),
                Ok(number) => float64(f64::from(number), out),
                Err(_) => out.extend_from_slice(b"null"),
            },
            DType::Float16 => match <[u8; 2]>::try_from(bytes).map(half::f16::from_ne_bytes) {
                Ok(number) if narrow => float32(number.to_f32(), out),
                Ok(number) => float64(number.to_f64(), out),
                Err(_) => out.extend_from_slice(b"null"),
            },
            DType::Float64 => match <[u8; 8]>::try_from(bytes).map(f64::from_ne_bytes) {
                Ok(number) => float64(number, out),
                Err(_) => out.extend_from_slice(b"null"),
            },
            DType::Complex64 | DType::Complex128 => {
                let part = if *dtype == DType::Complex64 { DType::Float32 } else { DType::Float64 };
                let (real, imaginary) = bytes.split_at(bytes.len() / 2);
                out.push(b'[');
                self.fixed(&part, real, self.pair_narrow, out);
                out.push(b',');
                self.fixed(&part, imaginary, self.pair_narrow, out);
                out.push(b']');
            }
            DType::FixedBytes(_) => {
                let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                text(&bytes[..end], out);
            }
            DType::Opaque(_) => text(bytes, out),
            DType::Struct(fields) => {
                out.push(b'[');
                for (at, member) in fields.members.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    let size = member.dtype.size().unwrap_or(0);
                    let held = member.offset.checked_add(size).and_then(|end| bytes.get(member.offset..end));
                    match held {
                        Some(held) => self.fixed(&member.dtype, held, false, out),
                        None => out.extend_from_slice(b"null"),
                    }
                }
                out.push(b']');
            }
            DType::Array(base, shape) => {
                let size = base.size().unwrap_or(0);
                let each = shape.iter().product();
                self.small_array(base, shape, size, bytes, each, out);
            }
            other => {
                let element = Elements::fixed(bytes.to_vec());
                let value = match element_to_json(other, &element, 0) {
                    // Extended-precision floats that are not finite.
                    Value::String(_) if other.is_float() => Value::Null,
                    value => value,
                };
                out.extend_from_slice(value.to_string().as_bytes());
            }
        }
    }

    fn small_array(
        &self,
        base: &DType,
        shape: &[usize],
        size: usize,
        bytes: &[u8],
        each: usize,
        out: &mut Vec<u8>,
    ) {
        let Some((extent, inner)) = shape.split_first() else {
            return self.fixed(base, bytes, false, out);
        };
        let each = each.checked_div(*extent).unwrap_or(0);
        out.push(b'[');
        for index in 0..*extent {
            if index > 0 {
                out.push(b',');
            }
            let held = bytes.get(index * each * size..(index + 1) * each * size).unwrap_or_default();
            self.small_array(base, inner, size, held, each, out);
        }
        out.push(b']');
    }
}

fn float32(number: f32, out: &mut Vec<u8>) {
    if number.is_finite() {
        out.extend_from_slice(format!("{number:?}").as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

fn float64(number: f64, out: &mut Vec<u8>) {
    if number.is_finite() {
        out.extend_from_slice(format!("{number:?}").as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

fn text(bytes: &[u8], out: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(bytes);
    out.extend_from_slice(Value::from(text.as_ref()).to_string().as_bytes());
}

/// Writes the values of all attributes, or of the named ones.
pub(crate) fn attributes(attributes: &Attributes, keys: &[&str]) -> Result<Vec<u8>, Failure> {
    if let Some(missing) = keys.iter().find(|key| attributes.get(key).is_none()) {
        return Err(Failure::query(format!("there is no attribute {missing}")));
    }
    let mut out = vec![b'{'];
    let chosen = attributes.iter().filter(|(name, _)| keys.is_empty() || keys.contains(name));
    for (at, (name, attribute)) in chosen.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(Value::from(name).to_string().as_bytes());
        out.push(b':');
        match attribute {
            _ if attributes.stored(name).is_some_and(|stored| stored.no_space) => {
                out.extend_from_slice(b"null");
            }
            Attribute::Values(values) => write(values, false, &mut out),
            other => out.extend_from_slice(plain_document(other).to_string().as_bytes()),
        }
    }
    out.push(b'}');
    Ok(out)
}

/// Simplifies a JSON attribute to what HDF5 can represent: a number, a boolean, a text, or a list of one of these.
/// Anything else becomes text.
fn plain_document(attribute: &Attribute) -> Value {
    let document = attribute.to_json();
    match &document {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => document,
        Value::Array(items) if list_type(items).is_some() => document,
        other => Value::String(other.to_string()),
    }
}

/// The shape and the type of the result of [`plain_document`].
pub(crate) fn type_of_document(attribute: &Attribute) -> (Value, Value) {
    let document = attribute.to_json();
    let scalar = |dtype: &DType| (json!([]), types::of_dtype(dtype));
    match &document {
        Value::Array(items) => match list_type(items) {
            Some(dtype) => (json!([items.len()]), types::of_dtype(&dtype)),
            None => scalar(&DType::String),
        },
        other => scalar(&scalar_type(other).unwrap_or(DType::String)),
    }
}

fn scalar_type(value: &Value) -> Option<DType> {
    Some(match value {
        Value::Bool(_) => DType::Bool,
        Value::Number(number) if number.is_i64() => DType::Int64,
        Value::Number(number) if number.is_u64() => DType::UInt64,
        Value::Number(_) => DType::Float64,
        Value::String(_) => DType::String,
        _ => return None,
    })
}

/// The common type of a list's items. A mix of integers and floats is a list of floats.
fn list_type(items: &[Value]) -> Option<DType> {
    let mut all = items.iter().map(scalar_type);
    let first = all.next()??;
    all.try_fold(first, |common, own| match (common, own?) {
        (common, own) if common == own => Some(common),
        (DType::Float64 | DType::Int64, DType::Float64 | DType::Int64) => Some(DType::Float64),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use hyperslab::StructType;

    use super::*;

    fn json_of(values: &Values, flatten: bool) -> String {
        let mut out = Vec::new();
        write(values, flatten, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_written_as_orjson_does() -> hyperslab::Result<()> {
        let floats: Vec<u8> = [0.1_f32, f32::NAN, 1e20, 2.0].iter().flat_map(|f| f.to_ne_bytes()).collect();
        let values = Values::new(DType::Float32, &[2, 2], Elements::fixed(floats.clone()))?;
        assert_eq!(json_of(&values, false), "[[0.1,null],[1e20,2.0]]");
        assert_eq!(json_of(&values, true), "[0.1,null,1e20,2.0]");
        let pairs = Values::new(DType::Complex64, &[2], Elements::fixed(floats))?;
        assert_eq!(json_of(&pairs, false), "[[0.10000000149011612,null],[1.0000000200408773e20,2.0]]");
        let fields = StructType::packed([("a", DType::UInt8), ("t", DType::FixedBytes(3))]);
        let rows = Values::new(fields.into(), &[1], Elements::fixed(b"\x07ab\0".to_vec()))?;
        assert_eq!(json_of(&rows, false), r#"[[7,"ab"]]"#);
        assert_eq!(json_of(&Values::text("a\"b"), true), r#""a\"b""#);
        let small = DType::Array(DType::UInt8.into(), vec![2]);
        let small = Values::new(small, &[2], Elements::fixed(vec![1, 2, 3, 4]))?;
        assert_eq!(json_of(&small, false), "[[1,2],[3,4]]");
        assert_eq!(json_of(&small, true), "[1,2,3,4]");
        Ok(())
    }

    #[test]
    fn documents_have_types() {
        let of = |value: Value| type_of_document(&Attribute::Json(value));
        assert_eq!(of(json!([1, 2.5])).0, json!([2]));
        assert_eq!(of(json!([1, 2.5])).1["dtype"], "<f8");
        assert_eq!(of(json!({"a": 1})).1["class"], 3);
        assert_eq!(plain_document(&Attribute::Json(json!([[1], [2]]))), json!("[[1],[2]]"));
    }
}
