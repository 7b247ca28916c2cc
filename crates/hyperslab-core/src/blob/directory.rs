//! Blobs under names: a folder, or an object store's prefix. For formats that are directories.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::file::{read_part, read_whole};
use super::{Blob, FileBlob, MappedBlob, MemoryBlob, past_end};
use crate::{Error, Result, join_inside};

/// Files of a local directory are mapped from this size on; smaller ones are read when they are opened. Mapping costs
/// several system calls and page faults, which a small file does not repay.
pub const MAPPED_FROM: u64 = 256 << 10;

/// What a blob was like when it was asked after: another one of the same name has another stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Its bytes.
    pub size: u64,
    /// Changes with the content, as far as the directory can tell.
    pub version: u64,
}

/// Blobs under `/`-separated names.
pub trait Directory: Send + Sync + Debug {
    /// What to call it in messages.
    fn name(&self) -> &Arc<str>;

    /// The blob with this name; `None` when there is none.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the system says anything but "not there"; [`Invalid`](Error::Invalid) for a name
    /// that leaves the directory.
    fn open(&self, key: &str) -> Result<Option<Arc<dyn Blob>>>;

    /// The size of the blob with this name; `None` when there is none.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    fn size(&self, key: &str) -> Result<Option<u64>>;

    /// The size of the blob with this name and its version; `None` when there is none.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    fn stamp(&self, key: &str) -> Result<Option<Stamp>> {
        Ok(self.size(key)?.map(|size| Stamp { size, version: 0 }))
    }

    /// What stands directly under this name (the empty name is the top), sorted by name; empty when nothing does.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    fn list(&self, key: &str) -> Result<Vec<DirectoryEntry>>;

    /// Is it on another machine?
    fn is_remote(&self) -> bool {
        false
    }

    /// The whole blob with this name; `None` when there is none.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    fn read(&self, key: &str) -> Result<Option<Bytes>> {
        let Some(blob) = self.open(key)? else { return Ok(None) };
        let length = blob.len()?;
        blob.read_range(0..length).map(Some)
    }

    /// A range of the blob with this name, for those who want nothing else of it; `None` when there is none.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open) and [`Blob::read_range`].
    fn read_range(&self, key: &str, range: Range<u64>) -> Result<Option<Bytes>> {
        self.open(key)?.map(|blob| blob.read_range(range)).transpose()
    }
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectoryEntry {
    /// Its last part, without slashes.
    pub name: String,
    /// Does it hold names, rather than bytes?
    pub is_directory: bool,
}

/// A folder of the file system.
#[derive(Debug, Clone)]
pub struct LocalDirectory {
    name: Arc<str>,
    root: PathBuf,
    /// Positional reads instead of mappings.
    unmapped: bool,
}

impl LocalDirectory {
    /// The folder at `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { name: root.display().to_string().into(), root, unmapped: false }
    }

    /// Read files by position, never map them: for files that may be truncated underneath.
    #[must_use]
    pub const fn unmapped(mut self) -> Self {
        self.unmapped = true;
        self
    }

    /// The file system path of a name. Names come from files, so they must not climb out.
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

impl Directory for LocalDirectory {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Blob>>> {
        let path = self.path(key)?;
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

    /// Small files come in one read, without a blob around them.
    fn read(&self, key: &str) -> Result<Option<Bytes>> {
        let path = self.path(key)?;
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

    fn size(&self, key: &str) -> Result<Option<u64>> {
        Ok(self.stamp(key)?.map(|stamp| stamp.size))
    }

    fn stamp(&self, key: &str) -> Result<Option<Stamp>> {
        let path = self.path(key)?;
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => {
                Ok(Some(Stamp { size: metadata.len(), version: version(&metadata) }))
            }
            Ok(_) => Ok(None),
            Err(source) => self.failed(&path, source),
        }
    }

    /// Read, never mapped: mapping a file that is looked at once takes longer than copying it.
    fn read_range(&self, key: &str, range: Range<u64>) -> Result<Option<Bytes>> {
        let path = self.path(key)?;
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

    fn list(&self, key: &str) -> Result<Vec<DirectoryEntry>> {
        let path = self.path(key)?;
        let reading = match std::fs::read_dir(&path) {
            Ok(reading) => reading,
            Err(source) => return self.failed(&path, source).map(Option::unwrap_or_default),
        };
        let mut entries = Vec::new();
        for entry in reading {
            let entry = entry.map_err(|source| Error::io(path.display().to_string(), source))?;
            // A name that is not text cannot be one of a format's names.
            let Ok(name) = entry.file_name().into_string() else { continue };
            // The listing itself knows, except of links: a question less for each of many names.
            let is_directory = match entry.file_type() {
                Ok(kind) if !kind.is_symlink() => kind.is_dir(),
                _ => std::fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir()),
            };
            entries.push(DirectoryEntry { name, is_directory });
        }
        entries.sort();
        Ok(entries)
    }
}

/// Which file it is, and when it was changed.
#[cfg(unix)]
fn version(metadata: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let changed = metadata.mtime().wrapping_mul(1_000_000_000).wrapping_add(metadata.mtime_nsec());
    changed.cast_unsigned() ^ metadata.ino().rotate_left(32)
}

/// When it was changed.
#[cfg(not(unix))]
fn version(metadata: &std::fs::Metadata) -> u64 {
    let since = |changed: std::time::SystemTime| changed.duration_since(std::time::UNIX_EPOCH).ok();
    metadata.modified().ok().and_then(since).map_or(0, |since| since.as_nanos() as u64)
}

/// The file and its size; `None` when something else stands there. Stores of many small files feel every walk along a
/// path, so it is opened first and asked afterwards.
fn open_file(path: &Path) -> io::Result<Option<(File, u64)>> {
    let mut options = File::options();
    options.read(true);
    // A pipe is opened at once, too, not when somebody writes to it.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then_some((file, metadata.len())))
}

/// A directory in memory: for tests and fuzzing.
#[derive(Debug, Clone)]
pub struct MemoryDirectory {
    name: Arc<str>,
    blobs: BTreeMap<String, Bytes>,
}

impl MemoryDirectory {
    /// These blobs, under this name in messages.
    pub fn new<K: Into<String>, B: Into<Bytes>>(
        name: impl Into<Arc<str>>,
        blobs: impl IntoIterator<Item = (K, B)>,
    ) -> Self {
        let blobs = blobs.into_iter().map(|(key, bytes)| (key.into(), bytes.into())).collect();
        Self { name: name.into(), blobs }
    }
}

impl Directory for MemoryDirectory {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Blob>>> {
        let blob = self.blobs.get(key).map(|bytes| {
            Arc::new(MemoryBlob::new(format!("{}/{key}", self.name), bytes.clone())) as Arc<dyn Blob>
        });
        Ok(blob)
    }

    fn size(&self, key: &str) -> Result<Option<u64>> {
        Ok(self.blobs.get(key).map(|bytes| bytes.len() as u64))
    }

    fn list(&self, key: &str) -> Result<Vec<DirectoryEntry>> {
        let prefix = if key.is_empty() { String::new() } else { format!("{key}/") };
        let mut entries: Vec<DirectoryEntry> = Vec::new();
        for below in self.blobs.keys().filter_map(|name| name.strip_prefix(&prefix)) {
            let (name, is_directory) = below.split_once('/').map_or((below, false), |(name, _)| (name, true));
            if entries.last().is_none_or(|last| last.name != name) {
                entries.push(DirectoryEntry { name: name.to_owned(), is_directory });
            }
        }
        entries.sort();
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_and_memory_answer_alike() -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let large = vec![7; MAPPED_FROM as usize];
        let files: [(&str, &[u8]); 3] = [("a", b"1"), ("c/0/1", b"23"), ("c/0/2", &large)];
        for (name, content) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let memory = MemoryDirectory::new("memory", files.map(|(name, content)| (name, content.to_vec())));
        let local = LocalDirectory::new(folder.path());
        for directory in [&memory as &dyn Directory, &local, &local.clone().unmapped()] {
            let names: Vec<_> = directory.list("")?.into_iter().map(|e| (e.name, e.is_directory)).collect();
            assert_eq!(names, [("a".to_owned(), false), ("c".to_owned(), true)]);
            assert_eq!(directory.list("c/0")?.len(), 2);
            assert_eq!(directory.read("c/0/1")?.unwrap(), "23");
            assert_eq!(directory.read("c/0/2")?.unwrap(), large);
            assert_eq!(directory.read_range("c/0/2", 5..large.len() as u64)?.unwrap(), large[5..]);
            assert!(directory.read_range("c/0/1", 1..3).unwrap_err().is_corrupt());
            assert!(directory.read_range("c/0", 0..1)?.is_none());
            assert!(directory.read_range("nope", 0..1)?.is_none());
            assert_eq!(directory.size("c/0")?, None);
            assert!(directory.open("nope/x")?.is_none());
            assert!(directory.open("a/x")?.is_none());
            assert!(directory.list("nope")?.is_empty());
        }
        assert!(local.open("../secret").is_err());
        assert!(local.open("/etc/passwd").is_err());
        Ok(())
    }
}
