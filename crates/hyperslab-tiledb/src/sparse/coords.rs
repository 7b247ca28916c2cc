//! Coordinates as keys: one `u64` per number that preserves the order, so that comparing works the same for all
//! types.

use bytes::Bytes;
use hyperslab_core::{Data, Elements};

use crate::datatype::Number;
use crate::schema::{float, integer};

/// The coordinates of one dimension.
#[derive(Debug, Clone)]
pub(crate) enum Keys {
    Fixed(Vec<u64>),
    Text { offsets: Vec<u64>, bytes: Bytes },
}

/// The sign bit.
const TOP: u64 = 1 << 63;

fn float_key(value: f64) -> u64 {
    // Adding zero turns negative zero into positive zero.
    let bits = (value + 0.0).to_bits();
    if bits & TOP == 0 { bits | TOP } else { !bits }
}

/// The key of a number, given its bytes.
pub(crate) fn key_of(number: Number, bytes: &[u8]) -> u64 {
    if number.is_float() {
        return float_key(float(number, bytes));
    }
    integer_key(number, integer(number, bytes))
}

/// The key of an integer, which must be in the type's range.
pub(crate) const fn integer_key(number: Number, value: i128) -> u64 {
    if number.is_signed() { (value as i64 as u64) ^ TOP } else { value as u64 }
}

/// The key of a float.
pub(crate) fn key_of_float(value: f64) -> u64 {
    float_key(value)
}

/// The keys of a column of numbers.
pub(crate) fn keys_of(number: Number, data: &[u8]) -> Vec<u64> {
    macro_rules! all {
        ($type:ty, $key:expr) => {
            data.as_chunks::<{ size_of::<$type>() }>()
                .0
                .iter()
                .map(|bytes| $key(<$type>::from_le_bytes(*bytes)))
                .collect()
        };
    }
    match number {
        Number::I8 => all!(i8, |value| i64::from(value) as u64 ^ TOP),
        Number::I16 => all!(i16, |value| i64::from(value) as u64 ^ TOP),
        Number::I32 => all!(i32, |value| i64::from(value) as u64 ^ TOP),
        Number::I64 => all!(i64, |value| value as u64 ^ TOP),
        Number::U8 => all!(u8, u64::from),
        Number::U16 => all!(u16, u64::from),
        Number::U32 => all!(u32, u64::from),
        Number::U64 => all!(u64, |value| value),
        Number::F32 => all!(f32, |value| float_key(f64::from(value))),
        Number::F64 => all!(f64, float_key),
    }
}

impl Keys {
    pub(crate) fn of(number: Number, elements: &Elements) -> Self {
        match &elements.data {
            Data::Variable { offsets, bytes } => {
                Self::Text { offsets: offsets.clone(), bytes: bytes.clone() }
            }
            Data::Fixed(bytes) => Self::Fixed(keys_of(number, bytes)),
            _ => Self::Fixed(Vec::new()),
        }
    }

    /// The number of coordinates.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Fixed(keys) => keys.len(),
            Self::Text { offsets, .. } => offsets.len().saturating_sub(1),
        }
    }

    pub(crate) fn compare(&self, index: usize, other: &Self, other_index: usize) -> std::cmp::Ordering {
        match (self, other) {
            (Self::Fixed(a), Self::Fixed(b)) => a[index].cmp(&b[other_index]),
            (a, b) => a.text(index).cmp(b.text(other_index)),
        }
    }

    pub(crate) fn text(&self, index: usize) -> &[u8] {
        match self {
            Self::Text { offsets, bytes } => &bytes[offsets[index] as usize..offsets[index + 1] as usize],
            Self::Fixed(_) => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_keep_the_order(a: f64, b: f64, c: i32, d: i32) {
            if let Some(order) = a.partial_cmp(&b) {
                prop_assert_eq!(key_of_float(a).cmp(&key_of_float(b)), order);
            }
            let keys = keys_of(Number::I32, &[c.to_le_bytes(), d.to_le_bytes()].concat());
            prop_assert_eq!(keys[0].cmp(&keys[1]), c.cmp(&d));
            prop_assert_eq!(keys[0], key_of(Number::I32, &c.to_le_bytes()));
        }
    }

    #[test]
    fn both_zeros_are_one() {
        assert_eq!(key_of_float(0.0), key_of_float(-0.0));
    }
}
