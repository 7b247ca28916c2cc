//! Queries compared with NumPy, and the conformance pack of the tetration crate from its published sources.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

use hyperslab::Format;
use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::query::document::Document;
use hyperslab::query::{Operation, Query};
use serde_json::Value;

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json_file(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn operation(name: &str) -> Operation {
    match name {
        "sum" => Operation::Sum,
        "mean" => Operation::Mean,
        "min" => Operation::Min,
        "max" => Operation::Max,
        "var" => Operation::Var { ddof: 0 },
        "std" => Operation::Std { ddof: 0 },
        "product" => Operation::Product,
        "norm_l1" => Operation::NormL1,
        "norm_l2" => Operation::NormL2,
        "median" => Operation::Median,
        "argmin" => Operation::ArgMin,
        "argmax" => Operation::ArgMax,
        other => panic!("no operation {other}"),
    }
}

fn number(value: &Value) -> f64 {
    match value {
        Value::String(text) => text.parse().unwrap(),
        Value::Bool(value) => f64::from(u8::from(*value)),
        value => value.as_f64().unwrap_or_else(|| panic!("{value} is not a number")),
    }
}

fn flat(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(flat).collect(),
        single => vec![number(single)],
    }
}

#[test]
fn numpy_gives_the_same_answers() {
    let python = std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with NumPy");
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/query.py");
    run(Command::new(python).arg(script).arg(folder.path()));
    let cases = json_file(&folder.path().join("expected.json"));
    let cases = cases.as_array().unwrap();
    assert!(cases.len() > 300, "{} cases", cases.len());
    for case in cases {
        let name = case["file"].as_str().unwrap();
        let array = hyperslab::open(folder.path().join(format!("{name}.npy"))).unwrap().array("/").unwrap();
        let over = case["over"].as_array().unwrap().iter().map(|axis| axis.as_u64().unwrap() as usize);
        let mut query = Query::new(operation(case["operation"].as_str().unwrap())).over(over);
        query.skip_nan = case["skip_nan"].as_bool().unwrap();
        let found = flat(&query.run(&array).unwrap().to_json().unwrap()["values"]);
        let expected = flat(&case["values"]);
        assert_eq!(found.len(), expected.len(), "{case}");
        for (found, expected) in found.iter().zip(&expected) {
            let close = (found - expected).abs() <= 1e-6 * expected.abs().max(1e-3);
            assert!(
                close || found == expected || found.is_nan() && expected.is_nan(),
                "{found}, expected {expected}: {} {}",
                case["operation"],
                case["file"]
            );
        }
    }
}

/// Sums and means of integers that reach the limits of their type, whichever library wrote the tiles' statistics.
#[test]
fn sums_of_tiles_match_numpy() {
    let python = std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with tiledb");
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/tile_sums.py");
    run(Command::new(python).arg(script).arg(folder.path()));
    let cases = json_file(&folder.path().join("expected.json"));
    for case in cases.as_array().unwrap() {
        let case_number = case["number"].as_u64().unwrap();
        let tile: Vec<u64> =
            case["tile"].as_array().unwrap().iter().map(|extent| extent.as_u64().unwrap()).collect();
        let own = folder.path().join(format!("{case_number}-own.tiledb"));
        let source = hyperslab::open(folder.path().join(format!("{case_number}.npy"))).unwrap();
        let options = ConvertOptions::default().with_chunk_shape(tile);
        convert(&source, &own, Format::TILEDB, &options, &Progress::default()).unwrap();
        for path in [own, folder.path().join(format!("{case_number}.tiledb"))] {
            let store = hyperslab::open(&path).unwrap();
            let array = store.array(&store.only_node().unwrap()).unwrap();
            let ask = |operation| {
                let found = Query::new(operation).run(&array).unwrap().to_json().unwrap();
                match &found["values"] {
                    Value::Array(all) => all[0].clone(),
                    one => one.clone(),
                }
            };
            let (sum, exact) = (ask(Operation::Sum), case["sum"].as_str().unwrap());
            let fits = exact.parse::<i64>().is_ok() || exact.parse::<u64>().is_ok();
            let text = sum.as_str().map_or_else(|| sum.to_string(), str::to_owned);
            let same = if fits { text == exact } else { text.parse::<f64>() == exact.parse::<f64>() };
            assert!(same, "{}: the sum is {sum}, expected {exact}", path.display());
            let (mean, exact) = (number(&ask(Operation::Mean)), number(&case["mean"]));
            let close = (mean - exact).abs() <= exact.abs() * f64::EPSILON;
            assert!(close, "{}: the mean is {mean}, expected {exact}", path.display());
        }
    }
}

/// The sources of the tetration crate, which contain its conformance pack.
fn tetration_sources() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--manifest-path"]);
    cargo.arg(root.join("peers/tetration/Cargo.toml"));
    let metadata: Value = serde_json::from_str(&run(&mut cargo)).unwrap();
    let package =
        metadata["packages"].as_array().unwrap().iter().find(|package| package["name"] == "tetration");
    Path::new(package.unwrap()["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned()
}

#[test]
fn the_conformance_pack_passes() {
    let root = tetration_sources();
    let pack = json_file(&root.join("conformance/manifest.v1.json"));
    let parse = |path: &Value| {
        Document::parse(&std::fs::read_to_string(root.join(path.as_str().unwrap())).unwrap(), false)
    };
    let mut asked = 0;
    for case in pack["accept"].as_array().unwrap().iter().filter(|case| case.get("query").is_some()) {
        let store = hyperslab::open(root.join(case["tet"].as_str().unwrap())).unwrap();
        let answer = parse(&case["query"]).unwrap().run(&store, 0).unwrap();
        for (path, expected) in case["expect"].as_object().unwrap() {
            let found = path.split('.').fold(&answer, |value, key| &value[key]);
            let (found, expected) = match expected {
                Value::Bool(_) => {
                    assert_eq!(found, expected, "{}: {path}", case["id"]);
                    continue;
                }
                _ => (flat(found), flat(expected)),
            };
            assert_eq!(found.len(), expected.len(), "{}: {path}", case["id"]);
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (found - expected).abs() <= 1e-5,
                    "{}: {path}: {found}, expected {expected}",
                    case["id"]
                );
            }
        }
        asked += 1;
    }
    for case in pack["reject_query"].as_array().unwrap() {
        let refusal =
            parse(&case["query"]).expect_err(case["id"].as_str().unwrap()).to_string().to_lowercase();
        let words = case["expect_error_substr"].as_str().unwrap().to_lowercase();
        assert!(refusal.contains(&words), "{}: {refusal:?} has no {words:?}", case["id"]);
        asked += 1;
    }
    assert!(asked >= 40, "only {asked} cases");
}
