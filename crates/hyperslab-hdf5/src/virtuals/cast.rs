//! Converts numbers of a source to the type of the virtual dataset, as libhdf5 does: values out of range are clamped, fractions
//! are truncated.

use hyperslab_core::{DType, Values};

#[derive(Clone, Copy)]
enum Number {
    Integer(i128),
    Float(f64),
}

/// The values as numbers of another type; `None` if either type is not a number.
pub(super) fn cast(values: &Values, to: &DType) -> Option<Vec<u8>> {
    let bytes = values.elements.as_fixed()?;
    let size = values.dtype.size()?;
    let mut out = Vec::with_capacity(values.len().checked_mul(to.size()?)?);
    for element in bytes.chunks_exact(size) {
        put(number(&values.dtype, element)?, to, &mut out)?;
    }
    Some(out)
}

fn number(dtype: &DType, bytes: &[u8]) -> Option<Number> {
    macro_rules! read {
        ($type:ty, $as:ident, $wide:ty) => {
            Number::$as(<$wide>::from(<$type>::from_ne_bytes(bytes.try_into().ok()?)))
        };
    }
    Some(match dtype {
        DType::Bool | DType::UInt8 => read!(u8, Integer, i128),
        DType::Int8 => read!(i8, Integer, i128),
        DType::Int16 => read!(i16, Integer, i128),
        DType::Int32 => read!(i32, Integer, i128),
        DType::Int64 => read!(i64, Integer, i128),
        DType::UInt16 => read!(u16, Integer, i128),
        DType::UInt32 => read!(u32, Integer, i128),
        DType::UInt64 => read!(u64, Integer, i128),
        DType::Float16 => Number::Float(half::f16::from_ne_bytes(bytes.try_into().ok()?).to_f64()),
        DType::Float32 => read!(f32, Float, f64),
        DType::Float64 => read!(f64, Float, f64),
        DType::Enum(named) => return number(&named.base, bytes),
        _ => return None,
    })
}

fn put(number: Number, to: &DType, out: &mut Vec<u8>) -> Option<()> {
    macro_rules! integer {
        ($type:ty) => {{
            let value = match number {
                Number::Integer(value) => {
                    value.clamp(i128::from(<$type>::MIN), i128::from(<$type>::MAX)) as $type
                }
                // Casting a float truncates the fraction and saturates.
                Number::Float(value) => value as $type,
            };
            out.extend_from_slice(&value.to_ne_bytes());
        }};
    }
    let float = match number {
        Number::Integer(value) => value as f64,
        Number::Float(value) => value,
    };
    match to {
        DType::Int8 => integer!(i8),
        DType::Int16 => integer!(i16),
        DType::Int32 => integer!(i32),
        DType::Int64 => integer!(i64),
        DType::UInt8 => integer!(u8),
        DType::UInt16 => integer!(u16),
        DType::UInt32 => integer!(u32),
        DType::UInt64 => integer!(u64),
        DType::Float16 => out.extend_from_slice(&half::f16::from_f64(float).to_ne_bytes()),
        DType::Float32 => out.extend_from_slice(&(float as f32).to_ne_bytes()),
        DType::Float64 => out.extend_from_slice(&float.to_ne_bytes()),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_core::Elements;

    #[test]
    fn out_of_range_values_are_clamped() {
        let bytes: Vec<u8> = [300_i32, -5, 7].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let values = Values::new(DType::Int32, &[3], Elements::fixed(bytes)).unwrap();
        assert_eq!(cast(&values, &DType::UInt8), Some(vec![255, 0, 7]));
        assert!(cast(&values, &DType::String).is_none());
    }
}
