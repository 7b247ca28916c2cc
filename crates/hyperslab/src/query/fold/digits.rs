//! One pass of the search for order statistics by the digits of their keys: counts how often each digit follows a prefix.

use serde::{Deserialize, Serialize};

use super::{CellContext, Column, Fold, Operand};
use crate::query::kernels::add_counts;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::query) struct Digits {
    /// The digit's lowest bit in the key.
    pub(in crate::query) shift: u32,
    /// The number of bits of the digit.
    pub(in crate::query) bits: u32,
    /// The bits above the digit: two prefixes per cell of the whole result.
    pub(in crate::query) prefixes: Vec<[u64; 2]>,
    pub(in crate::query) skip_nan: bool,
    /// The position of each cell among all cells of the result.
    pub(in crate::query) places: Vec<u64>,
    /// Per cell, prefix and digit.
    pub(in crate::query) counts: Vec<u64>,
}

impl Digits {
    pub(in crate::query) const fn radix(&self) -> usize {
        1 << self.bits
    }
}

impl Fold for Digits {
    fn sized(&self, cells: usize) -> Self {
        let counts = vec![0; cells * 2 * self.radix()];
        Self { prefixes: self.prefixes.clone(), places: Vec::new(), counts, ..*self }
    }

    fn bytes(&self) -> (u64, u64) {
        (16 << self.bits, 0)
    }

    fn one<T: Operand>(&mut self, cell: usize, value: T, _: u64) {
        self.repeat(cell, value, 1);
    }

    fn repeat<T: Operand>(&mut self, cell: usize, value: T, count: u64) {
        if self.skip_nan && value.is_nan() {
            return;
        }
        let (key, radix) = (value.key(), self.radix());
        let above = key.checked_shr(self.shift + self.bits).unwrap_or(0);
        let digit = (key >> self.shift) as usize & (radix - 1);
        for (which, prefix) in self.prefixes[self.places[cell] as usize].into_iter().enumerate() {
            if prefix == above {
                self.counts[(cell * 2 + which) * radix + digit] += count;
            }
        }
    }

    fn merge_cell(&mut self, to: usize, other: &Self, from: usize) {
        let each = 2 * self.radix();
        add_counts(
            &mut self.counts[to * each..(to + 1) * each],
            &other.counts[from * each..(from + 1) * each],
        );
    }

    fn copy_cell(&mut self, to: usize, other: &Self, from: usize) {
        let each = 2 * self.radix();
        self.counts[to * each..(to + 1) * each]
            .copy_from_slice(&other.counts[from * each..(from + 1) * each]);
    }

    /// The counts are used as they are.
    fn finish(&mut self, _: usize, _: &CellContext, column: &mut Column) {
        column.push_float(None);
    }
}
