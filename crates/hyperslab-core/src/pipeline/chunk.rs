//! One located chunk: its stored bytes, and how they become cells.

use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;

use super::{OutputSlot, with_scratch};
use crate::{
    Array, Blob, BlobKey, CellOrder, ChunkCoord, ChunkRef, ChunkStatistics, Coverage, Elements, Error, Fill,
    Layout, PartialOutput, Place, PlannedChunk, Result, Span, StoredForm, is_plausible,
};

/// The blob of the last chunk. Neighbouring chunks often share a blob, and looking it up takes longer than copying a small chunk.
#[derive(Debug, Default)]
pub(crate) struct BlobCache(Option<(BlobKey, Option<Arc<dyn Blob>>)>);

impl BlobCache {
    /// The blob, if it is worth opening. An object that holds a single chunk is better fetched as a whole, so a named blob is
    /// only opened for its second chunk, unless the caller is `eager`.
    fn blob(&mut self, array: &dyn Array, key: &BlobKey, eager: bool) -> Result<Option<&Arc<dyn Blob>>> {
        let again = self.0.as_ref().is_some_and(|(last, _)| last == key);
        if !again {
            self.0 = Some((key.clone(), None));
        }
        let Some((_, blob)) = &mut self.0 else { return Ok(None) };
        if blob.is_none() && (again || eager || *key == BlobKey::Main) {
            *blob = Some(array.blob(key)?);
        }
        Ok(blob.as_ref())
    }
}

/// A located chunk. Its bytes are fetched and decoded on demand. Chunks of remote storage are fetched ahead.
#[derive(Debug)]
pub struct Chunk<'a> {
    array: &'a dyn Array,
    index: u64,
    coord: &'a ChunkCoord,
    reference: Option<&'a ChunkRef>,
    known: Option<&'a ChunkStatistics>,
    fetched: Option<Vec<Bytes>>,
    blobs: &'a mut BlobCache,
}

impl<'a> Chunk<'a> {
    pub(crate) const fn new(
        array: &'a dyn Array,
        index: u64,
        coord: &'a ChunkCoord,
        reference: Option<&'a ChunkRef>,
        known: Option<&'a ChunkStatistics>,
        blobs: &'a mut BlobCache,
    ) -> Self {
        Self { array, index, coord, reference, known, fetched: None, blobs }
    }

    /// Adds the fetched bytes; `None` if the chunk turned out never to have been written.
    pub(crate) fn with_fetched(mut self, stored: Option<Vec<Bytes>>) -> Self {
        if stored.is_none() {
            self.reference = None;
        }
        self.fetched = stored;
        self
    }

    /// Its number in the visited list.
    #[must_use]
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// Its position in the grid.
    #[must_use]
    pub const fn coord(&self) -> &'a ChunkCoord {
        self.coord
    }

    /// Where it is stored; `None` if it was never written.
    #[must_use]
    pub const fn reference(&self) -> Option<&'a ChunkRef> {
        self.reference
    }

    /// Its statistics, if the visitor requested them.
    #[must_use]
    pub const fn statistics(&self) -> Option<&'a ChunkStatistics> {
        self.known
    }

    /// The whole chunk in place, if it is mapped and its stored bytes are its elements. With `eager`, a blob that holds a single
    /// chunk is opened too.
    ///
    /// # Errors
    ///
    /// As [`Array::blob`].
    pub fn mapped(&mut self, eager: bool) -> Result<Option<&[u8]>> {
        let Some(span) = self.reference.and_then(ChunkRef::as_plain) else { return Ok(None) };
        if self.array.is_remote() {
            return Ok(None);
        }
        let mapped = self.blobs.blob(self.array, &span.blob, eager)?.and_then(|blob| blob.mapped());
        // A span that reaches past the end is left to `fetch`, which reports it.
        Ok(mapped
            .zip(usize::try_from(span.offset).ok().zip(usize::try_from(span.length).ok()))
            .and_then(|(bytes, (start, length))| bytes.get(start..start.checked_add(length)?)))
    }

    /// Copies the wanted cells into their slot in the result.
    ///
    /// Plain chunks are copied directly from the stored bytes, and only the needed part is fetched. A chunk whose slot is
    /// contiguous is decoded directly into it; any other goes through scratch memory. Each element is thus copied at most once
    /// after the last filter.
    ///
    /// # Errors
    ///
    /// Any error from fetching or decoding.
    pub fn copy_into(&mut self, wanted: &PlannedChunk, slot: &mut OutputSlot<'_>) -> Result<()> {
        let array = self.array;
        let Some(reference) = self.reference else { return self.fill(slot) };
        let stored = self.fetch(wanted, reference)?;
        let schema = array.schema();
        let shape = schema.decoded_shape(self.coord);
        let item = slot.item();
        let (mut from, reach) = wanted_layout(array, wanted, &shape, item)?;
        if reference.as_plain().is_some() {
            from.offset = 0;
            return slot.copy_from(only(array, &stored)?, &from);
        }
        let straight = PartialOutput { slot: Some(&mut *slot), front: None };
        if array.decode_partial(wanted, reference, &stored, straight)? == Coverage::Slot {
            return Ok(());
        }
        let bytes = plausible_bytes(array, self.coord, reference, &stored)?;
        if schema.order == CellOrder::RowMajor
            && wanted.covers(&shape)
            && let Some(place) = slot.contiguous()
        {
            return array.decode(self.coord, reference, &stored, place);
        }
        with_scratch(bytes, |scratch| {
            self.decode_as_far(wanted, reference, &stored, (&mut *scratch, from.offset + reach + item))?;
            slot.copy_from(scratch, &from)
        })
    }

    /// Decodes the chunk, at least up to `end`.
    fn decode_as_far(
        &self,
        wanted: &PlannedChunk,
        reference: &ChunkRef,
        stored: &[Bytes],
        (scratch, end): (&mut [u8], usize),
    ) -> Result<()> {
        // Stopping early has a cost, so do it only when at least 1/8 is saved.
        if end <= scratch.len() - scratch.len() / 8 {
            let out = PartialOutput { slot: None, front: scratch.get_mut(..end) };
            if self.array.decode_partial(wanted, reference, stored, out)? == Coverage::Front {
                return Ok(());
            }
        }
        self.array.decode(self.coord, reference, stored, scratch)
    }

    /// Passes the wanted cells to `work`: a byte slice that holds them, and their layout in it. In a chunk that was never
    /// written, every cell is the same fill value (strides of zero).
    ///
    /// Plain chunks are passed in place, without any guarantee of alignment. Others are decoded into the thread's scratch memory.
    /// Nothing is copied.
    ///
    /// # Errors
    ///
    /// Any error from fetching, decoding or `work`.
    pub fn with_cells<T>(
        &mut self,
        wanted: &PlannedChunk,
        work: impl FnOnce(&[u8], &Layout) -> Result<T>,
    ) -> Result<T> {
        let array = self.array;
        let schema = array.schema();
        let item = schema.dtype.size().unwrap_or(0);
        let Some(reference) = self.reference else {
            let still = Layout { offset: 0, strides: SmallVec::from_elem(0, wanted.axes.len()) };
            return match &schema.fill {
                Fill::Undefined => Err(missing(array, self.coord)),
                Fill::Zero => work(&SmallVec::<[u8; 16]>::from_elem(0, item), &still),
                Fill::Element(element) => match element.as_fixed() {
                    Some(element) if element.len() == item => work(element, &still),
                    _ => Err(wrong_fill(array)),
                },
            };
        };
        let stored = self.fetch(wanted, reference)?;
        let (mut from, reach) = wanted_layout(array, wanted, &schema.decoded_shape(self.coord), item)?;
        if reference.as_plain().is_some() {
            from.offset = 0;
            return work(only(array, &stored)?, &from);
        }
        with_scratch(plausible_bytes(array, self.coord, reference, &stored)?, |scratch| {
            self.decode_as_far(wanted, reference, &stored, (&mut *scratch, from.offset + reach + item))?;
            work(scratch, &from)
        })
    }

    /// All cells as elements, for variable-length types and arrays with missing elements.
    ///
    /// # Errors
    ///
    /// Any error from fetching or decoding.
    pub fn elements(&mut self) -> Result<Elements> {
        let (array, schema) = (self.array, self.array.schema());
        let cells = schema.grid.region(self.coord).cells().and_then(|cells| usize::try_from(cells).ok());
        let cells = cells.ok_or_else(|| too_large(array, self.coord))?;
        let Some(reference) = self.reference else {
            let element = match &schema.fill {
                Fill::Undefined => return Err(missing(array, self.coord)),
                Fill::Zero => Elements::zero(&schema.dtype),
                Fill::Element(element) => element.clone(),
            };
            // Nothing is stored for these cells, so a long fill value times many cells can have any size.
            let each = element.variable_at(0).map_or(0, <[u8]>::len) + size_of::<(usize, usize)>();
            if !cells.checked_mul(each).is_some_and(|bytes| is_plausible(bytes as u64, 0)) {
                return Err(too_large(array, self.coord));
            }
            return Elements::gather(&schema.dtype, &[&element], &vec![(0, 0); cells]);
        };
        let stored = self.fetch_whole(reference)?;
        let elements = array.decode_elements(self.coord, reference, &stored)?;
        let found = elements.len(&schema.dtype);
        if found != cells {
            return Err(Error::invalid(format!(
                "{}: chunk {:?} decoded to {found} elements, expected {cells}",
                array.name(),
                self.coord.as_slice()
            )));
        }
        Ok(elements)
    }

    /// The stored bytes and their form, if another store could take them over as they are.
    ///
    /// # Errors
    ///
    /// Any error from fetching.
    pub fn stored(&mut self) -> Result<Option<(StoredForm, Bytes)>> {
        let Some(reference) = self.reference else { return Ok(None) };
        let Some(form) = self.array.stored_form(self.coord, reference) else { return Ok(None) };
        let mut stored = self.fetch_whole(reference)?;
        Ok(if stored.len() == 1 { stored.pop().map(|stored| (form, stored)) } else { None })
    }

    /// Checks that the chunk can be read. Encoded bytes are decoded into the thread's scratch memory. For bytes stored as is,
    /// every page is touched and nothing is copied.
    pub(crate) fn check(&mut self, plain: impl FnOnce(&Span) -> Result<()>) -> Result<()> {
        let Some(reference) = self.reference else { return Ok(()) };
        if needs_elements(self.array) {
            return self.elements().map(|_| ());
        }
        let bytes = decoded_bytes(self.array, self.coord, reference)?;
        if let Some(span) = reference.as_plain().filter(|span| span.length == bytes as u64) {
            let is_read = self.fetched.as_ref().is_some_and(|fetched| self.is_whole(fetched));
            return if is_read { Ok(()) } else { plain(span) };
        }
        let stored = self.fetch_whole(reference)?;
        with_scratch(bytes, |scratch| self.array.decode(self.coord, reference, &stored, scratch))
    }

    /// The ranges of stored bytes that a visit of the wanted cells fetches.
    ///
    /// # Errors
    ///
    /// As [`with_cells`](Self::with_cells), for chunks larger than memory.
    pub fn requests(&self, wanted: &PlannedChunk) -> Result<Vec<Span>> {
        self.reference.map_or(Ok(Vec::new()), |reference| spans_of(self.array, wanted, reference))
    }

    fn fetch(&mut self, wanted: &PlannedChunk, reference: &ChunkRef) -> Result<Vec<Bytes>> {
        if let Some(fetched) = &self.fetched {
            return Ok(fetched.clone());
        }
        if reference.as_plain().is_some() {
            let spans = spans_of(self.array, wanted, reference)?;
            return fetch(self.array, &spans.iter().collect::<SmallVec<[&Span; 4]>>());
        }
        self.fetch_whole(reference)
    }

    fn fetch_whole(&mut self, reference: &ChunkRef) -> Result<Vec<Bytes>> {
        match &self.fetched {
            Some(fetched) if reference.as_plain().is_none() => Ok(fetched.clone()),
            // Of a plain chunk, only the wanted part was fetched ahead.
            Some(fetched) if self.is_whole(fetched) => Ok(fetched.clone()),
            _ => fetch(self.array, &reference.spans().collect::<SmallVec<[&Span; 4]>>()),
        }
    }

    /// Is this all of a plain chunk?
    fn is_whole(&self, fetched: &[Bytes]) -> bool {
        let bytes = self.array.schema().decoded_bytes(self.coord);
        matches!(fetched, [part] if Some(part.len()) == bytes)
    }

    fn fill(&self, slot: &mut OutputSlot<'_>) -> Result<()> {
        match &self.array.schema().fill {
            Fill::Undefined => Err(missing(self.array, self.coord)),
            Fill::Zero => slot.fill(&SmallVec::<[u8; 16]>::from_elem(0, slot.item())),
            Fill::Element(elements) => match elements.as_fixed() {
                Some(element) => slot.fill(element),
                None => Err(wrong_fill(self.array)),
            },
        }
    }
}

fn only<'b>(array: &dyn Array, stored: &'b [Bytes]) -> Result<&'b Bytes> {
    stored
        .first()
        .ok_or_else(|| Error::invalid(format!("{}: no bytes were fetched for a chunk", array.name())))
}

/// The stored bytes needed for the wanted cells: all of them, or only the relevant part of a plain chunk.
pub(crate) fn spans_of(array: &dyn Array, wanted: &PlannedChunk, reference: &ChunkRef) -> Result<Vec<Span>> {
    let schema = array.schema();
    let (Some(span), Some(item)) = (reference.as_plain(), schema.dtype.size()) else {
        return Ok(reference.spans().cloned().collect());
    };
    let (from, reach) = wanted_layout(array, wanted, &schema.decoded_shape(&wanted.coord), item)?;
    let (first, needed) = (from.offset as u64, (reach + item) as u64);
    if first.saturating_add(needed) > span.length {
        return Err(Place::new(array.name(), "chunk", span.offset).corrupt(format!(
            "only {} bytes are stored, but chunk {:?} needs {}",
            span.length,
            wanted.coord.as_slice(),
            first.saturating_add(needed)
        )));
    }
    Ok(vec![Span { blob: span.blob.clone(), offset: span.offset + first, length: needed }])
}

/// The layout of the wanted cells in a decoded chunk of this shape, and the byte range from the first to the last of them.
fn wanted_layout(
    array: &dyn Array,
    wanted: &PlannedChunk,
    shape: &[u64],
    item: usize,
) -> Result<(Layout, usize)> {
    let strides = array.schema().order.strides(shape);
    let mut from = Layout { offset: 0, strides: SmallVec::with_capacity(shape.len()) };
    let mut reach = 0;
    for (part, stride) in wanted.axes.iter().zip(&strides) {
        let stride = usize::try_from(*stride).ok().and_then(|stride| stride.checked_mul(item));
        let step = stride.and_then(|stride| isize::try_from(stride.checked_mul(part.step as usize)?).ok());
        let (Some(stride), Some(step)) = (stride, step) else { return Err(too_large(array, &wanted.coord)) };
        from.offset += stride * part.first as usize;
        reach += step.unsigned_abs() * (part.count - 1) as usize;
        from.strides.push(step);
    }
    Ok((from, reach))
}

/// The number of bytes that the chunk decodes to. Fails if the stored size makes this claim implausible.
///
/// # Errors
///
/// [`Corrupt`](Error::Corrupt) if the claim is out of proportion.
pub fn decoded_bytes(array: &dyn Array, chunk: &ChunkCoord, reference: &ChunkRef) -> Result<usize> {
    check_expansion(array, chunk, reference, reference.stored_bytes())
}

/// Like [`decoded_bytes`], for a chunk that was fetched.
fn plausible_bytes(
    array: &dyn Array,
    chunk: &ChunkCoord,
    reference: &ChunkRef,
    stored: &[Bytes],
) -> Result<usize> {
    let stored = stored.iter().fold(0_u64, |sum, stored| sum.saturating_add(stored.len() as u64));
    check_expansion(array, chunk, reference, stored)
}

fn check_expansion(
    array: &dyn Array,
    chunk: &ChunkCoord,
    reference: &ChunkRef,
    stored: u64,
) -> Result<usize> {
    let bytes = array.schema().decoded_bytes(chunk).ok_or_else(|| too_large(array, chunk))?;
    let spans = reference.spans().next();
    if !is_plausible(bytes as u64, stored) && spans.is_some() {
        return Err(Place::new(array.name(), "chunk", spans.map_or(0, |span| span.offset)).corrupt(format!(
            "{stored} stored bytes cannot hold the {bytes} bytes of chunk {:?}",
            chunk.as_slice()
        )));
    }
    Ok(bytes)
}

/// Fetches the bytes of these spans, all of which must exist.
///
/// # Errors
///
/// As [`Array::fetch`]; [`NotFound`](Error::NotFound) for a missing object.
pub fn fetch(array: &dyn Array, spans: &[&Span]) -> Result<Vec<Bytes>> {
    let fetched = check_fetched(array, spans.len(), array.fetch(spans)?)?.into_iter().zip(spans);
    let gone =
        |span: &Span| Error::not_found(array.name(), format!("the object {:?}", span.blob.to_string()));
    fetched.map(|(stored, span)| stored.ok_or_else(|| gone(span))).collect()
}

/// Checks that as many spans were fetched as requested.
pub(crate) fn check_fetched(
    array: &dyn Array,
    wanted: usize,
    stored: Vec<Option<Bytes>>,
) -> Result<Vec<Option<Bytes>>> {
    if stored.len() != wanted {
        return Err(Error::invalid(format!("{}: fetched {} of {wanted} spans", array.name(), stored.len())));
    }
    Ok(stored)
}

fn wrong_fill(array: &dyn Array) -> Error {
    Error::invalid(format!("{}: the fill value does not match the array's type", array.name()))
}

fn missing(array: &dyn Array, chunk: &ChunkCoord) -> Error {
    Place::new(array.name(), "chunk index", 0).corrupt(format!("chunk {:?} is missing", chunk.as_slice()))
}

fn too_large(array: &dyn Array, chunk: &ChunkCoord) -> Error {
    Place::new(array.name(), "chunk", 0)
        .corrupt(format!("chunk {:?} is larger than memory", chunk.as_slice()))
}

/// Returns true if the array must be read as [`Elements`], because its type has no fixed size or elements may be missing.
#[must_use]
pub fn needs_elements(array: &dyn Array) -> bool {
    let schema = array.schema();
    schema.nullable || !schema.dtype.is_fixed()
}
