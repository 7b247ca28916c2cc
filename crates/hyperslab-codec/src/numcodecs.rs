//! The numeric transforms of numcodecs: delta, fixed scale and offset, quantize, pack bits.
//!
//! All work on little-endian numbers; callers swap big-endian ones before or after. Arithmetic is that of NumPy: integers
//! wrap, converting a float to an integer truncates, and rounding is half to even.

use crate::error::{Result, corrupt, invalid, size as size_error};

const CODEC: &str = "numcodecs";

/// The type of the numbers on one side of a transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Number {
    /// 8 bits with sign.
    I8,
    /// 8 bits.
    U8,
    /// 16 bits with sign.
    I16,
    /// 16 bits.
    U16,
    /// 32 bits with sign.
    I32,
    /// 32 bits.
    U32,
    /// 64 bits with sign.
    I64,
    /// 64 bits.
    U64,
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point.
    F64,
}

/// A number of either kind, as wide as any.
#[derive(Debug, Clone, Copy)]
enum Wide {
    /// Two's complement; the sign was extended.
    Integer(i128),
    Float(f64),
}

impl Wide {
    fn to_float(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

impl Number {
    /// Bytes of a number.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    #[inline]
    fn load(self, from: &[u8]) -> Wide {
        let mut bytes = [0; 8];
        bytes[..from.len()].copy_from_slice(from);
        let bits = u64::from_le_bytes(bytes);
        match self {
            Self::I8 => Wide::Integer((bits as i8).into()),
            Self::I16 => Wide::Integer((bits as i16).into()),
            Self::I32 => Wide::Integer((bits as i32).into()),
            Self::I64 => Wide::Integer((bits as i64).into()),
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => Wide::Integer(bits.into()),
            Self::F32 => Wide::Float(f32::from_bits(bits as u32).into()),
            Self::F64 => Wide::Float(f64::from_bits(bits)),
        }
    }

    #[inline]
    fn store(self, value: Wide, to: &mut [u8]) {
        let bits = match (self, value) {
            (Self::F32, value) => f32::to_bits(value.to_float() as f32).into(),
            (Self::F64, value) => f64::to_bits(value.to_float()),
            (_, Wide::Integer(value)) => value as u64,
            (Self::U64, Wide::Float(value)) if value >= 0.0 => value as u64,
            (_, Wide::Float(value)) => value as i64 as u64,
        };
        let len = to.len();
        to.copy_from_slice(&bits.to_le_bytes()[..len]);
    }
}

/// Checks that `src` and `out` hold the same number of values of their types.
fn check(from: Number, src: &[u8], to: Number, out: &[u8]) -> Result<()> {
    if !src.len().is_multiple_of(from.size()) {
        return Err(corrupt(CODEC, format!("{} bytes of numbers of {} bytes", src.len(), from.size())));
    }
    let wanted = (src.len() / from.size()).checked_mul(to.size());
    if wanted != Some(out.len()) {
        return Err(size_error(CODEC, out.len(), wanted.unwrap_or(usize::MAX)));
    }
    Ok(())
}

fn pairs<'a>(
    from: Number,
    src: &'a [u8],
    to: Number,
    out: &'a mut [u8],
) -> impl Iterator<Item = (&'a [u8], &'a mut [u8])> {
    src.chunks_exact(from.size()).zip(out.chunks_exact_mut(to.size()))
}

/// `delta`: the first number, then differences, stored as another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delta {
    /// The type of the numbers.
    pub decoded: Number,
    /// The type of the differences.
    pub stored: Number,
}

impl Delta {
    /// Encodes the numbers `src` into `out`.
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) if `out` has room for a different number of differences.
    pub fn encode(&self, src: &[u8], out: &mut [u8]) -> Result<()> {
        check(self.decoded, src, self.stored, out)?;
        let mut last = Wide::Integer(0);
        for (from, to) in pairs(self.decoded, src, self.stored, out) {
            let value = self.decoded.load(from);
            let difference = match (value, last) {
                (Wide::Integer(value), Wide::Integer(last)) => Wide::Integer(value - last),
                (value, last) if self.decoded == Number::F32 => {
                    Wide::Float((value.to_float() as f32 - last.to_float() as f32).into())
                }
                (value, last) => Wide::Float(value.to_float() - last.to_float()),
            };
            self.stored.store(difference, to);
            last = value;
        }
        Ok(())
    }

    /// Decodes the differences `src` into `out`, which they must fill.
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) if `out` has room for a different number of values.
    pub fn decode(&self, src: &[u8], out: &mut [u8]) -> Result<()> {
        check(self.stored, src, self.decoded, out)?;
        let (mut integer, mut float, mut single) = (0i64, 0f64, 0f32);
        for (from, to) in pairs(self.stored, src, self.decoded, out) {
            let sum = match (self.decoded, self.stored.load(from)) {
                (Number::F32, value) => {
                    single += value.to_float() as f32;
                    Wide::Float(single.into())
                }
                (Number::F64, value) => {
                    float += value.to_float();
                    Wide::Float(float)
                }
                (_, Wide::Integer(value)) => {
                    integer = integer.wrapping_add(value as i64);
                    Wide::Integer(integer.into())
                }
                (_, Wide::Float(value)) => {
                    integer = integer.wrapping_add(value as i64);
                    Wide::Integer(integer.into())
                }
            };
            self.decoded.store(sum, to);
        }
        Ok(())
    }
}

/// `fixedscaleoffset`: `(x − offset) · scale`, rounded, stored as another type. Lossy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FixedScaleOffset {
    /// The type of the numbers.
    pub decoded: Number,
    /// The type of what is stored.
    pub stored: Number,
    /// The factor.
    pub scale: f64,
    /// The offset, subtracted first.
    pub offset: f64,
}

impl FixedScaleOffset {
    /// Encodes the numbers `src` into `out`.
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) if `out` has room for a different number of values.
    pub fn encode(&self, src: &[u8], out: &mut [u8]) -> Result<()> {
        check(self.decoded, src, self.stored, out)?;
        let (scale, offset) = (self.scale as f32, self.offset as f32);
        for (from, to) in pairs(self.decoded, src, self.stored, out) {
            let value = self.decoded.load(from).to_float();
            let scaled = if self.decoded == Number::F32 {
                ((value as f32 - offset) * scale).round_ties_even().into()
            } else {
                ((value - self.offset) * self.scale).round_ties_even()
            };
            self.stored.store(Wide::Float(scaled), to);
        }
        Ok(())
    }

    /// Decodes the stored numbers `src` into `out`, which they must fill.
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) if `out` has room for a different number of values.
    pub fn decode(&self, src: &[u8], out: &mut [u8]) -> Result<()> {
        check(self.stored, src, self.decoded, out)?;
        let (scale, offset) = (self.scale as f32, self.offset as f32);
        for (from, to) in pairs(self.stored, src, self.decoded, out) {
            let value = self.stored.load(from).to_float();
            let plain = if self.stored == Number::F32 {
                (value as f32 / scale + offset).into()
            } else {
                value / self.scale + self.offset
            };
            self.decoded.store(Wide::Float(plain), to);
        }
        Ok(())
    }
}

/// `quantize`: floats rounded to about this many decimal digits, in steps of a power of two. Lossy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantize {
    /// The number of digits after the decimal point to keep.
    pub digits: i32,
    /// The type of the numbers: a float.
    pub decoded: Number,
    /// The type of what is stored: a float.
    pub stored: Number,
}

impl Quantize {
    fn check(&self) -> Result<()> {
        if self.decoded.is_float() && self.stored.is_float() {
            return Ok(());
        }
        Err(invalid(CODEC, "quantize is for floats"))
    }

    /// Encodes the numbers `src` into `out`.
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) if `out` has room for a different number of values, [`Invalid`](crate::CodecError::Invalid) if
    /// a type is not a float.
    pub fn encode(&self, src: &[u8], out: &mut [u8]) -> Result<()> {
        self.check()?;
        check(self.decoded, src, self.stored, out)?;
        let exponent = 10f64.powi(-self.digits).log10();
        let exponent = if exponent < 0.0 { exponent.floor() } else { exponent.ceil() };
        let scale = 10f64.powf(-exponent).log2().ceil().exp2();
        for (from, to) in pairs(self.decoded, src, self.stored, out) {
            let value = self.decoded.load(from).to_float();
            let rounded = if self.decoded == Number::F32 {
                ((scale as f32 * value as f32).round_ties_even() / scale as f32).into()
            } else {
                (scale * value).round_ties_even() / scale
            };
            self.stored.store(Wide::Float(rounded), to);
        }
        Ok(())
    }

    /// Converts the stored numbers `src` to the original type, into `out`, which they must fill.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub fn decode(&self, src: &[u8], out: &mut [u8]) -> Result<()> {
        self.check()?;
        check(self.stored, src, self.decoded, out)?;
        for (from, to) in pairs(self.stored, src, self.decoded, out) {
            self.decoded.store(self.stored.load(from), to);
        }
        Ok(())
    }
}

/// Appends booleans, one byte each, to `out`: the number of padding bits in the last byte, then the bits, highest first.
pub fn pack_bits(src: &[u8], out: &mut Vec<u8>) {
    out.push((src.len().next_multiple_of(8) - src.len()) as u8);
    for group in src.chunks(8) {
        let byte =
            group.iter().enumerate().fold(0, |byte, (i, &value)| byte | u8::from(value != 0) << (7 - i));
        out.push(byte);
    }
}

/// Undoes [`pack_bits`], into `out`, which it must fill with 0 and 1.
///
/// # Errors
///
/// [`Size`](crate::CodecError::Size) if there are more or fewer bits, [`Corrupt`](crate::CodecError::Corrupt) if more
/// than a byte is padding.
pub fn unpack_bits(src: &[u8], out: &mut [u8]) -> Result<()> {
    let (&padding, bytes) = src.split_first().ok_or_else(|| corrupt(CODEC, "packbits: no padding byte"))?;
    let padding = usize::from(padding);
    if padding > 7 {
        return Err(corrupt(CODEC, format!("packbits: {padding} bits of padding")));
    }
    let bits = bytes.len().checked_mul(8).and_then(|bits| bits.checked_sub(padding));
    if bits != Some(out.len()) {
        return Err(size_error(CODEC, out.len(), bits.unwrap_or(0)));
    }
    for (group, byte) in out.chunks_mut(8).zip(bytes) {
        for (i, to) in group.iter_mut().enumerate() {
            *to = byte >> (7 - i) & 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::data;

    #[test]
    fn delta_matches_numcodecs() {
        for (name, decoded, stored) in [
            ("i8.i2", Number::I64, Number::I16),
            ("u1.u1", Number::U8, Number::U8),
            ("f4.f4", Number::F32, Number::F32),
            ("f8.f8", Number::F64, Number::F64),
            ("i4.i4", Number::I32, Number::I32),
        ] {
            let (raw, want) = (data(&format!("delta.{name}.raw")), data(&format!("delta.{name}.stored")));
            let codec = Delta { decoded, stored };
            let mut out = vec![0; want.len()];
            codec.encode(&raw, &mut out).unwrap();
            assert!(out == want, "{name}");
            let mut back = vec![0; raw.len()];
            codec.decode(&want, &mut back).unwrap();
            assert!(back == data(&format!("delta.{name}.back")), "{name}");
        }
    }

    #[test]
    fn fixed_scale_offset_matches_numcodecs() {
        for (name, decoded, stored, scale, offset) in [
            ("f8.u1", Number::F64, Number::U8, 10.0, 1000.0),
            ("f4.i2", Number::F32, Number::I16, 7.0, -3.5),
            ("f8.i4", Number::F64, Number::I32, 1000.0, 0.25),
            ("f4.f4", Number::F32, Number::F32, 3.0, 1.0),
        ] {
            let (raw, want) = (data(&format!("fso.{name}.raw")), data(&format!("fso.{name}.stored")));
            let codec = FixedScaleOffset { decoded, stored, scale, offset };
            let mut out = vec![0; want.len()];
            codec.encode(&raw, &mut out).unwrap();
            assert!(out == want, "{name}");
            let mut back = vec![0; raw.len()];
            codec.decode(&want, &mut back).unwrap();
            assert!(back == data(&format!("fso.{name}.back")), "{name}");
        }
    }

    #[test]
    fn quantize_and_packbits_match_numcodecs() {
        for (name, decoded, stored, digits) in [
            ("f8.f4", Number::F64, Number::F32, 2),
            ("f4.f4", Number::F32, Number::F32, 1),
            ("f8.f8", Number::F64, Number::F64, 5),
        ] {
            let (raw, want) =
                (data(&format!("quantize.{name}.raw")), data(&format!("quantize.{name}.stored")));
            let mut out = vec![0; want.len()];
            Quantize { digits, decoded, stored }.encode(&raw, &mut out).unwrap();
            assert!(out == want, "{name}");
        }
        let (raw, want) = (data("packbits.raw"), data("packbits.stored"));
        let (mut stored, mut back) = (Vec::new(), vec![0; raw.len()]);
        pack_bits(&raw, &mut stored);
        assert_eq!(stored, want);
        unpack_bits(&want, &mut back).unwrap();
        assert_eq!(back, raw);
        assert!(unpack_bits(&want, &mut back[1..]).is_err());
    }

    proptest! {
        #[test]
        fn integer_deltas_and_bits_round_trip(values: Vec<u16>) {
            let src: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let codec = Delta { decoded: Number::U16, stored: Number::U16 };
            let (mut stored, mut back) = (vec![0; src.len()], vec![0; src.len()]);
            codec.encode(&src, &mut stored).unwrap();
            codec.decode(&stored, &mut back).unwrap();
            prop_assert_eq!(&back, &src);
            let bits: Vec<u8> = src.iter().map(|b| b & 1).collect();
            let mut packed = Vec::new();
            pack_bits(&bits, &mut packed);
            unpack_bits(&packed, &mut back).unwrap();
            prop_assert_eq!(back, bits);
        }

        #[test]
        fn arbitrary_bytes_never_panic(src: Vec<u8>, len in 0..200usize) {
            let mut out = vec![0; len];
            let _ = Delta { decoded: Number::I32, stored: Number::F64 }.decode(&src, &mut out);
            let _ = Delta { decoded: Number::F32, stored: Number::F64 }.decode(&src, &mut out);
            let _ = FixedScaleOffset { decoded: Number::U64, stored: Number::F64, scale: 0.0, offset: f64::NAN }
                .decode(&src, &mut out);
            let _ = unpack_bits(&src, &mut out);
        }
    }
}
