//! Stores written by zarr-vectors, stored in the repository. Queries them intact and damaged.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::{Depth, Geometry, GeometryQuery, MemoryStorage, Node, Report, Store};
use hyperslab_zvf::ZvfWriter;

fn stores() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/stores")
}

#[test]
fn golden_stores_match_brute_force() {
    let folder = stores();
    let cases = support::cases(&folder);
    assert!(cases.len() > 50, "{}", cases.len());
    for case in &cases {
        support::check(&folder, case);
    }
}

/// The layouts of 0.6 and 0.7, written by the zarr-vectors of that time.
#[test]
fn older_layouts_match_brute_force() {
    for (version, least) in [("0.6.0", 20), ("0.7.0", 40)] {
        let folder = stores().with_file_name("older").join(version);
        let cases = support::cases(&folder);
        assert!(cases.len() > least, "{version}: {}", cases.len());
        cases.iter().for_each(|case| support::check(&folder, case));
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if !path.is_dir() {
                continue;
            }
            let store = hyperslab_zvf::open_path(&path).unwrap();
            let mut report = Report::default();
            store.verify(Depth::Deep, &mut report).unwrap();
            assert!(report.findings.iter().all(|finding| finding.ok), "{}: {report:?}", path.display());
            let whole = store.geometry().unwrap().query(&GeometryQuery::default()).unwrap();
            let levels = store.geometry().unwrap().levels().unwrap();
            assert_eq!(levels[0].vertices, whole.vertices.shape[0], "{}", path.display());
            assert_eq!(levels[0].links, whole.links.map_or(0, |links| links.shape[0]), "{}", path.display());
            assert_eq!(store.details().unwrap()["zv_version"], version);
        }
        let store = hyperslab_zvf::open_path(folder.join("points_ids")).unwrap();
        let query = GeometryQuery { objects: vec![3, 1], ..Default::default() };
        let data = store.geometry().unwrap().query(&query).unwrap();
        assert_eq!(data.object_attributes[0].1.to_json(), serde_json::json!([4.5, 1.5]));
        let Err(refused) = ZvfWriter::append(folder.join("points_ids"), 1 << 20) else { panic!("added to") };
        assert!(refused.is_unsupported() && refused.to_string().contains("before 0.9"), "{refused}");
    }
}

/// That version stored link attributes only for links within a chunk.
#[test]
fn older_links_have_their_stored_attributes() {
    let store = hyperslab_zvf::open_path(stores().with_file_name("older").join("0.7.0/graph")).unwrap();
    let data = store.geometry().unwrap().query(&GeometryQuery::default()).unwrap();
    let (name, weights) = &data.link_attributes[0];
    let present = weights.to_json().as_array().unwrap().iter().filter(|weight| !weight.is_null()).count();
    assert_eq!(name, "w");
    assert!(present > 0 && present < weights.len(), "{present} of {}", weights.len());
}

/// Links with other integer types than 64 bits, and with types that are not integers.
#[test]
fn links_of_any_integer_type_are_read() {
    let mut files = BTreeMap::new();
    load(&stores().join("graph_int32"), "", &mut files);
    let local = "0/links/0/0.0/zarr.json";
    let with = |to: &str| {
        let mut files = files.clone();
        let text = String::from_utf8(files[local].clone()).unwrap();
        assert!(text.contains("\"int32\""), "{text}");
        files.insert(local.to_owned(), text.replacen("\"int32\"", to, 1).into_bytes());
        let store = hyperslab_zvf::open(Arc::new(MemoryStorage::new("m", files))).unwrap();
        let mut report = Report::default();
        store.verify(Depth::Deep, &mut report).unwrap();
        (store.geometry().unwrap().query(&GeometryQuery::default()), report.ok())
    };
    assert!(with("\"int32\"").0.is_ok_and(|data| data.links.unwrap().shape[0] > 20));
    assert!(with("\"uint32\"").1);
    assert!(with("\"int64\"").0.is_err());
    let error = with("\"float32\"").0.unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("float32"), "{error}");
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
    // Reversed, undefined and infinite boxes.
    for (low, high, count) in [(50.0, 10.0, 0), (f64::NAN, 1.0, 0), (f64::NEG_INFINITY, f64::INFINITY, 60)] {
        let query = GeometryQuery { region: Some([vec![low; 2], vec![high; 2]]), ..Default::default() };
        assert_eq!(geometry.query(&query).unwrap().vertices.shape[0], count);
    }
}

#[test]
fn unsupported_stores_are_rejected_by_name() {
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
    let error =
        edit("0/zarr.json", "\"object_sparsity\"", "\"refinement\": \"multiply\", \"object_sparsity\"")
            .unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("multiply"), "{error}");
    // The layout before 0.6: offsets in place of fragments.
    let mut old = files;
    let group = br#"{"zarr_format": 3, "node_type": "group", "attributes": {}}"#;
    for name in ["0/vertices/zarr.json", "0/vertex_group_offsets/zarr.json"] {
        old.insert(name.to_owned(), group.to_vec());
    }
    let store = hyperslab_zvf::open(Arc::new(MemoryStorage::new("m", old))).unwrap();
    let error = store.geometry().unwrap().query(&GeometryQuery::default()).unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("before 0.6"), "{error}");
}

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
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

/// Opens, queries and verifies. Errors are fine, but it must not panic, hang or use much memory.
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
fn damaged_stores_fail_cleanly() {
    // A fixed sequence of pseudo-random numbers: every run damages the same bytes.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let older = stores().with_file_name("older");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(stores()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.extend([older.join("0.6.0/points_ids"), older.join("0.7.0/graph")]);
    for path in paths.into_iter().filter(|path| path.is_dir()) {
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
