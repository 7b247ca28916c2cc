//! Rows, differences and hashes through the command.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Runs `tet`, checks the exit code, and returns stdout, or stderr for exit code 2.
fn output_of(folder: &Path, code: i32, words: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tet")).current_dir(folder).args(words).output().expect("tet starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "tet {words:?}\n{out}\n{err}");
    if code == 2 { err.into_owned() } else { out.into_owned() }
}

fn json(folder: &Path, code: i32, words: &[&str]) -> Value {
    serde_json::from_str(&output_of(folder, code, words)).expect("one JSON document")
}

/// A `.npy` file: the header NumPy writes, then the data.
fn npy(path: &Path, descr: &str, shape: &str, data: &[u8]) {
    let mut header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    std::fs::write(path, bytes).expect("a file");
}

fn structs(folder: &Path) {
    let mut data = Vec::new();
    for row in 0..30_u8 {
        data.extend_from_slice(&[row, b'a' + row % 26]);
    }
    npy(&folder.join("s.npy"), "[('n', '|u1'), ('t', '|S1')]", "(30,)", &data);
}

#[test]
fn structs_are_read_as_columns() {
    let folder = tempfile::tempdir().expect("a folder");
    structs(folder.path());
    let run = |words: &[&str]| output_of(folder.path(), 0, words);
    run(&["read", "s.npy", "[1:3]", "-o", "s.csv"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("s.csv")).expect("a file"), "n,t\n1,b\n2,c\n");
    let text = run(&["read", "s.npy", "--columns", "t,n"]);
    assert!(text.contains('…') && text.contains("30 rows × 2 columns"), "{text}");
    assert_eq!(text.lines().count(), 1 + 10 + 1 + 10 + 1);
    let document = json(folder.path(), 0, &["read", "s.npy", "[:2]", "--columns", "t", "--json"]);
    assert_eq!(document, json!({"t": ["a", "b"]}));
    for name in ["s.arrow", "s.parquet"] {
        run(&["read", "s.npy", "-o", name]);
        let bytes = std::fs::read(folder.path().join(name)).expect("a file");
        assert!(bytes.starts_with(b"ARROW1") || bytes.starts_with(b"PAR1"));
        assert!(output_of(folder.path(), 2, &["read", "s.npy", "-o", name]).contains("--force"));
    }
    assert!(
        output_of(folder.path(), 2, &["read", "s.npy", "--columns", "q"])
            .contains("no column q; there are n, t")
    );
    assert!(
        output_of(folder.path(), 2, &["read", "s.npy", "--level", "1"])
            .contains("only geometries and multiscale images have levels")
    );
}

#[test]
fn tables_are_converted_to_files_of_rows_and_geometry() {
    let folder = tempfile::tempdir().expect("a folder");
    structs(folder.path());
    let report = json(folder.path(), 0, &["convert", "s.npy", "s.parquet", "--json"]);
    assert_eq!((&report["rows"], &report["format"]), (&json!(30), &json!("parquet")));
    assert!(output_of(folder.path(), 2, &["convert", "s.npy", "s.parquet"]).contains("--force"));
    let text = output_of(folder.path(), 0, &["convert", "s.npy", "s.csv", "--select", "[1:3]", "--quiet"]);
    assert_eq!(text, "");
    assert_eq!(std::fs::read_to_string(folder.path().join("s.csv")).expect("a file"), "n,t\n1,b\n2,c\n");
    assert!(
        output_of(folder.path(), 2, &["convert", "s.npy", "s.arrow", "--chunks", "4"])
            .contains("do not apply")
    );
    assert!(output_of(folder.path(), 2, &["convert", "s.npy", "s.what"]).contains("use --to"));
    assert!(
        output_of(folder.path(), 2, &["convert", "s.npy", "s.tet", "--levels", "1"]).contains("OME-Zarr")
    );

    let places: Vec<u8> = (0..300_u16).flat_map(|at| f32::from(at).to_le_bytes()).collect();
    npy(&folder.path().join("p.npy"), "'<f4'", "(100, 3)", &places);
    let words = ["convert", "p.npy", "p.zv", "--chunks", "50,50,50.5", "--levels", "1", "--json"];
    assert_eq!(json(folder.path(), 0, &words)["rows"], 100);
    let found = json(folder.path(), 0, &["read", "p.zv", "--box", "0,0,0,5,5,5", "--json"]);
    assert_eq!(found["vertices"], json!([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]));
    assert!(
        output_of(folder.path(), 2, &["convert", "p.npy", "q.zv", "--chunks", "4MiB"])
            .contains("sizes of a chunk")
    );
    assert!(output_of(folder.path(), 2, &["convert", "p.npy", "q.zv", "--chunks", "0"]).contains("chunk"));
}

#[test]
fn differences_and_hashes_agree_in_every_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let numbers: Vec<u8> = (0..600_u16).flat_map(|cell| f32::from(cell).to_le_bytes()).collect();
    npy(&folder.path().join("a.npy"), "'<f4'", "(20, 30)", &numbers);
    let mut others = numbers;
    others[4 * 35..4 * 36].copy_from_slice(&35.5_f32.to_le_bytes());
    npy(&folder.path().join("b.npy"), "'<f4'", "(20, 30)", &others);
    let hash = |path: &str| json(folder.path(), 0, &["hash", path, "--json"])["hash"].clone();
    for target in ["a.tet", "a.zarr"] {
        output_of(folder.path(), 0, &["convert", "a.npy", target, "--chunks", "7,11"]);
        assert_eq!(hash(target), hash("a.npy"), "{target}");
        let text = output_of(folder.path(), 0, &["diff", "a.npy", target, "--no-attributes"]);
        assert!(text.starts_with("same"), "{text}");
        let text = output_of(folder.path(), 1, &["diff", target, "b.npy", "--no-attributes"]);
        assert!(text.contains("1 of 600 differ, first at [1, 5]: 35.0 ≠ 35.5"), "{text}");
        output_of(folder.path(), 0, &["diff", target, "b.npy", "--no-attributes", "--atol", "0.5"]);
    }
    assert_ne!(hash("a.npy"), hash("b.npy"));
    let report = json(folder.path(), 1, &["diff", "a.npy", "b.npy", "--json"]);
    assert_eq!(report["differences"][0]["first"], json!([1, 5]));
    assert_eq!(report["differences"][0]["largest"], json!(0.5));
    assert_eq!(output_of(folder.path(), 1, &["diff", "a.npy", "b.npy", "-q"]), "");
    assert!(output_of(folder.path(), 2, &["diff", "a.npy", "none.npy"]).contains("none.npy"));
}

#[test]
fn a_record_reveals_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    npy(&folder.path().join("a.npy"), "'<i2'", "(6,)", &[1; 12]);
    output_of(folder.path(), 0, &["convert", "a.npy", "a.zarr", "--chunks", "2"]);
    let inside = output_of(folder.path(), 2, &["verify", "a.zarr", "--record", "a.zarr/sums.json"]);
    assert!(inside.contains("inside the store"), "{inside}");
    output_of(folder.path(), 0, &["verify", "a.zarr", "--record", "sums.json"]);
    output_of(folder.path(), 0, &["verify", "a.zarr", "--against", "sums.json"]);
    let record: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("sums.json")).expect("a file"))
            .expect("JSON");
    assert_eq!(
        (record["chunks"][1]["chunk"][0].clone(), record["chunks"][1]["bytes"].clone()),
        (json!(1), json!(4))
    );
    std::fs::remove_file(folder.path().join("a.zarr").join("c/1")).expect("a chunk");
    let text = output_of(folder.path(), 0, &["verify", "a.zarr", "--no-consolidated"]);
    assert!(text.contains("1 of 3 chunks was never written or is missing"), "{text}");
    let text = output_of(folder.path(), 1, &["verify", "a.zarr", "--against", "sums.json"]);
    assert!(text.contains("chunk [1] was recorded but no longer exists"), "{text}");
    assert!(
        output_of(folder.path(), 2, &["verify", "a.zarr", "--against", "a.npy"]).contains("not a record")
    );
}

/// Rows of a CSV file are filtered, grouped, and converted to a sparse array that can be appended to.
#[test]
fn rows_are_filtered_grouped_and_imported() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |words: &[&str]| output_of(folder.path(), 0, words);
    let rows = "x,y,count,type,score\n1,1,60,NK,1.5\n2,1,70,B,2\n3,2,80,NK,\n4,2,10,NK,9\n";
    std::fs::write(folder.path().join("cells.csv"), rows).expect("a file");
    run(&["convert", "cells.csv", "cells.tiledb", "--dimensions", "x,y"]);
    for source in ["cells.csv", "cells.tiledb"] {
        let condition = ["--where", "count > 50 and type == 'NK'"];
        let found = json(folder.path(), 0, &["read", source, condition[0], condition[1], "--json"]);
        assert_eq!(found["x"], json!([1, 3]), "{source}");
        assert_eq!(found["score"], json!([1.5, null]), "{source}");
        let found = json(
            folder.path(),
            0,
            &[
                "query",
                source,
                "--where",
                "count > 50",
                "--mean",
                "score",
                "--sum",
                "count,x",
                "--count",
                "--by",
                "type",
                "--json",
            ],
        );
        let expected = json!({"type": ["B", "NK"], "score_mean": [2.0, 1.5], "count_sum": [70, 140], "x_sum": [2, 4], "count": [1, 2]});
        assert_eq!(found, expected, "{source}");
    }
    assert!(run(&["query", "cells.tiledb", "--where", "x > 2"]).contains('2'));
    run(&["query", "cells.tiledb", "--mean", "score", "--by", "type", "-o", "means.csv"]);
    let means = std::fs::read_to_string(folder.path().join("means.csv")).expect("a file");
    assert_eq!(means, "type,score_mean\nB,2.0\nNK,5.25\n");
    for name in ["means.parquet", "means.arrow"] {
        run(&["query", "cells.tiledb", "--mean", "score", "--by", "type", "-o", name]);
        let found = json(folder.path(), 0, &["read", name, "--json"]);
        assert_eq!(found, json!({"type": ["B", "NK"], "score_mean": [2.0, 5.25]}));
    }
    std::fs::write(folder.path().join("more.csv"), "x,y,count,type,score\n9,9,1,T,0\n").expect("a file");
    run(&["convert", "more.csv", "cells.tiledb", "--append"]);
    assert_eq!(
        json(folder.path(), 0, &["query", "cells.tiledb", "--count", "--json"]),
        json!({"count": [5]})
    );
    for (words, expected) in [
        (&["read", "cells.tiledb", "--where", "cuont > 5"][..], "did you mean count?"),
        (&["read", "cells.tiledb", "--where", "count > 'x'"], "column count holds int64"),
        (&["query", "cells.tiledb", "--mean", "type"], "no mean"),
        (&["query", "cells.tiledb", "--mean"], "name the columns"),
        (&["query", "cells.tiledb", "--by", "tpye"], "did you mean type?"),
        (&["convert", "cells.csv", "again.tiledb"], "--dimensions"),
    ] {
        let error = output_of(folder.path(), 2, words);
        assert!(error.contains(expected), "{words:?}: {error}");
    }
    std::fs::write(folder.path().join("ragged.csv"), "a,b\n1,2\n3\n").expect("a file");
    assert!(output_of(folder.path(), 2, &["read", "ragged.csv"]).contains("line 3 has 1 field,"));
    assert!(!folder.path().join("again.tiledb").exists());
}
