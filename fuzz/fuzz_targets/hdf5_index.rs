//! Chunk indexes and the structures of groups: known files with a few bytes of one structure changed.
//!
//! The first byte chooses the file, then each five bytes a structure by its signature, a place in it and a value. (The
//! checksums of mutated structures are not compared in a build for a fuzzer.)
#![no_main]

use std::sync::Arc;

use hyperslab_core::MemoryBlob;
use hyperslab_hdf5::NoExternals;
use libfuzzer_sys::fuzz_target;

const FILES: [&[u8]; 4] = [
    include_bytes!("../../crates/hyperslab-hdf5/tests/golden/earliest.h5"),
    include_bytes!("../../crates/hyperslab-hdf5/tests/golden/latest.h5"),
    include_bytes!("../../crates/hyperslab-hdf5/tests/golden/netcdf.h5"),
    include_bytes!("../../crates/hyperslab-hdf5/tests/golden/v110.h5"),
];

/// Extensible and fixed arrays, trees, heaps, headers, symbol nodes.
const SIGNATURES: [&[u8; 4]; 20] = [
    b"EAHD", b"EAIB", b"EASB", b"EADB", b"FAHD", b"FADB", b"BTHD", b"BTIN", b"BTLF", b"TREE", b"SNOD",
    b"HEAP", b"FRHP", b"FHIB", b"FHDB", b"GCOL", b"OHDR", b"OCHK", b"SMTB", b"SMLI",
];

fuzz_target!(|input: &[u8]| {
    let [first, patches @ ..] = input else { return };
    let mut bytes = FILES[usize::from(*first) % FILES.len()].to_vec();
    for patch in patches.chunks_exact(5).take(16) {
        let signature = SIGNATURES[usize::from(patch[0]) % SIGNATURES.len()];
        let places: Vec<usize> =
            bytes.windows(4).enumerate().filter(|(_, four)| four == signature).map(|(at, _)| at).collect();
        if places.is_empty() {
            continue;
        }
        let at = places[usize::from(patch[1]) % places.len()]
            + 4
            + usize::from(u16::from_le_bytes([patch[2], patch[3]]) % 1024);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = patch[4];
        }
    }
    let blob = Arc::new(MemoryBlob::new("fuzz.h5", bytes));
    if let Ok(store) = hyperslab_hdf5::open(blob, Arc::new(NoExternals)) {
        hyperslab_fuzz::drive(&store);
    }
});
