//! Writes version 2 B-trees, built from sorted records, most of which existed before.

use std::collections::BTreeMap;

use hyperslab_core::{Error, Extents, Result};

use super::{Entries, Patch};
use crate::btree2::BTree2;
use crate::encode::Encoder;
use crate::file::Sizes;
use crate::index::Stored;
use crate::message::layout::defaults;
use crate::write::output::{Output, SECTOR};

/// The nodes of a written tree, level by level from the leaves up: addresses and bytes.
pub(crate) type Nodes = Vec<Vec<(u64, Vec<u8>)>>;

/// A child: its address, its own record count, and that of its whole subtree.
type Child = (u64, u64, u64);

/// Writes the nodes of a tree of these records, which are sorted and packed. Returns the header's bytes.
///
/// Nodes are filled from the left, so that records added at the end change only the nodes on the right. Nodes already in `kept`
/// are not written again; surplus nodes in `kept` are released.
pub(crate) fn build(
    (kind, node_size, record): (u8, u32, usize),
    records: &[u8],
    kept: &mut Nodes,
    sizes: Sizes,
    output: &Output,
) -> Result<Vec<u8>> {
    let count = (records.len() / record) as u64;
    let plan = BTree2::plan(kind, node_size, record, count, sizes);
    let depth = plan.depth();
    let mut builder = Builder { plan, node_size, record, sizes, output, kept };
    let root = if count == 0 { None } else { Some(builder.levels(depth, records)?) };
    let levels = if root.is_some() { depth + 1 } else { 0 };
    for (address, _) in builder.kept.split_off(levels).into_iter().flatten() {
        output.release(address, u64::from(node_size));
    }
    let (root, root_count, total) = root.map_or((None, 0, 0), |(root, own, total)| (Some(root), own, total));
    builder.plan.encode(root, root_count, total, sizes)
}

struct Builder<'a> {
    plan: BTree2,
    node_size: u32,
    record: usize,
    sizes: Sizes,
    output: &'a Output,
    kept: &'a mut Nodes,
}

impl Builder<'_> {
    /// Writes all levels. Returns the root.
    fn levels(&mut self, depth: usize, records: &[u8]) -> Result<Child> {
        // Leaves, with one record between each pair.
        let most = self.plan.levels[0].most as usize;
        let (mut children, mut between, mut at) = (Vec::new(), Vec::new(), 0);
        for length in parts(records.len() / self.record + 1, most + 1) {
            let end = at + (length - 1) * self.record;
            children.push(self.node(0, children.len(), &records[at..end], &[])?);
            at = (end + self.record).min(records.len());
            between.extend_from_slice(&records[end..at]);
        }
        self.cut(0, children.len());
        for level in 1..=depth {
            let most = self.plan.levels[level].most as usize;
            let (mut upper, mut upper_between, mut at) = (Vec::new(), Vec::new(), 0);
            for length in parts(children.len(), most + 1) {
                let (from, to) = (at * self.record, (at + length - 1) * self.record);
                upper.push(self.node(level, upper.len(), &between[from..to], &children[at..at + length])?);
                upper_between.extend_from_slice(&between[to..(to + self.record).min(between.len())]);
                at += length;
            }
            self.cut(level, upper.len());
            (children, between) = (upper, upper_between);
        }
        match children[..] {
            [root] => Ok(root),
            _ => Err(Error::invalid(format!("the tree has {} roots", children.len()))),
        }
    }

    /// Writes a node, unless it already exists.
    fn node(&mut self, level: usize, index: usize, records: &[u8], children: &[Child]) -> Result<Child> {
        let bytes = self.plan.encode_node(level, records, children, self.sizes)?;
        let own = (records.len() / self.record) as u64;
        let total = own + children.iter().map(|(_, _, total)| total).sum::<u64>();
        if self.kept.len() == level {
            self.kept.push(Vec::new());
        }
        let known =
            self.kept[level].get(index).filter(|(_, held)| *held == bytes).map(|(address, _)| *address);
        if let Some(address) = known {
            return Ok((address, own, total));
        }
        let address = self.output.space(u64::from(self.node_size))?;
        self.output.write_at(address, &bytes)?;
        match self.kept[level].get_mut(index) {
            Some(held) => {
                self.output.release(held.0, u64::from(self.node_size));
                *held = (address, bytes);
            }
            None => self.kept[level].push((address, bytes)),
        }
        Ok((address, own, total))
    }

    /// Releases the nodes of a level that are no longer needed.
    fn cut(&mut self, level: usize, length: usize) {
        for (address, _) in self.kept[level].split_off(length) {
            self.output.release(address, u64::from(self.node_size));
        }
    }
}

/// Splits `count` items into parts of `most` items. The last may be shorter, but has at least two items unless it is the
/// only part, because a node needs a record.
fn parts(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let (whole, rest) = (count / most, count % most);
    let lend = usize::from(rest == 1 && whole > 0);
    let full = std::iter::repeat_n(most, whole - lend);
    let last = [if lend == 1 { most - 1 } else { 0 }, rest + lend];
    full.chain(last.into_iter().filter(|length| *length > 0))
}

/// The chunk index of datasets with several unlimited dimensions.
#[derive(Debug)]
pub(crate) struct Tree2Writer {
    entries: Entries,
    rank: usize,
    chunks: BTreeMap<Extents, Stored>,
    header: Option<u64>,
    changed: bool,
    nodes: Nodes,
}

impl Tree2Writer {
    pub(crate) const fn new(entries: Entries, rank: usize) -> Self {
        Self { entries, rank, chunks: BTreeMap::new(), header: None, changed: false, nodes: Vec::new() }
    }

    /// The tree at `address`, with these chunks.
    pub(crate) fn load(
        entries: Entries,
        rank: usize,
        address: u64,
        chunks: impl IntoIterator<Item = (Extents, Stored)>,
    ) -> Self {
        Self { header: Some(address), chunks: chunks.into_iter().collect(), ..Self::new(entries, rank) }
    }

    pub(crate) const fn address(&self) -> Option<u64> {
        self.header
    }

    /// Adds a chunk. Returns whether it is new.
    pub(crate) fn set(&mut self, chunk: &[u64], stored: Stored) -> Result<bool> {
        self.entries.check(stored)?;
        self.changed = true;
        Ok(self.chunks.insert(chunk.into(), stored).is_none())
    }

    /// Writes a new tree. The patched header then points to it.
    pub(crate) fn flush(&mut self, output: &Output) -> Result<Vec<Patch>> {
        if !std::mem::take(&mut self.changed) {
            return Ok(Vec::new());
        }
        let sizes = self.entries.sizes;
        let mut records = Encoder::new(sizes);
        for (chunk, stored) in &self.chunks {
            self.entries.put(Some(*stored), &mut records);
            chunk.iter().for_each(|at| {
                records.u64(*at);
            });
        }
        let record = self.entries.size() + 8 * self.rank;
        let (node_size, ..) = defaults::TREE;
        let kind = 10 + self.entries.client();
        let made = build((kind, node_size, record), &records.finish()?, &mut self.nodes, sizes, output)?;
        let address = match self.header {
            Some(header) => header,
            None => {
                let length = made.len();
                *self.header.insert(output.allocate_within(length as u64, 0..length, SECTOR)?)
            }
        };
        Ok(vec![Patch { address, bytes: made }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_cover_all_items_and_none_has_a_single_item(count in 1_usize..500, most in 3_usize..60) {
            let all: Vec<usize> = parts(count, most).collect();
            prop_assert_eq!(all.iter().sum::<usize>(), count);
            prop_assert!(all.iter().all(|length| *length <= most && (*length > 1 || count == 1)));
        }
    }

    /// Appending chunks rewrites one path of nodes, not the whole tree.
    #[test]
    fn appending_rewrites_few_nodes() {
        let sizes = Sizes { address: 8, length: 8 };
        let output = Output::new(
            hyperslab_core::storage::LocalFile::scratch(&std::env::temp_dir()).unwrap(),
            "test".into(),
            0,
            48,
        );
        let mut tree = Tree2Writer::new(Entries::new(sizes, false, 4, 1), 2);
        for row in 0..20_000 {
            assert!(tree.set(&[row, 0], Stored { address: row, size: 1, mask: 0 }).unwrap());
        }
        tree.flush(&output).unwrap();
        let before = output.length();
        for row in 20_000..20_010 {
            tree.set(&[row, 0], Stored { address: row, size: 1, mask: 0 }).unwrap();
        }
        tree.flush(&output).unwrap();
        assert!(output.length() - before <= 5 * 2048, "{}", output.length() - before);
    }
}
