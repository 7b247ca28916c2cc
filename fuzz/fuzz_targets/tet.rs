//! The whole `.tet` reader.
#![no_main]

use std::sync::Arc;

use hyperslab_core::MemoryBlob;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(store) = hyperslab_tet::open(Arc::new(MemoryBlob::new("fuzz.tet", bytes.to_vec()))) {
        let _ = (store.zone_maps(), store.secondary_index(), store.history());
        hyperslab_fuzz::drive(&store);
    }
});
