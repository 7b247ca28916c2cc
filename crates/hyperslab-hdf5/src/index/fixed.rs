//! Fixed arrays: the index of datasets with a limited extent.

use std::ops::ControlFlow;

use bytes::Bytes;
use hyperslab_core::{Fields, Result};

use super::{ChunkIndex, Stored, check_element};
use crate::file::{File, FileFields};

const HEADER: &str = "fixed array header";
const DATA: &str = "fixed array data block";

/// A fixed array.
#[derive(Debug)]
pub(crate) struct FixedArray {
    element: u64,
    page_bits: u32,
    /// The total number of elements.
    count: u64,
    /// The data block; `None` while nothing is stored.
    block: Option<Block>,
}

#[derive(Debug)]
struct Block {
    address: u64,
    /// The address of the elements, or of the first page.
    start: u64,
    /// One bit per page, highest first, set if it was written. `None` if there are no pages.
    pages: Option<Bytes>,
}

impl FixedArray {
    pub(crate) fn read(file: &File, address: u64, filtered: bool) -> Result<Self> {
        let sizes = file.sizes();
        let place = file.place(HEADER, address);
        let length = 8 + sizes.length + sizes.address + 4;
        let bytes = file.read_checked(HEADER, address, length as u64)?;
        let mut fields = Fields::new(&bytes, place);
        fields.magic(b"FAHD")?;
        fields.version(&[0])?;
        let (client, element, page_bits) = (fields.u8()?, fields.u8()?, u32::from(fields.u8()?));
        let count = fields.length(sizes)?;
        check_element(usize::from(element), client, filtered, sizes, place)?;
        if page_bits > 31 {
            return Err(place.corrupt(format!("pages of 2^{page_bits} elements")));
        }
        let mut array = Self { element: u64::from(element), page_bits, count, block: None };
        if let Some(block) = fields.address(sizes)? {
            array.block = Some(array.read_block(file, block, address, client)?);
        }
        Ok(array)
    }

    fn read_block(&self, file: &File, address: u64, header: u64, client: u8) -> Result<Block> {
        let head = 6 + file.sizes().address as u64;
        let page = 1_u64 << self.page_bits;
        let paged = self.count > page;
        let bitmap = if paged { self.count.div_ceil(page).div_ceil(8) } else { 0 };
        let start = file.read(DATA, address, head)?;
        let mut fields = Fields::new(&start, file.place(DATA, address));
        fields.magic(b"FADB")?;
        fields.version(&[0])?;
        let place = fields.place();
        if fields.u8()? != client || fields.address(file.sizes())? != Some(header) {
            return Err(place.corrupt("belongs to another array"));
        }
        if !paged {
            return Ok(Block { address, start: address.saturating_add(head), pages: None });
        }
        let prefix = file.read_checked(DATA, address, head.saturating_add(bitmap).saturating_add(4))?;
        let start = address.saturating_add(prefix.len() as u64 + 4);
        Ok(Block { address, start, pages: Some(prefix.slice(head as usize..)) })
    }

    /// A reader that caches the last page.
    pub(super) const fn cursor(&self) -> Cursor<'_> {
        Cursor { array: self, run: None }
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
        while next < self.count {
            let (stored, after) = cursor.step(index, file, next)?;
            if let Some(stored) = stored
                && visit(next, stored)?.is_break()
            {
                break;
            }
            next = after.max(next + 1);
        }
        Ok(())
    }
}

/// Finds elements, caching the last run of them.
pub(super) struct Cursor<'a> {
    array: &'a FixedArray,
    run: Option<Run>,
}

/// A page, or a block without pages: the elements that it holds.
struct Run {
    first: u64,
    end: u64,
    /// Its address and bytes; `None` if it was never written.
    content: Option<(u64, Bytes)>,
}

impl Cursor<'_> {
    /// The element with this number.
    pub(super) fn find(&mut self, index: &ChunkIndex, file: &File, number: u64) -> Result<Option<Stored>> {
        Ok(self.step(index, file, number)?.0)
    }

    fn step(&mut self, index: &ChunkIndex, file: &File, number: u64) -> Result<(Option<Stored>, u64)> {
        let Some(block) = &self.array.block else { return Ok((None, self.array.count)) };
        if number >= self.array.count {
            return Ok((None, number.saturating_add(1)));
        }
        if self.run.as_ref().is_none_or(|run| !(run.first..run.end).contains(&number)) {
            self.run = Some(self.load(file, block, number)?);
        }
        let Some(Run { first, end, content }) = &self.run else { return Ok((None, number + 1)) };
        let Some((address, bytes)) = content else { return Ok((None, *end)) };
        let size = self.array.element as usize;
        let at = (number - first) as usize * size;
        let place = file.place(DATA, *address).plus(at as u64);
        Ok((index.element(&bytes[at..at + size], file.sizes(), place)?, number + 1))
    }

    fn load(&self, file: &File, block: &Block, number: u64) -> Result<Run> {
        let array = self.array;
        // Pages that were never written are skipped without reading.
        file.spend(0, DATA)?;
        let Some(pages) = &block.pages else {
            // One checksum covers the block's header and elements.
            let head = block.start.saturating_sub(block.address);
            let whole = array.count.saturating_mul(array.element).saturating_add(head.saturating_add(4));
            let bytes = file.read_checked(DATA, block.address, whole)?.slice(head as usize..);
            return Ok(Run { first: 0, end: array.count, content: Some((block.start, bytes)) });
        };
        let page = number >> array.page_bits;
        let first = page << array.page_bits;
        // The last page is only as long as needed.
        let end = first.saturating_add(1 << array.page_bits).min(array.count);
        if pages[(page >> 3) as usize] & (0x80 >> (page & 7)) == 0 {
            return Ok(Run { first, end, content: None });
        }
        let stride = (array.element << array.page_bits) + 4;
        let at = page.checked_mul(stride).and_then(|at| at.checked_add(block.start));
        let at =
            at.ok_or_else(|| file.place(DATA, block.address).corrupt("a page past the end of every file"))?;
        let length = (end - first).saturating_mul(array.element).saturating_add(4);
        let bytes = file.read_checked("fixed array page", at, length)?;
        Ok(Run { first, end, content: Some((at, bytes)) })
    }
}
