//! Sums of values, absolute values and squares, which also give means and norms.

use std::fmt::Debug;
use std::marker::PhantomData;

use hyperslab_core::{ChunkStatistics, Number};
use serde::{Deserialize, Serialize};

use super::{CellContext, Column, Fold, Operand, Operation, Rows};
use crate::query::kernels::{add_each, add_rows, block_sum, two_sum};
use crate::query::operand::BLOCK;
use crate::query::serial;

/// The function of a value that is summed.
pub(in crate::query) trait Summand: Debug + Clone + Default + PartialEq {
    /// Whether it is the value itself.
    const ITSELF: bool = false;

    fn float(value: f64) -> f64;
    fn integer(value: i128) -> i128;
    /// The sum given by a chunk's statistics.
    fn known(_: &ChunkStatistics) -> Option<Number> {
        None
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::query) struct Itself;

impl Summand for Itself {
    const ITSELF: bool = true;

    #[inline(always)]
    fn float(value: f64) -> f64 {
        value
    }
    fn integer(value: i128) -> i128 {
        value
    }
    fn known(known: &ChunkStatistics) -> Option<Number> {
        known.sum
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::query) struct Magnitude;

impl Summand for Magnitude {
    #[inline(always)]
    fn float(value: f64) -> f64 {
        value.abs()
    }
    fn integer(value: i128) -> i128 {
        value.abs()
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::query) struct Square;

impl Summand for Square {
    #[inline(always)]
    fn float(value: f64) -> f64 {
        value * value
    }
    fn integer(value: i128) -> i128 {
        value.saturating_mul(value)
    }
}

/// A sum of floats, with the rounding errors of additions kept separately.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub(in crate::query) struct FloatSum<S> {
    #[serde(with = "serial::floats")]
    sums: Vec<f64>,
    #[serde(with = "serial::floats")]
    rests: Vec<f64>,
    summand: PhantomData<S>,
}

impl<S> FloatSum<S> {
    fn add(&mut self, cell: usize, value: f64) {
        let error;
        (self.sums[cell], error) = two_sum(self.sums[cell], value);
        self.rests[cell] += error;
    }

    fn sum(&self, cell: usize) -> f64 {
        let sum = self.sums[cell];
        // Once a sum is infinite or NaN, its rounding errors are meaningless.
        if sum.is_finite() { sum + self.rests[cell] } else { sum }
    }
}

impl<S: Summand> Fold for FloatSum<S> {
    fn sized(&self, cells: usize) -> Self {
        Self { sums: vec![0.0; cells], rests: vec![0.0; cells], summand: PhantomData }
    }

    fn bytes(&self) -> (u64, u64) {
        (16, 0)
    }

    fn one<T: Operand>(&mut self, cell: usize, value: T, _: u64) {
        self.add(cell, S::float(value.to_f64()));
    }

    fn repeat<T: Operand>(&mut self, cell: usize, value: T, count: u64) {
        let value = S::float(value.to_f64());
        // Either half of the count is exact as a float.
        for half in [count >> 32 << 32, count & 0xffff_ffff].into_iter().filter(|half| *half > 0) {
            let product = half as f64 * value;
            self.add(cell, product);
            self.rests[cell] += (half as f64).mul_add(value, -product);
        }
    }

    fn run<T: Operand>(&mut self, cell: usize, values: &[T]) {
        let (mut sum, mut rest) = (self.sums[cell], self.rests[cell]);
        for block in values.chunks(BLOCK) {
            let error;
            (sum, error) = two_sum(sum, block_sum(block, S::float));
            rest += error;
        }
        (self.sums[cell], self.rests[cell]) = (sum, rest);
    }

    fn row<T: Operand>(&mut self, cell: usize, values: &[T]) {
        if !values.is_empty() {
            self.rows(cell, Rows { values, length: values.len(), each: values.len() });
        }
    }

    /// Several rows are added to each other first, so that each cell is touched once for all of them.
    fn rows<T: Operand>(&mut self, cell: usize, rows: Rows<'_, T>) {
        let cells = cell..cell + rows.length;
        let rests = if T::WIDE { Some(&mut self.rests[cells.clone()]) } else { None };
        add_rows(rows, &mut self.sums[cells], rests, S::float);
    }

    fn runs<T: Operand>(&mut self, cell: usize, far: usize, rows: Rows<'_, T>) {
        add_each(rows, far, &mut self.sums[cell..], &mut self.rests[cell..], S::float);
    }

    fn merge_cell(&mut self, to: usize, other: &Self, from: usize) {
        self.add(to, other.sums[from]);
        self.rests[to] += other.rests[from];
    }

    fn merge(&mut self, other: &Self, _: usize) {
        let others = other.sums.iter().zip(&other.rests);
        for ((sum, rest), (more, left)) in self.sums.iter_mut().zip(&mut self.rests).zip(others) {
            let error;
            (*sum, error) = two_sum(*sum, *more);
            *rest += error + left;
        }
    }

    fn copy_cell(&mut self, to: usize, other: &Self, from: usize) {
        (self.sums[to], self.rests[to]) = (other.sums[from], other.rests[from]);
    }

    fn exact_statistic(known: &ChunkStatistics) -> Option<Number> {
        S::known(known)
    }

    fn fold_statistic(&mut self, statistic: Number) {
        if let Number::Float(sum) = statistic {
            self.add(0, sum);
        }
    }

    fn finish(&mut self, cell: usize, context: &CellContext, column: &mut Column) {
        let sum = self.sum(cell);
        column.push_float(match context.operation {
            Operation::Sum => context.enough.then_some(sum),
            Operation::Mean => context.some().then_some(sum / context.count as f64),
            Operation::NormL2 => context.some().then_some(sum.sqrt()),
            _ => context.some().then_some(sum),
        });
    }
}

/// An exact sum of integers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub(in crate::query) struct IntegerSum<S> {
    #[serde(with = "serial::integers")]
    sums: Vec<i128>,
    summand: PhantomData<S>,
}

impl<S: Summand> Fold for IntegerSum<S> {
    fn sized(&self, cells: usize) -> Self {
        Self { sums: vec![0; cells], summand: PhantomData }
    }

    fn bytes(&self) -> (u64, u64) {
        (16, 0)
    }

    fn one<T: Operand>(&mut self, cell: usize, value: T, _: u64) {
        self.sums[cell] += S::integer(value.to_i128());
    }

    fn repeat<T: Operand>(&mut self, cell: usize, value: T, count: u64) {
        self.sums[cell] += S::integer(value.to_i128()) * i128::from(count);
    }

    fn run<T: Operand>(&mut self, cell: usize, values: &[T]) {
        for block in values.chunks(BLOCK) {
            self.sums[cell] += match S::ITSELF {
                true => T::sum_exact(block),
                false => block.iter().map(|value| S::integer(value.to_i128())).sum(),
            };
        }
    }

    fn row<T: Operand>(&mut self, cell: usize, values: &[T]) {
        for (sum, value) in self.sums[cell..].iter_mut().zip(values) {
            *sum += S::integer(value.to_i128());
        }
    }

    fn merge_cell(&mut self, to: usize, other: &Self, from: usize) {
        self.sums[to] += other.sums[from];
    }

    fn copy_cell(&mut self, to: usize, other: &Self, from: usize) {
        self.sums[to] = other.sums[from];
    }

    fn exact_statistic(known: &ChunkStatistics) -> Option<Number> {
        S::known(known)
    }

    fn fold_statistic(&mut self, statistic: Number) {
        if let Number::Integer(sum) = statistic {
            self.sums[0] += sum;
        }
    }

    fn finish(&mut self, cell: usize, context: &CellContext, column: &mut Column) {
        let sum = self.sums[cell];
        match context.operation {
            Operation::Mean if context.whole => {
                column.push_integer(context.some().then(|| whole_mean(sum, context.count)));
            }
            Operation::Mean => column.push_float(context.some().then(|| mean(sum, context.count))),
            Operation::Sum => column.push_integer(context.enough.then_some(sum)),
            _ => column.push_integer(context.some().then_some(sum)),
        }
    }
}

/// The mean of integers with this sum, rounded to the nearest integer, halves up.
fn whole_mean(sum: i128, count: u64) -> i128 {
    let count = i128::from(count);
    let (quotient, rest) = (sum.div_euclid(count), sum.rem_euclid(count));
    quotient + i128::from(rest >= count - rest)
}

/// The mean of integers with this sum, without the rounding of converting the sum to a float.
fn mean(sum: i128, count: u64) -> f64 {
    let count = i128::from(count);
    (sum / count) as f64 + (sum % count) as f64 / count as f64
}
