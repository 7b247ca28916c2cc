//! Datasets that grow, filled chunk by chunk.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hyperslab_core::{
    Array, ArraySink, ChunkCoord, Elements, EncodedChunk, Error, Grid, Layout, Result, copy_box, product,
};

use super::array::Shared;
use super::existing::Existing;
use super::index::Patch;
use crate::dataset::Dataset;
use crate::file::{File, lock};

/// The maximum number of bytes of chunks that are completed in place. Further ones are written elsewhere.
const MOST_COMPLETED: usize = 64 << 20;

/// Chunks to be written in place, by address. They wait for the end, so that a dropped append leaves every byte unchanged.
#[derive(Debug, Default)]
struct Completed {
    chunks: Vec<(u64, Bytes)>,
    bytes: usize,
}

/// A growing dataset. Its new chunks are invisible before [`flush`](Self::flush).
#[derive(Debug)]
pub(crate) struct GrownArray {
    existing: Existing,
    /// The dataset as it was.
    old: Dataset,
    /// New chunks, and those that the old edge clipped.
    written: Mutex<HashSet<ChunkCoord>>,
    completed: Mutex<Completed>,
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
        let old = &dataset.schema().grid;
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
        Ok(Self {
            existing,
            old: dataset,
            written: Mutex::default(),
            completed: Mutex::default(),
            flushed: Mutex::new(false),
        })
    }

    fn old_grid(&self) -> &Grid {
        &self.old.schema().grid
    }

    /// Adds cells to a chunk that the old edge clipped, in its old place. No reader sees the new cells before the dataset is longer,
    /// and the old ones are written as they were, so the write may be interrupted. Returns false if the chunk must be written
    /// elsewhere: it is encoded, or its old cells have changed.
    fn complete_in_place(&self, chunk: &ChunkCoord, bytes: &Bytes) -> Result<bool> {
        let array = &self.existing.array;
        if !array.plan.pipeline.specs.is_empty() || !array.plan.spec.dtype.is_fixed() {
            return Ok(false);
        }
        let Some(reference) = self.old.locate(std::slice::from_ref(chunk))?.pop().flatten() else {
            return Ok(false);
        };
        let mut spans = reference.spans().filter(|span| span.length == bytes.len() as u64);
        let output = &array.shared().output;
        let Some(address) = spans.next().and_then(|span| span.offset.checked_sub(output.base())) else {
            return Ok(false);
        };
        let item = array.plan.element.stored;
        let kept = self.old_grid().region(chunk).shape;
        let cells = product(&kept).and_then(|cells| usize::try_from(cells).ok()).unwrap_or(0);
        let (from, to) = (Layout::packed(self.old_grid().chunk_shape(), item), Layout::packed(&kept, item));
        let old_cells = |whole: &[u8]| -> Result<Vec<u8>> {
            let mut cells = vec![0; cells.saturating_mul(item)];
            copy_box(whole, &from, &mut cells, &to, &kept, item)?;
            Ok(cells)
        };
        if old_cells(&output.read(address, bytes.len())?)? != old_cells(bytes)? {
            return Ok(false);
        }
        let mut completed = lock(&self.completed);
        if completed.bytes + bytes.len() > MOST_COMPLETED {
            return Ok(false);
        }
        completed.bytes += bytes.len();
        completed.chunks.push((address, bytes.clone()));
        Ok(true)
    }

    /// Writes everything new, once. Returns the in-place changes, in order.
    pub(crate) fn flush(&self) -> Result<Vec<Patch>> {
        if std::mem::replace(&mut *lock(&self.flushed), true) {
            return Ok(Vec::new());
        }
        for (address, bytes) in std::mem::take(&mut *lock(&self.completed)).chunks {
            self.existing.array.shared().output.write_at(address, &bytes)?;
        }
        self.existing.flush(self.grid().shape())
    }
}

impl ArraySink for GrownArray {
    fn grid(&self) -> &Grid {
        self.existing.array.grid()
    }

    fn grown_from(&self) -> Option<&[u64]> {
        Some(self.old_grid().shape())
    }

    fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<EncodedChunk> {
        self.existing.array.encode(chunk, elements)
    }

    fn write(&self, chunk: &ChunkCoord, encoded: EncodedChunk) -> Result<()> {
        let name = &self.existing.array.plan.name;
        let was_there = self.old_grid().contains(chunk);
        if was_there && self.old_grid().region(chunk) == self.grid().region(chunk) {
            return Err(Error::invalid(format!(
                "{name}: chunk {chunk:?} exists already and must not be written"
            )));
        }
        if *lock(&self.flushed) || !lock(&self.written).insert(chunk.clone()) {
            return Err(Error::invalid(format!("{name}: chunk {chunk:?} was already written")));
        }
        if was_there
            && let [bytes] = &encoded.parts[..]
            && self.complete_in_place(chunk, bytes)?
        {
            return Ok(());
        }
        self.existing.array.put(chunk, &encoded).map(|_| ())
    }
}
