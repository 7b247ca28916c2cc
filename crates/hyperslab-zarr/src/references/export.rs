//! Exports arrays of any format as references: a Zarr v2 document, and the locations of the chunks.
//!
//! A chunk is referenced if numcodecs can decode its stored bytes directly. Other chunks (a skipped filter, clipped
//! at the edge, text) are copied into the document.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{
    Array, Attributes, BlobKey, ByteOrder, CellOrder, ChunkCoord, ChunkRef, Elements, Error, Extents, Fill,
    Layout, ObjectPlace, Positions, Region, Result, StoredClass, StoredStep, copy_box, product, read_serial,
    swap_bytes,
};
use serde_json::{Value, json};
use smallvec::SmallVec;

use super::Reference;
use crate::attributes;
use crate::codec::{Blosc, Step, Sum};
use crate::dtype;
use crate::fill;
use crate::vlen;

/// Options for creating references.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// The address of the file for readers.
    pub url: String,
    /// The maximum number of bytes per array to copy into the document.
    pub inline_limit: u64,
}

/// The references that describe a group.
#[must_use]
pub fn group_references(prefix: &str, attributes: &Attributes) -> Vec<(String, Reference)> {
    let mut found = vec![document(prefix, ".zgroup", &json!({"zarr_format": 2}))];
    let own = attributes::to_json(attributes);
    if !own.is_empty() {
        found.push(document(prefix, ".zattrs", &Value::Object(own)));
    }
    found
}

/// References as kerchunk JSON, version 1. Text is stored as is, other bytes in base64.
#[must_use]
pub fn to_json(references: &BTreeMap<String, Reference>) -> Value {
    let one = |(key, reference): (&String, &Reference)| {
        let value = match reference {
            Reference::Target { url, range: None } => json!([**url]),
            Reference::Target { url, range: Some((offset, length)) } => json!([**url, offset, length]),
            Reference::Inline(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if key.rsplit('/').next().is_some_and(|name| name.starts_with(".z")) => json!(text),
                _ => json!(format!("base64:{}", fill::encode_base64(bytes))),
            },
        };
        (key.clone(), value)
    };
    let refs: serde_json::Map<String, Value> = references.iter().map(one).collect();
    json!({"version": 1, "refs": refs})
}

fn document(prefix: &str, name: &str, value: &Value) -> (String, Reference) {
    let text = crate::json::to_text(name, value).unwrap_or_default();
    (format!("{prefix}{name}"), Reference::Inline(text.into()))
}

/// The references of an array with these attributes. Their keys start with `prefix`.
///
/// # Errors
///
/// [`Unsupported`](Error::Unsupported) if more bytes than the limit would have to be copied, or for element types
/// that Zarr v2 lacks.
pub fn array_references(
    array: &dyn Array,
    attributes: &Attributes,
    prefix: &str,
    options: &ExportOptions,
) -> Result<BTreeMap<String, Reference>> {
    let pieces = array.stored_pieces();
    let array = pieces.as_deref().unwrap_or(array);
    if !array.visits_every_chunk() {
        let copied = Export::of_copies(array, options)?;
        return copied.references(attributes, prefix);
    }
    let mut chunks = Vec::new();
    array.visit_chunks(&mut |coord, reference| {
        chunks.push((coord, reference));
        Ok(ControlFlow::Continue(()))
    })?;
    let export = Export::new(array, chunks, options)?;
    export.references(attributes, prefix)
}

/// An array that is being exported.
#[derive(Debug)]
struct Export<'a> {
    array: &'a dyn Array,
    options: &'a ExportOptions,
    chunks: Vec<(ChunkCoord, ChunkRef)>,
    chunk_shape: Extents,
    /// Whether the elements are stored in big-endian order.
    big: bool,
    steps: Vec<Step>,
    /// The reason why no chunk can be referenced, if so.
    reason: Option<String>,
    /// The whole array as a single chunk, if it is stored contiguously.
    whole: Option<(BlobKey, u64, u64)>,
}

impl<'a> Export<'a> {
    fn new(
        array: &'a dyn Array,
        chunks: Vec<(ChunkCoord, ChunkRef)>,
        options: &'a ExportOptions,
    ) -> Result<Self> {
        let schema = array.schema();
        if schema.nullable || dtype::to_v2(&schema.dtype).is_none() {
            let what = format!("references to elements of type {} that may be missing", schema.dtype);
            return Err(Error::unsupported(array.name().to_owned(), what));
        }
        let chunk_shape = Extents::from_slice(schema.grid.chunk_shape());
        let mut export = Self {
            array,
            options,
            chunks,
            chunk_shape,
            big: false,
            steps: Vec::new(),
            reason: None,
            whole: None,
        };
        if matches!(schema.order, CellOrder::Axes(_)) {
            export.reason = Some("cells in an order that Zarr v2 lacks".to_owned());
        } else if schema.dtype.is_fixed() {
            export.find_form()?;
            export.find_whole();
        } else {
            export.reason = Some(format!("elements of type {}", schema.dtype));
        }
        Ok(export)
    }

    /// Every chunk is copied, because the stored chunks are not all of the content.
    fn of_copies(array: &'a dyn Array, options: &'a ExportOptions) -> Result<Self> {
        let grid = &array.schema().grid;
        let item = array.schema().dtype.size().unwrap_or(1).max(1) as u64;
        let bytes = product(grid.shape()).and_then(|cells| cells.checked_mul(item));
        if bytes.is_none_or(|bytes| bytes > options.inline_limit) {
            let what = format!(
                "references to a virtual dataset of more than {} bytes, which would be copied",
                options.inline_limit
            );
            return Err(Error::unsupported(array.name().to_owned(), what));
        }
        let nowhere = ChunkRef { layers: SmallVec::new() };
        let chunks = (0..grid.chunks().unwrap_or(0)).map(|number| (grid.coord(number), nowhere.clone()));
        let mut export = Self::new(array, chunks.collect(), options)?;
        export.reason = Some("a virtual dataset".to_owned());
        Ok(export)
    }

    /// Determines the codecs from the first chunk that is stored whole.
    fn find_form(&mut self) -> Result<()> {
        let mut found = None;
        for (coord, reference) in &self.chunks {
            if let Some(form) = self.form(coord, reference)? {
                found = Some(form);
                break;
            }
        }
        match found {
            Some((big, steps)) => (self.big, self.steps) = (big, steps),
            None if self.chunks.is_empty() => {}
            None => {
                let names: Vec<&str> =
                    self.array.schema().filters.iter().map(|filter| filter.name.as_str()).collect();
                self.reason = Some(match names.as_slice() {
                    [] => "stored bytes that no Zarr codec reads".to_owned(),
                    names => format!("stored bytes that no Zarr codec reads (filters: {})", names.join(", ")),
                });
            }
        }
        Ok(())
    }

    /// The byte order and the codecs of a chunk's stored bytes; `None` if no codec can decode them.
    fn form(&self, coord: &ChunkCoord, reference: &ChunkRef) -> Result<Option<(bool, Vec<Step>)>> {
        let schema = self.array.schema();
        let one = reference.layers.len() == 1 && reference.spans().count() == 1;
        if !one {
            return Ok(None);
        }
        let Some(form) = self.array.stored_form(coord, reference) else {
            let bytes = schema.decoded_bytes(coord).map(|bytes| bytes as u64);
            if let (true, Some(span)) = (cfg!(target_endian = "little"), reference.as_plain()) {
                return Ok((Some(span.length) == bytes).then(|| (false, Vec::new())));
            }
            return Ok(self.is_big_endian(coord, reference)?.then(|| (true, Vec::new())));
        };
        let (big, steps) = match form.steps.split_first() {
            Some((StoredStep::Typed, rest)) if self.is_stored_big() => (true, rest),
            Some((StoredStep::Typed, _)) => return Ok(None),
            _ => (false, form.steps.as_slice()),
        };
        let item = schema.dtype.size().unwrap_or(1);
        let steps: Option<Vec<Step>> = steps.iter().map(|step| numcodecs_step(*step, item)).collect();
        Ok(steps.map(|steps| (big, steps)))
    }

    /// Returns true if the stored type equals the element type except for a big-endian byte order.
    fn is_stored_big(&self) -> bool {
        let schema = self.array.schema();
        let (Some(stored), Some(size)) = (schema.stored.dtype.as_ref(), schema.dtype.size()) else {
            return false;
        };
        let bits = u16::try_from(8 * size).unwrap_or(0);
        stored.size == size
            && match &stored.class {
                StoredClass::Integer(layout) => {
                    layout.order == ByteOrder::Big && layout.precision == bits && schema.dtype.is_integer()
                }
                StoredClass::Float(layout) => {
                    let exponent = match size {
                        2 => 5,
                        4 => 8,
                        _ => 11,
                    };
                    let usual = layout.precision == bits && layout.exponent.1 == exponent && layout.norm == 2;
                    layout.order == ByteOrder::Big && usual && schema.dtype.is_float()
                }
                _ => false,
            }
    }

    /// Returns true if the stored bytes are the elements with swapped bytes.
    fn is_big_endian(&self, coord: &ChunkCoord, reference: &ChunkRef) -> Result<bool> {
        let schema = self.array.schema();
        let (Some(unit), Some(bytes)) = (schema.dtype.swap_unit(), schema.decoded_bytes(coord)) else {
            return Ok(false);
        };
        let Some(span) = reference.spans().next().filter(|span| unit > 1 && span.length == bytes as u64)
        else {
            return Ok(false);
        };
        let Some(Some(stored)) = self.array.fetch(&[span])?.into_iter().next() else { return Ok(false) };
        let mut swapped = stored.to_vec();
        swap_bytes(unit, &mut swapped);
        let mut decoded = vec![0; bytes];
        self.array.decode(coord, reference, &[stored], &mut decoded)?;
        Ok(decoded == swapped)
    }

    /// If the slabs of an array are adjacent in one blob, treats the array as a single chunk, so that no chunk is
    /// clipped.
    fn find_whole(&mut self) {
        let schema = self.array.schema();
        let (shape, chunk) = (schema.shape(), schema.grid.chunk_shape());
        let clipped = shape.iter().zip(chunk).any(|(extent, chunk)| !extent.is_multiple_of(*chunk));
        let slabs = shape.iter().zip(chunk).skip(1).all(|(extent, chunk)| extent == chunk);
        let in_order = schema.order == CellOrder::RowMajor;
        if !clipped || !slabs || !in_order || !self.steps.is_empty() || self.reason.is_some() {
            return;
        }
        let mut sorted: Vec<_> = self.chunks.iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        let mut whole: Option<(BlobKey, u64, u64)> = None;
        for (_, reference) in sorted {
            let mut spans = reference.spans();
            let (Some(span), None) = (spans.next(), spans.next()) else { return };
            whole = match whole {
                None => Some((span.blob.clone(), span.offset, span.length)),
                Some((blob, start, length)) if blob == span.blob && start + length == span.offset => {
                    Some((blob, start, length + span.length))
                }
                Some(_) => return,
            };
        }
        let bytes =
            product(shape).zip(schema.dtype.size()).and_then(|(cells, item)| cells.checked_mul(item as u64));
        if let Some(whole) = whole.filter(|(_, _, length)| Some(*length) == bytes) {
            self.chunk_shape = shape.into();
            self.whole = Some(whole);
        }
    }

    fn references(self, attributes: &Attributes, prefix: &str) -> Result<BTreeMap<String, Reference>> {
        let schema = self.array.schema();
        let names: Vec<Option<String>> = (0..schema.grid.rank())
            .map(|axis| {
                let named = schema.dimensions.get(axis).and_then(Option::as_deref);
                let last = named.and_then(|name| name.rsplit('/').next()).map(str::to_owned);
                let own = prefix.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty());
                Some(last.unwrap_or_else(|| format!("{}_{axis}", own.unwrap_or("data"))))
            })
            .collect();
        let (attributes, marker) = attributes::to_v2(attributes, &schema.dtype, &names);
        let mut found = BTreeMap::from([
            document(prefix, ".zattrs", &Value::Object(attributes)),
            document(prefix, ".zarray", &self.zarray(marker)),
        ]);
        let key = |coord: &[u64]| {
            let parts: Vec<String> = coord.iter().map(u64::to_string).collect();
            let name = if parts.is_empty() { "0".to_owned() } else { parts.join(".") };
            format!("{prefix}{name}")
        };
        if let Some((blob, offset, length)) = &self.whole {
            let origin: Extents = self.chunk_shape.iter().map(|_| 0).collect();
            if let Some(target) = self.target(blob, *offset, Some(*length))? {
                found.insert(key(&origin), target);
                return Ok(found);
            }
        }
        let mut copied = 0_u64;
        for (coord, reference) in &self.chunks {
            let reference = match self.referenced(coord, reference)? {
                Some(reference) => reference,
                None => {
                    let bytes = self.inline(coord)?;
                    copied = copied.saturating_add(bytes.len() as u64);
                    if copied > self.options.inline_limit {
                        let why = self.reason.as_deref().unwrap_or("chunks that cannot be referenced");
                        let what = format!(
                            "references: {why}, and more than {} bytes would be copied",
                            self.options.inline_limit
                        );
                        return Err(Error::unsupported(self.array.name().to_owned(), what));
                    }
                    Reference::Inline(bytes)
                }
            };
            found.insert(key(coord), reference);
        }
        Ok(found)
    }

    /// Readers interpret the fill value of v2 as the missing-value marker. So write the marker, or null if every
    /// chunk exists.
    fn zarray(&self, marker: Option<Elements>) -> Value {
        let schema = self.array.schema();
        let all = schema.grid.chunks() == Some(self.chunks.len() as u64);
        let fill_value = match (marker, &schema.fill) {
            (Some(marker), _) => fill::to_json(&Fill::Element(marker), &schema.dtype),
            (None, fill @ Fill::Element(_)) if !all => fill::to_json(fill, &schema.dtype),
            _ => Value::Null,
        };
        let mut data_type = dtype::to_v2(&schema.dtype).unwrap_or(Value::Null);
        if let (true, Value::String(text)) = (self.big, &mut data_type) {
            *text = text.replace('<', ">");
        }
        let mut filters: Vec<Value> = self.steps.iter().map(Step::to_v2).collect();
        if let Some(filter) = dtype::object_filter(&schema.dtype) {
            filters.insert(0, filter);
        }
        json!({
            "zarr_format": 2, "shape": schema.shape(), "chunks": self.chunk_shape, "dtype": data_type,
            "order": if self.is_fortran() { "F" } else { "C" }, "fill_value": fill_value, "compressor": null,
            "filters": if filters.is_empty() { Value::Null } else { Value::Array(filters) },
        })
    }

    /// Returns true if the first axis of the stored chunks varies fastest.
    fn is_fortran(&self) -> bool {
        self.array.schema().order == CellOrder::ColumnMajor && self.reason.is_none()
    }

    /// A reference to bytes of a blob from an offset on, all of them if there is no length; `None` if other programs
    /// cannot read them there.
    fn target(&self, blob: &BlobKey, offset: u64, length: Option<u64>) -> Result<Option<Reference>> {
        let whole = || self.options.url.as_str().into();
        let (url, start): (Arc<str>, u64) = match (self.array.place(blob)?, blob) {
            (ObjectPlace::Encoded, _) => return Ok(None),
            (ObjectPlace::InFile(start), _) => (whole(), start),
            (ObjectPlace::Object, BlobKey::Main) => (whole(), 0),
            (ObjectPlace::Object, BlobKey::Named(name)) => {
                (format!("{}/{name}", self.options.url.trim_end_matches('/')).into(), 0)
            }
        };
        let range = length.and_then(|length| Some((start.checked_add(offset)?, length)));
        Ok(Some(Reference::Target { url, range }))
    }

    /// A reference to the stored bytes, if they match the document's codecs.
    fn referenced(&self, coord: &ChunkCoord, reference: &ChunkRef) -> Result<Option<Reference>> {
        if self.reason.is_some() {
            return Ok(None);
        }
        let whole = self.array.schema().decoded_shape(coord) == self.chunk_shape;
        let same =
            whole && self.form(coord, reference)?.is_some_and(|form| form == (self.big, self.steps.clone()));
        let Some(span) = reference.spans().next().filter(|_| same) else { return Ok(None) };
        let is_object = self.array.place(&span.blob)? == ObjectPlace::Object;
        let length = match span.is_whole() {
            false => Some(span.length),
            true if is_object => None,
            true => Some(self.array.blob(&span.blob)?.len()?),
        };
        self.target(&span.blob, span.offset, length)
    }

    /// The chunk encoded by the document's codecs, padded at the end of the array.
    fn inline(&self, coord: &ChunkCoord) -> Result<Bytes> {
        let schema = self.array.schema();
        let region = schema.grid.region(coord);
        let values = read_serial(self.array, Positions::region(&region))?;
        let cells = product(&self.chunk_shape).and_then(|cells| usize::try_from(cells).ok());
        let too_large = || Error::invalid(format!("{}: a chunk larger than memory", self.array.name()));
        let cells = cells.ok_or_else(too_large)?;
        let failed = |error: hyperslab_codec::CodecError| {
            Error::unsupported(self.array.name().to_owned(), error.to_string())
        };
        let mut bytes = match (values.elements.as_fixed(), schema.dtype.size()) {
            (Some(part), Some(item)) => {
                let mut out = vec![0; cells.checked_mul(item).ok_or_else(too_large)?];
                let from = Layout::packed(&region.shape, item);
                let order = if self.is_fortran() { CellOrder::ColumnMajor } else { CellOrder::RowMajor };
                let strides = order.strides(&self.chunk_shape);
                let to = Layout {
                    offset: 0,
                    strides: strides.iter().map(|stride| *stride as isize * item as isize).collect(),
                };
                copy_box(part, &from, &mut out, &to, &region.shape, item)?;
                if self.big {
                    dtype::apply_swaps(&dtype::all_swaps(&schema.dtype), item, &mut out);
                }
                out
            }
            _ => {
                let places = padded_places(&self.chunk_shape, &region);
                let element = |place: &Option<usize>| {
                    place.map_or(Some(&[][..]), |at| vlen::element_bytes(&values.elements, &schema.dtype, at))
                };
                vlen::encode(places.iter().map(element)).ok_or_else(too_large)?
            }
        };
        for step in &self.steps {
            let mut encoded = Vec::new();
            step.encode(&bytes, &mut encoded).map_err(failed)?;
            bytes = encoded;
        }
        Ok(bytes.into())
    }
}

/// For each cell of a whole chunk, the index of its element in the clipped one; `None` outside the array.
fn padded_places(chunk: &[u64], region: &Region) -> Vec<Option<usize>> {
    let cells = product(chunk).unwrap_or(0);
    let place = |mut number: u64| {
        let (mut at, mut stride, mut inside) = (0, 1, true);
        for (extent, clipped) in chunk.iter().zip(&region.shape).rev() {
            let own = number % extent;
            number /= extent;
            inside &= own < *clipped;
            at += own * stride;
            stride *= clipped;
        }
        inside.then_some(at as usize)
    };
    (0..cells).map(place).collect()
}

/// The numcodecs codec that undoes a step.
fn numcodecs_step(step: StoredStep, item: usize) -> Option<Step> {
    Some(match step {
        StoredStep::Shuffle(size) => Step::Shuffle { size },
        StoredStep::Zlib => Step::Zlib { level: 1 },
        StoredStep::Gzip => Step::Gzip { level: 1 },
        StoredStep::Zstd => Step::Zstd { level: 1, checksum: false },
        StoredStep::Bzip2 => Step::Bz2 { level: 1 },
        StoredStep::Blosc => Step::Blosc(Blosc {
            cname: "lz4".to_owned(),
            clevel: 5,
            shuffle: 1,
            typesize: item,
            blocksize: 0,
        }),
        StoredStep::Crc32c => Step::Checksum { sum: Sum::Crc32c, at_start: false },
        StoredStep::Fletcher32 => Step::Checksum { sum: Sum::Fletcher32, at_start: false },
        _ => return None,
    })
}
