//! Against the live library: what zarr-vectors writes we read, and answer by the truth.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use hyperslab_core::{Depth, Geometry, Report, Store};

fn python(script: &str, arguments: &[&Path]) {
    let interpreter = std::env::var("HYPERSLAB_PEERS")
        .expect("HYPERSLAB_PEERS must name a Python interpreter that has zarr-vectors");
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
fn what_zarr_vectors_writes_is_answered_by_the_truth() {
    let folder = tempfile::tempdir().unwrap();
    python("cases.py", &[folder.path()]);
    let cases = support::cases(folder.path());
    assert!(cases.len() > 200, "{} cases", cases.len());
    for case in &cases {
        support::check(folder.path(), case);
    }
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let store = hyperslab_zvf::open_path(&path).unwrap();
            let mut report = Report::default();
            store.verify(Depth::Deep, &mut report).unwrap();
            assert!(report.ok(), "{}: {report:?}", path.display());
            for level in store.geometry().unwrap().levels().unwrap() {
                assert!(level.vertices > 0, "{level:?}");
            }
        }
    }
}
