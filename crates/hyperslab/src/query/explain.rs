//! What a plan will cost, told before anything is read; chunks that statistics rule out.

use hyperslab_core::{Array, ChunkCoord, ChunkStatistics, Result};

use super::condition::Mask;
use super::lane::{Cell, Lane, Stored, for_stored};
use super::plan::{Explanation, QueryPlan};
use super::run::LOCATED;
use crate::ArrayReader;

impl QueryPlan {
    /// What running will cost. Looks chunks up, reads none.
    ///
    /// # Errors
    ///
    /// Whatever the chunk index says.
    pub fn explain(&self, array: &ArrayReader) -> Result<Explanation> {
        self.check_array(array)?;
        for_stored!(Stored::of(&self.dtype, &self.name)?, explain(self, array))
    }
}

fn explain<C: Cell>(plan: &QueryPlan, reader: &ArrayReader) -> Result<Explanation> {
    let array = &**reader.inner();
    let kind = plan.first_kind()?;
    let geometry = plan.geometry(&kind)?;
    let mask = Mask::<C::Lane>::new(&plan.conditions, plan.fill, plan.mask_nan());
    let mut told = Explanation {
        chunks: plan.plan.len(),
        unwritten: 0,
        skipped: 0,
        stored_bytes: 0,
        decoded_bytes: 0,
        requests: 0,
        tasks: geometry.tiles * geometry.runs,
        memory: 0,
        shape: plan.shape(),
    };
    let item = plan.dtype.size().unwrap_or(0) as u64;
    let (mut plain, mut end) = (true, None);
    for start in (0..plan.plan.len()).step_by(LOCATED as usize) {
        let chunks: Vec<_> =
            (start..(start + LOCATED).min(plan.plan.len())).map(|i| plan.plan.chunk(i)).collect();
        let coords: Vec<_> = chunks.iter().map(|chunk| chunk.coord.clone()).collect();
        let known = statistics(plan, array, &coords, mask.as_ref())?;
        for (number, (reference, chunk)) in array.locate(&coords)?.iter().zip(&chunks).enumerate() {
            let Some(reference) = reference else {
                told.unwritten += 1;
                continue;
            };
            if known.get(number).is_some_and(|ruled_out| *ruled_out) {
                told.skipped += 1;
                continue;
            }
            let wanted = hyperslab_core::product(&chunk.bounds().shape).unwrap_or(0).saturating_mul(item);
            if reference.as_plain().is_some() {
                told.decoded_bytes = told.decoded_bytes.saturating_add(wanted);
            } else {
                plain = false;
                let whole = array.schema().decoded_bytes(&chunk.coord).unwrap_or(0) as u64;
                told.decoded_bytes = told.decoded_bytes.saturating_add(whole);
            }
            for span in reference.spans() {
                if end.as_ref() != Some(&(span.blob.clone(), span.offset)) {
                    told.requests += 1;
                }
                end = Some((span.blob.clone(), span.offset.saturating_add(span.length)));
                told.stored_bytes = told.stored_bytes.saturating_add(span.length);
            }
        }
    }
    told.memory = plan.memory_needed(&kind, plain)?;
    Ok(told)
}

/// Which of these chunks no value of which can count; empty when nothing is known.
pub(super) fn statistics<T: Lane>(
    plan: &QueryPlan,
    array: &dyn Array,
    coords: &[ChunkCoord],
    mask: Option<&Mask<T>>,
) -> Result<Vec<bool>> {
    let Some(mask) = mask.filter(|_| !plan.conditions.is_empty()) else { return Ok(Vec::new()) };
    if array.statistics_are_hints() && !plan.trust_hints {
        return Ok(Vec::new());
    }
    let known = array.statistics(coords)?;
    let ruled_out = |known: &Option<ChunkStatistics>| {
        known.as_ref().is_some_and(|known| (!known.hint || plan.trust_hints) && mask.rules_out(known))
    };
    Ok(known.iter().map(ruled_out).collect())
}
