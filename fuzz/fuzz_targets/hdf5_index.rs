//! Chunk indexes and the structures of groups: small known files with a few bytes of one structure changed.
//!
//! The first byte selects the file. Each further four bytes are a structure, a position in it and a value. (Checksums
//! of mutated structures are not compared in fuzzing builds.)
#![no_main]

use std::sync::{Arc, LazyLock};

use hyperslab_core::MemoryBlob;
use hyperslab_hdf5::NoExternals;
use libfuzzer_sys::fuzz_target;

/// Extensible and fixed arrays, trees, heaps, headers, symbol nodes.
const SIGNATURES: [&[u8; 4]; 20] = [
    b"EAHD", b"EAIB", b"EASB", b"EADB", b"FAHD", b"FADB", b"BTHD", b"BTIN", b"BTLF", b"TREE", b"SNOD",
    b"HEAP", b"FRHP", b"FHIB", b"FHDB", b"GCOL", b"OHDR", b"OCHK", b"SMTB", b"SMLI",
];

/// Files with one kind of index or heap each, and the positions of their structures.
static FILES: LazyLock<Vec<(Vec<u8>, Vec<usize>)>> = LazyLock::new(|| {
    let mut files = hyperslab_fuzz::seeds("hdf5");
    files.retain(|(name, _)| name.ends_with(".h5"));
    let starts = |bytes: &[u8]| {
        let signed = |four: &[u8]| SIGNATURES.iter().any(|signature| four == *signature);
        bytes.windows(4).enumerate().filter(|(_, four)| signed(four)).map(|(at, _)| at).collect()
    };
    files
        .into_iter()
        .map(|(_, bytes)| (starts(&bytes), bytes))
        .map(|(starts, bytes)| (bytes, starts))
        .collect()
});

fuzz_target!(|input: &[u8]| {
    let [first, patches @ ..] = input else { return };
    let (file, starts) = &FILES[usize::from(*first) % FILES.len()];
    let mut bytes = file.clone();
    for patch in patches.as_chunks::<4>().0.iter().take(16) {
        let [structure, low, high, value] = *patch;
        let Some(start) = starts.get(usize::from(structure) % starts.len().max(1)) else { continue };
        let at = start + 4 + usize::from(u16::from_le_bytes([low, high]) % 512);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
    }
    let blob = Arc::new(MemoryBlob::new("fuzz.h5", bytes));
    if let Ok(store) = hyperslab_hdf5::open(blob, Arc::new(NoExternals)) {
        hyperslab_fuzz::drive(&store);
    }
});
