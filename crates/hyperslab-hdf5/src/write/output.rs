//! The file that is being written: space is taken at its end, small pieces are gathered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use hyperslab_core::storage::LocalFile;
use hyperslab_core::{Error, Place, Result};

use crate::file::{lock, ones};

/// Pieces up to this size are gathered before they are written.
const SMALL: usize = 64 << 10;
/// Gathered pieces are written when there are this many bytes of them.
const GATHERED: usize = 1 << 20;
/// What a disk writes whole or not at all. Whatever is changed in its place is inside one.
pub(crate) const SECTOR: u64 = 512;

/// A file that is being written, by addresses that count from the superblock. Written from any thread.
#[derive(Debug)]
pub(crate) struct Output {
    file: LocalFile,
    name: Arc<str>,
    base: u64,
    /// The last address that fits in the file's addresses, all ones excepted.
    most: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The first free address.
    end: u64,
    /// Pieces that were appended and not yet written, from `tail_at` on.
    tail: Vec<u8>,
    tail_at: u64,
    /// Space that structures left when they moved, by size; and space that may be used again after the next flush.
    free: BTreeMap<u64, Vec<u64>>,
    left: Vec<(u64, u64)>,
}

impl Output {
    /// Writes `file` from `end` on; addresses count from `base`.
    pub(crate) fn new(file: LocalFile, name: Arc<str>, base: u64, end: u64) -> Self {
        let state = State { end, tail: Vec::new(), tail_at: end, free: BTreeMap::new(), left: Vec::new() };
        Self { file, name, base, most: (1 << 62) - 1, state: Mutex::new(state) }
    }

    /// The same, in a file whose addresses have this many bytes.
    pub(crate) fn with_addresses(mut self, width: usize) -> Self {
        self.most = self.most.min(ones(width) - 1);
        self
    }

    /// The address after `size` bytes at `address`, unless the file's addresses do not reach so far.
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

    /// The first address after everything.
    pub(crate) fn end(&self) -> u64 {
        lock(&self.state).end
    }

    /// Where the file ends, counted from its first byte.
    pub(crate) fn length(&self) -> u64 {
        self.base + self.end()
    }

    /// Writes these bytes at the end; returns their address.
    pub(crate) fn append(&self, bytes: &[u8]) -> Result<u64> {
        self.append_within(bytes, 0..0, SECTOR)
    }

    /// As [`append`](Self::append), so that the `part` of the bytes does not cross a multiple of `unit` bytes of the
    /// file, if it is no longer than one.
    pub(crate) fn append_within(&self, bytes: &[u8], part: std::ops::Range<usize>, unit: u64) -> Result<u64> {
        let mut state = lock(&self.state);
        let skipped = self.skip(&state, part, unit);
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

    /// Bytes to skip so that the part is inside a unit.
    fn skip(&self, state: &State, part: std::ops::Range<usize>, unit: u64) -> u64 {
        let length = part.len() as u64;
        let start = (self.base + state.end + part.start as u64) % unit;
        if length == 0 || length > unit || start + length <= unit { 0 } else { unit - start }
    }

    /// Takes space without writing it.
    pub(crate) fn allocate(&self, size: u64) -> Result<u64> {
        self.allocate_within(size, 0..0, SECTOR)
    }

    /// As [`allocate`](Self::allocate), placed as [`append_within`](Self::append_within) does.
    pub(crate) fn allocate_within(&self, size: u64, part: std::ops::Range<usize>, unit: u64) -> Result<u64> {
        let mut state = lock(&self.state);
        self.write_tail(&mut state)?;
        let address = state.end + self.skip(&state, part, unit);
        state.end = self.end_of(address, size)?;
        state.tail_at = state.end;
        Ok(address)
    }

    /// Space of this size that a structure left before the last flush, or new space.
    pub(crate) fn space(&self, size: u64) -> Result<u64> {
        let reused = lock(&self.state).free.get_mut(&size).and_then(Vec::pop);
        match reused {
            Some(address) => Ok(address),
            None => self.allocate(size),
        }
    }

    /// Writes these bytes where something of the same size moved away from, or at the end; returns their address.
    pub(crate) fn store(&self, bytes: &[u8]) -> Result<u64> {
        let reused = lock(&self.state).free.get_mut(&(bytes.len() as u64)).and_then(Vec::pop);
        match reused {
            Some(address) => self.write_at(address, bytes).map(|()| address),
            None => self.append(bytes),
        }
    }

    /// A structure moved away from here. A crash may still bring the old one back, so that the space is only used
    /// again when what replaces it is durable.
    pub(crate) fn release(&self, address: u64, size: u64) {
        lock(&self.state).left.push((address, size));
    }

    /// What moved is durable at its new place: its old space can be used again.
    pub(crate) fn reuse(&self) {
        let mut state = lock(&self.state);
        for (address, size) in std::mem::take(&mut state.left) {
            state.free.entry(size).or_default().push(address);
        }
    }

    /// Forgets space that structures left: readers may still be there.
    pub(crate) fn abandon(&self) {
        lock(&self.state).left.clear();
    }

    /// Writes these bytes over those at `address`, which were taken before.
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

    /// The bytes at `address`.
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

    /// Hands everything to the system.
    pub(crate) fn flush(&self) -> Result<()> {
        self.write_tail(&mut lock(&self.state))
    }

    /// Makes everything durable.
    pub(crate) fn sync(&self) -> Result<()> {
        self.flush()?;
        self.file.sync_data()
    }

    /// Writes the bytes before the superblock.
    pub(crate) fn write_user_block(&self, bytes: &[u8]) -> Result<()> {
        self.file.write_at(bytes, 0)
    }

    /// Lets other programs open the file.
    pub(crate) fn unlock(&self) -> Result<()> {
        self.file.unlock()
    }

    /// Makes the file this long, counted from its first byte.
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
        // The memory is kept for the next pieces.
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

    /// A file whose addresses have 4 bytes ends below 4 GiB: what comes later is refused, not given a truncated address.
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
}
