//! Restricts, sorts and sums up a catalog.

use std::collections::BTreeMap;
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
        let mut totals: Vec<(String, Total)> = Vec::new();
        for group in self.nodes.iter().filter(|node| matches!(node.node, Ok(Node::Group(_)))) {
            let mut total = Total::default();
            for node in self.nodes.iter().filter(|node| is_below(&node.path, &group.path)) {
                if let Ok(Node::Array(_)) = &node.node {
                    let stored = node.stored();
                    total.arrays += 1;
                    total.size = total.size.saturating_add(node.size());
                    total.stored.chunks = total.stored.chunks.saturating_add(stored.chunks);
                    total.stored.bytes = total.stored.bytes.saturating_add(stored.bytes);
                }
            }
            totals.push((group.path.clone(), total));
        }
        totals
    }

    /// The dimensions that arrays name, by path. A dimension belongs to the highest group in which an array names it.
    #[must_use]
    pub fn dimensions(&self) -> Vec<CatalogDimension> {
        let mut found: BTreeMap<(usize, String), CatalogDimension> = BTreeMap::new();
        for node in &self.nodes {
            let Ok(Node::Array(array)) = &node.node else { continue };
            let schema = array.schema();
            let group = node.path.rsplit_once('/').map_or("", |(group, _)| group);
            for (axis, name) in schema.dimensions.iter().enumerate() {
                let Some(name) = name else { continue };
                let (length, unlimited) = (schema.shape()[axis], schema.max_shape[axis].is_none());
                let above = found.values_mut().find(|own| {
                    let (home, known) = own.path.rsplit_once('/').unwrap_or(("", &own.path));
                    known == name && own.length == length && (home.is_empty() || is_below(group, home))
                });
                if let Some(known) = above {
                    known.unlimited |= unlimited;
                    continue;
                }
                let path = format!("{group}/{name}");
                let key = (depth(&path), path.clone());
                found.entry(key).or_insert(CatalogDimension { path, length, unlimited });
            }
        }
        found.into_values().collect()
    }
}
