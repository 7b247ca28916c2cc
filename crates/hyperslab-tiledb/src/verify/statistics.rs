//! Checks the stored minimum, maximum, sum and null count of a tile against its cells.

use std::borrow::Cow;

use hyperslab_core::{Elements, Extents, Layout, Region, Result, copy_box};
use smallvec::SmallVec;

use crate::datatype::CellValues;
use crate::dense::coord_in;
use crate::fragment::{Field, Fragment, Stats, sum_is_exact};
use crate::schema::{ArrayKind, Attribute};
use crate::write::TileStats;

/// The statistics of an attribute that can be compared.
pub(super) struct Statistics<'a> {
    fragment: &'a Fragment,
    attribute: &'a Attribute,
    stored: Stats,
}

/// The written cells of a tile. The others are padding.
enum Written {
    /// The position of the tile is unknown.
    Unknown,
    All,
    /// This region, relative to the tile's own origin.
    Part(Region),
}

impl<'a> Statistics<'a> {
    /// Returns `None` if the field has no statistics, or none that can be compared.
    pub(super) fn of(fragment: &'a Fragment, field: Field) -> Result<Option<Self>> {
        let Field::Attribute(index) = field else { return Ok(None) };
        let Some(stored) = fragment.stats(index)? else { return Ok(None) };
        let attribute = &fragment.schema.attributes[index];
        // Text is excluded because the library writes wrong extremes for it. Sums of floats are excluded because
        // their last digits depend on the order of addition.
        let compared = attribute.values == CellValues::Fixed(1)
            && !attribute.datatype.is_bytes()
            && !attribute.datatype.number().is_float();
        Ok(compared.then_some(Self { fragment, attribute, stored }))
    }

    /// Describes how the stored statistics of a tile differ from these cells. Returns `None` if they agree. A sum
    /// that may have reached the limit of its type is not compared, because it depends on how the library divided the
    /// cells.
    pub(super) fn compare(&self, tile: usize, elements: &Elements) -> Option<String> {
        let own = match self.written(tile) {
            Written::Unknown => return None,
            Written::All => Cow::Borrowed(elements),
            Written::Part(region) => {
                let strides = self.strides()?;
                let mut picks = Vec::new();
                for cell in 0..region.cells()? {
                    let (mut left, mut at) = (cell, 0);
                    for axis in (0..strides.len()).rev() {
                        at += (region.start[axis] + left % region.shape[axis]) * strides[axis];
                        left /= region.shape[axis];
                    }
                    picks.push((0, usize::try_from(at).ok()?));
                }
                Cow::Owned(Elements::gather(&self.attribute.dtype(), &[elements], &picks).ok()?)
            }
        };
        let cells = own.len(&self.attribute.dtype());
        self.difference(tile, &TileStats::of(self.attribute, &own, cells), cells)
    }

    /// Like [`compare`](Self::compare), for fixed-size cells without nulls.
    pub(super) fn compare_fixed(&self, tile: usize, raw: &[u8]) -> Option<String> {
        let found = match self.written(tile) {
            Written::Unknown => return None,
            Written::All => TileStats::of_cells(self.attribute, raw),
            Written::Part(region) => TileStats::of_cells(self.attribute, &self.packed(raw, &region)?),
        };
        self.difference(tile, &found, raw.len() / self.attribute.datatype.number().size().max(1))
    }

    /// Copies the cells of a region of a tile, back to back.
    fn packed(&self, raw: &[u8], region: &Region) -> Option<Vec<u8>> {
        let item = self.attribute.datatype.number().size();
        let mut from = Layout { offset: 0, strides: SmallVec::new() };
        for (start, stride) in region.start.iter().zip(&self.strides()?) {
            let stride = usize::try_from(*stride).ok()?.checked_mul(item)?;
            from.offset = from.offset.checked_add(usize::try_from(*start).ok()?.checked_mul(stride)?)?;
            from.strides.push(isize::try_from(stride).ok()?);
        }
        // At most the size of the tile, which is already in memory.
        let mut packed = vec![0; usize::try_from(region.cells()?).ok()?.checked_mul(item)?.min(raw.len())];
        copy_box(raw, &from, &mut packed, &Layout::packed(&region.shape, item), &region.shape, item).ok()?;
        Some(packed)
    }

    fn extents(&self) -> Option<Extents> {
        self.fragment.schema.dimensions.iter().map(|dimension| dimension.tile_extent()).collect()
    }

    /// The distance between adjacent cells in a tile, per axis.
    fn strides(&self) -> Option<Extents> {
        Some(self.fragment.schema.cell_order.cell_order().strides(&self.extents()?))
    }

    fn written(&self, tile: usize) -> Written {
        if self.fragment.schema.kind == ArrayKind::Sparse {
            return Written::All;
        }
        let written = || {
            let schema = &self.fragment.schema;
            let (written, tiles) =
                (self.fragment.footer.cell_box(schema)?, self.fragment.footer.tile_box(schema)?);
            let shape = self.extents()?;
            let at = coord_in(&tiles, tile as u64, schema.tile_order);
            let start: Extents =
                at.iter().zip(&shape).map(|(at, extent)| at.checked_mul(*extent)).collect::<Option<_>>()?;
            let own = Region { start: start.clone(), shape: shape.clone() }.intersect(&Region {
                start: written.iter().map(|(low, _)| *low).collect(),
                shape: written.iter().map(|(low, high)| high - low + 1).collect(),
            })?;
            if own.shape == shape {
                return Some(Written::All);
            }
            let inside = own.start.iter().zip(&start).map(|(at, start)| at - start).collect();
            Some(Written::Part(Region { start: inside, shape: own.shape }))
        };
        written().unwrap_or(Written::Unknown)
    }

    fn difference(&self, tile: usize, found: &TileStats, cells: usize) -> Option<String> {
        let (attribute, stored) = (self.attribute, &self.stored);
        let number = attribute.datatype.number();
        let size = number.size();
        let exact = match (&found.min, &found.max) {
            (Some(min), Some(max)) => sum_is_exact(number, min, max, cells as u64),
            _ => true,
        };
        let at = |bytes: &[u8]| bytes.get(tile * size..(tile + 1) * size).map(<[u8]>::to_vec);
        let wrong = found.min.is_some() && at(&stored.mins).is_some_and(|min| Some(min) != found.min)
            || found.max.is_some() && at(&stored.maxes).is_some_and(|max| Some(max) != found.max)
            || exact && stored.sums.get(tile).is_some_and(|sum| *sum != found.sum)
            || attribute.nullable && stored.null_counts.get(tile).is_some_and(|nulls| *nulls != found.nulls);
        wrong.then(|| {
            format!(
                "the statistics of tile {tile} of {:?} do not match its cells: minimum {:?} stored {:?}, maximum {:?} stored {:?}, \
                 sum {:?} stored {:?}, nulls {}",
                attribute.name,
                found.min,
                at(&stored.mins),
                found.max,
                at(&stored.maxes),
                found.sum,
                stored.sums.get(tile),
                found.nulls
            )
        })
    }
}
