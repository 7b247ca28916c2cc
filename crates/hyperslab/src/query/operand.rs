//! Operands of folds: every stored type becomes one of four that have kernels.

use std::fmt::Debug;

use half::f16;
use hyperslab_core::{DType, Error, Result};

/// The number of elements loaded at once if they cannot be used in place.
pub(super) const BLOCK: usize = 1024;

/// A type that has kernels: `f32`, `f64`, `i64`, `u64`.
pub(super) trait Operand: bytemuck::Pod + PartialOrd + Send + Sync + Debug {
    /// Whether it is a floating-point type.
    const FLOAT: bool;
    /// Whether `f64` has no digits to spare for a sum of these.
    const WIDE: bool;
    /// The smallest and the largest value.
    const LOW: Self;
    const HIGH: Self;

    fn to_f64(self) -> f64;
    fn to_i128(self) -> i128;
    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;
    fn from_i128(value: i128) -> Self;
    /// The next larger and the next smaller value. The extremes stay unchanged.
    fn up(self) -> Self;
    fn down(self) -> Self;
    /// The sum of at most [`BLOCK`] integers.
    fn sum_exact(values: &[Self]) -> i128;

    fn is_nan(self) -> bool {
        Self::FLOAT && self.to_f64().is_nan()
    }

    /// Returns true if the bits are the same.
    fn same(self, other: Self) -> bool {
        bytemuck::bytes_of(&self) == bytemuck::bytes_of(&other)
    }

    /// Its bits.
    fn bits(self) -> u64;

    /// A number that sorts like the value. NaN comes last, and both zeros are equal.
    fn key(self) -> u64;
}

/// The type that a key represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum KeyKind {
    Float,
    Signed,
    Unsigned,
}

/// The key of NaN.
pub(super) const NAN_KEY: u64 = u64::MAX;

const SIGN: u64 = 1 << 63;

fn float_key(value: f64) -> u64 {
    if value.is_nan() {
        return NAN_KEY;
    }
    // -0 becomes 0.
    let bits = (value + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// The float with this key.
pub(super) fn key_float(key: u64) -> f64 {
    match key {
        NAN_KEY => f64::NAN,
        key if key & SIGN != 0 => f64::from_bits(key & !SIGN),
        key => f64::from_bits(!key),
    }
}

/// The integer with this key.
pub(super) fn key_integer(key: u64, kind: KeyKind) -> i128 {
    match kind {
        KeyKind::Unsigned => i128::from(key),
        _ => i128::from((key ^ SIGN) as i64),
    }
}

macro_rules! float_operand {
    ($type:ty, $wide:literal) => {
        impl Operand for $type {
            const FLOAT: bool = true;
            const WIDE: bool = $wide;
            const LOW: Self = <$type>::NEG_INFINITY;
            const HIGH: Self = <$type>::INFINITY;

            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn to_i128(self) -> i128 {
                self as i128
            }
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            fn from_i128(value: i128) -> Self {
                value as $type
            }
            fn up(self) -> Self {
                self.next_up()
            }
            fn down(self) -> Self {
                self.next_down()
            }
            fn sum_exact(_: &[Self]) -> i128 {
                0
            }
            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }
            fn key(self) -> u64 {
                float_key(f64::from(self))
            }
        }
    };
}

float_operand!(f32, false);
float_operand!(f64, true);

macro_rules! integer_operand {
    ($type:ty, $flip:expr) => {
        impl Operand for $type {
            const FLOAT: bool = false;
            const WIDE: bool = true;
            const LOW: Self = <$type>::MIN;
            const HIGH: Self = <$type>::MAX;

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn to_i128(self) -> i128 {
                i128::from(self)
            }
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            fn from_i128(value: i128) -> Self {
                value.clamp(i128::from(Self::MIN), i128::from(Self::MAX)) as $type
            }
            fn up(self) -> Self {
                self.saturating_add(1)
            }
            fn down(self) -> Self {
                self.saturating_sub(1)
            }
            fn sum_exact(values: &[Self]) -> i128 {
                // Sum the 32-bit halves separately: 2^31 of either fit in 64 bits.
                let (mut high, mut low) = ([0 as $type; 4], [0_u64; 4]);
                let (fours, rest) = values.as_chunks::<4>();
                for four in fours {
                    for lane in 0..4 {
                        high[lane] += four[lane] >> 32;
                        low[lane] += four[lane] as u64 & 0xffff_ffff;
                    }
                }
                let whole = |high: $type, low: u64| (i128::from(high) << 32) + i128::from(low);
                let rest: i128 = rest.iter().map(|value| i128::from(*value)).sum();
                (0..4).map(|lane| whole(high[lane], low[lane])).sum::<i128>() + rest
            }
            fn bits(self) -> u64 {
                self as u64
            }
            fn key(self) -> u64 {
                self as u64 ^ $flip
            }
        }
    };
}

integer_operand!(i64, SIGN);
integer_operand!(u64, 0);

/// A stored type, and the operand type in which it is folded.
pub(super) trait Cell: bytemuck::Pod {
    type Operand: Operand;

    fn widen(self) -> Self::Operand;

    /// The elements in place, if they are already operands and aligned.
    fn direct(_: &[u8]) -> Option<&[Self::Operand]> {
        None
    }
}

macro_rules! cell {
    ($($type:ty => $operand:ty: $widen:expr;)*) => {$(
        impl Cell for $type {
            type Operand = $operand;
            fn widen(self) -> $operand {
                $widen(self)
            }
        }
    )*};
}

macro_rules! own_operand {
    ($($type:ty),*) => {$(
        impl Cell for $type {
            type Operand = Self;
            fn widen(self) -> Self {
                self
            }
            fn direct(bytes: &[u8]) -> Option<&[Self]> {
                bytemuck::try_cast_slice(bytes).ok()
            }
        }
    )*};
}

cell! {
    i8 => i64: i64::from;
    i16 => i64: i64::from;
    i32 => i64: i64::from;
    u8 => i64: i64::from;
    u16 => i64: i64::from;
    u32 => i64: i64::from;
    f16 => f32: f16::to_f32;
}
own_operand!(i64, u64, f32, f64);

/// Loads `out.len()` elements, `stride` bytes apart, starting at `offset`. All are inside `bytes`.
pub(super) fn load<C: Cell>(bytes: &[u8], offset: usize, stride: isize, out: &mut [C::Operand]) {
    let size = size_of::<C>();
    if stride == size as isize {
        let run = &bytes[offset..offset + out.len() * size];
        for (out, cell) in out.iter_mut().zip(run.chunks_exact(size)) {
            *out = bytemuck::pod_read_unaligned::<C>(cell).widen();
        }
        return;
    }
    let mut at = offset;
    for out in out {
        *out = bytemuck::pod_read_unaligned::<C>(&bytes[at..at + size]).widen();
        at = at.wrapping_add_signed(stride);
    }
}

/// The stored types that can be folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
}

impl Stored {
    /// How elements of this type are stored.
    pub(super) fn of(dtype: &DType, name: &str) -> Result<Self> {
        Ok(match dtype {
            DType::Bool | DType::UInt8 => Self::U8,
            DType::Int8 => Self::I8,
            DType::Int16 => Self::I16,
            DType::Int32 => Self::I32,
            DType::Int64 | DType::DateTime(_) | DType::Duration(_) => Self::I64,
            DType::UInt16 => Self::U16,
            DType::UInt32 => Self::U32,
            DType::UInt64 => Self::U64,
            DType::Float16 => Self::F16,
            DType::Float32 => Self::F32,
            DType::Float64 => Self::F64,
            DType::Enum(named) => return Self::of(&named.base, name),
            other => {
                return Err(Error::invalid(format!("{name}: elements of type {other} cannot be reduced")));
            }
        })
    }

    /// The type that the keys of its operand represent.
    pub(super) const fn key_kind(self) -> KeyKind {
        match self {
            Self::F16 | Self::F32 | Self::F64 => KeyKind::Float,
            Self::U64 => KeyKind::Unsigned,
            _ => KeyKind::Signed,
        }
    }
}

/// Calls a function that is generic over the stored type.
macro_rules! for_stored {
    ($stored:expr, $work:ident ( $($argument:expr),* $(,)? )) => {
        match $stored {
            $crate::query::operand::Stored::I8 => $work::<i8>($($argument),*),
            $crate::query::operand::Stored::I16 => $work::<i16>($($argument),*),
            $crate::query::operand::Stored::I32 => $work::<i32>($($argument),*),
            $crate::query::operand::Stored::I64 => $work::<i64>($($argument),*),
            $crate::query::operand::Stored::U8 => $work::<u8>($($argument),*),
            $crate::query::operand::Stored::U16 => $work::<u16>($($argument),*),
            $crate::query::operand::Stored::U32 => $work::<u32>($($argument),*),
            $crate::query::operand::Stored::U64 => $work::<u64>($($argument),*),
            $crate::query::operand::Stored::F16 => $work::<half::f16>($($argument),*),
            $crate::query::operand::Stored::F32 => $work::<f32>($($argument),*),
            $crate::query::operand::Stored::F64 => $work::<f64>($($argument),*),
        }
    };
}
pub(super) use for_stored;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_values(a in any::<f64>(), b in any::<f64>(), i in any::<i64>(), j in any::<i64>()) {
            prop_assert_eq!(a.key().cmp(&b.key()), a.partial_cmp(&b).unwrap());
            prop_assert_eq!(key_float(a.key()), a);
            prop_assert_eq!(i.key().cmp(&j.key()), i.cmp(&j));
            prop_assert_eq!(key_integer(i.key(), KeyKind::Signed), i128::from(i));
        }

        #[test]
        fn integers_are_summed_exactly(values in prop::collection::vec(any::<i64>(), 0..40), more in prop::collection::vec(any::<u64>(), 0..40)) {
            prop_assert_eq!(i64::sum_exact(&values), values.iter().map(|value| i128::from(*value)).sum::<i128>());
            prop_assert_eq!(u64::sum_exact(&more), more.iter().map(|value| i128::from(*value)).sum::<i128>());
        }
    }

    #[test]
    fn nan_comes_last() {
        assert!(f64::NAN.key() > f64::INFINITY.key());
        assert!((-f64::NAN).key() > f64::INFINITY.key());
        assert_eq!((-0.0_f32).key(), 0.0_f32.key());
        assert!(key_float(f32::NAN.key()).is_nan());
    }
}
