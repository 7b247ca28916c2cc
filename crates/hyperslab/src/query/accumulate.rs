//! A fold for the cells of a tile, with the counts that every reduction needs.

use serde::{Deserialize, Serialize};

use super::fold::AnyFold;
use super::kernels::Rows;
use super::operand::Operand;

/// The state for each cell of a tile of the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Accumulator {
    pub(super) fold: AnyFold,
    pub(super) cells: usize,
    /// The number of values folded into each cell, if not implied by the geometry.
    pub(super) counts: Vec<u64>,
    /// The number of wanted values that were never written, per cell; empty if all were written. Modulo 2^64 until all parts are
    /// merged.
    pub(super) unwritten: Vec<u64>,
}

impl Accumulator {
    /// A reduction for this many cells, without values.
    pub(super) fn new(fold: &AnyFold, cells: usize, counted: bool) -> Self {
        let counts = if counted { vec![0; cells] } else { Vec::new() };
        Self { fold: fold.sized(cells), cells, counts, unwritten: Vec::new() }
    }

    /// The approximate size in bytes of an accumulator of this many cells and values.
    pub(super) fn bytes(fold: &AnyFold, cells: u64, values: u64, counted: bool) -> u64 {
        let (cell, value) = fold.bytes();
        let counts = if counted { 8 } else { 0 };
        cells.saturating_mul(cell + counts).saturating_add(values.saturating_mul(value))
    }

    fn count(&mut self, cell: usize, values: u64) {
        if let Some(count) = self.counts.get_mut(cell) {
            *count += values;
        }
    }

    fn count_row(&mut self, cell: usize, length: usize, values: u64) {
        if !self.counts.is_empty() {
            self.counts[cell..cell + length].iter_mut().for_each(|count| *count += values);
        }
    }

    /// As [`Fold::run`](super::fold::Fold::run); likewise the following methods.
    pub(super) fn run<T: Operand>(&mut self, cell: usize, values: &[T]) {
        self.count(cell, values.len() as u64);
        self.fold.run(cell, values);
    }

    pub(super) fn row<T: Operand>(&mut self, cell: usize, values: &[T]) {
        self.count_row(cell, values.len(), 1);
        self.fold.row(cell, values);
    }

    pub(super) fn rows<T: Operand>(&mut self, cell: usize, rows: Rows<'_, T>) {
        self.count_row(cell, rows.length, rows.iter().count() as u64);
        self.fold.rows(cell, rows);
    }

    pub(super) fn runs<T: Operand>(&mut self, cell: usize, far: usize, rows: Rows<'_, T>) {
        if !self.counts.is_empty() {
            let cells = (cell..).step_by(far.max(1));
            rows.iter().zip(cells).for_each(|(row, cell)| self.counts[cell] += row.len() as u64);
        }
        self.fold.runs(cell, far, rows);
    }

    pub(super) fn one<T: Operand>(&mut self, cell: usize, value: T, index: u64) {
        self.count(cell, 1);
        self.fold.one(cell, value, index);
    }

    /// Notes missing elements, and counts them as values if `counted`.
    pub(super) fn missing(&mut self, cell: usize, count: u64, counted: bool) {
        self.fold.missing(cell, count);
        if counted {
            self.count(cell, count);
        }
    }

    /// Folds the same value many times. An indexed reduction must have received its position before.
    pub(super) fn repeat<T: Operand>(&mut self, cell: usize, value: T, count: u64) {
        self.count(cell, count);
        self.fold.repeat(cell, value, count);
    }

    /// Counts values that were never written.
    pub(super) fn add_unwritten(&mut self, cell: usize, count: u64) {
        self.unwritten.resize(self.cells, 0);
        self.unwritten[cell] = self.unwritten[cell].wrapping_add(count);
    }

    /// Folds cell `from` of another accumulator into cell `to`.
    pub(super) fn merge_cell(&mut self, to: usize, other: &Self, from: usize) {
        self.count(to, other.counts.get(from).copied().unwrap_or(0));
        self.fold.merge_cell(to, &other.fold, from);
    }

    /// Like `clone_from`, for one cell.
    pub(super) fn copy_cell(&mut self, to: usize, other: &Self, from: usize) {
        if let (Some(count), Some(own)) = (self.counts.get_mut(to), other.counts.get(from)) {
            *count = *own;
        }
        self.fold.copy_cell(to, &other.fold, from);
    }

    /// Merges an accumulator of the same cells that comes after this one.
    pub(super) fn merge(&mut self, other: &Self) {
        if !other.unwritten.is_empty() {
            self.unwritten.resize(self.cells, 0);
            for (own, more) in self.unwritten.iter_mut().zip(&other.unwritten) {
                *own = own.wrapping_add(*more);
            }
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, more)| *own += more);
        self.fold.merge(&other.fold, self.cells.min(other.cells));
    }
}
