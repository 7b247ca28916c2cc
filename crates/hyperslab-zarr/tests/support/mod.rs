//! Compares the values read by this crate with those read by zarr-python, as recorded in `cases.json`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use hyperslab_core::{
    Array, ArraySpec, Attributes, DType, Filter, Node, Positions, Selection, Sink, Store, Values, read_serial,
};
use hyperslab_zarr::{WriteOptions, ZarrSink};
use serde_json::Value;

/// The cases of a folder.
pub(crate) fn cases(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("cases.json")).expect("cases.json");
    serde_json::from_str(&text).expect("a list of cases")
}

/// The array of a case.
pub(crate) fn open(folder: &Path, case: &Value) -> std::sync::Arc<dyn Array> {
    let name = case["store"].as_str().unwrap();
    let store =
        hyperslab_zarr::open_path(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    match store.node(case["node"].as_str().unwrap()).unwrap_or_else(|error| panic!("{name}: {error}")) {
        Node::Array(array) => array,
        other => panic!("{name}: a {}", other.kind()),
    }
}

/// Reads a case's array whole and in part, and compares it with the recorded values.
pub(crate) fn check(folder: &Path, case: &Value) {
    let array = open(folder, case);
    let (name, schema) = (array.name().to_owned(), array.schema());
    let shape: Vec<u64> = case["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    assert_eq!(schema.shape(), shape, "{name}");
    let whole =
        read_serial(&*array, Positions::whole(&shape)).unwrap_or_else(|error| panic!("{name}: {error}"));
    match case.get("texts") {
        Some(texts) => check_texts(&name, &whole, texts.as_array().unwrap(), case["hex"] == true),
        None => {
            let expected = std::fs::read(folder.join(case["values"].as_str().unwrap())).unwrap();
            let found = whole.elements.as_fixed().unwrap();
            if let Some(at) = (0..expected.len().max(found.len())).find(|&i| expected.get(i) != found.get(i))
            {
                panic!(
                    "{name}: {} differs at byte {at}: {:?}, expected {:?}",
                    schema.dtype,
                    &found[..],
                    expected
                );
            }
        }
    }
    if let Some(attributes) = case.get("attributes") {
        assert_eq!(&Value::Object(schema.attributes.to_json()), attributes, "{name}");
    }
    if let Some(dimensions) = case.get("dimensions") {
        let names: Vec<_> =
            dimensions.as_array().unwrap().iter().map(|n| n.as_str().map(str::to_owned)).collect();
        assert_eq!(schema.dimensions, names, "{name}");
    }
    check_parts(&*array, &whole);
    let mut chunks = 0;
    array
        .visit_chunks(&mut |coord, reference| {
            assert_eq!(array.locate(&[coord]).unwrap(), [Some(reference)], "{name}");
            chunks += 1;
            Ok(std::ops::ControlFlow::Continue(()))
        })
        .unwrap();
    assert!(Some(chunks) <= schema.grid.chunks(), "{name}");
}

fn check_texts(name: &str, whole: &Values, texts: &[Value], hex: bool) {
    assert_eq!(whole.dtype, if hex { DType::Bytes } else { DType::String }, "{name}");
    for (i, text) in texts.iter().enumerate() {
        let found = whole.elements.variable_at(i).unwrap();
        let found = if hex {
            found.iter().map(|b| format!("{b:02x}")).collect()
        } else {
            String::from_utf8(found.to_vec()).unwrap()
        };
        assert_eq!(found, text.as_str().unwrap(), "{name}[{i}]");
    }
}

/// Compares a part that starts inside a chunk, with a step, with the same part of the whole.
fn check_parts(array: &dyn Array, whole: &Values) {
    let shape = array.schema().shape();
    if shape.is_empty() || shape.contains(&0) {
        return;
    }
    let parts: Vec<String> =
        shape.iter().map(|n| format!("{}:{}:{}", (n - 1).min(1), n, 1 + n % 2)).collect();
    let selection: Selection = format!("[{}]", parts.join(", ")).parse().unwrap();
    let part = read_serial(array, selection.resolve(shape, &[]).unwrap()).unwrap();
    let whole = whole.to_json();
    let expected = pick(&whole, shape);
    assert_eq!(part.to_json(), expected, "{}", array.name());
}

fn pick(value: &Value, shape: &[u64]) -> Value {
    match shape {
        [] => value.clone(),
        [n, rest @ ..] => {
            let items = value.as_array().unwrap();
            let (first, step) = ((n - 1).min(1) as usize, (1 + n % 2) as usize);
            Value::Array(items[first..].iter().step_by(step).map(|item| pick(item, rest)).collect())
        }
    }
}

/// The whole array.
pub(crate) fn read(array: &dyn Array) -> Values {
    read_serial(array, Positions::whole(array.schema().shape()))
        .unwrap_or_else(|error| panic!("{}: {error}", array.name()))
}

/// Writes an array again as `/g/a` of a new store.
pub(crate) fn copy(
    array: &dyn Array,
    target: &Path,
    options: WriteOptions,
    filters: &[Filter],
) -> hyperslab_core::Result<()> {
    let schema = array.schema();
    let mut sink: Box<dyn Sink> = Box::new(ZarrSink::create(target, options)?);
    sink.group("/", &Attributes::new())?;
    sink.group("/g", &Attributes::from_iter([("made", "here")]))?;
    let mut spec =
        ArraySpec::new(schema.dtype.clone(), schema.grid.clone()).with_filters(filters.iter().cloned());
    spec.fill = schema.fill.clone();
    spec.dimensions = schema.dimensions.clone();
    spec.attributes = schema.attributes.clone();
    let target = sink.array("/g/a", &spec)?;
    for number in 0..schema.grid.chunks().unwrap() {
        let chunk = schema.grid.coord(number);
        let region = schema.grid.region(&chunk);
        let values = read_serial(array, Positions::region(&region))?;
        target.write(&chunk, target.encode(&chunk, &values.elements)?)?;
    }
    sink.commit()
}
