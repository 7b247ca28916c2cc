//! Writing HDF5 files: a whole field, frame by frame, and very many chunks, compared with h5py and the Rust crates
//! that write HDF5.

use std::path::Path;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::{ArraySpec, ChunkCoord, DType, Elements, Filter, Format, Grid, Sink, Values};
use hyperslab_hdf5::{AppendOptions, Hdf5Append, Hdf5Options, Hdf5Sink};

use crate::data;
use crate::harness::{Bench, OURS, Outcome, timed};
use crate::memory::Watch;
use crate::peers::timed_in;

/// The script of the peers.
const SCRIPT: &str = "hdf5_write.py";
/// The memory limit for writing.
const MEMORY: u64 = 256 << 20;
/// The number of appended frames, the cells of each, and the number of frames per flush.
const FRAMES: u64 = 200_000;
const CELLS: [u64; 2] = [8, 8];
const EVERY: u64 = 1000;
/// Chunks of one element.
const CHUNKS: u64 = 1_000_000;

pub(crate) fn run(bench: &mut Bench) -> Outcome {
    let filters: [(&str, &str, Vec<Filter>); 3] = [
        ("hdf5 write raw", "write_raw", vec![]),
        (
            "hdf5 write shuffle gzip-4",
            "write_gzip",
            vec![Filter::new("shuffle"), Filter::new("gzip").with("level", 4)],
        ),
        (
            "hdf5 write shuffle zstd-3",
            "write_zstd",
            vec![Filter::new("shuffle"), Filter::new("zstd").with("level", 3)],
        ),
    ];
    for (line, case, filters) in filters {
        if bench.wants(line) {
            field(bench, line, case, &filters)?;
        }
    }
    if bench.wants("hdf5 append frames") {
        frames(bench)?;
    }
    if bench.wants("hdf5 write a million chunks") {
        chunks(bench)?;
    }
    Ok(())
}

fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// The field in chunks of 64³.
fn field(bench: &mut Bench, line: &str, case: &str, filters: &[Filter]) -> Outcome {
    let bytes = bench.bytes;
    let source = bench.file("field.npy", |path| data::write_npy(bytes, path))?;
    let target = bench.files.join("written.h5");
    let options = ConvertOptions::default()
        .with_chunk_shape(data::CHUNK.to_vec())
        .with_filters(filters.to_vec())
        .with_replace(true)
        .with_memory(MEMORY);
    let watch = Watch::start();
    let ours = timed(OURS, || {
        // Removing the old file is timed, because h5py truncates it within the timed part.
        let _ = std::fs::remove_file(&target);
        convert(&hyperslab::open(&source)?, &target, Format::HDF5, &options, &Progress::default())?;
        Ok(())
    })?;
    let note = watch.peak().map_or(String::new(), |peak| format!("{} MiB of memory", mebibytes(peak)));
    let files = [source.as_path(), target.as_path()];
    let theirs = timed_in(bench, SCRIPT, "h5py", case, files)?;
    let synced = timed_in(bench, SCRIPT, "h5py, synced", &format!("{case}_synced"), files)?;
    let (crates, crate_notes) = crate::hdf5::writers(bench, case, &source)?;
    let note = format!("{note}{crate_notes}");
    bench.line(line, [ours].into_iter().chain(theirs).chain(synced).chain(crates), &note);
    std::fs::remove_file(&target)?;
    Ok(())
}

/// Creates a dataset without frames.
fn start(path: &Path) -> Outcome {
    let mut options = Hdf5Options::default();
    options.replace = true;
    let mut sink = Box::new(Hdf5Sink::create(path, options)?);
    let mut spec =
        ArraySpec::new(DType::Float32, Grid::new(&[0, CELLS[0], CELLS[1]], &[1, CELLS[0], CELLS[1]])?);
    spec.max_shape[0] = None;
    sink.array("/frames", &spec)?;
    Ok(sink.commit()?)
}

fn frames(bench: &mut Bench) -> Outcome {
    let target = bench.files.join("frames.h5");
    let bytes = vec![7; (CELLS[0] * CELLS[1] * 4) as usize];
    let frame = Values::new(DType::Float32, &CELLS, Elements::fixed(bytes))?;
    let ours = timed(OURS, || {
        start(&target)?;
        let mut file = Hdf5Append::open(&target, AppendOptions::default())?;
        for number in 1..=FRAMES {
            file.append("/frames", &frame)?;
            if number % EVERY == 0 {
                file.flush()?;
            }
        }
        Ok(file.close()?)
    })?;
    let size = std::fs::metadata(&target)?.len();
    let theirs = timed_in(bench, SCRIPT, "h5py", "frames", [&target])?;
    let their_size = std::fs::metadata(&target)?.len();
    let note = format!("{size} bytes, h5py {their_size}; ours is synced at every flush");
    bench.line(
        "hdf5 append frames: 200,000 of one chunk, flushed every 1,000",
        [ours].into_iter().chain(theirs),
        &note,
    );
    std::fs::remove_file(&target)?;
    Ok(())
}

fn chunks(bench: &mut Bench) -> Outcome {
    let target = bench.files.join("chunks.h5");
    let mut options = Hdf5Options::default();
    options.replace = true;
    let ours = timed(OURS, || {
        let mut sink = Box::new(Hdf5Sink::create(&target, options.clone())?);
        let mut spec = ArraySpec::new(DType::UInt8, Grid::new(&[CHUNKS], &[1])?);
        spec.max_shape[0] = None;
        let array = sink.array("/x", &spec)?;
        let element = Elements::fixed(vec![1]);
        for number in 0..CHUNKS {
            let chunk = ChunkCoord::from_slice(&[number]);
            array.write(&chunk, array.encode(&chunk, &element)?)?;
        }
        Ok(sink.commit()?)
    })?;
    let size = std::fs::metadata(&target)?.len();
    let theirs = timed_in(bench, SCRIPT, "h5py, write_direct_chunk", "chunks", [&target])?;
    let their_size = std::fs::metadata(&target)?.len();
    // On both sides, the data take one byte per chunk.
    let note =
        format!("index of {} bytes, libhdf5's has {}", size - CHUNKS, their_size.saturating_sub(CHUNKS));
    bench.line("hdf5 write a million chunks", [ours].into_iter().chain(theirs), &note);
    std::fs::remove_file(&target)?;
    Ok(())
}
