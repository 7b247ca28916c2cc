//! Writes fractal heaps, built in one pass from all their objects.

use hyperslab_codec::checksum::lookup3;
use hyperslab_core::{Error, Result};

use super::object::tree;
use super::output::{Output, SECTOR};
use crate::encode::Encoder;
use crate::file::Sizes;
use crate::message::datatype::width;

/// libhdf5's parameters.
const WIDTH: u64 = 4;
const MAX_DIRECT: u64 = 65536;
const MAX_MANAGED: u64 = 4096;
const BLOCK: &str = "a parameter of a heap";
/// Bytes per node of the tree of huge objects, and of the name trees.
pub(crate) const NODE: u32 = 512;

/// The parameters of a heap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeapShape {
    id_length: usize,
    /// log2 of the maximum number of bytes.
    bits: u32,
    /// Bytes of the first block.
    start: u64,
}

/// Links of a group.
pub(crate) const LINKS: HeapShape = HeapShape { id_length: 7, bits: 32, start: 512 };
/// Attributes of an object.
pub(crate) const ATTRIBUTES: HeapShape = HeapShape { id_length: 8, bits: 40, start: 1024 };

/// Writes a heap with these objects. Returns its address and the object ids.
pub(crate) fn build(
    objects: &[&[u8]],
    shape: HeapShape,
    sizes: Sizes,
    output: &Output,
) -> Result<(u64, Vec<Vec<u8>>)> {
    let length = 22 + 12 * sizes.length + 3 * sizes.address + 4;
    let header = output.allocate_within(length as u64, 0..length, SECTOR)?;
    let mut heap = Builder {
        shape,
        sizes,
        output,
        header,
        objects: objects
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, object)| object.len() as u64 <= MAX_MANAGED)
            .collect(),
        next: 0,
        ids: vec![Vec::new(); objects.len()],
        allocated: 0,
        free: 0,
        end: 0,
    };
    let (huge, huge_tree) = heap.huge(objects)?;
    let (root, rows) = heap.root()?;
    let mut out = Encoder::magic(sizes, b"FRHP", 0);
    // Direct blocks have checksums.
    out.count(shape.id_length, 2, "bytes of a heap id").u16(0).u8(2).count(MAX_MANAGED, 4, BLOCK);
    out.length(huge.len() as u64).address(huge_tree);
    out.length(heap.free).address(None);
    let managed = if rows == 0 { heap.allocated } else { heap.span(rows) };
    out.length(managed).length(heap.allocated).length(heap.end).length(heap.objects.len() as u64);
    out.length(huge.iter().map(|length| *length as u64).sum()).length(huge.len() as u64);
    out.length(0).length(0);
    out.count(WIDTH, 2, BLOCK).length(shape.start).length(MAX_DIRECT).count(shape.bits, 2, BLOCK).u16(1);
    out.address(root).count(rows, 2, "rows of a heap");
    output.write_at(header, &out.summed()?)?;
    Ok((header, heap.ids))
}

struct Builder<'a> {
    shape: HeapShape,
    sizes: Sizes,
    output: &'a Output,
    header: u64,
    /// The objects for direct blocks, with their overall numbers.
    objects: Vec<(usize, &'a [u8])>,
    next: usize,
    ids: Vec<Vec<u8>>,
    allocated: u64,
    free: u64,
    /// Where the next block would start.
    end: u64,
}

impl Builder<'_> {
    const fn offset_bytes(&self) -> usize {
        (self.shape.bits as usize).div_ceil(8)
    }

    /// Bytes of a block of this row.
    const fn row(&self, row: u64) -> u64 {
        if row == 0 { self.shape.start } else { self.shape.start << (row - 1) }
    }

    /// The bytes that this many rows cover.
    fn span(&self, rows: u64) -> u64 {
        (0..rows).map(|row| WIDTH * self.row(row)).sum()
    }

    const fn direct_rows(&self) -> u64 {
        (MAX_DIRECT.ilog2() - self.shape.start.ilog2() + 2) as u64
    }

    /// Objects too large for blocks are stored separately and found by a tree of their numbers.
    fn huge(&mut self, objects: &[&[u8]]) -> Result<(Vec<usize>, Option<u64>)> {
        let (mut lengths, mut records) = (Vec::new(), Encoder::new(self.sizes));
        for (number, object) in objects.iter().enumerate().filter(|(_, o)| o.len() as u64 > MAX_MANAGED) {
            let address = self.output.append(object)?;
            lengths.push(object.len());
            let id = lengths.len() as u64;
            records.address(Some(address)).length(object.len() as u64).length(id);
            let mut own = Encoder::new(self.sizes);
            own.u8(0x10).uint(id, self.shape.id_length - 1);
            own.fill(self.shape.id_length);
            self.ids[number] = own.finish()?;
        }
        if lengths.is_empty() {
            return Ok((lengths, None));
        }
        let record = self.sizes.address + 2 * self.sizes.length;
        Ok((lengths, Some(tree(1, record, &records.finish()?, self.sizes, self.output)?)))
    }

    /// The root: nothing, a direct block, or an indirect block with its rows.
    fn root(&mut self) -> Result<(Option<u64>, u64)> {
        if self.objects.is_empty() {
            return Ok((None, 0));
        }
        let needed: u64 = self.objects.iter().map(|(_, object)| object.len() as u64).sum();
        if needed + self.head() as u64 <= self.shape.start {
            self.end = self.shape.start;
            return Ok((self.direct(0, self.shape.start)?, 0));
        }
        let most = u64::from(self.shape.bits - self.shape.start.ilog2() - WIDTH.ilog2()) + 1;
        let (root, rows) = self.indirect(0, most, true)?;
        if self.next < self.objects.len() {
            return Err(Error::invalid("too many names or attributes for one heap"));
        }
        Ok((root, rows))
    }

    /// Bytes before a direct block's objects.
    fn head(&self) -> usize {
        5 + self.sizes.address + self.offset_bytes() + 4
    }

    /// Fills a direct block with as many objects as fit; `None` if the next is too large for it.
    fn direct(&mut self, offset: u64, size: u64) -> Result<Option<u64>> {
        let head = self.head();
        let fits = |used: usize, object: &[u8]| (used + object.len()) as u64 <= size;
        if !self.objects.get(self.next).is_some_and(|(_, object)| fits(head, object)) {
            return Ok(None);
        }
        let mut out = Encoder::magic(self.sizes, b"FHDB", 0);
        out.address(Some(self.header)).uint(offset, self.offset_bytes());
        let sum = out.len();
        out.u32(0);
        while let Some((number, object)) = self.objects.get(self.next) {
            if !fits(out.len(), object) {
                break;
            }
            let mut id = Encoder::new(self.sizes);
            id.u8(0).uint(offset + out.len() as u64, self.offset_bytes());
            id.uint(object.len() as u64, width(MAX_MANAGED).min(width(MAX_DIRECT)));
            id.fill(self.shape.id_length);
            self.ids[*number] = id.finish()?;
            out.put(object);
            self.next += 1;
        }
        self.free += size - out.len() as u64;
        self.allocated += size;
        out.fill(size as usize);
        let mut block = out.finish()?;
        // The checksum covers the whole block, with its own bytes as zeros.
        let value = lookup3(&block, 0);
        block[sum..sum + 4].copy_from_slice(&value.to_le_bytes());
        self.end = self.end.max(offset + size);
        self.output.append(&block).map(Some)
    }

    /// Fills an indirect block's rows in turn; for the root only as many as needed. `None` if nothing fits.
    fn indirect(&mut self, offset: u64, rows: u64, is_root: bool) -> Result<(Option<u64>, u64)> {
        let (mut children, mut at, mut used) = (Vec::new(), offset, 0);
        for row in 0..rows {
            let size = self.row(row);
            for _ in 0..WIDTH {
                let child = if self.next == self.objects.len() {
                    None
                } else if row < self.direct_rows() {
                    self.direct(at, size)?
                } else {
                    let below = u64::from(size.ilog2() - (self.shape.start * WIDTH).ilog2()) + 1;
                    self.indirect(at, below, false)?.0
                };
                if child.is_some() {
                    used = row + 1;
                }
                children.push(child);
                at += size;
            }
            if is_root && self.next == self.objects.len() {
                break;
            }
        }
        if used == 0 {
            return Ok((None, 0));
        }
        let rows = if is_root { used } else { rows };
        let mut out = Encoder::magic(self.sizes, b"FHIB", 0);
        out.address(Some(self.header)).uint(offset, self.offset_bytes());
        children.iter().take((rows * WIDTH) as usize).for_each(|child| {
            out.address(*child);
        });
        Ok((Some(self.output.append(&out.summed()?)?), rows))
    }
}
