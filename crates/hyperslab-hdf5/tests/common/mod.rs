//! Compares what we read with what h5py read.

use std::path::Path;

use hyperslab_core::{Array, Attribute, Node, Positions, Region, Store, Values, read_serial};
use hyperslab_hdf5::{Hdf5Store, open_path};
use serde_json::{Map, Value};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Ignores differences due to NumPy, which cannot distinguish `[]` of a null dataspace from other empty values, floats from
/// their shortest text, or a region from its selection.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64() || a == b,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) if a.contains_key("hex") && b.contains_key("hex") => a == b,
        (_, Value::Object(b)) if b.contains_key("time") || b.contains_key("h5py") => true,
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        (Value::String(a), Value::String(b)) if b.starts_with("region of ") => a.starts_with(&b[10..]),
        _ => ours == theirs,
    }
}

fn shorten(value: &Value) -> String {
    value.to_string().chars().take(300).collect()
}

fn compare_attributes(
    ours: &hyperslab_core::Attributes,
    theirs: &Map<String, Value>,
    problems: &mut Vec<String>,
    at: &str,
) {
    if ours.len() != theirs.len() {
        problems.push(format!("{at}: {} attributes, h5py has {}", ours.len(), theirs.len()));
    }
    for (name, expected) in theirs {
        match ours.get(name).map(Attribute::to_json) {
            Some(value) if same(&value, expected) => {}
            Some(value) => {
                problems.push(format!("{at}@{name}: {}, h5py has {}", shorten(&value), shorten(expected)))
            }
            None => problems.push(format!("{at}@{name}: missing")),
        }
    }
}

fn compare_array(array: &dyn Array, expected: &Value, problems: &mut Vec<String>, at: &str) {
    let schema = array.schema();
    let shape: Vec<u64> = match &expected["shape"] {
        Value::Null => vec![0],
        shape => serde_json::from_value(shape.clone()).unwrap(),
    };
    // A NetCDF-4 variable is as long as its unlimited dimension, even if less of it is stored.
    let own = schema.stored.extent.as_deref().unwrap_or(schema.shape());
    if own != shape {
        problems.push(format!("{at}: shape {own:?}, h5py has {shape:?}"));
    }
    let chunks: Option<Vec<u64>> = serde_json::from_value(expected["chunks"].clone()).unwrap();
    if schema.chunked != chunks.is_some() || chunks.is_some_and(|chunks| schema.grid.chunk_shape() != chunks)
    {
        problems.push(format!(
            "{at}: chunks {:?}, h5py has {}",
            schema.grid.chunk_shape(),
            expected["chunks"]
        ));
    }
    compare_attributes(&schema.attributes, expected["attributes"].as_object().unwrap(), problems, at);
    let region = Region { start: own.iter().map(|_| 0).collect(), shape: own.into() };
    let values = match read_serial(array, Positions::region(&region)) {
        Ok(values) => values,
        Err(error) => {
            problems.push(format!("{at}: {error}"));
            return;
        }
    };
    if let Some(raw) = expected["raw"].as_str() {
        let ours = values.elements.as_fixed().map(|bytes| hex(bytes)).unwrap_or_default();
        // NaN has several spellings.
        let is_nan = |values: &Values| matches!(values.to_json(), Value::Array(items) if items.contains(&"NaN".into()));
        if ours != raw && !(is_nan(&values) && ours.len() == raw.len()) {
            let first = ours.bytes().zip(raw.bytes()).position(|(a, b)| a != b);
            problems.push(format!(
                "{at} ({}): differs from byte {first:?}/2 on: {}.. {}..",
                schema.dtype,
                &ours[..ours.len().min(60)],
                &raw[..raw.len().min(60)]
            ));
        }
        return;
    }
    let ours = values.to_json();
    if !same(&ours, &expected["values"]) {
        problems.push(format!(
            "{at} ({}): {}, h5py has {}",
            schema.dtype,
            shorten(&ours),
            shorten(&expected["values"])
        ));
    }
    // Every stored chunk must be found where the index lists it.
    let mut wrong = 0;
    let visited = array.visit_chunks(&mut |chunk, reference| {
        wrong += usize::from(array.locate(&[chunk])?[0].as_ref() != Some(&reference));
        Ok(std::ops::ControlFlow::Continue(()))
    });
    if wrong > 0 || visited.is_err() {
        problems.push(format!("{at}: {wrong} chunks found elsewhere, {visited:?}"));
    }
}

/// The differences between what we read from a file and what h5py read.
pub(crate) fn compare(path: &Path, expected: &Value) -> Vec<String> {
    let store: Hdf5Store = match open_path(path) {
        Ok(store) => store,
        Err(error) => return vec![error.to_string()],
    };
    let mut problems = Vec::new();
    for (at, expected) in expected.as_object().unwrap() {
        let attributes = expected["attributes"].as_object().unwrap();
        match store.node(at) {
            Ok(Node::Array(array)) => compare_array(&*array, expected, &mut problems, at),
            Ok(Node::Group(ours)) => {
                compare_attributes(&ours, attributes, &mut problems, at);
                let mut names = store.children(at).unwrap_or_default();
                names.sort();
                if serde_json::to_value(&names).unwrap() != expected["children"] {
                    problems.push(format!("{at}: children {names:?}, h5py has {}", expected["children"]));
                }
            }
            Ok(Node::Type(_, ours)) if expected["kind"] == "type" => {
                compare_attributes(&ours, attributes, &mut problems, at);
            }
            Ok(other) => problems.push(format!("{at}: a {}, h5py has a {}", other.kind(), expected["kind"])),
            Err(error) => problems.push(format!("{at}: {error}")),
        }
    }
    problems
}
