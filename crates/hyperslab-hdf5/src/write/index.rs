//! Chunk indexes being written.

mod btree1;
mod btree2;
mod extensible;
mod fixed;

use std::ops::ControlFlow;

use hyperslab_core::{Error, Extents, Grid, Result, product};

use super::output::Output;
use crate::encode::Encoder;
use crate::file::{File, Sizes, ones};
use crate::index::{ChunkIndex, Numbering, Stored};
use crate::message::layout::{Chunked, IndexKind};
use crate::symbol_table::uint;

pub(crate) use btree1::{Tree1Writer, build as build_btree1, build_below as build_btree1_below};
pub(crate) use btree2::{Tree2Writer, build as build_btree2};
pub(crate) use extensible::ExtensibleWriter;
pub(crate) use fixed::FixedWriter;

/// Bytes to overwrite in place, once everything that they refer to is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Patch {
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
}

/// How chunks are encoded as index entries.
#[derive(Debug, Clone)]
pub(crate) struct Entries {
    pub(crate) sizes: Sizes,
    /// Bytes of a chunk's stored size; `None` when chunks are not filtered and entries hold addresses alone.
    pub(crate) size_width: Option<usize>,
    /// Bytes of a chunk before any filter.
    pub(crate) chunk_bytes: u64,
}

impl Entries {
    /// Layout version 5 stores sizes in full width; version 4 in one byte more than an unfiltered chunk's size needs. libhdf5
    /// crashes on a mixture.
    pub(crate) fn new(sizes: Sizes, filtered: bool, version: u8, chunk_bytes: u64) -> Self {
        let narrow = 1 + (chunk_bytes.max(1).ilog2() as usize + 8) / 8;
        let width = if version >= 5 { sizes.length } else { narrow.min(8) };
        Self { sizes, size_width: filtered.then_some(width), chunk_bytes }
    }

    /// Bytes of an entry.
    pub(crate) fn size(&self) -> usize {
        self.sizes.address + self.size_width.map_or(0, |width| width + 4)
    }

    /// The client id of arrays with such entries.
    pub(crate) fn client(&self) -> u8 {
        u8::from(self.size_width.is_some())
    }

    /// Appends an entry; `None` for a chunk that was never written.
    pub(crate) fn put(&self, stored: Option<Stored>, out: &mut Encoder) {
        out.address(stored.map(|stored| stored.address));
        if let Some(width) = self.size_width {
            let (size, mask) = stored.map_or((0, 0), |stored| (stored.size, stored.mask));
            out.uint(size, width).u32(mask);
        }
    }

    /// The bytes of an entry.
    pub(crate) fn entry(&self, stored: Option<Stored>) -> Result<Vec<u8>> {
        let mut out = Encoder::new(self.sizes);
        self.put(stored, &mut out);
        out.finish()
    }

    /// Refuses a chunk whose size the entries cannot hold.
    pub(crate) fn check(&self, stored: Stored) -> Result<()> {
        match self.size_width {
            Some(width) if stored.size > ones(width) => {
                Err(Error::invalid(format!("a chunk of {} stored bytes, sizes have {width}", stored.size)))
            }
            None if stored.size != self.chunk_bytes => Err(Error::invalid(format!(
                "a chunk of {} bytes, expected {}",
                stored.size, self.chunk_bytes
            ))),
            _ => Ok(()),
        }
    }

    /// Returns true if these bytes hold an entry.
    pub(crate) fn is_set(&self, entry: &[u8]) -> bool {
        uint(&entry[..self.sizes.address]) != ones(self.sizes.address)
    }
}

/// A chunk index being written.
#[derive(Debug)]
pub(crate) enum IndexWriter {
    Single(Option<Stored>, Entries),
    /// All chunks back to back from here.
    Implicit(u64, Numbering, Entries),
    Fixed(Box<FixedWriter>, Numbering),
    Extensible(Box<ExtensibleWriter>, Numbering),
    BTree2(Box<Tree2Writer>),
    BTree1(Box<Tree1Writer>),
}

impl IndexWriter {
    /// A new index of this kind.
    pub(crate) fn new(
        kind: IndexKind,
        chunk: &[u64],
        max_shape: &[Option<u64>],
        entries: Entries,
        output: &Output,
    ) -> Result<Self> {
        let numbering = || {
            Numbering::new(chunk, max_shape)
                .ok_or_else(|| Error::invalid(format!("more chunks of {chunk:?} than can be numbered")))
        };
        let most = || {
            let grid: Vec<u64> = max_shape
                .iter()
                .zip(chunk)
                .map(|(most, chunk)| most.unwrap_or(u64::MAX).div_ceil(*chunk))
                .collect();
            product(&grid).ok_or_else(|| Error::invalid(format!("more chunks than can be counted: {grid:?}")))
        };
        Ok(match kind {
            IndexKind::Single(_) => Self::Single(None, entries),
            IndexKind::Implicit => {
                let bytes = most()?.checked_mul(entries.chunk_bytes);
                let bytes =
                    bytes.ok_or_else(|| Error::invalid("the chunks need more bytes than a file can hold"))?;
                Self::Implicit(output.allocate_data(bytes)?, numbering()?, entries)
            }
            IndexKind::FixedArray => Self::Fixed(Box::new(FixedWriter::new(entries, most()?)?), numbering()?),
            IndexKind::ExtensibleArray => {
                Self::Extensible(Box::new(ExtensibleWriter::new(entries)), numbering()?)
            }
            IndexKind::BTree2 => Self::BTree2(Box::new(Tree2Writer::new(entries, chunk.len()))),
            IndexKind::BTree1 => Self::BTree1(Box::new(Tree1Writer::new(entries, chunk))),
        })
    }

    /// The address of a chunk that is allocated before it is written.
    pub(crate) fn place(&self, chunk: &[u64]) -> Option<u64> {
        match self {
            Self::Implicit(base, numbering, entries) => {
                Some(base + numbering.number(chunk)? * entries.chunk_bytes)
            }
            _ => None,
        }
    }

    /// The index of an existing dataset.
    pub(crate) fn load(
        layout: &Chunked,
        grid: &Grid,
        max_shape: &[Option<u64>],
        entries: Entries,
        file: &File,
        output: &Output,
    ) -> Result<Self> {
        let chunk = grid.chunk_shape();
        let Some(address) = layout.address else {
            return Self::new(layout.index, chunk, max_shape, entries, output);
        };
        let filtered = entries.size_width.is_some();
        let all = |entries: &Entries| -> Result<Vec<(Extents, Stored)>> {
            let index = ChunkIndex::new(layout, grid.clone(), max_shape, entries.chunk_bytes, filtered);
            let mut found = Vec::new();
            index.visit(file, &mut |chunk, stored| {
                found.push((chunk, stored));
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(found)
        };
        let numbering = || {
            let numbering = Numbering::new(chunk, max_shape);
            numbering.ok_or_else(|| Error::invalid(format!("more chunks of {chunk:?} than can be numbered")))
        };
        Ok(match layout.index {
            IndexKind::Single(stored) => {
                let (size, mask) = stored.unwrap_or((entries.chunk_bytes, 0));
                Self::Single(Some(Stored { address, size, mask }), entries)
            }
            IndexKind::Implicit => Self::Implicit(address, numbering()?, entries),
            IndexKind::FixedArray => {
                Self::Fixed(Box::new(FixedWriter::load(entries, address, output)?), numbering()?)
            }
            IndexKind::ExtensibleArray => {
                Self::Extensible(Box::new(ExtensibleWriter::load(entries, address, output)?), numbering()?)
            }
            IndexKind::BTree2 => {
                let found = all(&entries)?;
                Self::BTree2(Box::new(Tree2Writer::load(entries, chunk.len(), address, found)))
            }
            IndexKind::BTree1 => {
                let found = all(&entries)?;
                Self::BTree1(Box::new(Tree1Writer::load(entries, chunk, address, found)))
            }
        })
    }

    /// Adds a chunk to the index. Returns whether it is new.
    pub(crate) fn set(&mut self, chunk: &[u64], stored: Stored, output: &Output) -> Result<bool> {
        let number = |numbering: &Numbering| {
            numbering.number(chunk).ok_or_else(|| Error::invalid(format!("no chunk {chunk:?}")))
        };
        Ok(match self {
            Self::Single(own, entries) => {
                entries.check(stored)?;
                own.replace(stored).is_none()
            }
            Self::Implicit(..) => true,
            Self::Fixed(array, numbering) => array.set(number(numbering)?, stored, output)?,
            Self::Extensible(array, numbering) => array.set(number(numbering)?, stored, output)?,
            Self::BTree2(tree) => tree.set(chunk, stored)?,
            Self::BTree1(tree) => tree.set(chunk, stored)?,
        })
    }

    /// Writes pending changes. Returns the in-place changes that must follow.
    pub(crate) fn flush(&mut self, output: &Output) -> Result<Vec<Patch>> {
        match self {
            Self::Single(..) | Self::Implicit(..) => Ok(Vec::new()),
            Self::Fixed(array, _) => array.flush(output),
            Self::Extensible(array, _) => array.flush(output),
            Self::BTree2(tree) => tree.flush(output),
            Self::BTree1(tree) => tree.flush(output).map(|()| Vec::new()),
        }
    }

    /// The address of the index for the layout message; `None` if there is no index yet.
    pub(crate) fn address(&self) -> Option<u64> {
        match self {
            Self::Single(stored, _) => stored.map(|stored| stored.address),
            Self::Implicit(base, ..) => Some(*base),
            Self::Fixed(array, _) => array.address(),
            Self::Extensible(array, _) => array.address(),
            Self::BTree2(tree) => tree.address(),
            Self::BTree1(tree) => tree.address(),
        }
    }

    /// The kind of index, with the parameters that only the layout message holds.
    pub(crate) fn kind(&self) -> IndexKind {
        match self {
            Self::Single(stored, entries) => IndexKind::Single(
                stored.filter(|_| entries.size_width.is_some()).map(|stored| (stored.size, stored.mask)),
            ),
            Self::Implicit(..) => IndexKind::Implicit,
            Self::Fixed(..) => IndexKind::FixedArray,
            Self::Extensible(..) => IndexKind::ExtensibleArray,
            Self::BTree2(_) => IndexKind::BTree2,
            Self::BTree1(_) => IndexKind::BTree1,
        }
    }
}
