//! Checks rows, grids and payloads.

use std::collections::HashSet;

use hyperslab_core::{Array, Report};

use super::Findings;
use crate::dataset::MAX_RANK;
use crate::store::TetStore;

/// Checks for rows that contradict the file.
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
            // Payloads that overlap the head are a separate matter: the format does not forbid them.
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

/// Checks that every dataset is complete and has the right size.
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
        findings.add(format!("{path}: {rows} rows inside the grid, but {chunks} chunks"));
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

/// Checks for overlapping payloads.
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
        report.warning("payload_order", "payloads are not contiguous in index order");
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
