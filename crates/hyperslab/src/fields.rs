//! Arrays whose only field has the array's own name.
//!
//! TileDB stores the values of an array in fields, and each field is a node below the array: `/temp/temp`. If an array has a
//! single field with its own name (as arrays converted from another format do), conversions and comparisons treat the two as one
//! node: `/temp`.

use hyperslab_core::{Node, Result, child_path};

use crate::OpenStore;

/// The only field of the node at a path, if it has the same name as the node.
pub(crate) fn own_field(store: &OpenStore, path: &str, node: &Node) -> Result<Option<Node>> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let bare = matches!(node, Node::Group(attributes) if attributes.is_empty());
    if !store.capabilities().field_arrays || name.is_empty() || !bare || store.children(path)? != [name] {
        return Ok(None);
    }
    let field = store.node(&child_path(path, name))?;
    Ok(Some(field).filter(|field| matches!(field, Node::Array(_))))
}

/// Merges arrays with their own fields. Nodes are ordered parents first.
pub(crate) fn folded(store: &OpenStore, nodes: Vec<(String, Node)>) -> Result<Vec<(String, Node)>> {
    let mut folded = Vec::with_capacity(nodes.len());
    let mut inside = None;
    for (path, node) in nodes {
        if inside.as_ref() == Some(&path) {
            continue;
        }
        let node = match own_field(store, &path, &node)? {
            Some(field) => {
                inside = Some(child_path(&path, path.rsplit('/').next().unwrap_or_default()));
                field
            }
            None => node,
        };
        folded.push((path, node));
    }
    Ok(folded)
}
