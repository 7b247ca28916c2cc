//! Files that we write, read by h5py and netCDF4: the same values, attributes, limits, fill values and filters.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/written.rs"]
mod written;

use std::path::Path;
use std::process::Command;

use hyperslab_core::{ArraySpec, Attributes, DType, Elements, Filter, Grid, Labels, Sink};
use hyperslab_hdf5::{Hdf5Options, Hdf5Sink};
use serde_json::{Value, json};

/// Runs a script of this folder with the interpreter that has the peers.
fn python(script: &str, arguments: &[&Path]) {
    let interpreter = std::env::var_os("HYPERSLAB_PEERS")
        .expect("HYPERSLAB_PEERS names the Python interpreter that has h5py");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(script);
    let status = Command::new(interpreter).arg(script).args(arguments).status().unwrap();
    assert!(status.success(), "the script failed: {status}");
}

fn document(path: &Path, ending: &str) -> Value {
    serde_json::from_slice(&std::fs::read(path.with_extension(ending)).unwrap()).unwrap()
}

fn none(problems: &[String]) {
    let shown = problems[..problems.len().min(60)].join("\n");
    assert!(problems.is_empty(), "{} differences:\n{shown}", problems.len());
}

/// Limits, fill values and filters as h5py sees them.
fn compare_layout(own: &written::Dataset, seen: &Value) -> Option<String> {
    let most: Vec<i64> = own.spec.max_shape.iter().map(|most| most.map_or(-1, |most| most as i64)).collect();
    let ids: Vec<u16> = own
        .spec
        .filters
        .iter()
        .map(|filter| match filter.name.as_str() {
            "gzip" => 1,
            "shuffle" => 2,
            "fletcher32" => 3,
            "scaleoffset" => 6,
            "bzip2" => 307,
            "lzf" => 32000,
            "blosc" => 32001,
            "lz4" => 32004,
            "bitshuffle" => 32008,
            "zstd" => 32015,
            other => panic!("{other}"),
        })
        .collect();
    let fill = if own.path.starts_with("/fill/") { -7.0 } else { 0.0 };
    let filtered = if seen["layout"] == 2 { json!(ids) } else { json!([]) };
    let fill_differs = seen["fill"].as_f64().is_some_and(|seen| seen != fill);
    (seen["max"] != json!(most) || seen["filters"] != filtered || fill_differs)
        .then(|| format!("{}: {most:?} {fill} {ids:?}, h5py has {seen}", own.path))
}

#[test]
fn everything_we_write_is_read_by_h5py() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = Vec::new();
    for (name, compatibility) in written::COMPATIBILITIES {
        let path = folder.path().join(format!("{name}.h5"));
        let datasets = written::datasets(compatibility);
        written::write(&path, compatibility, &datasets).unwrap();
        made.push((name, path, datasets));
    }
    python("read.py", &[folder.path()]);
    let mut problems = Vec::new();
    for (name, path, datasets) in made {
        // We read what was written, and h5py reads what we read.
        let ours = written::differences(&path, &datasets)
            .into_iter()
            .chain(common::compare(&path, &document(&path, "json")));
        problems.extend(ours.map(|problem| format!("{name}{problem}")));
        let layout = document(&path, "layout.json");
        let layouts = datasets.iter().filter_map(|own| compare_layout(own, &layout[&own.path]));
        problems.extend(layouts.map(|problem| format!("{name}{problem}")));
    }
    none(&problems);
}

#[test]
fn netcdf4_reads_named_dimensions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("netcdf.h5");
    let mut sink = Box::new(Hdf5Sink::create(&path, Hdf5Options::default()).unwrap());
    let array = |shape: &[u64], names: &[&str]| {
        let mut spec = ArraySpec::new(DType::Int32, Grid::new(shape, shape).unwrap());
        spec.dimensions = names.iter().map(|name| Some((*name).to_owned())).collect();
        spec
    };
    let mut temperature = array(&[4, 3], &["time", "x"]);
    temperature.max_shape[0] = None;
    temperature.labels[1] = Labels::Node("/x".to_owned());
    temperature.attributes = Attributes::from_iter([("units", "K")]);
    temperature.filters = vec![Filter::new("shuffle"), Filter::new("gzip")];
    for (name, spec) in
        [("/x", array(&[3], &["x"])), ("/t", temperature), ("/below/u", array(&[3, 2], &["x", "y"]))]
    {
        let own = sink.array(name, &spec).unwrap();
        let chunk = spec.grid.coord(0);
        let cells = spec.grid.region(&chunk).cells().unwrap() as i32;
        let values: Vec<u8> = (0..cells).flat_map(i32::to_le_bytes).collect();
        own.write(&chunk, own.encode(&chunk, &Elements::fixed(values)).unwrap()).unwrap();
    }
    sink.commit().unwrap();
    python("read.py", &[folder.path()]);
    none(&common::compare(&path, &document(&path, "json")));
    let seen = document(&path, "dimensions.json");
    assert_eq!(seen["dimensions"], json!({"x": [3, false], "time": [4, true]}));
    assert_eq!(seen["variables"]["t"]["dimensions"], json!(["time", "x"]));
    assert_eq!(seen["variables"]["x"]["values"], json!([0, 1, 2]));
    assert_eq!(seen["groups"]["below"]["variables"]["u"]["dimensions"], json!(["x", "y"]));
    assert_eq!(seen["groups"]["below"]["dimensions"], json!({"y": [2, false]}));
    assert!(seen["variables"].as_object().unwrap().get("time").is_none(), "a dimension is no variable");
}

/// Names and values at the limits of HDF5's fields.
#[test]
fn long_names_and_large_attributes_are_read_by_h5py() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits.h5");
    let mut sink = Box::new(Hdf5Sink::create(&path, Hdf5Options::default()).unwrap());
    let values = |length: usize| {
        hyperslab_core::Values::new(DType::UInt8, &[length as u64], Elements::fixed(vec![7; length])).unwrap()
    };
    let (long, name) = ("n".repeat(65_534), "g".repeat(70_000));
    sink.group("/a", &Attributes::from_iter([(long.as_str(), values(3))])).unwrap();
    sink.group("/b", &Attributes::from_iter([("large", values(200_000))])).unwrap();
    sink.group(&format!("/c/{name}"), &Attributes::from_iter([("x", values(2))])).unwrap();
    let members = (0..1400).map(|number| (format!("member_number_{number:05}"), DType::Float64));
    let spec = ArraySpec::new(hyperslab_core::StructType::packed(members).into(), Grid::single(&[1]));
    sink.array("/compound", &spec).unwrap();
    sink.commit().unwrap();
    let script = "
import h5py, sys
with h5py.File(sys.argv[1]) as file:
    assert file['a'].attrs['n' * 65534].tolist() == [7] * 3
    assert file['b'].attrs['large'].tolist() == [7] * 200000
    assert file['c']['g' * 70000].attrs['x'].tolist() == [7, 7]
    assert len(file['compound'].dtype) == 1400
";
    let interpreter = std::env::var_os("HYPERSLAB_PEERS").unwrap();
    let status = Command::new(interpreter).arg("-c").arg(script).arg(&path).status().unwrap();
    assert!(status.success(), "h5py failed: {status}");
}
