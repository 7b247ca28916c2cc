//! The selection of a regular hyperslab along one axis.

use crate::selection::{Slab, UNLIMITED};

/// The first `length` cells that a slab selects along an axis, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    slab: Slab,
    /// The number of cells.
    pub(crate) length: u64,
}

/// Equally spaced cells: number `first` of the selection and the following ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// The cell of `first`.
    pub(crate) cell: u64,
    pub(crate) step: u64,
}

impl Axis {
    /// All cells below `extent`.
    pub(crate) const fn whole(extent: u64) -> Self {
        Self { slab: Slab { start: 0, stride: 1, count: 1, block: extent }, length: extent }
    }

    /// A slab. An unlimited one ends at `extent`.
    pub(crate) fn new(slab: Slab, extent: u64) -> Self {
        let slab = Slab { stride: slab.stride.max(1), ..slab };
        let length = if slab.block == UNLIMITED {
            extent.saturating_sub(slab.start)
        } else if slab.count == UNLIMITED {
            let room = extent.saturating_sub(slab.start);
            (room / slab.stride)
                .saturating_mul(slab.block)
                .saturating_add((room % slab.stride).min(slab.block))
        } else {
            slab.count.saturating_mul(slab.block)
        };
        Self { slab, length }
    }

    /// The same slab with this many cells.
    pub(crate) const fn with_length(self, length: u64) -> Self {
        Self { length, ..self }
    }

    /// The length of runs of equally spaced cells in the slab; a single run if possible.
    const fn run_length(self) -> u64 {
        let Slab { stride, count, block, .. } = self.slab;
        if count == 1 || block == 1 || block == UNLIMITED || block == stride { UNLIMITED } else { block }
    }

    fn step(self) -> u64 {
        if self.slab.block == 1 && self.slab.count != 1 { self.slab.stride } else { 1 }
    }

    /// The cell of selected number `number`.
    pub(crate) fn cell(self, number: u64) -> u64 {
        let Slab { start, stride, block, .. } = self.slab;
        if self.run_length() == UNLIMITED {
            return start.saturating_add(number.saturating_mul(self.step()));
        }
        let block = block.max(1);
        start.saturating_add((number / block).saturating_mul(stride)).saturating_add(number % block)
    }

    /// The end of the last cell, exclusive.
    pub(crate) fn end(self) -> u64 {
        if self.length == 0 { 0 } else { self.cell(self.length - 1).saturating_add(1) }
    }

    /// The number of selected cells below `cell`.
    pub(crate) fn below(self, cell: u64) -> u64 {
        let Slab { start, stride, block, .. } = self.slab;
        let room = cell.saturating_sub(start);
        let count = if self.run_length() == UNLIMITED {
            room.div_ceil(self.step())
        } else {
            (room / stride).saturating_mul(block).saturating_add((room % stride).min(block))
        };
        count.min(self.length)
    }

    /// The run that starts at selected number `first` and ends before `end`.
    pub(crate) fn run(self, first: u64, end: u64) -> Run {
        let (length, end) = (self.run_length(), end.min(self.length));
        let last = if length == UNLIMITED {
            end
        } else {
            (first / length.max(1) + 1).saturating_mul(length).min(end)
        };
        Run { first, count: last.saturating_sub(first), cell: self.cell(first), step: self.step() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The cells of a slab, one by one.
    fn cells(slab: Slab) -> Vec<u64> {
        (0..slab.count).flat_map(|i| (0..slab.block).map(move |j| slab.start + i * slab.stride + j)).collect()
    }

    proptest! {
        #[test]
        fn axes_match_a_cell_by_cell_walk(
            start in 0_u64..9, block in 1_u64..5, gap in 0_u64..4, count in 1_u64..6, pick in 0_u64..60
        ) {
            let slab = Slab { start, stride: block + gap, count, block };
            let (axis, cells) = (Axis::new(slab, 1000), cells(slab));
            prop_assert_eq!(axis.length, cells.len() as u64);
            prop_assert_eq!(axis.end(), cells.last().unwrap() + 1);
            prop_assert_eq!(axis.below(pick), cells.iter().filter(|cell| **cell < pick).count() as u64);
            let (mut next, mut walked) = (0, Vec::new());
            while next < axis.length {
                let run = axis.run(next, axis.length);
                walked.extend((0..run.count).map(|i| run.cell + i * run.step));
                next += run.count;
            }
            prop_assert_eq!(walked, cells);
        }

        #[test]
        fn unlimited_counts_end_at_the_extent(
            start in 0_u64..9, block in 1_u64..5, gap in 0_u64..4, extent in 0_u64..50
        ) {
            let slab = Slab { start, stride: block + gap, count: UNLIMITED, block };
            let finite = cells(Slab { count: 60, ..slab });
            let expected = finite.iter().filter(|cell| **cell < extent).count() as u64;
            prop_assert_eq!(Axis::new(slab, extent).length, expected);
        }
    }
}
