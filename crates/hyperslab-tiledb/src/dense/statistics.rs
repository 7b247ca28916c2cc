//! What fragment metadata keeps of a tile's values.

use hyperslab_core::{ChunkCoord, ChunkStatistics, Result};

use super::{DenseAttribute, DenseFragment};
use crate::fragment::{Field, Stats};

impl DenseAttribute {
    /// The statistics of tiles that one fragment has whole.
    pub(super) fn chunk_statistics(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkStatistics>>> {
        if !Stats::are_trusted(&self.attribute) {
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

    /// The fragment that alone holds a chunk, whole, and the tile's number in it; `None` if its statistics are not
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
