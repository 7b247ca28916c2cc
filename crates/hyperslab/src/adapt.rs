//! Adapted arrays: the same cells under another schema, or each element mapped to another type.
//!
//! An adapted array is an [`Array`] like any other, so reads, queries and conversions need no special case for it.

mod forward;

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{
    Array, ArraySchema, ChunkCoord, ChunkRef, Data, Elements, Error, Fill, Layer, Result, StoredForm,
    with_scratch,
};

pub(crate) use forward::forward_to;

/// The same bytes under another schema: another element type of the same size, or text as characters along an extra axis.
#[derive(Debug)]
pub(crate) struct Relabelled {
    inner: Arc<dyn Array>,
    schema: ArraySchema,
}

impl Relabelled {
    /// Wraps an array whose chunks decode to the same bytes. The schema has the source's axes and at most one more at the end,
    /// which a single chunk covers.
    pub(crate) fn new(inner: Arc<dyn Array>, schema: ArraySchema) -> Self {
        Self { inner, schema }
    }

    /// The source's coordinate of the same chunk.
    fn own(&self, chunk: &[u64]) -> ChunkCoord {
        chunk[..self.inner.schema().grid.rank()].into()
    }
}

impl Array for Relabelled {
    forward_to!(inner: name, blob, visits_every_chunk, usage, fetch);

    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        self.inner.locate(&chunks.iter().map(|chunk| self.own(chunk)).collect::<Vec<_>>())
    }

    fn decode(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
        out: &mut [u8],
    ) -> Result<()> {
        self.inner.decode(&self.own(chunk), reference, stored, out)
    }

    fn verify_checksum(&self, chunk: &ChunkCoord, reference: &ChunkRef) -> Result<()> {
        self.inner.verify_checksum(&self.own(chunk), reference)
    }

    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let rank = self.schema.grid.rank();
        self.inner.visit_chunks(&mut |mut chunk, reference| {
            chunk.resize(rank, 0);
            visit(chunk, reference)
        })
    }
}

/// The same cells with another description: other attributes, dimension names or labels.
#[derive(Debug)]
pub(crate) struct Described {
    inner: Arc<dyn Array>,
    schema: ArraySchema,
}

impl Described {
    /// The schema must have the source's elements, grid, order and fill value.
    pub(crate) fn new(inner: Arc<dyn Array>, schema: ArraySchema) -> Self {
        Self { inner, schema }
    }
}

impl Array for Described {
    forward_to!(
        inner: name, locate, blob, decode, decode_partial, decode_elements, visit_chunks, visits_every_chunk, usage,
        verify_checksum, statistics, statistics_are_hints, stored_form, fetch,
    );

    fn schema(&self) -> &ArraySchema {
        &self.schema
    }
}

/// A function from elements of one type to elements of another.
pub(crate) trait ElementMap: Send + Sync + Debug {
    /// Maps all elements of `from` to `to`, which has room for exactly that many. Neither is necessarily aligned.
    fn map(&self, from: &[u8], to: &mut [u8]);
}

impl ElementMap for Box<dyn ElementMap> {
    fn map(&self, from: &[u8], to: &mut [u8]) {
        (**self).map(from, to);
    }
}

/// The fill value of an array whose elements are mapped to elements of `size` bytes.
pub(crate) fn mapped_fill(schema: &ArraySchema, map: &dyn ElementMap, size: usize) -> Fill {
    let element = match &schema.fill {
        Fill::Undefined => return Fill::Undefined,
        Fill::Zero => Elements::zero(&schema.dtype),
        Fill::Element(element) => element.clone(),
    };
    let mut mapped = vec![0; size];
    map.map(element.as_fixed().map_or(&[], |bytes| bytes.as_ref()), &mut mapped);
    Fill::Element(Elements::fixed(mapped))
}

/// An array whose elements are a function of the source's elements.
#[derive(Debug)]
pub(crate) struct Mapped<M> {
    inner: Arc<dyn Array>,
    schema: ArraySchema,
    map: M,
}

impl<M: ElementMap> Mapped<M> {
    /// The schema may differ from the source's only in the element type, the fill value and the attributes. Both types have a
    /// fixed size.
    pub(crate) fn new(inner: Arc<dyn Array>, schema: ArraySchema, map: M) -> Self {
        Self { inner, schema, map }
    }
}

/// Appends an empty layer to a reference, so that the stored bytes are never used as elements without mapping: the
/// source's chunk may be plain, but the mapped one is not.
fn mark(mut reference: ChunkRef) -> ChunkRef {
    reference.layers.push(Layer {
        spans: [].into_iter().collect(),
        filter_mask: 0,
        plain: false,
        region: None,
        tag: 0,
    });
    reference
}

/// The source's own reference, without the mark.
fn unmark(reference: &ChunkRef) -> ChunkRef {
    let mut own = reference.clone();
    own.layers.pop();
    own
}

impl<M: ElementMap> Array for Mapped<M> {
    forward_to!(inner: name, blob, visits_every_chunk, usage, fetch);

    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        let references = self.inner.locate(chunks)?;
        Ok(references.into_iter().map(|reference| reference.map(mark)).collect())
    }

    fn decode(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
        out: &mut [u8],
    ) -> Result<()> {
        let own = unmark(reference);
        let bytes = self.inner.schema().decoded_bytes(chunk).ok_or_else(|| {
            Error::invalid(format!("{}: chunk {chunk:?} is larger than memory", self.name()))
        })?;
        if let (Some(_), [stored]) = (own.as_plain(), stored) {
            let elements = stored.get(..bytes).ok_or_else(|| {
                Error::invalid(format!(
                    "{}: chunk {chunk:?} has {} stored bytes, expected {bytes}",
                    self.name(),
                    stored.len()
                ))
            })?;
            self.map.map(elements, out);
            return Ok(());
        }
        with_scratch(bytes, |scratch| {
            self.inner.decode(chunk, &own, stored, scratch)?;
            self.map.map(scratch, out);
            Ok(())
        })
    }

    fn decode_elements(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
    ) -> Result<Elements> {
        let elements = self.inner.decode_elements(chunk, &unmark(reference), stored)?;
        let (Some(from), Some(size)) = (elements.as_fixed(), self.schema.dtype.size()) else {
            return Err(Error::unsupported(self.name(), "mapping variable-length elements"));
        };
        let mut to = vec![0; elements.len(&self.inner.schema().dtype) * size];
        self.map.map(from, &mut to);
        Ok(Elements { data: Data::Fixed(to.into()), validity: elements.validity })
    }

    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.inner.visit_chunks(&mut |chunk, reference| visit(chunk, mark(reference)))
    }

    fn stored_form(&self, _chunk: &ChunkCoord, _reference: &ChunkRef) -> Option<StoredForm> {
        None
    }
}
