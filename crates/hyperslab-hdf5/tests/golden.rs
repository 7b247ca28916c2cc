//! Files written by libhdf5, compared with what it reads from them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::path::{Path, PathBuf};

use hyperslab_core::{Labels, Node, Store};
use serde_json::Value;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[test]
fn golden_files_read_as_h5py_reads_them() {
    let mut files = 0;
    for entry in std::fs::read_dir(golden()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "h5") {
            let expected = std::fs::read(path.with_extension("json")).unwrap();
            let expected: Value = serde_json::from_slice(&expected).unwrap();
            let problems = common::compare(&path, &expected);
            assert!(problems.is_empty(), "{}:\n{}", path.display(), problems.join("\n"));
            files += 1;
        }
    }
    assert_eq!(files, 4);
}

#[test]
fn dimension_scales_name_and_label_dimensions() {
    let store = hyperslab_hdf5::open_path(&golden().join("netcdf.h5")).unwrap();
    let Node::Array(array) = store.node("/t").unwrap() else { panic!("not an array") };
    let schema = array.schema();
    let names: Vec<_> = schema.dimensions.iter().map(|name| name.as_deref().unwrap_or("?")).collect();
    assert_eq!(names, ["time", "x", "bare"]);
    assert_eq!(schema.labels[0], Labels::Node("/time".to_owned()));
    assert_eq!(schema.labels[2], Labels::None);
    assert_eq!(schema.max_shape[0], None);
    let Node::Array(time) = store.node("time").unwrap() else { panic!("not an array") };
    assert_eq!(time.schema().dimensions[0].as_deref(), Some("time"));
}

#[test]
fn links_are_followed_and_circles_are_links() {
    let store = hyperslab_hdf5::open_path(&golden().join("latest.h5")).unwrap();
    assert!(matches!(store.node("/soft").unwrap(), Node::Array(_)));
    assert!(matches!(store.node("/dangling").unwrap(), Node::Link(target) if target == "/nowhere"));
    assert!(matches!(store.node("/types/up").unwrap(), Node::Link(target) if target == "/"));
    assert!(matches!(store.node("/types/up/types/f8").unwrap(), Node::Array(_)));
    assert!(store.node("/nope").unwrap_err().is_not_found());
    assert!(store.node("/scalar/below").is_err());
}

#[test]
fn index_kinds_and_filters_have_their_names() {
    let store = hyperslab_hdf5::open_path(&golden().join("latest.h5")).unwrap();
    for (path, index) in [
        ("/grids/fixed0", "fixed array"),
        ("/grids/grow0", "extensible array"),
        ("/grids/both1", "B-tree v2"),
        ("/grids/single", "single chunk"),
        ("/types/f8", "contiguous"),
        ("/virtual", "virtual"),
    ] {
        let name = if path == "/grids/grow0" { "/grids/grow00" } else { path };
        let Node::Array(array) = store.node(name).unwrap() else { panic!("{path} is no array") };
        assert_eq!(array.schema().chunk_index, index, "{path}");
    }
    let Node::Array(array) = store.node("/filters/gzip").unwrap() else { panic!("not an array") };
    let filters: Vec<_> = array.schema().filters.iter().map(|filter| filter.to_json().to_string()).collect();
    assert_eq!(filters, [r#"{"name":"shuffle","element_size":4}"#, r#"{"name":"gzip","level":4}"#]);
}

#[test]
fn intact_files_pass_the_check() {
    for name in ["earliest", "v110", "latest", "netcdf"] {
        let store = hyperslab_hdf5::open_path(&golden().join(name).with_extension("h5")).unwrap();
        let mut report = hyperslab_core::Report::default();
        store.verify(hyperslab_core::Depth::Deep, &mut report).unwrap();
        assert!(report.ok(), "{name}: {:?}", report.findings);
        assert!(report.findings.iter().any(|finding| finding.check == "objects" && finding.ok));
    }
}
