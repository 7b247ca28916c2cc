//! Missing and packed values through the command, and conversions that cannot keep everything.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

fn tet(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tet")).current_dir(folder).args(words).output().expect("tet starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json_of(folder: &Path, words: &[&str]) -> Value {
    let output = tet(folder, words);
    assert!(output.status.success(), "tet {words:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

/// A Zarr v2 array of int16 as xarray writes packed temperatures: scale 0.5 K, offset 250 K, -1 for missing.
fn packed(folder: &Path) {
    let array = folder.join("t.zarr/t");
    std::fs::create_dir_all(&array).expect("a folder");
    let write = |path: &str, text: String| std::fs::write(folder.join(path), text).expect("a file");
    write("t.zarr/.zgroup", json!({"zarr_format": 2}).to_string());
    let document = json!({
        "zarr_format": 2, "shape": [6], "chunks": [6], "dtype": "<i2", "order": "C", "fill_value": -1,
        "compressor": null, "filters": null,
    });
    write("t.zarr/t/.zarray", document.to_string());
    let attributes =
        json!({"_ARRAY_DIMENSIONS": ["x"], "scale_factor": 0.5, "add_offset": 250.0, "units": "K"});
    write("t.zarr/t/.zattrs", attributes.to_string());
    let values = [0_i16, 10, -1, 20, -1, 30];
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(array.join("0"), bytes).expect("a chunk");
}

/// A Zarr v2 store with five days as a coordinate, and values along it.
fn days(folder: &Path, units: &str) {
    let write = |path: &str, text: String| std::fs::write(folder.join(path), text).expect("a file");
    for name in ["time", "v"] {
        std::fs::create_dir_all(folder.join("d.zarr").join(name)).expect("a folder");
        let document = json!({
            "zarr_format": 2, "shape": [5], "chunks": [5], "dtype": "<i4", "order": "C", "fill_value": -1,
            "compressor": null, "filters": null,
        });
        write(&format!("d.zarr/{name}/.zarray"), document.to_string());
        let mut attributes = json!({"_ARRAY_DIMENSIONS": ["time"]});
        if name == "time" {
            attributes["units"] = json!(units);
        }
        write(&format!("d.zarr/{name}/.zattrs"), attributes.to_string());
        let bytes: Vec<u8> = [0_i32, 1, 2, 3, -1].iter().flat_map(|value| value.to_le_bytes()).collect();
        std::fs::write(folder.join("d.zarr").join(name).join("0"), bytes).expect("a chunk");
    }
    write("d.zarr/.zgroup", json!({"zarr_format": 2}).to_string());
}

#[test]
fn decoded_times_are_dates() {
    let folder = tempfile::tempdir().expect("a folder");
    days(folder.path(), "days since 2000-02-27");
    let read =
        |words: &[&str]| json_of(folder.path(), &[&["read", "d.zarr", "time", "--json"], words].concat());
    assert_eq!(read(&["--decode"]), json!(["2000-02-27", "2000-02-28", "2000-02-29", "2000-03-01", null]));
    assert_eq!(read(&[]), json!([0, 1, 2, 3, -1]));
}

#[test]
fn invalid_selections_are_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let output_of = |selection: &str| stderr(&tet(folder.path(), &["read", "d.zarr", "v", selection]));
    days(folder.path(), "days since 2000-02-27");
    let late = output_of("time=2000-05-01");
    assert!(late.contains("has no label 2000-05-01; the nearest is 2000-03-01."), "{late}");
    let two = output_of("time=2000-02-28, lat=3");
    assert!(two.contains("give each selection as its own argument"), "{two}");
    days(folder.path(), "fortnights since whenever");
    let unknown = output_of("time=2000-02-28");
    assert!(
        unknown.contains("has units 'fortnights since whenever', which are not a CF time; select by number"),
        "{unknown}"
    );
}

#[test]
fn queries_leave_out_missing_values_and_report_it() {
    let folder = tempfile::tempdir().expect("a folder");
    packed(folder.path());
    let run = |words: &[&str]| json_of(folder.path(), &[&["query", "t.zarr"], words, &["--json"]].concat());
    let mean = run(&["--mean"]);
    assert_eq!((&mean["values"], &mean["missing"]), (&json!(257.5), &json!(2)));
    assert_eq!(run(&["--count"])["values"], 4);
    assert_eq!(run(&["--null-count"])["values"], 2);
    assert_eq!(run(&["--min", "--where", "> 250"])["values"], 255.0);
    assert_eq!(run(&["--mean", "--raw"])["values"], json!(58.0 / 6.0));
    let output = tet(folder.path(), &["query", "t.zarr", "--mean"]);
    assert!(stderr(&output).contains("2 of 6 cells missing; values unpacked; unit K"), "{}", stderr(&output));
    let output = tet(folder.path(), &["query", "t.zarr", "--var"]);
    assert!(!stderr(&output).contains("unit"), "{}", stderr(&output));
}

#[test]
fn reading_decodes_on_request() {
    let folder = tempfile::tempdir().expect("a folder");
    packed(folder.path());
    let stored = stdout(&tet(folder.path(), &["read", "t.zarr"]));
    assert!(stored.contains("[ 0, 10, -1, 20, -1, 30]"), "{stored}");
    let decoded = stdout(&tet(folder.path(), &["read", "t.zarr", "--decode"]));
    assert!(decoded.contains("[250.0, 255.0,     _, 260.0,     _, 265.0]"), "{decoded}");
    let values = json_of(folder.path(), &["read", "t.zarr", "--decode", "--json"]);
    assert_eq!(values, json!([250.0, 255.0, null, 260.0, null, 265.0]));
}

#[test]
fn filters_with_levels_that_do_not_exist_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    packed(folder.path());
    let output = tet(folder.path(), &["convert", "t.zarr", "u.zarr", "--filter", "zstd:99"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("level 99 is not between"), "{}", stderr(&output));
    assert!(!folder.path().join("u.zarr").exists());
}

#[test]
fn content_that_a_format_lacks_exits_with_1() {
    let folder = tempfile::tempdir().expect("a folder");
    packed(folder.path());
    // `.tet` has at most eight dimensions.
    let deep = folder.path().join("t.zarr/deep");
    std::fs::create_dir(&deep).expect("a folder");
    let document = json!({
        "zarr_format": 2, "shape": [1, 1, 1, 1, 1, 1, 1, 1, 1], "chunks": [1, 1, 1, 1, 1, 1, 1, 1, 1], "dtype": "<i2",
        "order": "C", "fill_value": 0, "compressor": null, "filters": null,
    });
    std::fs::write(deep.join(".zarray"), document.to_string()).expect("a file");
    let output = tet(folder.path(), &["convert", "t.zarr", "t.tet"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("/deep: not converted"), "{}", stderr(&output));
    let output = tet(folder.path(), &["convert", "t.zarr", "t.tet", "--force", "--skip-unsupported"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let output = tet(folder.path(), &["convert", "t.zarr", "s.tet", "--strict"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!folder.path().join("s.tet").exists());
}

/// A Zarr v2 group with two times, two places and a value for each pair.
fn labelled(folder: &Path) {
    let write = |name: &str, dtype: &str, dimensions: &[&str], attributes: Value, bytes: Vec<u8>| {
        let array = folder.join("f.zarr").join(name);
        std::fs::create_dir_all(&array).expect("a folder");
        let shape = vec![2; dimensions.len()];
        let document = json!({
            "zarr_format": 2, "shape": shape, "chunks": shape, "dtype": dtype, "order": "C", "fill_value": null,
            "compressor": null, "filters": null,
        });
        std::fs::write(array.join(".zarray"), document.to_string()).expect("a file");
        let mut attributes = attributes;
        attributes["_ARRAY_DIMENSIONS"] = json!(dimensions);
        std::fs::write(array.join(".zattrs"), attributes.to_string()).expect("a file");
        std::fs::write(array.join(if dimensions.len() == 2 { "0.0" } else { "0" }), bytes).expect("a chunk");
    };
    let floats = |values: &[f64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let hours: Vec<u8> = [6_i32, 36].iter().flat_map(|hour| hour.to_le_bytes()).collect();
    write(
        "time",
        "<i4",
        &["time"],
        json!({"units": "hours since 2000-01-01", "calendar": "standard"}),
        hours,
    );
    write("x", "<f8", &["x"], json!({}), floats(&[10.5, 20.0]));
    write("v", "<f8", &["time", "x"], json!({}), floats(&[1.0, 2.0, 3.0, 4.0]));
    std::fs::write(folder.join("f.zarr/.zgroup"), json!({"zarr_format": 2}).to_string()).expect("a file");
}

#[test]
fn files_of_rows_contain_labels() {
    let folder = tempfile::tempdir().expect("a folder");
    labelled(folder.path());
    let run = |words: &[&str]| {
        let output = tet(folder.path(), words);
        assert!(output.status.success(), "tet {words:?}: {}", stderr(&output));
    };
    let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a file");
    run(&["read", "f.zarr", "/v", "x[::-1]", "-o", "v.csv"]);
    let rows: Vec<String> = text("v.csv").lines().map(str::to_owned).collect();
    assert_eq!(rows[0], "time,x,value");
    assert!(rows[1].starts_with("2000-01-01T06:00") && rows[1].ends_with(",20.0,2.0"), "{rows:?}");
    assert!(rows[4].starts_with("2000-01-02T12:00") && rows[4].ends_with(",10.5,3.0"), "{rows:?}");
    // Hints only mention options that the command has.
    std::fs::create_dir(folder.path().join("f.zarr/w")).expect("a folder");
    for file in [".zarray", ".zattrs", "0.0"] {
        std::fs::copy(folder.path().join("f.zarr/v").join(file), folder.path().join("f.zarr/w").join(file))
            .expect("a file");
    }
    let advice = stderr(&tet(folder.path(), &["read", "f.zarr"]));
    assert!(advice.contains("put its name after the path") && !advice.contains("--node"), "{advice}");
    run(&["convert", "f.zarr", "all.csv"]);
    let rows: Vec<String> = text("all.csv").lines().map(str::to_owned).collect();
    assert_eq!((rows[0].as_str(), rows.len()), ("time,x,v,w", 5));
    assert!(rows[1].starts_with("2000-01-01T06:00") && rows[1].ends_with(",10.5,1.0,1.0"), "{rows:?}");
    run(&["convert", "f.zarr", "v.csv", "--node", "/v", "--force"]);
    assert_eq!(text("v.csv").lines().next(), Some("time,x,value"));
    // Rows of several variables are only for files of named columns.
    assert!(stderr(&tet(folder.path(), &["convert", "f.zarr", "all.json"])).contains("--node"));
    run(&["query", "f.zarr", "/v", "--mean", "x", "-o", "mean.csv"]);
    let rows: Vec<String> = text("mean.csv").lines().map(str::to_owned).collect();
    assert_eq!((rows[0].as_str(), rows.len()), ("time,mean", 3));
    assert!(rows[2].starts_with("2000-01-02T12:00") && rows[2].ends_with(",3.5"), "{rows:?}");
    run(&["query", "f.zarr", "/v", "--mean", "x", "-o", "mean.parquet"]);
    assert_eq!(&std::fs::read(folder.path().join("mean.parquet")).expect("a file")[..4], b"PAR1");
    // Several operations share a file of rows.
    run(&["query", "f.zarr", "/v", "--mean", "x", "--max", "x", "-o", "both.csv"]);
    let both: Vec<String> = text("both.csv").lines().map(str::to_owned).collect();
    assert_eq!((both[0].as_str(), both.len()), ("time,mean,max", 3));
    assert_eq!(both[2].rsplit(',').nth(1), rows[2].rsplit(',').next());
    for (words, message) in [
        (&["--mean", "x", "--max", "time", "-o", "no.csv"][..], "different axes"),
        (&["--mean", "x", "--max", "x", "-o", "no.npy"], "holds the answers of one operation"),
    ] {
        let refused = tet(folder.path(), &[&["query", "f.zarr", "/v"], words].concat());
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(message), "{}", stderr(&refused));
    }
    assert!(!folder.path().join("no.csv").exists());
    let nowhere = tet(folder.path(), &["query", "f.zarr", "/v", "--mean", "-o", "new/mean.csv"]);
    assert!(stderr(&nowhere).contains("`mkdir -p new` creates the folder"), "{}", stderr(&nowhere));
}

#[test]
fn reductions_of_times_are_dates() {
    let folder = tempfile::tempdir().expect("a folder");
    labelled(folder.path());
    let run = |words: &[&str]| {
        json_of(folder.path(), &[&["query", "f.zarr", "/time"], words, &["--json"]].concat())
    };
    assert_eq!(run(&["--max"])["values"], "2000-01-02T12:00");
    assert_eq!(run(&["--mean"])["values"], "2000-01-01T21:00");
    assert_eq!(run(&["--count"])["values"], 2);
    assert_eq!(run(&["--max", "--raw"])["values"], 36);
    let shown = stdout(&tet(folder.path(), &["query", "f.zarr", "/time", "--min"]));
    assert!(shown.contains("2000-01-01T06:00"), "{shown}");
}

/// Writes an array of a Zarr v2 group in one chunk.
fn write_array(
    folder: &Path,
    name: &str,
    dtype: &str,
    axes: &[(&str, u64)],
    attributes: Value,
    bytes: &[u8],
) {
    let array = folder.join("g.zarr").join(name);
    std::fs::create_dir_all(&array).expect("a folder");
    let shape: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
    let document = json!({
        "zarr_format": 2, "shape": shape, "chunks": shape, "dtype": dtype, "order": "C", "fill_value": null,
        "compressor": null, "filters": null,
    });
    std::fs::write(array.join(".zarray"), document.to_string()).expect("a file");
    let mut attributes = attributes;
    attributes["_ARRAY_DIMENSIONS"] = axes.iter().map(|axis| axis.0).collect();
    std::fs::write(array.join(".zattrs"), attributes.to_string()).expect("a file");
    let chunk = vec!["0"; axes.len()].join(".");
    std::fs::write(array.join(chunk), bytes).expect("a chunk");
    std::fs::write(folder.join("g.zarr/.zgroup"), json!({"zarr_format": 2}).to_string()).expect("a file");
}

/// Values along days with bounds, packed latitudes and flags.
fn coordinates(folder: &Path) {
    let shorts = |values: &[i16]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let floats = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let time = ("time", 4);
    let days = json!({"units": "days since 2000-01-30", "bounds": "time_bnds"});
    write_array(folder, "time", "<i2", &[time], days, &shorts(&[0, 1, 2, 3]));
    let bounds = shorts(&[0, 1, 1, 2, 2, 3, 3, 4]);
    write_array(folder, "time_bnds", "<i2", &[time, ("nv", 2)], json!({}), &bounds);
    let packed = json!({"scale_factor": 0.5, "add_offset": 10.0});
    write_array(folder, "lat", "<i2", &[("lat", 2)], packed, &shorts(&[1, 100]));
    write_array(folder, "flag", "|i1", &[("flag", 2)], json!({"dtype": "bool"}), &[0, 1]);
    let values: Vec<f32> = (0..16_u8).map(f32::from).collect();
    let axes = [time, ("lat", 2), ("flag", 2)];
    write_array(folder, "v", "<f4", &axes, json!({}), &floats(&values));
}

#[test]
fn groups_use_decoded_labels() {
    let folder = tempfile::tempdir().expect("a folder");
    coordinates(folder.path());
    let run = |words: &[&str]| {
        json_of(folder.path(), &[&["query", "g.zarr", "/v", "--mean"], words, &["--json"]].concat())
    };
    let found = run(&["--group-by-label", "time"]);
    assert_eq!(found["labels"], json!([["2000-01-30", "2000-01-31", "2000-02-01", "2000-02-02"]]));
    assert_eq!(found["values"], json!([1.5, 5.5, 9.5, 13.5]));
    assert_eq!(run(&["--group-by-label", "lat"])["labels"], json!([["10.5", "60.0"]]));
    assert_eq!(run(&["--label", "lat=60"])["values"], 8.5);
    assert_eq!(run(&["--label", "time=2000-02"])["values"], 11.5);
    let missing = stderr(&tet(folder.path(), &["query", "g.zarr", "/v", "--mean", "--label", "lat=61"]));
    assert!(missing.contains("has no label 61; the nearest is 60"), "{missing}");
}

#[test]
fn rows_hold_decoded_labels_and_dates() {
    let folder = tempfile::tempdir().expect("a folder");
    coordinates(folder.path());
    let rows = |words: &[&str]| -> Vec<String> {
        let output = tet(folder.path(), &[words, &["--force", "-o", "r.csv"]].concat());
        assert!(output.status.success(), "tet {words:?}: {}", stderr(&output));
        let text = std::fs::read_to_string(folder.path().join("r.csv")).expect("a file");
        text.lines().map(str::to_owned).collect()
    };
    let read = rows(&["read", "g.zarr", "/v", "time=2000-02-01", "lat[::-1]"]);
    assert_eq!(read[0], "time,lat,flag,value");
    assert!(read[1].starts_with("2000-02-01T00:00") && read[1].ends_with(",60.0,false,10.0"), "{read:?}");
    assert!(read[4].ends_with(",10.5,true,9.0"), "{read:?}");
    // Groups have the type of the coordinate.
    let grouped = rows(&["query", "g.zarr", "/v", "--mean", "--group-by-label", "time"]);
    assert!(grouped[1].starts_with("2000-01-30T00:00") && grouped[1].ends_with(",1.5"), "{grouped:?}");
    let windows = rows(&["query", "g.zarr", "/v", "--mean", "time,lat,flag", "--bins", "time:3"]);
    assert_eq!((windows[0].as_str(), windows.len()), ("time,time_end,mean", 3));
    assert!(
        windows[1].starts_with("2000-01-30T00:00") && windows[1].contains(",2000-02-01T00:00"),
        "{windows:?}"
    );
    assert!(
        windows[2].starts_with("2000-02-02T00:00") && windows[2].contains(",2000-02-02T00:00"),
        "{windows:?}"
    );
    let histogram = rows(&["query", "g.zarr", "/v", "--histogram", "2", "--range", "0,16"]);
    assert_eq!(histogram, ["bin,bin_low,bin_high,histogram", "0,0.0,8.0,8", "1,8.0,16.0,8"]);
    // Values that count time are dates, and bounds count as their coordinate does.
    let times = rows(&["read", "g.zarr", "/time"]);
    assert!(times[2].matches("2000-01-31T00:00").count() == 2, "{times:?}");
    let bounds = rows(&["read", "g.zarr", "/time_bnds"]);
    assert!(bounds[8].contains(",2000-02-03T00:00"), "{bounds:?}");
    let raw = rows(&["read", "g.zarr", "/time", "--raw"]);
    assert!(raw[2].ends_with(",1"), "{raw:?}");
    let last = json_of(folder.path(), &["query", "g.zarr", "/time_bnds", "--max", "--json"]);
    assert_eq!(last["values"], "2000-02-03");
    let shown =
        stdout(&tet(folder.path(), &["query", "g.zarr", "/v", "--histogram", "2", "--range", "0,16"]));
    assert!(shown.contains("edges 0, 8, 16"), "{shown}");
}

#[test]
fn the_smallest_integer_is_no_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    // More than 2^53 nanoseconds, which floats cannot count one by one.
    let at = |nanoseconds: i64| 946_684_800_000_000_000 + nanoseconds;
    let write = |name: &str, values: &[i64], attributes: Value| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        write_array(path, name, "<i8", &[(name, values.len() as u64)], attributes, &bytes);
    };
    let since = json!({"units": "nanoseconds since 1970-01-01", "calendar": "proleptic_gregorian"});
    write("bare", &[at(1), i64::MIN, at(5)], since.clone());
    let mut marked = since;
    marked["_FillValue"] = json!(-1);
    write("marked", &[at(1), -1, i64::MIN, at(5)], marked);
    write("number", &[1, i64::MIN], json!({"units": "m"}));
    let run = |array: &str, words: &[&str]| {
        json_of(path, &[&["query", "g.zarr", array], words, &["--json"]].concat())
    };
    for (array, missing) in [("/bare", 1), ("/marked", 2)] {
        let mean = run(array, &["--mean"]);
        assert_eq!(mean["values"], "2000-01-01T00:00:00.000000003", "{array}");
        assert_eq!(mean["missing"], missing, "{array}");
        assert_eq!(run(array, &["--min"])["values"], "2000-01-01T00:00:00.000000001");
        assert_eq!(run(array, &["--max"])["values"], "2000-01-01T00:00:00.000000005");
        assert_eq!(run(array, &["--count"])["values"], 2);
        assert_eq!(run(array, &["--null-count"])["values"], missing);
        assert_eq!(run(array, &["--count", "--where", "null"])["values"], missing);
        assert_eq!(run(array, &["--min", "--raw"])["values"], i64::MIN);
    }
    assert_eq!(run("/number", &["--min"])["values"], i64::MIN);
}

#[test]
fn options_without_effect_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    labelled(folder.path());
    packed(folder.path());
    let refused = |words: &[&str]| {
        let output = tet(folder.path(), words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        stderr(&output)
    };
    for option in
        [&["--where", "> 1"][..], &["--over", "x"], &["--mean"], &["-o", "no.csv"], &["--bins", "x:2"]]
    {
        let why = refused(&[&["query", "f.zarr", "/v", "--covariance", "/v"], option].concat());
        assert!(why.contains("does not apply to --covariance"), "{why}");
    }
    let query = ["query", "f.zarr", "/v", "--mean", "x"];
    assert!(
        refused(&[&query[..], &["--min-count", "2"]].concat()).contains("--min-count applies to windows")
    );
    assert!(refused(&[&query[..], &["--over", "time"]].concat()).contains("--over has no effect"));
    // The marker of missing values is the fill value in Zarr v2.
    let marker = |words: &[&str]| refused(&[&["attrs", "t.zarr", "/t"], words].concat());
    assert!(marker(&["_FillValue=-2"]).contains("convert to zarr3 to change it"));
    assert!(marker(&["--delete", "_FillValue"]).contains("convert to zarr3 to change it"));
    assert!(tet(folder.path(), &["attrs", "t.zarr", "/t", "_FillValue=-1", "units=degC"]).status.success());
}
