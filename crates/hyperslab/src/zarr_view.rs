//! A view of any store as a Zarr store, of v3 or v2: documents and chunks, by their Zarr keys.
//!
//! The nodes are those that a conversion to Zarr creates: without the source's bookkeeping, and in [forms](crate::forms) where
//! Zarr lacks a type. A chunk is passed on as stored if Zarr readers have its codecs, and decoded otherwise. Tables and geometries
//! appear as groups without members. Consolidated metadata name everything that is left out, and why.

mod nodes;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyperslab_core::{
    Array, ChunkCoord, Error, Node, Positions, Progress, Result, child_path, is_child_path, normal_path,
};
use hyperslab_zarr::{ArrayView, group_document};
use serde_json::{Map, Value, json};

pub use hyperslab_zarr::CodecSet;

use self::nodes::FormedNodes;
use crate::{ArrayReader, Format, OpenStore};

/// Groups with more nodes below them get no consolidated metadata; readers then open each node.
const MOST_CONSOLIDATED: usize = 10_000;

/// The maximum number of nodes visited to find them.
const MOST_VISITED: usize = 20_000;

/// A store of any format, accessed by the keys of a Zarr v3 store.
#[derive(Debug)]
pub struct ZarrView {
    nodes: FormedNodes,
    codecs: CodecSet,
    arrays: Mutex<HashMap<String, Arc<ViewedArray>>>,
}

#[derive(Debug)]
struct ViewedArray {
    reader: ArrayReader,
    view: ArrayView,
}

/// The object stored under a key.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ZarrObject {
    /// A `zarr.json`.
    Document(Value),
    /// A chunk.
    Chunk {
        /// Its bytes.
        bytes: Bytes,
        /// Whether they are the store's own bytes, rather than decoded and encoded again.
        stored: bool,
    },
}

impl ZarrView {
    /// A view of a store for readers that support these codecs.
    #[must_use]
    pub fn new(store: OpenStore, codecs: CodecSet) -> Self {
        let variant = if codecs == CodecSet::V2 { "zarr2" } else { "zarr3" };
        Self { nodes: FormedNodes::new(store, Format::ZARR, variant), codecs, arrays: Mutex::default() }
    }

    /// The object under a key: `zarr.json`, `t/zarr.json`, `t/c/0/3`; in v2 `.zmetadata`, `t/.zarray`, `t/0.3`. `None` if it
    /// does not exist; a missing chunk holds the fill value.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](hyperslab_core::Error::Unsupported) for an array that Zarr cannot hold; otherwise any error from the
    /// store.
    pub fn object(&self, key: &str, progress: &Arc<Progress>) -> Result<Option<ZarrObject>> {
        let (parent, name) = key.rsplit_once('/').unwrap_or(("", key));
        if self.codecs == CodecSet::V2 {
            return self.object_v2(parent, name, progress);
        }
        if name == "zarr.json" {
            return Ok(self.document(&normal_path(parent), progress)?.map(ZarrObject::Document));
        }
        let Some((path, chunk)) = split_chunk_key(key) else { return Ok(None) };
        let Some(viewed) = self.array(&normal_path(path))? else { return Ok(None) };
        let Some(coord) = viewed.view.chunk_of_key(chunk) else { return Ok(None) };
        viewed.chunk(&coord, progress)
    }

    fn object_v2(&self, parent: &str, name: &str, progress: &Arc<Progress>) -> Result<Option<ZarrObject>> {
        let path = normal_path(parent);
        if name == ".zmetadata" {
            let Some(node) = self.nodes.node(&path)? else { return Ok(None) };
            let (Some(below), Some(own)) = (self.consolidated(&path, progress)?, group_of(&node)) else {
                return Ok(None);
            };
            let mut gathered = Map::new();
            gather_v2(&mut gathered, "", &own);
            below.documents.iter().for_each(|(path, document)| gather_v2(&mut gathered, path, document));
            let mut document = json!({"metadata": gathered, "zarr_consolidated_format": 1});
            below.name_left_out(&mut document);
            return Ok(Some(ZarrObject::Document(document)));
        }
        if let ".zgroup" | ".zattrs" | ".zarray" = name {
            let document = match self.nodes.node(&path)? {
                Some(Node::Array(_)) => self.array(&path)?.map(|viewed| viewed.both()),
                Some(node) => group_of(&node),
                None => None,
            };
            let mut gathered = Map::new();
            document.iter().for_each(|document| gather_v2(&mut gathered, "", document));
            return Ok(gathered.remove(name).map(ZarrObject::Document));
        }
        let Some(viewed) = self.array(&path)? else { return Ok(None) };
        let Some(coord) = viewed.view.chunk_of_key(name) else { return Ok(None) };
        viewed.chunk(&coord, progress)
    }

    /// The `zarr.json` of a node. A group's document includes those of everything below it.
    fn document(&self, path: &str, progress: &Progress) -> Result<Option<Value>> {
        match self.nodes.node(path)? {
            Some(Node::Array(_)) => Ok(self.array(path)?.map(|viewed| viewed.view.document())),
            Some(node) => {
                let Some(mut document) = group_of(&node) else { return Ok(None) };
                if let Some(below) = self.consolidated(path, progress)? {
                    let mut consolidated =
                        json!({"kind": "inline", "must_understand": false, "metadata": below.documents});
                    below.name_left_out(&mut consolidated);
                    document["consolidated_metadata"] = consolidated;
                }
                Ok(Some(document))
            }
            None => Ok(None),
        }
    }

    /// What is below a group; `None` if there are too many nodes.
    fn consolidated(&self, group: &str, progress: &Progress) -> Result<Option<Below>> {
        let (mut below, mut pending, mut visited) = (Below::new(group), vec![group.to_owned()], 0);
        while let Some(path) = pending.pop() {
            let Ok(names) = self.nodes.store.children(&path) else {
                // The members of a group that represents an array.
                let formed = self.nodes.below(&path).unwrap_or_default();
                formed.iter().for_each(|(path, node)| self.describe(path, node, &mut below));
                continue;
            };
            let mut add_coordinates = false;
            for name in names.iter().rev() {
                progress.check_cancelled()?;
                visited += 1;
                if visited > MOST_VISITED || below.documents.len() > MOST_CONSOLIDATED {
                    return Ok(None);
                }
                let full = child_path(&path, name);
                if !is_child_path(&full) {
                    continue;
                }
                let node = match self.nodes.store.node(&full) {
                    Ok(node) => node,
                    Err(error) => {
                        below.leave_out(&full, &error);
                        continue;
                    }
                };
                match &node {
                    Node::Group(_) => pending.push(full.clone()),
                    Node::Array(array) => add_coordinates |= self.nodes.needs_coordinates(&**array),
                    Node::Table(_) | Node::Geometry(_) => {
                        let what = format!("{} is shown as a group without members", node.kind().one());
                        below.left_out.insert(below.relative(&full), what.into());
                    }
                    _ => {}
                }
                match self.nodes.formed(&full, node) {
                    Ok(formed) => {
                        formed.iter().for_each(|(path, node)| self.describe(path, node, &mut below))
                    }
                    Err(error) => below.leave_out(&full, &error),
                }
            }
            if add_coordinates {
                let added = self.nodes.added(&path, progress)?;
                added.nodes.iter().for_each(|(path, node)| self.describe(path, node, &mut below));
            }
        }
        below.documents.sort_keys();
        Ok(Some(below))
    }

    /// Adds the document of a node.
    fn describe(&self, path: &str, node: &Node, below: &mut Below) {
        let document = match node {
            Node::Array(array) => self.viewed(path, array).map(|viewed| Some(viewed.both())),
            node => Ok(group_of(node)),
        };
        match document {
            Ok(document) => {
                let relative = below.relative(path);
                below.documents.extend(document.map(|document| (relative, document)));
            }
            Err(error) => below.leave_out(path, &error),
        }
    }

    fn array(&self, path: &str) -> Result<Option<Arc<ViewedArray>>> {
        if let Some(known) = self.known(path) {
            return Ok(Some(known));
        }
        let Some(Node::Array(array)) = self.nodes.node(path)? else { return Ok(None) };
        self.viewed(path, &array).map(Some)
    }

    fn known(&self, path: &str) -> Option<Arc<ViewedArray>> {
        self.arrays.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    fn viewed(&self, path: &str, array: &Arc<dyn Array>) -> Result<Arc<ViewedArray>> {
        if let Some(known) = self.known(path) {
            return Ok(known);
        }
        let schema = array.schema();
        let mut spec = ArrayView::spec_of(schema);
        let coordinates = self.nodes.coordinates(path, &**array)?;
        self.nodes.target.complete(path, schema, coordinates, &mut spec);
        let store = &self.nodes.store;
        let view = ArrayView::new(store.inner().name(), path, &**array, spec, self.codecs)?;
        let viewed = Arc::new(ViewedArray { reader: store.reader(Arc::clone(array)), view });
        let mut arrays = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        if arrays.len() >= MOST_CONSOLIDATED {
            arrays.clear();
        }
        arrays.insert(path.to_owned(), Arc::clone(&viewed));
        Ok(viewed)
    }
}

/// The documents below a group, and the nodes that Zarr cannot hold with the reasons, by relative path.
struct Below {
    group: String,
    documents: Map<String, Value>,
    left_out: Map<String, Value>,
}

impl Below {
    fn new(group: &str) -> Self {
        Self { group: group.to_owned(), documents: Map::new(), left_out: Map::new() }
    }

    fn relative(&self, path: &str) -> String {
        path.strip_prefix(&*self.group).unwrap_or(path).trim_start_matches('/').to_owned()
    }

    fn leave_out(&mut self, path: &str, error: &Error) {
        // Other messages name paths of this machine.
        let why = match error {
            Error::Unsupported { feature, .. } => format!("{feature} is not supported"),
            _ => "it cannot be read".to_owned(),
        };
        self.left_out.insert(self.relative(path), why.into());
    }

    /// Names the nodes that are left out in the consolidated metadata, where readers ignore unknown names.
    fn name_left_out(&self, consolidated: &mut Value) {
        if !self.left_out.is_empty() {
            consolidated["left_out"] = Value::Object(self.left_out.clone());
        }
    }
}

impl ViewedArray {
    /// Its document. For v2 it includes the attributes, which are stored in a separate document there.
    fn both(&self) -> Value {
        let mut document = self.view.document();
        if document["zarr_format"] == 2 {
            document["attributes"] = self.view.attributes();
        }
        document
    }

    fn chunk(&self, coord: &ChunkCoord, progress: &Arc<Progress>) -> Result<Option<ZarrObject>> {
        let array = &**self.reader.inner();
        let located = array.locate(std::slice::from_ref(coord))?;
        let [reference] = located.as_slice() else { return Ok(None) };
        if reference.is_none() && !self.view.has_every_chunk() {
            return Ok(None);
        }
        if let Some(reference) = reference
            && let Some(form) = array.stored_form(coord, reference)
            && self.view.takes(&form)
            && let [span] = reference.spans().collect::<Vec<_>>().as_slice()
        {
            let bytes = array.fetch(&[span])?.pop().flatten();
            return Ok(bytes.map(|bytes| ZarrObject::Chunk { bytes, stored: true }));
        }
        let region = array.schema().grid.region(coord);
        let reader = self.reader.clone().with_progress(Arc::clone(progress));
        let values = reader.read_positions(Positions::region(&region))?;
        let bytes = self.view.encode(coord, &values.elements)?;
        Ok(Some(ZarrObject::Chunk { bytes, stored: false }))
    }
}

/// Adds the v2 documents of a node under their keys, made from a group's v3 document or an array's document and
/// attributes.
fn gather_v2(gathered: &mut Map<String, Value>, path: &str, document: &Value) {
    let mut own = document.clone();
    let attributes =
        own.as_object_mut().and_then(|own| own.remove("attributes")).unwrap_or_else(|| json!({}));
    if own["zarr_format"] == 2 {
        gathered.insert(join(path, ".zarray"), own);
    } else {
        gathered.insert(join(path, ".zgroup"), json!({"zarr_format": 2}));
    }
    gathered.insert(join(path, ".zattrs"), attributes);
}

/// The document of a node that is a group.
fn group_of(node: &Node) -> Option<Value> {
    if let Node::Group(attributes) = node { Some(group_document(attributes)) } else { None }
}

/// Splits a chunk key into the array and the chunk: the last part `c` followed only by numbers.
fn split_chunk_key(key: &str) -> Option<(&str, &str)> {
    let at = if key == "c" || key.starts_with("c/") { Some(0) } else { None };
    let at =
        key.rfind("/c/").map(|at| at + 1).or_else(|| key.ends_with("/c").then(|| key.len() - 1)).or(at)?;
    Some((key[..at].trim_end_matches('/'), &key[at..]))
}

fn join(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_keys_are_split_at_the_last_c() {
        assert_eq!(split_chunk_key("c/0/1"), Some(("", "c/0/1")));
        assert_eq!(split_chunk_key("a/c/c/3"), Some(("a/c", "c/3")));
        assert_eq!(split_chunk_key("a/c"), Some(("a", "c")));
        assert_eq!(split_chunk_key("c"), Some(("", "c")));
        assert_eq!(split_chunk_key("a/b"), None);
    }
}
