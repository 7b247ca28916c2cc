//! Checks the integrity of a file.
//!
//! | check | covers |
//! |---|---|
//! | `parse` | superblock, directory, index header; codecs, lengths and ends of the payloads |
//! | `chunk_dataset_ids` | rows of datasets that do not exist |
//! | `dataset_tensor_bytes` | types, chunk shapes, the number of rows, their sizes and coordinates |
//! | `chunk_coords` | two rows for one chunk |
//! | `payload_offsets`, `payload_overlap`, `payload_bounds` | payloads that overlap each other or the head |
//! | `payload_order` | gaps between payloads, which disable a fast path of other readers (a warning) |
//! | `chunk_decode`, `chunk_checksums` | stored chunks decode, and match their checksums |
//! | `footer`, `footer_flag`, `trailing_bytes`, `footer_metadata`, `zone_maps` | the end of the file |
//! | `pending_append` | an append that was interrupted after its commit (a warning) |
//! | `dataset_names`, `reserved` | datasets unreachable by name, reserved fields that are not zero (warnings) |

mod chunks;
mod contents;
mod footer;
mod zones;

use std::path::Path;

pub(crate) use footer::last_byte;
use hyperslab_core::{Depth, Error, Report, Result, Severity, Store};
use serde::Serialize;

use crate::package::open_path;
use crate::store::TetStore;

/// The number of findings listed per check; the rest are counted.
const MOST_FINDINGS: usize = 16;

/// The report on a file, in a stable form for scripts.
#[derive(Debug, Clone, Serialize)]
pub struct FileReport {
    /// Whether no check failed.
    pub ok: bool,
    /// The file.
    pub path: String,
    /// Its length.
    pub file_len: u64,
    /// The findings and the recommended fixes.
    #[serde(flatten)]
    pub report: Report,
    /// Counts, if the file could be opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
}

/// Counts.
#[derive(Debug, Clone, Serialize)]
#[expect(missing_docs, reason = "the field names are self-explanatory")]
pub struct Summary {
    pub layout_version: u32,
    pub dataset_count: usize,
    pub chunk_count: u64,
    pub history_events: usize,
    pub has_metadata: bool,
    pub history_footer: bool,
    pub deep_chunk_decode: bool,
}

/// Checks the file or the package at a path. A file that cannot even be opened is a finding, not an error.
///
/// # Errors
///
/// [`Io`](Error::Io) if the path does not exist.
pub fn verify_path(path: &Path, depth: Depth) -> Result<FileReport> {
    let mut report = Report::default();
    let name = path.display().to_string();
    let metadata = path.metadata().map_err(|source| Error::io(name.as_str(), source))?;
    let store = match open_path(path) {
        Ok(store) => Some(store),
        Err(error @ Error::Io { .. }) => return Err(error),
        Err(error) => {
            report.error("parse", error.to_string());
            None
        }
    };
    if let Some(store) = &store {
        store.verify(depth, &mut report)?;
        if metadata.is_dir() {
            crate::package::verify_package(path, store, &mut report);
        }
    }
    if store.is_none() {
        recommend(&name, &mut report);
    }
    let file_len = store.as_ref().map_or(metadata.len(), TetStore::file_length);
    let summary = store.as_ref().map(|store| Summary {
        layout_version: 1,
        dataset_count: store.datasets().len(),
        chunk_count: store.index_header().rows,
        history_events: store.history().len(),
        has_metadata: store.footer().is_some_and(|footer| !footer.metadata.datasets.is_empty()),
        history_footer: store.superblock().has_footer(),
        deep_chunk_decode: depth == Depth::Deep,
    });
    Ok(FileReport { ok: report.ok(), path: name, file_len, report, summary })
}

/// Implements [`Store::verify`].
pub(crate) fn verify(store: &TetStore, depth: Depth, report: &mut Report) -> Result<()> {
    report.passed("superblock", "");
    if store.file.pending_append {
        report.warning(
            "pending_append",
            "a committed append is not applied yet; it was read from the redo file",
        );
    }
    report.passed("dataset_directory", format!("{} datasets", store.datasets().len()));
    report.passed("chunk_index", format!("{} rows", store.index_header().rows));
    chunks::rows(store, report);
    chunks::datasets(store, report);
    chunks::payloads(store, report);
    let datasets = contents::readable(store);
    let mut zones = zones::Zones::read(store, &datasets);
    let claims = zones.as_mut().ok().and_then(Option::as_mut).filter(|_| depth == Depth::Deep);
    contents::check(store, &datasets, depth, claims, report);
    footer::check(store, depth, &mut zones, report);
    recommend(store.name(), report);
    Ok(())
}

/// Findings of one kind: the first few are listed, the others counted.
struct Findings<'r> {
    report: &'r mut Report,
    check: &'static str,
    severity: Severity,
    count: usize,
}

impl<'r> Findings<'r> {
    fn errors(report: &'r mut Report, check: &'static str) -> Self {
        Self { report, check, severity: Severity::Error, count: 0 }
    }

    fn warnings(report: &'r mut Report, check: &'static str) -> Self {
        Self { report, check, severity: Severity::Warning, count: 0 }
    }

    fn add(&mut self, detail: impl Into<String>) {
        self.count += 1;
        if self.count <= MOST_FINDINGS {
            self.push(detail.into());
        }
    }

    fn add_error(&mut self, error: &Error) {
        self.add(error.to_string());
    }

    fn push(&mut self, detail: String) {
        match self.severity {
            Severity::Error => self.report.error(self.check, detail),
            _ => self.report.warning(self.check, detail),
        }
    }

    /// Reports success, or the number of findings that were not listed.
    fn end(mut self, well: impl FnOnce() -> Option<String>) {
        if self.count > MOST_FINDINGS {
            self.push(format!("and {} more", self.count - MOST_FINDINGS));
        } else if self.count == 0
            && let Some(detail) = well()
        {
            self.report.passed(self.check, detail);
        }
    }
}

/// Recommends fixes for the findings.
fn recommend(path: &str, report: &mut Report) {
    let repair = || Some(format!("tet repair {path}"));
    let failed: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| !finding.ok)
        .map(|finding| finding.check.to_string())
        .collect();
    for check in failed {
        match check.as_str() {
            "pending_append" => report.recommend(
                "pending_append",
                "An append was interrupted after its commit. Complete it.",
                repair(),
            ),
            "footer" => report.recommend(
                "footer_invalid",
                "The footer is damaged: history and metadata are lost, the arrays are not. Write a new one.",
                repair(),
            ),
            "footer_flag" => report.recommend(
                "footer_flag",
                "The file ends with a footer, but the superblock does not announce it. Set the flag.",
                repair(),
            ),
            "trailing_bytes" => report.recommend(
                "trailing_bytes",
                "There are unused bytes after the last payload. Truncate the file.",
                repair(),
            ),
            "chunk_dataset_ids" => report.recommend(
                "unreachable_rows",
                "Rows of the index have no dataset or lie outside its grid. Remove them.",
                repair(),
            ),
            "zone_maps" => report.recommend(
                "zone_maps",
                "The zone maps do not describe the chunks, so filtered queries may miss values. Remove them.",
                repair(),
            ),
            "parse" => report.recommend(
                "invalid_layout",
                "The file is truncated or its structure is damaged. Recreate it from its source.",
                None,
            ),
            "dataset_tensor_bytes"
            | "chunk_decode"
            | "chunk_checksums"
            | "chunk_coords"
            | "payload_overlap"
            | "payload_offsets"
            | "payload_bounds" => report.recommend(
                "lost_chunks",
                "Chunks are lost or damaged. Other chunks can be read; recreate the array from its source.",
                None,
            ),
            "chunk_decode_skipped" => report.recommend(
                "run_deep_verify",
                "Not every chunk was decoded. Check all of them.",
                Some(format!("tet verify --deep {path}")),
            ),
            "payload_order" => report.recommend(
                "non_contiguous_payloads",
                "Payloads are not contiguous in index order. They are not damaged.",
                None,
            ),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
