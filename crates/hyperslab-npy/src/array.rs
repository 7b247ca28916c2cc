//! `.npy`: one array with contiguous elements.

use std::ops::{ControlFlow, Range};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hyperslab_core::{
    Array, ArraySchema, Attributes, Blob, BlobKey, BlobPart, CellOrder, ChunkCoord, ChunkRef, DType, Depth,
    Edges, Error, Grid, Node, Place, Report, Result, Store, product, swap_bytes,
};

use crate::header::Header;
use crate::npz::compare_checksums;

/// A contiguous array is read in slabs of about this size, so that all cores have work.
pub(crate) const SLAB_BYTES: u64 = 4 << 20;

/// An open `.npy` file: one array at `/`.
#[derive(Debug)]
pub struct NpyStore {
    array: Arc<NpyArray>,
}

impl NpyStore {
    /// Opens the array in `blob`.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if the header is invalid or the data is truncated.
    pub fn open(blob: Arc<dyn Blob>) -> Result<Self> {
        let name = Arc::clone(blob.name());
        Ok(Self { array: Arc::new(NpyArray::open(blob, 0, None, name)?) })
    }

    /// Opens a file that may be truncated, or have other bytes after the data. Returns the positions along the first axis that are
    /// missing at the end, if any; the array is shorter by them.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if the header is invalid, or if the array is in Fortran order and truncated: every row is then
    /// incomplete.
    pub(crate) fn open_truncated(blob: Arc<dyn Blob>) -> Result<(Self, Option<Range<u64>>)> {
        let name = Arc::clone(blob.name());
        let (length, place) = (blob.len()?, Place::new(&name, "npy header", 0));
        let (mut header, start) = Header::read(&*blob, 0..length, place)?;
        let (room, mut cut) = (length.saturating_sub(start), None);
        let needed = header.schema().bytes();
        if needed.is_none_or(|needed| needed > room) {
            let is_by_rows = header.schema().order == CellOrder::RowMajor;
            let row = header.schema().dtype.size().zip(product(header.shape.get(1..).unwrap_or_default()));
            let row = row.and_then(|(item, cells)| cells.checked_mul(item as u64)).filter(|row| *row > 0);
            let (Some(row), Some(rows), true) = (row, header.shape.first_mut(), is_by_rows) else {
                return Err(place.plus(start).corrupt(format!("{room} bytes of data, and no whole rows")));
            };
            let whole = room / row;
            cut = Some(whole..*rows);
            *rows = whole;
        }
        let end = header.schema().bytes().and_then(|bytes| start.checked_add(bytes));
        let end = end.ok_or_else(|| place.corrupt("more than 2^64 bytes of data"))?;
        let array = NpyArray {
            name: Arc::clone(&name),
            blob: Arc::new(BlobPart::new(&*name, blob, 0, end)?),
            schema: header.schema(),
            offset: start,
            swapped: header.swapped,
            checksum: None,
        };
        Ok((Self { array: Arc::new(array) }, cut))
    }
}

impl Store for NpyStore {
    fn format(&self) -> &'static str {
        "npy"
    }

    fn name(&self) -> &Arc<str> {
        &self.array.name
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        self.node(path).map(|_| Vec::new())
    }

    fn node(&self, path: &str) -> Result<Node> {
        match path {
            "/" => Ok(Node::Array(Arc::clone(&self.array) as Arc<dyn Array>)),
            _ => Err(Error::not_found(Arc::clone(&self.array.name), path)),
        }
    }

    fn verify(&self, _: Depth, report: &mut Report) -> Result<()> {
        report.passed("npy_header", "the header and the length of the data agree");
        Ok(())
    }
}

/// Contiguous elements in a blob.
#[derive(Debug)]
pub(crate) struct NpyArray {
    name: Arc<str>,
    blob: Arc<dyn Blob>,
    schema: ArraySchema,
    /// The offset of the first element.
    offset: u64,
    /// Whether the byte order differs from the machine's.
    swapped: bool,
    checksum: Option<MemberChecksum>,
}

/// The checksum of an archive member, which covers its header and all elements.
#[derive(Debug)]
struct MemberChecksum {
    bytes: Range<u64>,
    expected: u32,
    /// The checksum of the stored bytes, once computed.
    found: OnceLock<u32>,
}

impl NpyArray {
    /// Opens the array whose header starts at `offset`. Its bytes end at `end`, or at the end of the blob.
    pub(crate) fn open(blob: Arc<dyn Blob>, offset: u64, end: Option<u64>, name: Arc<str>) -> Result<Self> {
        let place = Place::new(&name, "npy header", offset);
        let end = end.map_or_else(|| blob.len(), Ok)?;
        let (header, length) = Header::read(&*blob, offset..end, place)?;
        let schema = header.schema();
        hyperslab_core::check_empty_elements(schema.dtype.size(), schema.shape(), place)?;
        let room = end.saturating_sub(offset + length);
        match schema.bytes() {
            Some(bytes) if bytes == room => {}
            Some(bytes) if bytes < room => {
                return Err(place.plus(length).corrupt(format!("{} bytes after the data", room - bytes)));
            }
            needed => {
                let needed = needed.map_or_else(|| "more than 2^64".to_owned(), |bytes| bytes.to_string());
                return Err(place.plus(length).corrupt(format!("{room} bytes of data, expected {needed}")));
            }
        }
        Ok(Self { name, blob, schema, offset: offset + length, swapped: header.swapped, checksum: None })
    }

    /// Sets the checksum of the bytes that hold the array.
    pub(crate) fn with_checksum(mut self, bytes: Range<u64>, expected: u32) -> Self {
        self.checksum = Some(MemberChecksum { bytes, expected, found: OnceLock::new() });
        self
    }

    /// The CRC-32 of these bytes, read in pieces.
    fn crc32(&self, bytes: &Range<u64>) -> Result<u32> {
        let mut sum = flate2::Crc::new();
        let mut start = bytes.start;
        while start < bytes.end {
            let piece = self.blob.read_at(start, SLAB_BYTES.min(bytes.end - start))?;
            sum.update(&piece);
            start += piece.len() as u64;
        }
        Ok(sum.sum())
    }

    /// The offset of a slab.
    fn reference(&self, chunk: &[u64]) -> Option<ChunkRef> {
        let region = self.schema.grid.region(chunk);
        let strides = self.schema.order.strides(self.schema.shape());
        let first: u64 = region.start.iter().zip(&strides).map(|(start, stride)| start * stride).sum();
        let item = self.schema.dtype.size()? as u64;
        let (offset, length) = (self.offset + first * item, region.cells()? * item);
        Some(if self.swapped {
            ChunkRef::encoded(BlobKey::Main, offset, length, 0)
        } else {
            ChunkRef::plain(BlobKey::Main, offset, length)
        })
    }
}

impl Header {
    /// The array described by this header. In C order it is divided into slabs; in Fortran order it is one chunk.
    pub(crate) fn schema(&self) -> ArraySchema {
        let item = self.dtype.size().unwrap_or(1) as u64;
        let grid =
            if self.fortran { Grid::single(&self.shape) } else { Grid::slabs(&self.shape, item, SLAB_BYTES) };
        let mut schema = ArraySchema::new(self.dtype.clone(), grid);
        if self.fortran {
            schema.order = CellOrder::ColumnMajor;
        }
        schema.edges = Edges::Clipped;
        schema.chunk_index = "contiguous".to_owned();
        schema.chunked = false;
        schema
    }
}

impl Array for NpyArray {
    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        Ok(chunks.iter().map(|chunk| self.reference(chunk)).collect())
    }

    fn blob(&self, _: &BlobKey) -> Result<Arc<dyn Blob>> {
        Ok(Arc::clone(&self.blob))
    }

    fn decode(&self, _: &ChunkCoord, reference: &ChunkRef, stored: &[Bytes], out: &mut [u8]) -> Result<()> {
        let stored = stored.first().filter(|stored| stored.len() == out.len()).ok_or_else(|| {
            Place::new(&self.name, "npy data", self.offset).corrupt(format!(
                "{} stored bytes, expected {}",
                reference.stored_bytes(),
                out.len()
            ))
        })?;
        out.copy_from_slice(stored);
        swap_elements(&self.schema.dtype, out);
        Ok(())
    }

    fn verify_checksum(&self, _: &ChunkCoord, _: &ChunkRef) -> Result<()> {
        let Some(MemberChecksum { bytes, expected, found }) = &self.checksum else { return Ok(()) };
        let found = match found.get() {
            Some(found) => *found,
            None => {
                let computed = self.crc32(bytes)?;
                *found.get_or_init(|| computed)
            }
        };
        compare_checksums(Place::new(&self.name, "npy data", self.offset), found, *expected)
    }

    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        // The grid is ours and all of the data exists, so the number of slabs is bounded.
        for number in 0..self.schema.grid.chunks().unwrap_or(0) {
            let coord = self.schema.grid.coord(number);
            if let Some(reference) = self.reference(&coord)
                && visit(coord, reference)?.is_break()
            {
                break;
            }
        }
        Ok(())
    }
}

/// Reverses the bytes of every number.
pub(crate) fn swap_elements(dtype: &DType, bytes: &mut [u8]) {
    match dtype {
        DType::Struct(fields) if fields.size > 0 => {
            for element in bytes.chunks_exact_mut(fields.size) {
                for member in &fields.members {
                    let end = member.offset + member.dtype.size().unwrap_or(0);
                    if let Some(member_bytes) = element.get_mut(member.offset..end) {
                        swap_elements(&member.dtype, member_bytes);
                    }
                }
            }
        }
        DType::Array(base, _) => swap_elements(base, bytes),
        _ => {
            if let Some(unit) = dtype.swap_unit() {
                swap_bytes(unit, bytes);
            }
        }
    }
}

/// The format has no attributes.
pub(crate) const fn no_attributes() -> Attributes {
    Attributes::new()
}

/// The size of an array with this shape and type, as the sinks need it.
pub(crate) fn data_bytes(dtype: &DType, shape: &[u64]) -> Option<u64> {
    product(shape)?.checked_mul(dtype.size()? as u64)
}
