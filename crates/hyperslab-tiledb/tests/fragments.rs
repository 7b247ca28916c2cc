//! Arrays with many fragments: appending, consolidation, vacuum, and kills in between.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hyperslab_core::storage::{Step, Trace};
use hyperslab_core::{
    ArraySpec, DType, Depth, Elements, Filter, Grid, Labels, Node, Positions, Report, Scan, Sink, Store,
    Validity, element_to_json, read_serial,
};
use hyperslab_tiledb::{
    ArrayKind, Attribute, CellValues, ConsolidateOptions, Datatype, Dimension, OpenOptions, Order, Pipeline,
    Schema, TimeWindow, WriteOptions, append, consolidate, create, create_sparse, open_path, repair, vacuum,
    write_sparse,
};
use serde_json::Value;

fn words(values: impl IntoIterator<Item = i64>) -> Elements {
    Elements::fixed(values.into_iter().flat_map(i64::to_le_bytes).collect::<Vec<u8>>())
}

/// A schema of one dimension, whose bounds are stored in as many bytes as its type has.
fn schema(duplicates: bool, datatype: Datatype) -> Schema {
    let stored = |number: i64| number.to_le_bytes()[..datatype.size()].to_vec();
    let dimension = Dimension {
        name: "x".to_owned(),
        datatype,
        values: CellValues::Fixed(1),
        pipeline: Pipeline::default(),
        domain: [stored(0), stored(999)].concat(),
        extent: Some(stored(10)),
    };
    Schema {
        version: 22,
        allows_duplicates: duplicates,
        kind: ArrayKind::Sparse,
        tile_order: Order::RowMajor,
        cell_order: Order::RowMajor,
        capacity: 16,
        coords: Pipeline::default(),
        offsets: Pipeline::default(),
        validity: Pipeline::default(),
        dimensions: vec![dimension],
        attributes: vec![Attribute::new("v", Datatype::Int64, CellValues::Fixed(1))],
        labels: Vec::new(),
        enumerations: Vec::new(),
        current_domain: None,
    }
}

/// A sparse array of this many fragments, which share some coordinates.
fn sparse(path: &Path, duplicates: bool, fragments: i64) {
    let schema = schema(duplicates, Datatype::Int64);
    create_sparse(path, &schema, &WriteOptions { at: Some(1), ..WriteOptions::default() }).unwrap();
    for number in 0..fragments {
        let cells = || (0..20).map(move |cell| number * 7 + cell);
        let at = Some(10 + number as u64);
        write_sparse(
            path,
            &[words(cells()), words(cells().map(|cell| cell * 1000 + number))],
            &WriteOptions { at, ..WriteOptions::default() },
        )
        .unwrap();
    }
}

/// All rows as sorted text, for this time window.
fn rows(path: &Path, at: TimeWindow) -> Vec<String> {
    let store = open_path(path, OpenOptions { at, ..OpenOptions::default() }).unwrap();
    let Node::Table(table) = store.node("/").unwrap() else { panic!("a table") };
    let schema = table.schema().clone();
    let mut rows = Vec::new();
    for batch in table.scan(&Scan::default()).unwrap() {
        let batch = batch.unwrap();
        for row in 0..batch.rows {
            let cells = schema.columns.iter().zip(&batch.columns);
            rows.push(
                cells
                    .map(|(c, e)| element_to_json(&c.dtype, e, row).to_string())
                    .collect::<Vec<_>>()
                    .join(" "),
            );
        }
    }
    assert_eq!(table.rows().unwrap(), rows.len() as u64);
    rows.sort();
    rows
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn assert_whole(path: &Path) {
    let mut report = Report::default();
    let store = open_path(path, OpenOptions::default()).unwrap();
    store.verify(Depth::Deep, &mut report).unwrap();
    assert!(report.ok(), "{:?}", report.findings);
}

/// A newer schema with another type of a dimension: the coordinates of the fragments are not of the type that the array has.
#[test]
fn fragments_of_another_coordinate_type_are_refused_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("a"), folder.path().join("b"));
    sparse(&path, false, 2);
    let at = WriteOptions { at: Some(1000), ..WriteOptions::default() };
    create_sparse(&other, &schema(false, Datatype::Int16), &at).unwrap();
    copy(&other.join("__schema"), &path.join("__schema"));
    let store = open_path(&path, OpenOptions::default()).unwrap();
    let Node::Table(table) = store.node("/").unwrap() else { panic!("a table") };
    let refused = table.scan(&Scan::default()).err().unwrap();
    assert!(refused.is_corrupt() && refused.to_string().contains("dimensions of the types"), "{refused}");
    for depth in [Depth::Quick, Depth::Deep] {
        let mut report = Report::default();
        store.verify(depth, &mut report).unwrap();
        assert!(!report.ok(), "{:?}", report.findings);
    }
}

/// Damaged metadata is reported, and shown as an attribute; the cells remain readable.
#[test]
fn damaged_metadata_does_not_hide_the_cells() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    sparse(&path, false, 2);
    let expected = rows(&path, TimeWindow::default());
    std::fs::create_dir_all(path.join("__meta")).unwrap();
    std::fs::write(path.join("__meta/__10_10_009650f567d084bce9feab2537b3887e"), [7; 60]).unwrap();
    assert_eq!(rows(&path, TimeWindow::default()), expected);
    let store = open_path(&path, OpenOptions::default()).unwrap();
    let Node::Table(table) = store.node("/").unwrap() else { panic!("a table") };
    assert!(matches!(
        table.schema().attributes.get("__meta"),
        Some(hyperslab_core::Attribute::Unreadable(_))
    ));
    let mut report = Report::default();
    store.verify(Depth::Quick, &mut report).unwrap();
    assert!(report.findings.iter().any(|finding| finding.check == "array_metadata" && !finding.ok));
}

/// The body of the killed processes. Does nothing unless another test started it.
#[test]
fn child_process() {
    let Some(path) = std::env::var_os("HYPERSLAB_TEST_ARRAY").map(PathBuf::from) else { return };
    consolidate(&path, &ConsolidateOptions::default()).unwrap();
    vacuum(&path, &WriteOptions::default()).unwrap();
}

/// However consolidation and vacuum are killed, the array keeps its content and can be consolidated again.
#[test]
fn kills_never_change_the_content() {
    for duplicates in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let original = folder.path().join("original");
        sparse(&original, duplicates, 16);
        let expected = rows(&original, TimeWindow::default());
        for delay in 0..6 {
            let array = folder.path().join(format!("{delay}"));
            copy(&original, &array);
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "child_process"])
                .env("HYPERSLAB_TEST_ARRAY", &array)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(delay * 7));
            let _ = child.kill();
            child.wait().unwrap();
            assert_eq!(rows(&array, TimeWindow::default()), expected, "killed after {delay}");
            repair(&array, &WriteOptions::default(), false).unwrap();
            assert_eq!(rows(&array, TimeWindow::default()), expected, "repaired after {delay}");
            consolidate(&array, &ConsolidateOptions::default()).unwrap();
            vacuum(&array, &WriteOptions::default()).unwrap();
            assert_eq!(rows(&array, TimeWindow::default()), expected, "done after {delay}");
            assert_whole(&array);
        }
    }
}

/// Checks the folder's state after each step: with each new file present, and each old one not yet removed.
#[test]
fn each_step_of_a_consolidation_changes_nothing() {
    for duplicates in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let array = folder.path().join("array");
        sparse(&array, duplicates, 6);
        let expected = rows(&array, TimeWindow::default());
        let early = rows(&array, TimeWindow::until(12));
        // The callback runs while the new fragment is written, before anything refers to it.
        let seen = std::sync::atomic::AtomicUsize::new(0);
        let look = |_, _| {
            assert_eq!(rows(&array, TimeWindow::default()), expected);
            seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            true
        };
        let options = ConsolidateOptions { progress: &look, ..ConsolidateOptions::default() };
        assert_eq!(consolidate(&array, &options).unwrap(), 6);
        assert!(seen.into_inner() > 0);
        assert_eq!(rows(&array, TimeWindow::default()), expected);
        assert_eq!(rows(&array, TimeWindow::until(12)), early);
        assert!(repair(&array, &WriteOptions::default(), true).unwrap().is_empty());
        assert_eq!(vacuum(&array, &WriteOptions::default()).unwrap(), 6);
        assert_eq!(rows(&array, TimeWindow::default()), expected);
        assert_eq!(rows(&array, TimeWindow::until(12)), early);
        assert_eq!(std::fs::read_dir(array.join("__fragments")).unwrap().count(), 1);
        assert_eq!(std::fs::read_dir(array.join("__commits")).unwrap().count(), 1);
        assert_whole(&array);
    }
}

#[test]
fn a_stopped_consolidation_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let array = folder.path().join("array");
    sparse(&array, true, 4);
    let options = ConsolidateOptions { progress: &|_, _| false, ..ConsolidateOptions::default() };
    assert!(consolidate(&array, &options).unwrap_err().to_string().contains("stopped"));
    assert_eq!(std::fs::read_dir(array.join("__fragments")).unwrap().count(), 4);
    // Only fragments from a time window.
    let some = ConsolidateOptions { at: TimeWindow { start: 11, end: 12 }, ..ConsolidateOptions::default() };
    assert_eq!(consolidate(&array, &some).unwrap(), 2);
    assert_eq!(vacuum(&array, &WriteOptions::default()).unwrap(), 2);
    assert_eq!(std::fs::read_dir(array.join("__fragments")).unwrap().count(), 3);
}

/// Leftovers of killed or faulty programs are found, reported and removed.
#[test]
fn leftovers_are_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let array = folder.path().join("array");
    sparse(&array, false, 3);
    let expected = rows(&array, TimeWindow::default());
    let commits = array.join("__commits");
    let id = "0123456789abcdef0123456789abcdef";
    let names: Vec<String> = std::fs::read_dir(array.join("__fragments"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    // A commit without its fragment, and one that only a consolidated file names.
    std::fs::write(commits.join(format!("__50_50_{id}_22.wrt")), b"").unwrap();
    std::fs::write(
        commits.join(format!("__60_60_{id}_22.con")),
        format!("__commits/__60_60_{id}_22.wrt\n__commits/{}.wrt\n", names[0]),
    )
    .unwrap();
    // A list of missing fragments, a list that hides fragments without a replacement, and an incomplete commit.
    std::fs::write(commits.join(format!("__70_70_{id}_22.vac")), format!("/__fragments/__2_2_{id}_22\n"))
        .unwrap();
    std::fs::write(commits.join(format!("__80_80_{id}_22.vac")), format!("/__fragments/{}\n", names[1]))
        .unwrap();
    std::fs::write(commits.join(format!("__90_90_{id}_22.tmp")), b"x").unwrap();
    let planned = repair(&array, &WriteOptions::default(), true).unwrap();
    let mut codes: Vec<_> = planned.iter().map(|(code, _)| *code).collect();
    codes.sort_unstable();
    assert_eq!(
        codes,
        [
            "remove_stale_commits",
            "remove_stale_commits",
            "remove_stale_commits",
            "remove_stale_vacuum_lists",
            "remove_stale_vacuum_lists"
        ]
    );
    assert_eq!(vacuum(&array, &WriteOptions::default()).unwrap(), 0, "nothing that holds rows is removed");
    assert_eq!(repair(&array, &WriteOptions::default(), false).unwrap(), planned);
    assert_eq!(rows(&array, TimeWindow::default()), expected);
    assert!(repair(&array, &WriteOptions::default(), true).unwrap().is_empty());
    // A commit that is also in a consolidated file is removed together with its fragment.
    assert_eq!(consolidate(&array, &ConsolidateOptions::default()).unwrap(), 3);
    assert_eq!(vacuum(&array, &WriteOptions::default()).unwrap(), 3);
    assert_eq!(rows(&array, TimeWindow::default()), expected);
    assert_whole(&array);
}

/// Writes a whole array through a sink, chunks in reverse order.
fn put(sink: &mut dyn Sink, path: &str, spec: &ArraySpec, value: impl Fn(u64) -> i64) {
    let array = sink.array(path, spec).unwrap();
    let grid = array.grid().clone();
    for number in (0..grid.chunks().unwrap()).rev() {
        let chunk = grid.coord(number);
        let region = grid.region(&chunk);
        let mut cells = Vec::new();
        for cell in 0..region.cells().unwrap() {
            let (row, column) = (cell / region.shape[1], cell % region.shape[1]);
            cells.push(value((region.start[0] + row) * grid.shape()[1] + region.start[1] + column));
        }
        let mut elements = words(cells.iter().copied());
        if spec.nullable {
            elements =
                elements.with_validity(Some(Validity::from_flags(cells.iter().map(|cell| cell % 5 != 0))));
        }
        let encoded = array.encode(&chunk, &elements).unwrap();
        array.write(&chunk, encoded).unwrap();
    }
}

fn values(path: &Path, node: &str) -> Value {
    let store = open_path(path, OpenOptions::default()).unwrap();
    let Node::Array(array) = store.node(node).unwrap() else { panic!("an array") };
    read_serial(&*array, Positions::whole(array.schema().shape())).unwrap().to_json()
}

fn spec(rows: u64, nullable: bool) -> ArraySpec {
    let mut spec = ArraySpec::new(DType::Int64, Grid::new(&[rows, 7], &[4, 3]).unwrap());
    spec.filters = vec![Filter::new("zstd")];
    spec.nullable = nullable;
    spec.max_shape = vec![None, Some(7)];
    spec
}

/// Appended rows follow the existing ones, aligned with tiles or not, and the fragments can be consolidated.
#[test]
fn rows_are_appended() {
    for nullable in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("array");
        let mut sink = create(&path, WriteOptions::default()).unwrap();
        put(&mut sink, "/a", &spec(6, nullable), |cell| cell as i64);
        Box::new(sink).commit().unwrap();
        // At row 6, in the middle of a tile; at row 16, at the start of one.
        for (before, count) in [(6, 10), (16, 5)] {
            let mut sink = append(&path, WriteOptions::default()).unwrap();
            put(&mut sink, "/a", &spec(count, nullable), |cell| (before * 7 + cell) as i64);
            assert_eq!(
                values(&path, "/a").as_array().unwrap().len(),
                before as usize,
                "not before the commit"
            );
            Box::new(sink).commit().unwrap();
        }
        let expected: Vec<Vec<Option<i64>>> = (0..21)
            .map(|row| {
                (row * 7..row * 7 + 7).map(|cell| (!nullable || cell % 5 != 0).then_some(cell)).collect()
            })
            .collect();
        assert_eq!(values(&path, "/a"), serde_json::json!(expected));
        assert_whole(&path);
        // Labels may place new values over existing ones. The newest wins.
        let mut over = spec(2, nullable);
        over.labels = vec![Labels::Domain { first: 3, dtype: DType::Int64 }, Labels::None];
        let mut sink = append(&path, WriteOptions::default()).unwrap();
        put(&mut sink, "/a", &over, |cell| cell as i64 + 1001);
        Box::new(sink).commit().unwrap();
        let found = values(&path, "/a");
        assert_eq!((&found[3][0], &found[4][6]), (&1001.into(), &1014.into()));
        assert_eq!(found[5], serde_json::json!(expected[5]));
        assert_eq!(consolidate(&path, &ConsolidateOptions::default()).unwrap(), 4);
        assert_eq!(vacuum(&path, &WriteOptions::default()).unwrap(), 4);
        assert_eq!(values(&path, "/a"), found);
        assert_whole(&path);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing beside the array");
    }
}

#[test]
fn invalid_appends_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array");
    let mut sink = create(&path, WriteOptions::default()).unwrap();
    let fixed = ArraySpec { max_shape: vec![Some(6), Some(7)], ..spec(6, false) };
    put(&mut sink, "/a", &fixed, |cell| cell as i64);
    put(&mut sink, "/b", &fixed, |cell| cell as i64);
    Box::new(sink).commit().unwrap();
    let before = values(&path, "/a");
    let mut sink = append(&path, WriteOptions::default()).unwrap();
    let refused =
        |sink: &mut dyn Sink, path: &str, spec: &ArraySpec| sink.array(path, spec).unwrap_err().to_string();
    assert!(refused(&mut sink, "/c", &spec(1, false)).contains("/c"));
    assert!(refused(&mut sink, "/a", &spec(1, true)).contains("holds"));
    assert!(refused(&mut sink, "/a", &spec(1, false)).contains("no room"));
    let mut over = spec(2, false);
    over.labels = vec![Labels::Domain { first: 1, dtype: DType::Int64 }, Labels::None];
    put(&mut sink, "/a", &over, |cell| cell as i64);
    let missing = Box::new(sink).commit().unwrap_err().to_string();
    assert!(missing.contains("\"b\" is missing"), "{missing}");
    // Some chunks are never written.
    let mut sink = append(&path, WriteOptions::default()).unwrap();
    put(&mut sink, "/a", &over, |cell| cell as i64);
    sink.array("/b", &over).unwrap();
    assert!(Box::new(sink).commit().unwrap_err().to_string().contains("chunks are missing"));
    assert_eq!(values(&path, "/a"), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing beside the array");
    assert!(append(&folder.path().join("none"), WriteOptions::default()).is_err());
}

fn renamed(trace: &Trace) -> Vec<PathBuf> {
    let to = |step: &Step| match step {
        Step::Rename { to, .. } => Some(to.clone()),
        _ => None,
    };
    trace.steps.iter().filter_map(to).collect()
}

/// Data is durable before it becomes visible, and the file that makes it visible is renamed last.
#[test]
fn a_power_cut_leaves_the_old_array_or_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let path = folder.join("array");
    let make = |options: WriteOptions, rows: u64| {
        let mut sink = create(&path, options).unwrap();
        put(&mut sink, "/a", &spec(rows, false), |cell| cell as i64);
        Box::new(sink).commit().unwrap();
    };
    let is_sync = |step: &Step| matches!(step, Step::Sync(_) | Step::SyncTree(_) | Step::SyncFolder(_));
    let ((), trace) = Trace::of(|| make(WriteOptions::default(), 6));
    assert!(!trace.steps.iter().any(is_sync), "a new array costs no sync");
    assert!(matches!(create(&path, WriteOptions::default()), Err(hyperslab_core::Error::Exists { .. })));
    let replace = WriteOptions { force: true, ..WriteOptions::default() };
    let ((), trace) = Trace::of(|| make(replace, 6));
    assert_eq!(trace.violations(false), Vec::<String>::new());
    assert_eq!(trace.steps.iter().filter(|step| matches!(step, Step::Exchange { .. })).count(), 1);

    let ((), trace) = Trace::of(|| {
        let mut sink = append(&path, WriteOptions::default()).unwrap();
        put(&mut sink, "/a", &spec(10, false), |cell| cell as i64);
        Box::new(sink).commit().unwrap();
    });
    assert_eq!(trace.violations(true), Vec::<String>::new());
    let order: Vec<_> =
        renamed(&trace).iter().map(|path| path.strip_prefix(&folder).unwrap().to_owned()).collect();
    assert!(order[0].starts_with("array/__fragments"), "{order:?}");
    assert!(order[1].starts_with("array/__commits") && order.len() <= 3, "{order:?}");

    let (count, trace) = Trace::of(|| consolidate(&path, &ConsolidateOptions::default()).unwrap());
    assert_eq!((count, trace.violations(true)), (2, Vec::new()));
    let (count, trace) = Trace::of(|| vacuum(&path, &WriteOptions::default()).unwrap());
    assert_eq!(count, 2);
    // Commits are removed durably before their fragments.
    let at = |wanted: &dyn Fn(&Step) -> bool| trace.steps.iter().position(wanted).unwrap();
    let synced = at(&|step| matches!(step, Step::SyncFolder(own) if own.ends_with("__commits")));
    let removed =
        at(&|step| matches!(step, Step::Remove(own) if own.parent().unwrap().ends_with("__fragments")));
    assert!(synced < removed, "{:#?}", trace.steps);

    for duplicates in [false, true] {
        let path = folder.join(format!("sparse{duplicates}"));
        let ((), trace) = Trace::of(|| sparse(&path, duplicates, 3));
        // Skip the steps that create the array, which are not synced.
        let first = trace.steps.iter().position(is_sync).unwrap();
        assert_eq!(Trace { steps: trace.steps[first..].to_vec() }.violations(true), Vec::<String>::new());
        let (_, trace) = Trace::of(|| consolidate(&path, &ConsolidateOptions::default()).unwrap());
        assert_eq!(trace.violations(true), Vec::<String>::new());
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3, "nothing beside the arrays");
}
