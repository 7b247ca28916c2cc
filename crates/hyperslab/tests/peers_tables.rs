//! Tables: conditions and aggregations match pandas and TileDB, and TileDB reads what we write.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use hyperslab::convert::{ConvertOptions, Progress, TableOptions, convert};
use hyperslab::query::Operation;
use hyperslab::table::{Aggregation, TableQuery};
use hyperslab::{Format, RowOrder, Selection};
use serde_json::Value;

fn script(command: &str, folder: &Path) -> String {
    let python = std::env::var("HYPERSLAB_PEERS")
        .expect("HYPERSLAB_PEERS names an interpreter with tiledb and pandas");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/tables.py");
    let output = Command::new(python).arg(script).arg(command).arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns true if this build reads such files.
fn is_read(name: &str) -> bool {
    cfg!(feature = "arrow") || !(name.ends_with("parquet") || name.ends_with("arrow"))
}

/// A whole column as JSON.
fn column(rows: hyperslab::rows::Rows<'_>, name: &str) -> Vec<Value> {
    let (columns, batch) = rows.collect().unwrap();
    let at = columns.iter().position(|column| column.name == name).unwrap();
    (0..batch.rows)
        .map(|row| hyperslab::rows::cell_to_json(&columns[at].dtype, &batch.columns[at], row))
        .collect()
}

fn close(found: &[Value], expected: &Value) -> bool {
    let expected = expected.as_array().unwrap();
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(a, b)| match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1.0),
            _ => a == b,
        })
}

#[test]
fn conditions_and_groups_match_pandas() {
    let folder = tempfile::tempdir().unwrap();
    let made: Value = serde_json::from_str(&script("make", folder.path())).unwrap();
    for (name, answers) in made.as_object().unwrap().iter().filter(|(name, _)| is_read(name)) {
        let store = hyperslab::open(folder.path().join(name)).unwrap();
        let table = store.table("/").unwrap();
        for (condition, expected) in answers["rows"].as_object().unwrap() {
            // In text files, missing integers are empty fields and enumerations are text; the same queries must work.
            let scan = table
                .scan_where(&Selection::all(), Some(&["x".to_owned()]), Some(&condition.parse().unwrap()))
                .unwrap_or_else(|why| panic!("{name}: {condition}: {why}"));
            let mut found: Vec<i64> = column(table.rows_of(&scan).unwrap(), "x")
                .iter()
                .map(|value| value.as_i64().unwrap())
                .collect();
            found.sort_unstable();
            let expected: Vec<i64> =
                expected.as_array().unwrap().iter().map(|value| value.as_i64().unwrap()).collect();
            // A float written as text has the digits of its own precision.
            if name == "rows.csv" && condition.starts_with("ratio") {
                continue;
            }
            assert_eq!(found, expected, "{name}: {condition}");
        }
        let query = || {
            TableQuery::new([
                Aggregation::of(Operation::Mean, "score"),
                Aggregation::of(Operation::Std { ddof: 0 }, "score"),
                Aggregation::of(Operation::Median, "score"),
                Aggregation::of(Operation::Sum, "count"),
                Aggregation::of(Operation::Min, "x"),
                Aggregation::of(Operation::Max, "x"),
                Aggregation::of(Operation::Count, "weight"),
                Aggregation::rows(),
            ])
            .filter("count > 20".parse().unwrap())
            .by(["type"])
        };
        let groups = &answers["groups"];
        let keys = column(query().run(&table).unwrap(), "type");
        // Texts sort as text, enumerations by the order of their values.
        let place: Vec<usize> = keys
            .iter()
            .map(|key| groups["type"].as_array().unwrap().iter().position(|own| own == key).unwrap())
            .collect();
        for (field, expected) in groups.as_object().unwrap() {
            let found = column(query().run(&table).unwrap(), field);
            let expected: Vec<Value> = place.iter().map(|at| expected[*at].clone()).collect();
            assert!(
                close(&found, &Value::Array(expected.clone())),
                "{name}: {field}: {found:?} {expected:?}"
            );
        }
    }
}

#[test]
fn tiledb_reads_our_tables() {
    let folder = tempfile::tempdir().unwrap();
    script("make", folder.path());
    let path = |name: &str| folder.path().join(name);
    let write = |from: &str, to: &str, table: TableOptions, options: ConvertOptions| {
        let source = hyperslab::open(path(from)).unwrap();
        let options = options.with_table(table);
        convert(&source, &path(to), Format::TILEDB, &options, &Progress::default())
            .unwrap_or_else(|why| panic!("{from} to {to}: {why}"))
    };
    let over = |names: &[&str]| {
        TableOptions::default().with_dimensions(names.iter().map(|name| (*name).to_owned()).collect())
    };
    let plain = ConvertOptions::default;
    for kind in ["csv", "parquet", "arrow"].into_iter().filter(|kind| is_read(kind)) {
        let report =
            write(&format!("rows.{kind}"), &format!("from_{kind}.tiledb"), over(&["x", "y"]), plain());
        assert_eq!(report.rows, 5000);
    }
    write("plain.tiledb", "from_copy.tiledb", TableOptions::default(), plain());
    let curve = over(&["x", "y"]).with_duplicates(true).with_order(RowOrder::Hilbert);
    write("plain.tiledb", "from_curve.tiledb", curve, plain());
    // A low memory limit: each batch becomes a fragment.
    let little = plain().with_memory(200 << 10);
    write("rows.csv", "grown.tiledb", over(&["x", "y"]), little.clone());
    write("more.csv", "grown.tiledb", TableOptions::default(), little.with_append(true));
    write("rows.csv", "names.tiledb", over(&["name", "x"]), plain());
    write("dense.tiledb", "dense_copy.tiledb", TableOptions::default(), plain());
    for name in ["from_copy", "merged"] {
        let (old, new) = (path(&format!("{name}.tiledb")), path(&format!("{name}_less.tiledb")));
        assert!(Command::new("cp").arg("-r").arg(&old).arg(&new).status().unwrap().success());
        let mut left: Vec<i64> = Vec::new();
        for condition in [
            "count > 50 and (type == 'NK' or name in ('n1', 'n2'))",
            "ratio == 0.3",
            "x between 5 and 99",
            "type in ('B', 'NK')",
        ] {
            let condition: hyperslab::RowCondition = condition.parse().unwrap();
            let count = |text: &str| {
                let store = hyperslab::open(&new).unwrap();
                let table = store.table("/").unwrap();
                let parsed: hyperslab::RowCondition = text.parse().unwrap();
                let scan =
                    table.scan_where(&Selection::all(), Some(&["x".to_owned()]), Some(&parsed)).unwrap();
                column(table.rows_of(&scan).unwrap(), "x")
            };
            let gone = count(&condition.to_string()).len() as u64;
            let deleted =
                hyperslab::fragments::delete_rows(&new, &condition, &hyperslab::OpenOptions::default());
            assert_eq!(deleted.unwrap(), gone, "{name}: {condition}");
            assert!(count(&condition.to_string()).is_empty());
            left = count("true").iter().map(|value| value.as_i64().unwrap()).collect();
        }
        left.sort_unstable();
        assert!(!left.is_empty());
        std::fs::write(path(&format!("{name}_less.json")), serde_json::to_string(&left).unwrap()).unwrap();
    }
    script("check", folder.path());
    // Rows that do not fit are rejected, and nothing is written.
    let refused = |from: &str, to: &str, options: ConvertOptions| {
        let source = hyperslab::open(path(from)).unwrap();
        convert(&source, &path(to), Format::TILEDB, &options, &Progress::default()).unwrap_err().to_string()
    };
    let error = refused("rows.csv", "x.tiledb", plain());
    assert!(error.contains("--dimensions"), "{error}");
    let error = refused("rows.csv", "x.tiledb", plain().with_table(over(&["x", "z"])));
    assert!(error.contains("no column z"), "{error}");
    let error = refused("rows.csv", "x.tiledb", plain().with_table(over(&["y"])));
    assert!(error.contains("same coordinates"), "{error}");
    let error = refused("rows.csv", "x.tiledb", plain().with_table(over(&["weight"])));
    assert!(error.contains("has no value for the dimension weight"), "{error}");
    assert!(!path("x.tiledb").exists());
    assert_eq!(
        hyperslab::open(path("grown.tiledb")).unwrap().table("/").unwrap().inner().rows().unwrap(),
        5500
    );
}
