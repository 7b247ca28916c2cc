//! Statistics that formats store per chunk, used to avoid reading chunks.
//!
//! Statistics are bounds. A chunk is skipped if none of its values can count, if every value counts and only their number
//! matters, or if none can improve on the current result. Exact statistics replace the whole chunk. Statistics that are not
//! verifiably tied to the values are not even requested, unless the query trusts them.

use hyperslab_core::{Array, ChunkCoord, ChunkStatistics, Number, PlannedChunk, Result, product};

use super::accumulate::Accumulator;
use super::axes::AxisMap;
use super::condition::Mask;
use super::fold::AnyFold;
use super::operand::Operand;
use super::plan::QueryPlan;

/// The statistics of these chunks that may be relied on; empty if they would not help.
pub(super) fn usable_statistics(
    plan: &QueryPlan,
    array: &dyn Array,
    coords: &[ChunkCoord],
    fold: &AnyFold,
) -> Result<Vec<Option<ChunkStatistics>>> {
    let whole = fold.uses_statistics() && one_cell(plan);
    let useful = !plan.conditions.is_empty() || whole;
    if !useful || (array.statistics_are_hints() && !plan.trust_hints) {
        return Ok(Vec::new());
    }
    let mut known = array.statistics(coords)?;
    for known in &mut known {
        *known = known.filter(|known| !known.hint || plan.trust_hints);
    }
    Ok(known)
}

/// Returns true if everything is folded into one cell.
fn one_cell(plan: &QueryPlan) -> bool {
    plan.maps.iter().all(|map| *map == AxisMap::Reduce)
}

/// Returns true if a chunk with these statistics need not be read. Adds its known contribution to the accumulator.
pub(super) fn can_skip<T: Operand>(
    plan: &QueryPlan,
    mask: Option<&Mask<T>>,
    known: &ChunkStatistics,
    wanted: &PlannedChunk,
    into: &mut Accumulator,
) -> bool {
    if mask.is_some_and(|mask| mask.rules_out(known)) {
        return true;
    }
    if !one_cell(plan) || plan.nullable {
        return false;
    }
    if matches!(into.fold, AnyFold::Count(_)) && mask.is_some_and(|mask| mask.keeps_all(known)) {
        // Statistics cover all cells inside the array, so they also bound the wanted ones.
        let cells = product(&wanted.counts()).unwrap_or(0);
        return into.counts.first_mut().map(|count| *count += cells).is_some();
    }
    // A NaN would become the minimum or maximum, unless it is skipped or known to be absent.
    let no_nan = !T::FLOAT || plan.skip_nan || known.nulls == Some(0) || mask.is_some_and(Mask::refuses_nan);
    no_nan && into.counts.first().is_none_or(|count| *count > 0) && into.fold.is_settled(known)
}

/// Folds a chunk's statistics in place of its cells, if they are exact and all cells are wanted. `counts` are the wanted cells
/// per axis.
pub(super) fn fold_from_statistics<T: Operand>(
    plan: &QueryPlan,
    mask: Option<&Mask<T>>,
    known: &ChunkStatistics,
    (chunk, counts): (&ChunkCoord, &[u64]),
    into: &mut Accumulator,
) -> bool {
    let all = known.exact && one_cell(plan) && !plan.nullable && known.nulls == Some(0);
    if !all
        || plan.plan.grid().region(chunk).shape[..] != *counts
        || mask.is_some_and(|mask| !mask.keeps_all(known))
    {
        return false;
    }
    let statistic = into.fold.exact_statistic(known);
    let fits = match statistic {
        Some(Number::Float(statistic)) => T::FLOAT && statistic.is_finite(),
        Some(Number::Integer(_)) => !T::FLOAT,
        None => false,
    };
    if let Some(statistic) = statistic.filter(|_| fits) {
        let cells = product(counts).unwrap_or(0);
        into.counts.first_mut().into_iter().for_each(|count| *count += cells);
        into.fold.fold_statistic(statistic);
    }
    fits
}
