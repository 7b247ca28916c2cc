//! Compares a store with records of what the library reads from it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use hyperslab_core::{
    Bound, Bounds, Depth, Node, Positions, Report, Scan, Severity, Store, Table, element_to_json, read_serial,
};
use hyperslab_tiledb::{Key, OpenOptions, TimeWindow, open_path};
use serde_json::Value;

/// Compares the array of a case with every record beside it. Returns the number of records, and the differences.
pub(crate) fn check_case(case: &Path) -> (usize, Vec<String>) {
    let mut problems = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(case).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        count += 1;
        let record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        if let Err(problem) = check_record(&case.join("array"), &record) {
            problems.push(format!("{}: {problem}", path.display()));
        }
    }
    (count, problems)
}

fn check_record(array: &Path, record: &Value) -> Result<(), String> {
    let mut options = OpenOptions::default();
    if let Some(at) = record.get("at").and_then(Value::as_array) {
        options.at = TimeWindow { start: at[0].as_u64().unwrap(), end: at[1].as_u64().unwrap() };
    }
    if let Some(key) = record.get("key").and_then(Value::as_str) {
        options.key = Some(Key::new(key.as_bytes().try_into().unwrap()));
    }
    let store = open_path(array, options).map_err(|error| error.to_string())?;
    let mut report = Report::default();
    store.verify(Depth::Deep, &mut report).map_err(|error| error.to_string())?;
    if let Some(bad) =
        report.findings.iter().find(|finding| !finding.ok && finding.severity == Severity::Error)
    {
        return Err(format!("verify: {bad:?}"));
    }
    for (path, expected) in record["nodes"].as_object().unwrap() {
        check_node(&store, path, expected).map_err(|problem| format!("{path}: {problem}"))?;
    }
    Ok(())
}

fn check_node(store: &dyn Store, path: &str, expected: &Value) -> Result<(), String> {
    let node = store.node(path).map_err(|error| error.to_string())?;
    if let Some(attributes) = expected.get("attributes") {
        let found = match &node {
            Node::Group(attributes) => Value::Object(attributes.to_json()),
            Node::Table(table) => Value::Object(table.schema().attributes.to_json()),
            Node::Array(array) => Value::Object(array.schema().attributes.to_json()),
            _ => Value::Null,
        };
        same(&found, attributes)?;
    }
    if let Some(children) = expected.get("children") {
        let found = store.children(path).map_err(|error| error.to_string())?;
        same(&Value::from(found), children)?;
    }
    match node {
        Node::Array(array) => {
            let shape = array.schema().shape().to_vec();
            let values = read_serial(&*array, Positions::whole(&shape)).map_err(|error| error.to_string())?;
            same(&values.to_json(), &expected["values"])
        }
        Node::Table(table) if expected.get("columns").is_some() => {
            let scan = Scan { columns: None, region: region(expected.get("region")), filter: None };
            let wanted = sorted_rows(
                expected["columns"]
                    .as_object()
                    .unwrap()
                    .iter()
                    .map(|(name, values)| (name.clone(), values.as_array().unwrap().clone()))
                    .collect(),
            );
            if scan.region.is_empty() {
                let rows = table.rows().map_err(|error| error.to_string())?;
                if rows != wanted.len() as u64 {
                    return Err(format!("{rows} rows counted, expected {}", wanted.len()));
                }
            }
            let found = sorted_rows(columns(&*table, &scan)?);
            same(&Value::from(found), &Value::from(wanted))
        }
        _ => Ok(()),
    }
}

/// The bounds by dimension from a record: `{"x": [low, high]}`.
fn region(record: Option<&Value>) -> Vec<(String, Bounds)> {
    let bound = |value: &Value| match value {
        Value::String(text) => Bound::Bytes(text.clone().into_bytes()),
        Value::Number(number) if number.is_f64() => Bound::Float(number.as_f64().unwrap()),
        number => Bound::Integer(i128::from(number.as_i64().unwrap())),
    };
    let Some(record) = record.and_then(Value::as_object) else { return Vec::new() };
    record
        .iter()
        .map(|(name, ends)| {
            (name.clone(), Bounds { low: Some(bound(&ends[0])), high: Some(bound(&ends[1])) })
        })
        .collect()
}

/// All columns of a scan as JSON.
pub(crate) fn columns(table: &dyn Table, scan: &Scan) -> Result<Vec<(String, Vec<Value>)>, String> {
    let schema = table.schema();
    let mut columns: Vec<(String, Vec<Value>)> =
        schema.columns.iter().map(|column| (column.name.clone(), Vec::new())).collect();
    for batch in table.scan(scan).map_err(|error| error.to_string())? {
        let batch = batch.map_err(|error| error.to_string())?;
        for ((column, elements), (_, values)) in schema.columns.iter().zip(&batch.columns).zip(&mut columns) {
            if elements.len(&column.dtype) != batch.rows {
                return Err(format!("{} elements in a batch of {}", elements.len(&column.dtype), batch.rows));
            }
            values.extend((0..batch.rows).map(|row| element_to_json(&column.dtype, elements, row)));
        }
    }
    Ok(columns)
}

/// Rows as sorted text, because the library does not define their order.
pub(crate) fn sorted_rows(mut columns: Vec<(String, Vec<Value>)>) -> Vec<String> {
    columns.sort_by(|a, b| a.0.cmp(&b.0));
    let count = columns.first().map_or(0, |(_, values)| values.len());
    let mut rows: Vec<String> = (0..count)
        .map(|row| columns.iter().map(|(name, values)| format!("{name}={} ", values[row])).collect())
        .collect();
    rows.sort();
    rows
}

/// Compares two values. The error names the first difference.
pub(crate) fn same(found: &Value, expected: &Value) -> Result<(), String> {
    match (found, expected) {
        (Value::Array(a), Value::Array(b)) => {
            if a.len() != b.len() {
                return Err(format!("{} found, {} expected", a.len(), b.len()));
            }
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                same(a, b).map_err(|problem| format!("[{index}] {problem}"))?;
            }
            Ok(())
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => Ok(()),
        (a, b) if a == b => Ok(()),
        (a, b) => Err(format!("{a:.200} found, {b:.200} expected")),
    }
}
