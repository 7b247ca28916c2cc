//! Old-style groups: a version 1 B-tree of symbol nodes, whose names are in a local heap.

use bytes::Bytes;
use hyperslab_core::{Fields, Result};

use crate::file::{File, FileFields};
use crate::header::Message;
use crate::heap::local::LocalHeap;
use crate::message::link::{Link, LinkTarget, check_name};

const TREE: &str = "B-tree v1 group node";
const NODE: &str = "symbol table node";
const MAX_DEPTH: u8 = 32;

/// Half the entries of a symbol node, and half the children of a tree node, by libhdf5's default.
pub(crate) const LEAF_K: u16 = 4;
pub(crate) const TREE_K: u16 = 16;

/// A symbol table: the tree, and the heap with the names.
#[derive(Debug)]
pub(crate) struct SymbolTable {
    tree: u64,
    heap: LocalHeap,
}

/// An entry of a symbol node: its stored name, the name's offset in the heap, and the entry's bytes.
#[derive(Debug, Clone)]
pub(crate) struct SymbolEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A node of the tree: alternating keys and children, with one more key than children.
struct TreeNode {
    bytes: Bytes,
    level: u8,
    count: usize,
    key: usize,
    child: usize,
}

impl TreeNode {
    fn read(file: &File, address: u64) -> Result<Self> {
        let sizes = file.sizes();
        let head = 8 + 2 * sizes.address;
        let bytes = file.read(TREE, address, head as u64)?;
        let mut fields = Fields::new(&bytes, file.place(TREE, address));
        fields.magic(b"TREE")?;
        fields.version(&[0])?;
        let (level, count) = (fields.u8()?, usize::from(fields.u16()?));
        let (key, child) = (sizes.length, sizes.address);
        let body = count * (key + child) + key;
        let bytes = file.read(TREE, address.saturating_add(head as u64), body as u64)?;
        Ok(Self { bytes, level, count, key, child })
    }

    fn key(&self, index: usize) -> u64 {
        uint(&self.bytes[index * (self.key + self.child)..][..self.key])
    }

    fn child(&self, index: usize) -> u64 {
        uint(&self.bytes[index * (self.key + self.child) + self.key..][..self.child])
    }
}

/// A little-endian number of at most eight bytes.
pub(crate) fn uint(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl SymbolTable {
    pub(crate) fn parse(file: &File, message: &Message) -> Result<Self> {
        let mut fields = message.fields(file, "symbol table message");
        let tree = fields.defined(file.sizes())?;
        let heap = LocalHeap::read(file, fields.defined(file.sizes())?)?;
        Ok(Self { tree, heap })
    }

    /// The addresses of the tree's root and of the heap's header.
    pub(crate) const fn places(&self) -> (u64, u64) {
        (self.tree, self.heap.address())
    }

    /// The heap's names.
    pub(crate) fn names(&self) -> &[u8] {
        self.heap.data()
    }

    /// All entries as stored.
    pub(crate) fn entries(&self, file: &File) -> Result<Vec<SymbolEntry>> {
        let mut nodes = Vec::new();
        let mut budget = file.stored / 24 + 1;
        self.nodes(file, self.tree, MAX_DEPTH, &mut budget, &mut nodes)?;
        let each = file.sizes().length + file.sizes().address + 24;
        let mut entries = Vec::new();
        for address in nodes {
            let head = file.read(NODE, address, 8)?;
            let count = u64::from(u16::from_le_bytes([head[6], head[7]]));
            let bytes = file.read(NODE, address.saturating_add(8), count * each as u64)?;
            for entry in bytes.chunks_exact(each) {
                let at = uint(&entry[..file.sizes().length]);
                let name = self.heap.bytes(file, at)?;
                file.allocate(name.len() as u64, NODE)?;
                entries.push(SymbolEntry { name: name.to_vec(), at, bytes: entry.to_vec() });
            }
        }
        Ok(entries)
    }

    /// The symbol nodes, in order.
    fn nodes(
        &self,
        file: &File,
        address: u64,
        depth: u8,
        budget: &mut u64,
        found: &mut Vec<u64>,
    ) -> Result<()> {
        let node = TreeNode::read(file, address)?;
        match budget.checked_sub(1 + node.count as u64) {
            Some(left) if node.level < depth => *budget = left,
            _ => return Err(file.place(TREE, address).corrupt("the nodes form a cycle")),
        }
        for index in 0..node.count {
            if node.level > 0 {
                self.nodes(file, node.child(index), node.level, budget, found)?;
            } else {
                found.push(node.child(index));
            }
        }
        Ok(())
    }

    /// All links, by name.
    pub(crate) fn all(&self, file: &File) -> Result<Vec<Link>> {
        let (mut links, mut nodes) = (Vec::new(), Vec::new());
        // Each node has at least 24 bytes, which limits their number.
        let mut budget = file.stored / 24 + 1;
        self.nodes(file, self.tree, MAX_DEPTH, &mut budget, &mut nodes)?;
        // Eight entries of 40 bytes, by default.
        file.prefetch(nodes.iter().copied(), 328);
        for node in nodes {
            self.node(file, node, &mut |link| links.push(link))?;
        }
        Ok(links)
    }

    /// The links of a symbol node.
    fn node(&self, file: &File, address: u64, visit: &mut dyn FnMut(Link)) -> Result<()> {
        let sizes = file.sizes();
        let each = sizes.length + sizes.address + 24;
        let head = file.read(NODE, address, 8)?;
        let mut fields = Fields::new(&head, file.place(NODE, address));
        fields.magic(b"SNOD")?;
        fields.version(&[1])?;
        fields.skip(1)?;
        let count = usize::from(fields.u16()?);
        let at = address.saturating_add(8);
        let bytes = file.read(NODE, at, (count * each) as u64)?;
        let mut fields = Fields::new(&bytes, file.place(NODE, at));
        for _ in 0..count {
            let name = fields.length(sizes)?;
            let object = fields.address(sizes)?;
            let cached = fields.u32()?;
            fields.skip(4)?;
            let scratch = fields.array::<16>()?;
            let target = match (cached, object) {
                (2, _) => {
                    let offset = u32::from_le_bytes([scratch[0], scratch[1], scratch[2], scratch[3]]);
                    LinkTarget::Soft(self.heap.name(file, u64::from(offset))?)
                }
                (_, Some(object)) => LinkTarget::Hard(object),
                (_, None) => return Err(fields.place().corrupt("an entry without an address")),
            };
            let name = self.heap.name(file, name)?;
            check_name(&name, fields.place())?;
            visit(Link { name, target, order: None, utf8: false });
        }
        Ok(())
    }

    /// The link with this name, found by descending the tree.
    pub(crate) fn find(&self, file: &File, name: &str) -> Result<Option<Link>> {
        let mut address = self.tree;
        let mut above = MAX_DEPTH;
        loop {
            let node = TreeNode::read(file, address)?;
            if node.level >= above {
                return Err(file.place(TREE, address).corrupt("the nodes form a cycle"));
            }
            above = node.level;
            // Child i holds the names above key i, up to and with key i + 1.
            let (mut low, mut high) = (0, node.count);
            while low < high {
                let middle = low + (high - low) / 2;
                if name.as_bytes() <= self.heap.bytes(file, node.key(middle + 1))? {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            if low == node.count {
                return Ok(None);
            }
            address = node.child(low);
            if node.level == 0 {
                break;
            }
        }
        let mut found = None;
        self.node(file, address, &mut |link| {
            if link.name == name {
                found = Some(link);
            }
        })?;
        Ok(found)
    }
}
