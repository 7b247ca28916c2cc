//! zfp: blocks of 4ⁿ numbers, transformed and stored bit plane by bit plane. Reading only.
//!
//! A field of one to four dimensions is divided into blocks with sides of four cells. A block of floats has a common exponent;
//! its numbers become integers, which a lifting transform decorrelates. The coefficients are stored in negabinary, highest bit
//! plane first, until the limit of the [mode](Mode) is reached. The reversible mode stores all planes, after a lossless
//! transform.
//!
//! The stream is read as little-endian words. Bits come lowest first, so the word width does not matter.

mod block;
mod order;

use crate::error::{Result, corrupt, invalid, size, too_long, unsupported};
use block::{BitReader, BlockInteger};

pub(crate) const CODEC: &str = "zfp";

/// The library's `ZFP_MAX_BITS`, `ZFP_MAX_PREC` and `ZFP_MIN_EXP`.
const MAX_BITS: u32 = 16658;
const MAX_PRECISION: u32 = 64;
const MIN_EXPONENT: i32 = -1074;

/// More bits than a block can use are padding; a header has room for so many.
const MOST_BITS: u32 = 1 << 15;

/// The type of a field's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Scalar {
    Int32,
    Int64,
    Float32,
    Float64,
}

impl Scalar {
    /// Bytes of a number.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Int32 | Self::Float32 => 4,
            Self::Int64 | Self::Float64 => 8,
        }
    }
}

/// How much of each block is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// The minimum number of bits per block.
    pub min_bits: u32,
    /// The maximum number of bits per block.
    pub max_bits: u32,
    /// The maximum number of bit planes per block.
    pub max_precision: u32,
    /// The exponent of the lowest bit plane; below −1074 for the reversible mode.
    pub min_exponent: i32,
}

impl Mode {
    const ALL: Self =
        Self { min_bits: 1, max_bits: MAX_BITS, max_precision: MAX_PRECISION, min_exponent: MIN_EXPONENT };

    /// Stores everything.
    #[must_use]
    pub const fn reversible() -> Self {
        Self { min_exponent: MIN_EXPONENT - 1, ..Self::ALL }
    }

    /// Stores this many bit planes.
    #[must_use]
    pub fn fixed_precision(planes: u32) -> Self {
        let planes = if planes == 0 { MAX_PRECISION } else { planes.min(MAX_PRECISION) };
        Self { max_precision: planes, ..Self::ALL }
    }

    /// Keeps errors below the tolerance.
    #[must_use]
    pub fn fixed_accuracy(tolerance: f64) -> Self {
        let exponent =
            if tolerance > 0.0 && tolerance.is_finite() { exponent_of(tolerance) } else { MIN_EXPONENT };
        Self { min_exponent: exponent, ..Self::ALL }
    }

    /// Stores this many bits per number, for a field with this many dimensions.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::CodecError::Invalid) for a rate that is not positive, or larger than any block.
    pub fn fixed_rate(rate: f64, scalar: Scalar, dimensions: usize) -> Result<Self> {
        let cells = (1_u32 << (2 * dimensions.clamp(1, 4))) as f64;
        let bits = (cells * rate + 0.5).floor();
        if !(rate > 0.0 && bits <= f64::from(MOST_BITS)) {
            return Err(invalid(CODEC, format!("a rate of {rate} bits")));
        }
        let least = match scalar {
            Scalar::Float32 => 1 + 8,
            Scalar::Float64 => 1 + 11,
            _ => 0,
        };
        let bits = (bits as u32).max(least).max(1);
        Ok(Self { min_bits: bits, max_bits: bits, ..Self::ALL })
    }

    /// Decodes the mode of a header: 12 bits, or 64 if the lowest 12 are all set.
    fn from_code(code: u64) -> Result<Self> {
        let mode = match code {
            0..2048 => Self { min_bits: code as u32 + 1, max_bits: code as u32 + 1, ..Self::ALL },
            2048..2176 => Self { max_precision: code as u32 + 1 - 2048, ..Self::ALL },
            2176 => Self::reversible(),
            2177..=0xffe => Self { min_exponent: code as i32 + MIN_EXPONENT - 2177, ..Self::ALL },
            _ => {
                let part = |shift: u32, bits: u32| (code >> shift) as u32 & ((1 << bits) - 1);
                Self {
                    min_bits: part(12, 15) + 1,
                    max_bits: part(27, 15) + 1,
                    max_precision: part(42, 7) + 1,
                    min_exponent: part(49, 15) as i32 - 16495,
                }
            }
        };
        mode.check()
    }

    /// As it is, where it can be.
    fn check(self) -> Result<Self> {
        let sound = self.min_bits <= self.max_bits
            && self.max_bits <= MOST_BITS
            && (1..=MAX_PRECISION).contains(&self.max_precision);
        if sound { Ok(self) } else { Err(corrupt(CODEC, format!("a mode of {self:?}"))) }
    }

    const fn is_reversible(self) -> bool {
        self.min_exponent < MIN_EXPONENT
    }
}

/// The exponent `e` with `2^e <= value < 2^(e + 1)`.
fn exponent_of(value: f64) -> i32 {
    let bits = value.to_bits();
    match (bits >> 52) as i32 & 0x7ff {
        0 => -1011 - (bits << 12).leading_zeros() as i32 - 12,
        biased => biased - 1023,
    }
}

/// Numbers of one type in one to four dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    scalar: Scalar,
    /// The fastest axis first, always four.
    extents: [usize; 4],
    dimensions: usize,
}

impl Field {
    /// A field of this shape, slowest axis first. One without axes is one number.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::CodecError::Unsupported) for more than four axes.
    pub fn new(scalar: Scalar, shape: &[usize]) -> Result<Self> {
        if shape.len() > 4 {
            return Err(unsupported(CODEC, format!("a field of {} dimensions", shape.len())));
        }
        let mut extents = [1; 4];
        for (extent, own) in extents.iter_mut().zip(shape.iter().rev()) {
            *extent = *own;
        }
        Ok(Self { scalar, extents, dimensions: shape.len().max(1) })
    }

    /// The type of its numbers.
    #[must_use]
    pub const fn scalar(&self) -> Scalar {
        self.scalar
    }

    /// The number of its axes.
    #[must_use]
    pub const fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The size of all its numbers in bytes; `None` on overflow of `usize`.
    #[must_use]
    pub fn bytes(&self) -> Option<usize> {
        self.extents.iter().try_fold(self.scalar.size(), |size, extent| size.checked_mul(*extent))
    }
}

/// The contents of a full header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The numbers.
    pub field: Field,
    /// How they are stored.
    pub mode: Mode,
    /// Bits of the header; blocks follow.
    bits: usize,
}

impl Header {
    /// Reads a full header: magic, field and mode.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::CodecError::Corrupt) if there is none, [`Unsupported`](crate::CodecError::Unsupported) for
    /// another version of the codec.
    pub fn parse(src: &[u8]) -> Result<Self> {
        let [b'z', b'f', b'p', version, _, ..] = *src else {
            return Err(corrupt(CODEC, "no zfp header"));
        };
        if version != 5 {
            return Err(unsupported(CODEC, format!("codec version {version}")));
        }
        let mut reader = BitReader::new(src, 32);
        let meta = reader.bits(52);
        let scalar = [Scalar::Int32, Scalar::Int64, Scalar::Float32, Scalar::Float64][(meta & 3) as usize];
        let dimensions = (meta >> 2 & 3) as usize + 1;
        let width = 48 / dimensions as u32;
        let mut extents = [1; 4];
        for (axis, extent) in extents.iter_mut().take(dimensions).enumerate() {
            let own = meta >> (4 + width * axis as u32) & ((1 << width) - 1);
            *extent = usize::try_from(own + 1).map_err(|_| corrupt(CODEC, format!("an extent of {own}")))?;
        }
        let mut code = reader.bits(12);
        if code == 0xfff {
            code |= reader.bits(52) << 12;
        }
        if reader.is_past_end() {
            return Err(corrupt(CODEC, "the header ends early"));
        }
        let field = Field { scalar, extents, dimensions };
        Ok(Self { field, mode: Mode::from_code(code)?, bits: reader.position() })
    }
}

/// Decodes a stream without a header into `out`, native byte order, which it must fill.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if `src` is truncated, [`Size`](crate::CodecError::Size) if the field has another size.
pub fn decode(field: &Field, mode: Mode, src: &[u8], out: &mut [u8]) -> Result<()> {
    decode_from(field, mode.check()?, BitReader::new(src, 0), out)
}

/// Decodes a stream that starts with a full header into `out`, native byte order, which it must fill.
///
/// # Errors
///
/// As [`decode`] and [`Header::parse`].
pub fn decode_with_header(src: &[u8], out: &mut [u8]) -> Result<()> {
    let header = Header::parse(src)?;
    decode_from(&header.field, header.mode, BitReader::new(src, header.bits), out)
}

/// Decodes a stream that starts with a full header and appends the result, at most `limit` bytes, to `out`.
///
/// # Errors
///
/// As [`decode_with_header`]; [`Size`](crate::CodecError::Size) if the result is longer than `limit`.
pub fn decode_vec(src: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    let header = Header::parse(src)?;
    let bytes = header.field.bytes().filter(|bytes| *bytes <= limit).ok_or_else(|| too_long(CODEC, limit))?;
    let start = out.len();
    out.resize(start + bytes, 0);
    decode_from(&header.field, header.mode, BitReader::new(src, header.bits), &mut out[start..])
        .inspect_err(|_| out.truncate(start))
}

fn decode_from(field: &Field, mode: Mode, reader: BitReader<'_>, out: &mut [u8]) -> Result<()> {
    if field.bytes() != Some(out.len()) {
        return Err(size(CODEC, out.len(), field.bytes().unwrap_or(usize::MAX)));
    }
    if out.is_empty() {
        return Ok(());
    }
    match field.scalar {
        Scalar::Int32 => blocks::<i32, 4>(field, reader, out, |r, d, b| block::integers(r, mode, d, b)),
        Scalar::Int64 => blocks::<i64, 8>(field, reader, out, |r, d, b| block::integers(r, mode, d, b)),
        Scalar::Float32 => blocks::<i32, 4>(field, reader, out, |r, d, b| block::floats(r, mode, d, b)),
        Scalar::Float64 => blocks::<i64, 8>(field, reader, out, |r, d, b| block::floats(r, mode, d, b)),
    }
}

/// Decodes block after block and puts each in its place.
fn blocks<L: BlockInteger, const SIZE: usize>(
    field: &Field,
    mut reader: BitReader<'_>,
    out: &mut [u8],
    mut next: impl FnMut(&mut BitReader<'_>, usize, &mut [L; 256]) -> Result<()>,
) -> Result<()> {
    let [nx, ny, nz, nw] = field.extents;
    let mut block = [L::default(); 256];
    for w in (0..nw).step_by(4) {
        for z in (0..nz).step_by(4) {
            for y in (0..ny).step_by(4) {
                for x in (0..nx).step_by(4) {
                    next(&mut reader, field.dimensions, &mut block)?;
                    if reader.is_past_end() {
                        return Err(corrupt(CODEC, "ends early"));
                    }
                    let width = (nx - x).min(4);
                    let rows = (w..nw.min(w + 4)).flat_map(|w| {
                        (z..nz.min(z + 4)).flat_map(move |z| (y..ny.min(y + 4)).map(move |y| (w, z, y)))
                    });
                    for (row_w, row_z, row_y) in rows {
                        let from = ((row_w - w) * 64 + (row_z - z) * 16 + (row_y - y) * 4) % 256;
                        let at = ((row_w * nz + row_z) * ny + row_y) * nx + x;
                        let to = &mut out[at * SIZE..(at + width) * SIZE];
                        for (to, lane) in to.chunks_exact_mut(SIZE).zip(&block[from..from + width]) {
                            lane.store(to);
                        }
                    }
                }
            }
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
    fn streams_of_the_library_decode() {
        let names = data("zfp.names");
        let names = String::from_utf8(names).unwrap();
        assert!(names.lines().count() > 30);
        for name in names.lines() {
            let (stored, want) = (data(&format!("zfp.{name}.stored")), data(&format!("zfp.{name}.back")));
            let mut out = vec![0; want.len()];
            decode_with_header(&stored, &mut out).unwrap();
            assert!(out == want, "{name}");
            let mut grown = vec![7];
            decode_vec(&stored, want.len(), &mut grown).unwrap();
            assert!(grown[1..] == want);
            assert!(decode_vec(&stored, want.len() - 1, &mut grown).is_err());
            let cut = &stored[..stored.len() / 2];
            assert!(decode_with_header(cut, &mut out).is_err(), "{name}");
        }
    }

    #[test]
    fn tolerances_become_exponents() {
        for (value, exponent) in
            [(1.0, 0), (0.01, -7), (0.5, -1), (3.0, 1), (f64::MIN_POSITIVE / 4.0, -1024), (5e-324, -1074)]
        {
            assert_eq!(exponent_of(value), exponent, "{value}");
        }
        assert!(Mode::fixed_rate(f64::NAN, Scalar::Int32, 2).is_err());
        assert_eq!(Mode::fixed_rate(0.25, Scalar::Float64, 1).unwrap().max_bits, 12);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(src: Vec<u8>, shape in proptest::collection::vec(0..9usize, 0..5)) {
            for scalar in [Scalar::Int32, Scalar::Int64, Scalar::Float32, Scalar::Float64] {
                let field = Field::new(scalar, &shape).unwrap();
                let mut out = vec![0; field.bytes().unwrap()];
                for mode in [Mode::reversible(), Mode::fixed_precision(9), Mode::fixed_accuracy(1e-3), Mode::fixed_rate(3.0, scalar, 2).unwrap()] {
                    let _ = decode(&field, mode, &src, &mut out);
                }
            }
            let mut framed = b"zfp\x05".to_vec();
            framed.extend(&src);
            let _ = decode_vec(&framed, 1 << 16, &mut Vec::new());
        }
    }
}
