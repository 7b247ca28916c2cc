//! One array that is being written: chunks to objects, or to shards.

use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::storage::StageWriter;
use hyperslab_core::{
    ArraySink, ChunkCoord, Elements, EncodedChunk, Error, Grid, Layout, Place, Result, StoredForm, copy_box,
    product,
};
use smallvec::SmallVec;

use super::append::Before;
use super::shards::ShardWriter;
use super::{ArrayPlan, pack};
use crate::pipeline::failed;
use crate::vlen;

/// An array of a [`ZarrSink`](super::ZarrSink).
#[derive(Debug)]
pub(crate) struct ZarrArraySink {
    plan: ArrayPlan,
    objects: StageWriter,
    shards: Option<ShardWriter>,
    /// Of an array that becomes larger: as it was.
    old: Option<Arc<Before>>,
}

impl ZarrArraySink {
    /// An array that is written to `objects`; `old` where it becomes larger.
    pub(crate) fn new(plan: ArrayPlan, objects: StageWriter, old: Option<Arc<Before>>) -> Self {
        let shards = plan.shard_shape.as_ref().map(|shape| {
            let counts =
                shape.iter().zip(plan.spec.grid.chunk_shape()).map(|(shard, chunk)| shard / chunk).collect();
            ShardWriter::new(counts, plan.spec.grid.extents(), objects.clone(), plan.keys, old.clone())
        });
        Self { plan, objects, shards, old }
    }

    /// Ends the shards that lack chunks.
    pub(crate) fn finish(&self) -> Result<()> {
        match &self.shards {
            Some(shards) => shards.finish(),
            None => Ok(()),
        }
    }

    /// The cells of a whole chunk, in the order in which they are stored, with the fill value outside the array.
    fn padded(&self, chunk: &ChunkCoord, bytes: Bytes) -> Result<Bytes> {
        let (grid, item) = (&self.plan.spec.grid, self.plan.item());
        let bytes = if self.plan.packing.is_empty() {
            bytes
        } else {
            pack(&bytes, &self.plan.spec.dtype, &self.plan.packing).into()
        };
        let region = grid.region(chunk).shape;
        if !grid.is_clipped(chunk) && self.plan.pipeline.axes.is_empty() {
            return Ok(bytes);
        }
        let stored_shape = self.plan.stored_shape();
        let cells = product(&stored_shape).and_then(|cells| usize::try_from(cells).ok());
        let size = cells.and_then(|cells| cells.checked_mul(item));
        let size =
            size.ok_or_else(|| Error::invalid(format!("{}: chunks larger than memory", self.plan.name)))?;
        let mut whole = vec![0; size];
        if self.plan.fill.iter().any(|byte| *byte != 0) && item > 0 {
            whole.chunks_exact_mut(item).for_each(|cell| cell.copy_from_slice(&self.plan.fill));
        }
        let strides = self.plan.pipeline.order().strides(grid.chunk_shape());
        let strides: SmallVec<[isize; 4]> =
            strides.iter().map(|stride| *stride as isize * item as isize).collect();
        let to = Layout { offset: 0, strides };
        copy_box(&bytes, &Layout::packed(&region, item), &mut whole, &to, &region, item)?;
        Ok(whole.into())
    }

    /// Is every element the fill value? Such chunks are not stored.
    fn is_fill(&self, bytes: &[u8]) -> bool {
        let (fill, item) = (&self.plan.fill, self.plan.spec.dtype.size().unwrap_or(0));
        if self.plan.store_all || item == 0 || fill.len() != item {
            return false;
        }
        if bytes.get(..item) != Some(fill) {
            return false;
        }
        // All equal to the first: the bytes equal themselves, moved by one element.
        bytes[item..] == bytes[..bytes.len() - item]
    }

    fn encode_variable(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<Bytes> {
        let (grid, name) = (&self.plan.spec.grid, &self.plan.name);
        let (whole, region) = (grid.chunk_shape(), grid.region(chunk).shape);
        let cells = product(whole).and_then(|cells| usize::try_from(cells).ok());
        let cells = cells.ok_or_else(|| Error::invalid(format!("{name}: chunks larger than memory")))?;
        let mut rows = vec![Some(self.plan.fill.as_slice()); cells];
        let strides = hyperslab_core::CellOrder::RowMajor.strides(whole);
        for index in 0..product(&region).unwrap_or(0) {
            let (mut left, mut place) = (index, 0);
            for axis in (0..region.len()).rev() {
                place += left % region[axis] * strides[axis];
                left /= region[axis];
            }
            rows[place as usize] = elements.variable_at(index as usize);
        }
        let encoded = vlen::encode(rows.into_iter());
        let encoded =
            encoded.ok_or_else(|| Error::invalid(format!("{name}: a missing element or one over 4 GiB")))?;
        Ok(encoded.into())
    }
}

impl ArraySink for ZarrArraySink {
    fn grid(&self) -> &Grid {
        &self.plan.spec.grid
    }

    fn grown_from(&self) -> Option<&[u64]> {
        self.old.as_deref().map(Before::shape)
    }

    fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<EncodedChunk> {
        self.plan.spec.check_chunk(chunk, elements)?;
        if elements.validity.as_ref().is_some_and(|validity| validity.missing() > 0) {
            return Err(Error::unsupported(self.plan.name.as_str(), "missing elements in Zarr"));
        }
        let (raw, raw_length) = match elements.as_fixed() {
            // An object that stands there would be read instead.
            Some(bytes) if self.is_fill(bytes) && !self.old.as_ref().is_some_and(|old| old.holds(chunk)) => {
                let raw_length = bytes.len() as u64;
                return Ok(EncodedChunk { parts: Vec::new(), filter_mask: 0, raw_length, tag: 0 });
            }
            Some(bytes) => (self.padded(chunk, bytes.clone())?, bytes.len() as u64),
            None => {
                let raw = self.encode_variable(chunk, elements)?;
                let length = raw.len() as u64;
                (raw, length)
            }
        };
        let place = Place::new(&self.plan.name, "chunk", 0);
        let encoded =
            self.plan.pipeline.encode(raw, self.plan.item()).map_err(|error| failed(error, place))?;
        Ok(EncodedChunk { parts: vec![encoded], filter_mask: 0, raw_length, tag: 0 })
    }

    fn adopt(&self, chunk: &ChunkCoord, form: &StoredForm, stored: &Bytes) -> Result<Option<EncodedChunk>> {
        let grid = &self.plan.spec.grid;
        if !grid.contains(chunk) {
            return Err(Error::invalid(format!("{}: chunk {chunk:?} is outside the grid", self.plan.name)));
        }
        // Whole chunks only: cells outside the array are stored here, and others may hold none.
        let fits = form.shape[..] == *grid.chunk_shape() && self.plan.packing.is_empty();
        if !fits || self.plan.pipeline.stored_steps().as_ref() != Some(&form.steps) {
            return Ok(None);
        }
        let raw_length = product(&form.shape).unwrap_or(0).saturating_mul(self.plan.item() as u64);
        Ok(Some(EncodedChunk { parts: vec![stored.clone()], filter_mask: 0, raw_length, tag: 0 }))
    }

    fn any_order(&self) -> bool {
        // Objects of their own; a shard holds its chunks in the order in which they came.
        self.shards.is_none()
    }

    fn leaves_out_fill(&self) -> bool {
        // An object that stands there would be read instead.
        !self.plan.store_all && self.old.is_none()
    }

    fn write(&self, chunk: &ChunkCoord, encoded: EncodedChunk) -> Result<()> {
        if self.old.as_ref().is_some_and(|old| old.stays(chunk)) {
            return Err(Error::invalid(format!("{}: chunk {chunk:?} stays as it is", self.plan.name)));
        }
        let part = encoded.parts.first();
        if let Some(shards) = &self.shards {
            return shards.write(chunk, part);
        }
        match part {
            Some(bytes) => self.objects.put_new(&self.plan.keys.key("", chunk), &[bytes]),
            None => Ok(()),
        }
    }
}
