//! The number of values that are NaN, infinite or missing.

use serde::{Deserialize, Serialize};

use super::{CellContext, Column, Fold, Operand, Operation};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::query) struct Tally {
    /// The bits of the missing-value markers.
    markers: Vec<u64>,
    nans: Vec<u64>,
    infinite: Vec<u64>,
    missing: Vec<u64>,
}

impl Tally {
    pub(in crate::query) fn new(markers: Vec<u64>) -> Self {
        Self { markers, ..Self::default() }
    }
}

impl Fold for Tally {
    fn sized(&self, cells: usize) -> Self {
        let zeros = || vec![0; cells];
        Self { markers: self.markers.clone(), nans: zeros(), infinite: zeros(), missing: zeros() }
    }

    fn bytes(&self) -> (u64, u64) {
        (24, 0)
    }

    fn one<T: Operand>(&mut self, cell: usize, value: T, _: u64) {
        self.repeat(cell, value, 1);
    }

    fn repeat<T: Operand>(&mut self, cell: usize, value: T, count: u64) {
        self.nans[cell] += count * u64::from(value.is_nan());
        self.infinite[cell] += count * u64::from(T::FLOAT && value.to_f64().is_infinite());
        self.missing[cell] += count * u64::from(self.markers.contains(&value.bits()));
    }

    fn merge_cell(&mut self, to: usize, other: &Self, from: usize) {
        self.nans[to] += other.nans[from];
        self.infinite[to] += other.infinite[from];
        self.missing[to] += other.missing[from];
    }

    fn copy_cell(&mut self, to: usize, other: &Self, from: usize) {
        (self.nans[to], self.infinite[to]) = (other.nans[from], other.infinite[from]);
        self.missing[to] = other.missing[from];
    }

    fn missing(&mut self, cell: usize, count: u64) {
        self.missing[cell] += count;
    }

    fn finish(&mut self, cell: usize, context: &CellContext, column: &mut Column) {
        let (nans, infinite) = (self.nans[cell], self.infinite[cell]);
        let value = match context.operation {
            Operation::AllFinite => u64::from(nans == 0 && infinite == 0),
            Operation::AnyNan => u64::from(nans > 0),
            Operation::AnyInf => u64::from(infinite > 0),
            Operation::NanCount => nans,
            Operation::InfCount => infinite,
            _ => self.missing[cell] + if context.decoded { nans } else { 0 },
        };
        column.push_integer(context.enough.then_some(value.into()));
    }
}
