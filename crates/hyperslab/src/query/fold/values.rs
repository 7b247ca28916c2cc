//! All values, as keys: medians and quantiles of values that fit in memory.

use serde::{Deserialize, Serialize};

use super::{CellContext, Column, Fold, Operand, Operation};
use crate::query::order;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::query) struct Values {
    skip_nan: bool,
    keys: Vec<Vec<u64>>,
}

impl Values {
    pub(in crate::query) const fn new(skip_nan: bool) -> Self {
        Self { skip_nan, keys: Vec::new() }
    }
}

impl Fold for Values {
    fn sized(&self, cells: usize) -> Self {
        Self { skip_nan: self.skip_nan, keys: vec![Vec::new(); cells] }
    }

    fn bytes(&self) -> (u64, u64) {
        (24, 12)
    }

    fn one<T: Operand>(&mut self, cell: usize, value: T, _: u64) {
        if !(self.skip_nan && value.is_nan()) {
            self.keys[cell].push(value.key());
        }
    }

    fn repeat<T: Operand>(&mut self, cell: usize, value: T, count: u64) {
        if !(self.skip_nan && value.is_nan()) {
            let keys = &mut self.keys[cell];
            keys.resize(keys.len() + count as usize, value.key());
        }
    }

    fn merge_cell(&mut self, to: usize, other: &Self, from: usize) {
        self.keys[to].extend_from_slice(&other.keys[from]);
    }

    fn copy_cell(&mut self, to: usize, other: &Self, from: usize) {
        self.keys[to].clone_from(&other.keys[from]);
    }

    fn finish(&mut self, cell: usize, context: &CellContext, column: &mut Column) {
        let share = if let Operation::Quantile(share) = context.operation { share } else { 0.5 };
        let keys = &mut self.keys[cell];
        let quantile = order::quantile(keys, share, context.key);
        order::Quantile::push(quantile, context.key, context.whole, column);
    }
}
