//! Memory-mapped files: a read is a memory access without a copy.

#![expect(unsafe_code, reason = "mapping a file is unsafe: another process may change it underneath")]

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use memmap2::Mmap;

#[cfg(unix)]
use super::guard::Guarded;
use super::{Blob, slice};
use crate::{Error, Result};

/// A mapped file, read-only.
///
/// If the file is truncated while it is mapped, accessing the missing part ends the process (`SIGBUS`). For files that
/// others may truncate, use [`FileBlob`](super::FileBlob) or
/// [`guard_mappings`](crate::guard_mappings).
#[derive(Debug, Clone)]
pub struct MappedBlob {
    name: Arc<str>,
    // Declared before the bytes, because the mapping must be the last to drop the guard.
    #[cfg(unix)]
    guard: Arc<Guarded>,
    bytes: Bytes,
}

impl MappedBlob {
    /// Maps the file at `path`.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if it cannot be opened or mapped.
    pub fn open(path: &Path) -> Result<Self> {
        let name: Arc<str> = path.display().to_string().into();
        let file = File::open(path).map_err(|source| Error::io(Arc::clone(&name), source))?;
        Self::new(name, &file)
    }

    /// Maps an open file.
    pub(crate) fn new(name: Arc<str>, file: &File) -> Result<Self> {
        let failed = |source| Error::io(Arc::clone(&name), source);
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(std::io::ErrorKind::IsADirectory.into()));
        }
        // Zero bytes cannot be mapped.
        if metadata.len() == 0 {
            let bytes = Bytes::new();
            #[cfg(unix)]
            return Ok(Self { name, guard: Arc::new(Guarded::new(&bytes)), bytes });
            #[cfg(not(unix))]
            return Ok(Self { name, bytes });
        }
        // SAFETY: the mapping is read-only and private to this value. That another process may change
        // the bytes is accepted: every parser treats them as untrusted and reads each length once.
        let map = unsafe { Mmap::map(file) }.map_err(failed)?;
        #[cfg(unix)]
        {
            let guard = Arc::new(Guarded::new(&map));
            let bytes = Bytes::from_owner(Mapping { _guard: Arc::clone(&guard), map });
            Ok(Self { name, bytes, guard })
        }
        #[cfg(not(unix))]
        Ok(Self { name, bytes: Bytes::from_owner(map) })
    }

    /// Fails if the file is known to have been truncated since it was mapped.
    #[cfg_attr(
        not(unix),
        expect(
            clippy::unused_self,
            clippy::unnecessary_wraps,
            reason = "truncation is not detected on this system"
        )
    )]
    fn check(&self) -> Result<()> {
        #[cfg(unix)]
        self.guard.check(&self.name)?;
        Ok(())
    }
}

/// A mapping and its guard. The guard is removed before the mapping.
#[cfg(unix)]
struct Mapping {
    _guard: Arc<Guarded>,
    map: Mmap,
}

#[cfg(unix)]
impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        &self.map
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
        self.check()?;
        ranges.iter().map(|range| slice(&self.name, &self.bytes, range)).collect()
    }

    fn mapped(&self) -> Option<&Bytes> {
        self.check().is_ok().then_some(&self.bytes)
    }
}
