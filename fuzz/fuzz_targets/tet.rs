//! The whole `.tet` reader: open, list, describe, read every chunk, check deeply.
#![no_main]

use std::ops::ControlFlow;
use std::sync::Arc;

use hyperslab_core::{Array, Depth, MemoryBlob, Node, Positions, Report, Store, child_path, decoded_bytes, read_serial};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let blob = Arc::new(MemoryBlob::new("fuzz.tet", bytes.to_vec()));
    let Ok(store) = hyperslab_tet::open(blob) else { return };
    let mut groups = vec!["/".to_owned()];
    while let Some(group) = groups.pop() {
        for child in store.children(&group).unwrap_or_default() {
            let path = child_path(&group, &child);
            match store.node(&path) {
                Ok(Node::Array(array)) => read(array.as_ref()),
                Ok(_) => groups.push(path),
                Err(_) => {}
            }
        }
    }
    let _ = (store.zone_maps(), store.secondary_index(), store.history());
    let mut report = Report::default();
    let _ = store.verify(Depth::Deep, &mut report);
});

fn read(array: &dyn Array) {
    let schema = array.schema();
    let _ = (schema.attributes.to_json(), array.usage());
    let _ = array.visit_chunks(&mut |chunk, reference| {
        if array.locate(std::slice::from_ref(&chunk)).is_ok()
            && let Ok(size) = decoded_bytes(array, &chunk, &reference)
            && let Ok(stored) = array.fetch(&reference.spans().collect::<Vec<_>>())
        {
            let _ = array.decode(&chunk, &reference, &stored, &mut vec![0; size]);
        }
        Ok(ControlFlow::Continue(()))
    });
    if schema.bytes().is_some_and(|bytes| bytes < 1 << 20) {
        let _ = read_serial(array, Positions::whole(schema.shape()));
    }
}
