//! Appends to stores in a bucket: the result equals an append on disk, and a race is an error.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyperslab::combine::{AppendOptions, CombineOptions, append_along};
use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::diff::{DiffOptions, diff};
use hyperslab::{
    ArraySpec, Attributes, CreateOptions, DType, Elements, Fill, Format, Grid, OpenOptions, Region,
    RegionWriter, RemoteOptions, Result, Values, create, open,
};
use hyperslab_testing::{Behaviour, WebServer, WireFault};

/// Writes a store `/t` with dimensions `time` and `x` and these times, unlimited along `time`.
fn write(path: &Path, times: std::ops::Range<u32>) {
    let shape = [u64::from(times.end - times.start), 6];
    let bytes: Vec<u8> = (times.start * 6..times.end * 6).flat_map(u32::to_ne_bytes).collect();
    let values = Values::new(DType::UInt32, &shape, Elements::fixed(bytes)).unwrap();
    let mut sink = create(path, Format::from_extension(path).unwrap(), &CreateOptions::default()).unwrap();
    sink.group("/", &Attributes::new()).unwrap();
    let mut spec = ArraySpec::new(DType::UInt32, Grid::new(&shape, &[2, 3]).unwrap());
    spec.dimensions = vec![Some("time".into()), Some("x".into())];
    spec.max_shape = vec![None, Some(6)];
    let array = RegionWriter::new(sink.array("/t", &spec).unwrap(), DType::UInt32, Fill::Zero);
    array.assign(&Region::whole(&shape), &values).unwrap();
    array.finish().unwrap();
    drop(array);
    sink.commit().unwrap();
}

const FORMATS: [&str; 4] = ["zarr", "tiledb", "h5", "tet"];

struct Bucket {
    server: WebServer,
    folder: tempfile::TempDir,
}

impl Bucket {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("bucket")).unwrap();
        Self { server: WebServer::start(folder.path()).unwrap(), folder }
    }

    fn remote(&self) -> RemoteOptions {
        RemoteOptions::default()
            .with_option("endpoint_url", self.server.endpoint())
            .with_option("max_retries", "2")
            .with_anonymous(true)
    }

    fn local(&self, name: &str) -> PathBuf {
        self.folder.path().join("bucket").join(name)
    }

    /// Appends a store on disk to one in the bucket.
    fn add(&self, more: &Path, name: &str) -> Result<()> {
        let open = OpenOptions::default().with_remote(self.remote());
        let options = AppendOptions::default().with_combine(CombineOptions::default().with_open(open));
        let target = PathBuf::from(format!("s3://bucket/{name}"));
        append_along(&target, &[more.to_owned()], "time", &options, &Progress::default()).map(drop)
    }

    /// Checks that the values are those of a counter, and returns the length along the first dimension.
    fn check(&self, name: &str) -> u64 {
        let store = open(self.local(name)).unwrap();
        let array = store.array("/t").unwrap();
        let values = array.read_vec::<u32>(&hyperslab::Selection::all()).unwrap();
        assert!(values.iter().enumerate().all(|(at, value)| at as u32 == *value), "{name} {values:?}");
        assert!(store.verify(hyperslab::Depth::Deep).unwrap().ok(), "{name}");
        array.schema().shape()[0]
    }

    /// Checks that nothing is left beside the store.
    fn check_clean(&self) {
        for entry in std::fs::read_dir(self.folder.path().join("bucket")).unwrap() {
            let name = entry.unwrap().file_name();
            assert!(!name.to_string_lossy().starts_with('.'), "{name:?} was left");
        }
    }
}

#[test]
fn stores_in_a_bucket_grow_like_stores_on_disk() {
    let bucket = Bucket::new();
    for ending in FORMATS {
        let (name, more) = (format!("grow.{ending}"), bucket.folder.path().join(format!("more.{ending}")));
        // The old end is inside a chunk.
        write(&bucket.local(&name), 0..5);
        let here = bucket.folder.path().join(format!("here.{ending}"));
        write(&here, 0..5);
        write(&more, 5..9);
        bucket.add(&more, &name).unwrap();
        let none = AppendOptions::default();
        append_along(&here, std::slice::from_ref(&more), "time", &none, &Progress::default()).unwrap();
        assert_eq!(bucket.check(&name), 9);
        let (there, here) = (open(bucket.local(&name)).unwrap(), open(&here).unwrap());
        assert!(diff((&there, "/"), (&here, "/"), &DiffOptions::default()).unwrap().same(), "{name}");
        bucket.check_clean();
    }
}

#[test]
fn nodes_are_added_to_a_store_in_a_bucket() {
    let bucket = Bucket::new();
    let more = bucket.folder.path().join("more.zarr");
    write(&more, 0..3);
    let rename = vec![("/t".to_owned(), "/u".to_owned())];
    let options =
        ConvertOptions::default().with_append(true).with_rename(rename).with_remote(bucket.remote());
    for (name, format) in [("nodes.zarr", Format::ZARR), ("nodes.h5", Format::HDF5)] {
        write(&bucket.local(name), 0..4);
        let target = format!("s3://bucket/{name}");
        convert(&open(&more).unwrap(), Path::new(&target), format, &options, &Progress::default()).unwrap();
        assert_eq!(bucket.check(name), 4);
        let store = open(bucket.local(name)).unwrap();
        assert_eq!(store.array("/u").unwrap().schema().shape(), [3, 6]);
        bucket.check_clean();
    }
}

/// Two writers append to one store: each gets the correct result, and nothing is lost.
#[test]
fn racing_appends_are_errors_and_lose_nothing() {
    let bucket = Arc::new(Bucket::new());
    for ending in FORMATS {
        let (name, more) = (format!("race.{ending}"), bucket.folder.path().join(format!("more.{ending}")));
        write(&more, 4..6);
        let fresh = |bucket: &Bucket| {
            let path = bucket.local(&name);
            let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            write(&path, 0..4);
        };
        fresh(&bucket);
        bucket.server.behave(Behaviour::default());
        let _ = bucket.server.take_log();
        bucket.add(&more, &name).unwrap();
        let requests = bucket.server.take_log().len() as u64;
        let mut refused = 0;
        for number in 0..requests {
            fresh(&bucket);
            let (other, second, again) = (Arc::clone(&bucket), name.clone(), more.clone());
            let done = Arc::new(AtomicBool::new(false));
            let done_there = Arc::clone(&done);
            bucket.server.behave(Behaviour::default());
            bucket.server.before_request(number, move || {
                done_there.store(other.add(&again, &second).is_ok(), Ordering::SeqCst);
            });
            let first = bucket.add(&more, &name).is_ok();
            let added = 2 * (u64::from(first) + u64::from(done.load(Ordering::SeqCst)));
            let store = open(bucket.local(&name)).unwrap();
            let length = store.array("/t").unwrap().schema().shape()[0];
            assert_eq!(length, 4 + added, "{name} at request {number}: {first} {done:?}");
            refused += u64::from(!first || !done.load(Ordering::SeqCst));
            bucket.check_clean();
        }
        assert!(refused > 0, "{name}: no race was noticed");
    }
}

/// A fault at each request of an append: the store is in its old or its new state.
#[test]
fn faults_during_an_append_leave_the_store_intact() {
    let bucket = Bucket::new();
    for ending in FORMATS {
        let (name, more) = (format!("fault.{ending}"), bucket.folder.path().join(format!("more.{ending}")));
        write(&more, 5..9);
        let fresh = || {
            let path = bucket.local(&name);
            let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            write(&path, 0..5);
        };
        fresh();
        bucket.server.behave(Behaviour::default());
        let _ = bucket.server.take_log();
        bucket.add(&more, &name).unwrap();
        let requests = bucket.server.take_log().len() as u64;
        for fault in [WireFault::Lost, WireFault::Status(500), WireFault::Error(403, "AccessDenied")] {
            for number in 0..requests {
                fresh();
                bucket.server.behave(Behaviour::fault_at(number, fault));
                let added = bucket.add(&more, &name);
                bucket.server.behave(Behaviour::default());
                let length = bucket.check(&name);
                let expected = if added.is_ok() { 9 } else { 5 };
                assert_eq!(length, expected, "{name} {fault:?} at {number}: {added:?}");
                assert!(
                    added.is_ok() || matches!(fault, WireFault::Error(..)),
                    "{name} at {number}: {added:?}"
                );
                // A claim that could not be removed stays, and the next writer's error names it.
                for left in std::fs::read_dir(bucket.folder.path().join("bucket")).unwrap() {
                    let left = left.unwrap().path();
                    if left.extension().is_some_and(|ending| ending == "claim") {
                        let error = bucket.add(&more, &name).unwrap_err().to_string();
                        assert!(error.contains(".claim"), "{error}");
                        std::fs::remove_file(left).unwrap();
                    }
                }
            }
        }
    }
}
