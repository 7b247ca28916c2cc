//! The read side of storage: objects by key, local or remote.

mod local;
mod memory;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

pub use local::{LocalStorage, MAPPED_FROM};
pub use memory::MemoryStorage;

use crate::{Blob, BlobKey, Error, FetchCost, Result, Span};

/// Where the bytes of an object are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectPlace {
    /// In an object of their own, named by the location and the key.
    Object,
    /// In the single file that is the location, from this byte on.
    InFile(u64),
    /// Nowhere as they are: the file that is the location holds them in another form, such as compressed.
    Encoded,
}

/// The objects at a location: the files of a folder, the objects of a bucket under a prefix.
///
/// Keys are `/`-separated and relative to the location. A key never leaves it.
pub trait Storage: Send + Sync + Debug {
    /// The path or URL, for messages.
    fn name(&self) -> &Arc<str>;

    /// Opens the object with this key; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::Error::Io) for any system error except "not found"; [`Invalid`](crate::Error::Invalid) for a
    /// key that leads out of the location.
    fn open(&self, key: &str) -> Result<Option<Arc<dyn Blob>>>;

    /// The size and version of the object with this key; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    fn stat(&self, key: &str) -> Result<Option<ObjectStat>>;

    /// Where the bytes of an object are, for programs that read them without this storage.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    fn place(&self, key: &str) -> Result<ObjectPlace> {
        let _ = key;
        Ok(ObjectPlace::Object)
    }

    /// The entries directly under this key, sorted by name. The empty key is the location itself.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); [`Unsupported`](crate::Error::Unsupported) if the storage cannot list objects, such as a
    /// plain web server.
    fn list(&self, key: &str) -> Result<Vec<StorageEntry>>;

    /// Every object under this key, at any depth, sorted by key.
    ///
    /// # Errors
    ///
    /// As [`list`](Self::list).
    fn list_all(&self, key: &str) -> Result<Vec<ListedObject>> {
        let mut found = Vec::new();
        let mut pending = vec![key.to_owned()];
        while let Some(folder) = pending.pop() {
            for entry in self.list(&folder)? {
                let key = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
                if entry.is_directory {
                    pending.push(key);
                } else if let Some(size) = match entry.size {
                    Some(size) => Some(size),
                    None => self.size(&key)?,
                } {
                    found.push(ListedObject { key, size });
                }
            }
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    /// Reads ranges of many objects in one call, so that remote storage can send all requests at once. `None` for an
    /// object that does not exist.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); [`Corrupt`](crate::Error::Corrupt) if a range reaches past the end.
    fn read_many(&self, requests: &[ObjectRange<'_>]) -> Result<Vec<Option<Bytes>>> {
        requests.iter().map(|request| self.read_one(request)).collect()
    }

    /// The requests that [`read_many`](Self::read_many) would send.
    fn read_cost(&self, requests: &[ObjectRange<'_>]) -> FetchCost {
        let mut cost = FetchCost::default();
        for of_one in requests.chunk_by(|a, b| a.key == b.key) {
            let bounded = of_one.iter().filter_map(|request| request.range.bounds());
            let ranges: Vec<Range<u64>> = bounded.collect();
            cost += FetchCost::of_runs(&ranges);
            cost.requests += (of_one.len() - ranges.len()) as u64;
        }
        cost
    }

    /// Announces that these ranges will be read soon. Remote storage requests them all at once and caches them; local storage
    /// does nothing. Errors are left to the reads.
    fn prefetch(&self, requests: &[ObjectRange<'_>]) {
        let _ = requests;
    }

    /// Announces that these keys will be listed soon, like [`prefetch`](Self::prefetch).
    fn prefetch_lists(&self, keys: &[&str]) {
        let _ = keys;
    }

    /// Announces that everything below this key will be listed soon, at any depth, if there are at most this many objects. Remote
    /// storage then lists all of it at once.
    fn prefetch_tree(&self, key: &str, most: usize) {
        let _ = (key, most);
    }

    /// Returns true if the storage is on another machine, where each request has a high latency.
    fn is_remote(&self) -> bool {
        false
    }

    /// Returns true if this object was read before, in this run or by an earlier one that left it in a cache. It may have changed or
    /// disappeared since.
    fn remembers(&self, key: &str) -> bool {
        let _ = key;
        false
    }

    /// The number of bytes that [`prefetch`](Self::prefetch) can cache now; 0 if it does nothing.
    fn room(&self) -> u64 {
        0
    }

    /// The objects under this key as a storage of their own; `None` if this is not supported.
    fn below(&self, key: &str) -> Option<Arc<dyn Storage>> {
        let _ = key;
        None
    }

    /// Reads one range for [`read_many`](Self::read_many).
    ///
    /// # Errors
    ///
    /// As [`read_many`](Self::read_many).
    fn read_one(&self, request: &ObjectRange<'_>) -> Result<Option<Bytes>> {
        match &request.range {
            ByteRange::Whole => self.read(request.key),
            ByteRange::Bounded(range) => self.read_range(request.key, range.clone()),
            ByteRange::Suffix(length) => {
                let Some(size) = self.size(request.key)? else { return Ok(None) };
                self.read_range(request.key, size.saturating_sub(*length)..size)
            }
        }
    }

    /// The size of the object with this key; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    fn size(&self, key: &str) -> Result<Option<u64>> {
        Ok(self.stat(key)?.map(|stat| stat.size))
    }

    /// Reads the whole object with this key; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    fn read(&self, key: &str) -> Result<Option<Bytes>> {
        let Some(blob) = self.open(key)? else { return Ok(None) };
        let length = blob.len()?;
        blob.read_range(0..length).map(Some)
    }

    /// Reads one range of the object with this key; `None` if there is no such object.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open) and [`Blob::read_range`].
    fn read_range(&self, key: &str, range: Range<u64>) -> Result<Option<Bytes>> {
        self.open(key)?.map(|blob| blob.read_range(range)).transpose()
    }
}

/// Size and version of an object. A different object under the same key has a different stat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectStat {
    /// The size in bytes.
    pub size: u64,
    /// Changes with the content, as far as the storage knows.
    pub version: u64,
}

/// A name directly under a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StorageEntry {
    /// The last part of the key, without slashes.
    pub name: String,
    /// Whether it is a prefix of other keys, rather than an object.
    pub is_directory: bool,
    /// The size of the object, if the listing includes it.
    pub size: Option<u64>,
}

/// An object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// The whole key.
    pub key: String,
    /// The size in bytes.
    pub size: u64,
}

/// A byte range of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRange<'a> {
    /// The key of the object.
    pub key: &'a str,
    /// The range.
    pub range: ByteRange,
}

impl<'a> ObjectRange<'a> {
    /// The whole object.
    #[must_use]
    pub const fn whole(key: &'a str) -> Self {
        Self { key, range: ByteRange::Whole }
    }
}

/// Reads spans of named objects in one batch; `None` for an object that does not exist.
///
/// # Errors
///
/// As [`Storage::read_many`]; [`Invalid`](crate::Error::Invalid) for a span of the store's main file.
pub fn read_spans(storage: &dyn Storage, spans: &[&Span]) -> Result<Vec<Option<Bytes>>> {
    storage.read_many(&requests_of(storage, spans)?)
}

/// The requests that [`read_spans`] would send.
///
/// # Errors
///
/// [`Invalid`](crate::Error::Invalid) for a span of the main file, which directory stores do not have.
pub fn read_spans_cost(storage: &dyn Storage, spans: &[&Span]) -> Result<FetchCost> {
    Ok(storage.read_cost(&requests_of(storage, spans)?))
}

fn requests_of<'a>(storage: &dyn Storage, spans: &[&'a Span]) -> Result<Vec<ObjectRange<'a>>> {
    let request = |span: &&'a Span| match &span.blob {
        BlobKey::Main => Err(Error::invalid(format!("{}: a directory has no main file", storage.name()))),
        BlobKey::Named(key) if span.is_whole() => Ok(ObjectRange::whole(key)),
        BlobKey::Named(key) => Ok(ObjectRange { key, range: ByteRange::Bounded(span.range()) }),
    };
    spans.iter().map(request).collect()
}

/// A range of an object's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ByteRange {
    /// All bytes.
    Whole,
    /// From one offset to another.
    Bounded(Range<u64>),
    /// The last bytes, at most this many.
    Suffix(u64),
}

impl ByteRange {
    /// Its first byte and its end, if they do not depend on the size of the object.
    #[must_use]
    pub fn bounds(&self) -> Option<Range<u64>> {
        match self {
            Self::Bounded(range) => Some(range.clone()),
            Self::Whole | Self::Suffix(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_and_memory_storage_behave_alike() -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let large = vec![7; MAPPED_FROM as usize];
        let files: [(&str, &[u8]); 3] = [("a", b"1"), ("c/0/1", b"23"), ("c/0/2", &large)];
        for (name, content) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let memory = MemoryStorage::new("memory", files.map(|(name, content)| (name, content.to_vec())));
        let local = LocalStorage::new(folder.path());
        for directory in [&memory as &dyn Storage, &local, &local.clone().unmapped()] {
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
