//! Assigns vertices to chunks.

use std::collections::HashMap;

use hyperslab_core::{Error, Result};
use rayon::prelude::*;

use super::columns::Positions;
use crate::coord::{Coord, chunk_of};

/// The maximum size of a lookup table of chunks, in entries per vertex of a batch.
const TABLE_PER_VERTEX: u64 = 4;
/// The number of vertices per parallel task.
const TASK: usize = 1 << 14;
const UNKNOWN: u32 = u32::MAX;

/// Numbers chunks in order of arrival.
#[derive(Debug)]
pub(crate) struct ChunkNumbers {
    shape: Vec<f64>,
    numbers: HashMap<Coord, u32>,
    pub(crate) coords: Vec<Coord>,
    pub(crate) low: Vec<f64>,
    pub(crate) high: Vec<f64>,
}

/// The bounding box of some vertices, and of their chunks.
#[derive(Debug, Clone)]
struct Extent {
    low: Vec<f64>,
    high: Vec<f64>,
}

impl ChunkNumbers {
    pub(crate) fn new(shape: &[f64]) -> Self {
        let rank = shape.len();
        Self {
            shape: shape.to_vec(),
            numbers: HashMap::new(),
            coords: Vec::new(),
            low: vec![f64::INFINITY; rank],
            high: vec![f64::NEG_INFINITY; rank],
        }
    }

    /// Returns the number of each vertex's chunk.
    pub(crate) fn of(&mut self, positions: &Positions<'_>, rows: usize) -> Result<Vec<u32>> {
        let rank = self.shape.len();
        let extent = self.extent(positions, rows)?;
        for axis in 0..rank {
            self.low[axis] = self.low[axis].min(extent.low[axis]);
            self.high[axis] = self.high[axis].max(extent.high[axis]);
        }
        let corner = |corner: &[f64]| -> Coord {
            corner.iter().zip(&self.shape).map(|(at, size)| chunk_of(*at, *size)).collect()
        };
        let (low, high) = (corner(&extent.low), corner(&extent.high));
        let sides: Option<Vec<u64>> = low
            .iter()
            .zip(&high)
            .map(|(low, high)| u64::try_from(high.checked_sub(*low)?).ok()?.checked_add(1))
            .collect();
        let total =
            sides.as_ref().and_then(|sides| sides.iter().try_fold(1_u64, |all, side| all.checked_mul(*side)));
        match (sides, total) {
            (Some(sides), Some(total)) if total <= TABLE_PER_VERTEX * rows as u64 + 1024 => {
                self.by_table(positions, rows, &low, &sides, total as usize)
            }
            (Some(_), Some(_)) => self.one_by_one(positions, rows),
            _ => Err(Error::invalid("chunks too small for the extent of the vertices")),
        }
    }

    fn extent(&self, positions: &Positions<'_>, rows: usize) -> Result<Extent> {
        let rank = self.shape.len();
        let empty = || Extent { low: vec![f64::INFINITY; rank], high: vec![f64::NEG_INFINITY; rank] };
        let of_task = |task: usize| {
            let mut extent = empty();
            for vertex in task * TASK..((task + 1) * TASK).min(rows) {
                for axis in 0..rank {
                    let at = positions.at(vertex * rank + axis);
                    if !at.is_finite() {
                        return Err(Error::invalid(format!("vertex {vertex} is not at a finite position")));
                    }
                    extent.low[axis] = extent.low[axis].min(at);
                    extent.high[axis] = extent.high[axis].max(at);
                }
            }
            Ok(extent)
        };
        (0..rows.div_ceil(TASK)).into_par_iter().map(of_task).try_reduce(empty, |mut all, own| {
            for axis in 0..rank {
                all.low[axis] = all.low[axis].min(own.low[axis]);
                all.high[axis] = all.high[axis].max(own.high[axis]);
            }
            Ok(all)
        })
    }

    fn by_table(
        &mut self,
        positions: &Positions<'_>,
        rows: usize,
        low: &Coord,
        sides: &[u64],
        total: usize,
    ) -> Result<Vec<u32>> {
        let rank = self.shape.len();
        let mut numbers = vec![0_u32; rows];
        numbers.par_chunks_mut(TASK).enumerate().for_each(|(task, numbers)| {
            for (offset, number) in numbers.iter_mut().enumerate() {
                let first = (task * TASK + offset) * rank;
                let mut cell = 0;
                for axis in 0..rank {
                    let at = chunk_of(positions.at(first + axis), self.shape[axis]) - low[axis];
                    cell = cell * sides[axis] + at as u64;
                }
                *number = cell as u32;
            }
        });
        let mut table = vec![UNKNOWN; total];
        for number in &mut numbers {
            let cell = *number as usize;
            if table[cell] == UNKNOWN {
                let mut left = cell as u64;
                let mut coord = low.clone();
                for axis in (0..rank).rev() {
                    coord[axis] += (left % sides[axis]) as i64;
                    left /= sides[axis];
                }
                table[cell] = self.number(coord)?;
            }
            *number = table[cell];
        }
        Ok(numbers)
    }

    fn one_by_one(&mut self, positions: &Positions<'_>, rows: usize) -> Result<Vec<u32>> {
        let rank = self.shape.len();
        let mut numbers = Vec::with_capacity(rows);
        let mut last: Option<(Coord, u32)> = None;
        for vertex in 0..rows {
            let axes = (0..rank).map(|axis| chunk_of(positions.at(vertex * rank + axis), self.shape[axis]));
            let coord: Coord = axes.collect();
            let number = match &last {
                Some((own, number)) if *own == coord => *number,
                _ => self.number(coord.clone())?,
            };
            last = Some((coord, number));
            numbers.push(number);
        }
        Ok(numbers)
    }

    fn number(&mut self, coord: Coord) -> Result<u32> {
        if let Some(number) = self.numbers.get(&coord) {
            return Ok(*number);
        }
        let number = u32::try_from(self.coords.len()).ok().filter(|number| *number != UNKNOWN);
        let number = number.ok_or_else(|| Error::invalid("more than 2^32 chunks"))?;
        self.coords.push(coord.clone());
        self.numbers.insert(coord, number);
        Ok(number)
    }
}
