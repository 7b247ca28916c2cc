//! Round trips of every layout, index, type and filter.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "common/written.rs"]
mod written;

use hyperslab_core::{
    ArraySpec, Attribute, Attributes, DType, Depth, Elements, Fill, Filter, Grid, Node, Report, Sink, Store,
    StructType,
};
use hyperslab_hdf5::{Hdf5Options, Hdf5Sink};

#[test]
fn everything_round_trips() {
    let folder = tempfile::tempdir().unwrap();
    for (name, compatibility) in written::COMPATIBILITIES {
        let path = folder.path().join(format!("{name}.h5"));
        let datasets = written::datasets(compatibility);
        written::write(&path, compatibility, &datasets).unwrap();
        let problems = written::differences(&path, &datasets);
        assert!(problems.is_empty(), "{name}: {} problems\n{}", problems.len(), problems.join("\n"));
        let store = hyperslab_hdf5::open_path(&path).unwrap();
        let mut report = Report::default();
        store.verify(Depth::Deep, &mut report).unwrap();
        assert!(report.ok(), "{name}: {report:?}");
        let Ok(Node::Group(read)) = store.node("/") else { panic!("no root") };
        for (attribute, value) in written::attributes().iter() {
            let own = read.get(attribute).map(Attribute::to_json);
            let fits = name != "earliest" || attribute != "large";
            let expected = Some(value.to_json()).filter(|_| fits);
            let same =
                own == expected || matches!(value, Attribute::Json(_)) || attribute.starts_with("text3");
            assert!(same, "{name} {attribute}: {own:?} is not {expected:?}");
        }
        assert_eq!(store.children("/many").unwrap().len(), 1500);
    }
}

/// Content that the format cannot hold is refused at once, and no file appears.
#[test]
fn unsupported_content_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.h5");
    let mut sink = Hdf5Sink::create(&path, Hdf5Options::default()).unwrap();
    let spec =
        |dtype: DType, shape: &[u64], chunk: &[u64]| ArraySpec::new(dtype, Grid::new(shape, chunk).unwrap());
    let good = || spec(DType::Int32, &[8, 8], &[4, 4]);
    let cases: Vec<(&str, ArraySpec)> = vec![
        ("33 dimensions", spec(DType::Int8, &[1; 33], &[1; 33])),
        ("missing elements", ArraySpec { nullable: true, ..good() }),
        ("chunks of 4 GiB", spec(DType::Int8, &[1 << 20, 1 << 20], &[1 << 16, 1 << 16])),
        ("an unknown filter", good().with_filters([Filter::new("magic")])),
        ("a level that gzip lacks", good().with_filters([Filter::new("gzip").with("level", 12)])),
        ("a level of 33 bits", good().with_filters([Filter::new("zstd").with("level", 1_i64 << 32)])),
        ("a block of 33 bits", good().with_filters([Filter::new("lz4").with("block_size", 1_i64 << 32)])),
        (
            "elements of 33 bits",
            good().with_filters([Filter::new("shuffle").with("element_size", (1_i64 << 32) + 4)]),
        ),
        ("Blosc's own codec", good().with_filters([Filter::new("blosc").with("codec", "blosclz")])),
        (
            "scaled text",
            spec(DType::FixedBytes(3), &[4, 4], &[2, 2]).with_filters([Filter::new("scaleoffset")]),
        ),
        ("text of no bytes", spec(DType::FixedBytes(0), &[4], &[4])),
        ("a limit below the shape", ArraySpec { max_shape: vec![Some(4), None], ..good() }),
        (
            "chunks beyond the limit",
            ArraySpec { max_shape: vec![None, Some(8)], ..spec(DType::Int8, &[8, 8], &[4, 9]) },
        ),
        ("a struct without members", spec(StructType::packed::<&str>([]).into(), &[4], &[4])),
        (
            "a fill value of another size",
            ArraySpec { fill: Fill::Element(Elements::fixed(vec![1])), ..good() },
        ),
        (
            "more chunks than a fixed array counts",
            ArraySpec { max_shape: vec![Some(1 << 60), Some(8)], ..spec(DType::Int8, &[8, 8], &[1, 4]) },
        ),
        (
            "an attribute without a name",
            ArraySpec { attributes: Attributes::from_iter([("", "x")]), ..good() },
        ),
    ];
    for (what, spec) in cases {
        assert!(sink.array("/x", &spec).is_err(), "{what}");
    }
    assert!(sink.array("/x", &good()).is_ok());
    assert!(sink.array("/x", &good()).is_err(), "it was made before");
    assert!(sink.group("/x/y", &Attributes::new()).is_err(), "an array stands above");
    drop(sink);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn chunks_are_written_once_and_must_fit() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = Box::new(Hdf5Sink::create(&folder.path().join("x.h5"), Hdf5Options::default()).unwrap());
    for (name, chunk) in [("/chunked", [2]), ("/whole", [4])] {
        let array =
            sink.array(name, &ArraySpec::new(DType::UInt8, Grid::new(&[4], &chunk).unwrap())).unwrap();
        let first = [0].as_slice().into();
        let bytes = Elements::fixed(vec![1; chunk[0] as usize]);
        assert!(array.encode(&first, &Elements::fixed(vec![1; 9])).is_err());
        assert!(array.encode(&[7].as_slice().into(), &bytes).is_err());
        let encoded = array.encode(&first, &bytes).unwrap();
        array.write(&first, encoded.clone()).unwrap();
        assert!(array.write(&first, encoded).is_err(), "it was written before");
    }
    let text = sink.array("/text", &ArraySpec::new(DType::String, Grid::single(&[1]))).unwrap();
    assert!(text.encode(&[0].as_slice().into(), &Elements::variable(["a\0b"])).is_err(), "it would be cut");
}

/// References lead to their objects in any order of writing. A dangling one fails the commit, which leaves no file.
#[test]
fn references_lead_to_their_objects() {
    let folder = tempfile::tempdir().unwrap();
    for (name, compatibility) in written::COMPATIBILITIES {
        let path = folder.path().join(format!("{name}.h5"));
        for (target, good) in [("/g/x", true), ("/nowhere", false)] {
            let mut options = written::options(compatibility);
            options.replace = true;
            let mut sink = Box::new(Hdf5Sink::create(&path, options).unwrap());
            let array = sink
                .array("/refs", &ArraySpec::new(DType::Reference, Grid::new(&[4], &[2]).unwrap()))
                .unwrap();
            sink.group("/g", &Attributes::from_iter([("a", "b")])).unwrap();
            sink.array("/g/x", &ArraySpec::new(DType::UInt8, Grid::single(&[3]))).unwrap();
            for (number, paths) in [["/g", target], ["", "/"]].iter().enumerate() {
                let chunk = [number as u64].as_slice().into();
                array.write(&chunk, array.encode(&chunk, &Elements::variable(paths)).unwrap()).unwrap();
            }
            assert_eq!(sink.commit().is_ok(), good);
            let store = hyperslab_hdf5::open_path(&path).unwrap();
            let Ok(Node::Array(refs)) = store.node("/refs") else { panic!("no dataset") };
            let read = hyperslab_core::read_serial(&*refs, hyperslab_core::Positions::whole(&[4])).unwrap();
            assert_eq!(read.to_json(), serde_json::json!(["/g", "/g/x", "", "/"]));
            let Ok(Node::Group(group)) = store.node("/g") else { panic!("no group") };
            assert_eq!(group.to_json()["a"], "b");
            let mut report = Report::default();
            store.verify(Depth::Deep, &mut report).unwrap();
            assert!(report.ok(), "{report:?}");
        }
    }
}
