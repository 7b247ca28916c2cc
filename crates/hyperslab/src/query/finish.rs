//! Turns the state of each cell into its answer.

use super::accumulate::Accumulator;
use super::answer::Column;
use super::axes::AxisMap;
use super::fold::CellContext;
use super::plan::{QueryPlan, Tile};
use super::windows::Places;

impl QueryPlan {
    /// The answers of a tile.
    pub(super) fn finish(&self, mut accumulator: Accumulator, tile: &Tile) -> Column {
        let shape = self.tile_shape(tile);
        let key = self.key_kind();
        if let Some(places) = self.places
            && places.rolling
        {
            accumulator = places.roll(&accumulator, &tile.shape);
        }
        let real = if self.places.is_some() { accumulator.counts.clone() } else { Vec::new() };
        if let (Some(places), Some(pad)) = (self.places, self.pad) {
            let others = (0..self.maps.len()).filter(|axis| self.maps[*axis] == AxisMap::Reduce);
            let others = others.map(|axis| self.plan.positions().axes[axis].count).product();
            places.pad(&mut accumulator, &shape, pad, key, others);
        }
        // The number of values per cell if not counted: the same for all cells, except for groups.
        let sizes = |axis: usize| match &self.maps[axis] {
            AxisMap::Keep => None,
            map => Some((axis, map.sizes(self.plan.positions().axes[axis].count))),
        };
        let axes = if accumulator.counts.is_empty() { 0..self.maps.len() } else { 0..0 };
        let (equal, groups): (Vec<_>, Vec<_>) =
            axes.filter_map(sizes).partition(|(_, sizes)| sizes.len() == 1);
        let each: u64 = equal.iter().map(|(_, sizes)| sizes[0]).product();
        let mut column = Column::with_capacity(accumulator.cells);
        column.values = accumulator.counts.iter().sum();
        for cell in 0..accumulator.cells {
            let n = accumulator.counts.get(cell).copied().unwrap_or_else(|| {
                let at = |axis: usize| cell / tile.strides[axis] % tile.shape[axis];
                groups.iter().fold(each, |n, (axis, sizes)| n * sizes[at(*axis)])
            });
            let enough = real.get(cell).is_none_or(|real| *real >= self.min_count);
            let context = CellContext {
                operation: self.operation,
                count: n,
                enough,
                skip_nan: self.skip_nan,
                decoded: self.decoded,
                whole: self.whole_means(),
                key,
            };
            accumulator.fold.finish(cell, &context, &mut column);
            if let (Some(places), true) = (self.places, accumulator.fold.is_indexed()) {
                self.relative(places, cell, &shape, &mut column);
            }
        }
        column
    }

    /// Makes positions relative to the start of their window.
    fn relative(&self, places: Places, cell: usize, shape: &[usize], column: &mut Column) {
        let inner: usize = shape[places.axis + 1..].iter().product();
        let window = (cell / inner % places.count as usize) as u64;
        let each: u64 = (places.axis + 1..self.maps.len())
            .filter(|axis| self.maps[*axis] == AxisMap::Reduce)
            .map(|axis| self.plan.positions().axes[axis].count)
            .product();
        if let Some(index) = column.integers.last_mut() {
            *index -= i128::from(places.start(window)) * i128::from(each);
        }
    }
}
