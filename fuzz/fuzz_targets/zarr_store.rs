//! Zarr stores of several objects: groups, consolidated documents, shards, several chunks; as separate objects and in
//! a zip archive.
#![no_main]

use std::sync::Arc;

use hyperslab_core::MemoryStorage;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let objects = hyperslab_fuzz::objects(bytes);
    for consolidated in [true, false] {
        let directory = Arc::new(MemoryStorage::new("fuzz.zarr", objects.clone()));
        if let Ok(store) = hyperslab_zarr::open_with(directory, consolidated) {
            hyperslab_fuzz::drive(&store);
        }
    }
});
