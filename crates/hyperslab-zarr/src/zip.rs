//! Zip archives as storage: a store in a single file.
//!
//! Members that are stored as they are become parts of the archive, without a copy. Deflated ones are inflated when they are
//! opened, to the size that the directory claims and no further.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use hyperslab_codec::deflate;
use hyperslab_core::storage::{StageOptions, StagedFile};
use hyperslab_core::{
    Blob, BlobPart, BlobReader, Error, LocalStorage, MemoryBlob, ObjectStat, Place, Result, Storage,
    StorageEntry,
};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Inflating makes at most 1032 bytes of one.
const MAX_INFLATION: u64 = 1040;

/// The most that one deflated member may become.
const MAX_INFLATED: u64 = 4 << 30;

/// The members of a zip archive.
#[derive(Debug)]
pub(crate) struct ZipStorage {
    name: Arc<str>,
    blob: Arc<dyn Blob>,
    members: BTreeMap<String, Member>,
}

#[derive(Debug)]
struct Member {
    deflated: bool,
    offset: u64,
    stored: u64,
    size: u64,
    checksum: u32,
}

impl ZipStorage {
    /// The archive in this blob. Where all members are in one folder, that folder is the store.
    pub(crate) fn open(blob: Arc<dyn Blob>) -> Result<Self> {
        let name = Arc::clone(blob.name());
        let place = Place::new(&name, "zip directory", 0);
        let wrong = |error: zip::result::ZipError| place.corrupt(error.to_string());
        let length = blob.len()?;
        let mut archive = ZipArchive::new(BlobReader::new(Arc::clone(&blob))?).map_err(wrong)?;
        let (mut members, mut stored_in_all) = (BTreeMap::new(), 0_u64);
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(wrong)?;
            let key = entry.name().map_err(wrong)?.into_owned();
            if key.ends_with('/') {
                continue;
            }
            if !is_inside(&key) {
                return Err(place.corrupt(format!("member {key:?} is not inside the archive")));
            }
            let deflated = match entry.compression() {
                CompressionMethod::Stored => false,
                CompressionMethod::Deflated => true,
                other => {
                    return Err(place.unsupported(format!("member {key:?} with zip compression {other}")));
                }
            };
            let offset = entry.data_start().ok_or_else(|| place.corrupt("a member without data"))?;
            let (stored, size) = (entry.compressed_size(), entry.size());
            if offset.checked_add(stored).is_none_or(|end| end > length) {
                return Err(place.corrupt(format!("member {key:?} reaches past the end")));
            }
            // Members that share their bytes would make a small archive as large as it likes.
            stored_in_all = stored_in_all.saturating_add(stored);
            if stored_in_all > length {
                return Err(place.corrupt(format!("member {key:?} overlaps another")));
            }
            let plausible =
                if deflated { stored.saturating_mul(MAX_INFLATION).min(MAX_INFLATED) } else { stored };
            if size > plausible || (!deflated && size != stored) {
                return Err(place.corrupt(format!("member {key:?} of {size} bytes in {stored}")));
            }
            members.insert(key, Member { deflated, offset, stored, size, checksum: entry.crc32() });
        }
        Ok(Self { name, blob, members: without_common_folder(members) })
    }

    fn inflate(&self, key: &str, member: &Member) -> Result<Arc<dyn Blob>> {
        let name = format!("{}/{key}", self.name);
        let place = Place::new(&name, "member", member.offset);
        let stored = self.blob.read_at(member.offset, member.stored)?;
        let limit =
            usize::try_from(member.size).map_err(|_| place.corrupt("more bytes than memory holds"))?;
        let mut bytes = Vec::new();
        deflate::decode_vec(deflate::Wrapper::Raw, &stored, limit, &mut bytes)
            .map_err(|error| place.corrupt(error.to_string()))?;
        let checksum = hyperslab_codec::checksum::crc32(&bytes);
        if bytes.len() != limit || checksum != member.checksum {
            let problem = format!(
                "{} bytes with CRC-32 {checksum:#x}, expected {limit} with {:#x}",
                bytes.len(),
                member.checksum
            );
            return Err(place.corrupt(problem));
        }
        Ok(Arc::new(MemoryBlob::new(name.as_str(), bytes)))
    }
}

/// Is this key a path below the archive, in its plainest form?
pub(crate) fn is_inside(key: &str) -> bool {
    !key.contains(['\\', '\0']) && key.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// An archive of a folder has that folder's name before every key.
fn without_common_folder(members: BTreeMap<String, Member>) -> BTreeMap<String, Member> {
    let first =
        members.keys().next().and_then(|key| key.split_once('/')).map(|(folder, _)| format!("{folder}/"));
    match first {
        Some(folder) if members.keys().all(|key| key.starts_with(&folder)) => {
            members.into_iter().map(|(key, member)| (key[folder.len()..].to_owned(), member)).collect()
        }
        _ => members,
    }
}

impl Storage for ZipStorage {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Blob>>> {
        let Some(member) = self.members.get(key) else { return Ok(None) };
        if member.deflated {
            return self.inflate(key, member).map(Some);
        }
        let name = format!("{}/{key}", self.name);
        let part = BlobPart::new(name, Arc::clone(&self.blob), member.offset, member.stored)?;
        Ok(Some(Arc::new(part)))
    }

    fn stat(&self, key: &str) -> Result<Option<ObjectStat>> {
        let stat = |member: &Member| ObjectStat { size: member.size, version: member.checksum.into() };
        Ok(self.members.get(key).map(stat))
    }

    fn list(&self, key: &str) -> Result<Vec<StorageEntry>> {
        let prefix = if key.is_empty() { String::new() } else { format!("{key}/") };
        let mut entries: Vec<StorageEntry> = Vec::new();
        let below = self.members.range(prefix.clone()..).take_while(|(own, _)| own.starts_with(&prefix));
        for (own, member) in below {
            let rest = &own[prefix.len()..];
            let (name, is_directory) =
                rest.split_once('/').map_or((rest, false), |(folder, _)| (folder, true));
            if entries.last().is_none_or(|last| last.name != name) {
                let size = (!is_directory).then_some(member.size);
                entries.push(StorageEntry { name: name.to_owned(), is_directory, size });
            }
        }
        entries.sort();
        Ok(entries)
    }
}

/// Packs a folder into an archive at `target`: members as they are, the documents first.
pub(crate) fn pack(folder: &Path, target: &Path, options: StageOptions) -> Result<()> {
    let staged = StagedFile::create(target, options)?;
    let failed = |error: zip::result::ZipError| staged.failed(std::io::Error::other(error));
    let objects = LocalStorage::new(folder);
    let mut keys: Vec<String> = objects.list_all("")?.into_iter().map(|object| object.key).collect();
    keys.sort_by_key(|key| (!is_document(key), key.clone()));
    let mut archive = ZipWriter::new(std::io::BufWriter::new(staged.file()));
    let method = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for key in keys {
        let Some(bytes) = objects.read(&key)? else { continue };
        archive.start_file(&key, method.large_file(bytes.len() >= 1 << 31)).map_err(failed)?;
        archive.write_all(&bytes).map_err(|error| staged.failed(error))?;
    }
    let mut buffered = archive.finish().map_err(failed)?;
    buffered.flush().map_err(|error| staged.failed(error))?;
    drop(buffered);
    staged.publish()
}

fn is_document(key: &str) -> bool {
    let last = key.rsplit('/').next().unwrap_or(key);
    matches!(last, "zarr.json" | ".zmetadata" | ".zgroup" | ".zattrs" | ".zarray")
}

/// The error of a sink that cannot add to an archive.
pub(crate) fn no_append(target: &Path) -> Error {
    Error::unsupported(target.display().to_string(), "adding to a zip archive; convert it to a folder first")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(members: &[(&str, &[u8])], method: CompressionMethod) -> Arc<dyn Blob> {
        let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, bytes) in members {
            writer.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
            writer.write_all(bytes).unwrap();
        }
        Arc::new(MemoryBlob::new("a.zip", writer.finish().unwrap().into_inner()))
    }

    #[test]
    fn members_are_objects() -> Result<()> {
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            for folder in ["", "x.zarr/"] {
                let names =
                    ["zarr.json", "t/zarr.json", "t/c/0", "t-1"].map(|name| format!("{folder}{name}"));
                let members: Vec<(&str, &[u8])> =
                    names.iter().map(|name| (name.as_str(), &b"hyperslab"[..])).collect();
                let storage = ZipStorage::open(archive(&members, method))?;
                assert_eq!(storage.read("t/c/0")?.unwrap(), "hyperslab");
                assert_eq!((storage.size("zarr.json")?, storage.size("t")?), (Some(9), None));
                let listed: Vec<_> =
                    storage.list("")?.into_iter().map(|e| (e.name, e.is_directory)).collect();
                assert_eq!(
                    listed,
                    [("t".to_owned(), true), ("t-1".to_owned(), false), ("zarr.json".to_owned(), false)]
                );
                assert_eq!(storage.list("t/c")?.len(), 1);
                assert!(storage.open("nope")?.is_none() && storage.list("nope")?.is_empty());
            }
        }
        Ok(())
    }

    #[test]
    fn members_outside_and_bombs_are_refused() {
        for name in ["../x", "a/../../x", "/etc/passwd", "a//b", "a\\..\\b", "./x"] {
            let blob = archive(&[(name, b"1")], CompressionMethod::Stored);
            let error = ZipStorage::open(blob).unwrap_err();
            assert!(error.is_corrupt(), "{name}: {error}");
        }
        // A size that no deflated bytes can have, claimed in the directory.
        let blob = archive(&[("zarr.json", &[7; 64])], CompressionMethod::Deflated);
        let mut bytes = blob.read_range(0..blob.len().unwrap()).unwrap().to_vec();
        let directory = bytes.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
        bytes[directory + 24..directory + 28].copy_from_slice(&u32::MAX.wrapping_sub(1).to_le_bytes());
        assert!(ZipStorage::open(Arc::new(MemoryBlob::new("bomb.zip", bytes))).is_err());
    }
}
