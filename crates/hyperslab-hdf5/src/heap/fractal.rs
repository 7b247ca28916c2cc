//! Fractal heaps: links, attributes and shared messages of new-style objects.

use std::collections::BTreeMap;
use std::sync::Mutex;

use bytes::Bytes;
use hyperslab_codec::checksum::{agree, lookup3};
use hyperslab_core::{Fields, Place, Result};

use crate::btree2::BTree2;
use crate::file::{File, FileFields, lock};
use crate::filters::Pipeline;
use crate::message::{datatype::width, pipeline};
use crate::symbol_table::uint;

const STRUCTURE: &str = "fractal heap";
const DIRECT: &str = "fractal heap direct block";
const INDIRECT: &str = "fractal heap indirect block";

/// The maximum nesting depth of indirect blocks; the doubling table reaches 64 bits long before.
const MAX_DEPTH: usize = 64;

/// A fractal heap.
#[derive(Debug)]
pub(crate) struct FractalHeap {
    address: u64,
    id_length: usize,
    /// Whether direct blocks have checksums.
    summed: bool,
    max_managed: u64,
    huge: Option<u64>,
    width: u64,
    start: u64,
    max_direct: u64,
    /// Bytes of a block offset.
    offset_bytes: usize,
    root: Option<u64>,
    rows: u64,
    filters: Option<RootFilter>,
    /// Direct blocks that were read, checked and, if filtered, decoded: by starting heap offset, with their addresses.
    blocks: Mutex<Blocks>,
}

/// Blocks by starting heap offset, and their total size.
#[derive(Debug, Default)]
struct Blocks {
    held: BTreeMap<u64, (u64, Bytes)>,
    bytes: u64,
}

/// Limits on the blocks and bytes that a heap caches.
const MAX_CACHED: usize = 1024;
const MAX_CACHED_BYTES: u64 = 64 << 20;

#[derive(Debug)]
struct RootFilter {
    size: u64,
    mask: u32,
    pipeline: Pipeline,
}

/// A direct block: its address and size, and if it is filtered, its stored size and mask.
struct Block {
    address: u64,
    size: u64,
    /// The heap offset of its first byte.
    start: u64,
    stored: Option<(u64, u32)>,
}

impl FractalHeap {
    pub(crate) fn read(file: &File, address: u64) -> Result<Self> {
        let sizes = file.sizes();
        let place = file.place(STRUCTURE, address);
        let fixed = 22 + 12 * sizes.length + 3 * sizes.address;
        let head = file.read(STRUCTURE, address, fixed as u64)?;
        let mut fields = Fields::new(&head, place);
        fields.magic(b"FRHP")?;
        fields.version(&[0])?;
        let id_length = usize::from(fields.u16()?);
        let filter_length = usize::from(fields.u16()?);
        let extra = if filter_length > 0 { sizes.length + 4 + filter_length } else { 0 };
        let bytes = file.read_checked(STRUCTURE, address, (fixed + extra + 4) as u64)?;
        let mut fields = Fields::new(&bytes, place);
        fields.skip(9)?;
        let flags = fields.u8()?;
        let max_managed = u64::from(fields.u32()?);
        let _next_huge = fields.length(sizes)?;
        let huge = fields.address(sizes)?;
        let _free = fields.length(sizes)?;
        let _free_space = fields.address(sizes)?;
        // Statistics: managed, allocated, iterator, objects, huge size and count, tiny size and count.
        fields.skip(8 * sizes.length)?;
        let width = u64::from(fields.u16()?);
        let (start, max_direct) = (fields.length(sizes)?, fields.length(sizes)?);
        let bits = u64::from(fields.u16()?);
        let _start_rows = fields.u16()?;
        let root = fields.address(sizes)?;
        let rows = u64::from(fields.u16()?);
        if !start.is_power_of_two()
            || !max_direct.is_power_of_two()
            || !width.is_power_of_two()
            || start > max_direct
            || bits > 64
            || start.checked_mul(width).is_none()
        {
            return Err(place.corrupt(format!(
                "blocks of {start} to {max_direct} bytes, {width} in a row, {bits} bits of offset"
            )));
        }
        let filters = if filter_length > 0 {
            let (size, mask) = (fields.length(sizes)?, fields.u32()?);
            let specs = pipeline::parse(&mut fields)?;
            Some(RootFilter { size, mask, pipeline: Pipeline::new(specs) })
        } else {
            None
        };
        Ok(Self {
            address,
            id_length,
            summed: flags & 2 != 0,
            max_managed,
            huge,
            width,
            start,
            max_direct,
            offset_bytes: (bits as usize).div_ceil(8),
            root,
            rows,
            filters,
            blocks: Mutex::default(),
        })
    }

    fn place<'a>(&self, file: &'a File) -> Place<'a> {
        file.place(STRUCTURE, self.address)
    }

    /// The number of bytes of an id.
    pub(crate) const fn id_length(&self) -> usize {
        self.id_length
    }

    /// The object with this id, and its address in the file if it is stored unfiltered.
    pub(crate) fn object(&self, file: &File, id: &[u8]) -> Result<(Bytes, u64)> {
        let place = self.place(file);
        let id = id.get(..self.id_length.min(id.len())).unwrap_or(id);
        let mut fields = Fields::new(id, place);
        let first = fields.u8()?;
        match first >> 4 & 3 {
            0 => {
                let offset = fields.uint(self.offset_bytes)?;
                let length = fields.uint(width(self.max_direct).min(width(self.max_managed)))?;
                self.managed(file, offset, length)
            }
            1 => self.huge(file, &mut fields),
            2 => {
                let mut length = usize::from(first & 15) + 1;
                if self.id_length > 18 {
                    length = (usize::from(first & 15) << 8 | usize::from(fields.u8()?)) + 1;
                }
                Ok((Bytes::copy_from_slice(fields.bytes(length)?), self.address))
            }
            kind => Err(place.corrupt(format!("unknown id kind {kind}"))),
        }
    }

    /// The heap offset in an id, by which ids are best sorted before reading their objects. Objects outside the heap come first.
    pub(crate) fn offset(&self, id: &[u8]) -> u64 {
        let managed = id.first().is_some_and(|first| first >> 4 & 3 == 0);
        let offset = id.get(1..1 + self.offset_bytes.min(8)).filter(|_| managed);
        offset.map_or(0, uint)
    }

    fn managed(&self, file: &File, offset: u64, length: u64) -> Result<(Bytes, u64)> {
        if let Some(found) = self.cached(offset, length) {
            // Many ids may name the same bytes.
            file.spend(length, STRUCTURE)?;
            return Ok(found);
        }
        let block = self.find(file, offset)?;
        let bytes = self.block(file, &block)?;
        let within = offset.saturating_sub(block.start);
        let range = within.checked_add(length).filter(|end| *end <= bytes.len() as u64);
        match range {
            Some(end) => {
                Ok((bytes.slice(within as usize..end as usize), block.address.saturating_add(within)))
            }
            None => Err(file
                .place(DIRECT, block.address)
                .corrupt(format!("an object of {length} bytes at {within} of {}", block.size))),
        }
    }

    /// The object, if its block is cached.
    fn cached(&self, offset: u64, length: u64) -> Option<(Bytes, u64)> {
        let blocks = lock(&self.blocks);
        let (start, (address, bytes)) = blocks.held.range(..=offset).next_back()?;
        let within = offset - start;
        let end = within.checked_add(length).filter(|end| *end <= bytes.len() as u64)?;
        Some((bytes.slice(within as usize..end as usize), address.saturating_add(within)))
    }

    /// Bytes of a block in this row of the doubling table.
    fn row_size(&self, row: u64) -> Option<u64> {
        self.start.checked_mul(1_u64.checked_shl(u32::try_from(row.saturating_sub(1)).ok()?)?)
    }

    /// The direct block that holds this heap offset.
    fn find(&self, file: &File, offset: u64) -> Result<Block> {
        let place = self.place(file);
        let root = self.root.ok_or_else(|| place.corrupt("an id refers to an empty heap"))?;
        if self.rows == 0 {
            let stored = self.filters.as_ref().map(|filter| (filter.size, filter.mask));
            return Ok(Block { address: root, size: self.start, start: 0, stored });
        }
        let direct_rows = u64::from(self.max_direct.ilog2() - self.start.ilog2()) + 2;
        let (mut address, mut rows, mut base) = (root, self.rows, 0_u64);
        for _ in 0..MAX_DEPTH {
            let within =
                offset.checked_sub(base).ok_or_else(|| place.corrupt("an offset lies before its block"))?;
            let first_row = self.start * self.width;
            let row = if within < first_row { 0 } else { u64::from((within / first_row).ilog2()) + 1 };
            let size = self.row_size(row).ok_or_else(|| place.corrupt("a block is larger than memory"))?;
            let row_start = if row == 0 { 0 } else { size.saturating_mul(self.width) };
            let column = within.saturating_sub(row_start) / size;
            if row >= rows {
                return Err(place.corrupt(format!("the offset {offset} lies past the heap's {rows} rows")));
            }
            let (child, stored) = self.child(file, address, rows, row, column, direct_rows)?;
            let start = column
                .checked_mul(size)
                .and_then(|within| base.checked_add(row_start)?.checked_add(within))
                .ok_or_else(|| place.corrupt("a block lies past the end of the heap"))?;
            if row < direct_rows {
                return Ok(Block { address: child, size, start, stored });
            }
            (address, base) = (child, start);
            // An indirect block of `size` bytes has as many rows as needed to reach that size.
            rows =
                (u64::from(size.ilog2()) + 1).checked_sub(u64::from(first_row.ilog2())).ok_or_else(|| {
                    place.corrupt(format!("an indirect block of {size} bytes, a row has {first_row}"))
                })?;
        }
        Err(place.corrupt("indirect blocks form a cycle"))
    }

    /// A child's address, from an indirect block.
    fn child(
        &self,
        file: &File,
        address: u64,
        rows: u64,
        row: u64,
        column: u64,
        direct_rows: u64,
    ) -> Result<(u64, Option<(u64, u32)>)> {
        let sizes = file.sizes();
        let place = file.place(INDIRECT, address);
        let filtered = self.filters.is_some();
        let direct = sizes.address + if filtered { sizes.length + 4 } else { 0 };
        let direct_children = rows.min(direct_rows).saturating_mul(self.width);
        let indirect_children = rows.saturating_sub(direct_rows).saturating_mul(self.width);
        let head = 5 + sizes.address + self.offset_bytes;
        let length = (direct_children.saturating_mul(direct as u64))
            .saturating_add(indirect_children.saturating_mul(sizes.address as u64))
            .saturating_add(head as u64 + 4);
        let bytes = file.read_checked(INDIRECT, address, length)?;
        let mut fields = Fields::new(&bytes, place);
        fields.magic(b"FHIB")?;
        fields.version(&[0])?;
        fields.skip(head - 5)?;
        let number = row.saturating_mul(self.width).saturating_add(column);
        if row < direct_rows {
            fields.skip((number as usize).saturating_mul(direct))?;
            let child = fields.defined(sizes)?;
            let stored = if filtered { Some((fields.length(sizes)?, fields.u32()?)) } else { None };
            return Ok((child, stored));
        }
        let indirect = (number.saturating_sub(direct_children) as usize).saturating_mul(sizes.address);
        let before = (direct_children as usize).saturating_mul(direct).saturating_add(indirect);
        fields.skip(before)?;
        Ok((fields.defined(sizes)?, None))
    }

    /// A direct block's bytes including its header, because heap offsets count from there.
    fn block(&self, file: &File, block: &Block) -> Result<Bytes> {
        let place = file.place(DIRECT, block.address);
        let bytes = match (&self.filters, block.stored) {
            (Some(filter), Some((stored, mask))) => {
                let size = usize::try_from(block.size)
                    .map_err(|_| place.corrupt("a block is larger than memory"))?;
                let mut out = file.zeroed(size, DIRECT)?;
                filter.pipeline.decode(mask, &file.read(DIRECT, block.address, stored)?, &mut out, place)?;
                Bytes::from(out)
            }
            _ => file.read(DIRECT, block.address, block.size)?,
        };
        let mut fields = Fields::new(&bytes, place);
        fields.magic(b"FHDB")?;
        fields.version(&[0])?;
        fields.skip(file.sizes().address + self.offset_bytes)?;
        if self.summed {
            self.check_block(&bytes, fields.position(), place)?;
        }
        let mut blocks = lock(&self.blocks);
        if blocks.held.len() >= MAX_CACHED
            || blocks.bytes.saturating_add(bytes.len() as u64) > MAX_CACHED_BYTES
        {
            *blocks = Blocks::default();
        }
        if blocks.held.insert(block.start, (block.address, bytes.clone())).is_none() {
            blocks.bytes += bytes.len() as u64;
        }
        Ok(bytes)
    }

    /// The checksum covers the whole block with its own field zeroed.
    fn check_block(&self, bytes: &[u8], at: usize, place: Place<'_>) -> Result<()> {
        let mut zeroed = bytes.to_vec();
        let Some(field) = zeroed.get_mut(at..at + 4) else { return Err(place.corrupt("truncated")) };
        let stored = u32::from_le_bytes([field[0], field[1], field[2], field[3]]);
        field.fill(0);
        let computed = lookup3(&zeroed, 0);
        if agree(computed, stored) {
            return Ok(());
        }
        Err(place.corrupt(format!("checksum {computed:#010x}, stored {stored:#010x}")))
    }

    /// A huge object is stored separately in the file; a B-tree or the id itself gives its address.
    fn huge(&self, file: &File, fields: &mut Fields<'_>) -> Result<(Bytes, u64)> {
        let sizes = file.sizes();
        let place = self.place(file);
        let filtered = self.filters.is_some();
        let direct = sizes.address + sizes.length + if filtered { 4 + sizes.length } else { 0 };
        if self.id_length > direct {
            let (address, length) = (fields.defined(sizes)?, fields.length(sizes)?);
            let filter = if filtered { Some((fields.u32()?, fields.length(sizes)?)) } else { None };
            return self.huge_bytes(file, address, length, filter);
        }
        let key = fields.uint(self.id_length.saturating_sub(1).min(sizes.length).min(8))?;
        let tree = self.huge.ok_or_else(|| place.corrupt("a huge object exists without a B-tree"))?;
        let tree = BTree2::read(file, tree)?;
        let mut found = None;
        // Records: address, length, [mask, decoded length,] id; sorted by id.
        let id_at = sizes.address + sizes.length + if filtered { 4 + sizes.length } else { 0 };
        tree.search(
            file,
            &mut |record| {
                let mut fields = Fields::new(record, place);
                fields.skip(id_at)?;
                Ok(key.cmp(&fields.length(sizes)?))
            },
            &mut |record| {
                found = Some(record.to_vec());
                Ok(())
            },
        )?;
        let record = found.ok_or_else(|| place.corrupt(format!("no huge object {key}")))?;
        let mut fields = Fields::new(&record, place);
        let (address, length) = (fields.defined(sizes)?, fields.length(sizes)?);
        let filter = if filtered { Some((fields.u32()?, fields.length(sizes)?)) } else { None };
        self.huge_bytes(file, address, length, filter)
    }

    fn huge_bytes(
        &self,
        file: &File,
        address: u64,
        length: u64,
        filter: Option<(u32, u64)>,
    ) -> Result<(Bytes, u64)> {
        let structure = "fractal heap huge object";
        let bytes = file.read(structure, address, length)?;
        let (Some(filters), Some((mask, decoded))) = (&self.filters, filter) else {
            return Ok((bytes, address));
        };
        let place = file.place(structure, address);
        let decoded =
            usize::try_from(decoded).map_err(|_| place.corrupt("an object is larger than memory"))?;
        let mut out = file.zeroed(decoded, structure)?;
        filters.pipeline.decode(mask, &bytes, &mut out, place)?;
        Ok((out.into(), address))
    }
}
