//! Records on their way to where they belong: kept in memory up to a budget, and beyond it in a file.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hyperslab_core::{Error, Result};

/// Less memory than this helps nobody.
const LEAST: usize = 1 << 14;

/// Records by bucket, each bucket's in the order in which they came.
#[derive(Debug)]
pub(crate) struct Buckets {
    buffers: Vec<Vec<u8>>,
    /// Where the earlier bytes of each bucket are in the file.
    extents: Vec<Vec<(u64, usize)>>,
    held: usize,
    budget: usize,
    folder: PathBuf,
    file: Option<File>,
    end: u64,
}

impl Buckets {
    /// Buckets that hold up to `budget` bytes in memory; what is more goes to a nameless file in `folder`.
    pub(crate) fn new(budget: usize, folder: &Path) -> Self {
        Self {
            buffers: Vec::new(),
            extents: Vec::new(),
            held: 0,
            budget: budget.max(LEAST),
            folder: folder.to_owned(),
            file: None,
            end: 0,
        }
    }

    /// The bucket's buffer, to which whole records are appended; [`settle`](Self::settle) follows a batch of them.
    pub(crate) fn buffer(&mut self, bucket: usize) -> &mut Vec<u8> {
        if bucket >= self.buffers.len() {
            self.buffers.resize_with(bucket + 1, Vec::new);
        }
        &mut self.buffers[bucket]
    }

    /// Makes room for records: how many will come to each of these buckets, which may come several times.
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

    /// Notes that this many bytes were appended, and moves them to the file when they are too many.
    pub(crate) fn settle(&mut self, bytes: usize) -> Result<()> {
        self.held += bytes;
        if self.held > self.budget { self.spill() } else { Ok(()) }
    }

    /// How many bytes may be appended before they are settled.
    pub(crate) const fn room(&self) -> usize {
        self.budget / 4
    }

    fn spill(&mut self) -> Result<()> {
        let failed = |folder: &Path, source| Error::io(folder.display().to_string(), source);
        if self.file.is_none() {
            let file = tempfile::tempfile_in(&self.folder).map_err(|source| failed(&self.folder, source))?;
            self.file = Some(file);
        }
        self.extents.resize_with(self.buffers.len(), Vec::new);
        let Some(file) = &self.file else { return Ok(()) };
        let mut out = std::io::BufWriter::with_capacity(1 << 20, file);
        for (buffer, extents) in self.buffers.iter_mut().zip(&mut self.extents) {
            if !buffer.is_empty() {
                out.write_all(buffer).map_err(|source| failed(&self.folder, source))?;
                extents.push((self.end, buffer.len()));
                self.end += buffer.len() as u64;
                *buffer = Vec::new();
            }
        }
        out.flush().map_err(|source| failed(&self.folder, source))?;
        self.held = 0;
        Ok(())
    }

    /// Ends the gathering: buckets can be taken, from any thread.
    pub(crate) fn gathered(self) -> Gathered {
        Gathered {
            buffers: self.buffers.into_iter().map(Mutex::new).collect(),
            extents: self.extents,
            folder: self.folder,
            file: Mutex::new(self.file),
        }
    }
}

/// Buckets to which nothing more comes.
#[derive(Debug)]
pub(crate) struct Gathered {
    buffers: Vec<Mutex<Vec<u8>>>,
    extents: Vec<Vec<(u64, usize)>>,
    folder: PathBuf,
    file: Mutex<Option<File>>,
}

impl Gathered {
    /// The bytes of a bucket, which is empty afterwards unless it was in the file.
    pub(crate) fn take(&self, bucket: usize) -> Result<Vec<u8>> {
        let Some(buffer) = self.buffers.get(bucket) else { return Ok(Vec::new()) };
        let last = std::mem::take(&mut *buffer.lock().unwrap_or_else(PoisonError::into_inner));
        self.joined(bucket, last)
    }

    /// The bytes of a bucket, which keeps them.
    pub(crate) fn copy(&self, bucket: usize) -> Result<Vec<u8>> {
        let Some(buffer) = self.buffers.get(bucket) else { return Ok(Vec::new()) };
        let last = buffer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.joined(bucket, last)
    }

    /// What is in the file, and after it what was in memory.
    fn joined(&self, bucket: usize, last: Vec<u8>) -> Result<Vec<u8>> {
        let extents = self.extents.get(bucket).map_or(&[][..], Vec::as_slice);
        if extents.is_empty() {
            return Ok(last);
        }
        let failed = |source| Error::io(self.folder.display().to_string(), source);
        let before: usize = extents.iter().map(|(_, length)| length).sum();
        let mut bytes = vec![0; before];
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = bytes.as_mut_slice();
        for (offset, length) in extents {
            let (part, rest) = left.split_at_mut(*length);
            if let Some(file) = file.as_mut() {
                file.seek(SeekFrom::Start(*offset)).and_then(|_| file.read_exact(part)).map_err(failed)?;
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

/// Numbers of a record, one after the other.
pub(crate) fn words<const N: usize>(record: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(record.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// A record of numbers.
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
        fn what_goes_in_comes_out_in_order(pushes in prop::collection::vec((0_usize..9, 1_usize..2000), 0..60)) {
            let folder = tempfile::tempdir().unwrap();
            let mut expected = vec![Vec::new(); 9];
            let mut buckets = Buckets::new(LEAST, folder.path());
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
