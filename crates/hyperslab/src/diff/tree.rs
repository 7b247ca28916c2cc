//! The nodes at and below a path, and links if they are compared.

use std::collections::{BTreeMap, HashMap};

use hyperslab_core::{Error, LinkTarget, Node, ObjectId, Result, child_path};

use super::DiffReport;
use crate::OpenStore;

/// The maximum number of nodes in a comparison.
const MOST_NODES: usize = 10_000_000;

/// Nodes and links by their paths below a root.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) links: BTreeMap<String, LinkTarget<String>>,
}

/// The nodes at and below a path, by relative path. Links are followed, except back to a group that leads to them.
pub(crate) fn below(store: &OpenStore, root: &str) -> Result<BTreeMap<String, Node>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![("/".to_owned(), Vec::new())];
    while let Some((path, above)) = pending.pop() {
        let full = join(root, &path);
        let node = store.find(&full)?;
        // Dimensions are compared through the arrays that name them.
        if matches!(&node, Node::Array(array) if array.schema().is_dimension) {
            continue;
        }
        if matches!(node, Node::Group(_)) {
            let own = store.inner().identity(&full)?;
            if own.is_none_or(|own| !above.contains(&own)) {
                let above: Vec<ObjectId> = above.into_iter().chain(own).collect();
                let names = store.children(&full)?;
                pending.extend(names.iter().map(|name| (child_path(&path, name), above.clone())));
            }
        }
        check_count(store, found.len())?;
        if found.insert(path, node).is_some() {
            return Err(Error::invalid(format!("{full} occurs twice")));
        }
    }
    Ok(found)
}

/// Like [`below`], but each object occurs once and no link is followed. If several paths lead to an object, the first by name
/// holds the node and the others are links to it. `None` if the store does not expose links.
pub(super) fn below_once(store: &OpenStore, root: &str) -> Result<Option<Tree>> {
    let Some(id) = store.inner().identity(root)? else { return Ok(None) };
    let mut tree = Tree::default();
    let mut first: HashMap<ObjectId, String> = HashMap::new();
    let mut pending = vec![("/".to_owned(), LinkTarget::Hard(id))];
    while let Some((path, target)) = pending.pop() {
        check_count(store, tree.nodes.len() + tree.links.len())?;
        let link = match target {
            LinkTarget::Hard(id) => match first.get(&id) {
                Some(first) => LinkTarget::Hard(first.clone()),
                None => {
                    first.insert(id, path.clone());
                    let full = join(root, &path);
                    let node = store.find(&full)?;
                    if matches!(node, Node::Group(_)) {
                        let Some(mut links) = store.inner().links(&full)? else { return Ok(None) };
                        links.sort_by(|one, other| other.name.cmp(&one.name));
                        let links = links.into_iter();
                        pending.extend(links.map(|link| (child_path(&path, &link.name), link.target)));
                    }
                    let is_dimension = matches!(&node, Node::Array(array) if array.schema().is_dimension);
                    if !is_dimension && tree.nodes.insert(path, node).is_some() {
                        return Err(Error::invalid(format!("{full} occurs twice")));
                    }
                    continue;
                }
            },
            LinkTarget::Soft(to) => LinkTarget::Soft(to),
            LinkTarget::External { file, path } => LinkTarget::External { file, path },
            LinkTarget::Other(kind) => LinkTarget::Other(kind),
        };
        tree.links.insert(path, link);
    }
    Ok(Some(tree))
}

fn check_count(store: &OpenStore, count: usize) -> Result<()> {
    if count < MOST_NODES {
        return Ok(());
    }
    Err(Error::invalid(format!("{}: more than {MOST_NODES} nodes", store.path().display())))
}

/// Compares the links of two trees, including paths that are a link on one side and a node on the other.
pub(super) fn compare_links(report: &mut DiffReport, a: &Tree, b: &Tree) {
    let describe = |tree: &Tree, path: &str| match (tree.links.get(path), tree.nodes.get(path)) {
        (Some(link), _) => in_words(link),
        (None, Some(node)) => format!("{}, not a link", node.kind().one()),
        (None, None) => "nothing".to_owned(),
    };
    let mut paths: Vec<&String> = a.links.keys().chain(b.links.keys()).collect();
    paths.sort();
    paths.dedup();
    for path in paths.into_iter().filter(|path| a.links.get(*path) != b.links.get(*path)) {
        report.add(path, "link", format!("{} ≠ {}", describe(a, path), describe(b, path)));
    }
}

fn in_words(link: &LinkTarget<String>) -> String {
    match link {
        LinkTarget::Hard(path) => format!("a hard link to {path}"),
        LinkTarget::Soft(path) => format!("a soft link to {path}"),
        LinkTarget::External { file, path } => format!("an external link to {path} in {file}"),
        LinkTarget::Other(kind) => format!("a link of kind {kind}"),
    }
}

/// The full path of `path` below `root`.
pub(crate) fn join(root: &str, path: &str) -> String {
    match (root, path) {
        ("/", path) => path.to_owned(),
        (root, "/") => root.to_owned(),
        (root, path) => format!("{root}{path}"),
    }
}
