//! Pcodec's standalone format, as written by numcodecs: numbers in bins, after removing regularities.

use pco::ChunkConfig;
use pco::data_types::Number as PcoNumber;
use pco::standalone::{simple_compress, simple_decompress_into};

use crate::error::{Result, corrupt, invalid, size};

const CODEC: &str = "pcodec";

/// The type of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Number {
    I16,
    I32,
    I64,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
}

impl Number {
    /// Bytes of a number.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

/// A number and its bytes in native order.
trait Native<const SIZE: usize>: PcoNumber {
    fn to_bytes(self) -> [u8; SIZE];
    fn from_bytes(bytes: [u8; SIZE]) -> Self;
}

macro_rules! native {
    ($($type:ty: $size:literal),*) => {$(
        impl Native<$size> for $type {
            fn to_bytes(self) -> [u8; $size] {
                self.to_ne_bytes()
            }

            fn from_bytes(bytes: [u8; $size]) -> Self {
                Self::from_ne_bytes(bytes)
            }
        }
    )*};
}

native!(i16: 2, i32: 4, i64: 8, u16: 2, u32: 4, u64: 8, half::f16: 2, f32: 4, f64: 8);

/// Decodes `src` into `out`, native byte order, which it must fill.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if `src` is damaged or holds numbers of another type,
/// [`Size`](crate::CodecError::Size) if it holds more or fewer.
pub fn decode(number: Number, src: &[u8], out: &mut [u8]) -> Result<()> {
    match number {
        Number::I16 => decode_as::<i16, 2>(src, out),
        Number::I32 => decode_as::<i32, 4>(src, out),
        Number::I64 => decode_as::<i64, 8>(src, out),
        Number::U16 => decode_as::<u16, 2>(src, out),
        Number::U32 => decode_as::<u32, 4>(src, out),
        Number::U64 => decode_as::<u64, 8>(src, out),
        Number::F16 => decode_as::<half::f16, 2>(src, out),
        Number::F32 => decode_as::<f32, 4>(src, out),
        Number::F64 => decode_as::<f64, 8>(src, out),
    }
}

fn decode_as<T: Native<SIZE>, const SIZE: usize>(src: &[u8], out: &mut [u8]) -> Result<()> {
    let (places, rest) = out.as_chunks_mut::<SIZE>();
    if !rest.is_empty() {
        return Err(invalid(CODEC, format!("{} bytes are no whole number of elements", rest.len())));
    }
    let mut numbers = vec![T::default(); places.len()];
    let progress =
        simple_decompress_into(src, &mut numbers).map_err(|error| corrupt(CODEC, error.to_string()))?;
    if progress.n_processed != numbers.len() || !progress.finished {
        return Err(size(CODEC, places.len() * SIZE, progress.n_processed * SIZE));
    }
    places.iter_mut().zip(numbers).for_each(|(place, number)| *place = number.to_bytes());
    Ok(())
}

/// Appends the numbers `src`, native byte order, compressed at a level of 0 to 12, to `out`.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) for another level, or bytes that are not whole elements.
pub fn encode(number: Number, src: &[u8], level: usize, out: &mut Vec<u8>) -> Result<()> {
    match number {
        Number::I16 => encode_as::<i16, 2>(src, level, out),
        Number::I32 => encode_as::<i32, 4>(src, level, out),
        Number::I64 => encode_as::<i64, 8>(src, level, out),
        Number::U16 => encode_as::<u16, 2>(src, level, out),
        Number::U32 => encode_as::<u32, 4>(src, level, out),
        Number::U64 => encode_as::<u64, 8>(src, level, out),
        Number::F16 => encode_as::<half::f16, 2>(src, level, out),
        Number::F32 => encode_as::<f32, 4>(src, level, out),
        Number::F64 => encode_as::<f64, 8>(src, level, out),
    }
}

fn encode_as<T: Native<SIZE>, const SIZE: usize>(src: &[u8], level: usize, out: &mut Vec<u8>) -> Result<()> {
    let (places, rest) = src.as_chunks::<SIZE>();
    if !rest.is_empty() {
        return Err(invalid(CODEC, format!("{} bytes are no whole number of elements", src.len())));
    }
    let numbers: Vec<T> = places.iter().map(|place| T::from_bytes(*place)).collect();
    let config = ChunkConfig::default().with_compression_level(level);
    let stored = simple_compress(&numbers, &config).map_err(|error| invalid(CODEC, error.to_string()))?;
    out.extend(stored);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::data;

    const NUMBERS: [(&str, Number); 9] = [
        ("i2", Number::I16),
        ("i4", Number::I32),
        ("i8", Number::I64),
        ("u2", Number::U16),
        ("u4", Number::U32),
        ("u8", Number::U64),
        ("f2", Number::F16),
        ("f4", Number::F32),
        ("f8", Number::F64),
    ];

    #[test]
    fn streams_of_numcodecs_decode() {
        for (name, number) in NUMBERS {
            let (raw, stored) = (data(&format!("pcodec.{name}.raw")), data(&format!("pcodec.{name}.stored")));
            let mut out = vec![0; raw.len()];
            decode(number, &stored, &mut out).unwrap();
            assert!(out == raw, "{name}");
            for wrong in [0, number.size(), raw.len() - number.size(), raw.len() + number.size()] {
                assert!(decode(number, &stored, &mut vec![0; wrong]).is_err(), "{name} into {wrong}");
            }
            assert!(decode(number, &stored[..stored.len() - 3], &mut out).is_err());
            let (mut again, mut back) = (Vec::new(), vec![0; raw.len()]);
            encode(number, &raw, 8, &mut again).unwrap();
            decode(number, &again, &mut back).unwrap();
            assert!(back == raw, "{name}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(src: Vec<u8>, len in 0..64usize) {
            for (_, number) in NUMBERS {
                let _ = decode(number, &src, &mut vec![0; len * number.size()]);
            }
            let mut framed = data("pcodec.i4.stored")[..16].to_vec();
            framed.extend(src);
            let _ = decode(Number::I32, &framed, &mut vec![0; len * 4]);
        }
    }
}
