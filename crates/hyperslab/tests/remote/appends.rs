//! Appends to stores in a bucket: the result equals an append on disk, and a race is an error.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyperslab::combine::{AppendOptions, CombineOptions, append_along, concat};
use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::diff::{DiffOptions, diff};
use hyperslab::{
    ArraySpec, Attributes, CreateOptions, DType, Elements, Fill, Format, Grid, OpenOptions, Region,
    RegionWriter, RemoteOptions, Result, Values, create, open,
};
use hyperslab_testing::{Behaviour, FaultRule, WebServer, WireFault};

/// Writes a store `/t` with dimensions `time` and `x` and these times, unlimited along `time`.
fn write(path: &Path, times: std::ops::Range<u32>) {
    write_nodes(path, &["/t"], times);
}

/// Like [`write`], with several equal arrays.
fn write_nodes(path: &Path, nodes: &[&str], times: std::ops::Range<u32>) {
    let shape = [u64::from(times.end - times.start), 6];
    let bytes: Vec<u8> = (times.start * 6..times.end * 6).flat_map(u32::to_ne_bytes).collect();
    let values = Values::new(DType::UInt32, &shape, Elements::fixed(bytes)).unwrap();
    let mut sink = create(path, Format::from_extension(path).unwrap(), &CreateOptions::default()).unwrap();
    sink.group("/", &Attributes::new()).unwrap();
    let mut spec = ArraySpec::new(DType::UInt32, Grid::new(&shape, &[2, 3]).unwrap());
    spec.dimensions = vec![Some("time".into()), Some("x".into())];
    spec.max_shape = vec![None, Some(6)];
    for node in nodes {
        let array = RegionWriter::new(sink.array(node, &spec).unwrap(), DType::UInt32, Fill::Zero);
        array.assign(&Region::whole(&shape), &values).unwrap();
        array.finish().unwrap();
    }
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
        self.add_with(more, name, &Progress::default())
    }

    fn add_with(&self, more: &Path, name: &str, progress: &Progress) -> Result<()> {
        let open = OpenOptions::default().with_remote(self.remote());
        let options = AppendOptions::default().with_combine(CombineOptions::default().with_open(open));
        let target = PathBuf::from(format!("s3://bucket/{name}"));
        append_along(&target, &[more.to_owned()], "time", &options, progress).map(drop)
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
        let faults = [
            WireFault::Lost,
            WireFault::Reset,
            WireFault::Status(500),
            WireFault::Error(403, "AccessDenied"),
        ];
        for fault in faults {
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

/// A Zarr store with the arrays `/t` and `/u`, whose documents make each array longer by itself.
struct TwoArrays {
    bucket: Bucket,
    more: PathBuf,
}

const NODES: [&str; 2] = ["/t", "/u"];

impl TwoArrays {
    fn new() -> Self {
        let bucket = Bucket::new();
        let more = bucket.folder.path().join("more.zarr");
        write_nodes(&more, &NODES, 4..6);
        Self { bucket, more }
    }

    /// Writes the store anew and sets the faults.
    fn start(&self, rules: impl IntoIterator<Item = FaultRule>) {
        let path = self.bucket.local("two.zarr");
        let _ = std::fs::remove_dir_all(&path);
        write_nodes(&path, &NODES, 0..4);
        let root = path.join("zarr.json");
        let mut document: serde_json::Value = serde_json::from_slice(&std::fs::read(&root).unwrap()).unwrap();
        document.as_object_mut().unwrap().remove("consolidated_metadata").unwrap();
        std::fs::write(&root, document.to_string()).unwrap();
        self.bucket.server.behave(Behaviour::with_rules(rules));
        let _ = self.bucket.server.take_log();
    }

    fn add(&self) -> Result<()> {
        let added = self.bucket.add(&self.more, "two.zarr");
        self.bucket.server.behave(Behaviour::default());
        added
    }

    /// The lengths of the arrays, whose values must be there.
    fn lengths(&self) -> [u64; 2] {
        let store = open(self.bucket.local("two.zarr")).unwrap();
        NODES.map(|node| {
            let array = store.array(node).unwrap();
            let values = array.read_vec::<u32>(&hyperslab::Selection::all()).unwrap();
            assert!(values.iter().enumerate().all(|(at, value)| at as u32 == *value), "{node} {values:?}");
            array.schema().shape()[0]
        })
    }
}

/// One fault at each request: both arrays grow, or neither.
#[test]
fn arrays_with_their_own_documents_grow_together() {
    let two = TwoArrays::new();
    two.start([]);
    two.add().unwrap();
    assert_eq!(two.lengths(), [6, 6]);
    let requests = two.bucket.server.take_log().len() as u64;
    for fault in [WireFault::Lost, WireFault::Reset, WireFault::Error(403, "AccessDenied")] {
        for number in 0..requests {
            two.start([FaultRule::new("", "", fault).after(number).times(1)]);
            let added = two.add();
            let expected = if added.is_ok() { [6, 6] } else { [4, 4] };
            assert_eq!(two.lengths(), expected, "{fault:?} at {number}: {added:?}");
            assert!(added.is_ok() || matches!(fault, WireFault::Error(..)), "at {number}: {added:?}");
            let _ = std::fs::remove_file(two.bucket.local(".two.zarr.claim"));
        }
    }
}

/// In a store whose listing works, a denied document is that of a node.
#[test]
fn a_denied_node_is_not_missing() {
    let two = TwoArrays::new();
    two.start([FaultRule::new("", "two.zarr/t/zarr.json", WireFault::Error(403, "AccessDenied"))]);
    let options = OpenOptions::default().with_remote(two.bucket.remote());
    let store = hyperslab::open_with("s3://bucket/two.zarr", &options).unwrap();
    let listed = store.catalog().unwrap().to_json().to_string();
    assert!(listed.contains("access denied"), "{listed}");
    let error = store.array("/t").map(drop).unwrap_err().to_string();
    assert!(error.contains("access denied"), "{error}");
}

/// If a change can neither be completed nor undone, nothing that may be visible is removed, and the error says what
/// happened.
#[test]
fn an_append_that_cannot_be_undone_is_reported() {
    let two = TwoArrays::new();
    let denied = WireFault::Error(403, "AccessDenied");
    // The second document is denied, and so is the restoration of the first.
    two.start([
        FaultRule::new("PUT", "two.zarr/u/zarr.json", denied),
        FaultRule::new("PUT", "two.zarr/t/zarr.json", denied).after(1),
    ]);
    let error = two.add().unwrap_err().to_string();
    assert!(error.contains("t/zarr.json changed and could not be restored"), "{error}");
    assert_eq!(two.lengths(), [6, 4]);
    // The document was put, but no answer says so.
    two.start([
        FaultRule::new("PUT", "two.zarr/u/zarr.json", WireFault::Lost),
        FaultRule::new("HEAD", "two.zarr/u/zarr.json", denied),
    ]);
    let error = two.add().unwrap_err().to_string();
    assert!(error.contains("t/zarr.json changed, and it is unknown whether u/zarr.json changed"), "{error}");
    assert_eq!(two.lengths(), [6, 6]);
    // No answer says that the commit of a fragment was put: the fragment stays.
    let bucket = &two.bucket;
    let more = bucket.folder.path().join("more.tiledb");
    write(&bucket.local("x.tiledb"), 0..4);
    write(&more, 4..6);
    bucket.server.behave(Behaviour::with_rules([
        FaultRule::new("PUT", "__commits", WireFault::Lost),
        FaultRule::new("HEAD", "__commits", denied),
    ]));
    let error = bucket.add(&more, "x.tiledb").unwrap_err().to_string();
    assert!(error.contains("it is unknown whether"), "{error}");
    bucket.check("x.tiledb");
    bucket.check_clean();
}

/// A request to stop is obeyed while the server does not answer the claim. The claim that it has taken is removed.
#[test]
fn waiting_for_the_claim_can_be_stopped() {
    let bucket = Bucket::new();
    let more = bucket.folder.path().join("more.zarr");
    write(&bucket.local("stop.zarr"), 0..4);
    write(&more, 4..6);
    bucket.server.behave(Behaviour::with_rules([FaultRule::new("PUT", ".claim", WireFault::Silence)]));
    let progress = Progress::default();
    let added = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !bucket.local(".stop.zarr.claim").exists() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            progress.stop.store(true, Ordering::Relaxed);
        });
        bucket.add_with(&more, "stop.zarr", &progress)
    });
    assert!(matches!(added, Err(hyperslab::Error::Cancelled)), "{added:?}");
    assert_eq!(bucket.check("stop.zarr"), 4);
    bucket.check_clean();
}

/// Joined stores are named without the secrets of their URLs, in data and in messages.
#[test]
fn joined_stores_are_named_without_secrets() {
    let bucket = Bucket::new();
    for (name, times) in [("a.h5", 0..3), ("b.h5", 3..5)] {
        write(&bucket.local(name), times);
    }
    let secret = |name: &str| PathBuf::from(bucket.server.url(&format!("bucket/{name}?X-Signature=hush")));
    let target = bucket.folder.path().join("joined.zarr");
    let (combining, options) = (CombineOptions::default(), ConvertOptions::default().with_provenance(true));
    let join = |names: [&str; 2], dimension: &str| {
        let target = (target.as_path(), Format::ZARR);
        concat(&names.map(secret), dimension, target, &combining, &options, &Progress::default())
    };
    join(["a.h5", "b.h5"], "time").unwrap();
    let catalog = open(&target).unwrap().catalog().unwrap().to_json().to_string();
    assert!(catalog.contains("hdf5 a.h5") && !catalog.contains("hush"), "{catalog}");
    let error = join(["a.h5", "b.h5"], "x").unwrap_err().to_string();
    assert!(error.contains("bucket/b.h5") && !error.contains("hush"), "{error}");
    let error = append_along(
        &secret("a.h5"),
        &[secret("a.h5")],
        "time",
        &AppendOptions::default(),
        &Progress::default(),
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("a.h5") && !error.contains("hush"), "{error}");
}
