//! Against the live libraries: what zarr-python and tensorstore write we read, what we write they read.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

fn python(script: &str, arguments: &[&Path]) {
    let interpreter = std::env::var("HYPERSLAB_PEERS")
        .expect("HYPERSLAB_PEERS must name a Python interpreter that has zarr, numcodecs and tensorstore");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    let output =
        Command::new(interpreter).arg(script).args(arguments).output().expect("the interpreter starts");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn what_zarr_python_writes_is_read() {
    let folder = tempfile::tempdir().unwrap();
    python("cases.py", &[folder.path()]);
    let cases = support::cases(folder.path());
    assert!(cases.len() > 150, "{} cases", cases.len());
    for case in &cases {
        support::check(folder.path(), case);
    }
}
