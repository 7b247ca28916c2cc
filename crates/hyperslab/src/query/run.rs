//! Runs a plan: tiles of the result → chunks → accumulators → answer.
//!
//! A task folds a run of chunks into a tile. Tasks run on all cores. Their results are merged in task order, so that the answer
//! depends neither on the number of threads nor on their timing.

use std::ops::Range;

use hyperslab_core::{
    Array, Chunk, ChunkCoord, ChunkList, ChunkStatistics, ChunkVisitor, Elements, Error, Layout,
    PlannedChunk, Result, visit_chunks,
};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::accumulate::Accumulator;
use super::answer::{Answer, AnswerAxis, Column};
use super::axes::AxisMap;
use super::condition::Mask;
use super::fold::AnyFold;
use super::operand::{Cell, Stored, for_stored};
use super::plan::{Geometry, QueryPlan, Tile};
use super::statistics::{can_skip, fold_from_statistics, usable_statistics};
use super::unwritten::{FillCell, Written};
use super::walk::{Along, Loop, NO_GROUP, Scratch, To, fold_box, fold_run};
use super::{Operation, order};
use crate::ArrayReader;

/// The result of some of a plan's tasks. It can be serialised, so that tasks can run anywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    pub(super) tasks: Vec<(u64, Accumulator)>,
}

/// The number of tasks whose results may be in memory at the same time.
pub(super) fn wave(plan: &QueryPlan, state: u64) -> u64 {
    let threads = rayon::current_num_threads() as u64;
    (plan.working / 2 / state.max(1)).clamp(threads, 4096)
}

/// Runs tasks on the array's threads. Results are in task order.
fn in_parallel<T: Send>(
    array: &ArrayReader,
    tasks: Range<u64>,
    work: impl Fn(u64) -> Result<T> + Sync + Send,
) -> Result<Vec<T>> {
    let count = usize::try_from(tasks.end - tasks.start)
        .map_err(|_| Error::invalid("the tasks do not fit in memory"))?;
    array.context().threads.map(count, |number| work(tasks.start + number as u64))
}

impl QueryPlan {
    /// Runs the whole plan.
    ///
    /// # Errors
    ///
    /// Any error from reading; [`Invalid`](Error::Invalid) for a plan made for another array.
    pub fn run(&self, array: &ArrayReader) -> Result<Answer> {
        self.check_array(array)?;
        hyperslab_core::prefetch_index(&**array.inner(), &self.plan, self.plan.len())?;
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
                let column = self.fold(array, &self.first_fold(), Self::finish)?;
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
            return Err(Error::invalid("a histogram computed in parts needs a range"));
        }
        let fold = self.first_fold();
        let geometry = self.geometry(&fold)?;
        let written = self.written(array, &geometry)?;
        let run = |array: &ArrayReader, tasks: Range<u64>| {
            let work = |task| Ok((task, self.task(array, &geometry, &fold, task, written.as_ref())?));
            in_parallel(array, tasks, work)
        };
        if !array.inner().is_remote() {
            return Ok(Partial { tasks: run(array, self.tasks.clone())? });
        }
        let mut tasks = Vec::new();
        self.in_waves(array, (&fold, &geometry), self.tasks.clone(), written.as_ref(), |array, wave| {
            tasks.extend(run(array, wave)?);
            Ok(())
        })?;
        Ok(Partial { tasks })
    }

    /// Merges the partial results of all parts of this plan, in any order, into the answer.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if a part is missing, occurs twice, or belongs to another plan.
    pub fn merge(&self, parts: impl IntoIterator<Item = Partial>) -> Result<Answer> {
        let whole = self.whole();
        let fold = whole.first_fold();
        let geometry = whole.geometry(&fold)?;
        let mut tasks: Vec<_> = parts.into_iter().flat_map(|part| part.tasks).collect();
        tasks.sort_by_key(|(task, _)| *task);
        let complete = tasks.iter().map(|(task, _)| *task).eq(whole.tasks.clone());
        if !complete || tasks.iter().any(|(_, accumulator)| accumulator.fold.sized(0) != fold) {
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
        if let Ok(geometry) = self.geometry(&self.first_fold()) {
            whole.tasks = 0..geometry.tiles * geometry.runs;
        }
        whole
    }

    pub(super) fn check_array(&self, array: &ArrayReader) -> Result<()> {
        let schema = array.schema();
        if schema.grid != *self.plan.grid() || schema.dtype != self.dtype {
            return Err(Error::invalid(format!(
                "{}: the plan was made for another array",
                array.inner().name()
            )));
        }
        Ok(())
    }

    /// Returns true if all values of the tiles processed at once fit in the budget.
    fn values_fit(&self) -> Result<bool> {
        let fold = self.first_fold();
        let geometry = self.geometry(&fold)?;
        let state = Accumulator::bytes(&fold, self.tile_cells(), self.tile_values(), false);
        let at_once = (rayon::current_num_threads() as u64).min(geometry.tiles).max(1);
        Ok(state.saturating_mul(at_once) <= self.working / 2)
    }

    /// The smallest and largest of all selected values.
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
                "{}: the values range from {low} to {high}, which gives no histogram; pass a range",
                self.name
            )));
        }
        Ok(if low < high { (low, high) } else { (low - 0.5, high + 0.5) })
    }

    /// Folds everything. `finish` turns a tile's accumulator into its values.
    pub(super) fn fold(
        &self,
        array: &ArrayReader,
        fold: &AnyFold,
        finish: impl Fn(&Self, Accumulator, &Tile) -> Column + Sync,
    ) -> Result<Column> {
        let geometry = self.geometry(fold)?;
        let state = Accumulator::bytes(fold, self.tile_cells(), self.tile_values(), self.counted());
        let wave = wave(self, state);
        let written = self.written(array, &geometry)?;
        let mut result = self.empty_column()?;
        let mut merger = Merger { plan: self, geometry: &geometry, current: None };
        let all = geometry.tiles * geometry.runs;
        // As many tasks at once as memory has room for their results.
        let mut run = |array: &ArrayReader, tasks: Range<u64>| {
            let mut start = tasks.start;
            while start < tasks.end {
                let stop = tasks.end.min(start + wave);
                let work = |task| {
                    let mut accumulator = self.task(array, &geometry, fold, task, written.as_ref())?;
                    if geometry.runs > 1 {
                        return Ok(Done::Part(accumulator));
                    }
                    let tile = self.tile(&geometry, task)?;
                    self.fold_unwritten(&mut accumulator)?;
                    Ok(Done::Tile(finish(self, accumulator, &tile)))
                };
                let done = in_parallel(array, start..stop, work)?;
                for (task, done) in (start..stop).zip(done) {
                    match done {
                        Done::Part(part) => merger.take(task, part, &mut result, &finish)?,
                        Done::Tile(column) => self.place(&self.tile(&geometry, task)?, &column, &mut result),
                    }
                }
                start = stop;
            }
            Ok(())
        };
        if array.inner().is_remote() {
            self.in_waves(array, (fold, &geometry), 0..all, written.as_ref(), run)?;
        } else {
            run(array, 0..all)?;
        }
        merger.end(&mut result, &finish)?;
        Ok(result)
    }

    /// The accumulator of one task.
    fn task(
        &self,
        array: &ArrayReader,
        geometry: &Geometry,
        fold: &AnyFold,
        task: u64,
        written: Option<&Written>,
    ) -> Result<Accumulator> {
        let number = task / geometry.runs;
        let tile = self.tile(geometry, number)?;
        let first = task % geometry.runs * geometry.run;
        let chunks = first..(first + geometry.run).min(geometry.chunks);
        let mut into = Accumulator::new(fold, tile.cells, self.counted());
        if let AnyFold::Digits(digits) = &mut into.fold {
            digits.places = self.places_of(&tile);
        }
        // The number of cells is implied by the geometry.
        if matches!(fold, AnyFold::Count(_)) && !self.counted() {
            return Ok(into);
        }
        let list = TileChunks::new(self, geometry, (number, &tile), chunks, written);
        for_stored!(Stored::of(&self.dtype, &self.name)?, fold_chunks(array, &list, &mut into))?;
        Ok(into)
    }

    /// The loops over the wanted cells of a chunk, the first cell and its index; `None` if no cell has a group.
    fn loops<'a>(
        &'a self,
        tile: &Tile,
        wanted: &PlannedChunk,
        layout: &mut Layout,
        indexed: bool,
    ) -> Option<(Loops<'a>, (usize, u64))> {
        let (mut cell, mut index, mut each) = (0_usize, 0_u64, 1_u64);
        let mut loops = SmallVec::new();
        for axis in (0..self.maps.len()).rev() {
            let part = wanted.axes[axis];
            let count = part.count as usize;
            let (mut stride, mut place) = (layout.strides[axis], part.place);
            // The order of cells matters, unless they are all folded into one.
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
                    each *= self.index_extent(axis);
                    match reduced {
                        AxisMap::Group { ids, .. } => {
                            let ids = &ids[place as usize..place as usize + count];
                            if ids.iter().all(|id| *id == NO_GROUP) {
                                return None;
                            }
                            To::Group(ids, tile.strides[axis])
                        }
                        AxisMap::Pieces { count: pieces } => {
                            let pieces = self.pieces(axis, *pieces);
                            To::Pieces(Along { pieces, first: place }, tile.strides[axis])
                        }
                        _ => To::Same,
                    }
                }
            };
            loops.push(Loop { count, stride, to, index: step });
        }
        Some((loops, (cell, index)))
    }

    /// Copies a tile's values to their position in the result.
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
        // Runs along the last longer axis stay together if it is shown.
        let last = (0..extents.len())
            .rfind(|axis| extents[*axis] > 1)
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
        result.values += column.values;
    }

    /// The positions of a tile's cells among all cells of the result.
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

    /// A tile's extents per axis of the array, counting windows instead of positions.
    pub(super) fn tile_shape(&self, tile: &Tile) -> SmallVec<[usize; 4]> {
        let mut shape = tile.shape.clone();
        if let Some(places) = self.places {
            shape[places.axis] = places.count as usize;
        }
        shape
    }

    fn empty_column(&self) -> Result<Column> {
        let length = usize::try_from(self.answers()?)
            .map_err(|_| Error::invalid("the answers do not fit in memory"))?;
        let mut column = Column { valid: vec![false; length], ..Column::default() };
        if self.integral() {
            column.integers = vec![0; length];
        }
        if !self.integral() || self.operation == Operation::Product {
            column.floats = vec![f64::NAN; length];
        }
        Ok(column)
    }

    pub(super) fn answer(&self, mut column: Column) -> Result<Answer> {
        let mut axes: Vec<AnswerAxis> = (0..self.maps.len())
            .filter_map(|axis| {
                let labels = match &self.maps[axis] {
                    AxisMap::Group { labels, .. } => labels.clone(),
                    _ => None,
                };
                let (name, extent) = (self.dimensions[axis].clone(), self.shown(axis)?);
                let places = self.places.filter(|places| places.axis == axis);
                let windows = places.map(|places| places.ends().collect());
                Some(AnswerAxis { name, extent, labels, windows })
            })
            .collect();
        let mut edges = None;
        if let Operation::Histogram { bins, range: Some((low, high)), .. } = self.operation {
            let name = Some("bin".to_owned());
            axes.push(AnswerAxis { name, extent: bins as u64, labels: None, windows: None });
            let width = (high - low) / bins as f64;
            let edge = |bin: usize| if bin == bins { high } else { low + width * bin as f64 };
            edges = Some((0..=bins).map(edge).collect());
        }
        let dtype = self.operation.dtype(&self.dtype);
        let cells = self.plan.positions().cells().unwrap_or(u64::MAX);
        // Values are counted only if the mask alone decides and each is seen once.
        let each_once = self.conditions.is_empty() && self.places.is_none() && !self.counts_missing();
        let grouped = |map: &AxisMap| matches!(map, AxisMap::Group { ids, .. } if ids.contains(&NO_GROUP));
        let counted = self.knows_missing() && each_once && !self.maps.iter().any(grouped);
        let values = std::mem::take(&mut column.values);
        let missing = counted.then(|| cells.saturating_sub(values));
        Ok(Answer {
            operation: self.operation.name(),
            axes,
            cells,
            missing,
            edges,
            dtype,
            column,
            times: None,
        })
    }
}

/// The loops over one chunk.
type Loops<'a> = SmallVec<[Loop<'a>; 6]>;

enum Done {
    Part(Accumulator),
    Tile(Column),
}

/// Merges the parts of each tile, in order.
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
        if let Some((number, mut accumulator)) = self.current.take() {
            let tile = self.plan.tile(self.geometry, number)?;
            self.plan.fold_unwritten(&mut accumulator)?;
            self.plan.place(&tile, &finish(self.plan, accumulator, &tile), result);
        }
        Ok(())
    }
}

/// The chunks folded into a tile: a run of them, or only the written ones.
pub(super) struct TileChunks<'a> {
    plan: &'a QueryPlan,
    geometry: &'a Geometry,
    number: u64,
    tile: &'a Tile,
    range: Range<u64>,
    written: Option<&'a Written>,
    /// The numbers of the written chunks, among those of all tiles.
    numbers: &'a [u64],
    /// Whether every cell of the array is wanted.
    is_whole: bool,
}

impl<'a> TileChunks<'a> {
    pub(super) fn new(
        plan: &'a QueryPlan,
        geometry: &'a Geometry,
        (number, tile): (u64, &'a Tile),
        range: Range<u64>,
        written: Option<&'a Written>,
    ) -> Self {
        let numbers = written.map_or(&[][..], |written| written.of_tile(geometry, number, range.clone()));
        Self { plan, geometry, number, tile, range, written, numbers, is_whole: plan.is_whole() }
    }

    /// The numbers under which they are listed.
    pub(super) fn listed(&self) -> Range<u64> {
        if self.written.is_some() { 0..self.numbers.len() as u64 } else { self.range.clone() }
    }

    /// The number of a listed chunk within the tile.
    fn number(&self, index: u64) -> u64 {
        match self.written {
            Some(_) => self.numbers[index as usize] - self.number * self.geometry.chunks,
            None => index,
        }
    }
}

impl ChunkList for TileChunks<'_> {
    fn coord(&self, index: u64) -> ChunkCoord {
        match self.is_whole {
            true => self.plan.place_of(self.geometry, self.tile, self.number(index)),
            false => self.wanted(index).coord,
        }
    }

    fn wanted(&self, index: u64) -> PlannedChunk {
        self.plan.chunk(self.geometry, self.tile, self.number(index))
    }
}

/// Folds the chunks of a tile into its accumulator.
pub(super) struct ChunkFold<'a, C: Cell> {
    chunks: &'a TileChunks<'a>,
    mask: Option<Mask<C::Operand>>,
    scratch: Scratch<C::Operand>,
    /// The size of an unclipped chunk, if all its cells go into one cell in any order.
    run: Option<usize>,
    into: &'a mut Accumulator,
}

impl<'a, C: Cell> ChunkFold<'a, C> {
    pub(super) fn new(chunks: &'a TileChunks<'a>, into: &'a mut Accumulator) -> Self {
        let plan = chunks.plan;
        let one_run = chunks.is_whole
            && !into.fold.is_indexed()
            && !plan.nullable
            && plan.maps.iter().all(|map| *map == AxisMap::Reduce);
        let length = hyperslab_core::product(plan.plan.grid().chunk_shape())
            .and_then(|cells| usize::try_from(cells).ok()?.checked_mul(plan.dtype.size()?));
        Self { chunks, mask: plan.mask(), scratch: Scratch::new(), run: length.filter(|_| one_run), into }
    }

    /// Returns true if the statistics of a written chunk rule it out or determine its contribution.
    pub(super) fn can_skip(&mut self, chunk: &Chunk<'_>, wanted: &PlannedChunk) -> bool {
        let Some(known) = chunk.statistics().filter(|_| chunk.reference().is_some()) else { return false };
        can_skip(self.chunks.plan, self.mask.as_ref(), known, wanted, self.into)
    }
}

impl<C: Cell> ChunkVisitor for ChunkFold<'_, C> {
    fn statistics(
        &mut self,
        array: &dyn Array,
        chunks: &[ChunkCoord],
    ) -> Result<Vec<Option<ChunkStatistics>>> {
        usable_statistics(self.chunks.plan, array, chunks, &self.into.fold)
    }

    /// A chunk with exact statistics is folded from them and not even located.
    fn needs(&mut self, index: u64, chunk: &ChunkCoord, known: Option<&ChunkStatistics>) -> bool {
        let Some(known) = known.filter(|known| known.exact) else { return true };
        let plan = self.chunks.plan;
        let counts = match self.chunks.is_whole {
            true => plan.plan.grid().region(chunk).shape,
            false => self.chunks.wanted(index).counts(),
        };
        !fold_from_statistics(plan, self.mask.as_ref(), known, (chunk, &counts), self.into)
    }

    fn visit(&mut self, chunk: &mut Chunk<'_>) -> Result<()> {
        let plan = self.chunks.plan;
        if chunk.reference().is_none() && plan.fill_cell != FillCell::Invalid {
            let wanted = self.chunks.wanted(chunk.index());
            plan.add_unwritten::<C>(self.chunks.tile, &wanted, self.mask.as_ref(), self.into);
            return Ok(());
        }
        // There can be very many small chunks, so a chunk that is one run of bytes takes a fast path.
        if let Some(length) = self.run
            && chunk.statistics().is_none()
            && !plan.plan.grid().is_clipped(chunk.coord())
            && let Some(bytes) = chunk.mapped(false)?.filter(|bytes| bytes.len() == length)
        {
            fold_run::<C>(bytes, self.mask.as_ref(), &mut self.scratch, self.into);
            return Ok(());
        }
        let wanted = &self.chunks.wanted(chunk.index());
        if self.can_skip(chunk, wanted) {
            return Ok(());
        }
        let tile = self.chunks.tile;
        if plan.nullable {
            let elements = chunk.elements()?;
            return fold_elements::<C>(plan, &elements, tile, wanted, self.mask.as_ref(), self.into);
        }
        chunk.with_cells(wanted, |bytes, layout| {
            let mut layout = layout.clone();
            let Some((loops, first)) = plan.loops(tile, wanted, &mut layout, self.into.fold.is_indexed())
            else {
                return Ok(());
            };
            fold_box::<C>(bytes, &layout, &loops, first, self.mask.as_ref(), &mut self.scratch, self.into)
        })
    }
}

/// Folds the chunks of a tile, one after another.
fn fold_chunks<C: Cell>(array: &ArrayReader, chunks: &TileChunks<'_>, into: &mut Accumulator) -> Result<()> {
    let TileChunks { plan, geometry, number, tile, range, .. } = chunks;
    if let Some(written) = chunks.written {
        plan.add_all_unwritten::<C>(geometry, (*number, *tile), range, written, into);
    }
    let mut fold = ChunkFold::<C>::new(chunks, into);
    visit_chunks(&**array.inner(), chunks, chunks.listed(), array.context(), &mut fold)
}

/// Folds a chunk with possibly missing elements, cell by cell.
fn fold_elements<C: Cell>(
    plan: &QueryPlan,
    elements: &Elements,
    tile: &Tile,
    wanted: &PlannedChunk,
    mask: Option<&Mask<C::Operand>>,
    into: &mut Accumulator,
) -> Result<()> {
    let bytes = elements
        .as_fixed()
        .ok_or_else(|| Error::invalid(format!("{}: the elements do not have the array's type", plan.name)))?;
    let item = size_of::<C>();
    let region = plan.plan.grid().region(&wanted.coord).shape;
    let mut layout = Layout::packed(&region, item);
    for (part, stride) in wanted.axes.iter().zip(&mut layout.strides) {
        layout.offset += part.first as usize * stride.unsigned_abs();
        *stride *= part.step as isize;
    }
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
                To::Pieces(along, far) => along.piece(i) * far,
            };
        }
        if elements.is_missing(at / item) {
            into.missing(cell, 1, mask.is_some_and(Mask::keeps_missing));
            continue;
        }
        let value = bytemuck::pod_read_unaligned::<C>(&bytes[at..at + item]).widen();
        if mask.is_none_or(|mask| mask.keeps(value)) {
            into.one(cell, value, index);
        }
    }
    Ok(())
}
