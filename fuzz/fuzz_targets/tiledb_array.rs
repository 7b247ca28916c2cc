//! TileDB arrays and groups written by libtiledb, with bytes of their structures changed after decompression.
//!
//! The first byte selects the array. Each further four bytes are a structure (in reading order), a position in it and
//! a value. Everything around the structures (compression, checksums, lengths) is valid.
#![no_main]

use std::sync::{Arc, LazyLock};

use hyperslab_core::MemoryStorage;
use libfuzzer_sys::fuzz_target;

type Objects = Vec<(String, Vec<u8>)>;

static ARRAYS: LazyLock<Vec<Objects>> =
    LazyLock::new(|| hyperslab_fuzz::stores("crates/hyperslab-tiledb/tests/golden", "array"));

fuzz_target!(|input: &[u8]| {
    let [first, patches @ ..] = input else { return };
    hyperslab_fuzz::set_up();
    let objects = &ARRAYS[usize::from(*first) % ARRAYS.len()];
    hyperslab_tiledb::fuzz::patch_structures(patches.as_chunks::<4>().0);
    let directory = Arc::new(MemoryStorage::new("fuzz.tiledb", objects.clone()));
    if let Ok(store) = hyperslab_tiledb::open(directory, hyperslab_tiledb::OpenOptions::default()) {
        hyperslab_fuzz::drive(&store);
    }
});
