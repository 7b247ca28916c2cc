//! Reads by lists of positions: per axis, or point by point. Positions are sorted by chunk, so that each chunk is fetched and
//! decoded once, whatever the caller's order.

use hyperslab_core::{
    AxisPositions, Buffer, CellOrder, Chunk, ChunkCoord, ChunkList, Elements, Error, Extents, Grid, Layout,
    Plan, PlannedChunk, Positions, Region, Result, Values, copy_box, needs_elements, product, visit_chunks,
};

use super::{ArrayReader, ElementBudget};

/// The number of chunks whose wanted cells are held before they are copied to the result.
const BATCH: usize = 64;

/// The wanted positions along one axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AxisPick {
    /// Evenly spaced positions.
    Even(AxisPositions),
    /// Positions in any order, repeats allowed.
    List(Vec<u64>),
}

impl AxisPick {
    /// The number of positions.
    #[must_use]
    pub const fn count(&self) -> u64 {
        match self {
            Self::Even(positions) => positions.count,
            Self::List(list) => list.len() as u64,
        }
    }

    /// Returns true if the axis stays in the result.
    #[must_use]
    pub const fn keep(&self) -> bool {
        match self {
            Self::Even(positions) => positions.keep,
            Self::List(_) => true,
        }
    }
}

impl ArrayReader {
    /// Reads every combination of the positions picked along each axis: like `numpy.ix_`, not pointwise.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_outer(&self, axes: &[AxisPick]) -> Result<Values> {
        let jobs = Jobs::Outer(Outer::new(&self.schema().grid, axes)?);
        let kept: Extents = axes.iter().filter(|axis| axis.keep()).map(AxisPick::count).collect();
        self.gathered(&jobs, &kept)
    }

    /// As [`read_outer`](Self::read_outer), into the caller's buffer.
    ///
    /// # Errors
    ///
    /// As [`read_into`](Self::read_into).
    pub fn read_outer_into(&self, axes: &[AxisPick], out: &mut [u8]) -> Result<()> {
        self.gather_into(&Jobs::Outer(Outer::new(&self.schema().grid, axes)?), out)
    }

    /// Reads single cells: `points[axis][i]` is the position of the `i`-th point along that axis.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_points(&self, points: &[Vec<u64>]) -> Result<Values> {
        let jobs = Points::new(&self.schema().grid, points)?;
        let count = jobs.order.len() as u64;
        self.gathered(&Jobs::Points(jobs), &[count])
    }

    /// As [`read_points`](Self::read_points), into the caller's buffer.
    ///
    /// # Errors
    ///
    /// As [`read_into`](Self::read_into).
    pub fn read_points_into(&self, points: &[Vec<u64>], out: &mut [u8]) -> Result<()> {
        self.gather_into(&Jobs::Points(Points::new(&self.schema().grid, points)?), out)
    }

    fn gathered(&self, jobs: &Jobs<'_>, shape: &[u64]) -> Result<Values> {
        let dtype = self.schema().dtype.clone();
        if needs_elements(&*self.array) {
            return Values::new(dtype, shape, self.gather_elements(jobs)?);
        }
        let bytes = product(&jobs.counts()).and_then(|cells| cells.checked_mul(dtype.size()? as u64));
        let bytes = bytes.filter(|bytes| *bytes <= self.memory()).ok_or_else(|| {
            Error::invalid(format!("{}: the result of {shape:?} elements is too large", self.array.name()))
        })?;
        let mut buffer = Buffer::zeroed(bytes as usize)?;
        self.gather_into(jobs, buffer.as_mut_slice())?;
        Values::new(dtype, shape, Elements::fixed(buffer.freeze()))
    }

    fn gather_into(&self, jobs: &Jobs<'_>, out: &mut [u8]) -> Result<()> {
        if needs_elements(&*self.array) {
            return Err(Error::invalid(format!(
                "{}: elements of {} cannot be read into a plain buffer",
                self.array.name(),
                self.schema().dtype
            )));
        }
        let item = self.schema().dtype.size().unwrap_or(0);
        let counts = jobs.counts();
        if product(&counts).and_then(|cells| cells.checked_mul(item as u64)) != Some(out.len() as u64) {
            return Err(Error::invalid(format!(
                "a buffer of {} bytes cannot hold exactly {counts:?} elements of {item} bytes",
                out.len()
            )));
        }
        let strides: Extents =
            CellOrder::RowMajor.strides(&counts).iter().map(|cells| cells * item as u64).collect();
        let list = JobList { jobs, grid: &self.schema().grid };
        for start in (0..jobs.len()).step_by(BATCH) {
            let count = BATCH.min(jobs.len() - start);
            let packed = self.context.threads.run(count as u64, self.array.is_remote(), |first, count| {
                let first = start as u64 + first;
                let mut packed = Vec::new();
                let mut pack = |chunk: &mut Chunk<'_>| {
                    packed.push(self.pack(chunk, &jobs.job(chunk.index() as usize), &list, item)?);
                    Ok(())
                };
                visit_chunks(&*self.array, &list, first..first + count, &self.context, &mut pack)?;
                Ok(packed)
            })?;
            for (number, packed) in (start..).zip(packed.iter().flatten()) {
                scatter(packed, &jobs.job(number).places(&strides), item, out)?;
            }
        }
        Ok(())
    }

    /// The wanted cells of a chunk, packed.
    fn pack(&self, chunk: &mut Chunk<'_>, job: &Job<'_>, list: &JobList<'_>, item: usize) -> Result<Vec<u8>> {
        let schema = self.schema();
        let bytes = |strides: &[u64]| strides.iter().map(|cells| cells * item as u64).collect::<Extents>();
        let mut packed = Vec::new();
        // Plain chunks of a mapped file are read in place.
        if let Some(stored) = chunk.mapped(true)? {
            let strides = schema.order.strides(&schema.decoded_shape(&job.coord));
            let origin = schema.grid.region(&job.coord).start;
            pick(stored, &job.sources(&origin, &bytes(&strides)), item, &mut packed)?;
            return Ok(packed);
        }
        let (wanted, shape) = (list.wanted(chunk.index()), &job.bounds.shape);
        let cells = job.bounds.cells().and_then(|cells| usize::try_from(cells).ok()?.checked_mul(item));
        let mut cells =
            Buffer::zeroed(cells.ok_or_else(|| Error::invalid("a chunk is larger than memory"))?)?;
        chunk.with_cells(&wanted, |stored, from| {
            copy_box(stored, from, cells.as_mut_slice(), &Layout::packed(shape, item), shape, item)
        })?;
        let strides = CellOrder::RowMajor.strides(shape);
        pick(cells.as_ref(), &job.sources(&job.bounds.start, &bytes(&strides)), item, &mut packed)?;
        Ok(packed)
    }

    fn gather_elements(&self, jobs: &Jobs<'_>) -> Result<Elements> {
        let schema = self.schema();
        let list = JobList { jobs, grid: &schema.grid };
        let budget = ElementBudget::new(self.array.name(), self.memory());
        let chunks =
            self.context.threads.run(jobs.len() as u64, self.array.is_remote(), |start, count| {
                let mut chunks = Vec::new();
                let mut take = |chunk: &mut Chunk<'_>| {
                    let elements = chunk.elements()?;
                    budget.take(&elements)?;
                    chunks.push(elements);
                    Ok(())
                };
                visit_chunks(&*self.array, &list, start..start + count, &self.context, &mut take)?;
                Ok(chunks)
            })?;
        let chunks: Vec<Elements> = chunks.into_iter().flatten().collect();
        let counts = jobs.counts();
        let cells = product(&counts).and_then(|cells| usize::try_from(cells).ok());
        let cells = cells.ok_or_else(|| Error::invalid("the result is larger than memory"))?;
        let mut picks = vec![(0, 0); cells];
        let strides = CellOrder::RowMajor.strides(&counts);
        for (number, _) in chunks.iter().enumerate() {
            let job = jobs.job(number);
            let region = schema.grid.region(&job.coord);
            let from = sums(&job.sources(&region.start, &CellOrder::RowMajor.strides(&region.shape)));
            let to = sums(&job.places(&strides));
            for (from, to) in from.into_iter().zip(to) {
                picks[to] = (number, from);
            }
        }
        Elements::gather(&schema.dtype, &chunks.iter().collect::<Vec<_>>(), &picks)
    }
}

/// The chunks of jobs, each with the smallest box that holds the wanted cells.
struct JobList<'a> {
    jobs: &'a Jobs<'a>,
    grid: &'a Grid,
}

impl ChunkList for JobList<'_> {
    fn coord(&self, index: u64) -> ChunkCoord {
        self.jobs.job(index as usize).coord
    }

    fn wanted(&self, index: u64) -> PlannedChunk {
        let job = self.jobs.job(index as usize);
        let bounds = Positions::region(&job.bounds);
        // The box lies inside the grid, and inside one of its chunks.
        let plan = Plan::new(self.grid, bounds).ok().filter(|plan| !plan.is_empty());
        plan.map_or(PlannedChunk { coord: job.coord, axes: [].into_iter().collect() }, |plan| plan.chunk(0))
    }
}

/// The wanted cells of one chunk.
#[derive(Debug)]
struct Job<'a> {
    coord: ChunkCoord,
    /// The smallest box of the array that holds them.
    bounds: Region,
    cells: Cells<'a>,
}

#[derive(Debug)]
enum Cells<'a> {
    /// Per axis: positions in the array and in the result. Every combination is wanted.
    Outer(Vec<&'a [Picked]>),
    /// Point numbers.
    Points(&'a [Vec<u64>], &'a [usize]),
}

impl Job<'_> {
    /// The offsets of the cells in a box that starts at `origin`: each is a sum of one offset per list.
    fn sources(&self, origin: &[u64], strides: &[u64]) -> Vec<Vec<usize>> {
        match &self.cells {
            Cells::Outer(axes) => {
                let axes = axes.iter().zip(origin).zip(strides);
                axes.map(|((cells, origin), stride)| {
                    cells.iter().map(|(at, _)| ((at - origin) * stride) as usize).collect()
                })
                .collect()
            }
            Cells::Points(points, numbers) => {
                let offset = |number: &usize| {
                    let axes = points.iter().zip(origin).zip(strides);
                    axes.map(|((at, origin), stride)| (at[*number] - origin) * stride).sum::<u64>() as usize
                };
                vec![numbers.iter().map(offset).collect()]
            }
        }
    }

    /// The offsets of the cells in the result, in the same order.
    fn places(&self, strides: &[u64]) -> Vec<Vec<usize>> {
        match &self.cells {
            Cells::Outer(axes) => {
                let axes = axes.iter().zip(strides);
                axes.map(|(cells, stride)| cells.iter().map(|(_, place)| (place * stride) as usize).collect())
                    .collect()
            }
            Cells::Points(_, numbers) => {
                let stride = strides.first().copied().unwrap_or(1) as usize;
                vec![numbers.iter().map(|number| number * stride).collect()]
            }
        }
    }
}

#[derive(Debug)]
enum Jobs<'a> {
    Outer(Outer),
    Points(Points<'a>),
}

impl Jobs<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Outer(outer) => outer.chunks,
            Self::Points(points) => points.groups.len().saturating_sub(1),
        }
    }

    /// The shape of the result, including axes that an index drops.
    fn counts(&self) -> Extents {
        match self {
            Self::Outer(outer) => outer.counts.clone(),
            Self::Points(points) => [points.order.len() as u64].into_iter().collect(),
        }
    }

    fn job(&self, number: usize) -> Job<'_> {
        match self {
            Self::Outer(outer) => outer.job(number),
            Self::Points(points) => points.job(number),
        }
    }
}

/// The positions picked along one axis.
#[derive(Debug)]
struct OuterAxis {
    /// Positions in the array and in the result, sorted by the former.
    cells: Vec<Picked>,
    /// The start of each chunk's cells, and the end of the last.
    starts: Vec<usize>,
}

/// A position in the array and its position in the result.
type Picked = (u64, u64);

/// Lists per axis, divided by chunk.
#[derive(Debug)]
struct Outer {
    axes: Vec<OuterAxis>,
    chunk_shape: Extents,
    counts: Extents,
    chunks: usize,
}

impl Outer {
    fn new(grid: &Grid, picks: &[AxisPick]) -> Result<Self> {
        if picks.len() != grid.rank() {
            return Err(Error::invalid(format!(
                "the selection has {} axes, but the array has {}",
                picks.len(),
                grid.rank()
            )));
        }
        let mut axes = Vec::with_capacity(picks.len());
        let mut chunks = Some(1_usize);
        for (axis, pick) in picks.iter().enumerate() {
            let (extent, chunk) = (grid.shape()[axis], grid.chunk_shape()[axis]);
            let mut cells: Vec<Picked> = match pick {
                AxisPick::List(list) => list.iter().copied().zip(0..).collect(),
                AxisPick::Even(even) => (0..even.count)
                    .map(|place| {
                        (even.start.wrapping_add_signed(even.step.wrapping_mul(place as i64)), place)
                    })
                    .collect(),
            };
            check(axis, extent, cells.iter().map(|(at, _)| *at))?;
            cells.sort_unstable();
            let starts = starts(&cells, |(at, _)| at / chunk);
            chunks = chunks.and_then(|chunks| chunks.checked_mul(starts.len() - 1));
            axes.push(OuterAxis { cells, starts });
        }
        let chunks = chunks.ok_or_else(|| Error::invalid("the selection touches too many chunks"))?;
        let counts = picks.iter().map(AxisPick::count).collect();
        Ok(Self { axes, chunk_shape: grid.chunk_shape().into(), counts, chunks })
    }

    fn job(&self, mut number: usize) -> Job<'_> {
        let rank = self.axes.len();
        let mut cells: Vec<&[Picked]> = vec![&[]; rank];
        for axis in (0..rank).rev() {
            let OuterAxis { cells: all, starts } = &self.axes[axis];
            let groups = starts.len() - 1;
            let group = number % groups;
            number /= groups;
            cells[axis] = &all[starts[group]..starts[group + 1]];
        }
        let ends = cells.iter().map(|cells| (cells[0].0, cells[cells.len() - 1].0));
        let bounds = Region {
            start: ends.clone().map(|(low, _)| low).collect(),
            shape: ends.map(|(low, high)| high - low + 1).collect(),
        };
        let coord = bounds.start.iter().zip(&self.chunk_shape).map(|(at, chunk)| at / chunk).collect();
        Job { coord, bounds, cells: Cells::Outer(cells) }
    }
}

/// Single cells, sorted by chunk.
#[derive(Debug)]
struct Points<'a> {
    points: &'a [Vec<u64>],
    chunk_shape: Extents,
    /// Point numbers, by chunk.
    order: Vec<usize>,
    /// The start of each chunk's points in `order`, and the end of the last.
    groups: Vec<usize>,
}

impl<'a> Points<'a> {
    fn new(grid: &Grid, points: &'a [Vec<u64>]) -> Result<Self> {
        let count = points.first().map_or(0, Vec::len);
        if points.len() != grid.rank() || points.is_empty() || points.iter().any(|axis| axis.len() != count) {
            return Err(Error::invalid(format!(
                "points need one list of positions per axis, {}",
                grid.rank()
            )));
        }
        for (axis, list) in points.iter().enumerate() {
            check(axis, grid.shape()[axis], list.iter().copied())?;
        }
        let extents = grid.extents();
        let chunk_of = |number: usize| {
            let mut chunk = 0_u128;
            for ((list, extent), size) in points.iter().zip(&extents).zip(grid.chunk_shape()) {
                chunk = chunk.wrapping_mul(u128::from(*extent)).wrapping_add(u128::from(list[number] / size));
            }
            chunk
        };
        let mut keyed: Vec<(u128, usize)> = (0..count).map(|number| (chunk_of(number), number)).collect();
        keyed.sort_unstable();
        let groups = starts(&keyed, |(chunk, _)| *chunk);
        let order = keyed.into_iter().map(|(_, number)| number).collect();
        Ok(Self { points, chunk_shape: grid.chunk_shape().into(), order, groups })
    }

    fn job(&self, number: usize) -> Job<'_> {
        let numbers = &self.order[self.groups[number]..self.groups[number + 1]];
        let mut bounds = Region { start: Extents::new(), shape: Extents::new() };
        for axis in self.points {
            let at = numbers.iter().map(|number| axis[*number]);
            let (low, high) = at.fold((u64::MAX, 0), |(low, high), at| (low.min(at), high.max(at)));
            bounds.start.push(low);
            bounds.shape.push(high - low + 1);
        }
        let coord = bounds.start.iter().zip(&self.chunk_shape).map(|(at, chunk)| at / chunk).collect();
        Job { coord, bounds, cells: Cells::Points(self.points, numbers) }
    }
}

/// The starts of runs of equal keys, and the end of the last.
fn starts<T, K: PartialEq>(sorted: &[T], key: impl Fn(&T) -> K) -> Vec<usize> {
    let mut starts = vec![0];
    starts.extend((1..sorted.len()).filter(|&i| key(&sorted[i - 1]) != key(&sorted[i])));
    if !sorted.is_empty() {
        starts.push(sorted.len());
    }
    starts
}

fn check(axis: usize, extent: u64, mut positions: impl Iterator<Item = u64>) -> Result<()> {
    match positions.find(|at| *at >= extent) {
        None => Ok(()),
        Some(at) => {
            Err(Error::invalid(format!("index {at} is out of bounds for axis {axis} with {extent} cells")))
        }
    }
}

/// The number of leading offsets that are contiguous in memory.
fn run(offsets: &[usize], item: usize) -> usize {
    1 + offsets.windows(2).take_while(|pair| pair[1] == pair[0] + item).count()
}

/// Appends the cells at every sum of offsets.
fn pick(source: &[u8], lists: &[Vec<usize>], item: usize, out: &mut Vec<u8>) -> Result<()> {
    walk(lists, 0, &mut |base, last| {
        let mut at = 0;
        while at < last.len() {
            let cells = run(&last[at..], item);
            let first = base + last[at];
            let bytes = source.get(first..first + cells * item);
            out.extend_from_slice(bytes.ok_or_else(|| Error::invalid("a chunk has too few bytes"))?);
            at += cells;
        }
        Ok(())
    })
}

/// Copies packed cells to every sum of offsets.
fn scatter(packed: &[u8], lists: &[Vec<usize>], item: usize, out: &mut [u8]) -> Result<()> {
    let mut rest = packed;
    walk(lists, 0, &mut |base, last| {
        let mut at = 0;
        while at < last.len() {
            let cells = run(&last[at..], item);
            let first = base + last[at];
            let (cell, left) = rest.split_at_checked(cells * item).unwrap_or((rest, &[]));
            match out.get_mut(first..first + cells * item) {
                Some(place) if place.len() == cell.len() => place.copy_from_slice(cell),
                _ => return Err(Error::invalid("a cell lies outside the result")),
            }
            rest = left;
            at += cells;
        }
        Ok(())
    })
}

/// Every sum of one offset per list, the last varying fastest.
fn sums(lists: &[Vec<usize>]) -> Vec<usize> {
    let mut all = Vec::new();
    // The visitor never fails.
    let _ = walk(lists, 0, &mut |base, last| {
        all.extend(last.iter().map(|offset| base + offset));
        Ok(())
    });
    all
}

/// Visits the last list once for every combination of the others, whose offsets are summed.
fn walk(
    lists: &[Vec<usize>],
    base: usize,
    visit: &mut impl FnMut(usize, &[usize]) -> Result<()>,
) -> Result<()> {
    match lists {
        [] => visit(base, &[0]),
        [last] => visit(base, last),
        [first, others @ ..] => {
            for offset in first {
                walk(others, base + offset, visit)?;
            }
            Ok(())
        }
    }
}
