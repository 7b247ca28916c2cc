//! The mean and the squared deviations from it, for variances and standard deviations.

use serde::{Deserialize, Serialize};

use super::{CellContext, Column, Fold, Operand, Operation};
use crate::query::kernels::block_sum;
use crate::query::operand::BLOCK;
use crate::query::serial;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::query) struct Moments {
    #[serde(with = "serial::floats")]
    counts: Vec<f64>,
    #[serde(with = "serial::floats")]
    means: Vec<f64>,
    #[serde(with = "serial::floats")]
    deviations: Vec<f64>,
}

impl Moments {
    /// Folds values given by their count, mean and squared deviations.
    fn join(&mut self, cell: usize, count: f64, mean: f64, deviations: f64) {
        if count == 0.0 {
            return;
        }
        let own = self.counts[cell];
        let all = own + count;
        let delta = mean - self.means[cell];
        self.means[cell] += delta * (count / all);
        self.deviations[cell] += deviations + delta * delta * (own * (count / all));
        self.counts[cell] = all;
    }
}

impl Fold for Moments {
    fn sized(&self, cells: usize) -> Self {
        let zeros = || vec![0.0; cells];
        Self { counts: zeros(), means: zeros(), deviations: zeros() }
    }

    fn bytes(&self) -> (u64, u64) {
        (24, 0)
    }

    fn one<T: Operand>(&mut self, cell: usize, value: T, _: u64) {
        self.join(cell, 1.0, value.to_f64(), 0.0);
    }

    fn repeat<T: Operand>(&mut self, cell: usize, value: T, count: u64) {
        self.join(cell, count as f64, value.to_f64(), 0.0);
    }

    fn run<T: Operand>(&mut self, cell: usize, values: &[T]) {
        for block in values.chunks(BLOCK) {
            let count = block.len() as f64;
            let mean = block_sum(block, |value| value) / count;
            let deviations = block_sum(block, |value| (value - mean) * (value - mean));
            self.join(cell, count, mean, deviations);
        }
    }

    fn row<T: Operand>(&mut self, cell: usize, values: &[T]) {
        let cells = cell..cell + values.len();
        let (means, deviations) = (&mut self.means[cells.clone()], &mut self.deviations[cells.clone()]);
        let own = self.counts[cells].iter_mut().zip(means).zip(deviations);
        for (((count, mean), deviations), value) in own.zip(values) {
            *count += 1.0;
            let delta = value.to_f64() - *mean;
            *mean += delta / *count;
            *deviations += delta * (value.to_f64() - *mean);
        }
    }

    fn merge_cell(&mut self, to: usize, other: &Self, from: usize) {
        self.join(to, other.counts[from], other.means[from], other.deviations[from]);
    }

    fn copy_cell(&mut self, to: usize, other: &Self, from: usize) {
        (self.counts[to], self.means[to]) = (other.counts[from], other.means[from]);
        self.deviations[to] = other.deviations[from];
    }

    fn finish(&mut self, cell: usize, context: &CellContext, column: &mut Column) {
        let (Operation::Var { ddof } | Operation::Std { ddof }) = context.operation else {
            return column.push_float(None);
        };
        let freedom = self.counts[cell] - f64::from(ddof);
        let var = self.deviations[cell] / freedom;
        let root = matches!(context.operation, Operation::Std { .. });
        let known = context.some() && freedom > 0.0;
        column.push_float(known.then(|| if root { var.sqrt() } else { var }));
    }
}
