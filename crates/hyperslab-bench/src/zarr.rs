//! Zarr stores written by zarr-python, read and written, compared with zarr-python, tensorstore and the zarrs crate.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::{Filter, Format, Selection};

use crate::data;
use crate::harness::{Bench, Outcome, clear, timed, timed_prepared};
use crate::peers;
use crate::reads::{array, box_selections};

/// Not `zarr.py`, which would shadow the library in every other script.
const SCRIPT: &str = "zarr_peer.py";
/// Cells per axis of a shard.
const SHARD: u64 = 256;

/// The stores: the case, and the kind in `zarr_peer.py`.
const KINDS: [(&str, &str); 4] = [
    ("zarr raw", "raw"),
    ("zarr zstd-3", "zstd"),
    ("zarr sharded raw", "shards_raw"),
    ("zarr sharded zstd-3", "shards_zstd"),
];

pub(crate) fn run(bench: &mut Bench) -> Outcome {
    let bytes = bench.bytes;
    for (line, kind) in KINDS {
        let lines = ["full read", "100 boxes of 32³", "write"].map(|what| format!("{line} {what}"));
        if !lines.iter().any(|line| bench.wants(line)) {
            continue;
        }
        let source = bench.file("field.npy", |path| data::write_npy(bytes, path))?;
        let file = bench.file(&format!("zarr_{kind}"), |path| {
            peers::run(bench, SCRIPT, "make", &[&source, path, Path::new(kind)]).map(|_| ())
        })?;
        if bench.wants(&lines[0]) {
            full(bench, &lines[0], &file)?;
        }
        if bench.wants(&lines[1]) {
            boxes(bench, &lines[1], &file)?;
        }
        if bench.wants(&lines[2]) {
            write(bench, &lines[2], kind, &source, &file)?;
        }
    }
    Ok(())
}

/// The Python peers, each timed in its own process.
fn python(bench: &Bench, case: &str, arguments: &[&Path]) -> Outcome<Vec<(String, f64)>> {
    let mut times = Vec::new();
    if bench.python.is_some() {
        for (name, prefix) in [("zarr-python", "python"), ("tensorstore", "tensorstore")] {
            let seconds = peers::run(bench, SCRIPT, &format!("{prefix}_{case}"), arguments)?;
            times.push((name.to_owned(), seconds.trim().parse()?));
        }
    }
    Ok(times)
}

fn full(bench: &mut Bench, line: &str, file: &Path) -> Outcome {
    let reader = array(file)?;
    let all = Selection::all();
    let mut times = vec![timed("hyperslab", || {
        black_box(reader.read(&all)?);
        Ok(())
    })?];
    times.extend(python(bench, "full", &[file])?);
    #[cfg(feature = "crates")]
    times.push(oxide::full(file)?);
    bench.line(line, times, "");
    Ok(())
}

fn boxes(bench: &mut Bench, line: &str, file: &Path) -> Outcome {
    let reader = array(file)?;
    let selections = box_selections(&reader)?;
    let mut times = vec![timed("hyperslab", || {
        for selection in &selections {
            black_box(reader.read(selection)?);
        }
        Ok(())
    })?];
    times.extend(python(bench, "boxes", &[file])?);
    #[cfg(feature = "crates")]
    times.push(oxide::boxes(file, &data::boxes(reader.schema().shape()))?);
    bench.line(line, times, "");
    Ok(())
}

/// Writes a field from memory, or from the page cache, to a new store.
fn write(bench: &mut Bench, line: &str, kind: &str, source: &Path, file: &Path) -> Outcome {
    let target: PathBuf = bench.files.join("zarr-written");
    let level = kind.contains("zstd").then(|| Filter::new("zstd").with("level", 3));
    let options = ConvertOptions::default()
        .with_chunk_shape(data::CHUNK.to_vec())
        .with_shard_shape(kind.contains("shards").then(|| vec![SHARD; 3]))
        .with_filters(level.into_iter().collect::<Vec<_>>());
    let field = hyperslab::open(source)?;
    let mut times = vec![timed_prepared(
        "hyperslab",
        || clear(&target),
        || {
            convert(&field, &target, Format::ZARR, &options, &Progress::default())?;
            Ok(())
        },
    )?];
    clear(&target)?;
    times.extend(python(bench, "write", &[source, &target, Path::new(kind)])?);
    #[cfg(feature = "crates")]
    times.push(oxide::write(source, file, &target)?);
    #[cfg(not(feature = "crates"))]
    let _ = file;
    clear(&target)?;
    bench.line(line, times, "");
    Ok(())
}

/// The zarrs crate.
#[cfg(feature = "crates")]
mod oxide {
    use std::hint::black_box;
    use std::path::Path;
    use std::sync::Arc;

    use zarrs::array::{Array, ArraySubset};
    use zarrs::filesystem::FilesystemStore;

    use crate::data::BOX;
    use crate::harness::{Outcome, clear, timed, timed_prepared};

    const NAME: &str = "zarrs";

    fn open(path: &Path) -> Outcome<Array<FilesystemStore>> {
        Ok(Array::open(Arc::new(FilesystemStore::new(path)?), "/")?)
    }

    pub(super) fn full(path: &Path) -> Outcome<(String, f64)> {
        let array = open(path)?;
        let all = array.subset_all();
        timed(NAME, || {
            black_box(array.retrieve_array_subset::<Vec<f32>>(&all)?);
            Ok(())
        })
    }

    pub(super) fn boxes(path: &Path, starts: &[Vec<u64>]) -> Outcome<(String, f64)> {
        let array = open(path)?;
        let of = |start: &Vec<u64>| {
            let ranges: Vec<_> = start.iter().map(|start| *start..*start + BOX).collect();
            ArraySubset::new_with_ranges(&ranges)
        };
        let boxes: Vec<ArraySubset> = starts.iter().map(of).collect();
        timed(NAME, || {
            for one in &boxes {
                black_box(array.retrieve_array_subset::<Vec<f32>>(one)?);
            }
            Ok(())
        })
    }

    /// Writes to a new store with the document of an existing one.
    pub(super) fn write(source: &Path, like: &Path, target: &Path) -> Outcome<(String, f64)> {
        let values = crate::reads::array(source)?.read(&hyperslab::Selection::all())?;
        let field: Vec<f32> = values.as_slice::<f32>().ok_or("float32")?.to_vec();
        timed_prepared(
            NAME,
            || clear(target),
            || {
                std::fs::create_dir_all(target)?;
                std::fs::copy(like.join("zarr.json"), target.join("zarr.json"))?;
                let array = open(target)?;
                array.store_array_subset(&array.subset_all(), &field[..])?;
                Ok(())
            },
        )
    }
}
