//! Stores that zarr-vectors wrote, kept in the repository: asked, and damaged in every way that comes to mind.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::{Depth, Geometry, GeometryQuery, MemoryStorage, Node, Report, Store};

fn stores() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/stores")
}

#[test]
fn golden_stores_are_answered_by_the_truth() {
    let folder = stores();
    let cases = support::cases(&folder);
    assert!(cases.len() > 50, "{}", cases.len());
    for case in &cases {
        support::check(&folder, case);
    }
}

#[test]
fn a_store_is_a_geometry_with_levels() {
    let store = hyperslab_zvf::open_path(stores().join("points_ids")).unwrap();
    assert_eq!(store.children("/").unwrap(), ["0"]);
    let Node::Geometry(geometry) = store.node("/0").unwrap() else { panic!("a geometry") };
    assert_eq!(geometry.schema().kinds, ["point_cloud"]);
    let levels = geometry.levels().unwrap();
    assert_eq!((levels.len(), levels[0].vertices, levels[0].links), (1, 60, 0));
    assert!(levels[0].objects > 5);
    let Node::Array(array) = store.node("/0/object_index/object_ids").unwrap() else { panic!("an array") };
    assert_eq!(array.schema().shape(), [levels[0].objects]);
    let wrong = [
        GeometryQuery { level: Some(3), ..Default::default() },
        GeometryQuery { objects: vec![999], ..Default::default() },
        GeometryQuery { groups: vec![99], ..Default::default() },
        GeometryQuery { attributes: Some(vec!["nope".to_owned()]), ..Default::default() },
        GeometryQuery { region: Some([vec![0.0], vec![1.0]]), ..Default::default() },
    ];
    for query in wrong {
        assert!(matches!(geometry.query(&query), Err(hyperslab_core::Error::Invalid(_))), "{query:?}");
    }
    // Turned round, undefined, or beyond all numbers.
    for (low, high, count) in [(50.0, 10.0, 0), (f64::NAN, 1.0, 0), (f64::NEG_INFINITY, f64::INFINITY, 60)] {
        let query = GeometryQuery { region: Some([vec![low; 2], vec![high; 2]]), ..Default::default() };
        assert_eq!(geometry.query(&query).unwrap().vertices.shape[0], count);
    }
}

#[test]
fn what_we_cannot_read_is_refused_by_name() {
    let mut files = BTreeMap::new();
    load(&stores().join("points"), "", &mut files);
    let edit = |name: &str, from: &str, to: &str| {
        let mut files = files.clone();
        let text = String::from_utf8(files[name].clone()).unwrap();
        assert!(text.contains(from), "{text}");
        files.insert(name.to_owned(), text.replacen(from, to, 1).into_bytes());
        hyperslab_zvf::open(Arc::new(MemoryStorage::new("m", files))).and_then(|store| {
            store.geometry()?.query(&GeometryQuery::default()).map(|data| data.vertices.shape[0])
        })
    };
    assert_eq!(edit("zarr.json", "zv_version", "zv_version").unwrap(), 60);
    let error = edit(
        "zarr.json",
        "\"zv_version\"",
        "\"required_capabilities\": [\"dense_manifests\"], \"zv_version\"",
    )
    .unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("dense_manifests"), "{error}");
    let error = edit("0/vertices/zarr.json", "\"raw\"", "\"draco\"").unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("draco"), "{error}");
    // Without the list of chunks, which other readers need, the stored ones are found.
    assert_eq!(edit("0/vertices/zarr.json", "nonempty_chunks", "other_chunks").unwrap(), 60);
    // The layout before 0.9: a group where the array is.
    let mut old = files;
    old.insert(
        "0/vertices/zarr.json".to_owned(),
        br#"{"zarr_format": 3, "node_type": "group", "attributes": {}}"#.to_vec(),
    );
    let store = hyperslab_zvf::open(Arc::new(MemoryStorage::new("m", old))).unwrap();
    let error = store.geometry().unwrap().query(&GeometryQuery::default()).unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("before 0.9"), "{error}");
}

#[expect(clippy::unwrap_used, reason = "a failure here is a failure of the test")]
fn load(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            load(&entry.path(), &format!("{name}/"), files);
        } else {
            files.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
}

/// Opens, asks everything and verifies; whatever it says, it must not panic, hang or take much memory.
fn drive(files: &BTreeMap<String, Vec<u8>>) {
    let directory = MemoryStorage::new("m", files.clone());
    let Ok(store) = hyperslab_zvf::open(Arc::new(directory)) else { return };
    let _ = store.details();
    if let Ok(geometry) = store.geometry() {
        let _ = geometry.levels();
        let rank = geometry.schema().axes.len();
        let queries = [
            GeometryQuery::default(),
            GeometryQuery { region: Some([vec![0.0; rank], vec![50.0; rank]]), ..Default::default() },
            GeometryQuery { objects: vec![0, 1], ..Default::default() },
            GeometryQuery { groups: vec![0], ..Default::default() },
        ];
        for query in queries {
            let _ = geometry.query(&query);
        }
    }
    let _ = store.verify(Depth::Deep, &mut Report::default());
}

#[test]
fn damaged_stores_fail_well() {
    // A fixed sequence of pseudo-random numbers: every run damages the same bytes.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    for entry in std::fs::read_dir(stores()).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            continue;
        }
        let mut files = BTreeMap::new();
        load(&path, "", &mut files);
        let names: Vec<String> = files.keys().cloned().collect();
        for name in &names {
            let content = files[name].clone();
            for round in 0..4 {
                let mut damaged = content.clone();
                match round % 4 {
                    0 if !damaged.is_empty() => {
                        let at = random(damaged.len());
                        damaged[at] ^= 1 << random(8);
                    }
                    1 => damaged.truncate(random(content.len())),
                    2 if !damaged.is_empty() => {
                        let at = random(damaged.len());
                        damaged[at] = [b'9', b'0', b'-', b'"', 0xff, b'['][random(6)];
                    }
                    _ => {
                        let other = &files[&names[random(names.len())]];
                        damaged.truncate(random(content.len()));
                        damaged.extend_from_slice(&other[random(other.len())..]);
                    }
                }
                files.insert(name.clone(), damaged);
                drive(&files);
            }
            files.insert(name.clone(), content);
        }
    }
}
