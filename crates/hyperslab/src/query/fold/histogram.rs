//! Counts in bins of equal width.

use serde::{Deserialize, Serialize};

use super::{CellContext, Column, Fold, Operand};
use crate::query::kernels::{add_counts, bin_of};
use crate::query::serial;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::query) struct Histogram {
    bins: usize,
    #[serde(with = "serial::floats")]
    range: Vec<f64>,
    clamp: bool,
    counts: Vec<u64>,
}

impl Histogram {
    pub(in crate::query) fn new(bins: usize, (low, high): (f64, f64), clamp: bool) -> Self {
        Self { bins, range: vec![low, high], clamp, counts: Vec::new() }
    }
}

impl Fold for Histogram {
    fn sized(&self, cells: usize) -> Self {
        Self { range: self.range.clone(), counts: vec![0; cells * self.bins], ..*self }
    }

    fn bytes(&self) -> (u64, u64) {
        (self.bins as u64 * 8, 0)
    }

    fn one<T: Operand>(&mut self, cell: usize, value: T, _: u64) {
        self.repeat(cell, value, 1);
    }

    fn repeat<T: Operand>(&mut self, cell: usize, value: T, count: u64) {
        if let Some(bin) = bin_of(value.to_f64(), self.bins, self.range[0], self.range[1], self.clamp) {
            self.counts[cell * self.bins + bin] += count;
        }
    }

    fn merge_cell(&mut self, to: usize, other: &Self, from: usize) {
        let each = self.bins;
        add_counts(
            &mut self.counts[to * each..(to + 1) * each],
            &other.counts[from * each..(from + 1) * each],
        );
    }

    fn copy_cell(&mut self, to: usize, other: &Self, from: usize) {
        let each = self.bins;
        self.counts[to * each..(to + 1) * each]
            .copy_from_slice(&other.counts[from * each..(from + 1) * each]);
    }

    fn finish(&mut self, cell: usize, _: &CellContext, column: &mut Column) {
        for count in &self.counts[cell * self.bins..(cell + 1) * self.bins] {
            column.push_integer(Some((*count).into()));
        }
    }
}
