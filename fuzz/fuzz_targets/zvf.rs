//! A Zarr Vectors store. Each object is encoded as two bytes for the length of its name, four for its own length, the
//! name and the content.
#![no_main]

use std::sync::Arc;

use hyperslab_core::{Geometry, GeometryQuery, MemoryStorage};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let directory = Arc::new(MemoryStorage::new("fuzz.zv", hyperslab_fuzz::objects(bytes)));
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
