//! Parses attribute values as users type them.

use hyperslab_core::{Attribute, DType, Elements, Error, Extents, Result, Values};
use serde_json::Value;

/// Parses an attribute: a number, a list of numbers (`[0, 1]`), `true`, `"text"` in quotation marks, or plain text.
///
/// Numbers take the type `wanted` if it is given and can hold them; otherwise `int32`, `int64` or `float64`.
///
/// ```
/// use hyperslab::edit::parse_attribute;
/// assert_eq!(parse_attribute("K", None)?.to_json(), "K");
/// assert_eq!(parse_attribute("\"5\"", None)?.to_json(), "5");
/// assert_eq!(parse_attribute("[1, 2.5]", None)?.to_json(), serde_json::json!([1.0, 2.5]));
/// assert!(parse_attribute("300", Some(&hyperslab::DType::UInt8)).is_err());
/// # Ok::<(), hyperslab::Error>(())
/// ```
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for a number that the wanted type cannot hold.
pub fn parse_attribute(text: &str, wanted: Option<&DType>) -> Result<Attribute> {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return text_or_special(text, wanted) };
    match &value {
        Value::String(text) => Ok(Attribute::from(text.as_str())),
        Value::Number(_) => encode(&[number(&value)], &[], wanted, text),
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_number) => {
            let numbers: Vec<Number> = items.iter().map(number).collect();
            encode(&numbers, &[items.len() as u64], wanted, text)
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_string) => {
            let texts = items.iter().filter_map(Value::as_str);
            let values = Values::new(DType::String, &[items.len() as u64], Elements::variable(texts))?;
            Ok(Attribute::Values(values))
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_boolean) => {
            let flags: Vec<u8> = items.iter().map(|item| u8::from(*item == Value::Bool(true))).collect();
            let values = Values::new(DType::Bool, &[items.len() as u64], Elements::fixed(flags))?;
            Ok(Attribute::Values(values))
        }
        Value::Bool(flag) => {
            let values = Values::scalar(DType::Bool, Elements::fixed(vec![u8::from(*flag)]))?;
            Ok(Attribute::Values(values))
        }
        _ => Ok(Attribute::Json(value)),
    }
}

/// The only number of an attribute as an element of this type.
pub(super) fn number_of_type(attribute: &Attribute, dtype: &DType) -> Result<Option<Values>> {
    let document = attribute.to_json();
    let (item, shape): (_, &[u64]) = match &document {
        Value::Array(items) if items.len() == 1 => (&items[0], &[1]),
        other => (other, &[]),
    };
    let of_float = matches!(attribute, Attribute::Values(values) if values.dtype.is_float());
    let number = match item {
        Value::Number(_) => number(item),
        Value::String(text) if of_float => match special(text) {
            Some(special) => Number::Float(special),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    match encode(&[number], shape, Some(dtype), &item.to_string())? {
        Attribute::Values(values) => Ok(Some(values)),
        _ => Ok(None),
    }
}

/// JSON has no `NaN` or infinities.
fn special(text: &str) -> Option<f64> {
    match text.to_ascii_lowercase().as_str() {
        "nan" => Some(f64::NAN),
        "inf" | "infinity" => Some(f64::INFINITY),
        "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Text, or numbers of which some are not finite.
fn text_or_special(text: &str, wanted: Option<&DType>) -> Result<Attribute> {
    let list = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    if let Some(list) = list {
        let item = |item: &str| match special(item.trim()) {
            Some(special) => Some(Number::Float(special)),
            None => {
                serde_json::from_str::<Value>(item).ok().filter(Value::is_number).map(|item| number(&item))
            }
        };
        let Some(numbers) = list.split(',').map(item).collect::<Option<Vec<Number>>>() else {
            return Ok(Attribute::from(text));
        };
        return encode(&numbers, &[numbers.len() as u64], wanted, text);
    }
    match (special(text), wanted) {
        (Some(special), Some(dtype)) if dtype.is_float() => {
            encode(&[Number::Float(special)], &[], Some(dtype), text)
        }
        _ => Ok(Attribute::from(text)),
    }
}

#[derive(Debug, Clone, Copy)]
enum Number {
    Integer(i128),
    Float(f64),
}

fn number(value: &Value) -> Number {
    match (value.as_i64(), value.as_u64()) {
        (Some(number), _) => Number::Integer(number.into()),
        (_, Some(number)) => Number::Integer(number.into()),
        _ => Number::Float(value.as_f64().unwrap_or(f64::NAN)),
    }
}

/// Encodes numbers in the wanted type if that is numeric, else in the narrowest of the types without a `wanted`.
fn encode(numbers: &[Number], shape: &[u64], wanted: Option<&DType>, text: &str) -> Result<Attribute> {
    let holds = |low: i128, high: i128| {
        numbers.iter().all(|number| matches!(number, Number::Integer(value) if (low..=high).contains(value)))
    };
    let dtype = match wanted {
        Some(dtype) if dtype.is_integer() || dtype.is_float() => dtype.clone(),
        _ if holds(i128::from(i32::MIN), i128::from(i32::MAX)) => DType::Int32,
        _ if holds(i128::from(i64::MIN), i128::from(i64::MAX)) => DType::Int64,
        _ if holds(0, i128::from(u64::MAX)) => DType::UInt64,
        _ => DType::Float64,
    };
    let mut bytes = Vec::with_capacity(numbers.len() * dtype.size().unwrap_or(8));
    let refused = || Error::invalid(format!("{text} is not a value of type {dtype}"));
    for number in numbers {
        let integer = match number {
            Number::Integer(value) => Some(*value),
            Number::Float(value) if value.fract() == 0.0 && value.abs() < 1e18 => Some(*value as i128),
            Number::Float(_) => None,
        };
        let float = match number {
            Number::Integer(value) => *value as f64,
            Number::Float(value) => *value,
        };
        macro_rules! integer {
            ($type:ty) => {
                bytes.extend_from_slice(
                    &<$type>::try_from(integer.ok_or_else(refused)?).map_err(|_| refused())?.to_ne_bytes(),
                )
            };
        }
        match dtype {
            DType::Int8 => integer!(i8),
            DType::Int16 => integer!(i16),
            DType::Int32 => integer!(i32),
            DType::Int64 => integer!(i64),
            DType::UInt8 => integer!(u8),
            DType::UInt16 => integer!(u16),
            DType::UInt32 => integer!(u32),
            DType::UInt64 => integer!(u64),
            DType::Float16 => bytes.extend_from_slice(&half::f16::from_f64(float).to_ne_bytes()),
            DType::Float32 => bytes.extend_from_slice(&(float as f32).to_ne_bytes()),
            DType::Float64 => bytes.extend_from_slice(&float.to_ne_bytes()),
            _ => return Err(refused()),
        }
    }
    let values =
        Values { dtype: dtype.clone(), shape: Extents::from_slice(shape), elements: Elements::fixed(bytes) };
    Ok(Attribute::Values(values))
}
