//! A Zarr Vectors store: for every object two bytes of the name's length, four of its own, the name and the object.
#![no_main]

use std::sync::Arc;

use hyperslab_core::{Geometry, GeometryQuery, MemoryStorage};
use libfuzzer_sys::fuzz_target;

/// The objects, as far as the bytes go.
fn objects(mut bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut objects = Vec::new();
    while let Some((lengths, rest)) = bytes.split_first_chunk::<6>() {
        let name = usize::from(u16::from_le_bytes([lengths[0], lengths[1]]));
        let length = u32::from_le_bytes([lengths[2], lengths[3], lengths[4], lengths[5]]) as usize;
        let Some((name, rest)) = rest.split_at_checked(name) else { break };
        let (object, rest) = rest.split_at(length.min(rest.len()));
        objects.push((String::from_utf8_lossy(name).into_owned(), object.to_vec()));
        bytes = rest;
    }
    objects
}

fuzz_target!(|bytes: &[u8]| {
    let directory = Arc::new(MemoryStorage::new("fuzz.zv", objects(bytes)));
    let Ok(store) = hyperslab_zvf::open(directory) else { return };
    hyperslab_fuzz::drive(&store);
    let Ok(geometry) = store.geometry() else { return };
    for id in [3, 0, 1] {
        let _ = geometry.query(&GeometryQuery { objects: vec![id], ..GeometryQuery::default() });
    }
    let rank = geometry.schema().axes.len();
    let region = Some([vec![0.0; rank], vec![60.0; rank]]);
    for level in [0, 1] {
        let _ = geometry.query(&GeometryQuery {
            level: Some(level),
            region: region.clone(),
            ..GeometryQuery::default()
        });
    }
    let _ = geometry.query(&GeometryQuery { groups: vec![0], ..GeometryQuery::default() });
});
