//! The tree of nodes: groups and arrays, from their own documents or from consolidated ones.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{
    Attributes, Depth, Error, Labels, LocalStorage, Node, ObjectRange, Report, Result, Storage, Store,
    normal_path,
};
use serde_json::{Map, Value};

use crate::array::ZarrArray;
use crate::attributes;
use crate::json::Doc;
use crate::metadata::{self, ArrayMetadata};
use crate::{stale, verify};

/// An open Zarr store, v2 or v3.
#[derive(Debug)]
pub struct ZarrStore {
    directory: Arc<dyn Storage>,
    /// The consolidated documents, if any, by the node's path without its leading slash.
    consolidated: Option<BTreeMap<String, Document>>,
    /// The version of the root.
    variant: &'static str,
    /// The name of the format, which differs for folders and archives.
    format: &'static str,
}

/// The metadata of one node.
#[derive(Debug, Clone)]
pub(crate) enum Document {
    /// A `zarr.json` document.
    V3(Map<String, Value>),
    /// A `.zarray` document, and the node's `.zattrs`.
    V2Array(Map<String, Value>, Option<Value>),
    /// The `.zattrs` of a node with a `.zgroup` document.
    V2Group(Option<Value>),
}

/// Returns true if the root of this directory is a Zarr node.
///
/// # Errors
///
/// [`Io`](Error::Io) if the directory cannot be read.
pub fn probe(directory: &dyn Storage) -> Result<bool> {
    let remembered = remembered_v2(directory)?;
    if remembered.is_some() {
        return Ok(true);
    }
    if directory.is_remote() && directory.size("zarr.json")?.is_none() {
        let version_2 = [".zgroup", ".zarray", ".zattrs", ".zmetadata"];
        directory.prefetch(&version_2.map(ObjectRange::whole));
    }
    for name in ["zarr.json", ".zarray", ".zgroup"] {
        if directory.size(name)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A document of version 2 at the root from which the store can be opened without any other, if an earlier run found it and it still
/// exists: the consolidated ones, or that of an array.
fn remembered_v2(directory: &dyn Storage) -> Result<Option<&'static str>> {
    const NEEDED: [&[&str]; 2] = [&[".zmetadata"], &[".zarray", ".zattrs"]];
    let Some(needed) = NEEDED.into_iter().find(|keys| directory.is_remote() && directory.remembers(keys[0]))
    else {
        return Ok(None);
    };
    // The store may have become one of version 3.
    let keys: Vec<_> = ["zarr.json"].iter().chain(needed).map(|key| ObjectRange::whole(key)).collect();
    directory.prefetch(&keys);
    let is_same = directory.size("zarr.json")?.is_none() && directory.size(needed[0])?.is_some();
    Ok(is_same.then_some(needed[0]))
}

/// Opens the store in this directory.
///
/// # Errors
///
/// [`NotFound`](Error::NotFound) if there is none, [`Corrupt`](Error::Corrupt) if its root cannot be read.
pub fn open(directory: Arc<dyn Storage>) -> Result<ZarrStore> {
    open_with(directory, true)
}

/// Opens the store in this directory. Unless `consolidated` is set, reads each node's own document even if the root
/// has consolidated ones.
///
/// # Errors
///
/// Like [`open`].
pub fn open_with(directory: Arc<dyn Storage>, consolidated: bool) -> Result<ZarrStore> {
    let mut store = ZarrStore { directory, consolidated: None, variant: "zarr3", format: "zarr" };
    if consolidated
        && remembered_v2(&*store.directory)? == Some(".zmetadata")
        && let Some(all) = store.consolidated_v2()?
    {
        return Ok(ZarrStore { consolidated: Some(all), variant: "zarr2", ..store });
    }
    let root = store.document("")?;
    let Some(root) = root else {
        return Err(Error::not_found(Arc::clone(store.directory.name()), "zarr.json, .zgroup or .zarray"));
    };
    if !matches!(root, Document::V3(_)) {
        store.variant = "zarr2";
    }
    store.consolidated = match root {
        _ if !consolidated => None,
        Document::V3(root) => consolidated_v3(root),
        Document::V2Group(_) => store.consolidated_v2()?,
        Document::V2Array(..) => None,
    };
    Ok(store)
}

/// Opens the store in this folder.
///
/// # Errors
///
/// Like [`open`].
pub fn open_path(path: impl AsRef<Path>) -> Result<ZarrStore> {
    open(Arc::new(LocalStorage::new(path.as_ref())))
}

fn consolidated_v3(mut root: Map<String, Value>) -> Option<BTreeMap<String, Document>> {
    let mut gathered = root.shift_remove("consolidated_metadata")?;
    if gathered.get("kind").and_then(Value::as_str) != Some("inline") {
        return None;
    }
    let Some(Value::Object(documents)) = gathered.get_mut("metadata").map(Value::take) else { return None };
    let mut all = BTreeMap::from([(String::new(), Document::V3(root))]);
    for (path, document) in documents {
        if let Value::Object(document) = document {
            all.insert(normal_path(&path)[1..].to_owned(), Document::V3(document));
        }
    }
    Some(all)
}

impl ZarrStore {
    /// The storage from which it was opened.
    #[must_use]
    pub fn directory(&self) -> &Arc<dyn Storage> {
        &self.directory
    }

    /// The array at a path, with its Zarr-specific details.
    ///
    /// # Errors
    ///
    /// [`NotFound`](Error::NotFound) if there is no array; otherwise any error in its metadata.
    pub fn array(&self, path: &str) -> Result<ZarrArray> {
        let path = normal_path(path);
        let key = &path[1..];
        match self.document(key)? {
            Some(document) if document.is_array() => self.open_array(key, &document),
            _ => Err(Error::not_found(Arc::clone(self.directory.name()), format!("the array {path}"))),
        }
    }

    /// The attributes of the group at a path; `None` if there is no group.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if its document cannot be read.
    pub fn group(&self, path: &str) -> Result<Option<Attributes>> {
        let path = normal_path(path);
        match self.document(&path[1..])? {
            Some(document) if !document.is_array() => self.group_attributes(&path[1..], &document).map(Some),
            _ => Ok(None),
        }
    }

    fn open_array(&self, key: &str, document: &Document) -> Result<ZarrArray> {
        let (name, store) = (document.name(key), Arc::clone(self.directory.name()));
        let doc = Doc { store: &store, key: &name };
        let metadata = match document {
            Document::V3(object) => ArrayMetadata::parse_v3(object, doc)?,
            Document::V2Array(object, attributes) => {
                ArrayMetadata::parse_v2(object, attributes.as_ref(), doc)?
            }
            Document::V2Group(_) => return Err(doc.corrupt("a group, expected an array")),
        };
        let mut array = ZarrArray::new(&self.directory, key, metadata, doc)?;
        self.find_labels(key, array.schema_mut());
        if let Document::V3(object) | Document::V2Array(object, _) = document {
            let mut own = object.clone();
            own.remove("attributes");
            array.schema_mut().stored.document = Some(Arc::new(Value::Object(own)));
        }
        Ok(array)
    }

    /// By xarray's convention, a one-dimensional array named like a dimension, in the same group or the nearest above,
    /// contains the dimension's labels.
    fn find_labels(&self, key: &str, schema: &mut hyperslab_core::ArraySchema) {
        let groups: Vec<&str> = groups_above(key).collect();
        let is_name = |name: &&str| !name.is_empty() && !name.contains('/');
        let names: Vec<Option<String>> =
            schema.dimensions.iter().map(|name| name.as_deref().filter(is_name).map(str::to_owned)).collect();
        // Consolidated documents list all coordinates. Without them, all are requested in one round. On local storage, one beside
        // the array is also found if it was added later.
        let is_candidate = |key: &String| {
            let is_beside =
                !self.directory.is_remote() && groups_above(key).next() == groups.first().copied();
            is_beside || self.consolidated.as_ref().is_none_or(|all| all.contains_key(key))
        };
        let candidates = |name: &str| {
            let keys = groups.iter().map(|group| join(group, name));
            keys.filter(is_candidate).collect::<Vec<_>>()
        };
        self.prefetch_documents(names.iter().flatten().flat_map(|name| candidates(name)));
        for (axis, name) in names.iter().enumerate() {
            let Some(name) = name else { continue };
            // An error in a coordinate must not affect this array.
            let shape = |key: &str| match self.document(key) {
                Ok(Some(Document::V3(object) | Document::V2Array(object, _))) => object.get("shape").cloned(),
                _ => None,
            };
            let found = candidates(name).into_iter().find_map(|key| Some((shape(&key)?, key)));
            let fits = |shape: &Value| {
                shape.as_array().is_some_and(|shape| {
                    matches!(shape.as_slice(), [extent] if extent.as_u64() == Some(schema.grid.shape()[axis]))
                })
            };
            if let Some((_, key)) = found.filter(|(shape, _)| fits(shape)) {
                schema.labels[axis] = Labels::Node(format!("/{key}"));
            }
        }
    }

    fn group_attributes(&self, key: &str, document: &Document) -> Result<Attributes> {
        let name = document.name(key);
        let doc = Doc { store: self.directory.name(), key: &name };
        match document {
            Document::V3(object) => {
                const KNOWN: [&str; 4] = ["zarr_format", "node_type", "attributes", "consolidated_metadata"];
                metadata::refuse_unknown(object, &KNOWN, doc)?;
                attributes::of_group(object.get("attributes"), doc)
            }
            Document::V2Array(_, beside) | Document::V2Group(beside) => {
                attributes::of_group(beside.as_ref(), doc)
            }
        }
    }

    /// The document of the node with this key; `None` if there is no node.
    pub(crate) fn document(&self, key: &str) -> Result<Option<Document>> {
        if let Some(document) = self.consolidated.as_ref().and_then(|all| all.get(key)) {
            return Ok(Some(document.clone()));
        }
        self.own_document(key)
    }

    /// Renames the format, for a format that is built on Zarr.
    #[must_use]
    pub fn named_as(self, format: &'static str) -> Self {
        self.named(format)
    }

    pub(crate) fn named(mut self, format: &'static str) -> Self {
        if format == "zarr-zip" {
            self.variant = if self.variant == "zarr2" { "zarr2-zip" } else { "zarr3-zip" };
        }
        self.format = format;
        self
    }

    /// The names of documents to look for. On remote storage, only those of the root's version, except at the root
    /// itself, because each lookup is a round trip.
    fn document_names(&self, key: &str) -> &'static [&'static str] {
        match self.variant.trim_end_matches("-zip") {
            _ if key.is_empty() || !self.directory.is_remote() => {
                &["zarr.json", ".zarray", ".zattrs", ".zgroup"]
            }
            "zarr3" => &["zarr.json"],
            _ => &[".zarray", ".zattrs", ".zgroup"],
        }
    }

    /// Requests the documents of these nodes together, if that saves round trips.
    fn prefetch_documents(&self, nodes: impl Iterator<Item = String>) {
        if !self.directory.is_remote() {
            return;
        }
        let missing = |key: &String| self.consolidated.as_ref().is_none_or(|all| !all.contains_key(key));
        let names = |key: String| self.document_names(&key).iter().map(move |name| join(&key, name));
        let keys: Vec<String> = nodes.filter(missing).flat_map(names).collect();
        self.directory.prefetch(&keys.iter().map(|key| ObjectRange::whole(key)).collect::<Vec<_>>());
    }

    /// The document stored with the node itself.
    pub(crate) fn own_document(&self, key: &str) -> Result<Option<Document>> {
        let names = self.document_names(key);
        if self.directory.is_remote() && names.len() > 1 && !key.is_empty() {
            self.prefetch_documents([key.to_owned()].into_iter());
        }
        if names.contains(&"zarr.json")
            && let Some(value) = self.json(key, "zarr.json")?
        {
            let name = join(key, "zarr.json");
            let doc = Doc { store: self.directory.name(), key: &name };
            let Value::Object(object) = value else { return Err(doc.corrupt("not an object")) };
            let format = object.get("zarr_format").and_then(Value::as_u64);
            if format != Some(3) {
                return Err(doc.unsupported(format!("zarr_format {:?}", object.get("zarr_format"))));
            }
            return match object.get("node_type").and_then(Value::as_str) {
                Some("array" | "group") => Ok(Some(Document::V3(object))),
                other => Err(doc.corrupt(format!("node_type {other:?}"))),
            };
        }
        if !names.contains(&".zarray") {
            return Ok(None);
        }
        if let Some(value) = self.json(key, ".zarray")? {
            let name = join(key, ".zarray");
            let doc = Doc { store: self.directory.name(), key: &name };
            let Value::Object(object) = value else { return Err(doc.corrupt("not an object")) };
            return Ok(Some(Document::V2Array(object, self.json(key, ".zattrs")?)));
        }
        if self.directory.size(&join(key, ".zgroup"))?.is_some() {
            return Ok(Some(Document::V2Group(self.json(key, ".zattrs")?)));
        }
        Ok(None)
    }

    pub(crate) fn json(&self, key: &str, name: &str) -> Result<Option<Value>> {
        let name = join(key, name);
        let Some(bytes) = self.directory.read(&name)? else { return Ok(None) };
        Doc { store: self.directory.name(), key: &name }.parse(&bytes).map(Some)
    }

    fn consolidated_v2(&self) -> Result<Option<BTreeMap<String, Document>>> {
        // Ignore a damaged `.zmetadata`: each node also has its own document.
        let Ok(Some(Value::Object(mut gathered))) = self.json("", ".zmetadata") else { return Ok(None) };
        let Some(Value::Object(mut documents)) = gathered.get_mut("metadata").map(Value::take) else {
            return Ok(None);
        };
        let mut all = BTreeMap::new();
        let keys: Vec<String> = documents.keys().cloned().collect();
        for name in keys {
            let (key, last) = name.rsplit_once('/').unwrap_or(("", &name));
            let beside = join(key, ".zattrs");
            let document = match last {
                ".zarray" => match documents.get_mut(&name).map(Value::take) {
                    Some(Value::Object(object)) => Document::V2Array(object, documents.get(&beside).cloned()),
                    _ => continue,
                },
                ".zgroup" => Document::V2Group(documents.get(&beside).cloned()),
                _ => continue,
            };
            all.insert(key.to_owned(), document);
        }
        Ok(Some(all).filter(|all| all.contains_key("")))
    }

    /// The consolidated documents, if the root has them.
    pub(crate) const fn gathered(&self) -> Option<&BTreeMap<String, Document>> {
        self.consolidated.as_ref()
    }

    pub(crate) fn has_document(&self, key: &str) -> Result<bool> {
        for name in self.document_names(key).iter().filter(|name| **name != ".zattrs") {
            if self.directory.size(&join(key, name))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Document {
    pub(crate) fn is_array(&self) -> bool {
        match self {
            Self::V3(object) => object.get("node_type").and_then(Value::as_str) == Some("array"),
            Self::V2Array(..) => true,
            Self::V2Group(_) => false,
        }
    }

    fn name(&self, key: &str) -> String {
        join(
            key,
            match self {
                Self::V3(_) => "zarr.json",
                Self::V2Array(..) => ".zarray",
                Self::V2Group(_) => ".zattrs",
            },
        )
    }
}

/// The keys of the groups that contain a node, from its own group to the root.
fn groups_above(key: &str) -> impl Iterator<Item = &str> {
    let above = |key: &str| (!key.is_empty()).then(|| key.rfind('/').unwrap_or(0));
    std::iter::successors(above(key).map(|end| &key[..end]), move |group| above(group).map(|end| &key[..end]))
}

/// Joins a node's key and a name.
pub(crate) fn join(key: &str, name: &str) -> String {
    if key.is_empty() { name.to_owned() } else { format!("{key}/{name}") }
}

impl Store for ZarrStore {
    fn format(&self) -> &'static str {
        self.format
    }

    fn variant(&self) -> Option<&'static str> {
        Some(self.variant)
    }

    fn name(&self) -> &Arc<str> {
        self.directory.name()
    }

    fn is_remote(&self) -> bool {
        self.directory.is_remote()
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        let path = normal_path(path);
        let key = &path[1..];
        let Some(document) = self.document(key)? else {
            return Err(Error::not_found(Arc::clone(self.name()), format!("the node {path}")));
        };
        if document.is_array() {
            return Ok(Vec::new());
        }
        if let Some(all) = &self.consolidated {
            let prefix = if key.is_empty() { String::new() } else { format!("{key}/") };
            let below = all.range(prefix.clone()..).map_while(|(own, _)| own.strip_prefix(&prefix));
            return Ok(below
                .filter(|name| !name.is_empty() && !name.contains('/'))
                .map(str::to_owned)
                .collect());
        }
        let mut names = Vec::new();
        let entries = self.directory.list(key)?;
        let below = entries.iter().filter(|entry| entry.is_directory);
        self.prefetch_documents(below.map(|entry| join(key, &entry.name)));
        for entry in entries {
            if entry.is_directory && self.has_document(&join(key, &entry.name))? {
                names.push(entry.name);
            }
        }
        Ok(names)
    }

    fn node(&self, path: &str) -> Result<Node> {
        let path = normal_path(path);
        let key = &path[1..];
        match self.document(key)? {
            None => Err(Error::not_found(Arc::clone(self.name()), format!("the node {path}"))),
            Some(document) if document.is_array() => {
                Ok(Node::Array(Arc::new(self.open_array(key, &document)?)))
            }
            Some(document) => self.group_attributes(key, &document).map(Node::Group),
        }
    }

    fn verify(&self, depth: Depth, report: &mut Report) -> Result<()> {
        verify::node(self, "/", depth, report, 0);
        stale::check(self, report);
        Ok(())
    }
}
