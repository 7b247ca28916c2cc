//! Files that the real libraries wrote, at the size of the benchmarks, behind a server with 30 ms of latency and 100 MB/s per
//! connection: the requests and bytes of opening and reading them stay within the targets.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::{Format, OpenOptions, OpenStore, RemoteOptions, Selection, Values, open, open_with};
use hyperslab_testing::{Behaviour, WebServer};

/// A file, what is read of it, and the most requests and megabytes. Without a selection, the nodes are listed.
type Target = (&'static str, Option<&'static str>, usize, f64);

const PLANE: Option<&str> = Some("[50]");
const SERIES: Option<&str> = Some("[:, 100, 200]");
const ALL: Option<&str> = Some("[:]");

const TARGETS: [Target; 19] = [
    ("many.nc", None, 140, 1.0),
    ("field.h5", PLANE, 4, 1.0),
    ("field.h5", SERIES, 135, 3.5),
    ("field.h5", ALL, 55, 47.5),
    // As many requests as zarr-python takes for consolidated metadata. A listing, which counts the chunks, is among them.
    ("many.zarr", None, 4, 0.3),
    ("field.zarr", PLANE, 17, 0.5),
    ("field.zarr", SERIES, 101, 3.1),
    ("field.zarr", ALL, 1601, 48.0),
    // The inner chunks of zarr-python's shards are in Morton order, so that every second chunk is of the next plane.
    ("shards.zarr", PLANE, 6, 0.85),
    ("shards.zarr", SERIES, 111, 3.2),
    ("shards.zarr", ALL, 12, 48.0),
    ("field.tiledb", PLANE, 12, 0.6),
    ("field.tiledb", SERIES, 120, 3.5),
    ("field.tiledb", ALL, 20, 48.0),
    ("many.tet", None, 3, 1.0),
    ("field.tet", None, 3, 1.0),
    ("field.tet", PLANE, 4, 1.0),
    ("field.tet", SERIES, 103, 4.0),
    ("field.tet", ALL, 12, 48.0),
];

/// Writes the files of the benchmarks.
fn make(folder: &Path) {
    let python =
        std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with the peers");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../hyperslab-bench/remote_peer.py");
    let output = Command::new(python).args([script, "make"]).arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (from, to, format) in [
        ("field.zarr", "field.tet", Format::TET),
        ("many.nc", "many.zarr", Format::ZARR),
        ("many.nc", "many.tet", Format::TET),
    ] {
        let (source, options) = (open(folder.join(from)).unwrap(), ConvertOptions::default());
        convert(&source, &folder.join(to), format, &options, &Progress::default()).unwrap();
    }
}

/// What is found at the server and on disk.
#[derive(Debug, PartialEq)]
enum Found {
    Nodes(usize),
    Values(Values),
}

impl Found {
    fn of_nodes(store: &OpenStore) -> Self {
        Self::Nodes(store.catalog().unwrap().nodes.len())
    }
}

fn read(store: &OpenStore, selection: &str) -> Values {
    let array = store.array(&store.only_node().unwrap()).unwrap();
    array.read(&selection.parse::<Selection>().unwrap()).unwrap()
}

#[test]
fn requests_and_bytes_are_within_the_targets() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = folder.path().join("bucket");
    std::fs::create_dir(&bucket).unwrap();
    make(&bucket);
    let server = WebServer::start(folder.path()).unwrap();
    let (latency, bandwidth) = (Duration::from_millis(30), 100_000_000);
    server.behave(Behaviour { latency, bandwidth, ..Behaviour::default() });
    let mut lines = String::new();
    let mut fits = true;
    for (file, selection, most_requests, most_megabytes) in TARGETS {
        let remote =
            RemoteOptions::default().with_option("endpoint_url", server.endpoint()).with_anonymous(true);
        let options = OpenOptions::default().with_remote(remote);
        let local = open(bucket.join(file)).unwrap();
        let _ = server.take_log();
        let there = open_with(format!("s3://bucket/{file}"), &options).unwrap();
        let (found, expected) = match selection {
            None => (Found::of_nodes(&there), Found::of_nodes(&local)),
            Some(selection) => {
                (Found::Values(read(&there, selection)), Found::Values(read(&local, selection)))
            }
        };
        let log = server.take_log();
        assert_eq!(found, expected, "{file} {selection:?}");
        let megabytes = log.iter().map(|answered| answered.bytes).sum::<u64>() as f64 / 1e6;
        fits &= log.len() <= most_requests && megabytes <= most_megabytes;
        lines += &format!(
            "{file} {}: {} of {most_requests} requests, {megabytes:.2} of {most_megabytes} MB\n",
            selection.unwrap_or("list"),
            log.len()
        );
    }
    assert!(fits, "{lines}");
    println!("{lines}");
}
