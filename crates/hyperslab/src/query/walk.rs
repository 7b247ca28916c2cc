//! Folds one chunk into an accumulator: loops over the wanted cells, merged into runs as long as the layout allows.

use hyperslab_core::{Error, Layout, Result};
use smallvec::SmallVec;

use super::accumulate::Accumulator;
use super::axes::Pieces;
use super::condition::Mask;
use super::kernels::Rows;
use super::operand::{BLOCK, Cell, Operand, load};

/// A position that belongs to no group.
pub(super) const NO_GROUP: u32 = u32::MAX;

/// The destination of the cells along one axis.
#[derive(Debug, Clone, Copy)]
pub(super) enum To<'a> {
    /// All go into one cell.
    Same,
    /// Each goes into its own cell, at this distance.
    Own(usize),
    /// Each goes into the cell of its group, with groups at this distance.
    Group(&'a [u32], usize),
    /// Each goes into the cell of its piece, with pieces at this distance.
    Pieces(Along, usize),
}

/// The cells along an axis divided into pieces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Along {
    pub(super) pieces: Pieces,
    /// The position of the first cell.
    pub(super) first: u64,
}

impl Along {
    /// The piece of a cell.
    pub(super) fn piece(self, cell: usize) -> usize {
        self.pieces.of(self.first + cell as u64)
    }
}

/// One axis of the box of wanted cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loop<'a> {
    pub(super) count: usize,
    /// Bytes from one cell to the next.
    pub(super) stride: isize,
    pub(super) to: To<'a>,
    /// The index distance to the next cell, among all cells folded together.
    pub(super) index: u64,
}

/// The loops of a box, the fastest in memory last, merged where they are contiguous.
fn merged<'a>(loops: &[Loop<'a>], indexed: bool) -> SmallVec<[Loop<'a>; 6]> {
    let mut sorted: SmallVec<[Loop<'a>; 6]> = loops.iter().copied().filter(|axis| axis.count > 1).collect();
    let is_grouped = |axis: &Loop<'_>| matches!(axis.to, To::Group(..) | To::Pieces(..));
    sorted.extend(loops.iter().copied().filter(|axis| axis.count == 1 && is_grouped(axis)));
    sorted.sort_by_key(|axis| std::cmp::Reverse(axis.stride.unsigned_abs()));
    let mut merged: SmallVec<[Loop<'a>; 6]> = SmallVec::new();
    for axis in sorted {
        if let Some(outer) = merged.last_mut() {
            let runs_on = outer.stride == axis.stride * axis.count as isize;
            let same = match (outer.to, axis.to) {
                (To::Same, To::Same) => !indexed || outer.index == axis.index * axis.count as u64,
                (To::Own(far), To::Own(near)) => !indexed && far == near * axis.count,
                _ => false,
            };
            if runs_on && same {
                *outer = Loop { count: outer.count * axis.count, ..axis };
                continue;
            }
        }
        merged.push(axis);
    }
    merged
}

/// Folds the cells of a box into an accumulator: those at `layout` of `bytes`, the first into `cell`.
pub(super) fn fold_box<C: Cell>(
    bytes: &[u8],
    layout: &Layout,
    loops: &[Loop<'_>],
    start: (usize, u64),
    mask: Option<&Mask<C::Operand>>,
    scratch: &mut Scratch<C::Operand>,
    into: &mut Accumulator,
) -> Result<()> {
    check::<C>(bytes, layout, loops)?;
    let merged = merged(loops, into.fold.is_indexed());
    let mut walk = Walk::<C> { bytes, mask, into, scratch };
    walk.axis(&merged, layout.offset, start.0, start.1);
    Ok(())
}

/// Folds consecutive elements into the only cell.
pub(super) fn fold_run<C: Cell>(
    bytes: &[u8],
    mask: Option<&Mask<C::Operand>>,
    scratch: &mut Scratch<C::Operand>,
    into: &mut Accumulator,
) {
    let size = size_of::<C>();
    let inner = Loop { count: bytes.len() / size, stride: size as isize, to: To::Same, index: 0 };
    Walk::<C> { bytes, mask, into, scratch }.run(&inner, 0, 0, 0);
}

/// Checks that every cell of the box is inside the bytes.
fn check<C: Cell>(bytes: &[u8], layout: &Layout, loops: &[Loop<'_>]) -> Result<()> {
    let (mut low, mut high) = (layout.offset as i128, layout.offset as i128 + size_of::<C>() as i128);
    for axis in loops {
        let reach = axis.stride as i128 * (axis.count as i128 - 1);
        if reach < 0 { low += reach } else { high += reach }
    }
    if low < 0 || high > bytes.len() as i128 {
        return Err(Error::invalid("a chunk has fewer bytes than its cells"));
    }
    Ok(())
}

struct Walk<'a, C: Cell> {
    bytes: &'a [u8],
    mask: Option<&'a Mask<C::Operand>>,
    into: &'a mut Accumulator,
    scratch: &'a mut Scratch<C::Operand>,
}

/// Space for one block before and after masking, reused from chunk to chunk.
#[derive(Debug)]
pub(super) struct Scratch<T> {
    loaded: Vec<T>,
    kept: Vec<T>,
}

impl<T: Operand> Scratch<T> {
    pub(super) fn new() -> Self {
        let zero = T::from_i128(0);
        Self { loaded: vec![zero; BLOCK], kept: vec![zero; BLOCK] }
    }
}

impl<'a, C: Cell> Walk<'a, C> {
    fn axis(&mut self, loops: &[Loop<'_>], offset: usize, cell: usize, index: u64) {
        match loops {
            [] => self.run(&Loop { count: 1, stride: 0, to: To::Same, index: 0 }, offset, cell, index),
            [inner] => self.run(inner, offset, cell, index),
            [outer, inner] if self.is_rows(outer, inner) => self.rows(outer, inner, offset, cell),
            [outer, inner] if self.is_runs(outer, inner) => self.runs(outer, inner, offset, cell, index),
            [outer, rest @ ..] => {
                let mut at = offset;
                for i in 0..outer.count {
                    let next = index + i as u64 * outer.index;
                    match outer.to {
                        To::Same => self.axis(rest, at, cell, next),
                        To::Own(far) => self.axis(rest, at, cell + i * far, next),
                        To::Group(groups, _) if groups[i] == NO_GROUP => {}
                        To::Group(groups, far) => self.axis(rest, at, cell + groups[i] as usize * far, next),
                        To::Pieces(along, far) => self.axis(rest, at, cell + along.piece(i) * far, next),
                    }
                    at = at.wrapping_add_signed(outer.stride);
                }
            }
        }
    }

    /// Returns true for consecutive rows that are folded into the same cells.
    fn is_rows(&self, outer: &Loop<'_>, inner: &Loop<'_>) -> bool {
        matches!((outer.to, inner.to), (To::Same, To::Own(1)))
            && self.mask.is_none()
            && !self.into.fold.is_indexed()
            && inner.stride == size_of::<C>() as isize
    }

    /// Returns true for rows that are each folded into one cell.
    fn is_runs(&self, outer: &Loop<'_>, inner: &Loop<'_>) -> bool {
        matches!((outer.to, inner.to), (To::Own(_), To::Same))
            && self.mask.is_none()
            && !self.into.fold.is_indexed()
            && inner.count <= BLOCK
            && inner.stride == size_of::<C>() as isize
    }

    /// Folds rows into one cell each.
    fn runs(&mut self, outer: &Loop<'_>, inner: &Loop<'_>, offset: usize, cell: usize, index: u64) {
        let To::Own(far) = outer.to else { return };
        if let Some(rows) = self.direct(outer, inner, offset) {
            self.into.runs(cell, far, rows);
            return;
        }
        let mut at = offset;
        for number in 0..outer.count {
            self.run(inner, at, cell + number * far, index);
            at = at.wrapping_add_signed(outer.stride);
        }
    }

    /// Folds rows into the same cells.
    fn rows(&mut self, outer: &Loop<'_>, inner: &Loop<'_>, offset: usize, cell: usize) {
        if let Some(rows) = self.direct(outer, inner, offset) {
            self.into.rows(cell, rows);
            return;
        }
        let mut at = offset;
        for _ in 0..outer.count {
            self.run(inner, at, cell, 0);
            at = at.wrapping_add_signed(outer.stride);
        }
    }

    /// Consecutive rows of elements in place, if all are aligned.
    fn direct(&self, outer: &Loop<'_>, inner: &Loop<'_>, offset: usize) -> Option<Rows<'a, C::Operand>> {
        let stride = usize::try_from(outer.stride).ok()?;
        let each = stride / size_of::<C>();
        if each < inner.count || !stride.is_multiple_of(size_of::<C>()) {
            return None;
        }
        let end = offset + stride * (outer.count - 1) + inner.count * size_of::<C>();
        Some(Rows { values: C::direct(&self.bytes[offset..end])?, length: inner.count, each })
    }

    /// The innermost axis: directly from the bytes if they are aligned elements, else block by block.
    fn run(&mut self, inner: &Loop<'_>, offset: usize, cell: usize, index: u64) {
        let size = size_of::<C>();
        if inner.stride == size as isize {
            let bytes = self.bytes;
            if let Some(values) = C::direct(&bytes[offset..offset + inner.count * size]) {
                for (number, block) in
                    values.chunks(if self.mask.is_some() { BLOCK } else { usize::MAX }).enumerate()
                {
                    feed(
                        self.mask,
                        self.into,
                        &mut self.scratch.kept,
                        block,
                        inner,
                        number * BLOCK,
                        (cell, index),
                    );
                }
                return;
            }
        }
        let mut done = 0;
        while done < inner.count {
            let count = (inner.count - done).min(BLOCK);
            let at = offset.wrapping_add_signed(inner.stride * done as isize);
            load::<C>(self.bytes, at, inner.stride, &mut self.scratch.loaded[..count]);
            feed(
                self.mask,
                self.into,
                &mut self.scratch.kept,
                &self.scratch.loaded[..count],
                inner,
                done,
                (cell, index),
            );
            done += count;
        }
    }
}

/// Folds loaded values into their cells. The first is the `done`-th of its loop.
fn feed<T: Operand>(
    mask: Option<&Mask<T>>,
    into: &mut Accumulator,
    kept: &mut [T],
    values: &[T],
    inner: &Loop<'_>,
    done: usize,
    (cell, index): (usize, u64),
) {
    let at = |i: usize| index + (done + i) as u64 * inner.index;
    let keeps = |value: T| mask.is_none_or(|mask| mask.keeps(value));
    match inner.to {
        To::Same if !into.fold.is_indexed() => match mask {
            None => into.run(cell, values),
            Some(mask) => {
                let count = mask.select(values, kept);
                into.run(cell, &kept[..count]);
            }
        },
        To::Own(1) if mask.is_none() && !into.fold.is_indexed() => into.row(cell + done, values),
        To::Same => {
            for (i, &value) in values.iter().enumerate().filter(|(_, value)| keeps(**value)) {
                into.one(cell, value, at(i));
            }
        }
        To::Own(far) => {
            for (i, &value) in values.iter().enumerate().filter(|(_, value)| keeps(**value)) {
                into.one(cell + (done + i) * far, value, at(i));
            }
        }
        To::Group(groups, far) => {
            for (i, &value) in values.iter().enumerate().filter(|(_, value)| keeps(**value)) {
                let group = groups[done + i];
                if group != NO_GROUP {
                    into.one(cell + group as usize * far, value, at(i));
                }
            }
        }
        To::Pieces(along, far) => {
            let first = along.first + done as u64;
            for (piece, range) in along.pieces.within(first..first + values.len() as u64) {
                let (start, end) = ((range.start - first) as usize, (range.end - first) as usize);
                let (cell, run) = (cell + piece * far, &values[start..end]);
                match mask {
                    _ if into.fold.is_indexed() => {
                        for (i, &value) in run.iter().enumerate().filter(|(_, value)| keeps(**value)) {
                            into.one(cell, value, at(start + i));
                        }
                    }
                    None => into.run(cell, run),
                    Some(mask) => {
                        let count = mask.select(run, kept);
                        into.run(cell, &kept[..count]);
                    }
                }
            }
        }
    }
}
