//! Arrays whose values are a field of their own name.
//!
//! TileDB keeps the values of an array in fields, and each is a node below the array's: `/temp/temp`. Where an array has one
//! field, of its own name (as arrays have that came from another format), the two are one node to whoever converts or
//! compares: `/temp`.

use hyperslab_core::{Node, Result, child_path};

use crate::OpenStore;

/// The only field of what stands at a path, if it has the path's own name.
pub(crate) fn own_field(store: &OpenStore, path: &str, node: &Node) -> Result<Option<Node>> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let bare = matches!(node, Node::Group(attributes) if attributes.is_empty());
    if !store.capabilities().field_arrays || name.is_empty() || !bare || store.children(path)? != [name] {
        return Ok(None);
    }
    let field = store.node(&child_path(path, name))?;
    Ok(Some(field).filter(|field| matches!(field, Node::Array(_))))
}

/// Nodes, parents first, in which arrays and their own fields are one.
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
