//! The bytes that a read requests: the range of one inner chunk, the objects of a box, nothing for chunks that were
//! never written.

use std::sync::Arc;

use hyperslab_core::{
    Array, ArraySpec, ChunkCoord, DType, Elements, Fill, Filter, Grid, LocalStorage, Node, Positions, Region,
    Sink, Store, read_serial,
};
use hyperslab_testing::{LoggedStorage, Request, RequestLog};
use hyperslab_zarr::{WriteOptions, ZarrSink};

const SHAPE: [u64; 2] = [16, 16];
const CHUNK: [u64; 2] = [4, 4];

/// Writes 16 × 16 numbers in chunks of 4 × 4, without the last row of chunks, and opens them with a request log.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn opened(folder: &std::path::Path, shard: Option<u64>) -> (Arc<dyn Array>, RequestLog) {
    let target = folder.join("a.zarr");
    let options = WriteOptions { shard_shape: shard.map(|each| vec![each]), ..Default::default() };
    let mut sink: Box<dyn Sink> = Box::new(ZarrSink::create(&target, options).unwrap());
    let mut spec = ArraySpec::new(DType::Int32, Grid::new(&SHAPE, &CHUNK).unwrap());
    spec.fill = Fill::Element(Elements::fixed((-7_i32).to_ne_bytes().to_vec()));
    spec.filters = vec![Filter::new("zstd").with("level", 1)];
    let array = sink.array("/t", &spec).unwrap();
    for at in 0..12_u64 {
        let chunk: ChunkCoord = [at / 4, at % 4].as_slice().into();
        let cells = |row: i32| {
            (0..4).map(move |column| (at / 4) as i32 * 64 + row * 16 + (at % 4) as i32 * 4 + column)
        };
        let bytes: Vec<u8> = (0..4).flat_map(cells).flat_map(i32::to_ne_bytes).collect();
        array.write(&chunk, array.encode(&chunk, &Elements::fixed(bytes)).unwrap()).unwrap();
    }
    sink.commit().unwrap();
    let directory = LoggedStorage::new(LocalStorage::new(&target));
    let log = directory.log();
    let store = hyperslab_zarr::open(Arc::new(directory)).unwrap();
    let Node::Array(array) = store.node("/t").unwrap() else { unreachable!("an array") };
    let _ = log.take();
    (array, log)
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn read(array: &dyn Array, start: [u64; 2], shape: [u64; 2]) -> Vec<i32> {
    let values = read_serial(array, Positions::region(&Region::new(&start, &shape))).unwrap();
    values.as_slice::<i32>().unwrap().to_vec()
}

#[test]
fn a_box_touches_only_its_objects() {
    let folder = tempfile::tempdir().unwrap();
    let (array, log) = opened(folder.path(), None);
    assert_eq!(read(&*array, [3, 3], [2, 2]), [51, 52, 67, 68]);
    assert_eq!(log.objects(), ["t/c/0/0", "t/c/0/1", "t/c/1/0", "t/c/1/1"]);
    assert_eq!(read(&*array, [8, 12], [1, 1]), [140]);
    assert_eq!(log.objects(), ["t/c/2/3"]);
}

#[test]
fn missing_chunks_are_filled_without_requests() {
    for shard in [None, Some(8)] {
        let folder = tempfile::tempdir().unwrap();
        let (array, log) = opened(folder.path(), shard);
        assert_eq!(read(&*array, [12, 0], [1, 2]), [-7, -7]);
        // For a shard, only its index, which is at the end.
        for request in log.take() {
            if let Request::Read(_, range) = request {
                assert_eq!(range.end - range.start, 4 * 16 + 4);
            }
        }
    }
}

#[test]
fn one_inner_chunk_is_read_by_its_range() {
    let folder = tempfile::tempdir().unwrap();
    let (array, log) = opened(folder.path(), Some(8));
    let shard = std::fs::metadata(folder.path().join("a.zarr/t/c/0/1")).unwrap().len();
    assert_eq!(read(&*array, [5, 9], [1, 2]), [89, 90]);
    let reads: Vec<_> = log
        .take()
        .into_iter()
        .filter_map(|request| if let Request::Read(key, range) = request { Some((key, range)) } else { None })
        .collect();
    let index = 4 * 16 + 4;
    assert_eq!(reads[0], ("t/c/0/1".to_owned(), shard - index..shard));
    let [_, (key, range)] = reads.as_slice() else { panic!("{reads:?}") };
    assert_eq!(key, "t/c/0/1");
    assert!(
        range.end <= shard - index && range.end - range.start < (shard - index) / 2,
        "{range:?} of {shard}"
    );
    // The index is cached: another chunk of the shard takes one request.
    assert_eq!(read(&*array, [5, 13], [1, 1]), [93]);
    assert_eq!(log.take().iter().filter(|request| matches!(request, Request::Read(..))).count(), 1);
}
