//! An array joined from the arrays of several stores.
//!
//! If a chunk of the joined array is a chunk of one store, its stored bytes are used as is. Any other chunk is assembled from the
//! stores that hold its parts.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{
    Array, ArraySchema, Blob, BlobKey, CellOrder, ChunkCoord, ChunkRef, Elements, Error, Layer, Layout,
    Positions, Region, Result, Span, StoredForm, copy_box, product, read_serial,
};
use smallvec::smallvec;

use super::parts::PartStores;
use super::rebase::Times;

/// One store's part of the array.
#[derive(Debug)]
pub(super) struct Piece {
    /// The number of the store.
    pub(super) part: usize,
    /// Its start along the axis.
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) times: Option<Times>,
}

/// An array joined along an axis.
#[derive(Debug)]
pub(super) struct JoinedArray {
    pub(super) name: String,
    /// The path, which is the same in every store.
    pub(super) path: String,
    pub(super) schema: ArraySchema,
    pub(super) axis: usize,
    /// In axis order, none of them empty.
    pub(super) pieces: Vec<Piece>,
    pub(super) parts: Arc<PartStores>,
}

/// A chunk that is also a chunk of one store.
struct StoreChunk {
    array: Arc<dyn Array>,
    piece: usize,
    chunk: ChunkCoord,
}

impl JoinedArray {
    fn source(&self, piece: usize) -> Result<Arc<dyn Array>> {
        let piece = &self.pieces[piece];
        self.parts.array(piece.part, &self.path, piece.times.as_ref())
    }

    /// The pieces that a region of the array touches.
    fn touched(&self, region: &Region) -> std::ops::Range<usize> {
        let (start, end) = (region.start[self.axis], region.start[self.axis] + region.shape[self.axis]);
        let first = self.pieces.partition_point(|piece| piece.start + piece.length <= start);
        let last = self.pieces.partition_point(|piece| piece.start < end);
        first..last.max(first)
    }

    /// The store's chunk that equals this chunk, if there is one.
    fn own(&self, chunk: &ChunkCoord) -> Result<Option<StoreChunk>> {
        let region = self.schema.grid.region(chunk);
        let touched = self.touched(&region);
        if touched.len() != 1 {
            return Ok(None);
        }
        let piece = touched.start;
        let (start, extent) = (self.pieces[piece].start, self.schema.grid.chunk_shape()[self.axis]);
        if !start.is_multiple_of(extent) {
            return Ok(None);
        }
        let array = self.source(piece)?;
        let schema = array.schema();
        let alike = schema.grid.chunk_shape() == self.schema.grid.chunk_shape()
            && schema.order == CellOrder::RowMajor
            && schema.edges == self.schema.edges
            && schema.fill == self.schema.fill;
        let mut own = chunk.clone();
        own[self.axis] -= start / extent;
        let same_cells = alike && schema.grid.region(&own).shape == region.shape;
        Ok(same_cells.then_some(StoreChunk { array, piece, chunk: own }))
    }

    /// The reference of a chunk without stored bytes, which is assembled when it is decoded.
    fn assembled_reference() -> ChunkRef {
        let layer = Layer { spans: smallvec![], filter_mask: 0, plain: false, region: None, tag: 0 };
        ChunkRef { layers: smallvec![layer] }
    }

    /// The reference of a store's chunk, with the piece number in the names of its blobs.
    fn marked(piece: usize, mut reference: ChunkRef) -> ChunkRef {
        for span in reference.layers.iter_mut().flat_map(|layer| &mut layer.spans) {
            span.blob = BlobKey::named(match &span.blob {
                BlobKey::Main => format!("{piece}:"),
                BlobKey::Named(name) => format!("{piece}:={name}"),
            });
        }
        reference
    }

    fn unmarked(reference: &ChunkRef) -> ChunkRef {
        let mut own = reference.clone();
        for span in own.layers.iter_mut().flat_map(|layer| &mut layer.spans) {
            if let Some((_, key)) = split(&span.blob) {
                span.blob = key;
            }
        }
        own
    }

    fn located(&self, chunk: &ChunkCoord) -> Result<Option<ChunkRef>> {
        let Some(own) = self.own(chunk)? else { return Ok(Some(Self::assembled_reference())) };
        let found = own.array.locate(std::slice::from_ref(&own.chunk))?.pop().flatten();
        Ok(found.map(|reference| Self::marked(own.piece, reference)))
    }

    /// Reads the parts of a region: for each, its start along the axis, relative to the region, and its values.
    fn read_parts(
        &self,
        region: &Region,
        visit: &mut dyn FnMut(u64, &Region, Elements) -> Result<()>,
    ) -> Result<()> {
        for number in self.touched(region) {
            let piece = &self.pieces[number];
            let start = region.start[self.axis].max(piece.start);
            let end = (region.start[self.axis] + region.shape[self.axis]).min(piece.start + piece.length);
            let mut own = region.clone();
            own.start[self.axis] = start - piece.start;
            own.shape[self.axis] = end - start;
            let values = read_serial(&*self.source(number)?, Positions::region(&own))?;
            visit(start - region.start[self.axis], &own, values.elements)?;
        }
        Ok(())
    }
}

/// Splits a blob name into the piece number and the store's own key.
fn split(key: &BlobKey) -> Option<(usize, BlobKey)> {
    let BlobKey::Named(name) = key else { return None };
    let (piece, key) = name.split_once(':')?;
    let key = key.strip_prefix('=').map_or(BlobKey::Main, BlobKey::named);
    Some((piece.parse().ok()?, key))
}

impl Array for JoinedArray {
    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        chunks.iter().map(|chunk| self.located(chunk)).collect()
    }

    fn blob(&self, key: &BlobKey) -> Result<Arc<dyn Blob>> {
        let (piece, key) = split(key).ok_or_else(|| Error::not_found(self.name(), key.to_string()))?;
        self.source(piece)?.blob(&key)
    }

    fn decode(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
        out: &mut [u8],
    ) -> Result<()> {
        if let Some(own) = self.own(chunk)? {
            return own.array.decode(&own.chunk, &Self::unmarked(reference), stored, out);
        }
        let item = self.schema.dtype.size().unwrap_or(0);
        let place = Layout::packed(&self.schema.decoded_shape(chunk), item);
        self.read_parts(&self.schema.grid.region(chunk), &mut |first, own, elements| {
            let bytes =
                elements.as_fixed().ok_or_else(|| Error::invalid("the elements have no fixed size"))?;
            let mut to = place.clone();
            to.offset += first as usize * to.strides[self.axis].unsigned_abs();
            copy_box(bytes, &Layout::packed(&own.shape, item), out, &to, &own.shape, item)
        })
    }

    fn decode_elements(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
    ) -> Result<Elements> {
        if let Some(own) = self.own(chunk)? {
            return own.array.decode_elements(&own.chunk, &Self::unmarked(reference), stored);
        }
        let region = self.schema.grid.region(chunk);
        let strides = CellOrder::RowMajor.strides(&region.shape);
        let cells = product(&region.shape).and_then(|cells| usize::try_from(cells).ok());
        let cells = cells.ok_or_else(|| Error::invalid(format!("{}: a chunk is too large", self.name())))?;
        let (mut rows, mut picks) = (Vec::new(), vec![(0, 0); cells]);
        self.read_parts(&region, &mut |first, own, elements| {
            for cell in 0..product(&own.shape).unwrap_or(0) {
                let (mut left, mut to) = (cell, first * strides[self.axis]);
                for axis in (0..own.shape.len()).rev() {
                    to += left % own.shape[axis] * strides[axis];
                    left /= own.shape[axis];
                }
                picks[to as usize] = (rows.len(), cell as usize);
            }
            rows.push(elements);
            Ok(())
        })?;
        Elements::gather(&self.schema.dtype, &rows.iter().collect::<Vec<_>>(), &picks)
    }

    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let chunk_shape = self.schema.grid.chunk_shape();
        for (number, piece) in self.pieces.iter().enumerate() {
            // A chunk that two stores share is visited with the first.
            let mut found: BTreeSet<ChunkCoord> = BTreeSet::new();
            let source = self.source(number)?;
            source.visit_chunks(&mut |chunk, _| {
                let mut region = source.schema().grid.region(&chunk);
                if region.shape.contains(&0) {
                    return Ok(ControlFlow::Continue(()));
                }
                region.start[self.axis] += piece.start;
                let bounds = region.start.iter().zip(&region.shape).zip(chunk_shape);
                let first: ChunkCoord = bounds.clone().map(|((start, _), chunk)| start / chunk).collect();
                let last: ChunkCoord =
                    bounds.map(|((start, count), chunk)| (start + count - 1) / chunk).collect();
                let shape: Vec<u64> = first.iter().zip(&last).map(|(first, last)| last - first + 1).collect();
                let inside = hyperslab_core::Grid::new(&shape, &vec![1; shape.len()])?;
                for local in 0..inside.chunks().unwrap_or(0) {
                    found.insert(
                        inside.coord(local).iter().zip(&first).map(|(at, first)| at + first).collect(),
                    );
                }
                Ok(ControlFlow::Continue(()))
            })?;
            for chunk in found {
                if let Some(reference) = self.located(&chunk)?
                    && visit(chunk, reference)?.is_break()
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn visits_every_chunk(&self) -> bool {
        self.pieces.is_empty() || self.source(0).is_ok_and(|source| source.visits_every_chunk())
    }

    fn stored_form(&self, chunk: &ChunkCoord, reference: &ChunkRef) -> Option<StoredForm> {
        let own = self.own(chunk).ok()??;
        own.array.stored_form(&own.chunk, &Self::unmarked(reference))
    }

    fn is_remote(&self) -> bool {
        !self.pieces.is_empty() && self.source(0).is_ok_and(|source| source.is_remote())
    }

    fn fetch(&self, spans: &[&Span]) -> Result<Vec<Option<Bytes>>> {
        let own: Option<Vec<(usize, Span)>> = spans
            .iter()
            .map(|span| split(&span.blob).map(|(piece, blob)| (piece, Span { blob, ..(*span).clone() })))
            .collect();
        let own =
            own.ok_or_else(|| Error::invalid(format!("{}: a span belongs to no store", self.name())))?;
        let mut fetched = Vec::with_capacity(own.len());
        for run in own.chunk_by(|(one, _), (other, _)| one == other) {
            let spans: Vec<&Span> = run.iter().map(|(_, span)| span).collect();
            fetched.extend(self.source(run[0].0)?.fetch(&spans)?);
        }
        Ok(fetched)
    }
}
