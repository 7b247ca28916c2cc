//! Array documents: `zarr.json` of v3, `.zarray` and `.zattrs` of v2, read into one description.

use hyperslab_core::{Attributes, DType, Extents, Fill, Result};
use serde_json::{Map, Value};

use crate::attributes;
use crate::codec::{self, Number, Step, Subject};
use crate::dtype::{self, StoredType};
use crate::fill;
use crate::json::Doc;
use crate::keys::KeyEncoding;
use crate::pipeline::{Pipeline, Serializer};
use crate::rectilinear::Rectilinear;

/// NumPy supports at most this many dimensions.
pub(crate) const MAX_RANK: usize = 64;

/// The description of an array, from its document.
#[derive(Debug, Clone)]
pub(crate) struct ArrayMetadata {
    pub(crate) shape: Extents,
    /// The shape of an object: a chunk, or a shard of chunks.
    pub(crate) chunk_shape: Extents,
    /// Set if objects differ in shape.
    pub(crate) rectilinear: Option<Rectilinear>,
    pub(crate) stored: StoredType,
    pub(crate) fill: Fill,
    pub(crate) keys: KeyEncoding,
    pub(crate) pipeline: Pipeline,
    pub(crate) dimensions: Vec<Option<String>>,
    pub(crate) attributes: Attributes,
}

/// Refuses unknown fields that a reader must understand.
pub(crate) fn refuse_unknown(object: &Map<String, Value>, known: &[&str], doc: Doc<'_>) -> Result<()> {
    for (name, value) in object {
        // By the specification, any other field must be understood, unless it is an object that says otherwise.
        let optional = value.get("must_understand") == Some(&Value::Bool(false));
        if !known.contains(&name.as_str()) && !optional {
            return Err(doc.unsupported(format!("metadata field {name:?}")));
        }
    }
    Ok(())
}

impl ArrayMetadata {
    /// From a v3 `zarr.json`.
    pub(crate) fn parse_v3(object: &Map<String, Value>, doc: Doc<'_>) -> Result<Self> {
        const KNOWN: [&str; 11] = [
            "zarr_format",
            "node_type",
            "shape",
            "data_type",
            "chunk_grid",
            "chunk_key_encoding",
            "fill_value",
            "codecs",
            "attributes",
            "dimension_names",
            "storage_transformers",
        ];
        refuse_unknown(object, &KNOWN, doc)?;
        if object.get("storage_transformers").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
            return Err(doc.unsupported("a storage transformer"));
        }
        let stored = dtype::parse_v3(doc.field(object, "data_type")?, doc)?;
        let shape = doc.extents(doc.field(object, "shape")?, "shape")?;
        let grid = doc.object(doc.field(object, "chunk_grid")?, "chunk_grid")?;
        let grid_name = doc.text(doc.field(grid, "name")?, "chunk_grid name")?;
        let configuration = || doc.field(grid, "configuration");
        let (chunk_shape, rectilinear) = match grid_name {
            "regular" => {
                let regular = doc.object(configuration()?, "chunk_grid configuration")?;
                (chunk_shape(doc.field(regular, "chunk_shape")?, &shape, doc)?, None)
            }
            "rectilinear" => {
                let grid = Rectilinear::parse(configuration()?, &shape, doc)?;
                (grid.chunk_shape(&shape), Some(grid))
            }
            other => return Err(doc.unsupported(format!("chunk grid {other:?}"))),
        };
        let pipeline = Pipeline::parse_v3(doc.field(object, "codecs")?, &stored, &chunk_shape, doc)?;
        if rectilinear.is_some() && pipeline.steps.iter().any(|step| matches!(step, Step::Zfp(_))) {
            return Err(doc.unsupported("codec \"zfp\" in a rectilinear chunk grid"));
        }
        if rectilinear.is_some() && !stored.dtype.is_fixed() {
            return Err(doc.unsupported(format!("{} in a rectilinear chunk grid", stored.dtype)));
        }
        let fill = fill::parse(doc.field(object, "fill_value")?, &stored, doc)?;
        let dimensions = dimension_names(object.get("dimension_names"), shape.len(), doc)?;
        let keys = key_encoding(object.get("chunk_key_encoding"), doc)?;
        let attributes = attributes::of_array_v3(object.get("attributes"), &stored.dtype, doc)?;
        Ok(Self {
            shape: shape.into(),
            chunk_shape,
            rectilinear,
            stored,
            fill,
            keys,
            pipeline,
            dimensions,
            attributes,
        })
    }

    /// From a v2 `.zarray` and its `.zattrs`.
    pub(crate) fn parse_v2(
        object: &Map<String, Value>,
        beside: Option<&Value>,
        doc: Doc<'_>,
    ) -> Result<Self> {
        let mut stored = dtype::parse_v2(doc.field(object, "dtype")?, doc)?;
        let shape = doc.extents(doc.field(object, "shape")?, "shape")?;
        let chunk_shape = chunk_shape(doc.field(object, "chunks")?, &shape, doc)?;
        let mut filters = match object.get("filters") {
            None | Some(Value::Null) => Vec::new(),
            Some(filters) => doc.list(filters, "filters")?.clone(),
        };
        let mut pipeline = Pipeline::new();
        pipeline.serializer = Serializer::Bytes { swaps: stored.swaps.clone() };
        let first = filters.first().and_then(|filter| filter.get("id")).and_then(Value::as_str);
        let categories = first == Some("categorize") && matches!(stored.dtype, DType::FixedText(_));
        if stored.object || categories {
            // The first filter determines the type of objects, and converts numbers to text.
            let (dtype, serializer) = objects(filters.first(), doc)?;
            stored.dtype = dtype;
            pipeline.serializer = serializer;
            filters.remove(0);
        }
        if let Some(kind) = stored.narrow {
            pipeline.steps.push(Step::Narrow { kind, big: false });
        }
        let item = stored.size().unwrap_or(1);
        let subject = Subject { item, dtype: &stored.dtype, narrow: stored.narrow, shape: &chunk_shape };
        for filter in &filters {
            pipeline.steps.push(codec::parse_v2(filter, subject, doc)?);
        }
        if let Some(compressor) = object.get("compressor").filter(|compressor| !compressor.is_null()) {
            pipeline.steps.push(codec::parse_v2(compressor, subject, doc)?);
        }
        pipeline.axes = match object.get("order").and_then(Value::as_str) {
            None | Some("C") => Vec::new(),
            Some("F") if shape.len() > 1 => (0..shape.len() as u8).rev().collect(),
            Some("F") => Vec::new(),
            Some(other) => return Err(doc.corrupt(format!("order {other:?}"))),
        };
        let fill = fill::parse(object.get("fill_value").unwrap_or(&Value::Null), &stored, doc)?;
        let separator = separator(object.get("dimension_separator"), '.', doc)?;
        // xarray's convention for names in v2. A list of another length is ignored.
        let named = beside.and_then(|beside| beside.get(attributes::DIMENSIONS));
        let dimensions = dimension_names(named, shape.len(), doc).unwrap_or_else(|_| vec![None; shape.len()]);
        let attributes =
            attributes::of_array_v2(beside, &stored.dtype, object.get("fill_value"), &fill, doc)?;
        let keys = KeyEncoding { prefixed: false, separator };
        Ok(Self {
            shape: shape.into(),
            chunk_shape,
            rectilinear: None,
            stored,
            fill,
            keys,
            pipeline,
            dimensions,
            attributes,
        })
    }
}

/// The type of v2's objects, from the filter that wrote them.
fn objects(filter: Option<&Value>, doc: Doc<'_>) -> Result<(DType, Serializer)> {
    let text = |name: &str| filter.and_then(|filter| filter.get(name)).and_then(Value::as_str);
    let id = text("id");
    Ok(match id {
        Some("vlen-utf8") => (DType::String, Serializer::Variable),
        Some("vlen-bytes") => (DType::Bytes, Serializer::Variable),
        Some("vlen-array") => {
            let base = dtype::parse_v2(&Value::from(text("dtype").unwrap_or_default()), doc)?;
            if !base.swaps.is_empty() || base.scale != 1 || base.narrow.is_some() || !base.dtype.is_fixed() {
                return Err(doc.unsupported(format!("lists of {:?}", text("dtype"))));
            }
            (DType::List(std::sync::Arc::new(base.dtype)), Serializer::Variable)
        }
        Some("categorize") => {
            let wrong = || doc.corrupt("codec \"categorize\" without labels or a type");
            let labels = filter.and_then(|filter| filter.get("labels")).and_then(Value::as_array);
            let labels = labels.ok_or_else(wrong)?.iter().map(|label| label.as_str().map(str::to_owned));
            let labels = labels.collect::<Option<Vec<String>>>().ok_or_else(wrong)?;
            let number = Number::parse(text("astype").unwrap_or("u1")).ok_or_else(wrong)?;
            (DType::String, Serializer::Categories { labels, number })
        }
        Some("json2") => (DType::String, Serializer::Json),
        Some(other) => return Err(doc.unsupported(format!("the encoding {other:?} of Python objects"))),
        None => return Err(doc.unsupported("Python objects without a filter that encodes them")),
    })
}

fn chunk_shape(value: &Value, shape: &[u64], doc: Doc<'_>) -> Result<Extents> {
    let mut chunk = doc.extents(value, "chunk_shape")?;
    if chunk.len() != shape.len() || shape.len() > MAX_RANK {
        return Err(doc.corrupt(format!("chunks of {chunk:?} in an array of {shape:?}")));
    }
    for (chunk, extent) in chunk.iter_mut().zip(shape) {
        // Some writers give an empty axis empty chunks.
        if *chunk == 0 && *extent == 0 {
            *chunk = 1;
        }
    }
    if chunk.contains(&0) {
        return Err(doc.corrupt(format!("chunks of {chunk:?} have an extent of zero")));
    }
    Ok(chunk.into())
}

fn dimension_names(value: Option<&Value>, rank: usize, doc: Doc<'_>) -> Result<Vec<Option<String>>> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(vec![None; rank]) };
    let names: Vec<Option<String>> =
        doc.list(value, "dimension_names")?.iter().map(|name| name.as_str().map(str::to_owned)).collect();
    if names.len() == rank {
        Ok(names)
    } else {
        Err(doc.corrupt(format!("{} dimension names for {rank} dimensions", names.len())))
    }
}

fn key_encoding(value: Option<&Value>, doc: Doc<'_>) -> Result<KeyEncoding> {
    let Some(value) = value else { return Ok(KeyEncoding { prefixed: true, separator: '/' }) };
    let name = value.as_str().or_else(|| value.get("name").and_then(Value::as_str)).unwrap_or_default();
    let prefixed = match name {
        "default" => true,
        "v2" => false,
        other => return Err(doc.unsupported(format!("chunk key encoding {other:?}"))),
    };
    let configured = value.get("configuration").and_then(|configuration| configuration.get("separator"));
    Ok(KeyEncoding { prefixed, separator: separator(configured, if prefixed { '/' } else { '.' }, doc)? })
}

fn separator(value: Option<&Value>, default: char, doc: Doc<'_>) -> Result<char> {
    match value {
        None | Some(Value::Null) => Ok(default),
        Some(Value::String(text)) if text == "/" => Ok('/'),
        Some(Value::String(text)) if text == "." => Ok('.'),
        Some(other) => Err(doc.corrupt(format!("separator {other}"))),
    }
}
