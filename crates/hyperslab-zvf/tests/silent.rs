//! Cases where the reference implementation silently returns wrong results.

use std::path::{Path, PathBuf};

use hyperslab_core::{
    DType, Depth, Elements, Error, Geometry, GeometryData, GeometryQuery, Report, Store, Values,
};
use hyperslab_zvf::{GeometryKind, WriteOptions};

/// Writes points in chunks of 10 along one axis, uncompressed, each linked to the next.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn written(folder: &Path) -> PathBuf {
    let target = folder.join("graph");
    let bytes: Vec<u8> = (0..40).flat_map(|i| (i as f32).to_ne_bytes()).collect();
    let mut data =
        GeometryData::points(Values::new(DType::Float32, &[40, 1], Elements::fixed(bytes.clone())).unwrap());
    data.attributes =
        vec![("v".to_owned(), Values::new(DType::Float32, &[40], Elements::fixed(bytes)).unwrap())];
    let links: Vec<u8> = (0..39_u64).flat_map(|i| [i, i + 1]).flat_map(u64::to_ne_bytes).collect();
    data.links = Some(Values::new(DType::UInt64, &[39, 2], Elements::fixed(links)).unwrap());
    data.objects = vec![(5, (0..20).collect()), (9, (20..40).collect())];
    let mut options = WriteOptions::new(vec![10.0]);
    options.compression = None;
    hyperslab_zvf::write(&target, GeometryKind::Graph, &data, &options).unwrap();
    target
}

fn ask(path: &Path, query: &GeometryQuery) -> Result<GeometryData, Error> {
    hyperslab_zvf::open_path(path)?.geometry()?.query(query)
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn is_well(path: &Path) -> bool {
    let mut report = Report::default();
    hyperslab_zvf::open_path(path).unwrap().verify(Depth::Quick, &mut report).unwrap();
    report.ok()
}

/// Replaces the payload of an uncompressed cell: a count of one, a length, the bytes.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn put_cell(path: &Path, payload: &[u8]) {
    assert!(path.exists(), "{}", path.display());
    let mut bytes = vec![1, 0, 0, 0];
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend(payload);
    std::fs::write(path, bytes).unwrap();
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn edit(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replacen(from, to, 1)).unwrap();
}

/// The reference returns the values of the next chunk for the missing rows.
#[test]
fn short_attribute_cells_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let store = written(folder.path());
    assert!(is_well(&store));
    put_cell(&store.join("0/vertex_attributes/v/c/1"), &[0; 4 * 9]);
    let error = ask(&store, &GeometryQuery::default()).unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("36 bytes"), "{error}");
    assert!(!is_well(&store));
    // Queries that do not need those rows succeed.
    let region = Some([vec![20.0], vec![39.0]]);
    assert_eq!(ask(&store, &GeometryQuery { region, ..Default::default() }).unwrap().vertices.shape[0], 20);
}

/// The reference returns an edge to row 1,000,000 of 20.
#[test]
fn links_to_missing_rows_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let store = written(folder.path());
    let row = |a: i64, b: i64| [a.to_le_bytes(), b.to_le_bytes()].concat();
    let cell = [row(0, 1_000_000), (1..9).flat_map(|i| row(i, i + 1)).collect()].concat();
    put_cell(&store.join("0/links/0/0/c/0"), &cell);
    let error = ask(&store, &GeometryQuery::default()).unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("row 1000000"), "{error}");
    assert!(!is_well(&store));
}

/// The reference reads every object as empty.
#[test]
fn an_object_index_needs_its_layout_but_not_its_count() {
    let folder = tempfile::tempdir().unwrap();
    let store = written(folder.path());
    let document = store.join("0/object_index/zarr.json");
    edit(&document, "\"num_objects\"", "\"some_objects\"");
    let one = GeometryQuery { objects: vec![9], ..Default::default() };
    assert_eq!(ask(&store, &one).unwrap().vertices.shape[0], 20);
    edit(&document, "\"layout\"", "\"shape_of_it\"");
    assert!(ask(&store, &one).unwrap_err().is_unsupported());
}

/// The reference reads the level as empty.
#[test]
fn unlisted_chunks_are_found_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = written(folder.path());
    edit(&store.join("0/vertices/zarr.json"), "nonempty_chunks", "chunks");
    assert_eq!(ask(&store, &GeometryQuery::default()).unwrap().vertices.shape[0], 40);
    assert!(!is_well(&store));
}

/// The reference clips ranges, and counts negative rows from the end.
#[test]
fn fragments_past_the_rows_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    for (start, count) in [(0_i64, 11_i64), (-3, 3), (5, 1 << 40)] {
        let store = written(folder.path());
        let mut blob = b"GFVZ\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0".to_vec();
        blob.extend([start.to_le_bytes(), count.to_le_bytes()].concat());
        blob.extend([0; 4]);
        put_cell(&store.join("0/vertex_fragments/c/2"), &blob);
        let error = ask(&store, &GeometryQuery { objects: vec![9], ..Default::default() }).unwrap_err();
        assert!(error.is_corrupt(), "{error}");
        assert!(!is_well(&store));
        std::fs::remove_dir_all(store).unwrap();
    }
}

/// The reference's boxes use bin numbers as fragment numbers, which loses up to 88 % of the points, also at coarser
/// levels.
#[test]
fn boxes_over_points_with_ids_lose_nothing() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/stores/points_ids");
    let all = ask(&path, &GeometryQuery::default()).unwrap();
    let positions: Vec<[f32; 2]> = all.vertices.as_slice::<f32>().unwrap().as_chunks::<2>().0.to_vec();
    for corner in -4..10_i32 {
        let (low, high) = (f64::from(corner) * 10.0, f64::from(corner) * 10.0 + 23.0);
        let region = Some([vec![low; 2], vec![high; 2]]);
        let found = ask(&path, &GeometryQuery { region, ..Default::default() }).unwrap().vertices.shape[0];
        let inside = |at: &&[f32; 2]| at.iter().all(|at| (low..=high).contains(&f64::from(*at)));
        assert_eq!(found, positions.iter().filter(inside).count() as u64, "{low}");
    }
}

/// The reference never finds vertices that are stored in the wrong chunk by a box, and reports no problem.
#[test]
fn vertices_outside_their_chunk_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let store = written(folder.path());
    let rows: Vec<u8> = (0..10).flat_map(|i| (i as f32 + 100.0).to_le_bytes()).collect();
    put_cell(&store.join("0/vertices/c/0"), &rows);
    assert!(!is_well(&store));
}
