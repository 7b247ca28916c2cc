//! Compares joined stores with values assembled in memory.

#![cfg(feature = "zarr")]

use hyperslab_core::{ArraySpec, Attributes, CreateOptions, DType, Elements, Grid, Selection};
use proptest::prelude::*;

use super::*;
use crate::{RegionWriter, create, open};
use hyperslab_core::Values;

/// A store with an array `/t` of `length` × 3 along `time`, and its coordinate.
fn store(folder: &Path, name: &str, first: i32, length: u64, chunk: u64, units: &str) -> PathBuf {
    let path = folder.join(name);
    let mut sink = create(&path, Format::ZARR, &CreateOptions::default()).unwrap();
    sink.group("/", &Attributes::new()).unwrap();
    let mut add = |path: &str, shape: &[u64], chunks: &[u64], numbers: Vec<i32>| {
        let mut spec = ArraySpec::new(DType::Int32, Grid::new(shape, chunks).unwrap());
        spec.dimensions =
            ["time", "x"].iter().take(shape.len()).map(|name| Some((*name).to_owned())).collect();
        if shape.len() == 1 {
            spec.attributes.set("units", units);
        }
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let values = Values::new(DType::Int32, shape, Elements::fixed(bytes)).unwrap();
        let writer = RegionWriter::new(sink.array(path, &spec).unwrap(), DType::Int32, spec.fill.clone());
        writer.assign(&hyperslab_core::Region::whole(shape), &values).unwrap();
        writer.finish().unwrap();
    };
    let times: Vec<i32> = (first..).take(length as usize).collect();
    let values = times.iter().flat_map(|time| (0..3).map(move |x| time * 10 + x)).collect();
    add("/t", &[length, 3], &[chunk, 2], values);
    add("/time", &[length], &[length.max(1)], times);
    sink.commit().unwrap();
    path
}

fn numbers(path: &Path, node: &str) -> Vec<i32> {
    open(path).unwrap().array(node).unwrap().read_vec(&Selection::all()).unwrap()
}

const DAYS: &str = "days since 2000-01-01";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the lengths, chunks and order, every value appears once.
    #[test]
    fn joined_stores_hold_all_values(parts in prop::collection::vec((1_u64..7, 1_u64..4), 1..5), cut in 1_u64..9, turn: bool) {
        let folder = tempfile::tempdir().unwrap();
        let (mut first, mut paths) = (0, Vec::new());
        for (number, (length, chunk)) in parts.iter().enumerate() {
            paths.push(store(folder.path(), &format!("{number}.zarr"), first, *length, *chunk, DAYS));
            first += *length as i32;
        }
        if turn {
            paths.reverse();
        }
        let target = folder.path().join("all.zarr");
        let options = ConvertOptions { chunk_extents: vec![("time".to_owned(), cut)], ..ConvertOptions::default() };
        let report = concat(
            &paths, "time", (&target, Format::ZARR), &CombineOptions::default(), &options, &Progress::default(),
        ).unwrap();
        prop_assert_eq!(report.arrays, 2);
        prop_assert_eq!(numbers(&target, "/time"), (0..first).collect::<Vec<_>>());
        let expected: Vec<i32> = (0..first).flat_map(|time| (0..3).map(move |x| time * 10 + x)).collect();
        prop_assert_eq!(numbers(&target, "/t"), expected);
    }

    /// Appending gives the same result as joining.
    #[test]
    fn appended_stores_follow_the_existing_one(before in 1_u64..8, more in prop::collection::vec(1_u64..6, 1..3), chunk in 1_u64..5) {
        let folder = tempfile::tempdir().unwrap();
        let target = store(folder.path(), "all.zarr", 0, before, chunk, DAYS);
        let (mut end, mut paths) = (before as i32, Vec::new());
        for (number, length) in more.iter().enumerate() {
            paths.push(store(folder.path(), &format!("{number}.zarr"), end, *length, 2, DAYS));
            end += *length as i32;
        }
        let report =
            append_along(&target, &paths, "time", &AppendOptions::default(), &Progress::default()).unwrap();
        prop_assert_eq!((report.before, report.after, report.arrays), (before, end as u64, 2));
        let expected: Vec<i32> = (0..end).flat_map(|time| (0..3).map(move |x| time * 10 + x)).collect();
        prop_assert_eq!(numbers(&target, "/t"), expected);
        prop_assert_eq!(numbers(&target, "/time"), (0..end).collect::<Vec<_>>());
    }
}

#[test]
fn times_from_another_date_are_counted_from_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let one = store(folder.path(), "a.zarr", 0, 2, 2, DAYS);
    let two = store(folder.path(), "b.zarr", 0, 3, 2, "days since 2000-01-03");
    let target = folder.path().join("all.zarr");
    let combining = CombineOptions::default();
    let join = |paths: &[PathBuf]| {
        let to = (target.as_path(), Format::ZARR);
        concat(paths, "time", to, &combining, &ConvertOptions::default(), &Progress::default())
    };
    join(&[one.clone(), two]).unwrap();
    assert_eq!(numbers(&target, "/time"), [0, 1, 2, 3, 4]);
    std::fs::remove_dir_all(&target).unwrap();
    // Half a day is not a whole number of days.
    let three = store(folder.path(), "c.zarr", 5, 1, 2, "days since 2000-01-01 12:00");
    let why = join(&[one.clone(), three]).unwrap_err().to_string();
    assert!(why.contains("c.zarr") && why.contains("without rounding"), "{why}");
    let four = store(folder.path(), "d.zarr", 5, 1, 2, "metres");
    let why = join(&[one, four]).unwrap_err().to_string();
    assert!(why.contains("units") && why.contains("metres"), "{why}");
    assert!(!target.exists());
}

#[test]
fn gaps_and_overlaps_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let one = store(folder.path(), "a.zarr", 0, 3, 2, DAYS);
    let two = store(folder.path(), "b.zarr", 9, 2, 2, DAYS);
    let three = store(folder.path(), "c.zarr", 10, 2, 2, DAYS);
    let combination = combine(&[two.clone(), one], "time", &CombineOptions::default()).unwrap();
    assert!(combination.order[0].ends_with("a.zarr"));
    let notes: Vec<&str> = combination.notes.iter().map(|(_, note)| note.as_str()).collect();
    assert!(
        notes.iter().any(|note| note.contains("gap from 2000-01-03") && note.contains("2000-01-10")),
        "{notes:?}"
    );
    let why = combine(&[two, three], "time", &CombineOptions::default()).unwrap_err().to_string();
    assert!(why.contains("overlap along time") && why.contains("2000-01-11"), "{why}");
}

#[test]
fn patterns_are_expanded_and_names_are_not() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b.nc", "a.nc", "c.txt", "x[1].nc"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let expanded = |pattern: &str| expand(&[folder.path().join(pattern)]);
    let names: Vec<PathBuf> =
        ["a.nc", "b.nc", "x[1].nc"].iter().map(|name| folder.path().join(name)).collect();
    assert_eq!(expanded("*.nc").unwrap(), names);
    assert_eq!(expanded("x[1].nc").unwrap(), names[2..]);
    assert!(expanded("*.zarr").unwrap_err().to_string().contains("no file matches"));
    assert_eq!(expanded("missing.nc").unwrap().len(), 1);
}
