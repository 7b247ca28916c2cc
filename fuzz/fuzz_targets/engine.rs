//! The engine's operations on a store: catalog, query, comparison, hash, references, a view as Zarr. The store is a
//! small Zarr hierarchy, with documents and attributes (packing, labels, dates, levels, forms) taken from the input.
#![no_main]

use std::sync::Arc;

use hyperslab::query::{Operation, Query};
use hyperslab::{Node, OpenStore, Selection};
use hyperslab_core::MemoryStorage;
use libfuzzer_sys::fuzz_target;

/// The memory limit of a query.
const MEMORY: u64 = 1 << 26;

fuzz_target!(|bytes: &[u8]| {
    hyperslab_fuzz::set_up();
    let objects = hyperslab_fuzz::objects(bytes);
    let Ok(store) = hyperslab_zarr::open(Arc::new(MemoryStorage::new("fuzz.zarr", objects))) else { return };
    let store = OpenStore::from_store(Arc::new(store), "fuzz.zarr");
    let _ = store.catalog();
    let _ = hyperslab::hash::nodes(&store, "/");
    let mut nodes = 0;
    let _ = store.walk(&mut |path, node| {
        nodes += 1;
        if nodes < 20 && matches!(node, Ok(Node::Array(_))) {
            ask(&store, path);
        }
        Ok(())
    });
});

fn ask(store: &OpenStore, path: &str) {
    let Ok(array) = store.array(path) else { return };
    for array in [array.decoded().ok(), Some(array)].into_iter().flatten() {
        for operation in [Operation::Mean, Operation::Max, Operation::Median] {
            let _ = Query::new(operation).memory(MEMORY).run(&array);
        }
        for selection in ["[0]", "[..., ::2]", "time=2000", "x~3"] {
            if let Ok(selection) = selection.parse::<Selection>() {
                let _ = Query::new(Operation::Sum).memory(MEMORY).select(selection).run(&array);
            }
        }
    }
}
