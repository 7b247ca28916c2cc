//! Version 2 B-trees that are being written: built in one go from sorted records.

use std::collections::BTreeMap;

use hyperslab_core::{Extents, Result};

use super::{Entries, Patch};
use crate::btree2::BTree2;
use crate::encode::Encoder;
use crate::file::Sizes;
use crate::index::Stored;
use crate::message::layout::defaults;
use crate::write::output::{Output, SECTOR};

/// A tree whose nodes are written: its header's bytes, and where its nodes are.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) header: Vec<u8>,
    pub(crate) nodes: Vec<u64>,
}

/// Writes the nodes of a tree of these records, which are sorted and back to back.
pub(crate) fn build(
    kind: u8,
    node_size: u32,
    record: usize,
    records: &[u8],
    sizes: Sizes,
    output: &Output,
) -> Result<Built> {
    let count = (records.len() / record) as u64;
    let plan = BTree2::plan(kind, node_size, record, count, sizes);
    let mut builder = Builder { plan, node_size, record, sizes, output, nodes: Vec::new() };
    if count == 0 {
        return Ok(Built { header: builder.plan.encode(None, 0, 0, sizes), nodes: Vec::new() });
    }
    let (root, root_count, total) = builder.node(builder.plan.depth(), records)?;
    Ok(Built { header: builder.plan.encode(Some(root), root_count, total, sizes), nodes: builder.nodes })
}

struct Builder<'a> {
    plan: BTree2,
    node_size: u32,
    record: usize,
    sizes: Sizes,
    output: &'a Output,
    nodes: Vec<u64>,
}

impl Builder<'_> {
    /// Writes a subtree of this depth; answers its root's address, its root's records and all its records.
    fn node(&mut self, depth: usize, records: &[u8]) -> Result<(u64, u64, u64)> {
        let total = (records.len() / self.record) as u64;
        let (mut own, mut children) = (Vec::new(), Vec::new());
        if depth == 0 {
            own.extend_from_slice(records);
        } else {
            // As few children as hold all, each with as many records as any other, one record between each two.
            let most = self.plan.levels[depth - 1].below;
            let parts = (total + 1).div_ceil(most + 1).max(2);
            let below = total - (parts - 1);
            let mut at = 0;
            for part in 0..parts {
                let length = below / parts + u64::from(part < below % parts);
                let end = at + length as usize * self.record;
                children.push(self.node(depth - 1, &records[at..end])?);
                at = end;
                if part + 1 < parts {
                    own.extend_from_slice(&records[at..at + self.record]);
                    at += self.record;
                }
            }
        }
        let address = self.output.space(u64::from(self.node_size))?;
        self.output.write_at(address, &self.plan.encode_node(depth, &own, &children, self.sizes))?;
        self.nodes.push(address);
        Ok((address, (own.len() / self.record) as u64, total))
    }
}

/// The chunk index of datasets with several unlimited dimensions.
#[derive(Debug)]
pub(crate) struct Tree2Writer {
    entries: Entries,
    rank: usize,
    chunks: BTreeMap<Extents, Stored>,
    header: Option<u64>,
    changed: bool,
    nodes: Vec<u64>,
}

impl Tree2Writer {
    pub(crate) const fn new(entries: Entries, rank: usize) -> Self {
        Self { entries, rank, chunks: BTreeMap::new(), header: None, changed: false, nodes: Vec::new() }
    }

    /// The tree at `address`, whose chunks are these.
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

    /// Enters a chunk; answers whether it was not there before.
    pub(crate) fn set(&mut self, chunk: &[u64], stored: Stored) -> Result<bool> {
        self.entries.check(stored)?;
        self.changed = true;
        Ok(self.chunks.insert(chunk.into(), stored).is_none())
    }

    /// Writes a new tree; the header leads to it then.
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
        let built = build(kind, node_size, record, &records.bytes, sizes, output)?;
        for node in std::mem::replace(&mut self.nodes, built.nodes) {
            output.release(node, u64::from(node_size));
        }
        let address = match self.header {
            Some(header) => header,
            None => {
                let length = built.header.len();
                *self.header.insert(output.allocate_within(length as u64, 0..length, SECTOR)?)
            }
        };
        Ok(vec![Patch { address, bytes: built.header }])
    }
}
