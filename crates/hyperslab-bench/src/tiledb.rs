//! TileDB: dense and sparse arrays, many small fragments, compared with the library itself on two cores.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use hyperslab::convert::{ConvertOptions, Progress, convert};
use hyperslab::{Bounds, Elements, Filter, Format, Scan, Selection};
use hyperslab_tiledb::WriteOptions;

use crate::data::{self, BOXES};
use crate::harness::{Bench, OURS, Outcome, clear, say, timed, timed_prepared};
use crate::peers;
use crate::reads::{array, box_selections};

/// Filters by name, with their levels.
type Ours = &'static [(&'static str, Option<i64>)];

/// The dense arrays: the case, the name of the filters in `tiledb_peer.py`, and the same filters for us.
const DENSE: [(&str, &str, Ours); 3] = [
    ("tiledb raw", "raw", &[]),
    ("tiledb zstd-3", "zstd", &[("zstd", Some(3))]),
    ("tiledb byteshuffle zstd-3", "shuffle", &[("byteshuffle", None), ("zstd", Some(3))]),
];
/// The number of points of the sparse array, the side of its square, and the size of the boxes, as in
/// `tiledb_peer.py`.
const POINTS: usize = 5_000_000;
const SIDE: f64 = 1000.0;
const SPARSE_BOX: f64 = 20.0;
/// The number of runs of a case that is prepared again for each run.
const RUNS: usize = 3;
/// The argument with which the benchmark starts itself to consolidate in a separate process, in order to measure its
/// memory.
pub(crate) const CONSOLIDATE: &str = "--consolidate";

pub(crate) fn run(bench: &mut Bench) -> Outcome {
    let bytes = bench.bytes;
    for (line, filters, ours) in DENSE {
        let wanted = ["full read", "100 boxes of 32³", "write"].map(|what| format!("{line} {what}"));
        if !wanted.iter().any(|line| bench.wants(line)) {
            continue;
        }
        let source = bench.file("field.npy", |path| data::write_npy(bytes, path))?;
        let path = bench.file(&format!("tiledb-{filters}"), |path| {
            make(bench, "make_dense", &[source.as_ref(), path, filters.as_ref()])
        })?;
        if bench.wants(&wanted[0]) {
            full(bench, &wanted[0], &path)?;
        }
        if bench.wants(&wanted[1]) {
            boxes(bench, &wanted[1], &path)?;
        }
        if bench.wants(&wanted[2]) {
            write(bench, &wanted[2], &source, filters, ours)?;
        }
    }
    sparse(bench)?;
    fragments(bench)
}

/// Runs a case of `tiledb_peer.py` that creates a file.
fn make(bench: &Bench, case: &str, arguments: &[&Path]) -> Outcome {
    peers::make_in(bench, "tiledb_peer.py", case, arguments)
}

/// The library's median time of a case that also prints its memory in KiB to stderr.
fn peer_with_memory(bench: &Bench, case: &str, arguments: &[&Path]) -> Outcome<Option<((String, f64), u64)>> {
    let Some(python) = &bench.python else { return Ok(None) };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tiledb_peer.py");
    let output = Command::new(python).arg(script).arg(case).args(arguments).output()?;
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let last = stderr.lines().last().unwrap_or_default();
    if !output.status.success() {
        say(&format!("tiledb-py: {case} failed: {last}"));
        return Ok(None);
    }
    let seconds: f64 = String::from_utf8(output.stdout)?.trim().parse()?;
    Ok(Some((("tiledb-py".to_owned(), seconds), last.parse().unwrap_or(0))))
}

fn line(bench: &mut Bench, name: &str, ours: (String, f64), case: &str, arguments: &[&Path]) -> Outcome {
    let theirs = peers::timed_in(bench, "tiledb_peer.py", "tiledb-py", case, arguments)?;
    bench.line(name, [ours].into_iter().chain(theirs), "");
    Ok(())
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) -> Outcome {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Reads into a new buffer each time, as the library does.
fn full(bench: &mut Bench, name: &str, path: &Path) -> Outcome {
    let reader = array(path)?;
    let all = Selection::all();
    let ours = timed("hyperslab", || {
        black_box(reader.read(&all)?);
        Ok(())
    })?;
    line(bench, name, ours, "dense_full", &[path])
}

fn boxes(bench: &mut Bench, name: &str, path: &Path) -> Outcome {
    let reader = array(path)?;
    let selections = box_selections(&reader)?;
    let ours = timed("hyperslab", || {
        for selection in &selections {
            black_box(reader.read(selection)?);
        }
        Ok(())
    })?;
    line(bench, name, ours, "dense_boxes", &[path])
}

fn write(bench: &mut Bench, name: &str, source: &Path, filters: &str, ours: Ours) -> Outcome {
    let target = bench.files.join("tiledb-written");
    let filter = |&(name, level): &(&str, Option<i64>)| match level {
        Some(level) => Filter::new(name).with("level", level),
        None => Filter::new(name),
    };
    let options = ConvertOptions::default()
        .with_chunk_shape(data::CHUNK.to_vec())
        .with_filters(ours.iter().map(filter).collect::<Vec<_>>());
    let store = hyperslab::open(source)?;
    let ours = timed_prepared(
        OURS,
        || clear(&target),
        || {
            convert(&store, &target, Format::TILEDB, &options, &Progress::default())?;
            Ok(())
        },
    )?;
    clear(&target)?;
    line(bench, name, ours, "dense_write", &[source, &target, filters.as_ref()])
}

/// Numbers from 0 to 1, the same on every machine.
fn numbers() -> impl Iterator<Item = f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    })
}

/// Columns x, y and v, one after the other.
fn write_points(path: &Path) -> Outcome {
    let scaled = numbers().take(2 * POINTS).map(|number| number * SIDE);
    let values = (0..POINTS).map(|point| point as f64 * 0.25);
    let bytes: Vec<u8> = scaled.chain(values).flat_map(f64::to_le_bytes).collect();
    Ok(std::fs::write(path, bytes)?)
}

/// All rows of a scan, with each column in one piece, as the library returns them.
fn rows(table: &hyperslab::TableReader, region: Vec<(String, Bounds)>) -> Outcome<Vec<Vec<u8>>> {
    let batches: Vec<_> =
        table.rows_of(&Scan { columns: None, region, filter: None })?.batches.collect::<Result<_, _>>()?;
    let mut columns = Vec::new();
    for column in 0..table.schema().columns.len() {
        let parts: Option<Vec<&[u8]>> =
            batches.iter().map(|batch| batch.columns[column].as_fixed().map(AsRef::as_ref)).collect();
        columns.push(parts.ok_or("a column of variable length")?.concat());
    }
    Ok(columns)
}

fn sparse(bench: &mut Bench) -> Outcome {
    let names = ["write", "100 boxes", "full read"].map(|what| format!("tiledb sparse 5M points {what}"));
    if !names.iter().any(|name| bench.wants(name)) {
        return Ok(());
    }
    let points = bench.file("points", write_points)?;
    let empty = bench.file("tiledb-sparse-empty", |path| make(bench, "make_sparse_empty", &[path]))?;
    let path = bench.file("tiledb-sparse", |path| make(bench, "make_sparse", &[&points, &empty, path]))?;
    if bench.wants(&names[0]) {
        let target = bench.files.join("tiledb-sparse-written");
        let bytes = std::fs::read(&points)?;
        let columns: Vec<Elements> =
            bytes.chunks(POINTS * 8).map(|column| Elements::fixed(column.to_vec())).collect();
        let ours = timed_prepared(
            OURS,
            || clear(&target).and_then(|()| copy(&empty, &target)),
            || Ok(hyperslab_tiledb::write_sparse(&target, &columns, &WriteOptions::default())?),
        )?;
        clear(&target)?;
        line(bench, &names[0], ours, "sparse_write", &[&points, &empty, &target])?;
    }
    let store = hyperslab::open(&path)?;
    let table = store.table("/")?;
    if bench.wants(&names[1]) {
        let regions: Vec<_> = data::walk(BOXES, &[(SIDE - SPARSE_BOX) as u64; 2])
            .iter()
            .map(|start| {
                let range = |start: u64| Bounds {
                    low: Some(hyperslab::Bound::Float(start as f64)),
                    high: Some(hyperslab::Bound::Float(start as f64 + SPARSE_BOX)),
                };
                vec![("x".to_owned(), range(start[0])), ("y".to_owned(), range(start[1]))]
            })
            .collect();
        let ours = timed("hyperslab", || {
            for region in &regions {
                black_box(rows(&table, region.clone())?);
            }
            Ok(())
        })?;
        line(bench, &names[1], ours, "sparse_boxes", &[&path])?;
    }
    if bench.wants(&names[2]) {
        let ours = timed("hyperslab", || {
            black_box(rows(&table, Vec::new())?);
            Ok(())
        })?;
        line(bench, &names[2], ours, "sparse_full", &[&path])?;
    }
    Ok(())
}

fn fragments(bench: &mut Bench) -> Outcome {
    for kind in ["dense", "sparse"] {
        let names = ["open", "consolidate"].map(|what| format!("tiledb {kind} 1,000 fragments {what}"));
        if !names.iter().any(|name| bench.wants(name)) {
            continue;
        }
        let source = bench.file(&format!("tiledb-fragments-{kind}"), |path| {
            make(bench, "make_fragments", &[path, kind.as_ref()])
        })?;
        if bench.wants(&names[0]) {
            let ours = timed("hyperslab", || {
                // The details name every fragment, so all footers are read.
                black_box(hyperslab::open(&source)?.inner().details()?);
                Ok(())
            })?;
            line(bench, &names[0], ours, "fragments_open", &[&source])?;
        }
        if bench.wants(&names[1]) {
            consolidate(bench, &names[1], &source)?;
        }
    }
    Ok(())
}

/// Runs each consolidation in its own process, in order to measure its memory.
fn consolidate(bench: &mut Bench, name: &str, source: &Path) -> Outcome {
    let target = bench.files.join("tiledb-fragments-copy");
    let (mut seconds, mut most) = (Vec::new(), 0);
    for _ in 0..RUNS {
        clear(&target)?;
        copy(source, &target)?;
        let output = Command::new(std::env::current_exe()?).arg(CONSOLIDATE).arg(&target).output()?;
        let stdout = String::from_utf8(output.stdout)?;
        let mut words = stdout.split_whitespace();
        let (Some(time), Some(memory)) = (words.next(), words.next()) else {
            return Err(format!("consolidating: {}", String::from_utf8_lossy(&output.stderr)).into());
        };
        seconds.push(time.parse::<f64>()?);
        most = most.max(memory.parse::<u64>()?);
    }
    seconds.sort_by(f64::total_cmp);
    make(bench, "check_fragments", &[&target])?;
    let theirs = peer_with_memory(bench, "fragments_consolidate", &[source, &target])?;
    let memory = theirs.as_ref().map(|(_, kib)| *kib);
    let note = format!(
        "at most {} MiB, tiledb-py {} MiB",
        most >> 10,
        memory.map_or_else(|| "?".to_owned(), |kib| (kib >> 10).to_string())
    );
    clear(&target)?;
    let ours = ("hyperslab".to_owned(), seconds[RUNS / 2]);
    bench.line(name, [ours].into_iter().chain(theirs.map(|(timed, _)| timed)), &note);
    Ok(())
}

/// The work of the separate process: prints the seconds and the peak memory in KiB.
pub(crate) fn consolidate_here(path: PathBuf) -> Outcome {
    let start = Instant::now();
    hyperslab_tiledb::consolidate(&path, &hyperslab_tiledb::ConsolidateOptions::default())?;
    let seconds = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next());
    use std::io::Write;
    writeln!(std::io::stdout(), "{seconds} {}", most.unwrap_or("0"))?;
    Ok(())
}
