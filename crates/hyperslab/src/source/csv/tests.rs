use std::path::Path;

use hyperslab_core::{Result, Selection};
use serde_json::json;

fn read(folder: &Path, name: &str, text: &str) -> Result<serde_json::Value> {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    let store = crate::open(&path)?;
    let table = store.table("/")?;
    let mut out = Vec::new();
    crate::rows::write_json(table.rows(&Selection::all(), None)?, &mut out)?;
    let types: Vec<_> = table.schema().columns.iter().map(|column| column.dtype.to_string()).collect();
    Ok(
        json!({"types": types, "rows": table.inner().rows()?, "values": serde_json::from_slice::<serde_json::Value>(&out).unwrap()}),
    )
}

#[test]
fn types_fit_all_values() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let text = "i,u,f,b,d,t,s,e\n-1,18446744073709551615,1.5,true,2020-01-31,2020-01-31 12:00:01.5,\"a, \"\"b\"\"\",\n2,1,nan,false,,1999-12-31T00:00,x,\n";
    let found = read(folder.path(), "x.csv", text)?;
    assert_eq!(
        found["types"],
        json!(["int64", "uint64", "float64", "bool", "datetime64[D]", "datetime64[us]", "string", "string"])
    );
    assert_eq!(found["rows"], 2);
    assert_eq!(found["values"]["d"], json!(["2020-01-31", null]));
    assert_eq!(found["values"]["t"], json!(["2020-01-31T12:00:01.500000", "1999-12-31T00:00:00.000000"]));
    assert_eq!(found["values"]["s"], json!(["a, \"b\"", "x"]));
    assert_eq!(found["values"]["e"], json!([null, null]));
    assert_eq!(found["values"]["f"], json!([1.5, "NaN"]));
    let found = read(folder.path(), "x.tsv", "a\tb\n1\t2,5\n")?;
    assert_eq!(found["values"], json!({"a": [1], "b": ["2,5"]}));
    Ok(())
}

#[test]
fn errors_about_ragged_rows_name_the_line() {
    let folder = tempfile::tempdir().unwrap();
    for (text, expected) in [
        ("a,b\n1,2\n3\n", "line 3 has 1 field, but the header has 2"),
        ("a,b\n1,\"x\ny\"\n3,4,5\n", "line 4 has 3 fields"),
        ("a,b\n1,2\n3,\"open\n4,5\n", "the quotation mark in line 3 is never closed"),
        ("a,b\n1,\"x\ny\"\n\n3,\"a\"\"b", "the quotation mark in line 5 is never closed"),
        ("a,\"b\n1,2\n", "the quotation mark in line 1 is never closed"),
        ("a,a\n1,2\n", "column 2 has the name \"a\""),
    ] {
        let error = read(folder.path(), "x.csv", text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // Quotation marks inside a field are text.
    let found = read(folder.path(), "x.csv", "a,b\n1,5\" disk\n2,\"7\"\" tape\"").unwrap();
    assert_eq!(found["values"]["b"], json!(["5\" disk", "7\" tape"]));
    std::fs::write(folder.path().join("y.csv"), b"a,b\n1,\xff\n").unwrap();
    let error = crate::open(folder.path().join("y.csv")).unwrap_err().to_string();
    assert!(error.contains("line 2 is not UTF-8"), "{error}");
}

#[test]
fn conditions_and_columns_are_applied() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    let lines: String = (0..70_000).map(|row| format!("{row},{}\n", row % 7)).collect();
    std::fs::write(&path, format!("n,k\n{lines}")).unwrap();
    let store = crate::open(&path)?;
    let table = store.table("/")?;
    let scan = table.scan_where(
        &Selection::all(),
        Some(&["n".to_owned()]),
        Some(&"k == 3 and n > 69990".parse()?),
    )?;
    let (_, found) = table.rows_of(&scan)?.collect()?;
    assert_eq!(found.rows, 1);
    assert_eq!(found.columns[0].as_fixed().unwrap()[..], 69_996_i64.to_ne_bytes());
    Ok(())
}

#[test]
fn a_first_line_of_numbers_is_data() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let found = read(folder.path(), "x.csv", "0,1,2.5\n3,4,5\n")?;
    assert_eq!((&found["rows"], &found["types"]), (&json!(2), &json!(["int64", "int64", "float64"])));
    assert_eq!(found["values"]["column_2"], json!([2.5, 5.0]));
    let found = read(folder.path(), "y.csv", "2000,x\n1,2\n")?;
    assert_eq!((&found["rows"], &found["values"]["2000"]), (&json!(1), &json!([1])));
    Ok(())
}

#[test]
fn impossible_dates_are_text() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let found = read(folder.path(), "x.csv", "d,t\n2020-01-01,2020-01-01T00:00\n2020-02-30,2020-13-01\n")?;
    assert_eq!(found["types"], json!(["string", "string"]));
    assert_eq!(found["values"]["d"], json!(["2020-01-01", "2020-02-30"]));
    Ok(())
}
