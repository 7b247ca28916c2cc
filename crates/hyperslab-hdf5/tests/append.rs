//! Tests adding to files: everything flushed is in the file, however the writer ends.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod recording;

use std::path::Path;

use hyperslab_core::{
    ArraySpec, Attributes, DType, Depth, Elements, Filter, Grid, Node, Positions, Report, Sink, Store,
    Values, read_serial,
};
use hyperslab_hdf5::{AppendOptions, Compatibility, Hdf5Append, Hdf5Options, Hdf5Sink};

/// Creates a file with a dataset without frames.
fn start(path: &Path, spec: &ArraySpec, compatibility: Compatibility) {
    let mut options = Hdf5Options::default();
    options.compatibility = compatibility;
    let mut sink = Box::new(Hdf5Sink::create(path, options).unwrap());
    sink.array("/run/frames", spec).unwrap();
    sink.commit().unwrap();
}

fn read(path: &Path) -> Values {
    let store = hyperslab_hdf5::open_path(path).unwrap();
    let mut report = Report::default();
    store.verify(Depth::Deep, &mut report).unwrap();
    assert!(report.ok(), "{report:?}");
    let Ok(Node::Array(array)) = store.node("/run/frames") else { panic!("no dataset") };
    read_serial(&*array, Positions::whole(array.schema().shape())).unwrap()
}

/// Frame `number` of a dataset whose frames have this shape: element `i` is `1000 * number + i`, or its text.
fn frame(number: u64, shape: &[u64], dtype: &DType) -> Elements {
    let numbers = (0..shape.iter().product::<u64>()).map(|cell| 1000 * number + cell);
    match dtype {
        DType::String => Elements::variable(numbers.map(|number| number.to_string())),
        _ => Elements::fixed(numbers.flat_map(|number| (number as i32).to_le_bytes()).collect::<Vec<_>>()),
    }
}

/// `frames` joined along an axis.
fn joined(frames: std::ops::Range<u64>, shape: &[u64], axis: usize, dtype: &DType) -> Values {
    let count = frames.end - frames.start;
    let mut whole = shape.to_vec();
    whole.insert(axis, count);
    let parts: Vec<Elements> = frames.map(|number| frame(number, shape, dtype)).collect();
    let refs: Vec<&Elements> = parts.iter().collect();
    let (before, after): (u64, u64) = (shape[..axis].iter().product(), shape[axis..].iter().product());
    let picks: Vec<(usize, usize)> = (0..before)
        .flat_map(|outer| {
            (0..count).flat_map(move |number| {
                (0..after).map(move |inner| (number as usize, (outer * after + inner) as usize))
            })
        })
        .collect();
    Values::new(dtype.clone(), &whole, Elements::gather(dtype, &refs, &picks).unwrap()).unwrap()
}

struct Case {
    name: &'static str,
    shape: Vec<u64>,
    axis: usize,
    chunk: Vec<u64>,
    max: Vec<Option<u64>>,
    dtype: DType,
    filters: Vec<Filter>,
    compatibility: Compatibility,
    total: u64,
}

fn cases() -> Vec<Case> {
    let case = |name, axis: usize, thickness: u64, total: u64| {
        let (mut shape, mut chunk, mut max) = (vec![3, 4], vec![2, 4], vec![Some(3), Some(4)]);
        shape.insert(axis, 0);
        chunk.insert(axis, thickness);
        max.insert(axis, None);
        let (dtype, filters) = (DType::Int32, Vec::new());
        Case { name, shape, axis, chunk, max, dtype, filters, compatibility: Compatibility::V110, total }
    };
    let gzip = || vec![Filter::new("shuffle"), Filter::new("gzip")];
    vec![
        case("one chunk row a frame", 0, 1, 300),
        case("several frames a chunk", 0, 5, 121),
        case("along the last dimension", 2, 3, 100),
        Case { filters: gzip(), ..case("filtered", 1, 2, 90) },
        Case { filters: gzip(), compatibility: Compatibility::V200, ..case("filtered, wide", 0, 1, 600) },
        Case { dtype: DType::String, ..case("text", 0, 2, 41) },
        Case { max: vec![None, Some(3), None], ..case("two unlimited dimensions", 0, 1, 150) },
        Case { compatibility: Compatibility::Earliest, ..case("old style", 0, 2, 151) },
        Case { max: vec![Some(70), Some(3), Some(4)], ..case("up to a limit", 0, 3, 70) },
        Case { max: vec![Some(5000), Some(3), Some(4)], ..case("up to a far limit", 0, 1, 70) },
    ]
}

#[test]
fn frames_are_there_after_every_flush() {
    let folder = tempfile::tempdir().unwrap();
    for case in cases() {
        let path = folder.path().join("x.h5");
        let mut spec = ArraySpec::new(case.dtype.clone(), Grid::new(&case.shape, &case.chunk).unwrap());
        spec.max_shape.clone_from(&case.max);
        spec.filters.clone_from(&case.filters);
        start(&path, &spec, case.compatibility);
        let mut file = Hdf5Append::open(&path, AppendOptions::default()).unwrap();
        let mut done = 0;
        // Batches of 1, 2, 3 … frames, with an occasional flush or a new writer.
        for batch in 1.. {
            let count = (batch % 7 + u64::from(batch % 11 == 0) * 40).min(case.total - done);
            let values = joined(done..done + count, &[3, 4], case.axis, &case.dtype);
            let extent = file.append_along("/run/frames", Some(case.axis), &values);
            done += count;
            assert_eq!(extent.unwrap(), done, "{}", case.name);
            if batch % 3 == 0 || done == case.total {
                file.flush().unwrap();
                assert_eq!(read(&path), joined(0..done, &[3, 4], case.axis, &case.dtype), "{}", case.name);
            }
            if done == case.total {
                break;
            }
            if batch % 8 == 0 {
                file.close().unwrap();
                file = Hdf5Append::open(&path, AppendOptions::default()).unwrap();
            }
        }
        if case.max[case.axis].is_some_and(|most| most == case.total) {
            let more = joined(0..1, &[3, 4], case.axis, &case.dtype);
            assert!(file.append("/run/frames", &more).is_err(), "beyond the limit");
        }
        file.close().unwrap();
        assert_eq!(read(&path), joined(0..done, &[3, 4], case.axis, &case.dtype), "{}", case.name);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.h5");
    let mut spec = ArraySpec::new(DType::Int32, Grid::new(&[0, 3, 4], &[1, 3, 4]).unwrap());
    spec.max_shape[0] = None;
    start(&path, &spec, Compatibility::V110);
    let mut file = Hdf5Append::open(&path, AppendOptions::default()).unwrap();
    assert!(Hdf5Append::open(&path, AppendOptions::default()).is_err(), "one writer at a time");
    let wrong = |shape: &[u64], dtype: DType| {
        let cells = shape.iter().product::<u64>() as usize;
        let size = dtype.size().unwrap();
        Values::new(dtype, shape, Elements::fixed(vec![0; cells * size])).unwrap()
    };
    assert!(file.append("/run/frames", &wrong(&[3, 5], DType::Int32)).is_err());
    assert!(file.append("/run/frames", &wrong(&[3, 4], DType::Int16)).is_err());
    assert!(file.append("/run/nothing", &wrong(&[3, 4], DType::Int32)).is_err());
    assert!(file.append("/run", &wrong(&[3, 4], DType::Int32)).is_err());
    assert_eq!(file.append("/run/frames", &wrong(&[3, 4], DType::Int32)).unwrap(), 1);
}

/// Adds groups, datasets and attributes to an existing file, few and many, repeatedly.
#[test]
fn nodes_and_attributes_are_added() {
    let folder = tempfile::tempdir().unwrap();
    for compatibility in [Compatibility::Earliest, Compatibility::V110] {
        let path = folder.path().join("x.h5");
        let mut spec = ArraySpec::new(DType::Int32, Grid::new(&[0, 3, 4], &[2, 3, 4]).unwrap());
        spec.max_shape[0] = None;
        start(&path, &spec, compatibility);
        let mut groups = vec!["frames".to_owned()];
        for round in 0..6_u64 {
            let mut file = Box::new(Hdf5Append::open(&path, AppendOptions::default()).unwrap());
            file.append("/run/frames", &joined(round..round + 1, &[3, 4], 0, &DType::Int32)).unwrap();
            for number in 0..[1, 2, 3, 40, 1, 2][round as usize] {
                let name = format!("{round} {number}");
                file.group(&format!("/run/{name}"), &Attributes::from_iter([("round", "one")])).unwrap();
                groups.push(name);
            }
            let array =
                file.array(&format!("/run/new/{round}/x"), &ArraySpec::new(DType::UInt8, Grid::single(&[3])));
            let (array, chunk) = (array.unwrap(), [0].as_slice().into());
            array.write(&chunk, array.encode(&chunk, &Elements::fixed(vec![1, 2, 3])).unwrap()).unwrap();
            file.attribute("/run/frames", &format!("note {round}"), "some text").unwrap();
            file.attribute("/", &format!("root {round}"), serde_json::json!([1, 2, round])).unwrap();
            assert!(file.array("/run/frames", &spec).is_err(), "it is there already");
            assert!(file.group("/run/frames/below", &Attributes::new()).is_err(), "it is no group");
            file.commit().unwrap();
            let store = hyperslab_hdf5::open_path(&path).unwrap();
            let Ok(Node::Array(frames)) = store.node("/run/frames") else { panic!("no dataset") };
            assert_eq!(frames.schema().attributes.len() as u64, round + 1);
            assert_eq!(frames.schema().attributes.to_json()[&format!("note {round}")], "some text");
        }
        assert_eq!(read(&path), joined(0..6, &[3, 4], 0, &DType::Int32));
        let store = hyperslab_hdf5::open_path(&path).unwrap();
        let mut found = store.children("/run").unwrap();
        groups.push("new".to_owned());
        found.sort();
        groups.sort();
        assert_eq!(found, groups);
        assert_eq!(store.children("/run/new").unwrap().len(), 6);
        let Ok(Node::Group(root)) = store.node("/") else { panic!("no root") };
        assert_eq!(root.len(), 6);
        let mut again = Hdf5Append::open(&path, AppendOptions::default()).unwrap();
        again.attribute("/run/frames", "note 3", "another").unwrap();
        again.attribute("/", "root 1", "a text that is longer than the numbers were").unwrap();
        again.attribute("/", "root 2", serde_json::json!(7)).unwrap();
        again.close().unwrap();
        assert_eq!(read(&path).shape[0], 6);
        let store = hyperslab_hdf5::open_path(&path).unwrap();
        let Ok(Node::Group(root)) = store.node("/") else { panic!("no root") };
        let (root, names) =
            (root.to_json(), root.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(names, (0..6).map(|round| format!("root {round}")).collect::<Vec<_>>());
        assert_eq!(root["root 1"], "a text that is longer than the numbers were");
        assert_eq!(
            (&root["root 2"], &root["root 3"]),
            (&serde_json::json!(7), &serde_json::json!([1, 2, 3]))
        );
        let Ok(Node::Array(frames)) = store.node("/run/frames") else { panic!("no dataset") };
        assert_eq!(frames.schema().attributes.to_json()["note 3"], "another");
        assert_eq!(frames.schema().attributes.len(), 6);
        // A writer that is dropped without a flush changes nothing.
        let before = std::fs::read(&path).unwrap();
        let mut dropped = Hdf5Append::open(&path, AppendOptions::default()).unwrap();
        dropped.group("/nothing", &Attributes::new()).unwrap();
        drop(dropped);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        std::fs::remove_file(&path).unwrap();
    }
}

/// Replaces attributes by smaller and larger values, few and many, repeatedly. The others keep theirs.
#[test]
fn attributes_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    for (compatibility, count) in [
        (Compatibility::Earliest, 3),
        (Compatibility::V110, 1),
        (Compatibility::V110, 5),
        (Compatibility::V110, 20),
        (Compatibility::V200, 8),
    ] {
        let path = folder.path().join("x.h5");
        let mut spec = ArraySpec::new(DType::Int32, Grid::new(&[0, 3, 4], &[2, 3, 4]).unwrap());
        spec.max_shape[0] = None;
        for number in 0..count {
            spec.attributes.set(format!("a{number}"), serde_json::json!(number));
        }
        start(&path, &spec, compatibility);
        let mut expected = spec.attributes.to_json();
        let values = [
            serde_json::json!(-1),
            serde_json::json!([1.5, 2.5, 3.5]),
            serde_json::json!("x"),
            serde_json::json!(["several", "texts"]),
            serde_json::json!((0..200).collect::<Vec<i32>>()),
            serde_json::json!(0),
        ];
        for round in 0..12 {
            let mut file = Hdf5Append::open(&path, AppendOptions::default()).unwrap();
            file.append("/run/frames", &joined(round..round + 1, &[3, 4], 0, &DType::Int32)).unwrap();
            for step in 0..=round % 2 {
                let name = format!("a{}", (round + step) % count);
                let value = values[(round as usize * 5 + step as usize) % values.len()].clone();
                file.attribute("/run/frames", &name, value.clone()).unwrap();
                expected.insert(name, value);
            }
            file.close().unwrap();
            let store = hyperslab_hdf5::open_path(&path).unwrap();
            let Ok(Node::Array(frames)) = store.node("/run/frames") else { panic!("no dataset") };
            assert_eq!(frames.schema().attributes.to_json(), expected, "{compatibility:?} {count} {round}");
            assert_eq!(read(&path), joined(0..round + 1, &[3, 4], 0, &DType::Int32));
        }
        std::fs::remove_file(&path).unwrap();
    }
}

/// A header with only small messages has room for more, even if it is extended repeatedly.
#[test]
fn small_headers_have_room_for_attributes() {
    let folder = tempfile::tempdir().unwrap();
    for compatibility in [Compatibility::Earliest, Compatibility::V110] {
        let path = folder.path().join("x.h5");
        let mut spec = ArraySpec::new(DType::Int8, Grid::new(&[0], &[2]).unwrap());
        spec.max_shape[0] = None;
        start(&path, &spec, compatibility);
        for round in 0..4_u8 {
            let mut file = Hdf5Append::open(&path, AppendOptions::default()).unwrap();
            let frame = Values::new(DType::Int8, &[1], Elements::fixed(vec![round])).unwrap();
            file.append("/run/frames", &frame).unwrap();
            file.attribute("/run/frames", &format!("a{round}"), "text").unwrap();
            file.close().unwrap();
        }
        assert_eq!(read(&path).as_slice::<i8>().unwrap(), [0, 1, 2, 3]);
        let store = hyperslab_hdf5::open_path(&path).unwrap();
        let Ok(Node::Array(frames)) = store.node("/run/frames") else { panic!("no dataset") };
        assert_eq!(frames.schema().attributes.len(), 4);
        std::fs::remove_file(&path).unwrap();
    }
}

/// The writer killed by the next test; not a test by itself.
#[test]
fn child() {
    recording::child();
}

/// If the writer is killed at any instant, the file opens and holds everything up to the last flush.
#[test]
fn a_killed_writer_leaves_what_it_flushed() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..12_u64 {
        let path = folder.path().join("x.h5");
        let flushed = recording::record_and_kill(&path, round, false);
        let frames = recording::check(&path, flushed);
        // The next writer continues from there.
        let mut file = Hdf5Append::open(&path, AppendOptions::default()).unwrap();
        assert_eq!(file.append("/frames", &recording::frame(frames)).unwrap(), frames + 1);
        file.close().unwrap();
        assert_eq!(recording::check(&path, frames + 1), frames + 1);
        std::fs::remove_file(&path).unwrap();
    }
}
