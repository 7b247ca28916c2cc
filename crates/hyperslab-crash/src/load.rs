//! Many readers of one store while another process appends to it: every answer must be right.
//!
//! Cells hold their own number, so a reader knows what to expect anywhere. Each thread reopens the store repeatedly, and keeps
//! one that it opened earlier. No answer may be wrong; a reader of a single file, which is changed in place, may be asked to
//! reopen it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyperslab::{DType, Elements, OpenStore, Result, Selection, Values, create, extend};

use crate::random::Random;
use crate::writers::{ArrayFormat, COLUMNS, Places, Scale};

/// The parameters of a load test.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// The number of reader processes.
    pub processes: u32,
    /// Threads per process.
    pub threads: u32,
    /// The duration.
    pub duration: Duration,
}

/// The results of one format.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// The format.
    pub name: &'static str,
    /// The number of selections read and compared.
    pub reads: u64,
    /// The number of readers that met a file during a change and reopened it.
    pub refused: u64,
    /// The number of appends.
    pub appends: u64,
}

/// Tests every format whose arrays can grow.
///
/// # Errors
///
/// If an answer is wrong, or something fails that should not.
pub fn run(program: &Path, load: Load, only: &str) -> Result<Vec<Tally>, String> {
    ArrayFormat::growing()
        .filter(|kind| kind.name.contains(only))
        .map(|kind| one(kind, program, load))
        .collect()
}

fn one(kind: ArrayFormat, program: &Path, load: Load) -> Result<Tally, String> {
    let named = |problem: String| format!("{}: {problem}", kind.name);
    let folder = tempfile::tempdir().map_err(|error| named(error.to_string()))?;
    let target = folder.path().join(kind.target);
    let places = Places { target: target.clone(), sources: folder.path().to_owned() };
    kind.make(&places, Scale { rows: 64, chunk: 16 }, 0).map_err(|error| named(error.to_string()))?;
    let mut readers = Vec::new();
    for process in 0..load.processes {
        let mut command = Command::new(program);
        command.arg("readers").arg(&target).args([
            load.threads.to_string(),
            load.duration.as_millis().to_string(),
            process.to_string(),
        ]);
        readers.push(command.stdout(Stdio::piped()).spawn().map_err(|error| named(error.to_string()))?);
    }
    let mut tally = Tally { name: kind.name, ..Tally::default() };
    let started = Instant::now();
    while started.elapsed() < load.duration {
        grow(kind, &target).map_err(|error| named(format!("growing: {error}")))?;
        tally.appends += 1;
        // Pause between appends; otherwise readers would only see changes in progress.
        std::thread::sleep(Duration::from_millis(20));
    }
    for reader in readers {
        let output = reader.wait_with_output().map_err(|error| named(error.to_string()))?;
        if !output.status.success() {
            return Err(named(format!("a reader failed: {}", output.status)));
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut counts = text.split_whitespace().map(|word| word.parse::<u64>().unwrap_or(0));
        tally.reads += counts.next().unwrap_or(0);
        tally.refused += counts.next().unwrap_or(0);
    }
    Ok(tally)
}

/// Appends some rows, with each cell holding its own number.
fn grow(kind: ArrayFormat, target: &Path) -> Result<()> {
    let mut sink = create(target, kind.driver()?, &ArrayFormat::appending())?;
    let store = hyperslab::open(target)?;
    let array = store.array("/t")?;
    let (first, rows) = (array.schema().shape()[0] * COLUMNS, 5);
    let bytes: Vec<u8> =
        (first..first + rows * COLUMNS).flat_map(|cell| (cell as i32).to_ne_bytes()).collect();
    let values = Values::new(DType::Int32, &[rows, COLUMNS], Elements::fixed(bytes))?;
    extend(&mut *sink, &array, "/t", 0, &values)?;
    sink.commit()
}

/// The number of retries of a reader that meets a file during a change.
const ATTEMPTS: usize = 200;

/// Why a check failed.
enum Failure {
    /// An answer that differs from what was written.
    Wrong(String),
    /// No answer.
    Refused(String),
}

/// One reader process. Returns the number of selections read, and how often it had to reopen the file.
///
/// # Errors
///
/// The first wrong answer.
pub fn read_all(target: &Path, threads: u32, duration: Duration, seed: u64) -> Result<(u64, u64), String> {
    let (reads, refused, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let started = Instant::now();
    let work = |thread: u32| {
        let mut random = Random::new(seed << 32 | u64::from(thread));
        let mut kept: Option<(OpenStore, u64)> = None;
        while started.elapsed() < duration && !stop.load(Ordering::Relaxed) {
            if let Err(problem) = read_some(target, &mut kept, &mut random, &refused) {
                stop.store(true, Ordering::Relaxed);
                return Err(problem);
            }
            reads.fetch_add(2, Ordering::Relaxed);
        }
        Ok(())
    };
    let outcome = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a reader panicked".to_owned())))
            .collect::<Result<Vec<()>, String>>()
    });
    outcome.map(|_| (reads.load(Ordering::Relaxed), refused.load(Ordering::Relaxed)))
}

/// Reads from a store that was opened earlier, and from one that is opened now.
///
/// A single file is changed in place, and a reader uses the file's length at the time of opening, so it may fail and reopen the
/// file. A directory never fails.
fn read_some(
    target: &Path,
    kept: &mut Option<(OpenStore, u64)>,
    random: &mut Random,
    refused: &AtomicU64,
) -> Result<(), String> {
    let patience = if target.is_dir() { 0 } else { ATTEMPTS };
    let mut attempt = 0;
    let (opened, rows) = loop {
        let opened = hyperslab::open(target).map_err(|error| Failure::Refused(format!("opening: {error}")));
        match opened.and_then(|opened| check(&opened, random).map(|rows| (opened, rows))) {
            Ok(found) => break found,
            Err(Failure::Refused(_)) if attempt < patience => attempt += 1,
            Err(Failure::Wrong(why) | Failure::Refused(why)) => return Err(format!("a new reader: {why}")),
        }
        refused.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(1));
    };
    if let Some((old, before)) = kept {
        if rows < *before {
            return Err(format!("{rows} rows, there were {before}"));
        }
        match check(old, random) {
            Ok(_) => {}
            Err(Failure::Refused(_)) if patience > 0 => {
                refused.fetch_add(1, Ordering::Relaxed);
                *kept = None;
            }
            Err(Failure::Wrong(why) | Failure::Refused(why)) => {
                return Err(format!("a reader with an older store: {why}"));
            }
        }
    }
    // Only now and then: old readers are the ones that meet changed files.
    if kept.is_none() || random.number().is_multiple_of(8) {
        *kept = Some((opened, rows));
    }
    Ok(())
}

/// Reads some rows. Returns their number.
fn check(store: &OpenStore, random: &mut Random) -> Result<u64, Failure> {
    let text = |error: hyperslab::Error| Failure::Refused(error.to_string());
    let array = store.array("/t").map_err(text)?;
    let rows = array.schema().shape()[0];
    let first = random.number() % rows;
    let end = (first + 1 + random.number() % 40).min(rows);
    let selection: Selection = format!("[{first}:{end}]").parse().map_err(text)?;
    let cells: Vec<i32> = array.read_vec(&selection).map_err(text)?;
    let expected: Vec<i32> = (first * COLUMNS..end * COLUMNS).map(|cell| cell as i32).collect();
    if cells == expected {
        return Ok(rows);
    }
    let at = cells.iter().zip(&expected).position(|(read, expected)| read != expected);
    Err(Failure::Wrong(format!("rows {first} to {end} of {rows}: cell {at:?} is not what was written")))
}
