//! Stores written by zarr-python, stored in the repository. Reads them intact and damaged.

#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::{
    Depth, MemoryStorage, Node, Positions, Report, Store, child_path, product, read_serial,
};

fn stores() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/stores")
}

#[test]
fn golden_stores_match_zarr_python() {
    let folder = stores();
    let cases = support::cases(&folder);
    assert!(cases.len() > 20, "{}", cases.len());
    for case in &cases {
        support::check(&folder, case);
        let mut report = Report::default();
        let store = hyperslab_zarr::open_path(folder.join(case["store"].as_str().unwrap())).unwrap();
        store.verify(Depth::Deep, &mut report).unwrap();
        assert!(report.ok(), "{report:?}");
    }
}

#[test]
fn trees_are_walked_with_and_without_consolidated_metadata() {
    for name in ["tree_v3", "tree_v3_consolidated", "tree_v2", "tree_v2_consolidated"] {
        let store = hyperslab_zarr::open_path(stores().join(name)).unwrap();
        assert_eq!(store.children("/").unwrap(), ["sub", "t", "x"], "{name}");
        assert_eq!(store.children("/sub/below").unwrap(), ["a"], "{name}");
        assert!(store.children("/t").unwrap().is_empty());
        let Node::Group(attributes) = store.node("/").unwrap() else { panic!("a group") };
        assert_eq!(attributes.get("title").unwrap().as_text().unwrap(), "é");
        let Node::Array(array) = store.node("t").unwrap() else { panic!("an array") };
        assert_eq!(array.schema().dimensions, [Some("y".to_owned()), Some("x".to_owned())]);
        assert_eq!(array.schema().labels[1], hyperslab_core::Labels::Node("/x".to_owned()));
        assert!(store.node("/nope").unwrap_err().is_not_found());
        assert!(store.node("/../tree_v2").is_err());
    }
}

/// Opens, walks, reads and verifies. Errors are fine, but it must not panic, hang or use much memory.
fn drive(files: &BTreeMap<String, Vec<u8>>) {
    let directory = MemoryStorage::new("m", files.clone());
    let Ok(store) = hyperslab_zarr::open(Arc::new(directory)) else { return };
    let mut paths = vec!["/".to_owned()];
    while let Some(path) = paths.pop() {
        if let Ok(children) = store.children(&path) {
            paths.extend(children.iter().map(|name| child_path(&path, name)).filter(|path| path.len() < 200));
        }
        if let Ok(Node::Array(array)) = store.node(&path) {
            let _ = array.usage();
            let shape = array.schema().shape().to_vec();
            if product(&shape).is_some_and(|cells| cells < 1 << 16) {
                let _ = read_serial(&*array, Positions::whole(&shape));
            }
        }
    }
    let _ = store.verify(Depth::Deep, &mut Report::default());
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

#[test]
fn damaged_stores_fail_cleanly() {
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
            let rounds = if name.ends_with("json") || name.contains(".z") { 120 } else { 25 };
            for round in 0..rounds {
                let mut damaged = content.clone();
                match round % 5 {
                    0 if !damaged.is_empty() => {
                        let at = random(damaged.len());
                        damaged[at] ^= 1 << random(8);
                    }
                    1 => damaged.truncate(random(content.len())),
                    2 if !damaged.is_empty() => {
                        let at = random(damaged.len());
                        damaged[at] = [b'9', b'0', b'-', b'"', 0xff, b'['][random(6)];
                    }
                    3 if damaged.len() > 8 => {
                        let (from, to) = (random(damaged.len() - 8), random(damaged.len() - 8));
                        damaged.copy_within(from..from + 8, to);
                    }
                    _ => {
                        let other = &files[&names[random(names.len())]];
                        let keep = random(content.len());
                        damaged.truncate(keep);
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
