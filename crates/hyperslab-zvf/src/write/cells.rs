//! The chunks of a level, and arrays with one byte string for each of them.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{
    ArraySink, ArraySpec, Attribute, Attributes, ChunkCoord, DType, Elements, Filter, Grid, Result, Sink,
};
use hyperslab_zarr::ZarrSink;
use serde_json::{Value, json};

use super::append::Extras;
use crate::coord::{Coord, dotted};

/// The maximum number of cells of a shard per axis.
const SHARD: u64 = 16;
/// A shard's index has an entry for every cell. If cells are so rare that each would need more entries than this,
/// they are stored as separate objects.
const ENTRIES_PER_CELL: u64 = 4;

/// The chunks of a level, in numeric order of their coordinates, and the grid that covers them.
#[derive(Debug)]
pub(crate) struct ChunkList {
    pub(crate) coords: Vec<Coord>,
    pub(crate) origin: Coord,
    pub(crate) shape: Vec<u64>,
}

impl ChunkList {
    pub(crate) fn new(coords: Vec<Coord>, rank: usize) -> Self {
        let Some(first) = coords.first() else {
            return Self { coords, origin: Coord::from_elem(0, rank), shape: vec![1; rank] };
        };
        let (mut low, mut high) = (first.clone(), first.clone());
        for coord in &coords {
            for axis in 0..rank {
                low[axis] = low[axis].min(coord[axis]);
                high[axis] = high[axis].max(coord[axis]);
            }
        }
        let shape = low.iter().zip(&high).map(|(low, high)| high.abs_diff(*low).saturating_add(1)).collect();
        Self { coords, origin: low, shape }
    }

    pub(crate) fn len(&self) -> usize {
        self.coords.len()
    }

    /// The shape of shards for the cells of these chunks; `None` if they are too few to share any.
    fn shard_shape(&self, present: &[usize]) -> Option<Vec<u64>> {
        let shape: Vec<u64> = self.shape.iter().map(|extent| (*extent).min(SHARD)).collect();
        let shard_of = |chunk: &usize| -> ChunkCoord {
            let at = self.coords[*chunk].iter().zip(&self.origin).map(|(at, origin)| at.abs_diff(*origin));
            at.zip(&shape).map(|(at, side)| at / side).collect()
        };
        let shards = present.iter().map(shard_of).collect::<HashSet<_>>().len() as u64;
        let entries = shape.iter().try_fold(shards, |all, side| all.checked_mul(*side))?;
        (present.len() > 1 && entries <= ENTRIES_PER_CELL * present.len() as u64).then_some(shape)
    }
}

/// The place for a level's nodes, and the storage options of its cells.
pub(crate) struct LevelSink<'a> {
    pub(crate) sink: &'a mut ZarrSink,
    /// The level's path in the sink; empty if the sink is the level.
    pub(crate) path: String,
    /// Dimensions of the grid.
    pub(crate) rank: usize,
    pub(crate) compression: Option<i32>,
    /// Whether cells are stored in shards. The cells of coarser levels are small, and a file for each costs more than its
    /// content.
    pub(crate) shards: bool,
    /// The folder for data that does not fit in memory.
    pub(crate) folder: &'a Path,
    /// Additional attributes of its arrays.
    pub(crate) extras: Option<&'a Extras>,
}

impl LevelSink<'_> {
    pub(crate) fn filters(&self) -> Vec<Filter> {
        self.compression.map(|level| Filter::new("zstd").with("level", level)).into_iter().collect()
    }

    /// Adds an array's preserved attributes to those that the writer sets.
    pub(crate) fn add_extras(&self, name: &str, attributes: &mut Attributes) {
        for (key, value) in self.extras.and_then(|extras| extras.get(name)).into_iter().flatten() {
            attributes.set(key.as_str(), Attribute::Json(value.clone()));
        }
    }

    pub(crate) fn group(&mut self, name: &str, attributes: &Value) -> Result<()> {
        let path = format!("{}/{name}", self.path);
        self.sink
            .group(if path == "/" { "/" } else { path.trim_end_matches('/') }, &json_attributes(attributes))
    }

    /// A chunk-grid array with cells for the chunks with these numbers.
    pub(crate) fn cells(
        &mut self,
        name: &str,
        own: &Value,
        chunks: &ChunkList,
        present: impl Iterator<Item = usize>,
    ) -> Result<CellSink> {
        let present: Vec<usize> = present.collect();
        let mut names: Vec<String> = present.iter().map(|chunk| dotted(&chunks.coords[*chunk])).collect();
        names.sort();
        let mut attributes = Attributes::from_iter([("nonempty_chunks", Attribute::Json(json!(names)))]);
        if chunks.origin.iter().any(|part| *part != 0) {
            attributes.set("chunk_grid_origin", Attribute::Json(json!(chunks.origin.as_slice())));
        }
        for (name, value) in own.as_object().into_iter().flatten() {
            attributes.set(name.as_str(), Attribute::Json(value.clone()));
        }
        self.add_extras(name, &mut attributes);
        let mut spec = ArraySpec::new(DType::Bytes, Grid::new(&chunks.shape, &vec![1; chunks.shape.len()])?);
        spec.attributes = attributes;
        spec.filters = self.filters();
        let path = format!("{}/{name}", self.path);
        let shards = if self.shards && !self.sink.has_shards() { chunks.shard_shape(&present) } else { None };
        let array = match shards {
            Some(shape) => self.sink.array_in_shards(&path, &spec, &shape)?,
            None => self.sink.array(&path, &spec)?,
        };
        Ok(CellSink { array, origin: chunks.origin.clone() })
    }

    /// A one-dimensional array of byte strings, `each` of them per chunk.
    pub(crate) fn rows(
        &mut self,
        name: &str,
        count: u64,
        each: u64,
        own: &Value,
    ) -> Result<Arc<dyn ArraySink>> {
        let mut spec = ArraySpec::new(DType::Bytes, Grid::new(&[count], &[each.clamp(1, count.max(1))])?);
        spec.attributes = json_attributes(own);
        spec.filters = vec![Filter::new("zstd").with("level", 1)];
        self.sink.array(&format!("{}/{name}", self.path), &spec)
    }
}

/// A chunk-grid array that is being written, from any thread.
#[derive(Debug)]
pub(crate) struct CellSink {
    array: Arc<dyn ArraySink>,
    origin: Coord,
}

impl CellSink {
    /// Writes the cell of a chunk.
    pub(crate) fn put(&self, chunk: &Coord, cell: &[u8]) -> Result<()> {
        let at: ChunkCoord =
            chunk.iter().zip(&self.origin).map(|(at, origin)| at.abs_diff(*origin)).collect();
        let encoded = self.array.encode(&at, &Elements::variable([cell]))?;
        self.array.write(&at, encoded)
    }
}

pub(crate) fn json_attributes(object: &Value) -> Attributes {
    let fields = object.as_object().into_iter().flatten();
    fields.map(|(name, value)| (name.as_str(), Attribute::Json(value.clone()))).collect()
}
