//! Version 1 B-trees of chunks: the index of all datasets created before HDF5 1.10.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use bytes::Bytes;
use hyperslab_core::{ChunkCoord, Error, Fields, Result};

use super::{ChunkIndex, Stored, Visit};
use crate::file::{File, FileFields};
use crate::symbol_table::uint;

const NODE: &str = "B-tree v1 chunk node";
const MAX_DEPTH: u8 = 32;

/// A node: alternating keys (stored size, mask, offsets of the first element) and children, with one more key than children.
struct Node {
    address: u64,
    bytes: Bytes,
    level: u8,
    count: usize,
    rank: usize,
    key: usize,
    stride: usize,
    /// Whether each key is after the one before. A search in any other node may miss its chunks.
    in_order: bool,
}

impl Node {
    fn read(index: &ChunkIndex, file: &File, address: u64, above: u8) -> Result<Self> {
        let sizes = file.sizes();
        let head = 8 + 2 * sizes.address;
        let place = file.place(NODE, address);
        let start = file.read(NODE, address, head as u64)?;
        let mut fields = Fields::new(&start, place);
        fields.magic(b"TREE")?;
        fields.version(&[1])?;
        let (level, count) = (fields.u8()?, usize::from(fields.u16()?));
        if level >= above {
            return Err(place.corrupt(format!("level {level} below level {above}")));
        }
        let rank = index.grid.rank();
        let key = 8 + 8 * (rank + 1);
        let stride = key + sizes.address;
        let address = address.saturating_add(head as u64);
        let bytes = file.read(NODE, address, (count * stride) as u64)?;
        let mut node = Self { address, bytes, level, count, rank, key, stride, in_order: true };
        node.in_order = (1..count).all(|index| node.offsets(index - 1).lt(node.offsets(index)));
        Ok(node)
    }

    fn disorder(&self, file: &File) -> Error {
        file.place(NODE, self.address).corrupt("the keys are not in order")
    }

    /// The offset of the chunk's first element along each axis, from key `index`.
    fn offsets(&self, index: usize) -> impl Iterator<Item = u64> + '_ {
        let places = &self.bytes[index * self.stride + 8..][..8 * self.rank];
        places.chunks_exact(8).map(uint)
    }

    /// The size of a node with libhdf5's default number of entries.
    const fn usual_bytes(&self) -> u64 {
        (24 + 64 * self.stride + self.key) as u64
    }

    fn child(&self, index: usize) -> u64 {
        uint(&self.bytes[index * self.stride + self.key..(index + 1) * self.stride])
    }

    fn stored(&self, index: usize) -> Stored {
        let key = &self.bytes[index * self.stride..];
        let mask = uint(&key[4..8]) as u32;
        Stored { address: self.child(index), size: uint(&key[..4]), mask }
    }

    /// Compares a chunk with key `index`.
    fn compare(&self, chunk: &[u64], shape: &[u64], index: usize) -> Ordering {
        let places = chunk.iter().zip(shape).map(|(at, extent)| at.saturating_mul(*extent));
        places.cmp(self.offsets(index))
    }
}

pub(super) fn find(
    index: &ChunkIndex,
    file: &File,
    root: u64,
    chunks: &[ChunkCoord],
    found: &mut [Option<Stored>],
) -> Result<()> {
    let mut order: Vec<usize> = (0..chunks.len()).collect();
    if !chunks.is_sorted() {
        order.sort_unstable_by(|a, b| chunks[*a].cmp(&chunks[*b]));
    }
    let mut search = Search { index, file, chunks, order, found };
    search.descend(root, MAX_DEPTH, 0..chunks.len())
}

struct Search<'a> {
    index: &'a ChunkIndex,
    file: &'a File,
    chunks: &'a [ChunkCoord],
    order: Vec<usize>,
    found: &'a mut [Option<Stored>],
}

impl Search<'_> {
    fn descend(&mut self, address: u64, above: u8, wanted: Range<usize>) -> Result<()> {
        let node = Node::read(self.index, self.file, address, above)?;
        if !node.in_order {
            // A chunk that is not found would read as fill values.
            return Err(node.disorder(self.file));
        }
        if node.level > 0 {
            let mut children: Vec<usize> =
                wanted.clone().filter_map(|at| self.child_of(&node, self.order[at])).collect();
            children.dedup();
            if children.len() > 1 {
                self.file.prefetch(children.iter().map(|child| node.child(*child)), node.usual_bytes());
            }
        }
        let mut at = wanted.start;
        while at < wanted.end {
            let Some(child) = self.child_of(&node, self.order[at]) else {
                at += 1;
                continue;
            };
            if node.level == 0 {
                let number = self.order[at];
                if node.compare(&self.chunks[number], self.index.grid.chunk_shape(), child) == Ordering::Equal
                {
                    self.found[number] = Some(node.stored(child));
                }
                at += 1;
                continue;
            }
            let first = at;
            while at < wanted.end && self.child_of(&node, self.order[at]) == Some(child) {
                at += 1;
            }
            self.descend(node.child(child), node.level, first..at)?;
        }
        Ok(())
    }

    /// The last child whose key is not after the chunk.
    fn child_of(&self, node: &Node, chunk: usize) -> Option<usize> {
        let (mut low, mut high) = (0, node.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if node.compare(&self.chunks[chunk], self.index.grid.chunk_shape(), middle) == Ordering::Less {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low.checked_sub(1)
    }
}

pub(super) fn visit(index: &ChunkIndex, file: &File, root: u64, visit: Visit<'_>) -> Result<()> {
    // A node has at least 24 bytes, which limits their number.
    let mut budget = file.stored / 24 + 1;
    let mut disorder = None;
    let walked = walk(index, file, root, MAX_DEPTH, &mut budget, &mut disorder, visit)?;
    // Reported after the chunks, once all of them were visited.
    disorder.filter(|_| walked.is_continue()).map_or(Ok(()), Err)
}

fn walk(
    index: &ChunkIndex,
    file: &File,
    address: u64,
    above: u8,
    budget: &mut u64,
    disorder: &mut Option<Error>,
    visit: Visit<'_>,
) -> Result<ControlFlow<()>> {
    let node = Node::read(index, file, address, above)?;
    let place = file.place(NODE, node.address);
    let Some(left) = budget.checked_sub(1) else { return Err(place.corrupt("the nodes form a cycle")) };
    *budget = left;
    if !node.in_order {
        disorder.get_or_insert_with(|| node.disorder(file));
    }
    if node.level > 0 {
        file.prefetch((0..node.count).map(|child| node.child(child)), node.usual_bytes());
    }
    for child in 0..node.count {
        if node.level > 0 {
            if walk(index, file, node.child(child), node.level, budget, disorder, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            continue;
        }
        let mut chunk = ChunkCoord::new();
        for (offset, extent) in node.offsets(child).zip(index.grid.chunk_shape()) {
            if offset % extent != 0 {
                return Err(place.corrupt(format!("a chunk at {offset}, not a multiple of {extent}")));
            }
            chunk.push(offset / extent);
        }
        if visit(chunk, node.stored(child))?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
