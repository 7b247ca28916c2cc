//! Interoperability with the real library: reads what it writes, and lets it read what this crate writes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "peers/write.rs"]
mod write;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::check_case;

/// The Python interpreter with the real library.
pub(crate) fn interpreter() -> std::ffi::OsString {
    std::env::var_os("HYPERSLAB_PEERS")
        .expect("HYPERSLAB_PEERS names a Python interpreter that has tiledb 0.36.1")
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(name)
}

/// Runs a script that writes cases into a folder, then reads them all.
fn read_cases(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let root = std::env::var_os("HYPERSLAB_KEEP")
        .map_or_else(|| folder.path().join("cases"), PathBuf::from)
        .join(name);
    // The library sometimes crashes while writing the cases (a signal, so there is no exit code). This is unrelated
    // to the code under test, so run it again.
    let mut attempts = 0;
    let done = loop {
        let _ = std::fs::remove_dir_all(&root);
        let mut writing = Command::new(interpreter());
        let done = writing.args(["-X", "faulthandler"]).arg(script(name)).arg(&root).output().unwrap();
        attempts += 1;
        if done.status.code().is_some() || attempts == 3 {
            break done;
        }
    };
    assert!(done.status.success(), "{name}: {}: {}", done.status, String::from_utf8_lossy(&done.stderr));
    let mut failures = Vec::new();
    let mut count = 0;
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    for case in cases {
        let (checked, problems) = check_case(&case);
        count += checked;
        failures.extend(problems);
    }
    assert!(count > 0, "{name} wrote nothing");
    assert!(failures.is_empty(), "{} of {count} failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn dense_arrays_are_read() {
    read_cases("dense.py");
}

#[test]
fn sparse_arrays_are_read() {
    read_cases("sparse.py");
}

#[test]
fn features_are_read() {
    read_cases("features.py");
}

/// After consolidation and vacuum, an array has the same content for this crate and for the library, also at earlier
/// times.
#[test]
fn fragments_are_consolidated() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("fragments");
    let run = |check: &[&str]| {
        let done =
            Command::new(interpreter()).arg(script("fragments.py")).arg(&root).args(check).output().unwrap();
        assert!(done.status.success(), "{check:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let ours = |step: &str| {
        for entry in std::fs::read_dir(&root).unwrap() {
            let problems = check_case(&entry.unwrap().path()).1;
            assert!(problems.is_empty(), "{step}: {}", problems.join("\n"));
        }
    };
    run(&[]);
    ours("as written");
    let options = hyperslab_tiledb::WriteOptions::default();
    let all = hyperslab_tiledb::ConsolidateOptions::default();
    for entry in std::fs::read_dir(&root).unwrap() {
        let array = entry.unwrap().path().join("array");
        assert!(hyperslab_tiledb::consolidate(&array, &all).unwrap() > 1);
        assert_eq!(hyperslab_tiledb::consolidate(&array, &all).unwrap(), 0);
    }
    ours("consolidated");
    run(&["check"]);
    for entry in std::fs::read_dir(&root).unwrap() {
        let array = entry.unwrap().path().join("array");
        assert!(hyperslab_tiledb::vacuum(&array, &options).unwrap() > 1);
        assert_eq!(std::fs::read_dir(array.join("__fragments")).unwrap().count(), 1);
    }
    ours("vacuumed");
    run(&["check"]);
}
