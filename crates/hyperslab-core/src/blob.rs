//! Bytes that can be read at any offset.

mod file;
#[cfg(unix)]
mod guard;
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
#[cfg(unix)]
pub use guard::{guard_mappings, guarded};
pub use mapped::MappedBlob;
pub use memory::MemoryBlob;
pub use part::{BlobPart, BlobReader};

use crate::{Error, FetchCost, Result};

/// Bytes that can be read at any offset: a mapped file, memory, an object in a bucket.
pub trait Blob: Send + Sync + Debug {
    /// The name to use in messages: a path or URL.
    fn name(&self) -> &Arc<str>;

    /// The current length in bytes.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system cannot determine the length.
    fn len(&self) -> Result<u64>;

    /// Returns true if the blob is empty.
    ///
    /// # Errors
    ///
    /// As [`len`](Self::len).
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads all ranges in one call, so that a remote blob can merge and overlap its requests. Mapped and in-memory blobs do not
    /// copy. Use this for data: a remote blob does not cache the result.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if a range reaches past the end, [`Io`](Error::Io) if reading fails.
    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>>;

    /// What [`read`](Self::read) would request for these ranges.
    fn read_cost(&self, ranges: &[Range<u64>]) -> FetchCost {
        FetchCost::of_runs(ranges)
    }

    /// The whole blob without a copy, when it is mapped or in memory.
    fn mapped(&self) -> Option<&Bytes> {
        None
    }

    /// Returns true if the blob is on another machine.
    fn is_remote(&self) -> bool {
        false
    }

    /// Announces that these ranges will soon be read one by one. A remote blob requests them all at once and caches them; other
    /// blobs do nothing. Errors are left to the reads.
    fn prefetch(&self, ranges: &[Range<u64>]) {
        let _ = ranges;
    }

    /// Reads one range. Use this for metadata: a remote blob caches the result.
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

    /// Reads `length` bytes at `offset`.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); also when the end overflows.
    fn read_at(&self, offset: u64, length: u64) -> Result<Bytes> {
        let end = offset.checked_add(length).ok_or_else(|| past_end(self.name(), &(offset..u64::MAX), 0))?;
        self.read_range(offset..end)
    }
}

/// A slice of shared bytes, without a copy.
fn slice(name: &Arc<str>, bytes: &Bytes, range: &Range<u64>) -> Result<Bytes> {
    let length = bytes.len() as u64;
    if range.start > range.end || range.end > length {
        return Err(past_end(name, range, length));
    }
    // Both bounds fit in `usize`: they are at most the length of bytes in memory.
    Ok(bytes.slice(range.start as usize..range.end as usize))
}

/// The error for a range that reaches past the end.
pub(crate) fn past_end(name: &Arc<str>, range: &Range<u64>, length: u64) -> Error {
    Error::Corrupt(Box::new(crate::Corrupt {
        store: Arc::clone(name),
        structure: "bytes".into(),
        offset: Some(range.start),
        problem: format!(
            "{} bytes expected, but the file ends at {length:#x}",
            range.end.saturating_sub(range.start)
        ),
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

    /// A sparse file can claim any size.
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
        // Skip file systems that cannot hold files of this size.
        if std::fs::File::create(&path).unwrap().set_len(SIZE).is_ok() {
            assert!(FileBlob::open(&path)?.read_range(0..SIZE).is_err());
            let directory = LocalStorage::new(folder.path()).unmapped();
            assert!(directory.read("hole").is_err());
            assert!(directory.read_range("hole", 1..SIZE).is_err());
        }
        Ok(())
    }
}
