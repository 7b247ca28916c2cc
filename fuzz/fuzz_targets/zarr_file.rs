//! Zarr stores in one file: zip archives, and kerchunk's references.
#![no_main]

use std::sync::Arc;

use hyperslab_core::{Blob, Content, FormatDriver, MemoryBlob, OpenContext};
use hyperslab_zarr::{ReferencesDriver, ZarrZipDriver};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let blob: Arc<dyn Blob> = Arc::new(MemoryBlob::new("fuzz", bytes.to_vec()));
    let drivers: [&dyn FormatDriver; 2] = [&ZarrZipDriver, &ReferencesDriver];
    let driver = drivers[usize::from(bytes.trim_ascii_start().starts_with(b"{"))];
    if let Ok(store) = driver.open(Content::File(blob), &OpenContext::default()) {
        hyperslab_fuzz::drive(&*store);
    }
});
