//! Writes one array: chunks to objects or shards.

use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::storage::StageWriter;
use hyperslab_core::{
    ArraySink, ChunkCoord, Elements, EncodedChunk, Error, Grid, Result, StoredForm, product,
};

use super::ArrayPlan;
use super::append::Before;
use super::shards::ShardWriter;

/// An array of a [`ZarrSink`](super::ZarrSink).
#[derive(Debug)]
pub(crate) struct ZarrArraySink {
    plan: ArrayPlan,
    objects: StageWriter,
    shards: Option<ShardWriter>,
    /// The old state of an array that grows.
    old: Option<Arc<Before>>,
}

impl ZarrArraySink {
    /// The plan of the array.
    pub(crate) const fn plan(&self) -> &ArrayPlan {
        &self.plan
    }

    /// Creates a sink that writes to `objects`. `old` is the old state of an array that grows.
    pub(crate) fn new(plan: ArrayPlan, objects: StageWriter, old: Option<Arc<Before>>) -> Self {
        let shards = plan.shard_shape.as_ref().map(|shape| {
            let counts =
                shape.iter().zip(plan.spec.grid.chunk_shape()).map(|(shard, chunk)| shard / chunk).collect();
            ShardWriter::new(counts, plan.spec.grid.extents(), objects.clone(), plan.keys, old.clone())
        });
        Self { plan, objects, shards, old }
    }

    /// Finishes incomplete shards.
    pub(crate) fn finish(&self) -> Result<()> {
        match &self.shards {
            Some(shards) => shards.finish(),
            None => Ok(()),
        }
    }

    /// Returns true if every element is the fill value. Such chunks are not stored.
    fn is_fill(&self, bytes: &[u8]) -> bool {
        let (fill, item) = (&self.plan.fill, self.plan.spec.dtype.size().unwrap_or(0));
        if self.plan.store_all || item == 0 || fill.len() != item {
            return false;
        }
        if bytes.get(..item) != Some(fill) {
            return false;
        }
        // The elements are all equal to the first if the bytes equal themselves shifted by one element.
        bytes[item..] == bytes[..bytes.len() - item]
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
        // An existing object would be read instead.
        if let Some(bytes) = elements.as_fixed()
            && self.is_fill(bytes)
            && !self.old.as_ref().is_some_and(|old| old.holds(chunk))
        {
            let raw_length = bytes.len() as u64;
            return Ok(EncodedChunk { parts: Vec::new(), filter_mask: 0, raw_length, tag: 0 });
        }
        let (encoded, raw_length) = self.plan.encode(chunk, elements)?;
        Ok(EncodedChunk { parts: vec![encoded], filter_mask: 0, raw_length, tag: 0 })
    }

    fn adopt(&self, chunk: &ChunkCoord, form: &StoredForm, stored: &Bytes) -> Result<Option<EncodedChunk>> {
        let grid = &self.plan.spec.grid;
        if !grid.contains(chunk) {
            return Err(Error::invalid(format!("{}: chunk {chunk:?} is outside the grid", self.plan.name)));
        }
        if !self.plan.takes(form) {
            return Ok(None);
        }
        let raw_length = product(&form.shape).unwrap_or(0).saturating_mul(self.plan.item() as u64);
        Ok(Some(EncodedChunk { parts: vec![stored.clone()], filter_mask: 0, raw_length, tag: 0 }))
    }

    fn any_order(&self) -> bool {
        // Chunks that are separate objects have no order. A shard stores its chunks in the order of arrival.
        self.shards.is_none()
    }

    fn leaves_out_fill(&self) -> bool {
        // An existing object would be read instead.
        !self.plan.store_all && self.old.is_none()
    }

    fn write(&self, chunk: &ChunkCoord, encoded: EncodedChunk) -> Result<()> {
        if self.old.as_ref().is_some_and(|old| old.is_unchanged(chunk)) {
            return Err(Error::invalid(format!(
                "{}: chunk {chunk:?} is outside the part that grows",
                self.plan.name
            )));
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
