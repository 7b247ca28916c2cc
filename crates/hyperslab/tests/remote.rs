//! Stores behind a web server and in a bucket: the same results as on disk, with few requests.

#![cfg(all(feature = "remote", feature = "hdf5", feature = "zarr", feature = "tiledb", feature = "tet"))]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "remote/appends.rs"]
mod appends;
#[path = "remote/faults.rs"]
mod faults;
#[path = "remote/outputs.rs"]
mod outputs;
#[path = "remote/requests.rs"]
mod requests;

use std::path::{Path, PathBuf};

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::diff::{DiffOptions, diff};
use hyperslab::query::{Axis, Operation, Query};
use hyperslab::{
    DType, Depth, Elements, Format, OpenOptions, OpenStore, RemoteOptions, Result, Selection, Values, export,
    open, open_with,
};
use hyperslab_testing::{Behaviour, WebServer};

/// Cells of the array `/x` along each axis, and of a chunk: 8 × 4 × 4 chunks.
const SHAPE: [u64; 3] = [8, 64, 64];
const CHUNK: [u64; 3] = [1, 16, 16];
/// The tested stores, under `bucket/`.
const STORES: [&str; 6] = ["x.h5", "x.zarr", "v2.zarr", "sharded.zarr", "x.tiledb", "x.tet"];

/// The same array in every format, in the folder `bucket`.
fn stores() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("bucket")).unwrap();
    let cells = SHAPE.iter().product::<u64>();
    // Enough noise that compressed chunks are not all alike.
    let cell = |at: u64| ((at.wrapping_mul(2_654_435_761) >> 7) % 1000) as f32 / 8.0;
    let bytes: Vec<u8> = (0..cells).flat_map(|at| cell(at).to_ne_bytes()).collect();
    let values = Values::new(DType::Float32, &SHAPE, Elements::fixed(bytes)).unwrap();
    let source = folder.path().join("x.npy");
    export::write_npy(&values, &mut std::fs::File::create(&source).unwrap()).unwrap();
    for name in STORES {
        let target = folder.path().join("bucket").join(name);
        let mut options = ConvertOptions::default().with_chunk_shape(CHUNK.to_vec());
        if name == "sharded.zarr" {
            options.shard_shape = Some(vec![4, 64, 64]);
        }
        if name == "v2.zarr" {
            options.variant = Format::ZARR.info().variant("zarr2");
        }
        let format = Format::from_extension(&target).unwrap();
        convert(&open(&source).unwrap(), &target, format, &options, &Progress::default()).unwrap();
    }
    folder
}

struct Remote {
    server: WebServer,
    folder: tempfile::TempDir,
}

impl Remote {
    fn new() -> Self {
        let folder = stores();
        Self { server: WebServer::start(folder.path()).unwrap(), folder }
    }

    fn local(&self, name: &str) -> PathBuf {
        self.folder.path().join("bucket").join(name)
    }

    fn http(&self, name: &str) -> Result<OpenStore> {
        open(self.server.url(&format!("bucket/{name}")))
    }

    fn s3(&self, name: &str) -> Result<OpenStore> {
        let remote =
            RemoteOptions::default().with_option("endpoint_url", self.server.endpoint()).with_anonymous(true);
        open_with(format!("s3://bucket/{name}"), &OpenOptions::default().with_remote(remote))
    }

    /// Opens over both protocols. A TileDB array must be listed, which a web server does not support.
    fn both(&self, name: &str) -> Vec<OpenStore> {
        let mut stores = vec![self.s3(name).unwrap()];
        if name != "x.tiledb" {
            stores.push(self.http(name).unwrap());
        }
        stores
    }

    /// Runs `work`; also returns the number of requests, bytes and rounds.
    fn count<T>(&self, work: impl FnOnce() -> T) -> (T, usize, u64) {
        let _ = self.server.take_log();
        let answer = work();
        let log = self.server.take_log();
        (answer, log.len(), log.iter().map(|answered| answered.bytes).sum())
    }
}

fn read(store: &OpenStore, selection: &str) -> Result<Values> {
    let array = store.array(&store.only_node()?)?;
    array.read(&selection.parse::<Selection>()?)
}

#[test]
fn every_format_reads_the_same_from_a_server() {
    let remote = Remote::new();
    for name in STORES {
        let local = open(remote.local(name)).unwrap();
        for store in remote.both(name) {
            assert_eq!(store.format(), local.format());
            for selection in ["[:]", "[3]", "[:, 5, 7]", "[::-2, 10:50:3, 1]", "[7, 63, 63]", "[0:0]"] {
                assert_eq!(
                    read(&store, selection).unwrap(),
                    read(&local, selection).unwrap(),
                    "{name} {selection}"
                );
            }
            let (own, there) = (store.catalog().unwrap(), local.catalog().unwrap());
            let strip = |catalog: &hyperslab::Catalog| {
                let mut json = catalog.to_json();
                json.as_object_mut().unwrap().remove("path");
                json
            };
            if store.path().to_str().unwrap().starts_with("s3") || !name.ends_with("zarr") {
                assert_eq!(strip(&own), strip(&there), "{name}");
            }
            let same = diff((&store, "/"), (&local, "/"), &DiffOptions::default()).unwrap();
            assert!(same.same(), "{name}: {same:?}");
            assert!(store.verify(Depth::Deep).unwrap().ok(), "{name}");
        }
    }
}

#[test]
fn queries_and_conversions_take_a_url() {
    let remote = Remote::new();
    for name in STORES {
        for store in remote.both(name) {
            let node = store.only_node().unwrap();
            let query = Query::new(Operation::Sum);
            let sum = |store: &OpenStore| {
                let array = store.array(&store.only_node().unwrap()).unwrap();
                query.plan(&array).unwrap().run(&array).unwrap()
            };
            assert_eq!(sum(&store), sum(&open(remote.local(name)).unwrap()), "{name} {node}");
            let target = remote.folder.path().join("copy.zarr");
            let options = ConvertOptions::default().with_replace(true);
            convert(&store, &target, Format::ZARR, &options, &Progress::default()).unwrap();
            assert_eq!(read(&open(&target).unwrap(), "[:]").unwrap(), read(&store, "[:]").unwrap(), "{name}");
        }
    }
}

/// Requests to open, then to read one plane (16 chunks), a series (8 chunks) and everything (128 chunks).
#[test]
fn requests_are_few() {
    let remote = Remote::new();
    let expected: [(&str, [usize; 4]); 6] = [
        ("x.h5", [1, 2, 1, 2]),
        ("x.zarr", [1, 16, 8, 128]),
        ("v2.zarr", [5, 16, 8, 128]),
        ("sharded.zarr", [1, 2, 3, 2]),
        ("x.tiledb", [3, 2, 1, 2]),
        ("x.tet", [2, 1, 1, 2]),
    ];
    let mut found = Vec::new();
    for (name, _) in &expected {
        let (store, opened, _) = remote.count(|| remote.s3(name).unwrap());
        let mut counts = vec![opened];
        for selection in ["[3]", "[:, 5, 7]", "[:]"] {
            counts.push(remote.count(|| read(&store, selection).unwrap()).1);
        }
        found.push((*name, <[usize; 4]>::try_from(counts).unwrap()));
    }
    assert_eq!(found, expected);
}

/// A chunk that was never written does not exist, and reads as the fill value.
#[test]
fn a_missing_chunk_is_the_fill_value() {
    let remote = Remote::new();
    for name in ["x.zarr", "v2.zarr"] {
        let array = open(remote.local(name)).unwrap();
        let folder = remote.local(name);
        let node = array.only_node().unwrap();
        let chunk = if name == "v2.zarr" { "3.0.0" } else { "c/3/0/0" };
        std::fs::remove_file(folder.join(&node[1..]).join(chunk)).unwrap();
        for store in remote.both(name) {
            let corner = read(&store, "[3, 0:16, 0:16]").unwrap();
            assert!(corner.as_slice::<f32>().unwrap().iter().all(|cell| *cell == 0.0));
            assert_eq!(
                read(&store, "[3]").unwrap(),
                read(&open(remote.local(name)).unwrap(), "[3]").unwrap()
            );
        }
    }
}

#[test]
fn unsupported_operations_are_named() {
    let remote = Remote::new();
    let error = |result: Result<OpenStore>| result.unwrap_err().to_string();
    assert!(error(remote.http("x.tiledb")).contains("listing"));
    assert!(error(remote.http("none.h5")).contains("not found"));
    assert!(error(remote.s3("none.zarr")).contains("not found"));
    assert!(error(open("s3://bucket/x.zarr")).contains("no credentials"));
    assert!(error(open("ftp://host/x.zarr")).contains("ftp"));
    let store = remote.s3("x.h5").unwrap();
    let target = Path::new("s3://bucket/y.zarr");
    let written = convert(&store, target, Format::ZARR, &ConvertOptions::default(), &Progress::default());
    assert!(written.unwrap_err().to_string().contains("no credentials"));
    remote.server.behave(Behaviour { fail: Some((401, 1000)), ..Behaviour::default() });
    assert!(error(remote.http("x.h5")).contains("refused"));
}

/// Each request of a read fails once: the result is correct after a retry, or there is an error.
#[test]
fn faults_at_any_request_are_survived_or_reported() {
    let remote = Remote::new();
    for name in ["x.h5", "sharded.zarr", "x.tet"] {
        let expected = read(&open(remote.local(name)).unwrap(), "[2]").unwrap();
        for behaviour in [
            Behaviour { fail: Some((503, 1)), ..Behaviour::default() },
            Behaviour { cut: 1, ..Behaviour::default() },
            Behaviour { no_ranges: true, ..Behaviour::default() },
            Behaviour { no_suffix: true, ..Behaviour::default() },
        ] {
            remote.server.behave(behaviour.clone());
            let store = remote.s3(name).unwrap();
            assert_eq!(read(&store, "[2]").unwrap(), expected, "{name} {behaviour:?}");
            remote.server.behave(behaviour.clone());
            assert_eq!(read(&store, "[2]").unwrap(), expected, "{name} {behaviour:?}");
        }
        remote.server.behave(Behaviour::default());
    }
}

/// The requests of a second process that opens a store and finds an array only ask whether anything has changed.
#[test]
fn the_disk_cache_saves_requests() {
    let remote = Remote::new();
    requests::add_stores(&remote);
    let cache = remote.folder.path().join("cache");
    let opened = |name: &str| {
        let options = RemoteOptions::default()
            .with_option("endpoint_url", remote.server.endpoint())
            .with_anonymous(true)
            .with_cache_folder(&cache);
        open_with(format!("s3://bucket/{name}"), &OpenOptions::default().with_remote(options)).unwrap()
    };
    let find = |name: &str| {
        let store = opened(name);
        let nodes = if name == "points.zv" { Vec::new() } else { store.children("/").unwrap() };
        let node = nodes.first().map_or("/", String::as_str);
        format!("{node} {}", store.find(node).unwrap().kind())
    };
    let list = |name: &str| opened(name).catalog().unwrap().to_json();
    // A file and a consolidated document are one request. Zarr v2 may have become v3, which is another, and an array without
    // consolidated metadata has its attributes in a document of their own. For TileDB, two
    // listings remain.
    let expected = [
        ("x.h5", 1),
        ("x.nc", 1),
        ("x.tet", 1),
        ("x.zarr", 1),
        ("sharded.zarr", 1),
        ("v2.zarr", 3),
        ("pair2.zarr", 2),
        ("points.zv", 1),
        ("x.tiledb", 2),
        ("pair.tiledb", 2),
    ];
    let found = expected.map(|(name, _)| {
        let (first, _, _) = remote.count(|| find(name));
        let _ = remote.server.take_log();
        let second = find(name);
        let log = remote.server.take_log();
        assert_eq!(first, second, "{name}");
        (name, log.into_iter().map(|answered| (answered.method, answered.path)).collect::<Vec<_>>())
    });
    let fits = |(found, expected): (&(_, Vec<_>), &(_, usize))| found.1.len() == expected.1;
    assert!(found.iter().zip(&expected).all(fits), "{found:#?}");
    // A listing of everything counts the chunks of Zarr, which takes listings.
    for name in STORES {
        let (first, requests, _) = remote.count(|| list(name));
        let (second, again, _) = remote.count(|| list(name));
        assert_eq!(first, second, "{name}");
        let is_file = !name.ends_with("zarr") && name != "x.tiledb";
        assert!(if is_file { again == 1 } else { again <= requests }, "{name} {requests} {again}");
    }
    // A document that changed is read again.
    let path = remote.local("x.zarr").join("zarr.json");
    let mut document: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    document["attributes"] = serde_json::json!({"new": 1});
    std::fs::write(&path, document.to_string()).unwrap();
    let attributes = hyperslab::edit::attributes_of(&opened("x.zarr"), "/").unwrap();
    assert!(attributes.get("new").is_some(), "{attributes:?}");
    // Changed objects are read again.
    let mut bytes = std::fs::read(remote.local("x.h5")).unwrap();
    bytes.extend_from_slice(b"trailing");
    std::fs::write(remote.local("x.h5"), bytes).unwrap();
    let (_, requests, _) = remote.count(|| list("x.h5"));
    assert!(requests > 1, "{requests}");
    // Values of arrays are not cached on disk.
    let cached: u64 = walk(&cache).iter().map(|path| std::fs::metadata(path).unwrap().len()).sum();
    assert!(cached > 0 && cached < 512 << 10, "{cached}");
}

/// The files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// A read sends the requests that `explain` predicts, in as many rounds.
#[test]
fn explained_requests_match_the_read() {
    let remote = Remote::new();
    for name in STORES {
        for selection in ["[:]", "[3]", "[:, 5, 7]", "[::3, 10:50, 1]", "[0:0]"] {
            // Small memory divides the read into several rounds.
            for memory in [1 << 30, 700 << 10] {
                let meter = hyperslab::Meter::default();
                let options = RemoteOptions::default()
                    .with_option("endpoint_url", remote.server.endpoint())
                    .with_option("merge_gap", "100000")
                    .with_meter(meter.clone())
                    .with_anonymous(true);
                let options = OpenOptions::default().with_remote(options).with_memory(memory);
                let store = open_with(format!("s3://bucket/{name}"), &options).unwrap();
                let array = store.array(&store.only_node().unwrap()).unwrap();
                let selection: Selection = selection.parse().unwrap();
                let explanation = array.explain(&selection).unwrap();
                let before = meter.traffic().rounds;
                let (values, requests, bytes) = remote.count(|| array.read(&selection).unwrap());
                let rounds = meter.traffic().rounds - before;
                let case = format!("{name} {selection:?} {memory}: {explanation:?}");
                assert_eq!((explanation.requests, explanation.rounds), (requests as u64, rounds), "{case}");
                assert_eq!(explanation.shape, values.shape.to_vec());
                if name.contains("zarr") && name != "sharded.zarr" {
                    assert!(explanation.stored_bytes >= bytes, "{case}");
                } else {
                    assert_eq!(explanation.stored_bytes, bytes, "{case}");
                }
            }
        }
    }
    // Of a local file, adjacent ranges count once.
    let store = open(remote.local("x.h5")).unwrap();
    let explanation = store.array(&store.only_node().unwrap()).unwrap().explain(&Selection::all()).unwrap();
    assert_eq!((explanation.chunks, explanation.rounds), (128, 0));
    assert!(explanation.requests <= 128 && explanation.stored_bytes < 140_000, "{explanation:?}");
}

/// A run sends the requests that `explain` predicts.
#[test]
fn explained_requests_match_the_run() {
    let remote = Remote::new();
    for name in STORES {
        for selection in ["[:]", "[3]", "[:, 5, 7]", "[::3, 10:50, 1]"] {
            for over in [vec![Axis::Number(0)], vec![]] {
                // Fix the gap, because measurements between the two would change it.
                let options = RemoteOptions::default()
                    .with_option("endpoint_url", remote.server.endpoint())
                    .with_option("merge_gap", "100000")
                    .with_anonymous(true);
                let options = OpenOptions::default().with_remote(options);
                let store = open_with(format!("s3://bucket/{name}"), &options).unwrap();
                let array = store.array(&store.only_node().unwrap()).unwrap();
                let mut query = Query::new(Operation::Max);
                query.selection = selection.parse().unwrap();
                query.over = over.clone();
                let plan = query.plan(&array).unwrap();
                let explanation = plan.explain(&array).unwrap();
                let (_, requests, bytes) = remote.count(|| plan.run(&array).unwrap());
                assert_eq!(explanation.requests, requests as u64, "{name} {selection} {over:?}");
                assert!(
                    explanation.rounds <= explanation.requests && (explanation.rounds > 0) == (requests > 0)
                );
                // The size of a whole object is only known when it arrives.
                if name.contains("zarr") && name != "sharded.zarr" {
                    assert!(explanation.stored_bytes >= bytes, "{name} {selection}");
                } else {
                    assert_eq!(explanation.stored_bytes, bytes, "{name} {selection} {over:?}");
                }
            }
        }
    }
}
