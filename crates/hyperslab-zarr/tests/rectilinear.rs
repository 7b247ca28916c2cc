//! Rectilinear grids: values, and the number of requests for chunks that a document claims.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::ControlFlow;
use std::sync::Arc;

use hyperslab_core::{
    Array, ChunkCoord, Depth, MemoryStorage, Node, Positions, Region, Report, Store, read_serial,
};
use hyperslab_testing::{LoggedStorage, RequestLog};

/// Opens an array of bytes with these chunks and objects.
fn opened(
    shape: &str,
    chunk_shapes: &str,
    objects: Vec<(String, Vec<u8>)>,
) -> (impl Store + use<>, Arc<dyn Array>, RequestLog) {
    let document = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": {shape}, "data_type": "uint8", "fill_value": 9,
        "chunk_grid": {{"name": "rectilinear", "configuration": {{"kind": "inline", "chunk_shapes": {chunk_shapes}}}}},
        "chunk_key_encoding": {{"name": "default", "configuration": {{"separator": "/"}}}},
        "codecs": [{{"name": "bytes"}}]}}"#
    );
    let document = ("zarr.json".to_owned(), document.into_bytes());
    let storage = LoggedStorage::new(MemoryStorage::new("r.zarr", objects.into_iter().chain([document])));
    let log = storage.log();
    let store = hyperslab_zarr::open(Arc::new(storage)).unwrap();
    let Node::Array(array) = store.node("/").unwrap() else { unreachable!("an array") };
    let _ = log.take();
    (store, array, log)
}

/// The chunks that a visit finds, each of which must be located in the same way.
fn visited(array: &dyn Array) -> Vec<ChunkCoord> {
    let mut found = Vec::new();
    array
        .visit_chunks(&mut |chunk, reference| {
            assert_eq!(array.locate(std::slice::from_ref(&chunk)).unwrap(), [Some(reference)]);
            found.push(chunk);
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    found
}

#[test]
fn values_of_stored_chunks_are_in_place() {
    // Rows 2 + 3 + 1, columns 1 + 1 + 4; the chunk of the last row and the first column is missing.
    let (rows, columns) = ([2_u64, 3, 1], [1_u64, 1, 4]);
    let mut objects = Vec::new();
    let mut expected = vec![9; 36];
    for (i, row) in rows.iter().enumerate() {
        for (j, column) in columns.iter().enumerate() {
            let (top, left) = (rows[..i].iter().sum::<u64>(), columns[..j].iter().sum::<u64>());
            let cells = (top..top + row).flat_map(|y| (left..left + column).map(move |x| y * 6 + x));
            if (i, j) != (2, 0) {
                cells.clone().for_each(|cell| expected[cell as usize] = cell as u8 + 100);
                objects.push((format!("c/{i}/{j}"), cells.map(|cell| cell as u8 + 100).collect()));
            }
        }
    }
    let (store, array, _) = opened("[6, 6]", "[[2, 3, 1], [[1, 2], 4]]", objects);
    let values = read_serial(&*array, Positions::whole(&[6, 6])).unwrap();
    assert_eq!(values.as_slice::<u8>().unwrap(), expected);
    // Assembled chunks have 3 × 4 cells.
    let found: Vec<Vec<u64>> = visited(&*array).iter().map(|chunk| chunk.to_vec()).collect();
    assert_eq!(found, [[0, 0], [0, 1], [1, 0], [1, 1]]);
    let mut report = Report::default();
    store.verify(Depth::Deep, &mut report).unwrap();
    assert!(report.ok(), "{:?}", report.findings);
}

/// A document can claim 2^32 stored chunks in 2^16 assembled ones. Requests are in proportion to the objects that exist.
#[test]
fn chunks_that_do_not_exist_are_not_requested() {
    let large = 1_u64 << 32;
    let shapes = format!("[[65535, [1, {large}]]]");
    let stored = [5_u64, 6, 70_000, 4_000_000_000];
    let objects = stored.iter().map(|chunk| (format!("c/{chunk}"), vec![7])).collect();
    let (store, array, log) = opened(&format!("[{large}]"), &shapes, objects);
    let chunks: Vec<ChunkCoord> = (0..256).map(|chunk| [chunk * 200].as_slice().into()).collect();
    let located = array.locate(&chunks).unwrap();
    assert!(located.iter().all(Option::is_none));
    assert!(log.take().len() < 20);
    let asked: Vec<ChunkCoord> = [1_u64, 2, 1].iter().map(|chunk| [*chunk].as_slice().into()).collect();
    let layers = array.locate(&asked).unwrap();
    let layers: Vec<_> = layers.iter().map(|found| found.as_ref().map(|found| found.layers.len())).collect();
    assert_eq!(layers, [Some(2), Some(1), Some(2)]);
    let _ = log.take();
    let mut chunks = 0;
    array
        .visit_chunks(&mut |_, _| {
            chunks += 1;
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    assert_eq!(chunks, 3);
    let mut report = Report::default();
    store.verify(Depth::Deep, &mut report).unwrap();
    assert!(report.ok(), "{:?}", report.findings);
    assert!(log.take().len() < 60);
    let values = read_serial(&*array, Positions::region(&Region::new(&[65_538], &[4]))).unwrap();
    assert_eq!(values.as_slice::<u8>().unwrap(), [9, 7, 7, 9]);
}
