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

const TARGETS: [Target; 20] = [
    ("many.nc", None, 140, 1.0),
    ("field.h5", PLANE, 4, 1.0),
    ("field.h5", SERIES, 135, 3.5),
    ("field.h5", ALL, 55, 47.5),
    // As many as zarr-python takes for consolidated metadata.
    ("many.zarr", None, 4, 0.1),
    ("field.zarr", PLANE, 17, 0.5),
    ("field.zarr", SERIES, 101, 3.1),
    ("field.zarr", ALL, 1601, 48.0),
    ("shards.zarr", PLANE, 5, 0.6),
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
    ("field.h5", None, 4, 1.0),
];

/// Writes the files of the benchmarks.
fn make(folder: &Path) {
    let python = std::env::var("HYPERSLAB_PEERS").expect("HYPERSLAB_PEERS names an interpreter with the peers");
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
        let remote = RemoteOptions::default().with_option("endpoint_url", server.endpoint()).with_anonymous(true);
        let options = OpenOptions::default().with_remote(remote);
        let local = open(bucket.join(file)).unwrap();
        let _ = server.take_log();
        let there = open_with(format!("s3://bucket/{file}"), &options).unwrap();
        match selection {
            None => {
                let (there, here) = (there.catalog().unwrap(), local.catalog().unwrap());
                assert_eq!(there.nodes.len(), here.nodes.len(), "{file}");
            }
            Some(selection) => {
                let found = read(&there, selection);
                let log = server.take_log();
                assert_eq!(found, read(&local, selection), "{file} {selection}");
                let bytes: u64 = log.iter().map(|answered| answered.bytes).sum();
                let megabytes = bytes as f64 / 1e6;
                fits &= log.len() <= most_requests && megabytes <= most_megabytes;
                let (requests, selection) = (log.len(), selection);
                lines += &format!(
                    "{file} {selection}: {requests} of {most_requests} requests, {megabytes:.2} of {most_megabytes} MB\n"
                );
                continue;
            }
        }
        let log = server.take_log();
        let megabytes = log.iter().map(|answered| answered.bytes).sum::<u64>() as f64 / 1e6;
        fits &= log.len() <= most_requests && megabytes <= most_megabytes;
        lines += &format!(
            "{file}, list: {} of {most_requests} requests, {megabytes:.2} of {most_megabytes} MB\n",
            log.len()
        );
    }
    assert!(fits, "{lines}");
    println!("{lines}");
}
