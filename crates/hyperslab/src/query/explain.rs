//! Explains the cost of a plan: a dry run that makes the same decisions and reads no values.

use hyperslab_core::{
    Array, ArraySchema, BlobKey, Chunk, ChunkCoord, ChunkList, ChunkStatistics, ChunkVisitor, Result, Span,
    product, visit_chunks,
};

use super::accumulate::Accumulator;
use super::fold::AnyFold;
use super::operand::{Cell, Stored, for_stored};
use super::plan::{Explanation, Geometry, QueryPlan};
use super::remote::Wave;
use super::run::{ChunkFold, TileChunks};
use super::unwritten::Written;
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
        tasks: geometry.tiles * geometry.runs,
        shape: plan.shape(),
        ..Explanation::default()
    };
    let (mut plain, mut end) = (true, None);
    let written = plan.written(reader, &geometry)?;
    let mut wave = Wave::new(reader);
    for task in 0..explanation.tasks {
        let mut dry_run =
            DryRun { explanation: &mut explanation, plain: &mut plain, end: &mut end, spans: Vec::new() };
        dry_run.task::<C>(plan, reader, (&fold, &geometry), task, written.as_ref())?;
        let spans = dry_run.spans;
        if let Some(full) = wave.add(task, spans) {
            explanation.add_round(&full.spans, reader)?;
        }
    }
    explanation.add_round(&wave.spans, reader)?;
    explanation.memory = plan.memory_needed(&fold, plain)?;
    Ok(explanation)
}

/// The spans that one task of a plan fetches.
pub(super) fn spans_of_task<C: Cell>(
    plan: &QueryPlan,
    reader: &ArrayReader,
    (fold, geometry): (&AnyFold, &Geometry),
    task: u64,
    written: Option<&Written>,
) -> Result<Vec<Span>> {
    let (mut explanation, mut plain, mut end) = (Explanation::default(), true, None);
    let mut dry_run =
        DryRun { explanation: &mut explanation, plain: &mut plain, end: &mut end, spans: Vec::new() };
    dry_run.task::<C>(plan, reader, (fold, geometry), task, written)?;
    Ok(dry_run.spans)
}

impl Explanation {
    /// Adds the requests of one round to remote storage.
    fn add_round(&mut self, spans: &[Span], reader: &ArrayReader) -> Result<()> {
        let cost = reader.inner().fetch_cost(&spans.iter().collect::<Vec<_>>())?;
        self.rounds += u64::from(cost.requests > 0);
        self.requests += cost.requests;
        self.stored_bytes = self.stored_bytes.saturating_add(cost.bytes);
        Ok(())
    }
}

/// Adds up what tasks would fetch, or lists it for remote storage.
struct DryRun<'a> {
    explanation: &'a mut Explanation,
    /// Whether all chunks are stored as plain elements.
    plain: &'a mut bool,
    /// The end of the last request.
    end: &'a mut Option<(BlobKey, u64)>,
    /// The spans that would be fetched from remote storage.
    spans: Vec<Span>,
}

impl DryRun<'_> {
    fn task<C: Cell>(
        &mut self,
        plan: &QueryPlan,
        reader: &ArrayReader,
        (fold, geometry): (&AnyFold, &Geometry),
        task: u64,
        written: Option<&Written>,
    ) -> Result<()> {
        // As in a run, nothing is fetched: the number of cells is implied by the geometry.
        if reader.inner().is_remote() && matches!(fold, AnyFold::Count(_)) && !plan.counted() {
            return Ok(());
        }
        let number = task / geometry.runs;
        let tile = plan.tile(geometry, number)?;
        let first = task % geometry.runs * geometry.run;
        let all = first..(first + geometry.run).min(geometry.chunks);
        let count = all.end - all.start;
        let chunks = TileChunks::new(plan, geometry, (number, &tile), all, written);
        let listed = chunks.listed();
        self.explanation.unwritten += count - (listed.end - listed.start);
        let mut into = Accumulator::new(fold, tile.cells, plan.counted());
        let mut visitor = DryFold {
            fold: ChunkFold::<C>::new(&chunks, &mut into),
            chunks: &chunks,
            schema: reader.schema(),
            is_remote: reader.inner().is_remote(),
            run: self,
        };
        visit_chunks(&**reader.inner(), &chunks, listed, reader.context(), &mut visitor)
    }
}

/// Makes the same decisions about chunks as the fold.
struct DryFold<'a, 'r, C: Cell> {
    fold: ChunkFold<'a, C>,
    chunks: &'a TileChunks<'a>,
    schema: &'a ArraySchema,
    is_remote: bool,
    run: &'a mut DryRun<'r>,
}

impl<C: Cell> ChunkVisitor for DryFold<'_, '_, C> {
    fn statistics(
        &mut self,
        array: &dyn Array,
        chunks: &[ChunkCoord],
    ) -> Result<Vec<Option<ChunkStatistics>>> {
        self.fold.statistics(array, chunks)
    }

    fn needs(&mut self, index: u64, chunk: &ChunkCoord, known: Option<&ChunkStatistics>) -> bool {
        let needed = self.fold.needs(index, chunk, known);
        self.run.explanation.skipped += u64::from(!needed);
        needed
    }

    fn fetches(&self) -> bool {
        false
    }

    fn would_fetch(&mut self, spans: Vec<Span>) {
        self.run.spans.extend(spans);
    }

    fn visit(&mut self, chunk: &mut Chunk<'_>) -> Result<()> {
        let explanation = &mut *self.run.explanation;
        let Some(reference) = chunk.reference() else {
            explanation.unwritten += 1;
            return Ok(());
        };
        let wanted = self.chunks.wanted(chunk.index());
        if self.fold.can_skip(chunk, &wanted) {
            explanation.skipped += 1;
            return Ok(());
        }
        let decoded = if reference.as_plain().is_some() {
            let item = self.schema.dtype.size().unwrap_or(0) as u64;
            product(&wanted.bounds().shape).unwrap_or(0).saturating_mul(item)
        } else {
            *self.run.plain = false;
            self.schema.decoded_bytes(chunk.coord()).unwrap_or(0) as u64
        };
        explanation.decoded_bytes = explanation.decoded_bytes.saturating_add(decoded);
        for span in chunk.requests(&wanted)? {
            if self.is_remote {
                // An object of unknown size is most likely smaller than its decoded size.
                explanation.stored_bytes =
                    explanation.stored_bytes.saturating_add(if span.is_whole() { decoded } else { 0 });
                continue;
            }
            if self.run.end.as_ref().is_none_or(|(blob, end)| *blob != span.blob || *end != span.offset) {
                explanation.requests += 1;
            }
            explanation.stored_bytes = explanation.stored_bytes.saturating_add(span.length);
            *self.run.end = Some((span.blob, span.offset.saturating_add(span.length)));
        }
        Ok(())
    }
}
