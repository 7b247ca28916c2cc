//! Medians and quantiles: by selection if the values fit in memory, by counting digits otherwise.

use hyperslab_core::{Error, Result};

use super::answer::{Answer, Column};
use super::fold::{AnyFold, Digits};
use super::operand::{KeyKind, NAN_KEY, key_float, key_integer};
use super::plan::QueryPlan;
use super::{Operation, Query};
use crate::ArrayReader;

/// A quantile: two neighbouring values by their keys, and the fraction of the way from the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantile {
    low: u64,
    high: u64,
    share: f64,
}

/// The quantile `q` of values with these keys; `None` without values. Reorders the keys.
pub(super) fn quantile(keys: &mut [u64], q: f64, kind: KeyKind) -> Option<Quantile> {
    let (low, high, share) = neighbours(keys.len() as u64, q)?;
    if kind == KeyKind::Float && keys.contains(&NAN_KEY) {
        return Some(Quantile { low: NAN_KEY, high: NAN_KEY, share });
    }
    // Selection takes linear time, sorting takes longer.
    let (_, low_key, above) = keys.select_nth_unstable(low as usize);
    let low_key = *low_key;
    let high_key = if high == low { low_key } else { above.iter().copied().min().unwrap_or(low_key) };
    Some(Quantile { low: low_key, high: high_key, share })
}

/// The ranks between which quantile `q` lies, and the fraction from the first.
fn neighbours(count: u64, q: f64) -> Option<(u64, u64, f64)> {
    let last = count.checked_sub(1)?;
    if last >= 1 << 53 {
        return Some(far_neighbours(last, q));
    }
    let at = q * last as f64;
    let low = (at.floor() as u64).min(last);
    Some((low, (low + 1).min(last), at - low as f64))
}

/// Like [`neighbours`], in integers, for ranks that a float cannot represent.
fn far_neighbours(last: u64, q: f64) -> (u64, u64, f64) {
    // q = share / 2^scale exactly, except for shares too small to matter.
    let scale = 63 - u32::from(q >= 1.0);
    let share = (q * 2_f64.powi(scale as i32)) as u128;
    let at = share * u128::from(last);
    let low = ((at >> scale) as u64).min(last);
    let rest = (at & ((1 << scale) - 1)) as f64 / 2_f64.powi(scale as i32);
    (low, (low + 1).min(last), rest)
}

impl Quantile {
    /// Appends it to the answers, rounded to an integer if `whole`.
    pub(super) fn push(own: Option<Self>, kind: KeyKind, whole: bool, column: &mut Column) {
        if whole {
            column.push_integer(own.map(|own| own.rounded(kind)));
        } else {
            column.push_float(own.map(|own| own.interpolated(kind)));
        }
    }

    fn interpolated(self, kind: KeyKind) -> f64 {
        let value = |key| match kind {
            KeyKind::Float => key_float(key),
            _ => key_integer(key, kind) as f64,
        };
        let (a, b) = (value(self.low), value(self.high));
        if self.share == 0.0 || a == b {
            return a;
        }
        // Like NumPy: start from the nearer end, so that rounding misses neither end.
        if self.share < 0.5 { a + (b - a) * self.share } else { b - (b - a) * (1.0 - self.share) }
    }

    fn rounded(self, kind: KeyKind) -> i128 {
        let (a, b) = (key_integer(self.low, kind), key_integer(self.high, kind));
        a + ((b - a) as f64 * self.share).round() as i128
    }
}

/// Finds quantiles by reading the array several times. Each pass counts the next digit of the keys of all remaining candidates.
/// Takes a fixed amount of memory per cell of the result.
pub(super) fn by_digits(plan: &QueryPlan, array: &ArrayReader) -> Result<Answer> {
    let q = if let Operation::Quantile(q) = plan.operation { q } else { 0.5 };
    let cells =
        usize::try_from(plan.answers()?).map_err(|_| Error::invalid("the answers do not fit in memory"))?;
    let bits = if cells <= 64 { 16 } else { 8 };
    if (cells as u64).saturating_mul(16_u64 << bits) > plan.memory {
        return Err(Error::invalid(format!(
            "{cells} quantiles of this many values do not fit in {} bytes; raise the memory limit",
            plan.memory
        )));
    }
    let mut prefixes = vec![[0_u64; 2]; cells];
    // The wanted ranks among the values that share the prefix.
    let mut ranks = vec![[0_u64; 2]; cells];
    let mut shares = vec![None; cells];
    let mut nans = vec![false; cells];
    let (mut shift, mut values) = (64, 0);
    while shift > 0 {
        shift -= bits;
        let skip_nan = plan.skip_nan;
        let digits = Digits { shift, bits, prefixes: prefixes.clone(), skip_nan, ..Digits::default() };
        let radix = digits.radix();
        let found = std::sync::Mutex::new(Vec::new());
        plan.fold(array, &AnyFold::Digits(digits), |_, accumulator, tile| {
            if let (AnyFold::Digits(digits), Ok(mut found)) = (accumulator.fold, found.lock()) {
                found.push((digits.places, digits.counts));
            }
            Column { valid: vec![false; tile.cells], floats: vec![0.0; tile.cells], ..Column::default() }
        })?;
        let found = found.into_inner().unwrap_or_default();
        for (places, counts) in found {
            for (number, place) in places.iter().enumerate() {
                let cell = *place as usize;
                let own = &counts[number * 2 * radix..(number + 1) * 2 * radix];
                if shift + bits == 64 {
                    let count = own[..radix].iter().sum();
                    values += count;
                    if let Some((low, high, share)) = neighbours(count, q) {
                        (ranks[cell], shares[cell]) = ([low, high], Some(share));
                    }
                }
                for which in 0..2 {
                    let (digit, rank) = find(&own[which * radix..(which + 1) * radix], ranks[cell][which]);
                    prefixes[cell][which] = prefixes[cell][which] << bits | digit;
                    ranks[cell][which] = rank;
                }
            }
        }
    }
    if plan.key_kind() == KeyKind::Float && !plan.skip_nan {
        let count = Query::new(Operation::NanCount);
        let count = QueryPlan { operation: count.operation, ..plan.clone() };
        let column = count.fold(array, &count.first_fold(), QueryPlan::finish)?;
        for (nan, count) in nans.iter_mut().zip(&column.integers) {
            *nan = *count > 0;
        }
    }
    let mut column = Column { values, ..Column::default() };
    for cell in 0..cells {
        let [low, high] = prefixes[cell];
        let quantile = shares[cell].map(|share| match nans[cell] {
            true => Quantile { low: NAN_KEY, high: NAN_KEY, share },
            false => Quantile { low, high, share },
        });
        Quantile::push(quantile, plan.key_kind(), plan.whole_means(), &mut column);
    }
    plan.answer(column)
}

/// The digit of the `rank`-th value, and its rank among the values with that digit.
fn find(counts: &[u64], rank: u64) -> (u64, u64) {
    let mut left = rank;
    for (digit, count) in counts.iter().enumerate() {
        if left < *count {
            return (digit as u64, left);
        }
        left -= count;
    }
    (0, 0)
}
