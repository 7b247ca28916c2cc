use std::sync::Arc;

use hyperslab_core::{
    Array, ArraySpec, Attributes, DType, Elements, Fill, Filter, Grid, Labels, Node, Positions, Result, Sink,
    Store, Values, read_serial,
};
use proptest::prelude::*;
use serde_json::json;

use crate::{TetOptions, TetSink, TetStore, open_path};

/// The bytes of an array whose element `i` is made of the bytes of `i * 7`.
pub(crate) fn sample(dtype: &DType, shape: &[u64]) -> Vec<u8> {
    let (cells, item) = (shape.iter().product::<u64>(), dtype.size().unwrap());
    (0..cells).flat_map(|cell| (cell * 7 + 1).to_le_bytes()[..item.min(8)].to_vec()).collect()
}

/// The cells of a chunk, out of the whole array's bytes.
pub(crate) fn chunk_of(bytes: &[u8], item: usize, grid: &Grid, chunk: &[u64]) -> Vec<u8> {
    let region = grid.region(chunk);
    let mut out = Vec::new();
    for cell in 0..region.cells().unwrap() {
        let (mut left, mut at, mut stride) = (cell, 0, 1);
        for axis in (0..grid.rank()).rev() {
            at += (region.start[axis] + left % region.shape[axis]) * stride;
            left /= region.shape[axis];
            stride *= grid.shape()[axis];
        }
        out.extend_from_slice(&bytes[at as usize * item..][..item]);
    }
    out
}

/// Writes all chunks of an array in an unusual order.
pub(crate) fn write_all(sink: &mut dyn Sink, path: &str, spec: &ArraySpec, bytes: &[u8]) -> Result<()> {
    let array = sink.array(path, spec)?;
    let item = spec.dtype.size().unwrap();
    let chunks = spec.grid.chunks().unwrap();
    for number in (0..chunks).map(|number| if number % 2 == 0 { number / 2 } else { chunks - 1 - number / 2 })
    {
        let chunk = spec.grid.coord(number);
        let elements = Elements::fixed(chunk_of(bytes, item, &spec.grid, &chunk));
        array.write(&chunk, array.encode(&chunk, &elements)?)?;
    }
    Ok(())
}

pub(crate) fn array_at(store: &TetStore, path: &str) -> Arc<dyn Array> {
    match store.node(path).unwrap() {
        Node::Array(array) => array,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn read_all(store: &TetStore, path: &str) -> Result<Values> {
    let array = array_at(store, path);
    read_serial(array.as_ref(), Positions::whole(array.schema().shape()))
}

fn bytes_of(values: &Values) -> &[u8] {
    values.elements.as_fixed().unwrap()
}

#[test]
fn every_type_round_trips_raw_and_compressed() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tet");
    let mut sink: Box<dyn Sink> = Box::new(TetSink::create(&path, TetOptions::default())?);
    let (shape, chunks) = ([5, 7, 3], [2, 3, 3]);
    for code in 1..=10 {
        let dtype = crate::dtype_of_code(code).unwrap();
        let spec = ArraySpec::new(dtype.clone(), Grid::new(&shape, &chunks)?);
        write_all(sink.as_mut(), &format!("raw/{dtype}"), &spec, &sample(&dtype, &shape))?;
        let spec = spec.with_filters([Filter::new("zstd").with("level", 5)]);
        write_all(sink.as_mut(), &format!("zstd/{dtype}"), &spec, &sample(&dtype, &shape))?;
    }
    assert!(!path.exists());
    sink.commit()?;
    let store = open_path(&path)?;
    assert_eq!(store.children("/")?, ["raw", "zstd"]);
    assert_eq!(store.children("/raw")?.len(), 10);
    for code in 1..=10 {
        let dtype = crate::dtype_of_code(code).unwrap();
        for folder in ["raw", "zstd"] {
            let values = read_all(&store, &format!("/{folder}/{dtype}"))?;
            assert_eq!((&values.dtype, bytes_of(&values)), (&dtype, &sample(&dtype, &shape)[..]));
        }
    }
    assert_eq!(array_at(&store, "/zstd/int64").schema().filters.len(), 1);
    assert_eq!(store.history()[0].op, "write");
    // Only the file itself is in the folder.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    Ok(())
}

#[test]
fn metadata_round_trips() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tet");
    let mut sink: Box<dyn Sink> = Box::new(TetSink::create(&path, TetOptions::default())?);
    sink.group("/", &[("title", "all")].into_iter().collect())?;
    sink.group("/empty", &Attributes::new())?;
    let mut spec = ArraySpec::new(DType::Int16, Grid::new(&[3, 100, 2], &[2, 50, 2])?);
    spec.dimensions = vec![Some("t".into()), Some("x".into()), Some("y".into())];
    let texts = |n: usize| Labels::Texts((0..n).map(|i| format!("l{i}")).collect());
    spec.labels = vec![texts(3), texts(100), Labels::None];
    spec.attributes.set("units", "K");
    spec.attributes.set("empty", "");
    spec.attributes.set("range", json!([1, 2.5]));
    spec.attributes.set("long", "ä".repeat(2000).as_str());
    for number in 0..70 {
        spec.attributes.set(format!("n{number}"), json!(number));
    }
    write_all(sink.as_mut(), "g/x", &spec, &sample(&spec.dtype, spec.grid.shape()))?;
    let mut partly = ArraySpec::new(DType::UInt8, Grid::single(&[2, 2]));
    partly.dimensions = vec![None, Some("b".into())];
    partly.labels[0] = texts(2);
    write_all(sink.as_mut(), "partly", &partly, &[1, 2, 3, 4])?;
    sink.commit()?;

    let store = open_path(&path)?;
    let array = array_at(&store, "/g/x");
    let found = array.schema();
    assert_eq!((&found.dimensions, &found.labels), (&spec.dimensions, &spec.labels));
    assert_eq!(found.attributes.len(), spec.attributes.len());
    for (name, value) in spec.attributes.iter() {
        assert_eq!(found.attributes.get(name).unwrap().to_json(), value.to_json(), "{name}");
    }
    let found = array_at(&store, "/partly").schema().clone();
    assert_eq!((&found.dimensions, &found.labels), (&partly.dimensions, &partly.labels));
    let Node::Group(attributes) = store.node("/")? else { panic!() };
    assert_eq!(attributes.get("title").unwrap().to_json(), "all");
    assert_eq!(store.children("/")?, ["g", "partly", "empty"]);
    assert!(store.zone_maps()?.is_some());
    Ok(())
}

#[test]
fn unsupported_content_is_refused() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tet");
    let mut sink = TetSink::create(&path, TetOptions::default())?;
    let of = |dtype| ArraySpec::new(dtype, Grid::single(&[2]));
    assert!(sink.array("a", &of(DType::Bool)).unwrap_err().is_unsupported());
    assert!(sink.array("a", &of(DType::String)).unwrap_err().is_unsupported());
    let gzip = of(DType::UInt8).with_filters([Filter::new("gzip")]);
    assert!(sink.array("a", &gzip).unwrap_err().is_unsupported());
    let nine = ArraySpec::new(DType::UInt8, Grid::single(&[1; 9]));
    assert!(sink.array("a", &nine).unwrap_err().is_unsupported());
    let array = sink.array("a", &of(DType::UInt8))?;
    assert!(sink.array("/a", &of(DType::UInt8)).is_err());
    let chunk = [0_u64].as_slice().into();
    assert!(array.encode(&chunk, &Elements::fixed(vec![1])).is_err());
    assert!(array.encode(&[1_u64].as_slice().into(), &Elements::fixed(vec![1, 2])).is_err());
    let encoded = array.encode(&chunk, &Elements::fixed(vec![1, 2]))?;
    array.write(&chunk, encoded.clone())?;
    assert!(array.write(&chunk, encoded.clone()).is_err());
    drop(sink);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    std::fs::write(&path, b"precious").unwrap();
    assert!(TetSink::create(&path, TetOptions::default()).is_err());
    std::fs::remove_file(&path).unwrap();
    let mut late = TetSink::create(&path, TetOptions::default())?;
    late.array("a", &of(DType::UInt8))?;
    std::fs::write(&path, b"precious").unwrap();
    assert!(Box::new(late).commit().is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let mut over = TetSink::create(&path, TetOptions { overwrite: true, ..TetOptions::default() })?;
    let array = over.array("a", &of(DType::UInt8))?;
    Box::new(over).commit()?;
    assert_eq!(bytes_of(&read_all(&open_path(&path)?, "/a")?), [0, 0]);
    assert!(array.write(&chunk, encoded).is_err());
    Ok(())
}

#[test]
fn unwritten_chunks_hold_the_fill_value() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tet");
    let mut sink: Box<dyn Sink> = Box::new(TetSink::create(&path, TetOptions::default())?);
    let mut spec = ArraySpec::new(DType::Int16, Grid::new(&[5], &[2])?);
    sink.array("zero", &spec)?;
    sink.array("packed", &spec.clone().with_filters([Filter::new("zstd")]))?;
    spec.fill = Fill::Element(Elements::fixed(7_i16.to_le_bytes().to_vec()));
    let seven = sink.array("seven", &spec)?;
    let chunk = [1_u64].as_slice().into();
    seven.write(&chunk, seven.encode(&chunk, &Elements::fixed(vec![1, 0, 2, 0]))?)?;
    spec.fill = Fill::Undefined;
    sink.array("none", &spec)?;
    let scalar = sink.array("scalar", &ArraySpec::new(DType::UInt8, Grid::single(&[])))?;
    let only = hyperslab_core::ChunkCoord::new();
    scalar.write(&only, scalar.encode(&only, &Elements::fixed(vec![9]))?)?;
    sink.commit()?;
    let store = open_path(&path)?;
    let numbers = |path: &str| read_all(&store, path).map(|v| v.as_slice::<i16>().unwrap().to_vec());
    assert_eq!(numbers("/zero")?, [0; 5]);
    assert_eq!(numbers("/packed")?, [0; 5]);
    assert_eq!(numbers("/seven")?, [7, 7, 1, 2, 7]);
    assert!(numbers("/none").unwrap_err().is_corrupt());
    assert_eq!(bytes_of(&read_all(&store, "/scalar")?), [9]);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Any shape and chunks, in one file with others, declared early or late.
    #[test]
    fn arrays_round_trip(
        arrays in prop::collection::vec(
            (1_u32..=10, prop::collection::vec((1_u64..6, 1_u64..4), 1..=8), any::<bool>()), 1..4),
        reserve in 0_u64..200,
        late: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.tet");
        let options = TetOptions { reserve, ..TetOptions::default() };
        let mut sink: Box<dyn Sink> = Box::new(TetSink::create(&path, options).unwrap());
        let mut expected = Vec::new();
        for (number, (code, axes, packed)) in arrays.iter().enumerate() {
            let (mut shape, chunks): (Vec<u64>, Vec<u64>) = axes.iter().copied().unzip();
            shape.iter_mut().skip(4).for_each(|extent| *extent = 1);
            let dtype = crate::dtype_of_code(*code).unwrap();
            let mut spec = ArraySpec::new(dtype.clone(), Grid::new(&shape, &chunks).unwrap());
            if *packed {
                spec = spec.with_filters([Filter::new("zstd")]);
            }
            expected.push((spec, sample(&dtype, &shape)));
            if late {
                let (spec, bytes) = &expected[number];
                write_all(sink.as_mut(), &format!("a{number}"), spec, bytes).unwrap();
            }
        }
        if !late {
            for (number, (spec, bytes)) in expected.iter().enumerate() {
                write_all(sink.as_mut(), &format!("a{number}"), spec, bytes).unwrap();
            }
        }
        sink.commit().unwrap();
        let store = open_path(&path).unwrap();
        for (number, (_, bytes)) in expected.iter().enumerate() {
            let values = read_all(&store, &format!("/a{number}")).unwrap();
            prop_assert_eq!(bytes_of(&values), &bytes[..]);
        }
        let mut report = hyperslab_core::Report::default();
        store.verify(hyperslab_core::Depth::Deep, &mut report).unwrap();
        prop_assert!(report.ok(), "{:?}", report);
    }
}
