//! The chunks of a level, and arrays with one byte string for each of them.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{
    ArraySink, ArraySpec, Attribute, Attributes, ChunkCoord, DType, Elements, Filter, Grid, Result, Sink,
};
use serde_json::{Value, json};

use crate::coord::{Coord, dotted};

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
}

/// Where a level's nodes are made, and how its cells are stored.
pub(crate) struct LevelSink<'a> {
    pub(crate) sink: &'a mut dyn Sink,
    /// The level's path in the sink; empty when the sink is the level.
    pub(crate) path: String,
    /// Dimensions of the grid.
    pub(crate) rank: usize,
    pub(crate) compression: Option<i32>,
    /// Where to put what is too much for memory.
    pub(crate) folder: &'a Path,
}

impl LevelSink<'_> {
    pub(crate) fn filters(&self) -> Vec<Filter> {
        self.compression.map(|level| Filter::new("zstd").with("level", level)).into_iter().collect()
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
        let mut names: Vec<String> = present.map(|chunk| dotted(&chunks.coords[chunk])).collect();
        names.sort();
        let mut attributes = Attributes::from_iter([("nonempty_chunks", Attribute::Json(json!(names)))]);
        if chunks.origin.iter().any(|part| *part != 0) {
            attributes.set("chunk_grid_origin", Attribute::Json(json!(chunks.origin.as_slice())));
        }
        for (name, value) in own.as_object().into_iter().flatten() {
            attributes.set(name.as_str(), Attribute::Json(value.clone()));
        }
        let mut spec = ArraySpec::new(DType::Bytes, Grid::new(&chunks.shape, &vec![1; chunks.shape.len()])?);
        spec.attributes = attributes;
        spec.filters = self.filters();
        let array = self.sink.array(&format!("{}/{name}", self.path), &spec)?;
        Ok(CellSink { array, origin: chunks.origin.clone() })
    }

    /// A one-dimensional array of byte strings, `each` of them in one chunk of it.
    pub(crate) fn rows(
        &mut self,
        name: &str,
        count: u64,
        each: u64,
        own: &Value,
    ) -> Result<Arc<dyn ArraySink>> {
        let mut spec = ArraySpec::new(DType::Bytes, Grid::new(&[count], &[each.clamp(1, count.max(1))])?);
        spec.attributes = json_attributes(own);
        spec.filters = vec![Filter::new("zstd").with("level", 0)];
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
