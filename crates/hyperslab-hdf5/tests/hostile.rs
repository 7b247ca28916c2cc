//! Damaged files lead to an error with its location, never to a panic, a hang or excessive memory use. Intact parts stay
//! readable.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "common/drive.rs"]
mod drive;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use drive::drive;
use hyperslab_core::{Depth, MemoryBlob, Node, Positions, Report, Store, read_serial};
use hyperslab_hdf5::{NoExternals, open};

fn golden() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    ["earliest", "v110", "latest", "netcdf"]
        .map(|name| std::fs::read(folder.join(name).with_extension("h5")).unwrap())
        .to_vec()
}

/// A small pseudorandom generator, so that failures are reproducible.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides.max(1)
    }
}

/// A search in a node whose keys are not in order misses chunks, which would read as fill values.
#[test]
fn chunks_whose_keys_are_out_of_order_are_refused_and_reported() {
    let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/hdf5/btree1.h5");
    let mut bytes = std::fs::read(seed).unwrap();
    // The key of the fourth of six chunks.
    assert_eq!(bytes[1528..1536], 12_u64.to_le_bytes());
    bytes[1531] = 19;
    let store = open(Arc::new(MemoryBlob::new("order.h5", bytes)), Arc::new(NoExternals)).unwrap();
    let Node::Array(array) = store.node("/d").unwrap() else { unreachable!("an array") };
    let read = read_serial(&*array, Positions::whole(array.schema().shape()));
    assert!(read.as_ref().is_err_and(|error| error.to_string().contains("not in order")), "{read:?}");
    let mut seen = 0;
    let visited = array.visit_chunks(&mut |_, _| {
        seen += 1;
        Ok(ControlFlow::Continue(()))
    });
    assert!(visited.is_err() && seen >= 5, "{seen} chunks, {visited:?}");
    let mut report = Report::default();
    store.verify(Depth::Quick, &mut report).unwrap();
    assert!(!report.ok(), "{report:?}");
}

#[test]
fn flipped_bytes() {
    let mut dice = Dice(1);
    for file in golden() {
        for _ in 0..60 {
            let mut bytes = file.clone();
            for _ in 0..=dice.roll(4) {
                let at = dice.roll(bytes.len());
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1, bytes[at].wrapping_add(1)][dice.roll(7)];
            }
            drive(bytes);
        }
    }
}

#[test]
fn flipped_bytes_of_structures() {
    // Checksums detect most flips early, so flip bits in structures without checksums, or directly after a signature.
    let mut dice = Dice(2);
    let signatures: [&[u8]; 12] = [
        b"TREE", b"SNOD", b"HEAP", b"GCOL", b"OHDR", b"BTHD", b"FRHP", b"EAHD", b"EADB", b"FAHD", b"\x89HDF",
        b"FHDB",
    ];
    for file in golden() {
        let places: Vec<usize> = (0..file.len().saturating_sub(4))
            .filter(|&at| signatures.iter().any(|signature| file[at..].starts_with(signature)))
            .collect();
        for _ in 0..80 {
            let mut bytes = file.clone();
            let at = (places[dice.roll(places.len())] + dice.roll(64)).min(bytes.len() - 1);
            bytes[at] = [0, 1, 0x7f, 0xff, bytes[at] ^ 2, bytes[at].wrapping_sub(1)][dice.roll(6)];
            drive(bytes);
        }
    }
}

/// Updates the checksum of every structure whose length is known, so that damage reaches the code behind the
/// checksums.
fn update_checksums(bytes: &mut [u8]) {
    let fixed: [(&[u8], usize); 5] =
        [(b"EAHD", 72), (b"FAHD", 28), (b"BTHD", 38), (b"FRHP", 146), (b"\x89HDF", 48)];
    for at in 0..bytes.len().saturating_sub(16) {
        let mut length =
            fixed.iter().find(|(magic, _)| bytes[at..].starts_with(magic)).map(|(_, length)| *length);
        if bytes[at..].starts_with(b"OHDR") {
            let flags = bytes[at + 5];
            let head = 6 + if flags & 0x20 != 0 { 16 } else { 0 } + if flags & 0x10 != 0 { 4 } else { 0 };
            let width = 1 << (flags & 3);
            let size = bytes.get(at + head..at + head + width).map(|size| {
                size.iter().rev().fold(0_usize, |number, byte| number.wrapping_shl(8) | usize::from(*byte))
            });
            length = size.map(|size| size.saturating_add(head + width + 4));
        }
        if let Some(length) = length
            && at.checked_add(length).is_some_and(|end| end <= bytes.len())
        {
            let sum = hyperslab_codec::checksum::lookup3(&bytes[at..at + length - 4], 0);
            bytes[at + length - 4..at + length].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

#[test]
fn flipped_bytes_with_updated_checksums() {
    let mut dice = Dice(5);
    let signatures: [&[u8]; 6] = [b"OHDR", b"BTHD", b"FRHP", b"EAHD", b"FAHD", b"\x89HDF"];
    for file in golden().into_iter().skip(1) {
        let places: Vec<usize> = (0..file.len().saturating_sub(4))
            .filter(|&at| signatures.iter().any(|signature| file[at..].starts_with(signature)))
            .collect();
        for _ in 0..150 {
            let mut bytes = file.clone();
            for _ in 0..=dice.roll(2) {
                let at = (places[dice.roll(places.len())] + dice.roll(150)).min(bytes.len() - 1);
                bytes[at] = [0, 1, 0x7f, 0xff, bytes[at] ^ 2, bytes[at].wrapping_add(1)][dice.roll(6)];
            }
            update_checksums(&mut bytes);
            drive(bytes);
        }
    }
}

#[test]
fn truncated_files() {
    let mut dice = Dice(3);
    for file in golden() {
        for _ in 0..25 {
            drive(file[..dice.roll(file.len())].to_vec());
        }
    }
}

#[test]
fn spliced_files() {
    let mut dice = Dice(4);
    let files = golden();
    for _ in 0..80 {
        let mut bytes = files[dice.roll(files.len())].clone();
        let other = &files[dice.roll(files.len())];
        let length = dice.roll(512) + 1;
        let from = dice.roll(other.len() - length);
        let to = dice.roll(bytes.len() - length);
        bytes[to..to + length].copy_from_slice(&other[from..from + length]);
        drive(bytes);
    }
}

#[test]
fn one_damaged_object_does_not_affect_the_others() {
    // The first version 2 object header of a dataset after the root's: its checksum no longer matches.
    let file = golden().remove(2);
    let store = open(Arc::new(MemoryBlob::new("x", file.clone())), Arc::new(NoExternals)).unwrap();
    let names = store.children("/").unwrap();
    let places: Vec<usize> = (200..file.len() - 4).filter(|&at| file[at..].starts_with(b"OHDR")).collect();
    let mut bytes = file;
    let at = places[places.len() / 2];
    bytes[at + 20] ^= 0xff;
    let damaged = open(Arc::new(MemoryBlob::new("x", bytes)), Arc::new(NoExternals)).unwrap();
    assert_eq!(damaged.children("/").unwrap(), names);
    let mut report = Report::default();
    damaged.verify(Depth::Quick, &mut report).unwrap();
    assert!(!report.ok());
}
