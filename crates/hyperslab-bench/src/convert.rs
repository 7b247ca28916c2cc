//! Conversions: stored bytes that go over as they are against copies of the files, other codecs and other chunks against
//! what people do in Python.

use std::path::{Path, PathBuf};

use hyperslab::combine::{CombineOptions, concat};
use hyperslab::convert::{ConvertOptions, ConvertReport, Progress, convert};
use hyperslab::{Filter, Format, OpenOptions};

use crate::harness::{Bench, OURS, Outcome, clear, say, timed_prepared};
use crate::memory::Watch;
use crate::peers::{make_in, timed_in};
use crate::query::file;

/// The script of the peers.
const SCRIPT: &str = "convert.py";

/// Same chunks and same codec: the name of the line, the source, the target.
const STORED: [(&str, &str, Format); 4] = [
    ("convert tet zstd to tet, stored bytes", "zstd.tet", Format::TET),
    ("convert zarr zstd to zarr, stored bytes", "zarr_zstd", Format::ZARR),
    ("convert hdf5 shuffle zstd to zarr, stored bytes", "hdf5_zstd", Format::ZARR),
    ("convert tet zstd to zarr, stored bytes", "zstd.tet", Format::ZARR),
];

/// Files that are joined, with the filters of the source (`None`) or with others.
const JOINED: [(&str, Option<&str>); 2] = [
    ("convert 100 NetCDF files, joined to zarr", None),
    ("convert 100 NetCDF files, joined to zarr zstd-3", Some("zstd:3")),
];

pub(crate) fn run(bench: &mut Bench) -> Outcome {
    for (line, source, format) in STORED {
        if bench.wants(line) {
            stored(bench, line, source, format)?;
        }
    }
    let line = "convert hdf5 shuffle gzip-4 to zarr zstd-3";
    if bench.wants(line) {
        recoded(bench, line)?;
    }
    let line = "convert tet raw 64³ to planes, 512 MiB";
    if bench.wants(line) {
        rechunked(bench, line)?;
    }
    for (line, filters) in JOINED {
        if bench.wants(line) {
            joined(bench, line, filters)?;
        }
    }
    Ok(())
}

/// Converts to a new place.
fn once(source: &Path, target: &Path, format: Format, options: &ConvertOptions) -> Outcome<ConvertReport> {
    // As the command does it: read by position.
    let store = hyperslab::open_with(source, &OpenOptions::default().with_mapped(false))?;
    Ok(convert(&store, target, format, options, &Progress::default())?)
}

fn target_of(bench: &Bench, format: Format) -> PathBuf {
    bench.files.join(format!("converted.{}", format.info().extensions[0]))
}

fn stored(bench: &mut Bench, line: &str, source: &str, format: Format) -> Outcome {
    let source = file(bench, source)?;
    let target = target_of(bench, format);
    let options = ConvertOptions::default();
    let mut copied = 0;
    let ours = timed_prepared(
        OURS,
        || clear(&target),
        || {
            copied = once(&source, &target, format, &options)?.copied_chunks;
            Ok(())
        },
    )?;
    let copy = bench.files.join("copied");
    clear(&target)?;
    let cp = timed_prepared(
        "cp",
        || clear(&copy),
        || {
            let status = std::process::Command::new("cp").arg("-r").args([&source, &copy]).status()?;
            if status.success() { Ok(()) } else { Err("cp failed".into()) }
        },
    )?;
    // A copy that is on disk when it is done, unlike ours and the first.
    let synced = timed_prepared(
        "cp and sync",
        || clear(&copy),
        || {
            let status = std::process::Command::new("cp").arg("-r").args([&source, &copy]).status()?;
            let sync = std::process::Command::new("sync").arg("-f").arg(&copy).status()?;
            if status.success() && sync.success() { Ok(()) } else { Err("cp failed".into()) }
        },
    )?;
    clear(&copy)?;
    bench.line(line, [ours, cp, synced], &format!("{copied} chunks as they were stored"));
    Ok(())
}

/// Everything is decoded and encoded again.
fn recoded(bench: &mut Bench, line: &str) -> Outcome {
    let source = file(bench, "hdf5_gzip")?;
    let target = target_of(bench, Format::ZARR);
    let filters = Some(vec![Filter::new("zstd").with("level", 3)]);
    let options = ConvertOptions::default().with_filters(filters);
    let ours =
        timed_prepared(OURS, || clear(&target), || once(&source, &target, Format::ZARR, &options).map(drop))?;
    clear(&target)?;
    let python = timed_in(bench, SCRIPT, "h5py and zarr-python", "hdf5_to_zarr", [&source, &target])?;
    clear(&target)?;
    let gdal = gdal(&source, &target)?;
    bench.line(line, [ours].into_iter().chain(python).chain(gdal), "");
    Ok(())
}

/// GDAL's translator of multidimensional arrays, where it is installed.
fn gdal(source: &Path, target: &Path) -> Outcome<Option<(String, f64)>> {
    if std::process::Command::new("gdalmdimtranslate").arg("--version").output().is_err() {
        say("gdalmdimtranslate is not installed");
        return Ok(None);
    }
    let time = timed_prepared(
        "gdalmdimtranslate",
        || clear(target),
        || {
            let mut command = std::process::Command::new("gdalmdimtranslate");
            command
                .args(["-of", "Zarr", "-co", "FORMAT=ZARR_V3", "-co", "COMPRESS=ZSTD"])
                .arg(source)
                .arg(target);
            if command.output()?.status.success() { Ok(()) } else { Err("gdalmdimtranslate failed".into()) }
        },
    );
    clear(target)?;
    Ok(time.ok())
}

/// Chunks that cross all source chunks of a slab.
fn rechunked(bench: &mut Bench, line: &str) -> Outcome {
    let source = file(bench, "raw.tet")?;
    let target = target_of(bench, Format::TET);
    let options = ConvertOptions::default().with_chunk_shape(vec![1, 512, 512]).with_memory(512 << 20);
    let watch = Watch::start();
    let ours =
        timed_prepared(OURS, || clear(&target), || once(&source, &target, Format::TET, &options).map(drop))?;
    let peak = watch.peak().unwrap_or(0).div_ceil(1 << 20);
    clear(&target)?;
    let zarr = file(bench, "zarr_raw")?;
    let planes = target_of(bench, Format::ZARR);
    let python =
        timed_in(bench, SCRIPT, "zarr-python, slabs of 64 planes", "zarr_to_planes", [&zarr, &planes])?;
    clear(&planes)?;
    bench.line(line, [ours].into_iter().chain(python), &format!("{peak} MiB of memory"));
    Ok(())
}

/// A month a file, as in the line `tet convert 'data/*.nc' all.zarr --concat time`.
fn joined(bench: &mut Bench, line: &str, filters: Option<&str>) -> Outcome {
    let folder = bench.file("monthly", |path| make_in(bench, SCRIPT, "make_files", [path]))?;
    let target = target_of(bench, Format::ZARR);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<Outcome<_>>()?;
    files.sort();
    let options = ConvertOptions::default().with_filters(filters.map(Filter::parse_list).transpose()?);
    let combining = CombineOptions::default().with_open(OpenOptions::default().with_mapped(false));
    let ours = timed_prepared(
        OURS,
        || clear(&target),
        || {
            let target = (target.as_path(), Format::ZARR);
            concat(&files, "time", target, &combining, &options, &Progress::default())?;
            Ok(())
        },
    )?;
    clear(&target)?;
    let theirs = timed_in(bench, SCRIPT, "xarray", "joined_to_zarr", [&folder, &target])?;
    clear(&target)?;
    bench.line(line, [ours].into_iter().chain(theirs), "");
    Ok(())
}
