//! Timing, and the table of ratios.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Why a case could not be run.
pub(crate) type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Runs of each contender; the median counts.
pub(crate) const RUNS: usize = 5;

/// One line of the table: what was done, how long each contender took.
#[derive(Debug)]
pub(crate) struct Line {
    case: String,
    /// Seconds by contender; ours is `hyperslab`.
    seconds: BTreeMap<String, f64>,
    note: String,
}

/// The run: which cases, where files are, what came out.
#[derive(Debug)]
pub(crate) struct Bench {
    words: Vec<String>,
    /// Bytes of the field.
    pub(crate) bytes: u64,
    pub(crate) files: PathBuf,
    pub(crate) python: Option<PathBuf>,
    lines: Vec<Line>,
}

impl Bench {
    pub(crate) fn from_arguments(arguments: impl Iterator<Item = String>) -> Outcome<Self> {
        let (mut words, mut mebibytes) = (Vec::new(), 1024);
        let mut arguments = arguments;
        while let Some(word) = arguments.next() {
            match word.as_str() {
                "--size" => mebibytes = arguments.next().ok_or("--size needs a number")?.parse()?,
                _ => words.push(word),
            }
        }
        let files =
            std::env::var_os("HYPERSLAB_BENCH_FILES").map_or_else(|| "target/bench".into(), PathBuf::from);
        std::fs::create_dir_all(&files)?;
        let python = std::env::var_os("HYPERSLAB_PEERS").map(PathBuf::from);
        Ok(Self { words, bytes: mebibytes << 20, files, python, lines: Vec::new() })
    }

    /// Is this case asked for?
    pub(crate) fn wants(&self, case: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| case.contains(word.as_str()))
    }

    /// A file that is made once and kept.
    pub(crate) fn file(&self, name: &str, make: impl FnOnce(&Path) -> Outcome) -> Outcome<PathBuf> {
        let path = self.files.join(format!("{}-{name}", self.bytes >> 20));
        if !path.exists() {
            say(&format!("making {}", path.display()));
            make(&path)?;
        }
        Ok(path)
    }

    /// Puts a line into the table, and shows it at once.
    pub(crate) fn line(&mut self, case: &str, seconds: impl IntoIterator<Item = (String, f64)>, note: &str) {
        let line =
            Line { case: case.to_owned(), seconds: seconds.into_iter().collect(), note: note.to_owned() };
        say(&line.text());
        self.lines.push(line);
    }

    /// The table in Markdown.
    pub(crate) fn print(&self) -> Outcome {
        let mut out = std::io::stdout().lock();
        writeln!(out, "| case | ours | peer | peer's time ÷ ours | note |\n|---|---|---|---|---|")?;
        for line in &self.lines {
            let ours = line.seconds.get("hyperslab").copied().unwrap_or(f64::NAN);
            let mut peers: Vec<_> = line.seconds.iter().filter(|(name, _)| *name != "hyperslab").collect();
            peers.sort_by(|a, b| a.1.total_cmp(b.1));
            if peers.is_empty() {
                writeln!(out, "| {} | {} | | | {} |", line.case, time(ours), line.note)?;
            }
            for (name, seconds) in peers {
                let ratio = seconds / ours;
                writeln!(
                    out,
                    "| {} | {} | {name} {} | **{ratio:.2}×** | {} |",
                    line.case,
                    time(ours),
                    time(*seconds),
                    line.note
                )?;
            }
        }
        Ok(())
    }
}

impl Line {
    fn text(&self) -> String {
        let ours = self.seconds.get("hyperslab").copied().unwrap_or(f64::NAN);
        let mut text = format!("{:<44} {:>9}", self.case, time(ours));
        for (name, seconds) in self.seconds.iter().filter(|(name, _)| *name != "hyperslab") {
            text.push_str(&format!("   {name} {} ({:.2}×)", time(*seconds), seconds / ours));
        }
        format!("{text}   {}", self.note)
    }
}

/// Seconds in the unit that suits them.
fn time(seconds: f64) -> String {
    match seconds {
        s if s.is_nan() => "–".to_owned(),
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// The median time of several runs, after one that warms up.
pub(crate) fn median(mut work: impl FnMut() -> Outcome) -> Outcome<f64> {
    work()?;
    let mut seconds = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let start = Instant::now();
        work()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[RUNS / 2])
}

/// A contender's name and its median.
pub(crate) fn timed(name: &str, work: impl FnMut() -> Outcome) -> Outcome<(String, f64)> {
    Ok((name.to_owned(), median(work)?))
}

/// A line on stderr.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
