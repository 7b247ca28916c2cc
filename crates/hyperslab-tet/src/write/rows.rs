//! Encodes chunks separately from writing them.

use bytes::Bytes;
use hyperslab_codec::{checksum::crc32c, zstd};
use hyperslab_core::{
    ArraySpec, DType, Elements, EncodedChunk, Error, Extents, Filter, Grid, Result, StoredForm, StoredStep,
};

use crate::dataset::{Dataset, MAX_RANK, code_of_dtype};
use crate::index::{Codec, Row};
use crate::zone::{Statistics, missing_bytes};

/// The default zstd level, as in the library.
const DEFAULT_LEVEL: i32 = 3;

/// An array in the form of the format.
#[derive(Debug, Clone)]
pub(crate) struct Dimensioned {
    pub(crate) dataset: Dataset,
    pub(crate) dtype: DType,
    /// The grid in the file. A scalar is stored as one element along one axis.
    pub(crate) grid: Grid,
    /// The compression level, if chunks are compressed.
    pub(crate) level: Option<i32>,
    /// The missing-value marker.
    pub(crate) missing: Option<Vec<u8>>,
    /// Whether statistics are wanted.
    pub(crate) zones: bool,
}

impl Dimensioned {
    /// Refuses content that the format cannot hold.
    pub(crate) fn new(store: &str, name: &str, spec: &ArraySpec) -> Result<Self> {
        let dtype_code = code_of_dtype(&spec.dtype).ok_or_else(|| {
            Error::unsupported(store, format!("an array of {} ({name}) in a .tet file", spec.dtype))
        })?;
        if spec.nullable {
            return Err(Error::unsupported(store, format!("missing elements ({name}) in a .tet file")));
        }
        let grid = if spec.grid.rank() == 0 { Grid::single(&[1]) } else { spec.grid.clone() };
        if grid.rank() > MAX_RANK {
            let problem = format!("an array of {} dimensions ({name}) in a .tet file", grid.rank());
            return Err(Error::unsupported(store, problem));
        }
        let dataset = Dataset {
            name: name.into(),
            dtype_code,
            shape: grid.shape().into(),
            chunk_shape: grid.chunk_shape().into(),
        };
        if dataset.bytes().is_none() || grid.chunks().is_none() {
            return Err(Error::invalid(format!("{name}: the shape {:?} is beyond 64 bits", grid.shape())));
        }
        let level = compression(store, &spec.filters)?;
        let missing = missing_bytes(&spec.dtype, &spec.attributes);
        Ok(Self { dataset, dtype: spec.dtype.clone(), grid, level, missing, zones: false })
    }

    /// The coordinate in the file's grid.
    pub(crate) fn coord(&self, chunk: &[u64]) -> Extents {
        if chunk.is_empty() { Extents::from_slice(&[0]) } else { chunk.into() }
    }

    /// The number of a chunk in C order.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) outside the grid.
    pub(crate) fn number(&self, chunk: &[u64]) -> Result<u64> {
        self.grid.linear(&self.coord(chunk)).ok_or_else(|| {
            Error::invalid(format!("{}: chunk {chunk:?} is outside the grid", self.dataset.name))
        })
    }

    /// The size of the array's chunks before this one, all raw and in C order. No sum over chunks is needed: the cells before a
    /// chunk are the slabs before it along each axis.
    pub(crate) fn raw_before(&self, chunk: &[u64]) -> u64 {
        let region = self.grid.region(chunk);
        let (mut cells, mut inside) = (0_u64, 1_u64);
        for axis in 0..self.grid.rank() {
            let after: u64 = self.grid.shape()[axis + 1..].iter().product();
            cells += inside * region.start[axis] * after;
            inside *= region.shape[axis];
        }
        cells * self.dtype.size().unwrap_or(1) as u64
    }

    /// Encodes a chunk's elements. Statistics travel as a second part, the checksum as the tag.
    pub(crate) fn encode(&self, chunk: &[u64], elements: &Bytes) -> Result<EncodedChunk> {
        let item = self.dtype.size().unwrap_or(1);
        let expected = crate::array::chunk_bytes(&self.grid, item, &self.coord(chunk));
        if expected != Some(elements.len() as u64) {
            return Err(Error::invalid(format!(
                "{}: {} bytes for chunk {chunk:?} of {expected:?}",
                self.dataset.name,
                elements.len()
            )));
        }
        if cfg!(target_endian = "big") {
            let mut raw = elements.to_vec();
            raw.chunks_exact_mut(item).for_each(<[u8]>::reverse);
            return pack_chunk(self, raw.into());
        }
        pack_chunk(self, elements.clone())
    }
}

impl Dimensioned {
    /// Takes over stored bytes of another store: those of the cells inside the array, raw in a raw array, zstd in a compressed
    /// one. Statistics need elements, so a file with chunks that were never decoded has no zone maps.
    pub(crate) fn adopt(
        &self,
        chunk: &[u64],
        form: &StoredForm,
        stored: &Bytes,
    ) -> Result<Option<EncodedChunk>> {
        let coord = self.coord(chunk);
        let same_cells = form.shape.is_empty() || form.shape[..] == self.grid.region(&coord).shape[..];
        if !same_cells || cfg!(target_endian = "big") {
            return Ok(None);
        }
        let Some(raw_length) = crate::array::chunk_bytes(&self.grid, self.dtype.size().unwrap_or(1), &coord)
        else {
            return Ok(None);
        };
        match (self.level, form.steps.as_slice()) {
            (None, []) if stored.len() as u64 == raw_length => pack_chunk(self, stored.clone()).map(Some),
            (Some(_), [StoredStep::Zstd]) => {
                let (parts, tag) = (vec![stored.clone()], u64::from(crc32c(stored)));
                Ok(Some(EncodedChunk { parts, filter_mask: 0, raw_length, tag }))
            }
            _ => Ok(None),
        }
    }
}

/// Compresses the little-endian bytes of a chunk.
fn pack_chunk(array: &Dimensioned, raw: Bytes) -> Result<EncodedChunk> {
    let raw_length = raw.len() as u64;
    let zone = array.zones.then(|| Statistics::of(&array.dtype, &raw, array.missing.as_deref()));
    let mut stored = raw;
    let mut codec = Codec::Raw;
    if let Some(level) = array.level {
        let mut compressed = Vec::new();
        zstd::encode(&stored, zstd::Options::level(level), &mut compressed)
            .map_err(|error| Error::invalid(format!("{}: {error}", array.dataset.name)))?;
        // Incompressible chunks are stored raw.
        if compressed.len() < stored.len() {
            (stored, codec) = (compressed.into(), Codec::Zstd);
        }
    }
    let tag = u64::from(crc32c(&stored));
    let filter_mask = u32::from(codec == Codec::Raw);
    let parts = std::iter::once(stored).chain(zone.map(|zone| zone.encode().into())).collect();
    Ok(EncodedChunk { parts, filter_mask, raw_length, tag })
}

/// The record of a written chunk.
#[derive(Debug, Clone)]
pub(crate) struct ChunkRecord {
    pub(crate) offset: u64,
    pub(crate) raw_length: u64,
    pub(crate) stored_length: u64,
    pub(crate) codec: Codec,
    pub(crate) checksum: u32,
    pub(crate) zone: Option<Box<Statistics>>,
}

/// The stored bytes of an encoded chunk, and its record without the position.
pub(crate) fn unpack_chunk(encoded: EncodedChunk) -> Result<(Bytes, ChunkRecord)> {
    let EncodedChunk { parts, filter_mask, raw_length, tag } = encoded;
    let mut parts = parts.into_iter();
    let stored = parts.next().ok_or_else(|| Error::invalid("an encoded chunk has no bytes"))?;
    let zone = parts.next().and_then(|bytes| Statistics::decode(&bytes)).map(Box::new);
    let codec = if filter_mask & 1 == 1 { Codec::Raw } else { Codec::Zstd };
    let stored_length = stored.len() as u64;
    let record = ChunkRecord { offset: 0, raw_length, stored_length, codec, checksum: tag as u32, zone };
    Ok((stored, record))
}

impl ChunkRecord {
    /// Its row in the index.
    pub(crate) fn row(&self, dataset: usize, coord: &[u64]) -> Row {
        let mut slots = [0; MAX_RANK];
        slots[..coord.len()].copy_from_slice(coord);
        Row {
            dataset: dataset as u64,
            coord: slots,
            offset: self.offset,
            raw_length: self.raw_length,
            stored_length: self.stored_length,
            codec: self.codec.number(),
            reserved: 0,
        }
    }
}

/// The zstd level that a pipeline asks for; `None` for no pipeline.
fn compression(store: &str, filters: &[Filter]) -> Result<Option<i32>> {
    match filters {
        [] => Ok(None),
        [filter] if filter.name == "zstd" => {
            let level = filter.parameters.get("level").and_then(serde_json::Value::as_i64);
            Ok(Some(level.and_then(|level| i32::try_from(level).ok()).unwrap_or(DEFAULT_LEVEL)))
        }
        _ => {
            let names: Vec<_> = filters.iter().map(|filter| filter.name.as_str()).collect();
            Err(Error::unsupported(
                store,
                format!("the pipeline {} in a .tet file (only zstd)", names.join(", ")),
            ))
        }
    }
}

/// The elements' bytes. Fails if they are not plain.
pub(crate) fn fixed<'e>(name: &str, elements: &'e Elements) -> Result<&'e Bytes> {
    match (elements.as_fixed(), &elements.validity) {
        (Some(bytes), None) => Ok(bytes),
        _ => Err(Error::invalid(format!("{name}: elements must have a fixed size and none may be missing"))),
    }
}
