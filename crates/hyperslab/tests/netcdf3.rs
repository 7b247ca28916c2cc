//! Conversions to NetCDF classic: customary forms for content that it lacks, and errors that name the rest.

#![cfg(all(feature = "hdf5", feature = "netcdf3"))]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use hyperslab::convert::{ConvertOptions, ConvertReport, Progress, convert};
use hyperslab::{
    ArraySpec, Attributes, ChunkCoord, CreateOptions, DType, Elements, EnumType, Format, Grid, Node, Result,
    Selection, Sink, Values, create, format_named,
};
use serde_json::{Value, json};

fn put(sink: &mut dyn Sink, path: &str, spec: &ArraySpec, elements: Elements) {
    let array = sink.array(path, spec).unwrap();
    let chunk: ChunkCoord = spec.grid.shape().iter().map(|_| 0).collect();
    array.write(&chunk, array.encode(&chunk, &elements).unwrap()).unwrap();
}

/// An HDF5 file with content that NetCDF classic does not support.
fn sample(path: &Path) {
    let mut sink = create(path, Format::HDF5, &CreateOptions::default()).unwrap();
    let mut attributes = Attributes::new();
    attributes.set("title", "x");
    let texts = Values::new(DType::String, &[2], Elements::variable(["a", "b"])).unwrap();
    attributes.set("names", texts);
    sink.group("/", &attributes).unwrap();
    let members = vec![("dry land".to_owned(), 0), ("sea".to_owned(), 1)];
    let named: DType = EnumType::new(DType::Int8, members).into();
    put(&mut *sink, "/mask", &ArraySpec::new(named, Grid::single(&[3])), Elements::fixed(vec![0, 1, 1]));
    let mut grows = ArraySpec::new(DType::Int16, Grid::new(&[2, 3], &[2, 3]).unwrap());
    grows.max_shape = vec![None, None];
    grows.dimensions = vec![Some("time".to_owned()), Some("station".to_owned())];
    put(&mut *sink, "/v", &grows, Elements::fixed([1_i16, 2, 3, 4, 5, 6].map(i16::to_ne_bytes).concat()));
    let text = ArraySpec::new(DType::String, Grid::single(&[2]));
    put(&mut *sink, "/text", &text, Elements::variable(["Gießen", ""]));
    let complex = ArraySpec::new(DType::Complex64, Grid::single(&[1]));
    put(&mut *sink, "/complex", &complex, Elements::fixed(vec![0; 8]));
    sink.commit().unwrap();
}

fn to(source: &Path, target: &Path, name: &str, strict: bool) -> Result<ConvertReport> {
    let (format, variant) = format_named(name)?;
    let options = ConvertOptions::default().with_variant(variant).with_strict(strict);
    convert(&hyperslab::open(source)?, target, format, &options, &Progress::default())
}

#[test]
fn unsupported_content_gets_a_customary_form_or_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("x.h5"), folder.path().join("y.nc"));
    sample(&source);
    assert!(to(&source, &target, "netcdf3", true).is_err());
    assert!(!target.exists());
    let report = to(&source, &target, "netcdf3", false).unwrap();
    let notes = report.notes();
    let noted =
        |path: &str, words: &str| notes.iter().any(|note| note.starts_with(path) && note.contains(words));
    assert!(noted("/: ", "attribute \"names\" is left out"), "{notes:?}");
    assert!(noted("/: ", "dimension station is stored with a fixed length"), "{notes:?}");
    assert!(noted("/mask", "flag_values"), "{notes:?}");
    assert!(noted("/complex", "complex64 is stored as float32"), "{notes:?}");
    assert_eq!(report.dropped().count(), 1, "{notes:?}");

    let store = hyperslab::open(&target).unwrap();
    assert_eq!((store.format(), store.inner().variant()), ("netcdf3", Some("classic")));
    let read = |name: &str| store.array(name).unwrap().read(&Selection::all()).unwrap().to_json();
    assert_eq!(read("/mask"), json!([0, 1, 1]));
    assert_eq!(read("/v"), json!([[1, 2, 3], [4, 5, 6]]));
    let Node::Array(mask) = store.node("/mask").unwrap() else { unreachable!() };
    let attributes = Value::Object(mask.schema().attributes.to_json());
    assert_eq!(attributes, json!({"flag_values": [0, 1], "flag_meanings": "dry_land sea"}));
    let Node::Array(text) = store.node("/text").unwrap() else { unreachable!() };
    assert_eq!(text.schema().shape(), [2, 7]);
    assert_eq!(text.schema().dimensions[1].as_deref(), Some("string7"));
    assert_eq!(text.schema().attributes.get("_Encoding").unwrap().as_text().as_deref(), Some("utf-8"));
    let Node::Array(grows) = store.node("/v").unwrap() else { unreachable!() };
    assert_eq!(grows.schema().max_shape, [None, Some(3)]);
}

/// A requested version is written, or the content that it lacks is named.
#[test]
fn versions_are_chosen_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("x.npy");
    let wide =
        Values::new(DType::Int64, &[2], Elements::fixed([1_i64, 2].map(i64::to_ne_bytes).concat())).unwrap();
    hyperslab::export::write(&wide, &source, false).unwrap();
    for name in ["netcdf3", "cdf5"] {
        let target = folder.path().join(format!("{name}.nc"));
        to(&source, &target, name, true).unwrap();
        let store = hyperslab::open(&target).unwrap();
        assert_eq!(store.inner().variant(), Some("cdf5"));
        assert_eq!(store.array("/data").unwrap().read(&Selection::all()).unwrap(), wide);
    }
    for name in ["classic", "64-bit-offset"] {
        let error = to(&source, &folder.path().join(name), name, false).unwrap_err();
        assert!(error.is_unsupported() && error.to_string().contains("of type int64"), "{error}");
    }
}

/// The lines of CDL, with dimensions sorted: `ncdump` prints them in order of definition, we in order of use.
/// A dimension is declared where its coordinate is, even if arrays below that group come first in the file.
#[test]
fn dimensions_are_declared_in_the_group_of_their_coordinate() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("groups.h5");
    let mut sink = create(&path, Format::HDF5, &CreateOptions::default()).unwrap();
    for group in ["/", "/own", "/sub"] {
        sink.group(group, &Attributes::new()).unwrap();
    }
    let numbers = |count: u8| Elements::fixed((0..count).collect::<Vec<u8>>());
    let mut add = |path: &str, names: &[&str], shape: &[u64]| {
        let mut spec = ArraySpec::new(DType::UInt8, Grid::single(shape));
        spec.dimensions = names.iter().map(|name| Some((*name).to_owned())).collect();
        put(&mut *sink, path, &spec, numbers(shape.iter().product::<u64>() as u8));
    };
    add("/own/x", &["x"], &[3]);
    add("/own/w", &["x"], &[3]);
    add("/sub/w", &["y", "x"], &[4, 3]);
    add("/x", &["x"], &[3]);
    sink.commit().unwrap();
    let catalog = hyperslab::open(&path).unwrap().catalog().unwrap();
    let mut found: Vec<String> = catalog.dimensions().into_iter().map(|dimension| dimension.path).collect();
    found.sort();
    assert_eq!(found, ["/own/x", "/sub/y", "/x"]);
    assert_eq!(catalog.to_cdl().unwrap().matches("x = 3 ;").count(), 2);
}

/// As the NetCDF library shows HDF5 files without dimension scales.
#[test]
fn dimensions_without_names_get_some_in_cdl() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plain.h5");
    let mut sink = create(&path, Format::HDF5, &CreateOptions::default()).unwrap();
    sink.group("/", &Attributes::new()).unwrap();
    for (path, shape) in [("/a", &[2_u64, 3][..]), ("/b", &[3, 3])] {
        let elements = Elements::fixed(vec![0; shape.iter().product::<u64>() as usize]);
        put(&mut *sink, path, &ArraySpec::new(DType::UInt8, Grid::single(shape)), elements);
    }
    sink.commit().unwrap();
    let cdl = hyperslab::open(&path).unwrap().catalog().unwrap().to_cdl().unwrap();
    for line in ["phony_dim_0 = 2 ;", "phony_dim_1 = 3 ;", "phony_dim_2 = 3 ;"] {
        assert!(cdl.contains(line), "{cdl}");
    }
    assert!(
        cdl.contains("a(phony_dim_0, phony_dim_1)") && cdl.contains("b(phony_dim_1, phony_dim_2)"),
        "{cdl}"
    );
}

fn lines(cdl: &str) -> Vec<String> {
    let mut lines: Vec<String> = cdl.lines().map(str::to_owned).collect();
    let is_dimension = |line: &String| line.starts_with('\t') && line.contains(" = ") && !line.contains(':');
    let Some(first) = lines.iter().position(is_dimension) else { return lines };
    let count = lines[first..].iter().take_while(|line| is_dimension(line)).count();
    lines[first..first + count].sort();
    lines
}

#[test]
fn headers_in_cdl_match_ncdump() {
    let golden = |of: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of).join("tests/golden");
    let mut compared = 0;
    for folder in [golden("hyperslab-netcdf3"), golden("hyperslab-hdf5")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let cdl = entry.unwrap().path();
            if cdl.extension().is_none_or(|extension| extension != "cdl") {
                continue;
            }
            let file = ["nc", "h5"].map(|extension| cdl.with_extension(extension));
            let file = file.iter().find(|file| file.exists()).unwrap();
            let ours = hyperslab::open(file).unwrap().catalog().unwrap().to_cdl().unwrap();
            assert_eq!(lines(&ours), lines(&std::fs::read_to_string(&cdl).unwrap()), "{}", cdl.display());
            compared += 1;
        }
    }
    assert_eq!(compared, 8);
}
