//! Positions of cells along a Hilbert curve, in the order that the format defines.
//!
//! Each coordinate becomes a bucket of `63 / dimensions` bits; Skilling's transform turns the buckets into the curve's
//! digits, which are interleaved, the last axis lowest.

use super::Keys;
use super::coords::key_of_float;
use crate::datatype::Number;
use crate::schema::{Dimension, float, integer};

/// The curve over a domain.
#[derive(Debug, Clone)]
pub(crate) struct Hilbert {
    bits: u32,
    /// The lower bound and the width of each numeric dimension.
    scales: Vec<(Number, f64, f64)>,
}

impl Hilbert {
    pub(crate) fn new(dimensions: &[Dimension]) -> Self {
        let scales = dimensions.iter().map(|dimension| {
            let number = dimension.datatype.number();
            if dimension.is_text() {
                return (number, 0.0, 0.0);
            }
            let size = dimension.datatype.size();
            let value = |bytes: &[u8]| {
                if number.is_float() { float(number, bytes) } else { integer(number, bytes) as f64 }
            };
            let (low, high) = (value(&dimension.domain[..size]), value(&dimension.domain[size..]));
            (number, low, high - low)
        });
        Self { bits: 63 / dimensions.len().max(1) as u32, scales: scales.collect() }
    }

    /// The positions of these cells on the curve.
    pub(crate) fn places(&self, keys: &[Keys], cells: usize) -> Vec<u64> {
        let mut axes = vec![0_u64; keys.len()];
        (0..cells)
            .map(|cell| {
                for (axis, (keys, scale)) in axes.iter_mut().zip(keys.iter().zip(&self.scales)) {
                    *axis = self.bucket(keys, cell, *scale);
                }
                self.place(&mut axes)
            })
            .collect()
    }

    fn bucket(&self, keys: &Keys, cell: usize, (number, low, width): (Number, f64, f64)) -> u64 {
        let most = (1_u64 << self.bits) - 1;
        match keys {
            Keys::Fixed(keys) => {
                let value = value_of(number, keys[cell]);
                let share = (value - low) / width * most as f64;
                (share as u64).min(most)
            }
            Keys::Text { .. } => {
                // The first eight bytes, big-endian.
                let text = keys.text(cell);
                let mut head = [0; 8];
                let length = text.len().min(8);
                head[..length].copy_from_slice(&text[..length]);
                u64::from_be_bytes(head) >> (64 - self.bits)
            }
        }
    }

    /// Applies Skilling's axes-to-transpose, then interleaves the bits.
    fn place(&self, axes: &mut [u64]) -> u64 {
        let count = axes.len();
        let top = 1_u64 << (self.bits - 1);
        let mut q = top;
        while q > 1 {
            let low = q - 1;
            for i in 0..count {
                if axes[i] & q != 0 {
                    axes[0] ^= low;
                } else {
                    let t = (axes[0] ^ axes[i]) & low;
                    axes[0] ^= t;
                    axes[i] ^= t;
                }
            }
            q >>= 1;
        }
        for i in 1..count {
            axes[i] ^= axes[i - 1];
        }
        let mut t = 0;
        q = top;
        while q > 1 {
            if axes.last().is_some_and(|last| last & q != 0) {
                t ^= q - 1;
            }
            q >>= 1;
        }
        for axis in axes.iter_mut() {
            *axis ^= t;
        }
        let mut place = 0;
        for bit in (0..self.bits).rev() {
            for axis in axes.iter() {
                place = place << 1 | (axis >> bit & 1);
            }
        }
        place
    }
}

/// The number that a key represents.
pub(crate) fn value_of(number: Number, key: u64) -> f64 {
    const TOP: u64 = 1 << 63;
    if number.is_float() {
        let bits = if key & TOP != 0 { key ^ TOP } else { !key };
        debug_assert_eq!(key_of_float(f64::from_bits(bits)), key);
        return f64::from_bits(bits);
    }
    if number.is_signed() { (key ^ TOP) as i64 as f64 } else { key as f64 }
}
