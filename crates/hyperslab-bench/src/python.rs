//! The Python module against the libraries that own the formats: the time to a NumPy array.
//!
//! All contenders run in Python, in the environment that `HYPERSLAB_PYTHON` names: the one with our wheel in it.

use std::path::{Path, PathBuf};

use crate::harness::{Bench, OURS, Outcome};
use crate::peers::timed_in;
use crate::query::file;

/// The script of all contenders.
const SCRIPT: &str = "python.py";
/// The format, its raw and compressed files, and who else reads it: their names for people and for the script.
const FILES: [(&str, &str, &str, (&str, &str)); 4] = [
    ("tet", "raw.tet", "zstd.tet", ("tet-py", "tet")),
    ("hdf5", "hdf5_raw", "hdf5_gzip", ("h5py", "h5py")),
    ("tiledb", "tiledb-raw", "tiledb-zstd", ("tiledb-py", "tiledb")),
    ("zarr", "zarr_raw", "zarr_zstd", ("zarr-python", "zarr")),
];
const READS: [(&str, &str); 5] = [
    ("full", "full"),
    ("100 boxes", "small_boxes"),
    ("plane, axis 0", "plane_0"),
    ("plane, axis 1", "plane_1"),
    ("plane, axis 2", "plane_2"),
];

pub(crate) fn run(bench: &mut Bench) -> Outcome {
    let Some(python) = std::env::var_os("HYPERSLAB_PYTHON").map(PathBuf::from) else { return Ok(()) };
    let peers = bench.python.replace(python);
    let outcome = all(bench);
    bench.python = peers;
    outcome
}

fn all(bench: &mut Bench) -> Outcome {
    for (format, raw, compressed, peer) in FILES {
        for (kind, name) in [("raw", raw), ("compressed", compressed)] {
            for (what, case) in READS {
                let line = format!("python {format} {kind} {what}");
                if bench.wants(&line) {
                    let path = file(bench, name)?;
                    compare(bench, &line, case, peer, &path)?;
                }
            }
        }
    }
    let h5py = ("h5py", "h5py");
    // Of a compressed array, all of it is decoded: every chunk has some of the indices.
    for (line, name, make) in [
        ("python hdf5 raw 100,000 indices", "line-raw.h5", "make_line"),
        ("python hdf5 compressed 100,000 indices", "line-gzip.h5", "make_line_gzip"),
    ] {
        if bench.wants(line) {
            let path = bench.file(name, |path| crate::peers::make_in(bench, SCRIPT, make, [path]))?;
            compare(bench, line, "listed", h5py, &path)?;
        }
    }
    let line = "python hdf5 compressed 64 random samples";
    if bench.wants(line) {
        let path =
            bench.file("samples.h5", |path| crate::peers::make_in(bench, SCRIPT, "make_samples", [path]))?;
        compare(bench, line, "batches", h5py, &path)?;
    }
    for (line, case) in [
        ("python hdf5 compressed, append one sample of 1,000", "append_many"),
        ("python hdf5 compressed, open and append one sample", "append_each"),
    ] {
        if bench.wants(line) {
            let path = bench.files.join("appended.h5");
            compare(bench, line, case, h5py, &path)?;
            crate::harness::clear(&path)?;
        }
    }
    if bench.wants("python tiny read") {
        let path = file(bench, "hdf5_raw")?;
        compare(bench, "python tiny read", "tiny", h5py, &path)?;
    }
    if bench.wants("python import") {
        compare(bench, "python import, beyond NumPy", "importing", h5py, Path::new(""))?;
    }
    Ok(())
}

fn compare(bench: &mut Bench, line: &str, case: &str, peer: (&str, &str), path: &Path) -> Outcome {
    let path = path.as_os_str();
    let ours = timed_in(bench, SCRIPT, OURS, case, ["hyperslab".as_ref(), path])?;
    let theirs = timed_in(bench, SCRIPT, peer.0, case, [peer.1.as_ref(), path])?;
    bench.line(line, ours.into_iter().chain(theirs), "");
    Ok(())
}
