//! An array of any format, shown as Zarr v3 would store it: its document, and its chunks as objects.

use bytes::Bytes;
use hyperslab_core::{
    Array, ArraySchema, ArraySpec, Attributes, ChunkCoord, Elements, Filter, Result, StoredForm, StoredStep,
};
use serde_json::{Value, json};

use crate::attributes;
use crate::sink::{ArrayPlan, ZarrFormat};

/// Which codecs the readers of a view are expected to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CodecSet {
    /// Those of the specification, which every reader has: `bytes`, `gzip`, `zstd`, `blosc`, `crc32c`.
    #[default]
    Core,
    /// Also `numcodecs.zlib`, `numcodecs.shuffle`, `numcodecs.bz2` and `numcodecs.fletcher32`: what most HDF5 files need to be
    /// read without decoding them here.
    Numcodecs,
    /// Those that every reader of Zarr v2 has (`gzip`, `zlib`, `zstd`, `blosc`), in documents of v2: for programs that know no
    /// other, such as GDAL up to 3.10.
    V2,
}

impl CodecSet {
    /// The codec that undoes a step, under the name that writers use; `None` where readers may lack it.
    fn filter(self, step: StoredStep, own: &[Filter]) -> Option<Filter> {
        // A decoder needs no parameters, but the document of a Zarr array keeps those that it had.
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
/// The codecs are those of the first stored chunk, where the readers have them. A chunk that is stored in another form
/// (a filter was skipped, cells outside the array are left out) is decoded and encoded again, so every chunk follows the document.
#[derive(Debug)]
pub struct ArrayView {
    plan: ArrayPlan,
    format: ZarrFormat,
}

impl ArrayView {
    /// A view of `array`, which is at `path` of the store `name`.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](hyperslab_core::Error::Unsupported) for elements that Zarr cannot hold; otherwise whatever finding the
    /// first chunk says.
    pub fn new(name: &str, path: &str, array: &dyn Array, codecs: CodecSet) -> Result<Self> {
        let schema = array.schema();
        let mut spec = spec_of(schema);
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

    /// The array's `.zattrs`, of v2.
    #[must_use]
    pub fn attributes(&self) -> Value {
        Value::Object(self.plan.attributes().clone())
    }

    /// Must chunks that were never written be there as well? The document says another fill value than the store, or none.
    #[must_use]
    pub const fn has_every_chunk(&self) -> bool {
        self.plan.store_all
    }

    /// Is the object of a chunk the stored bytes themselves, when they have this form?
    #[must_use]
    pub fn takes(&self, form: &StoredForm) -> bool {
        self.plan.takes(form)
    }

    /// The object of a chunk with these elements, clipped to the array.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](hyperslab_core::Error::Unsupported) for missing elements.
    pub fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<Bytes> {
        self.plan.spec.check_chunk(chunk, elements)?;
        Ok(self.plan.encode(chunk, elements)?.0)
    }

    /// The chunk that an object name below the array means: `c/0/3`, or `c` of an array without dimensions; `0.3` in v2.
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

fn spec_of(schema: &ArraySchema) -> ArraySpec {
    let mut spec = ArraySpec::new(schema.dtype.clone(), schema.grid.clone());
    spec.nullable = schema.nullable;
    spec.fill = schema.fill.clone();
    // Readers refuse two dimensions of one name.
    let is_unique =
        |name: &Option<String>| schema.dimensions.iter().filter(|other| *other == name).count() == 1;
    spec.dimensions = schema.dimensions.iter().map(|name| name.clone().filter(|_| is_unique(name))).collect();
    spec.attributes = schema.attributes.clone();
    spec
}

/// The form of the first chunk that is stored; `None` where nothing is stored, or in no form that others have.
fn first_form(array: &dyn Array) -> Result<Option<StoredForm>> {
    // The chunk at the origin is most often there, and looking it up is cheaper than walking an index.
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
