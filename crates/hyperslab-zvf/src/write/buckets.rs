//! Sorts records into buckets, in memory up to a budget and beyond it in a file.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hyperslab_core::Result;
use hyperslab_core::storage::LocalFile;

/// The smallest useful memory limit.
const MIN_BUDGET: usize = 1 << 14;

/// Small buckets are written together in pieces of this size.
const SPILL_PIECE: usize = 1 << 20;

/// Records by bucket, in order of arrival.
#[derive(Debug)]
pub(crate) struct Buckets {
    buffers: Vec<Vec<u8>>,
    /// The file extents of the earlier bytes of each bucket.
    extents: Vec<Vec<(u64, usize)>>,
    held: usize,
    budget: usize,
    folder: PathBuf,
    file: Option<LocalFile>,
    end: u64,
}

impl Buckets {
    /// Buckets that hold up to `budget` bytes in memory. The rest goes to an unnamed file in `folder`.
    pub(crate) fn new(budget: usize, folder: &Path) -> Self {
        Self {
            buffers: Vec::new(),
            extents: Vec::new(),
            held: 0,
            budget: budget.max(MIN_BUDGET),
            folder: folder.to_owned(),
            file: None,
            end: 0,
        }
    }

    /// The bucket's buffer, to which whole records are appended. Call [`settle`](Self::settle) after each batch.
    pub(crate) fn buffer(&mut self, bucket: usize) -> &mut Vec<u8> {
        if bucket >= self.buffers.len() {
            self.buffers.resize_with(bucket + 1, Vec::new);
        }
        &mut self.buffers[bucket]
    }

    /// Reserves space for records. A bucket may occur several times.
    pub(crate) fn expect(&mut self, buckets: &[u32], record: usize) {
        let mut counts: Vec<u32> = Vec::new();
        for bucket in buckets {
            let bucket = *bucket as usize;
            if bucket >= counts.len() {
                counts.resize(bucket + 1, 0);
            }
            counts[bucket] += 1;
        }
        for (bucket, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            self.buffer(bucket).reserve(count as usize * record);
        }
    }

    /// Appends a record.
    pub(crate) fn push(&mut self, bucket: usize, record: &[u8]) -> Result<()> {
        self.buffer(bucket).extend_from_slice(record);
        self.settle(record.len())
    }

    /// Accounts for appended bytes, and moves them to the file if they exceed the budget.
    pub(crate) fn settle(&mut self, bytes: usize) -> Result<()> {
        self.held += bytes;
        if self.held > self.budget { self.spill() } else { Ok(()) }
    }

    /// The number of bytes that may be appended before settling.
    pub(crate) const fn room(&self) -> usize {
        self.budget / 4
    }

    fn spill(&mut self) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            empty => empty.insert(LocalFile::scratch(&self.folder)?),
        };
        self.extents.resize_with(self.buffers.len(), Vec::new);
        // Buckets may be many and small.
        let (mut gathered, mut start) = (Vec::with_capacity(SPILL_PIECE), self.end);
        for (buffer, extents) in self.buffers.iter_mut().zip(&mut self.extents) {
            if !buffer.is_empty() {
                if gathered.len() + buffer.len() > SPILL_PIECE {
                    file.write_at(&gathered, start)?;
                    gathered.clear();
                    start = self.end;
                }
                if buffer.len() >= SPILL_PIECE {
                    file.write_at(buffer, self.end)?;
                    start += buffer.len() as u64;
                } else {
                    gathered.extend_from_slice(buffer);
                }
                extents.push((self.end, buffer.len()));
                self.end += buffer.len() as u64;
                *buffer = Vec::new();
            }
        }
        file.write_at(&gathered, start)?;
        self.held = 0;
        Ok(())
    }

    /// Ends the collection. Buckets can then be taken from any thread.
    pub(crate) fn gathered(self) -> Gathered {
        Gathered {
            buffers: self.buffers.into_iter().map(Mutex::new).collect(),
            extents: self.extents,
            file: self.file,
        }
    }
}

/// Completed buckets.
#[derive(Debug)]
pub(crate) struct Gathered {
    buffers: Vec<Mutex<Vec<u8>>>,
    extents: Vec<Vec<(u64, usize)>>,
    file: Option<LocalFile>,
}

impl Gathered {
    /// The bytes of a bucket, which is empty afterwards unless it was in the file.
    pub(crate) fn take(&self, bucket: usize) -> Result<Vec<u8>> {
        let Some(buffer) = self.buffers.get(bucket) else { return Ok(Vec::new()) };
        let last = std::mem::take(&mut *buffer.lock().unwrap_or_else(PoisonError::into_inner));
        self.joined(bucket, last)
    }

    /// A copy of the bytes of a bucket.
    pub(crate) fn copy(&self, bucket: usize) -> Result<Vec<u8>> {
        let Some(buffer) = self.buffers.get(bucket) else { return Ok(Vec::new()) };
        let last = buffer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.joined(bucket, last)
    }

    /// The bytes in the file, followed by those in memory.
    fn joined(&self, bucket: usize, last: Vec<u8>) -> Result<Vec<u8>> {
        let extents = self.extents.get(bucket).map_or(&[][..], Vec::as_slice);
        if extents.is_empty() {
            return Ok(last);
        }
        let before: usize = extents.iter().map(|(_, length)| length).sum();
        let mut bytes = vec![0; before];
        let mut left = bytes.as_mut_slice();
        for (offset, length) in extents {
            let (part, rest) = left.split_at_mut(*length);
            if let Some(file) = &self.file {
                file.read_at(part, *offset)?;
            }
            left = rest;
        }
        bytes.extend(last);
        Ok(bytes)
    }

    pub(crate) fn len(&self) -> usize {
        self.buffers.len()
    }
}

/// The leading numbers of a record.
pub(crate) fn words<const N: usize>(record: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(record.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// Encodes numbers as a record.
pub(crate) fn record<const N: usize>(words: [u64; N]) -> [[u8; 8]; N] {
    words.map(u64::to_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn records_come_out_in_order(pushes in prop::collection::vec((0_usize..9, 1_usize..2000), 0..60)) {
            let folder = tempfile::tempdir().unwrap();
            let mut expected = vec![Vec::new(); 9];
            let mut buckets = Buckets::new(MIN_BUDGET, folder.path());
            for (number, (bucket, length)) in pushes.into_iter().enumerate() {
                let record = vec![number as u8; length];
                expected[bucket].extend_from_slice(&record);
                buckets.push(bucket, &record).unwrap();
            }
            let gathered = buckets.gathered();
            for (bucket, expected) in expected.into_iter().enumerate() {
                prop_assert_eq!(gathered.take(bucket).unwrap(), expected);
            }
        }
    }
}
