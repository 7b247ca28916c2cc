//! Tests against both other implementations: tet-py, through the interpreter named by `HYPERSLAB_PEERS`, and the tetration
//! crate, through `peers/tetration`, which is built here.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use hyperslab_core::{
    Array, ArraySpec, DType, Depth, Elements, Filter, Grid, Labels, Node, Positions, Sink, Store, read_serial,
};
use hyperslab_tet::{TetAppend, TetOptions, TetSink, TetStore, dtype_of_code, open_path, verify_path};
use serde_json::{Value, json};

const SHAPE: [u64; 3] = [5, 7, 3];
const CHUNKS: [u64; 3] = [2, 3, 3];

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(arguments)
        .arg("--locked")
        .arg("--manifest-path")
        .arg(root().join("peers/tetration/Cargo.toml"));
    command
}

/// The program around the tetration crate.
fn tetration() -> Command {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    Command::new(BUILT.get_or_init(|| {
        let target = root().join("target/peers-tetration");
        run(cargo(&["build", "--quiet"]).arg("--target-dir").arg(&target));
        target.join("debug/peers-tetration")
    }))
}

/// The sources of the tetration crate, which hold its sample files.
fn tetration_sources() -> PathBuf {
    let metadata: Value =
        serde_json::from_str(&run(&mut cargo(&["metadata", "--format-version", "1"]))).unwrap();
    let package =
        metadata["packages"].as_array().unwrap().iter().find(|package| package["name"] == "tetration");
    Path::new(package.unwrap()["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned()
}

fn python(script: &str) -> Command {
    let python =
        std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names the Python with tet-py 0.8.3");
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(script));
    command
}

fn sample(dtype: &DType, shape: &[u64]) -> Vec<u8> {
    let cells = 0..shape.iter().product();
    cells.flat_map(|cell: u64| (cell * 7 + 1).to_le_bytes()[..dtype.size().unwrap()].to_vec()).collect()
}

fn array_at(store: &TetStore, path: &str) -> Arc<dyn Array> {
    match store.node(path).unwrap() {
        Node::Array(array) => array,
        other => panic!("{other:?}"),
    }
}

fn read(array: &dyn Array) -> Vec<u8> {
    let values = read_serial(array, Positions::whole(array.schema().shape())).unwrap();
    values.elements.as_fixed().unwrap().to_vec()
}

fn assert_whole(path: &Path) -> hyperslab_tet::FileReport {
    let report = verify_path(path, Depth::Deep).unwrap();
    assert!(report.ok, "{}: {:#?}", path.display(), report.report.findings);
    report
}

/// The crate's description of a file, and each dataset's elements.
fn dump(path: &Path) -> (Value, Vec<Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let text = run(tetration().arg("dump").args([path, folder.path()]));
    let found: Value = serde_json::from_str(&text).unwrap();
    let count = found["datasets"].as_array().unwrap().len();
    let elements =
        (0..count).map(|id| std::fs::read(folder.path().join(format!("{id}.bin"))).unwrap()).collect();
    (found, elements)
}

/// Reads a file with both implementations and compares everything.
fn assert_same(path: &Path) {
    let (found, elements) = dump(path);
    let store = open_path(path).unwrap();
    assert_eq!(store.datasets().len(), elements.len());
    for (id, theirs) in elements.iter().enumerate() {
        let (array, theirs_of) = (store.dataset(id).unwrap(), &found["datasets"][id]);
        assert_eq!(json!(*store.datasets()[id].name), theirs_of["name"]);
        assert_eq!(json!(array.schema().shape()), theirs_of["shape"]);
        assert_eq!(json!(array.schema().grid.chunk_shape()), theirs_of["chunk_shape"]);
        assert!(read(&array) == *theirs, "{}: dataset {id} differs", path.display());
    }
    assert_eq!(store.history().len(), found["history"].as_array().unwrap().len());
    let ours = store.footer().map_or(json!({}), |footer| {
        let mut metadata = footer.metadata.clone();
        metadata.own = None;
        serde_json::to_value(metadata).unwrap()
    });
    assert_eq!(ours, found["metadata"]);
}

#[test]
fn files_of_tet_py_are_read() {
    let folder = tempfile::tempdir().unwrap();
    run(python("write.py").arg(folder.path()));
    for name in ["types.tet", "many.tet", "spill.tet"] {
        assert_whole(&folder.path().join(name));
        assert_same(&folder.path().join(name));
    }
    let store = open_path(&folder.path().join("types.tet")).unwrap();
    for code in 1..=10 {
        let dtype = dtype_of_code(code).unwrap();
        let array = array_at(&store, &format!("/group/{dtype}"));
        assert_eq!(read(array.as_ref()), sample(&dtype, &SHAPE));
        let schema = array.schema();
        assert_eq!(schema.dimensions, ["t", "y", "x"].map(|name| Some(name.to_owned())));
        assert_eq!(schema.attributes.to_json()["units"], "K");
        assert!(matches!(&schema.labels[..], [Labels::Texts(t), Labels::None, Labels::Texts(x)]
            if t[4] == "t4" && x[2] == "c"));
    }
    let zones = store.zone_maps().unwrap().unwrap();
    assert_eq!(zones.chunks.len() as u64, store.index_header().rows);
    assert!(store.secondary_index().unwrap().is_some());
    assert!(open_path(&folder.path().join("spill.tet")).unwrap().footer().unwrap().metadata_spill.is_some());

    let package = folder.path().join("p.tet.d");
    let report = assert_whole(&package);
    assert!(report.report.findings.iter().any(|finding| finding.check == "packed_sha256" && finding.ok));
    let store = open_path(&package).unwrap();
    assert_eq!(store.datasets().len(), 310);
    assert_eq!(read(array_at(&store, "/group/int16").as_ref()), sample(&DType::Int16, &SHAPE));
}

#[test]
fn files_of_the_crate_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let datasets = |codec: u32, prefix: &str| -> Vec<Value> {
        let mut datasets = Vec::new();
        for code in 1..=10 {
            let data = path(&format!("{code}.raw"));
            std::fs::write(&data, sample(&dtype_of_code(code).unwrap(), &SHAPE)).unwrap();
            datasets.push(json!({"name": format!("{prefix}{code}"), "dtype": code, "shape": SHAPE,
                "chunk_shape": CHUNKS, "codec": codec, "data": data, "attrs": {"a": "b"}}));
        }
        datasets
    };
    let write = |verb: &str, spec: Value| {
        std::fs::write(path("spec.json"), spec.to_string()).unwrap();
        run(tetration().arg(verb).arg(path("spec.json")));
    };
    for (codec, session) in [(0, true), (1, true), (0, false), (1, false)] {
        let file = path(&format!("{codec}{session}.tet"));
        write("write", json!({"path": file, "session": session, "datasets": datasets(codec, "d")}));
        assert_whole(&file);
        assert_same(&file);
        let store = open_path(&file).unwrap();
        assert_eq!(store.footer().map(|footer| footer.version), session.then_some(2));
        assert_eq!(read(&store.dataset(4).unwrap()), sample(&DType::UInt8, &SHAPE));
    }
    // Its append and its attribute editor, which goes back to version 1.
    let file = path("0true.tet");
    write("append", json!({"path": file, "datasets": datasets(0, "more")}));
    assert_whole(&file);
    assert_same(&file);
    run(tetration().args(["attr", file.to_str().unwrap(), "d3", "units", "m"]));
    assert_whole(&file);
    assert_same(&file);
    let store = open_path(&file).unwrap();
    assert_eq!(store.footer().unwrap().version, 1);
    assert_eq!(array_at(&store, "/d3").schema().attributes.to_json()["units"], "m");
}

#[test]
fn sample_files_of_the_crate_are_judged_alike() {
    let sources = tetration_sources();
    let mut samples = 0;
    for entry in std::fs::read_dir(sources.join("fixtures/small/tet")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "tet") {
            let theirs: Value = serde_json::from_str(&run(tetration().arg("verify").arg(&path))).unwrap();
            let ours = verify_path(&path, Depth::Deep).unwrap();
            assert_eq!(theirs["ok"], ours.ok, "{}: {:#?}", path.display(), ours.report.findings);
            // One has a damaged footer, which makes the crate refuse the arrays as well.
            if ours.ok {
                assert_same(&path);
            } else {
                assert!(read(&open_path(&path).unwrap().dataset(0).unwrap()).len() > 1);
            }
            samples += 1;
        }
    }
    assert_eq!(samples, 10);
    let manifest = std::fs::read_to_string(sources.join("conformance/manifest.v1.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let rejects = manifest["reject_verify"].as_array().unwrap();
    assert_eq!(rejects.len(), 11);
    for case in rejects {
        let report = verify_path(&sources.join(case["tet"].as_str().unwrap()), Depth::Quick).unwrap();
        assert!(!report.ok, "{case}");
        if let Some(check) = case["expect_check"].as_str() {
            let found = report.report.findings.iter().any(|finding| finding.check == check && !finding.ok);
            assert!(found, "{case}: {:#?}", report.report.findings);
        }
    }
}

/// Writes a file that uses all of our features.
fn write_ours(path: &Path, datasets: usize, options: TetOptions) {
    let mut sink: Box<dyn Sink> = Box::new(TetSink::create(path, options).unwrap());
    sink.group("/g", &[("note", "a group")].into_iter().collect()).unwrap();
    for number in 0..datasets {
        let dtype = dtype_of_code(number as u32 % 10 + 1).unwrap();
        let mut spec = ArraySpec::new(dtype.clone(), Grid::new(&SHAPE, &CHUNKS).unwrap());
        if number / 10 % 2 == 1 {
            spec = spec.with_filters([Filter::new("zstd").with("level", 9)]);
        }
        spec.dimensions = ["t", "y", "x"].map(|name| Some(name.to_owned())).to_vec();
        spec.labels[0] = Labels::Texts((0..5).map(|i| format!("t{i}")).collect());
        spec.attributes.set("units", "K");
        spec.attributes.set("range", json!([0, 1.5]));
        spec.attributes.set("long", "x".repeat(3000).as_str());
        let array = sink.array(&format!("g/{number}"), &spec).unwrap();
        write_chunks(array.as_ref(), &spec, &sample(&dtype, &SHAPE));
    }
    sink.commit().unwrap();
}

fn write_chunks(array: &dyn hyperslab_core::ArraySink, spec: &ArraySpec, bytes: &[u8]) {
    let item = spec.dtype.size().unwrap();
    let strides = hyperslab_core::CellOrder::RowMajor.strides(spec.grid.shape());
    for number in (0..spec.grid.chunks().unwrap()).rev() {
        let chunk = spec.grid.coord(number);
        let region = spec.grid.region(&chunk);
        let mut elements = Vec::new();
        for cell in 0..region.cells().unwrap() {
            let (mut left, mut at) = (cell, 0);
            for axis in (0..spec.grid.rank()).rev() {
                at += (region.start[axis] + left % region.shape[axis]) * strides[axis];
                left /= region.shape[axis];
            }
            elements.extend_from_slice(&bytes[at as usize * item..][..item]);
        }
        array.write(&chunk, array.encode(&chunk, &Elements::fixed(elements)).unwrap()).unwrap();
    }
}

/// Checks that the crate and tet-py read our file as expected.
fn assert_read_by_others(path: &Path, expected: &[Vec<u8>]) {
    assert_whole(path);
    let report: Value = serde_json::from_str(&run(tetration().arg("verify").arg(path))).unwrap();
    assert_eq!(report["ok"], true, "{report:#}");
    assert_same(path);
    assert_eq!(dump(path).1, expected);
    let folder = tempfile::tempdir().unwrap();
    let found: Value = serde_json::from_str(&run(python("read.py").args([path, folder.path()]))).unwrap();
    for (id, bytes) in expected.iter().enumerate() {
        assert_eq!(std::fs::read(folder.path().join(format!("{id}.bin"))).unwrap(), *bytes, "{}", found[id]);
    }
}

#[test]
fn our_files_are_read_by_both() {
    let folder = tempfile::tempdir().unwrap();
    let expected = |count: usize| -> Vec<Vec<u8>> {
        (0..count).map(|number| sample(&dtype_of_code(number as u32 % 10 + 1).unwrap(), &SHAPE)).collect()
    };
    for (count, zone_maps) in [(0, true), (20, true), (20, false), (300, true)] {
        let path = folder.path().join(format!("{count}{zone_maps}.tet"));
        let mut options = TetOptions::default();
        options.zone_maps = zone_maps;
        write_ours(&path, count, options);
        assert_read_by_others(&path, &expected(count));
    }
    let (found, _) = dump(&folder.path().join("20true.tet"));
    let metadata = &found["metadata"]["datasets"]["g/3"];
    assert_eq!(metadata["dim_names"], json!(["t", "y", "x"]));
    assert_eq!(metadata["coords"]["t"]["labels"][4], "t4");
    assert_eq!(metadata["attrs"], json!({"units": "K", "range": "[0,1.5]"}));
}

#[test]
fn files_that_we_appended_to_are_read_by_both() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tet");
    for reserve in [0, 1 << 20] {
        let mut options = TetOptions::default();
        (options.reserve, options.overwrite) = (reserve, true);
        write_ours(&path, 20, options);
        // Ours, then theirs, then ours again.
        let mut expected: Vec<_> =
            (0..20).map(|number| sample(&dtype_of_code(number as u32 % 10 + 1).unwrap(), &SHAPE)).collect();
        for round in 0..3 {
            let spec = ArraySpec::new(DType::Float64, Grid::new(&SHAPE, &CHUNKS).unwrap());
            let bytes = sample(&spec.dtype, &SHAPE);
            if round == 1 {
                std::fs::write(folder.path().join("raw"), &bytes).unwrap();
                let dataset = json!({"name": "theirs", "dtype": 2, "shape": SHAPE, "chunk_shape": CHUNKS,
                    "data": folder.path().join("raw")});
                std::fs::write(
                    folder.path().join("spec"),
                    json!({"path": path, "datasets": [dataset]}).to_string(),
                )
                .unwrap();
                run(tetration().arg("append").arg(folder.path().join("spec")));
            } else {
                let mut append = TetAppend::open(&path, TetOptions::default()).unwrap();
                let array = append.array(&format!("round{round}"), &spec).unwrap();
                write_chunks(array.as_ref(), &spec, &bytes);
                Box::new(append).commit().unwrap();
            }
            expected.push(bytes);
            assert_read_by_others(&path, &expected);
        }
    }
}
