//! Contiguous data, divided into slabs so that it can be read in parallel and in part.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use hyperslab_core::{Blob, BlobKey, ChunkRef, Error, Extents, Grid, Layer, Result, Span, product};
use smallvec::SmallVec;

use crate::file::{File, lock};
use crate::message::external::Slot;
use crate::store::not_followed;
use hyperslab_core::External as Opened;

/// A slab is no larger than this, unless a single element is.
const SLAB: u64 = 4 << 20;

/// Slabs along the slowest axes: each is one run of bytes.
pub(crate) fn slabs(shape: &[u64], element: u64) -> Grid {
    let mut chunk: Extents = shape.iter().map(|_| 1).collect();
    let mut bytes = element.max(1);
    for axis in (0..shape.len()).rev() {
        let extent = shape[axis].max(1);
        let room = (SLAB / bytes).max(1);
        if extent > room {
            chunk[axis] = room;
            break;
        }
        chunk[axis] = extent;
        bytes = bytes.saturating_mul(extent);
    }
    // Extents are positive and match the rank, so this cannot fail.
    Grid::new(shape, &chunk).unwrap_or_else(|_| Grid::single(shape))
}

/// The offset and length of a slab in the data.
pub(crate) fn range(grid: &Grid, chunk: &[u64], element: u64) -> (u64, u64) {
    let region = grid.region(chunk);
    let mut cell = 0_u64;
    for (start, extent) in region.start.iter().zip(grid.shape()) {
        cell = cell.saturating_mul(*extent).saturating_add(*start);
    }
    let cells = product(&region.shape).unwrap_or(u64::MAX);
    (cell.saturating_mul(element), cells.saturating_mul(element))
}

/// Data in external files.
#[derive(Debug)]
pub(crate) struct External {
    slots: Vec<Slot>,
    open: Mutex<HashMap<String, Arc<dyn Blob>>>,
}

impl External {
    pub(crate) fn new(slots: Vec<Slot>) -> Self {
        Self { slots, open: Mutex::default() }
    }

    /// The names of the files.
    pub(crate) fn files(&self) -> Vec<String> {
        self.slots.iter().map(|slot| slot.file.clone()).collect()
    }

    /// The external file of this name.
    pub(crate) fn blob(&self, file: &File, name: &str) -> Result<Arc<dyn Blob>> {
        if let Some(blob) = lock(&self.open).get(name) {
            return Ok(Arc::clone(blob));
        }
        let Some(Opened { blob, .. }) = file.externals.open(name)? else {
            if file.externals.refuses(name) {
                return Err(not_followed(file, "the data of a dataset", name));
            }
            return Err(Error::not_found(Arc::clone(&file.name), format!("the external file {name}")));
        };
        lock(&self.open).insert(name.to_owned(), Arc::clone(&blob));
        Ok(blob)
    }

    /// The spans that hold these bytes of the data.
    pub(crate) fn reference(&self, file: &File, offset: u64, length: u64, plain: bool) -> Result<ChunkRef> {
        let mut spans: SmallVec<[Span; 1]> = SmallVec::new();
        let (mut at, mut wanted, mut before) = (offset, length, 0_u64);
        let mut whole = true;
        for slot in &self.slots {
            if wanted == 0 {
                break;
            }
            let size = slot.size.unwrap_or(u64::MAX - before);
            if at >= before.saturating_add(size) {
                before = before.saturating_add(size);
                continue;
            }
            let take = wanted.min(size.saturating_sub(at - before));
            let start = slot.offset.saturating_add(at - before);
            let held = self.blob(file, &slot.file)?.len()?.saturating_sub(start).min(take);
            let blob = BlobKey::named(slot.file.as_str());
            spans.push(Span { blob, offset: start, length: held });
            whole &= held == take;
            (at, wanted, before) = (at.saturating_add(take), wanted - take, before.saturating_add(size));
            if !whole {
                break;
            }
        }
        let plain = plain && whole && wanted == 0 && spans.len() == 1;
        let layer = Layer { spans, filter_mask: 0, plain, region: None, tag: 0 };
        Ok(ChunkRef { layers: SmallVec::from_iter([layer]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The slabs are adjacent and cover the data.
        #[test]
        fn slabs_tile_the_piece(shape in prop::collection::vec(0_u64..2000, 0..4), element in 1_u64..5000) {
            prop_assume!(product(&shape).unwrap() < 1 << 26);
            let grid = slabs(&shape, element);
            let mut end = 0;
            for number in 0..grid.chunks().unwrap() {
                let (start, length) = range(&grid, &grid.coord(number), element);
                prop_assert_eq!(start, end);
                end += length;
                prop_assert!(length <= SLAB.max(element));
            }
            prop_assert_eq!(end, product(&shape).unwrap() * element);
        }
    }
}
