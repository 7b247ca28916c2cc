//! Positional reads, for files that another process may change.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::pool::{self, Pooled};
use super::{Blob, past_end};
use crate::{Buffer, Error, Result};

/// Parts of up to this many bytes are read without asking for the file's size first.
const SMALL: usize = 64 << 10;

/// An open file, read by position. Nothing is mapped, so a file that shrinks gives an error and not a signal.
#[derive(Debug)]
pub struct FileBlob {
    name: Arc<str>,
    file: File,
}

impl FileBlob {
    /// Opens the file at `path`.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if it cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        let name: Arc<str> = path.display().to_string().into();
        match File::open(path) {
            Ok(file) => Ok(Self { name, file }),
            Err(source) => Err(Error::io(name, source)),
        }
    }
}

impl FileBlob {
    /// Wraps an open file.
    pub(crate) const fn new(name: Arc<str>, file: File) -> Self {
        Self { name, file }
    }

    fn read_one(&self, range: &Range<u64>) -> Result<Bytes> {
        let past_end = |total| past_end(&self.name, range, total);
        let Some(length) = range.end.checked_sub(range.start).and_then(|length| usize::try_from(length).ok())
        else {
            return Err(past_end(self.len()?));
        };
        // Memory for large parts must be proportional to the file's size. Small parts save a system call.
        if !(1..=SMALL).contains(&length) {
            let total = self.len()?;
            if range.end > total {
                return Err(past_end(total));
            }
        }
        read_part(&self.file, range.start, length).map_err(|source| match self.len() {
            Ok(total) if range.end > total => past_end(total),
            _ => Error::io(Arc::clone(&self.name), source),
        })
    }
}

impl Blob for FileBlob {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64> {
        let metadata = self.file.metadata().map_err(|source| Error::io(Arc::clone(&self.name), source))?;
        Ok(metadata.len())
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().map(|range| self.read_one(range)).collect()
    }
}

/// Reads `length` bytes. A sparse file may be larger than memory, which is an error.
pub(crate) fn read_part(file: &File, offset: u64, length: usize) -> std::io::Result<Bytes> {
    if length > pool::LARGEST {
        let mut buffer = Buffer::zeroed(length).map_err(std::io::Error::other)?;
        read_exact_at(file, buffer.as_mut_slice(), offset)?;
        return Ok(buffer.freeze());
    }
    let mut buffer = Pooled::take(length);
    read_exact_at(file, buffer.as_mut_slice(), offset)?;
    Ok(buffer.freeze(length))
}

/// Reads a small file of this size at once; fewer bytes if it has been truncated since.
pub(crate) fn read_whole(mut file: &File, size: usize) -> std::io::Result<Bytes> {
    let mut buffer = Pooled::take(size);
    let mut length = 0;
    while length < size {
        match file.read(&mut buffer.as_mut_slice()[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(buffer.freeze(length))
}

#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
pub(crate) fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => {
                buffer = &mut buffer[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}
