//! Everyday tasks, each as a command line that users type, compared with the results of the usual libraries.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "peers/formats.rs"]
mod formats;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

fn tet(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tet")).current_dir(folder).args(words).output().unwrap()
}

/// Runs `tet`, checks the exit code, and returns stdout and stderr.
fn output_of(folder: &Path, code: i32, words: &[&str]) -> String {
    let output = tet(folder, words);
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "tet {words:?}\n{text}");
    text
}

fn python(words: &[&str]) -> String {
    let python = std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with xarray");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/daily.py");
    let output = Command::new(python).arg(script).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const MONTHS: [&str; 4] = ["data/a.nc", "data/b.nc", "data/c.nc", "data/d.nc"];

fn months() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    python(&["make", folder.path().to_str().unwrap()]);
    folder
}

fn same(folder: &Path, store: &str, files: &[&str]) {
    let mut words = vec!["same", folder.to_str().unwrap(), store];
    words.extend_from_slice(files);
    python(&words);
}

#[test]
fn files_are_joined_as_xarray_joins_them() {
    let folder = months();
    let folder = folder.path();
    let text = output_of(folder, 0, &["convert", "data/*.nc", "all.zarr", "--concat", "time"]);
    assert!(text.contains("history: taken from the first file"), "{text}");
    same(folder, "all.zarr", &MONTHS);
    // The attributes are those of the earliest file, although it is not the first by name.
    assert!(output_of(folder, 0, &["attrs", "all.zarr", "/"]).contains("made in month 1"));
    // As the shell expands the pattern, into another format, with chunks by name.
    let mut words = vec!["convert"];
    words.extend_from_slice(&MONTHS);
    words.extend_from_slice(&["all.nc", "--concat", "time", "--chunks", "time=31,lat=all"]);
    output_of(folder, 0, &words);
    same(folder, "all.nc", &MONTHS);
    let info: Value = serde_json::from_str(&output_of(folder, 0, &["info", "all.nc", "--json"])).unwrap();
    let nodes = info["nodes"].as_array().unwrap();
    let t = nodes.iter().find(|node| node["path"] == "/t").unwrap();
    assert_eq!((&t["shape"], &t["chunk_shape"]), (&json!([120, 9, 9]), &json!([31, 9, 9])));
}

#[test]
fn a_month_is_added_to_the_end() {
    let folder = months();
    let folder = folder.path();
    for target in ["all.zarr", "all.nc"] {
        output_of(folder, 0, &["convert", "data/*.nc", target, "--concat", "time"]);
        let told_before =
            output_of(folder, 0, &["append", "next.nc", target, "--along", "time", "--dry-run"]);
        assert!(told_before.contains("120 → 151"), "{told_before}");
        same(folder, target, &MONTHS);
        output_of(folder, 0, &["append", "next.nc", target, "--along", "time"]);
        same(folder, target, &[&MONTHS[..], &["next.nc"]].concat());
        // Appending it again would overlap.
        assert!(output_of(folder, 2, &["append", "next.nc", target, "--along", "time"]).contains("overlap"));
        same(folder, target, &[&MONTHS[..], &["next.nc"]].concat());
    }
}

#[test]
fn gaps_are_reported_and_disagreements_are_errors() {
    let folder = months();
    let folder = folder.path();
    let text = output_of(folder, 0, &["convert", "data/a.nc", "gap.nc", "gap.zarr", "--concat", "time"]);
    assert!(text.contains("gap from 2001-04-30") && text.contains("to 2001-08-01"), "{text}");
    for (file, what) in [
        ("overlap.nc", "overlap along time"),
        ("units.nc", "/t has units \"degC\", but \"K\" in data/a.nc"),
        ("type.nc", "/t has type float64, but float32"),
        ("shape.nc", "is 7 long along lat, but 9"),
        ("calendar.nc", "calendar"),
    ] {
        let text = output_of(folder, 2, &["convert", "data/a.nc", file, "no.zarr", "--concat", "time"]);
        assert!(text.contains(what) && text.contains(file), "{file}: {text}");
        assert!(!folder.join("no.zarr").exists());
    }
    let text = output_of(folder, 2, &["convert", "data/a.nc", "next.nc", "no.zarr", "--concat", "tim"]);
    assert!(text.contains("did you mean time?"), "{text}");
    let text = output_of(folder, 2, &["convert", "data/a.nc", "next.nc", "no.zarr"]);
    assert!(text.contains("--concat"), "{text}");
}

#[test]
fn nodes_are_kept_dropped_and_renamed() {
    let folder = months();
    let folder = folder.path();
    let words = [
        "convert",
        "next.nc",
        "x.nc",
        "--keep",
        "t",
        "--rename",
        "t=temperature",
        "--rename",
        "lat=latitude",
    ];
    output_of(folder, 0, &words);
    let info: Value = serde_json::from_str(&output_of(folder, 0, &["info", "x.nc", "--json"])).unwrap();
    let nodes = info["nodes"].as_array().unwrap();
    let paths: Vec<&str> = nodes.iter().filter_map(|node| node["path"].as_str()).collect();
    for path in ["/temperature", "/latitude", "/lon", "/time", "/time_bnds"] {
        assert!(paths.contains(&path), "{path} in {paths:?}");
    }
    assert!(!paths.contains(&"/mask") && !paths.contains(&"/t"), "{paths:?}");
    let t = nodes.iter().find(|node| node["path"] == "/temperature").unwrap();
    assert_eq!(t["dimensions"], json!(["time", "latitude", "lon"]));
    output_of(folder, 0, &["convert", "next.nc", "y.zarr", "--drop", "mask,name"]);
    let text = output_of(folder, 2, &["convert", "next.nc", "z.zarr", "--drop", "maks"]);
    assert!(text.contains("did you mean /mask?"), "{text}");
}

#[test]
fn attributes_are_edited_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    python(&["attrs", folder.to_str().unwrap()]);
    let attribute = |file: &str, node: &str, name: &str| -> Value {
        let path = folder.join(file);
        serde_json::from_str(&python(&["attr", path.to_str().unwrap(), node, name])).unwrap()
    };
    for (file, node) in [
        ("x.nc", "/t"),
        ("x3.nc", "/t"),
        ("x.zarr", "/t"),
        ("x2.zarr", "/t"),
        ("x.h5", "/g/t"),
        ("x.tiledb", "/"),
    ] {
        output_of(folder, 0, &["attrs", file, node, "units=K", "--delete", "history", "--dry-run"]);
        assert_eq!(attribute(file, node, "units"), "C", "{file}");
        output_of(folder, 0, &["attrs", file, node, "units=K", "--delete", "history"]);
        assert_eq!(attribute(file, node, "units"), "K", "{file}");
        assert_eq!(attribute(file, node, "history"), Value::Null, "{file}");
        let text = output_of(folder, 2, &["attrs", file, node, "--delete", "unit"]);
        assert!(text.contains("did you mean units?"), "{text}");
    }
    // A number keeps the attribute's type.
    output_of(folder, 0, &["attrs", "x.nc", "/t", "scale_factor=0.5"]);
    assert_eq!(attribute("x.nc", "/t", "scale_factor"), 0.5);
    // A read-only file stays unchanged.
    let path = folder.join("x.nc");
    let mut permissions = path.metadata().unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).unwrap();
    assert!(output_of(folder, 2, &["attrs", "x.nc", "/t", "units=C"]).contains("read-only"));
    assert_eq!(attribute("x.nc", "/t", "units"), "K");
}

#[test]
fn nodes_are_renamed_and_removed() {
    let folder = months();
    let folder = folder.path();
    output_of(folder, 0, &["convert", "next.nc", "x.zarr"]);
    for file in ["next.nc", "x.zarr"] {
        output_of(folder, 0, &["rename", file, "/t", "/temperature", "--dry-run"]);
        output_of(folder, 0, &["rename", file, "/t", "/temperature"]);
        output_of(folder, 0, &["rename", file, "lat", "latitude"]);
        output_of(folder, 0, &["rm", file, "/mask"]);
        let info: Value = serde_json::from_str(&output_of(folder, 0, &["info", file, "--json"])).unwrap();
        let nodes = info["nodes"].as_array().unwrap();
        let t = nodes.iter().find(|node| node["path"] == "/temperature").unwrap();
        assert_eq!(t["dimensions"], json!(["time", "latitude", "lon"]), "{file}");
        assert!(!nodes.iter().any(|node| node["path"] == "/mask"), "{file}");
        assert!(output_of(folder, 2, &["rm", file, "/"]).contains("root"));
        assert!(output_of(folder, 2, &["rename", file, "/temperature", "/lon"]).contains("exists already"));
    }
}

#[test]
fn intact_content_is_salvaged() {
    let folder = months();
    let folder = folder.path();
    output_of(folder, 0, &["convert", "next.nc", "classic.nc", "--to", "netcdf3", "--drop", "name"]);
    for (file, out) in [("next.nc", "saved.nc"), ("classic.nc", "saved3.nc")] {
        let bytes = std::fs::read(folder.join(file)).unwrap();
        std::fs::write(folder.join("cut.nc"), &bytes[..bytes.len() * 2 / 3]).unwrap();
        let output = tet(folder, &["repair", "cut.nc", "--salvage", out, "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{file}: {}", String::from_utf8_lossy(&output.stderr)));
        assert_eq!(output.status.code(), Some(1), "{report}");
        assert!(!report["lost"].as_array().unwrap().is_empty(), "{report}");
        output_of(folder, 0, &["verify", out, "--deep"]);
    }
}

fn kinds() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    python(&["kinds", folder.path().to_str().unwrap()]);
    folder
}

#[test]
fn tables_hold_decoded_values() {
    let folder = kinds();
    let folder = folder.path();
    output_of(folder, 0, &["read", "packed.nc", "/t", "-o", "t.csv"]);
    output_of(folder, 0, &["convert", "packed.nc", "t.parquet", "--node", "/t"]);
    output_of(folder, 0, &["convert", "packed.nc", "raw.csv", "--node", "/t", "--raw"]);
    output_of(folder, 0, &["read", "packed.nc", "/t", "time[1]", "-o", "one.csv"]);
    // Integers beyond 2^53 stay exact.
    output_of(folder, 0, &["read", "packed.nc", "/n", "-o", "n.csv"]);
    python(&["packed", folder.to_str().unwrap()]);
    let text = output_of(folder, 0, &["read", "packed.nc", "/t", "--json"]);
    assert!(text.contains("-999"), "JSON has the stored values: {text}");
    let text = output_of(folder, 2, &["read", "packed.nc", "/t", "-o", "t.xlsx"]);
    assert!(text.contains(".parquet"), "{text}");
}

#[test]
fn data_sets_become_data_frames() {
    let folder = months();
    let folder = folder.path();
    let text = output_of(folder, 1, &["convert", "data/a.nc", "all.csv"]);
    assert!(text.contains("time_bnds"), "what is left out is named: {text}");
    output_of(folder, 0, &["convert", "data/a.nc", "all.parquet", "--skip-unsupported"]);
    let part = [
        "convert",
        "data/a.nc",
        "part.csv",
        "--select",
        "time[:2]",
        "--select",
        "lat[1:4]",
        "--drop",
        "time_bnds",
    ];
    output_of(folder, 0, &part);
    python(&["frames", folder.to_str().unwrap()]);
}

#[test]
fn named_types_and_characters_survive_edits() {
    let folder = kinds();
    let folder = folder.path();
    let types = |file: &str| -> Value {
        serde_json::from_str(&python(&["types", folder.join(file).to_str().unwrap()])).unwrap()
    };
    let before = types("types.nc");
    assert_eq!(before["variable"], false, "{before}");
    output_of(folder, 0, &["attrs", "types.nc", "/q", "units=degC"]);
    let edited = types("types.nc");
    assert_eq!((&edited["units"], &edited["variable"]), (&json!("degC"), &json!(false)));
    output_of(folder, 0, &["rm", "types.nc", "/q"]);
    let after = types("types.nc");
    assert_eq!((&after["names"], &after["used"]), (&before["names"], &before["used"]));
}

#[test]
fn checksums_are_compared_before_a_chunk_is_saved() {
    let folder = kinds();
    let folder = folder.path();
    output_of(folder, 0, &["convert", "cells.h5", "x.tet", "--keep", "temperature", "--filter", "none"]);
    let path = folder.join("x.tet");
    let mut bytes = std::fs::read(&path).unwrap();
    let value = 777_f64.to_le_bytes();
    let at = bytes.windows(8).position(|window| window == value).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let text = output_of(folder, 1, &["repair", "x.tet", "--salvage", "saved.tet"]);
    assert!(text.contains("checksum") && text.contains("1 chunk lost"), "{text}");
    // The archive's own checksum covers a whole member.
    let path = folder.join("some.npz");
    let mut bytes = std::fs::read(&path).unwrap();
    let value = 2_f64.to_le_bytes();
    let at = bytes.windows(8).position(|window| window == value).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let text = output_of(folder, 1, &["repair", "some.npz", "--salvage", "saved.npz"]);
    assert!(text.contains("/b") && text.contains("CRC-32"), "{text}");
}

#[test]
fn truncated_records_are_saved_up_to_the_cut() {
    let folder = kinds();
    let folder = folder.path();
    let path = folder.join("records.nc");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() * 3 / 4]).unwrap();
    let text = output_of(folder, 1, &["repair", "records.nc", "--salvage", "saved.nc"]);
    assert!(text.contains("2 arrays shortened"), "{text}");
    let records = python(&["records", folder.join("saved.nc").to_str().unwrap()]);
    let records: u64 = records.trim().parse().unwrap();
    assert!((295..=300).contains(&records), "{records}");
}

#[test]
fn edits_keep_the_history_and_are_refused_without_attributes() {
    let folder = kinds();
    let folder = folder.path();
    let before = std::fs::read(folder.join("some.npz")).unwrap();
    assert!(output_of(folder, 2, &["attrs", "some.npz", "/", "a=1"]).contains("npz has no attributes"));
    assert_eq!(std::fs::read(folder.join("some.npz")).unwrap(), before);
    output_of(folder, 0, &["convert", "some.npz", "some.tet"]);
    output_of(folder, 0, &["rename", "some.tet", "/a", "/c"]);
    output_of(folder, 0, &["attrs", "some.tet", "/c", "units=K"]);
    let text = output_of(folder, 0, &["info", "some.tet", "--all"]);
    assert_eq!(text.matches("edit").count(), 2, "{text}");
    let text = output_of(folder, 0, &["rm", "cells.h5", "/cells", "--dry-run"]);
    assert!(text.contains("would be removed"), "{text}");
}

#[test]
fn arrays_of_structs_are_queried_as_tables() {
    let folder = kinds();
    let folder = folder.path();
    let words = ["query", "cells.h5", "/cells", "--where", "score < 9", "--mean", "score", "--by", "type"];
    let found: Value =
        serde_json::from_str(&output_of(folder, 0, &[&words[..], &["--json"]].concat())).unwrap();
    assert_eq!(found, json!({"type": ["B", "NK"], "score_mean": [2.0, 3.0]}));
    let words =
        ["read", "cells.h5", "/cells", "--where", "type == 'NK' and x > 1", "--columns", "x", "--json"];
    let found: Value = serde_json::from_str(&output_of(folder, 0, &words)).unwrap();
    assert_eq!(found, json!({"x": [3, 4]}));
    let words = ["query", "cells.h5", "/cells", "[0:2]", "--sum", "x", "--sum", "score", "--json"];
    let found: Value = serde_json::from_str(&output_of(folder, 0, &words)).unwrap();
    assert_eq!(found, json!({"x_sum": [3], "score_sum": [3.5]}));
}

#[test]
fn misspelt_names_get_suggestions() {
    let folder = kinds();
    let folder = folder.path();
    for words in [
        &["read", "cells.h5", "/temprature"][..],
        &["query", "cells.h5", "/temprature", "--mean"],
        &["plot", "cells.h5", "/temprature"],
        &["hash", "cells.h5", "/temprature"],
        &["convert", "cells.h5", "x.zarr", "--node", "/temprature"],
        &["attrs", "cells.h5", "/temprature"],
        &["rename", "cells.h5", "/temprature", "/t"],
        &["rm", "cells.h5", "/temprature"],
    ] {
        let text = output_of(folder, 2, words);
        assert!(text.contains("did you mean /temperature?"), "{words:?}: {text}");
    }
    // Dimensions without a variable are the format's bookkeeping.
    let text = output_of(folder, 2, &["read", "types.nc", "/qq"]);
    assert!(text.contains("did you mean /q?") && !text.contains("/x"), "{text}");
    let text = output_of(folder, 2, &["read", "cells.h5", "/temperature/mean"]);
    assert!(text.contains("/temperature is an array, not a group") && !text.contains("verify"), "{text}");
    for (target, meant) in [("x.zarr", "gzip"), ("x.h5", "gzip"), ("x.tiledb", "gzip")] {
        let text = output_of(folder, 2, &["convert", "cells.h5", target, "--filter", "gzp"]);
        assert!(text.contains(&format!("did you mean {meant}?")), "{target}: {text}");
    }
    assert!(
        output_of(folder, 2, &["convert", "cells.h5", "x", "--to", "netcdf"])
            .contains("did you mean netcdf4?")
    );
    assert!(output_of(folder, 2, &["convert", "cells.h5", "x.zar"]).contains("did you mean .zarr?"));
}

#[test]
fn listings_show_shards_and_readable_attributes() {
    let folder = kinds();
    let folder = folder.path();
    assert!(output_of(folder, 0, &["info", "shards.zarr"]).contains("8 × 8 (shards 32 × 32)"));
    let info: Value =
        serde_json::from_str(&output_of(folder, 0, &["info", "shards.zarr", "--json"])).unwrap();
    let nodes = info["nodes"].as_array().unwrap();
    let t = nodes.iter().find(|node| node["path"] == "/t").unwrap();
    assert_eq!((&t["chunk_shape"], &t["shard_shape"]), (&json!([8, 8]), &json!([32, 32])));
    let text = output_of(folder, 0, &["attrs", "packed.nc", "/t"]);
    assert!(text.contains("_FillValue: -999") && !text.contains("DIMENSION_LIST"), "{text}");
    let text = output_of(folder, 0, &["convert", "packed.nc", "x.zarr", "--chunks", "1", "--drop", "n"]);
    assert!(text.contains("/t: chunks of 1 do not apply to its 2 dimensions"), "{text}");
}

#[test]
fn every_command_has_a_manual_page_with_examples() {
    let folder = tempfile::tempdir().unwrap();
    let page = output_of(folder.path(), 0, &["man", "info"]);
    assert!(page.contains(".SH EXAMPLES") && page.contains("tet info") && page.contains("tree"), "{page}");
    assert!(output_of(folder.path(), 0, &["man"]).contains("convert"));
    assert!(output_of(folder.path(), 2, &["man", "inof"]).contains("did you mean info?"));
}

/// A tool of NetCDF's users, which `cargo xtask test` installs.
fn tool(folder: &Path, name: &str, words: &[&str]) -> String {
    let output = Command::new(name).current_dir(folder).args(words).output();
    assert!(output.is_ok(), "{name}: {output:?}; install Debian's nco and cdo");
    let output = output.unwrap();
    assert!(output.status.success(), "{name} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn jobs_end_as_with_nco_and_cdo() {
    let folder = months();
    let folder = folder.path();
    let same = |ours: &str, theirs: &str| {
        python(&["variables", folder.join(ours).to_str().unwrap(), folder.join(theirs).to_str().unwrap()]);
    };
    // In the order of time, which NCO's users take care of.
    let [january, february, march, april] = ["data/d.nc", "data/b.nc", "data/c.nc", "data/a.nc"];
    output_of(folder, 0, &["convert", "data/*.nc", "all.nc", "--concat", "time"]);
    tool(folder, "ncrcat", &["-O", january, february, march, april, "nco.nc"]);
    same("all.nc", "nco.nc");
    // CDO knows no texts.
    output_of(folder, 0, &["convert", "data/*.nc", "numbers.nc", "--concat", "time", "--drop", "name,mask"]);
    for month in MONTHS {
        tool(folder, "ncks", &["-O", "-x", "-v", "name,mask", month, &month.replace("data/", "")]);
    }
    tool(folder, "cdo", &["-s", "mergetime", "d.nc", "b.nc", "c.nc", "a.nc", "cdo.nc"]);
    same("numbers.nc", "cdo.nc");

    output_of(folder, 0, &["convert", "next.nc", "part.nc", "--keep", "t", "--select", "time[3:8]"]);
    tool(folder, "ncks", &["-O", "-v", "t,time_bnds", "-d", "time,3,7", "next.nc", "nco.nc"]);
    same("part.nc", "nco.nc");

    std::fs::copy(folder.join("next.nc"), folder.join("edited.nc")).unwrap();
    output_of(folder, 0, &["attrs", "edited.nc", "/t", "units=degC"]);
    output_of(folder, 0, &["attrs", "edited.nc", "/", "--delete", "history"]);
    output_of(folder, 0, &["rename", "edited.nc", "/t", "temperature"]);
    output_of(folder, 0, &["rm", "edited.nc", "/mask"]);
    let edits = ["-O", "-h", "-a", "units,t,o,c,degC", "-a", "history,global,d,,", "next.nc", "nco.nc"];
    tool(folder, "ncatted", &edits);
    tool(folder, "ncrename", &["-h", "-v", "t,temperature", "nco.nc"]);
    tool(folder, "ncks", &["-O", "-h", "-x", "-v", "mask", "nco.nc", "nco2.nc"]);
    same("edited.nc", "nco2.nc");
    let attributes = output_of(folder, 0, &["attrs", "edited.nc", "/"]);
    assert!(attributes.contains("title") && !attributes.contains("history"), "{attributes}");

    // Means in 64 bits, as CDO computes them on request.
    output_of(folder, 0, &["query", "cdo.nc", "/t", "--mean", "time", "-o", "mean.npy"]);
    tool(folder, "cdo", &["-s", "-b", "F64", "timmean", "-selname,t", "cdo.nc", "mean.nc"]);
    output_of(folder, 0, &["read", "mean.nc", "/t", "[0]", "-o", "theirs.npy"]);
    output_of(folder, 0, &["diff", "mean.npy", "theirs.npy", "--rtol", "1e-12"]);
}

#[test]
fn tables_are_read_in_every_compression_of_pandas() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    python(&["tables", folder.to_str().unwrap()]);
    let parquet = ["snappy", "gzip", "brotli", "lz4", "zstd", "none"].map(|name| format!("{name}.parquet"));
    let arrow = ["lz4", "zstd", "uncompressed"].map(|name| format!("{name}.feather"));
    for file in parquet.iter().chain(&arrow) {
        output_of(folder, 0, &["convert", file, "copy.csv", "--force"]);
        python(&["rows", folder.to_str().unwrap(), "copy"]);
        let words = ["query", file, "--where", "kind == 'b' and count > 2", "--count", "--json"];
        let found: Value = serde_json::from_str(&output_of(folder, 0, &words)).unwrap();
        assert_eq!(found, json!({"count": [95]}), "{file}");
    }
    // Whatever is damaged ends in an answer or an error.
    let whole = std::fs::read(folder.join("small.feather")).unwrap();
    let mut refused = 0;
    for at in (0..whole.len()).step_by(19) {
        let mut bytes = whole.clone();
        bytes[at..].iter_mut().take(7).for_each(|byte| *byte = 0x7f);
        std::fs::write(folder.join("damaged.feather"), bytes).unwrap();
        let output = tet(folder, &["query", "damaged.feather", "--sum", "count"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 2)) && !text.contains("panic"), "byte {at}: {text}");
        refused += usize::from(output.status.code() == Some(2));
    }
    assert!(refused > 20, "{refused} of {}", whole.len());
}

#[test]
fn tables_become_points() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    python(&["tables", folder.to_str().unwrap()]);
    for (source, target) in [("points.csv", "a.zv"), ("zstd.parquet", "b.zv"), ("lz4.feather", "c.zv")] {
        // Texts and categories are not attributes of vertices.
        let text = output_of(folder, 1, &["convert", source, target]);
        assert!(text.contains("label: left out") && !text.contains("count: left out"), "{text}");
        let found: Value = serde_json::from_str(&output_of(folder, 0, &["read", target, "--json"])).unwrap();
        assert_eq!(found["vertices"].as_array().unwrap().len(), 500, "{target}");
        assert_eq!(found["attributes"]["count"].as_array().unwrap().len(), 500, "{target}");
        let scores = found["attributes"]["score"].as_array().unwrap();
        assert_eq!(scores.iter().filter(|score| **score == "NaN").count(), 56, "{target}");
    }
    let text = output_of(folder, 1, &["convert", "holes.parquet", "d.zv"]);
    assert!(text.contains("count: left out, because 1 values are missing"), "{text}");
    let text = output_of(folder, 2, &["convert", "nowhere.parquet", "e.zv"]);
    assert!(text.contains("no value of y") && !folder.join("e.zv").exists(), "{text}");

    output_of(folder, 0, &["attrs", "a.zv", "/", "units=mm", "--dry-run"]);
    output_of(folder, 0, &["attrs", "a.zv", "/", "units=mm", "source=scan"]);
    output_of(folder, 0, &["attrs", "a.zv", "/", "--delete", "source"]);
    let attribute = |name: &str| {
        let document = std::fs::read(folder.join("a.zv/zarr.json")).unwrap();
        serde_json::from_slice::<Value>(&document).unwrap()["attributes"][name].clone()
    };
    assert_eq!((attribute("units"), attribute("source")), (json!("mm"), Value::Null));
    let text = output_of(folder, 2, &["attrs", "a.zv", "/", "zarr_vectors=1"]);
    assert!(text.contains("bookkeeping"), "{text}");
    output_of(folder, 0, &["verify", "a.zv", "--deep"]);
}
