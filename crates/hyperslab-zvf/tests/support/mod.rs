//! Compares results with the brute-force results in `cases.json`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use hyperslab_core::{Geometry, GeometryData, GeometryQuery, Values};
use hyperslab_zvf::ZvfGeometry;
use serde_json::Value;

/// The cases of a folder.
pub(crate) fn cases(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("cases.json")).expect("cases.json");
    serde_json::from_str(&text).expect("a list of cases")
}

fn numbers<T>(value: &Value, each: impl Fn(&Value) -> Option<T>) -> Vec<T> {
    value.as_array().into_iter().flatten().map(|item| each(item).unwrap()).collect()
}

/// The query of a case.
pub(crate) fn query(case: &Value) -> GeometryQuery {
    let corner = |value: &Value| numbers(value, Value::as_f64);
    GeometryQuery {
        level: case["level"].as_u64().map(|level| level as usize),
        region: case.get("box").map(|region| [corner(&region[0]), corner(&region[1])]),
        objects: numbers(&case["objects"], Value::as_i64),
        groups: numbers(&case["groups"], Value::as_u64),
        attributes: None,
    }
}

/// A column of integers of any type.
fn integers(values: &Values) -> Vec<i64> {
    let json = values.to_json();
    numbers(&json, |number| number.as_f64().map(|number| number as i64))
}

/// Runs the query of a case and compares the result.
pub(crate) fn check(folder: &Path, case: &Value) {
    let name = case["store"].as_str().unwrap();
    check_with(&open(&folder.join(name)), name, case);
}

/// The geometry of a store.
pub(crate) fn open(path: &Path) -> ZvfGeometry {
    let store = hyperslab_zvf::open_path(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    store.geometry().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Like [`check`], for an open store.
pub(crate) fn check_with(geometry: &ZvfGeometry, name: &str, case: &Value) {
    let query = query(case);
    let data = geometry.query(&query).unwrap_or_else(|error| panic!("{name} {query:?}: {error}"));
    if let Some(positions) = case.get("positions") {
        let sorted = |value: &Value| {
            let mut rows: Vec<Vec<f64>> =
                value.as_array().unwrap().iter().map(|row| numbers(row, Value::as_f64)).collect();
            rows.sort_by(|a, b| a.partial_cmp(b).unwrap());
            rows
        };
        let mut found = sorted(&data.vertices.to_json());
        found.dedup();
        assert_eq!(found, sorted(positions), "{name} {query:?}");
        return;
    }
    check_numbered(name, case, &query, &data);
}

fn check_numbered(name: &str, case: &Value, query: &GeometryQuery, data: &GeometryData) {
    let n = integers(&data.attributes.iter().find(|(name, _)| name == "n").unwrap().1);
    let mut vertices = n.clone();
    vertices.sort_unstable();
    assert_eq!(vertices, numbers(&case["vertices"], Value::as_i64), "{name} {query:?}");
    if let Some((_, v)) = data.attributes.iter().find(|(name, _)| name == "v") {
        // A three-column attribute is twice the position.
        let doubled: Vec<f64> = data
            .vertices
            .to_json()
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|row| numbers(row, Value::as_f64))
            .map(|x| x * 2.0)
            .collect();
        let found: Vec<f64> =
            v.to_json().as_array().unwrap().iter().flat_map(|row| numbers(row, Value::as_f64)).collect();
        assert!(found == doubled || data.vertices.shape[1] == 2, "{name}");
    }
    if let Some(links) = case.get("links") {
        let ordered = case["ordered"] == true || name.starts_with("mesh") || name.starts_with("graph");
        let turn = |mut link: Vec<i64>| {
            if !ordered {
                link.sort_unstable();
            }
            link
        };
        let mut expected: Vec<Vec<i64>> =
            links.as_array().unwrap().iter().map(|link| turn(numbers(link, Value::as_i64))).collect();
        let rows = data.links.as_ref().unwrap_or_else(|| panic!("{name}: no links")).to_json();
        let mut found: Vec<Vec<i64>> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|link| turn(numbers(link, Value::as_u64).iter().map(|row| n[*row as usize]).collect()))
            .collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{name} {query:?}");
    }
    if let Some(paths) = case.get("paths") {
        let expected = paths.as_object().unwrap();
        assert_eq!(data.objects.len(), expected.len(), "{name} {query:?}");
        for (id, rows) in &data.objects {
            let mut found: Vec<i64> = rows.iter().map(|row| n[*row as usize]).collect();
            if case["ordered"] != true {
                found.sort_unstable();
            }
            assert_eq!(
                found,
                numbers(&expected[&id.to_string()], Value::as_i64),
                "{name} object {id} {query:?}"
            );
        }
    }
}
