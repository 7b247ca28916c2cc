//! Files in the address space: reading is a memory access, and nothing is copied.

#![expect(unsafe_code, reason = "mapping a file is unsafe: another process may change it underneath")]

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use memmap2::Mmap;

use super::{Blob, slice};
use crate::{Error, Result};

/// A mapped file, read-only.
///
/// A file that is cut short while it is mapped ends the process when the missing part is touched (`SIGBUS`):
/// that is how mappings work. For files that others may truncate, use [`FileBlob`](super::FileBlob).
#[derive(Debug, Clone)]
pub struct MappedBlob {
    name: Arc<str>,
    bytes: Bytes,
}

impl MappedBlob {
    /// Maps the file at `path`.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when it cannot be opened or mapped.
    pub fn open(path: &Path) -> Result<Self> {
        let name: Arc<str> = path.display().to_string().into();
        let file = File::open(path).map_err(|source| Error::io(Arc::clone(&name), source))?;
        Self::new(name, &file)
    }

    /// Maps a file that was opened.
    pub(crate) fn new(name: Arc<str>, file: &File) -> Result<Self> {
        let failed = |source| Error::io(Arc::clone(&name), source);
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(std::io::ErrorKind::IsADirectory.into()));
        }
        // Zero bytes cannot be mapped.
        let bytes = if metadata.len() == 0 {
            Bytes::new()
        } else {
            // SAFETY: the mapping is read-only and private to this value. That another process may change
            // the bytes is accepted: every parser treats them as untrusted and reads each length once.
            Bytes::from_owner(unsafe { Mmap::map(file) }.map_err(failed)?)
        };
        Ok(Self { name, bytes })
    }
}

impl Blob for MappedBlob {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().map(|range| slice(&self.name, &self.bytes, range)).collect()
    }

    fn mapped(&self) -> Option<&Bytes> {
        Some(&self.bytes)
    }
}
