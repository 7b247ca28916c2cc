//! Contiguous selections of raw chunks as views into the mapped file.

use bytes::Bytes;
use hyperslab_core::{Array, BlobKey, CellOrder, ChunkList, Plan, PlannedChunk, Result, Span, locate};

/// Views are only attempted for results of up to this many chunks; larger ones are hardly ever contiguous.
const MOST_CHUNKS: u64 = 256;

/// The plan's result as one run of stored bytes; `None` if it is not contiguous or the blob is not mapped.
pub(super) fn contiguous(array: &dyn Array, plan: &Plan) -> Result<Option<Bytes>> {
    let schema = array.schema();
    let Some(item) = schema.dtype.size().filter(|item| *item > 0) else { return Ok(None) };
    // Cheap checks first: most selections end here.
    if schema.order != CellOrder::RowMajor || plan.is_empty() || plan.len() > MOST_CHUNKS || array.is_remote()
    {
        return Ok(None);
    }
    let counts = plan.positions().counts();
    let in_place = |wanted: &PlannedChunk| run_in_chunk(wanted, &schema.decoded_shape(&wanted.coord));
    if in_place(&plan.chunk(0)).is_none() || !leads_with_one_axis(&counts, plan) {
        return Ok(None);
    }
    let coords: Vec<_> = (0..plan.len()).map(|index| plan.coord(index)).collect();
    let references = locate(array, &coords)?;
    let mut run: Option<Span> = None;
    for (wanted, reference) in plan.iter().zip(&references) {
        let (Some((first, cells)), Some(span)) =
            (in_place(&wanted), reference.as_ref().and_then(|r| r.as_plain()))
        else {
            return Ok(None);
        };
        let (start, length) = (first * item as u64, cells * item as u64);
        if start.saturating_add(length) > span.length {
            return Ok(None);
        }
        match &mut run {
            None => run = Some(Span { blob: span.blob.clone(), offset: span.offset + start, length }),
            Some(run) if run.blob == span.blob && run.offset + run.length == span.offset + start => {
                run.length += length;
            }
            Some(_) => return Ok(None),
        }
    }
    let Some(run) = run else { return Ok(None) };
    view(array, &run.blob, &run)
}

/// Returns true if the plan's chunks follow each other along the slowest axis that has more than one position. Only then can
/// their parts be contiguous in the result.
fn leads_with_one_axis(counts: &[u64], plan: &Plan) -> bool {
    let lead = counts.iter().position(|count| *count > 1).unwrap_or(0);
    let straight = plan.positions().axes.iter().all(|axis| axis.count <= 1 || axis.step == 1);
    let first = plan.chunk(0);
    straight
        && first
            .axes
            .iter()
            .zip(counts)
            .enumerate()
            .all(|(axis, (part, count))| axis == lead || part.count == *count)
}

/// The first cell and the number of cells, if the wanted cells are contiguous in the chunk.
fn run_in_chunk(wanted: &PlannedChunk, shape: &[u64]) -> Option<(u64, u64)> {
    let strides = CellOrder::RowMajor.strides(shape);
    let (mut first, mut cells) = (0_u64, 1_u64);
    for ((part, stride), _) in wanted.axes.iter().zip(&strides).zip(shape).rev() {
        if part.count > 1 && (part.step != 1 || part.backwards || *stride != cells) {
            return None;
        }
        first += part.first * stride;
        cells *= part.count;
    }
    Some((first, cells))
}

fn view(array: &dyn Array, key: &BlobKey, run: &Span) -> Result<Option<Bytes>> {
    let blob = array.blob(key)?;
    if blob.mapped().is_none() {
        return Ok(None);
    }
    blob.read_at(run.offset, run.length).map(Some)
}
