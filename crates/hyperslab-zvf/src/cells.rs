//! Chunk-grid arrays: one byte string per chunk.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use hyperslab_core::{Array, ChunkCoord, DType, Error, Positions, Result, Store, read_serial};
use hyperslab_zarr::{ZarrArray, ZarrStore};
use serde_json::{Map, Value};

use crate::coord::{Coord, dotted, parse_dotted};
use crate::manifests::ChunkBox;
use crate::meta::{corrupt, dtype};

/// The maximum size of the decoded-cell cache, per array.
pub(crate) const KEPT_BYTES: usize = 64 << 20;

/// An array with one byte string for each chunk of space.
#[derive(Debug)]
pub(crate) struct CellArray {
    name: String,
    cells: Cells,
    pub(crate) attributes: Map<String, Value>,
    /// Non-empty cells, in numeric order.
    chunks: OnceLock<Vec<Coord>>,
    kept: Mutex<Kept>,
}

/// The location of an array's cells.
#[derive(Debug)]
enum Cells {
    /// In one array, whose cell `(i, j, k)` belongs to the chunk `origin + (i, j, k)`.
    Grid { array: Box<ZarrArray>, origin: Coord },
    /// In one array of bytes for each chunk, named by its coordinate: the layout before 0.9.
    PerChunk { zarr: Arc<ZarrStore>, path: String, stored: Vec<Coord> },
    /// In memory, because the cells are stored in another form.
    Memory(BTreeMap<Coord, Bytes>),
}

#[derive(Debug, Default)]
struct Kept {
    cells: HashMap<Coord, Bytes>,
    bytes: usize,
}

impl CellArray {
    /// The array at a path; `None` if there is none.
    pub(crate) fn open(zarr: &Arc<ZarrStore>, path: &str) -> Result<Option<Self>> {
        let array = match zarr.array(path) {
            Ok(array) => array,
            Err(error) if error.is_not_found() => return Self::open_per_chunk(zarr, path),
            Err(error) => return Err(error),
        };
        let schema = array.schema();
        if schema.dtype != DType::Bytes || schema.grid.chunk_shape().iter().any(|extent| *extent != 1) {
            let feature = format!(
                "a chunk-grid array of {} in chunks of {:?}",
                schema.dtype,
                schema.grid.chunk_shape()
            );
            return Err(Error::unsupported(array.name(), feature));
        }
        let attributes = schema.attributes.to_json();
        let rank = schema.grid.rank();
        let origin = match attributes.get("chunk_grid_origin") {
            None => Coord::from_elem(0, rank),
            Some(origin) => {
                let parts =
                    origin.as_array().map(|parts| parts.iter().map(Value::as_i64).collect::<Option<Coord>>());
                let origin = parts.flatten().filter(|origin| origin.len() == rank);
                origin.ok_or_else(|| corrupt(array.name(), "zarr.json", "chunk_grid_origin"))?
            }
        };
        let name = array.name().to_owned();
        Self::new(name, Cells::Grid { array: Box::new(array), origin }, attributes).map(Some)
    }

    /// The group at a path with one array per chunk; `None` if there is none.
    fn open_per_chunk(zarr: &Arc<ZarrStore>, path: &str) -> Result<Option<Self>> {
        let Some(attributes) = zarr.group(path)? else { return Ok(None) };
        let names = zarr.children(path)?;
        let rank = names.first().map_or(0, |name| name.split('.').count());
        let stored = names.iter().filter_map(|name| parse_dotted(name, rank)).collect();
        let cells = Cells::PerChunk { zarr: Arc::clone(zarr), path: path.to_owned(), stored };
        Self::new(format!("{}{path}", zarr.name()), cells, attributes.to_json()).map(Some)
    }

    /// Cells that are held in memory.
    pub(crate) fn in_memory(
        name: String,
        cells: BTreeMap<Coord, Bytes>,
        attributes: Map<String, Value>,
    ) -> Result<Self> {
        Self::new(name, Cells::Memory(cells), attributes)
    }

    fn new(name: String, cells: Cells, attributes: Map<String, Value>) -> Result<Self> {
        if let Some(encoding) = attributes.get("encoding").and_then(Value::as_str)
            && !["raw", "fragment_index_v1", "dictionary"].contains(&encoding)
        {
            return Err(Error::unsupported(name, format!("the encoding {encoding:?}")));
        }
        Ok(Self { name, cells, attributes, chunks: OnceLock::new(), kept: Mutex::default() })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if cells are stored as they are.
    pub(crate) fn is_raw(&self) -> bool {
        match &self.cells {
            Cells::Grid { array, .. } => array.schema().filters.is_empty(),
            Cells::PerChunk { .. } | Cells::Memory(_) => true,
        }
    }

    /// Returns true for the layout before 0.9: one array for each chunk.
    pub(crate) const fn is_per_chunk(&self) -> bool {
        matches!(self.cells, Cells::PerChunk { .. })
    }

    /// The number of dimensions of the grid; 0 if nothing is stored in the layout before 0.9.
    pub(crate) fn rank(&self) -> usize {
        match &self.cells {
            Cells::Grid { origin, .. } => origin.len(),
            Cells::PerChunk { stored, .. } => stored.first().map_or(0, |chunk| chunk.len()),
            Cells::Memory(cells) => cells.keys().next().map_or(0, |chunk| chunk.len()),
        }
    }

    /// The chunks that can have a cell.
    pub(crate) fn chunk_box(&self) -> ChunkBox {
        match &self.cells {
            Cells::Grid { array, origin } => ChunkBox::new(origin.clone(), array.schema().shape()),
            Cells::PerChunk { .. } | Cells::Memory(_) => ChunkBox::none(self.rank()),
        }
    }

    /// The type given by the attribute `dtype`; 32-bit floats by default.
    pub(crate) fn dtype(&self) -> Result<DType> {
        match self.attributes.get("dtype") {
            None => Ok(DType::Float32),
            Some(name) => name
                .as_str()
                .and_then(dtype)
                .ok_or_else(|| Error::unsupported(self.name(), format!("the dtype {name}"))),
        }
    }

    /// The cell of a chunk; `None` if it is empty.
    pub(crate) fn cell(&self, chunk: &Coord) -> Result<Option<Bytes>> {
        if let Some(cell) = self.kept().cells.get(chunk) {
            return Ok(Some(cell.clone()));
        }
        let Some(cell) = self.read_cell(chunk)? else { return Ok(None) };
        let mut kept = self.kept();
        if kept.bytes >= KEPT_BYTES {
            *kept = Kept::default();
        }
        kept.bytes += cell.len();
        kept.cells.insert(chunk.clone(), cell.clone());
        Ok(Some(cell))
    }

    /// Like `cell`, without caching it.
    pub(crate) fn read_cell(&self, chunk: &Coord) -> Result<Option<Bytes>> {
        let cell = match &self.cells {
            Cells::Grid { array, origin } => match index(array, origin, chunk) {
                Some(at) => array.single_element(&at)?,
                None => None,
            },
            Cells::PerChunk { zarr, path, .. } => byte_array(zarr, &format!("{path}/{}", dotted(chunk)))?,
            Cells::Memory(cells) => cells.get(chunk).cloned(),
        };
        Ok(cell.filter(|cell| !cell.is_empty()))
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The chunks that the array lists as non-empty, in numeric order; if it has no list, those that are stored.
    pub(crate) fn chunks(&self) -> Result<&[Coord]> {
        if let Some(chunks) = self.chunks.get() {
            return Ok(chunks);
        }
        let mut chunks = match self.listed()? {
            Some(listed) => listed,
            None => self.stored()?,
        };
        chunks.sort_unstable();
        chunks.dedup();
        Ok(self.chunks.get_or_init(|| chunks))
    }

    /// The content of `nonempty_chunks`. Without a grid, the names of the arrays are the list.
    pub(crate) fn listed(&self) -> Result<Option<Vec<Coord>>> {
        if !matches!(self.cells, Cells::Grid { .. }) {
            return self.stored().map(Some);
        }
        let Some(listed) = self.attributes.get("nonempty_chunks") else { return Ok(None) };
        let wrong = || corrupt(self.name(), "zarr.json", "nonempty_chunks");
        let listed = listed.as_array().ok_or_else(wrong)?;
        let parse = |name: &Value| name.as_str().and_then(|name| parse_dotted(name, self.rank()));
        listed.iter().map(parse).collect::<Option<Vec<Coord>>>().ok_or_else(wrong).map(Some)
    }

    /// The cells that have an object or a shard entry.
    pub(crate) fn stored(&self) -> Result<Vec<Coord>> {
        let (array, origin) = match &self.cells {
            Cells::Grid { array, origin } => (array, origin),
            Cells::PerChunk { stored, .. } => return Ok(stored.clone()),
            Cells::Memory(cells) => return Ok(cells.keys().cloned().collect()),
        };
        let mut stored = Vec::new();
        array.visit_chunks(&mut |at, _| {
            let chunk = at.iter().zip(origin).map(|(at, origin)| (*at as i64).saturating_add(*origin));
            stored.push(chunk.collect());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(stored)
    }

    /// Returns true if this chunk may have a cell, according to the list.
    pub(crate) fn may_have(&self, chunk: &Coord) -> Result<bool> {
        Ok(self.chunks()?.binary_search(chunk).is_ok())
    }

    /// The shape of a row without the row count: `[]` or `[C]`.
    pub(crate) fn row_width(&self) -> Option<u64> {
        let shape = self.attributes.get("row_shape")?.as_array()?;
        shape.iter().map(Value::as_u64).try_fold(1_u64, |all, own| all.checked_mul(own?))
    }
}

/// The position of a chunk's cell in the array.
fn index(array: &ZarrArray, origin: &Coord, chunk: &Coord) -> Option<ChunkCoord> {
    if chunk.len() != origin.len() {
        return None;
    }
    let at = chunk.iter().zip(origin).map(|(at, origin)| u64::try_from(at.checked_sub(*origin)?).ok());
    let at: ChunkCoord = at.collect::<Option<_>>()?;
    array.schema().grid.contains(&at).then_some(at)
}

/// The content of an array of bytes, as stores before 0.9 keep their blobs; `None` if there is no such array.
pub(crate) fn byte_array(zarr: &ZarrStore, path: &str) -> Result<Option<Bytes>> {
    let array = match zarr.array(path) {
        Ok(array) => array,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let schema = array.schema();
    if schema.dtype != DType::UInt8 || schema.grid.rank() != 1 {
        let feature =
            format!("a blob stored as an array of {} of the shape {:?}", schema.dtype, schema.shape());
        return Err(Error::unsupported(array.name(), feature));
    }
    let values = read_serial(&array, Positions::whole(schema.shape()))?;
    Ok(values.elements.as_fixed().cloned())
}
