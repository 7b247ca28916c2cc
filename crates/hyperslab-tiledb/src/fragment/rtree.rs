//! R-trees: the bounding boxes of a sparse fragment's tiles, and levels of boxes around those.

use hyperslab_core::{Fields, Place, Result};

use crate::schema::{Dimension, Range, ranges};

/// The number of boxes that one box of the next higher level contains.
const FANOUT: usize = 10;

/// Levels of boxes, root first; the last level has one box per tile.
#[derive(Debug, Clone, Default)]
pub(crate) struct RTree {
    fanout: usize,
    levels: Vec<Vec<Vec<Range>>>,
}

impl RTree {
    /// Parses `u32 fanout, u32 levels`, then per level `u64 n, n × (range per dimension)`. Before version 5, a `u32`
    /// dimension count comes first, and a type follows the fanout.
    pub(crate) fn parse(
        bytes: &[u8],
        version: u32,
        dimensions: &[Dimension],
        place: Place<'_>,
    ) -> Result<Self> {
        let mut fields = Fields::new(bytes, place);
        if version < 5 {
            fields.u32()?;
        }
        let fanout = fields.u32()? as usize;
        if version < 5 {
            fields.u8()?;
        }
        let count = fields.count_u32(8)?;
        let smallest: usize =
            dimensions.iter().map(|d| if d.is_text() { 16 } else { 2 * d.datatype.size() }).sum();
        let mut levels = Vec::with_capacity(count);
        for _ in 0..count {
            let boxes = fields.count_u64(smallest)?;
            levels.push((0..boxes).map(|_| ranges(&mut fields, dimensions)).collect::<Result<Vec<_>>>()?);
        }
        Ok(Self { fanout: fanout.max(1), levels })
    }

    /// A tree that has only leaves.
    pub(crate) fn from_boxes(boxes: Vec<Vec<Range>>) -> Self {
        Self { fanout: FANOUT, levels: vec![boxes] }
    }

    /// Builds the tree over these leaves.
    pub(crate) fn build(leaves: Vec<Vec<Range>>, join: impl Fn(&[Vec<Range>]) -> Vec<Range>) -> Self {
        let mut levels = vec![leaves];
        while let Some(below) = levels.first().filter(|below| below.len() > 1) {
            let above = below.chunks(FANOUT).map(&join).collect();
            levels.insert(0, above);
        }
        if levels.first().is_some_and(Vec::is_empty) {
            levels.clear();
        }
        Self { fanout: FANOUT, levels }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend((FANOUT as u32).to_le_bytes());
        out.extend((self.levels.len() as u32).to_le_bytes());
        for level in &self.levels {
            out.extend((level.len() as u64).to_le_bytes());
            for range in level.iter().flatten() {
                range.encode(out);
            }
        }
    }

    /// One box per tile.
    pub(crate) fn leaves(&self) -> &[Vec<Range>] {
        self.levels.last().map_or(&[], Vec::as_slice)
    }

    /// The levels, root first.
    pub(crate) fn levels(&self) -> &[Vec<Vec<Range>>] {
        &self.levels
    }

    /// Returns the tiles whose boxes pass `keep`, in order. Descends only into boxes that pass. If the sizes of the
    /// levels do not match, searches only the leaves.
    pub(crate) fn search(&self, keep: impl Fn(&[Range]) -> bool) -> Vec<usize> {
        let fits = self.levels.windows(2).all(|pair| pair[0].len() == pair[1].len().div_ceil(self.fanout));
        let start = if fits { 0 } else { self.levels.len().saturating_sub(1) };
        let Some(top) = self.levels.get(start) else { return Vec::new() };
        let mut kept: Vec<usize> = (0..top.len()).filter(|&index| keep(&top[index])).collect();
        for level in self.levels.get(start + 1..).unwrap_or_default() {
            kept = kept
                .into_iter()
                .flat_map(|parent| parent * self.fanout..((parent + 1) * self.fanout).min(level.len()))
                .filter(|&index| keep(&level[index]))
                .collect();
        }
        kept
    }
}
