//! Variables as arrays: locates their chunks, and converts big-endian bytes to elements.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{
    Array, ArraySchema, Blob, BlobKey, ChunkCoord, ChunkRef, Coverage, DType, Edges, Extents, Fill, Grid,
    Labels, Layer, Layout as Strides, PartialOutput, Place, PlannedChunk, Result, Span, Usage, copy_swapped,
    product,
};
use smallvec::smallvec;

use crate::attributes;
use crate::header::{Header, Variable};
use crate::layout::{VariableLayout, grid};

/// Records at most this many bytes apart are fetched in one request, together with the bytes between them.
const NEAR: u64 = 4096;

/// A variable.
#[derive(Debug, Clone)]
pub(crate) struct VariableArray {
    name: String,
    blob: Arc<dyn Blob>,
    schema: ArraySchema,
    layout: VariableLayout,
    /// Bytes of a number that must be swapped; 1 if there is nothing to swap.
    unit: usize,
}

impl VariableArray {
    /// A variable. `is_coordinate` returns whether a variable labels the dimension with this number.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](hyperslab_core::Error::Corrupt) if the file ends before its data do.
    pub(crate) fn open(
        blob: &Arc<dyn Blob>,
        header: &Header,
        variable: &Variable,
        layout: &VariableLayout,
        file_length: u64,
        is_coordinate: &dyn Fn(usize) -> bool,
    ) -> Result<Self> {
        let end = layout.end();
        if end > file_length {
            let place = Place::new(blob.name(), "NetCDF variable", variable.at);
            return Err(place.corrupt(format!(
                "variable {:?} ends at {end:#x}, the file at {file_length:#x}",
                variable.name
            )));
        }
        let size = variable.kind.size();
        let mut schema =
            ArraySchema::new(variable.kind.dtype(), grid(&layout.shape, size, layout.stride.is_some()));
        schema.edges = Edges::Clipped;
        schema.chunked = false;
        schema.chunk_index = if layout.stride.is_some() { "records" } else { "contiguous" }.to_owned();
        schema.attributes = attributes::read(&variable.attributes);
        schema.fill = attributes::fill(variable);
        if layout.stride.is_some() {
            schema.max_shape[0] = None;
        }
        for (axis, number) in variable.dimensions.iter().enumerate() {
            let name = &header.dimensions[*number].name;
            schema.dimensions[axis] = Some(name.clone());
            if is_coordinate(*number) {
                schema.labels[axis] = Labels::Node(format!("/{name}"));
            }
        }
        let unit = if cfg!(target_endian = "little") { size as usize } else { 1 };
        let name = format!("{}/{}", blob.name(), variable.name);
        Ok(Self { name, blob: Arc::clone(blob), schema, layout: layout.clone(), unit })
    }

    /// The stride between records in a chunk that holds several non-contiguous records.
    fn stride(&self, chunk: &[u64]) -> Option<u64> {
        let records = self.schema.grid.region(chunk).shape.first().copied().unwrap_or(1);
        self.layout.stride.filter(|stride| records > 1 && *stride != self.layout.own)
    }

    fn item(&self) -> u64 {
        self.schema.dtype.size().unwrap_or(1) as u64
    }

    /// The location of a chunk. It lies in the grid, and the whole variable lies in the file, so nothing overflows.
    fn reference(&self, chunk: &[u64]) -> ChunkRef {
        let region = self.schema.grid.region(chunk);
        let shape = self.schema.shape();
        let from = usize::from(self.layout.stride.is_some());
        let mut cell = 0_u64;
        for (start, extent) in region.start.iter().zip(shape).skip(from) {
            cell = cell * extent + start;
        }
        let inner = product(&region.shape[from..]).unwrap_or(0) * self.item();
        let (first, records) =
            if from == 1 { (region.start[0], region.shape[0]) } else { (0, u64::from(inner > 0)) };
        let offset = self.layout.begin + first * self.layout.stride.unwrap_or(0) + cell * self.item();
        let Some(stride) = self.stride(chunk) else {
            let (offset, length) = (offset, inner * records);
            return if self.unit == 1 {
                ChunkRef::plain(BlobKey::Main, offset, length)
            } else {
                ChunkRef::encoded(BlobKey::Main, offset, length, 0)
            };
        };
        if inner * 4 >= stride || stride <= NEAR {
            return ChunkRef::encoded(BlobKey::Main, offset, (records - 1) * stride + inner, 0);
        }
        let part =
            |record: u64| Span { blob: BlobKey::Main, offset: offset + record * stride, length: inner };
        let spans = (0..records).map(part).collect();
        ChunkRef { layers: smallvec![Layer { spans, filter_mask: 0, plain: false, region: None, tag: 0 }] }
    }

    fn wrong_length(&self, reference: &ChunkRef, expected: usize) -> hyperslab_core::Error {
        let offset = reference.spans().next().map_or(self.layout.begin, |span| span.offset);
        Place::new(&self.name, "NetCDF data", offset)
            .corrupt(format!("{} stored bytes for a chunk of {expected}", reference.stored_bytes()))
    }
}

impl Array for VariableArray {
    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        let inside = |chunk: &&ChunkCoord| self.schema.grid.contains(chunk);
        Ok(chunks.iter().map(|chunk| Some(chunk).filter(inside).map(|chunk| self.reference(chunk))).collect())
    }

    fn blob(&self, _: &BlobKey) -> Result<Arc<dyn Blob>> {
        Ok(Arc::clone(&self.blob))
    }

    fn decode(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
        out: &mut [u8],
    ) -> Result<()> {
        let wrong = |out: &[u8]| self.wrong_length(reference, out.len());
        let records = self.schema.grid.region(chunk).shape.first().copied().unwrap_or(1).max(1) as usize;
        let each = out.len() / records;
        match (stored, self.stride(chunk)) {
            ([whole], None) if whole.len() == out.len() => copy_swapped(self.unit, whole, out),
            ([whole], Some(stride)) if each > 0 => {
                let stride = usize::try_from(stride).map_err(|_| wrong(out))?;
                if (records - 1).checked_mul(stride).and_then(|n| n.checked_add(each)) != Some(whole.len()) {
                    return Err(wrong(out));
                }
                for (record, out) in out.chunks_exact_mut(each).enumerate() {
                    copy_swapped(self.unit, &whole[record * stride..][..each], out);
                }
            }
            (many, Some(_)) if many.len() == records && many.iter().all(|part| part.len() == each) => {
                for (part, out) in many.iter().zip(out.chunks_exact_mut(each.max(1))) {
                    copy_swapped(self.unit, part, out);
                }
            }
            _ => return Err(wrong(out)),
        }
        Ok(())
    }

    /// Swaps the wanted cells while copying them from the stored bytes to the result.
    fn decode_partial(
        &self,
        wanted: &PlannedChunk,
        _: &ChunkRef,
        stored: &[Bytes],
        out: PartialOutput<'_, '_>,
    ) -> Result<Coverage> {
        let (Some(slot), [stored]) = (out.slot, stored) else { return Ok(Coverage::Nothing) };
        let shape = self.schema.decoded_shape(&wanted.coord);
        let mut from = Strides::packed(&shape, slot.item());
        if let Some(stride) = self.stride(&wanted.coord) {
            from.strides[0] = isize::try_from(stride).unwrap_or(isize::MAX);
        }
        for (part, stride) in wanted.axes.iter().zip(&mut from.strides) {
            from.offset = (part.first as usize)
                .checked_mul(stride.unsigned_abs())
                .and_then(|skipped| from.offset.checked_add(skipped))
                .unwrap_or(usize::MAX);
            *stride = stride.saturating_mul(part.step as isize);
        }
        slot.copy_swapped_from(self.unit, stored, &from)?;
        Ok(Coverage::Slot)
    }

    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        // The grid is ours and its data is completely in the file, so there are at most as many chunks as bytes.
        for number in 0..self.schema.grid.chunks().unwrap_or(0) {
            let coord = self.schema.grid.coord(number);
            let reference = self.reference(&coord);
            if visit(coord, reference)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn usage(&self) -> Result<Usage> {
        let chunks = self.schema.grid.chunks().unwrap_or(0);
        Ok(Usage { chunks, bytes: self.schema.bytes().unwrap_or(0) })
    }

    /// A variable with non-contiguous records, as chunks of one record.
    fn stored_pieces(&self) -> Option<Box<dyn Array>> {
        self.layout.stride.filter(|stride| *stride != self.layout.own)?;
        let shape = self.schema.shape();
        let inner = shape.iter().skip(1).map(|extent| (*extent).max(1));
        let chunk: Extents = std::iter::once(1).chain(inner).collect();
        let mut pieces = self.clone();
        pieces.schema.grid = Grid::new(shape, &chunk).ok()?;
        Some(Box::new(pieces))
    }

    fn is_remote(&self) -> bool {
        self.blob.is_remote()
    }
}

/// A dimension without a variable: it has a name and a length, but no values.
#[derive(Debug)]
pub(crate) struct BareDimension {
    name: String,
    blob: Arc<dyn Blob>,
    schema: ArraySchema,
}

impl BareDimension {
    pub(crate) fn new(blob: &Arc<dyn Blob>, name: &str, length: u64, is_record: bool) -> Self {
        let mut schema = ArraySchema::new(DType::Float32, Grid::slabs(&[length], 4, 1 << 20));
        schema.dimensions = vec![Some(name.to_owned())];
        schema.chunk_index = "none".to_owned();
        schema.chunked = false;
        schema.is_dimension = true;
        schema.edges = Edges::Clipped;
        schema.fill = Fill::Zero;
        if is_record {
            schema.max_shape[0] = None;
        }
        Self { name: format!("{}/{name}", blob.name()), blob: Arc::clone(blob), schema }
    }
}

impl Array for BareDimension {
    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        Ok(vec![None; chunks.len()])
    }

    fn blob(&self, _: &BlobKey) -> Result<Arc<dyn Blob>> {
        Ok(Arc::clone(&self.blob))
    }

    fn decode(&self, _: &ChunkCoord, reference: &ChunkRef, _: &[Bytes], out: &mut [u8]) -> Result<()> {
        let place = Place::new(&self.name, "NetCDF dimension", 0);
        Err(place.corrupt(format!("{} bytes, expected none for {}", reference.stored_bytes(), out.len())))
    }

    fn visit_chunks(&self, _: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>) -> Result<()> {
        Ok(())
    }
}
