//! A bare fragment index of Zarr Vectors.
#![no_main]

use hyperslab_core::MemoryBlob;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(store) = hyperslab_zvf::open_fragment_index(&MemoryBlob::new("fuzz", bytes.to_vec())) {
        hyperslab_fuzz::drive(&store);
    }
});
