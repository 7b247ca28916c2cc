//! One block: bit planes to coefficients to numbers.

use super::order::order;
use super::{CODEC, Mode};
use crate::error::{Result, corrupt};

/// Bits, lowest first. Bits past the end are zeros; the caller checks for overrun afterwards.
#[derive(Debug)]
pub(crate) struct BitReader<'a> {
    src: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    pub(crate) const fn new(src: &'a [u8], at: usize) -> Self {
        Self { src, at }
    }

    pub(crate) const fn position(&self) -> usize {
        self.at
    }

    pub(crate) const fn is_past_end(&self) -> bool {
        self.at > self.src.len().saturating_mul(8)
    }

    /// At least the next 57 bits.
    #[inline]
    fn peek(&self) -> u64 {
        let byte = self.at / 8;
        let word = match self.src.get(byte..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(word) => *word,
            None => {
                let mut word = [0; 8];
                let rest = self.src.get(byte..).unwrap_or_default();
                word[..rest.len()].copy_from_slice(rest);
                word
            }
        };
        u64::from_le_bytes(word) >> (self.at % 8)
    }

    #[inline]
    pub(crate) fn bits(&mut self, count: u32) -> u64 {
        if count > 56 {
            let low = self.bits(32);
            return low | self.bits(count - 32) << 32;
        }
        let bits = self.peek() & ((1 << count) - 1);
        self.skip(count);
        bits
    }

    #[inline]
    fn bit(&mut self) -> bool {
        self.bits(1) != 0
    }

    const fn skip(&mut self, count: u32) {
        self.at = self.at.saturating_add(count as usize);
    }
}

/// The integer type of a block, and the float type of the same width.
pub(crate) trait BlockInteger: Copy + Default {
    const BITS: u32;
    /// The number of bits that hold the number of bit planes of a reversible block, minus one.
    const PLANE_BITS: u32;
    const EXPONENT_BITS: u32;
    fn from_negabinary(bits: u64) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn half(self) -> Self;
    /// The bits of the float with the value of this integer times `2^exponent`.
    fn scaled(self, exponent: i32) -> Self;
    /// The bits of the float whose sign and magnitude are given in two's complement.
    fn reinterpreted(self) -> Self;
    fn store(self, to: &mut [u8]);
}

macro_rules! lane {
    ($int:ty, $unsigned:ty, $float:ty, $planes:expr, $exponent:expr, $mask:expr) => {
        impl BlockInteger for $int {
            const BITS: u32 = <$int>::BITS;
            const PLANE_BITS: u32 = $planes;
            const EXPONENT_BITS: u32 = $exponent;

            fn from_negabinary(bits: u64) -> Self {
                ((bits as $unsigned ^ $mask).wrapping_sub($mask)) as Self
            }

            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            fn half(self) -> Self {
                self >> 1
            }

            fn scaled(self, exponent: i32) -> Self {
                let scale = power_of_two(exponent) as $float;
                (scale * self as $float).to_bits() as Self
            }

            fn reinterpreted(self) -> Self {
                if self < 0 { self ^ <$int>::MAX } else { self }
            }

            fn store(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_ne_bytes());
            }
        }
    };
}

lane!(i32, u32, f32, 5, 8, 0xaaaa_aaaa_u32);
lane!(i64, u64, f64, 6, 11, 0xaaaa_aaaa_aaaa_aaaa_u64);

/// `2^exponent`, rounded to a float64.
fn power_of_two(exponent: i32) -> f64 {
    match exponent {
        ..-1074 => 0.0,
        -1074..-1022 => f64::from_bits(1 << (exponent + 1074)),
        -1022..1024 => f64::from_bits(((exponent + 1023) as u64) << 52),
        _ => f64::INFINITY,
    }
}

/// The next block of integers.
pub(crate) fn integers<L: BlockInteger>(
    reader: &mut BitReader<'_>,
    mode: Mode,
    dimensions: usize,
    block: &mut [L; 256],
) -> Result<()> {
    coefficients(reader, mode, Limits::of(mode, 0)?, dimensions, mode.max_precision, block)
}

/// The next block of floats, as their bits.
pub(crate) fn floats<L: BlockInteger>(
    reader: &mut BitReader<'_>,
    mode: Mode,
    dimensions: usize,
    block: &mut [L; 256],
) -> Result<()> {
    if !reader.bit() {
        reader.skip(mode.min_bits.saturating_sub(1));
        block.fill(L::default());
        return Ok(());
    }
    let bias = (1 << (L::EXPONENT_BITS - 1)) - 1;
    let mut used = 1;
    if mode.is_reversible() {
        used += 1;
        if reader.bit() {
            coefficients(reader, mode, Limits::of(mode, used)?, dimensions, mode.max_precision, block)?;
            block.iter_mut().for_each(|lane| *lane = lane.reinterpreted());
            return Ok(());
        }
    }
    used += L::EXPONENT_BITS;
    let exponent = reader.bits(L::EXPONENT_BITS) as i32 - bias;
    let planes = (exponent - mode.min_exponent).saturating_add(2 * dimensions as i32 + 2).max(0) as u32;
    let planes = planes.min(mode.max_precision);
    coefficients(reader, mode, Limits::of(mode, used)?, dimensions, planes, block)?;
    if mode.is_reversible() && exponent == -bias {
        block.fill(L::default());
        return Ok(());
    }
    let scale = exponent - (L::BITS as i32 - 2);
    block.iter_mut().for_each(|lane| *lane = lane.scaled(scale));
    Ok(())
}

/// The number of bits left for a block.
#[derive(Debug, Clone, Copy)]
struct Limits {
    min: u32,
    max: u32,
}

impl Limits {
    fn of(mode: Mode, used: u32) -> Result<Self> {
        let max = mode.max_bits.checked_sub(used);
        let max = max.ok_or_else(|| corrupt(CODEC, format!("blocks of {} bits", mode.max_bits)))?;
        Ok(Self { min: mode.min_bits.saturating_sub(used), max })
    }
}

/// Decodes the integers of a block and undoes the transform.
fn coefficients<L: BlockInteger>(
    reader: &mut BitReader<'_>,
    mode: Mode,
    mut limits: Limits,
    dimensions: usize,
    mut planes: u32,
    block: &mut [L; 256],
) -> Result<()> {
    let cells = 1 << (2 * dimensions);
    let start = reader.position();
    if mode.is_reversible() {
        planes = reader.bits(L::PLANE_BITS) as u32 + 1;
        let max = limits.max.checked_sub(L::PLANE_BITS);
        limits.max = max.ok_or_else(|| corrupt(CODEC, "blocks have no room for a precision"))?;
    }
    let mut stored = [0_u64; 256];
    bit_planes(reader, limits.max, L::BITS, planes, &mut stored[..cells]);
    let used = u32::try_from(reader.position() - start).unwrap_or(u32::MAX);
    reader.skip(limits.min.saturating_sub(used));
    for (bits, place) in stored[..cells].iter().zip(order(dimensions)) {
        block[usize::from(*place)] = L::from_negabinary(*bits);
    }
    let lift = if mode.is_reversible() { lift_reversible::<L> } else { lift::<L> };
    for axis in (0..dimensions).rev() {
        let stride = 1 << (2 * axis);
        for first in (0..cells).filter(|cell| cell / stride % 4 == 0) {
            let at = [first, first + stride, first + 2 * stride, first + 3 * stride];
            let lifted = lift(at.map(|at| block[at]));
            at.into_iter().zip(lifted).for_each(|(at, lane)| block[at] = lane);
        }
    }
    Ok(())
}

/// Reads bit planes from the highest down. In each plane, the bits of numbers already known to be non-zero come first; the others
/// are run-length encoded.
fn bit_planes(reader: &mut BitReader<'_>, max_bits: u32, width: u32, planes: u32, out: &mut [u64]) {
    let lowest = width.saturating_sub(planes);
    let (mut left, mut known) = (max_bits, 0);
    for plane in (lowest..width).rev() {
        if left == 0 {
            return;
        }
        let mut verbatim = left.min(known as u32);
        left -= verbatim;
        let mut at = 0;
        while verbatim > 0 {
            let count = verbatim.min(56);
            let mut bits = reader.bits(count);
            while bits != 0 {
                out[at + bits.trailing_zeros() as usize] |= 1 << plane;
                bits &= bits - 1;
            }
            at += count as usize;
            verbatim -= count;
        }
        while known < out.len() && left > 0 {
            left -= 1;
            if !reader.bit() {
                break;
            }
            known += zero_run(reader, &mut left, out.len() - 1 - known);
            out[known] |= 1 << plane;
            known += 1;
        }
    }
}

/// Counts zeros up to the next one bit, which is consumed too. After `room` zeros there is no one bit.
fn zero_run(reader: &mut BitReader<'_>, left: &mut u32, room: usize) -> usize {
    let mut zeros = 0;
    while zeros < room && *left > 0 {
        let run = reader.peek().trailing_zeros().min(56);
        let most = (*left).min(u32::try_from(room - zeros).unwrap_or(u32::MAX));
        let taken = run.min(most);
        reader.skip(taken);
        *left -= taken;
        zeros += taken as usize;
        if run < 56 && taken < most {
            reader.skip(1);
            *left -= 1;
            break;
        }
    }
    zeros
}

/// The inverse of the near-orthogonal transform of four numbers.
fn lift<L: BlockInteger>([mut x, mut y, mut z, mut w]: [L; 4]) -> [L; 4] {
    y = y.add(w.half());
    w = w.sub(y.half());
    y = y.add(w);
    w = w.add(w).sub(y);
    z = z.add(x);
    x = x.add(x).sub(z);
    y = y.add(z);
    z = z.add(z).sub(y);
    w = w.add(x);
    x = x.add(x).sub(w);
    [x, y, z, w]
}

/// The inverse of differences of the first, second and third order.
fn lift_reversible<L: BlockInteger>([x, mut y, mut z, mut w]: [L; 4]) -> [L; 4] {
    w = w.add(z);
    z = z.add(y);
    w = w.add(z);
    y = y.add(x);
    z = z.add(y);
    w = w.add(z);
    [x, y, z, w]
}
