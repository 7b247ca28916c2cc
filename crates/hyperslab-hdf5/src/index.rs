//! Chunk indexes, which map chunk coordinates to the location of the stored bytes.

mod btree1;
mod btree2;
mod extensible;
pub(crate) mod fixed;
pub(crate) mod geometry;

use std::ops::ControlFlow;
use std::sync::OnceLock;

use hyperslab_core::{ChunkCoord, Error, Extents, Fields, Grid, Place, Result};

use crate::btree2::BTree2;
use crate::file::{File, FileFields, Sizes};
use crate::message::layout::{Chunked, IndexKind};
use crate::symbol_table::uint;
use extensible::ExtensibleArray;
use fixed::FixedArray;

/// The location of a chunk's stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) address: u64,
    pub(crate) size: u64,
    /// Bit `i`: filter `i` was skipped.
    pub(crate) mask: u32,
}

/// Visits a stored chunk.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(ChunkCoord, Stored) -> Result<ControlFlow<()>>;

/// A dataset's chunk index.
#[derive(Debug)]
pub(crate) struct ChunkIndex {
    pub(crate) kind: IndexKind,
    address: Option<u64>,
    grid: Grid,
    numbering: Option<Numbering>,
    /// The size of a chunk in bytes, before filters.
    chunk_bytes: u64,
    /// Whether index records hold sizes and masks.
    filtered: bool,
    fixed: OnceLock<FixedArray>,
    extensible: OnceLock<ExtensibleArray>,
    btree2: OnceLock<BTree2>,
}

/// How chunks are numbered in arrays of chunks: row-major over the largest possible grid, with the unlimited dimension,
/// if any, moved to the front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Numbering {
    /// The axes, slowest first.
    axes: Vec<usize>,
    /// The number of chunks along each of `axes`; for the first, the maximum.
    extents: Vec<u64>,
}

impl Numbering {
    /// Returns `None` if chunks cannot be numbered: there are two unlimited dimensions, or too many chunks.
    pub(crate) fn new(chunk: &[u64], max_shape: &[Option<u64>]) -> Option<Self> {
        let unlimited: Vec<usize> = (0..chunk.len()).filter(|&axis| max_shape[axis].is_none()).collect();
        let mut axes: Vec<usize> = (0..chunk.len()).collect();
        match unlimited[..] {
            [] => {}
            [axis] => axes[..=axis].rotate_right(1),
            _ => return None,
        }
        let extents: Vec<u64> = axes
            .iter()
            .map(|&axis| max_shape[axis].map_or(u64::MAX, |most| most.div_ceil(chunk[axis].max(1))))
            .collect();
        // Only the first may be unlimited, because it is never a factor.
        extents.iter().skip(1).try_fold(1_u64, |product, extent| product.checked_mul((*extent).max(1)))?;
        Some(Self { axes, extents })
    }

    /// The number of a chunk.
    pub(crate) fn number(&self, chunk: &[u64]) -> Option<u64> {
        let mut number = 0_u64;
        for (&axis, &extent) in self.axes.iter().zip(&self.extents) {
            // The first factor is multiplied by zero, whatever it is.
            number = if number == 0 { 0 } else { number.checked_mul(extent)? };
            number = number.checked_add(chunk[axis])?;
        }
        Some(number)
    }

    /// The chunk with this number: the inverse of `number`.
    pub(crate) fn chunk(&self, mut number: u64) -> ChunkCoord {
        let mut chunk = Extents::from_elem(0, self.axes.len());
        for (&axis, &extent) in self.axes.iter().zip(&self.extents).skip(1).rev() {
            chunk[axis] = number % extent.max(1);
            number /= extent.max(1);
        }
        if let Some(&axis) = self.axes.first() {
            chunk[axis] = number;
        }
        chunk
    }
}

impl ChunkIndex {
    pub(crate) fn new(
        layout: &Chunked,
        grid: Grid,
        max_shape: &[Option<u64>],
        chunk_bytes: u64,
        filtered: bool,
    ) -> Self {
        Self {
            kind: layout.index,
            address: layout.address,
            numbering: Numbering::new(grid.chunk_shape(), max_shape),
            grid,
            chunk_bytes,
            filtered,
            fixed: OnceLock::new(),
            extensible: OnceLock::new(),
            btree2: OnceLock::new(),
        }
    }

    /// Finds the locations of these chunks. Each block of the index is read at most once.
    pub(crate) fn find(&self, file: &File, chunks: &[ChunkCoord]) -> Result<Vec<Option<Stored>>> {
        let mut found = vec![None; chunks.len()];
        let Some(address) = self.address else { return Ok(found) };
        match self.kind {
            IndexKind::Single(filtered) => {
                let stored = self.single(address, filtered);
                for (chunk, found) in chunks.iter().zip(&mut found) {
                    *found = chunk.iter().all(|at| *at == 0).then_some(stored);
                }
            }
            IndexKind::Implicit => {
                for (chunk, found) in chunks.iter().zip(&mut found) {
                    *found = Some(self.implicit(file, address, chunk)?);
                }
            }
            IndexKind::BTree1 => btree1::find(self, file, address, chunks, &mut found)?,
            IndexKind::BTree2 => btree2::find(self, file, self.btree2(file, address)?, chunks, &mut found)?,
            IndexKind::FixedArray => {
                let array = self.fixed(file, address)?;
                let mut cursor = array.cursor();
                for (chunk, found) in chunks.iter().zip(&mut found) {
                    *found = cursor.find(self, file, self.number(file, address, chunk)?)?;
                }
            }
            IndexKind::ExtensibleArray => {
                let array = self.extensible(file, address)?;
                let mut cursor = array.cursor();
                for (chunk, found) in chunks.iter().zip(&mut found) {
                    *found = cursor.find(self, file, self.number(file, address, chunk)?)?;
                }
            }
        }
        Ok(found)
    }

    /// Passes every stored chunk of the grid to `visit`, in the order of the index.
    pub(crate) fn visit(&self, file: &File, visit: Visit<'_>) -> Result<()> {
        let Some(address) = self.address else { return Ok(()) };
        // Chunks left outside when the array was shrunk are no longer part of it.
        let extents = self.grid.extents();
        let mut inside = |chunk: ChunkCoord, stored: Stored| {
            if chunk.len() == extents.len() && chunk.iter().zip(&extents).all(|(at, extent)| at < extent) {
                visit(chunk, stored)
            } else {
                Ok(ControlFlow::Continue(()))
            }
        };
        match self.kind {
            IndexKind::Single(filtered) => {
                let chunk = Extents::from_elem(0, self.grid.rank());
                inside(chunk, self.single(address, filtered)).map(|_| ())
            }
            IndexKind::Implicit => self.visit_implicit(file, address, &mut inside),
            IndexKind::BTree1 => btree1::visit(self, file, address, &mut inside),
            IndexKind::BTree2 => btree2::visit(self, file, self.btree2(file, address)?, &mut inside),
            IndexKind::FixedArray => {
                let numbering = self.numbering(file, address)?;
                self.fixed(file, address)?
                    .visit(self, file, &mut |number, stored| inside(numbering.chunk(number), stored))
            }
            IndexKind::ExtensibleArray => {
                let numbering = self.numbering(file, address)?;
                self.extensible(file, address)?
                    .visit(self, file, &mut |number, stored| inside(numbering.chunk(number), stored))
            }
        }
    }

    fn single(&self, address: u64, filtered: Option<(u64, u32)>) -> Stored {
        let (size, mask) = filtered.unwrap_or((self.chunk_bytes, 0));
        Stored { address, size, mask }
    }

    fn implicit(&self, file: &File, address: u64, chunk: &[u64]) -> Result<Stored> {
        let offset = self.number(file, address, chunk)?.checked_mul(self.chunk_bytes);
        let at = offset.and_then(|offset| address.checked_add(offset));
        let at = at.ok_or_else(|| self.place(file, address).corrupt("a chunk past the end of every file"))?;
        Ok(Stored { address: at, size: self.chunk_bytes, mask: 0 })
    }

    fn visit_implicit(&self, file: &File, address: u64, visit: Visit<'_>) -> Result<()> {
        let chunks = self.grid.chunks().unwrap_or(u64::MAX);
        if chunks.saturating_mul(self.chunk_bytes.max(1)) > file.stored {
            return Err(self.place(file, address).corrupt(format!("{chunks} chunks in a smaller file")));
        }
        for number in 0..chunks {
            let chunk = self.grid.coord(number);
            let stored = self.implicit(file, address, &chunk)?;
            if visit(chunk, stored)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn place<'a>(&self, file: &'a File, address: u64) -> Place<'a> {
        file.place("chunk index", address)
    }

    fn numbering(&self, file: &File, address: u64) -> Result<&Numbering> {
        self.numbering.as_ref().ok_or_else(|| {
            self.place(file, address)
                .corrupt("chunks that cannot be numbered: too many, or two unlimited dimensions")
        })
    }

    fn number(&self, file: &File, address: u64, chunk: &[u64]) -> Result<u64> {
        let number = self.numbering(file, address)?.number(chunk);
        number.ok_or_else(|| Error::invalid(format!("{}: no chunk {chunk:?}", file.name)))
    }

    fn fixed(&self, file: &File, address: u64) -> Result<&FixedArray> {
        if let Some(array) = self.fixed.get() {
            return Ok(array);
        }
        let array = FixedArray::read(file, address, self.filtered)?;
        Ok(self.fixed.get_or_init(|| array))
    }

    fn extensible(&self, file: &File, address: u64) -> Result<&ExtensibleArray> {
        if let Some(array) = self.extensible.get() {
            return Ok(array);
        }
        let array = ExtensibleArray::read(file, address, self.filtered)?;
        Ok(self.extensible.get_or_init(|| array))
    }

    fn btree2(&self, file: &File, address: u64) -> Result<&BTree2> {
        if let Some(tree) = self.btree2.get() {
            return Ok(tree);
        }
        let tree = BTree2::read(file, address)?;
        Ok(self.btree2.get_or_init(|| tree))
    }

    /// Parses an element of a fixed or extensible array: an address and, if chunks are filtered, a size and a mask.
    fn element(&self, bytes: &[u8], sizes: Sizes, place: Place<'_>) -> Result<Option<Stored>> {
        if !self.filtered {
            let missing = bytes.iter().all(|byte| *byte == 0xff);
            return Ok((!missing).then(|| Stored { address: uint(bytes), size: self.chunk_bytes, mask: 0 }));
        }
        let mut fields = Fields::new(bytes, place);
        let address = fields.address(sizes)?;
        let size = fields.uint(bytes.len().saturating_sub(sizes.address + 4))?;
        let mask = fields.u32()?;
        Ok(address.map(|address| Stored { address, size, mask }))
    }
}

/// Refuses element sizes that do not match the kind of chunks.
fn check_element(size: usize, client: u8, filtered: bool, sizes: Sizes, place: Place<'_>) -> Result<()> {
    let good = if filtered {
        client == 1 && (sizes.address + 5..=sizes.address + 12).contains(&size)
    } else {
        client == 0 && size == sizes.address
    };
    if good {
        return Ok(());
    }
    let what = if filtered { "filtered" } else { "unfiltered" };
    Err(place.corrupt(format!("elements of {size} bytes of client {client} for {what} chunks")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_and_chunks_are_inverse(
            dims in prop::collection::vec((1_u64..6, 1_u64..30), 1..5), unlimited in 0_usize..6, pick: u32
        ) {
            let chunk: Vec<u64> = dims.iter().map(|d| d.0).collect();
            let most: Vec<Option<u64>> =
                dims.iter().enumerate().map(|(axis, d)| (axis != unlimited).then_some(d.1)).collect();
            let numbering = Numbering::new(&chunk, &most).unwrap();
            let total: u64 = numbering.extents.iter().map(|&extent| if extent == u64::MAX { 1 << 20 } else { extent }).product();
            let number = u64::from(pick) % total;
            prop_assert_eq!(numbering.number(&numbering.chunk(number)), Some(number));
        }
    }

    #[test]
    fn the_unlimited_dimension_comes_first() {
        // (6, N, 40) in chunks of (2, 1, 10): 3 x N x 4 chunks.
        let numbering = Numbering::new(&[2, 1, 10], &[Some(6), None, Some(40)]).unwrap();
        assert_eq!(numbering.number(&[0, 1, 0]), Some(12));
        assert_eq!(numbering.number(&[1, 0, 0]), Some(4));
        assert_eq!(numbering.number(&[2, 5, 3]), Some(5 * 12 + 2 * 4 + 3));
        assert!(Numbering::new(&[1, 1], &[None, None]).is_none());
    }
}
