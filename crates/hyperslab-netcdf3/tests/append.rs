//! Tests adding records to files.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::path::Path;

use hyperslab_core::{
    CreateOptions, Elements, FormatDriver, Grid, Node, Positions, Sink, Store, read_serial,
};
use hyperslab_netcdf3::Netcdf3Driver;
use serde_json::json;

fn append(path: &Path) -> Box<dyn Sink> {
    Netcdf3Driver.append(path, &CreateOptions::default()).unwrap()
}

fn read(path: &Path, name: &str) -> serde_json::Value {
    let store = common::open(path, true);
    let Node::Array(array) = store.node(&format!("/{name}")).unwrap() else { panic!("{name}") };
    read_serial(&*array, Positions::whole(array.schema().shape())).unwrap().to_json()
}

/// Grows a variable of 16-bit integers to this shape; all of its chunks hold ones.
fn grow(sink: &mut dyn Sink, path: &str, shape: &[u64]) {
    let array = sink.grow(path, shape).unwrap();
    let grid: &Grid = array.grid();
    for number in 0..grid.chunks().unwrap() {
        let coord = grid.coord(number);
        let cells = grid.region(&coord).cells().unwrap();
        let elements = Elements::fixed(1_i16.to_ne_bytes().repeat(cells as usize));
        array.write(&coord, array.encode(&coord, &elements).unwrap()).unwrap();
    }
}

fn copied(name: &str, folder: &Path) -> std::path::PathBuf {
    let path = folder.join(format!("{name}.nc"));
    std::fs::copy(common::golden().join(format!("{name}.nc")), &path).unwrap();
    path
}

#[test]
fn records_are_visible_only_after_the_commit() {
    for name in ["classic", "offset64", "data64"] {
        let folder = tempfile::tempdir().unwrap();
        let path = copied(name, folder.path());
        let (before, others) = (read(&path, "record_i2"), read(&path, "record_f8"));
        let mut sink = append(&path);
        grow(&mut *sink, "/record_i2", &[9, 3]);
        // The state if the process is killed here.
        assert_eq!(read(&path, "record_i2"), before);
        drop(sink);
        assert_eq!((read(&path, "record_i2"), read(&path, "record_f8")), (before.clone(), others.clone()));
        let expected: serde_json::Value =
            serde_json::from_slice(&std::fs::read(common::golden().join(format!("{name}.json"))).unwrap())
                .unwrap();
        assert_eq!(common::compare(&path, &expected, true), Vec::<String>::new());

        let mut sink = append(&path);
        grow(&mut *sink, "/record_i2", &[9, 3]);
        sink.commit().unwrap();
        let rows = |document: serde_json::Value| document.as_array().unwrap().clone();
        let grown = rows(read(&path, "record_i2"));
        // Old records stay as they were, even if chunks of them were written.
        assert_eq!(grown[..7], rows(before)[..]);
        assert_eq!(grown[7..], [json!([1, 1, 1]), json!([1, 1, 1])]);
        // All other record variables have fill values in the new records.
        assert_eq!(rows(read(&path, "record_f8"))[..7], rows(others)[..]);
        assert_eq!(rows(read(&path, "filled"))[7..], [json!([-7, -7, -7]), json!([-7, -7, -7])]);
    }
}

#[test]
fn a_single_record_variable_is_not_padded() {
    let folder = tempfile::tempdir().unwrap();
    let path = copied("single_short", folder.path());
    let mut sink = append(&path);
    grow(&mut *sink, "/record", &[6, 3]);
    sink.commit().unwrap();
    let grown = read(&path, "record");
    assert_eq!(grown.as_array().unwrap().len(), 6);
    assert_eq!((&grown[4], &grown[5]), (&json!([12, 13, 14]), &json!([1, 1, 1])));
    assert_eq!(read(&path, "fixed"), json!([1, 2, 3]));
}

#[test]
fn invalid_growth_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = copied("classic", folder.path());
    let mut sink = append(&path);
    for (array, shape) in [("/fixed_i2", [6, 3]), ("/record_i2", [8, 4])] {
        let why = sink.grow(array, &shape).unwrap_err();
        assert!(why.to_string().contains("is fixed, because it is no record dimension"), "{why}");
    }
    assert!(sink.grow("/record_i2", &[6, 3]).unwrap_err().to_string().contains("cannot become"));
    assert!(sink.grow("/none", &[6]).unwrap_err().is_not_found());
    assert!(sink.grow("/record_i2", &[1 << 31, 3]).unwrap_err().is_unsupported());
    // Only one writer is allowed at a time.
    assert!(Netcdf3Driver.append(&path, &CreateOptions::default()).is_err());
    drop(sink);
    let stream = copied("stream", folder.path());
    assert!(Netcdf3Driver.append(&stream, &CreateOptions::default()).unwrap_err().is_unsupported());
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 8]).unwrap();
    assert!(Netcdf3Driver.append(&path, &CreateOptions::default()).unwrap_err().is_corrupt());
}
