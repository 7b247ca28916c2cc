//! Files by tet-py and the tetration crate, made by `golden/make.py`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use hyperslab_core::{Array, DType, Depth, Labels, Node, Positions, Store, read_serial};
use hyperslab_tet::{TetStore, dtype_of_code, open_path, verify_path};

fn opened(name: &str) -> TetStore {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let report = verify_path(&path, Depth::Deep).unwrap();
    assert!(report.ok, "{name}: {:#?}", report.report.findings);
    open_path(&path).unwrap()
}

fn assert_sample(store: &TetStore, path: &str, dtype: &DType, shape: &[u64]) {
    let Node::Array(array) = store.node(path).unwrap() else { panic!("{path}") };
    let values = read_serial(array.as_ref(), Positions::whole(array.schema().shape())).unwrap();
    assert_eq!((&values.dtype, &values.shape[..]), (dtype, shape), "{path}");
    let cells = 0..shape.iter().product();
    let expected: Vec<u8> =
        cells.flat_map(|cell: u64| (cell * 7 + 1).to_le_bytes()[..dtype.size().unwrap()].to_vec()).collect();
    assert_eq!(values.elements.as_fixed().unwrap(), &expected, "{path}");
}

#[test]
fn all_types_and_their_metadata() {
    let store = opened("types.tet");
    for code in 1..=10 {
        let dtype = dtype_of_code(code).unwrap();
        assert_sample(&store, &format!("/group/{dtype}"), &dtype, &[3, 4, 2]);
    }
    let array = store.dataset(0).unwrap();
    let schema = array.schema();
    assert_eq!(schema.dimensions, ["t", "y", "x"].map(|name| Some(name.to_owned())));
    assert_eq!(schema.attributes.to_json()["units"], "K");
    assert!(
        matches!(&schema.labels[..], [Labels::Texts(t), Labels::None, Labels::Texts(x)] if t.len() == 3 && x[1] == "b")
    );
    assert_eq!((store.history()[0].op.as_str(), store.history()[0].source.as_str()), ("convert", "npy"));
    assert_eq!(store.footer().unwrap().version, 2);
    assert_eq!(store.zone_maps().unwrap().unwrap().chunks.len(), 40);
    assert!(!store.secondary_index().unwrap().unwrap().indexes.is_empty());
}

#[test]
fn compressed_chunks() {
    let store = opened("zstd.tet");
    for (name, dtype) in [("/d2", DType::Float64), ("/d3", DType::Int32), ("/d10", DType::UInt64)] {
        assert_sample(&store, name, &dtype, &[40, 9]);
    }
    assert_eq!(store.dataset(0).unwrap().schema().filters[0].name, "zstd");
}

#[test]
fn no_footer_version_1_and_a_spill() {
    let plain = opened("plain.tet");
    assert!(!plain.superblock().has_footer());
    assert_sample(&plain, "/x", &DType::Float32, &[2, 3]);
    let version1 = opened("version1.tet");
    assert_eq!(version1.footer().unwrap().version, 1);
    assert_sample(&version1, "/x", &DType::Float32, &[2, 3]);
    assert_eq!(version1.dataset(0).unwrap().schema().attributes.to_json()["units"], "K");
    let spill = opened("spill.tet");
    assert!(spill.footer().unwrap().metadata_spill.is_some());
    assert_sample(&spill, "/d22", &DType::Int32, &[3]);
    assert_eq!(spill.dataset(22).unwrap().schema().attributes.len(), 3);
}
