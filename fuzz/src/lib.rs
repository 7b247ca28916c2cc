//! What every target does with a store that opened: list, describe, read, check deeply.

use std::ops::ControlFlow;

use hyperslab_core::{
    Array, Depth, Geometry, GeometryQuery, Node, Positions, Report, Scan, Store, Table, child_path,
    decoded_bytes, needs_elements, read_serial,
};

/// Nodes and chunks that are looked at: enough to reach every parser, few enough to stay fast.
const MOST: usize = 200;

/// Drives the whole reader. Every error is an answer.
pub fn drive(store: &dyn Store) {
    let mut pending = vec!["/".to_owned()];
    let mut seen = 0;
    while let Some(path) = pending.pop() {
        seen += 1;
        if seen > MOST {
            break;
        }
        match store.node(&path) {
            Ok(Node::Group(attributes)) => {
                let _ = attributes.to_json();
                let children = store.children(&path).unwrap_or_default();
                pending.extend(children.iter().take(MOST).map(|child| child_path(&path, child)));
            }
            Ok(Node::Array(array)) => read(array.as_ref()),
            Ok(Node::Table(table)) => scan(table.as_ref()),
            Ok(Node::Geometry(geometry)) => query(geometry.as_ref()),
            _ => {}
        }
    }
    let _ = store.details();
    let _ = store.verify(Depth::Deep, &mut Report::default());
}

fn read(array: &dyn Array) {
    let schema = array.schema();
    let _ = schema.attributes.to_json();
    let mut chunks = 0;
    let _ = array.visit_chunks(&mut |chunk, reference| {
        let _ = array.locate(std::slice::from_ref(&chunk));
        if !needs_elements(array)
            && let Ok(size) = decoded_bytes(array, &chunk, &reference)
            && size < 1 << 24
            && let Ok(stored) = hyperslab_core::fetch(array, &reference.spans().collect::<Vec<_>>())
        {
            let _ = array.decode(&chunk, &reference, &stored, &mut vec![0; size]);
        }
        chunks += 1;
        Ok(if chunks < MOST { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    });
    let cells = hyperslab_core::product(schema.shape()).unwrap_or(u64::MAX);
    if cells < 1 << 16 && schema.bytes().is_none_or(|bytes| bytes < 1 << 20) {
        let _ = read_serial(array, Positions::whole(schema.shape()));
    }
}

fn scan(table: &dyn Table) {
    let _ = table.rows();
    if let Ok(batches) = table.scan(&Scan::default()) {
        let _ = batches.take(8).count();
    }
}

fn query(geometry: &dyn Geometry) {
    let _ = geometry.levels();
    let _ = geometry.query(&GeometryQuery::default());
}
