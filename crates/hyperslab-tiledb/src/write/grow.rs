//! Determines the boxes to write: appended cells, or new cells along growing dimensions.
//!
//! A fragment is one box. When an array grows along an axis, the box holds the new cells and rewrites the tiles that
//! the old end cut. An array that grows along several axes gets one box for each.

use std::sync::Arc;

use hyperslab_core::{
    Array, ArraySink, ArraySpec, ChunkCoord, Elements, EncodedChunk, Error, Grid, Labels, Result,
};

use super::append::AppendSink;
use crate::array::OpenArray;
use crate::dense::DenseAttribute;

/// The box to write: the first and the last cell along each dimension, counted from the domain's start.
pub(super) fn place(array: &OpenArray, spec: &ArraySpec) -> Result<Vec<(u64, u64)>> {
    let (schema, shape) = (&array.schema, spec.grid.shape());
    if schema.dimensions.len() != shape.len() || shape.contains(&0) {
        return Err(Error::invalid(format!(
            "{}: an array of shape {shape:?} cannot be added to {} dimensions",
            array.name,
            schema.dimensions.len()
        )));
    }
    let mut written = 0;
    // A killed writer may have left fragments beyond the current domain.
    let reach = crate::dense::reach(schema, 0).unwrap_or(u64::MAX);
    for fragment in array.fragments()? {
        let last = fragment
            .footer
            .cell_box(&fragment.schema)
            .and_then(|cells| cells.first().map(|(_, last)| last + 1));
        written = written.max(last.unwrap_or(0)).min(reach);
    }
    let domain: Option<Vec<u64>> = schema.dimensions.iter().map(crate::schema::Dimension::cells).collect();
    if written > 0 && domain.is_some_and(|domain| domain == shape) {
        // The array is full and the new data is just as large, so it replaces all values.
        written = 0;
    }
    let mut cells = Vec::with_capacity(shape.len());
    for (axis, (dimension, extent)) in schema.dimensions.iter().zip(shape).enumerate() {
        let unsupported =
            || Error::unsupported(Arc::clone(&array.name), format!("dimension {:?}", dimension.name));
        let (low, high) = dimension.bounds().ok_or_else(unsupported)?;
        let first = match spec.labels.get(axis) {
            Some(Labels::Domain { first, .. }) => i128::from(*first),
            _ if axis == 0 => low + i128::from(written),
            _ => low,
        };
        let last = first + i128::from(*extent) - 1;
        if first < low || last > high {
            return Err(Error::invalid(format!(
                "{}: dimension {:?} reaches from {low} to {high}; there is no room from {first} to {last}",
                array.name, dimension.name
            )));
        }
        let cell = |at: i128| u64::try_from(at - low).map_err(|_| unsupported());
        cells.push((cell(first)?, cell(last)?));
    }
    Ok(cells)
}

/// The boxes and the grid of a growing array.
#[derive(Debug)]
pub(super) struct Growth {
    /// The boxes to write. They share no cells; empty if nothing grows.
    pub(super) parts: Vec<GrowthBox>,
    /// The grid of the whole array after it has grown.
    grid: Grid,
    /// The growing axes, in the order of the boxes.
    axes: Vec<usize>,
    /// The first chunk to write along each growing axis.
    first: ChunkCoord,
    /// The old shape.
    old: Vec<u64>,
}

/// A box of new cells, plus the old cells that share a tile with them.
#[derive(Debug)]
pub(super) struct GrowthBox {
    /// The specification of the box alone.
    pub(super) spec: ArraySpec,
    /// The first and the last cell of the box along each dimension.
    pub(super) cells: Vec<(u64, u64)>,
    /// The growing axis: all cells of the box are new along it, or share a tile with new ones.
    axis: usize,
    /// The first chunk of the box.
    first: ChunkCoord,
}

impl Growth {
    pub(super) fn new(array: &Arc<OpenArray>, index: usize, path: &str, shape: &[u64]) -> Result<Self> {
        let attribute = DenseAttribute::new(Arc::clone(array), index, path)?;
        let schema = attribute.schema();
        let old = schema.grid.shape();
        if shape.len() != old.len() || shape.iter().zip(old).any(|(new, old)| new < old) {
            return Err(hyperslab_core::cannot_grow(path, old, shape));
        }
        let names = array.schema.dimensions.iter().map(|dimension| &dimension.name);
        for (name, (extent, most)) in names.zip(shape.iter().zip(&schema.max_shape)) {
            if let Some(most) = most.filter(|most| extent > most) {
                return Err(Error::invalid(format!(
                    "{path}: dimension {name:?} is full: its domain has {most} cells and never grows, {extent} are needed; \
                     write a copy with a larger domain (--unlimited, maxshape)"
                )));
            }
        }
        let grid = Grid::new(shape, schema.grid.chunk_shape())?;
        let mut spec = ArraySpec::new(schema.dtype.clone(), grid.clone());
        spec.nullable = schema.nullable;
        let axes: Vec<usize> = (0..old.len()).filter(|axis| shape[*axis] > old[*axis]).collect();
        let mut first = ChunkCoord::from_elem(0, old.len());
        for &axis in &axes {
            first[axis] = old[axis] / grid.chunk_shape()[axis];
        }
        let mut growth = Self { parts: Vec::new(), grid, axes, first, old: old.to_vec() };
        if shape.contains(&0) && !growth.axes.is_empty() {
            let what = format!("growing an empty array to {shape:?}, which is empty too");
            return Err(Error::unsupported(Arc::clone(&array.name), what));
        }
        for number in 0..growth.axes.len() {
            growth.parts.extend(growth.part(number, &spec)?);
        }
        Ok(growth)
    }

    /// The cells that are new along one axis and old along the axes before it. Returns `None` if there are none.
    fn part(&self, number: usize, spec: &ArraySpec) -> Result<Option<GrowthBox>> {
        let tile = self.grid.chunk_shape();
        let mut first = ChunkCoord::from_elem(0, self.old.len());
        let mut cells: Vec<(u64, u64)> = self.grid.shape().iter().map(|extent| (0, extent - 1)).collect();
        for &axis in &self.axes[..number] {
            let Some(last) = (self.first[axis] * tile[axis]).checked_sub(1) else { return Ok(None) };
            cells[axis].1 = last;
        }
        let axis = self.axes[number];
        first[axis] = self.first[axis];
        cells[axis].0 = first[axis] * tile[axis];
        let extents: Vec<u64> = cells.iter().map(|(low, high)| high - low + 1).collect();
        let spec = ArraySpec { grid: Grid::new(&extents, tile)?, ..spec.clone() };
        Ok(Some(GrowthBox { spec, cells, axis, first }))
    }
}

/// The sink for a whole array, of which only the chunks in the boxes are written.
#[derive(Debug)]
pub(super) struct GrowSink {
    place: Growth,
    /// One sink per box.
    own: Vec<Arc<AppendSink>>,
}

impl GrowSink {
    pub(super) const fn new(place: Growth, own: Vec<Arc<AppendSink>>) -> Self {
        Self { place, own }
    }

    /// The sink for a chunk, and the chunk's coordinate relative to the box.
    fn inside(&self, chunk: &ChunkCoord) -> Result<(&AppendSink, ChunkCoord)> {
        let is_new = |axis: &usize| chunk.get(*axis).is_some_and(|at| *at >= self.place.first[*axis]);
        let axis = self.place.axes.iter().find(|axis| is_new(axis));
        let found = axis.and_then(|axis| self.place.parts.iter().position(|part| part.axis == *axis));
        let at = found.and_then(|number| {
            let first = &self.place.parts[number].first;
            chunk.iter().zip(first).map(|(at, first)| at.checked_sub(*first)).collect::<Option<ChunkCoord>>()
        });
        match (found.and_then(|number| self.own.get(number)), at) {
            (Some(own), Some(at)) => Ok((own, at)),
            _ => Err(Error::invalid(format!("chunk {chunk:?} is outside the part that grows"))),
        }
    }
}

impl ArraySink for GrowSink {
    fn grid(&self) -> &Grid {
        &self.place.grid
    }

    fn grown_from(&self) -> Option<&[u64]> {
        Some(&self.place.old)
    }

    fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<EncodedChunk> {
        let (own, at) = self.inside(chunk)?;
        own.encode(&at, elements)
    }

    fn write(&self, chunk: &ChunkCoord, encoded: EncodedChunk) -> Result<()> {
        let (own, at) = self.inside(chunk)?;
        own.write(&at, encoded)
    }
}
