//! Creates new stores: builds each in a staging folder and moves it into place at once.

mod append;
mod array;
mod encode;
mod shard_shape;
mod shards;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hyperslab_core::storage::{StageOptions, StageWriter, StagedChange, StagedFolder};
use hyperslab_core::{
    Array, ArraySink, ArraySpec, Attributes, DType, Elements, Error, Extents, Fill, Grid, MemoryStorage,
    NodeNames, Result, Sink, Storage, StructType, normal_path,
};
use serde_json::{Map, Value, json};

use crate::array::ZarrArray;
use crate::attributes;
use crate::codec::{self, Step, Subject};
use crate::dtype;
use crate::fill;
use crate::json::{Doc, to_text};
use crate::keys::KeyEncoding;
use crate::metadata::ArrayMetadata;
use crate::pipeline::{Pipeline, Serializer, compose, permuted};
use crate::shard::IndexFormat;
use crate::store::join;
pub use append::ZarrAppend;
use array::ZarrArraySink;
use shard_shape::{has_shards, whole_chunks};

/// The version of Zarr to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ZarrFormat {
    /// Zarr 3: `zarr.json`, shards.
    #[default]
    V3,
    /// Zarr 2: `.zarray` and `.zattrs`.
    V2,
}

/// Options for writing a store.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// The version to write.
    pub format: ZarrFormat,
    /// The shape of a shard in cells, or one number for all axes; rounded up to whole chunks. `None` stores each
    /// chunk as an object of its own.
    pub shard_shape: Option<Vec<u64>>,
    /// Replace whatever exists at the target.
    pub replace: bool,
    /// Sync a new store before [`commit`](Sink::commit) returns. Replacements and changes are always synced.
    pub sync: bool,
    /// Collect all documents in the root's document, so that readers can open the store with one request.
    pub consolidated: bool,
    /// Pack the store into a zip archive.
    pub archive: bool,
}

/// A store that is being written.
#[derive(Debug)]
pub struct ZarrSink {
    stage: Stage,
    options: WriteOptions,
    name: Arc<str>,
    /// The declared nodes by key, and whether each is an array.
    nodes: BTreeMap<String, bool>,
    arrays: Vec<Arc<ZarrArraySink>>,
}

/// The place where objects are written before they become visible.
#[derive(Debug)]
enum Stage {
    New(StagedFolder),
    Change(StagedChange),
    /// A folder that is packed into an archive at its target.
    Archive(StagedFolder, StageOptions),
}

impl Stage {
    const fn writer(&self) -> &StageWriter {
        match self {
            Self::New(folder) | Self::Archive(folder, _) => folder.writer(),
            Self::Change(change) => change.writer(),
        }
    }
}

impl ZarrSink {
    /// Starts a new store at `target`.
    ///
    /// # Errors
    ///
    /// [`Exists`](Error::Exists) if something exists there and replacing is not allowed; [`Io`](Error::Io) if its
    /// folder cannot be written.
    pub fn create(target: impl AsRef<Path>, options: WriteOptions) -> Result<Self> {
        let target = target.as_ref();
        if options.format == ZarrFormat::V2 && options.shard_shape.is_some() {
            return Err(Error::invalid("Zarr v2 has no shards"));
        }
        let stage = StageOptions::default().with_replace(options.replace).with_sync(options.sync);
        let folder = StagedFolder::create(target, stage)?;
        let stage = if options.archive { Stage::Archive(folder, stage) } else { Stage::New(folder) };
        Ok(Self::staged(stage, target, options))
    }

    /// Starts a change of the store with this name.
    fn change(change: StagedChange, name: Arc<str>, options: WriteOptions) -> Self {
        Self { stage: Stage::Change(change), options, name, nodes: BTreeMap::new(), arrays: Vec::new() }
    }

    fn staged(stage: Stage, target: &Path, options: WriteOptions) -> Self {
        let name = target.display().to_string().into();
        Self { stage, options, name, nodes: BTreeMap::new(), arrays: Vec::new() }
    }

    /// Makes everything visible. In an existing store, the documents in `last` are replaced last.
    fn publish(self, last: &[String]) -> Result<()> {
        match self.stage {
            Stage::New(folder) => folder.publish(),
            Stage::Archive(folder, options) => crate::zip::pack(folder.path(), folder.target(), options),
            Stage::Change(change) => change.publish(last),
        }
    }

    /// Writes a metadata document.
    fn document(&self, key: &str, document: &Value) -> Result<()> {
        self.stage.writer().put(key, &to_text(key, document)?)
    }

    /// The staging folder of the store. Written data can be read there after [`settle`](Self::settle).
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.stage.writer().folder()
    }

    /// Finishes all arrays created so far, and writes the documents of implicit groups. The arrays cannot be written
    /// to afterwards.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system reports an error.
    pub fn settle(&mut self) -> Result<()> {
        for array in self.arrays.drain(..) {
            array.finish()?;
        }
        for key in self.missing() {
            if self.nodes.insert(key.clone(), false).is_none() {
                self.write_group(&key, &Map::new())?;
            }
        }
        Ok(())
    }

    /// The documents of a node, by key.
    fn documents(&self, node: &str) -> Result<Vec<(String, Value)>> {
        let mut documents = Vec::new();
        for name in DOCUMENTS {
            let key = join(node, name);
            if let Some(text) = self.stage.writer().read(&key)? {
                documents.push((key.clone(), Doc { store: &self.name, key: &key }.parse(&text)?));
            }
        }
        Ok(documents)
    }

    /// Collects the documents of all nodes in the root's document.
    fn consolidate(&self) -> Result<()> {
        if self.nodes.get("") != Some(&false) {
            return Ok(());
        }
        let (mut gathered, mut root) = (Map::new(), Value::Null);
        for node in self.nodes.keys() {
            for (key, document) in self.documents(node)? {
                match (self.options.format, key.strip_suffix("/zarr.json")) {
                    (ZarrFormat::V3, Some(path)) => drop(gathered.insert(path.to_owned(), document)),
                    (ZarrFormat::V3, None) => root = document,
                    (ZarrFormat::V2, _) => drop(gathered.insert(key, document)),
                }
            }
        }
        match self.options.format {
            ZarrFormat::V3 => {
                root["consolidated_metadata"] =
                    json!({"kind": "inline", "must_understand": false, "metadata": gathered});
                self.document("zarr.json", &root)
            }
            ZarrFormat::V2 => {
                self.document(".zmetadata", &json!({"metadata": gathered, "zarr_consolidated_format": 1}))
            }
        }
    }

    /// The root, and parent groups that were not created explicitly.
    fn missing(&self) -> Vec<String> {
        let mut missing: Vec<String> = Vec::new();
        for key in self.nodes.keys() {
            let above = key.match_indices('/').map(|(at, _)| &key[..at]);
            missing.extend(above.filter(|above| !self.nodes.contains_key(*above)).map(str::to_owned));
        }
        if !self.nodes.contains_key("") {
            missing.push(String::new());
        }
        missing
    }

    /// Replaces the attributes of a group.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if the group was not created; [`Io`](Error::Io) if the system reports an error.
    pub fn rewrite_group(&self, path: &str, attributes: &Attributes) -> Result<()> {
        let key = NODE_NAMES.key(&self.name, path)?;
        match self.nodes.get(&key) {
            Some(false) => self.write_group(&key, &attributes::to_json(attributes)),
            _ => Err(Error::invalid(format!("{}: there is no group {path}", self.name))),
        }
    }

    /// Declares a node, after checking its path.
    fn claim(&mut self, path: &str, is_array: bool) -> Result<String> {
        let key = NODE_NAMES.key(&self.name, path)?;
        for (at, _) in key.match_indices('/').chain([(0, "")]) {
            if self.nodes.get(&key[..at]) == Some(&true) {
                return Err(Error::invalid(format!("{}: there is an array above {path}", self.name)));
            }
        }
        if is_array && self.has_below(&key) {
            return Err(Error::invalid(format!("{}: there are nodes below {path}", self.name)));
        }
        if self.nodes.insert(key.clone(), is_array).is_some() {
            return Err(Error::invalid(format!("{}: {path} was already created", self.name)));
        }
        Ok(key)
    }

    /// Returns true if a node was declared at this key.
    fn has(&self, key: &str) -> bool {
        self.nodes.contains_key(key)
    }

    /// Returns true if there is a node below this key.
    fn has_below(&self, key: &str) -> bool {
        if key.is_empty() {
            return !self.nodes.is_empty();
        }
        let first = format!("{key}/");
        self.nodes.range(first.clone()..).next().is_some_and(|(own, _)| own.starts_with(&first))
    }

    fn write_group(&self, key: &str, attributes: &Map<String, Value>) -> Result<()> {
        match self.options.format {
            ZarrFormat::V3 => {
                let document = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
                self.document(&join(key, "zarr.json"), &document)
            }
            ZarrFormat::V2 => {
                self.document(&join(key, ".zgroup"), &json!({"zarr_format": 2}))?;
                self.document(&join(key, ".zattrs"), &Value::Object(attributes.clone()))
            }
        }
    }

    /// Creates an array with shards of this shape in cells, overriding the options. The shape must be a multiple of
    /// the chunk shape.
    ///
    /// # Errors
    ///
    /// Like [`Sink::array`].
    pub fn array_in_shards(
        &mut self,
        path: &str,
        spec: &ArraySpec,
        shard_shape: &[u64],
    ) -> Result<Arc<dyn ArraySink>> {
        if self.options.format == ZarrFormat::V2 {
            return Err(Error::invalid("Zarr v2 has no shards"));
        }
        let shape = whole_chunks(spec, shard_shape)?;
        self.planned(path, spec, Some(shape))
    }

    /// Returns true if arrays are sharded by default.
    #[must_use]
    pub const fn has_shards(&self) -> bool {
        self.options.shard_shape.is_some()
    }

    /// The shard shape in whole chunks, if sharding is enabled. Shards with an extent per axis only apply to arrays with as many axes.
    fn shard_shape(&self, spec: &ArraySpec) -> Result<Option<Extents>> {
        let applies = |wanted: &&[u64]| wanted.len() == 1 || wanted.len() == spec.grid.rank();
        let wanted = self.options.shard_shape.as_deref().filter(applies);
        wanted.map(|wanted| whole_chunks(spec, wanted)).transpose()
    }

    fn planned(
        &mut self,
        path: &str,
        spec: &ArraySpec,
        shard_shape: Option<Extents>,
    ) -> Result<Arc<dyn ArraySink>> {
        let own = if shard_shape.is_none() {
            ArrayPlan::as_stored(&self.name, path, spec, self.options.format)
        } else {
            None
        };
        let plan = match own {
            Some(plan) => plan,
            None => {
                let loses_shards = shard_shape.is_none() && has_shards(spec);
                let plan = ArrayPlan::new(&self.name, path, spec, self.options.format, shard_shape)?;
                ArrayPlan { loses_shards, ..plan }
            }
        };
        let key = self.claim(path, true)?;
        match self.options.format {
            ZarrFormat::V3 => self.document(&join(&key, "zarr.json"), &plan.v3())?,
            ZarrFormat::V2 => {
                self.document(&join(&key, ".zarray"), &plan.v2())?;
                self.document(&join(&key, ".zattrs"), &Value::Object(plan.attributes.clone()))?;
            }
        }
        let sink = Arc::new(ZarrArraySink::new(plan, self.stage.writer().below(&key)?, None));
        self.arrays.push(Arc::clone(&sink));
        Ok(sink)
    }
}

/// What the report says of lists.
const LOST_SHARDS: &str =
    "the shards of the source are left out: they are nested, or their index has another form";
const UNREAD_LISTS: &str = "lists are stored by numcodecs' vlen-array, which zarr-python 2 reads; zarr-python 3 does not open the group";

impl Sink for ZarrSink {
    fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let key = self.claim(path, false)?;
        self.write_group(&key, &attributes::to_json(attributes))
    }

    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        let shape = self.shard_shape(spec)?;
        self.planned(path, spec, shape)
    }

    fn attributes(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let key = NODE_NAMES.key(&self.name, path)?;
        if !self.has(&key) {
            return Err(Error::not_found(Arc::clone(&self.name), path));
        }
        let mut new = attributes::to_json(attributes);
        let document = match self.options.format {
            ZarrFormat::V2 => join(&key, ".zattrs"),
            ZarrFormat::V3 => {
                let full = format!("{}{}", self.name, normal_path(path));
                if let Some(array) = self.arrays.iter().find(|array| array.plan().name == full) {
                    new = attributes::to_v3(attributes, &array.plan().spec.dtype);
                }
                join(&key, "zarr.json")
            }
        };
        let (_, mut content) = self
            .documents(&key)?
            .into_iter()
            .find(|(own, _)| *own == document)
            .ok_or_else(|| Error::not_found(Arc::clone(&self.name), document.as_str()))?;
        let own = match self.options.format {
            ZarrFormat::V2 => &mut content,
            ZarrFormat::V3 => &mut content["attributes"],
        };
        if own.is_null() {
            *own = Value::Object(Map::new());
        }
        own.as_object_mut().into_iter().for_each(|own| own.extend(std::mem::take(&mut new)));
        self.document(&document, &content)
    }

    fn changes(&self) -> Vec<(String, String)> {
        let change = |array: &Arc<ZarrArraySink>| {
            let plan = array.plan();
            let path = plan.name.strip_prefix(&*self.name)?.to_owned();
            if let (Some([wanted]), Some(shape)) = (self.options.shard_shape.as_deref(), &plan.shard_shape)
                && shape.iter().any(|extent| extent != wanted)
            {
                return Some((
                    path,
                    format!("shards of {wanted} are rounded up to whole chunks: {:?}", shape.as_slice()),
                ));
            }
            let what = match self.options.format {
                _ if plan.loses_shards => LOST_SHARDS,
                ZarrFormat::V2 if matches!(plan.spec.dtype, DType::List(_)) => UNREAD_LISTS,
                ZarrFormat::V2 => return None,
                ZarrFormat::V3 => attributes::changed_marker_in_v3(&plan.spec.attributes, &plan.spec.dtype)?,
            };
            Some((path, what.to_owned()))
        };
        self.arrays.iter().filter_map(change).collect()
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        self.settle()?;
        if self.options.consolidated {
            self.consolidate()?;
        }
        self.publish(&[])
    }
}

/// The names that Zarr nodes may have. Names of chunks cannot conflict with nodes, because there are no nodes below
/// an array.
pub const NODE_NAMES: NodeNames =
    NodeNames::new("Zarr", |name| name == ".zmetadata" || DOCUMENTS.contains(&name));

/// The file names of metadata documents.
const DOCUMENTS: [&str; 4] = ["zarr.json", ".zarray", ".zgroup", ".zattrs"];

/// The complete description of an array to write.
#[derive(Debug)]
pub(crate) struct ArrayPlan {
    pub(crate) name: String,
    pub(crate) spec: ArraySpec,
    pub(crate) pipeline: Pipeline,
    pub(crate) keys: KeyEncoding,
    pub(crate) shard_shape: Option<Extents>,
    /// One element of the stored size, for cells outside the array.
    pub(crate) fill: Vec<u8>,
    /// The offsets and lengths of members, for packing elements that have gaps.
    pub(crate) packing: Vec<(usize, usize)>,
    /// Whether to store chunks that contain only the fill value. Needed if the document's fill value differs, or is
    /// null.
    pub(crate) store_all: bool,
    data_type: Value,
    fill_value: Value,
    /// The attributes in document form.
    attributes: Map<String, Value>,
    /// The source array has shards in a form that cannot be written.
    pub(crate) loses_shards: bool,
    /// The document of the source array, if this array is stored the same way. Only its attributes are replaced.
    document: Option<Map<String, Value>>,
}

impl ArrayPlan {
    pub(crate) fn new(
        store: &str,
        path: &str,
        spec: &ArraySpec,
        format: ZarrFormat,
        shard_shape: Option<Extents>,
    ) -> Result<Self> {
        let name = format!("{store}{}", normal_path(path));
        let doc = Doc { store, key: &normal_path(path)[1..] };
        if spec.nullable {
            return Err(Error::unsupported(name, "missing elements in Zarr"));
        }
        let (packed, packing) = packed(&spec.dtype);
        let pipeline = pipeline(spec, &packed, format, doc)?;
        // Numbers stored in a narrower type have that type's name.
        let data_type = match pipeline.steps.first() {
            Some(Step::Narrow { kind, .. }) => dtype::narrow_name(*kind, &packed).map(Value::from),
            _ => data_type_of(&packed, format),
        };
        let Some(data_type) = data_type else {
            return Err(Error::unsupported(name, format!("the type {} in Zarr", spec.dtype)));
        };
        let item = packed.size();
        let element = |element: &Elements| match element.as_fixed() {
            Some(bytes) => pack(bytes, &spec.dtype, &packing),
            None => element.variable_at(0).unwrap_or_default().to_vec(),
        };
        let fill = match &spec.fill {
            Fill::Element(own) => element(own),
            _ => vec![0; item.unwrap_or(0)],
        };
        let packed_fill = |fill: &Fill| match fill {
            Fill::Element(own) if !packing.is_empty() => Fill::Element(Elements::fixed(element(own))),
            other => other.clone(),
        };
        let (mut store_all, mut fill_value) = (false, fill::to_json(&packed_fill(&spec.fill), &packed));
        let attributes = match format {
            ZarrFormat::V3 => attributes::to_v3(&spec.attributes, &spec.dtype),
            ZarrFormat::V2 => {
                let (attributes, marker) = attributes::to_v2(&spec.attributes, &spec.dtype, &spec.dimensions);
                // Readers interpret the fill value as the missing-value marker. So write the marker, or null.
                if let Some(marker) = marker {
                    store_all = element(&marker) != fill;
                    fill_value = fill::to_json(&packed_fill(&Fill::Element(marker)), &packed);
                } else if attributes.contains_key(attributes::DIMENSIONS) {
                    store_all = matches!(spec.fill, Fill::Element(_));
                    fill_value = Value::Null;
                }
                attributes
            }
        };
        let keys = match format {
            ZarrFormat::V3 => KeyEncoding { prefixed: true, separator: '/' },
            ZarrFormat::V2 => KeyEncoding { prefixed: false, separator: '.' },
        };
        let spec = spec.clone();
        Ok(Self {
            name,
            spec,
            pipeline,
            keys,
            shard_shape,
            fill,
            packing,
            store_all,
            data_type,
            fill_value,
            attributes,
            loses_shards: false,
            document: None,
        })
    }

    /// The plan for storing an array like its source: with the same shards, keys and codecs. Returns `None` if the source has
    /// another version, or a layout that cannot be written, or if the caller requested something else.
    fn as_stored(store: &str, path: &str, spec: &ArraySpec, format: ZarrFormat) -> Option<Self> {
        let mut document = spec.stored.document.as_deref()?.as_object()?.clone();
        let version = match format {
            ZarrFormat::V2 => 2,
            ZarrFormat::V3 => 3,
        };
        if document.get("zarr_format")?.as_u64() != Some(version) {
            return None;
        }
        document.insert("shape".to_owned(), json!(spec.grid.shape()));
        let normal = normal_path(path);
        let doc = Doc { store, key: &normal[1..] };
        let metadata = match format {
            ZarrFormat::V3 => ArrayMetadata::parse_v3(&document, doc),
            ZarrFormat::V2 => ArrayMetadata::parse_v2(&document, None, doc),
        };
        let nowhere: Arc<dyn Storage> =
            Arc::new(MemoryStorage::new(store, std::iter::empty::<(String, Vec<u8>)>()));
        let array = ZarrArray::new(&nowhere, &normal[1..], metadata.ok()?, doc).ok()?;
        let (pipeline, keys, shard_shape) = array.stored_as().ok()?;
        let schema = array.schema();
        let mut plain = spec.clone();
        plain.filters.clear();
        let mut plan = Self::new(store, path, &plain, format, None).ok()?;
        if schema.dtype != spec.dtype || schema.grid != spec.grid || !plan.packing.is_empty() {
            return None;
        }
        let own = document.get("fill_value").cloned().unwrap_or(Value::Null);
        let keeps_fill = schema.fill == spec.fill && (format == ZarrFormat::V3 || own.is_null());
        if !(keeps_fill && plan.fill_value_is_not_a_marker()) {
            document.insert("fill_value".to_owned(), plan.fill_value.clone());
        }
        (plan.pipeline, plan.keys) = (pipeline.clone(), keys);
        plan.shard_shape = shard_shape.map(Extents::from_slice);
        plan.document = Some(document);
        Some(plan)
    }

    /// Returns true if the document's fill value is not a missing-value marker.
    fn fill_value_is_not_a_marker(&self) -> bool {
        let marked = self.spec.attributes.get(attributes::FILL_VALUE).is_some();
        self.document.is_none() && (!marked || self.attributes.contains_key(attributes::FILL_VALUE))
    }

    /// The plan for adding chunks to an existing array, in its own layout.
    fn existing(array: &ZarrArray, grid: Grid) -> Result<Self> {
        let (pipeline, keys, shard_shape) = array.stored_as()?;
        let schema = array.schema();
        let mut spec = ArraySpec::new(schema.dtype.clone(), grid);
        spec.fill = schema.fill.clone();
        let fill = match &spec.fill {
            Fill::Element(element) => match element.as_fixed() {
                Some(bytes) => bytes.to_vec(),
                None => element.variable_at(0).unwrap_or_default().to_vec(),
            },
            _ => vec![0; spec.dtype.size().unwrap_or(0)],
        };
        Ok(Self {
            name: array.name().to_owned(),
            spec,
            pipeline: pipeline.clone(),
            keys,
            shard_shape: shard_shape.map(Extents::from_slice),
            fill,
            packing: Vec::new(),
            store_all: false,
            data_type: Value::Null,
            fill_value: Value::Null,
            attributes: Map::new(),
            loses_shards: false,
            document: None,
        })
    }

    pub(crate) fn v3(&self) -> Value {
        if let Some(mut document) = self.document.clone() {
            document.insert("attributes".to_owned(), json!(self.attributes));
            document.remove("dimension_names");
            if self.spec.dimensions.iter().any(Option::is_some) {
                document.insert("dimension_names".to_owned(), json!(self.spec.dimensions));
            }
            return Value::Object(document);
        }
        let own = self.codecs();
        let chunk = self.spec.grid.chunk_shape();
        let (objects, codecs) = match &self.shard_shape {
            None => (chunk, own),
            Some(shard) => {
                let sharding = json!({"name": "sharding_indexed", "configuration": {
                    "chunk_shape": chunk, "codecs": own, "index_codecs": IndexFormat::index_codecs(),
                    "index_location": "end",
                }});
                (shard.as_slice(), vec![sharding])
            }
        };
        let mut document = json!({
            "zarr_format": 3, "node_type": "array", "shape": self.spec.grid.shape(), "data_type": self.data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": objects}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": self.fill_value, "codecs": codecs, "attributes": self.attributes,
        });
        if self.spec.dimensions.iter().any(Option::is_some) {
            document["dimension_names"] = json!(self.spec.dimensions);
        }
        document["storage_transformers"] = json!([]);
        document
    }

    fn codecs(&self) -> Vec<Value> {
        let mut codecs = Vec::new();
        if !self.pipeline.axes.is_empty() {
            codecs.push(json!({"name": "transpose", "configuration": {"order": self.pipeline.axes}}));
        }
        let mut steps =
            self.pipeline.steps.iter().filter(|step| !matches!(step, Step::Narrow { .. })).peekable();
        while let Some(step) = steps.next_if(|step| step.is_array_to_array()) {
            codecs.push(step.to_v3());
        }
        let dtype = &self.spec.dtype;
        codecs.push(match dtype {
            DType::Bytes => json!({"name": "vlen-bytes", "configuration": {}}),
            fixed if !fixed.is_fixed() => json!({"name": "vlen-utf8", "configuration": {}}),
            // zarr-python expects a byte order only for numbers.
            DType::Struct(_) => json!({"name": "bytes"}),
            other if dtype::all_swaps(other).is_empty() => json!({"name": "bytes"}),
            _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
        });
        if steps.peek().is_some_and(|step| step.is_serializer()) {
            codecs.pop();
        }
        codecs.extend(steps.map(Step::to_v3));
        codecs
    }

    pub(crate) fn v2(&self) -> Value {
        if let Some(document) = &self.document {
            return Value::Object(document.clone());
        }
        let named = |step: &&Step| !matches!(step, Step::Narrow { .. });
        let mut filters: Vec<Value> = self.pipeline.steps.iter().filter(named).map(Step::to_v2).collect();
        let compressor = filters.pop().unwrap_or(Value::Null);
        if let Some(filter) = dtype::object_filter(&self.spec.dtype) {
            filters.insert(0, filter);
        }
        json!({
            "zarr_format": 2, "shape": self.spec.grid.shape(), "chunks": self.spec.grid.chunk_shape(),
            "dtype": self.data_type, "fill_value": self.fill_value, "compressor": compressor,
            "order": if self.pipeline.axes.is_empty() { "C" } else { "F" },
            "filters": if filters.is_empty() { Value::Null } else { Value::Array(filters) },
            "dimension_separator": ".",
        })
    }

    /// The attributes in document form.
    pub(crate) const fn attributes(&self) -> &Map<String, Value> {
        &self.attributes
    }

    /// The shape of a chunk in the order of the stored axes.
    pub(crate) fn stored_shape(&self) -> Extents {
        permuted(&self.pipeline.axes, self.spec.grid.chunk_shape())
    }

    /// The size of a stored element in bytes.
    pub(crate) fn item(&self) -> usize {
        if self.packing.is_empty() {
            self.spec.dtype.size().unwrap_or(0)
        } else {
            self.packing.iter().map(|(_, size)| size).sum()
        }
    }
}

/// The pipeline for the filters of a spec.
fn pipeline(spec: &ArraySpec, packed: &DType, format: ZarrFormat, doc: Doc<'_>) -> Result<Pipeline> {
    let rank = spec.grid.rank();
    let mut pipeline = Pipeline::new();
    if !packed.is_fixed() {
        pipeline.serializer = Serializer::Variable;
    } else if cfg!(target_endian = "big") {
        pipeline.serializer = Serializer::Bytes { swaps: dtype::all_swaps(packed) };
    }
    for filter in &spec.filters {
        if filter.name == "transpose" {
            let order = filter.parameters.get("order").and_then(Value::as_array);
            let axes: Option<Vec<u8>> = order.and_then(|order| {
                order.iter().map(|axis| axis.as_u64().and_then(|axis| u8::try_from(axis).ok())).collect()
            });
            let mut sorted = axes.clone().unwrap_or_default();
            sorted.sort_unstable();
            let reversed = axes.as_ref().is_some_and(|axes| axes.iter().rev().copied().eq(0..rank as u8));
            let possible = packed.is_fixed() && (format == ZarrFormat::V3 || reversed);
            match axes {
                Some(axes) if sorted.iter().copied().eq(0..rank as u8) && possible => {
                    pipeline.axes = compose(&pipeline.axes, &axes);
                }
                _ => return Err(doc.unsupported(format!("writing the filter {}", filter.to_json()))),
            }
            continue;
        }
        let narrow = match pipeline.steps.first() {
            Some(Step::Narrow { kind, .. }) => Some(*kind),
            _ => None,
        };
        let size = packed.size().unwrap_or(1);
        let item = narrow.map_or(size, |kind| size / kind.decoded_size() * kind.stored_size());
        let shape = permuted(&pipeline.axes, spec.grid.chunk_shape());
        let subject = Subject { item, dtype: packed, narrow, shape: &shape };
        let step = codec::parse_shown(filter, subject, doc)?;
        let first = pipeline.steps.iter().all(|own| matches!(own, Step::Narrow { .. }));
        let array_to_array = format == ZarrFormat::V3 && step.is_array_to_array();
        let out_of_place = ((step.is_serializer() || array_to_array) && !first)
            || (matches!(step, Step::Narrow { .. }) && !pipeline.steps.is_empty());
        if !step.is_writable() || out_of_place {
            return Err(doc.unsupported(format!("writing the filter {:?}", filter.name)));
        }
        pipeline.steps.push(step);
    }
    Ok(pipeline)
}

/// The data type of packed elements.
fn data_type_of(packed: &DType, format: ZarrFormat) -> Option<Value> {
    match format {
        ZarrFormat::V3 => dtype::to_v3(packed),
        ZarrFormat::V2 => dtype::to_v2(packed),
    }
}

/// Returns true if there is a data type for these elements.
pub(crate) fn has_type(dtype: &DType, format: ZarrFormat) -> bool {
    data_type_of(&packed(dtype).0, format).is_some()
}

/// The type without gaps, and the runs of an element's bytes to keep. There are no runs if there are no gaps.
fn packed(dtype: &DType) -> (DType, Vec<(usize, usize)>) {
    let mut runs = Vec::new();
    let packed = pack_type(dtype, 0, &mut runs);
    let size = dtype.size().unwrap_or(0);
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for (offset, length) in runs {
        match merged.last_mut() {
            Some(last) if last.0 + last.1 == offset => last.1 += length,
            _ => merged.push((offset, length)),
        }
    }
    let whole = !dtype.is_fixed() || merged == [(0, size)];
    (packed, if whole { Vec::new() } else { merged })
}

fn pack_type(dtype: &DType, offset: usize, runs: &mut Vec<(usize, usize)>) -> DType {
    match dtype {
        DType::Struct(fields) => {
            let members = fields
                .members
                .iter()
                .map(|member| (member.name.clone(), pack_type(&member.dtype, offset + member.offset, runs)));
            StructType::packed(members.collect::<Vec<_>>()).into()
        }
        other => {
            runs.push((offset, other.size().unwrap_or(0)));
            other.clone()
        }
    }
}

/// Packs elements: removes their gaps.
pub(crate) fn pack(bytes: &[u8], dtype: &DType, runs: &[(usize, usize)]) -> Vec<u8> {
    if runs.is_empty() {
        return bytes.to_vec();
    }
    let mut out = Vec::with_capacity(bytes.len());
    for element in bytes.chunks_exact(dtype.size().unwrap_or(1).max(1)) {
        for (offset, length) in runs {
            out.extend_from_slice(element.get(*offset..offset + length).unwrap_or_default());
        }
    }
    out
}
