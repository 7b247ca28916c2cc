//! Writes version 1 B-trees, built level by level from sorted keys and children.

use std::collections::BTreeMap;

use hyperslab_core::{Error, Extents, Result};

use super::Entries;
use crate::encode::Encoder;
use crate::file::Sizes;
use crate::index::Stored;
use crate::write::output::Output;

/// Half the children of a chunk tree's node, as in libhdf5.
const CHUNK_K: usize = 32;

/// Writes a tree of `children`, with one key before each and one after the last. Returns the root.
pub(crate) fn build(
    kind: u8,
    half: usize,
    keys: Vec<Vec<u8>>,
    children: Vec<u64>,
    sizes: Sizes,
    output: &Output,
) -> Result<u64> {
    let root = build_below(kind, half, keys, children, sizes, output)?;
    output.append(&root)
}

/// Like [`build`], except for the root, whose bytes are returned.
pub(crate) fn build_below(
    kind: u8,
    half: usize,
    mut keys: Vec<Vec<u8>>,
    mut children: Vec<u64>,
    sizes: Sizes,
    output: &Output,
) -> Result<Vec<u8>> {
    let key = keys.first().map_or(0, Vec::len);
    let node = 8 + 2 * sizes.address + (2 * half + 1) * key + 2 * half * sizes.address;
    let mut level = 0;
    loop {
        // Allocate the nodes of a level side by side, because each node stores its siblings' addresses.
        let count = children.len().div_ceil(2 * half).max(1);
        let first = if count > 1 { output.allocate((count * node) as u64)? } else { 0 };
        let at = |index: usize| first + (index * node) as u64;
        let (mut upper_keys, mut upper) = (Vec::new(), Vec::new());
        let mut start = 0;
        for index in 0..count {
            let length = children.len() / count + usize::from(index < children.len() % count);
            let mut out = Encoder::magic(sizes, b"TREE", kind);
            out.u8(level).count(length, 2, "children of a B-tree node");
            out.address((index > 0).then(|| at(index - 1)));
            out.address((index + 1 < count).then(|| at(index + 1)));
            for child in start..start + length {
                out.put(&keys[child]).address(Some(children[child]));
            }
            if let Some(last) = keys.get(start + length) {
                out.put(last);
            }
            // Reserve the maximum size of a node.
            out.fill(node);
            let bytes = out.finish()?;
            if count == 1 {
                return Ok(bytes);
            }
            output.write_at(at(index), &bytes)?;
            upper_keys.extend(keys.get(start).cloned());
            upper.push(at(index));
            start += length;
        }
        upper_keys.extend(keys.pop());
        (keys, children) = (upper_keys, upper);
        level += 1;
    }
}

/// The chunk index of old-style files.
#[derive(Debug)]
pub(crate) struct Tree1Writer {
    entries: Entries,
    chunk: Extents,
    chunks: BTreeMap<Extents, Stored>,
    root: Option<u64>,
    changed: bool,
}

impl Tree1Writer {
    pub(crate) fn new(entries: Entries, chunk: &[u64]) -> Self {
        Self { entries, chunk: chunk.into(), chunks: BTreeMap::new(), root: None, changed: false }
    }

    /// The tree at `root`, with these chunks.
    pub(crate) fn load(
        entries: Entries,
        chunk: &[u64],
        root: u64,
        chunks: impl IntoIterator<Item = (Extents, Stored)>,
    ) -> Self {
        Self { root: Some(root), chunks: chunks.into_iter().collect(), ..Self::new(entries, chunk) }
    }

    pub(crate) const fn address(&self) -> Option<u64> {
        self.root
    }

    /// Adds a chunk. Returns whether it is new.
    pub(crate) fn set(&mut self, chunk: &[u64], stored: Stored) -> Result<bool> {
        if u32::try_from(stored.size).is_err() {
            return Err(Error::invalid(format!("a chunk of {} bytes in an old-style file", stored.size)));
        }
        self.changed = true;
        Ok(self.chunks.insert(chunk.into(), stored).is_none())
    }

    /// Writes a new tree, to which the layout message must then point.
    pub(crate) fn flush(&mut self, output: &Output) -> Result<()> {
        if !std::mem::take(&mut self.changed) {
            return Ok(());
        }
        let key = |chunk: &[u64], stored: Option<Stored>| {
            let mut out = Encoder::new(self.entries.sizes);
            out.count(stored.map_or(0, |stored| stored.size), 4, "bytes of a chunk")
                .u32(stored.map_or(0, |stored| stored.mask));
            for (at, extent) in chunk.iter().zip(&self.chunk) {
                out.u64(at.saturating_mul(*extent));
            }
            out.u64(0);
            out.finish()
        };
        let mut keys: Vec<_> =
            self.chunks.iter().map(|(chunk, stored)| key(chunk, Some(*stored))).collect::<Result<_>>()?;
        // The last key is only an upper bound.
        if let Some((last, _)) = self.chunks.last_key_value() {
            let mut behind = last.clone();
            if let Some(first) = behind.first_mut() {
                *first = first.saturating_add(1);
            }
            keys.push(key(&behind, None)?);
        }
        let children = self.chunks.values().map(|stored| stored.address).collect();
        self.root = Some(build(1, CHUNK_K, keys, children, self.entries.sizes, output)?);
        Ok(())
    }
}
