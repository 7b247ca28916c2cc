//! What formats keep of a chunk's values beside them: which chunks need not be read.
//!
//! The claims are bounds. A chunk is left out when no value of it can count, when every value counts and only their number
//! matters, or when none can be better than what was found. Claims that are exact stand for the whole chunk. Claims that nothing ties to the values are not even asked
//! for, unless the query trusts them.

use hyperslab_core::{Array, ChunkCoord, ChunkStatistics, Number, PlannedChunk, Result, product};

use super::accumulate::Accumulator;
use super::axes::AxisMap;
use super::condition::Mask;
use super::fold::AnyFold;
use super::operand::Operand;
use super::plan::QueryPlan;

/// What is known of these chunks and may be relied on; empty when nothing of it would help.
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

/// Does everything go into one cell?
fn one_cell(plan: &QueryPlan) -> bool {
    plan.maps.iter().all(|map| *map == AxisMap::Reduce)
}

/// Is a chunk of which this is known done with? Puts into the accumulator what is known of it without reading.
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
        // The claims are about all cells inside the array, so about those that are wanted too.
        let cells = product(&wanted.counts()).unwrap_or(0);
        return into.counts.first_mut().map(|count| *count += cells).is_some();
    }
    // Not-a-number would make an end of the values one, unless it is left out or known not to be there.
    let no_nan = !T::FLOAT || plan.skip_nan || known.nulls == Some(0) || mask.is_some_and(Mask::refuses_nan);
    no_nan && into.counts.first().is_none_or(|count| *count > 0) && into.fold.is_settled(known)
}

/// Folds what is known of a chunk's cells in place of them, where it is known for certain and all of them are wanted.
/// `counts` are the wanted cells per axis.
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
    let claim = into.fold.claim(known);
    let fits = match claim {
        Some(Number::Float(claim)) => T::FLOAT && claim.is_finite(),
        Some(Number::Integer(_)) => !T::FLOAT,
        None => false,
    };
    if let Some(claim) = claim.filter(|_| fits) {
        let cells = product(counts).unwrap_or(0);
        into.counts.first_mut().into_iter().for_each(|count| *count += cells);
        into.fold.fold_claim(claim);
    }
    fits
}
