//! Writes fixed arrays.

use std::collections::BTreeMap;

use hyperslab_core::{Error, Fields, Place, Result};

use super::{Entries, Patch};
use crate::encode::Encoder;
use crate::file::{FileFields, check_sum};
use crate::index::Stored;
use crate::message::layout::defaults;
use crate::write::output::{Output, SECTOR};

/// A fixed array being written.
#[derive(Debug)]
pub(crate) struct FixedWriter {
    entries: Entries,
    page_bits: u32,
    count: u64,
    header: Option<u64>,
    /// The address of the data block. If it has no pages, the next flush moves it.
    block: Option<u64>,
    /// The touched pages; a single one if there are no pages.
    pages: BTreeMap<u64, Page>,
    /// One bit per page, highest first, set if it was written.
    bitmap: Vec<u8>,
}

#[derive(Debug)]
struct Page {
    bytes: Vec<u8>,
    changed: bool,
}

impl FixedWriter {
    /// An array for this many chunks.
    pub(crate) fn new(entries: Entries, count: u64) -> Result<Self> {
        let page_bits = u32::from(defaults::PAGE_BITS);
        let mut array = Self {
            entries,
            page_bits,
            count,
            header: None,
            block: None,
            pages: BTreeMap::new(),
            bitmap: Vec::new(),
        };
        let bitmap = if array.is_paged() { array.page_count().div_ceil(8) } else { 0 };
        // libhdf5 allocates all elements at once, and the size of its bitmap has 32 bits.
        let bytes = count.checked_mul(array.entries.size() as u64 + 1).filter(|bytes| *bytes < 1 << 60);
        if bytes.is_none() || u32::try_from(bitmap).is_err() {
            return Err(Error::invalid(format!("{count} chunks are too many for a fixed array")));
        }
        array.bitmap = vec![0; bitmap as usize];
        Ok(array)
    }

    /// The array whose header is at `address`.
    pub(crate) fn load(entries: Entries, address: u64, output: &Output) -> Result<Self> {
        let sizes = entries.sizes;
        let place = Place::new(output.name(), "fixed array header", address);
        let bytes = output.read(address, 8 + sizes.length + sizes.address + 4)?;
        check_sum(&bytes, place)?;
        let mut fields = Fields::new(&bytes, place);
        fields.magic(b"FAHD")?;
        fields.version(&[0])?;
        let (client, element, page_bits) = (fields.u8()?, usize::from(fields.u8()?), u32::from(fields.u8()?));
        // libhdf5 uses pages of 2^10 elements. Each changed page is held in memory.
        if client != entries.client() || element != entries.size() || page_bits > 20 {
            return Err(place.corrupt(format!("elements of {element} bytes of client {client}")));
        }
        let count = fields.length(sizes)?;
        let mut array = Self::new(entries, count)?;
        array.page_bits = page_bits;
        array.header = Some(address);
        array.block = fields.address(sizes)?;
        array.bitmap = vec![0; if array.is_paged() { array.page_count().div_ceil(8) as usize } else { 0 }];
        if let (Some(block), true) = (array.block, array.is_paged()) {
            let prefix = output.read(block, array.prefix() as usize)?;
            let end = check_sum(&prefix, Place::new(output.name(), "fixed array data block", block))?;
            array.bitmap = prefix[end - array.bitmap.len()..end].to_vec();
        }
        Ok(array)
    }

    pub(crate) const fn address(&self) -> Option<u64> {
        self.header
    }

    const fn is_paged(&self) -> bool {
        self.count > 1 << self.page_bits
    }

    const fn page_count(&self) -> u64 {
        self.count.div_ceil(1 << self.page_bits)
    }

    /// The number of elements of a page. The last page is shorter.
    fn page_elements(&self, page: u64) -> u64 {
        if self.is_paged() {
            (self.count - (page << self.page_bits)).min(1 << self.page_bits)
        } else {
            self.count
        }
    }

    /// Bytes before the elements, or before the first page with the prefix's checksum.
    fn prefix(&self) -> u64 {
        let paged = if self.is_paged() { self.bitmap.len() as u64 + 4 } else { 0 };
        6 + self.entries.sizes.address as u64 + paged
    }

    fn length(&self) -> u64 {
        let sums = if self.is_paged() { self.page_count() } else { 1 };
        self.prefix() + self.count * self.entries.size() as u64 + 4 * sums
    }

    fn page_at(&self, block: u64, page: u64) -> u64 {
        // The array's size was checked; only the block's address is arbitrary.
        let offset = self.prefix() + page * ((self.entries.size() as u64) << self.page_bits) + 4 * page;
        block.saturating_add(offset)
    }

    /// Sets an element. Returns whether it is new.
    pub(crate) fn set(&mut self, number: u64, stored: Stored, output: &Output) -> Result<bool> {
        self.entries.check(stored)?;
        if number >= self.count {
            return Err(Error::invalid(format!("chunk {number} of an array of {}", self.count)));
        }
        let page = if self.is_paged() { number >> self.page_bits } else { 0 };
        if !self.pages.contains_key(&page) {
            let loaded = self.load_page(page, output)?;
            self.pages.insert(page, loaded);
        }
        let Some(own) = self.pages.get_mut(&page) else { return Ok(false) };
        let entry = self.entries.entry(Some(stored))?;
        let first = if self.count > 1 << self.page_bits { page << self.page_bits } else { 0 };
        let at = (number - first) as usize * entry.len();
        let place = &mut own.bytes[at..at + entry.len()];
        let fresh = !self.entries.is_set(place);
        place.copy_from_slice(&entry);
        own.changed = true;
        Ok(fresh)
    }

    fn load_page(&self, page: u64, output: &Output) -> Result<Page> {
        let elements = self.page_elements(page);
        let length = elements as usize * self.entries.size();
        let written = !self.is_paged() || self.bitmap[(page >> 3) as usize] & (0x80 >> (page & 7)) != 0;
        match self.block.filter(|_| written) {
            None => Ok(Page { bytes: self.entries.entry(None)?.repeat(elements as usize), changed: false }),
            Some(block) => {
                // Without pages, the checksum covers the prefix too.
                let (at, skip) =
                    if self.is_paged() { (self.page_at(block, page), 0) } else { (block, self.prefix()) };
                let mut bytes = output.read(at, skip as usize + length + 4)?;
                check_sum(&bytes, Place::new(output.name(), "fixed array page", at))?;
                bytes.truncate(skip as usize + length);
                Ok(Page { bytes: bytes.split_off(skip as usize), changed: false })
            }
        }
    }

    /// Writes changes. A block without pages moves, and the header is patched to point to it. Pages that were flushed before are
    /// changed in place, since the block may be as large as the file.
    pub(crate) fn flush(&mut self, output: &Output) -> Result<Vec<Patch>> {
        if !self.pages.values().any(|page| page.changed) {
            return Ok(Vec::new());
        }
        let sizes = self.entries.sizes;
        let header = match self.header {
            Some(header) => header,
            None => {
                let length = 8 + sizes.length + sizes.address + 4;
                *self.header.insert(output.allocate_within(length as u64, 0..length, SECTOR)?)
            }
        };
        let mut patches = Vec::new();
        let mut start = Encoder::magic(sizes, b"FADB", 0);
        start.u8(self.entries.client()).address(Some(header));
        let old = self.block;
        let block = match old.filter(|_| self.is_paged()) {
            Some(block) => block,
            None => output.space(self.length())?,
        };
        let in_place = old == Some(block);
        if let Some(old) = old.filter(|_| !in_place) {
            output.release(old, self.length());
        }
        if self.is_paged() {
            let changed: Vec<u64> =
                self.pages.iter().filter(|(_, page)| page.changed).map(|(number, _)| *number).collect();
            for number in changed {
                self.bitmap[(number >> 3) as usize] |= 0x80 >> (number & 7);
                let at = self.page_at(block, number);
                let Some(page) = self.pages.get_mut(&number) else { continue };
                page.changed = false;
                let mut out = Encoder::new(sizes);
                out.put(&page.bytes);
                patches.push(Patch { address: at, bytes: out.summed()? });
            }
            start.put(&self.bitmap);
            patches.push(Patch { address: block, bytes: start.summed()? });
        } else {
            for page in self.pages.values_mut() {
                start.put(&page.bytes);
                page.changed = false;
            }
            patches.push(Patch { address: block, bytes: start.summed()? });
        }
        if !in_place {
            // Nothing refers to this block yet, so it can be written at once.
            for patch in std::mem::take(&mut patches) {
                output.write_at(patch.address, &patch.bytes)?;
            }
        }
        self.block = Some(block);
        let mut out = Encoder::magic(sizes, b"FAHD", 0);
        out.u8(self.entries.client()).count(self.entries.size(), 1, "bytes of an index entry");
        out.count(self.page_bits, 1, "a parameter of a fixed array");
        out.length(self.count).address(Some(block));
        patches.push(Patch { address: header, bytes: out.summed()? });
        Ok(patches)
    }
}
