//! Axes by number or name, and how a query maps each.

use std::convert::Infallible;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use hyperslab_core::{ArraySchema, Error, Positions, Result, dimension_axis};
use serde::{Deserialize, Serialize};

use super::walk::NO_GROUP;
use super::{Group, Query};
use crate::ArrayReader;
use crate::labels::Coordinate;

/// An axis, by its number or its dimension's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Axis {
    /// Counted from zero.
    Number(usize),
    /// By name.
    Name(String),
}

impl From<usize> for Axis {
    fn from(number: usize) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Axis {
    fn from(text: &str) -> Self {
        text.parse::<usize>().map_or_else(|_| Self::Name(text.to_owned()), Self::Number)
    }
}

impl FromStr for Axis {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.into())
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl Axis {
    /// Its number in an array.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the array has no such axis.
    pub fn resolve(&self, schema: &ArraySchema) -> Result<usize> {
        let rank = schema.grid.rank();
        match self {
            Self::Number(number) if *number < rank => Ok(*number),
            Self::Number(number) => {
                Err(Error::invalid(format!("no axis {number}: the array has {rank}, counted from 0")))
            }
            Self::Name(name) => dimension_axis(&schema.dimensions, name),
        }
    }
}

/// How a query maps the positions along an axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum AxisMap {
    /// They are reduced.
    Reduce,
    /// Each position is kept.
    Keep,
    /// Each position belongs to a group, or to none.
    Group {
        ids: Vec<u32>,
        count: u32,
        /// Whether the answer has this axis.
        shown: bool,
        /// The labels of the groups.
        labels: Option<Vec<String>>,
    },
    /// Each position belongs to one of this many pieces of the axis.
    Pieces { count: u32 },
}

/// An axis divided into runs of positions whose lengths differ by at most one. They are computed, never listed, because axes can
/// be long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pieces {
    pub(super) count: u32,
    pub(super) positions: u64,
}

impl Pieces {
    /// The piece that contains a position.
    pub(super) fn of(self, position: u64) -> usize {
        (u128::from(position) * u128::from(self.count) / u128::from(self.positions.max(1))) as usize
    }

    /// The first position of a piece.
    pub(super) fn start(self, piece: usize) -> u64 {
        (piece as u128 * u128::from(self.positions)).div_ceil(u128::from(self.count.max(1))) as u64
    }

    /// The pieces that contain these positions, each with its part of them.
    pub(super) fn within(self, range: Range<u64>) -> impl Iterator<Item = (usize, Range<u64>)> {
        let pieces = if range.is_empty() { 0..0 } else { self.of(range.start)..self.of(range.end - 1) + 1 };
        pieces.map(move |piece| {
            (piece, self.start(piece).max(range.start)..self.start(piece + 1).min(range.end))
        })
    }
}

impl AxisMap {
    /// The number of positions that map to each position of the axis in a tile.
    pub(super) fn sizes(&self, positions: u64) -> Vec<u64> {
        match self {
            Self::Reduce => vec![positions],
            Self::Keep => vec![1; positions as usize],
            Self::Group { ids, count, .. } => {
                let mut sizes = vec![0; *count as usize];
                for id in ids.iter().filter(|id| **id != NO_GROUP) {
                    sizes[*id as usize] += 1;
                }
                sizes
            }
            Self::Pieces { count } => {
                let pieces = Pieces { count: *count, positions };
                (0..*count as usize).map(|piece| pieces.start(piece + 1) - pieces.start(piece)).collect()
            }
        }
    }
}

/// The labels of the selected positions along an axis.
pub(super) fn labels(array: &ArrayReader, axis: usize, positions: &Positions) -> Result<Coordinate> {
    let schema = array.schema();
    let (extent, wanted) = (schema.shape()[axis], positions.axes[axis]);
    let name = schema.dimensions.get(axis).and_then(Option::as_deref);
    let found =
        Coordinate::read_part(&schema.labels[axis], extent, wanted, name.unwrap_or_default(), array.store());
    found?.ok_or_else(|| {
        Error::invalid(match name {
            Some(name) => format!("dimension {name} has no labels"),
            None => format!("axis {axis} has no labels"),
        })
    })
}

/// The mapping of each axis by a query, without its window.
pub(super) fn maps(query: &Query, array: &ArrayReader, positions: &Positions) -> Result<Vec<AxisMap>> {
    let schema = array.schema();
    let rank = schema.grid.rank();
    let mut over = resolve_all(&query.over, schema)?;
    let mut maps = vec![AxisMap::Keep; rank];
    if let Some(group) = &query.group {
        let kept = match group {
            Group::Positions(axes) | Group::Labels(axes) => resolve_all(axes, schema)?,
            Group::Pieces(axes) => {
                resolve_all(&axes.iter().map(|(axis, _)| axis.clone()).collect::<Vec<_>>(), schema)?
            }
        };
        if kept.is_empty() {
            return Err(Error::invalid("group by at least one axis"));
        }
        let rest: Vec<usize> = (0..rank).filter(|axis| !kept.contains(axis)).collect();
        if !over.is_empty() && over.iter().any(|axis| kept.contains(axis)) {
            return Err(Error::invalid("an axis is both grouped by and reduced"));
        }
        if over.is_empty() {
            over = rest;
        }
        if matches!(group, Group::Labels(_)) {
            for axis in kept {
                let labels = labels(array, axis, positions)?;
                maps[axis] = by_label((0..labels.len()).map(|at| labels.text(at)))?;
            }
        } else if let Group::Pieces(axes) = group {
            for (axis, (_, count)) in kept.into_iter().zip(axes) {
                if *count == 0 {
                    return Err(Error::invalid("an axis cannot be divided into zero pieces"));
                }
                if u64::from(*count) < positions.axes[axis].count {
                    maps[axis] = AxisMap::Pieces { count: *count };
                }
            }
        }
    } else if over.is_empty() && query.window.is_none() {
        over = (0..rank).collect();
    }
    for axis in over {
        maps[axis] = AxisMap::Reduce;
    }
    Ok(maps)
}

/// Keeps only positions with the labels that a query asks for.
pub(super) fn keep_labelled(
    query: &Query,
    array: &ArrayReader,
    positions: &Positions,
    maps: &mut [AxisMap],
) -> Result<()> {
    for (axis, label) in &query.labelled {
        let number = axis.resolve(array.schema())?;
        let is_asked = labels(array, number, positions)?.matches(label, &axis.to_string())?;
        let extent = is_asked.len();
        let (own, count, shown, names) = match &maps[number] {
            AxisMap::Reduce => (vec![0; extent], 1, false, None),
            AxisMap::Keep => ((0..extent as u32).collect(), extent as u32, true, None),
            AxisMap::Group { ids, count, shown, labels } => (ids.clone(), *count, *shown, labels.clone()),
            AxisMap::Pieces { count } => {
                let pieces = Pieces { count: *count, positions: extent as u64 };
                let ids = (0..extent as u64).map(|position| pieces.of(position) as u32).collect();
                (ids, *count, true, None)
            }
        };
        let ids = own.iter().zip(is_asked).map(|(id, asked)| if asked { *id } else { NO_GROUP }).collect();
        maps[number] = AxisMap::Group { ids, count, shown, labels: names };
    }
    Ok(())
}

fn by_label(labels: impl Iterator<Item = String>) -> Result<AxisMap> {
    let mut known = std::collections::HashMap::new();
    let (mut ids, mut names) = (Vec::new(), Vec::new());
    for label in labels {
        let next = names.len() as u32;
        let id = *known.entry(label.clone()).or_insert(next);
        if id == next {
            names.push(label);
        }
        ids.push(id);
    }
    if names.len() >= NO_GROUP as usize {
        return Err(Error::invalid("the number of groups overflows"));
    }
    Ok(AxisMap::Group { ids, count: names.len() as u32, shown: true, labels: Some(names) })
}

/// The numbers of these axes. An axis named twice is refused.
pub(super) fn resolve_all(axes: &[Axis], schema: &ArraySchema) -> Result<Vec<usize>> {
    let mut numbers = Vec::with_capacity(axes.len());
    for axis in axes {
        let number = axis.resolve(schema)?;
        if numbers.contains(&number) {
            return Err(Error::invalid(format!("axis {axis} is named twice")));
        }
        numbers.push(number);
    }
    Ok(numbers)
}
