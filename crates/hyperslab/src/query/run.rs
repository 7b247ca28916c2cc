//! Running a plan: tiles of the result → chunks → accumulators → answer.
//!
//! A task folds a run of chunks into a tile. Tasks run on all cores; what they return is merged in their own order, so
//! that neither the number of threads nor their luck shows in the answer.

use std::ops::Range;

use hyperslab_core::{
    Array, ChunkRef, ChunkStatistics, Error, Layout, PlannedChunk, Result, read_chunk_elements, with_chunk,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::accumulate::{Accumulator, Kind};
use super::answer::{Answer, AnswerAxis, Column};
use super::axes::AxisMap;
use super::condition::Mask;
use super::lane::{Cell, KeyKind, Stored, for_stored};
use super::plan::{Explanation, Geometry, QueryPlan, Tile};
use super::walk::{Loop, NO_GROUP, Scratch, To, fold_box};
use super::{Operation, order};
use crate::ArrayReader;

/// Chunks that a task looks up at once.
const LOCATED: u64 = 256;

/// What some of a plan's tasks found. Serialises, so that tasks can run anywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    pub(super) tasks: Vec<(u64, Accumulator)>,
}

/// Tasks whose results may be in memory at the same time.
pub(super) fn wave(plan: &QueryPlan, state: u64) -> u64 {
    let threads = rayon::current_num_threads() as u64;
    (plan.memory / 2 / state.max(1)).clamp(threads, 4096)
}

/// Runs tasks on all cores; what they return is in the tasks' order.
fn in_parallel<T: Send>(tasks: Range<u64>, work: impl Fn(u64) -> Result<T> + Sync + Send) -> Result<Vec<T>> {
    let count = usize::try_from(tasks.end - tasks.start)
        .map_err(|_| Error::invalid("more tasks than memory holds"))?;
    (0..count).into_par_iter().with_max_len(1).map(|number| work(tasks.start + number as u64)).collect()
}

impl QueryPlan {
    /// Runs the whole plan.
    ///
    /// # Errors
    ///
    /// Whatever reading says; [`Invalid`](Error::Invalid) for a plan of another array.
    pub fn run(&self, array: &ArrayReader) -> Result<Answer> {
        self.check_array(array)?;
        match self.operation {
            Operation::Histogram { bins, range: None, clamp } => {
                let range = self.range(array)?;
                let with_range = Self {
                    operation: Operation::Histogram { bins, range: Some(range), clamp },
                    ..self.clone()
                };
                with_range.whole().run(array)
            }
            Operation::Median | Operation::Quantile(_) if !self.values_fit()? => {
                order::by_digits(self, array)
            }
            _ => {
                let kind = self.first_kind()?;
                let column =
                    self.fold(array, &kind, |plan, accumulator, tile| plan.finish(accumulator, tile))?;
                self.answer(column)
            }
        }
    }

    /// Runs the tasks of this part of a plan.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run); also for a histogram without a range, which takes two passes.
    pub fn run_part(&self, array: &ArrayReader) -> Result<Partial> {
        self.check_array(array)?;
        if matches!(self.operation, Operation::Histogram { range: None, .. }) {
            return Err(Error::invalid("a histogram in parts needs a range"));
        }
        let kind = self.first_kind()?;
        let geometry = self.geometry(&kind)?;
        let work = |task| Ok((task, self.task(&**array.inner(), &geometry, &kind, task)?));
        let tasks = in_parallel(self.tasks.clone(), work)?;
        Ok(Partial { tasks })
    }

    /// The answer, from the partial results of all parts of this plan, in any order.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) when a part is missing, comes twice, or is another plan's.
    pub fn merge(&self, parts: impl IntoIterator<Item = Partial>) -> Result<Answer> {
        let whole = self.whole();
        let kind = whole.first_kind()?;
        let geometry = whole.geometry(&kind)?;
        let mut tasks: Vec<_> = parts.into_iter().flat_map(|part| part.tasks).collect();
        tasks.sort_by_key(|(task, _)| *task);
        let complete = tasks.iter().map(|(task, _)| *task).eq(whole.tasks.clone());
        if !complete || tasks.iter().any(|(_, accumulator)| accumulator.kind != kind) {
            return Err(Error::invalid("the parts are not those of this plan"));
        }
        let mut result = whole.empty_column()?;
        let mut merger = Merger { plan: &whole, geometry: &geometry, current: None };
        for (task, accumulator) in tasks {
            if accumulator.cells != whole.tile(&geometry, task / geometry.runs)?.cells {
                return Err(Error::invalid("the parts are not those of this plan"));
            }
            merger.take(task, accumulator, &mut result, &Self::finish)?;
        }
        merger.end(&mut result, &Self::finish)?;
        whole.answer(result)
    }

    /// The plan with all its tasks.
    fn whole(&self) -> Self {
        let mut whole = self.clone();
        if let Ok(geometry) = self.first_kind().and_then(|kind| self.geometry(&kind)) {
            whole.tasks = 0..geometry.tiles * geometry.runs;
        }
        whole
    }

    fn check_array(&self, array: &ArrayReader) -> Result<()> {
        let schema = array.schema();
        if schema.grid != *self.plan.grid() || schema.dtype != self.dtype {
            return Err(Error::invalid(format!("{}: the plan is of another array", array.inner().name())));
        }
        Ok(())
    }

    /// Do all values of the tiles that are worked on at once fit in the budget?
    fn values_fit(&self) -> Result<bool> {
        let kind = self.first_kind()?;
        let geometry = self.geometry(&kind)?;
        let state = Accumulator::bytes(&kind, self.key_kind(), self.tile_cells(), self.tile_values(), false);
        let at_once = (rayon::current_num_threads() as u64).min(geometry.tiles).max(1);
        Ok(state.saturating_mul(at_once) <= self.memory / 2)
    }

    /// The smallest and the largest of all selected values.
    fn range(&self, array: &ArrayReader) -> Result<(f64, f64)> {
        let maps = self.maps.iter().map(|map| match map {
            AxisMap::Group { ids, .. } => AxisMap::Group {
                ids: ids.iter().map(|id| if *id == NO_GROUP { NO_GROUP } else { 0 }).collect(),
                count: 1,
                shown: false,
                labels: None,
            },
            _ => AxisMap::Reduce,
        });
        let mut all = Self { maps: maps.collect(), skip_nan: true, ..self.clone() };
        let mut end = |operation| {
            all.operation = operation;
            all.whole().run(array)?.scalar()
        };
        let (Some(low), Some(high)) = (end(Operation::Min)?, end(Operation::Max)?) else {
            return Ok((0.0, 1.0));
        };
        if !low.is_finite() || !high.is_finite() {
            return Err(Error::invalid(format!(
                "{}: a histogram from {low} to {high}; give a range",
                self.name
            )));
        }
        Ok(if low < high { (low, high) } else { (low - 0.5, high + 0.5) })
    }

    /// Folds everything; `finish` makes a tile's values of its accumulator.
    pub(super) fn fold(
        &self,
        array: &ArrayReader,
        kind: &Kind,
        finish: impl Fn(&Self, Accumulator, &Tile) -> Column + Sync,
    ) -> Result<Column> {
        let geometry = self.geometry(kind)?;
        let state =
            Accumulator::bytes(kind, self.key_kind(), self.tile_cells(), self.tile_values(), self.counted());
        let wave = wave(self, state);
        let mut result = self.empty_column()?;
        let mut merger = Merger { plan: self, geometry: &geometry, current: None };
        let end = geometry.tiles * geometry.runs;
        let mut start = 0;
        while start < end {
            let stop = end.min(start + wave);
            let work = |task| {
                let accumulator = self.task(&**array.inner(), &geometry, kind, task)?;
                if geometry.runs > 1 {
                    return Ok(Done::Part(accumulator));
                }
                let tile = self.tile(&geometry, task)?;
                Ok(Done::Tile(finish(self, accumulator, &tile)))
            };
            let done = in_parallel(start..stop, work)?;
            for (task, done) in (start..stop).zip(done) {
                match done {
                    Done::Part(part) => merger.take(task, part, &mut result, &finish)?,
                    Done::Tile(column) => self.place(&self.tile(&geometry, task)?, &column, &mut result),
                }
            }
            start = stop;
        }
        merger.end(&mut result, &finish)?;
        Ok(result)
    }

    /// The accumulator of one task.
    fn task(&self, array: &dyn Array, geometry: &Geometry, kind: &Kind, task: u64) -> Result<Accumulator> {
        let tile = self.tile(geometry, task / geometry.runs)?;
        let first = task % geometry.runs * geometry.run;
        let chunks = first..(first + geometry.run).min(geometry.chunks);
        let mut into = Accumulator::new(kind, self.key_kind(), tile.cells, self.counted());
        if matches!(kind, Kind::Digits(_)) {
            into.places = self.places_of(&tile);
        }
        for_stored!(
            Stored::of(&self.dtype, &self.name)?,
            fold_chunks(self, array, geometry, &tile, chunks, &mut into)
        )?;
        Ok(into)
    }

    /// The loops over the wanted cells of a chunk, the first cell and its index; `None` when no cell has a group.
    fn loops<'a>(
        &'a self,
        tile: &Tile,
        wanted: &PlannedChunk,
        layout: &mut Layout,
        indexed: bool,
    ) -> Option<(SmallVec<[Loop<'a>; 6]>, (usize, u64))> {
        let (mut cell, mut index, mut each) = (0_usize, 0_u64, 1_u64);
        let mut loops = SmallVec::new();
        for axis in (0..self.maps.len()).rev() {
            let part = wanted.axes[axis];
            let count = part.count as usize;
            let (mut stride, mut place) = (layout.strides[axis], part.place);
            // The order of the cells matters unless they all go into one.
            if part.backwards && (indexed || self.maps[axis] != AxisMap::Reduce) {
                layout.offset = layout.offset.wrapping_add_signed(stride * (count as isize - 1));
                stride = -stride;
                place = place + 1 - part.count;
            }
            let mut step = 0;
            let to = match &self.maps[axis] {
                AxisMap::Keep => {
                    cell += (place - tile.start[axis]) as usize * tile.strides[axis];
                    To::Own(tile.strides[axis])
                }
                reduced => {
                    step = each;
                    index += place * each;
                    each *= match self.places {
                        Some(places) if places.axis == axis => places.size,
                        _ => self.plan.positions().axes[axis].count,
                    };
                    match reduced {
                        AxisMap::Group { ids, .. } => {
                            let ids = &ids[place as usize..place as usize + count];
                            if ids.iter().all(|id| *id == NO_GROUP) {
                                return None;
                            }
                            To::Group(ids, tile.strides[axis])
                        }
                        _ => To::Same,
                    }
                }
            };
            loops.push(Loop { count, stride, to, index: step });
        }
        Some((loops, (cell, index)))
    }

    /// Puts a tile's values into their place in the result.
    fn place(&self, tile: &Tile, column: &Column, result: &mut Column) {
        let shape = self.shape();
        let each = column.len().checked_div(self.tile_shape(tile).iter().product()).unwrap_or(0);
        let mut out_strides = vec![0_usize; self.maps.len()];
        let mut stride = each;
        let mut left = shape.len();
        for axis in (0..self.maps.len()).rev() {
            if self.shown(axis).is_some() {
                left -= 1;
                out_strides[axis] = stride;
                stride *= shape[left] as usize;
            }
        }
        let extents = self.tile_shape(tile);
        let cells: usize = extents.iter().product();
        // Runs along the last axis stay together when it is shown.
        let last = extents
            .len()
            .checked_sub(1)
            .filter(|axis| out_strides[*axis] == each)
            .map_or(1, |axis| extents[axis]);
        let mut from = 0;
        while from < cells {
            let (mut rest, mut to) = (from, 0);
            for axis in (0..extents.len()).rev() {
                to += (tile.start[axis] as usize + rest % extents[axis]) * out_strides[axis];
                rest /= extents[axis];
            }
            let (source, target) = (from * each..(from + last) * each, to..to + last * each);
            result.valid[target.clone()].copy_from_slice(&column.valid[source.clone()]);
            if !column.floats.is_empty() && !result.floats.is_empty() {
                result.floats[target.clone()].copy_from_slice(&column.floats[source.clone()]);
            }
            if !column.integers.is_empty() {
                result.integers[target].copy_from_slice(&column.integers[source]);
            }
            from += last;
        }
        result.inexact |= column.inexact;
    }

    /// The places of a tile's cells among all cells of the result.
    fn places_of(&self, tile: &Tile) -> Vec<u64> {
        let shape = self.shape();
        let mut strides = vec![0_u64; self.maps.len()];
        let (mut stride, mut left) = (1, shape.len());
        for axis in (0..self.maps.len()).rev().filter(|axis| self.shown(*axis).is_some()) {
            left -= 1;
            strides[axis] = stride;
            stride *= shape[left];
        }
        (0..tile.cells)
            .map(|cell| {
                let axes = 0..self.maps.len();
                axes.map(|axis| {
                    (tile.start[axis] + (cell / tile.strides[axis] % tile.shape[axis]) as u64) * strides[axis]
                })
                .sum()
            })
            .collect()
    }

    /// A tile's extents per axis of the array, windows counted instead of positions.
    pub(super) fn tile_shape(&self, tile: &Tile) -> SmallVec<[usize; 4]> {
        let mut shape = tile.shape.clone();
        if let Some(places) = self.places {
            shape[places.axis] = places.count as usize;
        }
        shape
    }

    fn empty_column(&self) -> Result<Column> {
        let length =
            usize::try_from(self.answers()?).map_err(|_| Error::invalid("more answers than memory holds"))?;
        let mut column = Column { valid: vec![false; length], ..Column::default() };
        if self.integral() {
            column.integers = vec![0; length];
        }
        if !self.integral() || self.operation == Operation::Product {
            column.floats = vec![f64::NAN; length];
        }
        Ok(column)
    }

    pub(super) fn answer(&self, column: Column) -> Result<Answer> {
        let mut axes: Vec<AnswerAxis> = (0..self.maps.len())
            .filter_map(|axis| {
                let labels = match &self.maps[axis] {
                    AxisMap::Group { labels, .. } => labels.clone(),
                    _ => None,
                };
                Some(AnswerAxis { name: self.dimensions[axis].clone(), extent: self.shown(axis)?, labels })
            })
            .collect();
        let mut edges = None;
        if let Operation::Histogram { bins, range: Some((low, high)), .. } = self.operation {
            axes.push(AnswerAxis { name: Some("bin".to_owned()), extent: bins as u64, labels: None });
            let width = (high - low) / bins as f64;
            let edge = |bin: usize| if bin == bins { high } else { low + width * bin as f64 };
            edges = Some((0..=bins).map(edge).collect());
        }
        let dtype = match self.operation {
            Operation::Min | Operation::Max => self.dtype.clone(),
            Operation::AllFinite | Operation::AnyNan | Operation::AnyInf => hyperslab_core::DType::Bool,
            Operation::Count
            | Operation::ArgMin
            | Operation::ArgMax
            | Operation::NanCount
            | Operation::InfCount
            | Operation::NullCount { .. }
            | Operation::Histogram { .. } => hyperslab_core::DType::UInt64,
            // Floats, or integers as wide as they need to be.
            _ => hyperslab_core::DType::Float64,
        };
        let cells = self.plan.positions().cells().unwrap_or(u64::MAX);
        Ok(Answer { operation: self.operation.name(), axes, cells, edges, dtype, column })
    }

    /// What running will cost. Looks chunks up, reads none.
    ///
    /// # Errors
    ///
    /// Whatever the chunk index says.
    pub fn explain(&self, array: &ArrayReader) -> Result<Explanation> {
        self.check_array(array)?;
        for_stored!(Stored::of(&self.dtype, &self.name)?, explain(self, array))
    }
}

fn explain<C: Cell>(plan: &QueryPlan, reader: &ArrayReader) -> Result<Explanation> {
    let array = &**reader.inner();
    let kind = plan.first_kind()?;
    let geometry = plan.geometry(&kind)?;
    let mask = Mask::<C::Lane>::new(&plan.conditions, plan.fill, plan.mask_nan());
    let mut told = Explanation {
        chunks: plan.plan.len(),
        unwritten: 0,
        skipped: 0,
        stored_bytes: 0,
        decoded_bytes: 0,
        requests: 0,
        tasks: geometry.tiles * geometry.runs,
        memory: 0,
        shape: plan.shape(),
    };
    let item = plan.dtype.size().unwrap_or(0) as u64;
    let (mut plain, mut end) = (true, None);
    for start in (0..plan.plan.len()).step_by(LOCATED as usize) {
        let chunks: Vec<_> =
            (start..(start + LOCATED).min(plan.plan.len())).map(|i| plan.plan.chunk(i)).collect();
        let coords: Vec<_> = chunks.iter().map(|chunk| chunk.coord.clone()).collect();
        let known = statistics(plan, array, &coords, mask.as_ref())?;
        for (number, (reference, chunk)) in array.locate(&coords)?.iter().zip(&chunks).enumerate() {
            let Some(reference) = reference else {
                told.unwritten += 1;
                continue;
            };
            if known.get(number).is_some_and(|ruled_out| *ruled_out) {
                told.skipped += 1;
                continue;
            }
            let wanted = hyperslab_core::product(&chunk.bounds().shape).unwrap_or(0).saturating_mul(item);
            if reference.as_plain().is_some() {
                told.decoded_bytes = told.decoded_bytes.saturating_add(wanted);
            } else {
                plain = false;
                let whole = array.schema().decoded_bytes(&chunk.coord).unwrap_or(0) as u64;
                told.decoded_bytes = told.decoded_bytes.saturating_add(whole);
            }
            for span in reference.spans() {
                if end.as_ref() != Some(&(span.blob.clone(), span.offset)) {
                    told.requests += 1;
                }
                end = Some((span.blob.clone(), span.offset.saturating_add(span.length)));
                told.stored_bytes = told.stored_bytes.saturating_add(span.length);
            }
        }
    }
    told.memory = plan.memory_needed(&kind, plain)?;
    Ok(told)
}

/// Which of these chunks no value of which can count; empty when nothing is known.
fn statistics<T: super::lane::Lane>(
    plan: &QueryPlan,
    array: &dyn Array,
    coords: &[hyperslab_core::ChunkCoord],
    mask: Option<&Mask<T>>,
) -> Result<Vec<bool>> {
    let Some(mask) = mask.filter(|_| !plan.conditions.is_empty()) else { return Ok(Vec::new()) };
    let known = array.statistics(coords)?;
    let ruled_out = |known: &Option<ChunkStatistics>| {
        known.as_ref().is_some_and(|known| (!known.hint || plan.trust_hints) && mask.rules_out(known))
    };
    Ok(known.iter().map(ruled_out).collect())
}

enum Done {
    Part(Accumulator),
    Tile(Column),
}

/// Puts the parts of each tile together, in order.
struct Merger<'a> {
    plan: &'a QueryPlan,
    geometry: &'a Geometry,
    current: Option<(u64, Accumulator)>,
}

impl Merger<'_> {
    fn take(
        &mut self,
        task: u64,
        part: Accumulator,
        result: &mut Column,
        finish: &impl Fn(&QueryPlan, Accumulator, &Tile) -> Column,
    ) -> Result<()> {
        let tile = task / self.geometry.runs;
        if let Some((own, accumulator)) = &mut self.current
            && *own == tile
        {
            accumulator.merge(&part);
            return Ok(());
        }
        self.end(result, finish)?;
        self.current = Some((tile, part));
        Ok(())
    }

    fn end(
        &mut self,
        result: &mut Column,
        finish: &impl Fn(&QueryPlan, Accumulator, &Tile) -> Column,
    ) -> Result<()> {
        if let Some((number, accumulator)) = self.current.take() {
            let tile = self.plan.tile(self.geometry, number)?;
            self.plan.place(&tile, &finish(self.plan, accumulator, &tile), result);
        }
        Ok(())
    }
}

/// Folds chunks of a tile, one after the other.
fn fold_chunks<C: Cell>(
    plan: &QueryPlan,
    array: &dyn Array,
    geometry: &Geometry,
    tile: &Tile,
    chunks: Range<u64>,
    into: &mut Accumulator,
) -> Result<()> {
    let mask = Mask::<C::Lane>::new(&plan.conditions, plan.fill, plan.mask_nan());
    let mut scratch = Scratch::new();
    let mut start = chunks.start;
    while start < chunks.end {
        let end = chunks.end.min(start + LOCATED);
        let planned: Vec<PlannedChunk> =
            (start..end).map(|number| plan.chunk(geometry, tile, number)).collect();
        let coords: Vec<_> = planned.iter().map(|chunk| chunk.coord.clone()).collect();
        let ruled_out = statistics(plan, array, &coords, mask.as_ref())?;
        let references = array.locate(&coords)?;
        for (number, (wanted, reference)) in planned.iter().zip(&references).enumerate() {
            if ruled_out.get(number).is_some_and(|ruled_out| *ruled_out) {
                continue;
            }
            if plan.nullable {
                fold_elements::<C>(plan, array, tile, wanted, reference.as_ref(), mask.as_ref(), into)?;
                continue;
            }
            with_chunk(array, wanted, reference.as_ref(), |bytes, layout| {
                let mut layout = layout.clone();
                match plan.loops(tile, wanted, &mut layout, into.indexed()) {
                    Some((loops, first)) => {
                        fold_box::<C>(bytes, &layout, &loops, first, mask.as_ref(), &mut scratch, into)
                    }
                    None => Ok(()),
                }
            })?;
        }
        start = end;
    }
    Ok(())
}

/// Folds a chunk some of whose elements may be missing, cell by cell.
fn fold_elements<C: Cell>(
    plan: &QueryPlan,
    array: &dyn Array,
    tile: &Tile,
    wanted: &PlannedChunk,
    reference: Option<&ChunkRef>,
    mask: Option<&Mask<C::Lane>>,
    into: &mut Accumulator,
) -> Result<()> {
    let elements = read_chunk_elements(array, &wanted.coord, reference)?;
    let bytes = elements.as_fixed().ok_or_else(|| {
        Error::invalid(format!("{}: elements of another kind than the array", array.name()))
    })?;
    let item = size_of::<C>();
    let region = array.schema().grid.region(&wanted.coord).shape;
    let mut layout = Layout::packed(&region, item);
    for (part, stride) in wanted.axes.iter().zip(&mut layout.strides) {
        layout.offset += part.first as usize * stride.unsigned_abs();
        *stride *= part.step as isize;
    }
    let counts = matches!(into.kind, Kind::Tally { .. });
    let Some((loops, (first, index))) = plan.loops(tile, wanted, &mut layout, true) else { return Ok(()) };
    let cells: usize = loops.iter().map(|axis| axis.count).product();
    'cells: for number in 0..cells {
        let (mut left, mut at, mut cell, mut index) = (number, layout.offset, first, index);
        for axis in &loops {
            let i = left % axis.count;
            left /= axis.count;
            at = at.wrapping_add_signed(axis.stride * i as isize);
            index += i as u64 * axis.index;
            cell += match axis.to {
                To::Same => 0,
                To::Own(far) => i * far,
                To::Group(groups, _) if groups[i] == NO_GROUP => continue 'cells,
                To::Group(groups, far) => groups[i] as usize * far,
            };
        }
        if elements.is_missing(at / item) {
            // Missing counts as missing, and as nothing else.
            if counts {
                into.u[cell * 3 + 2] += 1;
            }
            continue;
        }
        let value = bytemuck::pod_read_unaligned::<C>(&bytes[at..at + item]).widen();
        if mask.is_none_or(|mask| mask.keeps(value)) {
            into.one(cell, value, index);
        }
    }
    Ok(())
}

impl QueryPlan {
    /// The values of a tile, of what was remembered.
    pub(super) fn finish(&self, mut accumulator: Accumulator, tile: &Tile) -> Column {
        let shape = self.tile_shape(tile);
        let key = self.key_kind();
        if let Some(places) = self.places
            && places.rolling
        {
            accumulator = places.roll(&accumulator, key, &tile.shape);
        }
        let real = if self.places.is_some() { accumulator.n.clone() } else { Vec::new() };
        if let (Some(places), Some(pad)) = (self.places, self.pad) {
            let others = (0..self.maps.len()).filter(|axis| self.maps[*axis] == AxisMap::Reduce);
            let others = others.map(|axis| self.plan.positions().axes[axis].count).product();
            places.pad(&mut accumulator, &shape, pad, key, others);
        }
        let sizes: Vec<Vec<u64>> = if accumulator.n.is_empty() {
            (0..self.maps.len())
                .map(|axis| match &self.maps[axis] {
                    AxisMap::Keep => Vec::new(),
                    map => map.sizes(self.plan.positions().axes[axis].count),
                })
                .collect()
        } else {
            Vec::new()
        };
        let mut column = Column::default();
        for cell in 0..accumulator.cells {
            let n = match accumulator.n.get(cell) {
                Some(n) => *n,
                None => {
                    let at = |axis: usize| cell / tile.strides[axis] % tile.shape[axis];
                    let size = |(axis, sizes): (usize, &Vec<u64>)| sizes.get(at(axis)).copied().unwrap_or(1);
                    sizes.iter().enumerate().map(size).product()
                }
            };
            let enough = real.get(cell).is_none_or(|real| *real >= self.min_count);
            self.finish_cell(&mut accumulator, cell, n, enough, &mut column);
            if let (Some(places), true) = (self.places, accumulator.indexed()) {
                self.relative(places, cell, &shape, &mut column);
            }
        }
        column
    }

    /// Positions in a window are counted from its own start.
    fn relative(&self, places: super::windows::Places, cell: usize, shape: &[usize], column: &mut Column) {
        let inner: usize = shape[places.axis + 1..].iter().product();
        let window = (cell / inner % places.count as usize) as u64;
        let each: u64 = (places.axis + 1..self.maps.len())
            .filter(|axis| self.maps[*axis] == AxisMap::Reduce)
            .map(|axis| self.plan.positions().axes[axis].count)
            .product();
        if let Some(index) = column.integers.last_mut() {
            *index -= i128::from(places.start(window)) * i128::from(each);
        }
    }

    fn finish_cell(&self, own: &mut Accumulator, cell: usize, n: u64, enough: bool, column: &mut Column) {
        let float = self.key_kind() == KeyKind::Float;
        let some = n > 0 && enough;
        let count = n as f64;
        match self.operation {
            Operation::Count => column.push_integer(enough.then_some(n.into())),
            Operation::Sum if float => column.push_float(enough.then(|| own.sum(cell))),
            Operation::Sum => column.push_integer(enough.then(|| own.i[cell])),
            Operation::Mean => column
                .push_float(some.then(|| if float { own.sum(cell) / count } else { mean(own.i[cell], n) })),
            Operation::Min | Operation::Max if float => {
                let nans = own.u[cell];
                let value = match nans {
                    0 => own.a[cell] + 0.0,
                    _ if !self.skip_nan => f64::NAN,
                    _ => own.a[cell] + 0.0,
                };
                column.push_float((some && (nans < n || !self.skip_nan)).then_some(value));
            }
            Operation::Min | Operation::Max => column.push_integer(some.then(|| own.i[cell])),
            Operation::Var { ddof } | Operation::Std { ddof } => {
                let freedom = own.c[cell] - f64::from(ddof);
                let var = own.b[cell] / freedom;
                let root = matches!(self.operation, Operation::Std { .. });
                column.push_float((some && freedom > 0.0).then(|| if root { var.sqrt() } else { var }));
            }
            Operation::Product if float => column.push_float(some.then(|| own.a[cell])),
            Operation::Product => {
                let exact = own.integer_product(cell);
                column.inexact |= some
                    && exact
                        .is_none_or(|exact| i64::try_from(exact).is_err() && u64::try_from(exact).is_err());
                column.floats.push(if some {
                    exact.map_or(own.a[cell], |exact| exact as f64)
                } else {
                    f64::NAN
                });
                column.push_integer(some.then(|| exact.unwrap_or(0)));
            }
            Operation::NormL1 if float => column.push_float(some.then(|| own.sum(cell))),
            Operation::NormL1 => column.push_integer(some.then(|| own.i[cell])),
            Operation::NormL2 => column.push_float(some.then(|| own.sum(cell).sqrt())),
            Operation::ArgMin | Operation::ArgMax => {
                let at = own.u[cell];
                column.push_integer((some && at != u64::MAX).then_some(at.into()));
            }
            Operation::Median => column.push_float(order::quantile(own, cell, 0.5, self.key_kind())),
            Operation::Quantile(q) => column.push_float(order::quantile(own, cell, q, self.key_kind())),
            Operation::Histogram { bins, .. } => {
                for bin in 0..bins {
                    column.push_integer(Some(own.u[cell * bins + bin].into()));
                }
            }
            _ => {
                let [nan, inf, null] = [own.u[cell * 3], own.u[cell * 3 + 1], own.u[cell * 3 + 2]];
                let value = match self.operation {
                    Operation::AllFinite => u64::from(nan + inf == 0),
                    Operation::AnyNan => u64::from(nan > 0),
                    Operation::AnyInf => u64::from(inf > 0),
                    Operation::NanCount => nan,
                    Operation::InfCount => inf,
                    _ => null,
                };
                column.push_integer(enough.then_some(value.into()));
            }
        }
    }
}

/// The mean of integers with this sum, without losing what a float of the sum would.
fn mean(sum: i128, n: u64) -> f64 {
    let n = i128::from(n);
    (sum / n) as f64 + (sum % n) as f64 / n as f64
}
