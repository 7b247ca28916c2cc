//! The disk cache: structures of objects, kept between runs.
//!
//! An entry is one file: a header, then the cached bytes. It is only used if the object still has the same entity
//! tag, which takes one request to check. Objects without a strong tag are not cached.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::client::Version;

/// The first bytes of an entry.
const MAGIC: &[u8; 8] = b"HSCACHE1";
/// The maximum size of an entry.
const MAX_ENTRY_BYTES: u64 = 64 << 20;
/// The maximum size of all entries. Beyond it, the least recently used are removed.
const MAX_BYTES: u64 = 1 << 30;

/// Bytes of an object, by offset.
pub(crate) type Extents = BTreeMap<u64, Bytes>;

/// The cache entries of the objects below one URL.
#[derive(Debug)]
pub(crate) struct DiskCache {
    /// The folder of all caches.
    root: PathBuf,
    /// The folder of this cache.
    folder: PathBuf,
    url: String,
    /// The names of the entries. Kept in memory, so that looking up a chunk, which is never cached, is free.
    names: Mutex<HashSet<String>>,
    changed: AtomicBool,
}

impl DiskCache {
    /// The cache of a URL, in a folder that may not exist yet.
    pub(crate) fn new(root: &Path, url: &str) -> Self {
        let folder = root.join(name_of(url));
        let listed = fs::read_dir(&folder).into_iter().flatten().flatten();
        let names = listed.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let changed = AtomicBool::new(false);
        Self { root: root.to_owned(), folder, url: url.to_owned(), names: Mutex::new(names), changed }
    }

    /// Returns true if there is an entry for this key, current or not.
    pub(crate) fn contains(&self, key: &str) -> bool {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).contains(&name_of(key))
    }

    /// The cached bytes of this version of an object. Removes an entry of another version.
    pub(crate) fn load(&self, key: &str, version: &Version) -> Option<Extents> {
        let path = self.folder.join(name_of(key));
        let found = self.peek(key, version);
        if found.is_some() {
            // The modification time records the last use. If setting it fails, the entry only looks older.
            if let Ok(file) = fs::File::options().write(true).open(&path) {
                let _ = file.set_modified(SystemTime::now());
            }
        } else {
            let _ = fs::remove_file(&path);
        }
        found
    }

    /// Like [`load`](Self::load), but leaves an entry of another version.
    pub(crate) fn peek(&self, key: &str, version: &Version) -> Option<Extents> {
        let bytes = fs::read(self.folder.join(name_of(key))).ok()?;
        self.parse(bytes.into(), key, version)
    }

    fn parse(&self, bytes: Bytes, key: &str, version: &Version) -> Option<Extents> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let header = rest.get(..u32::from_le_bytes(*length) as usize)?;
        let body = bytes.slice(MAGIC.len() + 4 + header.len()..);
        let header: Value = serde_json::from_slice(header).ok()?;
        let known = header["url"] == self.url && header["key"] == key;
        let tag = version.strong_tag()?;
        let same = header["tag"] == tag && header["size"] == version.size;
        if !known || !same || header["checksum"] != checksum(&body) {
            return None;
        }
        let mut extents = Extents::new();
        let mut at = 0_usize;
        for extent in header["extents"].as_array()? {
            let (start, length) = (extent[0].as_u64()?, usize::try_from(extent[1].as_u64()?).ok()?);
            let end = at.checked_add(length).filter(|end| *end <= body.len())?;
            start.checked_add(length as u64).filter(|end| *end <= version.size)?;
            extents.insert(start, body.slice(at..end));
            at = end;
        }
        Some(extents)
    }

    /// Writes an entry. A failure is ignored: the next run reads the object again.
    pub(crate) fn save(&self, key: &str, version: &Version, extents: &Extents) {
        let total: u64 = extents.values().map(|bytes| bytes.len() as u64).sum();
        let Some(tag) = version.strong_tag().filter(|_| total > 0 && total <= MAX_ENTRY_BYTES) else {
            return;
        };
        let body: Vec<u8> = extents.values().flat_map(|bytes| bytes.iter().copied()).collect();
        let places: Vec<_> = extents.iter().map(|(start, bytes)| json!([start, bytes.len()])).collect();
        let header = json!({
            "url": self.url, "key": key, "tag": tag, "size": version.size,
            "extents": places, "checksum": checksum(&body),
        });
        if self.write(key, &header.to_string(), &body).is_ok() {
            self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(name_of(key));
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    fn write(&self, key: &str, header: &str, body: &[u8]) -> std::io::Result<()> {
        let mut folders = fs::DirBuilder::new();
        // Bytes from a bucket may be as private as the bucket.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
        folders.recursive(true).create(&self.folder)?;
        let name = name_of(key);
        let part = self.folder.join(format!("{name}.{}.part", std::process::id()));
        let written = (|| {
            let mut file = fs::File::create(&part)?;
            file.write_all(MAGIC)?;
            file.write_all(&u32::try_from(header.len()).map_err(std::io::Error::other)?.to_le_bytes())?;
            file.write_all(header.as_bytes())?;
            file.write_all(body)?;
            fs::rename(&part, self.folder.join(&name))
        })();
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written
    }
}

impl Drop for DiskCache {
    fn drop(&mut self) {
        if self.changed.load(Ordering::Relaxed) {
            trim(&self.root, MAX_BYTES);
        }
    }
}

/// Removes the least recently used entries of a folder of caches until they take at most this many bytes.
fn trim(root: &Path, most: u64) {
    let below = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries: Vec<(SystemTime, u64, PathBuf)> = below(root)
        .flat_map(|folder| below(&folder.path()))
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some((metadata.modified().ok()?, metadata.len(), entry.path()))
        })
        .collect();
    let mut total: u64 = entries.iter().map(|(_, size, _)| size).sum();
    entries.sort();
    for (_, size, path) in entries {
        if total <= most {
            return;
        }
        if is_entry(&path) && fs::remove_file(&path).is_ok() {
            total -= size;
        }
    }
}

/// Returns true for a file with the name of an entry, or of one that a killed process did not finish. Nothing else in the
/// folder is removed.
fn is_entry(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let digits = name.split('.').next().unwrap_or_default();
    digits.len() == 16
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && (name.len() == 16 || name.ends_with(".part"))
}

/// The file name of an entry or of a URL's cache. Entries also store their URL and key, so collisions are harmless.
fn name_of(text: &str) -> String {
    format!("{:016x}", checksum(text.as_bytes()))
}

/// A checksum that detects torn writes. If a later version changes the algorithm, old entries are simply read again.
fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(tag: &str) -> Version {
        Version { size: 1000, tag: Some(tag.to_owned()), generation: None, modified: 0 }
    }

    fn some_extents() -> Extents {
        Extents::from([(0, Bytes::from_static(b"head")), (990, Bytes::from_static(b"the tail!!"))])
    }

    #[test]
    fn entries_match_one_version() {
        let root = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(root.path(), "s3://bucket");
        assert!(!cache.contains("x.h5"));
        cache.save("x.h5", &version("\"1\""), &some_extents());
        let cache = DiskCache::new(root.path(), "s3://bucket");
        assert!(cache.contains("x.h5") && !cache.contains("y.h5"));
        assert_eq!(cache.load("x.h5", &version("\"1\"")), Some(some_extents()));
        assert_eq!(DiskCache::new(root.path(), "s3://other").load("x.h5", &version("\"1\"")), None);
        // Another version replaces it.
        assert_eq!(cache.load("x.h5", &version("\"2\"")), None);
        assert_eq!(cache.load("x.h5", &version("\"1\"")), None);
        // Without a strong tag, versions cannot be compared.
        cache.save("x.h5", &version("W/\"1\""), &some_extents());
        assert_eq!(cache.load("x.h5", &version("W/\"1\"")), None);
    }

    #[test]
    fn a_damaged_entry_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(root.path(), "s3://bucket");
        cache.save("x", &version("\"1\""), &some_extents());
        let path = root.path().join(name_of("s3://bucket")).join(name_of("x"));
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(cache.load("x", &version("\"1\"")), None, "{length}");
        }
        for at in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            fs::write(&path, wrong).unwrap();
            let loaded = cache.load("x", &version("\"1\""));
            assert!(loaded.is_none() || loaded == Some(some_extents()) || at < whole.len() - 14, "{at}");
        }
    }

    #[test]
    fn the_oldest_entries_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(root.path(), "s3://bucket");
        let foreign = root.path().join("letters");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("love"), [0; 4000]).unwrap();
        for (age, key) in ["1st", "2nd", "3rd"].iter().enumerate() {
            cache.save(key, &version("\"1\""), &some_extents());
            let path = root.path().join(name_of("s3://bucket")).join(name_of(key));
            let time = SystemTime::now() - std::time::Duration::from_secs(100 * age as u64);
            fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        }
        let size = fs::metadata(root.path().join(name_of("s3://bucket")).join(name_of("1st"))).unwrap().len();
        trim(root.path(), 4000 + 2 * size);
        let left = DiskCache::new(root.path(), "s3://bucket");
        assert!(left.contains("1st") && left.contains("2nd") && !left.contains("3rd"));
        trim(root.path(), 0);
        assert!(foreign.join("love").exists());
    }
}
