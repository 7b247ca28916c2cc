//! Extends existing stores: longer arrays, new nodes, attributes.
//!
//! Everything is first written beside the store. At commit, objects and new nodes move into place, where they are
//! invisible because no document refers to them. Chunks that were clipped by the old edge are replaced by chunks with
//! the same cells and more. Then each document is replaced by a rename, the consolidated ones of the root last. If
//! the process is killed at any point, each array is in its old or its new state. Objects are synced before the
//! documents, so the same holds after a power cut.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::storage::{StagedChange, StoreLock};
use hyperslab_core::{
    Array, ArraySink, ArraySpec, Attributes, ChunkCoord, Error, Grid, Result, Sink, Storage,
};
use serde_json::{Map, Value};

use super::array::ZarrArraySink;
use super::{ArrayPlan, NODE_NAMES, WriteOptions, ZarrFormat, ZarrSink};
use crate::array::ZarrArray;
use crate::attributes;
use crate::store::{Document, ZarrStore, join, open_path};

/// An existing store that is being extended. Nothing changes before [`commit`](Sink::commit).
#[derive(Debug)]
pub struct ZarrAppend {
    old: ZarrStore,
    /// The sink that builds the new objects and nodes, under their final keys.
    new: ZarrSink,
    /// Changed documents of existing nodes, by key.
    changed: BTreeMap<String, Value>,
    /// The same documents as originally read; `None` for one that did not exist.
    read: BTreeMap<String, Option<Value>>,
    /// Dropped last, so that it is held until everything is published. For remote storage, the caller ensures that
    /// there is one writer.
    _lock: Option<StoreLock>,
}

/// The old state of an array that grows.
#[derive(Debug)]
pub(crate) struct Before {
    array: ZarrArray,
    grid: Grid,
    storage: Arc<dyn Storage>,
}

/// Refuses to change the missing-value marker of a Zarr v2 array: it is the fill value, which cells that were never written hold too.
fn check_marker(document: &Document, key: &str) -> Result<()> {
    match document {
        Document::V2Array(document, _) if document.get("fill_value").is_some_and(|fill| !fill.is_null()) => {
            Err(Error::invalid(format!(
                "/{key}: in Zarr v2, _FillValue is the fill value, which cells that were never written hold; convert to zarr3 to change it"
            )))
        }
        _ => Ok(()),
    }
}

impl Before {
    /// The shape of the array.
    pub(crate) fn shape(&self) -> &[u64] {
        self.array.schema().shape()
    }

    /// Returns true if this chunk belongs to the old array and was not clipped by its edge.
    pub(crate) fn is_unchanged(&self, chunk: &[u64]) -> bool {
        let old = &self.array.schema().grid;
        old.contains(chunk) && old.region(chunk) == self.grid.region(chunk)
    }

    /// The stored bytes of a chunk.
    pub(crate) fn stored(&self, chunk: &ChunkCoord) -> Result<Option<Bytes>> {
        let located = self.array.locate(std::slice::from_ref(chunk))?;
        let Some(Some(reference)) = located.first() else { return Ok(None) };
        let Some(span) = reference.spans().next() else { return Ok(None) };
        self.array.blob(&span.blob)?.read_at(span.offset, span.length).map(Some)
    }

    /// Returns true if an object with this chunk's name exists. A killed writer may also have left one outside the
    /// old array.
    pub(crate) fn holds(&self, chunk: &[u64]) -> bool {
        // If this is unknown, overwrite it.
        self.storage.stat(&self.array.object_key(chunk)).map_or(true, |found| found.is_some())
    }
}

/// Returns true if a folder is a group, which makes its content part of the same store.
fn is_group(folder: &Path) -> bool {
    ["zarr.json", ".zgroup"].iter().any(|name| folder.join(name).is_file())
}

impl ZarrAppend {
    /// Opens the store at `target`. The options determine the shards of new arrays.
    ///
    /// # Errors
    ///
    /// Like [`open_path`]; [`Io`](Error::Io) if its folder cannot be written.
    pub fn open(target: impl AsRef<Path>, shard_shape: Option<Vec<u64>>) -> Result<Self> {
        let target = target.as_ref();
        // Lock before reading, so that the read documents stay current.
        let lock = StoreLock::exclusive(target, is_group)?;
        let old = open_path(target)?;
        let name = target.display().to_string().into();
        Self::over(old, StagedChange::open(target)?, name, shard_shape, Some(lock))
    }

    /// Like [`open`](Self::open), for a store that is not on this machine. Nothing else may change the store
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// Like [`open`](crate::open).
    pub fn elsewhere(
        storage: Arc<dyn Storage>,
        change: StagedChange,
        shard_shape: Option<Vec<u64>>,
    ) -> Result<Self> {
        let name = Arc::clone(storage.name());
        Self::over(crate::open(storage)?, change, name, shard_shape, None)
    }

    fn over(
        old: ZarrStore,
        change: StagedChange,
        name: Arc<str>,
        shard_shape: Option<Vec<u64>>,
        lock: Option<StoreLock>,
    ) -> Result<Self> {
        let format = match old.own_document("")? {
            Some(Document::V3(_)) | None => ZarrFormat::V3,
            Some(_) => ZarrFormat::V2,
        };
        let options = WriteOptions { format, shard_shape, ..WriteOptions::default() };
        let new = ZarrSink::change(change, name, options);
        let (changed, read) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { old, new, changed, read, _lock: lock })
    }

    fn missing(&self, path: &str) -> Error {
        Error::not_found(Arc::clone(&self.new.name), path)
    }

    /// The current document with this key, for modification.
    fn document(&mut self, key: String) -> Result<&mut Map<String, Value>> {
        if !self.changed.contains_key(&key) {
            let read = self.old.json("", &key)?;
            self.read.insert(key.clone(), read.clone());
            self.changed.insert(key.clone(), read.unwrap_or_else(|| Value::Object(Map::new())));
        }
        let corrupt = Error::invalid(format!("{}/{key} is not an object", self.new.name));
        self.changed.get_mut(&key).and_then(Value::as_object_mut).ok_or(corrupt)
    }

    /// Sets attributes of an existing node.
    fn set(&mut self, key: &str, attributes: &Attributes) -> Result<()> {
        let Some(document) = self.old.own_document(key)? else {
            return Err(self.missing(&format!("/{key}")));
        };
        let is_array = document.is_array();
        if let Some(marker) = attributes.get(attributes::FILL_VALUE) {
            let old = self.old.array(&format!("/{key}")).ok();
            let old = old.as_ref().and_then(|array| array.schema().attributes.get(attributes::FILL_VALUE));
            if old.is_none_or(|old| old.to_json() != marker.to_json()) {
                check_marker(&document, key)?;
            }
        }
        let mut new = attributes::to_json(attributes);
        if let (Document::V3(_), true) = (&document, is_array) {
            new = attributes::to_v3(attributes, &self.old.array(&format!("/{key}"))?.schema().dtype);
        }
        let own = match document {
            Document::V3(_) => {
                let document = self.document(join(key, "zarr.json"))?;
                let own = document.entry("attributes").or_insert_with(|| Value::Object(Map::new()));
                own.as_object_mut()
                    .ok_or_else(|| Error::invalid(format!("/{key}: attributes are not an object")))?
            }
            _ => self.document(join(key, ".zattrs"))?,
        };
        own.extend(new);
        Ok(())
    }

    /// Deletes attributes of an existing node.
    fn unset(&mut self, key: &str, names: &[&str]) -> Result<()> {
        let Some(document) = self.old.own_document(key)? else {
            return Err(self.missing(&format!("/{key}")));
        };
        if names.contains(&attributes::FILL_VALUE) {
            check_marker(&document, key)?;
        }
        let own = match document {
            Document::V3(_) => {
                let document = self.document(join(key, "zarr.json"))?;
                document.get_mut("attributes").and_then(Value::as_object_mut)
            }
            _ => Some(self.document(join(key, ".zattrs"))?),
        };
        let held = |name: &&&str| own.as_ref().is_some_and(|own| own.contains_key(**name));
        if let Some(name) = names.iter().find(|name| !held(name)) {
            // The attribute is derived from another part of the document, such as the fill value.
            return Err(Error::unsupported(format!("/{key}"), format!("deleting {name:?} in place")));
        }
        if let Some(own) = own {
            own.retain(|name, _| !names.contains(&name.as_str()));
        }
        Ok(())
    }

    /// Fails if an ancestor of a new node is an array.
    fn check_above(&self, key: &str) -> Result<()> {
        for (at, _) in key.match_indices('/').chain([(0, "")]) {
            if !key.is_empty()
                && self.old.own_document(&key[..at])?.is_some_and(|document| document.is_array())
            {
                return Err(Error::invalid(format!("{}: there is an array above /{key}", self.new.name)));
            }
        }
        Ok(())
    }

    /// Updates the consolidated documents of the root with new and changed documents.
    fn gather(&mut self) -> Result<()> {
        let v3 = self.new.options.format == ZarrFormat::V3;
        let key = if v3 { "zarr.json" } else { ".zmetadata" };
        let gathered = self.old.json("", key)?.unwrap_or(Value::Null);
        let gathered = if v3 { gathered.get("consolidated_metadata").cloned() } else { Some(gathered) };
        if gathered.and_then(|gathered| gathered.get("metadata").map(Value::is_object)) != Some(true) {
            return Ok(());
        }
        let mut all: Vec<(String, Value)> =
            self.changed.iter().map(|(key, document)| (key.clone(), document.clone())).collect();
        let new: Vec<String> = self.new.nodes.keys().cloned().collect();
        for node in new {
            all.extend(self.new.documents(&node)?);
        }
        let root = self.document(key.to_owned())?;
        let metadata = if v3 { root.get_mut("consolidated_metadata") } else { None };
        let metadata = match metadata {
            Some(gathered) => gathered.get_mut("metadata"),
            None => root.get_mut("metadata"),
        };
        let Some(metadata) = metadata.and_then(Value::as_object_mut) else { return Ok(()) };
        for (key, document) in all {
            match key.strip_suffix("/zarr.json") {
                Some(node) if v3 => metadata.insert(node.to_owned(), document),
                None if !v3 => metadata.insert(key, document),
                _ => None,
            };
        }
        Ok(())
    }

    /// Fails if the documents to change differ from those that were read. Locks only protect against writers that use
    /// them, on file systems that support them.
    fn check_unchanged(&self) -> Result<()> {
        for (key, read) in &self.read {
            if self.old.json("", key)? != *read {
                return Err(Error::invalid(format!(
                    "{}/{key} was changed by another writer meanwhile; nothing was changed, try again",
                    self.new.name
                )));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        for array in self.new.arrays.drain(..) {
            array.finish()?;
        }
        for key in self.new.missing() {
            if self.old.own_document(&key)?.is_none() && self.new.nodes.insert(key.clone(), false).is_none() {
                self.new.write_group(&key, &Map::new())?;
            }
        }
        self.gather()?;
        self.check_unchanged()?;
        let (root, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.changed).into_iter().partition(|(key, _)| !key.contains('/'));
        let mut last = Vec::new();
        for (key, document) in others.into_iter().chain(root) {
            self.new.document(&key, &document)?;
            last.push(key);
        }
        self.new.publish(&last)
    }
}

impl Sink for ZarrAppend {
    /// Creates a group. An existing group gets these attributes and keeps its others.
    fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let key = NODE_NAMES.key(&self.new.name, path)?;
        match self.old.own_document(&key)? {
            Some(document) if document.is_array() => {
                Err(Error::invalid(format!("{}: {path} exists and is not a group", self.new.name)))
            }
            Some(_) if attributes.is_empty() => Ok(()),
            Some(_) => self.set(&key, attributes),
            None => self.check_above(&key).and_then(|()| self.new.group(path, attributes)),
        }
    }

    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        let key = NODE_NAMES.key(&self.new.name, path)?;
        if self.old.own_document(&key)?.is_some() {
            return Err(Error::invalid(format!("{}: {path} already exists", self.new.name)));
        }
        self.check_above(&key)?;
        self.new.array(path, spec)
    }

    fn grow(&mut self, path: &str, shape: &[u64]) -> Result<Arc<dyn ArraySink>> {
        let key = NODE_NAMES.key(&self.new.name, path)?;
        let array = self.old.array(path)?;
        let old = &array.schema().grid;
        if shape.len() != old.rank() || shape.iter().zip(old.shape()).any(|(new, old)| new < old) {
            return Err(hyperslab_core::cannot_grow(path, old.shape(), shape));
        }
        let grid = Grid::new(shape, old.chunk_shape())?;
        let plan = ArrayPlan::existing(&array, grid.clone())?;
        let name = match self.old.own_document(&key)? {
            Some(Document::V3(_)) => "zarr.json",
            Some(_) => ".zarray",
            None => return Err(self.missing(path)),
        };
        let (shape, old_shape) = (Value::from(shape.to_vec()), Value::from(old.shape().to_vec()));
        let document = self.document(join(&key, name))?;
        if document.get("shape") != Some(&old_shape) {
            return Err(Error::invalid(format!(
                "{path} is already being extended, or was since it was opened"
            )));
        }
        document.insert("shape".to_owned(), shape);
        let before = Arc::new(Before { array, grid, storage: Arc::clone(self.old.directory()) });
        let sink = Arc::new(ZarrArraySink::new(plan, self.new.stage.writer().below(&key)?, Some(before)));
        self.new.arrays.push(Arc::clone(&sink));
        Ok(sink)
    }

    fn attributes(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let key = NODE_NAMES.key(&self.new.name, path)?;
        if self.new.has(&key) {
            return self.new.attributes(path, attributes);
        }
        self.set(&key, attributes)
    }

    fn delete_attributes(&mut self, path: &str, names: &[&str]) -> Result<()> {
        let key = NODE_NAMES.key(&self.new.name, path)?;
        self.unset(&key, names)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.finish()
    }
}
