//! The state of a target after a power cut, for every format: the order of writing, syncing and renaming.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::path::Path;

use hyperslab::convert::{ConvertOptions, Progress, convert, convert_to_rows};
use hyperslab::{CreateOptions, Format, create};
use hyperslab_core::storage::{Step, Trace};
use hyperslab_core::{ArraySpec, DType, Elements, Error, Grid};

fn make(path: &Path, format: Format, options: &CreateOptions) {
    let mut sink = create(path, format, options).unwrap();
    let array = sink.array("/a", &ArraySpec::new(DType::Int32, Grid::new(&[6], &[6]).unwrap())).unwrap();
    let chunk = [0].as_slice().into();
    let elements = Elements::fixed((0..6_i32).flat_map(i32::to_le_bytes).collect::<Vec<u8>>());
    array.write(&chunk, array.encode(&chunk, &elements).unwrap()).unwrap();
    sink.commit().unwrap();
}

fn syncs(trace: &Trace) -> usize {
    let is_sync = |step: &&Step| matches!(step, Step::Sync(_) | Step::SyncTree(_) | Step::SyncFolder(_));
    trace.steps.iter().filter(is_sync).count()
}

const FORMATS: [(Format, &str); 6] = [
    (Format::TET, "x.tet"),
    (Format::HDF5, "x.h5"),
    (Format::ZARR, "x.zarr"),
    (Format::TILEDB, "x.tdb"),
    (Format::NPY, "x.npy"),
    (Format::NPZ, "x.npz"),
];

#[test]
fn every_format_syncs_replacements_and_on_request() {
    for (format, name) in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join(name);
        let ((), trace) = Trace::of(|| make(&target, format, &CreateOptions::default()));
        assert_eq!(syncs(&trace), 0, "{name}: a new target is as durable as a copy");
        assert!(matches!(create(&target, format, &CreateOptions::default()), Err(Error::Exists { .. })));

        let replace = CreateOptions::default().with_replace(true);
        let ((), trace) = Trace::of(|| make(&target, format, &replace));
        assert!(syncs(&trace) > 1, "{name}");
        assert_eq!(trace.violations(false), Vec::<String>::new(), "{name}");

        std::fs::create_dir(folder.path().join("sync")).unwrap();
        let sync = CreateOptions::default().with_sync(true);
        let ((), trace) = Trace::of(|| make(&folder.path().join("sync").join(name), format, &sync));
        assert!(syncs(&trace) > 1, "{name}");
        assert_eq!(trace.violations(true), Vec::<String>::new(), "{name}");
        // Nothing is left beside the targets.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "{name}");
        assert_eq!(std::fs::read_dir(folder.path().join("sync")).unwrap().count(), 1, "{name}");
        assert!(hyperslab::open(&target).is_ok(), "{name}");
    }
}

#[test]
fn conversions_are_durable_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source.npy");
    make(&source, Format::NPY, &CreateOptions::default());
    let store = hyperslab::open(&source).unwrap();
    for sync in [false, true] {
        let options = ConvertOptions::default().with_sync(sync);
        for (format, name) in FORMATS {
            let target = folder.path().join(format!("{sync}-{name}"));
            let (done, trace) =
                Trace::of(|| convert(&store, &target, format, &options, &Progress::default()));
            done.unwrap();
            assert_eq!(syncs(&trace) > 1, sync, "{name}");
            if sync {
                assert_eq!(trace.violations(true), Vec::<String>::new(), "{name}");
            }
        }
        for name in ["x.csv", "x.json", "x.parquet"] {
            let target = folder.path().join(format!("{sync}-{name}"));
            let (done, trace) =
                Trace::of(|| convert_to_rows(&store, &target, &options, &Progress::default()));
            done.unwrap();
            assert_eq!(syncs(&trace), if sync { 2 } else { 0 }, "{name}");
        }
    }
}
