//! Products; exact for integers if they fit.

use serde::{Deserialize, Serialize};

use super::{CellContext, Column, Fold, Operand};
use crate::query::serial;

/// A power with an integer exponent that may exceed the precision of a float.
fn power(value: f64, count: u64) -> f64 {
    let power = value.abs().powf(count as f64);
    if value < 0.0 && count % 2 == 1 { -power } else { power }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::query) struct FloatProduct {
    #[serde(with = "serial::floats")]
    products: Vec<f64>,
}

impl Fold for FloatProduct {
    fn sized(&self, cells: usize) -> Self {
        Self { products: vec![1.0; cells] }
    }

    fn bytes(&self) -> (u64, u64) {
        (8, 0)
    }

    fn one<T: Operand>(&mut self, cell: usize, value: T, _: u64) {
        self.products[cell] *= value.to_f64();
    }

    fn repeat<T: Operand>(&mut self, cell: usize, value: T, count: u64) {
        self.products[cell] *= power(value.to_f64(), count);
    }

    fn merge_cell(&mut self, to: usize, other: &Self, from: usize) {
        self.products[to] *= other.products[from];
    }

    fn copy_cell(&mut self, to: usize, other: &Self, from: usize) {
        self.products[to] = other.products[from];
    }

    fn finish(&mut self, cell: usize, context: &CellContext, column: &mut Column) {
        column.push_float(context.some().then(|| self.products[cell]));
    }
}

/// A product of integers: exact, or a float if it does not fit in 128 bits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::query) struct IntegerProduct {
    floats: FloatProduct,
    #[serde(with = "serial::integers")]
    wholes: Vec<i128>,
    overflowed: Vec<bool>,
}

impl IntegerProduct {
    fn multiply(&mut self, cell: usize, value: Option<i128>) {
        match value.and_then(|value| self.wholes[cell].checked_mul(value)) {
            Some(product) => self.wholes[cell] = product,
            None => self.overflowed[cell] = true,
        }
        // A product that contains a zero is zero, even if it overflowed before.
        if value == Some(0) {
            self.wholes[cell] = 0;
        }
    }
}

impl Fold for IntegerProduct {
    fn sized(&self, cells: usize) -> Self {
        Self { floats: self.floats.sized(cells), wholes: vec![1; cells], overflowed: vec![false; cells] }
    }

    fn bytes(&self) -> (u64, u64) {
        (32, 0)
    }

    fn one<T: Operand>(&mut self, cell: usize, value: T, index: u64) {
        self.floats.one(cell, value, index);
        self.multiply(cell, Some(value.to_i128()));
    }

    fn repeat<T: Operand>(&mut self, cell: usize, value: T, count: u64) {
        self.floats.repeat(cell, value, count);
        let power = match value.to_i128() {
            zero_or_one @ 0..=1 => Some(zero_or_one),
            -1 => Some(if count % 2 == 1 { -1 } else { 1 }),
            value => u32::try_from(count).ok().and_then(|count| value.checked_pow(count)),
        };
        self.multiply(cell, power);
    }

    fn merge_cell(&mut self, to: usize, other: &Self, from: usize) {
        self.floats.merge_cell(to, &other.floats, from);
        self.multiply(to, Some(other.wholes[from]));
        self.overflowed[to] |= other.overflowed[from];
    }

    fn copy_cell(&mut self, to: usize, other: &Self, from: usize) {
        self.floats.copy_cell(to, &other.floats, from);
        (self.wholes[to], self.overflowed[to]) = (other.wholes[from], other.overflowed[from]);
    }

    fn finish(&mut self, cell: usize, context: &CellContext, column: &mut Column) {
        let whole = self.wholes[cell];
        let exact = (!self.overflowed[cell] || whole == 0).then_some(whole);
        let fits = |exact: i128| i64::try_from(exact).is_ok() || u64::try_from(exact).is_ok();
        column.inexact |= context.some() && !exact.is_some_and(fits);
        let float = exact.map_or(self.floats.products[cell], |exact| exact as f64);
        column.floats.push(if context.some() { float } else { f64::NAN });
        column.push_integer(context.some().then(|| exact.unwrap_or(0)));
    }
}
