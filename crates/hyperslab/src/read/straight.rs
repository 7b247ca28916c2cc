//! Many small chunks that follow each other along one axis and fill the others: each has one run of bytes of the result,
//! and the work for a chunk beside its copy is what counts.

use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{
    Array, Blob, BlobKey, CellOrder, ChunkCoord, ChunkRef, LOCATE_BATCH, Layout, Plan, Result, copy_box,
    with_chunk,
};

use super::Threads;

/// Chunks of up to this many bytes are small.
const SMALL_CHUNK: usize = 16 << 10;
/// Bytes of the result that one task fills.
const TASK: usize = 256 << 10;

/// A plan of that form.
pub(super) struct Straight<'a> {
    array: &'a dyn Array,
    plan: &'a Plan,
    /// The axis along which chunks follow each other.
    axis: usize,
    /// Bytes from one position along that axis to the next.
    row: usize,
    /// Positions along it that one chunk has.
    extent: u64,
    item: usize,
}

/// The blob that was looked up last: chunks that follow each other share it, and looking it up takes longer than
/// copying a small chunk.
struct Mapped(Option<(BlobKey, Arc<dyn Blob>)>);

impl Mapped {
    fn bytes(&mut self, array: &dyn Array, key: &BlobKey) -> Result<Option<&Bytes>> {
        if self.0.as_ref().is_none_or(|(last, _)| last != key) {
            self.0 = Some((key.clone(), array.blob(key)?));
        }
        Ok(self.0.as_ref().and_then(|(_, blob)| blob.mapped()))
    }
}

impl<'a> Straight<'a> {
    /// `None` where the plan has another form, or large chunks.
    pub(super) fn new(array: &'a dyn Array, plan: &'a Plan, item: usize) -> Option<Self> {
        let schema = array.schema();
        if schema.order != CellOrder::RowMajor || plan.len() < 64 || item == 0 {
            return None;
        }
        let (counts, first) = (plan.positions().counts(), plan.chunk(0));
        if plan.positions().axes.iter().any(|axis| axis.count > 1 && axis.step != 1) {
            return None;
        }
        let axis = first.axes.iter().zip(&counts).position(|(part, count)| part.count < *count)?;
        let others = first.axes.iter().zip(&counts).enumerate().filter(|(other, _)| *other != axis);
        let filled = others
            .clone()
            .all(|(other, (part, count))| part.count == *count && (other > axis || *count == 1));
        // The rows of a chunk follow each other in it: it has nothing beside what is wanted of the axes behind.
        let whole = schema.decoded_shape(&first.coord)[axis + 1..] == counts[axis + 1..];
        if !filled || !whole {
            return None;
        }
        let row = counts[axis + 1..].iter().try_fold(item, |row, count| row.checked_mul(*count as usize))?;
        let extent = schema.grid.chunk_shape()[axis];
        let small = usize::try_from(extent).ok()?.checked_mul(row)? <= SMALL_CHUNK;
        small.then_some(Self { array, plan, axis, row, extent, item })
    }

    /// Fills the result, whose size the caller has checked.
    pub(super) fn fill(&self, threads: &Threads, out: &mut [u8]) -> Result<()> {
        let each = (TASK / (self.extent as usize * self.row).max(1)).max(1) as u64;
        let mut parts = Vec::new();
        let (mut rest, mut start) = (out, 0);
        while start < self.plan.len() {
            let end = (start + each).min(self.plan.len());
            let bytes = match self.plan.len() - end {
                0 => rest.len(),
                _ => (self.place(end) - self.place(start)) as usize * self.row,
            };
            let (head, tail) = rest.split_at_mut(bytes);
            parts.push((start, end, head));
            (rest, start) = (tail, end);
        }
        threads.each(parts, |(start, end, out)| self.part(start, end, out))
    }

    /// Where the chunk's first wanted position goes.
    fn place(&self, index: u64) -> u64 {
        self.plan.chunk(index).axes[self.axis].place
    }

    fn part(&self, start: u64, end: u64, mut out: &mut [u8]) -> Result<()> {
        let mut mapped = Mapped(None);
        let first = self.plan.chunk(start).coord;
        for from in (start..end).step_by(LOCATE_BATCH as usize) {
            let coord = |index: u64| -> ChunkCoord {
                let mut coord = first.clone();
                coord[self.axis] += index - start;
                coord
            };
            let to = (from + LOCATE_BATCH).min(end);
            let coords: Vec<_> = (from..to).map(coord).collect();
            for (index, reference) in (from..).zip(&self.array.locate(&coords)?) {
                let (skip, count) = self.wanted(index);
                let (head, tail) = out.split_at_mut(count * self.row);
                self.chunk(index, reference.as_ref(), skip * self.row, head, &mut mapped)?;
                out = tail;
            }
        }
        Ok(())
    }

    /// The positions of a chunk that come before the wanted ones, and how many are wanted.
    fn wanted(&self, index: u64) -> (usize, usize) {
        // Only the first and the last chunk may be wanted in part.
        if index > 0 && index + 1 < self.plan.len() {
            return (0, self.extent as usize);
        }
        let part = self.plan.chunk(index).axes[self.axis];
        (part.first as usize, part.count as usize)
    }

    fn chunk(
        &self,
        index: u64,
        reference: Option<&ChunkRef>,
        skip: usize,
        out: &mut [u8],
        mapped: &mut Mapped,
    ) -> Result<()> {
        if let Some(span) = reference.and_then(ChunkRef::as_plain)
            && (skip + out.len()) as u64 <= span.length
            && let Some(bytes) = mapped.bytes(self.array, &span.blob)?
            && let Some(stored) =
                usize::try_from(span.offset).ok().and_then(|at| bytes.get(at.checked_add(skip)?..))
            && let Some(stored) = stored.get(..out.len())
        {
            out.copy_from_slice(stored);
            return Ok(());
        }
        let wanted = self.plan.chunk(index);
        let counts = wanted.counts();
        with_chunk(self.array, &wanted, reference, |cells, from| {
            copy_box(cells, from, out, &Layout::packed(&counts, self.item), &counts, self.item)
        })
    }
}
