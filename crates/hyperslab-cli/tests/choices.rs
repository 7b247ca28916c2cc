//! Choices of nodes and columns, options that a format lacks, and the advice in messages.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Runs `tet`, checks the exit code, and returns stdout and stderr.
fn output_of(folder: &Path, code: i32, words: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tet")).current_dir(folder).args(words).output().expect("tet starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "tet {words:?}\n{out}\n{err}");
    format!("{out}{err}")
}

fn text(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).expect("a file")
}

/// Writes an array of 64-bit floats to a Zarr v2 store.
fn array(folder: &Path, path: &str, dimensions: &[(&str, usize)], attributes: Value, values: &[f64]) {
    let array = folder.join(path);
    std::fs::create_dir_all(&array).expect("a folder");
    let shape: Vec<usize> = dimensions.iter().map(|(_, extent)| *extent).collect();
    let names: Vec<&str> = dimensions.iter().map(|(name, _)| *name).collect();
    let document = json!({
        "zarr_format": 2, "shape": shape, "chunks": shape, "dtype": "<f8", "order": "C", "fill_value": null,
        "compressor": null, "filters": null,
    });
    std::fs::write(array.join(".zarray"), document.to_string()).expect("a file");
    let mut attributes = attributes;
    attributes["_ARRAY_DIMENSIONS"] = json!(names);
    std::fs::write(array.join(".zattrs"), attributes.to_string()).expect("a file");
    let chunk = vec!["0"; shape.len()].join(".");
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(array.join(chunk), bytes).expect("a chunk");
    let store = folder.join(path.split('/').next().expect("a store"));
    std::fs::write(store.join(".zgroup"), json!({"zarr_format": 2}).to_string()).expect("a file");
}

/// A store with a variable `v` at these days, and a constant `c`.
fn days(folder: &Path, store: &str, days: &[f64], constant: f64) {
    let time = [("time", days.len())];
    array(folder, &format!("{store}/time"), &time, json!({"units": "days since 2000-01-01"}), days);
    array(folder, &format!("{store}/v"), &time, json!({"units": "K"}), days);
    array(folder, &format!("{store}/c"), &[("x", 1)], json!({}), &[constant]);
}

fn values(folder: &Path, store: &str, node: &str) -> Value {
    serde_json::from_str(&output_of(folder, 0, &["read", store, node, "--json"])).expect("JSON")
}

#[test]
fn columns_are_kept_dropped_and_renamed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("cells.csv"), "x,y,count,score\n1,1,60,1.5\n2,1,70,2\n").expect("a file");
    let run = |words: &[&str]| output_of(folder, 0, words);
    run(&["convert", "cells.csv", "a.csv", "--keep", "x,score", "--rename", "score=s"]);
    assert_eq!(text(folder, "a.csv"), "x,s\n1,1.5\n2,2.0\n");
    run(&["convert", "cells.csv", "cells.tiledb", "--dimensions", "x,y", "--drop", "count"]);
    run(&["convert", "cells.tiledb", "b.csv", "--rename", "x=across", "--select", "across=2..5"]);
    assert_eq!(text(folder, "b.csv"), "across,y,score\n2,1,2.0\n");
    // The dimensions of a table are kept with its columns.
    run(&["convert", "cells.tiledb", "more.tiledb", "--keep", "score", "--rename", "score=s"]);
    run(&["convert", "more.tiledb", "c.csv"]);
    assert_eq!(text(folder, "c.csv"), "x,y,s\n1,1,1.5\n2,1,2.0\n");
    for (words, expected) in [
        (&["convert", "cells.csv", "d.csv", "--keep", "scoer"][..], "no column scoer; did you mean score?"),
        (&["convert", "cells.csv", "d.csv", "--drop", "/c"], "no column /c"),
        (&["convert", "cells.csv", "d.csv", "--rename", "x=y"], "two columns would have the name y"),
    ] {
        let error = output_of(folder, 2, words);
        assert!(error.contains(expected), "{words:?}: {error}");
        assert!(!folder.join("d.csv").exists());
    }
    std::fs::write(folder.join("points.csv"), "x,y,z,age,kind\n1,2,3,7,1\n4,5,6,8,2\n").expect("a file");
    run(&["convert", "points.csv", "points.zv"]);
    run(&["convert", "points.zv", "e.csv", "--drop", "kind", "--rename", "age=years"]);
    assert!(text(folder, "e.csv").starts_with("x,y,z,years\n"), "{}", text(folder, "e.csv"));
    let error = output_of(folder, 2, &["convert", "points.zv", "f.csv", "--keep", "aeg"]);
    assert!(error.contains("no attribute aeg; did you mean age?"), "{error}");
}

#[test]
fn variables_are_chosen_for_files_of_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    days(folder, "d.zarr", &[0.0, 1.0], 5.0);
    array(folder, "d.zarr/w", &[("time", 2)], json!({}), &[7.0, 8.0]);
    std::fs::write(folder.join("d.zarr/.zattrs"), json!({"title": "daily"}).to_string()).expect("a file");
    let header = |name: &str| text(folder, name).lines().next().map(str::to_owned);
    output_of(folder, 0, &["convert", "d.zarr", "two.csv", "--drop", "c", "--rename", "w=wind"]);
    assert_eq!(header("two.csv").as_deref(), Some("time,v,wind"));
    let report = output_of(folder, 0, &["convert", "d.zarr", "one.csv", "--keep", "v"]);
    assert_eq!(header("one.csv").as_deref(), Some("time,v"));
    // What is lost is named, and only that: the dates have the units of time.
    assert!(report.contains("/: a file of rows cannot hold its attributes: title"), "{report}");
    assert!(report.contains("/v: a file of rows cannot hold its attributes: units"), "{report}");
    assert!(!report.contains("/time:"), "{report}");
    let error = output_of(folder, 2, &["convert", "d.zarr", "no.csv", "--keep", "v", "--strict"]);
    assert!(error.contains("nothing was written") && !folder.join("no.csv").exists(), "{error}");
    // Images are chosen in the same way.
    array(folder, "i.zarr/a", &[("y", 4), ("x", 4)], json!({}), &[1.0; 16]);
    array(folder, "i.zarr/b", &[("y", 4), ("x", 4)], json!({}), &[2.0; 16]);
    output_of(folder, 0, &["convert", "i.zarr", "i.ome.zarr", "--levels", "1", "--keep", "b"]);
    assert_eq!(values(folder, "i.ome.zarr", "/1"), json!([[2.0, 2.0], [2.0, 2.0]]));
}

#[test]
fn options_that_a_format_lacks_are_not_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    days(folder, "d.zarr", &[0.0, 1.0], 5.0);
    for (words, expected) in [
        (&["x.npz", "--filter", "gzip"][..], "npz stores elements as they are, without filters"),
        (&["x.nc3", "--filter", "gzip"], "netcdf3 stores elements as they are, without filters"),
        (&["x.h5", "--shards", "2"], "hdf5 stores have no shards; only those of zarr"),
        (&["x.npz", "--unlimited", "time"], "npz arrays cannot grow"),
        (&["x.nc", "--filter", "md5"], "no filter md5 in netcdf4; there are gzip"),
        (&["x.tet", "--filter", "zst"], "no filter zst in tet; did you mean zstd?"),
        (&["x.nc", "--unlimited", "tme"], "no axis tme to make unlimited; did you mean time?"),
        (&["x.zarr", "--chunks", "2,2,2"], "chunks of 2,2,2 have 3 axes, but the array has 1 axis"),
        (&["x.zarr", "--to", "zarr3", "--shards", "2,2"], "have 2 axes, but the array has 1"),
    ] {
        let error = output_of(folder, 2, &[&["convert", "d.zarr"], words].concat());
        assert!(error.contains(expected), "{words:?}: {error}");
        assert!(!folder.join(words[0]).exists());
    }
    let report = output_of(folder, 0, &["convert", "d.zarr", "x.npz", "--chunks", "1"]);
    assert!(report.contains("npz stores arrays as a whole; the requested chunks have no effect"), "{report}");
}

#[test]
fn files_that_disagree_are_joined_without_the_difference() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    days(folder, "a.zarr", &[0.0, 1.0], 5.0);
    days(folder, "b.zarr", &[2.0, 3.0], 5.0);
    days(folder, "other.zarr", &[2.0, 3.0], 6.0);
    days(folder, "overlap.zarr", &[1.0, 2.0], 5.0);
    array(folder, "b.zarr/extra", &[("time", 2)], json!({}), &[1.0, 2.0]);
    let join = |other: &str, words: &[&str], code: i32| {
        let all = [&["convert", "a.zarr", other, "all.zarr", "--concat", "time", "--force"], words].concat();
        output_of(folder, code, &all)
    };
    assert!(join("b.zarr", &[], 2).contains("use --drop /extra to leave it out"));
    for words in [["--drop", "/extra"], ["--keep", "v"]] {
        join("b.zarr", &words, 0);
        assert_eq!(values(folder, "all.zarr", "/v"), json!([0.0, 1.0, 2.0, 3.0]));
    }
    assert!(join("other.zarr", &[], 2).contains("use --drop /c to leave it out"));
    join("other.zarr", &["--drop", "c"], 0);
    assert!(join("b.zarr", &["--drop", "extr"], 2).contains("extr"));
    let error = join("overlap.zarr", &[], 2);
    assert!(error.contains("tet convert overlap.zarr REST --select 'time[1:]'"), "{error}");
    output_of(folder, 0, &["convert", "overlap.zarr", "rest.zarr", "--select", "time[1:]"]);
    join("rest.zarr", &[], 0);
    assert_eq!(values(folder, "all.zarr", "/v"), json!([0.0, 1.0, 2.0]));
    days(folder, "covered.zarr", &[1.0], 5.0);
    assert!(join("covered.zarr", &[], 2).contains("leave covered.zarr out"));

    days(folder, "late.zarr", &[5.0], 6.0);
    let append = |words: &[&str], code: i32| {
        output_of(folder, code, &[&["append", "late.zarr", "all.zarr", "--along", "time"], words].concat())
    };
    assert!(append(&[], 2).contains("use --drop /c to leave it out"));
    let error = append(&["--drop", "v"], 2);
    assert!(error.contains("/v grows along time with the others"), "{error}");
    let report = append(&["--drop", "c", "--dry-run"], 0);
    assert!(report.contains("would grow: time 3 → 4, 2 arrays"), "{report}");
    append(&["--drop", "c"], 0);
    assert_eq!(values(folder, "all.zarr", "/v"), json!([0.0, 1.0, 2.0, 5.0]));
    assert_eq!(values(folder, "all.zarr", "/c"), json!([5.0]));
}

#[test]
fn missing_values_are_reported_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let marked = json!({"_FillValue": -1.0, "units": "K"});
    array(folder, "m.zarr/t", &[("x", 4)], marked.clone(), &[1.0, -1.0, 3.0, 4.0]);
    array(folder, "m.zarr/u", &[("x", 4)], marked, &[2.0, 2.0, -1.0, 7.0]);
    let query = |words: &[&str]| output_of(folder, 0, &[&["query", "m.zarr", "/t"], words].concat());
    assert!(query(&["--mean"]).contains("1 of 4 cells missing; unit K"));
    for words in [&["--mean", "--where", "> 1"][..], &["--mean", "--bins", "x:2"]] {
        assert!(query(words).contains("missing values left out; unit K"), "{words:?}");
    }
    let shown = query(&["--covariance", "/u"]);
    assert!(shown.contains("2 of 4 cells missing") && shown.contains("3.75"), "{shown}");
    // Nulls of an array are missing as well.
    let golden =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../hyperslab-tiledb/tests/golden/v8-dense-null/array");
    let golden = golden.to_str().expect("a path");
    assert!(output_of(folder, 0, &["query", golden, "/n", "--count"]).contains(" of 7 cells missing"));
    std::fs::write(folder.join("t.csv"), "a,g\n1,x\n,x\n3,y\n").expect("a file");
    let shown = output_of(folder, 0, &["query", "t.csv", "--mean", "a", "--by", "g"]);
    assert!(shown.contains("a: 1 of 3 rows missing"), "{shown}");
    assert!(!output_of(folder, 0, &["query", "t.csv", "--mean", "a", "--json"]).contains("rows missing"));
}

#[test]
fn contradictory_conventions_are_reported_when_values_are_decoded() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    array(folder, "m.zarr/t", &[("x", 1)], json!({"scale_factor": "two"}), &[1.0]);
    let warning = "scale_factor is not a finite number and is ignored";
    for words in [
        &["read", "m.zarr", "/t", "--decode"][..],
        &["read", "m.zarr", "/t", "-o", "t.csv"],
        &["convert", "m.zarr", "u.csv"],
        &["query", "m.zarr", "/t", "--mean"],
    ] {
        assert!(output_of(folder, 0, words).contains(warning), "{words:?}");
    }
    assert!(!output_of(folder, 0, &["read", "m.zarr", "/t"]).contains(warning));
}

#[test]
fn mistakes_get_a_next_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    days(folder, "days.zarr", &[0.0, 1.0], 5.0);
    std::fs::write(folder.join("t.csv"), "type,n\nNK,1\n").expect("a file");
    output_of(folder, 0, &["convert", "days.zarr", "d.tiledb", "--node", "v"]);
    output_of(folder, 0, &["convert", "days.zarr", "days.nc3"]);
    days(folder, "late.zarr", &[2.0], 5.0);
    std::fs::write(folder.join("few.csv"), "x,v\n1,1\n2,7\n").expect("a file");
    std::fs::write(folder.join("far.csv"), "x,v\n2,3\n9,3\n").expect("a file");
    output_of(folder, 0, &["convert", "few.csv", "few.tiledb", "--dimensions", "x", "--order", "hilbert"]);
    for (words, expected) in [
        (&["plot", "days.zarr", "v", "--cmap", "virdis"][..], "did you mean viridis?"),
        (&["evolve", "d.tiledb", "--add", "q:int17"], "no type int17; did you mean int16?"),
        (
            &["append", "late.zarr", "days.nc3", "--along", "time"],
            "dimension time is fixed, because it is no record",
        ),
        (
            &["convert", "far.csv", "few.tiledb", "--append"],
            "row 2 lies outside the domain of dimension \"x\", which is 1 to 2",
        ),
        (&["info", "day.zarr"], "next: did you mean days.zarr?"),
        (&["info", "none/x.h5"], "none is no folder"),
        (&["query", "days.zarr", "v", "--mean", "time=0:1"], "a selection, which comes before the operation"),
        (&["query", "t.csv", "--where", "type == NK"], "no column NK; put text in quotes, as in 'NK'"),
        (&["read", "t.csv", "n=0..5"], "the table has none to select by"),
    ] {
        let error = output_of(folder, 2, words);
        assert!(error.contains(expected), "{words:?}: {error}");
    }
}

#[test]
fn manual_pages_describe_every_option() {
    let folder = tempfile::tempdir().expect("a folder");
    for command in ["convert", "query", "read", "append", "info"] {
        let page = output_of(folder.path(), 0, &["man", command]);
        assert!(page.contains(&format!(".TH tet-{command} 1")), "{page}");
        let options = page.split(".SH OPTIONS").nth(1).expect("options");
        let options = options.split(".SH EXAMPLES").next().expect("options");
        let empty = options.split(".TP\n").skip(1).find(|option| {
            let text = option.split_once('\n').map_or("", |(_, text)| text);
            text.trim_start_matches(".RS").trim().is_empty()
        });
        assert_eq!(empty, None, "{command}");
    }
}
