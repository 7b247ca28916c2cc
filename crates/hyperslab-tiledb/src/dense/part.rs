//! Partial tile reads: decodes only the chunks that the wanted cells touch, directly into the result.

use bytes::Bytes;
use hyperslab_core::{
    CellOrder, ChunkRef, Extents, Layout, OutputSlot, Place, PlannedChunk, Region, Result, recycle_scratch,
    take_scratch,
};
use smallvec::SmallVec;

use super::DenseAttribute;
use crate::tile::{TileChunks, TileCodec};

/// The wanted cells of one layer. Per axis: their start in the slot and in the tile, their step in the tile, and
/// their count.
struct Box<'a> {
    slot_at: Extents,
    first: Extents,
    steps: Extents,
    counts: Extents,
    /// The cell strides of the stored tile.
    strides: &'a [u64],
    /// The axes, slowest first.
    axes: SmallVec<[usize; 4]>,
}

impl DenseAttribute {
    pub(super) fn decode_wanted(
        &self,
        wanted: &PlannedChunk,
        reference: &ChunkRef,
        stored: &[Bytes],
        slot: &mut OutputSlot<'_>,
    ) -> Result<bool> {
        let shape = self.schema.decoded_shape(&wanted.coord);
        let layers = self.stored_layers(reference, stored)?;
        let row_major = self.schema.order == CellOrder::RowMajor;
        if let [(_, layer, _)] = layers.as_slice()
            && layer.region.is_none()
            && row_major
            && wanted.covers(&shape)
            && slot.contiguous().is_some()
        {
            // The whole tile is contiguous in the result, so it is decoded directly into it.
            return Ok(false);
        }
        let item = slot.item();
        let cells = hyperslab_core::product(&shape).and_then(|cells| usize::try_from(cells).ok());
        let Some(bytes) = cells.and_then(|cells| cells.checked_mul(item)) else { return Ok(false) };
        // Start from the newest layer that covers everything; older ones are hidden.
        let bounds = wanted.bounds();
        let covering = layers.iter().rposition(|(_, layer, _)| {
            layer.region.as_ref().is_none_or(|region| region.intersect(&bounds).as_ref() == Some(&bounds))
        });
        if covering.is_none() {
            slot.fill(self.fill_bytes())?;
        }
        let strides = self.schema.order.strides(&shape);
        for (fragment, layer, stored) in layers.iter().skip(covering.unwrap_or(0)) {
            let Some(part) = Box::of(wanted, layer.region.as_deref(), &strides, row_major) else { continue };
            let tile = stored.first().map(AsRef::as_ref).unwrap_or_default();
            let place = fragment.place(0, layer);
            let chunks = TileChunks::parse_exact(tile, bytes, place)?;
            if chunks.whole_cells(item) {
                let mut copier =
                    Copier { codec: &fragment.codecs.values, chunks: &chunks, item, place, slot };
                copier.run(&part)?;
            } else {
                // Before version 11, cells may straddle chunks, so decode the whole tile.
                let whole = fragment.codecs.values.decode_tile(tile, bytes, place)?;
                slot.copy_box_from(&part.slot_at, &part.counts, &whole, &part.layout(item, 0))?;
            }
        }
        Ok(true)
    }
}

impl<'a> Box<'a> {
    /// The wanted cells of a layer. Returns `None` if there are none.
    fn of(
        wanted: &PlannedChunk,
        region: Option<&Region>,
        strides: &'a [u64],
        row_major: bool,
    ) -> Option<Self> {
        let rank = wanted.axes.len();
        let axes = if row_major { (0..rank).collect() } else { (0..rank).rev().collect() };
        let mut part = Self {
            slot_at: Extents::new(),
            first: Extents::new(),
            steps: Extents::new(),
            counts: Extents::new(),
            strides,
            axes,
        };
        for (axis, want) in wanted.axes.iter().enumerate() {
            let (low, high) = region.map_or((0, u64::MAX), |region| {
                (region.start[axis], region.start[axis].saturating_add(region.shape[axis]))
            });
            // The first and the last wanted cell inside the layer.
            let skip = low.saturating_sub(want.first).div_ceil(want.step);
            let last = high.checked_sub(want.first + 1)? / want.step;
            let count =
                want.count.min(last.saturating_add(1)).checked_sub(skip).filter(|count| *count > 0)?;
            part.slot_at.push(skip);
            part.first.push(want.first + skip * want.step);
            part.steps.push(want.step);
            part.counts.push(count);
        }
        Some(part)
    }

    /// The index of the first cell in the tile.
    fn origin(&self) -> u64 {
        self.first.iter().zip(self.strides).map(|(at, stride)| at * stride).sum()
    }

    /// The layout of the cells in bytes that start at byte `start` of the tile.
    fn layout(&self, item: usize, start: usize) -> Layout {
        Layout {
            offset: (self.origin() as usize * item).saturating_sub(start),
            strides: self
                .steps
                .iter()
                .zip(self.strides)
                .map(|(step, stride)| (step * stride) as isize * item as isize)
                .collect(),
        }
    }
}

struct Copier<'a, 'w, 'r> {
    codec: &'a TileCodec,
    chunks: &'a TileChunks<'a>,
    item: usize,
    place: Place<'a>,
    slot: &'w mut OutputSlot<'r>,
}

impl Copier<'_, '_, '_> {
    /// Copies the box chunk by chunk. Cells are visited in tile order, so each chunk is decoded once.
    fn run(&mut self, part: &Box<'_>) -> Result<()> {
        let mut decoded = take_scratch();
        let mut current = None;
        let (mut at, mut counts) = (SmallVec::from_elem(0, part.counts.len()), part.counts.clone());
        let done = self.walk(part, 0, &mut at, &mut counts, &mut current, &mut decoded);
        recycle_scratch(decoded);
        done
    }

    /// Walks the `depth`-th slowest axis, copying as many slices at a time as lie in one chunk. Divides a slice that
    /// spans several chunks along the next axis.
    fn walk(
        &mut self,
        part: &Box<'_>,
        depth: usize,
        at: &mut Extents,
        counts: &mut Extents,
        current: &mut Option<usize>,
        decoded: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(&axis) = part.axes.get(depth) else { return Ok(()) };
        let advance = |axis: usize| part.steps[axis] * part.strides[axis];
        let inner: u64 =
            part.axes[depth + 1..].iter().map(|&axis| (part.counts[axis] - 1) * advance(axis)).sum();
        let total = part.counts[axis];
        let mut done = 0;
        while done < total {
            at[axis] = done;
            let low: u64 = (0..at.len())
                .map(|axis| (part.first[axis] + at[axis] * part.steps[axis]) * part.strides[axis])
                .sum();
            let Some(number) = self.chunks.holding(low as usize * self.item) else { break };
            let last = (self.chunks.chunks[number].end() / self.item) as u64 - 1;
            let taken = if low + inner <= last {
                let taken = ((last - low - inner) / advance(axis).max(1) + 1).min(total - done);
                counts[axis] = taken;
                self.copy(part, number, low, at, counts, current, decoded)?;
                taken
            } else {
                counts[axis] = 1;
                self.walk(part, depth + 1, at, counts, current, decoded)?;
                1
            };
            done += taken;
        }
        at[axis] = 0;
        counts[axis] = total;
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the state of one walk")]
    fn copy(
        &mut self,
        part: &Box<'_>,
        number: usize,
        low: u64,
        at: &Extents,
        counts: &Extents,
        current: &mut Option<usize>,
        decoded: &mut Vec<u8>,
    ) -> Result<()> {
        let chunk = &self.chunks.chunks[number];
        let source: &[u8] = if self.codec.is_plain() {
            if chunk.data.len() != chunk.original {
                return Err(self.place.corrupt(format!(
                    "{} bytes are stored for an unfiltered chunk of {}",
                    chunk.data.len(),
                    chunk.original
                )));
            }
            chunk.data
        } else {
            if *current != Some(number) {
                if decoded.len() < chunk.original {
                    decoded.resize(chunk.original, 0);
                }
                self.codec.decode_chunk(chunk, &mut decoded[..chunk.original], self.place)?;
                *current = Some(number);
            }
            &decoded[..chunk.original]
        };
        let layout = Layout { offset: low as usize * self.item - chunk.start, ..part.layout(self.item, 0) };
        let place: Extents = part.slot_at.iter().zip(at).map(|(base, at)| base + at).collect();
        self.slot.copy_box_from(&place, counts, source, &layout)
    }
}
