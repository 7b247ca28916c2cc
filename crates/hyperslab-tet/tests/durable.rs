//! Tests the state after a power cut: the order of writing, syncing and renaming.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use hyperslab_core::storage::{Step, Trace};
use hyperslab_core::{ArraySpec, DType, Elements, Error, Grid, Sink};
use hyperslab_tet::{TetAppend, TetOptions, TetSink, open_path};

/// Adds an array of one chunk.
fn put(sink: &mut dyn Sink, name: &str) {
    let array = sink.array(name, &ArraySpec::new(DType::UInt8, Grid::single(&[4]))).unwrap();
    let chunk = [0].as_slice().into();
    array.write(&chunk, array.encode(&chunk, &Elements::fixed(vec![1, 2, 3, 4])).unwrap()).unwrap();
}

fn make(path: &Path, change: impl Fn(&mut TetOptions)) -> Trace {
    let mut options = TetOptions::default();
    change(&mut options);
    let ((), trace) = Trace::of(|| {
        let mut sink = TetSink::create(path, options).unwrap();
        put(&mut sink, "a");
        Box::new(sink).commit().unwrap();
    });
    trace
}

#[test]
fn a_new_file_costs_no_sync_and_one_that_replaces_is_synced_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tet");
    let is_sync = |step: &Step| matches!(step, Step::Sync(_) | Step::SyncFolder(_));
    assert!(!make(&path, |_| {}).steps.iter().any(is_sync));
    assert!(matches!(TetSink::create(&path, TetOptions::default()), Err(Error::Exists { .. })));
    let trace = make(&path, |options| options.overwrite = true);
    assert!(trace.steps.iter().any(is_sync));
    assert_eq!(trace.violations(false), Vec::<String>::new());
    let trace = make(&folder.path().join("y.tet"), |options| options.sync = true);
    assert!(trace.steps.iter().any(is_sync));
    assert_eq!(trace.violations(true), Vec::<String>::new());
}

/// The redo file is durable before it becomes valid, and the target before the redo file is removed.
#[test]
fn appends_are_journalled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("x.tet");
    make(&path, |_| {});
    let ((), trace) = Trace::of(|| {
        let mut sink = TetAppend::open(&path, TetOptions::default()).unwrap();
        put(&mut sink, "b");
        Box::new(sink).commit().unwrap();
    });
    assert_eq!(open_path(&path).unwrap().datasets().len(), 2);
    assert_eq!(trace.violations(true), Vec::<String>::new());
    let redo = path.with_file_name("x.tet.redo");
    let at = |wanted: &dyn Fn(&Step) -> bool| trace.steps.iter().position(wanted).unwrap();
    let last = |wanted: &dyn Fn(&Step) -> bool| trace.steps.iter().rposition(wanted).unwrap();
    let renamed = at(&|step| matches!(step, Step::Rename { to, .. } if *to == redo));
    let first_change = at(&|step| *step == Step::Write(path.clone()));
    let last_change = last(&|step| *step == Step::Write(path.clone()));
    let synced = last(&|step| *step == Step::Sync(path.clone()));
    let removed = at(&|step| *step == Step::Remove(redo.clone()));
    assert!(renamed < first_change && last_change < synced && synced < removed, "{:#?}", trace.steps);
    // Payloads and footer are durable before the head that refers to them.
    let before_head = at(&|step| *step == Step::Sync(path.clone()));
    assert!(first_change < before_head && before_head < last_change, "{:#?}", trace.steps);
    assert_eq!(trace.steps.last(), Some(&Step::SyncFolder(path.parent().unwrap().to_owned())));
}
