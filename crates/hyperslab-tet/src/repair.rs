//! Repairs that need no guessing.
//!
//! | code | problem | repair |
//! |---|---|---|
//! | `pending_append` | an append was interrupted after its commit | it is applied |
//! | `footer_invalid` | the footer cannot be read | a new one is written, with the readable parts of the old |
//! | `footer_flag` | the superblock's footer flag is wrong | the flag is corrected |
//! | `trailing_bytes` | there are unused bytes after the last payload | the file is truncated |
//! | `unreachable_rows` | rows have no dataset or lie outside its grid | they are removed |
//! | `zone_maps` | zone maps or secondary index are unreadable or false | they are removed |
//!
//! Payloads are never changed. The repaired file is written beside the original and replaces it when it is complete.

use std::path::{Path, PathBuf};

use hyperslab_core::storage::{StageOptions, StagedFile, StoreLock};
use hyperslab_core::{Depth, Error, Report, Result, Store};
use serde::Serialize;

use crate::checksums::Checksums;
use crate::disk::Disk;
use crate::footer::{Footer, FooterState, HistoryRow, Metadata, salvage};
use crate::index::Row;
use crate::store::TetStore;
use crate::superblock::{FLAG_FOOTER, Superblock};
use crate::verify::last_byte;
use crate::write::{encode_footer, encode_head, now, rows_checksum};
use crate::zone::ZoneMaps;

/// The code of the fix that completes an interrupted append.
const PENDING: &str = "pending_append";

/// The planned repair of a file.
#[derive(Debug, Clone, Serialize)]
pub struct RepairPlan {
    /// The file.
    pub path: PathBuf,
    /// Problems that can be repaired. If empty, there is nothing to do.
    pub fixes: Vec<Fix>,
    /// Damage that cannot be repaired.
    pub left: Vec<String>,
}

/// One planned fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// A stable name.
    pub code: &'static str,
    /// The problem and its fix.
    pub message: String,
}

/// Finds out what can be repaired, without changing anything.
///
/// # Errors
///
/// [`Corrupt`](Error::Corrupt) if the file cannot be opened: a file without directory and index cannot be repaired.
pub fn plan_repair(path: &Path, depth: Depth) -> Result<RepairPlan> {
    let store = crate::package::open_path(path)?;
    let mut report = Report::default();
    store.verify(depth, &mut report)?;
    let mut plan = RepairPlan { path: path.to_owned(), fixes: Vec::new(), left: Vec::new() };
    let mut fix = |code, message: String| plan.fixes.push(Fix { code, message });
    if store.file.pending_append {
        fix(PENDING, "complete the append that was interrupted after its commit".to_owned());
    }
    if store.file.index.strays() > 0 {
        fix("unreachable_rows", format!("remove {} rows that no array can reach", store.file.index.strays()));
    }
    let (length, used) = (store.file_length(), last_byte(&store));
    match store.footer_state() {
        FooterState::Damaged { error, .. } if length > used => {
            fix("footer_invalid", format!("write a new footer in the place of the damaged one ({error})"));
        }
        FooterState::Damaged { .. } => {
            fix("footer_flag", "clear the footer flag in the superblock".to_owned());
        }
        FooterState::Absent => match flagged(&store)?.whole() {
            Some(footer) if footer.start >= used => {
                fix("footer_flag", "set the footer flag in the superblock".to_owned());
            }
            _ if length > used => fix("trailing_bytes", format!("remove the last {} bytes", length - used)),
            _ => {}
        },
        FooterState::Whole(_) => {}
    }
    let failed = |check: &str| report.findings.iter().any(|finding| finding.check == check && !finding.ok);
    if failed("zone_maps") || failed("secondary_index") {
        fix("zone_maps", "remove the zone maps and the secondary index, which are false".to_owned());
    }
    let mended =
        ["footer", "footer_flag", "trailing_bytes", "chunk_dataset_ids", "zone_maps", "secondary_index"];
    let errors = report.findings.iter().filter(|finding| {
        !finding.ok
            && finding.severity == hyperslab_core::Severity::Error
            && !mended.contains(&&*finding.check)
    });
    plan.left = errors.filter_map(|finding| finding.detail.clone()).collect();
    Ok(plan)
}

/// The footer that would be found if the superblock announced one.
fn flagged(store: &TetStore) -> Result<FooterState> {
    let superblock = Superblock { flags: FLAG_FOOTER, ..*store.superblock() };
    FooterState::read(store.file.blob.as_ref(), &superblock, store.file_length())
}

impl RepairPlan {
    /// Returns true if there is nothing to repair.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.fixes.is_empty()
    }

    /// Repairs the file. The original stays in place until the repaired file replaces it.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system reports an error, [`Invalid`](Error::Invalid) for a package, whose generations must not be
    /// changed. The file is then unchanged.
    pub fn apply(&self) -> Result<()> {
        if self.path.is_dir() {
            return Err(Error::invalid(format!(
                "{}: a package is not repaired in place",
                self.path.display()
            )));
        }
        if self.is_empty() {
            return Ok(());
        }
        // The other fixes apply to the file with the append completed.
        if self.has(PENDING) && !crate::recover(&self.path)? {
            return Err(Error::invalid(format!("{}: another append is running", self.path.display())));
        }
        if self.fixes.iter().all(|fix| fix.code == PENDING) {
            return Ok(());
        }
        let _lock = StoreLock::exclusive(&self.path, |_| false)?;
        let store = crate::package::open_path(&self.path)?;
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let staged = StagedFile::create(&path, StageOptions::default().with_replace(true))?;
        self.write(&store, &Disk::of(&staged)?)?;
        staged.keep_permissions();
        staged.publish()
    }

    fn has(&self, code: &str) -> bool {
        self.fixes.iter().any(|fix| fix.code == code)
    }

    fn write(&self, store: &TetStore, disk: &Disk) -> Result<()> {
        let rows: Vec<(usize, Row)> =
            store.rows().enumerate().filter(|(_, row)| self.keeps(store, row)).collect();
        let footer = self.footer(store)?;
        let encoded: Vec<Row> = rows.iter().map(|(_, row)| *row).collect();
        let head =
            encode_head(store.datasets(), encoded.into_iter(), *store.index_header(), footer.is_some())?;
        // Everything between index and footer stays in place.
        let source = Disk::open(&self.path)?;
        let (start, end) = (store.superblock().index_end(), self.payload_end(store, footer.as_ref()));
        disk.copy_from(&source, start, start, end.saturating_sub(start))?;
        disk.write_at(&head, 0)?;
        let Some(footer) = footer else { return Ok(()) };
        let numbers: Vec<usize> = rows.iter().map(|(number, _)| *number).collect();
        let (metadata, zones) = self.metadata(store, &footer, &numbers, &head)?;
        let mut history = footer.history;
        let codes: Vec<_> = self.fixes.iter().map(|fix| fix.code).collect();
        history.push(HistoryRow {
            op: "repair".to_owned(),
            source: "hyperslab".to_owned(),
            at: now(),
            params: [("codes".to_owned(), codes.join(","))].into(),
            ..HistoryRow::default()
        });
        let end = end.max(head.len() as u64);
        disk.write_at(&encode_footer(history, metadata, zones.as_ref(), end)?, end)
    }

    /// Returns true if a row is kept.
    fn keeps(&self, store: &TetStore, row: &Row) -> bool {
        !self.has("unreachable_rows")
            || usize::try_from(row.dataset).ok().and_then(|id| store.datasets().get(id)).is_some_and(
                |dataset| dataset.grid().is_some_and(|grid| grid.contains(&row.coord(dataset.shape.len()))),
            )
    }

    /// The footer of the repaired file, if it has one.
    fn footer(&self, store: &TetStore) -> Result<Option<Footer>> {
        Ok(match store.footer_state() {
            FooterState::Whole(footer) => Some(footer.as_ref().clone()),
            FooterState::Damaged { .. } if self.has("footer_invalid") => {
                Some(salvage(store.file.blob.as_ref(), store.superblock(), store.file_length()))
            }
            FooterState::Absent if self.has("footer_flag") => flagged(store)?.whole().cloned(),
            _ => None,
        })
    }

    /// The end of the payloads in the repaired file.
    fn payload_end(&self, store: &TetStore, footer: Option<&Footer>) -> u64 {
        match footer {
            Some(footer) if !self.has("footer_invalid") => footer.start,
            _ => last_byte(store),
        }
    }

    /// Metadata and zone maps, restricted to the rows that are kept.
    fn metadata(
        &self,
        store: &TetStore,
        footer: &Footer,
        numbers: &[usize],
        head: &[u8],
    ) -> Result<(Metadata, Option<ZoneMaps>)> {
        let mut metadata = footer.metadata.clone();
        if let Some(own) = &mut metadata.own {
            let index = hyperslab_codec::checksum::crc32c(store.file.index.bytes());
            let table = own.checksums.take().filter(|table| table.rows_each == 1 && table.index == index);
            let sums = table.and_then(|table| table.sums(store.index_header().rows));
            own.checksums = sums.map(|sums| {
                let kept: Vec<u32> = numbers.iter().map(|number| sums[*number]).collect();
                Checksums::new(&kept, rows_checksum(head, kept.len()))
            });
        }
        let mut zones = if self.has("zone_maps") { None } else { store.zone_maps()? };
        if let Some(zones) = &mut zones {
            zones.chunks.retain(|zone| {
                let array = usize::try_from(zone.dataset_id).ok().and_then(|id| store.dataset(id).ok());
                array.is_some_and(|array| matches!(array.row_number(&zone.chunk_index), Ok(Some(_))))
            });
        }
        Ok((metadata, zones))
    }
}

#[cfg(test)]
mod tests;
