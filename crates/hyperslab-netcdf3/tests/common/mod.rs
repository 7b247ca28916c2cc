//! Compares files with their descriptions, written by `golden/make.py`.

#![allow(dead_code, clippy::allow_attributes, reason = "each test uses a part")]

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{
    ArraySchema, Attributes, Blob, DType, FileBlob, MappedBlob, Node, Positions, Store, Values, read_serial,
};
use hyperslab_netcdf3::Netcdf3Store;
use serde_json::{Value, json};

/// The committed files.
pub(crate) fn golden() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Opens a file, mapped or read by position.
pub(crate) fn open(path: &Path, mapped: bool) -> Netcdf3Store {
    let blob: Arc<dyn Blob> = if mapped {
        Arc::new(MappedBlob::open(path).unwrap())
    } else {
        Arc::new(FileBlob::open(path).unwrap())
    };
    Netcdf3Store::open(blob).unwrap()
}

/// The name that NumPy gives a type.
fn numpy(dtype: &DType) -> &'static str {
    match dtype {
        DType::Int8 => "i1",
        DType::FixedBytes(1) => "S1",
        DType::Int16 => "i2",
        DType::Int32 => "i4",
        DType::Int64 => "i8",
        DType::UInt8 => "u1",
        DType::UInt16 => "u2",
        DType::UInt32 => "u4",
        DType::UInt64 => "u8",
        DType::Float32 => "f4",
        DType::Float64 => "f8",
        other => panic!("{other}"),
    }
}

/// All elements in one flat list.
fn flat(document: &Value, into: &mut Vec<Value>) {
    match document {
        Value::Array(items) => items.iter().for_each(|item| flat(item, into)),
        single => into.push(single.clone()),
    }
}

fn listed(values: &Values) -> Vec<Value> {
    let mut list = Vec::new();
    flat(&values.to_json(), &mut list);
    list
}

fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        // Single floats are written with the digits that they need.
        (Some(a), Some(b)) => {
            a == b || (a as f32) == (b as f32) && a.fract() != 0.0 || (a as f32 == b as f32 && a.abs() > 1e30)
        }
        _ => a == b,
    }
}

fn same_lists(a: &[Value], b: &[Value]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

fn attributes(found: &Attributes, expected: &Value, at: &str, problems: &mut Vec<String>) {
    let expected = expected.as_object().unwrap();
    let names: Vec<&str> = found.iter().map(|(name, _)| name).collect();
    if names != expected.keys().map(String::as_str).collect::<Vec<_>>() {
        problems.push(format!("{at}: attributes {names:?}, expected {:?}", expected.keys()));
        return;
    }
    for ((name, own), expected) in found.iter().zip(expected.values()) {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        flat(&own.to_json(), &mut a);
        flat(expected, &mut b);
        if !same_lists(&a, &b) {
            problems.push(format!("{at}: attribute {name} is {a:?}, expected {b:?}"));
        }
    }
}

fn schema(own: &ArraySchema, expected: &Value, at: &str, problems: &mut Vec<String>) {
    let dimensions: Vec<_> = own.dimensions.iter().map(|name| name.clone().unwrap()).collect();
    let unlimited: Vec<bool> = own.max_shape.iter().map(Option::is_none).collect();
    for (what, found) in [
        ("dtype", json!(numpy(&own.dtype))),
        ("dimensions", json!(dimensions)),
        ("shape", json!(own.shape())),
        ("unlimited", json!(unlimited)),
    ] {
        if found != expected[what] {
            problems.push(format!("{at}: {what} {found}, expected {}", expected[what]));
        }
    }
    attributes(&own.attributes, &expected["attributes"], at, problems);
}

/// The differences between a file and its description.
pub(crate) fn compare(path: &Path, expected: &Value, mapped: bool) -> Vec<String> {
    let store = open(path, mapped);
    let mut problems = Vec::new();
    let Node::Group(found) = store.node("/").unwrap() else { panic!("a group") };
    attributes(&found, &expected["attributes"], "/", &mut problems);
    let mut left: Vec<String> = store.children("/").unwrap();
    for (name, expected) in expected["variables"].as_object().unwrap() {
        left.retain(|own| own != name);
        let Ok(Node::Array(array)) = store.node(&format!("/{name}")) else {
            problems.push(format!("{name} is not there"));
            continue;
        };
        schema(array.schema(), expected, name, &mut problems);
        let values = read_serial(&*array, Positions::whole(array.schema().shape())).unwrap();
        let values = listed(&values);
        if !same_lists(&values, expected["values"].as_array().unwrap()) {
            problems.push(format!("{name}: {values:?}, expected {}", expected["values"]));
        }
    }
    // Only dimensions without a variable should be left.
    for name in left {
        let Node::Array(array) = store.node(&format!("/{name}")).unwrap() else { panic!("{name}") };
        let length = array.schema().shape()[0];
        if !array.schema().is_dimension || expected["dimensions"][&name] != json!(length) {
            problems.push(format!("{name} of length {length} is no dimension of the file"));
        }
    }
    problems
}

/// Compares every described file in a folder. Returns their number.
pub(crate) fn compare_all(folder: &Path) -> usize {
    let (mut problems, mut files) = (Vec::new(), 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let expected = entry.unwrap().path();
        if expected.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let path = expected.with_extension("nc");
        let expected: Value = serde_json::from_slice(&std::fs::read(&expected).unwrap()).unwrap();
        for mapped in [true, false] {
            let found = compare(&path, &expected, mapped);
            problems.extend(found.into_iter().map(|problem| format!("{}: {problem}", path.display())));
        }
        files += 1;
    }
    assert!(problems.is_empty(), "{} differences:\n{}", problems.len(), problems.join("\n"));
    files
}
