//! `.tet`: full reads, boxes, opening a large index.

use std::hint::black_box;
use std::path::Path;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::driver::Buffer;
use hyperslab::{Filter, Format, Selection, export};
use rayon::prelude::*;

use crate::data;
use crate::harness::{Bench, Outcome, median, timed};
use crate::peers;
use crate::reads::{array, box_selections};

/// The cases of this module.
const LINES: [&str; 5] = ["tet raw full", "tet raw view", "tet raw boxes", "tet zstd full", "tet open"];

pub(crate) fn run(bench: &mut Bench) -> Outcome {
    if !LINES.iter().any(|line| bench.wants(line)) {
        return Ok(());
    }
    let bytes = bench.bytes;
    let source = bench.file("field.npy", |path| data::write_npy(bytes, path))?;
    let raw = bench.file("raw.tet", |path| make(&source, path, None))?;
    let zstd = bench.file("zstd.tet", |path| make(&source, path, Some(3)))?;
    if bench.wants("tet raw full") {
        full(bench, &raw)?;
    }
    if bench.wants("tet raw view") {
        view(bench, &source)?;
    }
    if bench.wants("tet raw boxes") {
        boxes(bench, &raw, &source)?;
    }
    if bench.wants("tet zstd full") {
        compressed(bench, &zstd)?;
    }
    if bench.wants("tet open") {
        open(bench)?;
    }
    Ok(())
}

fn make(source: &Path, path: &Path, level: Option<i64>) -> Outcome {
    let options = ConvertOptions::default().with_chunk_shape(data::CHUNK.to_vec()).with_filters(
        level.map(|level| Filter::new("zstd").with("level", level)).into_iter().collect::<Vec<_>>(),
    );
    convert(&hyperslab::open(source)?, path, Format::TET, &options, &Progress::default())?;
    Ok(())
}

/// A full read into a new buffer and into a reused one, compared with copying the same bytes.
fn full(bench: &mut Bench, raw: &Path) -> Outcome {
    let reader = array(raw)?;
    let all = Selection::all();
    let ours = timed("hyperslab", || {
        black_box(reader.read(&all)?);
        Ok(())
    })?;
    let bytes = bench.bytes as usize;
    let source = data::field(bench.bytes);
    let copy = timed("memory copy", || {
        let mut target = Buffer::zeroed(bytes)?;
        target.as_mut_slice().copy_from_slice(&source);
        black_box(&target);
        Ok(())
    })?;
    let tet_py = peers::timed(bench, "tet-py", "tet_full", raw)?;
    bench.line("tet raw full read, new buffer", [ours, copy].into_iter().chain(tet_py), "");
    let mut reused = Buffer::zeroed(bytes)?;
    let ours = timed("hyperslab", || Ok(reader.read_into(&all, reused.as_mut_slice())?))?;
    let mut target = Buffer::zeroed(bytes)?;
    let copy = timed("memory copy", || {
        target.as_mut_slice().copy_from_slice(&source);
        black_box(&target);
        Ok(())
    })?;
    bench.line("tet raw full read, reused buffer", [ours, copy], "");
    Ok(())
}

/// A contiguous selection is a view, so its cost does not depend on its size.
fn view(bench: &mut Bench, npy: &Path) -> Outcome {
    let path = bench.file("planes.tet", |path| {
        let shape = data::shape(std::fs::metadata(npy)?.len());
        let options = ConvertOptions::default().with_chunk_shape(vec![1, shape[1], shape[2]]);
        convert(&hyperslab::open(npy)?, path, Format::TET, &options, &Progress::default())?;
        Ok(())
    })?;
    let reader = array(&path)?;
    for (planes, selection) in [(1, "[3:4]"), (64, "[3:67]")] {
        let selection: Selection = selection.parse()?;
        let ours = timed("hyperslab", || {
            black_box(reader.read(&selection)?);
            Ok(())
        })?;
        bench.line(&format!("tet raw view of {planes} MiB, no copy"), [ours], "");
    }
    Ok(())
}

fn boxes(bench: &mut Bench, raw: &Path, npy: &Path) -> Outcome {
    let reader = array(raw)?;
    let selections = box_selections(&reader)?;
    let ours = timed("hyperslab", || {
        for selection in &selections {
            black_box(reader.read(selection)?);
        }
        Ok(())
    })?;
    let tet_py = peers::timed(bench, "tet-py", "tet_boxes", raw)?;
    let numpy = peers::timed(bench, "NumPy over a memory map", "npy_boxes", npy)?;
    bench.line("tet raw 100 boxes of 32³", [ours].into_iter().chain(tet_py).chain(numpy), "");
    Ok(())
}

/// Two threads, compared with one that decodes the same frames.
fn compressed(bench: &mut Bench, zstd: &Path) -> Outcome {
    let reader = array(zstd)?;
    let all = Selection::all();
    let mut reused = Buffer::zeroed(bench.bytes as usize)?;
    let ours = timed("hyperslab", || Ok(reader.read_into(&all, reused.as_mut_slice())?))?;
    let mut frames = Vec::new();
    reader.inner().visit_chunks(&mut |coord, reference| {
        let size = reader.schema().decoded_bytes(&coord).unwrap_or(0);
        frames.push((
            size,
            hyperslab::driver::fetch(&**reader.inner(), &reference.spans().collect::<Vec<_>>())?.remove(0),
        ));
        Ok(std::ops::ControlFlow::Continue(()))
    })?;
    let largest = frames.iter().map(|(size, _)| *size).max().unwrap_or(0);
    let mut scratch = vec![0; largest];
    let single = timed("one thread, decoding only", || {
        for (size, frame) in &frames {
            hyperslab_codec::zstd::decode(frame, &mut scratch[..*size])?;
        }
        Ok(())
    })?;
    let all_threads = timed("all threads, decoding only", || {
        frames.par_iter().try_for_each_init(
            || vec![0; largest],
            |scratch, (size, frame)| hyperslab_codec::zstd::decode(frame, &mut scratch[..*size]),
        )?;
        Ok(())
    })?;
    let threads = format!("{} threads", rayon::current_num_threads());
    bench.line("tet zstd full read", [ours, single, all_threads], &threads);
    Ok(())
}

/// Opens a file with a million index rows, and reads one chunk.
fn open(bench: &mut Bench) -> Outcome {
    const ROWS: u64 = 1_000_000;
    let path = bench.file("million.tet", |path| {
        let values = hyperslab::Values::new(
            hyperslab::DType::UInt8,
            &[ROWS],
            hyperslab::Elements::fixed(vec![7; ROWS as usize]),
        )?;
        let npy = path.with_extension("npy");
        export::write(&values, &npy, true)?;
        let options = ConvertOptions::default().with_chunk_shape(vec![1]);
        convert(&hyperslab::open(&npy)?, path, Format::TET, &options, &Progress::default())?;
        Ok(())
    })?;
    let seconds = median(|| {
        black_box(hyperslab::open(&path)?);
        Ok(())
    })?;
    let note = format!("{:.0} ns a row", seconds * 1e9 / ROWS as f64);
    bench.line("tet open, 1,000,000 rows", [("hyperslab".to_owned(), seconds)], &note);
    let reader = array(&path)?;
    let one: Selection = "[777777:777778]".parse()?;
    let read = timed("hyperslab", || {
        black_box(reader.read(&one)?);
        Ok(())
    })?;
    bench.line("tet one chunk of 1,000,000", [read], "");
    Ok(())
}
