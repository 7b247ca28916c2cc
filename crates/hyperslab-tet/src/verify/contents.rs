//! What the chunks hold: each is fetched once, on one of all cores, decoded, and compared with its checksum and its zone
//! map.

use std::ops::Range;

use hyperslab_codec::checksum::{crc32c, crc32c_append};
use hyperslab_core::{Array, Depth, Report, Result, check_in_order, chunk_weight, touch, with_scratch};

use super::Findings;
use super::zones::Zones;
use crate::TetArray;
use crate::checksums::combine;
use crate::index::{Codec, Row};
use crate::store::TetStore;
use crate::zone::{Statistics, missing_bytes};

/// The number of chunks that a quick check decodes.
const QUICK_DECODE: u64 = 128;

/// Bytes of a chunk that are read at a time …
const PIECE: usize = 1 << 20;
/// … and those that are looked at together: whole elements, and few enough for a near cache.
const PART: usize = 64 << 10;

/// A dataset that can be read, and the element that represents a missing one.
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
        let looked = match codec {
            Codec::Raw => self.raw(number, &row, dataset, &mut seen),
            _ => self.coded(number, &row, dataset, &mut seen),
        };
        seen.problem = looked.err().map(|error| error.to_string());
        Some(seen)
    }

    /// A chunk that is stored as it is: in pieces, however large it is, whose parts are in the processor's cache for the second
    /// look.
    fn raw(&self, number: u64, row: &Row, dataset: &Readable, seen: &mut Seen) -> Result<()> {
        let file = &self.store.file;
        let schema = dataset.array.schema();
        // Zone maps are of chunks of the size that they should have; of others, that has been said.
        let zones = self.zones_of(number).filter(|_| file.check_row(number, row, schema).is_ok());
        let (mut checksum, mut found) = (0, Statistics::of(&schema.dtype, &[], None));
        for start in (0..row.stored_length).step_by(PIECE) {
            let length = (row.stored_length - start).min(PIECE as u64);
            let piece = file.blob.read_at(row.offset + start, length)?;
            if !self.checksums {
                touch(&piece);
            }
            for part in piece.chunks(PART) {
                if self.checksums {
                    checksum = crc32c_append(checksum, part);
                }
                if zones.is_some() {
                    let next = Statistics::of(&schema.dtype, part, dataset.missing.as_deref());
                    found = found.and(&next, &schema.dtype);
                }
            }
        }
        seen.checksum = self.checksums.then_some(checksum);
        if let Some(zones) = zones {
            seen.zones = zones.compare(number, &schema.dtype, &found);
        }
        Ok(())
    }

    fn coded(&self, number: u64, row: &Row, dataset: &Readable, seen: &mut Seen) -> Result<()> {
        let file = &self.store.file;
        let stored = file.blob.read_at(row.offset, row.stored_length)?;
        seen.checksum = self.checksums.then(|| crc32c(&stored));
        let schema = dataset.array.schema();
        file.check_row(number, row, schema)?;
        // A checked row's length is that of the chunk's cells, and in proportion to what is stored.
        with_scratch(row.raw_length as usize, |raw| {
            file.decode_row(number, row, &stored, raw)?;
            if let Some(zones) = self.zones_of(number) {
                let found = Statistics::of(&schema.dtype, raw, dataset.missing.as_deref());
                seen.zones = zones.compare(number, &schema.dtype, &found);
            }
            Ok(())
        })
    }

    /// The zone maps, if there are any of this row.
    fn zones_of(&self, number: u64) -> Option<&Zones> {
        self.zones.filter(|zones| zones.of_row(number).next().is_some())
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
