//! What formats keep of a chunk's values beside them: which chunks need not be read.
//!
//! The claims are bounds. A chunk is left out when no value of it can count, when every value counts and only their number
//! matters, or when none can be better than what was found. Claims that are exact stand for the whole chunk. Claims that nothing ties to the values are not even asked
//! for, unless the query trusts them.

use hyperslab_core::{Array, ChunkCoord, ChunkStatistics, Number, PlannedChunk, Result, product};

use super::accumulate::{Accumulator, Kind};
use super::axes::AxisMap;
use super::condition::Mask;
use super::lane::Lane;
use super::plan::QueryPlan;

/// What is known of these chunks and may be relied on; empty when nothing of it would help.
pub(super) fn usable_statistics(
    plan: &QueryPlan,
    array: &dyn Array,
    coords: &[ChunkCoord],
    kind: &Kind,
) -> Result<Vec<Option<ChunkStatistics>>> {
    let whole = matches!(kind, Kind::Min | Kind::Max | Kind::Sum) && one_cell(plan);
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
pub(super) fn can_skip<T: Lane>(
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
    match into.kind {
        Kind::Count if mask.is_some_and(|mask| mask.keeps_all(known)) => {
            // The claims are about all cells inside the array, so about those that are wanted too.
            let cells = product(&wanted.counts()).unwrap_or(0);
            into.n.first_mut().map(|n| *n += cells).is_some()
        }
        Kind::Min | Kind::Max => {
            // Not-a-number would make the answer one, unless it is left out or known not to be there.
            let no_nan =
                !T::FLOAT || plan.skip_nan || known.nulls == Some(0) || mask.is_some_and(Mask::refuses_nan);
            no_nan && into.n.first().is_none_or(|n| *n > 0) && no_better(into, known)
        }
        _ => false,
    }
}

/// Folds what is known of a chunk's cells in place of them, where it is known for certain and all of them are wanted.
/// `counts` are the wanted cells per axis.
pub(super) fn fold_from_statistics<T: Lane>(
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
    let claim = match into.kind {
        Kind::Sum => known.sum,
        Kind::Min => known.min,
        Kind::Max => known.max,
        _ => None,
    };
    let fits = match claim {
        Some(Number::Float(claim)) => T::FLOAT && claim.is_finite(),
        Some(Number::Integer(_)) => !T::FLOAT,
        None => false,
    };
    if let Some(claim) = claim.filter(|_| fits) {
        into.whole(claim, product(counts).unwrap_or(0));
    }
    fits
}

/// Can no value of the chunk be better than what was found?
fn no_better(into: &Accumulator, known: &ChunkStatistics) -> bool {
    let least = into.kind == Kind::Min;
    match if least { known.min } else { known.max } {
        None => false,
        Some(Number::Float(bound)) => {
            into.a.first().is_some_and(|own| if least { bound >= *own } else { bound <= *own })
        }
        Some(Number::Integer(bound)) => {
            into.i.first().is_some_and(|own| if least { bound >= *own } else { bound <= *own })
        }
    }
}
