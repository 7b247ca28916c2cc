//! Selects vertices, chunk by chunk or object by object.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hyperslab_core::{Budget, DType, Error, Place, Result};
use rayon::prelude::*;

use crate::coord::{Coord, chunk_of, dotted};
use crate::fragment::FragmentIndex;
use crate::level::{Level, Vertices};
use crate::manifest::Fragments;
use crate::meta::Linking;
use crate::numbers::with_number_type;
use crate::query::places::{NONE, Places};

/// The minimum number of chunks to read in parallel. Fewer are done before another core has woken up.
const MIN_PARALLEL_CHUNKS: usize = 8;
/// The same for chunks that need no decoding.
const MIN_PARALLEL_RAW_CHUNKS: usize = 32;

/// The cost of a fragment of an object, and the memory of each of its rows, in the path and in the result.
const WORK_PER_FRAGMENT: u64 = 16;
const MEMORY_PER_ROW: u64 = 32;

/// A closed box.
#[derive(Debug)]
pub(crate) struct BoxTest {
    low: Vec<f64>,
    high: Vec<f64>,
    /// The range of chunks that may contain such positions, per axis, both ends included.
    chunks: Vec<(i64, i64)>,
}

impl BoxTest {
    /// Converts the box to stored coordinates.
    pub(crate) fn new(level: &Level, region: &[Vec<f64>; 2]) -> Result<Self> {
        let rank = level.root.rank();
        if region.iter().any(|corner| corner.len() != rank) {
            return Err(Error::invalid(format!("a box needs two corners of {rank} numbers")));
        }
        let [low, high] = region.clone();
        let offset = level.root.offset.clone().unwrap_or_else(|| vec![0.0; rank]);
        // Chunks are determined from stored positions, so allow one chunk on each side for the offset's rounding.
        let slack = i64::from(level.root.offset.is_some());
        let chunks = (0..rank).map(|axis| {
            let size = level.chunk_shape[axis];
            let first = chunk_of(low[axis] - offset[axis], size).saturating_sub(slack);
            (first, chunk_of(high[axis] - offset[axis], size).saturating_add(slack))
        });
        Ok(Self { chunks: chunks.collect(), low, high })
    }

    /// Returns true if a chunk may overlap the box. Considers only the spatial axes.
    fn touches(&self, chunk: &[i64]) -> bool {
        let space = &chunk[chunk.len() - self.chunks.len()..];
        // A NaN corner makes an empty range, which no chunk overlaps.
        space.iter().zip(&self.chunks).all(|(at, (first, last))| first <= at && at <= last)
    }

    /// The chunks that may overlap the box. `chunks` must be in numeric order.
    fn touched(&self, chunks: &[Coord]) -> Vec<Coord> {
        // The chunks of the box are adjacent along the first axis.
        let leading = chunks.first().map_or(0, |chunk| chunk.len() - self.chunks.len());
        let chunks = match self.chunks.first() {
            Some((first, last)) if leading == 0 => {
                let start = chunks.partition_point(|chunk| chunk[0] < *first);
                let end = chunks.partition_point(|chunk| chunk[0] <= *last);
                chunks.get(start..end).unwrap_or_default()
            }
            _ => chunks,
        };
        chunks.iter().filter(|chunk| self.touches(chunk)).cloned().collect()
    }

    fn holds(&self, axis: usize, position: f64) -> bool {
        self.low[axis] <= position && position <= self.high[axis]
    }
}

/// A chunk that a query has read.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) coord: Coord,
    pub(crate) vertices: Vertices,
    index: Option<Arc<FragmentIndex>>,
    /// The place of each row in the result.
    places: Places,
    /// Whether each row is inside the box, tested for all rows at once.
    inside: Option<Vec<bool>>,
}

/// The vertices selected so far, in result order.
#[derive(Debug)]
pub(crate) struct Selected<'a> {
    pub(crate) level: &'a Level,
    test: Option<BoxTest>,
    pub(crate) chunks: Vec<Chunk>,
    by_coord: HashMap<Coord, usize>,
    /// The chunk and row of each vertex in the result.
    pub(crate) picked: Vec<(u32, u32)>,
    /// Objects may name fragments any number of times.
    budget: Budget,
}

/// The selected vertices of an object, in its own order.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) id: i64,
    pub(crate) rows: Vec<u32>,
    /// Whether row `i + 1` of `rows` directly follows row `i` in the object.
    pub(crate) joined: Vec<bool>,
}

impl Path {
    pub(crate) fn into_rows(self) -> (i64, Vec<u64>) {
        (self.id, self.rows.into_iter().map(u64::from).collect())
    }
}

impl<'a> Selected<'a> {
    pub(crate) fn new(level: &'a Level, test: Option<BoxTest>) -> Self {
        let budget = Budget::new(level.zarr.directory().name(), 0);
        Self { level, test, chunks: Vec::new(), by_coord: HashMap::new(), picked: Vec::new(), budget }
    }

    /// Selects all vertices inside the box.
    pub(crate) fn pick_all(&mut self) -> Result<()> {
        let level = self.level;
        let touched = match &self.test {
            Some(test) => test.touched(level.vertices.chunks()?),
            None => level.vertices.chunks()?.to_vec(),
        };
        self.load_all(&touched, !level.claims_tiles())?;
        // Links and objects look up vertices by row.
        let found_by_row = level.root.linking() != Linking::None || level.objects()?.is_some();
        for coord in &touched {
            let Some(chunk) = self.load(coord)? else { continue };
            let rows = self.chunks[chunk].vertices.rows;
            if level.claims_tiles() || self.index(chunk)?.tiles(rows) {
                self.pick_rows(chunk, found_by_row)?;
                continue;
            }
            let index = Arc::clone(self.index(chunk)?);
            for row in (0..index.len()).filter_map(|f| index.rows(f)).flatten() {
                self.pick(chunk, row)?;
            }
        }
        Ok(())
    }

    /// Selects all rows of a chunk that are inside the box.
    fn pick_rows(&mut self, chunk: usize, found_by_row: bool) -> Result<()> {
        let own = &mut self.chunks[chunk];
        let rows = own.vertices.rows as u32;
        if self.picked.len() as u64 + u64::from(rows) >= u64::from(NONE) {
            return Err(too_many());
        }
        let first = self.picked.len();
        match &own.inside {
            None => self.picked.extend((0..rows).map(|row| (chunk as u32, row))),
            Some(inside) => {
                let inside = inside.iter().enumerate().filter(|(_, inside)| **inside);
                self.picked.extend(inside.map(|(row, _)| (chunk as u32, row as u32)));
            }
        }
        if found_by_row {
            let places = own.places.dense(rows as usize);
            for (place, (_, row)) in self.picked.iter().enumerate().skip(first) {
                places[*row as usize] = place as u32;
            }
        }
        Ok(())
    }

    /// Selects the vertices of objects, each in its own order.
    pub(crate) fn pick_objects(&mut self, ids: &[i64]) -> Result<Vec<Path>> {
        let level = self.level;
        let Some(objects) = level.objects()? else {
            return Err(Error::invalid(format!(
                "{}{}: there are no objects",
                level.zarr.directory().name(),
                level.path
            )));
        };
        let mut paths = Vec::with_capacity(ids.len());
        let rows = ids.iter().map(|id| objects.row(*id)).collect::<Result<Vec<_>>>()?;
        let manifests = rows.iter().map(|row| objects.manifest(*row)).collect::<Result<Vec<_>>>()?;
        let mut seen = HashSet::new();
        let touched = manifests.iter().flatten().map(|block| &block.chunk);
        let touched = touched.filter(|chunk| self.test.as_ref().is_none_or(|test| test.touches(chunk)));
        let touched: Vec<_> = touched.filter(|chunk| seen.insert(*chunk)).cloned().collect();
        drop(seen);
        self.load_all(&touched, true)?;
        for (id, manifest) in ids.iter().zip(manifests) {
            let mut path = Path { id: *id, rows: Vec::new(), joined: Vec::new() };
            let mut broken = true;
            for block in manifest {
                let skip = self.test.as_ref().is_some_and(|test| !test.touches(&block.chunk));
                if skip {
                    broken = true;
                    continue;
                }
                let chunk = self.load(&block.chunk)?;
                let chunk = chunk
                    .ok_or_else(|| self.wrong(*id, &block.chunk, "a chunk without vertices".to_owned()))?;
                self.follow(chunk, &block.fragments, &mut path, &mut broken, true)?;
            }
            paths.push(path);
        }
        Ok(paths)
    }

    /// The objects to which the selected vertices belong, with their selected parts, in the order of the index.
    pub(crate) fn paths_of_picked(&mut self) -> Result<Vec<Path>> {
        let level = self.level;
        let Some(objects) = level.objects()? else { return Ok(Vec::new()) };
        if self.picked.is_empty() {
            return Ok(Vec::new());
        }
        let by_chunk = objects.by_chunk()?;
        let mut uses = Vec::new();
        for (number, chunk) in self.chunks.iter().enumerate() {
            uses.extend(by_chunk.get(&chunk.coord).into_iter().flatten().map(|one| (one, number)));
        }
        uses.sort_unstable_by_key(|(one, _)| (one.object, one.ordinal));
        let mut paths: Vec<Path> = Vec::new();
        let mut last = None;
        let (mut next, mut broken) = (0, true);
        for (one, chunk) in uses {
            if last != Some(one.object) {
                paths.retain(|path| !path.rows.is_empty());
                paths.push(Path { id: objects.id(one.object)?, rows: Vec::new(), joined: Vec::new() });
                (last, next, broken) = (Some(one.object), 0, true);
            }
            broken |= one.ordinal != next;
            next = one.ordinal.saturating_add(one.fragments.len());
            if let Some(path) = paths.last_mut() {
                self.follow(chunk, &one.fragments, path, &mut broken, false)?;
            }
        }
        paths.retain(|path| !path.rows.is_empty());
        Ok(paths)
    }

    /// Appends fragments to a path, limited to rows inside the box (and already selected, unless `pick` is set).
    fn follow(
        &mut self,
        chunk: usize,
        fragments: &Fragments,
        path: &mut Path,
        broken: &mut bool,
        pick: bool,
    ) -> Result<()> {
        let count = self.index(chunk)?.len() as u64;
        if let Some(last) = fragments.last().filter(|last| *last >= count) {
            let coord = self.chunks[chunk].coord.clone();
            return Err(self.wrong(path.id, &coord, format!("fragment {last} of {count}")));
        }
        let index = Arc::clone(self.index(chunk)?);
        for fragment in fragments.iter() {
            let rows = index.rows(fragment as usize);
            let count = rows.as_ref().map_or(0, ExactSizeIterator::len) as u64;
            self.budget.spend(WORK_PER_FRAGMENT.saturating_add(count), "object")?;
            self.budget.allocate(count.saturating_mul(MEMORY_PER_ROW), "object")?;
            for row in rows.into_iter().flatten() {
                let place = if pick { self.pick(chunk, row)? } else { self.place(chunk, row) };
                match place {
                    Some(place) => {
                        if let Some(joined) = path.joined.last_mut() {
                            *joined = !*broken;
                        }
                        path.rows.push(place);
                        path.joined.push(false);
                        *broken = false;
                    }
                    None => *broken = true,
                }
            }
        }
        Ok(())
    }

    fn wrong(&self, id: i64, chunk: &[i64], problem: String) -> Error {
        let store = format!("{}{}", self.level.zarr.directory().name(), self.level.path);
        let problem = format!("object {id} names {problem} in chunk {}", dotted(chunk));
        Place::new(&store, "manifest", 0).corrupt(problem)
    }

    /// Reads a chunk, once; `None` if it has no vertices.
    pub(crate) fn load(&mut self, coord: &Coord) -> Result<Option<usize>> {
        if let Some(number) = self.by_coord.get(coord) {
            return Ok(Some(*number));
        }
        let Some(chunk) = read(self.level, self.test.as_ref(), coord, false)? else { return Ok(None) };
        Ok(Some(self.add(chunk)))
    }

    /// Reads these chunks, in parallel if there are several; optionally with their fragments.
    fn load_all(&mut self, coords: &[Coord], fragments: bool) -> Result<()> {
        let raw = self.level.vertices.is_raw();
        if coords.len() < if raw { MIN_PARALLEL_RAW_CHUNKS } else { MIN_PARALLEL_CHUNKS } {
            return Ok(());
        }
        let (level, test) = (self.level, self.test.as_ref());
        let chunks: Vec<Option<Chunk>> =
            coords.par_iter().map(|coord| read(level, test, coord, fragments)).collect::<Result<_>>()?;
        chunks.into_iter().flatten().for_each(|chunk| {
            self.add(chunk);
        });
        Ok(())
    }

    fn add(&mut self, chunk: Chunk) -> usize {
        self.budget.extend(chunk.vertices.bytes.len() as u64);
        self.by_coord.insert(chunk.coord.clone(), self.chunks.len());
        self.chunks.push(chunk);
        self.chunks.len() - 1
    }

    /// The number of a chunk, if it was read.
    pub(crate) fn number(&self, coord: &Coord) -> Option<usize> {
        self.by_coord.get(coord).copied()
    }

    /// The fragments of a chunk, read once.
    pub(crate) fn index(&mut self, chunk: usize) -> Result<&Arc<FragmentIndex>> {
        let own = &mut self.chunks[chunk];
        let index = match own.index.take() {
            Some(index) => index,
            None => self.level.fragments(&own.coord, own.vertices.rows)?,
        };
        Ok(own.index.insert(index))
    }

    /// Selects a row if it is inside the box. Returns its place in the result.
    fn pick(&mut self, chunk: usize, row: u64) -> Result<Option<u32>> {
        let own = &mut self.chunks[chunk];
        let at = row as usize;
        if let Some(place) = own.places.get(at) {
            return Ok(Some(place));
        }
        if own.inside.as_ref().is_some_and(|inside| !inside[at]) {
            return Ok(None);
        }
        let place = u32::try_from(self.picked.len()).ok().filter(|place| *place != NONE);
        let place = place.ok_or_else(too_many)?;
        own.places.set(at, place, own.vertices.rows as usize);
        self.picked.push((chunk as u32, row as u32));
        Ok(Some(place))
    }

    /// The place of a row in the result; `None` if it is not selected.
    pub(crate) fn place(&self, chunk: usize, row: u64) -> Option<u32> {
        self.chunks[chunk].places.get(usize::try_from(row).ok()?)
    }
}

fn too_many() -> Error {
    Error::invalid("more than 2^32 vertices; select less")
}

/// Reads a chunk; `None` if it has no vertices.
fn read(level: &Level, test: Option<&BoxTest>, coord: &Coord, fragments: bool) -> Result<Option<Chunk>> {
    let Some(vertices) = level.chunk(coord)? else { return Ok(None) };
    if vertices.rows >= u64::from(NONE) {
        return Err(Error::unsupported(level.vertices.name(), "chunks of 2^32 vertices"));
    }
    let inside = test.map(|test| inside(test, level, &vertices));
    let index = if fragments { Some(level.fragments(coord, vertices.rows)?) } else { None };
    Ok(Some(Chunk { coord: coord.clone(), vertices, index, places: Places::default(), inside }))
}

/// Tests which vertices of a chunk are inside the box, in world coordinates.
fn inside(test: &BoxTest, level: &Level, vertices: &Vertices) -> Vec<bool> {
    let rank = level.root.rank();
    if let (DType::Float32, 3, None) = (&level.dtype, rank, &level.root.offset) {
        return inside_f32x3(test, &vertices.bytes);
    }
    let mut inside = vec![true; vertices.rows as usize];
    macro_rules! axes {
        ($type:ty, $get:expr) => {{
            const SIZE: usize = size_of::<$type>();
            let (values, _) = vertices.bytes.as_chunks::<SIZE>();
            for axis in 0..rank {
                let offset = level.root.offset.as_ref().map_or(0.0, |offset| offset[axis]);
                for (inside, value) in inside.iter_mut().zip(values[axis..].iter().step_by(rank)) {
                    let get: fn([u8; SIZE]) -> f64 = $get;
                    *inside &= test.holds(axis, get(*value) + offset);
                }
            }
        }};
    }
    with_number_type!(&level.dtype, axes!());
    inside
}

/// The common case, in one pass. Rounding the corners inwards to 32-bit floats does not change the result.
fn inside_f32x3(test: &BoxTest, bytes: &[u8]) -> Vec<bool> {
    let low: [f32; 3] = std::array::from_fn(|axis| lowest_f32(test.low[axis]));
    let high: [f32; 3] = std::array::from_fn(|axis| -lowest_f32(-test.high[axis]));
    let holds = |vertex: &[u8; 12]| {
        let (words, _) = vertex.as_chunks::<4>();
        let at: [f32; 3] = std::array::from_fn(|axis| f32::from_le_bytes(words[axis]));
        (low[0] <= at[0])
            & (at[0] <= high[0])
            & (low[1] <= at[1])
            & (at[1] <= high[1])
            & (low[2] <= at[2])
            & (at[2] <= high[2])
    };
    bytes.as_chunks::<12>().0.iter().map(holds).collect()
}

/// The lowest 32-bit float that is not below `bound`. NaN remains NaN.
fn lowest_f32(bound: f64) -> f32 {
    let near = bound as f32;
    if f64::from(near) < bound { near.next_up() } else { near }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn narrowed_bounds_do_not_change_results(bound: f64, at: f32) {
            prop_assert_eq!(f64::from(at) >= bound, at >= lowest_f32(bound));
            prop_assert_eq!(f64::from(at) <= bound, at <= -lowest_f32(-bound));
        }

        #[test]
        fn narrowed_bounds_next_to_a_position(at in -1e3_f32..1e3, ulps in -2_i64..3) {
            let mut bound = f64::from(at);
            (0..ulps.abs()).for_each(|_| bound = if ulps < 0 { bound.next_down() } else { bound.next_up() });
            prop_assert_eq!(f64::from(at) >= bound, at >= lowest_f32(bound));
            prop_assert_eq!(f64::from(at) <= bound, at <= -lowest_f32(-bound));
        }
    }
}
