//! Several processes that grow one array concurrently: each row arrives exactly once.
//!
//! A writer that finds another one active gets an error and retries. In the end the rows of every process are present, in the
//! order in which it wrote them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hyperslab::{DType, Elements, Result, Selection, Values, create, extend};

use crate::random::Random;
use crate::writers::{ArrayFormat, COLUMNS, Places, Scale};

/// How long a process waits for its turn before that counts as a failure.
const PATIENCE: Duration = Duration::from_secs(120);

/// The results of a race.
#[derive(Debug, Clone, Default)]
pub struct Race {
    /// The format.
    pub name: &'static str,
    /// Rows that were written.
    pub rows: u64,
    /// Attempts that found another writer active.
    pub refused: u64,
}

/// Runs `processes` instances of `program`, each adding `rows` rows to one array of every format.
///
/// # Errors
///
/// If a row is missing, duplicated or wrong, or if a process fails for a reason other than concurrent writers.
pub fn run(program: &Path, processes: u32, rows: u32, only: &str) -> Result<Vec<Race>, String> {
    ArrayFormat::growing()
        .filter(|kind| kind.name.contains(only))
        .map(|kind| one(kind, program, processes, rows))
        .collect()
}

fn one(kind: ArrayFormat, program: &Path, processes: u32, rows: u32) -> Result<Race, String> {
    let named = |problem: String| format!("{}: {problem}", kind.name);
    let folder = tempfile::tempdir().map_err(|error| named(error.to_string()))?;
    let target = folder.path().join(kind.target);
    let places = Places { target: target.clone(), sources: folder.path().to_owned() };
    kind.make(&places, Scale::SMALL, 1).map_err(|error| named(error.to_string()))?;
    let mut children = Vec::new();
    for process in 0..processes {
        let mut command = Command::new(program);
        command.args(["extend", kind.name]).arg(&target).args([process.to_string(), rows.to_string()]);
        children.push(command.stdout(Stdio::piped()).spawn().map_err(|error| named(error.to_string()))?);
    }
    let mut race = Race { name: kind.name, rows: u64::from(processes * rows), refused: 0 };
    for child in children {
        let output = child.wait_with_output().map_err(|error| named(error.to_string()))?;
        if !output.status.success() {
            return Err(named(format!("a writer failed: {}", output.status)));
        }
        race.refused += String::from_utf8_lossy(&output.stdout).trim().parse::<u64>().unwrap_or(0);
    }
    check(&target, processes, rows).map_err(|error| named(error.to_string()))?.map_err(named)?;
    Ok(race)
}

/// Checks that all rows are present, each once, and those of a process in order.
fn check(target: &Path, processes: u32, rows: u32) -> Result<Result<(), String>> {
    let store = hyperslab::open(target)?;
    let cells: Vec<i32> = store.array("/t")?.read_vec(&Selection::all())?;
    let mut next = vec![0; processes as usize];
    for row in cells.chunks_exact(COLUMNS as usize).skip(Scale::SMALL.rows as usize) {
        let (process, number) = (row[0] / STEP - 1, row[0] % STEP);
        let expected = usize::try_from(process).ok().and_then(|process| next.get_mut(process));
        let Some(expected) = expected.filter(|expected| **expected == number) else {
            return Ok(Err(format!("row {number} of process {process}; expected one of {next:?}")));
        };
        *expected += 1;
        if row != row_of(process as u32, number as u32) {
            return Ok(Err(format!("row {number} of process {process} holds something else")));
        }
    }
    let whole = next.iter().all(|count| *count == rows as i32);
    Ok(if whole { Ok(()) } else { Err(format!("{next:?} rows of each process, expected {rows}")) })
}

/// The distance between the numbers of two processes.
const STEP: i32 = 1 << 20;

fn row_of(process: u32, number: u32) -> Vec<i32> {
    (0..COLUMNS as i32).map(|column| (process as i32 + 1) * STEP + number as i32 + column * 7).collect()
}

/// One process of a race: adds its rows one by one. Returns how often it found another writer active.
///
/// # Errors
///
/// If a write fails for another reason, or never gets its turn.
pub fn extend_rows(name: &str, target: &Path, process: u32, rows: u32) -> Result<u64, String> {
    let kind = ArrayFormat::growing().find(|kind| kind.name == name).ok_or("no such format")?;
    let mut random = Random::new(u64::from(process));
    let (mut refused, started) = (0, Instant::now());
    for number in 0..rows {
        loop {
            match extend_once(kind, target, &row_of(process, number)) {
                Ok(()) => break,
                Err(problem) if is_refused(&problem) && started.elapsed() < PATIENCE => refused += 1,
                Err(problem) => return Err(problem.to_string()),
            }
            std::thread::sleep(Duration::from_micros(random.number() % 3000));
        }
    }
    Ok(refused)
}

/// Returns true for the error of a second writer.
fn is_refused(problem: &hyperslab::Error) -> bool {
    let text = problem.to_string();
    ["another writer", "since it was opened"].iter().any(|words| text.contains(words))
}

fn extend_once(kind: ArrayFormat, target: &Path, row: &[i32]) -> Result<()> {
    // Opened first, as in most programs: what it finds may be outdated when the sink has its lock.
    let store = hyperslab::open(target)?;
    let mut sink = create(target, kind.driver()?, &ArrayFormat::appending())?;
    let bytes: Vec<u8> = row.iter().flat_map(|cell| cell.to_ne_bytes()).collect();
    let values = Values::new(DType::Int32, &[1, COLUMNS], Elements::fixed(bytes))?;
    extend(&mut *sink, &store.array("/t")?, "/t", 0, &values)?;
    sink.commit()
}
