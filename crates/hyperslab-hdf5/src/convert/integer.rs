//! Integers of any width, precision and place in their bytes.

use crate::message::datatype::{Integer, Order};

/// How an integer that is not a native one is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IntegerPlan {
    pub(crate) stored: usize,
    pub(crate) order: Order,
    pub(crate) signed: bool,
    pub(crate) offset: u32,
    pub(crate) precision: u32,
}

impl IntegerPlan {
    pub(crate) fn new(integer: Integer, stored: usize) -> Self {
        Self {
            stored,
            order: integer.order,
            signed: integer.signed,
            offset: u32::from(integer.offset),
            precision: u32::from(integer.precision),
        }
    }

    /// The value in these bytes.
    pub(crate) fn value(self, bytes: &[u8]) -> i128 {
        let bits = bits(bytes, self.order);
        if self.precision == 0 || self.precision > 127 || self.offset > 127 {
            return bits as i128;
        }
        let field = bits >> self.offset & ((1 << self.precision) - 1);
        if self.signed && field >> (self.precision - 1) & 1 == 1 {
            return (field as i128).wrapping_sub(1_i128 << self.precision);
        }
        field as i128
    }

    pub(crate) fn convert(self, stored: &[u8], out: &mut [u8], size: usize) {
        for (from, to) in stored.chunks_exact(self.stored).zip(out.chunks_exact_mut(size)) {
            put(self.value(from), to);
        }
    }
}

/// Stores an integer in native byte order in however many bytes there are.
pub(crate) fn put(value: i128, out: &mut [u8]) {
    let bytes = value.to_le_bytes();
    let length = out.len().min(16);
    out[..length].copy_from_slice(&bytes[..length]);
    if cfg!(target_endian = "big") {
        out[..length].reverse();
    }
}

/// The lowest 16 bytes as bits, whatever order they are stored in.
pub(crate) fn bits(bytes: &[u8], order: Order) -> u128 {
    let mut wide = [0; 16];
    let length = bytes.len().min(16);
    match order {
        Order::Little => wide[..length].copy_from_slice(&bytes[..length]),
        Order::Big => {
            for (to, from) in wide.iter_mut().zip(bytes.iter().rev()) {
                *to = *from;
            }
        }
        Order::Vax => {
            // Pairs, the most significant first, each with its low byte first.
            for (to, from) in wide[..length & !1].chunks_exact_mut(2).zip(bytes.chunks_exact(2).rev()) {
                to.copy_from_slice(from);
            }
        }
    }
    u128::from_le_bytes(wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_cut_out_and_sign_extended() {
        let plan =
            |signed, offset, precision, order| IntegerPlan { stored: 2, order, signed, offset, precision };
        assert_eq!(plan(true, 4, 5, Order::Little).value(&[0xf0, 0x01]), -1);
        assert_eq!(plan(false, 4, 5, Order::Little).value(&[0xf0, 0x01]), 31);
        assert_eq!(plan(false, 4, 5, Order::Big).value(&[0x01, 0xf0]), 31);
        assert_eq!(plan(true, 0, 16, Order::Big).value(&[0xff, 0xfe]), -2);
    }
}
