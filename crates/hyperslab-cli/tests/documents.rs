//! Query documents through the command: `tet query DOC -t FILE -x --format json --preview 0`, and documents alone.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

fn tet(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tet")).current_dir(folder).args(words).output().expect("tet starts")
}

/// A folder with `x.tet`: the rows 1, 2, 3 and 4, 5, 6 of a dataset named `arr_0`.
fn sample() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend(118_u16.to_le_bytes());
    npy.extend(format!("{header:<117}\n").bytes());
    npy.extend((1..=6_u8).flat_map(|number| f32::from(number).to_le_bytes()));
    std::fs::write(folder.path().join("arr_0.npy"), npy).expect("the sample");
    for words in [["arr_0.npy", "x.npz"], ["x.npz", "x.tet"]] {
        let made = tet(folder.path(), &["convert", words[0], words[1], "--chunks", "1,2"]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    folder
}

fn asked(folder: &Path, document: &str, name: &str) -> Output {
    std::fs::write(folder.join(name), document).expect("the document");
    tet(folder, &["query", name, "-t", "x.tet", "-x", "--format", "json", "--preview", "0"])
}

#[test]
fn answers_have_the_fields_and_values_of_the_conformance_pack() {
    let folder = sample();
    let window = json!({"axis": 1, "size": 2, "mode": "rolling"});
    for (document, field, expected) in [
        (json!({"dataset": "arr_0", "mean": []}), "operation_mean", json!(3.5)),
        (json!({"dataset": "arr_0", "sum": []}), "operation_sum", json!(21.0)),
        (json!({"dataset": "arr_0", "sum": []}), "operation_element_count", json!(6)),
        (json!({"dataset": "arr_0", "filter": {"gt": 2}, "sum": []}), "operation_sum", json!(18.0)),
        (json!({"dataset": "arr_0", "filter": {"gt": 2}, "sum": []}), "operation_element_count", json!(4)),
        (json!({"dataset": "arr_0", "sum": 0}), "operation_reduced_sum", json!([5.0, 7.0, 9.0])),
        (json!({"dataset": "arr_0", "mean": 1}), "operation_reduced_mean", json!([2.0, 5.0])),
        (json!({"dataset": "arr_0", "window": window, "sum": []}), "window_count", json!(2)),
        (json!({"dataset": "arr_0", "group_by": [0], "sum": []}), "group_count", json!(2)),
    ] {
        let output = asked(folder.path(), &document.to_string(), "q.json");
        let text = String::from_utf8(output.stdout).expect("text");
        assert_eq!(output.status.code(), Some(0), "{document}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(text.lines().count(), 1, "compact: {text}");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(answer["execution"][field], expected, "{document}: {text}");
    }
    let output = asked(folder.path(), "dataset = \"arr_0\"\nvar = []\n", "q.toml");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let var = answer["execution"]["operation_var"].as_f64().expect("a number");
    assert!((var - 35.0 / 12.0).abs() < 1e-5, "{answer}");
}

/// Rejected without opening a file, with messages that contain the words that the conformance pack expects.
#[test]
fn invalid_documents_are_rejected_with_these_words() {
    let folder = sample();
    for (document, words) in [
        (json!({"dataset": "x", "bogus": 1}), "unknown field"),
        (json!({"dataset": "x", "operation": {"mean": []}}), "nested `operation`"),
        (json!({"dataset": "x", "output": {"spill": "y"}}), "nested `output`"),
        (json!({"dataset": "x", "filter": {"above": 1}, "sum": []}), "unknown"),
        (json!({"dataset": ""}), "non-empty string"),
        (json!({"dataset": "x", "sum": [], "mean": []}), "at most one reduction key"),
        (json!({"dataset": "x", "window": {"axis": 0, "size": 0, "mode": "bins"}, "sum": []}), "window.size"),
        (json!({"dataset": "x", "window": {"axis": 0, "size": 2, "mode": "bins"}}), "requires a reduction"),
        (json!({"dataset": "x", "group_by": {"by": "colour", "axes": [0]}, "sum": []}), "group_by.by"),
    ] {
        std::fs::write(folder.path().join("q.json"), document.to_string()).expect("the document");
        let output = tet(folder.path(), &["query", "q.json"]);
        let error = String::from_utf8_lossy(&output.stderr).to_lowercase();
        assert_ne!(output.status.code(), Some(0), "{document}");
        assert!(error.contains(words), "{document}: {error}");
    }
    let fine = tet(folder.path(), &["query", "q.json", "-t", "missing.tet", "-x"]);
    assert_eq!(fine.status.code(), Some(2));
}

/// References have the extension of query documents, but are stores.
#[test]
fn references_are_queried_as_stores() {
    let folder = sample();
    let text = |words: &[&str]| {
        let output = tet(folder.path(), words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {error}");
        String::from_utf8(output.stdout).expect("text")
    };
    text(&["references", "x.tet", "-o", "refs.json"]);
    assert_eq!(text(&["query", "refs.json", "--sum"]), text(&["query", "x.tet", "--sum"]));
    // Their targets may be anywhere, if the user says so.
    std::fs::create_dir(folder.path().join("elsewhere")).expect("a folder");
    let moved = folder.path().join("elsewhere/refs.json");
    std::fs::rename(folder.path().join("refs.json"), &moved).expect("moved");
    text(&["diff", "elsewhere/refs.json", "x.tet", "--values-only", "--external", "any"]);
    let refused = tet(folder.path(), &["diff", "elsewhere/refs.json", "x.tet", "--values-only"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--external any"));
}
