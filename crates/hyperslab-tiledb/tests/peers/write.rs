//! The real library reads, aggregates, consolidates and vacuums what this crate writes.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use crate::common::{same, sorted_rows};
use crate::interpreter;
use hyperslab_core::{
    ArraySpec, Attributes, ChunkCoord, DType, Elements, Fill, Filter, Grid, Node, Positions, Selection, Sink,
    Store, TimeUnit, Values, element_to_json, read_serial,
};
use hyperslab_tiledb::{
    ArrayKind, Attribute, CellValues, Datatype, Dimension, Key, OpenOptions, Order, Pipeline, Schema,
    WriteOptions, create, create_sparse, open_path, write_sparse,
};
use serde_json::{Value, json};

const KEY: [u8; 32] = *b"0123456789abcdef0123456789ABCDEF";

/// Elements of a type, generated from a counter.
fn elements(dtype: &DType, count: usize, seed: u64) -> Elements {
    let number = |index: usize| (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed) >> 52;
    match dtype {
        DType::String | DType::Bytes => {
            Elements::variable((0..count).map(|index| "ab".repeat(number(index) as usize % 5)))
        }
        DType::Bool => Elements::fixed((0..count).map(|index| (number(index) % 2) as u8).collect::<Vec<_>>()),
        DType::Float32 => Elements::fixed(
            (0..count)
                .flat_map(|index| (number(index) as f32 / 8.0 - 100.0).to_le_bytes())
                .collect::<Vec<_>>(),
        ),
        DType::Float64 => Elements::fixed(
            (0..count)
                .flat_map(|index| (number(index) as f64 / 8.0 - 100.0).to_le_bytes())
                .collect::<Vec<_>>(),
        ),
        other => {
            let size = other.size().unwrap();
            Elements::fixed(
                (0..count)
                    .flat_map(|index| (number(index) % 100).to_le_bytes()[..size.min(8)].to_vec())
                    .collect::<Vec<_>>(),
            )
        }
    }
}

/// Writes a whole array through the sink, in an unusual chunk order.
fn write_array(sink: &mut dyn Sink, path: &str, spec: &ArraySpec, values: &Values) {
    let array = sink.array(path, spec).unwrap();
    let grid = spec.grid.clone();
    let count = grid.chunks().unwrap();
    let memory = MemoryArray { values: values.clone() };
    for step in 0..count {
        let chunk: ChunkCoord = grid.coord((step * 7 + 3) % count);
        // This visits each chunk once, because 7 and the number of chunks are coprime in these tests.
        let region = grid.region(&chunk);
        let elements = memory.region(&region.start, &region.shape);
        let encoded = array.encode(&chunk, &elements).unwrap();
        array.write(&chunk, encoded).unwrap();
    }
}

struct MemoryArray {
    values: Values,
}

impl MemoryArray {
    fn region(&self, start: &[u64], shape: &[u64]) -> Elements {
        let whole = &self.values.shape;
        let mut picks = Vec::new();
        for cell in 0..shape.iter().product::<u64>() {
            let (mut left, mut at, mut stride) = (cell, 0, 1);
            for axis in (0..shape.len()).rev() {
                at += (start[axis] + left % shape[axis]) * stride;
                left /= shape[axis];
                stride *= whole[axis];
            }
            picks.push((0, at as usize));
        }
        Elements::gather(&self.values.dtype, &[&self.values.elements], &picks).unwrap()
    }
}

fn read_back(path: &Path, node: &str, options: OpenOptions) -> Value {
    let store = open_path(path, options).unwrap();
    let Node::Array(array) = store.node(node).unwrap() else { panic!("{node} is no array") };
    let shape = array.schema().shape().to_vec();
    // A box with a negative step must agree with the whole array.
    let whole = read_serial(&*array, Positions::whole(&shape)).unwrap();
    if shape.len() == 2 {
        let selection: Selection = "[::-2, 1::3]".parse().unwrap();
        let part = read_serial(&*array, selection.resolve(&shape, &[]).unwrap()).unwrap().to_json();
        let expected = whole.to_json();
        let rows: Vec<&Value> = expected.as_array().unwrap().iter().rev().step_by(2).collect();
        for (row, found) in rows.iter().zip(part.as_array().unwrap()) {
            let row: Vec<&Value> = row.as_array().unwrap().iter().skip(1).step_by(3).collect();
            assert_eq!(json!(row), *found);
        }
    }
    whole.to_json()
}

fn run_library(root: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/read.py");
    let done = Command::new(interpreter()).arg(script).arg(root).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn dense_arrays_are_read_by_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let root = std::env::var_os("HYPERSLAB_KEEP")
        .map_or_else(|| folder.path().join("dense"), |keep| Path::new(&keep).join("ours"));
    let _ = std::fs::remove_dir_all(&root);
    let filters: Vec<(&str, Vec<Filter>)> = vec![
        ("plain", vec![]),
        ("zstd", vec![Filter::new("byteshuffle"), Filter::new("zstd").with("level", 3)]),
        ("gzip", vec![Filter::new("bitshuffle"), Filter::new("gzip").with("level", 5)]),
        ("sums", vec![Filter::new("checksum_md5"), Filter::new("lz4"), Filter::new("checksum_sha256")]),
        ("bzip2", vec![Filter::new("bzip2")]),
        ("bwr", vec![Filter::new("bit_width_reduction"), Filter::new("zstd")]),
        ("delta", vec![Filter::new("delta")]),
        ("double", vec![Filter::new("double_delta")]),
        ("xor", vec![Filter::new("xor"), Filter::new("zstd")]),
        ("rle", vec![Filter::new("rle")]),
        ("dictionary", vec![Filter::new("dictionary"), Filter::new("zstd")]),
    ];
    let dtypes = [
        DType::Int8,
        DType::Int16,
        DType::Int32,
        DType::Int64,
        DType::UInt8,
        DType::UInt16,
        DType::UInt32,
        DType::UInt64,
        DType::Float32,
        DType::Float64,
        DType::Bool,
        DType::DateTime(TimeUnit::Day),
        DType::String,
        DType::Bytes,
    ];
    let mut expected = Vec::new();
    for (tag, pipeline) in &filters {
        for dtype in &dtypes {
            let text = matches!(dtype, DType::String);
            let integer = dtype.is_integer();
            let suited = match *tag {
                "bwr" | "delta" | "double" => integer,
                "dictionary" => text,
                "rle" | "plain" | "zstd" | "sums" => true,
                _ => !matches!(dtype, DType::String | DType::Bytes),
            };
            if !suited {
                continue;
            }
            for nullable in [false, true] {
                if nullable && !matches!(*tag, "plain" | "zstd" | "dictionary") {
                    continue;
                }
                let name = format!("{tag}-{dtype}-{nullable}").replace(['[', ']'], "");
                let path = root.join(&name).join("array");
                std::fs::create_dir_all(root.join(&name)).unwrap();
                let shape = [11_u64, 150];
                let mut spec = ArraySpec::new(dtype.clone(), Grid::new(&shape, &[4, 64]).unwrap());
                spec.filters = pipeline.clone();
                spec.nullable = nullable;
                spec.dimensions = vec![Some("row".into()), Some("column".into())];
                spec.attributes.set("units", "K");
                let mut data = elements(dtype, 11 * 150, 5);
                if nullable {
                    data = data.with_validity(Some(hyperslab_core::Validity::from_flags(
                        (0..11 * 150).map(|i| i % 7 != 0),
                    )));
                }
                let values = Values::new(dtype.clone(), &shape, data).unwrap();
                let mut sink = create(&path, WriteOptions::default()).unwrap();
                let mut attributes = Attributes::new();
                attributes.set("title", "ours");
                sink.group("/", &attributes).unwrap();
                write_array(&mut sink, "/a", &spec, &values);
                assert!(!path.exists());
                Box::new(sink).commit().unwrap();
                let wanted = values.to_json();
                same(&read_back(&path, "/a", OpenOptions::default()), &wanted)
                    .unwrap_or_else(|problem| panic!("{name}: {problem}"));
                expected.push((name, wanted));
            }
        }
    }
    // Encrypted.
    let path = root.join("encrypted").join("array");
    std::fs::create_dir_all(root.join("encrypted")).unwrap();
    let options = WriteOptions { key: Some(Key::new(KEY)), ..WriteOptions::default() };
    let mut sink = create(&path, options).unwrap();
    let spec = ArraySpec::new(DType::Int32, Grid::new(&[10, 10], &[4, 4]).unwrap())
        .with_filters([Filter::new("zstd")]);
    let values = Values::new(DType::Int32, &[10, 10], elements(&DType::Int32, 100, 1)).unwrap();
    write_array(&mut sink, "/a", &spec, &values);
    Box::new(sink).commit().unwrap();
    expected.push(("encrypted".to_owned(), values.to_json()));

    run_library(&root);
    for (name, wanted) in expected {
        let found: Value =
            serde_json::from_slice(&std::fs::read(root.join(&name).join("found.json")).unwrap()).unwrap();
        same(&found["values"]["a"], &wanted).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert_eq!(found["same"], json!(true), "{name}");
        if name != "encrypted" {
            assert_eq!(found["meta"]["title"], "ours", "{name}");
        }
        if let Some(all) = found["aggregates"].get("a") {
            let numbers: Vec<f64> = wanted
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|row| row.as_array().unwrap())
                .map(|v| v.as_f64().unwrap())
                .collect();
            let (low, high) =
                numbers.iter().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
            assert_eq!(all["min"].as_f64(), Some(low), "{name}");
            assert_eq!(all["max"].as_f64(), Some(high), "{name}");
            let sum: f64 = numbers.iter().sum();
            assert!((all["sum"].as_f64().unwrap() - sum).abs() < 1e-6 * sum.abs().max(1.0), "{name}");
        }
    }
}

fn dimension(name: &str, datatype: Datatype, domain: Vec<u8>, extent: Option<Vec<u8>>) -> Dimension {
    let values = if domain.is_empty() { CellValues::Variable } else { CellValues::Fixed(1) };
    Dimension { name: name.into(), datatype, values, pipeline: Pipeline::default(), domain, extent }
}

#[test]
fn sparse_arrays_are_read_by_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("sparse");
    let float = |low: f64, high: f64| [low.to_le_bytes(), high.to_le_bytes()].concat();
    let int = |low: i32, high: i32| [low.to_le_bytes(), high.to_le_bytes()].concat();
    let mut expected = Vec::new();
    for (order, tag) in
        [(Order::RowMajor, "row"), (Order::ColumnMajor, "column"), (Order::Hilbert, "hilbert")]
    {
        for duplicates in [false, true] {
            for text in [false, true] {
                let name = format!("{tag}-{duplicates}-{text}");
                let path = root.join(&name).join("array");
                std::fs::create_dir_all(root.join(&name)).unwrap();
                let y = if text {
                    dimension("y", Datatype::StringAscii, Vec::new(), None)
                } else {
                    dimension("y", Datatype::Int32, int(-10, 500), Some(25_i32.to_le_bytes().to_vec()))
                };
                let schema = Schema {
                    version: 22,
                    allows_duplicates: duplicates,
                    kind: ArrayKind::Sparse,
                    tile_order: Order::RowMajor,
                    cell_order: order,
                    capacity: 13,
                    coords: Pipeline::of([hyperslab_tiledb::Filter::Zstd(3)]),
                    offsets: Pipeline::of([hyperslab_tiledb::Filter::Zstd(3)]),
                    validity: Pipeline::of([hyperslab_tiledb::Filter::Rle(-1)]),
                    dimensions: vec![
                        dimension(
                            "x",
                            Datatype::Float64,
                            float(-100.0, 100.0),
                            Some(10_f64.to_le_bytes().to_vec()),
                        ),
                        y,
                    ],
                    attributes: vec![
                        Attribute::new("a", Datatype::Float32, CellValues::Fixed(1)),
                        Attribute::new("s", Datatype::StringAscii, CellValues::Variable),
                    ],
                    labels: Vec::new(),
                    enumerations: Vec::new(),
                    current_domain: None,
                };
                create_sparse(&path, &schema, &WriteOptions::default()).unwrap();
                let mut rows: Vec<Vec<(String, Value)>> = Vec::new();
                for part in 0..2_usize {
                    let count = 200;
                    let x: Vec<f64> = (0..count).map(|i| ((i * 37 + part) % 199) as f64 - 99.0).collect();
                    let second = if text {
                        Elements::variable((0..count).map(|i| format!("t{}", i % 17)))
                    } else {
                        Elements::fixed(
                            (0..count)
                                .flat_map(|i| ((i % 300) as i32 - 10).to_le_bytes())
                                .collect::<Vec<u8>>(),
                        )
                    };
                    let columns = [
                        Elements::fixed(x.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>()),
                        second,
                        elements(&DType::Float32, count, part as u64),
                        Elements::variable((0..count).map(|i| format!("{part}-{}", i % 5))),
                    ];
                    write_sparse(&path, &columns, &WriteOptions::default()).unwrap();
                    let dtypes = [
                        DType::Float64,
                        if text { DType::String } else { DType::Int32 },
                        DType::Float32,
                        DType::String,
                    ];
                    for row in 0..count {
                        let json = ["x", "y", "a", "s"]
                            .iter()
                            .zip(columns.iter().zip(&dtypes))
                            .map(|(name, (column, dtype))| {
                                (name.to_string(), element_to_json(dtype, column, row))
                            })
                            .collect::<Vec<_>>();
                        // The newer of two rows with the same coordinates replaces the older.
                        if !duplicates {
                            rows.retain(|old| old[..2] != json[..2]);
                        }
                        rows.push(json);
                    }
                }
                expected.push((name, rows));
            }
        }
    }
    run_library(&root);
    for (name, rows) in expected {
        let found: Value =
            serde_json::from_slice(&std::fs::read(root.join(&name).join("found.json")).unwrap()).unwrap();
        let columns = |index: usize| rows.iter().map(|row| row[index].1.clone()).collect::<Vec<_>>();
        let wanted =
            ["x", "y", "a", "s"].iter().enumerate().map(|(i, n)| (n.to_string(), columns(i))).collect();
        let got = found["values"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(n, v)| (n.clone(), v.as_array().unwrap().clone()))
            .collect();
        same(&json!(sorted_rows(got)), &json!(sorted_rows(wanted)))
            .unwrap_or_else(|problem| panic!("{name}: {problem}"));
    }
}

#[test]
fn trees_become_groups() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("groups");
    std::fs::create_dir_all(root.join("tree")).unwrap();
    let path = root.join("tree").join("array");
    let mut sink = create(&path, WriteOptions::default()).unwrap();
    let mut attributes = Attributes::new();
    attributes.set("about", "a tree");
    sink.group("/", &attributes).unwrap();
    sink.group("/same", &Attributes::new()).unwrap();
    let spec = |shape: &[u64]| {
        let mut spec = ArraySpec::new(DType::Int32, Grid::new(shape, &[3]).unwrap());
        spec.fill = Fill::Zero;
        spec
    };
    for (node, count) in [("/same/a", 10_u64), ("/same/b", 10), ("/alone", 4)] {
        let values = Values::new(DType::Int32, &[count], elements(&DType::Int32, count as usize, 0)).unwrap();
        write_array(&mut sink, node, &spec(&[count]), &values);
    }
    Box::new(sink).commit().unwrap();
    let store = open_path(&path, OpenOptions::default()).unwrap();
    assert_eq!(store.children("/").unwrap(), ["alone", "same"]);
    assert_eq!(store.children("/same").unwrap(), ["a", "b"]);
    for (node, count) in [("/same/a", 10), ("/same/b", 10), ("/alone/alone", 4)] {
        let wanted = Values::new(DType::Int32, &[count], elements(&DType::Int32, count as usize, 0))
            .unwrap()
            .to_json();
        assert_eq!(read_back(&path, node, OpenOptions::default()), wanted);
    }
    run_library(&root);
    let found: Value = serde_json::from_slice(&std::fs::read(root.join("tree/found.json")).unwrap()).unwrap();
    assert_eq!(found["members"], json!(["alone", "same"]));
    assert_eq!(found["meta"]["about"], "a tree");
}

#[test]
fn a_dropped_sink_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = create(&folder.path().join("x"), WriteOptions::default()).unwrap();
    let spec = ArraySpec::new(DType::Int32, Grid::new(&[4], &[3]).unwrap());
    let array: std::sync::Arc<dyn hyperslab_core::ArraySink> = sink.array("/a", &spec).unwrap();
    let chunk = ChunkCoord::from_slice(&[0]);
    let encoded = array.encode(&chunk, &elements(&DType::Int32, 3, 0)).unwrap();
    array.write(&chunk, encoded).unwrap();
    drop(array);
    drop(sink);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Dimension labels survive appending and consolidation.
#[test]
fn labels_of_dimensions_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("labelled");
    let library = |action: &str| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/labels.py");
        let done = Command::new(interpreter()).arg(script).arg(action).arg(&path).output().unwrap();
        assert!(done.status.success(), "{action}: {}", String::from_utf8_lossy(&done.stderr));
    };
    library("write");
    let mut sink =
        hyperslab_tiledb::append(&path, WriteOptions { by_name: true, ..WriteOptions::default() }).unwrap();
    let array = sink.grow("/a", &[30]).unwrap();
    let cells: Vec<u8> = (20..30).flat_map(i32::to_le_bytes).collect();
    let chunk = ChunkCoord::from_slice(&[2]);
    array.write(&chunk, array.encode(&chunk, &Elements::fixed(cells)).unwrap()).unwrap();
    drop(array);
    Box::new(sink).commit().unwrap();
    library("read");
    assert_eq!(hyperslab_tiledb::consolidate(&path, &Default::default()).unwrap(), 2);
    hyperslab_tiledb::vacuum(&path, &WriteOptions::default()).unwrap();
    library("read");
}
