//! The transforms that only TileDB has.
//!
//! In TileDB, a filter takes lists of *parts* (buffers) of data and metadata and makes such lists. Each module here has the
//! transform of one part and the filter's own metadata as a type that is parsed and written; how the lists nest is
//! left to the format's crate. All integers are little-endian, except for lengths and numbers inside [`rle`] and
//! [`dictionary`] data, which are big-endian.
//!
//! | module | filter |
//! |---|---|
//! | [`bit_width`] | 7, bit-width reduction |
//! | [`positive_delta`] | 10 |
//! | [`double_delta`] | 6 |
//! | [`delta`] | 19 |
//! | [`rle`] | 4, fixed-size cells and strings |
//! | [`dictionary`] | 14, strings |
//! | [`xor`] | 16 |
//! | [`float_scale`] | 15 |
//! | [`parts`] | metadata that several filters share |

pub mod bit_width;
pub mod delta;
pub mod dictionary;
pub mod double_delta;
pub mod float_scale;
pub mod parts;
pub mod positive_delta;
pub mod rle;
pub mod xor;

/// The integer that a transform works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Integer {
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
    /// 64 bits with sign, and dates and times.
    I64,
    /// 64 bits.
    U64,
}

impl Integer {
    /// Bytes of the integer.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 => 4,
            Self::I64 | Self::U64 => 8,
        }
    }

    /// Whether it has a sign.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Bits of the integer.
    const fn width(self) -> u32 {
        self.size() as u32 * 8
    }

    /// A stored integer, its sign extended.
    #[inline]
    fn load(self, from: &[u8]) -> i128 {
        let bits = load_bits(from);
        if self.is_signed() {
            let unused = 64 - self.width();
            i128::from((bits << unused) as i64 >> unused)
        } else {
            i128::from(bits)
        }
    }
}

/// At most eight little-endian bytes.
#[inline]
fn load_bits(from: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..from.len()].copy_from_slice(from);
    u64::from_le_bytes(bytes)
}

/// The low bytes of `value`, as many as fit `to`.
#[inline]
fn store_bits(value: u64, to: &mut [u8]) {
    let bytes = value.to_le_bytes();
    to.copy_from_slice(&bytes[..to.len()]);
}

/// Calls one generic function with the unsigned type of a size in bytes.
macro_rules! by_size {
    ($size:expr, $call:ident($($argument:expr),*), else $otherwise:expr) => {
        match $size {
            1 => $call::<u8>($($argument),*),
            2 => $call::<u16>($($argument),*),
            4 => $call::<u32>($($argument),*),
            8 => $call::<u64>($($argument),*),
            _ => $otherwise,
        }
    };
}
use by_size;

/// An unsigned integer in a slice of bytes; differences of signed ones are the same bits.
trait Word: Copy {
    const SIZE: usize;
    fn load(from: &[u8]) -> Self;
    fn store(self, to: &mut [u8]);
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn zero() -> Self;
}

macro_rules! word {
    ($($word:ty),*) => {$(
        impl Word for $word {
            const SIZE: usize = size_of::<$word>();

            #[inline]
            fn load(from: &[u8]) -> Self {
                let mut bytes = [0; Self::SIZE];
                bytes.copy_from_slice(from);
                Self::from_le_bytes(bytes)
            }

            #[inline]
            fn store(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }

            #[inline]
            fn zero() -> Self {
                0
            }
        }
    )*};
}
word!(u8, u16, u32, u64);

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
