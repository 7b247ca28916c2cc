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
        Value::Number(_) => numbers(std::slice::from_ref(&value), &[], wanted, text),
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_number) => {
            numbers(items, &[items.len() as u64], wanted, text)
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_string) => {
            let texts = items.iter().filter_map(Value::as_str);
            let values = Values::new(DType::String, &[items.len() as u64], Elements::variable(texts))?;
            Ok(Attribute::Values(values))
        }
        Value::Bool(flag) => {
            let values = Values::scalar(DType::Bool, Elements::fixed(vec![u8::from(*flag)]))?;
            Ok(Attribute::Values(values))
        }
        _ => Ok(Attribute::Json(value)),
    }
}

/// JSON has no `NaN` or infinities.
fn text_or_special(text: &str, wanted: Option<&DType>) -> Result<Attribute> {
    let special = match text.to_ascii_lowercase().as_str() {
        "nan" => f64::NAN,
        "inf" | "infinity" => f64::INFINITY,
        "-inf" | "-infinity" => f64::NEG_INFINITY,
        _ => return Ok(Attribute::from(text)),
    };
    match wanted {
        Some(dtype) if dtype.is_float() => encode(&[Number::Float(special)], &[], dtype, text),
        _ => Ok(Attribute::from(text)),
    }
}

#[derive(Debug, Clone, Copy)]
enum Number {
    Integer(i128),
    Float(f64),
}

fn numbers(items: &[Value], shape: &[u64], wanted: Option<&DType>, text: &str) -> Result<Attribute> {
    let number = |value: &Value| match (value.as_i64(), value.as_u64()) {
        (Some(number), _) => Number::Integer(number.into()),
        (_, Some(number)) => Number::Integer(number.into()),
        _ => Number::Float(value.as_f64().unwrap_or(f64::NAN)),
    };
    let numbers: Vec<Number> = items.iter().map(number).collect();
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
    encode(&numbers, shape, &dtype, text)
}

fn encode(numbers: &[Number], shape: &[u64], dtype: &DType, text: &str) -> Result<Attribute> {
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
