//! Integers of any width, precision and bit offset.

use crate::message::datatype::{Integer, Order};

/// How to read a non-native integer.
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

impl IntegerPlan {
    /// The stored bytes of native integers of `size` bytes. Values beyond the precision keep their lowest bits.
    pub(crate) fn store(self, native: &[u8], size: usize, out: &mut Vec<u8>) {
        for from in native.chunks_exact(size.max(1)) {
            let mut wide = bits(from, NATIVE);
            if self.precision > 0 && self.precision <= 127 && self.offset <= 127 {
                wide = (wide & ((1 << self.precision) - 1)) << self.offset;
            }
            put_bits(wide, self.order, self.stored, out);
        }
    }
}

const NATIVE: Order = if cfg!(target_endian = "little") { Order::Little } else { Order::Big };

/// Appends bits as `length` bytes in an order: the inverse of [`bits`].
pub(crate) fn put_bits(bits: u128, order: Order, length: usize, out: &mut Vec<u8>) {
    let from = out.len();
    let low = bits.to_le_bytes();
    out.resize(from + length, 0);
    let to = &mut out[from..];
    let counted = length.min(16);
    match order {
        Order::Little => to[..counted].copy_from_slice(&low[..counted]),
        Order::Big => {
            for (to, from) in to.iter_mut().rev().zip(low) {
                *to = from;
            }
        }
        Order::Vax => {
            for (to, from) in to.chunks_exact_mut(2).rev().zip(low.chunks_exact(2)) {
                to.copy_from_slice(from);
            }
        }
    }
}

/// Stores an integer in native byte order in all available bytes.
pub(crate) fn put(value: i128, out: &mut [u8]) {
    let bytes = value.to_le_bytes();
    let length = out.len().min(16);
    out[..length].copy_from_slice(&bytes[..length]);
    if cfg!(target_endian = "big") {
        out[..length].reverse();
    }
}

/// The lowest 16 bytes as bits, independent of the stored order.
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

    #[test]
    fn stored_integers_round_trip() {
        for order in [Order::Little, Order::Big, Order::Vax] {
            for (stored, offset, precision) in [(4, 0, 24), (4, 4, 24), (2, 3, 9), (8, 0, 64), (6, 8, 40)] {
                let plan = IntegerPlan { stored, order, signed: true, offset, precision };
                for value in [0_i64, 1, -1, 200, -200, -(1 << (precision - 1).min(8))] {
                    let mut out = Vec::new();
                    plan.store(&value.to_ne_bytes(), 8, &mut out);
                    assert_eq!(out.len(), stored);
                    assert_eq!(
                        plan.value(&out),
                        i128::from(value),
                        "{order:?} {stored} {offset} {precision}"
                    );
                }
            }
        }
    }
}
