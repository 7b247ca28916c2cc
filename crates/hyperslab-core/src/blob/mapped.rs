//! Files in the address space: reading is a memory access, and nothing is copied.

#![expect(unsafe_code, reason = "mapping a file is unsafe: another process may change it underneath")]

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use memmap2::Mmap;

#[cfg(unix)]
use super::guard::Watch;
use super::{Blob, slice};
use crate::{Error, Result};

/// A mapped file, read-only.
///
/// A file that is cut short while it is mapped ends the process when the missing part is touched (`SIGBUS`):
/// that is how mappings work. For files that others may truncate, use [`FileBlob`](super::FileBlob), or
/// [`guard_mapped_files`](crate::guard_mapped_files) on Unix.
#[derive(Debug, Clone)]
pub struct MappedBlob {
    name: Arc<str>,
    // Before the bytes: a mapping is watched as long as it is there, and no longer.
    #[cfg(unix)]
    watch: Option<Arc<Watch>>,
    bytes: Bytes,
}

/// A mapping, and whoever watches it: first one stops to watch, then it is unmapped.
struct Watched {
    #[cfg(unix)]
    _watch: Option<Arc<Watch>>,
    map: Mmap,
}

impl AsRef<[u8]> for Watched {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
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
        if metadata.len() == 0 {
            return Ok(Self {
                name,
                bytes: Bytes::new(),
                #[cfg(unix)]
                watch: None,
            });
        }
        // SAFETY: the mapping is read-only and private to this value. That another process may change
        // the bytes is accepted: every parser treats them as untrusted and reads each length once.
        let map = unsafe { Mmap::map(file) }.map_err(failed)?;
        #[cfg(unix)]
        let watch = Watch::new(&map).map(Arc::new);
        let bytes = Bytes::from_owner(Watched {
            #[cfg(unix)]
            _watch: watch.clone(),
            map,
        });
        Ok(Self {
            name,
            bytes,
            #[cfg(unix)]
            watch,
        })
    }

    /// Fails when the file has lost pages that were touched since: what reads as zeros there is none of its content.
    fn check_whole(&self) -> Result<()> {
        #[cfg(unix)]
        if self.watch.as_ref().is_some_and(|watch| watch.lost()) {
            let source = std::io::Error::new(
                std::io::ErrorKind::UnexpectedEof,
                "the file was cut short while it was mapped; open it again",
            );
            return Err(Error::io(Arc::clone(&self.name), source));
        }
        Ok(())
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
        self.check_whole()?;
        ranges.iter().map(|range| slice(&self.name, &self.bytes, range)).collect()
    }

    fn mapped(&self) -> Option<&Bytes> {
        self.check_whole().is_ok().then_some(&self.bytes)
    }
}
