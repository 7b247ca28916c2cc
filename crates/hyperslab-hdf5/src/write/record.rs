//! Appends frames to datasets along one dimension.

use std::sync::Arc;

use hyperslab_core::{
    ArraySink, AxisPositions, ChunkCoord, Elements, EncodedChunk, Error, Extents, Grid, Layout as Strides,
    Positions, Region, Result, Values, copy_box, read_serial,
};

use rayon::prelude::*;

use super::array::Shared;
use super::existing::Existing;
use super::index::Patch;
use crate::file::File;
use crate::index::Stored;

/// The maximum size of full chunks that wait to be encoded together, before filters.
const MOST_WAITING: u64 = 4 << 20;

/// A dataset that grows along one dimension.
#[derive(Debug)]
pub(crate) struct Recorder {
    existing: Existing,
    axis: usize,
    /// Along the axis: the start of the incomplete chunks, and the length of the dataset.
    start: u64,
    extent: u64,
    /// The frames from `start` on.
    frames: Vec<Values>,
    /// Chunks that were written before they were complete. They are written again.
    partial: Vec<Stored>,
    /// Full chunks that are not encoded yet, and their size.
    waiting: Vec<(ChunkCoord, Elements)>,
    waiting_bytes: u64,
    changed: bool,
}

impl Recorder {
    /// Opens the dataset at `path`, which grows along `axis`, or along its first unlimited dimension, or the first that has room.
    pub(crate) fn open(
        file: &Arc<File>,
        address: u64,
        path: &str,
        axis: Option<usize>,
        shared: &Arc<Shared>,
    ) -> Result<Self> {
        let (existing, dataset) = Existing::open(file, address, path, shared)?;
        let spec = &existing.array.plan.spec;
        let limits = || spec.max_shape.iter().zip(spec.grid.shape());
        let axis = axis
            .or_else(|| limits().position(|(most, _)| most.is_none()))
            .or_else(|| limits().position(|(most, extent)| most.is_some_and(|most| most > *extent)));
        let axis = axis.filter(|axis| *axis < spec.grid.rank());
        let axis = axis.ok_or_else(|| Error::invalid(format!("{path} has no dimension that can grow")))?;
        let extent = spec.grid.shape()[axis];
        let start = extent - extent % spec.grid.chunk_shape()[axis];
        let mut frames = Vec::new();
        if extent > start {
            let mut positions = Positions::whole(spec.grid.shape());
            positions.axes[axis] = AxisPositions { start, count: extent - start, ..positions.axes[axis] };
            frames.push(read_serial(&dataset, positions)?);
        }
        let (partial, waiting) = (Vec::new(), Vec::new());
        Ok(Self { existing, axis, start, extent, frames, partial, waiting, waiting_bytes: 0, changed: false })
    }

    /// Appends frames. Returns the new number of frames.
    pub(crate) fn append(&mut self, values: &Values) -> Result<u64> {
        let spec = &self.existing.array.plan.spec;
        if values.dtype != spec.dtype {
            return Err(Error::invalid(format!(
                "the frames have type {}, but the dataset has {}",
                values.dtype, spec.dtype
            )));
        }
        let mut shape = Extents::from_slice(&values.shape);
        if shape.len() + 1 == spec.grid.rank() {
            shape.insert(self.axis, 1);
        }
        let fits = shape.len() == spec.grid.rank()
            && shape.iter().zip(spec.grid.shape()).enumerate().all(|(at, (a, b))| at == self.axis || a == b);
        if !fits {
            return Err(Error::invalid(format!(
                "frames of shape {:?} do not fit a dataset of shape {:?}",
                values.shape.as_slice(),
                spec.grid.shape()
            )));
        }
        let count = shape[self.axis];
        let end = self.extent.checked_add(count);
        let end = end.filter(|end| spec.max_shape[self.axis].is_none_or(|most| *end <= most));
        if end.is_none() {
            return Err(Error::invalid(format!("more frames than {:?} allows", spec.max_shape)));
        }
        let thickness = spec.grid.chunk_shape()[self.axis];
        let mut done = 0;
        while done < count {
            let take = self.start.saturating_add(thickness).saturating_sub(self.extent).min(count - done);
            if take == 0 {
                return Err(Error::invalid("the number of frames overflows"));
            }
            let mut region = Region::whole(&shape);
            region.start[self.axis] = done;
            region.shape[self.axis] = take;
            let elements = if take == count {
                values.elements.clone()
            } else {
                cut(&[(values, &shape, Extents::from_elem(0, shape.len()))], &region)?
            };
            self.frames.push(Values { dtype: values.dtype.clone(), shape: region.shape, elements });
            self.extent += take;
            done += take;
            self.changed = true;
            if self.extent == self.start + thickness {
                self.write_slab()?;
            }
        }
        Ok(self.extent)
    }

    /// Writes the chunks that hold the pending frames.
    fn write_slab(&mut self) -> Result<()> {
        let mut shape = Extents::from_slice(self.existing.array.plan.spec.grid.shape());
        shape[self.axis] = self.extent;
        let chunk_shape = Extents::from_slice(self.existing.array.plan.spec.grid.chunk_shape());
        let grid = Grid::new(&shape, &chunk_shape)?;
        self.existing.array.plan.spec.grid = grid.clone();
        // The previously written versions of these chunks are obsolete.
        for old in std::mem::take(&mut self.partial) {
            self.existing.array.release(old);
        }
        let full = self.extent == self.start + chunk_shape[self.axis];
        let mut offset = 0;
        let mut placed = Vec::with_capacity(self.frames.len());
        for frames in &self.frames {
            let mut at = Extents::from_elem(0, shape.len());
            at[self.axis] = offset;
            offset += frames.shape[self.axis];
            placed.push((frames, &frames.shape, at));
        }
        let mut across = grid.extents();
        across[self.axis] = 1;
        let count = hyperslab_core::product(&across).unwrap_or(0);
        let across = Grid::new(&across, &Extents::from_elem(1, shape.len()))?;
        for number in 0..count {
            let mut chunk: ChunkCoord = across.coord(number);
            chunk[self.axis] = self.start / chunk_shape[self.axis];
            let mut region = grid.region(&chunk);
            region.start[self.axis] = 0;
            let elements = match &placed[..] {
                [(only, shape, _)] if **shape == region.shape => only.elements.clone(),
                placed => cut(placed, &region)?,
            };
            if full && self.is_batched() {
                self.waiting_bytes += self.existing.array.plan.chunk_bytes();
                self.waiting.push((chunk, elements));
                continue;
            }
            let stored = self.existing.array.put(&chunk, &self.existing.array.encode(&chunk, &elements)?)?;
            if !full {
                self.partial.push(stored);
            }
        }
        if self.waiting_bytes >= MOST_WAITING {
            self.write_waiting()?;
        }
        if full {
            self.start = self.extent;
            self.frames.clear();
        }
        Ok(())
    }

    /// Returns true if several chunks are worth encoding at once. Data in heaps must be stored in order of arrival, so it is not
    /// batched.
    fn is_batched(&self) -> bool {
        let plan = &self.existing.array.plan;
        !plan.pipeline.specs.is_empty() && plan.element.is_plain()
    }

    /// Encodes the waiting chunks on all cores, and writes them in order.
    fn write_waiting(&mut self) -> Result<()> {
        let array = &self.existing.array;
        let encoded: Vec<EncodedChunk> = self
            .waiting
            .par_iter()
            .with_max_len(1)
            .map(|(chunk, elements)| array.encode(chunk, elements))
            .collect::<Result<_>>()?;
        for ((chunk, _), encoded) in self.waiting.drain(..).zip(&encoded) {
            array.put(&chunk, encoded)?;
        }
        self.waiting_bytes = 0;
        Ok(())
    }

    /// Writes everything new. Returns the in-place changes, in order.
    pub(crate) fn flush(&mut self) -> Result<Vec<Patch>> {
        if !std::mem::take(&mut self.changed) {
            return Ok(Vec::new());
        }
        self.write_waiting()?;
        if self.extent > self.start {
            self.write_slab()?;
        }
        let mut shape = Extents::from_slice(self.existing.array.plan.spec.grid.shape());
        shape[self.axis] = self.extent;
        self.existing.flush(&shape)
    }
}

/// Pieces with their shapes and start positions.
type Placed<'a> = (&'a Values, &'a Extents, Extents);

/// The elements of a region that these pieces cover.
fn cut(pieces: &[Placed<'_>], region: &Region) -> Result<Elements> {
    let Some((first, ..)) = pieces.first() else { return Err(Error::invalid("no frames")) };
    let cells = region.cells().unwrap_or(0) as usize;
    let overlaps = pieces.iter().enumerate().filter_map(|(index, (_, shape, at))| {
        let own = Region { start: at.clone(), shape: (*shape).clone() };
        own.intersect(region).map(|common| (index, common))
    });
    let inner = |common: &Region, at: &[u64]| -> Vec<u64> {
        common.start.iter().zip(at).map(|(start, at)| start - at).collect()
    };
    if let Some(item) = first.dtype.size() {
        let mut out = vec![0; cells * item];
        for (index, common) in overlaps {
            let (piece, shape, at) = &pieces[index];
            let Some(bytes) = piece.elements.as_fixed() else {
                return Err(Error::invalid("the frames have no fixed size"));
            };
            let (mut from, mut to) = (Strides::packed(shape, item), Strides::packed(&region.shape, item));
            move_to(&mut from, &inner(&common, at));
            move_to(&mut to, &inner(&common, &region.start));
            copy_box(bytes, &from, &mut out, &to, &common.shape, item)?;
        }
        return Ok(Elements::fixed(out));
    }
    let mut picks = vec![(0, 0); cells];
    for (index, common) in overlaps {
        let (_, shape, at) = &pieces[index];
        let (from, to) = (Strides::packed(shape, 1), Strides::packed(&region.shape, 1));
        let (from_at, to_at) = (inner(&common, at), inner(&common, &region.start));
        for cell in 0..common.cells().unwrap_or(0) {
            let (mut left, mut source, mut target) = (cell, 0, 0);
            for axis in (0..shape.len()).rev() {
                let step = left % common.shape[axis];
                left /= common.shape[axis];
                source += (from_at[axis] + step) as usize * from.strides[axis].unsigned_abs();
                target += (to_at[axis] + step) as usize * to.strides[axis].unsigned_abs();
            }
            picks[target] = (index, source);
        }
    }
    let sources: Vec<&Elements> = pieces.iter().map(|(values, ..)| &values.elements).collect();
    Elements::gather(&first.dtype, &sources, &picks)
}

fn move_to(layout: &mut Strides, start: &[u64]) {
    for (start, stride) in start.iter().zip(&layout.strides) {
        layout.offset += *start as usize * stride.unsigned_abs();
    }
}
