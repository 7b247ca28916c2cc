//! Is a store whole? Documents, object names, shard indexes; deep, every chunk.

use std::ops::ControlFlow;

use hyperslab_core::{
    Array, ChunkCoord, ChunkRef, Depth, Error, Report, Result, Store, child_path, decoded_bytes,
    needs_elements,
};

use crate::array::ZarrArray;
use crate::store::ZarrStore;

/// Groups in groups, at most: deeper, the store is hostile.
const MAX_DEPTH: usize = 64;

/// Checks a node and everything below it.
pub(crate) fn node(store: &ZarrStore, path: &str, depth: Depth, report: &mut Report, level: usize) {
    let document = store.document(&path[1..]);
    match document {
        Err(error) => {
            report.failure("metadata", &error);
            report.at_node(path);
        }
        Ok(None) => {
            report.error("metadata", "no document");
            report.at_node(path);
        }
        Ok(Some(document)) if document.is_array() => match store.array(path) {
            Ok(array) => check_array(&array, path, depth, report),
            Err(error) => {
                report.failure("metadata", &error);
                report.at_node(path);
            }
        },
        Ok(Some(_)) => group(store, path, depth, report, level),
    }
}

fn group(store: &ZarrStore, path: &str, depth: Depth, report: &mut Report, level: usize) {
    if let Err(error) = store.group(path) {
        report.failure("metadata", &error);
        report.at_node(path);
    }
    if level >= MAX_DEPTH {
        report.error("nesting", format!("groups nested deeper than {MAX_DEPTH}"));
        report.at_node(path);
        return;
    }
    match store.children(path) {
        Ok(names) => {
            for name in names {
                node(store, &child_path(path, &name), depth, report, level + 1);
            }
        }
        Err(error) => {
            report.failure("metadata", &error);
            report.at_node(path);
        }
    }
}

fn check_array(array: &ZarrArray, path: &str, depth: Depth, report: &mut Report) {
    let mut seen = Seen::default();
    if let Err(error) = check_objects(array, depth, &mut seen) {
        report.failure("objects", &error);
        report.at_node(path);
    }
    for (check, error) in &seen.failures {
        report.failure(check, error);
        report.at_node(path);
    }
    if seen.outside > 0 {
        report.warning("object_names", format!("{} objects are outside the array's grid", seen.outside));
        report.at_node(path);
    }
    if seen.failures.is_empty() {
        report.passed("chunks", format!("{} stored chunks", seen.chunks));
        report.at_node(path);
    }
}

/// What a walk over the objects saw.
#[derive(Default)]
struct Seen {
    chunks: u64,
    outside: u64,
    failures: Vec<(&'static str, Error)>,
}

fn check_objects(array: &ZarrArray, depth: Depth, seen: &mut Seen) -> Result<()> {
    array.visit_objects(&mut |coord| {
        // Each object on its own: a damaged one does not cost the others.
        if !array.object_in_grid(&coord) {
            seen.outside += 1;
            return Ok(true);
        }
        let mut failures = Vec::new();
        let mut chunks = 0;
        let outcome = array.visit_object(&coord, &mut |chunk, reference| {
            chunks += 1;
            if let Err(error) = check_chunk(array, &chunk, &reference, depth) {
                failures.push(("chunk", error));
            }
            Ok(ControlFlow::Continue(()))
        });
        seen.chunks += chunks;
        if let Err(error) = outcome {
            failures.push(("shard_index", error));
        }
        seen.failures.append(&mut failures);
        Ok(true)
    })
}

fn check_chunk(array: &ZarrArray, chunk: &ChunkCoord, reference: &ChunkRef, depth: Depth) -> Result<()> {
    array.check_size(reference)?;
    if depth == Depth::Quick {
        return Ok(());
    }
    let stored = array.fetch(&reference.spans().collect::<Vec<_>>())?;
    if needs_elements(array) {
        return array.decode_elements(chunk, reference, &stored).map(|_| ());
    }
    let bytes = decoded_bytes(array, chunk, reference)?;
    array.decode(chunk, reference, &stored, &mut vec![0; bytes])
}
