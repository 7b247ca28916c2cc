//! The nodes to convert, and links if the target supports them.

use std::collections::{HashMap, HashSet};

use hyperslab_core::{Error, LinkTarget, Node, ObjectId, Result, child_path, normal_path};

use crate::OpenStore;

/// The maximum number of nodes in one conversion.
const MOST_NODES: usize = 10_000_000;

/// A path of the source.
#[derive(Debug)]
pub(super) enum Item {
    /// A node; this is the first path to it.
    Node(Node),
    /// A link: to another path of the conversion, or a soft or external link.
    Link(LinkTarget<String>),
}

impl Item {
    /// The node, if it is one.
    pub(super) const fn node(&self) -> Option<&Node> {
        match self {
            Self::Node(node) => Some(node),
            Self::Link(_) => None,
        }
    }
}

/// The items to convert, parents first.
#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) items: Vec<(String, Item)>,
    /// The first path to each object.
    pub(super) paths: HashMap<ObjectId, String>,
    /// Whether the source shows some nodes under other names than the file.
    pub(super) renamed: bool,
    /// The paths of nodes whose content is not supported, with the reasons. They are not among the items.
    pub(super) unsupported: Vec<(String, Error)>,
}

impl Items {
    /// Only the nodes. Nodes that are not supported are an error.
    pub(super) fn all_nodes(mut self) -> Result<Vec<(String, Node)>> {
        match self.unsupported.pop() {
            Some((_, why)) => Err(why),
            None => Ok(self.into_nodes()),
        }
    }

    /// Only the supported nodes.
    pub(super) fn into_nodes(self) -> Vec<(String, Node)> {
        let node = |(path, item)| match item {
            Item::Node(node) => Some((path, node)),
            Item::Link(_) => None,
        };
        self.items.into_iter().filter_map(node).collect()
    }
}

/// The nodes to convert, parents first. A damaged node ends the conversion, so that nothing is dropped silently.
///
/// With `only`, those at and below these paths, and their parent groups.
pub(super) fn by_path(source: &OpenStore, only: &[String]) -> Result<Items> {
    let (mut nodes, mut unsupported) = (Vec::new(), Vec::new());
    let only: Vec<String> = only.iter().map(|path| normal_path(path)).collect();
    source.walk(&mut |path, node| {
        let chosen = is_chosen(path, &only);
        match node {
            Err(why) if chosen && why.is_unsupported() && !only.iter().any(|only| only == path) => {
                unsupported.push((path.to_owned(), why));
            }
            node if chosen || matches!(node, Ok(Node::Group(_))) && is_above_chosen(path, &only) => {
                nodes.push((path.to_owned(), node?));
            }
            _ => {}
        }
        Ok(())
    })?;
    let there: HashSet<&str> = nodes.iter().map(|(path, _)| path.as_str()).collect();
    if let Some(missing) = only.iter().find(|only| !there.contains(only.as_str())) {
        source.find(missing)?;
        return Err(Error::not_found(source.path().display().to_string(), missing.as_str()));
    }
    let items = nodes.into_iter().map(|(path, node)| (path, Item::Node(node))).collect();
    Ok(Items { items, unsupported, ..Items::default() })
}

/// Like [`by_path`], but each object occurs once: other paths to it are links, and links are not followed. `None` if the source
/// does not expose links.
pub(super) fn by_identity(source: &OpenStore, only: &[String]) -> Result<Option<Items>> {
    let store = source.inner();
    let only: Vec<String> = only.iter().map(|path| normal_path(path)).collect();
    let mut found = Items::default();
    let Some(root) = store.identity("/")? else { return Ok(None) };
    let mut pending = vec![("/".to_owned(), LinkTarget::Hard(root))];
    while let Some((path, target)) = pending.pop() {
        if found.items.len() >= MOST_NODES {
            return Err(Error::invalid(format!("{}: more than {MOST_NODES} nodes", source.path().display())));
        }
        let id = match target {
            LinkTarget::Hard(id) => id,
            LinkTarget::Soft(to) => {
                found.items.push((path, Item::Link(LinkTarget::Soft(to))));
                continue;
            }
            LinkTarget::External { file, path: to } => {
                found.items.push((path, Item::Link(LinkTarget::External { file, path: to })));
                continue;
            }
            LinkTarget::Other(kind) => {
                found.items.push((path, Item::Link(LinkTarget::Other(kind))));
                continue;
            }
        };
        if let Some(first) = found.paths.get(&id) {
            let link = LinkTarget::Hard(first.clone());
            found.items.push((path, Item::Link(link)));
            continue;
        }
        let node = match store.node(&path) {
            Err(why) if why.is_unsupported() && !only.contains(&path) => {
                found.unsupported.push((path, why));
                continue;
            }
            node => node?,
        };
        found.paths.insert(id, path.clone());
        if matches!(node, Node::Group(_)) {
            let Some(links) = store.links(&path)? else { return Ok(None) };
            for link in links.into_iter().rev() {
                let below = child_path(&path, &link.name);
                if normal_path(&below) != below {
                    return Err(source.no_path(&below));
                }
                if is_chosen(&below, &only) || is_above_chosen(&below, &only) {
                    found.renamed |= link.renamed;
                    pending.push((below, link.target));
                }
            }
        }
        found.items.push((path, Item::Node(node)));
    }
    // Above the requested paths, only groups are kept.
    found.items.retain(|(path, item)| is_chosen(path, &only) || matches!(item, Item::Node(Node::Group(_))));
    // A path through a soft link is only found by following it.
    let nodes = found.items.iter().filter(|(_, item)| item.node().is_some());
    let nodes: HashSet<&str> = nodes.map(|(path, _)| path.as_str()).collect();
    if only.iter().any(|only| !nodes.contains(only.as_str())) {
        return Ok(None);
    }
    Ok(Some(found))
}

fn is_chosen(path: &str, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|only| is_below(path, only))
}

fn is_above_chosen(path: &str, only: &[String]) -> bool {
    only.iter().any(|only| is_above(path, only))
}

fn is_below(path: &str, only: &str) -> bool {
    only == "/" || path == only || path.strip_prefix(only).is_some_and(|rest| rest.starts_with('/'))
}

fn is_above(path: &str, below: &str) -> bool {
    path == "/" || below.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
}
