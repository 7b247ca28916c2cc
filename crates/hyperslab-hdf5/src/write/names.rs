//! The paths of the nodes being written, and the references to them.

use std::collections::{BTreeMap, BTreeSet};

use hyperslab_core::{Error, Result, child_path, normal_path};

use super::array::Shared;
use super::object::NewHeader;
use super::tree::Tree;
use crate::conversion::Keeper;
use crate::file::lock;

/// The paths of nodes, including those given by hard links.
#[derive(Debug, Default)]
pub(crate) struct Names {
    declared: BTreeSet<String>,
    aliases: BTreeMap<String, String>,
    /// Dangling references, by node: their number, and the target of the first.
    lost: BTreeMap<String, (u64, String)>,
}

impl Names {
    pub(crate) const fn new() -> Self {
        Self { declared: BTreeSet::new(), aliases: BTreeMap::new(), lost: BTreeMap::new() }
    }

    /// The original path of a node, for any path to it.
    pub(crate) fn canonical(&self, path: &str) -> String {
        if self.aliases.is_empty() {
            return normal_path(path);
        }
        let mut canonical = "/".to_owned();
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            let next = child_path(&canonical, part);
            canonical = self.aliases.get(&next).cloned().unwrap_or(next);
        }
        canonical
    }

    /// Records a node and its parent groups.
    pub(crate) fn declare(&mut self, path: &str) {
        let path = normal_path(path);
        let ends = path.match_indices('/').map(|(at, _)| at.max(1)).chain([path.len()]);
        for end in ends {
            if !self.declared.contains(&path[..end]) {
                self.declared.insert(path[..end].to_owned());
            }
        }
    }

    /// Records another path of a node.
    pub(crate) fn alias(&mut self, path: &str, target: &str) {
        let target = self.canonical(target);
        self.aliases.insert(normal_path(path), target);
    }

    fn has(&self, path: &str) -> bool {
        self.declared.contains(&self.canonical(path))
    }

    fn lose(&mut self, node: &str, target: &str) {
        self.lost.entry(node.to_owned()).or_insert_with(|| (0, target.to_owned())).0 += 1;
    }

    /// The losses, as sentences by node.
    pub(crate) fn take_losses(&mut self) -> Vec<(String, String)> {
        let told = |(node, (count, first)): (String, (u64, String))| {
            let what = match count {
                1 => format!("a reference to {first} is null, because the target does not exist"),
                count => format!("{count} references without a target are null, the first to {first}"),
            };
            (node, what)
        };
        std::mem::take(&mut self.lost).into_iter().map(told).collect()
    }
}

/// Stores variable-length elements in the file's heap. Assigns addresses to objects whose headers are not written yet.
pub(crate) struct HeapKeeper<'a> {
    pub(crate) shared: &'a Shared,
    /// The node that owns the elements.
    pub(crate) node: &'a str,
}

impl Keeper for HeapKeeper<'_> {
    fn keep(&mut self, bytes: &[u8]) -> Result<(u64, u32)> {
        lock(&self.shared.heap).keep(&self.shared.output, bytes)
    }

    fn object(&mut self, path: &str) -> Result<u64> {
        let path = {
            let mut names = lock(&self.shared.names);
            if self.shared.all_declared && !names.has(path) {
                names.lose(self.node, path);
                return Ok(0);
            }
            names.canonical(path)
        };
        let mut stubs = lock(&self.shared.stubs);
        if let Some(address) = stubs.get(&path) {
            return Ok(*address);
        }
        let address =
            self.shared.output.allocate(NewHeader::stub_length(self.shared.style, self.shared.sizes)?)?;
        stubs.insert(path, address);
        Ok(address)
    }

    fn has_object(&mut self, path: &str) -> bool {
        lock(&self.shared.names).has(path)
    }
}

/// Stores nothing; used to determine the sizes of headers.
pub(crate) struct Measure<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) shared: &'a Shared,
}

impl Keeper for Measure<'_> {
    fn keep(&mut self, _: &[u8]) -> Result<(u64, u32)> {
        Ok((0, 0))
    }

    fn object(&mut self, path: &str) -> Result<u64> {
        if self.shared.all_declared { Ok(0) } else { address_of(self.tree, self.shared, path) }
    }

    fn has_object(&mut self, path: &str) -> bool {
        address_of(self.tree, self.shared, path).is_ok()
    }
}

/// Stores the values of attributes. The addresses of all headers are known.
pub(crate) struct AttributeKeeper<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) tree: &'a Tree,
    pub(crate) node: &'a str,
}

impl Keeper for AttributeKeeper<'_> {
    fn keep(&mut self, bytes: &[u8]) -> Result<(u64, u32)> {
        lock(&self.shared.heap).keep(&self.shared.output, bytes)
    }

    fn object(&mut self, path: &str) -> Result<u64> {
        match address_of(self.tree, self.shared, path) {
            Err(_) if self.shared.all_declared => {
                lock(&self.shared.names).lose(self.node, path);
                Ok(0)
            }
            found => found,
        }
    }

    fn has_object(&mut self, path: &str) -> bool {
        address_of(self.tree, self.shared, path).is_ok()
    }
}

/// The address, present or future, of the node at a path.
pub(crate) fn address_of(tree: &Tree, shared: &Shared, path: &str) -> Result<u64> {
    let canonical = lock(&shared.names).canonical(path);
    let found = tree.address_of(&canonical);
    found.ok_or_else(|| Error::invalid(format!("a reference to {path}, which is not in the file")))
}
