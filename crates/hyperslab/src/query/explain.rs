//! What a plan will cost, told before anything is read.

use hyperslab_core::Result;

use super::condition::Mask;
use super::lane::{Cell, Stored, for_stored};
use super::plan::{Explanation, QueryPlan};
use super::run::LOCATED;
use super::statistics::trusted;
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
        let known = trusted(plan, array, &coords, &kind)?;
        for (number, (reference, chunk)) in array.locate(&coords)?.iter().zip(&chunks).enumerate() {
            let Some(reference) = reference else {
                told.unwritten += 1;
                continue;
            };
            let known = known.get(number).and_then(Option::as_ref);
            if let (Some(mask), Some(known)) = (&mask, known)
                && mask.rules_out(known)
            {
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
