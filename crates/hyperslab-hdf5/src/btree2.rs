//! Version 2 B-trees: links and attributes by name, huge heap objects by id, chunks by coordinate.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use bytes::Bytes;
use hyperslab_core::{Fields, Place, Result};

use crate::encode::Encoder;
use crate::file::{File, FileFields, Sizes};
use crate::message::datatype::width;

const HEADER: &str = "B-tree v2 header";
const NODE: &str = "B-tree v2 node";

/// Magic, version, type; and the checksum after the records.
const PREFIX: usize = 6;
const OVERHEAD: u64 = 10;

/// A tree's header, and the derived sizes of each level.
#[derive(Debug)]
pub(crate) struct BTree2 {
    pub(crate) address: u64,
    pub(crate) kind: u8,
    node_size: u64,
    pub(crate) record: usize,
    depth: usize,
    root: Option<u64>,
    root_count: u64,
    /// By depth: the field widths of child pointers, and the maximum record counts.
    pub(crate) levels: Vec<Level>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Level {
    /// The maximum number of records in a node at this depth.
    pub(crate) most: u64,
    /// The maximum number of records in a subtree of this depth.
    pub(crate) below: u64,
}

/// Compares a key with a record.
pub(crate) type Compare<'a> = &'a mut dyn FnMut(&[u8]) -> Result<Ordering>;

/// Visits a record, given its location.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&[u8], Place<'_>) -> Result<ControlFlow<()>>;

/// Like [`Compare`], for the key with this index.
type CompareMany<'a> = &'a mut dyn FnMut(usize, &[u8]) -> Result<Ordering>;

struct Node {
    bytes: Bytes,
    count: usize,
    children: Vec<(u64, u64)>,
}

impl BTree2 {
    pub(crate) fn read(file: &File, address: u64) -> Result<Self> {
        let sizes = file.sizes();
        let place = file.place(HEADER, address);
        let length = 4 + 1 + 1 + 4 + 2 + 2 + 1 + 1 + sizes.address + 2 + sizes.length + 4;
        let bytes = file.read_checked(HEADER, address, length as u64)?;
        let mut fields = Fields::new(&bytes, place);
        fields.magic(b"BTHD")?;
        fields.version(&[0])?;
        let kind = fields.u8()?;
        let node_size = u64::from(fields.u32()?);
        let record = usize::from(fields.u16()?);
        let depth = usize::from(fields.u16()?);
        // The fill levels at which nodes are split and merged.
        fields.skip(2)?;
        let root = fields.address(sizes)?;
        let root_count = u64::from(fields.u16()?);
        let _total = fields.length(sizes)?;
        if record == 0 || depth > 32 || node_size < OVERHEAD + record as u64 {
            return Err(place
                .corrupt(format!("records of {record} bytes in nodes of {node_size}, {depth} levels deep")));
        }
        let mut tree = Self { address, kind, node_size, record, depth, root, root_count, levels: Vec::new() };
        tree.levels(sizes.address);
        Ok(tree)
    }

    /// Plans an empty tree with room for this many records.
    pub(crate) fn plan(kind: u8, node_size: u32, record: usize, records: u64, sizes: Sizes) -> Self {
        let mut tree = Self {
            address: 0,
            kind,
            node_size: u64::from(node_size),
            record,
            depth: 0,
            root: None,
            root_count: 0,
            levels: Vec::new(),
        };
        tree.levels(sizes.address);
        while tree.levels[tree.depth].below < records {
            tree.depth += 1;
            tree.levels.clear();
            tree.levels(sizes.address);
        }
        tree
    }

    /// Encodes the header. The root must be written first.
    pub(crate) fn encode(
        &self,
        root: Option<u64>,
        root_count: u64,
        total: u64,
        sizes: Sizes,
    ) -> Result<Vec<u8>> {
        let (_, split, merge) = crate::message::layout::defaults::TREE;
        let mut out = Encoder::magic(sizes, b"BTHD", 0);
        out.u8(self.kind).count(self.node_size, 4, "bytes of a B-tree node");
        out.count(self.record, 2, "bytes of a B-tree record").count(self.depth, 2, "levels of a B-tree");
        out.u8(split).u8(merge).address(root).count(root_count, 2, "records of a B-tree node").length(total);
        out.summed()
    }

    /// Encodes a node from its records and, for an inner node, its children (address, records, records of the whole subtree).
    /// The node is padded to the common node size.
    pub(crate) fn encode_node(
        &self,
        depth: usize,
        records: &[u8],
        children: &[(u64, u64, u64)],
        sizes: Sizes,
    ) -> Result<Vec<u8>> {
        let mut out = Encoder::magic(sizes, if depth > 0 { b"BTIN" } else { b"BTLF" }, 0);
        out.u8(self.kind).put(records);
        for (address, count, total) in children {
            out.address(Some(*address)).uint(*count, width(self.levels[0].most));
            if depth > 1 {
                out.uint(*total, width(self.levels[depth - 1].below));
            }
        }
        let mut node = out.summed()?;
        node.resize(self.node_size as usize, 0);
        Ok(node)
    }

    pub(crate) const fn depth(&self) -> usize {
        self.depth
    }

    fn levels(&mut self, address: usize) {
        let (room, record) = (self.node_size - OVERHEAD, self.record as u64);
        let leaf = room / record;
        self.levels.push(Level { most: leaf, below: leaf });
        for depth in 1..=self.depth {
            let pointer = self.pointer(address, depth) as u64;
            let most = room.saturating_sub(pointer) / (record + pointer);
            let child = self.levels[depth - 1].below;
            let below = most.saturating_add(1).saturating_mul(child).saturating_add(most);
            self.levels.push(Level { most, below });
        }
    }

    /// Bytes of a child pointer in a node at this depth.
    fn pointer(&self, address: usize, depth: usize) -> usize {
        let subtree = if depth > 1 { width(self.levels[depth - 1].below) } else { 0 };
        address + width(self.levels[0].most) + subtree
    }

    fn node(&self, file: &File, address: u64, count: u64, depth: usize) -> Result<Node> {
        let place = file.place(NODE, address);
        if count > self.levels[depth].most {
            return Err(place.corrupt(format!("{count} records, room for {}", self.levels[depth].most)));
        }
        let sizes = file.sizes();
        let records = count as usize * self.record;
        let pointer = if depth > 0 { self.pointer(sizes.address, depth) } else { 0 };
        let pointers = if depth > 0 { (count as usize + 1) * pointer } else { 0 };
        let bytes = file.read_checked(NODE, address, (PREFIX + records + pointers + 4) as u64)?;
        let mut fields = Fields::new(&bytes, place);
        fields.magic(if depth > 0 { b"BTIN" } else { b"BTLF" })?;
        fields.version(&[0])?;
        fields.skip(1 + records)?;
        let mut children = Vec::new();
        if depth > 0 {
            children.reserve(count as usize + 1);
            for _ in 0..=count {
                let child = fields.defined(sizes)?;
                let records = fields.uint(width(self.levels[0].most))?;
                if depth > 1 {
                    fields.skip(width(self.levels[depth - 1].below))?;
                }
                children.push((child, records));
            }
        }
        Ok(Node { bytes, count: count as usize, children })
    }

    fn record<'n>(&self, node: &'n Node, index: usize) -> &'n [u8] {
        &node.bytes[PREFIX + index * self.record..][..self.record]
    }

    /// The maximum number of nodes that fit in the file. A tree with more has a cycle.
    fn budget(&self, file: &File) -> u64 {
        file.stored / self.node_size + 2
    }

    /// Passes every record that equals the key to `found`.
    pub(crate) fn search(
        &self,
        file: &File,
        compare: Compare<'_>,
        found: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.search_many(file, 1, &mut |_, record| compare(record), &mut |_, record| found(record))
    }

    /// Passes the records that equal any of these sorted keys to `found`. Each node is read once.
    pub(crate) fn search_many(
        &self,
        file: &File,
        keys: usize,
        compare: CompareMany<'_>,
        found: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(root) = self.root else { return Ok(()) };
        let mut descent = Descent { tree: self, file, compare, found };
        descent.run((root, self.root_count), self.depth, 0..keys)
    }

    /// Passes every record to `visit`, in order.
    pub(crate) fn visit(&self, file: &File, visit: Visit<'_>) -> Result<()> {
        let Some(root) = self.root else { return Ok(()) };
        let mut budget = self.budget(file);
        self.walk(file, (root, self.root_count), self.depth, &mut budget, visit).map(|_| ())
    }

    fn walk(
        &self,
        file: &File,
        (address, count): (u64, u64),
        depth: usize,
        budget: &mut u64,
        visit: Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        let place = file.place(NODE, address);
        let Some(left) = budget.checked_sub(1) else {
            return Err(place.corrupt("more nodes than the file has room for"));
        };
        *budget = left;
        let node = self.node(file, address, count, depth)?;
        file.prefetch(node.children.iter().map(|(child, _)| *child), self.node_size);
        for index in 0..=node.count {
            if let Some(child) = node.children.get(index)
                && self.walk(file, *child, depth - 1, budget, visit)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            if index < node.count && visit(self.record(&node, index), place)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

struct Descent<'a> {
    tree: &'a BTree2,
    file: &'a File,
    compare: CompareMany<'a>,
    found: &'a mut dyn FnMut(usize, &[u8]) -> Result<()>,
}

impl Descent<'_> {
    fn run(&mut self, (address, count): (u64, u64), depth: usize, keys: Range<usize>) -> Result<()> {
        let node = self.tree.node(self.file, address, count, depth)?;
        let mut below: Vec<(usize, Range<usize>)> = Vec::new();
        for key in keys {
            let first = self.first(&node, key, Ordering::Equal)?;
            let behind = self.first(&node, key, Ordering::Less)?;
            for index in first..behind {
                (self.found)(key, self.tree.record(&node, index))?;
            }
            // Records that equal the key may also be in the children between them.
            for child in first..=behind {
                match below.last_mut() {
                    Some((last, range)) if *last == child && range.end == key => range.end += 1,
                    _ => below.push((child, key..key + 1)),
                }
            }
        }
        if depth > 0 {
            if below.len() > 1 {
                let children = below.iter().map(|(child, _)| node.children[*child].0);
                self.file.prefetch(children, self.tree.node_size);
            }
            for (child, keys) in below {
                self.run(node.children[child], depth - 1, keys)?;
            }
        }
        Ok(())
    }

    /// The first record that compares with the key as `least` or greater.
    fn first(&mut self, node: &Node, key: usize, least: Ordering) -> Result<usize> {
        let (mut low, mut high) = (0, node.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if (self.compare)(key, self.tree.record(node, middle))? <= least {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }
}
