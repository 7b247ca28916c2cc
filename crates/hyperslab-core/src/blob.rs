//! Bytes that can be read at any offset.

mod file;
mod mapped;
mod memory;
mod part;
mod pool;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

pub use file::FileBlob;
pub(crate) use file::{read_exact_at, read_part, read_whole};
pub use mapped::MappedBlob;
pub use memory::MemoryBlob;
pub use part::{BlobPart, BlobReader};

use crate::{Error, Result};

/// Bytes that can be read at any offset: a mapped file, memory, an object in a bucket.
pub trait Blob: Send + Sync + Debug {
    /// What to call it in messages: a path or an address.
    fn name(&self) -> &Arc<str>;

    /// How many bytes there are now.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the system cannot tell.
    fn len(&self) -> Result<u64>;

    /// Is there nothing in it?
    ///
    /// # Errors
    ///
    /// As [`len`](Self::len).
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The bytes of all ranges, in one call so that a remote blob can merge and overlap its requests. Without
    /// a copy when the blob is mapped or in memory. For data: a remote blob keeps nothing of it.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) when a range reaches past the end, [`Io`](Error::Io) when reading fails.
    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;

    /// The whole blob without a copy, when it is mapped or in memory.
    fn mapped(&self) -> Option<&Bytes> {
        None
    }

    /// Is it on another machine?
    fn is_remote(&self) -> bool {
        false
    }

    /// Says that these ranges will be read one by one soon. A remote blob requests them all at once and keeps them; others do
    /// nothing. Errors are left to the reads.
    fn prefetch(&self, ranges: &[Range<u64>]) {
        let _ = ranges;
    }

    /// The bytes of one range. For structures that describe data: a remote blob keeps what it read.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        if let Some(bytes) = self.mapped() {
            return slice(self.name(), bytes, &range);
        }
        let mut parts = self.read(&[range])?;
        parts.pop().ok_or_else(|| Error::invalid("a blob returned nothing for one range"))
    }

    /// `length` bytes at `offset`.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); also when the end overflows.
    fn read_at(&self, offset: u64, length: u64) -> Result<Bytes> {
        let end = offset.checked_add(length).ok_or_else(|| past_end(self.name(), &(offset..u64::MAX), 0))?;
        self.read_range(offset..end)
    }
}

/// A range of shared bytes, without a copy.
fn slice(name: &Arc<str>, bytes: &Bytes, range: &Range<u64>) -> Result<Bytes> {
    let length = bytes.len() as u64;
    if range.start > range.end || range.end > length {
        return Err(past_end(name, range, length));
    }
    // Both fit: they are at most the length of bytes that are in memory.
    Ok(bytes.slice(range.start as usize..range.end as usize))
}

/// The error of a range that reaches past the end.
pub(crate) fn past_end(name: &Arc<str>, range: &Range<u64>, length: u64) -> Error {
    Error::Corrupt(Box::new(crate::Corrupt {
        store: Arc::clone(name),
        structure: "bytes".into(),
        offset: Some(range.start),
        problem: format!("{} expected, the file ends at {length:#x}", range.end.saturating_sub(range.start)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{LocalStorage, Storage};

    fn all_kinds(content: &[u8]) -> Result<Vec<Box<dyn Blob>>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        Ok(vec![
            Box::new(MappedBlob::open(file.path())?),
            Box::new(FileBlob::open(file.path())?),
            Box::new(MemoryBlob::new("memory", content.to_vec())),
        ])
    }

    #[test]
    fn ranges_are_read_and_the_end_is_respected() -> Result<()> {
        for blob in all_kinds(b"hyperslab")? {
            assert_eq!(blob.len()?, 9);
            assert_eq!(blob.read(&[0..5, 5..9, 9..9, 2..3])?, ["hyper", "slab", "", "p"]);
            assert!(blob.read_range(5..10).unwrap_err().is_corrupt());
            assert!(blob.read_at(u64::MAX, 2).unwrap_err().is_corrupt());
            assert!(blob.read_at(u64::MAX - 1, 1).unwrap_err().is_corrupt());
        }
        Ok(())
    }

    #[test]
    fn empty_files_can_be_opened() -> Result<()> {
        for blob in all_kinds(b"")? {
            assert!(blob.is_empty()?);
            assert_eq!(blob.read_range(0..0)?, "");
        }
        Ok(())
    }

    /// A sparse file can have any size.
    #[test]
    #[cfg(target_os = "linux")]
    fn more_than_memory_is_an_error() -> Result<()> {
        const SIZE: u64 = 1 << 43;
        // A system that overcommits memory grants any request.
        if std::fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|told| told.trim() == "1") {
            return Ok(());
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hole");
        // File systems without such sizes need no test.
        if std::fs::File::create(&path).unwrap().set_len(SIZE).is_ok() {
            assert!(FileBlob::open(&path)?.read_range(0..SIZE).is_err());
            let directory = LocalStorage::new(folder.path()).unmapped();
            assert!(directory.read("hole").is_err());
            assert!(directory.read_range("hole", 1..SIZE).is_err());
        }
        Ok(())
    }
}
