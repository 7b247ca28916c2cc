//! Windows along one axis: adjacent bins or overlapping rolling windows.

use hyperslab_core::{Error, Number, Result};
use serde::{Deserialize, Serialize};

use super::Axis;
use super::accumulate::Accumulator;
use super::condition::nearest;
use super::operand::{KeyKind, Operand};

/// How windows are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Adjacent, without overlap.
    Bins,
    /// One per step, overlapping.
    Rolling,
}

/// The values used for positions of a window outside the array.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Pad {
    /// None: rolling windows stay inside, and a bin at the edge is short.
    None,
    /// Zeros.
    Zero,
    /// NaN; only for floats.
    Nan,
    /// The array's missing value.
    Fill,
}

/// A window along one axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// The axis.
    pub axis: Axis,
    /// Positions in a window.
    pub size: u64,
    /// How windows are arranged.
    pub mode: Mode,
    /// The distance from one rolling window to the next.
    pub step: u64,
    /// The values used outside the array.
    pub pad: Pad,
    /// Whether windows are counted from the end of the axis. The first bin is then the short one, and a padded rolling window
    /// extends forwards instead of backwards.
    pub from_end: bool,
    /// If a window has fewer values than this, its answer is missing.
    pub min_count: u64,
}

impl Window {
    /// Bins of this many positions.
    pub fn bins(axis: impl Into<Axis>, size: u64) -> Self {
        Self {
            axis: axis.into(),
            size,
            mode: Mode::Bins,
            step: 1,
            pad: Pad::None,
            from_end: false,
            min_count: 1,
        }
    }

    /// Rolling windows of this many positions.
    pub fn rolling(axis: impl Into<Axis>, size: u64) -> Self {
        Self { mode: Mode::Rolling, ..Self::bins(axis, size) }
    }

    /// The windows on an axis of this extent.
    pub(super) fn places(&self, axis: usize, extent: u64) -> Result<Places> {
        if self.size == 0 || self.size > extent {
            return Err(Error::invalid(format!(
                "a window of {} positions does not fit in axis {axis}, which has {extent}",
                self.size
            )));
        }
        if self.step == 0 {
            return Err(Error::invalid("the step of a window must not be zero"));
        }
        if self.min_count == 0 || self.min_count > self.size {
            return Err(Error::invalid(format!(
                "a window of {} positions cannot require {} values",
                self.size, self.min_count
            )));
        }
        let (size, span) = (self.size as i64, extent as i64);
        let rolling = self.mode == Mode::Rolling;
        let (first, last, step) = match (rolling, self.pad, self.from_end) {
            (true, Pad::None, _) => (0, span - size, self.step as i64),
            (true, _, false) => (1 - size, span - size, self.step as i64),
            (true, _, true) => (0, span - 1, self.step as i64),
            (false, _, false) => (0, span - 1, size),
            (false, _, true) => (-((size - span % size) % size), span - 1, size),
        };
        let count = (last - first) as u64 / step as u64 + 1;
        if count >= u64::from(u32::MAX) || extent >= u64::from(u32::MAX) {
            return Err(Error::invalid("the number of windows overflows"));
        }
        Ok(Places { axis, extent, size: self.size, first, step: step as u64, count, rolling })
    }
}

/// The positions of windows on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Places {
    pub(super) axis: usize,
    extent: u64,
    pub(super) size: u64,
    first: i64,
    step: u64,
    pub(super) count: u64,
    pub(super) rolling: bool,
}

impl Places {
    pub(super) fn start(&self, window: u64) -> i64 {
        self.first + (window * self.step) as i64
    }

    /// The positions of a window that are inside the array.
    fn inside(&self, window: u64) -> (u64, u64) {
        let start = self.start(window);
        let end = (start + self.size as i64).clamp(0, self.extent as i64);
        (start.max(0) as u64, end as u64)
    }

    /// The first and the last position of each window that are inside the array.
    pub(super) fn ends(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.count)
            .map(|window| self.inside(window))
            .map(|(start, end)| (start, end.saturating_sub(1).max(start)))
    }

    /// The group of each position: its bin, or for rolling windows the position itself.
    pub(super) fn groups(&self) -> (Vec<u32>, u32) {
        if self.rolling {
            return ((0..self.extent as u32).collect(), self.extent as u32);
        }
        let bin = |position: u64| ((position as i64 - self.first) as u64 / self.size) as u32;
        ((0..self.extent).map(bin).collect(), self.count as u32)
    }

    /// Computes rolling windows from the accumulators of single positions. `shape` is the tile's, `axis` the window's.
    ///
    /// Every window is the merge of the tail of one block of positions and the head of the next. Each window therefore costs the
    /// same whatever its length, and nothing is ever subtracted.
    pub(super) fn roll(&self, single: &Accumulator, shape: &[usize]) -> Accumulator {
        let inner: usize = shape[self.axis + 1..].iter().product();
        let outer: usize = shape[..self.axis].iter().product();
        let (extent, count, size) = (shape[self.axis], self.count as usize, self.size as usize);
        let counted = !single.counts.is_empty();
        let fresh = |cells| Accumulator::new(&single.fold, cells, counted);
        let mut rolled = fresh(outer * count * inner);
        let nothing = fresh(1);
        let (mut running, mut next) = (fresh(1), fresh(1));
        for line in 0..outer * inner {
            let (before, after) = (line / inner, line % inner);
            let at = |position: usize| (before * extent + position) * inner + after;
            // Heads run forwards from the start of each block, tails backwards from its end.
            let (mut heads, mut tails) = (fresh(extent), fresh(extent));
            running.copy_cell(0, &nothing, 0);
            for position in 0..extent {
                if position % size == 0 {
                    running.copy_cell(0, &nothing, 0);
                }
                running.merge_cell(0, single, at(position));
                heads.merge_cell(position, &running, 0);
            }
            running.copy_cell(0, &nothing, 0);
            for position in (0..extent).rev() {
                if position % size == size - 1 {
                    running.copy_cell(0, &nothing, 0);
                }
                next.copy_cell(0, &nothing, 0);
                next.merge_cell(0, single, at(position));
                next.merge_cell(0, &running, 0);
                std::mem::swap(&mut running, &mut next);
                tails.merge_cell(position, &running, 0);
            }
            for window in 0..count {
                let (start, end) = self.inside(window as u64);
                let to = (before * count + window) * inner + after;
                let (start, end) = (start as usize, end as usize);
                if start >= end {
                    continue;
                }
                if start / size == (end - 1) / size {
                    // A window inside one block: use a head or tail if it touches an end, else merge position by position.
                    if start % size == 0 {
                        rolled.merge_cell(to, &heads, end - 1);
                    } else if end % size == 0 || end == extent {
                        rolled.merge_cell(to, &tails, start);
                    } else {
                        (start..end).for_each(|position| rolled.merge_cell(to, single, at(position)));
                    }
                } else {
                    rolled.merge_cell(to, &tails, start);
                    rolled.merge_cell(to, &heads, end - 1);
                }
            }
        }
        rolled
    }

    /// Adds the values outside the array: `others` values for each missing position.
    pub(super) fn pad(
        &self,
        into: &mut Accumulator,
        shape: &[usize],
        pad: Number,
        key: KeyKind,
        others: u64,
    ) {
        match key {
            KeyKind::Float => self.pad_with(into, shape, nearest::<f64>(pad), others),
            KeyKind::Signed => self.pad_with(into, shape, nearest::<i64>(pad), others),
            KeyKind::Unsigned => self.pad_with(into, shape, nearest::<u64>(pad), others),
        }
    }

    fn pad_with<T: Operand>(&self, into: &mut Accumulator, shape: &[usize], pad: T, others: u64) {
        let inner: usize = shape[self.axis + 1..].iter().product();
        for cell in 0..into.cells {
            let window = (cell / inner % self.count as usize) as u64;
            let (start, end) = self.inside(window);
            let real = end.saturating_sub(start);
            let missing = (self.size - real.min(self.size)) * others;
            if missing > 0 {
                if into.fold.is_indexed() {
                    into.fold.one(cell, pad, real);
                }
                into.repeat(cell, pad, missing);
            }
        }
    }
}
