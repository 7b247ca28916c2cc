//! Datasets that grow, filled chunk by chunk.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use hyperslab_core::{Array, ArraySink, ChunkCoord, Elements, EncodedChunk, Error, Grid, Result};

use super::array::Shared;
use super::existing::Existing;
use super::index::Patch;
use crate::file::{File, lock};

/// A growing dataset. Its new chunks are invisible before [`flush`](Self::flush).
#[derive(Debug)]
pub(crate) struct GrownArray {
    existing: Existing,
    /// The dataset's previous grid.
    old: Grid,
    /// New chunks, and those that the old edge clipped.
    written: Mutex<HashSet<ChunkCoord>>,
    flushed: Mutex<bool>,
}

impl GrownArray {
    /// Opens the dataset at `path`, which grows to `shape`.
    pub(crate) fn open(
        file: &Arc<File>,
        address: u64,
        path: &str,
        shape: &[u64],
        shared: &Arc<Shared>,
    ) -> Result<Self> {
        let (mut existing, dataset) = Existing::open(file, address, path, shared)?;
        let spec = &mut existing.array.plan.spec;
        // Use the shape as read: a NetCDF-4 variable is as long as its unlimited dimension.
        let old = dataset.schema().grid.clone();
        if shape.len() != old.rank() || shape.iter().zip(old.shape()).any(|(new, old)| new < old) {
            return Err(hyperslab_core::cannot_grow(path, old.shape(), shape));
        }
        for (axis, (extent, most)) in shape.iter().zip(&spec.max_shape).enumerate() {
            if let Some(most) = most.filter(|most| extent > most) {
                return Err(Error::invalid(format!(
                    "{path}: dimension {axis} can grow to {most}, not to {extent}; copy it to a dataset with an unlimited dimension"
                )));
            }
        }
        spec.grid = Grid::new(shape, old.chunk_shape())?;
        Ok(Self { existing, old, written: Mutex::default(), flushed: Mutex::new(false) })
    }

    /// Writes everything new, once. Returns the in-place changes, in order.
    pub(crate) fn flush(&self) -> Result<Vec<Patch>> {
        if std::mem::replace(&mut *lock(&self.flushed), true) {
            return Ok(Vec::new());
        }
        self.existing.flush(self.grid().shape())
    }
}

impl ArraySink for GrownArray {
    fn grid(&self) -> &Grid {
        self.existing.array.grid()
    }

    fn grown_from(&self) -> Option<&[u64]> {
        Some(self.old.shape())
    }

    fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<EncodedChunk> {
        self.existing.array.encode(chunk, elements)
    }

    fn write(&self, chunk: &ChunkCoord, encoded: EncodedChunk) -> Result<()> {
        let name = &self.existing.array.plan.name;
        if self.old.contains(chunk) && self.old.region(chunk) == self.grid().region(chunk) {
            return Err(Error::invalid(format!(
                "{name}: chunk {chunk:?} exists already and must not be written"
            )));
        }
        if *lock(&self.flushed) || !lock(&self.written).insert(chunk.clone()) {
            return Err(Error::invalid(format!("{name}: chunk {chunk:?} was already written")));
        }
        self.existing.array.put(chunk, &encoded).map(|_| ())
    }
}
