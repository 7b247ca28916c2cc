//! Stored numbers of any type, as 64-bit floats.

use hyperslab_core::DType;

/// Calls `$body` with the number type of `$dtype` (as `T`, its size as `SIZE` and how it is read as `get`).
macro_rules! with_number_type {
    ($dtype:expr, $body:ident ! ($($argument:expr),*)) => {
        match $dtype {
            DType::Float16 => $body!(u16, |bytes| half::f16::from_le_bytes(bytes).into() $(, $argument)*),
            DType::Float32 => $body!(f32, |bytes| f32::from_le_bytes(bytes).into() $(, $argument)*),
            DType::Float64 => $body!(f64, f64::from_le_bytes $(, $argument)*),
            DType::Int8 => $body!(i8, |bytes| i8::from_le_bytes(bytes).into() $(, $argument)*),
            DType::Int16 => $body!(i16, |bytes| i16::from_le_bytes(bytes).into() $(, $argument)*),
            DType::Int32 => $body!(i32, |bytes| i32::from_le_bytes(bytes).into() $(, $argument)*),
            DType::Int64 => $body!(i64, |bytes| i64::from_le_bytes(bytes) as f64 $(, $argument)*),
            DType::UInt8 => $body!(u8, |bytes| u8::from_le_bytes(bytes).into() $(, $argument)*),
            DType::UInt16 => $body!(u16, |bytes| u16::from_le_bytes(bytes).into() $(, $argument)*),
            DType::UInt32 => $body!(u32, |bytes| u32::from_le_bytes(bytes).into() $(, $argument)*),
            _ => $body!(u64, |bytes| u64::from_le_bytes(bytes) as f64 $(, $argument)*),
        }
    };
}
pub(crate) use with_number_type;

/// All numbers.
pub(crate) fn to_f64(dtype: &DType, bytes: &[u8]) -> Vec<f64> {
    macro_rules! all {
        ($type:ty, $get:expr) => {{
            const SIZE: usize = size_of::<$type>();
            let get: fn([u8; SIZE]) -> f64 = $get;
            bytes.as_chunks::<SIZE>().0.iter().map(|word| get(*word)).collect()
        }};
    }
    with_number_type!(dtype, all!())
}

/// A number, as it is stored in a floating-point type.
pub(crate) fn put_float(dtype: &DType, number: f64, to: &mut Vec<u8>) {
    match dtype {
        DType::Float64 => to.extend(number.to_le_bytes()),
        DType::Float16 => to.extend(half::f16::from_f64(number).to_le_bytes()),
        _ => to.extend((number as f32).to_le_bytes()),
    }
}
