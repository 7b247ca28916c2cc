//! Interoperability with the real library: reads what zarr-vectors writes and compares with brute-force results.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use hyperslab_core::{Depth, Elements, Geometry, GeometryData, GeometryQuery, Report, Store, Values};
use hyperslab_zvf::{GeometryKind, WriteOptions, ZvfWriter};

fn python(script: &str, arguments: &[&Path]) {
    let interpreter = std::env::var("HYPERSLAB_PEERS")
        .expect("HYPERSLAB_PEERS must name a Python interpreter that has zarr-vectors");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    let output =
        Command::new(interpreter).arg(script).args(arguments).output().expect("the interpreter starts");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn stores_of_zarr_vectors_match_brute_force() {
    let folder = tempfile::tempdir().unwrap();
    python("cases.py", &[folder.path()]);
    let cases = support::cases(folder.path());
    assert!(cases.len() > 200, "{} cases", cases.len());
    for of_one in cases.chunk_by(|a, b| a["store"] == b["store"]) {
        let name = of_one[0]["store"].as_str().unwrap();
        let opened = support::open(&folder.path().join(name));
        of_one.iter().for_each(|case| support::check_with(&opened, name, case));
    }
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let store = hyperslab_zvf::open_path(&path).unwrap();
            let mut report = Report::default();
            store.verify(Depth::Deep, &mut report).unwrap();
            assert!(report.ok(), "{}: {report:?}", path.display());
            for level in store.geometry().unwrap().levels().unwrap() {
                assert!(level.vertices > 0, "{level:?}");
            }
        }
    }
}

/// Reads every store of the first test and writes it in several ways. This crate and the library must return the same
/// brute-force results.
#[test]
fn new_stores_match_brute_force_and_validate_in_zarr_vectors() {
    let folder = tempfile::tempdir().unwrap();
    python("cases.py", &[folder.path()]);
    let cases = support::cases(folder.path());
    let mut written = Vec::new();
    let mut stores: Vec<&str> = cases.iter().filter_map(|case| case["store"].as_str()).collect();
    stores.dedup();
    // Links of another integer type are the same after reading.
    let skipped =
        |store: &str| ["pyramid", "graph_int", "graph_uint"].iter().any(|own| store.starts_with(own));
    for (number, store) in stores.into_iter().filter(|store| !skipped(store)).enumerate() {
        let geometry = hyperslab_zvf::open_path(folder.path().join(store)).unwrap().geometry().unwrap();
        let kind = GeometryKind::from_name(&geometry.schema().kinds[0]).unwrap();
        let data = geometry.query(&GeometryQuery::default()).unwrap();
        let rank = geometry.schema().axes.len();
        // Two of three variants each, because the library takes seconds to validate a store.
        for variant in [number % 2, 2] {
            let mut options = WriteOptions::new(vec![[50.0, 30.0, 40.0][variant]; rank]);
            options.compression = if variant == 1 { None } else { Some(0) };
            options.shard_shape = (variant == 1).then_some(2);
            options.factors = if variant == 2 { vec![1.0, 2.0] } else { Vec::new() };
            options.bin_shape = (variant == 0).then(|| vec![12.5; rank]);
            options.groups = if data.objects.len() > 6 && !data.objects.iter().any(|(id, _)| *id < 0) {
                vec![vec![0, 1, 2], vec![3, 6]]
            } else {
                Vec::new()
            };
            let name = format!("{store}-{variant}");
            let target = folder.path().join(&name);
            hyperslab_zvf::write(&target, kind, &data, &options).unwrap_or_else(|e| panic!("{store}: {e}"));
            let opened = support::open(&target);
            for case in cases.iter().filter(|case| case["store"] == store && case.get("groups").is_none()) {
                support::check_with(&opened, &name, case);
            }
            let copy = hyperslab_zvf::open_path(&target).unwrap();
            let mut report = Report::default();
            copy.verify(Depth::Deep, &mut report).unwrap();
            assert!(report.ok(), "{name}: {report:?}");
            let levels = copy.geometry().unwrap().levels().unwrap();
            assert_eq!(levels.len(), 1 + options.factors.len());
            for (number, level) in levels.iter().enumerate() {
                let query = GeometryQuery { level: Some(number), ..Default::default() };
                let coarse = copy.geometry().unwrap().query(&query).unwrap();
                assert_eq!(coarse.vertices.shape[0], level.vertices, "{name} {level:?}");
                assert_eq!(coarse.links.map_or(0, |links| links.shape[0]), level.links, "{name} {level:?}");
                assert_eq!(coarse.attributes.len(), data.attributes.len(), "{name}");
            }
            written.push(serde_json::json!({"path": target, "store": store, "kind": kind.name(), "levels": levels.len()}));
        }
    }
    written.extend(added(folder.path(), &cases));
    std::fs::write(folder.path().join("written.json"), serde_json::to_vec(&written).unwrap()).unwrap();
    python("peers/check.py", &[folder.path()]);
}

/// Stores whose second half was added to the first, for kinds without links between the halves.
fn added(folder: &Path, cases: &[serde_json::Value]) -> Vec<serde_json::Value> {
    let mut written = Vec::new();
    for (store, levels) in
        [("points", 1), ("points_bins", 0), ("points_ids", 1), ("streamlines", 1), ("lines", 0)]
    {
        let geometry = support::open(&folder.join(store));
        let kind = GeometryKind::from_name(&geometry.schema().kinds[0]).unwrap();
        let data = geometry.query(&GeometryQuery::default()).unwrap();
        let mut options = WriteOptions::new(vec![50.0; geometry.schema().axes.len()]);
        options.factors = vec![2.0; levels];
        let name = format!("{store}-added");
        let target = folder.join(&name);
        let [first, second] = halves(&data);
        hyperslab_zvf::write(&target, kind, &first, &options).unwrap();
        let mut writer = ZvfWriter::append(&target, 1 << 20).unwrap();
        writer.add(&second, &[]).unwrap();
        writer.commit().unwrap();
        let opened = support::open(&target);
        for case in cases.iter().filter(|case| case["store"] == store && case.get("groups").is_none()) {
            support::check_with(&opened, &name, case);
        }
        written.push(
            serde_json::json!({"path": target, "store": store, "kind": kind.name(), "levels": 1 + levels}),
        );
    }
    written
}

/// The first and the second half of the objects (or of the vertices, without objects).
fn halves(data: &GeometryData) -> [GeometryData; 2] {
    let count = data.vertices.shape[0];
    let middle = data.objects.len() / 2;
    let [first, second] = if data.objects.is_empty() {
        [(0..count / 2).collect::<Vec<u64>>(), (count / 2..count).collect()]
    } else {
        [&data.objects[..middle], &data.objects[middle..]]
            .map(|objects| objects.iter().flat_map(|(_, rows)| rows.iter().copied()).collect())
    };
    [(first, 0..middle), (second, middle..data.objects.len())].map(|(rows, objects)| {
        let places: std::collections::HashMap<u64, u64> =
            rows.iter().enumerate().map(|(place, row)| (*row, place as u64)).collect();
        let mut half = GeometryData::points(taken(&data.vertices, &rows));
        half.attributes =
            data.attributes.iter().map(|(name, values)| (name.clone(), taken(values, &rows))).collect();
        let object = |(id, rows): &(i64, Vec<u64>)| (*id, rows.iter().map(|row| places[row]).collect());
        half.objects = data.objects[objects].iter().map(object).collect();
        half
    })
}

fn taken(values: &Values, rows: &[u64]) -> Values {
    let each = values.shape[1..].iter().product::<u64>();
    let picks: Vec<(usize, usize)> =
        rows.iter().flat_map(|row| (0..each).map(move |part| (0, (row * each + part) as usize))).collect();
    let mut shape = values.shape.clone();
    shape[0] = rows.len() as u64;
    let elements = Elements::gather(&values.dtype, &[&values.elements], &picks).unwrap();
    Values::new(values.dtype.clone(), &shape, elements).unwrap()
}
