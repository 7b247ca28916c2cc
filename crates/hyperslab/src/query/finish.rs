//! From what was remembered of a cell to its answer.

use super::accumulate::Accumulator;
use super::answer::Column;
use super::axes::AxisMap;
use super::lane::KeyKind;
use super::plan::{QueryPlan, Tile};
use super::windows::Places;
use super::{Operation, order};

impl QueryPlan {
    /// The values of a tile, of what was remembered.
    pub(super) fn finish(&self, mut accumulator: Accumulator, tile: &Tile) -> Column {
        let shape = self.tile_shape(tile);
        let key = self.key_kind();
        if let Some(places) = self.places
            && places.rolling
        {
            accumulator = places.roll(&accumulator, key, &tile.shape);
        }
        let real = if self.places.is_some() { accumulator.n.clone() } else { Vec::new() };
        if let (Some(places), Some(pad)) = (self.places, self.pad) {
            let others = (0..self.maps.len()).filter(|axis| self.maps[*axis] == AxisMap::Reduce);
            let others = others.map(|axis| self.plan.positions().axes[axis].count).product();
            places.pad(&mut accumulator, &shape, pad, key, others);
        }
        // How many values a cell has where that was not counted: the same for all, but for groups.
        let sizes = |axis: usize| match &self.maps[axis] {
            AxisMap::Keep => None,
            map => Some((axis, map.sizes(self.plan.positions().axes[axis].count))),
        };
        let axes = if accumulator.n.is_empty() { 0..self.maps.len() } else { 0..0 };
        let (equal, groups): (Vec<_>, Vec<_>) =
            axes.filter_map(sizes).partition(|(_, sizes)| sizes.len() == 1);
        let each: u64 = equal.iter().map(|(_, sizes)| sizes[0]).product();
        let mut column = Column::with_capacity(accumulator.cells);
        column.values = accumulator.n.iter().sum();
        for cell in 0..accumulator.cells {
            let n = accumulator.n.get(cell).copied().unwrap_or_else(|| {
                let at = |axis: usize| cell / tile.strides[axis] % tile.shape[axis];
                groups.iter().fold(each, |n, (axis, sizes)| n * sizes[at(*axis)])
            });
            let enough = real.get(cell).is_none_or(|real| *real >= self.min_count);
            self.finish_cell(&mut accumulator, cell, n, enough, &mut column);
            if let (Some(places), true) = (self.places, accumulator.indexed()) {
                self.relative(places, cell, &shape, &mut column);
            }
        }
        column
    }

    /// Positions in a window are counted from its own start.
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

    fn finish_cell(&self, own: &mut Accumulator, cell: usize, n: u64, enough: bool, column: &mut Column) {
        let float = self.key_kind() == KeyKind::Float;
        let some = n > 0 && enough;
        let count = n as f64;
        match self.operation {
            Operation::Count => column.push_integer(enough.then_some(n.into())),
            Operation::Sum if float => column.push_float(enough.then(|| own.sum(cell))),
            Operation::Sum => column.push_integer(enough.then(|| own.i[cell])),
            Operation::Mean => column
                .push_float(some.then(|| if float { own.sum(cell) / count } else { mean(own.i[cell], n) })),
            Operation::Min | Operation::Max if float => {
                let nans = own.u[cell];
                let value = match nans {
                    0 => own.a[cell] + 0.0,
                    _ if !self.skip_nan => f64::NAN,
                    _ => own.a[cell] + 0.0,
                };
                column.push_float((some && (nans < n || !self.skip_nan)).then_some(value));
            }
            Operation::Min | Operation::Max => column.push_integer(some.then(|| own.i[cell])),
            Operation::Var { ddof } | Operation::Std { ddof } => {
                let freedom = own.c[cell] - f64::from(ddof);
                let var = own.b[cell] / freedom;
                let root = matches!(self.operation, Operation::Std { .. });
                column.push_float((some && freedom > 0.0).then(|| if root { var.sqrt() } else { var }));
            }
            Operation::Product if float => column.push_float(some.then(|| own.a[cell])),
            Operation::Product => {
                let exact = own.integer_product(cell);
                column.inexact |= some
                    && exact
                        .is_none_or(|exact| i64::try_from(exact).is_err() && u64::try_from(exact).is_err());
                column.floats.push(if some {
                    exact.map_or(own.a[cell], |exact| exact as f64)
                } else {
                    f64::NAN
                });
                column.push_integer(some.then(|| exact.unwrap_or(0)));
            }
            Operation::NormL1 if float => column.push_float(some.then(|| own.sum(cell))),
            Operation::NormL1 => column.push_integer(some.then(|| own.i[cell])),
            Operation::NormL2 => column.push_float(some.then(|| own.sum(cell).sqrt())),
            Operation::ArgMin | Operation::ArgMax => {
                let at = own.u[cell];
                column.push_integer((some && at != u64::MAX).then_some(at.into()));
            }
            Operation::Median => column.push_float(order::quantile(own, cell, 0.5, self.key_kind())),
            Operation::Quantile(q) => column.push_float(order::quantile(own, cell, q, self.key_kind())),
            Operation::Histogram { bins, .. } => {
                for bin in 0..bins {
                    column.push_integer(Some(own.u[cell * bins + bin].into()));
                }
            }
            _ => {
                let [nan, inf, null] = [own.u[cell * 3], own.u[cell * 3 + 1], own.u[cell * 3 + 2]];
                let value = match self.operation {
                    Operation::AllFinite => u64::from(nan + inf == 0),
                    Operation::AnyNan => u64::from(nan > 0),
                    Operation::AnyInf => u64::from(inf > 0),
                    Operation::NanCount => nan,
                    Operation::InfCount => inf,
                    _ if self.decoded => null + nan,
                    _ => null,
                };
                column.push_integer(enough.then_some(value.into()));
            }
        }
    }
}

/// The mean of integers with this sum, without losing what a float of the sum would.
fn mean(sum: i128, n: u64) -> f64 {
    let n = i128::from(n);
    (sum / n) as f64 + (sum % n) as f64 / n as f64
}
