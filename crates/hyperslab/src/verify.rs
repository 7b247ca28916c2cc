//! Integrity checks with one report for every format.

mod coverage;
mod record;

use std::path::Path;

use hyperslab_core::{Depth, Error, Report, Result, Severity};
use serde_json::{Value, json};

use crate::{OpenOptions, open_with};

pub(crate) use coverage::note_coverage;
pub use record::{Record, RecordedChunk, RecordedNode};

/// The result of checking a path.
#[derive(Debug)]
pub struct Verified {
    /// The checked path.
    pub path: String,
    /// The format, if it was recognised.
    pub format: Option<&'static str>,
    /// The file's length; `None` for a directory.
    pub file_len: Option<u64>,
    /// The findings.
    pub report: Report,
}

/// Checks a file or directory. A store that cannot even be opened is reported as damage, not as an error.
///
/// # Errors
///
/// [`Io`](Error::Io) if the path cannot be accessed.
pub fn verify_path(path: &Path, options: &OpenOptions, depth: Depth) -> Result<Verified> {
    let name = path.display().to_string();
    let is_local = crate::location::remote_url(path).is_none();
    let metadata =
        is_local.then(|| std::fs::metadata(path).map_err(|source| Error::io(name.as_str(), source)));
    let metadata = metadata.transpose()?.filter(std::fs::Metadata::is_file);
    let mut verified = Verified {
        path: name,
        format: None,
        file_len: metadata.map(|metadata| metadata.len()),
        report: Report::default(),
    };
    match open_with(path, options) {
        Ok(store) => {
            verified.path = store.path().display().to_string();
            verified.format = Some(store.format());
            verified.report = store.verify(depth)?;
        }
        Err(error @ Error::Io { .. }) => return Err(error),
        Err(error) => {
            let offset = if let Error::Corrupt(corrupt) = &error { corrupt.offset } else { None };
            verified.report.error("parse", error.to_string());
            if let Some(finding) = verified.report.findings.last_mut() {
                finding.offset = offset;
            }
        }
    }
    Ok(verified)
}

impl Verified {
    /// Compares the stored content with an earlier record. Every difference, and everything that cannot be read, is an error in
    /// the report.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the path cannot be accessed.
    pub fn compare(&mut self, options: &OpenOptions, recorded: &Record) -> Result<()> {
        match open_with(Path::new(&self.path), options).and_then(|store| Record::of(&store)) {
            Ok(found) => recorded.compare(&found, &mut self.report),
            Err(error @ Error::Io { .. }) => return Err(error),
            Err(error) => self.report.failure("record", &error),
        }
        Ok(())
    }

    /// One line: the number of checks, errors and warnings.
    #[must_use]
    pub fn summary(&self) -> String {
        let failed = |severity| {
            self.report.findings.iter().filter(|finding| !finding.ok && finding.severity == severity).count()
        };
        let many = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let is_check = |finding: &&hyperslab_core::Finding| finding.ok || finding.severity != Severity::Info;
        let mut parts = vec![many(self.report.findings.iter().filter(is_check).count(), "check")];
        for (severity, word) in [(Severity::Error, "error"), (Severity::Warning, "warning")] {
            match failed(severity) {
                0 => {}
                count => parts.push(many(count, word)),
            }
        }
        parts.join(", ")
    }

    /// The output of `tet verify --json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "ok": self.report.ok(), "path": self.path, "format": self.format, "file_len": self.file_len,
            "findings": self.report.findings, "recommendations": self.report.recommendations, "summary": self.summary(),
        })
    }
}
