//! Chunk-grid arrays: one byte string per chunk.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use hyperslab_core::{Array, ChunkCoord, DType, Error, Result};
use hyperslab_zarr::{ZarrArray, ZarrStore};
use serde_json::{Map, Value};

use crate::coord::{Coord, parse_dotted};
use crate::manifests::ChunkBox;
use crate::meta::{corrupt, dtype};

/// Cells kept decoded, per array.
pub(crate) const KEPT_BYTES: usize = 64 << 20;

/// An array whose cell `(i, j, k)` holds the array's data for chunk `origin + (i, j, k)`.
#[derive(Debug)]
pub(crate) struct CellArray {
    array: ZarrArray,
    origin: Coord,
    pub(crate) attributes: Map<String, Value>,
    /// Non-empty cells, in numeric order.
    chunks: OnceLock<Vec<Coord>>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    cells: HashMap<Coord, Bytes>,
    bytes: usize,
}

impl CellArray {
    /// The array at a path; `None` if there is none.
    pub(crate) fn open(zarr: &ZarrStore, path: &str) -> Result<Option<Self>> {
        let array = match zarr.array(path) {
            Ok(array) => array,
            Err(error) if error.is_not_found() => return Ok(None),
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
        if let Some(encoding) = attributes.get("encoding").and_then(Value::as_str)
            && !["raw", "fragment_index_v1", "dictionary"].contains(&encoding)
        {
            return Err(Error::unsupported(array.name(), format!("the encoding {encoding:?}")));
        }
        Ok(Some(Self { array, origin, attributes, chunks: OnceLock::new(), kept: Mutex::default() }))
    }

    pub(crate) fn name(&self) -> &str {
        self.array.name()
    }

    /// Returns true if cells are stored as they are.
    pub(crate) fn is_raw(&self) -> bool {
        self.array.schema().filters.is_empty()
    }

    pub(crate) fn rank(&self) -> usize {
        self.origin.len()
    }

    /// The chunks that can have a cell.
    pub(crate) fn chunk_box(&self) -> ChunkBox {
        ChunkBox::new(self.origin.clone(), self.array.schema().shape())
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
        let Some(at) = self.index(chunk) else { return Ok(None) };
        Ok(self.array.single_element(&at)?.filter(|cell| !cell.is_empty()))
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cell's position in the array.
    fn index(&self, chunk: &Coord) -> Option<ChunkCoord> {
        if chunk.len() != self.origin.len() {
            return None;
        }
        let at =
            chunk.iter().zip(&self.origin).map(|(at, origin)| u64::try_from(at.checked_sub(*origin)?).ok());
        let at: ChunkCoord = at.collect::<Option<_>>()?;
        self.array.schema().grid.contains(&at).then_some(at)
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

    /// The content of `nonempty_chunks`.
    pub(crate) fn listed(&self) -> Result<Option<Vec<Coord>>> {
        let Some(listed) = self.attributes.get("nonempty_chunks") else { return Ok(None) };
        let wrong = || corrupt(self.name(), "zarr.json", "nonempty_chunks");
        let listed = listed.as_array().ok_or_else(wrong)?;
        let parse = |name: &Value| name.as_str().and_then(|name| parse_dotted(name, self.rank()));
        listed.iter().map(parse).collect::<Option<Vec<Coord>>>().ok_or_else(wrong).map(Some)
    }

    /// The cells that have an object or a shard entry.
    pub(crate) fn stored(&self) -> Result<Vec<Coord>> {
        let mut stored = Vec::new();
        self.array.visit_chunks(&mut |at, _| {
            let chunk = at.iter().zip(&self.origin).map(|(at, origin)| (*at as i64).saturating_add(*origin));
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
