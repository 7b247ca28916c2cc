//! One chunk of a read: fetched, decoded, put in its place. The engine runs this on all cores; formats that read
//! other arrays (virtual datasets, geometry over arrays) run it one chunk after the other.

use std::cell::RefCell;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::{
    Array, Buffer, CellOrder, ChunkCoord, ChunkRef, Elements, Error, Fill, Layout, Place, Plan, PlannedChunk,
    Positions, Result, Span, Values, Window, Windows,
};

/// Chunk references looked up in one call: enough to share index blocks, few enough to stay small.
pub const LOCATE_BATCH: u64 = 1024;

/// A chunk may decode to this much whatever is stored of it; beyond, it must not be more than
/// [`MAX_EXPANSION`] times its stored bytes. No filter expands real data further, so the claim is false.
const PLAUSIBLE_BYTES: u64 = 1 << 30;
const MAX_EXPANSION: u64 = 1 << 17;

/// Scratch memory kept by a thread from one chunk to the next.
const KEPT_SCRATCH: usize = 64 << 20;

/// Puts what is wanted of one chunk into its place in the result. `None`: the chunk was never written.
///
/// Plain chunks are copied straight from the stored bytes, and only the part that is needed is fetched. A chunk
/// whose place is contiguous is decoded straight into it; any other goes through scratch memory, so each element is
/// copied at most once after the last filter.
///
/// # Errors
///
/// Whatever fetching and decoding say.
pub fn read_chunk(
    array: &dyn Array,
    wanted: &PlannedChunk,
    reference: Option<&ChunkRef>,
    window: &mut Window<'_>,
) -> Result<()> {
    let schema = array.schema();
    let Some(reference) = reference else { return fill(array, &wanted.coord, window) };
    let shape = schema.decoded_shape(&wanted.coord);
    let item = window.item();
    let (mut from, reach) = wanted_layout(array, wanted, &shape, item)?;
    if let Some(span) = reference.as_plain() {
        let stored = fetch_plain(array, wanted, span, from.offset, reach + item)?;
        from.offset = 0;
        return window.copy_from(&stored, &from);
    }
    let stored = fetch(array, &reference.spans().collect::<SmallVec<[&Span; 4]>>())?;
    if array.decode_part(wanted, reference, &stored, window)? {
        return Ok(());
    }
    let bytes = decoded_bytes(array, &wanted.coord, reference)?;
    if schema.order == CellOrder::RowMajor
        && wanted.covers(&shape)
        && let Some(place) = window.contiguous()
    {
        return array.decode(&wanted.coord, reference, &stored, place);
    }
    with_scratch(bytes, |scratch| {
        decode_as_far(array, wanted, reference, &stored, (scratch, from.offset + reach + item))?;
        window.copy_from(scratch, &from)
    })
}

/// Decodes a chunk, at least up to the end of what is wanted of it.
fn decode_as_far(
    array: &dyn Array,
    wanted: &PlannedChunk,
    reference: &ChunkRef,
    stored: &[Bytes],
    (scratch, end): (&mut [u8], usize),
) -> Result<()> {
    // To stop costs something too.
    if end <= scratch.len() - scratch.len() / 8
        && array.decode_front(&wanted.coord, reference, stored, &mut scratch[..end])?
    {
        return Ok(());
    }
    array.decode(&wanted.coord, reference, stored, scratch)
}

/// Shows the wanted cells of one chunk to `work`: bytes that hold them, and where in these bytes they stand. `None`:
/// the chunk was never written, and every cell is the one fill value (strides of zero).
///
/// Plain chunks are shown where they are stored (of those bytes, nobody promises an alignment); others are decoded into
/// scratch memory that the thread keeps. Nothing is copied.
///
/// # Errors
///
/// Whatever fetching, decoding and `work` say.
pub fn with_chunk<T>(
    array: &dyn Array,
    wanted: &PlannedChunk,
    reference: Option<&ChunkRef>,
    work: impl FnOnce(&[u8], &Layout) -> Result<T>,
) -> Result<T> {
    let schema = array.schema();
    let item = schema.dtype.size().unwrap_or(0);
    let Some(reference) = reference else {
        let still = Layout { offset: 0, strides: SmallVec::from_elem(0, wanted.axes.len()) };
        return match &schema.fill {
            Fill::Refused => Err(missing(array, &wanted.coord)),
            Fill::Zero => work(&SmallVec::<[u8; 16]>::from_elem(0, item), &still),
            Fill::Element(element) => match element.as_fixed() {
                Some(element) if element.len() == item => work(element, &still),
                _ => Err(Error::invalid(format!(
                    "{}: a fill value of another kind than the array",
                    array.name()
                ))),
            },
        };
    };
    let shape = schema.decoded_shape(&wanted.coord);
    let (mut from, reach) = wanted_layout(array, wanted, &shape, item)?;
    if let Some(span) = reference.as_plain() {
        let stored = fetch_plain(array, wanted, span, from.offset, reach + item)?;
        from.offset = 0;
        return work(&stored, &from);
    }
    let stored = fetch(array, &reference.spans().collect::<SmallVec<[&Span; 4]>>())?;
    let bytes = decoded_bytes(array, &wanted.coord, reference)?;
    with_scratch(bytes, |scratch| {
        decode_as_far(array, wanted, reference, &stored, (scratch, from.offset + reach + item))?;
        work(scratch, &from)
    })
}

/// Where the wanted cells stand in a decoded chunk of this shape, and the bytes from the first to the last of them.
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

/// The `needed` bytes from `first` on of a chunk that is stored as it is.
fn fetch_plain(
    array: &dyn Array,
    wanted: &PlannedChunk,
    span: &Span,
    first: usize,
    needed: usize,
) -> Result<Bytes> {
    let (first, needed) = (first as u64, needed as u64);
    if first.saturating_add(needed) > span.length {
        return Err(Place::new(array.name(), "chunk", span.offset).corrupt(format!(
            "{} stored bytes, chunk {:?} needs {}",
            span.length,
            wanted.coord.as_slice(),
            first.saturating_add(needed)
        )));
    }
    let part = Span { blob: span.blob.clone(), offset: span.offset + first, length: needed };
    let mut stored = fetch(array, &[&part])?;
    stored.pop().ok_or_else(|| Error::invalid(format!("{}: fetched nothing", array.name())))
}

/// The bytes that the chunk decodes to, refused when what is stored makes the claim implausible.
///
/// # Errors
///
/// [`Corrupt`](Error::Corrupt) when the claim is out of proportion.
pub fn decoded_bytes(array: &dyn Array, chunk: &ChunkCoord, reference: &ChunkRef) -> Result<usize> {
    let bytes = array.schema().decoded_bytes(chunk).ok_or_else(|| too_large(array, chunk))?;
    let stored = reference.stored_bytes();
    let spans = reference.spans().next();
    if bytes as u64 > PLAUSIBLE_BYTES && bytes as u64 / MAX_EXPANSION > stored && spans.is_some() {
        return Err(Place::new(array.name(), "chunk", spans.map_or(0, |span| span.offset)).corrupt(format!(
            "{stored} stored bytes cannot hold the {bytes} bytes of chunk {:?}",
            chunk.as_slice()
        )));
    }
    Ok(bytes)
}

/// Runs `work` with zeroed or used scratch memory of this size, which the thread keeps.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) when there is no such memory; whatever `work` says.
pub fn with_scratch<T>(bytes: usize, work: impl FnOnce(&mut [u8]) -> Result<T>) -> Result<T> {
    thread_local! {
        static SCRATCH: RefCell<Option<Buffer>> = const { RefCell::new(None) };
    }
    // Taken out, so that a decoder that reads other arrays finds none and makes its own.
    let kept = SCRATCH.with(RefCell::take).filter(|kept| kept.as_ref().len() >= bytes);
    let mut buffer = match kept {
        Some(kept) => kept,
        None => Buffer::zeroed(bytes)?,
    };
    let result = work(&mut buffer.as_mut_slice()[..bytes]);
    if buffer.as_ref().len() <= KEPT_SCRATCH {
        SCRATCH.with(|scratch| scratch.replace(Some(buffer)));
    }
    result
}

pub(crate) fn fetch(array: &dyn Array, spans: &[&Span]) -> Result<Vec<Bytes>> {
    let stored = array.fetch(spans)?;
    if stored.len() != spans.len() {
        return Err(Error::invalid(format!(
            "{}: fetched {} of {} spans",
            array.name(),
            stored.len(),
            spans.len()
        )));
    }
    Ok(stored)
}

fn fill(array: &dyn Array, chunk: &ChunkCoord, window: &mut Window<'_>) -> Result<()> {
    match &array.schema().fill {
        Fill::Refused => Err(missing(array, chunk)),
        Fill::Zero => window.fill(&SmallVec::<[u8; 16]>::from_elem(0, window.item())),
        Fill::Element(elements) => match elements.as_fixed() {
            Some(element) => window.fill(element),
            None => {
                Err(Error::invalid(format!("{}: a fill value of another kind than the array", array.name())))
            }
        },
    }
}

fn missing(array: &dyn Array, chunk: &ChunkCoord) -> Error {
    Place::new(array.name(), "chunk index", 0).corrupt(format!("chunk {:?} is missing", chunk.as_slice()))
}

fn too_large(array: &dyn Array, chunk: &ChunkCoord) -> Error {
    Place::new(array.name(), "chunk", 0)
        .corrupt(format!("chunk {:?} is larger than memory", chunk.as_slice()))
}

/// All cells of one chunk as elements, for types of variable length and arrays with missing elements.
///
/// # Errors
///
/// Whatever fetching and decoding say.
pub fn read_chunk_elements(
    array: &dyn Array,
    chunk: &ChunkCoord,
    reference: Option<&ChunkRef>,
) -> Result<Elements> {
    let schema = array.schema();
    let cells = schema.grid.region(chunk).cells().and_then(|cells| usize::try_from(cells).ok());
    let cells = cells.ok_or_else(|| too_large(array, chunk))?;
    let Some(reference) = reference else {
        let element = match &schema.fill {
            Fill::Refused => return Err(missing(array, chunk)),
            Fill::Zero => Elements::zero(&schema.dtype),
            Fill::Element(element) => element.clone(),
        };
        return Elements::gather(&schema.dtype, &[&element], &vec![(0, 0); cells]);
    };
    let stored = fetch(array, &reference.spans().collect::<SmallVec<[&Span; 4]>>())?;
    let elements = array.decode_elements(chunk, reference, &stored)?;
    let found = elements.len(&schema.dtype);
    if found != cells {
        return Err(Error::invalid(format!(
            "{}: chunk {:?} decoded to {found} elements, expected {cells}",
            array.name(),
            chunk.as_slice()
        )));
    }
    Ok(elements)
}

/// Reads these positions of an array, one chunk after the other, on the calling thread.
///
/// # Errors
///
/// Whatever planning, fetching and decoding say.
pub fn read_serial(array: &dyn Array, positions: Positions) -> Result<Values> {
    let schema = array.schema();
    let plan = Plan::new(&schema.grid, positions)?;
    let elements = if needs_elements(array) {
        let mut parts = Vec::new();
        for start in (0..plan.len()).step_by(LOCATE_BATCH as usize) {
            let (coords, references) = locate(array, &plan, start)?;
            for (coord, reference) in coords.iter().zip(&references) {
                parts.push(read_chunk_elements(array, coord, reference.as_ref())?);
            }
        }
        gather_elements(array, &plan, &parts)?
    } else {
        let item = schema.dtype.size().unwrap_or(0);
        let bytes = result_bytes(array, &plan)?;
        let mut buffer = Buffer::zeroed(bytes)?;
        let windows = Windows::new(&plan, item, buffer.as_mut_slice())?;
        for start in (0..plan.len()).step_by(LOCATE_BATCH as usize) {
            let (_, references) = locate(array, &plan, start)?;
            for (index, reference) in (start..).zip(&references) {
                if let Some((wanted, mut window)) = windows.take(index) {
                    read_chunk(array, &wanted, reference.as_ref(), &mut window)?;
                }
            }
        }
        drop(windows);
        Elements::fixed(buffer.freeze())
    };
    Values::new(schema.dtype.clone(), &plan.positions().shape(), elements)
}

/// Must the array be read as [`Elements`], because its type has no fixed size or elements may be missing?
#[must_use]
pub fn needs_elements(array: &dyn Array) -> bool {
    let schema = array.schema();
    schema.nullable || !schema.dtype.is_fixed()
}

/// The coordinates and references of a batch of a plan's chunks, from the `start`-th on.
///
/// # Errors
///
/// Whatever [`Array::locate`] says.
pub fn locate(
    array: &dyn Array,
    plan: &Plan,
    start: u64,
) -> Result<(Vec<ChunkCoord>, Vec<Option<ChunkRef>>)> {
    let end = start.saturating_add(LOCATE_BATCH).min(plan.len());
    let coords: Vec<ChunkCoord> = (start..end).map(|index| plan.chunk(index).coord).collect();
    let references = array.locate(&coords)?;
    if references.len() != coords.len() {
        return Err(Error::invalid(format!(
            "{}: located {} of {} chunks",
            array.name(),
            references.len(),
            coords.len()
        )));
    }
    Ok((coords, references))
}

/// The bytes of a plan's result.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) when memory cannot hold it.
pub fn result_bytes(array: &dyn Array, plan: &Plan) -> Result<usize> {
    let item = array.schema().dtype.size().unwrap_or(0);
    let cells = plan.positions().cells().and_then(|cells| usize::try_from(cells).ok());
    cells
        .and_then(|cells| cells.checked_mul(item))
        .filter(|bytes| isize::try_from(*bytes).is_ok())
        .ok_or_else(|| {
            Error::invalid(format!(
                "{}: a result of {:?} elements is larger than memory; select less",
                array.name(),
                plan.positions().counts().as_slice()
            ))
        })
}

/// Puts the elements of a plan's chunks, all of which are given in the plan's order, into the result's order.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) when a chunk has fewer elements than its cells.
pub fn gather_elements(array: &dyn Array, plan: &Plan, chunks: &[Elements]) -> Result<Elements> {
    let schema = array.schema();
    let counts = plan.positions().counts();
    let cells = plan.positions().cells().and_then(|cells| usize::try_from(cells).ok());
    let cells =
        cells.ok_or_else(|| Error::invalid(format!("{}: the result is larger than memory", array.name())))?;
    let result = Layout::packed(&counts, 1);
    let mut picks = vec![(0, 0); cells];
    for (row, wanted) in plan.iter().enumerate() {
        let strides = CellOrder::RowMajor.strides(&schema.grid.region(&wanted.coord).shape);
        let counts = wanted.counts();
        for cell in 0..crate::product(&counts).unwrap_or(0) {
            let (mut left, mut from, mut to) = (cell, 0, 0);
            for axis in (0..counts.len()).rev() {
                let (part, at) = (&wanted.axes[axis], left % counts[axis]);
                left /= counts[axis];
                from += (part.first + at * part.step) * strides[axis];
                let place = if part.backwards { part.place - at } else { part.place + at };
                to += place as usize * result.strides[axis].unsigned_abs();
            }
            picks[to] = (row, from as usize);
        }
    }
    Elements::gather(&schema.dtype, &chunks.iter().collect::<Vec<_>>(), &picks)
}
