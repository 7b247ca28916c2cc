//! Floating-point numbers as scaled integers (filter 15). Lossy.
//!
//! Written is `(x − offset) / scale`, in the type's own precision, rounded half away from zero, as an integer with sign of the given
//! width; read is `scale · i + offset` in 64-bit precision, converted to the type.

use crate::error::{Result, invalid, size as size_error};

const CODEC: &str = "tiledb float scale";

/// The filter's options.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FloatScale {
    /// What an integer's step is worth.
    pub scale: f64,
    /// What the integer 0 stands for.
    pub offset: f64,
    /// Bytes of an integer: 1, 2, 4 or 8.
    pub width: usize,
}

impl FloatScale {
    fn check(&self, float: usize) -> Result<()> {
        if !matches!(float, 4 | 8) || !matches!(self.width, 1 | 2 | 4 | 8) {
            return Err(invalid(CODEC, format!("floats of {float} bytes as integers of {}", self.width)));
        }
        Ok(())
    }

    /// Appends the part `src`, floats of `float` bytes (4 or 8), encoded, to `out`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::CodecError::Invalid) where `src` is not such floats.
    pub fn encode(&self, float: usize, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.check(float)?;
        if !src.len().is_multiple_of(float) {
            return Err(invalid(CODEC, format!("{} bytes of floats of {float} bytes", src.len())));
        }
        let mut push = |value: i64| {
            let value = match self.width {
                1 => value.clamp(i8::MIN.into(), i8::MAX.into()),
                2 => value.clamp(i16::MIN.into(), i16::MAX.into()),
                4 => value.clamp(i32::MIN.into(), i32::MAX.into()),
                _ => value,
            };
            out.extend_from_slice(&value.to_le_bytes()[..self.width]);
        };
        if float == 4 {
            let (scale, offset) = (self.scale as f32, self.offset as f32);
            for bytes in src.as_chunks::<4>().0 {
                push(((f32::from_le_bytes(*bytes) - offset) / scale).round() as i64);
            }
        } else {
            for bytes in src.as_chunks::<8>().0 {
                push(((f64::from_le_bytes(*bytes) - self.offset) / self.scale).round() as i64);
            }
        }
        Ok(())
    }

    /// Decodes the part `src` into `out`, floats of `float` bytes, which it must fill.
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) where there are more or fewer integers.
    pub fn decode(&self, float: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
        self.check(float)?;
        if !src.len().is_multiple_of(self.width)
            || Some(out.len()) != (src.len() / self.width).checked_mul(float)
        {
            return Err(size_error(CODEC, out.len(), src.len() / self.width * float));
        }
        let unused = 64 - self.width as u32 * 8;
        for (from, to) in src.chunks_exact(self.width).zip(out.chunks_exact_mut(float)) {
            let integer = (super::load_bits(from) << unused) as i64 >> unused;
            if float == 4 {
                let value = self.scale * f64::from(integer as f32) + self.offset;
                to.copy_from_slice(&(value as f32).to_le_bytes());
            } else {
                let value = self.scale * integer as f64 + self.offset;
                to.copy_from_slice(&value.to_le_bytes());
            }
        }
        Ok(())
    }
}
