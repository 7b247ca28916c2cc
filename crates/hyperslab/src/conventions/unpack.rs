//! Unpacks stored numbers: missing values become NaN, all others are scaled and shifted.

use hyperslab_core::{DType, Error, Number, Result};
use smallvec::SmallVec;

use crate::adapt::ElementMap;

/// The parameters of unpacking.
pub(super) struct UnpackSpec<'a> {
    pub(super) missing: &'a [Number],
    /// Values outside this range are missing too.
    pub(super) valid: (Option<Number>, Option<Number>),
    pub(super) scale: Option<f64>,
    pub(super) offset: Option<f64>,
}

/// The function from elements of type `from` to floats of type `to`.
pub(super) fn unpack(
    from: &DType,
    to: &DType,
    spec: &UnpackSpec<'_>,
    name: &str,
) -> Result<Box<dyn ElementMap>> {
    macro_rules! pairs {
        ($($from:ident $stored:ty),*) => {
            match (from, to) {
                $((DType::$from, DType::Float32) => Box::new(Unpack::<$stored, f32>::new(spec)),
                (DType::$from, DType::Float64) => Box::new(Unpack::<$stored, f64>::new(spec)),)*
                (DType::Float16, DType::Float16) => Box::new(Unpack::<half::f16, half::f16>::new(spec)),
                _ => return Err(Error::unsupported(name, format!("decoding {from} as {to}"))),
            }
        };
    }
    Ok(pairs!(
        Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64,
        Float16 half::f16, Float32 f32, Float64 f64
    ))
}

/// A stored number.
trait Stored: bytemuck::Pod + PartialOrd + Send + Sync + std::fmt::Debug {
    fn from_number(number: Number) -> Self;
}

/// A decoded number.
trait Decoded<S>: bytemuck::Pod + Send + Sync + std::fmt::Debug {
    const NAN: Self;
    fn cast(stored: S) -> Self;
    fn factor(number: f64) -> Self;
    fn scaled(self, scale: Self) -> Self;
    fn shifted(self, offset: Self) -> Self;
}

macro_rules! stored {
    ($($type:ty),*) => {$(
        impl Stored for $type {
            fn from_number(number: Number) -> Self {
                match number {
                    Number::Integer(value) => value as Self,
                    Number::Float(value) => value as Self,
                }
            }
        }
        decoded!($type, f32, |value: $type| value as f32);
        decoded!($type, f64, |value: $type| value as f64);
    )*};
}

macro_rules! decoded {
    ($stored:ty, $type:ty, $cast:expr) => {
        impl Decoded<$stored> for $type {
            const NAN: Self = Self::NAN;
            fn cast(stored: $stored) -> Self {
                $cast(stored)
            }
            fn factor(number: f64) -> Self {
                number as Self
            }
            fn scaled(self, scale: Self) -> Self {
                self * scale
            }
            fn shifted(self, offset: Self) -> Self {
                self + offset
            }
        }
    };
}

stored!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
decoded!(half::f16, f32, half::f16::to_f32);
decoded!(half::f16, f64, half::f16::to_f64);

impl Stored for half::f16 {
    fn from_number(number: Number) -> Self {
        match number {
            Number::Integer(value) => Self::from_f64(value as f64),
            Number::Float(value) => Self::from_f64(value),
        }
    }
}

/// Half floats are never packed: only missing values are replaced.
impl Decoded<Self> for half::f16 {
    const NAN: Self = Self::NAN;
    fn cast(stored: Self) -> Self {
        stored
    }
    fn factor(number: f64) -> Self {
        Self::from_f64(number)
    }
    fn scaled(self, _scale: Self) -> Self {
        self
    }
    fn shifted(self, _offset: Self) -> Self {
        self
    }
}

#[derive(Debug)]
struct Unpack<S, D> {
    missing: SmallVec<[S; 2]>,
    low: Option<S>,
    high: Option<S>,
    scale: Option<D>,
    offset: Option<D>,
}

impl<S: Stored, D: Decoded<S>> Unpack<S, D> {
    fn new(spec: &UnpackSpec<'_>) -> Self {
        Self {
            missing: spec.missing.iter().map(|number| S::from_number(*number)).collect(),
            low: spec.valid.0.map(S::from_number),
            high: spec.valid.1.map(S::from_number),
            scale: spec.scale.map(D::factor),
            offset: spec.offset.map(D::factor),
        }
    }
}

impl<S: Stored, D: Decoded<S>> ElementMap for Unpack<S, D> {
    fn map(&self, from: &[u8], to: &mut [u8]) {
        let elements = from.chunks_exact(size_of::<S>()).zip(to.chunks_exact_mut(size_of::<D>()));
        for (from, to) in elements {
            let stored = bytemuck::pod_read_unaligned::<S>(from);
            let missing = self.missing.contains(&stored)
                || self.low.is_some_and(|low| stored < low)
                || self.high.is_some_and(|high| stored > high);
            let mut value = if missing { D::NAN } else { D::cast(stored) };
            if let Some(scale) = self.scale {
                value = value.scaled(scale);
            }
            if let Some(offset) = self.offset {
                value = value.shifted(offset);
            }
            to.copy_from_slice(bytemuck::bytes_of(&value));
        }
    }
}
