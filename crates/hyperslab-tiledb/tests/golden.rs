//! Arrays written by the real library, stored here. Reads them intact and with every kind of damage.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::check_case;
use hyperslab_core::{Depth, MemoryStorage, Node, Positions, Report, Scan, Store, child_path, read_serial};
use hyperslab_tiledb::{Key, OpenOptions, open};

fn golden() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    cases
}

#[test]
fn golden_arrays_are_read() {
    let cases = golden();
    assert!(cases.len() >= 20, "{} cases", cases.len());
    let problems: Vec<String> = cases.iter().flat_map(|case| check_case(case).1).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Collects all files under a folder, by name.
fn files(folder: &Path, prefix: &str, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            files(&entry.path(), &format!("{name}/"), into);
        } else {
            into.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
}

fn options(case: &Path) -> OpenOptions {
    let key = case.ends_with("dense-encrypted").then(|| Key::new(*b"0123456789abcdef0123456789ABCDEF"));
    OpenOptions { key, ..OpenOptions::default() }
}

/// Opens, lists, reads and checks everything. Errors are fine, panics are not.
fn drive(blobs: &BTreeMap<String, Vec<u8>>, options: OpenOptions) -> Result<(), hyperslab_core::Error> {
    let directory = MemoryStorage::new("damaged", blobs.clone());
    let store = open(Arc::new(directory), options)?;
    let _ = store.verify(Depth::Deep, &mut Report::default());
    visit(&store, "/", 0)
}

fn visit(store: &dyn Store, path: &str, depth: usize) -> Result<(), hyperslab_core::Error> {
    match store.node(path)? {
        Node::Array(array) => {
            let shape = array.schema().shape().to_vec();
            // A damaged schema may claim any shape, so read only a corner.
            let corner: Vec<u64> = shape.iter().map(|extent| (*extent).min(12)).collect();
            let _ = array.usage();
            let mut positions = Positions::whole(&shape);
            for (axis, count) in positions.axes.iter_mut().zip(corner) {
                axis.count = count;
            }
            read_serial(&*array, positions)?;
        }
        Node::Table(table) => {
            let _ = table.rows();
            for batch in table.scan(&Scan::default())? {
                batch?;
            }
        }
        _ => {}
    }
    if depth < 4 {
        for child in store.children(path)? {
            let _ = visit(store, &child_path(path, &child), depth + 1);
        }
    }
    Ok(())
}

/// Damages every file of every array: flips, sets and truncates bytes, swaps and removes files.
#[test]
fn damage_is_survived() {
    let mut refused = 0;
    for case in golden() {
        let mut blobs = BTreeMap::new();
        files(&case.join("array"), "", &mut blobs);
        drive(&blobs, options(&case)).unwrap_or_else(|error| panic!("{}: {error}", case.display()));
        let names: Vec<String> = blobs.keys().cloned().collect();
        for name in &names {
            let whole = blobs[name].clone();
            let mut damaged: Vec<Vec<u8>> = vec![Vec::new(), whole[..whole.len() / 2].to_vec()];
            let step = (whole.len() / 24).max(1);
            for at in (0..whole.len()).step_by(step) {
                for change in [0x01, 0x80, 0xff] {
                    let mut bytes = whole.clone();
                    bytes[at] ^= change;
                    damaged.push(bytes);
                }
                damaged.push(whole[..at].to_vec());
            }
            if let Some(other) = names.iter().find(|other| *other != name) {
                damaged.push(blobs[other].clone());
            }
            for bytes in damaged {
                blobs.insert(name.clone(), bytes);
                refused += usize::from(drive(&blobs, options(&case)).is_err());
            }
            blobs.remove(name);
            refused += usize::from(drive(&blobs, options(&case)).is_err());
            blobs.insert(name.clone(), whole);
        }
    }
    assert!(refused > 100, "only {refused} damaged arrays were refused");
}

#[test]
fn a_wrong_key_reveals_nothing() {
    let case = golden().into_iter().find(|case| case.ends_with("dense-encrypted")).unwrap();
    let mut blobs = BTreeMap::new();
    files(&case.join("array"), "", &mut blobs);
    let missing = drive(&blobs, OpenOptions::default()).unwrap_err().to_string();
    assert!(missing.contains("a key is needed"), "{missing}");
    let key = Some(Key::new(*b"0123456789abcdef0123456789ABCDE!"));
    let wrong = drive(&blobs, OpenOptions { key, ..OpenOptions::default() }).unwrap_err().to_string();
    assert!(wrong.contains("key is wrong") && !wrong.contains("ABCDE!"), "{wrong}");
}

/// With a key, everything read must come from someone who has it. As in the library, plain data is rejected.
#[test]
fn plain_data_is_rejected_with_a_key() {
    let key = Some(Key::new(*b"0123456789abcdef0123456789ABCDEF"));
    let options = || OpenOptions { key: key.clone(), ..OpenOptions::default() };
    let (mut encrypted, mut metadata) = (BTreeMap::new(), None);
    for case in golden() {
        let mut blobs = BTreeMap::new();
        files(&case.join("array"), "", &mut blobs);
        if case.ends_with("dense-encrypted") {
            encrypted = blobs;
            continue;
        }
        let refused = drive(&blobs, options()).unwrap_err().to_string();
        assert!(refused.contains("is not encrypted, but a key was given"), "{}: {refused}", case.display());
        metadata = metadata.or_else(|| {
            blobs.into_iter().find(|(name, _)| name.starts_with("__meta/") && !name.contains('.'))
        });
    }
    drive(&encrypted, options()).unwrap();
    // An attacker without the key adds a plain file to an encrypted array.
    let (name, bytes) = metadata.unwrap();
    encrypted.insert(name, bytes);
    let refused = drive(&encrypted, options()).unwrap_err().to_string();
    assert!(refused.contains("the array metadata is not encrypted"), "{refused}");
}

/// A fragment without a commit is invisible, is reported, and is removed.
#[test]
fn an_uncommitted_fragment_is_removed() {
    let case = golden().into_iter().find(|case| case.ends_with("dense-history")).unwrap();
    let mut blobs = BTreeMap::new();
    files(&case.join("array"), "", &mut blobs);
    let folder = tempfile::tempdir().unwrap();
    let newest = blobs.keys().filter(|name| name.ends_with(".wrt")).max().unwrap().clone();
    for (name, bytes) in blobs.iter().filter(|(name, _)| **name != newest) {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let warnings = || {
        let mut report = Report::default();
        let store = hyperslab_tiledb::open_path(folder.path(), OpenOptions::default()).unwrap();
        store.verify(Depth::Quick, &mut report).unwrap();
        assert!(report.ok(), "{:?}", report.findings);
        report.findings.iter().filter(|finding| finding.check == "orphan_fragment").count()
    };
    assert_eq!(warnings(), 1);
    let options = hyperslab_tiledb::WriteOptions::default();
    let planned = hyperslab_tiledb::repair(folder.path(), &options, true).unwrap();
    assert_eq!((planned.len(), warnings()), (1, 1));
    assert_eq!(hyperslab_tiledb::repair(folder.path(), &options, false).unwrap(), planned);
    assert_eq!(warnings(), 0);
}

/// Consolidated footers are used: nothing else of a fragment is read before its tiles are needed. Damaged ones only
/// cost time.
#[test]
fn footers_come_from_consolidated_files() {
    let case = golden().into_iter().find(|case| case.ends_with("dense-footers")).unwrap();
    let mut blobs = BTreeMap::new();
    files(&case.join("array"), "", &mut blobs);
    let listed = |blobs: &BTreeMap<String, Vec<u8>>| {
        let directory = MemoryStorage::new("footers", blobs.clone());
        let store = open(Arc::new(directory), OpenOptions::default()).unwrap();
        store.details().unwrap()["fragments"].as_array().map(Vec::len)
    };
    assert_eq!(listed(&blobs), Some(3));
    let (meta, bytes) = blobs.iter().find(|(name, _)| name.ends_with(".meta")).unwrap();
    let (meta, mut bytes) = (meta.clone(), bytes.clone());
    let mut without = blobs.clone();
    without.retain(|name, _| !name.ends_with("__fragment_metadata.tdb"));
    assert_eq!(listed(&without), Some(3));
    let last = bytes.len() - 9;
    bytes[last] ^= 0xff;
    blobs.insert(meta, bytes);
    assert_eq!(listed(&blobs), Some(3));
}
