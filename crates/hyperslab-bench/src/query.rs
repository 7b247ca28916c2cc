//! Folds of whole arrays, compared with NumPy on an array in memory, with decoding alone, and with the formats' own
//! libraries.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::query::{Operation, Query};
use hyperslab::{ArrayReader, Filter, Format};
use rayon::prelude::*;

use crate::data;
use crate::harness::{Bench, OURS, Outcome, timed, timed_in_turn};
use crate::peers::{self, timed_in};
use crate::reads::array;

/// The script of the peers.
const SCRIPT: &str = "query.py";
/// The memory limit for a fold.
const MEMORY: u64 = 256 << 20;
/// The queried files: the name of the format, of the raw file, and of the compressed file.
const FILES: [(&str, &str, &str); 4] = [
    ("tet", "raw.tet", "zstd.tet"),
    ("hdf5", "hdf5_raw", "hdf5_gzip"),
    ("tiledb", "tiledb-raw", "tiledb-zstd"),
    ("zarr", "zarr_raw", "zarr_zstd"),
];
/// 65,536 chunks in 16 MiB.
const TINY_SHAPE: [u64; 3] = [256, 128, 128];
const TINY_CHUNK: [u64; 3] = [4, 4, 4];

pub(crate) fn run(bench: &mut Bench) -> Outcome {
    for (format, raw, compressed) in FILES {
        let line = format!("query {format} raw");
        if ["mean", "sum", "mean over axis 0", "mean over axis 1", "mean over axis 2"]
            .iter()
            .any(|what| bench.wants(&format!("{line} {what}")))
        {
            let file = file(bench, raw)?;
            uncompressed(bench, &line, format, &file)?;
        }
        let line = format!("query {format} compressed mean");
        if bench.wants(&line) {
            let file = file(bench, compressed)?;
            decoded(bench, &line, format, &file)?;
        }
        let line = format!("query {format} 65,536 chunks mean");
        if bench.wants(&line) {
            tiny(bench, &line, format)?;
        }
    }
    Ok(())
}

/// One of the field's files, created if it is missing.
pub(crate) fn file(bench: &Bench, name: &str) -> Outcome<PathBuf> {
    let bytes = bench.bytes;
    let source = bench.file("field.npy", |path| data::write_npy(bytes, path))?;
    bench.file(name, |path| match name.strip_suffix(".tet") {
        Some(kind) => {
            let filters = if kind == "raw" { vec![] } else { vec![Filter::new("zstd").with("level", 3)] };
            chunked(&source, path, Format::TET, &data::CHUNK, filters)
        }
        None => match (name.strip_prefix("tiledb-"), name.strip_prefix("zarr_")) {
            (Some(filters), _) => {
                let arguments = [source.as_os_str(), path.as_os_str(), filters.as_ref()];
                peers::make_in(bench, "tiledb_peer.py", "make_dense", arguments)
            }
            (None, Some(kind)) => {
                let arguments = [source.as_os_str(), path.as_os_str(), kind.as_ref()];
                peers::make_in(bench, "zarr_peer.py", "make", arguments)
            }
            (None, None) => peers::make_from(bench, &format!("make_{name}"), &source, path),
        },
    })
}

fn chunked(source: &Path, path: &Path, format: Format, chunks: &[u64], filters: Vec<Filter>) -> Outcome {
    // 65,536 objects of 256 bytes are not a realistic store.
    let shards = (chunks == TINY_CHUNK).then(|| vec![64]);
    let options = ConvertOptions::default()
        .with_chunk_shape(chunks.to_vec())
        .with_filters(filters)
        .with_shard_shape(shards);
    convert(&hyperslab::open(source)?, path, format, &options, &Progress::default())?;
    Ok(())
}

/// Our time for a query, and the peak of private memory.
fn ours(reader: &ArrayReader, query: &Query) -> Outcome<((String, f64), String)> {
    let watch = crate::memory::Watch::start();
    let time = timed(OURS, || {
        black_box(query.run(reader)?);
        Ok(())
    })?;
    Ok((time, peak(watch)))
}

/// The peak memory as text.
fn peak(watch: crate::memory::Watch) -> String {
    watch.peak().map_or(String::new(), |bytes| format!("{} MiB of memory", bytes.div_ceil(1 << 20)))
}

fn uncompressed(bench: &mut Bench, line: &str, format: &str, file: &Path) -> Outcome {
    let reader = array(file)?;
    let npy = self::file(bench, "field.npy")?;
    for (what, operation) in [("mean", Operation::Mean), ("sum", Operation::Sum)] {
        let case = format!("{line} {what}");
        if bench.wants(&case) {
            let (ours, note) = ours(&reader, &Query::new(operation).memory(MEMORY))?;
            let numpy = timed_in(bench, SCRIPT, "NumPy sum in memory", "numpy_sum", [&npy])?;
            let owner = owner(bench, format, what, file)?;
            bench.line(&case, [ours].into_iter().chain(numpy).chain(owner), &note);
        }
    }
    for axis in 0..3 {
        let case = format!("{line} mean over axis {axis}");
        if bench.wants(&case) {
            let (ours, note) = ours(&reader, &Query::new(Operation::Mean).over([axis]).memory(MEMORY))?;
            let numpy = timed_in(bench, SCRIPT, "NumPy sum in memory", "numpy_sum", [&npy])?;
            let along = format!("numpy_axis_{axis}");
            let along = timed_in(bench, SCRIPT, "NumPy along the axis in memory", &along, [&npy])?;
            bench.line(&case, [ours].into_iter().chain(numpy).chain(along), &note);
        }
    }
    Ok(())
}

/// The format's own library on the same work.
fn owner(bench: &Bench, format: &str, what: &str, file: &Path) -> Outcome<Option<(String, f64)>> {
    let (name, case) = match format {
        "hdf5" => ("h5py", "hdf5"),
        "tiledb" => ("tiledb-py", "tiledb"),
        "zarr" => ("zarr-python", "zarr"),
        _ => ("tet-py", "tet"),
    };
    timed_in(bench, SCRIPT, name, &format!("{case}_{what}"), [file])
}

/// The mean of compressed chunks, compared with only decoding them on the same threads.
fn decoded(bench: &mut Bench, line: &str, format: &str, file: &Path) -> Outcome {
    let reader = array(file)?;
    let query = Query::new(Operation::Mean).memory(MEMORY);
    let watch = crate::memory::Watch::start();
    query.run(&reader)?;
    let note = peak(watch);
    let array = reader.inner();
    let mut stored = Vec::new();
    array.visit_chunks(&mut |coord, reference| {
        let bytes = hyperslab::driver::fetch(&**array, &reference.spans().collect::<Vec<_>>())?;
        stored.push((coord, reference, bytes));
        Ok(ControlFlow::Continue(()))
    })?;
    let size = |coord: &[u64]| reader.schema().decoded_bytes(coord).unwrap_or(0);
    let largest = stored.iter().map(|(coord, ..)| size(coord)).max().unwrap_or(0);
    let mut mean = || {
        black_box(query.run(&reader)?);
        Ok(())
    };
    let mut decode = || {
        stored.par_iter().with_max_len(1).try_for_each_init(
            || vec![0; largest],
            |scratch, (coord, reference, bytes)| {
                array.decode(coord, reference, bytes, &mut scratch[..size(coord)])
            },
        )?;
        Ok(())
    };
    let times = timed_in_turn([(OURS, &mut mean), ("decoding only, all threads", &mut decode)])?;
    let owner = owner(bench, format, "mean", file)?;
    bench.line(line, times.into_iter().chain(owner), &note);
    Ok(())
}

/// The mean of very many small chunks.
fn tiny(bench: &mut Bench, line: &str, format: &str) -> Outcome {
    let npy = bench.file("tiny.npy", |path| {
        let bytes = TINY_SHAPE.iter().product::<u64>() * 4;
        let values = hyperslab::Values::new(
            hyperslab::DType::Float32,
            &TINY_SHAPE,
            hyperslab::Elements::fixed(data::field(bytes)),
        )?;
        hyperslab::export::write(&values, path, true)?;
        Ok(())
    })?;
    let file = bench.file(&format!("tiny.{format}"), |path| match format {
        "hdf5" => peers::make_in(bench, SCRIPT, "make_tiny_hdf5", [npy.as_path(), path]),
        name => chunked(&npy, path, name.parse()?, &TINY_CHUNK, vec![]),
    })?;
    let reader = array(&file)?;
    let (ours, note) = ours(&reader, &Query::new(Operation::Mean).memory(MEMORY))?;
    let numpy = timed_in(bench, SCRIPT, "NumPy sum in memory", "numpy_sum", [&npy])?;
    let owner = owner(bench, format, "mean", &file)?;
    bench.line(line, [ours].into_iter().chain(numpy).chain(owner), &note);
    Ok(())
}
