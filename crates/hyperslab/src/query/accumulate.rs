//! What a fold remembers of each cell of the result, and the kernels that feed it.
//!
//! Floats are summed in blocks on several lanes, and the blocks' sums are added with their rounding errors kept
//! (`float32` in `float64`); integers exactly. Two accumulators of neighbouring parts merge into that of both.

use hyperslab_core::Number;
use serde::{Deserialize, Serialize};

use super::kernels::{Rows, add_counts, add_each, add_rows, bin_of, block_extreme, block_sum, two_sum};
use super::lane::{BLOCK, KeyKind, Lane, NAN_KEY};
use super::serial;

/// What is remembered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Kind {
    /// How many.
    Count,
    Sum,
    /// The sum of magnitudes.
    L1,
    /// The sum of squares.
    L2,
    /// Mean and squared deviations from it.
    Moments,
    Min,
    Max,
    Product,
    /// Where the smallest (largest) value is. Not-a-number wins when it is not skipped.
    ArgMin {
        skip_nan: bool,
    },
    ArgMax {
        skip_nan: bool,
    },
    /// Every value.
    Values {
        skip_nan: bool,
    },
    /// How often each digit follows the two prefixes of the cell.
    Digits(Digits),
    /// Counts in bins of equal width.
    Histogram {
        bins: usize,
        low: f64,
        high: f64,
        clamp: bool,
    },
    /// Counts of not-a-number, infinite and missing values.
    Tally {
        fill: Option<u64>,
    },
}

/// One round of looking for order statistics by the digits of their keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Digits {
    /// The digit's lowest bit in the key.
    pub(super) shift: u32,
    /// Its bits.
    pub(super) bits: u32,
    /// What stands above the digit: two prefixes a cell of the whole result.
    pub(super) prefixes: Vec<[u64; 2]>,
    pub(super) skip_nan: bool,
}

impl Digits {
    pub(super) const fn radix(&self) -> usize {
        1 << self.bits
    }
}

/// One value per cell of a tile of the result, each in its own form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Accumulator {
    pub(super) kind: Kind,
    float: bool,
    pub(super) cells: usize,
    /// Values folded into each cell, where that is not plain from the geometry.
    pub(super) n: Vec<u64>,
    #[serde(with = "serial::floats")]
    pub(super) a: Vec<f64>,
    #[serde(with = "serial::floats")]
    pub(super) b: Vec<f64>,
    /// Counts as floats, for moments.
    #[serde(with = "serial::floats")]
    pub(super) c: Vec<f64>,
    #[serde(with = "serial::integers")]
    pub(super) i: Vec<i128>,
    pub(super) u: Vec<u64>,
    pub(super) v: Vec<Vec<u64>>,
    /// Wanted values that were never written, per cell; empty when all were. Modulo 2^64, until all parts are merged.
    pub(super) unwritten: Vec<u64>,
    /// The first cell's place among all cells of the result, for [`Kind::Digits`].
    pub(super) places: Vec<u64>,
}

impl Accumulator {
    pub(super) fn new(kind: &Kind, key: KeyKind, cells: usize, counted: bool) -> Self {
        let float = key == KeyKind::Float;
        let mut new = Self {
            kind: kind.clone(),
            float,
            cells,
            n: if counted { vec![0; cells] } else { Vec::new() },
            a: Vec::new(),
            b: Vec::new(),
            c: Vec::new(),
            i: Vec::new(),
            u: Vec::new(),
            v: Vec::new(),
            unwritten: Vec::new(),
            places: Vec::new(),
        };
        match kind {
            Kind::Count => {}
            Kind::Sum | Kind::L1 if !float => new.i = vec![0; cells],
            Kind::Sum | Kind::L1 | Kind::L2 => {
                (new.a, new.b) = (vec![0.0; cells], vec![0.0; cells]);
            }
            Kind::Moments => (new.a, new.b, new.c) = (vec![0.0; cells], vec![0.0; cells], vec![0.0; cells]),
            Kind::Min if float => (new.a, new.u) = (vec![f64::INFINITY; cells], vec![0; cells]),
            Kind::Max if float => (new.a, new.u) = (vec![f64::NEG_INFINITY; cells], vec![0; cells]),
            Kind::Min | Kind::ArgMin { .. } => new.i = vec![i128::MAX; cells],
            Kind::Max | Kind::ArgMax { .. } => new.i = vec![i128::MIN; cells],
            Kind::Product => {
                new.a = vec![1.0; cells];
                if !float {
                    (new.i, new.u) = (vec![1; cells], vec![0; cells]);
                }
            }
            Kind::Values { .. } => new.v = vec![Vec::new(); cells],
            Kind::Digits(digits) => new.u = vec![0; cells * 2 * digits.radix()],
            Kind::Histogram { bins, .. } => new.u = vec![0; cells * bins],
            Kind::Tally { .. } => new.u = vec![0; cells * 3],
        }
        if matches!(kind, Kind::ArgMin { .. } | Kind::ArgMax { .. }) {
            new.u = vec![u64::MAX; cells];
        }
        new
    }

    /// About how many bytes an accumulator of so many cells and values takes.
    pub(super) fn bytes(kind: &Kind, key: KeyKind, cells: u64, values: u64, counted: bool) -> u64 {
        let float = key == KeyKind::Float;
        let each = match kind {
            Kind::Count => 0,
            Kind::Sum | Kind::L1 | Kind::L2 | Kind::Min | Kind::Max => 16,
            Kind::Moments | Kind::ArgMin { .. } | Kind::ArgMax { .. } | Kind::Tally { .. } => 24,
            Kind::Product => {
                if float {
                    8
                } else {
                    32
                }
            }
            Kind::Values { .. } => 24,
            Kind::Digits(digits) => 16_u64 << digits.bits,
            Kind::Histogram { bins, .. } => *bins as u64 * 8,
        };
        let values = if matches!(kind, Kind::Values { .. }) { values.saturating_mul(12) } else { 0 };
        cells.saturating_mul(each + if counted { 8 } else { 0 }).saturating_add(values)
    }

    /// Does it need to know where a value is?
    pub(super) const fn indexed(&self) -> bool {
        matches!(self.kind, Kind::ArgMin { .. } | Kind::ArgMax { .. })
    }

    /// Many values into one cell.
    pub(super) fn run<T: Lane>(&mut self, cell: usize, values: &[T]) {
        if let Some(n) = self.n.get_mut(cell) {
            *n += values.len() as u64;
        }
        match &self.kind {
            Kind::Count => {}
            Kind::Sum if !T::FLOAT => {
                for block in values.chunks(BLOCK) {
                    self.i[cell] += T::sum_exact(block);
                }
            }
            Kind::L1 if !T::FLOAT => {
                self.i[cell] += values.iter().map(|value| value.to_i128().abs()).sum::<i128>();
            }
            Kind::Sum => self.run_sum(cell, values, |value| value),
            Kind::L1 => self.run_sum(cell, values, f64::abs),
            Kind::L2 => self.run_sum(cell, values, |value| value * value),
            Kind::Moments => {
                for block in values.chunks(BLOCK) {
                    let n = block.len() as f64;
                    let mean = block_sum(block, |value| value) / n;
                    let m2 = block_sum(block, |value| (value - mean) * (value - mean));
                    self.merge_moments(cell, n, mean, m2);
                }
            }
            Kind::Min => {
                let (best, nans) = block_extreme(values, T::HIGH, |a, b| a < b);
                self.merge_extreme(cell, best, nans);
            }
            Kind::Max => {
                let (best, nans) = block_extreme(values, T::LOW, |a, b| a > b);
                self.merge_extreme(cell, best, nans);
            }
            _ => {
                for &value in values {
                    self.put(cell, value, 0);
                }
            }
        }
    }

    fn run_sum<T: Lane>(&mut self, cell: usize, values: &[T], map: impl Fn(f64) -> f64 + Copy) {
        let (mut sum, mut rest) = (self.a[cell], self.b[cell]);
        for block in values.chunks(BLOCK) {
            let error;
            (sum, error) = two_sum(sum, block_sum(block, map));
            rest += error;
        }
        (self.a[cell], self.b[cell]) = (sum, rest);
    }

    /// The sum, the smallest or the largest of so many values, into the only cell.
    pub(super) fn whole(&mut self, claim: Number, cells: u64) {
        if let Some(n) = self.n.first_mut() {
            *n += cells;
        }
        match (&self.kind, claim) {
            (Kind::Sum, Number::Float(sum)) => {
                let error;
                (self.a[0], error) = two_sum(self.a[0], sum);
                self.b[0] += error;
            }
            (Kind::Sum, Number::Integer(sum)) => self.i[0] += sum,
            (Kind::Min, Number::Float(value)) => self.a[0] = self.a[0].min(value),
            (Kind::Max, Number::Float(value)) => self.a[0] = self.a[0].max(value),
            (Kind::Min, Number::Integer(value)) => self.i[0] = self.i[0].min(value),
            (Kind::Max, Number::Integer(value)) => self.i[0] = self.i[0].max(value),
            _ => {}
        }
    }

    fn merge_extreme<T: Lane>(&mut self, cell: usize, best: T, nans: u64) {
        let least = self.kind == Kind::Min;
        if T::FLOAT {
            let best = best.to_f64();
            self.a[cell] = if least { self.a[cell].min(best) } else { self.a[cell].max(best) };
            self.u[cell] += nans;
        } else {
            let best = best.to_i128();
            self.i[cell] = if least { self.i[cell].min(best) } else { self.i[cell].max(best) };
        }
    }

    fn merge_moments(&mut self, cell: usize, n: f64, mean: f64, m2: f64) {
        if n == 0.0 {
            return;
        }
        let own = self.c[cell];
        let all = own + n;
        let delta = mean - self.a[cell];
        self.a[cell] += delta * (n / all);
        self.b[cell] += m2 + delta * delta * (own * (n / all));
        self.c[cell] = all;
    }

    /// Value `i` into cell `cell + i`.
    pub(super) fn row<T: Lane>(&mut self, cell: usize, values: &[T]) {
        let cells = cell..cell + values.len();
        match &self.kind {
            Kind::Count => {}
            Kind::Sum if !T::FLOAT => {
                for (sum, value) in self.i[cells.clone()].iter_mut().zip(values) {
                    *sum += value.to_i128();
                }
            }
            Kind::Sum if !T::WIDE => {
                for (sum, value) in self.a[cells.clone()].iter_mut().zip(values) {
                    *sum += value.to_f64();
                }
            }
            Kind::Sum => {
                let rests = &mut self.b[cells.clone()];
                for ((sum, rest), value) in self.a[cells.clone()].iter_mut().zip(rests).zip(values) {
                    let error;
                    (*sum, error) = two_sum(*sum, value.to_f64());
                    *rest += error;
                }
            }
            Kind::Moments => {
                let (means, m2s) = (&mut self.a[cells.clone()], &mut self.b[cells.clone()]);
                for (((n, mean), m2), value) in
                    self.c[cells.clone()].iter_mut().zip(means).zip(m2s).zip(values)
                {
                    *n += 1.0;
                    let delta = value.to_f64() - *mean;
                    *mean += delta / *n;
                    *m2 += delta * (value.to_f64() - *mean);
                }
            }
            Kind::Min if T::FLOAT => {
                let nans = &mut self.u[cells.clone()];
                for ((best, nan), value) in self.a[cells.clone()].iter_mut().zip(nans).zip(values) {
                    let value = value.to_f64();
                    *best = if value < *best { value } else { *best };
                    *nan += u64::from(value.is_nan());
                }
            }
            Kind::Max if T::FLOAT => {
                let nans = &mut self.u[cells.clone()];
                for ((best, nan), value) in self.a[cells.clone()].iter_mut().zip(nans).zip(values) {
                    let value = value.to_f64();
                    *best = if value > *best { value } else { *best };
                    *nan += u64::from(value.is_nan());
                }
            }
            _ => {
                for (cell, value) in cells.clone().zip(values) {
                    self.put(cell, *value, 0);
                }
            }
        }
        if !self.n.is_empty() {
            self.n[cells].iter_mut().for_each(|n| *n += 1);
        }
    }

    /// Value `i` of each of these rows into cell `cell + i`. Several rows are added to each other first, so that the cells
    /// are touched once for all of them.
    pub(super) fn rows<T: Lane>(&mut self, cell: usize, rows: Rows<'_, T>) {
        let cells = cell..cell + rows.length;
        // Only sums keep rests; other kinds have none, and do not come to use them.
        let rests = if T::WIDE { self.b.get_mut(cells.clone()) } else { None };
        match &self.kind {
            Kind::Sum if T::FLOAT => add_rows(rows, &mut self.a[cells.clone()], rests, |value| value),
            Kind::L1 if T::FLOAT => add_rows(rows, &mut self.a[cells.clone()], rests, f64::abs),
            Kind::L2 => add_rows(rows, &mut self.a[cells.clone()], rests, |value| value * value),
            _ => {
                rows.iter().for_each(|row| self.row(cell, row));
                return;
            }
        }
        if !self.n.is_empty() {
            let count = rows.iter().count() as u64;
            self.n[cells].iter_mut().for_each(|n| *n += count);
        }
    }

    /// Each of these rows, which are at most a block long, into one cell: the first into `cell`, the next `far` cells on.
    pub(super) fn runs<T: Lane>(&mut self, cell: usize, far: usize, rows: Rows<'_, T>) {
        let simple = self.n.is_empty() && T::FLOAT;
        match &self.kind {
            Kind::Sum if simple => {
                add_each(rows, far, &mut self.a[cell..], &mut self.b[cell..], |value| value)
            }
            Kind::L1 if simple => add_each(rows, far, &mut self.a[cell..], &mut self.b[cell..], f64::abs),
            Kind::L2 if simple => {
                add_each(rows, far, &mut self.a[cell..], &mut self.b[cell..], |value| value * value)
            }
            _ => {
                for (number, row) in rows.iter().enumerate() {
                    self.run(cell + number * far, row);
                }
            }
        }
    }

    /// One value into one cell; `index` is its place among all that are folded into the cell.
    pub(super) fn one<T: Lane>(&mut self, cell: usize, value: T, index: u64) {
        if let Some(n) = self.n.get_mut(cell) {
            *n += 1;
        }
        self.put(cell, value, index);
    }

    /// Counts values that were never written.
    pub(super) fn add_unwritten(&mut self, cell: usize, count: u64) {
        self.unwritten.resize(self.cells, 0);
        self.unwritten[cell] = self.unwritten[cell].wrapping_add(count);
    }

    /// Counts missing values.
    pub(super) fn add_missing(&mut self, cell: usize, count: u64) {
        self.u[cell * 3 + 2] += count;
    }

    /// The same value many times into one cell. Where the value is must have been told before.
    pub(super) fn repeat<T: Lane>(&mut self, cell: usize, value: T, count: u64) {
        if let Some(n) = self.n.get_mut(cell) {
            *n += count;
        }
        let times = i128::from(count);
        match &self.kind {
            Kind::Count | Kind::ArgMin { .. } | Kind::ArgMax { .. } => {}
            Kind::Sum if !T::FLOAT => self.i[cell] += value.to_i128() * times,
            Kind::L1 if !T::FLOAT => self.i[cell] += value.to_i128().abs() * times,
            Kind::Sum => self.add_times(cell, value.to_f64(), count),
            Kind::L1 => self.add_times(cell, value.to_f64().abs(), count),
            Kind::L2 => self.add_times(cell, value.to_f64() * value.to_f64(), count),
            Kind::Moments => self.merge_moments(cell, count as f64, value.to_f64(), 0.0),
            Kind::Min | Kind::Max if value.is_nan() => self.u[cell] += count,
            Kind::Min | Kind::Max => self.merge_extreme(cell, value, 0),
            Kind::Product => {
                let power = value.to_f64().abs().powf(count as f64);
                let negative = value.to_f64() < 0.0 && count % 2 == 1;
                self.a[cell] *= if negative { -power } else { power };
                if !T::FLOAT {
                    let power = match value.to_i128() {
                        0 => Some(0),
                        1 => Some(1),
                        -1 => Some(if count % 2 == 1 { -1 } else { 1 }),
                        value => u32::try_from(count).ok().and_then(|count| value.checked_pow(count)),
                    };
                    match power {
                        Some(power) => self.multiply(cell, power),
                        None => self.u[cell] = 1,
                    }
                }
            }
            Kind::Values { skip_nan } => {
                if !(*skip_nan && value.is_nan()) {
                    let length = self.v[cell].len() + count as usize;
                    self.v[cell].resize(length, value.key());
                }
            }
            Kind::Digits(_) | Kind::Histogram { .. } | Kind::Tally { .. } => {
                self.put_times(cell, value, count)
            }
        }
    }

    /// Adds a product to a sum, with its rounding errors kept.
    fn add_times(&mut self, cell: usize, value: f64, count: u64) {
        // Halves of the count are exact as floats.
        for half in [count >> 32 << 32, count & 0xffff_ffff].into_iter().filter(|half| *half > 0) {
            let product = half as f64 * value;
            self.add(cell, product);
            self.b[cell] += (half as f64).mul_add(value, -product);
        }
    }

    pub(super) fn put<T: Lane>(&mut self, cell: usize, value: T, index: u64) {
        match &self.kind {
            Kind::Count => {}
            Kind::Sum if !T::FLOAT => self.i[cell] += value.to_i128(),
            Kind::L1 if !T::FLOAT => self.i[cell] += value.to_i128().abs(),
            Kind::Sum => self.add(cell, value.to_f64()),
            Kind::L1 => self.add(cell, value.to_f64().abs()),
            Kind::L2 => self.add(cell, value.to_f64() * value.to_f64()),
            Kind::Moments => self.merge_moments(cell, 1.0, value.to_f64(), 0.0),
            Kind::Min | Kind::Max if value.is_nan() => self.u[cell] += 1,
            Kind::Min | Kind::Max => self.merge_extreme(cell, value, 0),
            Kind::Product => {
                self.a[cell] *= value.to_f64();
                if !T::FLOAT {
                    self.multiply(cell, value.to_i128());
                }
            }
            Kind::ArgMin { skip_nan } | Kind::ArgMax { skip_nan } => {
                if *skip_nan && value.is_nan() {
                    return;
                }
                let least = matches!(self.kind, Kind::ArgMin { .. });
                let key = match i128::from(value.key()) {
                    _ if value.is_nan() && least => -1,
                    key => key,
                };
                self.found(cell, key, index);
            }
            Kind::Values { skip_nan } => {
                if !(*skip_nan && value.is_nan()) {
                    self.v[cell].push(value.key());
                }
            }
            Kind::Digits(_) | Kind::Histogram { .. } | Kind::Tally { .. } => self.put_times(cell, value, 1),
        }
    }

    /// The same value so many times into counts.
    fn put_times<T: Lane>(&mut self, cell: usize, value: T, times: u64) {
        match &self.kind {
            Kind::Digits(digits) => {
                if digits.skip_nan && value.is_nan() {
                    return;
                }
                let key = value.key();
                let prefixes = digits.prefixes[self.places[cell] as usize];
                let above =
                    if digits.shift + digits.bits >= 64 { 0 } else { key >> (digits.shift + digits.bits) };
                let digit = (key >> digits.shift) as usize & (digits.radix() - 1);
                for (which, prefix) in prefixes.into_iter().enumerate() {
                    if prefix == above {
                        self.u[(cell * 2 + which) * digits.radix() + digit] += times;
                    }
                }
            }
            Kind::Histogram { bins, low, high, clamp } => {
                if let Some(bin) = bin_of(value.to_f64(), *bins, *low, *high, *clamp) {
                    self.u[cell * bins + bin] += times;
                }
            }
            Kind::Tally { fill } => {
                let counts = &mut self.u[cell * 3..cell * 3 + 3];
                counts[0] += times * u64::from(value.is_nan());
                counts[1] += times * u64::from(T::FLOAT && value.to_f64().is_infinite());
                counts[2] += times * u64::from(fill.is_some_and(|fill| fill == value.bits()));
            }
            _ => {}
        }
    }

    fn add(&mut self, cell: usize, value: f64) {
        let error;
        (self.a[cell], error) = two_sum(self.a[cell], value);
        self.b[cell] += error;
    }

    fn multiply(&mut self, cell: usize, value: i128) {
        match self.i[cell].checked_mul(value) {
            Some(product) => self.i[cell] = product,
            None => self.u[cell] = 1,
        }
    }

    fn found(&mut self, cell: usize, key: i128, index: u64) {
        let (own, at) = (self.i[cell], self.u[cell]);
        let better = if matches!(self.kind, Kind::ArgMin { .. }) { key < own } else { key > own };
        if at == u64::MAX || better || (key == own && index < at) {
            (self.i[cell], self.u[cell]) = (key, index);
        }
    }

    /// Folds cell `from` of another accumulator of the same kind into cell `to`.
    pub(super) fn merge_cell(&mut self, to: usize, other: &Self, from: usize) {
        if let (Some(n), Some(more)) = (self.n.get_mut(to), other.n.get(from)) {
            *n += more;
        }
        match &self.kind {
            Kind::Count => {}
            Kind::Sum | Kind::L1 if !self.float => self.i[to] += other.i[from],
            Kind::Sum | Kind::L1 | Kind::L2 => {
                self.add(to, other.a[from]);
                self.b[to] += other.b[from];
            }
            Kind::Moments => self.merge_moments(to, other.c[from], other.a[from], other.b[from]),
            Kind::Min if self.float => {
                self.a[to] = self.a[to].min(other.a[from]);
                self.u[to] += other.u[from];
            }
            Kind::Max if self.float => {
                self.a[to] = self.a[to].max(other.a[from]);
                self.u[to] += other.u[from];
            }
            Kind::Min => self.i[to] = self.i[to].min(other.i[from]),
            Kind::Max => self.i[to] = self.i[to].max(other.i[from]),
            Kind::Product => {
                self.a[to] *= other.a[from];
                if !self.float {
                    self.multiply(to, other.i[from]);
                    self.u[to] |= other.u[from];
                    // A product with a zero in it is zero, however it overflowed before.
                    if other.i[from] == 0 || self.i[to] == 0 {
                        self.i[to] = 0;
                    }
                }
            }
            Kind::ArgMin { .. } | Kind::ArgMax { .. } => {
                if other.u[from] != u64::MAX {
                    self.found(to, other.i[from], other.u[from]);
                }
            }
            Kind::Values { .. } => self.v[to].extend_from_slice(&other.v[from]),
            Kind::Digits(digits) => {
                let each = 2 * digits.radix();
                add_counts(&mut self.u[to * each..(to + 1) * each], &other.u[from * each..(from + 1) * each]);
            }
            Kind::Histogram { bins, .. } => {
                let each = *bins;
                add_counts(&mut self.u[to * each..(to + 1) * each], &other.u[from * each..(from + 1) * each]);
            }
            Kind::Tally { .. } => {
                add_counts(&mut self.u[to * 3..(to + 1) * 3], &other.u[from * 3..(from + 1) * 3]);
            }
        }
    }

    /// Folds an accumulator of the same cells, which comes after this one, into it.
    pub(super) fn merge(&mut self, other: &Self) {
        if !other.unwritten.is_empty() {
            self.unwritten.resize(self.cells, 0);
            for (own, more) in self.unwritten.iter_mut().zip(&other.unwritten) {
                *own = own.wrapping_add(*more);
            }
        }
        if matches!(self.kind, Kind::Sum | Kind::L1 | Kind::L2) && self.float && self.n.is_empty() {
            let others = other.a.iter().zip(&other.b);
            for ((sum, rest), (more, left)) in self.a.iter_mut().zip(&mut self.b).zip(others) {
                let error;
                (*sum, error) = two_sum(*sum, *more);
                *rest += error + left;
            }
            return;
        }
        for cell in 0..self.cells.min(other.cells) {
            self.merge_cell(cell, other, cell);
        }
    }

    /// The sum of a cell's floats.
    pub(super) fn sum(&self, cell: usize) -> f64 {
        // Once a sum is infinite or not a number, its rounding errors mean nothing.
        if self.a[cell].is_finite() { self.a[cell] + self.b[cell] } else { self.a[cell] }
    }

    /// The product of a cell's integers, when it fits in an `i128`.
    pub(super) fn integer_product(&self, cell: usize) -> Option<i128> {
        (self.u[cell] == 0 || self.i[cell] == 0).then_some(self.i[cell])
    }

    /// Sorts every cell's values.
    pub(super) fn sorted(&mut self, cell: usize) -> &[u64] {
        self.v[cell].sort_unstable();
        &self.v[cell]
    }

    /// Was a value of the cell not a number (in what [`sorted`](Self::sorted) gives)?
    pub(super) fn ends_in_nan(values: &[u64], float: bool) -> bool {
        float && values.last() == Some(&NAN_KEY)
    }
}

impl Accumulator {
    /// Becomes what another of the same kind is, in the memory that it has.
    pub(super) fn become_like(&mut self, other: &Self) {
        self.n.clone_from(&other.n);
        self.a.clone_from(&other.a);
        self.b.clone_from(&other.b);
        self.c.clone_from(&other.c);
        self.i.clone_from(&other.i);
        self.u.clone_from(&other.u);
        self.v.clone_from(&other.v);
    }
}
