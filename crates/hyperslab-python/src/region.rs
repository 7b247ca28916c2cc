//! Regions of an array in the making: whole chunks are stored at once, parts wait for the rest of their chunk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyperslab::{
    ArraySink, ArraySpec, Buffer, CellOrder, ChunkCoord, DType, Elements, Error, Fill, Grid, Layout, Region,
    Result, Values, copy_box,
};
use rayon::prelude::*;

/// An array in the making.
#[derive(Debug)]
pub(crate) struct Target {
    sink: Arc<dyn ArraySink>,
    dtype: DType,
    fill: Fill,
    parts: Mutex<HashMap<ChunkCoord, Part>>,
}

/// A chunk of which some cells are there.
#[derive(Debug)]
struct Part {
    cells: Buffer,
    /// Which cells were assigned.
    there: Vec<bool>,
    left: usize,
}

impl Target {
    pub(crate) fn new(sink: Arc<dyn ArraySink>, spec: &ArraySpec) -> Self {
        Self { sink, dtype: spec.dtype.clone(), fill: spec.fill.clone(), parts: Mutex::default() }
    }

    pub(crate) fn grid(&self) -> &Grid {
        self.sink.grid()
    }

    fn parts(&self) -> MutexGuard<'_, HashMap<ChunkCoord, Part>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<()> {
        let encoded = self.sink.encode(chunk, elements)?;
        self.sink.write(chunk, encoded)
    }

    /// Stores the chunks that were never completed: the fill value is in the rest of them.
    pub(crate) fn finish(&self) -> Result<()> {
        let parts: Vec<_> = std::mem::take(&mut *self.parts()).into_iter().collect();
        for (chunk, part) in parts {
            self.store(&chunk, &Elements::fixed(part.cells.freeze()))?;
        }
        Ok(())
    }

    fn new_part(&self, cells: usize, item: usize) -> Result<Part> {
        let mut buffer = Buffer::zeroed(cells * item)?;
        if let Fill::Element(element) = &self.fill
            && let Some(element) = element.as_fixed().filter(|element| element.len() == item && item > 0)
        {
            for cell in buffer.as_mut_slice().chunks_exact_mut(item) {
                cell.copy_from_slice(element);
            }
        }
        Ok(Part { cells: buffer, there: vec![false; cells], left: cells })
    }
}

/// Assigns values to a region.
pub(crate) fn assign(target: &Target, region: &Region, values: &Values) -> Result<()> {
    let grid = target.grid();
    if region.shape.contains(&0) {
        return Ok(());
    }
    let first: Vec<u64> =
        region.start.iter().zip(grid.chunk_shape()).map(|(start, chunk)| start / chunk).collect();
    let counts: Vec<u64> = (0..first.len())
        .map(|axis| {
            let last = region.start[axis] + region.shape[axis] - 1;
            last / grid.chunk_shape()[axis] - first[axis] + 1
        })
        .collect();
    let touched = Grid::single(&[]);
    let touched = if counts.is_empty() { touched } else { Grid::new(&counts, &vec![1; counts.len()])? };
    let count = usize::try_from(touched.chunks().unwrap_or(0)).unwrap_or(usize::MAX);
    (0..count).into_par_iter().with_max_len(1).try_for_each(|number| {
        let local = touched.coord(number as u64);
        let chunk: ChunkCoord = local.iter().zip(&first).map(|(at, first)| at + first).collect();
        assign_chunk(target, &chunk, region, values)
    })
}

fn assign_chunk(target: &Target, chunk: &ChunkCoord, region: &Region, values: &Values) -> Result<()> {
    let own = target.grid().region(chunk);
    let both = if own.shape.is_empty() { Some(own.clone()) } else { own.intersect(region) };
    let Some(both) = both else { return Ok(()) };
    let whole = both == own;
    let Some((item, bytes)) = target.dtype.size().zip(values.elements.as_fixed()) else {
        if !whole {
            return Err(Error::invalid("elements of variable length are assigned in whole chunks"));
        }
        return target.store(chunk, &picked(target, region, &both, values)?);
    };
    let from = layout(region, &both, item);
    let cells =
        usize::try_from(own.cells().unwrap_or(u64::MAX)).map_err(|_| Error::invalid("a chunk too large"))?;
    if whole {
        let mut buffer = Buffer::zeroed(cells * item)?;
        copy_box(bytes, &from, buffer.as_mut_slice(), &Layout::packed(&own.shape, item), &both.shape, item)?;
        return target.store(chunk, &Elements::fixed(buffer.freeze()));
    }
    let mut parts = target.parts();
    let mut part = match parts.remove(chunk) {
        Some(part) => part,
        None => target.new_part(cells, item)?,
    };
    copy_box(bytes, &from, part.cells.as_mut_slice(), &layout(&own, &both, item), &both.shape, item)?;
    for cell in offsets(&own, &both) {
        if !std::mem::replace(&mut part.there[cell], true) {
            part.left -= 1;
        }
    }
    if part.left > 0 {
        parts.insert(chunk.clone(), part);
        return Ok(());
    }
    drop(parts);
    target.store(chunk, &Elements::fixed(part.cells.freeze()))
}

/// Where a box stands in the packed cells of a region that holds it.
fn layout(region: &Region, inside: &Region, item: usize) -> Layout {
    let mut layout = Layout::packed(&region.shape, item);
    for ((start, own), stride) in inside.start.iter().zip(&region.start).zip(&layout.strides) {
        layout.offset += (start - own) as usize * stride.unsigned_abs();
    }
    layout
}

/// The cells of a box, counted in C order in the region that holds it.
fn offsets(region: &Region, inside: &Region) -> Vec<usize> {
    let strides = CellOrder::RowMajor.strides(&region.shape);
    let count = inside.cells().unwrap_or(0);
    (0..count)
        .map(|cell| {
            let (mut left, mut at) = (cell, 0);
            for axis in (0..strides.len()).rev() {
                at += (inside.start[axis] - region.start[axis] + left % inside.shape[axis]) * strides[axis];
                left /= inside.shape[axis];
            }
            at as usize
        })
        .collect()
}

fn picked(target: &Target, region: &Region, inside: &Region, values: &Values) -> Result<Elements> {
    let picks: Vec<_> = offsets(region, inside).into_iter().map(|cell| (0, cell)).collect();
    Elements::gather(&target.dtype, &[&values.elements], &picks)
}
