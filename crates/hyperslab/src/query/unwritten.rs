//! Folds unwritten cells at once: they are counted per cell of the result, never walked.
//!
//! Every such cell holds the fill value, so a fold only needs to know how many there are and where the first is. The counts are
//! kept beside the fold and applied when all of its chunks have been folded. The answer therefore does not depend on whether
//! chunks were found missing one by one or the stored ones were listed.

use std::collections::BTreeMap;
use std::ops::Range;

use hyperslab_core::{AxisPart, Elements, Fill, PlannedChunk, Result};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::accumulate::Accumulator;
use super::axes::AxisMap;
use super::condition::Mask;
use super::operand::{Cell, Stored, for_stored};
use super::plan::{Geometry, QueryPlan, Tile};
use super::walk::NO_GROUP;
use crate::ArrayReader;
use crate::written::written;

/// The content of a cell that was never written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum FillCell {
    /// The bytes of an element.
    Value(Vec<u8>),
    /// A missing element.
    Missing,
    /// Nothing that can be folded: an unwritten chunk is an error.
    Invalid,
}

impl FillCell {
    pub(super) fn of(array: &ArrayReader) -> Self {
        let schema = array.schema();
        let value = |elements: &Elements| match elements.as_fixed() {
            _ if elements.is_missing(0) => Self::Missing,
            Some(bytes) if Some(bytes.len()) == schema.dtype.size() => Self::Value(bytes.to_vec()),
            _ => Self::Invalid,
        };
        match &schema.fill {
            Fill::Undefined => Self::Invalid,
            Fill::Zero => value(&Elements::zero(&schema.dtype)),
            Fill::Element(element) => value(element),
        }
    }
}

/// Cells of a box that are folded into the same cell of the result, along one axis.
#[derive(Debug, Clone, Copy)]
struct Share {
    /// The offset of that cell from the tile's first.
    cell: usize,
    /// The number of cells.
    count: u64,
    /// The index of the first of them.
    first: u64,
}

/// Positions along one axis that are folded into the same cell of the result.
#[derive(Debug, Clone)]
struct Choice {
    /// The offset of that cell from the tile's first.
    cell: usize,
    /// The chunks that hold them, in position order, each with its first position; `None` if all chunks do.
    chunks: Option<Vec<(u64, u64)>>,
}

/// The shares of a box along each axis.
type Shares = SmallVec<[Vec<Share>; 4]>;

/// The numbers of the written chunks of a plan. Those of a tile are consecutive.
pub(super) struct Written(Vec<u64>);

impl Written {
    /// The written chunks in `range` of a tile.
    pub(super) fn of_tile(&self, geometry: &Geometry, tile: u64, range: Range<u64>) -> &[u64] {
        let base = tile * geometry.chunks;
        let at = |number: u64| self.0.partition_point(|own| *own < base + number);
        &self.0[at(range.start)..at(range.end)]
    }
}

impl QueryPlan {
    /// The written chunks among those that the plan touches, if there are too many chunks to walk.
    pub(super) fn written(&self, array: &ArrayReader, geometry: &Geometry) -> Result<Option<Written>> {
        if self.fill_cell == FillCell::Invalid {
            return Ok(None);
        }
        let number =
            |chunk: &hyperslab_core::ChunkCoord| Some(self.number_of(geometry, &self.plan.place_of(chunk)?));
        Ok(written(&**array.inner(), self.plan.len(), self.working / 4, number)?.map(Written))
    }

    /// Counts the wanted cells of a chunk that was never written.
    pub(super) fn add_unwritten<C: Cell>(
        &self,
        tile: &Tile,
        wanted: &PlannedChunk,
        mask: Option<&Mask<C::Operand>>,
        into: &mut Accumulator,
    ) {
        let value = self.kept_fill::<C>(mask).filter(|_| into.fold.is_indexed());
        visit_shares(&self.shares(tile, Some(&wanted.axes)), &mut |share| {
            into.add_unwritten(share.cell, share.count);
            if let Some(value) = value {
                into.fold.one(share.cell, value, share.first);
            }
        });
    }

    /// Counts all cells of a tile as unwritten, except those of the `written` chunks in `range`.
    pub(super) fn add_all_unwritten<C: Cell>(
        &self,
        geometry: &Geometry,
        (number, tile): (u64, &Tile),
        range: &Range<u64>,
        written: &Written,
        into: &mut Accumulator,
    ) {
        if range.start == 0 {
            visit_shares(&self.shares(tile, None), &mut |share| into.add_unwritten(share.cell, share.count));
            let mask = self.mask();
            if let Some(value) = self.kept_fill::<C>(mask.as_ref()).filter(|_| into.fold.is_indexed()) {
                let all = written.of_tile(geometry, number, 0..geometry.chunks);
                self.visit_first_unwritten(geometry, (number, tile), all, |cell, index| {
                    into.fold.one(cell, value, index);
                });
            }
        }
        for chunk in written.of_tile(geometry, number, range.clone()) {
            let wanted = self.chunk(geometry, tile, chunk - number * geometry.chunks);
            visit_shares(&self.shares(tile, Some(&wanted.axes)), &mut |share| {
                into.add_unwritten(share.cell, share.count.wrapping_neg());
            });
        }
    }

    /// Folds the unwritten cells into a fold that has all the others.
    pub(super) fn fold_unwritten(&self, into: &mut Accumulator) -> Result<()> {
        for_stored!(Stored::of(&self.dtype, &self.name)?, fold_unwritten(self, into));
        Ok(())
    }

    /// The fill value, if it counts.
    fn kept_fill<C: Cell>(&self, mask: Option<&Mask<C::Operand>>) -> Option<C::Operand> {
        let FillCell::Value(bytes) = &self.fill_cell else { return None };
        let value = bytemuck::pod_read_unaligned::<C>(bytes.get(..size_of::<C>())?).widen();
        mask.is_none_or(|mask| mask.keeps(value)).then_some(value)
    }

    /// The shares of the wanted cells of a chunk, or of all cells of a tile.
    fn shares(&self, tile: &Tile, chunk: Option<&[AxisPart]>) -> Shares {
        let mut each = 1;
        let mut shares: Shares = SmallVec::from_elem(Vec::new(), self.maps.len());
        for (axis, shares) in shares.iter_mut().enumerate().rev() {
            let own = |share| std::iter::once(share).collect();
            let (start, count) = match chunk {
                Some(parts) => (parts[axis].first_place(), parts[axis].count),
                None if self.maps[axis] == AxisMap::Keep => (tile.start[axis], tile.shape[axis] as u64),
                None => (0, self.plan.positions().axes[axis].count),
            };
            *shares = match &self.maps[axis] {
                AxisMap::Keep => (0..count)
                    .map(|i| {
                        let cell = (start + i - tile.start[axis]) as usize * tile.strides[axis];
                        Share { cell, count: 1, first: 0 }
                    })
                    .collect(),
                AxisMap::Reduce => own(Share { cell: 0, count, first: start * each }),
                AxisMap::Group { ids, .. } => {
                    let mut groups = BTreeMap::new();
                    for place in (start..start + count).filter(|place| ids[*place as usize] != NO_GROUP) {
                        let cell = ids[place as usize] as usize * tile.strides[axis];
                        groups.entry(cell).or_insert(Share { cell, count: 0, first: place * each }).count +=
                            1;
                    }
                    groups.into_values().collect()
                }
                AxisMap::Pieces { count: pieces } => self
                    .pieces(axis, *pieces)
                    .within(start..start + count)
                    .map(|(piece, range)| Share {
                        cell: piece * tile.strides[axis],
                        count: range.end - range.start,
                        first: range.start * each,
                    })
                    .collect(),
            };
            each *= self.index_extent(axis);
        }
        shares
    }

    /// Visits the cells of a tile that include an unwritten one, with the index of the first unwritten one. `written` are the
    /// tile's written chunks.
    fn visit_first_unwritten(
        &self,
        geometry: &Geometry,
        (number, tile): (u64, &Tile),
        written: &[u64],
        mut visit: impl FnMut(usize, u64),
    ) {
        let rank = self.maps.len();
        let base = self.number_of(geometry, &self.place_of(geometry, tile, 0));
        debug_assert_eq!(base, number * geometry.chunks, "the chunks of a tile follow each other");
        let mut choices: Vec<Vec<Choice>> = vec![Vec::new(); rank];
        for (axis, choices) in choices.iter_mut().enumerate() {
            *choices = match &self.maps[axis] {
                AxisMap::Keep => (0..tile.shape[axis])
                    .map(|i| Choice { cell: i * tile.strides[axis], chunks: None })
                    .collect(),
                AxisMap::Reduce => vec![Choice { cell: 0, chunks: None }],
                AxisMap::Group { ids, .. } => {
                    let mut groups: BTreeMap<usize, Vec<(u64, u64)>> = BTreeMap::new();
                    for chunk in 0..geometry.touched[axis] {
                        let (chunk, part) = self.axis_part(geometry, axis, chunk);
                        for place in part.first_place()..part.first_place() + part.count {
                            if ids[place as usize] == NO_GROUP {
                                continue;
                            }
                            let cell = ids[place as usize] as usize * tile.strides[axis];
                            let own = groups.entry(cell).or_default();
                            if own.last().is_none_or(|(last, _)| *last != chunk) {
                                own.push((chunk, place));
                            }
                        }
                    }
                    groups.into_iter().map(|(cell, chunks)| Choice { cell, chunks: Some(chunks) }).collect()
                }
                AxisMap::Pieces { count } => {
                    let mut chunks_of: Vec<Vec<(u64, u64)>> = vec![Vec::new(); *count as usize];
                    for chunk in 0..geometry.touched[axis] {
                        let (chunk, part) = self.axis_part(geometry, axis, chunk);
                        let places = part.first_place()..part.first_place() + part.count;
                        for (piece, range) in self.pieces(axis, *count).within(places) {
                            chunks_of[piece].push((chunk, range.start));
                        }
                    }
                    let choice =
                        |(piece, chunks)| Choice { cell: piece * tile.strides[axis], chunks: Some(chunks) };
                    chunks_of.into_iter().enumerate().map(choice).collect()
                }
            };
        }
        let search = |chosen: &[&Choice]| -> Option<u64> {
            let reduced = || (0..rank).filter(|axis| self.maps[*axis] != AxisMap::Keep);
            let extent = |axis: usize| match &chosen[axis].chunks {
                Some(chunks) => chunks.len() as u64,
                None => geometry.touched[axis],
            };
            let all = reduced().map(extent).product::<u64>();
            // Tries at most one more chunk than were written.
            (0..all).find_map(|trial| {
                let mut place = tile.place.clone();
                let (mut left, mut index, mut each) = (trial, 0, 1);
                for axis in (0..rank).rev().filter(|axis| self.maps[*axis] != AxisMap::Keep) {
                    let ordinal = left % extent(axis);
                    left /= extent(axis);
                    let (chunk, first) = match &chosen[axis].chunks {
                        Some(chunks) => chunks[ordinal as usize],
                        None => {
                            let (chunk, part) = self.axis_part(geometry, axis, ordinal);
                            (chunk, part.first_place())
                        }
                    };
                    place[axis] = chunk;
                    index += first * each;
                    each *= self.index_extent(axis);
                }
                let unwritten = written.binary_search(&self.number_of(geometry, &place)).is_err();
                unwritten.then_some(index)
            })
        };
        // The position along kept axes does not matter for what is written.
        let counts: Vec<usize> = choices.iter().map(Vec::len).collect();
        let kept = |axis: usize| self.maps[axis] == AxisMap::Keep;
        let groups = (0..rank).filter(|axis| !kept(*axis)).map(|axis| counts[axis]).product::<usize>();
        let cells = (0..rank).filter(|axis| kept(*axis)).map(|axis| counts[axis]).product::<usize>();
        for group in 0..groups {
            let (mut left, mut first) = (group, 0);
            let mut chosen: SmallVec<[_; 4]> = SmallVec::new();
            for axis in 0..rank {
                chosen.push(&choices[axis][if kept(axis) { 0 } else { left % counts[axis] }]);
                if !kept(axis) {
                    first += chosen[axis].cell;
                    left /= counts[axis];
                }
            }
            let Some(index) = search(&chosen) else { continue };
            for cell in 0..cells {
                let (mut left, mut at) = (cell, first);
                for axis in (0..rank).filter(|axis| kept(*axis)) {
                    at += choices[axis][left % counts[axis]].cell;
                    left /= counts[axis];
                }
                visit(at, index);
            }
        }
    }

    /// The `ordinal`-th touched chunk along an axis, in position order, and the wanted part of it.
    fn axis_part(&self, geometry: &Geometry, axis: usize, ordinal: u64) -> (u64, AxisPart) {
        let backwards = self.plan.positions().axes[axis].step < 0;
        let number = if backwards { geometry.touched[axis] - 1 - ordinal } else { ordinal };
        let mut place: SmallVec<[u64; 4]> = SmallVec::from_elem(0, self.maps.len());
        place[axis] = number;
        (number, self.plan.at(&place).axes[axis])
    }
}

fn fold_unwritten<C: Cell>(plan: &QueryPlan, into: &mut Accumulator) {
    let mask = plan.mask();
    let value = plan.kept_fill::<C>(mask.as_ref());
    let missing = plan.fill_cell == FillCell::Missing;
    for (cell, count) in std::mem::take(&mut into.unwritten).into_iter().enumerate() {
        match value {
            _ if count == 0 => {}
            Some(value) => into.repeat(cell, value, count),
            None if missing => into.missing(cell, count, mask.as_ref().is_some_and(Mask::keeps_missing)),
            None => {}
        }
    }
}

/// Visits every combination of the shares along all axes.
fn visit_shares(shares: &[Vec<Share>], visit: &mut impl FnMut(Share)) {
    fn along(shares: &[Vec<Share>], so_far: Share, visit: &mut impl FnMut(Share)) {
        let Some((own, rest)) = shares.split_first() else { return visit(so_far) };
        for share in own {
            let both = Share {
                cell: so_far.cell + share.cell,
                count: so_far.count * share.count,
                first: so_far.first + share.first,
            };
            along(rest, both, visit);
        }
    }
    along(shares, Share { cell: 0, count: 1, first: 0 }, visit);
}
