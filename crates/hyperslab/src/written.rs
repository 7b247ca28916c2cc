//! Lists the written chunks of an array, for grids that would take longer to walk.
//!
//! A file can claim any shape, and unwritten chunks take no space in it. For a large grid, operations therefore list the stored
//! chunks first and treat the rest as one: a claim of 2^62 cells costs nothing.

use std::ops::ControlFlow;

use hyperslab_core::{Array, ArraySchema, ChunkCoord, Elements, Error, Fill, Region, Result};

use crate::ArrayReader;

/// Grids of up to this many chunks are walked, because locating the chunks takes no longer than listing them. Tests list
/// everything but single chunks.
const WALKED: u64 = if cfg!(test) { 1 } else { 1 << 16 };
/// Grids of up to this many chunks may be walked if their chunks cannot be listed.
const WALKABLE: u64 = 1 << 24;
/// The grid is walked if more than one in this many chunks is written.
const SHARE: u64 = if cfg!(test) { 1 } else { 4 };

/// Lists of up to this many chunks are never too long.
const SHORT: u64 = 1 << 10;
/// Arrays of more bytes are never processed as a whole, however few their chunks.
pub(crate) const LARGE: u64 = 1 << 40;

/// Applies `wanted` to each written chunk and returns the distinct results, sorted. Returns `None` if the `chunks` in question
/// are better walked, because they are few, most of them are written, or the format cannot list them.
///
/// # Errors
///
/// Any error from the chunk index, and [`Invalid`](Error::Invalid) if the list exceeds `memory` bytes; both only if the grid is
/// too large to be walked instead.
pub(crate) fn written<K: Ord>(
    array: &dyn Array,
    chunks: u64,
    memory: u64,
    wanted: impl FnMut(&ChunkCoord) -> Option<K>,
) -> Result<Option<Vec<K>>> {
    if chunks <= WALKED { Ok(None) } else { list(array, chunks, memory, wanted) }
}

/// Like [`written`], however few the chunks.
///
/// # Errors
///
/// As [`written`].
pub(crate) fn list<K: Ord>(
    array: &dyn Array,
    chunks: u64,
    memory: u64,
    mut wanted: impl FnMut(&ChunkCoord) -> Option<K>,
) -> Result<Option<Vec<K>>> {
    if !array.visits_every_chunk() || array.schema().fill == Fill::Undefined {
        return Ok(None);
    }
    let (most, room) = ((chunks / SHARE).max(SHORT), memory / (size_of::<K>() as u64).max(1));
    let (mut found, mut visited) = (Vec::new(), 0_u64);
    let mut stopped = false;
    let listed = array.visit_chunks(&mut |chunk, _| {
        visited += 1;
        found.extend(wanted(&chunk));
        stopped = visited > chunks.max(SHORT) || found.len() as u64 > most.min(room);
        Ok(if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    let walkable = visited > chunks || found.len() as u64 > most || chunks <= WALKABLE;
    match listed {
        Ok(()) if !stopped => {
            found.sort_unstable();
            found.dedup();
            Ok(Some(found))
        }
        _ if walkable => Ok(None),
        Err(error) => Err(error),
        Ok(()) => Err(Error::invalid(format!(
            "{}: the list of stored chunks exceeds the memory limit of {memory} bytes",
            array.name()
        ))),
    }
}

/// All written chunks of an array, if walking the whole grid would take longer.
///
/// # Errors
///
/// As [`written`].
pub(crate) fn written_chunks(array: &dyn Array, memory: u64) -> Result<Option<Vec<ChunkCoord>>> {
    let schema = array.schema();
    let chunks = schema.grid.chunks().unwrap_or(u64::MAX);
    if chunks <= WALKED && schema.bytes().is_some_and(|bytes| bytes <= LARGE) {
        return Ok(None);
    }
    list(array, chunks, memory, |chunk| schema.grid.contains(chunk).then(|| chunk.clone()))
}

impl ArrayReader {
    /// Visits boxes that together are the array: those of which nothing was ever written, with the element that all of their cells
    /// have, and all others, which have up to `cells` cells. Returns false without a visit if there are too few chunks, or most of
    /// them are written.
    ///
    /// # Errors
    ///
    /// Any error from the chunk index or from `visit`.
    pub fn visit_written(
        &self,
        cells: u64,
        visit: &mut dyn FnMut(&Region, Option<&Elements>) -> Result<()>,
    ) -> Result<bool> {
        let schema = self.schema();
        let Some(chunks) = written_chunks(&**self.inner(), self.memory() / 4)? else { return Ok(false) };
        let written: Vec<Region> = chunks.iter().map(|chunk| schema.grid.region(chunk)).collect();
        let fill = fill_element(schema);
        let mut take =
            |region: &Region, written: bool| visit(region, if written { None } else { Some(&fill) });
        let whole = Region::whole(schema.shape());
        fold_pieces(&whole, &written.iter().collect::<Vec<_>>(), cells.max(1), &mut take, &|(), ()| ())?;
        Ok(true)
    }
}

/// The value of cells that were never written.
pub(crate) fn fill_element(schema: &ArraySchema) -> Elements {
    match &schema.fill {
        Fill::Element(element) => element.clone(),
        Fill::Zero | Fill::Undefined => Elements::zero(&schema.dtype),
    }
}

/// Halves a box along its longest axis (the first, if several are longest). The first half is rounded up. `None` for a single
/// cell.
pub(crate) fn halves(region: &Region) -> Option<[Region; 2]> {
    let longest = region.shape.iter().copied().max().filter(|longest| *longest > 1)?;
    let axis = region.shape.iter().position(|extent| *extent == longest)?;
    let (mut low, mut high) = (region.clone(), region.clone());
    low.shape[axis] = longest.div_ceil(2);
    high.shape[axis] = longest - low.shape[axis];
    high.start[axis] += low.shape[axis];
    Some([low, high])
}

/// Halves a box until a piece contains no `written` box, however large it is, or has at most `cells` cells. Passes each piece to
/// `take`, with whether any of it was written, and joins the results of two halves.
///
/// # Errors
///
/// Any error from `take`.
pub(crate) fn fold_pieces<T>(
    region: &Region,
    written: &[&Region],
    cells: u64,
    take: &mut impl FnMut(&Region, bool) -> Result<T>,
    join: &impl Fn(T, T) -> T,
) -> Result<T> {
    if written.is_empty() {
        return take(region, false);
    }
    match halves(region) {
        Some([low, high]) if region.cells().is_none_or(|own| own > cells) => {
            let inside = |half: &Region| -> Vec<&Region> {
                written.iter().copied().filter(|written| overlaps(written, half)).collect()
            };
            let first = fold_pieces(&low, &inside(&low), cells, take, join)?;
            Ok(join(first, fold_pieces(&high, &inside(&high), cells, take, join)?))
        }
        _ => take(region, true),
    }
}

/// Returns true if two boxes have a cell in common.
fn overlaps(a: &Region, b: &Region) -> bool {
    let apart = |axis: usize| {
        a.start[axis] >= b.start[axis].saturating_add(b.shape[axis])
            || b.start[axis] >= a.start[axis].saturating_add(a.shape[axis])
    };
    !(0..a.start.len().min(b.start.len())).any(apart)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Every cell is in exactly one piece, and a written cell in one marked as written.
        #[test]
        fn pieces_cover_the_box(
            shape in prop::collection::vec(1_u64..12, 1..4),
            boxes in prop::collection::vec((prop::collection::vec(0_u64..12, 3), prop::collection::vec(1_u64..5, 3)), 0..4),
            cells in 1_u64..30,
        ) {
            let rank = shape.len();
            let whole = Region::whole(&shape);
            let boxes: Vec<Region> = boxes.iter()
                .filter_map(|(start, shape)| Region::new(&start[..rank], &shape[..rank]).intersect(&whole))
                .collect();
            let mut pieces = Vec::new();
            let mut take = |piece: &Region, written: bool| {
                pieces.push((piece.clone(), written));
                Ok(piece.cells().unwrap())
            };
            let all = fold_pieces(&whole, &boxes.iter().collect::<Vec<_>>(), cells, &mut take, &|a, b| a + b).unwrap();
            prop_assert_eq!(Some(all), whole.cells());
            for (number, (piece, written)) in pieces.iter().enumerate() {
                prop_assert!(!written || piece.cells().unwrap() <= cells.max(1));
                prop_assert_eq!(*written, boxes.iter().any(|own| own.intersect(piece).is_some()));
                prop_assert!(pieces[..number].iter().all(|(other, _)| other.intersect(piece).is_none()));
            }
        }
    }
}
