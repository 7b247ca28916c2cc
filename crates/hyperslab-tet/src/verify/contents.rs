//! What the chunks hold: each is fetched once, on one of all cores, decoded, and compared with its checksum and its zone
//! map.

use std::ops::Range;

use hyperslab_codec::checksum::crc32c;
use hyperslab_core::{Array, Depth, Report, check_in_order, chunk_weight, touch, with_scratch};

use super::Findings;
use super::zones::Zones;
use crate::TetArray;
use crate::checksums::combine;
use crate::index::{Codec, Row};
use crate::store::TetStore;
use crate::zone::missing_bytes;

/// Chunks that are decoded when nobody asks for all of them.
const QUICK_DECODE: u64 = 128;

/// A dataset that can be read, and the element that stands for a missing one.
pub(super) struct Readable {
    pub(super) array: TetArray,
    pub(super) missing: Option<Vec<u8>>,
}

/// The datasets by their numbers; `None` for those that cannot be read.
pub(super) fn readable(store: &TetStore) -> Vec<Option<Readable>> {
    let one = |id| {
        let array = store.dataset(id).ok()?;
        let missing = missing_bytes(&array.schema().dtype, &array.schema().attributes);
        Some(Readable { array, missing })
    };
    (0..store.datasets().len()).map(one).collect()
}

/// What a look at one row showed.
#[derive(Default)]
struct Seen {
    problem: Option<String>,
    checksum: Option<u32>,
    /// Numbers of zone maps, and what is wrong with them.
    zones: Vec<(usize, String)>,
}

/// Does every chunk decode, and is it what was written?
pub(super) fn check(
    store: &TetStore,
    datasets: &[Option<Readable>],
    depth: Depth,
    zones: Option<&mut Zones>,
    report: &mut Report,
) {
    let all = store.file.index.len();
    let count = if depth == Depth::Deep { all } else { all.min(QUICK_DECODE) };
    if count < all {
        let detail = format!("{count} of {all} chunks decoded; --deep decodes them all");
        report.warning("chunk_decode_skipped", detail);
    }
    let expected = expected(store);
    let look = Look {
        store,
        datasets,
        zones: zones.as_deref(),
        checksums: matches!(expected, Expected::Sums { .. }),
    };
    let (mut checksums, mut wrong) = (Vec::new(), Vec::new());
    let mut findings = Findings::errors(report, "chunk_decode");
    let each =
        datasets.iter().flatten().map(|dataset| chunk_weight(dataset.array.schema())).max().unwrap_or(0);
    let walk = |put: &mut dyn FnMut(u64)| {
        (0..count).for_each(put);
        Ok(())
    };
    let walked = check_in_order(
        each,
        walk,
        |number| look.row(number).unwrap_or_default(),
        |mut seen| {
            seen.problem.into_iter().for_each(|problem| findings.add(problem));
            checksums.push(seen.checksum);
            wrong.append(&mut seen.zones);
        },
    );
    walked.err().iter().for_each(|error| findings.add_error(error));
    findings.end(|| Some(format!("{count} of {all} chunks decoded")));
    compare(store, &expected, &checksums, report);
    if let Some(zones) = zones {
        zones.add(wrong);
    }
}

/// What rows are looked at with.
struct Look<'a> {
    store: &'a TetStore,
    datasets: &'a [Option<Readable>],
    zones: Option<&'a Zones>,
    /// Is there anything to compare checksums with?
    checksums: bool,
}

impl Look<'_> {
    /// `None`: what is wrong with the row itself has been said.
    fn row(&self, number: u64) -> Option<Seen> {
        let file = &self.store.file;
        let row = file.index.row(number)?;
        let dataset = self.datasets.get(usize::try_from(row.dataset).ok()?)?.as_ref()?;
        let codec = file.check_span(number, &row).ok()?;
        let mut seen = Seen::default();
        let stored = match file.blob.read_at(row.offset, row.stored_length) {
            Ok(stored) => stored,
            Err(error) => {
                seen.problem = Some(error.to_string());
                return Some(seen);
            }
        };
        if self.checksums {
            seen.checksum = Some(crc32c(&stored));
        } else {
            touch(&stored);
        }
        if codec == Codec::Raw {
            // Zone maps are of chunks of the size that they should have; of others, that has been said.
            if file.check_row(number, &row, dataset.array.schema()).is_ok() {
                seen.zones = self.compare_zones(number, dataset, &stored);
            }
            return Some(seen);
        }
        match self.decoded(number, &row, dataset, &stored) {
            Ok(zones) => seen.zones = zones,
            Err(error) => seen.problem = Some(error.to_string()),
        }
        Some(seen)
    }

    fn decoded(
        &self,
        number: u64,
        row: &Row,
        dataset: &Readable,
        stored: &[u8],
    ) -> hyperslab_core::Result<Vec<(usize, String)>> {
        let file = &self.store.file;
        file.check_row(number, row, dataset.array.schema())?;
        // A checked row's length is that of the chunk's cells, and in proportion to what is stored.
        with_scratch(row.raw_length as usize, |raw| {
            file.decode_row(number, row, stored, raw)?;
            Ok(self.compare_zones(number, dataset, raw))
        })
    }

    fn compare_zones(&self, number: u64, dataset: &Readable, raw: &[u8]) -> Vec<(usize, String)> {
        self.zones.map_or_else(Vec::new, |zones| zones.compare(number, dataset, raw))
    }
}

/// What the checksums of the rows should be.
enum Expected {
    /// Nobody kept any.
    Nothing,
    /// They were kept of another index.
    Stale,
    Sums {
        sums: Vec<u32>,
        rows_each: usize,
    },
}

/// Our table of checksums, when the file has one.
fn expected(store: &TetStore) -> Expected {
    let own = store.footer().and_then(|footer| footer.metadata.own.as_ref());
    let Some(table) = own.and_then(|own| own.checksums.as_ref()) else { return Expected::Nothing };
    let index = crc32c(store.file.index.bytes());
    match table.sums(store.file.index.len()).filter(|_| table.index == index) {
        Some(sums) => {
            Expected::Sums { sums, rows_each: usize::try_from(table.rows_each).unwrap_or(usize::MAX) }
        }
        None => Expected::Stale,
    }
}

/// Compares the checksums of the first rows with what they should be. `None`: the row could not be fetched.
fn compare(store: &TetStore, expected: &Expected, rows: &[Option<u32>], report: &mut Report) {
    let (sums, rows_each) = match expected {
        Expected::Nothing => return,
        Expected::Stale => {
            let detail = "the chunk index is not the one that the checksums were made for";
            return report.warning("chunk_checksums", detail);
        }
        Expected::Sums { sums, rows_each } => (sums, *rows_each),
    };
    let mut findings = Findings::errors(report, "chunk_checksums");
    let mut compared = 0;
    for (number, expected) in sums.iter().enumerate() {
        let Some(group) = group(number, rows_each, store.file.index.len()) else { break };
        let Some(found) = rows.get(group.clone()) else { break };
        let Some(found) = found.iter().copied().collect::<Option<Vec<u32>>>() else { continue };
        compared += found.len();
        let found = combine(&found, rows_each);
        if found != *expected {
            let row = group.start as u64;
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

/// The rows that share a checksum: fewer than the others in the last group.
fn group(number: usize, rows_each: usize, rows: u64) -> Option<Range<usize>> {
    let start = number.checked_mul(rows_each)?;
    let end = start.saturating_add(rows_each).min(usize::try_from(rows).ok()?);
    (start < end).then_some(start..end)
}
