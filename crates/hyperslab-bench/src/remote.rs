//! Stores behind a server with 30 ms of latency and 100 MB/s per connection, compared with the peers' remote readers.
//!
//! Every run opens the store again. The note gives the requests and bytes of one run per contender.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::{Format, OpenOptions, OpenStore, RemoteOptions, Selection};
use hyperslab_testing::{Behaviour, WebServer};

use crate::harness::{Bench, OURS, Outcome, RUNS, timed};
use crate::peers;

const SCRIPT: &str = "remote_peer.py";
/// The served folder, which is also the name of the bucket.
const BUCKET: &str = "remote";

/// A peer's name, and the prefix of its cases in `remote_peer.py`.
type Peer = (&'static str, &'static str);

/// The stores, and the peers that read them.
const STORES: [(&str, &str, &[Peer]); 8] = [
    ("HDF5", "field.h5", &[("h5py, 8 MiB blocks", "h5py")]),
    ("Zarr", "field.zarr", &[("zarr-python, obstore", "zarr"), ("tensorstore", "tensorstore")]),
    ("sharded Zarr", "shards.zarr", &[("zarr-python, obstore", "zarr"), ("tensorstore", "tensorstore")]),
    ("TileDB", "field.tiledb", &[("tiledb-py", "tiledb")]),
    ("tet", "field.tet", &[]),
    ("NetCDF-4", "many.nc", &[("xarray, h5netcdf, 8 MiB blocks", "xarray")]),
    ("Zarr", "many.zarr", &[("zarr-python, obstore", "zarr")]),
    ("tet", "many.tet", &[]),
];

/// The reads: the case, the case in the script, and the selection. Without a selection, the nodes are listed.
const READS: [(&str, &str, Option<&str>); 4] = [
    ("list", "list", None),
    ("a plane", "plane", Some("[50]")),
    ("a series", "series", Some("[:, 100, 200]")),
    ("all", "all", Some("[:]")),
];

pub(crate) fn run(bench: &mut Bench) -> Outcome {
    let lines = || {
        STORES.iter().flat_map(|(kind, file, peers)| {
            let reads =
                READS.iter().filter(move |(_, case, _)| file.starts_with("many") == (*case == "list"));
            reads.map(move |(what, case, selection)| {
                (format!("remote {kind}: {what}"), *file, *peers, *case, *selection)
            })
        })
    };
    if !lines().any(|(line, ..)| bench.wants(&line)) {
        return Ok(());
    }
    let folder = bench.files.join("served").join(BUCKET);
    if !folder.join("many.tet").exists() {
        std::fs::create_dir_all(&folder)?;
        peers::make_in(bench, SCRIPT, "make", [&folder])?;
        for (from, to, format) in [
            ("field.zarr", "field.tet", Format::TET),
            ("many.nc", "many.zarr", Format::ZARR),
            ("many.nc", "many.tet", Format::TET),
        ] {
            let (source, options) =
                (hyperslab::open(folder.join(from))?, ConvertOptions::default().with_replace(true));
            convert(&source, &folder.join(to), format, &options, &Progress::default())?;
        }
    }
    let server = WebServer::start(folder.parent().unwrap_or(&folder))?;
    let (latency, bandwidth) = (Duration::from_millis(30), 100_000_000);
    server.behave(Behaviour { latency, bandwidth, ..Behaviour::default() });
    for (line, file, others, case, selection) in lines() {
        if !bench.wants(&line) {
            continue;
        }
        let mut notes = Vec::new();
        let mut note = |name: &str, runs: usize| {
            let log = server.take_log();
            let bytes: u64 = log.iter().map(|answered| answered.bytes).sum();
            let (requests, megabytes) = (log.len() / runs, bytes as f64 / runs as f64 / 1e6);
            notes.push(format!("{name}: {requests} requests, {megabytes:.2} MB"));
        };
        let _ = server.take_log();
        let selection: Option<Selection> = selection.map(str::parse).transpose()?;
        let mut times = vec![timed(OURS, || read(&server, file, selection.as_ref()))?];
        note(OURS, RUNS + 1);
        for (name, prefix) in others {
            let case = format!("{prefix}_{case}");
            let arguments = [server.endpoint(), BUCKET.to_owned(), file.to_owned()];
            let Some(time) = peers::timed_in(bench, SCRIPT, name, &case, arguments)? else { continue };
            times.push(time);
            note(name, RUNS + 1);
        }
        bench.line(&line, times, &notes.join("; "));
    }
    Ok(())
}

fn open(server: &WebServer, file: &str) -> Outcome<OpenStore> {
    let remote = RemoteOptions::default().with_option("endpoint_url", server.endpoint()).with_anonymous(true);
    let options = OpenOptions::default().with_remote(remote);
    Ok(hyperslab::open_with(Path::new(&format!("s3://{BUCKET}/{file}")), &options)?)
}

fn read(server: &WebServer, file: &str, selection: Option<&Selection>) -> Outcome {
    let store = open(server, file)?;
    match selection {
        None => drop(black_box(store.catalog()?)),
        Some(selection) => drop(black_box(store.array(&store.only_node()?)?.read(selection)?)),
    }
    Ok(())
}
