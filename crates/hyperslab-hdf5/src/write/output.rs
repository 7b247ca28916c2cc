//! The file being written: allocates space at its end, and buffers small writes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use hyperslab_core::storage::LocalFile;
use hyperslab_core::{Error, Place, Result};

use crate::file::{lock, ones};

/// Pieces up to this size are buffered.
const SMALL: usize = 64 << 10;
/// Buffered pieces are written once they reach this many bytes.
const GATHERED: usize = 1 << 20;
/// The unit that a disk writes atomically. Each in-place change lies inside one.
pub(crate) const SECTOR: u64 = 512;

/// What space is allocated for. A page holds only one kind of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Structure,
    Data,
}

/// A file being written, addressed relative to the superblock. Any thread may write to it.
#[derive(Debug)]
pub(crate) struct Output {
    file: LocalFile,
    name: Arc<str>,
    base: u64,
    /// The largest address that the file's address width can hold, excluding all ones.
    most: u64,
    /// The page size of a paged file. Nothing that fits into a page crosses a page boundary.
    page: Option<u64>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The first free address; in paged files, the first unused page.
    end: u64,
    /// The unused rest of the last page of structures, and of the last page of data.
    pages: [std::ops::Range<u64>; 2],
    /// Appended pieces that are not written yet; the first belongs at `tail_at`.
    tail: Vec<u8>,
    tail_at: u64,
    /// Free space by size, left by structures that moved; and space that becomes free at the next flush.
    free: BTreeMap<u64, Vec<u64>>,
    left: Vec<(u64, u64)>,
}

impl Output {
    /// Writes to `file` from `end` on. Addresses are relative to `base`.
    pub(crate) fn new(file: LocalFile, name: Arc<str>, base: u64, end: u64) -> Self {
        let state = State {
            end,
            pages: [0..0, 0..0],
            tail: Vec::new(),
            tail_at: end,
            free: BTreeMap::new(),
            left: Vec::new(),
        };
        Self { file, name, base, most: (1 << 62) - 1, page: None, state: Mutex::new(state) }
    }

    /// Divides the file into pages of this size. The first page of a new file has room for structures.
    pub(crate) fn with_pages(mut self, page: Option<u64>) -> Result<Self> {
        self.page = page;
        if let Some(page) = page {
            let state = self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
            let end = state.end.checked_next_multiple_of(page).filter(|end| *end <= self.most);
            let end = end.ok_or_else(|| {
                Error::invalid(format!(
                    "{}: pages of {page} bytes, more than the file has room for",
                    self.name
                ))
            })?;
            if state.end < page {
                state.pages[Content::Structure as usize] = state.end..page;
            }
            (state.end, state.tail_at) = (end, end);
        }
        Ok(self)
    }

    /// The page size of a paged file.
    pub(crate) const fn page(&self) -> Option<u64> {
        self.page
    }

    /// Sets the width of the file's addresses in bytes.
    pub(crate) fn with_addresses(mut self, width: usize) -> Self {
        self.most = self.most.min(ones(width) - 1);
        self
    }

    /// The address after `size` bytes at `address`; an error if the file's addresses cannot reach it.
    fn end_of(&self, address: u64, size: u64) -> Result<u64> {
        let end = address.checked_add(size).filter(|end| *end <= self.most);
        end.ok_or_else(|| {
            Error::invalid(format!(
                "{}: {size} bytes at {address:#x}, but the file's addresses reach {:#x}",
                self.name, self.most
            ))
        })
    }

    pub(crate) const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The end of the file, as an address.
    pub(crate) fn end(&self) -> u64 {
        lock(&self.state).end
    }

    /// The length of the file, counted from its first byte.
    pub(crate) fn length(&self) -> u64 {
        self.base + self.end()
    }

    /// Appends bytes. Returns their address.
    pub(crate) fn append(&self, bytes: &[u8]) -> Result<u64> {
        self.append_within(bytes, 0..0, SECTOR)
    }

    /// Like [`append`](Self::append), but places the bytes such that `part` of them does not cross a multiple of `unit` bytes
    /// of the file, provided that `part` is not longer than `unit`.
    pub(crate) fn append_within(&self, bytes: &[u8], part: std::ops::Range<usize>, unit: u64) -> Result<u64> {
        self.append_to(Content::Structure, bytes, part, unit)
    }

    fn append_to(
        &self,
        content: Content,
        bytes: &[u8],
        part: std::ops::Range<usize>,
        unit: u64,
    ) -> Result<u64> {
        let mut state = lock(&self.state);
        if let Some(page) = self.page {
            let address = self.take_in_page(&mut state, page, content, bytes.len() as u64, part, unit)?;
            drop(state);
            return self.write_file(address, bytes).map(|()| address);
        }
        let skipped = self.skip(state.end, part, unit);
        let address = state.end + skipped;
        state.end = self.end_of(address, bytes.len() as u64)?;
        if bytes.len() <= SMALL {
            let filled = state.tail.len() + skipped as usize;
            state.tail.resize(filled, 0);
            state.tail.extend_from_slice(bytes);
            if state.tail.len() >= GATHERED {
                self.write_tail(&mut state)?;
            }
            return Ok(address);
        }
        self.write_tail(&mut state)?;
        state.tail_at = state.end;
        drop(state);
        self.write_file(address, bytes)?;
        Ok(address)
    }

    /// The number of bytes to skip so that `part` lies inside one unit.
    fn skip(&self, at: u64, part: std::ops::Range<usize>, unit: u64) -> u64 {
        let length = part.len() as u64;
        let start = (self.base + at + part.start as u64) % unit;
        if length == 0 || length > unit || start + length <= unit { 0 } else { unit - start }
    }

    /// Allocates space in a paged file: in the last page with this content, or in new pages.
    fn take_in_page(
        &self,
        state: &mut State,
        page: u64,
        content: Content,
        size: u64,
        part: std::ops::Range<usize>,
        unit: u64,
    ) -> Result<u64> {
        let left = state.pages[content as usize].clone();
        let address = left.start + self.skip(left.start, part.clone(), unit);
        if address.checked_add(size).is_some_and(|end| end <= left.end) {
            state.pages[content as usize].start = address + size;
            return Ok(address);
        }
        let first = state.end;
        let pages = size.div_ceil(page).max(1);
        let end = pages.checked_mul(page).ok_or_else(|| Error::invalid("space larger than any file"))?;
        state.end = self.end_of(first, end)?;
        // Where the bytes almost fill the page, `part` may have to cross a unit boundary.
        let skipped = self.skip(first, part, unit);
        let address = if pages == 1 && skipped + size <= page { first + skipped } else { first };
        // Keep the rest of whichever page has more room.
        let rest = address + size..state.end;
        if rest.end - rest.start > left.end - left.start {
            state.pages[content as usize] = rest;
        }
        Ok(address)
    }

    /// Allocates space without writing it.
    pub(crate) fn allocate(&self, size: u64) -> Result<u64> {
        self.allocate_within(size, 0..0, SECTOR)
    }

    /// Like [`allocate`](Self::allocate), placed like [`append_within`](Self::append_within).
    pub(crate) fn allocate_within(&self, size: u64, part: std::ops::Range<usize>, unit: u64) -> Result<u64> {
        self.allocate_for(Content::Structure, size, part, unit)
    }

    /// Like [`allocate`](Self::allocate), for the elements of a dataset.
    pub(crate) fn allocate_data(&self, size: u64) -> Result<u64> {
        self.allocate_for(Content::Data, size, 0..0, SECTOR)
    }

    fn allocate_for(
        &self,
        content: Content,
        size: u64,
        part: std::ops::Range<usize>,
        unit: u64,
    ) -> Result<u64> {
        let mut state = lock(&self.state);
        if let Some(page) = self.page {
            return self.take_in_page(&mut state, page, content, size, part, unit);
        }
        self.write_tail(&mut state)?;
        let address = state.end + self.skip(state.end, part, unit);
        state.end = self.end_of(address, size)?;
        state.tail_at = state.end;
        Ok(address)
    }

    /// Returns free space of this size, or allocates it.
    pub(crate) fn space(&self, size: u64) -> Result<u64> {
        let reused = lock(&self.state).free.get_mut(&size).and_then(Vec::pop);
        match reused {
            Some(address) => Ok(address),
            None => self.allocate(size),
        }
    }

    /// Writes elements of a dataset to free space of the same size, or at the end. Returns their address.
    pub(crate) fn store_data(&self, bytes: &[u8]) -> Result<u64> {
        let reused = lock(&self.state).free.get_mut(&(bytes.len() as u64)).and_then(Vec::pop);
        match reused {
            Some(address) => self.write_at(address, bytes).map(|()| address),
            None => self.append_to(Content::Data, bytes, 0..0, SECTOR),
        }
    }

    /// Records that a structure moved away from here. The space is reused only when its replacement is durable, because a
    /// crash may revert to the old structure.
    pub(crate) fn release(&self, address: u64, size: u64) {
        lock(&self.state).left.push((address, size));
    }

    /// Makes the released space available, once the structures that moved are durable.
    pub(crate) fn reuse(&self) {
        let mut state = lock(&self.state);
        for (address, size) in std::mem::take(&mut state.left) {
            state.free.entry(size).or_default().push(address);
        }
    }

    /// Forgets free space, because readers may still access it.
    pub(crate) fn abandon(&self) {
        lock(&self.state).left.clear();
    }

    /// The offset in the file from which addresses count.
    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    /// Writes to space that was allocated before.
    pub(crate) fn write_at(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let mut state = lock(&self.state);
        if let Some(at) = address.checked_sub(state.tail_at).filter(|_| !state.tail.is_empty()) {
            let at = at as usize;
            state.tail[at..at + bytes.len()].copy_from_slice(bytes);
            return Ok(());
        }
        drop(state);
        self.write_file(address, bytes)
    }

    /// Reads bytes at `address`.
    pub(crate) fn read(&self, address: u64, length: usize) -> Result<Vec<u8>> {
        self.flush()?;
        let end = address.checked_add(length as u64).filter(|end| *end <= self.end());
        if end.is_none() {
            let place = Place::new(&self.name, "structure", address);
            return Err(
                place.corrupt(format!("{length} bytes expected, the file ends at {:#x}", self.length()))
            );
        }
        let mut bytes = vec![0; length];
        self.file.read_at(&mut bytes, self.base + address)?;
        Ok(bytes)
    }

    /// Writes out all buffered pieces, without syncing.
    pub(crate) fn flush(&self) -> Result<()> {
        self.write_tail(&mut lock(&self.state))
    }

    /// Writes out all buffered pieces and syncs the file.
    pub(crate) fn sync(&self) -> Result<()> {
        self.flush()?;
        self.file.sync_data()
    }

    /// Writes the user block, before the superblock.
    pub(crate) fn write_user_block(&self, bytes: &[u8]) -> Result<()> {
        self.file.write_at(bytes, 0)
    }

    /// Unlocks the file for other programs.
    pub(crate) fn unlock(&self) -> Result<()> {
        self.file.unlock()
    }

    /// Sets the length of the file, counted from its first byte.
    pub(crate) fn set_length(&self, length: u64) -> Result<()> {
        self.flush()?;
        self.file.set_length(length)
    }

    fn write_tail(&self, state: &mut State) -> Result<()> {
        let tail = std::mem::take(&mut state.tail);
        if !tail.is_empty() {
            self.write_file(state.tail_at, &tail)?;
        }
        state.tail_at = state.end;
        // Keep the buffer for the next pieces.
        state.tail = tail;
        state.tail.clear();
        Ok(())
    }

    fn write_file(&self, address: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_at(bytes, self.base + address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with 4-byte addresses ends below 4 GiB: data beyond is refused, not given a truncated address.
    #[test]
    fn addresses_stay_within_their_width() {
        let output = Output::new(LocalFile::scratch(&std::env::temp_dir()).unwrap(), "test".into(), 0, 100)
            .with_addresses(4);
        let address = output.allocate(0xffff_ff00).unwrap();
        assert_eq!(address, 100);
        assert!(output.append(&[0; 200]).is_err());
        assert!(output.allocate(200).is_err());
        assert!(output.append(&[0; 10]).is_ok());
    }

    /// Nothing that fits into a page crosses a page boundary, and pages do not mix data and structures.
    #[test]
    fn pages_hold_one_kind_and_are_not_crossed() {
        let file = LocalFile::scratch(&std::env::temp_dir()).unwrap();
        let output = Output::new(file, "test".into(), 0, 48).with_pages(Some(4096)).unwrap();
        assert_eq!(output.append(&[1; 100]).unwrap(), 48);
        assert_eq!(output.store_data(&[2; 4000]).unwrap(), 4096);
        assert_eq!(output.append(&[3; 3000]).unwrap(), 148);
        assert_eq!(output.store_data(&[4; 97]).unwrap(), 8192);
        assert_eq!(output.append(&[5; 1000]).unwrap(), 12288);
        assert_eq!(output.store_data(&[6; 9000]).unwrap(), 16384);
        assert_eq!(output.allocate_data(96).unwrap(), 8289);
        assert_eq!(output.length(), 28672);
        assert_eq!(output.read(148, 3000).unwrap(), [3; 3000]);
    }
}
