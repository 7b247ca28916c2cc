//! Explains the cost of a plan: a dry run that makes the same decisions and reads no values.

use hyperslab_core::{
    Array, ArraySchema, BlobKey, Chunk, ChunkCoord, ChunkList, ChunkStatistics, ChunkVisitor, Result,
    product, visit_chunks,
};

use super::accumulate::Accumulator;
use super::operand::{Cell, Stored, for_stored};
use super::plan::{Explanation, QueryPlan};
use super::run::{ChunkFold, TileChunks};
use crate::ArrayReader;

impl QueryPlan {
    /// The cost of running the plan. Locates chunks but reads none.
    ///
    /// # Errors
    ///
    /// Any error from the chunk index.
    pub fn explain(&self, array: &ArrayReader) -> Result<Explanation> {
        self.check_array(array)?;
        for_stored!(Stored::of(&self.dtype, &self.name)?, explain(self, array))
    }
}

fn explain<C: Cell>(plan: &QueryPlan, reader: &ArrayReader) -> Result<Explanation> {
    let fold = plan.first_fold();
    let geometry = plan.geometry(&fold)?;
    let mut explanation = Explanation {
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
    let (mut plain, mut end) = (true, None);
    let written = plan.written(reader, &geometry)?;
    for number in 0..geometry.tiles {
        let tile = plan.tile(&geometry, number)?;
        let all = 0..geometry.chunks;
        let chunks = TileChunks::new(plan, &geometry, (number, &tile), all, written.as_ref());
        let listed = chunks.listed();
        explanation.unwritten += geometry.chunks - (listed.end - listed.start);
        let mut into = Accumulator::new(&fold, tile.cells, plan.counted());
        let mut dry_run = DryRun {
            fold: ChunkFold::<C>::new(&chunks, &mut into),
            chunks: &chunks,
            schema: reader.schema(),
            explanation: &mut explanation,
            plain: &mut plain,
            end: &mut end,
        };
        visit_chunks(&**reader.inner(), &chunks, listed, reader.context(), &mut dry_run)?;
    }
    explanation.memory = plan.memory_needed(&fold, plain)?;
    Ok(explanation)
}

/// Makes the same decisions about chunks as the fold, and adds up what it would fetch.
struct DryRun<'a, C: Cell> {
    fold: ChunkFold<'a, C>,
    chunks: &'a TileChunks<'a>,
    schema: &'a ArraySchema,
    explanation: &'a mut Explanation,
    /// Whether everything is stored as is.
    plain: &'a mut bool,
    /// The end of the last request.
    end: &'a mut Option<(BlobKey, u64)>,
}

impl<C: Cell> ChunkVisitor for DryRun<'_, C> {
    fn statistics(
        &mut self,
        array: &dyn Array,
        chunks: &[ChunkCoord],
    ) -> Result<Vec<Option<ChunkStatistics>>> {
        self.fold.statistics(array, chunks)
    }

    fn needs(&mut self, index: u64, chunk: &ChunkCoord, known: Option<&ChunkStatistics>) -> bool {
        let needed = self.fold.needs(index, chunk, known);
        self.explanation.skipped += u64::from(!needed);
        needed
    }

    fn fetches(&self) -> bool {
        false
    }

    fn visit(&mut self, chunk: &mut Chunk<'_>) -> Result<()> {
        let Some(reference) = chunk.reference() else {
            self.explanation.unwritten += 1;
            return Ok(());
        };
        let wanted = self.chunks.wanted(chunk.index());
        if self.fold.can_skip(chunk, &wanted) {
            self.explanation.skipped += 1;
            return Ok(());
        }
        let decoded = if reference.as_plain().is_some() {
            let item = self.schema.dtype.size().unwrap_or(0) as u64;
            product(&wanted.bounds().shape).unwrap_or(0).saturating_mul(item)
        } else {
            *self.plain = false;
            self.schema.decoded_bytes(chunk.coord()).unwrap_or(0) as u64
        };
        let told = &mut *self.explanation;
        told.decoded_bytes = told.decoded_bytes.saturating_add(decoded);
        for span in chunk.requests(&wanted)? {
            if self.end.as_ref().is_none_or(|(blob, end)| *blob != span.blob || *end != span.offset) {
                told.requests += 1;
            }
            // An object of unknown size is most likely smaller than its decoded size.
            let stored = if span.is_whole() { decoded } else { span.length };
            told.stored_bytes = told.stored_bytes.saturating_add(stored);
            *self.end = Some((span.blob, span.offset.saturating_add(span.length)));
        }
        Ok(())
    }
}
