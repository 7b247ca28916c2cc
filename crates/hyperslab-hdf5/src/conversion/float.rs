//! Converts floats of any layout exactly.

use half::f16;

use super::integer::{bits, put_bits};
use crate::message::datatype::{Float, Order};

/// How to read a non-native float.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FloatPlan {
    pub(crate) stored: usize,
    pub(crate) float: Float,
}

impl FloatPlan {
    /// The value in these bytes: exact while it has at most 53 significant bits in the range of `f64`.
    pub(crate) fn value(self, bytes: &[u8]) -> f64 {
        let Float { order, norm, sign, exponent, mantissa, bias, .. } = self.float;
        let bits = bits(bytes, order);
        let field = |(at, length): (u8, u8)| {
            if length == 0 || at > 127 {
                0
            } else {
                bits >> at & (u128::MAX >> (128 - u32::from(length).min(128)))
            }
        };
        let negative = field((sign, 1)) == 1;
        let (e, m) = (field(exponent) as i64, field(mantissa));
        let all_ones = exponent.1 > 0 && exponent.1 < 63 && e == (1 << exponent.1) - 1;
        let fraction = i64::from(mantissa.1);
        // With an explicit leading bit (x87), infinity has only that bit set.
        let explicit = norm != 2;
        let magnitude = if all_ones && order != Order::Vax {
            let payload = if explicit && fraction > 0 {
                m & !1_u128.checked_shl(u32::from(mantissa.1) - 1).unwrap_or(0)
            } else {
                m
            };
            if payload == 0 { f64::INFINITY } else { f64::NAN }
        } else if explicit {
            scale(m, e.max(1) - i64::from(bias) - (fraction - 1))
        } else if e == 0 {
            scale(m, 1 - i64::from(bias) - fraction)
        } else {
            scale(m | 1_u128.checked_shl(fraction as u32).unwrap_or(0), e - i64::from(bias) - fraction)
        };
        if negative { -magnitude } else { magnitude }
    }

    pub(crate) fn convert(self, stored: &[u8], out: &mut [u8], size: usize) {
        for (from, to) in stored.chunks_exact(self.stored).zip(out.chunks_exact_mut(size)) {
            match size {
                2 => to.copy_from_slice(&f16::from_f64(self.value(from)).to_ne_bytes()),
                4 => to.copy_from_slice(&(self.value(from) as f32).to_ne_bytes()),
                8 => to.copy_from_slice(&self.value(from).to_ne_bytes()),
                // The 80-bit float: its ten bytes, little-endian.
                _ => {
                    let bits = bits(from, self.float.order) >> self.float.offset.min(127);
                    to.fill(0);
                    to[..10].copy_from_slice(&bits.to_le_bytes()[..10]);
                }
            }
        }
    }
}

impl FloatPlan {
    /// The stored bytes of native floats of `size` bytes, rounded to nearest if they have more bits.
    pub(crate) fn store(self, native: &[u8], size: usize, out: &mut Vec<u8>) {
        for from in native.chunks_exact(size.max(1)) {
            let bits = match *from {
                [a, b] => self.bits_of(f16::from_ne_bytes([a, b]).to_f64()),
                [a, b, c, d] => self.bits_of(f64::from(f32::from_ne_bytes([a, b, c, d]))),
                [a, b, c, d, e, f, g, h] => self.bits_of(f64::from_ne_bytes([a, b, c, d, e, f, g, h])),
                // The 80-bit float: its ten bytes, little-endian.
                _ => {
                    let mut wide = [0; 16];
                    let length = from.len().min(10);
                    wide[..length].copy_from_slice(&from[..length]);
                    u128::from_le_bytes(wide) << self.float.offset.min(47)
                }
            };
            put_bits(bits, self.float.order, self.stored, out);
        }
    }

    /// The inverse of [`value`](Self::value).
    fn bits_of(self, value: f64) -> u128 {
        let Float { order, norm, sign, exponent, mantissa, bias, .. } = self.float;
        let explicit = norm != 2;
        let fraction = i64::from(mantissa.1) - i64::from(explicit);
        let leading = 1_u128.checked_shl(fraction.max(0) as u32).unwrap_or(0);
        let largest = (1_i64 << exponent.1.min(62)) - 1;
        let infinite = (largest, if explicit { leading } else { 0 });
        let (e, m) = if value.is_nan() {
            (largest, if explicit { leading | leading >> 1 } else { leading >> 1 })
        } else if value.is_infinite() {
            infinite
        } else if value == 0.0 {
            (0, 0)
        } else {
            let (e, significand) = normalised(value.abs(), i64::from(bias), fraction);
            let most = if order == Order::Vax { largest } else { largest - 1 };
            if e > most { infinite } else { (e, if explicit { significand } else { significand & !leading }) }
        };
        let place = |bits: u128, (at, width): (u8, u8)| {
            let kept = bits & 1_u128.checked_shl(u32::from(width)).map_or(u128::MAX, |end| end - 1);
            kept.checked_shl(u32::from(at)).unwrap_or(0)
        };
        place(u128::from(value.is_sign_negative()), (sign, 1))
            | place(e.unsigned_abs().into(), exponent)
            | place(m, mantissa)
    }
}

/// The stored exponent of a positive number, and its significand with `fraction` bits after the leading one, rounded to even.
fn normalised(value: f64, bias: i64, fraction: i64) -> (i64, u128) {
    let bits = value.to_bits();
    let (stored, low) = ((bits >> 52 & 0x7ff) as i64, bits & ((1 << 52) - 1));
    let (whole, power) = if stored == 0 { (low, -1074) } else { (low | 1 << 52, stored - 1075) };
    let top = 63 - i64::from(whole.leading_zeros());
    let least = 1 - bias;
    let e = (power + top).max(least);
    let shift = power - (e - fraction);
    let significand = match shift {
        0.. => u128::from(whole).checked_shl(shift.min(127) as u32).unwrap_or(0),
        -64.. => {
            let by = shift.unsigned_abs() as u32;
            let (kept, rest) = (u128::from(whole) >> by, u128::from(whole) & ((1 << by) - 1));
            let half = 1_u128 << (by - 1);
            kept + u128::from(rest > half || rest == half && kept & 1 == 1)
        }
        _ => 0,
    };
    let leading = 1_u128.checked_shl(fraction.max(0) as u32).unwrap_or(0);
    if significand >= leading << 1 {
        return (e + bias + 1, significand >> 1);
    }
    // Without the leading bit it is subnormal, with a stored exponent of zero.
    (if significand < leading { 0 } else { e + bias }, significand)
}

/// `mantissa * 2^power`, in steps that neither overflow nor lose bits before the last.
fn scale(mantissa: u128, power: i64) -> f64 {
    let mut value = mantissa as f64;
    let mut power = power.clamp(-10_000, 10_000) as i32;
    while power > 1000 {
        value *= 2_f64.powi(1000);
        power -= 1000;
    }
    while power < -1000 {
        // Only the last multiplication may produce a subnormal number, so that only it rounds.
        let step = (-power - 1000).min(1000);
        value *= 2_f64.powi(-step);
        power += step;
    }
    value * 2_f64.powi(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ieee(stored: usize, exponent: u8, mantissa: u8) -> FloatPlan {
        let float = Float {
            order: Order::Little,
            norm: 2,
            sign: exponent + mantissa,
            exponent: (mantissa, exponent),
            mantissa: (0, mantissa),
            bias: (1 << (exponent - 1)) - 1,
            offset: 0,
            precision: 8 * stored as u16,
            pad: 0,
        };
        FloatPlan { stored, float }
    }

    #[test]
    fn known_bits_give_known_values() {
        for value in [0.0, -0.0, 1.5, -3.25e-40, 1e-45, f32::MAX, f32::INFINITY, f32::MIN_POSITIVE] {
            assert_eq!(ieee(4, 8, 23).value(&value.to_le_bytes()).to_bits(), f64::from(value).to_bits());
        }
        for value in [1.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1e-310] {
            assert_eq!(ieee(8, 11, 52).value(&f64::to_le_bytes(value)).to_bits(), value.to_bits());
        }
        assert!(ieee(4, 8, 23).value(&f32::NAN.to_le_bytes()).is_nan());
        // bfloat16 is the upper half of a float32.
        assert_eq!(ieee(2, 8, 7).value(&[0xc0, 0x3f]), 1.5);
    }

    #[test]
    fn stored_floats_round_trip() {
        for bits in (0..=u16::MAX).map(|bits| bits.to_ne_bytes()) {
            let mut out = Vec::new();
            ieee(2, 5, 10).store(&bits, 2, &mut out);
            let (was, is) = (f16::from_ne_bytes(bits), f16::from_ne_bytes([out[0], out[1]]));
            assert!(was.to_bits() == is.to_bits() || was.is_nan() && is.is_nan(), "{was} {is}");
        }
        for value in [0.0, -0.0, 1.5, -3.25e-40, 1e-45, f32::MAX, f32::INFINITY, f32::MIN_POSITIVE] {
            let mut out = Vec::new();
            ieee(4, 8, 23).store(&f64::from(value).to_ne_bytes(), 8, &mut out);
            assert_eq!(out, value.to_le_bytes());
        }
        for value in [1.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1e-310] {
            let mut out = Vec::new();
            ieee(8, 11, 52).store(&f64::to_ne_bytes(value), 8, &mut out);
            assert_eq!(out, value.to_le_bytes());
        }
        // bfloat16, rounded to even.
        let mut out = Vec::new();
        ieee(2, 8, 7).store(&1.003_906_25_f64.to_ne_bytes(), 8, &mut out);
        assert_eq!(out, [0x80, 0x3f]);
        let mut out = Vec::new();
        ieee(2, 8, 7).store(&1e39_f64.to_ne_bytes(), 8, &mut out);
        assert_eq!(out, [0x80, 0x7f]);
    }

    #[test]
    fn every_half_is_exact() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (ieee(2, 5, 10).value(&bits.to_le_bytes()), f16::from_bits(bits).to_f64());
            assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(), "{bits:#x}");
        }
    }
}
