//! Checks that zone maps cover the values, because others skip chunks by them.

use hyperslab_core::{Array, DType, Depth, Report, Result, check_in_order};

use super::Findings;
use super::contents::Readable;
use crate::store::TetStore;
use crate::zone::{Statistics, Zone};

/// The approximate size of a claim in bytes.
const CLAIM: u64 = 256;

/// The zone maps of a file, and their problems.
pub(super) struct Zones {
    claims: Vec<Zone>,
    /// Rows, in order, and their claims, which are compared when the row is decoded.
    rows: Vec<(u64, usize)>,
    /// Claims and their problems.
    problems: Vec<(usize, String)>,
}

impl Zones {
    /// The zone maps and their rows; `None` if the file has none.
    pub(super) fn read(store: &TetStore, datasets: &[Option<Readable>]) -> Result<Option<Self>> {
        let Some(maps) = store.zone_maps()? else { return Ok(None) };
        let claims = maps.chunks;
        let (mut rows, mut problems) = (Vec::new(), Vec::new());
        check_in_order(
            CLAIM,
            |put| {
                (0..claims.len()).for_each(put);
                Ok(())
            },
            |claim| (claim, row_of(&claims[claim], datasets)),
            |(claim, outcome)| match outcome {
                Ok(row) => rows.push((row, claim)),
                Err(problem) => problems.push((claim, problem)),
            },
        )?;
        rows.sort_unstable();
        Ok(Some(Self { claims, rows, problems }))
    }

    /// The claims of a row, by number.
    pub(super) fn of_row(&self, row: u64) -> impl Iterator<Item = usize> {
        let first = self.rows.partition_point(|(own, _)| *own < row);
        self.rows[first..].iter().take_while(move |(own, _)| *own == row).map(|(_, claim)| *claim)
    }

    /// The problems of a row's claims, given its actual statistics.
    pub(super) fn compare(&self, row: u64, dtype: &DType, found: &Statistics) -> Vec<(usize, String)> {
        let problem = |claim: usize| {
            let claimed = Statistics::of_zone(&self.claims[claim], dtype.size().unwrap_or(0))?;
            if claimed.elements != found.elements {
                return Some((claim, format!("{} elements, {} found", claimed.elements, found.elements)));
            }
            (!claimed.covers(found, dtype)).then(|| (claim, "values lie outside the range".to_owned()))
        };
        self.of_row(row).filter_map(problem).collect()
    }

    /// Adds the problems found by a comparison.
    pub(super) fn add(&mut self, problems: Vec<(usize, String)>) {
        self.problems.extend(problems);
    }

    /// Reports the problems, in zone map order.
    pub(super) fn tell(&mut self, depth: Depth, report: &mut Report) {
        self.problems.sort();
        let mut findings = Findings::errors(report, "zone_maps");
        for (claim, problem) in &self.problems {
            let zone = &self.claims[*claim];
            findings.add(format!("dataset {}, chunk {:?}: {problem}", zone.dataset_id, zone.chunk_index));
        }
        let how = if depth == Depth::Deep { "cover every value" } else { "can be read" };
        findings.end(|| Some(format!("{} zone maps {how}", self.claims.len())));
    }
}

/// The row of a claim, or why there is none.
fn row_of(zone: &Zone, datasets: &[Option<Readable>]) -> std::result::Result<u64, String> {
    let dataset = usize::try_from(zone.dataset_id).ok().and_then(|id| datasets.get(id)?.as_ref());
    let Some(Readable { array, .. }) = dataset else { return Err("no such dataset".to_owned()) };
    let item = array.schema().dtype.size().unwrap_or(0);
    let Ok(Some(number)) = array.row_number(&zone.chunk_index) else {
        return Err("no such chunk".to_owned());
    };
    match Statistics::of_zone(zone, item) {
        Some(_) => Ok(number),
        None => Err(format!("not elements of {item} bytes")),
    }
}
