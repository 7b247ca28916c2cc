//! The number of values, which is counted beside every fold.

use serde::{Deserialize, Serialize};

use super::{CellContext, Column, Fold, Operand, Rows};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::query) struct Count;

impl Fold for Count {
    fn sized(&self, _: usize) -> Self {
        Self
    }
    fn bytes(&self) -> (u64, u64) {
        (0, 0)
    }
    fn one<T: Operand>(&mut self, _: usize, _: T, _: u64) {}
    fn repeat<T: Operand>(&mut self, _: usize, _: T, _: u64) {}
    fn run<T: Operand>(&mut self, _: usize, _: &[T]) {}
    fn row<T: Operand>(&mut self, _: usize, _: &[T]) {}
    fn rows<T: Operand>(&mut self, _: usize, _: Rows<'_, T>) {}
    fn runs<T: Operand>(&mut self, _: usize, _: usize, _: Rows<'_, T>) {}
    fn merge_cell(&mut self, _: usize, _: &Self, _: usize) {}
    fn copy_cell(&mut self, _: usize, _: &Self, _: usize) {}

    fn finish(&mut self, _: usize, context: &CellContext, column: &mut Column) {
        column.push_integer(context.enough.then_some(context.count.into()));
    }
}
