//! Arrays of complex numbers and of dates as arrays of real numbers.

use std::sync::Arc;

use hyperslab_core::{ArraySchema, DType, Error, Result};

use super::ArrayReader;
use crate::adapt::{ElementMap, Mapped, mapped_fill};

/// The real number that represents an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RealPart {
    /// The magnitude of a complex number.
    Magnitude,
    /// The phase of a complex number, in radians from -π to π.
    Phase,
    /// The real part of a complex number.
    Real,
    /// The imaginary part of a complex number.
    Imaginary,
    /// The ticks of a date or a duration since this tick. "Not a time" is NaN.
    TicksSince(i64),
}

impl ArrayReader {
    /// The array with real numbers instead of complex numbers, dates or durations. As for [decoded](Self::decoded) arrays, NaN marks
    /// missing values.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the elements do not have this part.
    pub fn real_part(&self, part: RealPart) -> Result<Self> {
        let schema = self.schema();
        let (dtype, map): (DType, Box<dyn ElementMap>) = match (&schema.dtype, part) {
            (DType::DateTime(_) | DType::Duration(_), RealPart::TicksSince(origin)) => {
                (DType::Float64, Box::new(TicksSince(origin)))
            }
            (DType::Complex64, RealPart::TicksSince(_)) | (DType::Complex128, RealPart::TicksSince(_)) => {
                return Err(refused(self, part));
            }
            (DType::Complex64, _) => (DType::Float32, Box::new(OfComplex64(part))),
            (DType::Complex128, _) => (DType::Float64, Box::new(OfComplex128(part))),
            _ => return Err(refused(self, part)),
        };
        let fill = mapped_fill(schema, &map, dtype.size().unwrap_or(8));
        let schema = ArraySchema { dtype, fill, ..schema.clone() };
        let array = Mapped::new(Arc::clone(self.inner()), schema, map);
        Ok(Self { decoded: true, ..self.with_array(Arc::new(array)) })
    }
}

fn refused(array: &ArrayReader, part: RealPart) -> Error {
    let dtype = &array.schema().dtype;
    Error::invalid(format!("{}: {part:?} of elements of type {dtype}", array.inner().name()))
}

#[derive(Debug)]
struct TicksSince(i64);

impl ElementMap for TicksSince {
    fn map(&self, from: &[u8], to: &mut [u8]) {
        for (from, to) in from.chunks_exact(8).zip(to.chunks_exact_mut(8)) {
            let number = match bytemuck::pod_read_unaligned::<i64>(from) {
                i64::MIN => f64::NAN,
                tick => (i128::from(tick) - i128::from(self.0)) as f64,
            };
            to.copy_from_slice(&number.to_ne_bytes());
        }
    }
}

macro_rules! of_complex {
    ($map:ident, $number:ty) => {
        #[derive(Debug)]
        struct $map(RealPart);

        impl ElementMap for $map {
            fn map(&self, from: &[u8], to: &mut [u8]) {
                const SIZE: usize = size_of::<$number>();
                for (from, to) in from.chunks_exact(2 * SIZE).zip(to.chunks_exact_mut(SIZE)) {
                    let [real, imaginary] = bytemuck::pod_read_unaligned::<[$number; 2]>(from);
                    let number = match self.0 {
                        RealPart::Phase => imaginary.atan2(real),
                        RealPart::Real => real,
                        RealPart::Imaginary => imaginary,
                        RealPart::Magnitude | RealPart::TicksSince(_) => real.hypot(imaginary),
                    };
                    to.copy_from_slice(&number.to_ne_bytes());
                }
            }
        }
    };
}

of_complex!(OfComplex64, f32);
of_complex!(OfComplex128, f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_complex_numbers() {
        let number = bytemuck::bytes_of(&[-3.0_f64, 4.0]).to_vec();
        let part = |part| {
            let mut out = [0; 8];
            OfComplex128(part).map(&number, &mut out);
            f64::from_ne_bytes(out)
        };
        assert_eq!([RealPart::Magnitude, RealPart::Real, RealPart::Imaginary].map(part), [5.0, -3.0, 4.0]);
        assert!((part(RealPart::Phase) - 4_f64.atan2(-3.0)).abs() < 1e-12);
    }

    #[test]
    fn not_a_time_is_missing() {
        let ticks: Vec<u8> = [5_i64, i64::MIN, i64::MAX].iter().flat_map(|tick| tick.to_ne_bytes()).collect();
        let mut out = vec![0; 24];
        TicksSince(-2).map(&ticks, &mut out);
        let numbers: Vec<f64> = out
            .chunks_exact(8)
            .map(|bytes| f64::from_ne_bytes(bytes.try_into().unwrap_or_default()))
            .collect();
        assert!(numbers[0] == 7.0 && numbers[1].is_nan() && numbers[2] > 9.2e18);
    }
}
