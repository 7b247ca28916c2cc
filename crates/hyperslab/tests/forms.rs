//! Content that a format does not support natively is stored in a form and restored.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::diff::{DiffOptions, diff};
use hyperslab::driver::Labels;
use hyperslab::{
    ArraySpec, Attribute, Attributes, CreateOptions, DType, Elements, EnumType, Fill, Grid, Node, OpenStore,
    StructType, TimeUnit, Validity, Values, create, format_named, open,
};

/// Arrays of one chunk each.
fn write(path: &Path, format: &str, arrays: &[(&str, ArraySpec, Elements)]) -> OpenStore {
    let (format, variant) = format_named(format).unwrap();
    let mut sink = create(path, format, &CreateOptions::default().with_variant(variant)).unwrap();
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
    let options = ConvertOptions::default().with_variant(variant);
    let report = convert(source, path, format, &options, &Progress::default())?;
    assert_eq!(report.dropped().count(), 0, "{:?}", report.losses);
    open(path)
}

fn assert_same(a: &OpenStore, b: &OpenStore, what: &str) {
    let report = diff((a, "/"), (b, "/"), &DiffOptions::default().with_values_only(true)).unwrap();
    let differences: Vec<String> =
        report.differences.iter().map(|found| format!("{}: {}", found.path, found.sentence())).collect();
    assert!(differences.is_empty(), "{what}: {differences:?}");
}

#[test]
fn missing_elements_survive_every_format() {
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
        // As stored, the mask is an ordinary array.
        assert!(matches!(there.as_stored().node("/a_mask"), Ok(Node::Array(_))), "{format}");
        let back = to(&there, &path(&format!("c-{ending}.tiledb")), "tiledb").unwrap();
        assert!(back.array("/a").unwrap().schema().nullable, "{format}");
        assert_same(&source, &back, format);
        // A copy within the format is identical.
        let copy = to(&there, &path(&format!("d.{ending}")), format).unwrap();
        assert_same(&there, &copy, format);
    }
    // Without attributes, the mask cannot be recognised.
    let numpy = to(&source, &path("b.npz"), "npz").unwrap();
    assert!(!numpy.array("/a").unwrap().schema().nullable && numpy.array("/a_mask").is_ok());
    let one = to(&source, &path("b.npy"), "npy").unwrap_err();
    assert!(one.is_unsupported(), "{one}");
}

#[test]
fn every_type_survives_tet() {
    let folder = tempfile::tempdir().unwrap();
    let state: DType = EnumType::new(DType::Int8, vec![("OFF".to_owned(), 0), ("ON".to_owned(), 1)]).into();
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
    // Content without a form is rejected by name, and nothing is left behind.
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
fn marks_that_do_not_match_are_ignored() {
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

/// A masked array is stored in several arrays, which grow, move and are removed together.
#[test]
fn masked_arrays_grow_with_their_masks() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let numbers = |first: i32, there: &[bool]| {
        let bytes: Vec<u8> = (first..first + there.len() as i32).flat_map(i32::to_ne_bytes).collect();
        Elements::fixed(bytes).with_validity(Some(Validity::from_flags(there.iter().copied())))
    };
    let mut nullable = spec(DType::Int32, &[3, 2]);
    nullable.nullable = true;
    nullable.max_shape[0] = None;
    let old = [true, false, true, true, false, false];
    let source = write(&path("a.tiledb"), "tiledb", &[("/a", nullable, numbers(0, &old))]);
    for (format, ending) in [("hdf5", "h5"), ("zarr2", "zarr2"), ("zarr3", "zarr3"), ("tet", "tet")] {
        let target = path(&format!("b.{ending}"));
        let (named, variant) = format_named(format).unwrap();
        let options = ConvertOptions::default().with_variant(variant).with_chunk_shape(vec![2, 2]);
        let options = options.with_unlimited(vec!["0".to_owned()]);
        convert(&source, &target, named, &options, &Progress::default()).unwrap();
        let store = open(&target).unwrap();
        let new = [false, true, true, false];
        let values = Values::new(DType::Int32, &[2, 2], numbers(6, &new)).unwrap();
        let append = CreateOptions::default().with_append(true);
        let mut sink = create(&target, named, &append).unwrap();
        hyperslab::extend(&mut *sink, &store.array("/a").unwrap(), "/a", 0, &values).unwrap();
        sink.commit().unwrap();
        let grown = open(&target).unwrap();
        let array = grown.array("/a").unwrap();
        assert!(array.schema().nullable, "{format}");
        let all = array.read(&hyperslab::Selection::all()).unwrap();
        assert_eq!(all.shape.as_slice(), [5, 2], "{format}");
        let missing: Vec<bool> = (0..10).map(|cell| all.elements.is_missing(cell)).collect();
        let expected: Vec<bool> = old.iter().chain(&new).map(|there| !there).collect();
        assert_eq!(missing, expected, "{format}");
        // Dimensions without coordinates may be nodes; the mask is not shown.
        let mut nodes = grown.children("/").unwrap();
        nodes.retain(|name| !["x", "y"].contains(&name.as_str()));
        assert_eq!(nodes, ["a"], "{format}");
    }
}

/// TileDB has no arrays without dimensions or without elements. `.tet` stores the former as one element.
#[test]
fn scalars_and_empty_arrays_are_restored() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut empty = spec(DType::Float32, &[0, 3]);
    empty.grid = Grid::new(&[0, 3], &[2, 3]).unwrap();
    let (format, _) = format_named("hdf5").unwrap();
    let mut sink = create(&path("a.h5"), format, &CreateOptions::default()).unwrap();
    sink.group("/", &Attributes::new()).unwrap();
    let scalar = sink.array("/one", &spec(DType::Int16, &[])).unwrap();
    let chunk = [0_u64; 0].as_slice().into();
    let element = Elements::fixed(7_i16.to_ne_bytes().to_vec());
    scalar.write(&chunk, scalar.encode(&chunk, &element).unwrap()).unwrap();
    drop(scalar);
    let text = sink.array("/text", &spec(DType::String, &[])).unwrap();
    text.write(&chunk, text.encode(&chunk, &Elements::variable(["é"])).unwrap()).unwrap();
    drop(text);
    sink.array("/none", &empty).unwrap();
    sink.commit().unwrap();
    let source = open(path("a.h5")).unwrap();
    for (format, ending) in [("tiledb", "tiledb"), ("tet", "tet")] {
        let there = to(&source, &path(&format!("b.{ending}")), format).unwrap();
        // In TileDB, an array is a group with one array per attribute.
        let node =
            |name: &str| if format == "tiledb" { format!("/{name}/{name}") } else { format!("/{name}") };
        assert_eq!(there.array(&node("one")).unwrap().schema().shape(), [0_u64; 0], "{format}");
        assert_eq!(there.array(&node("none")).unwrap().schema().shape(), [0, 3], "{format}");
        assert_same(&source, &there, format);
        let back = to(&there, &path(&format!("c-{ending}.h5")), "hdf5").unwrap();
        assert_same(&source, &back, format);
    }
}

/// Axes that start elsewhere than at zero become coordinates in formats without such axes, and are restored.
#[test]
fn domains_become_coordinates_and_are_restored() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut counted = spec(DType::UInt8, &[4]);
    counted.labels[0] = Labels::Domain { first: -10, dtype: DType::Int32 };
    let labels = counted.labels.clone();
    let elements = Elements::fixed(vec![1, 2, 3, 4]);
    let source = write(&path("a.tiledb"), "tiledb", &[("/a", counted, elements)]);
    assert_eq!(source.array("/a").unwrap().schema().labels, labels);
    for (format, ending) in [
        ("hdf5", "h5"),
        ("netcdf4", "nc"),
        ("netcdf3", "nc3"),
        ("zarr2", "zarr2"),
        ("zarr3", "zarr3"),
        ("tet", "tet"),
    ] {
        let there = to(&source, &path(&format!("b.{ending}")), format).unwrap();
        let coordinate = there.array("/y").unwrap();
        assert_eq!(
            coordinate.read_vec::<i32>(&hyperslab::Selection::all()).unwrap(),
            [-10, -9, -8, -7],
            "{format}"
        );
        let part = there.array("/a").unwrap().read(&"y=-9..-8".parse().unwrap()).unwrap();
        assert_eq!(part.to_vec::<u8>().unwrap(), [2, 3], "{format}");
        let back = to(&there, &path(&format!("c-{ending}.tiledb")), "tiledb").unwrap();
        assert_eq!(back.array("/a").unwrap().schema().labels, labels, "{format}");
        assert_eq!(back.children("/").unwrap(), ["a"], "{format}");
        // A part counts from its first position.
        let options = ConvertOptions::default().with_selection("y=-9..-8".parse().unwrap());
        let (named, variant) = format_named(format).unwrap();
        let options = options.with_variant(variant);
        let part = path(&format!("p.{ending}"));
        convert(&source, &part, named, &options, &Progress::default()).unwrap();
        let part = open(&part).unwrap().array("/y").unwrap();
        assert_eq!(part.read_vec::<i32>(&hyperslab::Selection::all()).unwrap(), [-9, -8], "{format}");
    }
}

/// Attributes keep their types and values in formats that store them as JSON or as text.
#[test]
fn attributes_keep_their_types() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let number = |dtype: DType, bytes: Vec<u8>, shape: &[u64]| {
        Values::new(dtype, shape, Elements::fixed(bytes)).unwrap()
    };
    let texts = Values::new(DType::String, &[2], Elements::variable(["a", "é"])).unwrap();
    let mut own = spec(DType::Float32, &[1]);
    own.attributes.set("_FillValue", number(DType::Float32, f32::NAN.to_ne_bytes().to_vec(), &[]));
    own.attributes.set("limit", number(DType::Float64, f64::INFINITY.to_ne_bytes().to_vec(), &[]));
    own.attributes.set("short", number(DType::Int16, 5_i16.to_ne_bytes().to_vec(), &[]));
    own.attributes.set("list", number(DType::UInt8, vec![1, 2, 200], &[3]));
    own.attributes.set("texts", texts);
    own.attributes.set("number", "5");
    let expected = own.attributes.clone();
    let source = write(&path("a.h5"), "hdf5", &[("/a", own, Elements::fixed(vec![0; 4]))]);
    for (format, ending) in [("tiledb", "tiledb"), ("tet", "tet")] {
        let there = to(&source, &path(&format!("b.{ending}")), format).unwrap();
        let found = there.array("/a").unwrap().schema().attributes.clone();
        for (name, value) in expected.iter() {
            let (Some(Attribute::Values(found)), Attribute::Values(value)) = (found.get(name), value) else {
                assert_eq!(found.get(name).and_then(Attribute::as_text), value.as_text(), "{format}: {name}");
                continue;
            };
            assert_eq!((&found.dtype, &found.shape), (&value.dtype, &value.shape), "{format}: {name}");
            assert_eq!(found.to_json(), value.to_json(), "{format}: {name}");
        }
    }
}

/// A pair of floats is not a complex number, and one value is not a number.
#[test]
fn short_arrays_as_elements_survive_tiledb() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let bytes = |count: usize| Elements::fixed((0..count).map(|byte| byte as u8).collect::<Vec<_>>());
    let of = |base: DType, count: usize| DType::Array(Arc::new(base), vec![count]);
    let source = write(
        &path("a.h5"),
        "hdf5",
        &[
            ("/pair", spec(of(DType::Float64, 2), &[3]), bytes(48)),
            ("/single", spec(of(DType::Float32, 1), &[3]), bytes(12)),
            ("/triple", spec(of(DType::Int16, 3), &[3]), bytes(18)),
        ],
    );
    let there = to(&source, &path("b.tiledb"), "tiledb").unwrap();
    for name in ["/pair", "/single", "/triple"] {
        let dtype = |store: &OpenStore| store.array(name).unwrap().schema().dtype.clone();
        assert_eq!(dtype(&there), dtype(&source));
    }
    assert_same(&source, &there, "tiledb");
    let stored = there.as_stored().array("/pair").unwrap();
    assert_eq!(stored.schema().dtype, DType::Float64);
}

/// What a format without attributes cannot say is named.
#[test]
fn lost_names_and_empty_results_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let members = vec![("sea".to_owned(), 0), ("land".to_owned(), 1)];
    let named = EnumType::new(DType::Int8, members);
    let mask = spec(DType::Enum(Arc::new(named)), &[2]);
    let source = write(&path("a.h5"), "hdf5", &[("/mask", mask, Elements::fixed(vec![0, 1]))]);
    let npz = format_named("npz").unwrap().0;
    let report =
        convert(&source, &path("a.npz"), npz, &ConvertOptions::default(), &Progress::default()).unwrap();
    let lost: Vec<String> = report.dropped().map(ToString::to_string).collect();
    assert!(lost.len() == 1 && lost[0].contains("names of the values"), "{lost:?}");
    let mut sink = create(&path("c.h5"), format_named("hdf5").unwrap().0, &CreateOptions::default()).unwrap();
    sink.group("/", &Attributes::from_iter([("title", Attribute::from("only this"))])).unwrap();
    sink.commit().unwrap();
    let only = open(path("c.h5")).unwrap();
    let options = ConvertOptions::default();
    assert!(convert(&only, &path("c.npz"), npz, &options, &Progress::default()).is_err());
    assert!(!path("c.npz").exists());
}
