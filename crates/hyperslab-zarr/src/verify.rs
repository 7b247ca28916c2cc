//! Checks a store: documents, object names, shard indexes; in a deep check, every chunk.

use std::ops::ControlFlow;

use bytes::Bytes;
use hyperslab_core::{
    Array, ChunkCoord, ChunkRef, Depth, Error, Report, Result, Store, check_chunk, check_chunks_in_order,
    child_path,
};

use crate::array::ZarrArray;
use crate::store::ZarrStore;

/// The maximum nesting depth of groups; a deeper store is hostile.
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

/// The result of walking the objects.
#[derive(Default)]
struct Seen {
    chunks: u64,
    outside: u64,
    failures: Vec<(&'static str, Error)>,
}

/// An item found by the walk over the objects, in order.
enum Met {
    Chunk(ChunkCoord, ChunkRef),
    /// A shard whose index cannot be read.
    Shard(Error),
}

fn check_objects(array: &ZarrArray, depth: Depth, seen: &mut Seen) -> Result<()> {
    let (mut chunks, mut outside) = (0, 0);
    let walk = |put: &mut dyn FnMut(Met)| {
        array.visit_objects(&mut |coord, size| {
            // Check each object separately, so that a damaged one does not affect the others.
            if !array.object_in_grid(&coord) {
                outside += 1;
                return Ok(true);
            }
            if array.is_assembled() {
                return Ok(true);
            }
            let outcome = array.visit_object(&coord, size, &mut |chunk, reference| {
                chunks += 1;
                put(Met::Chunk(chunk, reference));
                Ok(ControlFlow::Continue(()))
            });
            if let Err(error) = outcome {
                put(Met::Shard(error));
            }
            Ok(true)
        })?;
        if !array.is_assembled() {
            return Ok(());
        }
        array.visit_chunks(&mut |chunk, reference| {
            chunks += 1;
            put(Met::Chunk(chunk, reference));
            Ok(ControlFlow::Continue(()))
        })
    };
    let check = |met, stored| match met {
        Met::Chunk(chunk, reference) => {
            check_stored(array, &chunk, &reference, depth, stored).err().map(|error| ("chunk", error))
        }
        Met::Shard(error) => Some(("shard_index", error)),
    };
    let walked = check_chunks_in_order(
        array,
        walk,
        |met| match met {
            Met::Chunk(_, reference) if depth == Depth::Deep => Some(reference),
            _ => None,
        },
        check,
        |failure| seen.failures.extend(failure),
    );
    (seen.chunks, seen.outside) = (chunks, outside);
    walked
}

fn check_stored(
    array: &ZarrArray,
    chunk: &ChunkCoord,
    reference: &ChunkRef,
    depth: Depth,
    stored: Option<Vec<Bytes>>,
) -> Result<()> {
    array.check_size(reference)?;
    if depth == Depth::Quick {
        return Ok(());
    }
    check_chunk(array, chunk, reference, stored)
}
