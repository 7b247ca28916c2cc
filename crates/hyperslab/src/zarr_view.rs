//! Any store as a Zarr v3 store: documents and chunks, by the keys under which Zarr keeps them.
//!
//! A chunk is the stored bytes themselves where Zarr readers have the codecs, and decoded otherwise. Tables and geometries
//! appear as groups without members; arrays whose elements Zarr cannot hold are left out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyperslab_core::{ChunkCoord, Node, Positions, Progress, Result, child_path, normal_path};
use hyperslab_zarr::{ArrayView, group_document};
use serde_json::{Map, Value, json};

pub use hyperslab_zarr::CodecSet;

use crate::{ArrayReader, OpenStore};

/// Groups with more nodes below them have no consolidated metadata: their readers look at each node.
const MOST_CONSOLIDATED: usize = 10_000;

/// Nodes that are looked at to find those.
const MOST_VISITED: usize = 20_000;

/// A store of any format, by the keys of a Zarr v3 store.
#[derive(Debug)]
pub struct ZarrView {
    store: OpenStore,
    codecs: CodecSet,
    arrays: Mutex<HashMap<String, Arc<ViewedArray>>>,
}

#[derive(Debug)]
struct ViewedArray {
    reader: ArrayReader,
    view: ArrayView,
}

/// What a key holds.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ZarrObject {
    /// A `zarr.json`.
    Document(Value),
    /// A chunk.
    Chunk {
        /// Its bytes.
        bytes: Bytes,
        /// Are they those of the store, rather than decoded and encoded again?
        stored: bool,
    },
}

impl ZarrView {
    /// A view of a store for readers that have these codecs.
    #[must_use]
    pub fn new(store: OpenStore, codecs: CodecSet) -> Self {
        Self { store, codecs, arrays: Mutex::default() }
    }

    /// What a key holds: `zarr.json`, `t/zarr.json`, `t/c/0/3`. `None`: there is no such object, and a chunk holds the fill value.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](hyperslab_core::Error::Unsupported) for an array that Zarr cannot hold; otherwise whatever the store says.
    pub fn object(&self, key: &str, progress: &Arc<Progress>) -> Result<Option<ZarrObject>> {
        let (parent, name) = key.rsplit_once('/').unwrap_or(("", key));
        if name == "zarr.json" {
            return Ok(self.document(&normal_path(parent), progress)?.map(ZarrObject::Document));
        }
        let Some((path, chunk)) = split_chunk_key(key) else { return Ok(None) };
        let Some(viewed) = self.array(&normal_path(path))? else { return Ok(None) };
        let Some(coord) = viewed.view.chunk_of_key(chunk) else { return Ok(None) };
        viewed.chunk(&coord, progress)
    }

    /// The `zarr.json` of a node. That of a group has the documents of everything below it.
    fn document(&self, path: &str, progress: &Progress) -> Result<Option<Value>> {
        match self.node(path)? {
            Some(Node::Array(_)) => Ok(self.array(path)?.map(|viewed| viewed.view.document())),
            Some(node) => {
                let Some(mut document) = group_of(&node) else { return Ok(None) };
                if let Some(below) = self.consolidated(path, progress)? {
                    document["consolidated_metadata"] =
                        json!({"kind": "inline", "must_understand": false, "metadata": below});
                }
                Ok(Some(document))
            }
            None => Ok(None),
        }
    }

    /// The documents below a group, by path; `None` when there are too many.
    fn consolidated(&self, group: &str, progress: &Progress) -> Result<Option<Map<String, Value>>> {
        let (mut documents, mut pending, mut visited) = (Map::new(), vec![String::new()], 0);
        while let Some(above) = pending.pop() {
            let path = normal_path(&format!("{group}/{above}"));
            let Ok(names) = self.store.children(&path) else { continue };
            for name in names.iter().rev() {
                progress.check_cancelled()?;
                visited += 1;
                if visited > MOST_VISITED || documents.len() > MOST_CONSOLIDATED {
                    return Ok(None);
                }
                let (below, full) = (join(&above, name), child_path(&path, name));
                // A name such as "" or "." leads back to its group.
                if normal_path(&full) != full {
                    continue;
                }
                let document = match self.store.node(&full) {
                    Ok(Node::Array(_)) => {
                        self.array(&full).ok().flatten().map(|viewed| viewed.view.document())
                    }
                    Ok(node) => group_of(&node),
                    Err(_) => None,
                };
                let Some(document) = document else { continue };
                if document["node_type"] == "group" {
                    pending.push(below.clone());
                }
                documents.insert(below, document);
            }
        }
        documents.sort_keys();
        Ok(Some(documents))
    }

    fn node(&self, path: &str) -> Result<Option<Node>> {
        match self.store.node(path) {
            Ok(node) => Ok(Some(node)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn array(&self, path: &str) -> Result<Option<Arc<ViewedArray>>> {
        if let Some(known) = self.arrays.lock().unwrap_or_else(PoisonError::into_inner).get(path) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(Node::Array(array)) = self.node(path)? else { return Ok(None) };
        let view = ArrayView::new(self.store.inner().name(), path, &*array, self.codecs)?;
        let viewed = Arc::new(ViewedArray { reader: self.store.reader(array), view });
        let mut arrays = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        if arrays.len() >= MOST_CONSOLIDATED {
            arrays.clear();
        }
        arrays.insert(path.to_owned(), Arc::clone(&viewed));
        Ok(Some(viewed))
    }
}

impl ViewedArray {
    fn chunk(&self, coord: &ChunkCoord, progress: &Arc<Progress>) -> Result<Option<ZarrObject>> {
        let array = &**self.reader.inner();
        let located = array.locate(std::slice::from_ref(coord))?;
        let [Some(reference)] = located.as_slice() else { return Ok(None) };
        if let Some(form) = array.stored_form(coord, reference)
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

/// The document of a node that is shown as a group.
fn group_of(node: &Node) -> Option<Value> {
    match node {
        Node::Group(attributes) => Some(group_document(attributes)),
        Node::Table(table) => Some(group_document(&table.schema().attributes)),
        Node::Geometry(geometry) => Some(group_document(&geometry.schema().attributes)),
        _ => None,
    }
}

/// The array and the chunk that a key names: the last part `c` with nothing but numbers behind it.
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
