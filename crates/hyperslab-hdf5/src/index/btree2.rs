//! Version 2 B-trees of chunks: the index of datasets with two or more unlimited dimensions.

use std::cmp::Ordering;

use hyperslab_core::{ChunkCoord, Fields, Place, Result};

use super::{ChunkIndex, Stored, Visit};
use crate::btree2::BTree2;
use crate::file::{File, FileFields};
use crate::symbol_table::uint;

/// The layout of a record: address, [size, mask,] the chunk's coordinate.
#[derive(Clone, Copy)]
struct Record {
    rank: usize,
    address: usize,
    /// Bytes of the stored size; 0 without filters.
    size: usize,
}

impl Record {
    fn new(index: &ChunkIndex, file: &File, tree: &BTree2) -> Result<Self> {
        let (rank, address) = (index.grid.rank(), file.sizes().address);
        let place = file.place("B-tree v2 header", tree.address);
        let bare = address + 8 * rank;
        let expected = if index.filtered { 11 } else { 10 };
        if tree.kind != expected {
            return Err(place.corrupt(format!("type {}, expected {expected}", tree.kind)));
        }
        let size = if index.filtered { tree.record.saturating_sub(bare + 4) } else { 0 };
        let good = if index.filtered { (1..=8).contains(&size) } else { tree.record == bare };
        if good {
            return Ok(Self { rank, address, size });
        }
        Err(place.corrupt(format!("records of {} bytes for chunks of rank {rank}", tree.record)))
    }

    fn places<'r>(&self, record: &'r [u8]) -> impl Iterator<Item = u64> + 'r {
        record[record.len() - 8 * self.rank..].chunks_exact(8).map(uint)
    }

    fn stored(&self, index: &ChunkIndex, file: &File, record: &[u8], place: Place<'_>) -> Result<Stored> {
        let mut fields = Fields::new(record, place);
        let address = fields.defined(file.sizes())?;
        if self.size == 0 {
            return Ok(Stored { address, size: index.chunk_bytes, mask: 0 });
        }
        debug_assert_eq!(fields.position(), self.address);
        Ok(Stored { address, size: fields.uint(self.size)?, mask: fields.u32()? })
    }
}

pub(super) fn find(
    index: &ChunkIndex,
    file: &File,
    tree: &BTree2,
    chunks: &[ChunkCoord],
    found: &mut [Option<Stored>],
) -> Result<()> {
    let layout = Record::new(index, file, tree)?;
    let place = file.place("B-tree v2 node", tree.address);
    let mut order: Vec<usize> = (0..chunks.len()).collect();
    if !chunks.is_sorted() {
        order.sort_unstable_by(|a, b| chunks[*a].cmp(&chunks[*b]));
    }
    let compare = &mut |key: usize, record: &[u8]| -> Result<Ordering> {
        Ok(chunks[order[key]].iter().copied().cmp(layout.places(record)))
    };
    tree.search_many(file, chunks.len(), compare, &mut |key, record| {
        found[order[key]] = Some(layout.stored(index, file, record, place)?);
        Ok(())
    })
}

pub(super) fn visit(index: &ChunkIndex, file: &File, tree: &BTree2, visit: Visit<'_>) -> Result<()> {
    let layout = Record::new(index, file, tree)?;
    tree.visit(file, &mut |record, place| {
        visit(layout.places(record).collect(), layout.stored(index, file, record, place)?)
    })
}
