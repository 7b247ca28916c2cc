//! The whole HDF5 reader.
#![no_main]

use std::sync::Arc;

use hyperslab_core::MemoryBlob;
use hyperslab_hdf5::NoExternals;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let blob = Arc::new(MemoryBlob::new("fuzz.h5", bytes.to_vec()));
    if let Ok(store) = hyperslab_hdf5::open(blob, Arc::new(NoExternals)) {
        hyperslab_fuzz::drive(&store);
    }
});
