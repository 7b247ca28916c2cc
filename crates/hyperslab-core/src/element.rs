//! Rust types for elements.

use crate::DType;

/// A Rust type that can represent elements of some data types.
///
/// Integers also represent types stored as integers: `u8` for booleans, `i64` for times, any integer for enumerations.
pub trait Element: bytemuck::Pod {
    /// The name of the type, for messages.
    const NAME: &'static str;

    /// Returns true if elements of this data type are values of the Rust type.
    fn is(dtype: &DType) -> bool;
}

macro_rules! elements {
    ($($rust:ty: $($dtype:pat_param)|+,)*) => {
        $(impl Element for $rust {
            const NAME: &'static str = stringify!($rust);

            fn is(dtype: &DType) -> bool {
                match dtype {
                    $($dtype)|+ => true,
                    DType::Enum(named) => Self::is(&named.base),
                    _ => false,
                }
            }
        })*
    };
}

elements! {
    u8: DType::UInt8 | DType::Bool,
    u16: DType::UInt16,
    u32: DType::UInt32,
    u64: DType::UInt64,
    i8: DType::Int8,
    i16: DType::Int16,
    i32: DType::Int32,
    i64: DType::Int64 | DType::DateTime(_) | DType::Duration(_),
    half::f16: DType::Float16,
    f32: DType::Float32,
    f64: DType::Float64,
    [f32; 2]: DType::Complex64,
    [f64; 2]: DType::Complex128,
}
