//! A fast path for many small chunks that follow each other along one axis and fill the others: each is one run of bytes of the
//! result. The overhead per chunk dominates here, so slots are computed without a bitmap and without strides.

use hyperslab_core::{
    Array, CellOrder, Chunk, ChunkCoord, ChunkList, Context, Layout, Plan, PlannedChunk, Result, Threads,
    copy_box, visit_chunks,
};

/// The maximum size of a small chunk in bytes.
const SMALL_CHUNK: usize = 16 << 10;
/// The number of result bytes that one task fills.
const TASK: usize = 256 << 10;

/// A read that takes the fast path.
pub(super) struct RowCopy<'a> {
    array: &'a dyn Array,
    plan: &'a Plan,
    context: &'a Context,
    first: ChunkCoord,
    /// The axis along which chunks follow each other.
    axis: usize,
    /// Bytes from one position along that axis to the next.
    row: usize,
    /// Positions per chunk along it.
    extent: u64,
    item: usize,
}

impl ChunkList for RowCopy<'_> {
    fn coord(&self, index: u64) -> ChunkCoord {
        let mut coord = self.first.clone();
        coord[self.axis] += index;
        coord
    }

    fn wanted(&self, index: u64) -> PlannedChunk {
        self.plan.chunk(index)
    }
}

impl<'a> RowCopy<'a> {
    /// Returns `None` if the plan does not qualify or the chunks are large.
    pub(super) fn new(
        array: &'a dyn Array,
        plan: &'a Plan,
        item: usize,
        context: &'a Context,
    ) -> Option<Self> {
        let schema = array.schema();
        if schema.order != CellOrder::RowMajor || plan.len() < 64 || item == 0 || array.is_remote() {
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
        // The rows of a chunk are contiguous in it if all of the following axes are wanted.
        let whole = schema.decoded_shape(&first.coord)[axis + 1..] == counts[axis + 1..];
        if !filled || !whole {
            return None;
        }
        let row = counts[axis + 1..].iter().try_fold(item, |row, count| row.checked_mul(*count as usize))?;
        let extent = schema.grid.chunk_shape()[axis];
        let small = usize::try_from(extent).ok()?.checked_mul(row)? <= SMALL_CHUNK;
        small.then_some(Self { array, plan, context, first: first.coord, axis, row, extent, item })
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
        threads.each(parts, |(start, end, out)| {
            let mut rest = out;
            let mut copy = |chunk: &mut Chunk<'_>| {
                let (skip, count) = self.wanted_rows(chunk.index());
                let (head, tail) = std::mem::take(&mut rest).split_at_mut(count * self.row);
                rest = tail;
                self.copy(chunk, skip * self.row, head)
            };
            visit_chunks(self.array, self, start..end, self.context, &mut copy)
        })
    }

    /// The position of the chunk's first wanted row in the result.
    fn place(&self, index: u64) -> u64 {
        self.plan.chunk(index).axes[self.axis].place
    }

    /// The number of rows before the wanted ones in a chunk, and the number of wanted rows.
    fn wanted_rows(&self, index: u64) -> (usize, usize) {
        // Only the first and the last chunk may be wanted in part.
        if index > 0 && index + 1 < self.plan.len() {
            return (0, self.extent as usize);
        }
        let part = self.plan.chunk(index).axes[self.axis];
        (part.first as usize, part.count as usize)
    }

    fn copy(&self, chunk: &mut Chunk<'_>, skip: usize, out: &mut [u8]) -> Result<()> {
        if let Some(stored) = chunk.mapped(true)?.and_then(|stored| stored.get(skip..skip + out.len())) {
            out.copy_from_slice(stored);
            return Ok(());
        }
        let wanted = self.plan.chunk(chunk.index());
        let counts = wanted.counts();
        chunk.with_cells(&wanted, |cells, from| {
            copy_box(cells, from, out, &Layout::packed(&counts, self.item), &counts, self.item)
        })
    }
}
