//! Integers of any width, so that each kernel is written only once.

/// The integer type of a part's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Integer {
    /// Bytes: 1, 2, 4 or 8.
    pub size: usize,
    /// Whether it is signed.
    pub signed: bool,
}

/// A little-endian unsigned word. Wrapping arithmetic on it also works for signed integers of the same width.
pub(super) trait Word: Copy + Ord {
    const SIZE: usize;
    fn load(bytes: &[u8]) -> Self;
    fn store(self, out: &mut [u8]);
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn xored(self, other: Self) -> Self;
    fn to_u64(self) -> u64;
    fn from_u64(value: u64) -> Self;
}

macro_rules! words {
    ($($word:ty)*) => {$(
        impl Word for $word {
            const SIZE: usize = size_of::<$word>();
            fn load(bytes: &[u8]) -> Self {
                let mut word = [0; size_of::<$word>()];
                word.copy_from_slice(&bytes[..size_of::<$word>()]);
                Self::from_le_bytes(word)
            }
            fn store(self, out: &mut [u8]) {
                out[..size_of::<$word>()].copy_from_slice(&self.to_le_bytes());
            }
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn xored(self, other: Self) -> Self {
                self ^ other
            }
            fn to_u64(self) -> u64 {
                u64::from(self)
            }
            fn from_u64(value: u64) -> Self {
                value as Self
            }
        }
    )*};
}

words! { u8 u16 u32 u64 }

/// Calls a function generic over [`Word`] with the word of this many bytes.
macro_rules! by_width {
    ($size:expr, $codec:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $size {
            1 => $function::<u8>($($argument),*),
            2 => $function::<u16>($($argument),*),
            4 => $function::<u32>($($argument),*),
            8 => $function::<u64>($($argument),*),
            other => Err($crate::error::invalid($codec, format!("integers of {other} bytes do not exist"))),
        }
    };
}

pub(super) use by_width;

impl Integer {
    /// The word's value as `i128`, by sign.
    pub(super) fn value(self, word: u64) -> i128 {
        let shift = 64 - 8 * self.size as u32;
        if self.signed { i128::from(((word << shift) as i64) >> shift) } else { i128::from(word) }
    }
}
