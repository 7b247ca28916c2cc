//! What came out, kept as one JSON object a line: a later run replaces the lines that it measured again and leaves the
//! others, so that single areas can be repeated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::harness::{OURS, Outcome};

/// One line of the table: what was done, how long each contender took.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Line {
    /// The module that measured it.
    pub(crate) area: String,
    pub(crate) case: String,
    /// The size of the field that the run worked on.
    pub(crate) mebibytes: u64,
    /// Seconds by contender; ours is `hyperslab`.
    pub(crate) seconds: BTreeMap<String, f64>,
    pub(crate) note: String,
}

/// Words of the cases that do not work on the field: their names say what they work on.
const OTHER_SIZES: &[&str] = &[
    "200,000 chunks",
    "65,536 chunks",
    "datasets",
    "fragments",
    "million",
    "5M points",
    "streamlines",
    "scattered points",
    "fragment indexes",
    "pyramid",
    "frames",
    "1,000,000",
    "view of",
    "512 MiB",
    "tiny read",
    "import",
    "remote",
    "serve",
];

impl Line {
    /// What was worked on, as the table shows it.
    pub(crate) fn size(&self) -> String {
        let own = OTHER_SIZES.iter().any(|word| self.case.contains(word));
        if own { "as named".to_owned() } else { format!("{} MiB", self.mebibytes) }
    }

    /// Our time; NaN if we did not run.
    pub(crate) fn ours(&self) -> f64 {
        self.seconds.get(OURS).copied().unwrap_or(f64::NAN)
    }

    /// The others, the fastest first.
    pub(crate) fn peers(&self) -> Vec<(&str, f64)> {
        let others = self.seconds.iter().filter(|(name, _)| *name != OURS);
        let mut peers: Vec<_> = others.map(|(name, seconds)| (name.as_str(), *seconds)).collect();
        peers.sort_by(|a, b| a.1.total_cmp(&b.1));
        peers
    }

    /// For people who watch.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{:<44} {:>9}", self.case, time(self.ours()));
        for (name, seconds) in self.peers() {
            text.push_str(&format!("   {name} {} ({:.2}×)", time(seconds), seconds / self.ours()));
        }
        format!("{text}   {}", self.note)
    }
}

/// Is this contender a bound (bytes moved, frames decoded, and nothing else) rather than somebody who does the same work?
pub(crate) fn is_bound(contender: &str) -> bool {
    ["memory copy", "decoding only", "in memory", "cp", "reading only"]
        .iter()
        .any(|word| contender.contains(word))
}

/// All lines that are known, by area and in the order in which they were first measured.
#[derive(Debug)]
pub(crate) struct Results {
    /// The folder that they are kept in.
    pub(crate) folder: PathBuf,
    pub(crate) lines: Vec<Line>,
}

impl Results {
    /// The results of earlier runs in a folder.
    pub(crate) fn open(folder: &Path) -> Outcome<Self> {
        let path = folder.join("results.jsonl");
        let text = if path.exists() { std::fs::read_to_string(path)? } else { String::new() };
        let lines = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(Self { folder: folder.to_owned(), lines })
    }

    /// Takes a line in the place of the one of the same case and size, or after the last of its area.
    pub(crate) fn put(&mut self, line: Line) -> Outcome {
        let same = |known: &Line| known.case == line.case && known.mebibytes == line.mebibytes;
        if let Some(known) = self.lines.iter_mut().find(|known| same(known)) {
            *known = line;
        } else {
            let last = self.lines.iter().rposition(|known| known.area == line.area);
            self.lines.insert(last.map_or(self.lines.len(), |last| last + 1), line);
        }
        self.save()
    }

    fn save(&self) -> Outcome {
        std::fs::create_dir_all(&self.folder)?;
        let mut text = String::new();
        for line in &self.lines {
            text.push_str(&serde_json::to_string(line)?);
            text.push('\n');
        }
        // Whole or not at all: a run may be broken off at any line.
        let beside = self.folder.join("results.jsonl.new");
        std::fs::write(&beside, text)?;
        std::fs::rename(beside, self.folder.join("results.jsonl"))?;
        Ok(())
    }
}

/// Seconds in the unit that suits them.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s.is_nan() => "–".to_owned(),
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(area: &str, case: &str, ours: f64) -> Line {
        let seconds = BTreeMap::from([(OURS.to_owned(), ours), ("peer".to_owned(), 2.0)]);
        Line { area: area.to_owned(), case: case.to_owned(), mebibytes: 1, seconds, note: String::new() }
    }

    #[test]
    fn a_size_is_that_of_the_case() {
        assert_eq!(line("hdf5", "hdf5 raw full read", 1.0).size(), "1 MiB");
        assert_eq!(line("zvf", "zvf write 2 million points", 1.0).size(), "as named");
    }

    #[test]
    fn a_later_run_replaces_its_own_lines_only() -> Outcome {
        let folder = std::env::temp_dir().join(format!("hyperslab-bench-{}", std::process::id()));
        let mut results = Results::open(&folder)?;
        for (area, case) in [("a", "first"), ("b", "second"), ("a", "third")] {
            results.put(line(area, case, 1.0))?;
        }
        let mut again = Results::open(&folder)?;
        again.put(line("a", "first", 4.0))?;
        let kept = Results::open(&folder)?;
        std::fs::remove_dir_all(&folder)?;
        let cases: Vec<_> = kept.lines.iter().map(|line| (line.case.as_str(), line.ours())).collect();
        assert_eq!(cases, [("first", 4.0), ("third", 1.0), ("second", 1.0)]);
        Ok(())
    }
}
