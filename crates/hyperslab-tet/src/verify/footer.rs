//! Checks the end of the file.

use hyperslab_core::{Depth, Report, Result};

use super::Findings;
use super::zones::Zones;
use crate::footer::{Footer, FooterState, MAGIC, TAIL};
use crate::store::TetStore;
use crate::superblock::FLAG_FOOTER;
use crate::write::limits;

pub(super) fn check(store: &TetStore, depth: Depth, zones: &mut Result<Option<Zones>>, report: &mut Report) {
    let flags = store.superblock().flags;
    if flags & !FLAG_FOOTER != 0 {
        report.warning("reserved", format!("flags {flags:#x}, but only the lowest bit is defined"));
    }
    match store.footer_state() {
        FooterState::Absent => absent(store, report),
        FooterState::Damaged { error, .. } => report.failure("footer", error),
        FooterState::Whole(footer) => {
            report.passed(
                "footer",
                format!("version {}, {} rows of history", footer.version, footer.history.len()),
            );
            metadata(store, footer, report);
            match zones {
                Ok(Some(zones)) => zones.tell(depth, report),
                Ok(None) => {}
                Err(error) => report.failure("zone_maps", error),
            }
            if let Err(error) = store.secondary_index() {
                report.failure("secondary_index", &error);
            }
        }
    }
}

/// Without a footer flag: checks for an unflagged footer, or other unused bytes.
fn absent(store: &TetStore, report: &mut Report) {
    let length = store.file_length();
    let used = last_byte(store);
    let tail = length.checked_sub(TAIL).filter(|at| *at >= used);
    let magic =
        tail.and_then(|_| store.file.blob.read_at(length - MAGIC.len() as u64, MAGIC.len() as u64).ok());
    if magic.is_some_and(|magic| magic == MAGIC[..]) {
        report
            .warning("footer_flag", "the file ends with a footer, but the superblock does not announce one");
    } else if length > used {
        report.warning("trailing_bytes", format!("{} bytes after the last payload", length - used));
    } else {
        report.passed("footer", "absent");
    }
}

/// The end of the last structure known to the superblock or the index.
pub(crate) fn last_byte(store: &TetStore) -> u64 {
    let ends = store.rows().filter_map(|row| row.end()).filter(|end| *end <= store.file_length());
    ends.max().unwrap_or(0).max(store.superblock().index_end())
}

fn metadata(store: &TetStore, footer: &Footer, report: &mut Report) {
    if let Some(damage) = &footer.own_damage {
        report.warning("footer_metadata", format!("our own key cannot be read: {damage}"));
    }
    let mut findings = Findings::warnings(report, "footer_metadata");
    limits(footer, &mut |problem| findings.add(problem));
    for name in footer.metadata.datasets.keys() {
        if !store.datasets().iter().any(|dataset| *dataset.name == **name) {
            findings.add(format!("metadata of {name:?}, which is not in the file"));
        }
    }
    findings.end(|| Some("within the limits that other readers enforce".to_owned()));
}
