//! Results, stored as one JSON object per line. A later run replaces the rows that it measured again and keeps the
//! others, so that single areas can be repeated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::harness::{OURS, Outcome};

/// A row of the table: a case and the time of each contender.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Line {
    /// The area that measured it.
    pub(crate) area: String,
    pub(crate) case: String,
    /// The size of the field used by the run, in mebibytes.
    pub(crate) mebibytes: u64,
    /// Seconds by contender; ours is `hyperslab`.
    pub(crate) seconds: BTreeMap<String, f64>,
    pub(crate) note: String,
}

/// Words of cases that do not use the field. Their names state what they use.
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
    "256 MiB",
    "100 NetCDF files",
    "samples",
    "one sample",
    "tiny read",
    "import",
    "remote",
    "serve",
];

impl Line {
    /// The size column of the table.
    pub(crate) fn size(&self) -> String {
        let own = OTHER_SIZES.iter().any(|word| self.case.contains(word));
        if own { "as named".to_owned() } else { format!("{} MiB", self.mebibytes) }
    }

    /// Our time; NaN if we did not run.
    pub(crate) fn ours(&self) -> f64 {
        self.seconds.get(OURS).copied().unwrap_or(f64::NAN)
    }

    /// The other contenders, the fastest first.
    pub(crate) fn peers(&self) -> Vec<(&str, f64)> {
        let others = self.seconds.iter().filter(|(name, _)| *name != OURS);
        let mut peers: Vec<_> = others.map(|(name, seconds)| (name.as_str(), *seconds)).collect();
        peers.sort_by(|a, b| a.1.total_cmp(&b.1));
        peers
    }

    /// The row as text, for progress output.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{:<44} {:>9}", self.case, time(self.ours()));
        for (name, seconds) in self.peers() {
            text.push_str(&format!("   {name} {} ({:.2}×)", time(seconds), seconds / self.ours()));
        }
        format!("{text}   {}", self.note)
    }
}

/// Returns true if the contender is a lower bound (only copying bytes or decoding frames) and does not do the same
/// work.
pub(crate) fn is_bound(contender: &str) -> bool {
    ["memory copy", "decoding only", "in memory", "cp", "reading only"]
        .iter()
        .any(|word| contender.contains(word))
}

/// All known rows, by area, in the order in which they were first measured.
#[derive(Debug)]
pub(crate) struct Results {
    /// The folder with the results.
    pub(crate) folder: PathBuf,
    pub(crate) lines: Vec<Line>,
}

impl Results {
    /// Loads the results of earlier runs from a folder.
    pub(crate) fn open(folder: &Path) -> Outcome<Self> {
        let path = folder.join("results.jsonl");
        let text = if path.exists() { std::fs::read_to_string(path)? } else { String::new() };
        let lines = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(Self { folder: folder.to_owned(), lines })
    }

    /// Replaces the row of the same case and size, or adds the row after the last one of its area.
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
        // Replace the file in one step, because a run may be aborted at any time.
        let beside = self.folder.join("results.jsonl.new");
        std::fs::write(&beside, text)?;
        std::fs::rename(beside, self.folder.join("results.jsonl"))?;
        Ok(())
    }
}

/// A time in a suitable unit.
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
    fn sizes_depend_on_the_case() {
        assert_eq!(line("hdf5", "hdf5 raw full read", 1.0).size(), "1 MiB");
        assert_eq!(line("zvf", "zvf write 2 million points", 1.0).size(), "as named");
    }

    #[test]
    fn later_runs_only_replace_their_own_rows() -> Outcome {
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
