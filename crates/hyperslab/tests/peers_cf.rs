//! Reductions of arrays with missing and packed values, compared with xarray's.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use hyperslab::query::{Operation, Query};
use serde_json::Value;

/// Writes files and prints xarray's answers: file, array, question, values.
fn answers(script: &str, folder: &Path) -> Vec<Value> {
    let python = std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with xarray");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(script);
    let output = Command::new(python).arg(script).arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn flat(value: &Value, out: &mut Vec<Option<f64>>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| flat(item, out)),
        Value::String(text) if text == "NaN" => out.push(None),
        other => out.push(other.as_f64()),
    }
}

fn close(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-12 * a.abs().max(b.abs()).max(1.0),
        (a, b) => a.is_none() && b.is_none(),
    }
}

#[test]
fn answers_match_xarray() {
    let folder = tempfile::tempdir().unwrap();
    let answers = answers("cf_reductions.py", folder.path());
    assert!(answers.len() > 2000, "{} answers", answers.len());
    for answer in &answers {
        let text = |name: &str| answer[name].as_str().unwrap();
        let operation = match text("operation") {
            "mean" => Operation::Mean,
            "sum" => Operation::Sum,
            "min" => Operation::Min,
            "max" => Operation::Max,
            "std" => Operation::Std { ddof: 0 },
            "var" => Operation::Var { ddof: 0 },
            "count" => Operation::Count,
            "median" => Operation::Median,
            other => unreachable!("{other}"),
        };
        let store = hyperslab::open(folder.path().join(text("file"))).unwrap();
        let array = store.array(text("array")).unwrap().decoded().unwrap();
        let mut query = Query::new(operation);
        if let Some(axis) = answer["axis"].as_str() {
            query = query.over([axis]);
        }
        let found = query.run(&array).unwrap();
        let (mut own, mut wanted) = (Vec::new(), Vec::new());
        flat(&found.values().unwrap().to_json(), &mut own);
        flat(&answer["values"], &mut wanted);
        let same = own.len() == wanted.len() && own.iter().zip(&wanted).all(|(a, b)| close(*a, *b));
        assert!(same, "{answer}: {own:?}");
        if let Some(missing) = found.missing {
            assert_eq!(Some(missing), answer["missing"].as_u64(), "{answer}");
        }
    }
}

#[test]
fn selections_by_date_match_xarray() {
    let folder = tempfile::tempdir().unwrap();
    let answers = answers("cf_times.py", folder.path());
    assert!(answers.len() > 50, "{} answers", answers.len());
    for answer in &answers {
        let text = |name: &str| answer[name].as_str().unwrap();
        let store = hyperslab::open(folder.path().join(text("file"))).unwrap();
        let found = store.array("/v").unwrap().read(&text("selection").parse().unwrap());
        match answer["values"].as_array() {
            Some(values) => {
                let values: Vec<i32> = values.iter().map(|value| value.as_i64().unwrap() as i32).collect();
                let found = found.unwrap_or_else(|why| panic!("{answer}: {why}"));
                let mut cells = Vec::new();
                flat(&found.to_json(), &mut cells);
                let cells: Vec<i32> = cells.into_iter().map(|cell| cell.unwrap() as i32).collect();
                let ends =
                    cells.first().zip(cells.last()).map(|(first, last)| [*first, *last, cells.len() as i32]);
                assert_eq!(ends.map_or(Vec::new(), Vec::from), values, "{answer}");
            }
            // xarray raises an error for a missing label.
            None => {
                let why = found.expect_err(&answer.to_string()).to_string();
                assert!(why.contains("has no label") && why.contains("nearest"), "{why}");
            }
        }
    }
}

#[test]
fn selections_by_label_match_xarray() {
    let folder = tempfile::tempdir().unwrap();
    let answers = answers("labels.py", folder.path());
    assert!(answers.len() > 100, "{} answers", answers.len());
    for answer in &answers {
        let text = |name: &str| answer[name].as_str().unwrap();
        let store = hyperslab::open(folder.path().join(text("file"))).unwrap();
        let found = store.array(text("array")).unwrap().read(&text("selection").parse().unwrap());
        let (mut own, mut wanted) = (Vec::new(), Vec::new());
        match &answer["values"] {
            // xarray raises an error for a missing label.
            Value::Null => {
                let why = found.expect_err(&answer.to_string()).to_string();
                assert!(why.contains("has no label"), "{why}");
            }
            values => {
                flat(values, &mut wanted);
                flat(&found.unwrap_or_else(|why| panic!("{answer}: {why}")).to_json(), &mut own);
                assert_eq!(own, wanted, "{answer}");
            }
        }
    }
}
