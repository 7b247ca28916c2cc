//! What fragment metadata keeps of a tile's values.

use hyperslab_core::{ChunkCoord, ChunkStatistics, Number as CoreNumber, Result};

use super::{DenseAttribute, DenseFragment};
use crate::datatype::{CellValues, Datatype, Number};
use crate::fragment::{Field, Stats, sum_is_exact};
use crate::schema::{float, integer};

impl DenseAttribute {
    /// The statistics of tiles that one fragment has whole. Text has none: the library writes wrong ones.
    pub(super) fn chunk_statistics(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkStatistics>>> {
        let numeric = self.attribute.values == CellValues::Fixed(1)
            && !self.attribute.datatype.is_bytes()
            && !matches!(
                self.attribute.datatype,
                Datatype::StringUtf16 | Datatype::StringUtf32 | Datatype::StringUcs2 | Datatype::StringUcs4
            );
        if !numeric {
            return Ok(vec![None; chunks.len()]);
        }
        let fragments = self.fragments()?;
        let mut all = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            all.push(match self.holder(fragments, chunk) {
                Some((fragment, tile)) => fragment.stats()?.and_then(|stats| self.of_tile(stats, tile)),
                None => None,
            });
        }
        Ok(all)
    }

    /// The fragment that alone holds a chunk, whole, and the tile's number in it; `None` where its statistics are not
    /// those of the cells that are shown.
    fn holder<'a>(
        &self,
        fragments: &'a [DenseFragment],
        chunk: &ChunkCoord,
    ) -> Option<(&'a DenseFragment, usize)> {
        let newest = fragments.iter().rev();
        let (fragment, tile) = newest
            .filter_map(|fragment| {
                Some((fragment, fragment.tile_index(chunk, self.array.schema.tile_order)?))
            })
            .next()?;
        let region = self.schema.grid.region(chunk);
        let covers = fragment
            .cells
            .iter()
            .zip(region.start.iter().zip(&region.shape))
            .all(|((low, high), (start, count))| low <= start && start + count <= high.saturating_add(1));
        // A fragment that reaches past the array (behind a current domain) counts cells that are not shown.
        let inside = fragment.cells.iter().zip(self.schema.shape()).all(|((_, last), extent)| last < extent);
        // The library counts padding into the statistics of fragments that it consolidates.
        let name = &fragment.fragment.name;
        let padded = name.start != name.end && self.schema.grid.is_clipped(chunk);
        (covers && inside && !padded).then_some((fragment, tile))
    }

    fn of_tile(&self, stats: &Stats, tile: usize) -> Option<ChunkStatistics> {
        let number = self.attribute.datatype.number();
        let size = number.size();
        let bytes = |all: &[u8]| all.get(tile * size..(tile + 1) * size).map(<[u8]>::to_vec);
        let value = |bytes: &[u8]| {
            if number.is_float() {
                CoreNumber::Float(float(number, bytes))
            } else {
                CoreNumber::Integer(integer(number, bytes))
            }
        };
        let nulls = if self.attribute.nullable { *stats.null_counts.get(tile)? } else { 0 };
        let cells = hyperslab_core::product(self.schema.grid.chunk_shape())?;
        if nulls >= cells {
            return None;
        }
        let (min, max) = (bytes(&stats.mins)?, bytes(&stats.maxes)?);
        let sum = sum_of(number, *stats.sums.get(tile)?);
        let exact = sum_is_exact(number, &min, &max, cells);
        if let CoreNumber::Float(sum) = sum
            && !(exact && sum.abs() < f64::MAX)
        {
            // Something in there is not a number, infinite or too large: what the extremes mean then is not written down.
            return None;
        }
        let (min, max, sum) = (Some(value(&min)), Some(value(&max)), exact.then_some(sum));
        Some(ChunkStatistics { min, max, sum, nulls: Some(nulls), exact: true, hint: false })
    }
}

impl DenseFragment {
    /// What is kept of the attribute's tiles; read once.
    fn stats(&self) -> Result<Option<&Stats>> {
        if let Some(known) = self.stats.get() {
            return Ok(known.as_ref());
        }
        let Field::Attribute(index) = self.field else { return Ok(None) };
        let stats = self.fragment.stats(index)?;
        Ok(self.stats.get_or_init(|| stats).as_ref())
    }
}

/// A stored sum.
fn sum_of(number: Number, bytes: [u8; 8]) -> CoreNumber {
    if number.is_float() {
        CoreNumber::Float(f64::from_le_bytes(bytes))
    } else if number.is_signed() {
        CoreNumber::Integer(i64::from_le_bytes(bytes).into())
    } else {
        CoreNumber::Integer(u64::from_le_bytes(bytes).into())
    }
}
