//! Zip archives as storage: a store in a single file.
//!
//! Uncompressed members are slices of the archive, without a copy. Deflated members are inflated when they are
//! opened, up to the size that the directory claims.

mod directory;

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hyperslab_codec::deflate;
use hyperslab_core::storage::{StageOptions, StagedFile};
use hyperslab_core::{
    Blob, BlobPart, ByteRange, Error, FetchCost, LocalStorage, MemoryBlob, ObjectPlace, ObjectRange,
    ObjectStat, Place, Result, Storage, StorageEntry,
};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The maximum ratio of deflate is 1032.
const MAX_INFLATION: u64 = 1040;

/// The maximum inflated size of a member.
const MAX_INFLATED: u64 = 4 << 30;

/// The slack between the header sizes in the directory and before a member. Some writers store timestamps in only one
/// of them.
const HEADER_SLACK: u64 = 64;

/// The maximum inflated size of a document. Documents describe nodes and are read whole.
const MAX_DOCUMENT: u64 = 64 << 20;

/// The members of a zip archive.
#[derive(Debug)]
pub(crate) struct ZipStorage {
    name: Arc<str>,
    blob: Arc<dyn Blob>,
    length: u64,
    members: BTreeMap<String, Member>,
}

#[derive(Debug)]
struct Member {
    deflated: bool,
    /// The offset of its header, and the length of the name and the extra fields in the directory.
    header: u64,
    extra: u64,
    /// The offset of its bytes, once the header has been read.
    start: OnceLock<u64>,
    stored: u64,
    size: u64,
    checksum: u32,
}

impl Member {
    /// Validates a directory entry of an archive of this length.
    fn new(entry: directory::Entry, length: u64, place: Place<'_>) -> Result<Self> {
        let directory::Entry { name: key, method, is_encrypted, checksum, stored, size, header, extra } =
            entry;
        if !is_inside(&key) {
            return Err(place.corrupt(format!("member {key:?} is not inside the archive")));
        }
        let deflated = match method {
            0 => false,
            8 => true,
            other => return Err(place.unsupported(format!("member {key:?} with zip compression {other}"))),
        };
        if is_encrypted {
            return Err(place.unsupported(format!("member {key:?}, which is encrypted")));
        }
        let end = header.checked_add(directory::LOCAL_HEADER).and_then(|end| end.checked_add(stored));
        if end.is_none_or(|end| end > length) {
            return Err(place.corrupt(format!("member {key:?} reaches past the end")));
        }
        let plausible =
            if deflated { stored.saturating_mul(MAX_INFLATION).min(MAX_INFLATED) } else { stored };
        if size > plausible || (!deflated && size != stored) {
            return Err(place.corrupt(format!("member {key:?} of {size} bytes in {stored}")));
        }
        Ok(Self { deflated, header, extra, start: OnceLock::new(), stored, size, checksum })
    }
}

impl ZipStorage {
    /// Opens the archive in a blob. If all members are in one folder, that folder is the store.
    pub(crate) fn open(blob: Arc<dyn Blob>) -> Result<Self> {
        let name = Arc::clone(blob.name());
        let length = blob.len()?;
        let (mut members, mut stored_in_all) = (BTreeMap::new(), 0_u64);
        for entry in directory::read(&*blob)? {
            let key = entry.name.clone();
            if key.ends_with('/') {
                continue;
            }
            let member = Member::new(entry, length, Place::new(&name, "zip directory", 0))?;
            // Overlapping members could make a small archive arbitrarily large.
            stored_in_all = stored_in_all.saturating_add(member.stored);
            if stored_in_all > length {
                let place = Place::new(&name, "zip directory", 0);
                return Err(place.corrupt(format!("member {key:?} overlaps another")));
            }
            members.insert(key, member);
        }
        Ok(Self { name, blob, length, members: without_common_folder(members) })
    }

    /// The offset of a member's bytes. Reads its header, once.
    fn start_of(&self, member: &Member) -> Result<u64> {
        if let Some(start) = member.start.get() {
            return Ok(*start);
        }
        let header = self.blob.read_at(member.header, directory::LOCAL_HEADER)?;
        self.note_start(member, &header)
    }

    /// Determines the offset of a member's bytes from its header.
    fn note_start(&self, member: &Member, header: &[u8]) -> Result<u64> {
        let place = Place::new(&self.name, "zip member", member.header);
        let start = directory::start_of(header, place)?;
        if start.checked_add(member.stored).is_none_or(|end| end > self.length) {
            return Err(place.corrupt("the member reaches past the end"));
        }
        Ok(*member.start.get_or_init(|| start))
    }

    /// The byte range of a member and its header. Slightly too large if the header has not been read.
    fn whole_of(&self, member: &Member) -> Range<u64> {
        match member.start.get() {
            Some(start) => *start..start + member.stored,
            None => {
                let most = directory::LOCAL_HEADER + member.extra + HEADER_SLACK + member.stored;
                member.header..member.header.saturating_add(most).min(self.length)
            }
        }
    }

    /// For each request for a whole uncompressed member, the member and its range in the archive.
    fn plain_members<'a>(&self, requests: &[ObjectRange<'a>]) -> Vec<Option<(&Member, Range<u64>)>> {
        let of = |request: &ObjectRange<'a>| {
            let member = self.members.get(request.key).filter(|member| !member.deflated)?;
            (request.range == ByteRange::Whole).then(|| (member, self.whole_of(member)))
        };
        requests.iter().map(of).collect()
    }

    fn inflate(&self, key: &str, member: &Member) -> Result<Arc<dyn Blob>> {
        let name = format!("{}/{key}", self.name);
        let start = self.start_of(member)?;
        let place = Place::new(&name, "member", start);
        if is_document(key) && member.size > MAX_DOCUMENT {
            return Err(place.corrupt(format!(
                "a document of {} bytes, but deflated documents may have at most {MAX_DOCUMENT}",
                member.size
            )));
        }
        let stored = self.blob.read_at(start, member.stored)?;
        let limit = usize::try_from(member.size).map_err(|_| place.corrupt("larger than memory"))?;
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

/// Returns true if the archive has a member named like a Zarr document, whatever else it contains.
pub(crate) fn contains_a_store(blob: &dyn Blob) -> bool {
    directory::read(blob).is_ok_and(|entries| entries.iter().any(|entry| is_document(&entry.name)))
}

/// Returns true if the key is a normalised path below the archive's root.
pub(crate) fn is_inside(key: &str) -> bool {
    !key.contains(['\\', '\0']) && key.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Removes the common folder from all keys: an archive of a folder has the folder's name before every key.
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
        let part = BlobPart::new(name, Arc::clone(&self.blob), self.start_of(member)?, member.stored)?;
        Ok(Some(Arc::new(part)))
    }

    fn place(&self, key: &str) -> Result<ObjectPlace> {
        match self.members.get(key) {
            Some(member) if !member.deflated => self.start_of(member).map(ObjectPlace::InFile),
            _ => Ok(ObjectPlace::Encoded),
        }
    }

    fn is_remote(&self) -> bool {
        self.blob.is_remote()
    }

    fn prefetch(&self, requests: &[ObjectRange<'_>]) {
        let members = requests.iter().filter_map(|request| self.members.get(request.key));
        self.blob.prefetch(&members.map(|member| self.whole_of(member)).collect::<Vec<_>>());
    }

    fn read_cost(&self, requests: &[ObjectRange<'_>]) -> FetchCost {
        let ranges: Vec<_> =
            self.plain_members(requests).into_iter().flatten().map(|(_, range)| range).collect();
        let mut cost = self.blob.read_cost(&ranges);
        cost.requests += (requests.len() - ranges.len()) as u64;
        cost
    }

    /// Reads headers and bytes of whole members together.
    fn read_many(&self, requests: &[ObjectRange<'_>]) -> Result<Vec<Option<Bytes>>> {
        if !self.is_remote() {
            return requests.iter().map(|request| self.read_one(request)).collect();
        }
        let members = self.plain_members(requests);
        let ranges: Vec<_> = members.iter().flatten().map(|(_, range)| range.clone()).collect();
        let mut fetched = self.blob.read(&ranges)?.into_iter();
        let each = requests.iter().zip(members).map(|(request, member)| {
            let Some((member, range)) = member else { return self.read_one(request) };
            let bytes = fetched.next().unwrap_or_default();
            let start = match member.start.get() {
                Some(start) => *start,
                None => self.note_start(member, &bytes)?,
            };
            // Another request may have read the header in the meantime.
            let from = usize::try_from(start.saturating_sub(range.start)).unwrap_or(usize::MAX);
            let to = from.saturating_add(member.stored as usize);
            if start >= range.start && to <= bytes.len() {
                return Ok(Some(bytes.slice(from..to)));
            }
            self.blob.read_at(start, member.stored).map(Some)
        });
        each.collect()
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

/// Packs a folder into an archive at `target`, without compression and with the documents first.
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

/// The error for an archive, which cannot be extended.
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
    fn outside_members_and_bombs_are_rejected() {
        for name in ["../x", "a/../../x", "/etc/passwd", "a//b", "a\\..\\b", "./x"] {
            let blob = archive(&[(name, b"1")], CompressionMethod::Stored);
            let error = ZipStorage::open(blob).unwrap_err();
            assert!(error.is_corrupt(), "{name}: {error}");
        }
        // The archive is still recognised as Zarr, so that the error names the invalid member.
        let blob = archive(&[("zarr.json", b"{}"), ("../x", b"1")], CompressionMethod::Stored);
        assert!(
            contains_a_store(&*blob)
                && !contains_a_store(&*archive(&[("a.npy", b"1")], CompressionMethod::Stored))
        );
        // A document above the size limit.
        let document = vec![b' '; usize::try_from(MAX_DOCUMENT).unwrap() + 1];
        let blob = archive(&[("zarr.json", &document), ("c", b"1")], CompressionMethod::Deflated);
        let error = ZipStorage::open(blob).unwrap().open("zarr.json").unwrap_err();
        assert!(error.is_corrupt() && error.to_string().contains("document"), "{error}");
        // A directory entry whose size exceeds the maximum deflate ratio.
        let blob = archive(&[("zarr.json", &[7; 64])], CompressionMethod::Deflated);
        let mut bytes = blob.read_range(0..blob.len().unwrap()).unwrap().to_vec();
        let directory = bytes.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
        bytes[directory + 24..directory + 28].copy_from_slice(&u32::MAX.wrapping_sub(1).to_le_bytes());
        assert!(ZipStorage::open(Arc::new(MemoryBlob::new("bomb.zip", bytes))).is_err());
    }
}
