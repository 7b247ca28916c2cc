//! The same requests to h5grove and to us, on HDF5 files of every type: the same answers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use hyperslab_serve::ServeOptions;

#[test]
fn answers_are_those_of_h5grove() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    common::script("h5grove_compare.py", &["make", path]);
    let server = common::serve(folder.path(), ServeOptions::default());
    let told = common::script("h5grove_compare.py", &["compare", path, &server.url]);
    let (counts, differences) = told.split_once('\n').unwrap();
    assert!(differences.is_empty(), "{differences}");
    let requests: u32 = counts.split(' ').next().unwrap().parse().unwrap();
    assert!(requests > 150, "{counts}");
}
