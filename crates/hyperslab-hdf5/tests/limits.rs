//! The limits of HDF5's fields: values within them round-trip, and others are refused before anything is written.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use hyperslab_core::{
    ArraySpec, Attribute, Attributes, DType, Depth, Elements, Fill, Grid, Node, Report, Sink, Store,
    StructType, Values,
};
use hyperslab_hdf5::{AppendOptions, Compatibility, Hdf5Append, Hdf5Options, Hdf5Sink};

const ALL: [Compatibility; 3] = [Compatibility::Earliest, Compatibility::V110, Compatibility::V200];

fn create(path: &Path, compatibility: Compatibility) -> Box<Hdf5Sink> {
    let mut options = Hdf5Options::default();
    options.compatibility = compatibility;
    options.replace = true;
    Box::new(Hdf5Sink::create(path, options).unwrap())
}

fn check(path: &Path) -> hyperslab_hdf5::Hdf5Store {
    let store = hyperslab_hdf5::open_path(path).unwrap();
    let mut report = Report::default();
    store.verify(Depth::Deep, &mut report).unwrap();
    assert!(report.ok(), "{report:?}");
    store
}

fn compound(members: usize) -> DType {
    StructType::packed((0..members).map(|number| (format!("member_number_{number:05}"), DType::Float64)))
        .into()
}

fn array_of(dtype: DType) -> ArraySpec {
    ArraySpec::new(dtype, Grid::single(&[1]))
}

/// h5py refuses the same types with "object header message is too large".
#[test]
fn a_type_larger_than_a_message_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for compatibility in ALL {
        let path = folder.path().join("x.h5");
        let mut sink = create(&path, compatibility);
        for members in [2000, 60_000] {
            let error = sink.array("/x", &array_of(compound(members))).unwrap_err().to_string();
            assert!(error.contains("datatype") && error.contains("message"), "{error}");
        }
        // The packed form has 41 bytes and an offset per member, the old one 48 with a padded name and 4 more.
        let most = if compatibility == Compatibility::Earliest { 1000 } else { 1400 };
        sink.array("/good", &array_of(compound(most))).unwrap();
        let values = |members: usize| -> Attribute {
            Values::new(compound(members), &[], Elements::fixed(vec![0; 8 * members])).unwrap().into()
        };
        let attributes = Attributes::from_iter([("a", values(2000))]);
        let error = sink.group("/g", &attributes).unwrap_err().to_string();
        assert!(error.contains("attribute \"a\""), "{error}");
        sink.commit().unwrap();
        let store = check(&path);
        let Ok(Node::Array(array)) = store.node("/good") else { panic!("no dataset") };
        assert_eq!(array.schema().dtype, compound(most));
        assert_eq!(store.children("/").unwrap(), ["good"]);
    }
}

#[test]
fn large_fill_values_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for compatibility in ALL {
        let path = folder.path().join("x.h5");
        let mut sink = create(&path, compatibility);
        let spec = |length: usize| {
            let mut spec = array_of(DType::FixedBytes(length));
            spec.fill = Fill::Element(Elements::fixed(vec![b'z'; length]));
            spec
        };
        let error = sink.array("/x", &spec(70_000)).unwrap_err().to_string();
        assert!(error.contains("fill value"), "{error}");
        sink.array("/good", &spec(60_000)).unwrap();
        sink.commit().unwrap();
        let Ok(Node::Array(array)) = check(&path).node("/good") else { panic!("no dataset") };
        assert_eq!(array.schema().fill, Fill::Element(Elements::fixed(vec![b'z'; 60_000])));
    }
}

#[test]
fn long_attribute_names_and_values_are_kept_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    for compatibility in ALL {
        let path = folder.path().join("x.h5");
        for (name, value, old, new) in [
            (65_400, 1, true, true),
            (65_534, 1, false, true),
            (65_535, 1, false, false),
            (70_000, 1, false, false),
            (3, 65_000, true, true),
            (3, 65_500, false, true),
            (3, 200_000, false, true),
        ] {
            let (name, bytes) = ("n".repeat(name), vec![7; value]);
            let values = Values::new(DType::UInt8, &[value as u64], Elements::fixed(bytes)).unwrap();
            let attributes = Attributes::from_iter([(name.as_str(), values.clone())]);
            let good = if compatibility == Compatibility::Earliest { old } else { new };
            let mut sink = create(&path, compatibility);
            let made = sink.group("/g", &attributes);
            assert_eq!(made.is_ok(), good, "{compatibility:?} {} {value}: {made:?}", name.len());
            sink.commit().unwrap();
            let store = check(&path);
            if good {
                let Ok(Node::Group(read)) = store.node("/g") else { panic!("no group") };
                assert_eq!(read.get(&name), Some(&Attribute::Values(values.clone())));
            }
            drop(store);
            // The same in an existing file: refused at once, or stored.
            let before = std::fs::read(&path).unwrap();
            let mut file = Hdf5Append::open(&path, AppendOptions::default()).unwrap();
            let added = file.attribute("/", &name, values.clone()).and_then(|()| file.close());
            assert!(good || added.is_err());
            let store = check(&path);
            match added {
                Ok(()) => {
                    let Ok(Node::Group(read)) = store.node("/") else { panic!("no root") };
                    assert_eq!(read.get(&name), Some(&Attribute::Values(values)));
                }
                Err(_) => assert_eq!(std::fs::read(&path).unwrap(), before),
            }
        }
    }
}

/// Like libhdf5, stores a link too large for a message in a heap.
#[test]
fn long_link_names_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    for compatibility in ALL {
        let path = folder.path().join("x.h5");
        for length in [60_000, 65_536, 70_000] {
            let (first, second) = ("a".repeat(length), "b".repeat(length));
            let mut sink = create(&path, compatibility);
            sink.group(&format!("/g/{first}"), &Attributes::from_iter([("x", "1")])).unwrap();
            sink.commit().unwrap();
            assert_eq!(check(&path).children("/g").unwrap(), std::slice::from_ref(&first));
            let mut file = Hdf5Append::open(&path, AppendOptions::default()).unwrap();
            file.group(&format!("/g/{second}"), &Attributes::from_iter([("x", "2")])).unwrap();
            file.close().unwrap();
            let store = check(&path);
            assert_eq!(store.children("/g").unwrap(), [first.clone(), second.clone()]);
            for (name, value) in [(&first, "1"), (&second, "2")] {
                let Ok(Node::Group(read)) = store.node(&format!("/g/{name}")) else { panic!("no group") };
                assert_eq!(read.to_json()["x"], value);
            }
        }
    }
}
