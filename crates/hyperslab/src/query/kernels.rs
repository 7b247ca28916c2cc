//! The loops that everything runs through: on several lanes, in an order that is the same each time.

use super::lane::Lane;

/// Values that are worked on side by side.
const LANES: usize = 16;

/// Rows that are added to each other before they are added to the cells.
pub(super) const TOGETHER: usize = 8;

/// `a + b` and the rounding error of it.
pub(super) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let other = sum - a;
    (sum, (a - (sum - other)) + (b - other))
}

/// The sum of a block, on sixteen lanes.
#[inline]
pub(super) fn block_sum<T: Lane>(values: &[T], map: impl Fn(f64) -> f64) -> f64 {
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

/// The least (by `better`) of a block and how many are not a number.
pub(super) fn block_extreme<T: Lane>(values: &[T], start: T, better: impl Fn(T, T) -> bool) -> (T, u64) {
    let mut lanes = [start; 16];
    let mut nans = [0_u32; 16];
    let (whole, rest) = values.as_chunks::<16>();
    for part in whole {
        for lane in 0..16 {
            lanes[lane] = if better(part[lane], lanes[lane]) { part[lane] } else { lanes[lane] };
        }
        if T::FLOAT {
            for lane in 0..16 {
                // Only not-a-number differs from itself.
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

/// Adds rows to a row of sums. The rows' own sums are pairwise; with `rests`, the rounding errors of adding those are
/// kept.
#[inline(never)]
pub(super) fn add_rows<T: Lane>(
    rows: &[&[T]; TOGETHER],
    sums: &mut [f64],
    rests: Option<&mut [f64]>,
    map: impl Fn(f64) -> f64 + Copy,
) {
    let count = sums.len();
    // Blocks of a fixed size into memory that nobody else has: loops that become vector instructions.
    let blocks = rows.map(|row| row[..count].as_chunks::<LANES>().0);
    let (sum_blocks, last_sums) = sums.as_chunks_mut::<LANES>();
    let done = count - last_sums.len();
    let (mut rest_blocks, mut last_rests) = (Default::default(), Default::default());
    let compensated = rests.is_some();
    if let Some(rests) = rests {
        (rest_blocks, last_rests) = rests[..count].as_chunks_mut::<LANES>();
    }
    for (number, sums) in sum_blocks.iter_mut().enumerate() {
        let mut all = [0.0_f64; LANES];
        let [a, b, c, d, e, f, g, h] = blocks.map(|row| &row[number]);
        for lane in 0..LANES {
            let of = |row: &[T; LANES]| map(row[lane].to_f64());
            all[lane] = ((of(a) + of(b)) + (of(c) + of(d))) + ((of(e) + of(f)) + (of(g) + of(h)));
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
        let of = |row: usize| map(rows[row][done + i].to_f64());
        let all = ((of(0) + of(1)) + (of(2) + of(3))) + ((of(4) + of(5)) + (of(6) + of(7)));
        let error;
        (*sum, error) = if compensated { two_sum(*sum, all) } else { (*sum + all, 0.0) };
        if let Some(rest) = last_rests.get_mut(i) {
            *rest += error;
        }
    }
}

/// Adds the sum of each row, all of them at most a block long, to its own cell: the first to `sums[0]`, the next `far`
/// cells on.
#[inline(never)]
pub(super) fn add_each<'v, T: Lane>(
    rows: impl Iterator<Item = &'v [T]>,
    far: usize,
    sums: &mut [f64],
    rests: &mut [f64],
    map: impl Fn(f64) -> f64 + Copy,
) {
    let mut at = 0;
    for row in rows {
        let error;
        (sums[at], error) = two_sum(sums[at], block_sum(row, map));
        rests[at] += error;
        at += far;
    }
}

pub(super) fn add_counts(to: &mut [u64], from: &[u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += from;
    }
}

/// The bin of a value: equal widths, the last one closed. `None` outside, or when it is not a number.
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
    // The division rounds; the edges decide.
    if value < edge(bin) && bin > 0 {
        bin -= 1;
    } else if bin + 1 < bins && value >= edge(bin + 1) {
        bin += 1;
    }
    Some(bin)
}
