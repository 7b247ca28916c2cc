//! The position of the smallest or largest value: the first of several. NaN wins unless it is skipped.

use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use super::extreme::End;
use super::{CellContext, Column, Fold, Operand};
use crate::query::serial;

/// The position of a cell without a value.
const NOWHERE: u64 = u64::MAX;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub(in crate::query) struct Arg<E> {
    skip_nan: bool,
    #[serde(with = "serial::integers")]
    keys: Vec<i128>,
    places: Vec<u64>,
    end: PhantomData<E>,
}

impl<E: End> Arg<E> {
    pub(in crate::query) fn new(skip_nan: bool) -> Self {
        Self { skip_nan, ..Self::default() }
    }

    fn join(&mut self, cell: usize, key: i128, place: u64) {
        let (own, at) = (self.keys[cell], self.places[cell]);
        if at == NOWHERE || E::better(&key, &own) || (key == own && place < at) {
            (self.keys[cell], self.places[cell]) = (key, place);
        }
    }
}

impl<E: End> Fold for Arg<E> {
    const INDEXED: bool = true;

    fn sized(&self, cells: usize) -> Self {
        Self { keys: vec![0; cells], places: vec![NOWHERE; cells], ..*self }
    }

    fn bytes(&self) -> (u64, u64) {
        (24, 0)
    }

    fn one<T: Operand>(&mut self, cell: usize, value: T, index: u64) {
        if self.skip_nan && value.is_nan() {
            return;
        }
        let nan = if value.is_nan() { E::NAN_KEY } else { None };
        self.join(cell, nan.unwrap_or_else(|| value.key().into()), index);
    }

    fn repeat<T: Operand>(&mut self, _: usize, _: T, _: u64) {}

    fn merge_cell(&mut self, to: usize, other: &Self, from: usize) {
        if other.places[from] != NOWHERE {
            self.join(to, other.keys[from], other.places[from]);
        }
    }

    fn copy_cell(&mut self, to: usize, other: &Self, from: usize) {
        (self.keys[to], self.places[to]) = (other.keys[from], other.places[from]);
    }

    fn finish(&mut self, cell: usize, context: &CellContext, column: &mut Column) {
        let place = self.places[cell];
        column.push_integer((context.some() && place != NOWHERE).then_some(place.into()));
    }
}
