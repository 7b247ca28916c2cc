//! Files that are added to: whatever was flushed is there, however the writer ends.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod recording;

use std::path::Path;

use hyperslab_core::{
    ArraySpec, DType, Depth, Elements, Filter, Grid, Node, Positions, Report, Sink, Store, Values,
    read_serial,
};
use hyperslab_hdf5::{AppendOptions, Compatibility, Hdf5Append, Hdf5Options, Hdf5Sink};

/// A dataset without frames.
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
        // Batches of 1, 2, 3 … frames; now and then a flush, or a new writer.
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
fn what_does_not_fit_is_refused() {
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

/// The writer that the next test kills: not a test by itself.
#[test]
fn child() {
    recording::child();
}

/// Killed at any instant, the file opens and holds everything up to the last flush.
#[test]
fn a_killed_writer_leaves_what_it_flushed() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..12_u64 {
        let path = folder.path().join("x.h5");
        let flushed = recording::record_and_kill(&path, round, false);
        let frames = recording::check(&path, flushed);
        // The next writer goes on where the dead one stopped.
        let mut file = Hdf5Append::open(&path, AppendOptions::default()).unwrap();
        assert_eq!(file.append("/frames", &recording::frame(frames)).unwrap(), frames + 1);
        file.close().unwrap();
        assert_eq!(recording::check(&path, frames + 1), frames + 1);
        std::fs::remove_file(&path).unwrap();
    }
}
