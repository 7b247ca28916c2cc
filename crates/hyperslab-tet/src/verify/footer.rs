//! The end of the file.

use std::collections::HashMap;

use hyperslab_core::{Array, Depth, Report};

use super::Findings;
use crate::footer::{Footer, FooterState, MAGIC, TAIL};
use crate::store::TetStore;
use crate::superblock::FLAG_FOOTER;
use crate::write::limits;
use crate::zone::{Statistics, Zone, missing_bytes};

pub(super) fn check(store: &TetStore, depth: Depth, report: &mut Report) {
    let flags = store.superblock().flags;
    if flags & !FLAG_FOOTER != 0 {
        report.warning("reserved", format!("flags {flags:#x}, only the lowest bit means anything"));
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
            zones(store, depth, report);
            if let Err(error) = store.secondary_index() {
                report.failure("secondary_index", &error);
            }
        }
    }
}

/// Without a footer: is there one all the same, or other bytes that belong to nothing?
fn absent(store: &TetStore, report: &mut Report) {
    let length = store.file_length();
    let used = last_byte(store);
    let tail = length.checked_sub(TAIL).filter(|at| *at >= used);
    let magic =
        tail.and_then(|_| store.file.blob.read_at(length - MAGIC.len() as u64, MAGIC.len() as u64).ok());
    if magic.is_some_and(|magic| magic == MAGIC[..]) {
        report.warning("footer_flag", "a footer ends the file, and the superblock says that there is none");
    } else if length > used {
        report.warning("trailing_bytes", format!("{} bytes after the last payload", length - used));
    } else {
        report.passed("footer", "absent");
    }
}

/// Where the last thing ends that superblock or index know of.
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

/// Zone maps must cover the values: others rule chunks out by them.
fn zones(store: &TetStore, depth: Depth, report: &mut Report) {
    let zones = match store.zone_maps() {
        Ok(Some(zones)) => zones,
        Ok(None) => return,
        Err(error) => return report.failure("zone_maps", &error),
    };
    let mut findings = Findings::errors(report, "zone_maps");
    let mut arrays = HashMap::new();
    for zone in &zones.chunks {
        let array = arrays
            .entry(zone.dataset_id)
            .or_insert_with(|| usize::try_from(zone.dataset_id).ok().and_then(|id| store.dataset(id).ok()));
        let problem = match array {
            Some(array) => check_zone(store, array, zone, depth),
            None => Some("no such dataset".to_owned()),
        };
        if let Some(problem) = problem {
            findings.add(format!("dataset {}, chunk {:?}: {problem}", zone.dataset_id, zone.chunk_index));
        }
    }
    let how = if depth == Depth::Deep { "cover every value" } else { "can be read" };
    findings.end(|| Some(format!("{} zone maps {how}", zones.chunks.len())));
}

fn check_zone(store: &TetStore, array: &crate::TetArray, zone: &Zone, depth: Depth) -> Option<String> {
    let schema = array.schema();
    let item = schema.dtype.size().unwrap_or(0);
    let Ok(Some(number)) = array.row_number(&zone.chunk_index) else {
        return Some("no such chunk".to_owned());
    };
    let Some(claimed) = Statistics::of_zone(zone, item) else {
        return Some(format!("not elements of {item} bytes"));
    };
    let row = store.file.index.row(number)?;
    if depth == Depth::Quick || store.file.check_row(number, &row, schema).is_err() {
        return None;
    }
    let stored = store.file.blob.read_at(row.offset, row.stored_length).ok()?;
    let mut raw = vec![0; row.raw_length as usize];
    store.file.decode_row(number, &row, &stored, &mut raw).ok()?;
    let missing = missing_bytes(&schema.dtype, &schema.attributes);
    let found = Statistics::of(&schema.dtype, &raw, missing.as_deref());
    if claimed.elements != found.elements {
        return Some(format!("{} elements, {} found", claimed.elements, found.elements));
    }
    (!claimed.covers(&found, &schema.dtype)).then(|| "values lie outside the range".to_owned())
}
