//! Numbers narrower than machine types: bfloat16, 8-, 6- and 4-bit floats, 4- and 2-bit integers.
//!
//! Each is stored in one or two bytes, in the low bits. Floats are decoded to `float32`, which holds all of them exactly,
//! integers to 8 bits.

use half::{bf16, f16};

use crate::error::{Result, corrupt, invalid, size};

const CODEC: &str = "narrow numbers";

/// A narrow number type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Narrow {
    /// `float32` without its low 16 bits.
    BFloat16,
    /// IEEE 754 binary16, as a part of a complex number.
    Float16,
    /// A float of at most 8 bits.
    Small(SmallFloat),
    /// A signed integer with this many bits.
    Int(u32),
    /// An unsigned integer with this many bits.
    UInt(u32),
}

/// A float of at most 8 bits: a sign, an exponent, a mantissa.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallFloat {
    name: &'static str,
    exponent: u32,
    mantissa: u32,
    bias: i32,
    specials: Specials,
}

/// Which codes are not finite numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Specials {
    /// The largest exponent, as in IEEE 754.
    Ieee,
    /// All bits but the sign set: NaN. There is no infinity.
    AllOnes,
    /// Negative zero: NaN. There is no infinity.
    NegativeZero,
    /// None.
    None,
    /// No sign, no zero, no mantissa: a power of two, or 255 for NaN.
    Exponent,
}

const fn small(
    name: &'static str,
    exponent: u32,
    mantissa: u32,
    bias: i32,
    specials: Specials,
) -> SmallFloat {
    SmallFloat { name, exponent, mantissa, bias, specials }
}

const SMALL: [SmallFloat; 11] = [
    small("float8_e3m4", 3, 4, 3, Specials::Ieee),
    small("float8_e4m3", 4, 3, 7, Specials::Ieee),
    small("float8_e4m3fn", 4, 3, 7, Specials::AllOnes),
    small("float8_e4m3b11fnuz", 4, 3, 11, Specials::NegativeZero),
    small("float8_e4m3fnuz", 4, 3, 8, Specials::NegativeZero),
    small("float8_e5m2", 5, 2, 15, Specials::Ieee),
    small("float8_e5m2fnuz", 5, 2, 16, Specials::NegativeZero),
    small("float8_e8m0fnu", 8, 0, 127, Specials::Exponent),
    small("float6_e2m3fn", 2, 3, 1, Specials::None),
    small("float6_e3m2fn", 3, 2, 3, Specials::None),
    small("float4_e2m1fn", 2, 1, 1, Specials::None),
];

impl SmallFloat {
    /// The magnitude of a code without its sign, computed from exponent and mantissa alone.
    fn magnitude(self, code: u32) -> f64 {
        let (exponent, mantissa) = (code >> self.mantissa, code & ((1 << self.mantissa) - 1));
        let (mantissa, exponent) = match exponent {
            0 if self.specials != Specials::Exponent => (f64::from(mantissa), 1),
            exponent => (f64::from(mantissa | 1 << self.mantissa), exponent as i32),
        };
        mantissa * f64::powi(2.0, exponent - self.bias - self.mantissa as i32)
    }

    /// The largest code of a positive finite number.
    const fn largest(self) -> u32 {
        match self.specials {
            Specials::Ieee => (((1 << self.exponent) - 1) << self.mantissa) - 1,
            Specials::AllOnes => (1 << (self.exponent + self.mantissa)) - 2,
            Specials::NegativeZero | Specials::None => (1 << (self.exponent + self.mantissa)) - 1,
            Specials::Exponent => 254,
        }
    }

    fn to_f32(self, code: u8) -> f32 {
        let code = u32::from(code);
        let sign_bit = 1 << (self.exponent + self.mantissa);
        if self.specials == Specials::Exponent {
            return if code == 255 { f32::NAN } else { self.magnitude(code) as f32 };
        }
        // Bits above the sign are ignored.
        let (negative, own) = (code & sign_bit != 0, code & (sign_bit - 1));
        let magnitude = match self.specials {
            Specials::NegativeZero if negative && own == 0 => return f32::NAN,
            _ if own <= self.largest() => self.magnitude(own) as f32,
            Specials::Ieee if own == self.largest() + 1 => f32::INFINITY,
            _ => f32::NAN,
        };
        if negative { -magnitude } else { magnitude }
    }

    /// The nearest code, ties to even; `None` if the type cannot represent the value.
    fn nearest(self, value: f32) -> Option<u8> {
        let sign_bit = 1_u32 << (self.exponent + self.mantissa);
        let nan = match self.specials {
            Specials::Ieee => Some(self.largest() + 1 + (1 << (self.mantissa - 1))),
            Specials::AllOnes => Some(sign_bit - 1),
            Specials::NegativeZero => Some(sign_bit),
            Specials::Exponent => Some(255),
            Specials::None => None,
        };
        let unsigned = self.specials == Specials::Exponent;
        if value.is_nan() {
            return nan.map(|code| code as u8);
        }
        if unsigned && value <= 0.0 {
            return None;
        }
        let magnitude = f64::from(value.abs());
        // Treat the code after the last as overflow.
        let above = (0..=self.largest() + 1).find(|code| self.magnitude(*code) >= magnitude);
        let code = match above {
            None => self.largest() + 1,
            Some(0) => 0,
            Some(above) => {
                let (low, high) = (magnitude - self.magnitude(above - 1), self.magnitude(above) - magnitude);
                let even = above - (above & 1);
                if low < high {
                    above - 1
                } else if high < low {
                    above
                } else {
                    even
                }
            }
        };
        let code = match self.specials {
            _ if code <= self.largest() => code,
            Specials::None => self.largest(),
            Specials::Ieee => self.largest() + 1,
            _ => return nan.map(|code| code as u8),
        };
        let negative = value.is_sign_negative() && !(code == 0 && self.specials == Specials::NegativeZero);
        Some((code | if negative && !unsigned { sign_bit } else { 0 }) as u8)
    }
}

impl Narrow {
    /// The type with this name, as used by Zarr and `ml_dtypes`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "bfloat16" => Self::BFloat16,
            "float16" => Self::Float16,
            "int2" => Self::Int(2),
            "int4" => Self::Int(4),
            "uint2" => Self::UInt(2),
            "uint4" => Self::UInt(4),
            other => Self::Small(*SMALL.iter().find(|own| own.name == other)?),
        })
    }

    /// The name of the type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BFloat16 => "bfloat16",
            Self::Float16 => "float16",
            Self::Small(small) => small.name,
            Self::Int(2) => "int2",
            Self::Int(_) => "int4",
            Self::UInt(2) => "uint2",
            Self::UInt(_) => "uint4",
        }
    }

    /// Returns true for a float, false for an integer.
    #[must_use]
    pub const fn is_float(self) -> bool {
        !matches!(self, Self::Int(_) | Self::UInt(_))
    }

    /// Returns true for a signed integer.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::Int(_))
    }

    /// The number of significant bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::BFloat16 | Self::Float16 => 16,
            Self::Small(SmallFloat { specials: Specials::Exponent, .. }) => 8,
            Self::Small(small) => 1 + small.exponent + small.mantissa,
            Self::Int(bits) | Self::UInt(bits) => bits,
        }
    }

    /// The size of a stored number in bytes.
    #[must_use]
    pub const fn stored_size(self) -> usize {
        self.bits().div_ceil(8) as usize
    }

    /// The size of a decoded number in bytes.
    #[must_use]
    pub const fn decoded_size(self) -> usize {
        if self.is_float() { 4 } else { 1 }
    }

    /// The value of a stored float.
    #[must_use]
    pub fn to_f32(self, bits: u16) -> f32 {
        match self {
            Self::BFloat16 => bf16::from_bits(bits).to_f32(),
            Self::Float16 => f16::from_bits(bits).to_f32(),
            Self::Small(small) => small.to_f32(bits as u8),
            Self::Int(_) | Self::UInt(_) => f32::from(self.integer(bits as u8) as i8),
        }
    }

    /// An integer from the significant bits.
    const fn integer(self, byte: u8) -> u8 {
        let unused = 8 - self.bits();
        if self.is_signed() { (((byte << unused) as i8) >> unused) as u8 } else { byte << unused >> unused }
    }

    /// Decodes stored numbers, big-endian if `big`, to `out` in native byte order, which they must fill.
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) if there are more or fewer, [`Corrupt`](crate::CodecError::Corrupt) if the last is truncated.
    pub fn decode(self, big: bool, src: &[u8], out: &mut [u8]) -> Result<()> {
        self.check(src.len(), out.len())?;
        if !self.is_float() {
            out.iter_mut().zip(src).for_each(|(to, from)| *to = self.integer(*from));
            return Ok(());
        }
        let places = out.as_chunks_mut::<4>().0.iter_mut();
        if self.stored_size() == 2 {
            let read = if big { u16::from_be_bytes } else { u16::from_le_bytes };
            let numbers = src.as_chunks::<2>().0;
            places.zip(numbers).for_each(|(to, from)| *to = self.to_f32(read(*from)).to_ne_bytes());
            return Ok(());
        }
        let mut table = [[0; 4]; 256];
        for (code, value) in (0..).zip(&mut table) {
            *value = self.to_f32(code).to_ne_bytes();
        }
        places.zip(src).for_each(|(to, from)| *to = table[usize::from(*from)]);
        Ok(())
    }

    /// Appends decoded numbers, stored as this type, to `out`: floats rounded to the nearest.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::CodecError::Invalid) for a value that the type cannot represent: an integer
    /// out of range, or a NaN if the type has none.
    pub fn encode(self, big: bool, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let none =
            |value: String| invalid(CODEC, format!("{value} cannot be represented as {}", self.name()));
        if !self.is_float() {
            for byte in src {
                if self.integer(*byte) != *byte {
                    let value = if self.is_signed() { i16::from(*byte as i8) } else { i16::from(*byte) };
                    return Err(none(value.to_string()));
                }
            }
            out.extend_from_slice(src);
            return Ok(());
        }
        let (numbers, rest) = src.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(corrupt(CODEC, format!("{} bytes of float32", src.len())));
        }
        for number in numbers {
            let value = f32::from_ne_bytes(*number);
            let bits = match self {
                Self::BFloat16 => bf16::from_f32(value).to_bits(),
                Self::Float16 => f16::from_f32(value).to_bits(),
                Self::Small(small) => {
                    out.push(small.nearest(value).ok_or_else(|| none(value.to_string()))?);
                    continue;
                }
                Self::Int(_) | Self::UInt(_) => continue,
            };
            out.extend(if big { bits.to_be_bytes() } else { bits.to_le_bytes() });
        }
        Ok(())
    }

    fn check(self, src: usize, out: usize) -> Result<()> {
        let (stored, decoded) = (self.stored_size(), self.decoded_size());
        if !src.is_multiple_of(stored) {
            return Err(corrupt(CODEC, format!("{src} bytes of {}", self.name())));
        }
        let found = (src / stored).checked_mul(decoded);
        if found != Some(out) {
            return Err(size(CODEC, out, found.unwrap_or(usize::MAX)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::data;

    #[test]
    fn every_code_matches_ml_dtypes() {
        for name in SMALL.iter().map(|small| small.name).chain(["int2", "int4", "uint2", "uint4", "bfloat16"])
        {
            let narrow = Narrow::parse(name).unwrap();
            assert_eq!(narrow.name(), name);
            // Each code in turn, and the float32 that ml_dtypes makes of it.
            let (codes, want) = (data(&format!("narrow.{name}.stored")), data(&format!("narrow.{name}.f4")));
            let mut out = vec![0; codes.len() / narrow.stored_size() * narrow.decoded_size()];
            narrow.decode(false, &codes, &mut out).unwrap();
            let values: Vec<f32> = match narrow.is_float() {
                true => out.as_chunks::<4>().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect(),
                false if narrow.is_signed() => out.iter().map(|byte| f32::from(*byte as i8)).collect(),
                false => out.iter().map(|byte| f32::from(*byte)).collect(),
            };
            for (i, (value, want)) in values.iter().zip(want.as_chunks::<4>().0).enumerate() {
                let want = f32::from_le_bytes(*want);
                let same = value.to_bits() == want.to_bits() || (value.is_nan() && want.is_nan());
                assert!(same, "{name} {i}: {value}, expected {want}");
            }
        }
    }

    #[test]
    fn rounding_matches_ml_dtypes() {
        let raw = data("narrow.raw.f4");
        for small in SMALL
            .iter()
            .filter(|small| small.name.starts_with("float8") && small.specials != Specials::Exponent)
        {
            let want = data(&format!("narrow.{}.rounded", small.name));
            let mut stored = Vec::new();
            Narrow::Small(*small).encode(false, &raw, &mut stored).unwrap();
            for ((code, want), raw) in stored.iter().zip(&want).zip(raw.as_chunks::<4>().0) {
                let (ours, theirs) = (small.to_f32(*code), small.to_f32(*want));
                let same = code == want || (ours.is_nan() && theirs.is_nan());
                assert!(same, "{} of {}: {ours}, expected {theirs}", small.name, f32::from_le_bytes(*raw));
            }
        }
    }

    #[test]
    fn unrepresentable_values_are_refused() {
        let nan = f32::NAN.to_ne_bytes();
        for (name, bytes) in [
            ("float4_e2m1fn", &nan[..]),
            ("float8_e8m0fnu", &0_f32.to_ne_bytes()),
            ("int4", &[8]),
            ("uint2", &[4]),
        ] {
            assert!(Narrow::parse(name).unwrap().encode(false, bytes, &mut Vec::new()).is_err(), "{name}");
        }
        assert!(Narrow::BFloat16.decode(false, &[0, 1, 2], &mut [0; 8]).is_err());
        assert!(Narrow::Int(4).decode(false, &[0, 1, 2], &mut [0; 8]).is_err());
        let mut out = [0; 4];
        Narrow::BFloat16.decode(true, &[0x3f, 0x80], &mut out).unwrap();
        assert_eq!(f32::from_ne_bytes(out), 1.0);
    }
}
