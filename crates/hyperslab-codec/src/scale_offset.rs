//! HDF5's scale-offset filter (6): the difference of every number from the minimum, in as few bits as possible.
//!
//! A chunk is the number of bits (u32), the byte 8, the minimum (8 bytes), 8 zeros, and the differences, highest bit
//! first; integers are little-endian. Floating-point numbers are first multiplied by a power of ten and rounded. If a
//! fill value is defined, the difference with all bits set represents it. If the full width would be needed, the elements follow
//! the 21 bytes as they are.

use crate::bits::{BitReader, BitWriter};
use crate::error::{Result, corrupt, invalid, size as size_error, unsupported};

const CODEC: &str = "scale-offset";
/// The bytes before the differences.
const HEAD: usize = 21;
/// Parameters of the filter.
const PARAMETERS: usize = 20;

/// The filter's operation, from its parameters ("client data").
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleOffset {
    class: Class,
    size: usize,
    big_endian: bool,
    elements: usize,
    /// The fill value's bytes as a little-endian number.
    fill: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Class {
    /// If `bits` is 0, as many bits as needed.
    Integer { signed: bool, bits: u32 },
    /// Rounded to this many decimal places.
    Float { places: i32 },
}

impl ScaleOffset {
    /// Parses the filter's 20 parameters as they are in the pipeline message.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::CodecError::Corrupt) if they describe no type,
    /// [`Unsupported`](crate::CodecError::Unsupported) for methods that libhdf5 does not have either.
    pub fn parse(client: &[u32]) -> Result<Self> {
        let client: &[u32; PARAMETERS] = client
            .try_into()
            .map_err(|_| corrupt(CODEC, format!("{} parameters, expected {PARAMETERS}", client.len())))?;
        let [method, factor, elements, class, size, sign, order, has_fill, low, high, ..] = *client;
        let factor = factor as i32;
        let class = match (class, method) {
            (0, 2) => {
                let bits = factor.max(0) as u32;
                if u64::from(bits) > u64::from(size) * 8 {
                    return Err(corrupt(CODEC, format!("{bits} bits of {size} bytes")));
                }
                Class::Integer { signed: sign == 1, bits }
            }
            (1, 0) => Class::Float { places: factor },
            (1, 1) => return Err(unsupported(CODEC, "exponent scaling")),
            _ => return Err(corrupt(CODEC, format!("method {method} for type class {class}"))),
        };
        let fits = match class {
            Class::Integer { .. } => matches!(size, 1 | 2 | 4 | 8),
            Class::Float { .. } => matches!(size, 4 | 8),
        };
        if !fits || order > 1 {
            return Err(corrupt(CODEC, format!("a number of {size} bytes in byte order {order}")));
        }
        let size = size as usize;
        let fill = (has_fill != 0).then(|| (u64::from(high) << 32 | u64::from(low)) & mask(size as u32 * 8));
        Ok(Self { class, size, big_endian: order == 1, elements: elements as usize, fill })
    }

    /// The decoded size of a chunk, unverified.
    #[must_use]
    pub const fn decoded_len(&self) -> Option<usize> {
        self.elements.checked_mul(self.size)
    }

    const fn width(&self) -> u32 {
        self.size as u32 * 8
    }

    /// Returns true if the filter leaves chunks unchanged, because the full width was requested.
    fn is_plain(&self) -> bool {
        matches!(self.class, Class::Integer { bits, .. } if bits == self.width())
    }

    fn store(&self, value: u64, to: &mut [u8]) {
        let bytes = value.to_le_bytes();
        for (i, byte) in to.iter_mut().enumerate() {
            *byte = bytes[if self.big_endian { self.size - 1 - i } else { i }];
        }
    }

    fn load(&self, from: &[u8]) -> u64 {
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        if self.big_endian { from.iter().fold(0, fold) } else { from.iter().rev().fold(0, fold) }
    }

    /// Decodes the chunk `src` into `out`, which it must fill. Bytes after the last element are ignored.
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) if `out` is not [`decoded_len`](Self::decoded_len) bytes,
    /// [`Corrupt`](crate::CodecError::Corrupt) if `src` is damaged or truncated.
    pub fn decode(&self, src: &[u8], out: &mut [u8]) -> Result<()> {
        if self.decoded_len() != Some(out.len()) {
            return Err(size_error(CODEC, out.len(), self.decoded_len().unwrap_or(usize::MAX)));
        }
        let early = || corrupt(CODEC, format!("ends early: {} bytes", src.len()));
        if self.is_plain() {
            out.copy_from_slice(src.get(..out.len()).ok_or_else(early)?);
            return Ok(());
        }
        let (head, packed) = src.split_first_chunk::<HEAD>().ok_or_else(early)?;
        let [b0, b1, b2, b3, width, least @ ..] = *head;
        let bits = u32::from_le_bytes([b0, b1, b2, b3]);
        if bits > self.width() {
            return Err(corrupt(CODEC, format!("{bits} bits of {} bytes", self.size)));
        }
        // Only the low bytes of the minimum, up to 8, are stored.
        let least = least.iter().take(usize::from(width).min(8)).rev().fold(0, |n, b| n << 8 | u64::from(*b));
        if bits == self.width() {
            let whole = packed.get(..out.len()).ok_or_else(early)?;
            for (from, to) in whole.chunks_exact(self.size).zip(out.chunks_exact_mut(self.size)) {
                to.copy_from_slice(from);
                if self.big_endian {
                    to.reverse();
                }
            }
            return Ok(());
        }
        if u128::from(bits) * self.elements as u128 > packed.len() as u128 * 8 {
            return Err(early());
        }
        let mut reader = BitReader::new(CODEC, packed);
        let all_ones = mask(bits);
        let scale = Scale::new(&self.class, self.size, least);
        for to in out.chunks_exact_mut(self.size) {
            let code = if bits <= 57 { reader.get(bits)? } else { reader.get_wide(bits)? as u64 };
            let value = match self.fill {
                Some(fill) if code == all_ones => fill,
                _ => scale.value(code),
            };
            self.store(value, to);
        }
        Ok(())
    }

    /// Appends the chunk `src`, encoded, to `out`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::CodecError::Invalid) if `src` is not [`decoded_len`](Self::decoded_len) bytes.
    pub fn encode(&self, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if self.decoded_len() != Some(src.len()) {
            return Err(invalid(
                CODEC,
                format!("{} bytes, expected {} elements of {}", src.len(), self.elements, self.size),
            ));
        }
        if self.is_plain() {
            out.extend_from_slice(src);
            return Ok(());
        }
        let values: Vec<u64> = src.chunks_exact(self.size).map(|from| self.load(from)).collect();
        let (bits, least, codes) = match self.class {
            Class::Integer { signed, bits } => self.integer_codes(signed, bits, &values),
            Class::Float { places } if self.size == 4 => self.float_codes::<f32>(places, &values),
            Class::Float { places } => self.float_codes::<f64>(places, &values),
        };
        out.extend(bits.to_le_bytes());
        out.push(8);
        out.extend(least.to_le_bytes());
        out.extend([0; 8]);
        if bits == self.width() {
            for value in values {
                out.extend_from_slice(&value.to_le_bytes()[..self.size]);
            }
            return Ok(());
        }
        let mut writer = BitWriter::new(out);
        for code in codes {
            writer.put_wide(code.into(), bits);
        }
        writer.finish();
        // libhdf5 always adds one byte after the whole bytes.
        if (u64::from(bits) * self.elements as u64).is_multiple_of(8) {
            out.push(0);
        }
        Ok(())
    }

    /// The bits, the minimum and the codes of integers. There are no codes if the full width is needed.
    fn integer_codes(&self, signed: bool, asked: u32, values: &[u64]) -> (u32, u64, Vec<u64>) {
        let width = self.width();
        let extend = |value: u64| if signed { sign_extend(value, width) } else { i128::from(value) };
        let real = || values.iter().filter(|&&v| Some(v) != self.fill).map(|&v| extend(v));
        let least = real().min().unwrap_or(0);
        let most = real().max().unwrap_or(0);
        let span = (most - least) as u128;
        let bits = if asked > 0 {
            asked
        } else if span > u128::from(mask(width)) - 2 {
            return (width, 0, Vec::new());
        } else {
            // The fill value needs an additional code.
            bits_for(span + 1 + u128::from(self.fill.is_some()))
        };
        let code = |&value: &u64| match self.fill {
            Some(fill) if value == fill => mask(bits),
            _ => (extend(value) - least) as u64,
        };
        let codes = if bits == width { Vec::new() } else { values.iter().map(code).collect() };
        (bits, least as u64, codes)
    }

    /// The bits, the minimum and the codes of floating-point numbers. There are no codes if the full width is needed.
    fn float_codes<F: Float>(&self, places: i32, values: &[u64]) -> (u32, u64, Vec<u64>) {
        let width = self.width();
        let fill = self.fill.map(F::from_bits);
        let tolerance = F::power_of_ten(-places);
        let is_fill = |value: F| fill.is_some_and(|fill| F::close(value, fill, tolerance));
        let mut bounds: Option<(F, F)> = None;
        for value in values.iter().map(|&v| F::from_bits(v)).filter(|&v| !is_fill(v)) {
            let (least, most) = bounds.unwrap_or((value, value));
            bounds =
                Some((if value < least { value } else { least }, if value > most { value } else { most }));
        }
        let (least, most) = bounds.unwrap_or((F::from_bits(0), F::from_bits(0)));
        let scale = F::power_of_ten(places);
        let span = F::distance(most, least, scale);
        if span.is_none_or(|span| span > 1i128 << (width - 1)) {
            return (width, 0, Vec::new());
        }
        let span = span.unwrap_or(0).max(0) as u128;
        let bits = bits_for(span + 1 + u128::from(fill.is_some()));
        if bits >= width {
            return (width, 0, Vec::new());
        }
        let code = |value: F| {
            if is_fill(value) { mask(bits) } else { F::distance(value, least, scale).unwrap_or(0) as u64 }
        };
        (bits, least.to_bits(), values.iter().map(|&v| code(F::from_bits(v))).collect())
    }
}

/// Converts a code back to the bits of a value.
enum Scale {
    Integer(u64),
    Single(f32, f32),
    Double(f64, f64),
}

impl Scale {
    fn new(class: &Class, size: usize, least: u64) -> Self {
        match class {
            Class::Integer { .. } => Self::Integer(least),
            Class::Float { places } if size == 4 => {
                Self::Single(f32::power_of_ten(*places), Float::from_bits(least))
            }
            Class::Float { places } => Self::Double(f64::power_of_ten(*places), Float::from_bits(least)),
        }
    }

    #[inline]
    fn value(&self, code: u64) -> u64 {
        match self {
            Self::Integer(least) => code.wrapping_add(*least),
            Self::Single(scale, least) => Float::to_bits(code as i32 as f32 / scale + least),
            Self::Double(scale, least) => Float::to_bits(code as i64 as f64 / scale + least),
        }
    }
}

/// The filter's arithmetic, in the precision of the type.
trait Float: Copy + PartialOrd {
    fn from_bits(bits: u64) -> Self;
    fn to_bits(self) -> u64;
    fn power_of_ten(places: i32) -> Self;
    fn close(a: Self, b: Self, tolerance: Self) -> bool;
    /// `a * scale - b * scale`, rounded half away from zero; `None` if that is not a number or far too large.
    fn distance(a: Self, b: Self, scale: Self) -> Option<i128>;
}

macro_rules! float {
    ($float:ty, $bits:ty) => {
        impl Float for $float {
            fn from_bits(bits: u64) -> Self {
                <$float>::from_bits(bits as $bits)
            }

            fn to_bits(self) -> u64 {
                <$float>::to_bits(self).into()
            }

            fn power_of_ten(places: i32) -> Self {
                (10.0 as $float).powf(places as $float)
            }

            fn close(a: Self, b: Self, tolerance: Self) -> bool {
                (a - b).abs() < tolerance
            }

            fn distance(a: Self, b: Self, scale: Self) -> Option<i128> {
                let distance = (a * scale - b * scale).round();
                (distance.abs() < 1e30).then_some(distance as i128)
            }
        }
    };
}

float!(f32, u32);
float!(f64, u64);

/// The low `bits` bits, at most 64.
const fn mask(bits: u32) -> u64 {
    if bits == 0 { 0 } else { u64::MAX >> (64 - bits) }
}

const fn sign_extend(value: u64, width: u32) -> i128 {
    ((value << (64 - width)) as i64 >> (64 - width)) as i128
}

/// The minimum number of bits for `count` values.
const fn bits_for(count: u128) -> u32 {
    if count <= 1 { 0 } else { 128 - (count - 1).leading_zeros() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{client, data, noise};

    const CASES: [&str; 16] = [
        "so.u1",
        "so.i1",
        "so.i2",
        "so.u4",
        "so.i4be",
        "so.i8",
        "so.full",
        "so.i4.fill",
        "so.i4.bits",
        "so.i4.whole",
        "so.const",
        "so.f4",
        "so.f8be",
        "so.f8.0",
        "so.f4.fill",
        "so.f4.full",
    ];

    #[test]
    fn chunks_of_libhdf5_decode() {
        for name in CASES {
            let filter = ScaleOffset::parse(&client(name)).unwrap();
            let (stored, want) = (data(&format!("{name}.stored")), data(&format!("{name}.raw")));
            let mut out = vec![1; want.len()];
            filter.decode(&stored, &mut out).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(out == want, "{name}");
            assert!(filter.decode(&stored[..stored.len() / 2], &mut out).is_err());
            assert!(filter.decode(&stored, &mut out[1..]).is_err());
        }
    }

    #[test]
    fn encoding_matches_libhdf5() {
        for name in CASES {
            let filter = ScaleOffset::parse(&client(name)).unwrap();
            let (stored, raw) = (data(&format!("{name}.stored")), data(&format!("{name}.raw")));
            let mut back = Vec::new();
            filter.encode(&raw, &mut back).unwrap();
            if name.ends_with("full") {
                // The minimum is not used there, and libhdf5 leaves it uninitialised.
                assert_eq!(back[HEAD..], stored[HEAD..], "{name}");
            } else {
                assert_eq!(back, stored, "{name}");
            }
        }
    }

    fn parameters(
        method: u32,
        factor: u32,
        n: u32,
        [class, size, sign, order]: [u32; 4],
        fill: Option<u32>,
    ) -> [u32; 20] {
        let mut client = [0; 20];
        client[..9].copy_from_slice(&[
            method,
            factor,
            n,
            class,
            size,
            sign,
            order,
            fill.is_some().into(),
            fill.unwrap_or(0),
        ]);
        client
    }

    proptest! {
        #[test]
        fn integers_round_trip(
            size in prop::sample::select(vec![1u32, 2, 4, 8]),
            sign in 0..=1u32,
            order in 0..=1u32,
            n in 0..40u32,
            narrow: bool,
            fill: Option<u8>,
        ) {
            let filter = ScaleOffset::parse(&parameters(2, 0, n, [0, size, sign, order], fill.map(u32::from))).unwrap();
            let mut src = noise((n * size) as usize);
            if narrow {
                for number in src.chunks_mut(size as usize) {
                    let (value, last) = (number[0], number.len() - 1);
                    number.fill(0);
                    number[if order == 1 { last } else { 0 }] = value & 127;
                }
            }
            let (mut stored, mut out) = (Vec::new(), vec![0; src.len()]);
            filter.encode(&src, &mut stored).unwrap();
            filter.decode(&stored, &mut out).unwrap();
            prop_assert_eq!(out, src);
        }

        #[test]
        fn floats_round_trip_rounded(values in prop::collection::vec(-1000.0..1000.0f64, 0..40), places in 0..5u32) {
            let filter = ScaleOffset::parse(&parameters(0, places, values.len() as u32, [1, 8, 0, 0], None)).unwrap();
            let src: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let (mut stored, mut out) = (Vec::new(), vec![0; src.len()]);
            filter.encode(&src, &mut stored).unwrap();
            filter.decode(&stored, &mut out).unwrap();
            for (back, value) in out.as_chunks::<8>().0.iter().zip(values) {
                prop_assert!((f64::from_le_bytes(*back) - value).abs() <= 0.51 * 10f64.powi(-(places as i32)));
            }
        }

        #[test]
        fn encoding_arbitrary_float_bits_never_panics(bits in prop::collection::vec(any::<u32>(), 0..20), places: i8, fill: Option<u32>) {
            let filter = ScaleOffset::parse(&parameters(0, i32::from(places) as u32, bits.len() as u32, [1, 4, 0, 0], fill)).unwrap();
            let src: Vec<u8> = bits.iter().flat_map(|v| v.to_le_bytes()).collect();
            let (mut stored, mut out) = (Vec::new(), vec![0; src.len()]);
            filter.encode(&src, &mut stored).unwrap();
            filter.decode(&stored, &mut out).unwrap();
        }

        #[test]
        fn arbitrary_bytes_never_panic(src: Vec<u8>, bits in 0..80u8, size in 0..10u32, class in 0..3u32, n in 0..60u32, factor in 0..70u32) {
            let method = if class == 0 { 2 } else { 0 };
            if let Ok(filter) = ScaleOffset::parse(&parameters(method, factor, n, [class, size, 1, 0], Some(3))) {
                let len = filter.decoded_len().unwrap();
                let _ = filter.decode(&src, &mut vec![0; len]);
                let stream = [&[bits, 0, 0, 0, 8][..], &src].concat();
                let _ = filter.decode(&stream, &mut vec![0; len]);
            }
        }
    }
}
