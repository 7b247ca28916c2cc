//! A handmade store with everything that common writers do not produce: lists of rows, rows in two fragments and in
//! none, manifests of all modes, links of every family policy, negative chunks.

use std::path::Path;

use hyperslab_core::{
    ArraySpec, Attribute, Attributes, ChunkCoord, DType, Depth, Elements, Geometry, GeometryQuery, Grid,
    Report, Sink, Store,
};
use hyperslab_zarr::ZarrSink;
use hyperslab_zvf::{Fragment, encode_fragments};
use serde_json::{Value, json};

fn attributes(object: Value) -> Attributes {
    object
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.as_str(), Attribute::Json(value.clone())))
        .collect()
}

/// A chunk-grid array with cells at chunks -1 and 0 of one axis.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn cells(sink: &mut dyn Sink, path: &str, own: Value, cells: [Option<Vec<u8>>; 2]) {
    let names: Vec<&str> = ["-1", "0"]
        .into_iter()
        .zip(&cells)
        .filter(|(_, cell)| cell.is_some())
        .map(|(name, _)| name)
        .collect();
    let mut spec = ArraySpec::new(DType::Bytes, Grid::new(&[2], &[1]).unwrap());
    spec.attributes = attributes(own);
    spec.attributes.set("nonempty_chunks", Attribute::Json(json!(names)));
    spec.attributes.set("chunk_grid_origin", Attribute::Json(json!([-1])));
    let array = sink.array(path, &spec).unwrap();
    for (at, cell) in cells.into_iter().enumerate() {
        let chunk: ChunkCoord = [at as u64].as_slice().into();
        if let Some(cell) = cell {
            array.write(&chunk, array.encode(&chunk, &Elements::variable([cell])).unwrap()).unwrap();
        }
    }
}

fn words(words: &[i64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn floats(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|float| float.to_le_bytes()).collect()
}

/// One axis, chunks of 10: rows at -9, -8, -7 in chunk -1 and at 1, 2, 3, 4 in chunk 0.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn make(target: &Path, kind: &str, directed: bool, policy: &str, bad_manifest: bool) {
    let mut sink: Box<dyn Sink> = Box::new(ZarrSink::create(target, Default::default()).unwrap());
    let root = json!({
        "zarr_vectors": {"zv_version": "0.9.2", "chunk_shape": [10.0], "bounds": [[-9.0], [4.0]], "geometry_types": [kind],
            "links_convention": "explicit"},
        "multiscales": [{"axes": [{"name": "x", "type": "space"}], "datasets": [{"path": "0"}]}],
    });
    sink.group("/", &attributes(root)).unwrap();
    sink.group(
        "/0",
        &attributes(
            json!({"zarr_vectors_level": {"level": 0, "vertex_count": 7, "arrays_present": ["vertices"]}}),
        ),
    )
    .unwrap();
    let vertices = [Some(floats(&[-9.0, -8.0, -7.0])), Some(floats(&[1.0, 2.0, 3.0, 4.0]))];
    cells(&mut *sink, "/0/vertices", json!({"zv_array": "vertices", "dtype": "float32"}), vertices);
    // Chunk -1: a list in reverse order, and a range that shares a row. Chunk 0: row 3 is in no fragment.
    let low =
        encode_fragments(&[Fragment::Rows(vec![2, 0]), Fragment::Range { start: 0, count: 2 }], 3).unwrap();
    let high = encode_fragments(
        &[
            Fragment::Range { start: 0, count: 1 },
            Fragment::Range { start: 1, count: 0 },
            Fragment::Rows(vec![2, 1]),
        ],
        4,
    )
    .unwrap();
    cells(
        &mut *sink,
        "/0/vertex_fragments",
        json!({"encoding": "fragment_index_v1"}),
        [Some(low), Some(high)],
    );
    // Object 5: a single fragment and a run. Object -3: a list with the same fragment twice. Object 9 is absent.
    let block = |chunk: i64, mode: u8, rest: &[u8]| [words(&[chunk]), vec![mode], rest.to_vec()].concat();
    let run_end = if bad_manifest { 4 } else { 3 };
    let five = [2_u32.to_le_bytes().to_vec(), block(-1, 0, &words(&[0])), block(0, 1, &words(&[0, run_end]))]
        .concat();
    let three =
        [1_u32.to_le_bytes().to_vec(), block(0, 2, &[2_u32.to_le_bytes().to_vec(), words(&[2, 2])].concat())]
            .concat();
    let index = json!({"layout": "vlen_manifests_v2", "num_objects": 3, "num_present": 2, "sid_ndim": 1});
    sink.group("/0/object_index", &attributes(index)).unwrap();
    let first: ChunkCoord = [0].as_slice().into();
    let array =
        sink.array("/0/object_index/manifests", &ArraySpec::new(DType::Bytes, Grid::single(&[3]))).unwrap();
    array
        .write(&first, array.encode(&first, &Elements::variable([three, five, vec![0; 4]])).unwrap())
        .unwrap();
    let array =
        sink.array("/0/object_index/object_ids", &ArraySpec::new(DType::Int64, Grid::single(&[3]))).unwrap();
    array.write(&first, array.encode(&first, &Elements::fixed(words(&[-3, 5, 9]))).unwrap()).unwrap();
    // One link inside chunk 0 (from row 2 to row 0), one from chunk 0 (row 1) back to chunk -1 (row 2).
    let family = json!({"zv_array": "links_family", "link_width": 2, "directed": directed, "store": policy, "sid_ndim": 1, "num_links": 2});
    sink.group("/0/links", &Attributes::new()).unwrap();
    sink.group("/0/links/0", &attributes(family)).unwrap();
    cells(
        &mut *sink,
        "/0/links/0/0",
        json!({"dtype": "int64", "has_perm": false}),
        [None, Some(words(&[2, 0]))],
    );
    let one_range = encode_fragments(&[Fragment::Range { start: 0, count: 1 }], 1).unwrap();
    cells(&mut *sink, "/0/link_fragments", json!({"encoding": "fragment_index_v1"}), [None, Some(one_range)]);
    let perm = !directed || policy == "duplicate";
    let record = |code: i64, ends: [i64; 2]| {
        if perm { words(&[1, 0, code, ends[0], ends[1]]) } else { words(&[1, 0, ends[0], ends[1]]) }
    };
    if directed && policy == "canonical" {
        cells(
            &mut *sink,
            "/0/links/0/-1",
            json!({"dtype": "int64", "has_perm": perm}),
            [None, Some(record(0, [1, 2]))],
        );
    } else {
        cells(
            &mut *sink,
            "/0/links/0/+1",
            json!({"dtype": "int64", "has_perm": perm}),
            [Some(record(1, [2, 1])), None],
        );
    }
    if policy == "duplicate" {
        cells(
            &mut *sink,
            "/0/links/0/-1",
            json!({"dtype": "int64", "has_perm": perm}),
            [None, Some(record(0, [1, 2]))],
        );
    }
    sink.commit().unwrap();
}

#[test]
fn lists_shared_rows_and_all_manifest_modes_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (directed, policy)) in
        [(false, "canonical"), (true, "canonical"), (false, "duplicate"), (true, "duplicate")]
            .into_iter()
            .enumerate()
    {
        let target = folder.path().join(number.to_string());
        make(&target, "graph", directed, policy, false);
        let store = hyperslab_zvf::open_path(&target).unwrap();
        let geometry = store.geometry().unwrap();
        let all = geometry.query(&GeometryQuery::default()).unwrap();
        // In fragment order, each row once. Row 3 of chunk 0 is in no fragment.
        assert_eq!(all.vertices.to_json(), json!([[-7.0], [-9.0], [-8.0], [1.0], [3.0], [2.0]]));
        let mut links: Vec<Vec<u64>> = serde_json::from_value(all.links.unwrap().to_json()).unwrap();
        links.sort();
        assert_eq!(links, [[4, 3], [5, 0]], "{directed} {policy}");
        assert_eq!(all.objects, [(-3, vec![4, 5, 4, 5]), (5, vec![0, 1, 3, 4, 5])]);
        let one = geometry.query(&GeometryQuery { objects: vec![5, 9], ..Default::default() }).unwrap();
        assert_eq!(one.vertices.to_json(), json!([[-7.0], [-9.0], [1.0], [3.0], [2.0]]));
        assert_eq!(one.objects, [(5, vec![0, 1, 2, 3, 4]), (9, vec![])]);
        let region = Some([vec![-7.0], vec![2.5]]);
        let part = geometry.query(&GeometryQuery { objects: vec![5], region, ..Default::default() }).unwrap();
        assert_eq!(part.vertices.to_json(), json!([[-7.0], [1.0], [2.0]]));
        assert_eq!(part.links.unwrap().to_json(), json!([[2, 0]]), "{directed} {policy}");
        let mut report = Report::default();
        store.verify(Depth::Deep, &mut report).unwrap();
        assert!(report.ok(), "{report:?}");
    }
}

#[test]
fn lines_are_joined_where_the_object_joins_them() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("lines");
    make(&target, "polyline", false, "canonical", false);
    let geometry = hyperslab_zvf::open_path(&target).unwrap().geometry().unwrap();
    let query = GeometryQuery { objects: vec![5], ..Default::default() };
    assert_eq!(
        geometry.query(&query).unwrap().links.unwrap().to_json(),
        json!([[0, 1], [1, 2], [2, 3], [3, 4]])
    );
    // Restricted to 0 to 2.5, the line is interrupted: 1, then 2 with 3 missing between them.
    let region = Some([vec![0.0], vec![2.5]]);
    let part = geometry
        .query(&GeometryQuery { objects: vec![5], region: region.clone(), ..Default::default() })
        .unwrap();
    assert_eq!((part.vertices.to_json(), part.links.unwrap().shape[0]), (json!([[1.0], [2.0]]), 0));
    let part = geometry.query(&GeometryQuery { region, ..Default::default() }).unwrap();
    assert_eq!((part.vertices.to_json(), part.links.unwrap().shape[0]), (json!([[1.0], [2.0]]), 0));
}

#[test]
fn a_manifest_out_of_range_is_rejected_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("bad");
    make(&target, "graph", false, "canonical", true);
    let store = hyperslab_zvf::open_path(&target).unwrap();
    let geometry = store.geometry().unwrap();
    let error = geometry.query(&GeometryQuery { objects: vec![5], ..Default::default() }).unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("object 5 names fragment 3 of 3"), "{error}");
    // The other object is not affected.
    geometry.query(&GeometryQuery { objects: vec![-3], ..Default::default() }).unwrap();
    let mut report = Report::default();
    store.verify(Depth::Deep, &mut report).unwrap();
    assert!(!report.ok());
}
