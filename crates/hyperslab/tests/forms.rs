//! Content that a format has no place for is stored in a form and comes back.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::diff::{DiffOptions, diff};
use hyperslab::{
    ArraySpec, Attributes, CreateOptions, DType, Elements, EnumType, Fill, Grid, Node, OpenStore, StructType,
    TimeUnit, Validity, create, format_named, open,
};

/// Arrays of one chunk each.
fn write(path: &Path, format: &str, arrays: &[(&str, ArraySpec, Elements)]) -> OpenStore {
    let (format, variant) = format_named(format).unwrap();
    let mut sink = create(path, format, &CreateOptions { variant, ..CreateOptions::default() }).unwrap();
    sink.group("/", &Attributes::new()).unwrap();
    let mut sinks = Vec::new();
    for (name, spec, _) in arrays {
        sinks.push(sink.array(name, spec).unwrap());
    }
    for (sink, (_, spec, elements)) in sinks.iter().zip(arrays) {
        let chunk = vec![0_u64; spec.grid.rank()].as_slice().into();
        sink.write(&chunk, sink.encode(&chunk, elements).unwrap()).unwrap();
    }
    drop(sinks);
    sink.commit().unwrap();
    open(path).unwrap()
}

fn spec(dtype: DType, shape: &[u64]) -> ArraySpec {
    let mut spec = ArraySpec::new(dtype, Grid::single(shape));
    spec.attributes.set("long_name", "something");
    for (axis, name) in spec.dimensions.iter_mut().enumerate() {
        *name = Some(["y", "x", "z"][axis].to_owned());
    }
    spec
}

fn to(source: &OpenStore, path: &Path, format: &str) -> hyperslab::Result<OpenStore> {
    let (format, variant) = format_named(format)?;
    let options = ConvertOptions { variant, ..ConvertOptions::default() };
    let report = convert(source, path, format, &options, &Progress::default())?;
    assert_eq!(report.dropped().count(), 0, "{:?}", report.losses);
    open(path)
}

fn assert_same(a: &OpenStore, b: &OpenStore, what: &str) {
    let report =
        diff((a, "/"), (b, "/"), &DiffOptions { values_only: true, ..DiffOptions::default() }).unwrap();
    let told: Vec<String> =
        report.differences.iter().map(|found| format!("{}: {}", found.path, found.sentence())).collect();
    assert!(told.is_empty(), "{what}: {told:?}");
}

#[test]
fn missing_elements_come_back_from_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut nullable = spec(DType::Int32, &[2, 3]);
    nullable.nullable = true;
    nullable.fill =
        Fill::Element(Elements::fixed(vec![0; 4]).with_validity(Some(Validity::from_flags([false]))));
    let there = [true, false, true, true, false, false];
    let numbers: Vec<u8> = (0..6_i32).flat_map(i32::to_ne_bytes).collect();
    let elements = Elements::fixed(numbers).with_validity(Some(Validity::from_flags(there)));
    let source = write(&path("a.tiledb"), "tiledb", &[("/a", nullable, elements)]);
    for (format, ending) in [
        ("hdf5", "h5"),
        ("netcdf4", "nc"),
        ("netcdf3", "nc3"),
        ("zarr2", "zarr2"),
        ("zarr3", "zarr3"),
        ("tet", "tet"),
    ] {
        let there = to(&source, &path(&format!("b.{ending}")), format).unwrap();
        let array = there.array("/a").unwrap();
        assert!(
            array.schema().nullable && array.schema().attributes.get("hyperslab_mask").is_none(),
            "{format}"
        );
        assert!(!there.children("/").unwrap().contains(&"a_mask".to_owned()), "{format}");
        assert_same(&source, &there, format);
        // As it is stored, the mask is an array like any other.
        assert!(matches!(there.as_stored().node("/a_mask"), Ok(Node::Array(_))), "{format}");
        let back = to(&there, &path(&format!("c-{ending}.tiledb")), "tiledb").unwrap();
        assert!(back.array("/a").unwrap().schema().nullable, "{format}");
        assert_same(&source, &back, format);
        // A copy within the format is the same store.
        let copy = to(&there, &path(&format!("d.{ending}")), format).unwrap();
        assert_same(&there, &copy, format);
    }
    // Without attributes nothing says what a mask is for.
    let numpy = to(&source, &path("b.npz"), "npz").unwrap();
    assert!(!numpy.array("/a").unwrap().schema().nullable && numpy.array("/a_mask").is_ok());
    let one = to(&source, &path("b.npy"), "npy").unwrap_err();
    assert!(one.is_unsupported(), "{one}");
}

#[test]
fn every_type_comes_back_from_tet() {
    let folder = tempfile::tempdir().unwrap();
    let state: DType =
        EnumType { base: DType::Int8, members: vec![("OFF".to_owned(), 0), ("ON".to_owned(), 1)] }.into();
    let point: DType = StructType::packed([("a", DType::Int32), ("b", DType::Complex64)]).into();
    let arrays = [
        ("/yes", spec(DType::Bool, &[3]), Elements::fixed(vec![1, 0, 1])),
        ("/small", spec(DType::Int8, &[2]), Elements::fixed(vec![0x80, 0x7f])),
        ("/complex", spec(DType::Complex128, &[2, 1]), Elements::fixed((0..32).collect::<Vec<u8>>())),
        ("/fixed", spec(DType::FixedBytes(3), &[2]), Elements::fixed(b"ab\0xyz".to_vec())),
        ("/text", spec(DType::String, &[3]), Elements::variable(["ä", "", "longer"])),
        (
            "/when",
            spec(DType::DateTime(TimeUnit::Second), &[1]),
            Elements::fixed(5_i64.to_ne_bytes().to_vec()),
        ),
        ("/state", spec(state, &[2]), Elements::fixed(vec![1, 0])),
        ("/point", spec(point, &[2]), Elements::fixed((0..24).collect::<Vec<u8>>())),
    ];
    let source = write(&folder.path().join("a.h5"), "hdf5", &arrays);
    let tet = to(&source, &folder.path().join("b.tet"), "tet").unwrap();
    for (name, spec, _) in &arrays {
        let own = tet.array(name).unwrap();
        assert_eq!(own.schema().dtype, source.array(name).unwrap().schema().dtype, "{name}");
        assert_eq!(own.schema().dimensions, spec.dimensions, "{name}");
        let names: Vec<&str> = own.schema().attributes.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["long_name"], "{name}");
    }
    assert_same(&source, &tet, "tet");
    let back = to(&tet, &folder.path().join("c.h5"), "hdf5").unwrap();
    assert_same(&source, &back, "back");
    // What has no form is refused by name, and nothing is left behind.
    let lists = spec(DType::List(Arc::new(DType::Int32)), &[1]);
    let list =
        hyperslab::Data::List { offsets: vec![0, 1], items: Box::new(Elements::fixed(vec![1, 0, 0, 0])) };
    let lists =
        write(&folder.path().join("l.h5"), "hdf5", &[("/l", lists, Elements { data: list, validity: None })]);
    let refused = to(&lists, &folder.path().join("l.tet"), "tet").unwrap_err();
    assert!(refused.is_unsupported() && refused.to_string().contains("list<int32>"), "{refused}");
    assert!(!folder.path().join("l.tet").exists());
}

#[test]
fn marks_that_do_not_fit_are_no_forms() {
    let folder = tempfile::tempdir().unwrap();
    let marked = |name: &str, value: &str| {
        let mut spec = spec(DType::UInt8, &[4]);
        spec.attributes.set(name, value);
        spec
    };
    let bytes = || Elements::fixed(vec![0, 1, 2, 3]);
    let arrays = [
        ("/a", marked("hyperslab_mask", "not there"), bytes()),
        ("/b", marked("hyperslab_mask", "../a"), bytes()),
        ("/c", marked("hyperslab_mask", "c"), bytes()),
        ("/d", marked("hyperslab_type", "complex64"), bytes()),
        ("/e", marked("hyperslab_type", "{\"struct\": [[\"..\", \"int8\"]]}"), bytes()),
        ("/f", marked("hyperslab_type", "bytes[99999999]"), bytes()),
    ];
    let store = write(&folder.path().join("a.zarr"), "zarr3", &arrays);
    for (name, ..) in &arrays {
        let array = store.array(name).unwrap();
        assert_eq!(array.schema().dtype, DType::UInt8, "{name}");
        assert!(!array.schema().nullable, "{name}");
        assert_eq!(array.read_vec::<u8>(&hyperslab::Selection::all()).unwrap(), [0, 1, 2, 3], "{name}");
    }
    assert_eq!(store.children("/").unwrap().len(), 6);
}
