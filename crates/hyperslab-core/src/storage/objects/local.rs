//! Storage in a local folder.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::{ObjectStat, Storage, StorageEntry};
use crate::blob::{past_end, read_part, read_whole};
use crate::{Blob, Error, FileBlob, MappedBlob, MemoryBlob, Result, join_inside};

/// Local files of at least this size are mapped; smaller ones are read when opened. Mapping costs several system calls and page
/// faults, which a small file does not repay.
pub const MAPPED_FROM: u64 = 256 << 10;

/// Storage in a local folder.
#[derive(Debug, Clone)]
pub struct LocalStorage {
    name: Arc<str>,
    root: PathBuf,
    /// Use positional reads instead of mappings.
    unmapped: bool,
    /// Treat hidden files and links that lead out as missing.
    confined: bool,
    /// Treat links that lead out of this folder as missing.
    within: Option<PathBuf>,
}

impl LocalStorage {
    /// Storage in the folder `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { name: root.display().to_string().into(), root, unmapped: false, confined: false, within: None }
    }

    /// Reads files by position instead of mapping them, for files that may be truncated while in use.
    #[must_use]
    pub const fn unmapped(mut self) -> Self {
        self.unmapped = true;
        self
    }

    /// For names chosen by an untrusted file: hidden files, and files outside the folder that symbolic links lead to, count as
    /// missing.
    #[must_use]
    pub const fn confined(mut self) -> Self {
        self.confined = true;
        self
    }

    /// For folders shown to untrusted clients: files outside `folder` that symbolic links lead to count as missing. `folder` must
    /// contain this one.
    #[must_use]
    pub fn within(mut self, folder: impl Into<PathBuf>) -> Self {
        self.within = Some(folder.into());
        self
    }

    /// Returns true if a confined storage shows this existing file.
    fn shows(&self, key: &str, path: &Path) -> bool {
        if let Some(folder) = &self.within {
            let inside = path.canonicalize().ok().zip(folder.canonicalize().ok());
            if !inside.is_some_and(|(path, folder)| path.starts_with(folder)) {
                return false;
            }
        }
        if !self.confined {
            return true;
        }
        let hidden = key.split('/').any(|part| part.starts_with('.'));
        let inside = || Some(path.canonicalize().ok()?.starts_with(self.root.canonicalize().ok()?));
        !hidden && inside().unwrap_or(false)
    }

    /// The path of a key. Keys come from files, so they must not lead out of the folder.
    fn path(&self, key: &str) -> Result<PathBuf> {
        join_inside(&self.root, key)
    }

    fn failed<T>(&self, path: &Path, source: io::Error) -> Result<Option<T>> {
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ => Err(Error::io(path.display().to_string(), source)),
        }
    }
}

impl Storage for LocalStorage {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Blob>>> {
        let path = self.path(key)?;
        if !self.shows(key, &path) {
            return Ok(None);
        }
        let (file, size) = match open_file(&path) {
            Ok(Some(opened)) => opened,
            Ok(None) => return Ok(None),
            Err(source) => return self.failed(&path, source),
        };
        let name: Arc<str> = path.display().to_string().into();
        if size >= MAPPED_FROM {
            return Ok(Some(if self.unmapped {
                Arc::new(FileBlob::new(name, file))
            } else {
                Arc::new(MappedBlob::new(name, &file)?)
            }));
        }
        match read_whole(&file, size as usize) {
            Ok(bytes) => Ok(Some(Arc::new(MemoryBlob::new(name, bytes)))),
            Err(source) => self.failed(&path, source),
        }
    }

    /// Small files are read in one go, without a blob.
    fn read(&self, key: &str) -> Result<Option<Bytes>> {
        let path = self.path(key)?;
        if !self.shows(key, &path) {
            return Ok(None);
        }
        let (file, size) = match open_file(&path) {
            Ok(Some(opened)) => opened,
            Ok(None) => return Ok(None),
            Err(source) => return self.failed(&path, source),
        };
        if size >= MAPPED_FROM && !self.unmapped {
            let blob = MappedBlob::new(path.display().to_string().into(), &file)?;
            let length = blob.len()?;
            return blob.read_range(0..length).map(Some);
        }
        let read = if size >= MAPPED_FROM {
            usize::try_from(size).map_err(io::Error::other).and_then(|size| read_part(&file, 0, size))
        } else {
            read_whole(&file, size as usize)
        };
        read.map(Some).or_else(|source| self.failed(&path, source))
    }

    fn stat(&self, key: &str) -> Result<Option<ObjectStat>> {
        let path = self.path(key)?;
        if !self.shows(key, &path) {
            return Ok(None);
        }
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => {
                Ok(Some(ObjectStat { size: metadata.len(), version: version(&metadata) }))
            }
            Ok(_) => Ok(None),
            Err(source) => self.failed(&path, source),
        }
    }

    /// Read, never mapped: mapping a file that is used once takes longer than copying it.
    fn read_range(&self, key: &str, range: Range<u64>) -> Result<Option<Bytes>> {
        let path = self.path(key)?;
        if !self.shows(key, &path) {
            return Ok(None);
        }
        let (file, size) = match open_file(&path) {
            Ok(Some(opened)) => opened,
            Ok(None) => return Ok(None),
            Err(source) => return self.failed(&path, source),
        };
        if range.start > range.end || range.end > size {
            return Err(past_end(&path.display().to_string().into(), &range, size));
        }
        let length = (range.end - range.start) as usize;
        match read_part(&file, range.start, length) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(source) => self.failed(&path, source),
        }
    }

    fn list(&self, key: &str) -> Result<Vec<StorageEntry>> {
        let path = self.path(key)?;
        let reading = match std::fs::read_dir(&path) {
            Ok(reading) => reading,
            Err(source) => return self.failed(&path, source).map(Option::unwrap_or_default),
        };
        let mut entries = Vec::new();
        for entry in reading {
            let entry = entry.map_err(|source| Error::io(path.display().to_string(), source))?;
            // A name that is not UTF-8 cannot belong to a format.
            let Ok(name) = entry.file_name().into_string() else { continue };
            // The directory listing knows the file type, except for links. This saves a call per name.
            let is_directory = match entry.file_type() {
                Ok(kind) if !kind.is_symlink() => kind.is_dir(),
                _ => std::fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir()),
            };
            entries.push(StorageEntry { name, is_directory, size: None });
        }
        entries.sort();
        Ok(entries)
    }
}

/// Identifies the file and its modification time.
#[cfg(unix)]
fn version(metadata: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let changed = metadata.mtime().wrapping_mul(1_000_000_000).wrapping_add(metadata.mtime_nsec());
    changed.cast_unsigned() ^ metadata.ino().rotate_left(32)
}

/// The modification time.
#[cfg(not(unix))]
fn version(metadata: &std::fs::Metadata) -> u64 {
    let since = |changed: std::time::SystemTime| changed.duration_since(std::time::UNIX_EPOCH).ok();
    metadata.modified().ok().and_then(since).map_or(0, |since| since.as_nanos() as u64)
}

/// Opens a file; `None` if it is not a regular file. Stores of many small files notice every path lookup, so open first and query
/// the handle afterwards.
fn open_file(path: &Path) -> io::Result<Option<(File, u64)>> {
    let mut options = File::options();
    options.read(true);
    // Opening a pipe must not wait for a writer.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then_some((file, metadata.len())))
}
