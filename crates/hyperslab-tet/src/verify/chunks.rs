//! Rows, grids, payloads, contents.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyperslab_codec::checksum::crc32c;
use hyperslab_core::{Array, Depth, Report};

use super::Findings;
use crate::checksums::{Checksums, combine};
use crate::dataset::MAX_RANK;
use crate::index::Row;
use crate::store::TetStore;

/// Chunks that are decoded when nobody asks for all of them.
const QUICK_DECODE: usize = 128;

/// Does anything in a row contradict the file?
pub(super) fn rows(store: &TetStore, report: &mut Report) {
    let file = &store.file;
    let mut refused = Vec::new();
    let mut findings = Findings::errors(report, "chunk_dataset_ids");
    for (number, row) in (0_u64..).zip(store.rows()) {
        if row.dataset >= file.datasets.len() as u64 {
            findings.add(format!("row {number}: dataset {} of {}", row.dataset, file.datasets.len()));
        }
    }
    findings.end(|| Some(String::new()));
    let mut findings = Findings::errors(report, "parse");
    for (number, row) in (0_u64..).zip(store.rows()) {
        if let Err(error) = file.check_span(number, &row) {
            // Payloads on top of the head are another matter: the format does not forbid them.
            if row.offset < file.superblock.index_end()
                && row.end().is_some_and(|end| end <= file.payload_end)
            {
                refused.push(error);
            } else {
                findings.add_error(&error);
            }
        }
    }
    findings.end(|| None);
    let mut findings = Findings::errors(report, "payload_bounds");
    refused.iter().for_each(|error| findings.add_error(error));
    findings.end(|| None);
    let mut findings = Findings::warnings(report, "reserved");
    for (number, row) in (0_u64..).zip(store.rows()) {
        let rank = file.datasets.get(row.dataset as usize).map_or(MAX_RANK, |dataset| dataset.shape.len());
        if row.reserved != 0 || row.coord[rank.min(MAX_RANK)..].iter().any(|slot| *slot != 0) {
            findings.add(format!("row {number}: a field that should be zero is not"));
        }
    }
    findings.end(|| None);
}

/// Is every dataset complete, and of the size that it should have?
pub(super) fn datasets(store: &TetStore, report: &mut Report) {
    let mut names = HashSet::new();
    let mut findings = Findings::warnings(report, "dataset_names");
    for (id, dataset) in store.datasets().iter().enumerate() {
        if !names.insert(&dataset.name) || dataset.name.is_empty() {
            let path = store.dataset_path(id).unwrap_or_default();
            findings
                .add(format!("dataset {id} cannot be reached as {:?}; it is listed as {path}", dataset.name));
        }
    }
    findings.end(|| None);
    for id in 0..store.datasets().len() {
        dataset(store, id, report);
    }
}

fn dataset(store: &TetStore, id: usize, report: &mut Report) {
    let record = &store.datasets()[id];
    let path = store.dataset_path(id).unwrap_or_default();
    let mut findings = Findings::errors(report, "dataset_tensor_bytes");
    if record.bytes().is_none() && record.dtype().is_some() {
        findings.add(format!("{path}: the shape {:?} is beyond 64 bits", record.shape.as_slice()));
    }
    let array = match store.dataset(id) {
        Ok(array) => array,
        Err(error) => return findings.add_error(&error),
    };
    let schema = array.schema();
    let rows = store.file.index.dataset(id).map_or(0, |rows| rows.count);
    let chunks = schema.grid.chunks();
    if chunks != Some(rows) {
        let chunks = chunks.map_or_else(|| "more than 2^64".to_owned(), |chunks| chunks.to_string());
        findings.add(format!("{path}: {rows} rows inside the grid, {chunks} chunks"));
    }
    let item = schema.dtype.size().unwrap_or(0);
    for number in store.file.index.rows_of(id) {
        let Some(row) = store.file.index.row(number) else { continue };
        let expected = crate::array::chunk_bytes(&schema.grid, item, &row.coord(schema.grid.rank()));
        if expected != Some(row.raw_length) {
            findings
                .add(format!("{path}: row {number}: raw length {}, expected {expected:?}", row.raw_length));
        }
    }
    findings.end(|| Some(format!("{path}: {rows} chunks, {} bytes", record.bytes().unwrap_or(0))));
    let mut findings = Findings::errors(report, "chunk_coords");
    for (first, second) in store.file.index.duplicates(id) {
        findings.add(format!("{path}: rows {first} and {second} claim the same chunk"));
    }
    findings.end(|| None);
}

/// Do payloads lie on top of each other?
pub(super) fn payloads(store: &TetStore, report: &mut Report) {
    if store.file.index.strays() > 0 {
        let detail = format!("{} rows of no dataset or outside their grid", store.file.index.strays());
        report.warning("unreachable_rows", detail);
    }
    let mut spans: Vec<(u64, u64)> = store
        .rows()
        .filter_map(|row| Some((row.offset, row.end()?)))
        .filter(|(start, end)| start < end)
        .collect();
    let in_order = spans.windows(2).all(|pair| pair[0].1 == pair[1].0);
    if !in_order {
        report.warning("payload_order", "payloads do not stand back to back in the order of the index");
    }
    spans.sort_unstable();
    let mut findings = Findings::errors(report, "payload_offsets");
    for pair in spans.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        findings.add(format!("two payloads at {:#x}", pair[0].0));
    }
    findings.end(|| Some(String::new()));
    let mut findings = Findings::errors(report, "payload_overlap");
    let mut reached = 0;
    for pair in spans.windows(2) {
        reached = reached.max(pair[0].1);
        if pair[0].0 != pair[1].0 && pair[1].0 < reached {
            findings.add(format!(
                "the payload at {:#x} starts before {reached:#x}, where another ends",
                pair[1].0
            ));
        }
    }
    findings.end(|| None);
}

/// What decoding one row showed.
struct Seen {
    row: u64,
    problem: Option<String>,
    checksum: Option<u32>,
}

/// Does every chunk decode, and is it what was written?
pub(super) fn contents(store: &TetStore, depth: Depth, report: &mut Report) {
    let all = store.file.index.len();
    let count = if depth == Depth::Deep { all } else { all.min(QUICK_DECODE as u64) };
    if count < all {
        let detail = format!("{count} of {all} chunks decoded; --deep decodes them all");
        report.warning("chunk_decode_skipped", detail);
    }
    let seen = decode_rows(store, count);
    let mut findings = Findings::errors(report, "chunk_decode");
    seen.iter().filter_map(|seen| seen.problem.as_ref()).for_each(|problem| findings.add(problem.clone()));
    findings.end(|| Some(format!("{count} of {all} chunks decoded")));
    checksums(store, &seen, report);
}

/// Decodes the first rows, on all cores.
fn decode_rows(store: &TetStore, count: u64) -> Vec<Seen> {
    let arrays: Vec<_> = (0..store.datasets().len()).map(|id| store.dataset(id).ok()).collect();
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Vec::new());
    let work = || {
        let (mut mine, mut scratch) = (Vec::new(), Vec::new());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed) as u64;
            let Some(row) = store.file.index.row(number).filter(|_| number < count) else { break };
            let array =
                usize::try_from(row.dataset).ok().and_then(|id| arrays.get(id)).and_then(Option::as_ref);
            if let Some(array) = array {
                mine.push(decode(store, array, number, &row, &mut scratch));
            }
        }
        if let Ok(mut all) = all.lock() {
            all.append(&mut mine);
        }
    };
    let threads =
        std::thread::available_parallelism().map_or(1, usize::from).min(count.div_ceil(16) as usize);
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut seen = all.into_inner().unwrap_or_default();
    seen.sort_unstable_by_key(|seen: &Seen| seen.row);
    seen
}

fn decode(store: &TetStore, array: &dyn Array, number: u64, row: &Row, scratch: &mut Vec<u8>) -> Seen {
    let file = &store.file;
    let mut seen = Seen { row: number, problem: None, checksum: None };
    // What is wrong with the row itself has been said.
    if file.check_span(number, row).is_err() {
        return seen;
    }
    let stored = match file.blob.read_at(row.offset, row.stored_length) {
        Ok(stored) => stored,
        Err(error) => {
            seen.problem = Some(error.to_string());
            return seen;
        }
    };
    seen.checksum = Some(crc32c(&stored));
    if row.codec == crate::index::Codec::Raw.number() {
        return seen;
    }
    if let Err(error) = file.check_row(number, row, array.schema()) {
        seen.problem = Some(error.to_string());
        return seen;
    }
    scratch.resize(row.raw_length as usize, 0);
    seen.problem = file.decode_row(number, row, &stored, scratch).err().map(|error| error.to_string());
    seen
}

/// Compares what was seen with our table of checksums, when the file has one.
fn checksums(store: &TetStore, seen: &[Seen], report: &mut Report) {
    let own = store.footer().and_then(|footer| footer.metadata.own.as_ref());
    let Some(table) = own.and_then(|own| own.checksums.as_ref()) else { return };
    let index = crc32c(store.file.index.bytes());
    let Some(sums) = table.sums(store.file.index.len()).filter(|_| table.index == index) else {
        let detail = "the chunk index is not the one that the checksums were made for";
        return report.warning("chunk_checksums", detail);
    };
    let mut findings = Findings::errors(report, "chunk_checksums");
    let mut compared = 0;
    for (expected, rows) in sums.iter().zip(groups(table, seen)) {
        let found: Option<Vec<u32>> = rows.iter().map(|seen| seen.checksum).collect();
        let complete = rows.len() as u64 == table.rows_each
            || rows.last().is_some_and(|seen| seen.row + 1 == store.file.index.len());
        let Some(found) = found.filter(|found| !found.is_empty() && complete) else { continue };
        compared += rows.len();
        let found = combine(&found, table.rows_each as usize);
        if found != *expected {
            let row = rows[0].row;
            let which = store.file.index.row(row);
            let path = which
                .and_then(|row| store.dataset_path(usize::try_from(row.dataset).ok()?))
                .unwrap_or_default();
            let offset = which.map_or(0, |row| row.offset);
            findings.add(format!(
                "{path}: row {row}, payload at {offset:#x}: checksum {found:#010x}, stored {expected:#010x}"
            ));
        }
    }
    findings.end(|| Some(format!("{compared} chunks are what was written")));
}

/// The rows that share a checksum, one group after the other. Rows that were not looked at are missing.
fn groups<'s>(table: &Checksums, seen: &'s [Seen]) -> impl Iterator<Item = &'s [Seen]> {
    let each = table.rows_each;
    (0_u64..).map(move |group| {
        let start = seen.partition_point(|seen| seen.row < group.saturating_mul(each));
        let end = seen.partition_point(|seen| seen.row < (group + 1).saturating_mul(each));
        &seen[start..end]
    })
}
