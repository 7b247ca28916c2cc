//! Packages: a folder `name.tet.d` whose current generation is an ordinary file.
//!
//! `PROTOCOL` marks a package, `CURRENT` names the generation, `generations/%08d/packed.tet` holds the data. The folders in
//! which writers stage and publish are never read.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{Blob, Error, LocalStorage, MappedBlob, Place, Report, Result, Storage};

use crate::store::{TetStore, open, open_pending};

/// Returns true if this folder is a package.
///
/// # Errors
///
/// [`Io`](Error::Io) if it cannot be read.
pub fn probe_package(directory: &dyn Storage) -> Result<bool> {
    Ok(directory.size("PROTOCOL")?.is_some() && directory.size("CURRENT")?.is_some())
}

/// Opens the current generation of a package.
///
/// # Errors
///
/// [`NotFound`](Error::NotFound) if it is not a package, [`Unsupported`](Error::Unsupported) for a protocol other than 2;
/// otherwise as [`open`].
pub fn open_package(directory: &dyn Storage) -> Result<TetStore> {
    let store = directory.name();
    let key = format!("generations/{:08}/packed.tet", current_generation(directory)?);
    let blob = directory.open(&key)?.ok_or_else(|| Error::not_found(store.as_ref(), key))?;
    open(blob)
}

/// The generation that `CURRENT` names.
pub(crate) fn current_generation(directory: &dyn Storage) -> Result<u64> {
    #[derive(serde::Deserialize)]
    struct Protocol {
        protocol_version: u64,
    }
    let store = directory.name();
    let protocol = small_file(directory, "PROTOCOL")?;
    let place = Place::new(store, "PROTOCOL", 0);
    let protocol: Protocol = crate::footer::parse_json(&protocol, place)?;
    if protocol.protocol_version != 2 {
        return Err(place.unsupported(format!("package protocol {}", protocol.protocol_version)));
    }
    let text = small_file(directory, "CURRENT")?;
    let number = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| Place::new(store, "CURRENT", 0).corrupt("not the number of a generation"))
}

/// Reads a file that must be small.
fn small_file(directory: &dyn Storage, key: &'static str) -> Result<bytes::Bytes> {
    let store = directory.name();
    match directory.size(key)? {
        Some(0..=65_536) => {}
        Some(size) => return Err(Place::new(store, key, 0).corrupt(format!("{size} bytes"))),
        None => return Err(Error::not_found(store.as_ref(), key)),
    }
    directory.read(key)?.ok_or_else(|| Error::not_found(store.as_ref(), key))
}

/// Opens the file or the package at a path, without changing anything. Files are mapped. An [append](crate::TetAppend)
/// that was interrupted after its commit is read from its redo file.
///
/// # Errors
///
/// As [`open`] and [`open_package`]; [`Io`](Error::Io) if the path does not exist.
pub fn open_path(path: &Path) -> Result<TetStore> {
    if path.is_dir() {
        return open_package(&LocalStorage::new(path));
    }
    open_file(Arc::new(MappedBlob::open(path)?), path, true)
}

/// Opens the file in `blob`, which is at `path`, together with an append in its redo file.
pub(crate) fn open_file(blob: Arc<dyn Blob>, path: &Path, mapped: bool) -> Result<TetStore> {
    match crate::append::completed(&blob, path, mapped)? {
        Some(completed) => open_pending(completed),
        None => open(blob),
    }
}

/// Compares a package's current generation with its manifest: the length of the file, and the hash of the bytes before
/// the footer was added, without the footer flag in the superblock.
pub(crate) fn verify_package(path: &Path, store: &TetStore, report: &mut Report) {
    #[derive(serde::Deserialize)]
    struct Manifest {
        #[serde(default)]
        part_ids: Vec<String>,
        packed_sha256: Option<String>,
    }
    let directory = LocalStorage::new(path);
    let manifest = current_generation(&directory).and_then(|generation| {
        let key = format!("generations/{generation:08}/MANIFEST.json");
        let text = directory.read(&key)?.ok_or_else(|| Error::not_found(directory.name().as_ref(), key))?;
        crate::footer::parse_json::<Manifest>(&text, Place::new(directory.name(), "MANIFEST.json", 0))
    });
    let manifest = match manifest {
        Ok(manifest) => manifest,
        Err(error) => return report.failure("current_manifest", &error),
    };
    // For a single part the hash covers another footer, which no longer exists.
    let Some(expected) = manifest.packed_sha256.filter(|_| manifest.part_ids.len() > 1) else { return };
    match store.file.blob.read_at(0, store.payload_end()) {
        Ok(image) => {
            let mut image = image.to_vec();
            image[12..16].fill(0);
            let found = crate::zone::hex_text(&hyperslab_codec::checksum::sha256(&image));
            if found == expected {
                report.passed("packed_sha256", found);
            } else {
                report.error("packed_sha256", format!("{found}, the manifest says {expected}"));
            }
        }
        Err(error) => report.failure("packed_sha256", &error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::superblock::Superblock;
    use hyperslab_core::MemoryStorage;

    #[test]
    fn the_current_generation_is_opened() -> Result<()> {
        let files = |protocol: &str, current: &str| {
            MemoryStorage::new(
                "p.tet.d",
                [
                    ("PROTOCOL", protocol.as_bytes().to_vec()),
                    ("CURRENT", current.as_bytes().to_vec()),
                    ("generations/00000003/packed.tet", Superblock::EMPTY.encode().to_vec()),
                ],
            )
        };
        let protocol = r#"{"protocol_version":2,"created_unix":1}"#;
        let good = files(protocol, "3\n");
        assert!(probe_package(&good)?);
        assert_eq!(open_package(&good)?.datasets().len(), 0);
        assert!(open_package(&files(protocol, "4\n")).unwrap_err().is_not_found());
        assert!(open_package(&files(protocol, "../3")).unwrap_err().is_corrupt());
        assert!(open_package(&files(r#"{"protocol_version":3}"#, "3")).unwrap_err().is_unsupported());
        Ok(())
    }
}
