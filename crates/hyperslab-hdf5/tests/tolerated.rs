//! Irregularities that libhdf5 tolerates, and some that it refuses.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{MemoryBlob, Node, Store};
use hyperslab_hdf5::{NoExternals, open, open_path};

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)).unwrap()
}

/// Returns true if the changed file reads like the golden one.
fn reads_the_same(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("changed.h5");
    std::fs::write(&path, bytes).unwrap();
    let expected = serde_json::from_slice(&golden("earliest.json")).unwrap();
    let problems = common::compare(&path, &expected);
    assert!(problems.is_empty(), "{problems:#?}");
}

/// Every offset of these bytes.
fn places(bytes: &[u8], wanted: &[u8]) -> Vec<usize> {
    (0..bytes.len() - wanted.len()).filter(|at| bytes[*at..].starts_with(wanted)).collect()
}

#[test]
fn a_fill_value_of_a_negative_size_is_none() {
    let mut bytes = golden("earliest.h5");
    // A message of type 5 and 8 bytes: version 2, defined, size 0.
    let found = places(&bytes, &[5, 0, 8, 0, 1, 0, 0, 0, 2, 2, 2, 1, 0, 0, 0, 0]);
    assert!(!found.is_empty());
    for at in found {
        bytes[at + 12..at + 16].fill(0xff);
    }
    reads_the_same(&bytes);
}

#[test]
fn links_without_a_name_do_not_form_a_cycle() {
    for name in [*b"\0ypes", *b".\0pes", *b"/\0pes", *b"a/b\0s"] {
        let mut bytes = golden("earliest.h5");
        let [at] = places(&bytes, b"types\0")[..] else { panic!("one name expected") };
        bytes[at..at + 5].copy_from_slice(&name);
        let store = open(Arc::new(MemoryBlob::new("changed", bytes)), Arc::new(NoExternals)).unwrap();
        assert!(store.children("/").unwrap_err().is_corrupt());
    }
}

#[test]
fn a_family_is_read_as_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = golden("earliest.h5");
    let member = 40_000_u64;
    // Put the driver information block into free space of the first member, and its address into the superblock.
    let room = places(&bytes[..40_000], &[0; 64])[0] + 8;
    let mut block = vec![0, 0, 0, 0, 8, 0, 0, 0];
    block.extend(b"NCSAfami");
    block.extend(member.to_le_bytes());
    bytes[room..room + block.len()].copy_from_slice(&block);
    bytes[48..56].copy_from_slice(&(room as u64).to_le_bytes());
    let name = |number: usize| folder.path().join(format!("part{number:03}.h5"));
    for (number, part) in bytes.chunks(member as usize).enumerate() {
        std::fs::write(name(number), part).unwrap();
    }
    let expected = serde_json::from_slice(&golden("earliest.json")).unwrap();
    let problems = common::compare(&name(0), &expected);
    assert!(problems.is_empty(), "{problems:#?}");
    std::fs::remove_file(name(2)).unwrap();
    assert!(open_path(&name(0)).unwrap_err().to_string().contains("part002.h5"));
    // Change the name to that of another driver.
    bytes[room + 8..room + 16].copy_from_slice(b"NCSAmult");
    let error = open(Arc::new(MemoryBlob::new("multi", bytes)), Arc::new(NoExternals)).unwrap_err();
    assert!(error.to_string().contains("multi"), "{error}");
}

#[test]
fn missing_sources_are_reported() {
    use hyperslab_core::{Depth, Report};
    let store =
        open(Arc::new(MemoryBlob::new("latest", golden("latest.h5"))), Arc::new(NoExternals)).unwrap();
    assert!(matches!(store.node("/virtual").unwrap(), Node::Array(_)));
    let mut report = Report::default();
    store.verify(Depth::Quick, &mut report).unwrap();
    assert!(format!("{report:?}").contains("virtual_source"), "{report:?}");
}
