//! The global order of cells, and merging of fragments that overlap.
//!
//! The global order compares tiles first (in tile order, ignoring dimensions without an extent), then coordinates (in
//! cell order). Along a Hilbert curve, it compares positions, then coordinates.

use std::cmp::Ordering;
use std::sync::Arc;

use hyperslab_core::Result;

use super::hilbert::{Hilbert, value_of};
use super::loaded::Loaded;
use super::scan::Context;
use super::{Keys, key_of};
use crate::datatype::Number;
use crate::schema::{Dimension, Order, Schema, float};

/// The order of an array's cells.
#[derive(Debug)]
pub(crate) struct GlobalOrder {
    tile_axes: Vec<(usize, TileScale)>,
    cell_axes: Vec<usize>,
    hilbert: Option<Hilbert>,
}

#[derive(Debug, Clone, Copy)]
enum TileScale {
    Integer { low: u64, extent: u64 },
    Float32 { low: f32, extent: f32 },
    Float64 { low: f64, extent: f64 },
}

/// Coordinates prepared for comparison.
#[derive(Debug)]
pub(crate) struct Ordered {
    places: Vec<u64>,
    tiles: Vec<Vec<u64>>,
    pub(crate) keys: Vec<Keys>,
}

impl TileScale {
    fn of(dimension: &Dimension) -> Option<Self> {
        let extent = dimension.extent.as_ref()?;
        let number = dimension.datatype.number();
        let low = dimension.domain.get(..number.size())?;
        Some(match number {
            Number::F32 => {
                Self::Float32 { low: float(number, low) as f32, extent: float(number, extent) as f32 }
            }
            Number::F64 => Self::Float64 { low: float(number, low), extent: float(number, extent) },
            _ => Self::Integer { low: key_of(number, low), extent: dimension.tile_extent()?.max(1) },
        })
    }

    fn tile(self, number: Number, key: u64) -> u64 {
        match self {
            Self::Integer { low, extent } => key.wrapping_sub(low) / extent,
            Self::Float32 { low, extent } => ((value_of(number, key) as f32 - low) / extent) as u64,
            Self::Float64 { low, extent } => ((value_of(number, key) - low) / extent) as u64,
        }
    }
}

impl GlobalOrder {
    pub(crate) fn new(schema: &Schema) -> Self {
        let rank = schema.dimensions.len();
        let axes = |order: Order| -> Vec<usize> {
            if order == Order::ColumnMajor { (0..rank).rev().collect() } else { (0..rank).collect() }
        };
        let hilbert = (schema.cell_order == Order::Hilbert).then(|| Hilbert::new(&schema.dimensions));
        let tile_axes = if hilbert.is_some() {
            Vec::new()
        } else {
            axes(schema.tile_order)
                .into_iter()
                .filter_map(|axis| Some((axis, TileScale::of(&schema.dimensions[axis])?)))
                .collect()
        };
        Self { tile_axes, cell_axes: axes(schema.cell_order), hilbert }
    }

    /// Prepares the coordinates of `cells` cells for comparison.
    pub(crate) fn prepare(&self, keys: Vec<Keys>, numbers: &[Number], cells: usize) -> Ordered {
        let places = self.hilbert.as_ref().map_or_else(Vec::new, |hilbert| hilbert.places(&keys, cells));
        let tiles = self.tile_axes.iter().map(|(axis, scale)| match &keys[*axis] {
            Keys::Fixed(keys) => keys.iter().map(|key| scale.tile(numbers[*axis], *key)).collect(),
            Keys::Text { .. } => vec![0; cells],
        });
        Ordered { places, tiles: tiles.collect(), keys }
    }

    /// With at most two numeric dimensions, returns the cells as plain tuples that sort in global order: tile (or
    /// position on the curve), first coordinate, second coordinate, row.
    pub(crate) fn flat(&self, ordered: &Ordered, cells: usize) -> Option<Vec<(u64, u64, u64, u32)>> {
        let key = |axis: Option<&usize>| match axis.map(|&axis| &ordered.keys[axis]) {
            None => Some(None),
            Some(Keys::Fixed(keys)) => Some(Some(keys)),
            Some(Keys::Text { .. }) => None,
        };
        if self.cell_axes.len() > 2 {
            return None;
        }
        let (first, second) = (key(self.cell_axes.first())?, key(self.cell_axes.get(1))?);
        // Combines the tiles of two dimensions into one number, row by row.
        let width = ordered.tiles.get(1).map_or(1, |tiles| tiles.iter().max().copied().unwrap_or(0) + 1);
        let slowest = ordered.tiles.first().map_or(0, |tiles| tiles.iter().max().copied().unwrap_or(0));
        slowest.checked_add(1)?.checked_mul(width)?;
        let tile = |cell: usize| {
            if let Some(place) = ordered.places.get(cell) {
                return *place;
            }
            let at = |index: usize| ordered.tiles.get(index).map_or(0, |tiles| tiles[cell]);
            at(0) * width + at(1)
        };
        let value = |keys: Option<&Vec<u64>>, cell: usize| keys.map_or(0, |keys| keys[cell]);
        Some(
            (0..cells)
                .map(|cell| (tile(cell), value(first, cell), value(second, cell), cell as u32))
                .collect(),
        )
    }

    pub(crate) fn compare(&self, a: &Ordered, i: usize, b: &Ordered, j: usize) -> Ordering {
        let mut order = match (a.places.get(i), b.places.get(j)) {
            (Some(a), Some(b)) => a.cmp(b),
            _ => Ordering::Equal,
        };
        for (a, b) in a.tiles.iter().zip(&b.tiles) {
            order = order.then_with(|| a[i].cmp(&b[j]));
        }
        for &axis in &self.cell_axes {
            order = order.then_with(|| a.keys[axis].compare(i, &b.keys[axis], j));
        }
        order
    }
}

/// The selected cells of one fragment, in order.
#[derive(Debug)]
struct Cursor {
    reader: usize,
    tiles: std::vec::IntoIter<(usize, bool)>,
    tile: Arc<Loaded>,
    ordered: Arc<Ordered>,
    /// The position in the tile's selection.
    at: usize,
}

impl Cursor {
    fn cell(&self) -> usize {
        self.tile.selected(self.at)
    }
}

/// Merges several fragments cell by cell. Of cells with equal coordinates, the newest wins.
#[derive(Debug)]
pub(crate) struct Merge {
    cursors: Vec<Cursor>,
    /// A binary heap of cursors, the first cell on top.
    heap: Vec<usize>,
}

impl Merge {
    pub(crate) fn start(context: &Context, readers: &[usize]) -> Result<Self> {
        let mut merge = Self { cursors: Vec::new(), heap: Vec::new() };
        for &reader in readers {
            let mut tiles = context.readers[reader].tiles(&context.region)?.into_iter();
            if let Some((tile, ordered)) = next_tile(context, reader, &mut tiles)? {
                merge.cursors.push(Cursor { reader, tiles, tile, ordered, at: 0 });
            }
        }
        merge.heap = (0..merge.cursors.len()).collect();
        for index in (0..merge.heap.len() / 2).rev() {
            merge.sift(context, index);
        }
        Ok(merge)
    }

    fn before(&self, context: &Context, a: usize, b: usize) -> bool {
        let (a, b) = (&self.cursors[a], &self.cursors[b]);
        let order = context.order.compare(&a.ordered, a.cell(), &b.ordered, b.cell());
        if order.is_eq() {
            // For equal coordinates the newest comes first, as in consolidated fragments.
            let (mine, other) = ((a.tile.time(a.cell()), a.reader), (b.tile.time(b.cell()), b.reader));
            return mine > other;
        }
        order.is_lt()
    }

    fn sift(&mut self, context: &Context, mut index: usize) {
        loop {
            let mut least = index;
            for child in [2 * index + 1, 2 * index + 2] {
                if child < self.heap.len() && self.before(context, self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if least == index {
                return;
            }
            self.heap.swap(index, least);
            index = least;
        }
    }

    /// Moves the top cursor to its next cell.
    fn advance(&mut self, context: &Context) -> Result<()> {
        let Some(&top) = self.heap.first() else { return Ok(()) };
        let cursor = &mut self.cursors[top];
        let (last, last_ordered) = (cursor.cell(), Arc::clone(&cursor.ordered));
        cursor.at += 1;
        if cursor.at >= cursor.tile.count() {
            match next_tile(context, cursor.reader, &mut cursor.tiles)? {
                Some((tile, ordered)) => (cursor.tile, cursor.ordered, cursor.at) = (tile, ordered, 0),
                None => {
                    self.heap.swap_remove(0);
                    self.sift(context, 0);
                    return Ok(());
                }
            }
        }
        if context.order.compare(&last_ordered, last, &cursor.ordered, cursor.cell()).is_gt() {
            let fragment = &context.readers[cursor.reader].fragment;
            return Err(fragment
                .place("sparse tile")
                .corrupt(format!("cells of tile {} are not in global order", cursor.tile.tile)));
        }
        self.sift(context, 0);
        Ok(())
    }

    /// The next cell, including older versions of the same coordinates.
    pub(crate) fn next_version(&mut self, context: &Context) -> Result<Option<(Arc<Loaded>, usize)>> {
        let Some(&top) = self.heap.first() else { return Ok(None) };
        let found = (Arc::clone(&self.cursors[top].tile), self.cursors[top].cell());
        self.advance(context)?;
        Ok(Some(found))
    }

    /// The next cell: the newest of those with the same coordinates.
    pub(crate) fn next(&mut self, context: &Context) -> Result<Option<(Arc<Loaded>, usize)>> {
        let Some(&top) = self.heap.first() else { return Ok(None) };
        let first = &self.cursors[top];
        let (ordered, cell) = (Arc::clone(&first.ordered), first.cell());
        let mut best = (Arc::clone(&first.tile), cell, first.tile.time(cell), first.reader);
        self.advance(context)?;
        while let Some(&top) = self.heap.first() {
            let other = &self.cursors[top];
            let other_cell = other.cell();
            if context.order.compare(&ordered, cell, &other.ordered, other_cell).is_ne() {
                break;
            }
            let time = other.tile.time(other_cell);
            // Within one fragment, the later of two cells with equal times wins.
            if (time, other.reader) >= (best.2, best.3) {
                best = (Arc::clone(&other.tile), other_cell, time, other.reader);
            }
            self.advance(context)?;
        }
        Ok(Some((best.0, best.1)))
    }
}

/// Loads the next tile with selected cells.
fn next_tile(
    context: &Context,
    reader: usize,
    tiles: &mut std::vec::IntoIter<(usize, bool)>,
) -> Result<Option<(Arc<Loaded>, Arc<Ordered>)>> {
    for (tile, inside) in tiles.by_ref() {
        let loaded = Loaded::load(context, reader, tile, inside)?;
        if loaded.count() == 0 {
            continue;
        }
        let numbers: Vec<Number> =
            (0..context.rank).map(|dimension| context.readers[reader].datatype(dimension).number()).collect();
        let keys = (0..context.rank).map(|dimension| loaded.keys(dimension)).collect::<Result<Vec<_>>>()?;
        let ordered = context.order.prepare(keys, &numbers, loaded.cells);
        return Ok(Some((Arc::new(loaded), Arc::new(ordered))));
    }
    Ok(None)
}
