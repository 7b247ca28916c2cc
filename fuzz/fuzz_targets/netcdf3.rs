//! NetCDF classic files: the header, the layout and all variables.
#![no_main]

use std::sync::Arc;

use hyperslab_core::MemoryBlob;
use hyperslab_netcdf3::Netcdf3Store;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(store) = Netcdf3Store::open(Arc::new(MemoryBlob::new("fuzz.nc", bytes.to_vec()))) {
        hyperslab_fuzz::drive(&store);
    }
});
