//! Paths that lead to an object with another path: links, as the catalog shows them.

use std::collections::HashMap;

use hyperslab_core::{Link, LinkTarget, Node, ObjectId, Store, child_path};
use serde_json::{Value, json};

use super::CatalogNode;

/// How a path leads to an object that has another path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Alias {
    /// By a soft link to this path.
    Soft(String),
    /// By a link to a path in another file.
    External {
        /// The other file.
        file: String,
        /// The path in it.
        path: String,
    },
    /// By another hard link to the object that is listed at this path.
    Hard(String),
}

impl Alias {
    /// The target in words: `/g/x`, or `other.h5:/x`.
    #[must_use]
    pub fn target(&self) -> String {
        match self {
            Self::Soft(path) | Self::Hard(path) => path.clone(),
            Self::External { file, path } => format!("{file}:{path}"),
        }
    }

    /// The `link` of a node in `tet info --json`.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Soft(path) => json!({ "soft": path }),
            Self::Hard(path) => json!({ "hard": path }),
            Self::External { file, path } => json!({ "external": file, "path": path }),
        }
    }
}

/// Finds the aliases among the nodes of a store. A group whose links cannot be read has none.
pub(super) fn find(store: &dyn Store, nodes: &mut [CatalogNode]) {
    let groups = nodes.iter().filter(|node| matches!(node.node, Ok(Node::Group(_))));
    let mut links: HashMap<String, Link> = HashMap::new();
    for group in groups {
        // `None` for the root: the format has no links.
        let found = match store.links(&group.path) {
            Ok(Some(found)) => found,
            Ok(None) => break,
            Err(_) => continue,
        };
        links.extend(found.into_iter().map(|link| (child_path(&group.path, &link.name), link)));
    }
    let mut listed: HashMap<ObjectId, String> = HashMap::new();
    if !links.is_empty()
        && let Ok(Some(root)) = store.identity("/")
    {
        listed.insert(root, "/".to_owned());
    }
    for node in nodes {
        node.alias = links.remove(&node.path).and_then(|link| alias(link.target, &node.path, &mut listed));
    }
}

fn alias(target: LinkTarget, path: &str, listed: &mut HashMap<ObjectId, String>) -> Option<Alias> {
    match target {
        LinkTarget::Soft(target) => Some(Alias::Soft(target)),
        LinkTarget::External { file, path } => Some(Alias::External { file, path }),
        LinkTarget::Other(_) => None,
        LinkTarget::Hard(object) => {
            if let Some(first) = listed.get(&object) {
                return Some(Alias::Hard(first.clone()));
            }
            listed.insert(object, path.to_owned());
            None
        }
    }
}
