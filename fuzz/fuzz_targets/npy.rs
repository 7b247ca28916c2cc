//! NumPy's files.
#![no_main]

use std::sync::Arc;

use hyperslab_core::MemoryBlob;
use hyperslab_npy::{NpyStore, NpzStore};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let blob = Arc::new(MemoryBlob::new("fuzz.npy", bytes.to_vec()));
    if let Ok(store) = NpyStore::open(blob.clone()) {
        hyperslab_fuzz::drive(&store);
    }
    if let Ok(store) = NpzStore::open(blob) {
        hyperslab_fuzz::drive(&store);
    }
});
