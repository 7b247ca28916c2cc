//! Timing, and the resulting table rows.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::results::{Line, Results};

/// The error says why a case could not run.
pub(crate) type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Runs per contender, of which the median counts.
pub(crate) const RUNS: usize = 5;
/// The folder for emptied files until the end of the run.
const ASIDE: &str = "emptied";
/// The field size in mebibytes whose results are committed.
const FULL: u64 = 1024;
/// Our name among the contenders.
pub(crate) const OURS: &str = "hyperslab";

/// A run: the selected cases, the files and the results.
#[derive(Debug)]
pub(crate) struct Bench {
    words: Vec<String>,
    /// The size of the field in bytes.
    pub(crate) bytes: u64,
    pub(crate) files: PathBuf,
    pub(crate) python: Option<PathBuf>,
    area: &'static str,
    results: Results,
}

impl Bench {
    /// Parses the command line. Results of a full-size run go to `bench/`, those of any other to the folder of the
    /// files.
    pub(crate) fn from_arguments(arguments: impl Iterator<Item = String>) -> Outcome<Self> {
        let (mut words, mut mebibytes, mut out) = (Vec::new(), FULL, None);
        let mut arguments = arguments;
        while let Some(word) = arguments.next() {
            match word.as_str() {
                "--size" => mebibytes = arguments.next().ok_or("--size needs a number")?.parse()?,
                "--out" => out = Some(PathBuf::from(arguments.next().ok_or("--out needs a folder")?)),
                option if option.starts_with('-') => return Err(format!("no option {option}").into()),
                _ => words.push(word),
            }
        }
        let files =
            std::env::var_os("HYPERSLAB_BENCH_FILES").map_or_else(|| "target/bench".into(), PathBuf::from);
        std::fs::create_dir_all(&files)?;
        let python = std::env::var_os("HYPERSLAB_PEERS").map(PathBuf::from);
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let out = out.unwrap_or_else(|| match mebibytes {
            FULL => project.join("bench"),
            other => files.join(format!("results-{other}")),
        });
        let results = Results::open(&out)?;
        Ok(Self { words, bytes: mebibytes << 20, files, python, area: "", results })
    }

    /// Returns true if the case is selected, by a word in its name or by its area.
    pub(crate) fn wants(&self, case: &str) -> bool {
        let asked = |word: &String| case.contains(word.as_str()) || word == self.area;
        self.words.is_empty() || self.words.iter().any(asked)
    }

    /// Runs an area. A failure is reported, and the other areas continue.
    pub(crate) fn area(&mut self, name: &'static str, run: fn(&mut Self) -> Outcome) -> bool {
        self.area = name;
        if self.wants(name) {
            forget(&self.files);
        }
        match run(self) {
            Ok(()) => true,
            Err(why) => {
                say(&format!("bench: {name}: {why}"));
                false
            }
        }
    }

    /// A file that is created once and kept.
    pub(crate) fn file(&self, name: &str, make: impl FnOnce(&Path) -> Outcome) -> Outcome<PathBuf> {
        let path = self.files.join(format!("{}-{name}", self.bytes >> 20));
        if !path.exists() {
            say(&format!("making {}", path.display()));
            make(&path)?;
        }
        Ok(path)
    }

    /// Adds a row to the table, prints it and saves it, so that an aborted run loses nothing.
    pub(crate) fn line(&mut self, case: &str, seconds: impl IntoIterator<Item = (String, f64)>, note: &str) {
        let line = Line {
            area: self.area.to_owned(),
            case: case.to_owned(),
            mebibytes: self.bytes >> 20,
            seconds: seconds.into_iter().collect(),
            note: note.to_owned(),
        };
        say(&line.text());
        if let Err(why) = self.results.put(line) {
            say(&format!("bench: results could not be kept: {why}"));
        }
    }

    /// Writes the table and the chart, and removes temporary files.
    pub(crate) fn finish(&self) -> Outcome {
        let aside = self.files.join(ASIDE);
        if aside.exists() {
            std::fs::remove_dir_all(aside)?;
        }
        crate::report::write(&self.results, self.python.as_deref())
    }
}

/// The median time of several runs after a warm-up.
pub(crate) fn median(work: impl FnMut() -> Outcome) -> Outcome<f64> {
    median_prepared(|| Ok(()), work)
}

/// Like [`median`], with an untimed preparation of each run.
fn median_prepared(mut prepare: impl FnMut() -> Outcome, mut work: impl FnMut() -> Outcome) -> Outcome<f64> {
    let mut seconds = Vec::with_capacity(RUNS);
    for run in 0..=RUNS {
        prepare()?;
        let start = Instant::now();
        work()?;
        if run > 0 {
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    Ok(middle(seconds))
}

/// A contender's name and median time.
pub(crate) fn timed(name: &str, work: impl FnMut() -> Outcome) -> Outcome<(String, f64)> {
    Ok((name.to_owned(), median(work)?))
}

/// Contenders and their median times. Runs alternate, so that a slow moment of the machine affects all contenders.
pub(crate) fn timed_in_turn<const N: usize>(
    contenders: [(&str, &mut dyn FnMut() -> Outcome); N],
) -> Outcome<Vec<(String, f64)>> {
    timed_in_turn_prepared(|| Ok(()), contenders)
}

/// The same, each run after preparing it, which does not count.
pub(crate) fn timed_in_turn_prepared<const N: usize>(
    mut prepare: impl FnMut() -> Outcome,
    mut contenders: [(&str, &mut dyn FnMut() -> Outcome); N],
) -> Outcome<Vec<(String, f64)>> {
    let mut seconds = [const { Vec::new() }; N];
    for run in 0..=RUNS {
        for ((_, work), seconds) in contenders.iter_mut().zip(&mut seconds) {
            prepare()?;
            let start = Instant::now();
            work()?;
            if run > 0 {
                seconds.push(start.elapsed().as_secs_f64());
            }
        }
    }
    let medians = seconds.into_iter().map(middle);
    Ok(contenders.iter().map(|(name, _)| (*name).to_owned()).zip(medians).collect())
}

/// The median of times.
fn middle(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// A contender's name and median time, with an untimed preparation of each run.
pub(crate) fn timed_prepared(
    name: &str,
    prepare: impl FnMut() -> Outcome,
    work: impl FnMut() -> Outcome,
) -> Outcome<(String, f64)> {
    Ok((name.to_owned(), median_prepared(prepare, work)?))
}

/// Removes the files of a run.
///
/// In a folder of many files, the files are only emptied and moved aside until the benchmark ends: ext4 scans every
/// inode that was freed in the last minutes, so creating files after many removals takes several times as long.
pub(crate) fn clear(path: &Path) -> Outcome {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {
            let aside = path.with_file_name(ASIDE);
            std::fs::create_dir_all(&aside)?;
            let number = std::fs::read_dir(&aside)?.count();
            let emptied = aside.join(number.to_string());
            std::fs::rename(path, &emptied)?;
            empty(&emptied)?;
        }
        Ok(_) => std::fs::remove_file(path)?,
        Err(_) => {}
    }
    Ok(())
}

/// Evicts files from the page cache as far as possible, so that a case that writes does not pay for evicting what
/// another one read.
fn forget(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            forget(&path);
        } else if let Ok(file) = std::fs::File::open(&path) {
            // Not available on other systems; only the start is less fair then.
            #[cfg(target_os = "linux")]
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
            drop(file);
        }
    }
}

fn empty(folder: &Path) -> Outcome {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            empty(&entry.path())?;
        } else {
            std::fs::File::create(entry.path())?;
        }
    }
    Ok(())
}

/// Prints a line to stderr.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
