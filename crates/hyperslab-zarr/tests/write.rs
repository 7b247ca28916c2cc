//! Writing through the public interface: complete or not at all, and read back equal for any shape, shards and
//! filters.

#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use hyperslab_core::storage::{Step, Trace};
use hyperslab_core::{
    ArraySpec, Attributes, DType, Data, Elements, Error, Fill, Filter, Grid, Member, Positions, Sink, Store,
    StructType, read_serial,
};
use hyperslab_zarr::{WriteOptions, ZarrAppend, ZarrFormat, ZarrSink};
use proptest::prelude::*;

#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn sink(target: &std::path::Path, options: WriteOptions) -> Box<dyn Sink> {
    Box::new(ZarrSink::create(target, options).unwrap())
}

#[test]
fn a_store_appears_at_commit_and_leaves_nothing_when_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.zarr");
    let spec = ArraySpec::new(DType::UInt8, Grid::new(&[4], &[2]).unwrap());
    let mut dropped = sink(&target, WriteOptions::default());
    let array = dropped.array("/x", &spec).unwrap();
    let chunk = [0].as_slice().into();
    array.write(&chunk, array.encode(&chunk, &Elements::fixed(vec![1, 2])).unwrap()).unwrap();
    let again = array.encode(&chunk, &Elements::fixed(vec![1, 2])).unwrap();
    assert!(array.write(&chunk, again).is_err());
    assert!(!target.exists());
    drop(dropped);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    let mut made = sink(&target, WriteOptions::default());
    made.group("/g", &Attributes::new()).unwrap();
    made.commit().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(hyperslab_zarr::open_path(&target).unwrap().children("/").unwrap(), ["g"]);
    assert!(matches!(ZarrSink::create(&target, WriteOptions::default()), Err(Error::Exists { .. })));

    let replace = WriteOptions { replace: true, ..WriteOptions::default() };
    let mut made = sink(&target, replace);
    made.group("/h/deep", &Attributes::new()).unwrap();
    made.commit().unwrap();
    let store = hyperslab_zarr::open_path(&target).unwrap();
    assert_eq!(
        (store.children("/").unwrap(), store.children("/h").unwrap()),
        (vec!["h".to_owned()], vec!["deep".to_owned()])
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn unsupported_specs_are_rejected_before_writing() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = sink(&folder.path().join("a.zarr"), WriteOptions::default());
    let grid = Grid::new(&[4], &[2]).unwrap();
    for dtype in [DType::Float128, DType::List(DType::Int8.into()), DType::FixedBytes(0)] {
        assert!(sink.array("/a", &ArraySpec::new(dtype, grid.clone())).unwrap_err().is_unsupported());
    }
    let szip = ArraySpec::new(DType::Int8, grid.clone()).with_filters([Filter::new("szip")]);
    assert!(sink.array("/a", &szip).unwrap_err().is_unsupported());
    let spec = ArraySpec::new(DType::Int8, grid);
    let long = format!("/{}", "x".repeat(256));
    for path in ["/../a", "/zarr.json", "/g/.zarray", "/.zmetadata", "/./a", "/g/", "/g\\h", "/\0", &long] {
        let refused = sink.array(path, &spec).unwrap_err().to_string();
        assert!(refused.contains("cannot write the node"), "{path}: {refused}");
        assert!(sink.group(path, &Attributes::new()).is_err(), "{path}");
    }
    sink.array("/a", &spec).unwrap();
    assert!(sink.array("/a", &spec).is_err());
    assert!(sink.group("/a/b", &Attributes::new()).is_err());
    assert!(sink.array("/", &spec).is_err());
}

#[test]
fn structs_lose_their_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.zarr");
    let member = |name: &str, offset, dtype| Member { name: name.to_owned(), offset, dtype };
    let members = vec![member("a", 0, DType::UInt8), member("b", 4, DType::Int16)];
    let mut spec = ArraySpec::new(StructType { members, size: 8 }.into(), Grid::new(&[3], &[2]).unwrap());
    spec.fill = Fill::Element(Elements::fixed(vec![9, 0, 0, 0, 8, 0, 0, 0]));
    let mut made = sink(&target, WriteOptions::default());
    let array = made.array("/", &spec).unwrap();
    let chunk = [0].as_slice().into();
    let elements = Elements::fixed(vec![1, 77, 77, 77, 2, 0, 77, 77, 3, 77, 77, 77, 4, 0, 77, 77]);
    array.write(&chunk, array.encode(&chunk, &elements).unwrap()).unwrap();
    made.commit().unwrap();
    let array = hyperslab_zarr::open_path(&target).unwrap().array("/").unwrap();
    let values = support::read(&array).to_json();
    assert_eq!(values, serde_json::json!([{"a": 1, "b": 2}, {"a": 3, "b": 4}, {"a": 9, "b": 8}]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn written_stores_are_read_back(
        dims in prop::collection::vec((1_u64..12, 1_u64..6, 1_u64..5), 1..4),
        seed in any::<u32>(),
        pipeline in 0_usize..4,
        sharded in any::<bool>(),
        v2 in any::<bool>(),
        transposed in any::<bool>(),
    ) {
        let shape: Vec<u64> = dims.iter().map(|dim| dim.0).collect();
        let chunk: Vec<u64> = dims.iter().map(|dim| dim.1).collect();
        let shard: Vec<u64> = dims.iter().map(|dim| dim.1 * dim.2).collect();
        let v2 = v2 && !sharded;
        let mut filters = match pipeline {
            0 => vec![],
            1 => vec![Filter::new("zstd")],
            2 => vec![Filter::new("shuffle"), Filter::new("gzip"), Filter::new("crc32c")],
            _ => vec![Filter::new("blosc").with("cname", "lz4")],
        };
        if transposed {
            let order: Vec<u64> = (0..shape.len() as u64).rev().collect();
            filters.insert(0, Filter::new("transpose").with("order", order));
        }
        let mut spec = ArraySpec::new(DType::UInt32, Grid::new(&shape, &chunk).unwrap()).with_filters(filters);
        spec.fill = Fill::Element(Elements::fixed(7_u32.to_ne_bytes().to_vec()));
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.zarr");
        let format = if v2 { ZarrFormat::V2 } else { ZarrFormat::V3 };
        let options = WriteOptions { format, shard_shape: sharded.then_some(shard), ..WriteOptions::default() };
        let mut made = sink(&target, options);
        let array = made.array("/", &spec).unwrap();
        let grid = spec.grid.clone();
        let value = |cell: &[u64]| cell.iter().fold(seed, |h, at| h.wrapping_mul(31).wrapping_add(*at as u32)) % 1000;
        // Some chunks are never written, others contain only the fill value.
        let state = |chunk: &[u64]| chunk.iter().sum::<u64>().wrapping_add(u64::from(seed)) % 5;
        let mut numbers: Vec<u64> = (0..grid.chunks().unwrap()).collect();
        numbers.sort_by_key(|number| number.wrapping_mul(u64::from(seed) | 1) % 97);
        for number in numbers {
            let chunk = grid.coord(number);
            if state(&chunk) == 0 {
                continue;
            }
            let region = grid.region(&chunk);
            let inner = Grid::new(&region.shape, &vec![1; shape.len()]).unwrap();
            let mut bytes = Vec::new();
            for cell in 0..inner.chunks().unwrap() {
                let at: Vec<u64> = inner.coord(cell).iter().zip(&region.start).map(|(a, b)| a + b).collect();
                let element = if state(&chunk) == 1 { 7 } else { value(&at) };
                bytes.extend(element.to_ne_bytes());
            }
            array.write(&chunk, array.encode(&chunk, &Elements::fixed(bytes)).unwrap()).unwrap();
        }
        drop(array);
        made.commit().unwrap();
        let array = hyperslab_zarr::open_path(&target).unwrap().array("/").unwrap();
        let values = read_serial(&array, Positions::whole(&shape)).unwrap();
        let cells = Grid::new(&shape, &vec![1; shape.len()]).unwrap();
        for (number, found) in values.as_slice::<u32>().unwrap().iter().enumerate() {
            let at = cells.coord(number as u64);
            let chunk: Vec<u64> = at.iter().zip(&chunk).map(|(at, extent)| at / extent).collect();
            let expected = if state(&chunk) < 2 { 7 } else { value(&at) };
            prop_assert_eq!(*found, expected, "{:?}", at);
        }
    }
}

/// Elements of a chunk that is decoded in pieces, intact and damaged.
#[test]
fn elements_are_streamed_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.zarr");
    // Some elements exceed a piece, and together they far exceed what is decoded at once.
    let length = |row: u64| if row.is_multiple_of(50) { 300_000 } else { row as usize % 90 };
    let mut state = 1_u64;
    let mut noise = |length: usize| -> Vec<u8> {
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8 & 63
        };
        std::iter::repeat_with(next).take(length).collect()
    };
    let rows: Vec<Vec<u8>> = (0..300).map(|row| noise(length(row))).collect();
    let mut offsets = vec![0];
    rows.iter().for_each(|row| offsets.push(offsets[offsets.len() - 1] + row.len() as u64));
    let data = Data::Variable { offsets, bytes: rows.concat().into() };
    for (name, filters) in [("zstd", vec![Filter::new("zstd").with("level", 1)]), ("raw", Vec::new())] {
        let mut made = sink(&target, WriteOptions { replace: true, ..WriteOptions::default() });
        let spec = ArraySpec::new(DType::Bytes, Grid::new(&[300], &[300]).unwrap()).with_filters(filters);
        let array = made.array("/x", &spec).unwrap();
        let chunk = [0].as_slice().into();
        let elements = Elements { data: data.clone(), validity: None };
        array.write(&chunk, array.encode(&chunk, &elements).unwrap()).unwrap();
        made.commit().unwrap();

        let object = target.join("x/c/0");
        let stored = std::fs::read(&object).unwrap();
        let read = || -> hyperslab_core::Result<Vec<Vec<u8>>> {
            let array = hyperslab_zarr::open_path(&target)?.array("/x")?;
            let mut stream = array.element_stream(&chunk)?.unwrap();
            let mut all = Vec::new();
            while let Some(element) = stream.next_element()? {
                all.push(element.to_vec());
            }
            assert!(stream.next_element()?.is_none());
            Ok(all)
        };
        assert!(read().unwrap() == rows, "{name}");
        for damage in [
            stored[..stored.len() / 2].to_vec(),
            stored[..stored.len() - 1].to_vec(),
            [&stored[..], &[0]].concat(),
            [&[0xff; 8], &stored[8..]].concat(),
        ] {
            std::fs::write(&object, damage).unwrap();
            assert!(read().unwrap_err().is_corrupt(), "{name}");
        }
    }
}

/// Consolidated metadata may name any key. Nothing outside the store may be opened for it.
#[test]
fn consolidated_keys_cannot_leave_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.zarr");
    let spec = ArraySpec::new(DType::UInt8, Grid::new(&[2], &[2]).unwrap());
    for name in ["a.zarr", "secret"] {
        let mut made =
            sink(&folder.path().join(name), WriteOptions { consolidated: true, ..Default::default() });
        let array = made.array("/x", &spec).unwrap();
        let chunk = [0].as_slice().into();
        array.write(&chunk, array.encode(&chunk, &Elements::fixed(vec![1, 2])).unwrap()).unwrap();
        made.commit().unwrap();
    }
    let root = target.join("zarr.json");
    let text = std::fs::read_to_string(&root).unwrap();
    std::fs::write(&root, text.replace("\"x\":", "\"../secret/x\":")).unwrap();
    let store = hyperslab_zarr::open_path(&target).unwrap();
    let array = store.array("/../secret/x").unwrap();
    let refused = read_serial(&array, Positions::whole(&[2])).unwrap_err().to_string();
    assert!(refused.contains("leads out"), "{refused}");
    let before = std::fs::read(folder.path().join("secret/x/zarr.json")).unwrap();
    let mut more = ZarrAppend::open(&target, None).unwrap();
    assert!(more.grow("/../secret/x", &[4]).is_err());
    assert!(more.attributes("/../secret/x", &Attributes::new()).is_err());
    assert_eq!(std::fs::read(folder.path().join("secret/x/zarr.json")).unwrap(), before);
}

/// Creates a group and an array of three chunks.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn fill(mut sink: Box<dyn Sink>) {
    sink.group("/g", &Attributes::new()).unwrap();
    let array = sink.array("/g/a", &ArraySpec::new(DType::UInt8, Grid::new(&[5], &[2]).unwrap())).unwrap();
    for (number, values) in [vec![1, 2], vec![3, 4], vec![5]].into_iter().enumerate() {
        let chunk = [number as u64].as_slice().into();
        array.write(&chunk, array.encode(&chunk, &Elements::fixed(values)).unwrap()).unwrap();
    }
    sink.commit().unwrap();
}

#[test]
fn a_power_cut_leaves_the_old_store_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.zarr");
    let syncs = |trace: &Trace| {
        let is_sync = |step: &&Step| matches!(step, Step::Sync(_) | Step::SyncTree(_) | Step::SyncFolder(_));
        trace.steps.iter().filter(is_sync).count()
    };
    // A new store need not be durable and is not synced.
    for shard_shape in [None, Some(vec![4])] {
        let options = WriteOptions { shard_shape, replace: true, ..WriteOptions::default() };
        let _ = std::fs::remove_dir_all(&target);
        let ((), trace) = Trace::of(|| fill(sink(&target, options.clone())));
        assert_eq!(syncs(&trace), 0);
        let ((), trace) = Trace::of(|| fill(sink(&target, options)));
        assert_eq!(trace.violations(false), Vec::<String>::new());
        assert_eq!(trace.steps.iter().filter(|step| matches!(step, Step::Exchange { .. })).count(), 1);

        // Appending: a chunk clipped by the old edge, a new chunk, a new array, attributes.
        let ((), trace) = Trace::of(|| {
            let mut more: Box<dyn Sink> = Box::new(ZarrAppend::open(&target, None).unwrap());
            let grown = more.grow("/g/a", &[8]).unwrap();
            for (number, values) in [(2, vec![5, 6]), (3, vec![7, 8])] {
                let chunk = [number].as_slice().into();
                grown.write(&chunk, grown.encode(&chunk, &Elements::fixed(values)).unwrap()).unwrap();
            }
            more.group("/more", &Attributes::new()).unwrap();
            more.attributes("/", &Attributes::from_iter([("who", "me")])).unwrap();
            more.commit().unwrap();
        });
        assert_eq!(trace.violations(true), Vec::<String>::new());
        let renamed: Vec<_> = trace
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Rename { to, .. } => Some(to.clone()),
                _ => None,
            })
            .collect();
        let target = target.canonicalize().unwrap();
        assert_eq!(renamed[renamed.len() - 2..], [target.join("g/a/zarr.json"), target.join("zarr.json")]);
    }
    let options = WriteOptions { sync: true, ..WriteOptions::default() };
    let ((), trace) = Trace::of(|| fill(sink(&folder.path().join("durable.zarr"), options)));
    assert_eq!(trace.violations(true), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}
