//! Extensible arrays: the index of datasets with one unlimited dimension.

use std::ops::ControlFlow;

use bytes::Bytes;
use hyperslab_core::{Fields, Result};

use super::geometry::{DataBlock, Geometry, Spot};
use super::{ChunkIndex, Stored, check_element};
use crate::file::{File, FileFields, check_sum};
use crate::symbol_table::uint;

const HEADER: &str = "extensible array header";
const INDEX: &str = "extensible array index block";
const SUPER: &str = "extensible array super block";
const DATA: &str = "extensible array data block";

/// An extensible array: header and index block.
#[derive(Debug)]
pub(crate) struct ExtensibleArray {
    geometry: Geometry,
    /// The address of the header, to which every block points back.
    address: u64,
    client: u8,
    element: usize,
    /// Elements at and after this index were never set.
    end: u64,
    /// The address and bytes of the index block; `None` while nothing is stored.
    index: Option<(u64, Bytes)>,
}

impl ExtensibleArray {
    pub(crate) fn read(file: &File, address: u64, filtered: bool) -> Result<Self> {
        let sizes = file.sizes();
        let place = file.place(HEADER, address);
        let length = 12 + 6 * sizes.length + sizes.address + 4;
        let bytes = file.read_checked(HEADER, address, length as u64)?;
        let mut fields = Fields::new(&bytes, place);
        fields.magic(b"EAHD")?;
        fields.version(&[0])?;
        let (client, element) = (fields.u8()?, usize::from(fields.u8()?));
        let geometry = Geometry {
            max_bits: u32::from(fields.u8()?),
            index_elements: u64::from(fields.u8()?),
            data_min: u64::from(fields.u8()?),
            super_min: u64::from(fields.u8()?),
            page_bits: u32::from(fields.u8()?),
        };
        if !geometry.is_valid() {
            return Err(place.corrupt(format!("invalid parameters: {geometry:?}")));
        }
        check_element(element, client, filtered, sizes, place)?;
        // Counts and sizes of super blocks and data blocks: unused statistics.
        fields.skip(4 * sizes.length)?;
        let end = fields.length(sizes)?;
        let _elements = fields.length(sizes)?;
        let block = fields.address(sizes)?;
        let mut array = Self { geometry, address, client, element, end, index: None };
        if let Some(block) = block {
            array.index = Some((block, array.read_index(file, block)?));
        }
        Ok(array)
    }

    fn read_index(&self, file: &File, block: u64) -> Result<Bytes> {
        let (geometry, width) = (&self.geometry, file.sizes().address);
        let supers = u64::from(geometry.super_blocks() - geometry.direct_super_blocks());
        let length = self.prefix(file, 0) as u64
            + geometry.index_elements * self.element as u64
            + (geometry.direct_blocks() + supers) * width as u64
            + 4;
        let bytes = file.read_checked(INDEX, block, length)?;
        self.check_prefix(file, &bytes, b"EAIB", INDEX, block)?;
        Ok(bytes.slice(self.prefix(file, 0)..))
    }

    /// Bytes before a block's content: magic, version, client, header address, block offset.
    fn prefix(&self, file: &File, offset: usize) -> usize {
        6 + file.sizes().address + offset
    }

    fn check_prefix(
        &self,
        file: &File,
        bytes: &[u8],
        magic: &[u8],
        structure: &'static str,
        at: u64,
    ) -> Result<()> {
        let mut fields = Fields::new(bytes, file.place(structure, at));
        fields.magic(magic)?;
        fields.version(&[0])?;
        let place = fields.place();
        if fields.u8()? != self.client || fields.address(file.sizes())? != Some(self.address) {
            return Err(place.corrupt("belongs to another array"));
        }
        Ok(())
    }

    /// A reader that caches the last blocks.
    pub(super) const fn cursor(&self) -> Cursor<'_> {
        Cursor { array: self, super_block: None, run: None }
    }

    /// Passes every set element to `visit`, with its number.
    pub(super) fn visit(
        &self,
        index: &ChunkIndex,
        file: &File,
        visit: &mut dyn FnMut(u64, Stored) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut cursor = self.cursor();
        let mut next = 0;
        let end = self.end.min(self.geometry.capacity());
        while next < end {
            // If a block or page is missing, the cursor returns the end of the gap.
            let (stored, gap) = cursor.step(index, file, next)?;
            if let Some(stored) = stored
                && visit(next, stored)?.is_break()
            {
                break;
            }
            next = gap.max(next + 1);
        }
        Ok(())
    }
}

/// A super block: its number, page bitmap and addresses.
struct SuperBlock {
    number: u32,
    /// `None` if it was never created.
    content: Option<(Bytes, usize)>,
}

/// A run of elements: a data block, or a page of one.
struct Run {
    /// The elements that it holds.
    first: u64,
    end: u64,
    /// Its address and bytes; `None` if it was never written.
    content: Option<(u64, Bytes)>,
}

/// Finds elements, caching the last super block and the last run of elements.
pub(super) struct Cursor<'a> {
    array: &'a ExtensibleArray,
    super_block: Option<SuperBlock>,
    run: Option<Run>,
}

impl Cursor<'_> {
    /// The element with this number.
    pub(super) fn find(&mut self, index: &ChunkIndex, file: &File, number: u64) -> Result<Option<Stored>> {
        Ok(self.step(index, file, number)?.0)
    }

    /// The element, and the next number at which something else may be stored.
    fn step(&mut self, index: &ChunkIndex, file: &File, number: u64) -> Result<(Option<Stored>, u64)> {
        // "max_idx" decides: everything past it reads as fill, whatever the blocks contain.
        if number >= self.array.end {
            return Ok((None, self.array.end));
        }
        let Some((block, bytes)) = &self.array.index else { return Ok((None, self.array.end)) };
        let size = self.array.element;
        if number < self.array.geometry.index_elements {
            let at = number as usize * size;
            let place = file.place(INDEX, *block).plus((self.array.prefix(file, 0) + at) as u64);
            return Ok((index.element(&bytes[at..at + size], file.sizes(), place)?, number + 1));
        }
        if self.run.as_ref().is_none_or(|run| !(run.first..run.end).contains(&number)) {
            self.run = Some(self.load(file, number)?);
        }
        let Some(run) = &self.run else { return Ok((None, number + 1)) };
        let Some((address, bytes)) = &run.content else { return Ok((None, run.end)) };
        let at = (number - run.first) as usize * size;
        let place = file.place(DATA, *address).plus(at as u64);
        Ok((index.element(&bytes[at..at + size], file.sizes(), place)?, number + 1))
    }

    /// The run of elements that holds this one.
    fn load(&mut self, file: &File, number: u64) -> Result<Run> {
        // Runs that were never written are skipped without reading.
        file.spend(0, DATA)?;
        let geometry = self.array.geometry;
        let missing = |first, length: u64| Run { first, end: first + length, content: None };
        let Some(spot) = geometry.locate(number) else { return Ok(missing(number, 1)) };
        match spot {
            // The caller has handled these.
            Spot::Index(_) => Ok(missing(number, 1)),
            Spot::Direct { slot, block } => {
                let first = geometry.first(block.super_block, block.number);
                let length = geometry.elements(block.super_block);
                match self.pointer(file, slot) {
                    Some(address) => self.block(file, address, first, length),
                    None => Ok(missing(first, length)),
                }
            }
            Spot::Super { block } => self.load_super(file, block),
        }
    }

    /// A pointer of the index block.
    fn pointer(&self, file: &File, slot: u64) -> Option<u64> {
        let (_, bytes) = self.array.index.as_ref()?;
        let width = file.sizes().address;
        let at = self.array.geometry.index_elements as usize * self.array.element + slot as usize * width;
        defined(bytes.get(at..at + width)?)
    }

    fn load_super(&mut self, file: &File, block: DataBlock) -> Result<Run> {
        let (geometry, u) = (self.array.geometry, block.super_block);
        if self.super_block.as_ref().is_none_or(|held| held.number != u) {
            self.super_block = Some(self.read_super(file, u)?);
        }
        let first = geometry.first(u, block.number);
        let length = geometry.elements(u);
        let Some(SuperBlock { content: Some((bytes, pointers)), .. }) = &self.super_block else {
            let first = geometry.first(u, 0);
            return Ok(Run { first, end: first + length * Geometry::blocks(u), content: None });
        };
        let width = file.sizes().address;
        let at = pointers + block.number as usize * width;
        let Some(address) = bytes.get(at..at + width).and_then(defined) else {
            return Ok(Run { first, end: first + length, content: None });
        };
        if !geometry.is_paged(u) {
            return self.block(file, address, first, length);
        }
        let page = block.element >> geometry.page_bits;
        let first = first + (page << geometry.page_bits);
        // One bit string for all blocks, highest bit first, not byte-aligned per block.
        let bit = block.number * geometry.pages(u) + page;
        let set = bytes.get((bit >> 3) as usize).is_some_and(|byte| byte & (0x80 >> (bit & 7)) != 0);
        if !set {
            return Ok(Run { first, end: first + geometry.page(), content: None });
        }
        let size = geometry.page() * self.array.element as u64 + 4;
        let prefix = self.array.prefix(file, geometry.offset_bytes()) as u64 + 4;
        let at = page.checked_mul(size).and_then(|at| at.checked_add(prefix)?.checked_add(address));
        let at = at.ok_or_else(|| file.place(DATA, address).corrupt("a page past the end of every file"))?;
        let bytes = file.read_checked("extensible array data block page", at, size)?;
        Ok(Run { first, end: first + geometry.page(), content: Some((at, bytes)) })
    }

    fn read_super(&self, file: &File, u: u32) -> Result<SuperBlock> {
        let (geometry, width) = (self.array.geometry, file.sizes().address);
        let slot = geometry.direct_blocks() + u64::from(u - geometry.direct_super_blocks());
        let Some(address) = self.pointer(file, slot) else {
            return Ok(SuperBlock { number: u, content: None });
        };
        let prefix = self.array.prefix(file, geometry.offset_bytes());
        let bitmap = geometry.bitmap_bytes(u);
        let length = bitmap
            .saturating_add(Geometry::blocks(u).saturating_mul(width as u64))
            .saturating_add(prefix as u64 + 4);
        let bytes = file.read_checked(SUPER, address, length)?;
        self.array.check_prefix(file, &bytes, b"EASB", SUPER, address)?;
        Ok(SuperBlock { number: u, content: Some((bytes.slice(prefix..), bitmap as usize)) })
    }

    /// A data block without pages.
    fn block(&self, file: &File, address: u64, first: u64, length: u64) -> Result<Run> {
        let prefix = self.array.prefix(file, self.array.geometry.offset_bytes());
        let elements = length.saturating_mul(self.array.element as u64);
        let bytes = file.read(DATA, address, elements.saturating_add(prefix as u64 + 4))?;
        self.array.check_prefix(file, &bytes, b"EADB", DATA, address)?;
        let end = check_sum(&bytes, file.place(DATA, address))?;
        Ok(Run { first, end: first + length, content: Some((address, bytes.slice(prefix..end))) })
    }
}

/// The address in these bytes, unless all bits are one.
fn defined(bytes: &[u8]) -> Option<u64> {
    bytes.iter().any(|byte| *byte != 0xff).then(|| uint(bytes))
}
