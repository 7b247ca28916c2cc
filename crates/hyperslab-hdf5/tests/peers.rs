//! Files written by libhdf5, over the cross product of layouts, indexes, types and filters, compared value by value
//! with what it reads from them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Runs a script of this folder with the interpreter that has the peers.
fn python(script: &str, folder: &Path) {
    let interpreter = std::env::var_os("HYPERSLAB_PEERS")
        .expect("HYPERSLAB_PEERS names the Python interpreter that has h5py");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(script);
    let status = Command::new(interpreter).arg(script).arg(folder).status().unwrap();
    assert!(status.success(), "the script failed: {status}");
}

fn compare_all(script: &str) {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    python(script, folder);
    let mut problems = Vec::new();
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let expected = entry.unwrap().path();
        if expected.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let path = expected.with_extension("h5");
        let expected: Value = serde_json::from_slice(&std::fs::read(&expected).unwrap()).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        problems
            .extend(common::compare(&path, &expected).into_iter().map(|problem| format!("{name}{problem}")));
        files += 1;
    }
    assert!(files > 0, "the script made no files");
    assert!(
        problems.is_empty(),
        "{} differences:\n{}",
        problems.len(),
        problems[..problems.len().min(60)].join("\n")
    );
}

#[test]
fn everything_h5py_writes_reads_the_same() {
    compare_all("make.py");
}
