//! Restricts, sorts and sums up a catalog.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::str::FromStr;

use hyperslab_core::{Error, Node, Result, Usage, did_you_mean, normal_path};

use super::{Catalog, CatalogNode};

/// The order of the nodes of a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortBy {
    /// The most stored bytes first.
    Stored,
    /// The largest arrays first.
    Size,
    /// By path.
    Name,
}

impl FromStr for SortBy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "stored" => Ok(Self::Stored),
            "size" => Ok(Self::Size),
            "name" => Ok(Self::Name),
            _ => Err(Error::invalid(format!("cannot sort by {name:?}: choose stored, size or name"))),
        }
    }
}

/// A dimension of a store. Every array that names it has this length along it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogDimension {
    /// Its path: its group and its name.
    pub path: String,
    /// Its length.
    pub length: u64,
    /// Whether it may grow without limit.
    pub unlimited: bool,
}

/// The totals of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Total {
    /// The number of arrays below it.
    pub arrays: u64,
    /// The size of their elements in bytes.
    pub size: u64,
    /// Their stored size.
    pub stored: Usage,
}

impl CatalogNode {
    /// The size of an array's elements in bytes.
    fn size(&self) -> u64 {
        match &self.node {
            Ok(Node::Array(array)) => array.schema().bytes().unwrap_or(0),
            _ => 0,
        }
    }

    fn stored(&self) -> Usage {
        self.usage.as_ref().and_then(|usage| usage.as_ref().ok()).copied().unwrap_or_default()
    }

    /// Returns true if the node only declares a dimension, as NetCDF-4 does in HDF5.
    #[must_use]
    pub fn is_dimension(&self) -> bool {
        matches!(&self.node, Ok(Node::Array(array)) if array.schema().is_dimension)
    }
}

fn is_below(path: &str, above: &str) -> bool {
    above == "/" || path == above || path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

/// The number of names below the root.
fn depth(path: &str) -> usize {
    path.split('/').filter(|part| !part.is_empty()).count()
}

impl Catalog {
    /// Keeps one node and everything below it.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if there is no such node. The message suggests the closest name.
    pub fn restrict(&mut self, node: &str) -> Result<()> {
        let path = normal_path(node);
        if !self.nodes.iter().any(|node| node.path == path) {
            let names = self.nodes.iter().map(|node| node.path.as_str()).filter(|name| *name != "/");
            let hint = did_you_mean(&path, names);
            return Err(Error::invalid(format!("{}: no node {path}{hint}", self.path)));
        }
        self.nodes.retain(|node| is_below(&node.path, &path));
        Ok(())
    }

    /// Keeps nodes at most this many levels below the first one.
    pub fn limit_depth(&mut self, levels: usize) {
        let first = self.nodes.first().map_or(0, |node| depth(&node.path));
        self.nodes.retain(|node| depth(&node.path) <= first.saturating_add(levels));
    }

    /// Sorts the nodes.
    pub fn sort(&mut self, by: SortBy) {
        match by {
            SortBy::Name => self.nodes.sort_by(|one, other| one.path.cmp(&other.path)),
            SortBy::Size => self.nodes.sort_by_key(|node| std::cmp::Reverse(node.size())),
            SortBy::Stored => self.nodes.sort_by_key(|node| std::cmp::Reverse(node.stored().bytes)),
        }
    }

    /// The totals of each group, parents first.
    #[must_use]
    pub fn totals(&self) -> Vec<(String, Total)> {
        let is_group = |node: &&CatalogNode| matches!(node.node, Ok(Node::Group(_)));
        let mut totals: Vec<(String, Total)> =
            self.nodes.iter().filter(is_group).map(|node| (node.path.clone(), Total::default())).collect();
        let groups: HashMap<String, usize> =
            totals.iter().enumerate().map(|(at, (path, _))| (path.clone(), at)).collect();
        // An object counts once, at its own path.
        let is_own = |node: &&CatalogNode| node.alias.is_none() && matches!(node.node, Ok(Node::Array(_)));
        for node in self.nodes.iter().filter(is_own) {
            if let Some(group) = nearest_group(&groups, &node.path) {
                totals[group].1.add(&Total { arrays: 1, size: node.size(), stored: node.stored() });
            }
        }
        // Each group is complete before it is added to the group above it.
        let mut deepest_first: Vec<usize> = (0..totals.len()).collect();
        deepest_first.sort_by_key(|at| std::cmp::Reverse(depth(&totals[*at].0)));
        for at in deepest_first {
            let total = totals[at].1;
            if let Some(group) = nearest_group(&groups, &totals[at].0) {
                totals[group].1.add(&total);
            }
        }
        totals
    }

    /// The dimensions that arrays name, by path. A dimension belongs to the group of its coordinate, at or above the array. One
    /// without a coordinate belongs to the highest group in which an array names it.
    #[must_use]
    pub fn dimensions(&self) -> Vec<CatalogDimension> {
        let coordinates: HashMap<&str, u64> = self.nodes.iter().filter_map(coordinate).collect();
        let mut found: BTreeMap<(usize, String), CatalogDimension> = BTreeMap::new();
        // The groups that have a dimension of this name and length.
        let mut homes: HashMap<(&str, u64), HashSet<&str>> = HashMap::new();
        // Groups come before those below them, in whatever order the file has their members.
        let mut nodes: Vec<&CatalogNode> = self.nodes.iter().collect();
        nodes.sort_by_key(|node| depth(&node.path));
        for node in nodes {
            let Ok(Node::Array(array)) = &node.node else { continue };
            let schema = array.schema();
            let group = node.path.rsplit_once('/').map_or("", |(group, _)| group);
            for (axis, name) in schema.dimensions.iter().enumerate() {
                let Some(name) = name else { continue };
                let (length, unlimited) = (schema.shape()[axis], schema.max_shape[axis].is_none());
                let homes = homes.entry((name, length)).or_default();
                let home = home_of_coordinate(&coordinates, group, (name, length))
                    .or_else(|| highest_home(homes, group))
                    .unwrap_or(group);
                let path = format!("{home}/{name}");
                let dimension = found.entry((depth(&path), path)).or_insert_with_key(|(_, path)| {
                    homes.insert(home);
                    CatalogDimension { path: path.clone(), length, unlimited }
                });
                // A dimension of the same name but another length in the same group is a different one.
                dimension.unlimited |= unlimited && dimension.length == length;
            }
        }
        found.into_values().collect()
    }
}

impl Total {
    fn add(&mut self, other: &Self) {
        self.arrays += other.arrays;
        self.size = self.size.saturating_add(other.size);
        self.stored.chunks = self.stored.chunks.saturating_add(other.stored.chunks);
        self.stored.bytes = self.stored.bytes.saturating_add(other.stored.bytes);
    }
}

/// The path and the length of the dimension that this node is the coordinate of.
fn coordinate(node: &CatalogNode) -> Option<(&str, u64)> {
    let Ok(Node::Array(array)) = &node.node else { return None };
    let (_, name) = node.path.rsplit_once('/')?;
    let schema = array.schema();
    match (&schema.dimensions[..], schema.shape()) {
        ([Some(own)], [length]) if own == name => Some((&*node.path, *length)),
        _ => None,
    }
}

/// The group at or above `group` that has the coordinate of a dimension. The root is the empty path.
fn home_of_coordinate<'g>(
    coordinates: &HashMap<&str, u64>,
    group: &'g str,
    (name, length): (&str, u64),
) -> Option<&'g str> {
    let above = |group: &&'g str| group.rsplit_once('/').map(|(above, _)| above);
    let mut groups = std::iter::successors(Some(group), above);
    groups.find(|group| coordinates.get(&*format!("{group}/{name}")) == Some(&length))
}

/// The closest of these groups at or above a node.
fn nearest_group(groups: &HashMap<String, usize>, path: &str) -> Option<usize> {
    let mut below = path.trim_end_matches('/');
    while let Some((above, _)) = below.rsplit_once('/') {
        if let Some(group) = groups.get(if above.is_empty() { "/" } else { above }) {
            return Some(*group);
        }
        below = above;
    }
    None
}

/// The highest of these groups that is `group` or above it. The root is the empty path. Iterates over the homes or
/// over the groups above, whichever are fewer.
fn highest_home<'h>(homes: &HashSet<&'h str>, group: &str) -> Option<&'h str> {
    if homes.len() <= depth(group) {
        let above = homes.iter().filter(|home| home.is_empty() || is_below(group, home));
        return above.min_by_key(|home| home.len()).copied();
    }
    let ends = group.match_indices('/').map(|(at, _)| at).chain([group.len()]);
    ends.filter_map(|end| homes.get(&group[..end])).next().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_found_from_either_side() {
        let homes: HashSet<&str> = ["/a/b", "/a/b/c", "/ab", "/d", "/e", "/f"].into();
        assert_eq!(highest_home(&homes, "/a/b/c/d"), Some("/a/b"));
        assert_eq!(highest_home(&homes, "/a"), None);
        assert_eq!(highest_home(&homes, ""), None);
        let few: HashSet<&str> = ["", "/a"].into();
        assert_eq!(highest_home(&few, "/a/b/c"), Some(""));
        assert_eq!(highest_home(&few, ""), Some(""));
    }

    #[test]
    fn groups_are_searched_upwards() {
        let groups = HashMap::from([("/".to_owned(), 0), ("/a".to_owned(), 1)]);
        assert_eq!(nearest_group(&groups, "/a/missing/x"), Some(1));
        assert_eq!(nearest_group(&groups, "/a"), Some(0));
        assert_eq!(nearest_group(&groups, "/ab"), Some(0));
        assert_eq!(nearest_group(&groups, "/"), None);
    }
}
