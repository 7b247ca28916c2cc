//! The smallest and the largest value.

use std::fmt::Debug;
use std::marker::PhantomData;

use hyperslab_core::{ChunkStatistics, Number};
use serde::{Deserialize, Serialize};

use super::{CellContext, Column, Fold, Operand};
use crate::query::kernels::block_extreme;
use crate::query::serial;

/// The extreme to find.
pub(in crate::query) trait End: Debug + Clone + Default + PartialEq {
    /// The starting value, which every value is at least as good as.
    const FLOAT: f64;
    const INTEGER: i128;
    /// The key that makes NaN win.
    const NAN_KEY: Option<i128>;

    fn worst<T: Operand>() -> T;
    fn better<T: PartialOrd>(a: &T, b: &T) -> bool;
    /// The extreme given by a chunk's statistics, or a bound of it.
    fn known(known: &ChunkStatistics) -> Option<Number>;
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::query) struct Smallest;

impl End for Smallest {
    const FLOAT: f64 = f64::INFINITY;
    const INTEGER: i128 = i128::MAX;
    const NAN_KEY: Option<i128> = Some(-1);

    fn worst<T: Operand>() -> T {
        T::HIGH
    }
    #[inline(always)]
    fn better<T: PartialOrd>(a: &T, b: &T) -> bool {
        a < b
    }
    fn known(known: &ChunkStatistics) -> Option<Number> {
        known.min
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::query) struct Largest;

impl End for Largest {
    const FLOAT: f64 = f64::NEG_INFINITY;
    const INTEGER: i128 = i128::MIN;
    // The key of NaN is already the largest.
    const NAN_KEY: Option<i128> = None;

    fn worst<T: Operand>() -> T {
        T::LOW
    }
    #[inline(always)]
    fn better<T: PartialOrd>(a: &T, b: &T) -> bool {
        a > b
    }
    fn known(known: &ChunkStatistics) -> Option<Number> {
        known.max
    }
}

/// The extreme of floats, and the number of NaNs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub(in crate::query) struct FloatExtreme<E> {
    #[serde(with = "serial::floats")]
    best: Vec<f64>,
    nans: Vec<u64>,
    end: PhantomData<E>,
}

impl<E: End> FloatExtreme<E> {
    fn join(&mut self, cell: usize, best: f64, nans: u64) {
        if E::better(&best, &self.best[cell]) {
            self.best[cell] = best;
        }
        self.nans[cell] += nans;
    }
}

impl<E: End> Fold for FloatExtreme<E> {
    fn sized(&self, cells: usize) -> Self {
        Self { best: vec![E::FLOAT; cells], nans: vec![0; cells], end: PhantomData }
    }

    fn bytes(&self) -> (u64, u64) {
        (16, 0)
    }

    fn one<T: Operand>(&mut self, cell: usize, value: T, _: u64) {
        self.repeat(cell, value, 1);
    }

    fn repeat<T: Operand>(&mut self, cell: usize, value: T, count: u64) {
        // NaN is better than no value.
        self.join(cell, value.to_f64(), if value.is_nan() { count } else { 0 });
    }

    fn run<T: Operand>(&mut self, cell: usize, values: &[T]) {
        let (best, nans) = block_extreme(values, E::worst(), |a, b| E::better(&a, &b));
        self.join(cell, best.to_f64(), nans);
    }

    fn row<T: Operand>(&mut self, cell: usize, values: &[T]) {
        let cells = cell..cell + values.len();
        let nans = &mut self.nans[cells.clone()];
        for ((best, nan), value) in self.best[cells].iter_mut().zip(nans).zip(values) {
            let value = value.to_f64();
            *best = if E::better(&value, best) { value } else { *best };
            *nan += u64::from(value.is_nan());
        }
    }

    fn merge_cell(&mut self, to: usize, other: &Self, from: usize) {
        self.join(to, other.best[from], other.nans[from]);
    }

    fn copy_cell(&mut self, to: usize, other: &Self, from: usize) {
        (self.best[to], self.nans[to]) = (other.best[from], other.nans[from]);
    }

    fn exact_statistic(known: &ChunkStatistics) -> Option<Number> {
        E::known(known)
    }

    fn fold_statistic(&mut self, statistic: Number) {
        if let Number::Float(best) = statistic {
            self.join(0, best, 0);
        }
    }

    fn is_settled(&self, known: &ChunkStatistics) -> bool {
        let Some(Number::Float(bound)) = E::known(known) else { return false };
        self.best.first().is_some_and(|best| bound == *best || E::better(best, &bound))
    }

    fn finish(&mut self, cell: usize, context: &CellContext, column: &mut Column) {
        let nans = self.nans[cell];
        // -0 becomes 0.
        let value = if nans > 0 && !context.skip_nan { f64::NAN } else { self.best[cell] + 0.0 };
        column.push_float((context.some() && (nans < context.count || !context.skip_nan)).then_some(value));
    }
}

/// The extreme of integers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub(in crate::query) struct IntegerExtreme<E> {
    #[serde(with = "serial::integers")]
    best: Vec<i128>,
    end: PhantomData<E>,
}

impl<E: End> IntegerExtreme<E> {
    fn join(&mut self, cell: usize, best: i128) {
        if E::better(&best, &self.best[cell]) {
            self.best[cell] = best;
        }
    }
}

impl<E: End> Fold for IntegerExtreme<E> {
    fn sized(&self, cells: usize) -> Self {
        Self { best: vec![E::INTEGER; cells], end: PhantomData }
    }

    fn bytes(&self) -> (u64, u64) {
        (16, 0)
    }

    fn one<T: Operand>(&mut self, cell: usize, value: T, _: u64) {
        self.join(cell, value.to_i128());
    }

    fn repeat<T: Operand>(&mut self, cell: usize, value: T, _: u64) {
        self.join(cell, value.to_i128());
    }

    fn run<T: Operand>(&mut self, cell: usize, values: &[T]) {
        let (best, _) = block_extreme(values, E::worst(), |a, b| E::better(&a, &b));
        self.join(cell, best.to_i128());
    }

    fn merge_cell(&mut self, to: usize, other: &Self, from: usize) {
        self.join(to, other.best[from]);
    }

    fn copy_cell(&mut self, to: usize, other: &Self, from: usize) {
        self.best[to] = other.best[from];
    }

    fn exact_statistic(known: &ChunkStatistics) -> Option<Number> {
        E::known(known)
    }

    fn fold_statistic(&mut self, statistic: Number) {
        if let Number::Integer(best) = statistic {
            self.join(0, best);
        }
    }

    fn is_settled(&self, known: &ChunkStatistics) -> bool {
        let Some(Number::Integer(bound)) = E::known(known) else { return false };
        self.best.first().is_some_and(|best| !E::better(&bound, best))
    }

    fn finish(&mut self, cell: usize, context: &CellContext, column: &mut Column) {
        column.push_integer(context.some().then_some(self.best[cell]));
    }
}
