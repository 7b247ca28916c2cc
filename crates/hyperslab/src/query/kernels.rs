//! The innermost loops of queries. They use several lanes, in an order that is the same on every run and every processor.

use hyperslab_core::widest;

use super::operand::{BLOCK, Operand};

/// The number of values processed side by side.
const LANES: usize = 16;

/// The number of rows added to each other before they are added to the cells.
const TOGETHER: usize = 8;

/// `a + b` and its rounding error.
pub(super) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let other = sum - a;
    (sum, (a - (sum - other)) + (b - other))
}

widest! {
    /// The sum of a block, on sixteen lanes.
    pub(super) block_sum[T: Operand, M: Fn(f64) -> f64](values: &[T], map: M) -> f64, block_sum_here
}

#[inline(always)]
fn block_sum_here<T: Operand, M: Fn(f64) -> f64>(values: &[T], map: M) -> f64 {
    let mut lanes = [0.0_f64; 16];
    let (whole, rest) = values.as_chunks::<16>();
    for part in whole {
        for (lane, value) in lanes.iter_mut().zip(part) {
            *lane += map(value.to_f64());
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane += map(value.to_f64());
    }
    let mut width = 8;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

widest! {
    /// The best value of a block (by `better`), and the number of NaNs.
    pub(super) block_extreme[T: Operand, B: Fn(T, T) -> bool](values: &[T], start: T, better: B) -> (T, u64), block_extreme_here
}

#[inline(always)]
fn block_extreme_here<T: Operand, B: Fn(T, T) -> bool>(values: &[T], start: T, better: B) -> (T, u64) {
    let mut lanes = [start; 16];
    let mut nans = [0_u32; 16];
    let (whole, rest) = values.as_chunks::<16>();
    for part in whole {
        for lane in 0..16 {
            lanes[lane] = if better(part[lane], lanes[lane]) { part[lane] } else { lanes[lane] };
        }
        if T::FLOAT {
            for lane in 0..16 {
                // Only NaN differs from itself.
                #[expect(clippy::eq_op, reason = "the test for not-a-number that vectorises")]
                let differs = part[lane] != part[lane];
                nans[lane] += u32::from(differs);
            }
        }
    }
    let (mut best, mut nan) = (start, nans.iter().map(|count| u64::from(*count)).sum());
    for &value in rest.iter().chain(&lanes) {
        best = if better(value, best) { value } else { best };
    }
    nan += rest.iter().filter(|value| value.is_nan()).count() as u64;
    (best, nan)
}

/// Rows of equal length in one slice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'v, T> {
    /// From the first value of the first row to the last value of the last row.
    pub(super) values: &'v [T],
    pub(super) length: usize,
    /// The distance between row starts.
    pub(super) each: usize,
}

impl<'v, T> Rows<'v, T> {
    pub(super) fn iter(self) -> impl Iterator<Item = &'v [T]> {
        self.values.chunks(self.each).map(move |row| &row[..self.length])
    }
}

widest! {
    /// Adds rows to a row of sums, several at a time, pairwise. With `rests`, the rounding errors of these additions are kept.
    pub(super) add_rows[T: Operand, M: Fn(f64) -> f64 + Copy](
        rows: Rows<'_, T>, sums: &mut [f64], rests: Option<&mut [f64]>, map: M
    ), add_rows_here
}

#[inline(always)]
fn add_rows_here<T: Operand, M: Fn(f64) -> f64 + Copy>(
    rows: Rows<'_, T>,
    sums: &mut [f64],
    mut rests: Option<&mut [f64]>,
    map: M,
) {
    let groups = rows.values.chunks(rows.each * TOGETHER);
    let mut from = 0;
    // Long rows are split, so that their sums stay in the L1 cache.
    while from < rows.length {
        let part = from..rows.length.min(from + BLOCK);
        let mut rests = rests.as_deref_mut().map(|rests| &mut rests[part.clone()]);
        let sums = &mut sums[part.clone()];
        for group in groups.clone() {
            if group.len() >= rows.each * (TOGETHER - 1) + rows.length {
                let row = |number: usize| &group[number * rows.each..][part.clone()];
                let together = [row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)];
                add_together(together, sums, rests.as_deref_mut(), map);
            } else {
                for row in group.chunks(rows.each) {
                    add_row(&row[part.clone()], sums, rests.as_deref_mut(), map);
                }
            }
        }
        from = part.end;
    }
}

#[inline(always)]
fn add_row<T: Operand>(
    row: &[T],
    sums: &mut [f64],
    rests: Option<&mut [f64]>,
    map: impl Fn(f64) -> f64 + Copy,
) {
    match rests {
        None => sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += map(value.to_f64())),
        Some(rests) => {
            for ((sum, rest), value) in sums.iter_mut().zip(rests).zip(row) {
                let error;
                (*sum, error) = two_sum(*sum, map(value.to_f64()));
                *rest += error;
            }
        }
    }
}

#[inline(always)]
fn add_together<T: Operand>(
    rows: [&[T]; TOGETHER],
    sums: &mut [f64],
    rests: Option<&mut [f64]>,
    map: impl Fn(f64) -> f64 + Copy,
) {
    let count = sums.len();
    // Blocks of a fixed size and local memory let the compiler use vector instructions.
    let [a, b, c, d, e, f, g, h] = rows;
    let (sum_blocks, last_sums) = sums.as_chunks_mut::<LANES>();
    let blocks = sum_blocks.len();
    let done = blocks * LANES;
    let (mut rest_blocks, mut last_rests): (&mut [[f64; LANES]], &mut [f64]) = Default::default();
    let compensated = rests.is_some();
    if let Some(rests) = rests {
        (rest_blocks, last_rests) = rests[..count].as_chunks_mut::<LANES>();
    }
    macro_rules! cut { ($($row:ident),*) => { ($(&$row.as_chunks::<LANES>().0[..blocks]),*) }; }
    let (ab, bb, cb, db, eb, fb, gb, hb) = cut!(a, b, c, d, e, f, g, h);
    for (number, sums) in sum_blocks.iter_mut().enumerate() {
        let mut all = [0.0_f64; LANES];
        for (lane, all) in all.iter_mut().enumerate() {
            let of = |row: &[[T; LANES]]| map(row[number][lane].to_f64());
            *all = ((of(ab) + of(bb)) + (of(cb) + of(db))) + ((of(eb) + of(fb)) + (of(gb) + of(hb)));
        }
        if compensated {
            let rests = &mut rest_blocks[number];
            for lane in 0..LANES {
                let error;
                (sums[lane], error) = two_sum(sums[lane], all[lane]);
                rests[lane] += error;
            }
        } else {
            for lane in 0..LANES {
                sums[lane] += all[lane];
            }
        }
    }
    for (i, sum) in last_sums.iter_mut().enumerate() {
        let of = |row: &[T]| map(row[done + i].to_f64());
        let all = ((of(a) + of(b)) + (of(c) + of(d))) + ((of(e) + of(f)) + (of(g) + of(h)));
        let error;
        (*sum, error) = if compensated { two_sum(*sum, all) } else { (*sum + all, 0.0) };
        if let Some(rest) = last_rests.get_mut(i) {
            *rest += error;
        }
    }
}

widest! {
    /// Adds the sum of each row, at most a block long, to its own cell: the first to `sums[0]`, the next `far` cells on.
    pub(super) add_each[T: Operand, M: Fn(f64) -> f64 + Copy](
        rows: Rows<'_, T>, far: usize, sums: &mut [f64], rests: &mut [f64], map: M
    ), add_each_here
}

#[inline(always)]
fn add_each_here<T: Operand, M: Fn(f64) -> f64 + Copy>(
    rows: Rows<'_, T>,
    far: usize,
    sums: &mut [f64],
    rests: &mut [f64],
    map: M,
) {
    let mut at = 0;
    for row in rows.values.chunks(rows.each) {
        let sum = block_sum_here(&row[..rows.length], map);
        if T::WIDE {
            let error;
            (sums[at], error) = two_sum(sums[at], sum);
            rests[at] += error;
        } else {
            sums[at] += sum;
        }
        at += far;
    }
}

pub(super) fn add_counts(to: &mut [u64], from: &[u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

/// The bin of a value, for bins of equal width of which the last is closed. `None` for NaN and values outside.
pub(super) fn bin_of(value: f64, bins: usize, low: f64, high: f64, clamp: bool) -> Option<usize> {
    if value.is_nan() || (!clamp && !(low..=high).contains(&value)) {
        return None;
    }
    if value <= low {
        return Some(0);
    }
    if value >= high {
        return Some(bins - 1);
    }
    let width = (high - low) / bins as f64;
    let edge = |bin: usize| low + width * bin as f64;
    let mut bin = (((value - low) / (high - low)) * bins as f64) as usize;
    bin = bin.min(bins - 1);
    // The division rounds, so compare with the edges.
    if value < edge(bin) && bin > 0 {
        bin -= 1;
    } else if bin + 1 < bins && value >= edge(bin + 1) {
        bin += 1;
    }
    Some(bin)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    /// Compares the sums and rests of rows between the loop for this processor and the generic one.
    fn check<T: Operand>(rows: Rows<'_, T>) {
        let count = rows.iter().count();
        for compensated in [false, true] {
            let mut wide = (vec![0.1; rows.length], vec![0.0; rows.length]);
            let mut plain = wide.clone();
            add_rows(rows, &mut wide.0, compensated.then_some(&mut wide.1), f64::abs);
            add_rows_here(rows, &mut plain.0, compensated.then_some(&mut plain.1), f64::abs);
            assert_eq!((bits(&wide.0), bits(&wide.1)), (bits(&plain.0), bits(&plain.1)));
            for (column, sum) in wide.0.iter().enumerate() {
                let naive: f64 = rows.iter().map(|row| row[column].to_f64().abs()).sum();
                assert!((sum - 0.1 - naive).abs() <= 1e-12 * naive.max(1.0), "{sum} is not {naive}");
            }
        }
        let mut wide = (vec![0.1; count * 2], vec![0.0; count * 2]);
        let mut plain = wide.clone();
        add_each(rows, 2, &mut wide.0, &mut wide.1, |value| value);
        add_each_here(rows, 2, &mut plain.0, &mut plain.1, |value| value);
        assert_eq!((bits(&wide.0), bits(&wide.1)), (bits(&plain.0), bits(&plain.1)));
        for (number, row) in rows.iter().enumerate() {
            let naive: f64 = row.iter().map(|value| value.to_f64()).sum();
            let sum = wide.0[number * 2] - 0.1;
            assert!((sum - naive).abs() <= 1e-9, "{sum} is not {naive}");
        }
        assert_eq!(
            block_sum(rows.values, |value| value).to_bits(),
            block_sum_here(rows.values, |value| value).to_bits()
        );
        let less = |a: T, b: T| a < b;
        assert!(
            block_extreme(rows.values, T::HIGH, less) == block_extreme_here(rows.values, T::HIGH, less),
            "the least value depends on the processor"
        );
    }

    proptest! {
        #[test]
        fn every_processor_gives_the_same_bits(
            count in 1_usize..20, length in 1_usize..80, gap in 0_usize..5,
            values in prop::collection::vec(-1e3_f64..1e3, 20 * 85),
        ) {
            let each = length + gap;
            let values = &values[..(count - 1) * each + length];
            check(Rows { values, length, each });
            let singles: Vec<f32> = values.iter().map(|value| *value as f32).collect();
            check(Rows { values: &singles, length, each });
        }
    }

    #[test]
    fn rows_longer_than_a_block_are_split() {
        let values: Vec<f32> = (0..20 * 1500).map(|i| i as f32).collect();
        check(Rows { values: &values, length: 1500, each: 1500 });
        check(Rows { values: &values, length: 1400, each: 1500 });
    }
}
