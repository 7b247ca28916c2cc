//! Presents an array of any format as Zarr v3: its document, and its chunks as objects.

use bytes::Bytes;
use hyperslab_core::{
    Array, ArraySchema, ArraySpec, Attributes, ChunkCoord, Elements, Filter, Result, StoredForm, StoredStep,
};
use serde_json::{Value, json};

use crate::attributes;
use crate::sink::{ArrayPlan, ZarrFormat};

/// The codecs that readers of a view are expected to support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CodecSet {
    /// Codecs of the specification, which every reader supports: `bytes`, `gzip`, `zstd`, `blosc`, `crc32c`.
    #[default]
    Core,
    /// Also `numcodecs.zlib`, `numcodecs.shuffle`, `numcodecs.bz2` and `numcodecs.fletcher32`, which allow serving
    /// most HDF5 files without decoding them.
    Numcodecs,
    /// Codecs that every Zarr v2 reader supports (`gzip`, `zlib`, `zstd`, `blosc`), with v2 documents. For programs
    /// without Zarr v3, such as GDAL up to 3.10.
    V2,
}

impl CodecSet {
    /// The codec that undoes a step, with its common name; `None` if readers may lack it.
    fn filter(self, step: StoredStep, own: &[Filter]) -> Option<Filter> {
        // Decoding needs no parameters, but for a Zarr array, preserve those of its own document.
        let named = |name: &str| own.iter().find(|filter| filter.name == name).cloned();
        let or_new = |name: &str| named(name).unwrap_or_else(|| Filter::new(name));
        let numcodecs = self == Self::Numcodecs;
        Some(match step {
            StoredStep::Gzip => or_new("gzip"),
            StoredStep::Zstd => or_new("zstd"),
            StoredStep::Blosc => or_new("blosc"),
            StoredStep::Crc32c if self != Self::V2 => Filter::new("crc32c"),
            StoredStep::Zlib if numcodecs || self == Self::V2 => Filter::new("zlib"),
            StoredStep::Bzip2 if numcodecs => Filter::new("bz2"),
            StoredStep::Shuffle(size) if numcodecs => Filter::new("shuffle").with("elementsize", size),
            StoredStep::Fletcher32 if numcodecs => Filter::new("fletcher32"),
            _ => return None,
        })
    }
}

/// An array of any format as a Zarr v3 array.
///
/// Uses the codecs of the first stored chunk, if readers support them. A chunk stored in another form (with a skipped
/// filter, or without cells outside the array) is decoded and encoded again, so that every chunk matches the
/// document.
#[derive(Debug)]
pub struct ArrayView {
    plan: ArrayPlan,
    format: ZarrFormat,
}

impl ArrayView {
    /// Describes an array for [`new`](Self::new), with its own attributes.
    #[must_use]
    pub fn spec_of(schema: &ArraySchema) -> ArraySpec {
        let mut spec = ArraySpec::new(schema.dtype.clone(), schema.grid.clone());
        spec.nullable = schema.nullable;
        spec.fill = schema.fill.clone();
        // Readers reject two dimensions with the same name.
        let is_unique =
            |name: &Option<String>| schema.dimensions.iter().filter(|other| *other == name).count() == 1;
        spec.dimensions =
            schema.dimensions.iter().map(|name| name.clone().filter(|_| is_unique(name))).collect();
        spec.attributes = schema.attributes.clone();
        spec
    }

    /// Creates a view of `array`, which is at `path` of the store `name` and is described by `spec`.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](hyperslab_core::Error::Unsupported) for element types that Zarr lacks; otherwise any error
    /// from locating the first chunk.
    pub fn new(
        name: &str,
        path: &str,
        array: &dyn Array,
        mut spec: ArraySpec,
        codecs: CodecSet,
    ) -> Result<Self> {
        let schema = array.schema();
        if let Some(form) = first_form(array)?
            && form.shape[..] == *schema.grid.chunk_shape()
            && let Some(filters) =
                form.steps.iter().map(|step| codecs.filter(*step, &schema.filters)).collect::<Option<_>>()
        {
            spec.filters = filters;
        }
        let format = if codecs == CodecSet::V2 { ZarrFormat::V2 } else { ZarrFormat::V3 };
        Ok(Self { plan: ArrayPlan::new(name, path, &spec, format, None)?, format })
    }

    /// The array's `zarr.json`, or its `.zarray` in v2.
    #[must_use]
    pub fn document(&self) -> Value {
        match self.format {
            ZarrFormat::V3 => self.plan.v3(),
            ZarrFormat::V2 => self.plan.v2(),
        }
    }

    /// The array's `.zattrs`, for v2.
    #[must_use]
    pub fn attributes(&self) -> Value {
        Value::Object(self.plan.attributes().clone())
    }

    /// Returns true if chunks that were never written must also be served, because the document's fill value differs
    /// from the store's, or is null.
    #[must_use]
    pub const fn has_every_chunk(&self) -> bool {
        self.plan.store_all
    }

    /// Returns true if the stored bytes of a chunk in this form can be served unchanged.
    #[must_use]
    pub fn takes(&self, form: &StoredForm) -> bool {
        self.plan.takes(form)
    }

    /// Encodes a chunk's elements, clipped to the array, as its object.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](hyperslab_core::Error::Unsupported) if elements are missing.
    pub fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<Bytes> {
        self.plan.spec.check_chunk(chunk, elements)?;
        Ok(self.plan.encode(chunk, elements)?.0)
    }

    /// Parses an object name below the array: `c/0/3`, or `c` for an array without dimensions; `0.3` in v2.
    #[must_use]
    pub fn chunk_of_key(&self, key: &str) -> Option<ChunkCoord> {
        let grid = &self.plan.spec.grid;
        let rest = match self.format {
            ZarrFormat::V3 if key == "c" => "",
            ZarrFormat::V3 => key.strip_prefix("c/")?,
            // The chunk of an array without dimensions.
            ZarrFormat::V2 if grid.rank() == 0 => return (key == "0").then(ChunkCoord::new),
            ZarrFormat::V2 => key,
        };
        let separator = if self.format == ZarrFormat::V3 { '/' } else { '.' };
        let parts = rest.split(separator).filter(|_| !rest.is_empty());
        let number = |part: &str| {
            let plain = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            let canonical = plain && (part == "0" || !part.starts_with('0'));
            if canonical { part.parse::<u64>().ok() } else { None }
        };
        let coord: ChunkCoord = parts.map(number).collect::<Option<_>>()?;
        (coord.len() == grid.rank() && grid.contains(&coord)).then_some(coord)
    }
}

/// The `zarr.json` of a group.
#[must_use]
pub fn group_document(attributes: &Attributes) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes::to_json(attributes)})
}

/// The form of the first stored chunk; `None` if nothing is stored, or if its form is specific to the format.
fn first_form(array: &dyn Array) -> Result<Option<StoredForm>> {
    // The chunk at the origin usually exists, and looking it up is cheaper than walking an index.
    let origin: ChunkCoord = std::iter::repeat_n(0, array.schema().grid.rank()).collect();
    if !array.schema().grid.contains(&origin) {
        return Ok(None);
    }
    if let [Some(reference)] = array.locate(std::slice::from_ref(&origin))?.as_slice() {
        return Ok(array.stored_form(&origin, reference));
    }
    let mut form = None;
    array.visit_chunks(&mut |chunk, reference| {
        form = array.stored_form(&chunk, &reference);
        Ok(std::ops::ControlFlow::Break(()))
    })?;
    Ok(form)
}
