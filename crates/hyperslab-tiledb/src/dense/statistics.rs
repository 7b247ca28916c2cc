//! Per-tile statistics from fragment metadata.

use hyperslab_core::{ChunkCoord, ChunkStatistics, Result};

use super::{DenseAttribute, DenseFragment};
use crate::fragment::{Field, Stats};

impl DenseAttribute {
    /// Returns the statistics of each chunk that a single fragment covers completely.
    pub(super) fn chunk_statistics(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkStatistics>>> {
        if !Stats::are_usable(&self.attribute) {
            return Ok(vec![None; chunks.len()]);
        }
        let fragments = self.fragments()?;
        let mut all = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            all.push(match self.holder(fragments, chunk) {
                Some((fragment, tile)) => fragment.stats()?.and_then(|stats| {
                    let cells = hyperslab_core::product(self.schema.grid.chunk_shape())?;
                    stats.of_tile(&self.attribute, tile, cells)
                }),
                None => None,
            });
        }
        Ok(all)
    }

    /// The newest fragment of a chunk, if it covers the chunk completely, and the tile's number in it. Returns `None` if
    /// its statistics differ from those of the visible cells.
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
        // A fragment that extends past the array (beyond its current domain) includes hidden cells in its statistics.
        let inside = fragment.cells.iter().zip(self.schema.shape()).all(|((_, last), extent)| last < extent);
        // The library includes padding in the statistics of fragments that it consolidates.
        let name = &fragment.fragment.name;
        let padded = name.start != name.end && self.schema.grid.is_clipped(chunk);
        (covers && inside && !padded).then_some((fragment, tile))
    }
}

impl DenseFragment {
    /// The statistics of the attribute's tiles, read once.
    fn stats(&self) -> Result<Option<&Stats>> {
        if let Some(known) = self.stats.get() {
            return Ok(known.as_ref());
        }
        let Field::Attribute(index) = self.field else { return Ok(None) };
        let stats = self.fragment.stats(index)?;
        Ok(self.stats.get_or_init(|| stats).as_ref())
    }
}
