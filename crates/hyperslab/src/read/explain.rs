//! Explains the cost of a read: a dry run that makes the same decisions and reads no values.

use hyperslab_core::{BlobKey, Result, Selection, Span, fetch_rounds, needs_elements, prefetch_index};

use super::ArrayReader;
use crate::query::Explanation;

impl ArrayReader {
    /// The cost of reading a selection. Locates chunks but reads none. Data to which chunks refer, such as text of variable length in
    /// HDF5, is not included.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve); any error from the chunk index.
    pub fn explain(&self, selection: &Selection) -> Result<Explanation> {
        let (plan, array) = (self.plan(selection)?, &*self.array);
        prefetch_index(array, &plan, plan.len())?;
        let item = self.schema().dtype.size().unwrap_or(0) as u64;
        let answer = plan.positions().cells().unwrap_or(u64::MAX).saturating_mul(item);
        let threads = if needs_elements(array) { &self.context.threads } else { self.read_threads(answer) };
        let tasks = threads.run(plan.len(), array.is_remote(), |start, count| {
            fetch_rounds(array, &plan, start..start + count, &self.context)
        })?;
        let mut explanation = Explanation {
            chunks: plan.len(),
            tasks: tasks.len() as u64,
            shape: plan.positions().shape().to_vec(),
            ..Explanation::default()
        };
        // A task keeps up to three groups of chunks in memory.
        let (mut largest, mut end) = (0_u64, None);
        for round in tasks.into_iter().flatten() {
            explanation.unwritten += round.unwritten;
            explanation.decoded_bytes = explanation.decoded_bytes.saturating_add(round.decoded);
            let spans: Vec<&Span> = round.spans.iter().collect();
            let (requests, bytes) = if array.is_remote() {
                let cost = array.fetch_cost(&spans)?;
                explanation.rounds += u64::from(cost.requests > 0);
                (cost.requests, cost.bytes.saturating_add(round.unknown))
            } else {
                (local_ranges(&spans, &mut end), spans.iter().map(|span| span.length).sum())
            };
            explanation.requests += requests;
            explanation.stored_bytes = explanation.stored_bytes.saturating_add(bytes);
            largest = largest.max(bytes);
        }
        let in_flight = largest.saturating_mul(3).saturating_mul(explanation.tasks.min(threads.count()));
        explanation.memory = answer.saturating_add(in_flight.min(explanation.stored_bytes));
        Ok(explanation)
    }
}

/// The number of byte ranges of local storage. Adjacent ranges count once, also across calls with the same `end`.
fn local_ranges(spans: &[&Span], end: &mut Option<(BlobKey, u64)>) -> u64 {
    let mut ranges = 0;
    for span in spans {
        let follows = end.as_ref().is_some_and(|(blob, end)| *blob == span.blob && *end == span.offset);
        ranges += u64::from(!follows);
        *end = Some((span.blob.clone(), span.offset.saturating_add(span.length)));
    }
    ranges
}
