//! Arrow and Parquet files read back by pyarrow.
#![cfg(feature = "arrow")]

use std::path::Path;
use std::process::Command;

use hyperslab::rows::{self, Rows};
use hyperslab::{
    Batch, Column, DType, Data, Elements, EnumType, Result, Selection, StructType, TimeUnit, Validity, Values,
};
use serde_json::{Value, json};

/// Reads the files of a folder with pyarrow.
fn pyarrow(folder: &Path) -> Value {
    let python = std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names a Python with pyarrow");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/arrow.py");
    let output = Command::new(python).arg(script).arg(folder).output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

fn bytes<T: bytemuck::NoUninit>(numbers: &[T]) -> Elements {
    Elements::fixed(bytemuck::cast_slice(numbers).to_vec())
}

/// A column, its three elements, pyarrow's type and values, and the type in Parquet if it differs.
type Case = (&'static str, DType, Elements, &'static str, Value, Option<&'static str>);

fn cases() -> Vec<Case> {
    let list = Elements {
        data: Data::List { offsets: vec![0, 2, 2, 3], items: Box::new(bytes(&[1_i32, 2, 3])) },
        validity: None,
    };
    let texts = ["a", "", "ß"];
    let point = StructType::packed([("a", DType::Int16), ("b", DType::Float64)]);
    let mut points = Vec::new();
    for (a, b) in [(1_i16, 0.5_f64), (2, 1.5), (3, 2.5)] {
        points.extend_from_slice(&a.to_ne_bytes());
        points.extend_from_slice(&b.to_ne_bytes());
    }
    let color = EnumType::new(DType::UInt8, vec![("red".to_owned(), 0), ("blue".to_owned(), 7)]);
    let wide: Vec<u32> = "ab\0c\0\0de\0".chars().map(u32::from).collect();
    let nat = i64::MIN;
    vec![
        ("bool", DType::Bool, Elements::fixed(vec![1, 0, 1]), "bool", json!([true, false, true]), None),
        ("u64", DType::UInt64, bytes(&[0, 1, u64::MAX]), "uint64", json!([0, 1, u64::MAX]), None),
        ("i8", DType::Int8, bytes(&[-1_i8, 0, 1]), "int8", json!([-1, 0, 1]), None),
        ("f16", DType::Float16, bytes(&[0x3c00_u16, 0, 0xc000]), "halffloat", json!([1.0, 0.0, -2.0]), None),
        (
            "missing",
            DType::Int32,
            bytes(&[4, 5, 6]).with_validity(Some(Validity::from_flags([true, false, true]))),
            "int32",
            json!([4, null, 6]),
            None,
        ),
        (
            "complex",
            DType::Complex64,
            bytes(&[1_f32, 2., 3., 4., 5., 6.]),
            "fixed_size_list<item: float not null>[2]",
            json!([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
            None,
        ),
        (
            "day",
            DType::DateTime(TimeUnit::Day),
            bytes(&[18_262, nat, -1]),
            "date32[day]",
            json!(["2020-01-01", null, "1969-12-31"]),
            None,
        ),
        (
            "hour",
            DType::DateTime(TimeUnit::Hour),
            bytes(&[1, nat, -1]),
            "timestamp[s]",
            json!(["1970-01-01T01:00:00", null, "1969-12-31T23:00:00"]),
            Some("timestamp[ms]"),
        ),
        (
            "micro",
            DType::DateTime(TimeUnit::Microsecond),
            bytes(&[1, nat, 0]),
            "timestamp[us]",
            json!(["1970-01-01T00:00:00.000001", null, "1970-01-01T00:00:00"]),
            None,
        ),
        (
            "nano",
            DType::DateTime(TimeUnit::Nanosecond),
            bytes(&[1, nat, 3]),
            "timestamp[ns]",
            json!([1, null, 3]),
            None,
        ),
        (
            "year",
            DType::DateTime(TimeUnit::Year),
            bytes(&[50_i64, 51, 52]),
            "int64",
            json!([50, 51, 52]),
            None,
        ),
        (
            "span",
            DType::Duration(TimeUnit::Millisecond),
            bytes(&[1500_i64, nat, 0]),
            "duration[ms]",
            json!([1.5, null, 0.0]),
            None,
        ),
        (
            "fixed",
            DType::FixedBytes(2),
            Elements::fixed(b"abc\0de".to_vec()),
            "fixed_size_binary[2]",
            json!(["6162", "6300", "6465"]),
            None,
        ),
        ("wide", DType::FixedText(3), bytes(&wide), "large_string", json!(["ab", "c", "de"]), None),
        ("text", DType::String, Elements::variable(texts), "large_string", json!(texts), None),
        (
            "bytes",
            DType::Bytes,
            Elements::variable([&b"\xff"[..], b"", b"z"]),
            "large_binary",
            json!(["ff", "", "7a"]),
            None,
        ),
        ("color", color.into(), Elements::fixed(vec![0, 7, 9]), "uint8", json!([0, 7, 9]), None),
        (
            "point",
            point.into(),
            Elements::fixed(points),
            "struct<a: int16, b: double>",
            json!([{"a": 1, "b": 0.5}, {"a": 2, "b": 1.5}, {"a": 3, "b": 2.5}]),
            None,
        ),
        (
            "list",
            DType::List(DType::Int32.into()),
            list,
            "large_list<item: int32>",
            json!([[1, 2], [], [3]]),
            None,
        ),
        (
            "matrix",
            DType::Array(DType::Int16.into(), vec![2, 2]),
            bytes(&(0..12).collect::<Vec<i16>>()),
            "fixed_size_list<item: fixed_size_list<item: int16>[2]>[2]",
            json!([[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]),
            None,
        ),
    ]
}

#[test]
fn pyarrow_reads_every_type() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = || {
        let column = |case: &Case| Column {
            name: case.0.to_owned(),
            dtype: case.1.clone(),
            nullable: case.2.validity.is_some(),
            dimension: false,
            filters: Vec::new(),
        };
        let columns = cases().iter().map(column).collect();
        Rows::once(columns, Batch { rows: 3, columns: cases().into_iter().map(|case| case.2).collect() })
    };
    for name in ["x.arrow", "x.parquet"] {
        rows::write(rows(), &folder.path().join(name), false)?;
    }
    let found = pyarrow(folder.path());
    for (name, _, _, kind, values, in_parquet) in cases() {
        assert_eq!(found["x.arrow"][name]["type"], kind, "{name}");
        assert_eq!(found["x.arrow"][name]["values"], values, "{name}");
        assert_eq!(found["x.parquet"][name]["type"], in_parquet.unwrap_or(kind), "{name}");
        assert_eq!(found["x.parquet"][name]["values"], values, "{name}");
    }
    Ok(())
}

#[test]
fn pyarrow_reads_arrays_in_several_batches() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("x.npy");
    let cells: Vec<i32> = (0..600 * 700).collect();
    let values = Values::new(DType::Int32, &[600, 700], bytes(&cells))?;
    hyperslab::export::write(&values, &source, false)?;
    let array = hyperslab::open(&source)?.array("/")?;
    for name in ["x.arrow", "x.parquet"] {
        rows::write(array.rows(&Selection::all())?, &folder.path().join(name), false)?;
    }
    let found = pyarrow(folder.path());
    for name in ["x.arrow", "x.parquet"] {
        assert_eq!(found[name]["value"]["values"], json!(cells));
        assert_eq!(found[name]["dim_0"]["values"][699 + 700 * 599], 599);
        assert_eq!(found[name]["dim_1"]["values"][699 + 700 * 599], 699);
    }
    Ok(())
}
