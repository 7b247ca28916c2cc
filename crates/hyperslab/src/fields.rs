//! Arrays whose only field has the array's own name.
//!
//! TileDB stores the values of an array in fields, and each field is a node below the array: `/temp/temp`. If an array of a group has
//! a single field with its own name (as arrays converted from another format do), its reader shows the two as one node, `/temp`, and
//! finds it by both paths.

use hyperslab_core::{Node, normal_path};

use crate::OpenStore;

/// The path under which a node is listed.
pub(crate) fn listed_path(store: &OpenStore, path: &str) -> String {
    let path = normal_path(path);
    let has_fields = store.capabilities().field_arrays;
    match path.rsplit_once('/') {
        Some((above, name))
            if has_fields
                && above.rsplit('/').next() == Some(name)
                && matches!(store.node(above), Ok(Node::Array(_))) =>
        {
            above.to_owned()
        }
        _ => path,
    }
}
