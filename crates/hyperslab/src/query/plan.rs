//! A query resolved against one array: which chunks are folded into which part of the result. A plan is plain data that can be
//! printed, serialised, split and sent elsewhere.

use std::ops::Range;

use hyperslab_core::{DType, Error, Number, Plan, PlannedChunk, Result, needs_elements, product};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::accumulate::Accumulator;
use super::axes::{self, AxisMap, Pieces};
use super::condition::Mask;
use super::fold::AnyFold;
use super::operand::{KeyKind, Operand, Stored};
use super::unwritten::FillCell;
use super::windows::{Pad, Places};
use super::{Comparison, Condition, Conditions, Operation, Query};
use crate::ArrayReader;

/// The number of tasks to aim for. It is enough for many threads and independent of their number, so that the split never depends
/// on it.
const TASKS: u64 = 256;
/// The maximum number of bins of a histogram.
const MOST_BINS: usize = 1 << 20;
/// With this many tiles, each tile is a task: one thread folds and finishes it, and nothing is merged.
const TILES: u64 = 64;
/// The minimum number of bytes that a task folds, if there are that many.
const TASK_BYTES: u64 = 1 << 20;
/// The memory limit for partial results of one tile.
const PARTIAL_BYTES: u64 = 64 << 20;

/// A query resolved against one array.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryPlan {
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) operation: Operation,
    pub(super) plan: Plan,
    pub(super) maps: Vec<AxisMap>,
    pub(super) conditions: Conditions,
    /// The missing-value marker, from the array's attributes.
    pub(super) fill: Option<Number>,
    /// Integers that mark missing values, which no operation sees.
    pub(super) markers: Vec<Number>,
    /// Whether means and quantiles are rounded to integers: floats cannot count nanoseconds.
    pub(super) whole: bool,
    pub(super) skip_nan: bool,
    /// Whether NaN marks a missing value, which no operation sees.
    pub(super) decoded: bool,
    pub(super) places: Option<Places>,
    pub(super) pad: Option<Number>,
    pub(super) min_count: u64,
    pub(super) dimensions: Vec<Option<String>>,
    pub(super) nullable: bool,
    /// The content of a cell that was never written.
    pub(super) fill_cell: FillCell,
    pub(super) trust_hints: bool,
    pub(super) memory: u64,
    /// The working memory: at most `memory`, less if the store advises less.
    pub(super) working: u64,
    /// The tasks that this plan covers: all, or a part after a split.
    pub(super) tasks: Range<u64>,
}

/// The cost of a plan, known before any values are read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The number of touched chunks.
    pub chunks: u64,
    /// The number of chunks that were never written and cost nothing.
    pub unwritten: u64,
    /// The number of chunks that their statistics rule out.
    pub skipped: u64,
    /// Stored bytes to fetch. From remote storage, also those between the wanted ones that are fetched in the same request. A
    /// remote object whose size is unknown counts as its decoded size.
    pub stored_bytes: u64,
    /// Bytes after decoding.
    pub decoded_bytes: u64,
    /// The number of requests to remote storage, or of byte ranges read from local storage, where adjacent ranges count once.
    pub requests: u64,
    /// How often the run waits for remote storage. The requests of a round are sent at once; tasks wait at the same time.
    pub rounds: u64,
    /// The number of tasks that can run in parallel.
    pub tasks: u64,
    /// The maximum memory for chunks, partial results and the answer.
    pub memory: u64,
    /// The shape of the answer.
    pub shape: Vec<u64>,
}

/// The tiles of the result, and the chunks folded into each.
#[derive(Debug)]
pub(super) struct Geometry {
    /// Touched chunks per axis. Along kept axes they number the tiles, along others the chunks of a tile.
    pub(super) touched: SmallVec<[u64; 4]>,
    /// The number of chunks folded into a tile.
    pub(super) chunks: u64,
    pub(super) tiles: u64,
    /// The number of runs of chunks per tile, and of chunks per run.
    pub(super) runs: u64,
    pub(super) run: u64,
}

/// One tile of the result.
#[derive(Debug)]
pub(super) struct Tile {
    /// Its position among the touched chunks, along the kept axes.
    pub(super) place: SmallVec<[u64; 4]>,
    /// Cells per axis of the array; 1 for a reduced axis.
    pub(super) shape: SmallVec<[usize; 4]>,
    pub(super) strides: SmallVec<[usize; 4]>,
    /// Its first position per kept axis.
    pub(super) start: SmallVec<[u64; 4]>,
    pub(super) cells: usize,
}

impl QueryPlan {
    pub(super) fn new(query: &Query, array: &ArrayReader) -> Result<Self> {
        let schema = array.schema();
        let positions = array.resolve(&query.selection)?;
        // An index drops its axis, which is reduced to one cell.
        let mut maps = axes::maps(query, array, &positions)?;
        let stored = Stored::of(&schema.dtype, array.inner().name())?;
        if !query.operation.applies_to(&schema.dtype) {
            let (name, dtype) = (array.inner().name(), &schema.dtype);
            let what = query.operation.name();
            return Err(Error::invalid(format!("{name}: {what} does not apply to elements of type {dtype}")));
        }
        let fill = fill_value(array, stored.key_kind());
        let (mut places, mut pad, mut min_count) = (None, None, 0);
        if let Some(window) = &query.window {
            let axis = window.axis.resolve(schema)?;
            let found = window.places(axis, positions.axes[axis].count)?;
            if query.group.is_some() {
                return Err(Error::invalid("a window cannot be combined with groups"));
            }
            if !query.over.is_empty() && maps[axis] != AxisMap::Reduce {
                return Err(Error::invalid(format!(
                    "the reduced axes must include the axis of the window, {axis}"
                )));
            }
            let (ids, count) = found.groups();
            maps[axis] = AxisMap::Group { ids, count, shown: true, labels: None };
            pad = match window.pad {
                // A missing value does not count, so there is nothing to pad with.
                Pad::None => None,
                Pad::Fill if array.is_decoded() => None,
                Pad::Zero => Some(Number::Integer(0)),
                Pad::Nan if stored.key_kind() != KeyKind::Float => {
                    return Err(Error::invalid(format!(
                        "window pad nan: the type {} has no NaN",
                        schema.dtype
                    )));
                }
                Pad::Nan => Some(Number::Float(f64::NAN)),
                Pad::Fill => Some(fill.ok_or_else(|| {
                    Error::invalid("window pad fill: no attribute of the array gives its missing value")
                })?),
            };
            (places, min_count) = (Some(found), window.min_count);
        }
        axes::keep_labelled(query, array, &positions, &mut maps)?;
        for (axis, wanted) in positions.axes.iter().enumerate() {
            if !wanted.keep && maps[axis] == AxisMap::Keep {
                maps[axis] = AxisMap::Reduce;
            }
        }
        let markers = match schema.dtype {
            // "Not a time" is the smallest integer.
            DType::DateTime(_) | DType::Duration(_) => vec![Number::Integer(i64::MIN.into())],
            _ => array.markers().iter().copied().map(Number::Integer).collect(),
        };
        let mut plan = Self {
            name: array.inner().name().to_owned(),
            dtype: schema.dtype.clone(),
            operation: query.operation,
            plan: Plan::new(&schema.grid, positions)?,
            maps,
            conditions: query.conditions.clone(),
            fill,
            whole: !markers.is_empty() && array.time_axis().is_some_and(|times| times.is_fine()),
            markers,
            skip_nan: query.skip_nan || array.is_decoded(),
            decoded: array.is_decoded(),
            places,
            pad,
            min_count,
            dimensions: schema.dimensions.clone(),
            nullable: needs_elements(&**array.inner()),
            fill_cell: FillCell::of(array),
            trust_hints: query.trust_hints,
            memory: query.memory.unwrap_or_else(|| array.memory()),
            working: query.memory.unwrap_or_else(|| array.working_memory()),
            tasks: 0..0,
        };
        plan.check_operation()?;
        // Sums of this many integers of any width are exact.
        if plan.plan.positions().cells().is_none_or(|cells| i64::try_from(cells).is_err()) {
            return Err(Error::invalid(format!("{}: the number of cells overflows", plan.name)));
        }
        plan.check_memory()?;
        let geometry = plan.geometry(&plan.first_fold())?;
        plan.tasks = 0..geometry.tiles * geometry.runs;
        Ok(plan)
    }

    fn check_operation(&self) -> Result<()> {
        match self.operation {
            Operation::Quantile(q) if !(0.0..=1.0).contains(&q) => {
                return Err(Error::invalid(format!("a quantile must be between 0 and 1, not {q}")));
            }
            Operation::Histogram { bins, range, .. } => {
                if bins == 0 || bins > MOST_BINS {
                    return Err(Error::invalid(format!(
                        "a histogram has 1 to {MOST_BINS} bins, but {bins} were requested"
                    )));
                }
                if let Some((low, high)) = range
                    && !(low < high && low.is_finite() && high.is_finite())
                {
                    return Err(Error::invalid(format!(
                        "the range {low} to {high} of a histogram is empty: LOW must be below HIGH"
                    )));
                }
            }
            Operation::NullCount { fill: None } if self.fill.is_none() && !self.knows_missing() => {
                return Err(Error::invalid(format!(
                    "{}: null_count needs a fill value, because no attribute gives the missing value",
                    self.name
                )));
            }
            operation
                if operation != Operation::Count
                    && self.nullable
                    && self.sees_missing()
                    && !self.counts_missing() =>
            {
                return Err(Error::invalid(format!(
                    "{}: missing elements have no values, so the condition `null` only applies to count",
                    self.name
                )));
            }
            _ => {}
        }
        let ordered = matches!(
            self.operation,
            Operation::Median | Operation::Quantile(_) | Operation::Histogram { .. }
        );
        if ordered && self.places.is_some() {
            return Err(Error::invalid(format!(
                "{} cannot be combined with a window",
                self.operation.name()
            )));
        }
        Ok(())
    }

    /// How the positions along an axis are divided into pieces.
    pub(super) fn pieces(&self, axis: usize, count: u32) -> Pieces {
        Pieces { count, positions: self.plan.positions().axes[axis].count }
    }

    pub(super) fn key_kind(&self) -> KeyKind {
        Stored::of(&self.dtype, &self.name).map_or(KeyKind::Signed, Stored::key_kind)
    }

    /// Returns true if the number of values per cell is not implied by the geometry.
    pub(super) fn counted(&self) -> bool {
        !self.conditions.is_empty()
            || self.mask_nan()
            || self.places.is_some()
            || self.nullable
            || !self.markers.is_empty()
    }

    /// Returns true if missing values are told from others without a marker of the query.
    pub(super) const fn knows_missing(&self) -> bool {
        self.decoded || self.nullable || !self.markers.is_empty()
    }

    /// The test that values must pass; `None` if all do.
    pub(super) fn mask<T: Operand>(&self) -> Option<Mask<T>> {
        let mut conditions = self.conditions.clone();
        if !self.sees_missing() {
            let markers = self.markers.iter();
            conditions.all.extend(markers.map(|marker| Condition::Compare(Comparison::NotEqual, *marker)));
        }
        let markers: SmallVec<[Number; 2]> = self.fill.iter().chain(&self.markers).copied().collect();
        Mask::new(&conditions, &markers, self.mask_nan())
    }

    /// Returns true if missing values are not left out: they are counted, or wanted by a condition.
    fn sees_missing(&self) -> bool {
        self.counts_missing() || self.conditions.all.contains(&Condition::IsNull)
    }

    /// Returns true if NaN must be removed before the kernels see it.
    pub(super) fn mask_nan(&self) -> bool {
        if self.decoded {
            return !self.sees_missing();
        }
        self.skip_nan && self.key_kind() == KeyKind::Float && !self.operation.sees_nan()
    }

    /// Returns true if the operation counts missing values.
    pub(super) const fn counts_missing(&self) -> bool {
        matches!(self.operation, Operation::NullCount { .. })
    }

    /// The fold of the first pass over the values.
    pub(super) fn first_fold(&self) -> AnyFold {
        self.operation.fold(self)
    }

    pub(super) fn fill_bits(&self, fill: Number) -> u64 {
        use super::condition::nearest;
        match Stored::of(&self.dtype, &self.name) {
            Ok(Stored::F64) => nearest::<f64>(fill).bits(),
            Ok(Stored::F32) => nearest::<f32>(fill).bits(),
            Ok(Stored::F16) => half::f16::from_f64(nearest::<f64>(fill)).to_f32().bits(),
            Ok(Stored::U64) => nearest::<u64>(fill).bits(),
            _ => nearest::<i64>(fill).bits(),
        }
    }

    /// The answer's extents, one per axis, without a histogram's bins.
    pub(super) fn shape(&self) -> Vec<u64> {
        (0..self.maps.len()).filter_map(|axis| self.shown(axis)).collect()
    }

    /// The answer's extent along an axis of the array; `None` if the answer does not have it.
    pub(super) fn shown(&self, axis: usize) -> Option<u64> {
        match &self.maps[axis] {
            AxisMap::Reduce => None,
            AxisMap::Keep => Some(self.plan.positions().axes[axis].count),
            AxisMap::Group { shown: false, .. } => None,
            AxisMap::Group { count, .. } => match self.places {
                Some(places) if places.axis == axis => Some(places.count),
                _ => Some(u64::from(*count)),
            },
            AxisMap::Pieces { count } => Some(u64::from(*count)),
        }
    }

    /// The number of values in the answer.
    pub(super) fn answers(&self) -> Result<u64> {
        let bins = match self.operation {
            Operation::Histogram { bins, .. } => bins as u64,
            _ => 1,
        };
        product(&self.shape())
            .and_then(|cells| cells.checked_mul(bins))
            .ok_or_else(|| Error::invalid(format!("{}: the number of answers overflows", self.name)))
    }

    fn check_memory(&self) -> Result<()> {
        let each = if self.integral() { 17 } else { 9 };
        let bytes = self.answers()?.saturating_mul(each);
        if bytes > self.memory {
            return Err(Error::invalid(format!(
                "{}: the answer needs {bytes} bytes, but the limit is {}; reduce more axes, select less or raise the limit",
                self.name, self.memory
            )));
        }
        Ok(())
    }

    /// Returns true if the answers are integers.
    pub(super) fn integral(&self) -> bool {
        self.whole_means() || self.operation.is_integral(self.key_kind())
    }

    /// Returns true if the answers are means or quantiles rounded to integers.
    pub(super) const fn whole_means(&self) -> bool {
        self.whole && matches!(self.operation, Operation::Mean | Operation::Median | Operation::Quantile(_))
    }

    /// How the result is divided into tiles and runs for this reduction. Depends on the plan alone.
    pub(super) fn geometry(&self, fold: &AnyFold) -> Result<Geometry> {
        let touched: SmallVec<[u64; 4]> = self.plan.touched();
        let count = |kept: bool| {
            let own = touched.iter().zip(&self.maps).filter(|(_, map)| (**map == AxisMap::Keep) == kept);
            product(&own.map(|(touched, _)| *touched).collect::<SmallVec<[u64; 4]>>())
        };
        let many = || Error::invalid(format!("{}: the number of chunks overflows", self.name));
        let (tiles, chunks) = (count(true).ok_or_else(many)?, count(false).ok_or_else(many)?);
        if self.plan.is_empty() {
            return Ok(Geometry { touched, chunks: 0, tiles, runs: u64::from(tiles > 0), run: 0 });
        }
        let chunk_bytes = self.chunk_bytes();
        let state = Accumulator::bytes(fold, self.tile_cells(), self.tile_values(), self.counted());
        let wanted = match tiles {
            TILES.. => 1,
            tiles => (TASKS / tiles.max(1)).clamp(1, (PARTIAL_BYTES / state.max(1)).max(1)),
        };
        let run =
            chunks.div_ceil(wanted).max(TASK_BYTES.div_ceil(chunk_bytes.max(1))).clamp(1, chunks.max(1));
        Ok(Geometry { touched, chunks, tiles, runs: chunks.div_ceil(run).max(1), run })
    }

    /// The size of a decoded chunk in bytes.
    fn chunk_bytes(&self) -> u64 {
        let item = self.dtype.size().unwrap_or(1) as u64;
        product(self.plan.grid().chunk_shape()).map_or(u64::MAX, |cells| cells.saturating_mul(item))
    }

    /// The number of cells of the largest tile.
    pub(super) fn tile_cells(&self) -> u64 {
        let axes = self.maps.iter().zip(self.plan.grid().chunk_shape()).zip(&self.plan.positions().axes);
        axes.fold(1_u64, |cells, ((map, chunk), wanted)| {
            cells.saturating_mul(match map {
                AxisMap::Reduce => 1,
                AxisMap::Keep => wanted.count.min(*chunk),
                AxisMap::Group { count, .. } | AxisMap::Pieces { count } => u64::from(*count),
            })
        })
    }

    /// The number of values folded into the largest tile.
    pub(super) fn tile_values(&self) -> u64 {
        let axes = self.maps.iter().zip(self.plan.grid().chunk_shape()).zip(&self.plan.positions().axes);
        axes.fold(1_u64, |cells, ((map, chunk), wanted)| {
            let each = if *map == AxisMap::Keep { wanted.count.min(*chunk) } else { wanted.count };
            cells.saturating_mul(each)
        })
    }

    pub(super) fn tile(&self, geometry: &Geometry, number: u64) -> Result<Tile> {
        let rank = self.maps.len();
        let mut place: SmallVec<[u64; 4]> = SmallVec::from_elem(0, rank);
        let mut left = number;
        for axis in (0..rank).rev().filter(|axis| self.maps[*axis] == AxisMap::Keep) {
            place[axis] = left % geometry.touched[axis].max(1);
            left /= geometry.touched[axis].max(1);
        }
        let first = if self.plan.is_empty() { None } else { Some(self.plan.at(&place)) };
        let (mut shape, mut start) = (SmallVec::<[usize; 4]>::new(), SmallVec::<[u64; 4]>::new());
        for (axis, map) in self.maps.iter().enumerate() {
            let part = first.as_ref().map(|first| first.axes[axis]);
            let (cells, at) = match (map, part) {
                (AxisMap::Keep, Some(part)) => (part.count as usize, part.first_place()),
                (AxisMap::Keep, None) => (self.plan.positions().axes[axis].count as usize, 0),
                (AxisMap::Group { count, .. } | AxisMap::Pieces { count }, _) => (*count as usize, 0),
                (AxisMap::Reduce, _) => (1, 0),
            };
            shape.push(cells);
            start.push(at);
        }
        let mut strides: SmallVec<[usize; 4]> = SmallVec::from_elem(0, rank);
        let mut cells = 1_usize;
        for axis in (0..rank).rev() {
            strides[axis] = cells;
            cells = cells
                .checked_mul(shape[axis])
                .ok_or_else(|| Error::invalid(format!("{}: the answers do not fit in memory", self.name)))?;
        }
        Ok(Tile { place, shape, strides, start, cells })
    }

    /// The position among the touched chunks of the `number`-th chunk folded into a tile.
    pub(super) fn place_of(&self, geometry: &Geometry, tile: &Tile, number: u64) -> SmallVec<[u64; 4]> {
        let mut place = tile.place.clone();
        let mut left = number;
        for axis in (0..place.len()).rev().filter(|axis| self.maps[*axis] != AxisMap::Keep) {
            place[axis] = left % geometry.touched[axis];
            left /= geometry.touched[axis];
        }
        place
    }

    /// The number of the chunk at a position, among those of all tiles. The chunks of a tile are consecutive.
    pub(super) fn number_of(&self, geometry: &Geometry, place: &[u64]) -> u64 {
        let (mut tile, mut number) = (0, 0);
        for ((at, touched), map) in place.iter().zip(&geometry.touched).zip(&self.maps) {
            let own = if *map == AxisMap::Keep { &mut tile } else { &mut number };
            *own = *own * touched + at;
        }
        tile * geometry.chunks + number
    }

    /// The index distance of one step along an axis.
    pub(super) fn index_extent(&self, axis: usize) -> u64 {
        match (&self.maps[axis], self.places) {
            (AxisMap::Keep, _) => 1,
            (_, Some(places)) if places.axis == axis => places.size,
            _ => self.plan.positions().axes[axis].count,
        }
    }

    /// The `number`-th chunk that is folded into a tile.
    pub(super) fn chunk(&self, geometry: &Geometry, tile: &Tile, number: u64) -> PlannedChunk {
        self.plan.at(&self.place_of(geometry, tile, number))
    }

    /// Returns true if every cell of the array is wanted. A chunk's position among the touched ones is then its coordinate.
    pub(super) fn is_whole(&self) -> bool {
        let axes = self.plan.positions().axes.iter().zip(self.plan.grid().shape());
        axes.into_iter().all(|(axis, extent)| axis.start == 0 && axis.step == 1 && axis.count == *extent)
    }

    /// Splits the plan into at most `parts` plans. [`merge`](Self::merge) combines their partial results.
    #[must_use]
    pub fn split(&self, parts: u64) -> Vec<Self> {
        let length = self.tasks.end - self.tasks.start;
        let each = length.div_ceil(parts.max(1)).max(1);
        let mut split = Vec::new();
        let mut start = self.tasks.start;
        while start < self.tasks.end {
            let end = start.saturating_add(each).min(self.tasks.end);
            split.push(Self { tasks: start..end, ..self.clone() });
            start = end;
        }
        if split.is_empty() {
            split.push(self.clone());
        }
        split
    }

    /// The maximum memory for running the plan: chunks being decoded, partial results, the answer.
    pub(super) fn memory_needed(&self, fold: &AnyFold, plain: bool) -> Result<u64> {
        let geometry = self.geometry(fold)?;
        let threads = rayon::current_num_threads() as u64;
        let state = Accumulator::bytes(fold, self.tile_cells(), self.tile_values(), self.counted());
        let chunk = if plain { 0 } else { self.chunk_bytes() };
        let each = if self.integral() { 17 } else { 9 };
        let wave = super::run::wave(self, state).min(geometry.tiles.saturating_mul(geometry.runs).max(1));
        Ok(threads
            .saturating_mul(chunk)
            .saturating_add(wave.saturating_mul(state))
            .saturating_add(self.answers()? * each))
    }
}

/// The missing-value marker: the first of the attributes `_FillValue`, `missing_value` and `fill_value`.
pub(super) fn fill_value(array: &ArrayReader, key: KeyKind) -> Option<Number> {
    let attributes = &array.schema().attributes;
    let found = ["_FillValue", "missing_value", "fill_value"].iter().find_map(|name| attributes.get(name))?;
    let mut value = found.to_json();
    if let Some([only]) = value.as_array().map(Vec::as_slice) {
        value = only.clone();
    }
    let text = match &value {
        serde_json::Value::String(text) => text.trim().to_owned(),
        number => number.to_string(),
    };
    match key {
        KeyKind::Float => text.parse().ok().map(Number::Float),
        _ => {
            let whole = |value: f64| (value.fract() == 0.0).then_some(value as i128);
            text.parse().ok().or_else(|| text.parse().ok().and_then(whole)).map(Number::Integer)
        }
    }
}
