//! Reductions: the state of each cell, how values are folded into it, and how partial results are merged.
//!
//! A reduction is one type in its own module, behind the trait [`Fold`]: its state for the cells of a tile, its kernels, its
//! merge and its answers. Kernels are generic over the element type, so [`AnyFold`] dispatches once per run of values and never
//! per value. A new reduction needs its module, a variant here and a row in the table of [`operations`](super::operations).
//!
//! Floats are summed in blocks, and the sums of blocks are added with compensation (`float32` in `float64`). Integers are summed
//! exactly.

mod arg;
mod count;
mod digits;
mod extreme;
mod histogram;
mod moments;
mod product;
mod sum;
mod tally;
mod values;

use hyperslab_core::{ChunkStatistics, Number};
use serde::{Deserialize, Serialize};

pub(super) use arg::Arg;
pub(super) use count::Count;
pub(super) use digits::Digits;
pub(super) use extreme::{FloatExtreme, IntegerExtreme, Largest, Smallest};
pub(super) use histogram::Histogram;
pub(super) use moments::Moments;
pub(super) use product::{FloatProduct, IntegerProduct};
pub(super) use sum::{FloatSum, IntegerSum, Itself, Magnitude, Square};
pub(super) use tally::Tally;
pub(super) use values::Values;

use super::Operation;
use super::answer::Column;
use super::kernels::Rows;
use super::operand::{KeyKind, Operand};

/// A reduction: its state for the cells of a tile. The folds of two neighbouring parts merge into the fold of both.
pub(super) trait Fold: Sized {
    /// Whether it needs the positions of values.
    const INDEXED: bool = false;

    /// The same reduction for this many cells, without values.
    fn sized(&self, cells: usize) -> Self;

    /// The approximate number of bytes per cell, and per value in it.
    fn bytes(&self) -> (u64, u64);

    /// Folds one value into a cell. `index` is its position among all values of the cell.
    fn one<T: Operand>(&mut self, cell: usize, value: T, index: u64);

    /// Folds the same value `count` times into a cell. Does nothing for an indexed reduction, which received the value once.
    fn repeat<T: Operand>(&mut self, cell: usize, value: T, count: u64);

    /// Folds many values into one cell.
    fn run<T: Operand>(&mut self, cell: usize, values: &[T]) {
        values.iter().for_each(|value| self.one(cell, *value, 0));
    }

    /// Folds value `i` into cell `cell + i`.
    fn row<T: Operand>(&mut self, cell: usize, values: &[T]) {
        (cell..).zip(values).for_each(|(cell, value)| self.one(cell, *value, 0));
    }

    /// Folds value `i` of each row into cell `cell + i`.
    fn rows<T: Operand>(&mut self, cell: usize, rows: Rows<'_, T>) {
        rows.iter().for_each(|row| self.row(cell, row));
    }

    /// Folds each row, at most a block long, into one cell: the first into `cell`, the next `far` cells on.
    fn runs<T: Operand>(&mut self, cell: usize, far: usize, rows: Rows<'_, T>) {
        rows.iter().enumerate().for_each(|(number, row)| self.run(cell + number * far, row));
    }

    /// Merges cell `from` of a fold that comes after this one into cell `to`.
    fn merge_cell(&mut self, to: usize, other: &Self, from: usize);

    /// Merges a fold of this many cells that comes after this one.
    fn merge(&mut self, other: &Self, cells: usize) {
        (0..cells).for_each(|cell| self.merge_cell(cell, other, cell));
    }

    /// Like `clone_from`, for one cell.
    fn copy_cell(&mut self, to: usize, other: &Self, from: usize);

    /// The statistic of a chunk that can replace its values, if there is one.
    fn exact_statistic(_: &ChunkStatistics) -> Option<Number> {
        None
    }

    /// Folds the result of [`exact_statistic`](Self::exact_statistic) into the first cell.
    fn fold_statistic(&mut self, _: Number) {}

    /// Returns true if no value of a chunk with these statistics can change the first cell.
    fn is_settled(&self, _: &ChunkStatistics) -> bool {
        false
    }

    /// Counts missing elements, which no other method sees.
    fn missing(&mut self, _cell: usize, _count: u64) {}

    /// Appends the answer of a cell.
    fn finish(&mut self, cell: usize, context: &CellContext, column: &mut Column);
}

/// Facts about a cell that its answer depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct CellContext {
    pub(super) operation: Operation,
    /// The number of values in the cell.
    pub(super) count: u64,
    /// Whether there are as many as a window requires.
    pub(super) enough: bool,
    pub(super) skip_nan: bool,
    /// Whether NaN marks a missing value.
    pub(super) decoded: bool,
    /// Whether means and quantiles are rounded to integers.
    pub(super) whole: bool,
    pub(super) key: KeyKind,
}

impl CellContext {
    /// Returns true if there are values, and enough of them.
    pub(super) const fn some(&self) -> bool {
        self.count > 0 && self.enough
    }
}

/// Defines one type for all reductions, with its dispatch.
macro_rules! reductions {
    (($d:tt) $($variant:ident($type:ty),)*) => {
        /// Any of the reductions.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub(super) enum AnyFold {
            $($variant($type),)*
        }

        impl AnyFold {
            /// The same reduction for this many cells, without values.
            pub(super) fn sized(&self, cells: usize) -> Self {
                match self { $(Self::$variant(fold) => Self::$variant(fold.sized(cells)),)* }
            }
        }

        /// Runs an expression with the concrete reduction.
        macro_rules! with_fold {
            ($d any:expr, $d fold:ident => $d work:expr) => {
                match $d any { $(AnyFold::$variant($d fold) => $d work,)* }
            };
        }

        /// Runs an expression with two folds of the same reduction. Only folds of one plan are merged, so the types always match.
        macro_rules! with_both {
            ($d own:ident, $d other:ident => $d work:expr) => {
                match ($d own, $d other) {
                    $((AnyFold::$variant($d own), AnyFold::$variant($d other)) => $d work,)*
                    _ => {}
                }
            };
        }
    };
}

reductions! {
    ($)
    Count(Count),
    Sum(FloatSum<Itself>),
    L1(FloatSum<Magnitude>),
    L2(FloatSum<Square>),
    IntegerSum(IntegerSum<Itself>),
    IntegerL1(IntegerSum<Magnitude>),
    Moments(Moments),
    Min(FloatExtreme<Smallest>),
    Max(FloatExtreme<Largest>),
    IntegerMin(IntegerExtreme<Smallest>),
    IntegerMax(IntegerExtreme<Largest>),
    Product(FloatProduct),
    IntegerProduct(IntegerProduct),
    ArgMin(Arg<Smallest>),
    ArgMax(Arg<Largest>),
    Values(Values),
    Digits(Digits),
    Histogram(Histogram),
    Tally(Tally),
}

impl AnyFold {
    pub(super) fn bytes(&self) -> (u64, u64) {
        with_fold!(self, fold => fold.bytes())
    }

    pub(super) fn is_indexed(&self) -> bool {
        fn indexed<F: Fold>(_: &F) -> bool {
            F::INDEXED
        }
        with_fold!(self, fold => indexed(fold))
    }

    pub(super) fn one<T: Operand>(&mut self, cell: usize, value: T, index: u64) {
        with_fold!(self, fold => fold.one(cell, value, index));
    }

    pub(super) fn repeat<T: Operand>(&mut self, cell: usize, value: T, count: u64) {
        with_fold!(self, fold => fold.repeat(cell, value, count));
    }

    pub(super) fn run<T: Operand>(&mut self, cell: usize, values: &[T]) {
        with_fold!(self, fold => fold.run(cell, values));
    }

    pub(super) fn row<T: Operand>(&mut self, cell: usize, values: &[T]) {
        with_fold!(self, fold => fold.row(cell, values));
    }

    /// Folds value `i` into cell `cells[i]`.
    pub(super) fn scatter<T: Operand>(&mut self, cells: &[u32], values: &[T]) {
        fn each<F: Fold, T: Operand>(fold: &mut F, cells: &[u32], values: &[T]) {
            for (cell, value) in cells.iter().zip(values) {
                fold.one(*cell as usize, *value, 0);
            }
        }
        with_fold!(self, fold => each(fold, cells, values));
    }

    pub(super) fn rows<T: Operand>(&mut self, cell: usize, rows: Rows<'_, T>) {
        with_fold!(self, fold => fold.rows(cell, rows));
    }

    pub(super) fn runs<T: Operand>(&mut self, cell: usize, far: usize, rows: Rows<'_, T>) {
        with_fold!(self, fold => fold.runs(cell, far, rows));
    }

    pub(super) fn merge_cell(&mut self, to: usize, other: &Self, from: usize) {
        let own = self;
        with_both!(own, other => own.merge_cell(to, other, from));
    }

    pub(super) fn merge(&mut self, other: &Self, cells: usize) {
        let own = self;
        with_both!(own, other => own.merge(other, cells));
    }

    pub(super) fn copy_cell(&mut self, to: usize, other: &Self, from: usize) {
        let own = self;
        with_both!(own, other => own.copy_cell(to, other, from));
    }

    pub(super) fn exact_statistic(&self, known: &ChunkStatistics) -> Option<Number> {
        fn exact_statistic<F: Fold>(_: &F, known: &ChunkStatistics) -> Option<Number> {
            F::exact_statistic(known)
        }
        with_fold!(self, fold => exact_statistic(fold, known))
    }

    /// Returns true if statistics can replace values.
    pub(super) fn uses_statistics(&self) -> bool {
        let number = Some(Number::Integer(0));
        let all = ChunkStatistics { min: number, max: number, sum: number, ..ChunkStatistics::default() };
        self.exact_statistic(&all).is_some()
    }

    pub(super) fn fold_statistic(&mut self, statistic: Number) {
        with_fold!(self, fold => fold.fold_statistic(statistic));
    }

    pub(super) fn is_settled(&self, known: &ChunkStatistics) -> bool {
        with_fold!(self, fold => fold.is_settled(known))
    }

    pub(super) fn missing(&mut self, cell: usize, count: u64) {
        with_fold!(self, fold => fold.missing(cell, count));
    }

    pub(super) fn finish(&mut self, cell: usize, context: &CellContext, column: &mut Column) {
        with_fold!(self, fold => fold.finish(cell, context, column));
    }
}
