//! The loops that everything runs through: on several lanes, in an order that is the same each time.

use super::lane::Lane;

/// Rows that are added to each other before they are added to the cells.
pub(super) const TOGETHER: usize = 8;

/// `a + b` and the rounding error of it.
pub(super) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let other = sum - a;
    (sum, (a - (sum - other)) + (b - other))
}

/// The sum of a block, on sixteen lanes.
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
    // Of one length, which lets the compiler see that no index is outside.
    let rows = rows.map(|row| &row[..count]);
    let at = |row: usize, i: usize| map(rows[row][i].to_f64());
    let all = |i: usize| {
        ((at(0, i) + at(1, i)) + (at(2, i) + at(3, i))) + ((at(4, i) + at(5, i)) + (at(6, i) + at(7, i)))
    };
    match rests {
        None => {
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum += all(i);
            }
        }
        Some(rests) => {
            for (i, (sum, rest)) in sums.iter_mut().zip(rests).enumerate() {
                let error;
                (*sum, error) = two_sum(*sum, all(i));
                *rest += error;
            }
        }
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
