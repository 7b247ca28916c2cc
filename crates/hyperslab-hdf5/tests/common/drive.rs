//! Runs the whole reader on one file.

use std::collections::HashSet;
use std::sync::Arc;

use hyperslab_core::{Depth, MemoryBlob, Node, Positions, Report, Store, child_path, product, read_serial};
use hyperslab_hdf5::{NoExternals, open};

/// Runs the whole reader: opens the file, lists all nodes, reads attributes and every value, and runs both checks.
pub(crate) fn drive(bytes: Vec<u8>) {
    let Ok(store) = open(Arc::new(MemoryBlob::new("hostile", bytes)), Arc::new(NoExternals)) else { return };
    let mut pending = vec!["/".to_owned()];
    let mut seen = HashSet::new();
    while let Some(path) = pending.pop() {
        if !seen.insert(path.clone()) || seen.len() > 2000 || path.matches('/').count() > 6 {
            continue;
        }
        match store.node(&path) {
            Ok(Node::Group(attributes)) => {
                let _ = attributes.to_json();
                let names = store.children(&path).unwrap_or_default();
                pending.extend(names.iter().map(|name| child_path(&path, name)));
            }
            Ok(Node::Array(array)) => {
                let _ = array.schema().attributes.to_json();
                let _ = array.usage();
                // The caller controls the size of a read, so do not read arrays with a large claimed shape.
                if product(array.schema().shape()).is_some_and(|cells| cells < 1 << 16) {
                    let _ = read_serial(&*array, Positions::whole(array.schema().shape()));
                }
            }
            _ => {}
        }
    }
    for depth in [Depth::Quick, Depth::Deep] {
        let mut report = Report::default();
        let _ = store.verify(depth, &mut report);
    }
}
