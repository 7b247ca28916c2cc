//! A Zarr store of one array: its document, then a line break and the bytes of its only object.
#![no_main]

use std::sync::Arc;

use hyperslab_core::MemoryStorage;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let at = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (document, object) = (bytes[..at].to_vec(), bytes[(at + 1).min(bytes.len())..].to_vec());
    for (name, key) in [("zarr.json", "c/0"), (".zarray", "0")] {
        let files = [(name, document.clone()), (key, object.clone())];
        if let Ok(store) = hyperslab_zarr::open(Arc::new(MemoryStorage::new("fuzz.zarr", files))) {
            hyperslab_fuzz::drive(&store);
        }
    }
});
