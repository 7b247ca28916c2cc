//! Against the real library: what it writes, we read; what we write, it reads.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{check_case, interpreter};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(name)
}

/// Runs a script that writes cases into a folder, and reads them all.
fn read_cases(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let root = std::env::var_os("HYPERSLAB_KEEP")
        .map_or_else(|| folder.path().join("cases"), PathBuf::from)
        .join(name);
    let done = Command::new(interpreter()).arg(script(name)).arg(&root).output().unwrap();
    assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
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
