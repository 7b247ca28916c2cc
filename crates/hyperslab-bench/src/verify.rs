//! Deep checks: every chunk is fetched and decoded, which takes as long as reading everything.

use std::hint::black_box;

use hyperslab::driver::Buffer;
use hyperslab::{Depth, OpenOptions, Selection};

use crate::harness::{Bench, OURS, Outcome, timed_in_turn};
use crate::query::file;
use crate::reads::array;

/// The case and the file.
const FILES: [(&str, &str); 8] = [
    ("verify tet raw", "raw.tet"),
    ("verify tet zstd", "zstd.tet"),
    ("verify hdf5 raw", "hdf5_raw"),
    ("verify hdf5 gzip", "hdf5_gzip"),
    ("verify tiledb raw", "tiledb-raw"),
    ("verify tiledb zstd", "tiledb-zstd"),
    ("verify zarr raw", "zarr_raw"),
    ("verify zarr zstd", "zarr_zstd"),
];

pub(crate) fn run(bench: &mut Bench) -> Outcome {
    for (line, name) in FILES {
        let line = format!("{line} --deep");
        if !bench.wants(&line) {
            continue;
        }
        let path = file(bench, name)?;
        let mut verify = || {
            // Not mapped, as in the command.
            let options = OpenOptions::default().with_mapped(false);
            let report = hyperslab::open_with(&path, &options)?.verify(Depth::Deep)?;
            if report.ok() { Ok(()) } else { Err(format!("{report:?}").into()) }
        };
        let mut reused = Buffer::zeroed(usize::try_from(bench.bytes)?)?;
        let all = Selection::all();
        let mut read = || {
            black_box(array(&path)?.read(&all)?);
            Ok(())
        };
        let mut read_into = || Ok(array(&path)?.read_into(&all, reused.as_mut_slice())?);
        let times = timed_in_turn([
            (OURS, &mut verify),
            ("opening and reading", &mut read),
            ("opening and reading into a reused buffer", &mut read_into),
        ])?;
        bench.line(&line, times, "");
    }
    Ok(())
}
