//! The plan of a read: the chunks it touches, the part of each, and where that part goes in the result.
//!
//! A plan is plain data, and small whatever the array's size: chunk number `i` is computed from the positions on demand. It can
//! be printed, serialised, split and sent elsewhere.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::{AxisPositions, ChunkCoord, Error, Extents, Grid, Positions, Region, Result, product};

/// The chunks that a selection touches.
///
/// ```
/// use hyperslab_core::{Grid, Plan, Selection};
/// let grid = Grid::new(&[100, 100], &[64, 64])?;
/// let positions = "[60:70, 5]".parse::<Selection>()?.resolve(grid.shape(), &[])?;
/// let plan = Plan::new(&grid, positions)?;
/// assert_eq!(plan.len(), 2);
/// let second = plan.chunk(1);
/// assert_eq!((&second.coord[..], second.axes[0].first, second.axes[0].place), (&[1, 0][..], 0, 4));
/// # Ok::<(), hyperslab_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedPlan")]
pub struct Plan {
    grid: Grid,
    positions: Positions,
    /// The range of touched chunks, in C order, that this plan covers: all of them, or a part after a split.
    part: Range<u64>,
}

/// A deserialised plan before validation. It may come from an untrusted source, and output slots rely on the checks of
/// [`Plan::new`].
#[derive(Deserialize)]
struct UncheckedPlan {
    grid: Grid,
    positions: Positions,
    part: Range<u64>,
}

impl TryFrom<UncheckedPlan> for Plan {
    type Error = Error;

    fn try_from(unchecked: UncheckedPlan) -> Result<Self> {
        let whole = Self::new(&unchecked.grid, unchecked.positions)?;
        let part = unchecked.part;
        if part.start > part.end || part.end > whole.part.end {
            return Err(Error::invalid(format!(
                "the plan covers chunks {part:?}, but the selection touches only {}",
                whole.part.end
            )));
        }
        Ok(Self { part, ..whole })
    }
}

/// One touched chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedChunk {
    /// Its position in the grid.
    pub coord: ChunkCoord,
    /// The wanted part of it, per axis.
    pub axes: SmallVec<[AxisPart; 4]>,
}

/// The wanted part of one chunk along one axis, and its position in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AxisPart {
    /// The first wanted cell, relative to the chunk's start.
    pub first: u64,
    /// The distance from one wanted cell to the next.
    pub step: u64,
    /// The number of wanted cells; never zero.
    pub count: u64,
    /// The position of the first wanted cell in the result.
    pub place: u64,
    /// Whether the other cells go before it (a negative step) rather than after it.
    pub backwards: bool,
}

impl PlannedChunk {
    /// Returns true if every cell of a chunk of this (clipped) shape is wanted, in its own order.
    #[must_use]
    pub fn covers(&self, shape: &[u64]) -> bool {
        let whole =
            |(part, extent): (&AxisPart, &u64)| part.first == 0 && part.count == *extent && !part.skips();
        self.axes.iter().zip(shape).all(whole)
    }

    /// The smallest box of the chunk, relative to its start, that holds all wanted cells.
    #[must_use]
    pub fn bounds(&self) -> Region {
        Region {
            start: self.axes.iter().map(|part| part.first).collect(),
            shape: self.axes.iter().map(|part| (part.count - 1) * part.step + 1).collect(),
        }
    }

    /// Wanted cells per axis.
    #[must_use]
    pub fn counts(&self) -> Extents {
        self.axes.iter().map(|part| part.count).collect()
    }
}

impl AxisPart {
    /// The lowest of its positions in the result, whichever cell goes there.
    #[must_use]
    pub const fn first_place(&self) -> u64 {
        if self.backwards { self.place + 1 - self.count } else { self.place }
    }

    /// Returns true if it leaves out cells or reverses them.
    const fn skips(&self) -> bool {
        self.count > 1 && (self.step != 1 || self.backwards)
    }
}

impl Plan {
    /// Plans a read of `positions` from an array divided by `grid`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if a position is outside the array, or the number of chunks overflows `u64`.
    pub fn new(grid: &Grid, positions: Positions) -> Result<Self> {
        if positions.axes.len() != grid.rank() {
            return Err(Error::invalid(format!(
                "the selection has {} axes, but the array has {}",
                positions.axes.len(),
                grid.rank()
            )));
        }
        for (axis, (wanted, extent)) in positions.axes.iter().zip(grid.shape()).enumerate() {
            let reach = wanted.count.saturating_sub(1).checked_mul(wanted.step.unsigned_abs());
            let inside = wanted.count == 0
                || reach.is_some_and(|reach| {
                    if wanted.step > 0 {
                        wanted.start.checked_add(reach).is_some_and(|last| last < *extent)
                    } else {
                        reach <= wanted.start && wanted.start < *extent
                    }
                });
            if !inside || wanted.step == 0 {
                return Err(Error::invalid(format!("axis {axis}: {wanted:?} is outside {extent} cells")));
            }
        }
        let mut plan = Self { grid: grid.clone(), positions, part: 0..0 };
        plan.part.end = product(&plan.touched())
            .ok_or_else(|| Error::invalid("the selection touches more than 2^64 chunks"))?;
        Ok(plan)
    }

    /// The number of chunks it touches.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.part.end - self.part.start
    }

    /// Returns true if it touches no chunk.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The grid that the plan was made for.
    #[must_use]
    pub const fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The positions that the plan reads.
    #[must_use]
    pub const fn positions(&self) -> &Positions {
        &self.positions
    }

    /// The number of touched chunks per axis. After a split, this is still that of the whole plan.
    #[must_use]
    pub fn touched(&self) -> Extents {
        let axes = self.positions.axes.iter().zip(self.grid.chunk_shape());
        axes.map(|(axis, chunk)| axis.touched(*chunk)).collect()
    }

    /// The touched chunk at this position among the touched chunks. Each coordinate is below [`touched`](Self::touched).
    #[must_use]
    pub fn at(&self, place: &[u64]) -> PlannedChunk {
        let mut planned = PlannedChunk { coord: ChunkCoord::new(), axes: SmallVec::new() };
        for ((wanted, extent), number) in self.positions.axes.iter().zip(self.grid.chunk_shape()).zip(place) {
            let (coord, part) = wanted.part(*number, *extent);
            planned.coord.push(coord);
            planned.axes.push(part);
        }
        planned
    }

    /// The position of a chunk among the touched chunks, per axis; `None` if the plan does not touch it. The inverse of
    /// [`at`](Self::at).
    #[must_use]
    pub fn place_of(&self, coord: &[u64]) -> Option<Extents> {
        if coord.len() != self.grid.rank() {
            return None;
        }
        let axes = self.positions.axes.iter().zip(self.grid.chunk_shape()).zip(coord);
        axes.map(|((wanted, chunk), at)| wanted.number_of(*at, *chunk)).collect()
    }

    /// The `index`-th touched chunk in C order. `index` must be below [`len`](Self::len).
    #[must_use]
    pub fn chunk(&self, index: u64) -> PlannedChunk {
        let mut number = self.part.start + index;
        let rank = self.grid.rank();
        let mut coord: ChunkCoord = SmallVec::from_elem(0, rank);
        let mut axes: SmallVec<[AxisPart; 4]> = SmallVec::with_capacity(rank);
        let nothing = AxisPart { first: 0, step: 1, count: 1, place: 0, backwards: false };
        axes.resize(rank, nothing);
        for axis in (0..rank).rev() {
            let (wanted, extent) = (self.positions.axes[axis], self.grid.chunk_shape()[axis]);
            let touched = wanted.touched(extent).max(1);
            (coord[axis], axes[axis]) = wanted.part(number % touched, extent);
            number /= touched;
        }
        PlannedChunk { coord, axes }
    }

    /// Iterates over the touched chunks in C order.
    pub fn iter(&self) -> impl Iterator<Item = PlannedChunk> + '_ {
        (0..self.len()).map(|index| self.chunk(index))
    }

    /// Splits the plan into at most `parts` plans of neighbouring chunks, all for the same result.
    #[must_use]
    pub fn split(&self, parts: u64) -> Vec<Self> {
        let each = self.len().div_ceil(parts.max(1)).max(1);
        let mut split = Vec::new();
        let mut start = self.part.start;
        while start < self.part.end {
            let end = start.saturating_add(each).min(self.part.end);
            split.push(Self { part: start..end, ..self.clone() });
            start = end;
        }
        split
    }
}

impl AxisPositions {
    /// The number of chunks of this extent that hold a position.
    fn touched(self, chunk: u64) -> u64 {
        let (low, high) = self.ascending();
        match self.count {
            0 => 0,
            // Positions at least a chunk apart are each in a chunk of their own.
            count if self.step.unsigned_abs() >= chunk => count,
            _ => high / chunk - low / chunk + 1,
        }
    }

    /// The rank of chunk `at` among the chunks that hold a position.
    fn number_of(self, at: u64, chunk: u64) -> Option<u64> {
        let (low, high) = self.ascending();
        let step = self.step.unsigned_abs();
        if self.count == 0 || at < low / chunk || at > high / chunk {
            return None;
        }
        if step < chunk {
            return Some(at - low / chunk);
        }
        let number = (at * chunk).saturating_sub(low).div_ceil(step);
        ((low + number * step) / chunk == at).then_some(number)
    }

    /// The `number`-th chunk that holds a position, and the wanted part of it.
    fn part(self, number: u64, chunk: u64) -> (u64, AxisPart) {
        let (low, high) = self.ascending();
        let step = self.step.unsigned_abs();
        // The rank, counted upwards, of the first position in that chunk.
        let (at, rank) = if step >= chunk {
            ((low + number * step) / chunk, number)
        } else {
            let at = low / chunk + number;
            (at, (at * chunk).saturating_sub(low).div_ceil(step))
        };
        let position = low + rank * step;
        let last = high.min(at.saturating_mul(chunk).saturating_add(chunk - 1));
        let backwards = self.step < 0;
        let part = AxisPart {
            first: position - at * chunk,
            step,
            count: (last - position) / step + 1,
            place: if backwards { self.count - 1 - rank } else { rank },
            backwards,
        };
        (at, part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every axis selection that fits in an extent.
    fn axis() -> impl Strategy<Value = (u64, u64, AxisPositions)> {
        (1_u64..40, 1_u64..12, 0_u64..40, 1_i64..15, any::<bool>(), 1_u64..40).prop_map(
            |(extent, chunk, start, step, backwards, count)| {
                let start = start % extent;
                let room = if backwards { start } else { extent - 1 - start } / step as u64 + 1;
                let step = if backwards { -step } else { step };
                (extent, chunk, AxisPositions { start, count: count.min(room), step, keep: true })
            },
        )
    }

    proptest! {
        /// Each wanted cell is in exactly one part, at its own position.
        #[test]
        fn parts_are_the_positions((extent, chunk, wanted) in axis()) {
            let grid = Grid::new(&[extent], &[chunk]).unwrap();
            let plan = Plan::new(&grid, Positions { axes: [wanted].into_iter().collect() }).unwrap();
            let mut result = vec![None; wanted.count as usize];
            for planned in plan.iter() {
                let part = planned.axes[0];
                for i in 0..part.count {
                    let place = if part.backwards { part.place - i } else { part.place + i };
                    let cell = planned.coord[0] * chunk + part.first + i * part.step;
                    prop_assert!(part.first + i * part.step < chunk);
                    prop_assert!(result[place as usize].replace(cell).is_none());
                }
            }
            let expected: Vec<_> = (0..wanted.count as i64)
                .map(|i| Some((wanted.start as i64 + i * wanted.step) as u64)).collect();
            prop_assert_eq!(result, expected);
            let by_place: Vec<_> = (0..plan.touched()[0]).map(|number| plan.at(&[number])).collect();
            prop_assert_eq!(by_place, plan.iter().collect::<Vec<_>>());
            for at in 0..extent.div_ceil(chunk) + 1 {
                let number = (0..plan.touched()[0]).find(|number| plan.at(&[*number]).coord[0] == at);
                prop_assert_eq!(plan.place_of(&[at]).map(|place| place[0]), number);
            }
        }

        #[test]
        fn split_keeps_every_chunk((extent, chunk, wanted) in axis(), parts in 1_u64..9) {
            let grid = Grid::new(&[extent], &[chunk]).unwrap();
            let plan = Plan::new(&grid, Positions { axes: [wanted].into_iter().collect() }).unwrap();
            let split: Vec<_> = plan.split(parts).iter().flat_map(|part| part.iter().collect::<Vec<_>>()).collect();
            prop_assert_eq!(split, plan.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn invalid_plans_are_not_deserialised() {
        let grid = Grid::new(&[10], &[4]).unwrap();
        let plan = Plan::new(&grid, Positions::whole(&[10])).unwrap();
        let document = serde_json::to_value(&plan).unwrap();
        assert_eq!(serde_json::from_value::<Plan>(document.clone()).unwrap(), plan);
        let broken = |pointer: &str, value: u64| {
            let mut broken = document.clone();
            *broken.pointer_mut(pointer).unwrap() = value.into();
            serde_json::from_value::<Plan>(broken)
        };
        for (pointer, value) in [
            ("/positions/axes/0/count", 11),
            ("/positions/axes/0/start", 1),
            ("/positions/axes/0/step", 0),
            ("/grid/chunk_shape/0", 0),
            ("/part/end", 4),
        ] {
            assert!(broken(pointer, value).is_err(), "{pointer}");
        }
        assert!(broken("/part/start", 1).is_ok());
    }

    #[test]
    fn a_huge_grid_is_planned_without_a_walk() {
        let grid = Grid::new(&[1 << 40, 1 << 20], &[1, 1]).unwrap();
        let plan = Plan::new(&grid, Positions::whole(grid.shape())).unwrap();
        assert_eq!(plan.len(), 1 << 60);
        assert_eq!(&plan.chunk(plan.len() - 1).coord[..], &[(1 << 40) - 1, (1 << 20) - 1]);
    }
}
