//! Conversions of arrays, tables and geometries to Zarr Vectors stores, and of tables to files of rows.

#![cfg(all(feature = "zvf", feature = "tiledb", feature = "arrow"))]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use hyperslab::combine::{AppendOptions, append_along};
use hyperslab::convert::{
    ConvertOptions, ConvertReport, GeometryOptions, Progress, convert, convert_to_rows,
};
use hyperslab::salvage::salvage;
use hyperslab::{
    ArraySpec, CreateOptions, DType, Depth, Elements, Format, GeometryQuery, Grid, Result, create,
};

const POINTS: u64 = 5000;
const OBJECTS: u64 = 40;

/// Integers far below 2^24, so that 32-bit floats are exact.
fn place(point: u64) -> [f32; 3] {
    [(point * 37 % 101) as f32, (point * 53 % 97) as f32, (point % 89) as f32]
}

fn bytes<T: bytemuck::NoUninit>(numbers: &[T]) -> Elements {
    Elements::fixed(bytemuck::cast_slice(numbers).to_vec())
}

/// An `.npz` file of these arrays.
fn arrays(folder: &Path, name: &str, parts: Vec<(&str, DType, Vec<u64>, Elements)>) -> PathBuf {
    let path = folder.join(name);
    let mut sink = create(&path, Format::NPZ, &CreateOptions::default().with_replace(true)).unwrap();
    let mut sinks = Vec::new();
    for (name, dtype, shape, elements) in parts {
        let spec = ArraySpec::new(dtype, Grid::new(&shape, &shape).unwrap());
        sinks.push((sink.array(&format!("/{name}"), &spec).unwrap(), elements));
    }
    for (array, elements) in sinks {
        let chunk = array.grid().coord(0);
        array.write(&chunk, array.encode(&chunk, &elements).unwrap()).unwrap();
    }
    sink.commit().unwrap();
    path
}

fn points(folder: &Path) -> PathBuf {
    let positions: Vec<f32> = (0..POINTS).flat_map(place).collect();
    let ids: Vec<i32> = (0..POINTS).map(|point| (point % OBJECTS) as i32 - 1).collect();
    let weights: Vec<f64> = (0..POINTS).map(|point| point as f64 / 2.0).collect();
    let parts = vec![
        ("vertices", DType::Float32, vec![POINTS, 3], bytes(&positions)),
        ("object_id", DType::Int32, vec![POINTS], bytes(&ids)),
        ("weight", DType::Float64, vec![POINTS], bytes(&weights)),
        ("junk", DType::UInt8, vec![7], bytes(&[0_u8; 7])),
    ];
    arrays(folder, "points.npz", parts)
}

fn to(source: &Path, target: &Path, options: &ConvertOptions) -> Result<ConvertReport> {
    convert(&hyperslab::open(source)?, target, Format::ZVF, options, &Progress::default())
}

fn geometry(kind: Option<&str>, levels: usize) -> ConvertOptions {
    let geometry = GeometryOptions::default()
        .with_kind(kind.map(str::to_owned))
        .with_chunk_shape(vec![25.0])
        .with_levels(levels);
    ConvertOptions::default().with_geometry(geometry)
}

/// Position and weight of every vertex of a query result, in order.
fn found(path: &Path, query: &GeometryQuery) -> Vec<([u32; 3], u64)> {
    let store = hyperslab::open(path).unwrap();
    assert!(store.verify(Depth::Deep).unwrap().ok());
    let data = store.geometry("/").unwrap().query(query).unwrap().data;
    let weights = data.attributes.iter().find(|(name, _)| name == "weight").unwrap().1.clone();
    let weights = weights.as_slice::<f64>().unwrap().iter().map(|weight| (weight * 2.0) as u64);
    let places =
        data.vertices.as_slice::<f32>().unwrap().as_chunks::<3>().0.iter().map(|at| at.map(f32::to_bits));
    let mut rows: Vec<_> = places.zip(weights).collect();
    rows.sort_unstable();
    rows
}

fn expected(wanted: impl Fn(u64) -> bool) -> Vec<([u32; 3], u64)> {
    let mut rows: Vec<_> = (0..POINTS)
        .filter(|point| wanted(*point))
        .map(|point| (place(point).map(f32::to_bits), point))
        .collect();
    rows.sort_unstable();
    rows
}

#[test]
fn arrays_become_points_with_objects_and_attributes() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (points(folder.path()), folder.path().join("points.zv"));
    let report = to(&source, &target, &geometry(None, 1)).unwrap();
    assert_eq!((report.rows, report.bytes), (POINTS, POINTS * 12));
    assert!(report.notes().len() == 1 && report.notes()[0].contains("/junk"), "{:?}", report.notes());
    assert_eq!(found(&target, &GeometryQuery::default()), expected(|_| true));
    for id in [0, 7, 38] {
        let query = GeometryQuery { objects: vec![id], ..GeometryQuery::default() };
        assert_eq!(found(&target, &query), expected(|point| (point % OBJECTS) as i64 - 1 == id));
    }
    assert_eq!(hyperslab::open(&target).unwrap().geometry("/").unwrap().inner().levels().unwrap().len(), 2);

    // Converted again, from the geometry.
    let again = folder.path().join("again.zv");
    let report = to(&target, &again, &ConvertOptions::default()).unwrap();
    assert!(report.notes().len() == 1 && report.notes()[0].contains("coarser"), "{:?}", report.notes());
    assert_eq!(found(&again, &GeometryQuery::default()), expected(|_| true));

    assert!(to(&source, &target, &geometry(None, 0)).unwrap_err().to_string().contains("already exists"));
    let fresh = folder.path().join("fresh.zv");
    let strict = geometry(None, 0).with_strict(true);
    assert!(to(&source, &fresh, &strict).unwrap_err().to_string().contains("nothing was written"));
    let unknown = to(&source, &fresh, &geometry(Some("cube"), 0)).unwrap_err().to_string();
    assert!(unknown.contains("point_cloud"), "{unknown}");
    // An object whose vertices are not consecutive is not a line.
    assert!(to(&source, &fresh, &geometry(Some("streamline"), 0)).is_err());
    let filters = geometry(None, 0).with_filters(Vec::new());
    assert!(to(&source, &fresh, &filters).unwrap_err().is_unsupported());
    assert!(!fresh.exists());
}

#[test]
fn faces_become_a_mesh_and_invalid_ones_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let positions: Vec<f32> = (0..100).flat_map(place).collect();
    let made = |name: &str, faces: &[i64]| {
        let shape = vec![faces.len() as u64 / 3, 3];
        let parts = vec![
            ("positions", DType::Float32, vec![100, 3], bytes(&positions)),
            ("faces", DType::Int64, shape, bytes(faces)),
        ];
        arrays(folder.path(), name, parts)
    };
    let target = folder.path().join("mesh.zv");
    to(&made("mesh.npz", &[0, 1, 2, 97, 98, 99]), &target, &geometry(None, 0)).unwrap();
    let store = hyperslab::open(&target).unwrap();
    let reader = store.geometry("/").unwrap();
    assert_eq!(reader.schema().kinds, ["mesh"]);
    assert_eq!(reader.query(&GeometryQuery::default()).unwrap().links(), 2);
    for faces in [[0, 1, 100], [0, 1, -1]] {
        let target = folder.path().join("false.zv");
        let refused = to(&made("false.npz", &faces), &target, &geometry(None, 0)).unwrap_err();
        assert!(refused.to_string().contains("/faces"), "{refused}");
        assert!(!target.exists());
    }
}

#[test]
fn salvage_reports_links_to_lost_vertices() {
    let folder = tempfile::tempdir().unwrap();
    let positions: Vec<f32> = (0..100).flat_map(place).collect();
    let faces: Vec<i64> = (0..99).collect();
    let parts = vec![
        ("positions", DType::Float32, vec![100, 3], bytes(&positions)),
        ("faces", DType::Int64, vec![33, 3], bytes(&faces)),
    ];
    let (target, saved) = (folder.path().join("mesh.zv"), folder.path().join("saved.zv"));
    to(&arrays(folder.path(), "mesh.npz", parts), &target, &geometry(None, 0)).unwrap();
    let mut chunk = target.join("0/vertices/c");
    while chunk.is_dir() {
        chunk = chunk.read_dir().unwrap().next().unwrap().unwrap().path();
    }
    std::fs::remove_file(&chunk).unwrap();
    let (open, options) = (hyperslab::OpenOptions::default(), ConvertOptions::default());
    let report = salvage(&target, &saved, None, &open, &options, &Progress::default()).unwrap();
    assert!(report.lost.iter().any(|lost| lost.reason.contains("link")), "{:?}", report.lost);
}

/// Elsewhere a geometry is a group of arrays, without the documents that describe a Zarr Vectors store.
#[test]
fn points_pass_through_other_formats() {
    let folder = tempfile::tempdir().unwrap();
    let (store, zarr) = (folder.path().join("a.zv"), folder.path().join("b.zarr"));
    to(&points(folder.path()), &store, &geometry(Some("point_cloud"), 0)).unwrap();
    let options = ConvertOptions::default();
    let source = hyperslab::open(&store).unwrap();
    convert(&source, &zarr, Format::ZARR, &options, &Progress::default()).unwrap();
    let other = hyperslab::open(&zarr).unwrap();
    assert_eq!(other.format(), "zarr");
    let nodes = other.catalog().unwrap().nodes;
    let own = nodes.iter().filter_map(|node| node.attributes()?.get("zarr_vectors"));
    assert_eq!(own.count(), 0);
    let back = folder.path().join("c.zv");
    to(&zarr, &back, &options).unwrap();
    let all = GeometryQuery::default();
    assert_eq!(found(&back, &all), found(&store, &all));
}

#[test]
fn points_are_added_to_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, from: u64, to: u64| {
        let positions: Vec<f32> = (from..to).flat_map(place).collect();
        let weights: Vec<f64> = (from..to).map(|point| point as f64 / 2.0).collect();
        let parts = vec![
            ("vertices", DType::Float32, vec![to - from, 3], bytes(&positions)),
            ("weight", DType::Float64, vec![to - from], bytes(&weights)),
        ];
        arrays(folder.path(), name, parts)
    };
    let target = folder.path().join("all.zv");
    to(&file("1.npz", 0, 2000), &target, &geometry(None, 1)).unwrap();
    let more = ConvertOptions::default().with_append(true);
    assert_eq!(to(&file("2.npz", 2000, 3000), &target, &more).unwrap().rows, 1000);
    let sources = [file("3.npz", 3000, 4500), file("4.npz", 4500, POINTS)];
    let options = AppendOptions::default();
    let along = |dimension: &str, options: &AppendOptions| {
        append_along(&target, &sources, dimension, options, &Progress::default())
    };
    assert!(along("time", &options).unwrap_err().to_string().contains("vertex"));
    let report = along("vertex", &options.clone().with_dry_run(true)).unwrap();
    assert_eq!((report.before, report.after), (3000, POINTS));
    assert_eq!(found(&target, &GeometryQuery::default()).len(), 3000);
    along("vertex", &options).unwrap();
    assert_eq!(found(&target, &GeometryQuery::default()), expected(|_| true));
    let region = Some([vec![10.0; 3], vec![60.0; 3]]);
    let inside = |point: u64| place(point).iter().all(|at| (10.0..=60.0).contains(at));
    assert_eq!(found(&target, &GeometryQuery { region, ..Default::default() }), expected(inside));
    let store = hyperslab::open(&target).unwrap();
    assert!(store.verify(Depth::Deep).unwrap().ok());
    assert_eq!(store.geometry("/").unwrap().inner().levels().unwrap().len(), 2);
    // An existing store keeps its chunks, levels and kind.
    for wrong in [geometry(None, 1), geometry(Some("mesh"), 0)] {
        assert!(to(&sources[0], &target, &wrong.with_append(true)).is_err());
    }
    // Links refer to the vertices of their own source.
    let mesh = |name: &str, first: u64| {
        let positions: Vec<f32> = (first..first + 3).flat_map(place).collect();
        let parts = vec![
            ("vertices", DType::Float32, vec![3, 3], bytes(&positions)),
            ("faces", DType::Int64, vec![1, 3], bytes(&[2_i64, 0, 1])),
        ];
        arrays(folder.path(), name, parts)
    };
    let target = folder.path().join("mesh.zv");
    to(&mesh("a.npz", 0), &target, &geometry(None, 0)).unwrap();
    to(&mesh("b.npz", 3), &target, &more).unwrap();
    let store = hyperslab::open(&target).unwrap();
    let data = store.geometry("/").unwrap().query(&GeometryQuery::default()).unwrap().data;
    let positions = data.vertices.as_slice::<f32>().unwrap();
    let ends = data.links.unwrap().to_vec::<u64>().unwrap();
    let mut faces: Vec<Vec<u32>> = ends
        .chunks_exact(3)
        .map(|face| {
            face.iter().flat_map(|row| &positions[3 * *row as usize..][..3]).map(|at| *at as u32).collect()
        })
        .collect();
    let mut wanted: Vec<Vec<u32>> = [0, 3]
        .map(|first| [2, 0, 1].iter().flat_map(|row| place(first + row)).map(|at| at as u32).collect())
        .into();
    faces.sort();
    wanted.sort();
    assert_eq!(faces, wanted);
}

#[test]
fn tables_become_files_of_rows_and_points() {
    let folder = tempfile::tempdir().unwrap();
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../hyperslab-tiledb/tests/golden/sparse-hilbert/array");
    let store = hyperslab::open(&source).unwrap();
    let rows =
        store.table("/").unwrap().rows(&hyperslab::Selection::all(), None).unwrap().collect().unwrap().1.rows;
    assert!(rows > 0);
    let convert = |name: &str, options: &ConvertOptions| {
        convert_to_rows(&store, &folder.path().join(name), options, &Progress::default())
    };
    for name in ["t.csv", "t.parquet", "t.arrow", "t.json"] {
        assert_eq!(convert(name, &ConvertOptions::default()).unwrap().rows, rows as u64);
        let refused = convert(name, &ConvertOptions::default()).unwrap_err().to_string();
        assert!(refused.contains("already exists"), "{refused}");
        convert(name, &ConvertOptions::default().with_replace(true)).unwrap();
    }
    let text = std::fs::read_to_string(folder.path().join("t.csv")).unwrap();
    assert_eq!(text.lines().count(), rows + 1);
    let chunks = ConvertOptions::default().with_chunk_shape(vec![4]);
    assert!(convert("u.csv", &chunks).unwrap_err().to_string().contains("do not apply"));
    let stopped = Progress::default();
    stopped.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let target = folder.path().join("u.csv");
    assert!(convert_to_rows(&store, &target, &ConvertOptions::default(), &stopped).is_err());
    assert!(!target.exists());

    let target = folder.path().join("t.zv");
    assert_eq!(to(&source, &target, &ConvertOptions::default()).unwrap().rows, rows as u64);
    let all =
        hyperslab::open(&target).unwrap().geometry("/").unwrap().query(&GeometryQuery::default()).unwrap();
    assert_eq!(all.vertices(), rows);
}
