//! Changes of golden stores, with their structure in view.

use std::path::{Path, PathBuf};

use hyperslab_codec::checksum::lookup3;
use hyperslab_codec::deflate::{self, Wrapper};
use serde_json::Value;

use crate::random::Random;

/// The folders of golden stores, relative to the workspace, and what they hold.
const FOLDERS: [(&str, &str); 4] = [
    ("hdf5", "crates/hyperslab-hdf5/tests/golden"),
    ("hdf5", "fuzz/seeds/hdf5"),
    ("zarr", "crates/hyperslab-zarr/tests/golden/stores"),
    ("tiledb", "crates/hyperslab-tiledb/tests/golden"),
];

/// The signatures of HDF5's structures.
const SIGNATURES: [&[u8; 4]; 21] = [
    b"EAHD", b"EAIB", b"EASB", b"EADB", b"FAHD", b"FADB", b"BTHD", b"BTIN", b"BTLF", b"TREE", b"SNOD",
    b"HEAP", b"FRHP", b"FHIB", b"FHDB", b"GCOL", b"OHDR", b"OCHK", b"SMTB", b"SMLI", b"\x89HDF",
];

/// The maximum length of a structure whose checksum is searched.
const LONGEST: usize = 4096;

/// A golden store.
#[derive(Debug)]
pub(super) struct Golden {
    /// The reference library that reads it.
    pub(super) kind: &'static str,
    path: PathBuf,
    /// Of an HDF5 file: the ranges of structures with a checksum behind them, and the starts of those without one.
    structures: Vec<(usize, Option<usize>)>,
}

/// All golden stores.
pub(super) fn goldens() -> Vec<Golden> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for (kind, folder) in FOLDERS {
        let mut entries: Vec<_> =
            std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for path in entries.iter().map(std::fs::DirEntry::path) {
            let structures = match kind {
                // Variables of NetCDF-4 are longer than HDF5's datasets, up to the length of their dimension.
                "hdf5" if path.ends_with("netcdf.h5") => continue,
                "hdf5" if path.extension().is_some_and(|extension| extension == "h5") => {
                    structures(&std::fs::read(&path).unwrap_or_default())
                }
                "zarr" if path.is_dir() => Vec::new(),
                // The reference library needs a key for encrypted arrays.
                "tiledb" if path.join("array").is_dir() && !path.ends_with("dense-encrypted") => Vec::new(),
                _ => continue,
            };
            let path = if kind == "tiledb" { path.join("array") } else { path };
            found.push(Golden { kind, path, structures });
        }
    }
    found
}

/// The structures of an HDF5 file: where each starts, and where its checksum is if it has one.
fn structures(bytes: &[u8]) -> Vec<(usize, Option<usize>)> {
    let starts = (0..bytes.len()).filter(|at| SIGNATURES.iter().any(|own| bytes[*at..].starts_with(*own)));
    let checksum = |start: usize| {
        let ends = start + 8..(start + LONGEST).min(bytes.len().saturating_sub(4));
        ends.into_iter().find(|end| {
            bytes[*end..]
                .first_chunk()
                .is_some_and(|stored| lookup3(&bytes[start..*end], 0).to_le_bytes() == *stored)
        })
    };
    starts.map(|start| (start, checksum(start))).collect()
}

impl Golden {
    /// The kind and the path, for messages.
    #[must_use]
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.kind, self.path.display())
    }

    /// Replaces the store at a path by a copy.
    ///
    /// # Errors
    ///
    /// If files cannot be read or written.
    pub(super) fn write_copy(&self, path: &Path) -> std::io::Result<()> {
        if path.is_dir() {
            std::fs::remove_dir_all(path)?;
        }
        copy(&self.path, path)
    }

    /// Changes the copy at a path.
    ///
    /// # Errors
    ///
    /// If files cannot be read or written.
    pub(super) fn change(&self, path: &Path, random: &mut Random) -> std::io::Result<()> {
        match self.kind {
            "hdf5" => {
                let mut bytes = std::fs::read(path)?;
                self.change_hdf5(&mut bytes, random);
                std::fs::write(path, bytes)
            }
            _ => change_objects(path, random),
        }
    }

    /// Changes numbers in one to three structures, and computes their checksums again.
    fn change_hdf5(&self, bytes: &mut [u8], random: &mut Random) {
        for _ in 0..=random.number() % 3 {
            if self.structures.is_empty() {
                return;
            }
            let (start, checksum) = self.structures[below(random, self.structures.len())];
            let end = checksum.unwrap_or((start + 512).min(bytes.len()));
            // The signature remains.
            change_number(&mut bytes[(start + 4).min(end)..end], random);
            if let Some(at) = checksum {
                let sum = lookup3(&bytes[start..at], 0).to_le_bytes();
                bytes[at..at + 4].copy_from_slice(&sum);
            }
        }
    }
}

/// Copies a file or a folder.
pub(super) fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return std::fs::copy(from, to).map(|_| ());
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn below(random: &mut Random, count: usize) -> usize {
    (random.number() % count.max(1) as u64) as usize
}

/// Changes one byte, or a number of two, four or eight bytes.
fn change_number(bytes: &mut [u8], random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let width = [1, 1, 2, 4, 8][below(random, 5)].min(bytes.len());
    let at = below(random, bytes.len() - width + 1);
    let mut number = [0; 8];
    number[..width].copy_from_slice(&bytes[at..at + width]);
    let number = u64::from_le_bytes(number);
    let changed = match random.number() % 7 {
        0 => 0,
        1 => u64::MAX,
        2 => number.wrapping_add(1),
        3 => number.wrapping_sub(1),
        4 => number ^ (1 << (random.number() % (8 * width as u64))),
        5 => random.number() % 32,
        _ => random.number(),
    };
    bytes[at..at + width].copy_from_slice(&changed.to_le_bytes()[..width]);
}

/// Changes one or two objects of a store.
fn change_objects(store: &Path, random: &mut Random) -> std::io::Result<()> {
    let mut files = Vec::new();
    list(store, &mut files);
    files.sort();
    for _ in 0..=random.number() % 2 {
        // Documents and schemas are changed more often than data.
        let documents: Vec<&PathBuf> = files.iter().filter(|file| is_document(file)).collect();
        let file = if documents.is_empty() || random.number().is_multiple_of(4) {
            &files[below(random, files.len())]
        } else {
            documents[below(random, documents.len())]
        };
        let mut bytes = std::fs::read(file)?;
        if let Ok(mut document) = serde_json::from_slice::<Value>(&bytes) {
            change_document(&mut document, random);
            bytes = document.to_string().into_bytes();
        } else if let Some((head, mut payload)) = generic_tile(&bytes) {
            change_number(&mut payload, random);
            bytes = with_payload(head, &payload);
        } else {
            change_number(&mut bytes, random);
        }
        std::fs::write(file, bytes)?;
    }
    Ok(())
}

fn is_document(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let folder = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    name == "zarr.json"
        || name.starts_with(".z")
        || name == "__array_schema.tdb"
        || folder == "__schema"
        || folder == "__meta"
        || folder == "__group"
        || folder == "__enumerations"
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            list(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// Changes one value of a document: replaces, removes or repeats it.
fn change_document(document: &mut Value, random: &mut Random) {
    let count = count_values(document);
    let mut left = below(random, count);
    change_at(document, &mut left, random);
}

fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count_values).sum::<usize>(),
        Value::Object(object) => object.values().map(count_values).sum(),
        _ => 0,
    }
}

/// Changes the value with this number, counted from the root. Returns true once it is found.
fn change_at(value: &mut Value, left: &mut usize, random: &mut Random) -> bool {
    if *left == 0 {
        change_value(value, random);
        return true;
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| change_at(item, left, random)),
        Value::Object(object) => object.values_mut().any(|item| change_at(item, left, random)),
        _ => false,
    }
}

/// Words that occur in documents.
const WORDS: [&str; 26] = [
    "float32",
    "int8",
    "uint64",
    "bool",
    "complex64",
    "string",
    "<i4",
    ">f8",
    "|b1",
    "|S3",
    "<U2",
    "r16",
    "NaN",
    "Infinity",
    "0x7fc00000",
    "bytes",
    "gzip",
    "zstd",
    "blosc",
    "crc32c",
    "transpose",
    "little",
    "big",
    "/",
    ".",
    "",
];

fn change_value(value: &mut Value, random: &mut Random) {
    let number = |random: &mut Random| match random.number() % 6 {
        0 => Value::from(0),
        1 => Value::from(-1),
        2 => Value::from(1.5),
        3 => Value::from(random.number()),
        _ => Value::from(random.number() % 16),
    };
    let word = |random: &mut Random| Value::from(WORDS[below(random, WORDS.len())]);
    match value {
        Value::Object(object) if !object.is_empty() && !random.number().is_multiple_of(4) => {
            let key = object.keys().nth(below(random, object.len())).cloned().unwrap_or_default();
            match random.number() % 3 {
                0 => drop(object.shift_remove(&key)),
                1 => drop(object.insert("added".to_owned(), Value::from(random.number() % 3))),
                _ => drop(object.insert(key, Value::Null)),
            }
        }
        Value::Array(items) if !items.is_empty() && !random.number().is_multiple_of(4) => {
            let at = below(random, items.len());
            if random.coin() {
                items.remove(at);
            } else {
                items.insert(at, items[at].clone());
            }
        }
        Value::Number(_) if !random.number().is_multiple_of(4) => *value = number(random),
        Value::String(_) if !random.number().is_multiple_of(4) => *value = word(random),
        _ => {
            *value = match random.number() % 6 {
                0 => Value::Null,
                1 => Value::from(random.coin()),
                2 => number(random),
                3 => word(random),
                4 => Value::Array(vec![Value::from(random.number() % 4)]),
                _ => Value::Object(serde_json::Map::new()),
            }
        }
    }
}

/// The length of the head of a generic tile of TileDB: version, lengths, type, cell size, encryption, length of the pipeline.
const TILE_HEAD: usize = 34;

/// The head and the payload of a file that is one generic tile, compressed with gzip.
fn generic_tile(bytes: &[u8]) -> Option<(&[u8], Vec<u8>)> {
    let head = bytes.get(..TILE_HEAD)?;
    let number = |at: usize| Some(u64::from_le_bytes(*head.get(at..)?.first_chunk()?) as usize);
    let (persisted, size) = (number(4)?, number(12)?);
    let pipeline = u32::from_le_bytes(*head[30..].first_chunk()?) as usize;
    let tile = bytes.get(TILE_HEAD + pipeline..)?;
    if head[29] != 0 || tile.len() != persisted || size > 1 << 20 {
        return None;
    }
    let word = |at: usize| Some(u32::from_le_bytes(*tile.get(at..)?.first_chunk()?) as usize);
    let mut payload = Vec::new();
    let (chunks, mut at) = (word(0)?, 8);
    for _ in 0..chunks {
        let (original, filtered, metadata) = (word(at)?, word(at + 4)?, word(at + 8)?);
        let data = tile.get(at + 12 + metadata..)?.get(..filtered)?;
        let mut part = vec![0; original.min(1 << 20)];
        deflate::decode(Wrapper::Zlib, data, &mut part).ok()?;
        payload.extend(part);
        at += 12 + metadata + filtered;
    }
    (payload.len() == size).then_some((head, payload))
}

/// A generic tile with another payload, which is not filtered.
fn with_payload(head: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut tile = Vec::new();
    // One chunk: its two lengths, no metadata.
    tile.extend(1_u64.to_le_bytes());
    tile.extend((payload.len() as u32).to_le_bytes());
    tile.extend((payload.len() as u32).to_le_bytes());
    tile.extend(0_u32.to_le_bytes());
    tile.extend(payload);
    let mut pipeline = Vec::new();
    // The size of a chunk, and no filters.
    pipeline.extend(65_536_u32.to_le_bytes());
    pipeline.extend(0_u32.to_le_bytes());
    let mut out = head[..4].to_vec();
    out.extend((tile.len() as u64).to_le_bytes());
    out.extend(&head[12..30]);
    out.extend((pipeline.len() as u32).to_le_bytes());
    out.extend(pipeline);
    out.extend(tile);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_golden_stores_with_structures() {
        let all = goldens();
        for kind in ["hdf5", "zarr", "tiledb"] {
            assert!(all.iter().filter(|golden| golden.kind == kind).count() > 5, "{kind}");
        }
        let checked = |golden: &&Golden| golden.structures.iter().any(|(_, checksum)| checksum.is_some());
        assert!(all.iter().filter(checked).count() > 5);
    }

    #[test]
    fn schemas_are_changed_before_they_are_compressed() {
        let mut changed = 0;
        for golden in goldens().iter().filter(|golden| golden.kind == "tiledb") {
            let mut files = Vec::new();
            list(&golden.path, &mut files);
            for file in files.iter().filter(|file| is_document(file)) {
                let bytes = std::fs::read(file).unwrap();
                let Some((head, payload)) = generic_tile(&bytes) else { continue };
                assert_eq!(with_payload(head, &payload)[..4], bytes[..4]);
                changed += 1;
            }
        }
        assert!(changed > 10, "{changed}");
    }
}
