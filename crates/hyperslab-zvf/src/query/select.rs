//! Picking vertices: chunk by chunk, or object by object.

use std::collections::HashMap;

use half::f16;
use hyperslab_core::{DType, Error, Place, Result};

use crate::coord::{Coord, chunk_of, dotted};
use crate::fragment::FragmentIndex;
use crate::level::{Level, Vertices};
use crate::manifest::Fragments;

/// A row that was not picked.
const NONE: u32 = u32::MAX;

/// A closed box.
#[derive(Debug)]
pub(crate) struct BoxTest {
    low: Vec<f64>,
    high: Vec<f64>,
    /// The chunks that can hold such positions, per axis, both ends included.
    chunks: Vec<(i64, i64)>,
}

impl BoxTest {
    /// The box in stored coordinates.
    pub(crate) fn new(level: &Level, region: &[Vec<f64>; 2]) -> Result<Self> {
        let rank = level.root.rank();
        if region.iter().any(|corner| corner.len() != rank) {
            return Err(Error::invalid(format!("a box needs two corners of {rank} numbers")));
        }
        let [low, high] = region.clone();
        let offset = level.root.offset.clone().unwrap_or_else(|| vec![0.0; rank]);
        // Chunks are found from stored positions; the offset's rounding is covered by one chunk on each side.
        let slack = i64::from(level.root.offset.is_some());
        let chunks = (0..rank).map(|axis| {
            let size = level.chunk_shape[axis];
            let first = chunk_of(low[axis] - offset[axis], size).saturating_sub(slack);
            (first, chunk_of(high[axis] - offset[axis], size).saturating_add(slack))
        });
        Ok(Self { chunks: chunks.collect(), low, high })
    }

    /// Can a chunk hold any of it? Only the axes of space count.
    fn touches(&self, chunk: &[i64]) -> bool {
        let space = &chunk[chunk.len() - self.chunks.len()..];
        // A NaN corner makes an empty range of positions, whatever the chunks.
        space.iter().zip(&self.chunks).all(|(at, (first, last))| first <= at && at <= last)
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
    index: Option<FragmentIndex>,
    /// Row to its place in the result.
    places: Vec<u32>,
    /// Which rows are inside the box; tested for all at once.
    inside: Option<Vec<bool>>,
}

/// Vertices picked so far, in the order of the result.
#[derive(Debug)]
pub(crate) struct Selected<'a> {
    pub(crate) level: &'a Level,
    test: Option<BoxTest>,
    pub(crate) chunks: Vec<Chunk>,
    by_coord: HashMap<Coord, usize>,
    /// Chunk and row of each vertex of the result.
    pub(crate) picked: Vec<(u32, u32)>,
}

/// An object's vertices among the picked ones, in its own order.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) id: i64,
    pub(crate) rows: Vec<u32>,
    /// Is row `i` of `rows` followed by row `i + 1` in the object itself?
    pub(crate) joined: Vec<bool>,
}

impl Path {
    pub(crate) fn into_rows(self) -> (i64, Vec<u64>) {
        (self.id, self.rows.into_iter().map(u64::from).collect())
    }
}

impl<'a> Selected<'a> {
    pub(crate) fn new(level: &'a Level, test: Option<BoxTest>) -> Self {
        Self { level, test, chunks: Vec::new(), by_coord: HashMap::new(), picked: Vec::new() }
    }

    /// Picks every vertex inside the box.
    pub(crate) fn pick_all(&mut self) -> Result<()> {
        let level = self.level;
        for coord in level.vertices.chunks()? {
            if self.test.as_ref().is_some_and(|test| !test.touches(coord)) {
                continue;
            }
            let Some(chunk) = self.load(coord)? else { continue };
            let rows = self.chunks[chunk].vertices.rows;
            if level.claims_tiles() || self.index(chunk)?.tiles(rows) {
                for row in 0..rows {
                    self.pick(chunk, row)?;
                }
                continue;
            }
            let index = self.index(chunk)?.clone();
            for row in (0..index.len()).filter_map(|f| index.rows(f)).flatten() {
                self.pick(chunk, row)?;
            }
        }
        Ok(())
    }

    /// Picks the vertices of objects, each object's in its own order.
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
        for id in ids {
            let mut path = Path { id: *id, rows: Vec::new(), joined: Vec::new() };
            let mut broken = true;
            for block in objects.manifest(objects.row(*id)?)? {
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

    /// The objects to which picked vertices belong, and their parts, by id in the order of the index.
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

    /// Appends fragments to a path, as far as their rows are inside (and picked already, unless `pick`).
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
        for fragment in fragments.iter() {
            let rows: Vec<u64> = match self.index(chunk)?.rows(fragment as usize) {
                Some(rows) => rows.collect(),
                None => continue,
            };
            for row in rows {
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

    /// Reads a chunk, once; `None` when it has no vertices.
    pub(crate) fn load(&mut self, coord: &Coord) -> Result<Option<usize>> {
        if let Some(number) = self.by_coord.get(coord) {
            return Ok(Some(*number));
        }
        let Some(vertices) = self.level.chunk(coord)? else { return Ok(None) };
        if vertices.rows >= u64::from(NONE) {
            return Err(Error::unsupported(self.level.vertices.name(), "chunks of 2^32 vertices"));
        }
        let inside = self.test.as_ref().map(|test| inside(test, self.level, &vertices));
        let places = vec![NONE; vertices.rows as usize];
        self.chunks.push(Chunk { coord: coord.clone(), vertices, index: None, places, inside });
        self.by_coord.insert(coord.clone(), self.chunks.len() - 1);
        Ok(Some(self.chunks.len() - 1))
    }

    /// The number of a chunk that was read.
    pub(crate) fn number(&self, coord: &Coord) -> Option<usize> {
        self.by_coord.get(coord).copied()
    }

    /// The fragments of a chunk, read once.
    pub(crate) fn index(&mut self, chunk: usize) -> Result<&FragmentIndex> {
        let own = &mut self.chunks[chunk];
        let index = match own.index.take() {
            Some(index) => index,
            None => self.level.fragments(&own.coord, own.vertices.rows)?,
        };
        Ok(own.index.insert(index))
    }

    /// Picks a row, if it is inside the box; its place in the result.
    fn pick(&mut self, chunk: usize, row: u64) -> Result<Option<u32>> {
        let own = &mut self.chunks[chunk];
        let at = row as usize;
        if own.places[at] != NONE {
            return Ok(Some(own.places[at]));
        }
        if own.inside.as_ref().is_some_and(|inside| !inside[at]) {
            return Ok(None);
        }
        let place = u32::try_from(self.picked.len()).ok().filter(|place| *place != NONE);
        let place = place.ok_or_else(|| Error::invalid("more than 2^32 vertices; select less"))?;
        own.places[at] = place;
        self.picked.push((chunk as u32, row as u32));
        Ok(Some(place))
    }

    /// The place of a row in the result; `None` when it was not picked.
    pub(crate) fn place(&self, chunk: usize, row: u64) -> Option<u32> {
        self.chunks[chunk].places.get(usize::try_from(row).ok()?).copied().filter(|place| *place != NONE)
    }
}

/// Which vertices of a chunk are inside the box, in world coordinates.
fn inside(test: &BoxTest, level: &Level, vertices: &Vertices) -> Vec<bool> {
    let rank = level.root.rank();
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
    match level.dtype {
        DType::Float16 => axes!(u16, |bytes| f16::from_le_bytes(bytes).into()),
        DType::Float32 => axes!(f32, |bytes| f32::from_le_bytes(bytes).into()),
        DType::Float64 => axes!(f64, f64::from_le_bytes),
        DType::Int8 => axes!(i8, |bytes| i8::from_le_bytes(bytes).into()),
        DType::Int16 => axes!(i16, |bytes| i16::from_le_bytes(bytes).into()),
        DType::Int32 => axes!(i32, |bytes| i32::from_le_bytes(bytes).into()),
        DType::Int64 => axes!(i64, |bytes| i64::from_le_bytes(bytes) as f64),
        DType::UInt8 => axes!(u8, |bytes| u8::from_le_bytes(bytes).into()),
        DType::UInt16 => axes!(u16, |bytes| u16::from_le_bytes(bytes).into()),
        DType::UInt32 => axes!(u32, |bytes| u32::from_le_bytes(bytes).into()),
        _ => axes!(u64, |bytes| u64::from_le_bytes(bytes) as f64),
    }
    inside
}
