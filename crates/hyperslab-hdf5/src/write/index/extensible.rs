//! Writes extensible arrays.
//!
//! Of flushed data, only the header is changed in place. A block that gains elements is written to a new place. Its parent,
//! which must point to the new place, is then rewritten too, and so on up to the index block. Finally the header's 72 bytes
//! are replaced. The next flush reuses the space of the old blocks.

use std::collections::BTreeMap;

use hyperslab_core::{Error, Fields, Place, Result};

use super::{Entries, Patch};
use crate::encode::{Encoder, renew_sum};
use crate::file::{FileFields, check_sum};
use crate::index::Stored;
use crate::index::geometry::{DataBlock, Geometry, Spot};
use crate::message::layout::defaults;
use crate::symbol_table::uint;
use crate::write::output::{Output, SECTOR};

/// The counters in the header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Statistics {
    pub(crate) super_blocks: u64,
    pub(crate) super_bytes: u64,
    pub(crate) data_blocks: u64,
    pub(crate) data_bytes: u64,
    /// One past the highest element ever set. Later elements read as never written.
    pub(crate) end: u64,
    /// The capacity of all existing blocks.
    pub(crate) elements: u64,
}

/// An extensible array being written.
#[derive(Debug)]
pub(crate) struct ExtensibleWriter {
    geometry: Geometry,
    entries: Entries,
    header: Option<u64>,
    pub(crate) statistics: Statistics,
    index: Option<Block>,
    supers: BTreeMap<u32, Block>,
    blocks: BTreeMap<(u32, u64), DataWriter>,
}

/// A block: its last address and its bytes.
#[derive(Debug)]
struct Block {
    address: Option<u64>,
    changed: bool,
    bytes: Vec<u8>,
}

/// A data block: its elements without prefix, checksums and page boundaries.
#[derive(Debug)]
struct DataWriter {
    block: Block,
    /// The number of unset elements.
    left: u64,
}

impl ExtensibleWriter {
    /// An empty array with libhdf5's parameters.
    pub(crate) fn new(entries: Entries) -> Self {
        let [max_bits, index_elements, super_min, data_min, page_bits] = defaults::EXTENSIBLE;
        let geometry = Geometry {
            max_bits: u32::from(max_bits),
            index_elements: u64::from(index_elements),
            data_min: u64::from(data_min),
            super_min: u64::from(super_min),
            page_bits: u32::from(page_bits),
        };
        Self {
            geometry,
            entries,
            header: None,
            statistics: Statistics::default(),
            index: None,
            supers: BTreeMap::new(),
            blocks: BTreeMap::new(),
        }
    }

    /// Opens the array whose header is at `address`. Blocks are read when they are changed.
    pub(crate) fn load(entries: Entries, address: u64, output: &Output) -> Result<Self> {
        let sizes = entries.sizes;
        let place = Place::new(output.name(), "extensible array header", address);
        let bytes = output.read(address, 12 + 6 * sizes.length + sizes.address + 4)?;
        check_sum(&bytes, place)?;
        let mut fields = Fields::new(&bytes, place);
        fields.magic(b"EAHD")?;
        fields.version(&[0])?;
        let (client, element) = (fields.u8()?, usize::from(fields.u8()?));
        let number = |fields: &mut Fields<'_>| fields.u8().map(u64::from);
        let (max_bits, index_elements, data_min) =
            (u32::from(fields.u8()?), number(&mut fields)?, number(&mut fields)?);
        let (super_min, page_bits) = (number(&mut fields)?, u32::from(fields.u8()?));
        let geometry = Geometry { max_bits, index_elements, data_min, super_min, page_bits };
        if !geometry.is_valid() || client != entries.client() || element != entries.size() {
            return Err(
                place.corrupt(format!("{geometry:?}, elements of {element} bytes of client {client}"))
            );
        }
        let mut length = || fields.length(sizes);
        let statistics = Statistics {
            super_blocks: length()?,
            super_bytes: length()?,
            data_blocks: length()?,
            data_bytes: length()?,
            end: length()?,
            elements: length()?,
        };
        let index = fields.address(sizes)?;
        let mut array = Self { geometry, statistics, header: Some(address), ..Self::new(entries) };
        if let Some(index) = index {
            let length = array.new_index(address)?.bytes.len();
            array.index = Some(array.read(output, index, length)?);
        }
        Ok(array)
    }

    pub(crate) const fn address(&self) -> Option<u64> {
        self.header
    }

    fn read(&self, output: &Output, address: u64, length: usize) -> Result<Block> {
        let bytes = output.read(address, length)?;
        check_sum(&bytes, Place::new(output.name(), "extensible array block", address))?;
        Ok(Block { address: Some(address), changed: false, bytes })
    }

    /// Bytes before a block's content.
    fn prefix(&self, with_offset: bool) -> usize {
        6 + self.entries.sizes.address + if with_offset { self.geometry.offset_bytes() } else { 0 }
    }

    fn start(&self, magic: &[u8; 4], header: u64, offset: Option<u64>) -> Encoder {
        let mut out = Encoder::magic(self.entries.sizes, magic, 0);
        out.u8(self.entries.client()).address(Some(header));
        if let Some(offset) = offset {
            out.uint(offset, self.geometry.offset_bytes());
        }
        out
    }

    fn new_index(&self, header: u64) -> Result<Block> {
        let mut out = self.start(b"EAIB", header, None);
        (0..self.geometry.index_elements).for_each(|_| self.entries.put(None, &mut out));
        let supers = self.geometry.super_blocks() - self.geometry.direct_super_blocks();
        (0..self.geometry.direct_blocks() + u64::from(supers)).for_each(|_| {
            out.address(None);
        });
        Ok(Block { address: None, changed: true, bytes: out.summed()? })
    }

    fn new_super(&self, header: u64, u: u32) -> Result<Block> {
        check_block(self.geometry.bitmap_bytes(u).saturating_add(Geometry::blocks(u).saturating_mul(8)))?;
        let mut out = self.start(b"EASB", header, Some(self.geometry.start_element(u)));
        out.zeros(self.geometry.bitmap_bytes(u) as usize);
        (0..Geometry::blocks(u)).for_each(|_| {
            out.address(None);
        });
        Ok(Block { address: None, changed: true, bytes: out.summed()? })
    }

    fn new_data(&self, u: u32) -> Result<DataWriter> {
        let elements = self.geometry.elements(u);
        check_block(elements.saturating_mul(self.entries.size() as u64))?;
        let bytes = self.entries.entry(None)?.repeat(elements as usize);
        Ok(DataWriter { block: Block { address: None, changed: true, bytes }, left: elements })
    }

    /// Sets an element. Returns whether it is new.
    pub(crate) fn set(&mut self, number: u64, stored: Stored, output: &Output) -> Result<bool> {
        self.entries.check(stored)?;
        let spot = self.geometry.locate(number);
        let spot = spot.ok_or_else(|| {
            Error::invalid(format!("chunk {number} of an array of at most {}", self.geometry.capacity()))
        })?;
        let header = match self.header {
            Some(header) => header,
            None => {
                let length = 12 + 6 * self.entries.sizes.length + self.entries.sizes.address + 4;
                *self.header.insert(output.allocate_within(length as u64, 0..length, SECTOR)?)
            }
        };
        if self.index.is_none() {
            self.index = Some(self.new_index(header)?);
            self.statistics.elements += self.geometry.index_elements;
        }
        let entry = self.entries.entry(Some(stored))?;
        let fresh = match spot {
            Spot::Index(at) => {
                let at = self.prefix(false) + at as usize * entry.len();
                let Some(index) = &mut self.index else { return Ok(false) };
                index.changed = true;
                replace(&self.entries, &mut index.bytes[at..at + entry.len()], &entry)
            }
            Spot::Direct { block, .. } | Spot::Super { block } => {
                let entries = self.entries.clone();
                let data = self.data(header, spot, block, output)?;
                let at = block.element as usize * entry.len();
                let fresh = replace(&entries, &mut data.block.bytes[at..at + entry.len()], &entry);
                data.block.changed = true;
                data.left -= u64::from(fresh);
                fresh
            }
        };
        self.statistics.end = self.statistics.end.max(number + 1);
        Ok(fresh)
    }

    /// The data block with this element, created or read if necessary.
    fn data(
        &mut self,
        header: u64,
        spot: Spot,
        block: DataBlock,
        output: &Output,
    ) -> Result<&mut DataWriter> {
        let (u, number) = (block.super_block, block.number);
        if !self.blocks.contains_key(&(u, number)) {
            if let Spot::Super { .. } = spot {
                self.super_block(header, u, output)?;
            }
            let data = match self.pointer(u, number) {
                Some(address) => self.read_data(output, u, number, address)?,
                None => {
                    let data = self.new_data(u)?;
                    self.statistics.data_blocks += 1;
                    self.statistics.data_bytes += self.data_length(u);
                    self.statistics.elements += self.geometry.elements(u);
                    data
                }
            };
            self.blocks.insert((u, number), data);
        }
        let found = self.blocks.get_mut(&(u, number));
        found.ok_or_else(|| Error::invalid("a data block does not exist"))
    }

    /// Creates or reads a super block.
    fn super_block(&mut self, header: u64, u: u32, output: &Output) -> Result<()> {
        if self.supers.contains_key(&u) {
            return Ok(());
        }
        let slot = self.super_slot(u);
        let address = self.index.as_ref().and_then(|index| defined(&index.bytes[slot..][..self.width()]));
        let mut block = self.new_super(header, u)?;
        match address {
            Some(address) => block = self.read(output, address, block.bytes.len())?,
            None => {
                self.statistics.super_blocks += 1;
                self.statistics.super_bytes += block.bytes.len() as u64;
            }
        }
        self.supers.insert(u, block);
        Ok(())
    }

    const fn width(&self) -> usize {
        self.entries.sizes.address
    }

    /// The offset of a super block's pointer in the index block.
    fn super_slot(&self, u: u32) -> usize {
        let pointer = self.geometry.direct_blocks() + u64::from(u - self.geometry.direct_super_blocks());
        self.index_pointer(pointer)
    }

    fn index_pointer(&self, pointer: u64) -> usize {
        self.prefix(false)
            + self.geometry.index_elements as usize * self.entries.size()
            + pointer as usize * self.width()
    }

    /// The offset of a data block's pointer in its parent: the index block or its super block.
    fn data_slot(&self, u: u32, number: u64) -> usize {
        if u < self.geometry.direct_super_blocks() {
            return self.index_pointer(Geometry::start_block(u) + number);
        }
        self.prefix(true) + self.geometry.bitmap_bytes(u) as usize + number as usize * self.width()
    }

    fn parent(&mut self, u: u32) -> Option<&mut Block> {
        if u < self.geometry.direct_super_blocks() { self.index.as_mut() } else { self.supers.get_mut(&u) }
    }

    fn pointer(&mut self, u: u32, number: u64) -> Option<u64> {
        let (slot, width) = (self.data_slot(u, number), self.width());
        self.parent(u).and_then(|parent| defined(&parent.bytes[slot..][..width]))
    }

    /// The total size of a data block.
    fn data_length(&self, u: u32) -> u64 {
        let elements = self.geometry.elements(u) * self.entries.size() as u64;
        self.prefix(true) as u64 + elements + 4 + 4 * self.geometry.pages(u)
    }

    /// Bytes of a page without its checksum.
    fn page(&self) -> usize {
        self.geometry.page() as usize * self.entries.size()
    }

    fn read_data(&mut self, output: &Output, u: u32, number: u64, address: u64) -> Result<DataWriter> {
        let mut data = self.new_data(u)?;
        data.block.address = Some(address);
        data.block.changed = false;
        if self.geometry.is_paged(u) {
            let first = address.saturating_add(self.prefix(true) as u64 + 4);
            let (page, pages) = (self.page(), self.geometry.pages(u));
            for at in 0..pages {
                if self.is_page_set(u, number * pages + at) {
                    let block = self.read(output, first.saturating_add(at * (page as u64 + 4)), page + 4)?;
                    data.block.bytes[at as usize * page..][..page].copy_from_slice(&block.bytes[..page]);
                }
            }
        } else {
            let block = self.read(output, address, self.data_length(u) as usize)?;
            let start = self.prefix(true);
            data.block.bytes.copy_from_slice(&block.bytes[start..block.bytes.len() - 4]);
        }
        let entries = data.block.bytes.chunks_exact(self.entries.size());
        data.left = entries.filter(|entry| !self.entries.is_set(entry)).count() as u64;
        Ok(data)
    }

    fn is_page_set(&self, u: u32, bit: u64) -> bool {
        let at = self.prefix(true) + (bit >> 3) as usize;
        self.supers.get(&u).is_some_and(|block| block.bytes[at] & (0x80 >> (bit & 7)) != 0)
    }

    /// Writes changes to new places, children before parents. The header must be changed last.
    pub(crate) fn flush(&mut self, output: &Output) -> Result<Vec<Patch>> {
        let Some(header) = self.header else { return Ok(Vec::new()) };
        let changed: Vec<_> =
            self.blocks.iter().filter(|(_, data)| data.block.changed).map(|(key, _)| *key).collect();
        for (u, number) in changed {
            self.write_data(header, u, number, output)?;
        }
        let changed: Vec<_> =
            self.supers.iter().filter(|(_, block)| block.changed).map(|(u, _)| *u).collect();
        for u in changed {
            let (slot, width) = (self.super_slot(u), self.width());
            let Some(block) = self.supers.get_mut(&u) else { continue };
            let address = write_block(block, output)?;
            if let Some(index) = &mut self.index {
                index.bytes[slot..slot + width].copy_from_slice(&address.to_le_bytes()[..width]);
                index.changed = true;
            }
        }
        // A full block is never changed again.
        self.blocks.retain(|_, data| data.left > 0);
        let Some(index) = self.index.as_mut().filter(|index| index.changed) else { return Ok(Vec::new()) };
        let index = write_block(index, output)?;
        Ok(vec![Patch { address: header, bytes: self.encode_header(index)? }])
    }

    fn write_data(&mut self, header: u64, u: u32, number: u64, output: &Output) -> Result<()> {
        let length = self.data_length(u);
        let direct = u < self.geometry.direct_super_blocks();
        // Direct blocks are numbered from the first block of the array. libhdf5 writes this number, although no library reads it.
        let block = if direct { Geometry::start_block(u) + number } else { number };
        let offset = self.geometry.start_element(u) + block * self.geometry.elements(u);
        let mut out = self.start(b"EADB", header, Some(offset));
        let Some(mut data) = self.blocks.remove(&(u, number)) else { return Ok(()) };
        if let Some(old) = data.block.address {
            output.release(old, length);
        }
        let address = output.space(length)?;
        if self.geometry.is_paged(u) {
            let prefix = out.summed()?;
            output.write_at(address, &prefix)?;
            self.write_pages(u, number, &data, address + prefix.len() as u64, output)?;
        } else {
            out.put(&data.block.bytes);
            output.write_at(address, &out.summed()?)?;
        }
        let (slot, width) = (self.data_slot(u, number), self.width());
        if let Some(parent) = self.parent(u) {
            parent.bytes[slot..slot + width].copy_from_slice(&address.to_le_bytes()[..width]);
            parent.changed = true;
        }
        data.block.address = Some(address);
        data.block.changed = false;
        self.blocks.insert((u, number), data);
        Ok(())
    }

    /// Writes and marks the pages that hold elements. Other pages stay unwritten.
    fn write_pages(
        &mut self,
        u: u32,
        number: u64,
        data: &DataWriter,
        first: u64,
        output: &Output,
    ) -> Result<()> {
        let (page, pages, start) = (self.page(), self.geometry.pages(u), self.prefix(true));
        for (at, elements) in data.block.bytes.chunks_exact(page).enumerate() {
            if !elements.chunks_exact(self.entries.size()).any(|entry| self.entries.is_set(entry)) {
                continue;
            }
            let mut out = Encoder::new(self.entries.sizes);
            out.put(elements);
            output.write_at(first + at as u64 * (page as u64 + 4), &out.summed()?)?;
            // One bit string for all blocks, highest bit first, not byte-aligned per block.
            let bit = number * pages + at as u64;
            if let Some(block) = self.supers.get_mut(&u) {
                block.bytes[start + (bit >> 3) as usize] |= 0x80 >> (bit & 7);
            }
        }
        Ok(())
    }

    fn encode_header(&self, index: u64) -> Result<Vec<u8>> {
        let (geometry, counts) = (&self.geometry, &self.statistics);
        let mut out = Encoder::magic(self.entries.sizes, b"EAHD", 0);
        let parameter = "a parameter of an extensible array";
        out.u8(self.entries.client()).count(self.entries.size(), 1, parameter);
        out.count(geometry.max_bits, 1, parameter).count(geometry.index_elements, 1, parameter);
        out.count(geometry.data_min, 1, parameter).count(geometry.super_min, 1, parameter);
        out.count(geometry.page_bits, 1, parameter);
        out.length(counts.super_blocks).length(counts.super_bytes);
        out.length(counts.data_blocks).length(counts.data_bytes);
        out.length(counts.end).length(counts.elements).address(Some(index));
        out.summed()
    }
}

/// Refuses blocks that only unusual parameters make so large, because each changed block is held in memory.
fn check_block(bytes: u64) -> Result<()> {
    const MOST: u64 = 256 << 20;
    if bytes <= MOST {
        return Ok(());
    }
    Err(Error::invalid(format!("an index block of {bytes} bytes, but at most {MOST} are written")))
}

/// Puts an entry in place. Returns whether there was none.
fn replace(entries: &Entries, place: &mut [u8], entry: &[u8]) -> bool {
    let fresh = !entries.is_set(place);
    place.copy_from_slice(entry);
    fresh
}

/// Writes a block to a new place.
fn write_block(block: &mut Block, output: &Output) -> Result<u64> {
    let length = block.bytes.len() as u64;
    if let Some(old) = block.address {
        output.release(old, length);
    }
    let address = output.space(length)?;
    renew_sum(&mut block.bytes);
    output.write_at(address, &block.bytes)?;
    block.address = Some(address);
    block.changed = false;
    Ok(address)
}

/// The address in these bytes, unless all bits are one.
fn defined(bytes: &[u8]) -> Option<u64> {
    bytes.iter().any(|byte| *byte != 0xff).then(|| uint(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Sizes;

    /// An array of `count` elements set one after another, and its file.
    fn filled(numbers: impl Iterator<Item = u64>, filtered: bool, version: u8) -> (ExtensibleWriter, Output) {
        let sizes = Sizes { address: 8, length: 8 };
        let entries = Entries::new(sizes, filtered, version, 1);
        let output = Output::new(
            hyperslab_core::storage::LocalFile::scratch(&std::env::temp_dir()).unwrap(),
            "test".into(),
            0,
            48,
        );
        let mut array = ExtensibleWriter::new(entries);
        for number in numbers {
            let stored = Stored { address: 1000 + number, size: 1, mask: 0 };
            assert!(array.set(number, stored, &output).unwrap());
        }
        for patch in array.flush(&output).unwrap() {
            output.write_at(patch.address, &patch.bytes).unwrap();
        }
        (array, output)
    }

    /// The counters of libhdf5's header for the same elements.
    #[test]
    fn the_header_counts_as_libhdf5_does() {
        for (count, filtered, version, expected) in [
            (500, false, 4, [1, 54, 10, 4188, 500, 500]),
            (2000, false, 4, [3, 194, 22, 16740, 2000, 2036]),
            (2000, true, 4, [3, 194, 22, 28932, 2000, 2036]),
            (2000, true, 5, [3, 194, 22, 41124, 2000, 2036]),
            (140_000, false, 4, [10, 2268, 195, 1_134_698, 140_000, 141_300]),
            (140_000, true, 5, [10, 2268, 195, 2_830_250, 140_000, 141_300]),
        ] {
            let (array, _) = filled(0..count, filtered, version);
            let own = array.statistics;
            let counts =
                [own.super_blocks, own.super_bytes, own.data_blocks, own.data_bytes, own.end, own.elements];
            assert_eq!(counts, expected, "{count} {filtered} {version}");
        }
    }

    /// Only blocks that hold an element are created: two far apart need two data blocks in two super blocks.
    #[test]
    fn few_elements_need_few_blocks() {
        let (array, output) = filled([300_000, 140_000].into_iter(), false, 4);
        let own = array.statistics;
        assert_eq!((own.super_blocks, own.data_blocks, own.end), (2, 2, 300_001));
        // Index block, two super blocks, two paged data blocks, the header, and the space reserved for the superblock.
        assert!(output.length() < 80_000, "{}", output.length());
    }

    /// A reopened array continues where it stopped, block by block, and moves only what changed.
    #[test]
    fn a_reopened_array_can_be_extended() {
        let (array, output) = filled((0..137_000).step_by(3), true, 5);
        let before = output.length();
        let entries = array.entries.clone();
        let mut again = ExtensibleWriter::load(entries.clone(), array.address().unwrap(), &output).unwrap();
        assert_eq!(again.statistics, array.statistics);
        for number in (1..137_000).step_by(997) {
            let fresh = number % 3 != 0;
            let stored = Stored { address: 7, size: 9, mask: 1 };
            assert_eq!(again.set(number, stored, &output).unwrap(), fresh, "{number}");
        }
        for patch in again.flush(&output).unwrap() {
            output.write_at(patch.address, &patch.bytes).unwrap();
        }
        assert_eq!(again.statistics, array.statistics, "no block is new");
        output.reuse();
        let grown = output.length() - before;
        // The same changes fit in the space that the first copies left.
        for number in (1..137_000).step_by(997) {
            again.set(number, Stored { address: 8, size: 9, mask: 0 }, &output).unwrap();
        }
        again.flush(&output).unwrap();
        assert_eq!(output.length() - before, grown);
    }
}
