//! Tests in both directions against the NetCDF library and scipy.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use hyperslab_core::{
    ArraySpec, Attributes, CreateOptions, DType, Elements, Fill, FormatDriver, Grid, Values,
};
use hyperslab_netcdf3::Netcdf3Driver;
use serde_json::{Value, json};

/// Runs a script of this crate's tests with the interpreter that has the peers. Returns its output.
fn python(script: &str, arguments: &[&Path]) -> String {
    let interpreter = std::env::var_os("HYPERSLAB_PEERS")
        .expect("HYPERSLAB_PEERS names the Python interpreter that has netCDF4 and scipy");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    let output = Command::new(interpreter).arg(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn everything_the_libraries_write_reads_the_same() {
    let folder = tempfile::tempdir().unwrap();
    python("golden/make.py", &[folder.path()]);
    assert!(common::compare_all(folder.path()) >= 15);
}

/// Consecutive numbers of this type.
fn counted(dtype: &DType, count: u64) -> Elements {
    let number = |i: u64| match dtype {
        DType::Int8 | DType::UInt8 => vec![i as u8],
        DType::FixedBytes(1) => vec![b'a' + (i % 26) as u8],
        DType::Int16 | DType::UInt16 => (i as u16).to_ne_bytes().to_vec(),
        DType::Int32 | DType::UInt32 => (i as u32).to_ne_bytes().to_vec(),
        DType::Int64 | DType::UInt64 => i.to_ne_bytes().to_vec(),
        DType::Float32 => (i as f32).to_ne_bytes().to_vec(),
        DType::Float64 => (i as f64).to_ne_bytes().to_vec(),
        other => panic!("{other}"),
    };
    Elements::fixed((0..count).flat_map(number).collect::<Vec<u8>>())
}

/// A variable to write: name, type, dimensions with lengths, and whether the first may grow.
type Declared<'a> = (&'a str, DType, &'a [(&'a str, u64)], bool);

fn declared((name, dtype, axes, grows): &Declared<'_>) -> ArraySpec {
    let shape: Vec<u64> = axes.iter().map(|(_, length)| *length).collect();
    let mut spec = ArraySpec::new(dtype.clone(), Grid::single(&shape));
    spec.dimensions = axes.iter().map(|(name, _)| Some((*name).to_owned())).collect();
    if *grows {
        spec.max_shape[0] = None;
    }
    spec.attributes.set("long_name", format!("the {name}").as_str());
    spec
}

/// Writes all chunks of an array except those in `skip`.
fn fill(array: &dyn hyperslab_core::ArraySink, dtype: &DType, skip: &[u64]) {
    let grid = array.grid();
    for number in (0..grid.chunks().unwrap()).rev().filter(|number| !skip.contains(number)) {
        let coord = grid.coord(number);
        let cells = grid.region(&coord).cells().unwrap();
        array.write(&coord, array.encode(&coord, &counted(dtype, cells)).unwrap()).unwrap();
    }
}

fn write(path: &Path, variant: Option<&str>, variables: &[Declared<'_>], late: bool) {
    let variant = variant.map(|name| Netcdf3Driver.info().variant(name).unwrap());
    let options = CreateOptions::default().with_variant(variant);
    let mut sink = Netcdf3Driver.create(path, &options).unwrap();
    let mut attributes = Attributes::new();
    attributes.set("title", "gemäß");
    attributes.set("empty", "");
    let numbers =
        Values::new(DType::Int64, &[2], Elements::fixed([1_i64, -5].map(i64::to_ne_bytes).concat()));
    attributes.set("numbers", numbers.unwrap());
    attributes.set("document", json!([1, 2.5]));
    sink.group("/", &attributes).unwrap();
    sink.dimension("/spare", 9, Some(9)).unwrap();
    if late {
        // Fill each variable before the next is declared.
        for own in variables {
            let spec = declared(own);
            let array = sink.array(&format!("/{}", own.0), &spec).unwrap();
            fill(&*array, &own.1, &[]);
        }
    } else {
        let mut arrays = Vec::new();
        for own in variables {
            let spec = declared(own);
            arrays.push((sink.array(&format!("/{}", own.0), &spec).unwrap(), own.1.clone()));
        }
        arrays.iter().for_each(|(array, dtype)| fill(&**array, dtype, &[]));
    }
    sink.commit().unwrap();
}

#[test]
fn the_libraries_read_our_files() {
    let folder = tempfile::tempdir().unwrap();
    let time: (&str, u64) = ("time", 1100);
    let (x, y) = (("x", 3), ("y", 2));
    let mixed: &[Declared<'_>] = &[
        ("a", DType::Int16, &[time, x], true),
        ("fixed", DType::Int8, &[x], false),
        ("time", DType::Float64, &[time], true),
        ("text", DType::FixedBytes(1), &[time, y, x], true),
        ("scalar", DType::Int32, &[], false),
        ("x", DType::Float32, &[x], false),
    ];
    let single: &[Declared<'_>] =
        &[("fixed", DType::Int8, &[x], false), ("a", DType::Int16, &[time, x], true)];
    let wide: &[Declared<'_>] = &[
        ("u1", DType::UInt8, &[time, x], true),
        ("u2", DType::UInt16, &[x], false),
        ("u4", DType::UInt32, &[time], true),
        ("i8", DType::Int64, &[x, y], false),
        ("u8", DType::UInt64, &[x], false),
    ];
    let empty: &[Declared<'_>] = &[("v", DType::Float32, &[("time", 0), x], false)];
    let mut cases: Vec<(PathBuf, &str, &[Declared<'_>])> = Vec::new();
    for (set, variables) in [("mixed", mixed), ("single", single), ("empty", empty), ("wide", wide)] {
        for (variant, model) in [
            (None, if set == "wide" { "NETCDF3_64BIT_DATA" } else { "NETCDF3_CLASSIC" }),
            (Some("classic"), "NETCDF3_CLASSIC"),
            (Some("64-bit-offset"), "NETCDF3_64BIT_OFFSET"),
            (Some("cdf5"), "NETCDF3_64BIT_DATA"),
        ] {
            if set == "wide" && model != "NETCDF3_64BIT_DATA" {
                continue;
            }
            for late in [false, true] {
                let path = folder.path().join(format!("{set}_{}_{late}.nc", variant.unwrap_or("default")));
                write(&path, variant, variables, late);
                cases.push((path, model, variables));
            }
        }
    }
    let paths: Vec<&Path> = cases.iter().map(|(path, ..)| path.as_path()).collect();
    let described: Vec<Value> = serde_json::from_str(&python("peers/read.py", &paths)).unwrap();
    assert_eq!(described.len(), cases.len());
    for ((path, model, variables), found) in cases.iter().zip(&described) {
        let name = path.display();
        assert_eq!(found["model"], *model, "{name}");
        assert_eq!(found["attributes"]["title"], "gemäß");
        assert_eq!(found["attributes"]["empty"], "");
        assert_eq!(found["attributes"]["numbers"], json!([1, -5]));
        assert_eq!(found["attributes"]["document"], json!([1.0, 2.5]));
        assert_eq!(found["dimensions"]["spare"], 9);
        let names: Vec<&String> = found["variables"].as_object().unwrap().keys().collect();
        assert_eq!(names, variables.iter().map(|own| own.0).collect::<Vec<_>>(), "{name}");
        // We read the same values as the peers.
        assert_eq!(common::compare(path, found, true), Vec::<String>::new(), "{name}");
        for (variable, dtype, axes, grows) in *variables {
            let own = &found["variables"][variable];
            assert_eq!(own["attributes"]["long_name"], format!("the {variable}"));
            let unlimited = own["unlimited"].as_array().unwrap();
            assert_eq!(
                unlimited.first().is_some_and(|first| *first == true),
                *grows || axes.first() == Some(&("time", 0))
            );
            // Small variables have one chunk, so their elements are consecutive throughout.
            let count: u64 = axes.iter().map(|(_, length)| length).product();
            if !*grows && *dtype != DType::FixedBytes(1) {
                let expected: Vec<f64> = (0..count).map(|i| i as f64).collect();
                let values: Vec<f64> =
                    own["values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
                assert_eq!(values, expected, "{name} {variable}");
            }
        }
    }
}

#[test]
fn cells_that_are_never_written_hold_the_fill_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.nc");
    let mut sink = Netcdf3Driver.create(&path, &CreateOptions::default()).unwrap();
    let mut spec = ArraySpec::new(DType::Int16, Grid::single(&[3]));
    spec.dimensions = vec![Some("x".to_owned())];
    spec.fill = Fill::Element(Elements::fixed((-3_i16).to_ne_bytes().to_vec()));
    sink.array("/own", &spec).unwrap();
    spec.attributes.set("_FillValue", json!(-9));
    sink.array("/marked", &spec).unwrap();
    let mut spec = ArraySpec::new(DType::Float32, Grid::single(&[1100, 2]));
    spec.fill = Fill::Undefined;
    spec.max_shape[0] = None;
    let part = sink.array("/part", &spec).unwrap();
    let other = sink.array("/other", &spec).unwrap();
    fill(&*part, &DType::Float32, &[1]);
    drop((part, other));
    sink.commit().unwrap();
    let found: Vec<Value> = serde_json::from_str(&python("peers/read.py", &[&path])).unwrap();
    let values = |name: &str| found[0]["variables"][name]["values"].as_array().unwrap().clone();
    assert_eq!(values("own"), [json!(-3), json!(-3), json!(-3)]);
    assert_eq!(values("marked"), [json!(-9), json!(-9), json!(-9)]);
    assert_eq!(found[0]["variables"]["marked"]["attributes"]["_FillValue"], json!([-9]));
    let default = f64::from(9.969_21e36_f32);
    assert!(values("other").iter().all(|value| value.as_f64() == Some(default)));
    let part = values("part");
    assert_eq!(
        (&part[3], part[512 * 2].as_f64(), &part[1024 * 2]),
        (&json!(3.0), Some(default), &json!(0.0))
    );
}

#[test]
fn unsupported_content_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let variant = Netcdf3Driver.info().variant("classic");
    let options = CreateOptions::default().with_variant(variant);
    let mut sink = Netcdf3Driver.create(&folder.path().join("x.nc"), &options).unwrap();
    let mut refused = |path: &str, spec: &ArraySpec| {
        let error = sink.array(path, spec).unwrap_err();
        assert!(error.is_unsupported(), "{error}");
        error.to_string()
    };
    let spec = |dtype: DType| ArraySpec::new(dtype, Grid::single(&[3]));
    assert!(refused("/i8", &spec(DType::Int64)).contains("i8 of type int64 (CDF-5 has it"));
    assert!(refused("/s", &spec(DType::String)).contains("s of type string"));
    assert!(refused("/g/x", &spec(DType::Int8)).contains("inside a group"));
    let zstd = spec(DType::Int8).with_filters([hyperslab_core::Filter::new("zstd")]);
    assert!(refused("/z", &zstd).contains("filter zstd"));
    let error = sink.group("/g", &Attributes::new()).unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("group /g"), "{error}");
    // A dimension has only one length.
    let mut named = spec(DType::Int8);
    named.dimensions = vec![Some("x".to_owned())];
    sink.array("/a", &named).unwrap();
    let mut other = ArraySpec::new(DType::Int8, Grid::single(&[4]));
    other.dimensions = vec![Some("x".to_owned())];
    let error = sink.array("/b", &other).unwrap_err();
    assert!(error.to_string().contains("a dimension x of lengths 3 and 4"), "{error}");
    // Only one dimension can grow; the others are reported.
    let mut growing = ArraySpec::new(DType::Int8, Grid::single(&[4, 5]));
    growing.dimensions = vec![Some("t".to_owned()), Some("u".to_owned())];
    growing.max_shape = vec![None, None];
    sink.array("/c", &growing).unwrap();
    let changes = sink.changes();
    assert_eq!(changes.len(), 1);
    assert!(changes[0].1.contains("dimension u is stored with a fixed length"), "{changes:?}");
    drop(sink);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_libraries_read_records_that_we_added() {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for name in ["classic", "offset64", "data64"] {
        let path = folder.path().join(format!("{name}.nc"));
        std::fs::copy(common::golden().join(format!("{name}.nc")), &path).unwrap();
        let mut sink = Netcdf3Driver.append(&path, &CreateOptions::default()).unwrap();
        let array = sink.grow("/time", &[10]).unwrap();
        fill(&*array, &DType::Float64, &[]);
        drop(array);
        sink.commit().unwrap();
        paths.push(path);
    }
    let arguments: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let described: Vec<Value> = serde_json::from_str(&python("peers/read.py", &arguments)).unwrap();
    for (path, found) in paths.iter().zip(&described) {
        assert_eq!(found["dimensions"]["time"], 10);
        let times = found["variables"]["time"]["values"].as_array().unwrap();
        assert_eq!((&times[6], &times[7], &times[9]), (&json!(9.0), &json!(7.0), &json!(9.0)));
        assert_eq!(common::compare(path, found, true), Vec::<String>::new(), "{}", path.display());
    }
}
