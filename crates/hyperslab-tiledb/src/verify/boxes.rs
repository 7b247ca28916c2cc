//! Checks that every cell of a sparse tile is inside the tile's box in the R-tree.

use std::sync::Arc;

use hyperslab_core::{Elements, Error, Result};

use crate::fragment::{Fragment, RTree};
use crate::sparse::{DimensionRange, Keys, key_of, keys_of};

/// The boxes of a fragment's tiles along one dimension.
pub(super) struct Boxes<'a> {
    fragment: &'a Fragment,
    tree: Arc<RTree>,
    dimension: usize,
}

/// Reads a fragment's tree. Fails if a level is larger than the one below it.
pub(super) fn tree(fragment: &Fragment) -> Result<Arc<RTree>> {
    let tree = fragment.rtree()?;
    for pair in tree.levels().windows(2) {
        if pair[0].len() > pair[1].len() {
            return Err(fragment.place("R-tree").corrupt("a level larger than the one below it"));
        }
    }
    Ok(tree)
}

impl<'a> Boxes<'a> {
    pub(super) const fn new(fragment: &'a Fragment, tree: Arc<RTree>, dimension: usize) -> Self {
        Self { fragment, tree, dimension }
    }

    /// Compares the box of a tile with its coordinates. Returns `None` if they agree.
    pub(super) fn compare(&self, tile: usize, elements: &Elements) -> Option<Error> {
        let dimension = &self.fragment.schema.dimensions[self.dimension];
        let number = dimension.datatype.number();
        if let Some(raw) = elements.as_fixed().filter(|_| !dimension.is_text()) {
            return self.compare_fixed(tile, raw);
        }
        let leaf = self.tree.leaves().get(tile)?.get(self.dimension)?;
        let range = if dimension.is_text() {
            DimensionRange::Text { low: Some(leaf.low.clone()), high: Some(leaf.high.clone()) }
        } else {
            DimensionRange::Fixed { low: key_of(number, &leaf.low), high: key_of(number, &leaf.high) }
        };
        let count = elements.len(&dimension.dtype());
        let mut inside: Vec<u32> = (0..count as u32).collect();
        range.select(&Keys::of(number, elements), &mut inside);
        self.outside(tile, count - inside.len())
    }

    /// Like [`compare`](Self::compare), for fixed-size coordinates.
    pub(super) fn compare_fixed(&self, tile: usize, raw: &[u8]) -> Option<Error> {
        let number = self.fragment.schema.dimensions[self.dimension].datatype.number();
        let leaf = self.tree.leaves().get(tile)?.get(self.dimension)?;
        let (low, high) = (key_of(number, &leaf.low), key_of(number, &leaf.high));
        let keys = keys_of(number, raw);
        self.outside(tile, keys.iter().filter(|&&key| key < low || key > high).count())
    }

    fn outside(&self, tile: usize, cells: usize) -> Option<Error> {
        let name = &self.fragment.schema.dimensions[self.dimension].name;
        (cells > 0).then(|| {
            let problem = format!("{cells} cells of tile {tile} lie outside its box along {name:?}");
            self.fragment.place("R-tree").corrupt(problem)
        })
    }
}
