//! Numbers in attributes, with the type in which they were given.

use std::fmt;

use hyperslab_core::{Attribute, DType, Number, Values};
use serde_json::Value;

/// A number given in an attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stated {
    pub(super) number: Number,
    /// Whether it was given in single precision.
    pub(super) single: bool,
}

impl fmt::Display for Stated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Number::Integer(value) => write!(f, "{value}"),
            Number::Float(value) => write!(f, "{value:?}"),
        }
    }
}

impl Stated {
    pub(super) fn to_f64(self) -> f64 {
        match self.number {
            Number::Integer(value) => value as f64,
            Number::Float(value) => value,
        }
    }

    /// A number as an element of a type; `None` if the type has no such value.
    pub(super) fn as_element(number: Number, dtype: &DType) -> Option<Number> {
        if dtype.is_float() {
            let value = match number {
                Number::Integer(value) => value as f64,
                Number::Float(value) => value,
            };
            let nearest = match dtype {
                DType::Float16 => half::f16::from_f64(value).to_f64(),
                DType::Float32 => f64::from(value as f32),
                _ => value,
            };
            let same = nearest == value || value.is_nan();
            return same.then_some(Number::Float(nearest));
        }
        let value = match number {
            Number::Integer(value) => value,
            Number::Float(value) if value.fract() == 0.0 && value.abs() < 1e38 => value as i128,
            // An integer is never NaN.
            Number::Float(_) => return None,
        };
        let bits = 8 * dtype.size()? as u32;
        let signed = matches!(dtype, DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64);
        let range = if signed { -(1_i128 << (bits - 1))..1 << (bits - 1) } else { 0..1 << bits };
        range.contains(&value).then_some(Number::Integer(value))
    }
}

/// The numbers in an attribute; `None` if it holds anything else.
pub(super) fn numbers(attribute: &Attribute) -> Option<Vec<Stated>> {
    match attribute {
        Attribute::Values(values) => typed(values),
        Attribute::Json(Value::Array(items)) => items.iter().map(untyped).collect(),
        Attribute::Json(value) => untyped(value).map(|stated| vec![stated]),
        _ => None,
    }
}

fn untyped(value: &Value) -> Option<Stated> {
    let number = match value {
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Number::Integer(value.into()),
            (_, Some(value)) => Number::Integer(value.into()),
            _ => Number::Float(number.as_f64()?),
        },
        _ => return None,
    };
    Some(Stated { number, single: false })
}

fn typed(values: &Values) -> Option<Vec<Stated>> {
    let bytes = values.elements.as_fixed()?;
    macro_rules! read {
        ($type:ty, $number:expr) => {
            bytes
                .chunks_exact(size_of::<$type>())
                .map(|bytes| $number(bytemuck::pod_read_unaligned::<$type>(bytes)))
                .collect::<Vec<Number>>()
        };
    }
    let numbers = match super::number_type(&values.dtype) {
        DType::Int8 => read!(i8, |value| Number::Integer(i128::from(value))),
        DType::Int16 => read!(i16, |value| Number::Integer(i128::from(value))),
        DType::Int32 => read!(i32, |value| Number::Integer(i128::from(value))),
        DType::Int64 => read!(i64, |value| Number::Integer(i128::from(value))),
        DType::UInt8 => read!(u8, |value| Number::Integer(i128::from(value))),
        DType::UInt16 => read!(u16, |value| Number::Integer(i128::from(value))),
        DType::UInt32 => read!(u32, |value| Number::Integer(i128::from(value))),
        DType::UInt64 => read!(u64, |value| Number::Integer(i128::from(value))),
        DType::Float16 => read!(half::f16, |value| Number::Float(half::f16::to_f64(value))),
        DType::Float32 => read!(f32, |value| Number::Float(f64::from(value))),
        DType::Float64 => read!(f64, Number::Float),
        _ => return None,
    };
    let single = values.dtype == DType::Float32;
    Some(numbers.into_iter().map(|number| Stated { number, single }).collect())
}
