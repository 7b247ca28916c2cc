//! A TileDB array: a schema and a fragment's metadata and data, taken from the input, which also contains their
//! lengths.
#![no_main]

use std::sync::Arc;

use hyperslab_core::MemoryStorage;
use libfuzzer_sys::fuzz_target;

const FRAGMENT: &str = "__1_1_00000000000000000000000000000000_22";

fuzz_target!(|bytes: &[u8]| {
    let [a, b, c, d, rest @ ..] = bytes else { return };
    let first = usize::from(u16::from_le_bytes([*a, *b])).min(rest.len());
    let (schema, rest) = rest.split_at(first);
    let second = usize::from(u16::from_le_bytes([*c, *d])).min(rest.len());
    let (metadata, data) = rest.split_at(second);
    let files = [
        ("__schema/__1_1_00000000000000000000000000000000".to_owned(), schema.to_vec()),
        (format!("__commits/{FRAGMENT}.wrt"), Vec::new()),
        (format!("__fragments/{FRAGMENT}/__fragment_metadata.tdb"), metadata.to_vec()),
        (format!("__fragments/{FRAGMENT}/a0.tdb"), data.to_vec()),
        (format!("__fragments/{FRAGMENT}/d0.tdb"), data.to_vec()),
    ];
    let directory = Arc::new(MemoryStorage::new("fuzz.tiledb", files));
    if let Ok(store) = hyperslab_tiledb::open(directory, hyperslab_tiledb::OpenOptions::default()) {
        hyperslab_fuzz::drive(&store);
    }
});
