//! Checks the contents of chunks. Each is fetched once, on one of all cores, decoded, and compared with its checksum and its zone
//! map.

use bytes::Bytes;
use hyperslab_codec::checksum::{crc32c, crc32c_append};
use hyperslab_core::{
    Array, Depth, Report, Result, check_fetched_in_order, chunk_weight, fetch_ranges, touch, with_scratch,
};

use super::Findings;
use super::zones::Zones;
use crate::TetArray;
use crate::checksums::{Expected, combine, group};
use crate::index::{Codec, Row};
use crate::store::TetStore;
use crate::zone::{Statistics, missing_bytes};

/// The number of chunks that a quick check decodes.
const QUICK_DECODE: u64 = 128;

/// The number of bytes of a chunk read at a time …
const PIECE: usize = 1 << 20;
/// … and the number processed together: whole elements that fit in the cache.
const PART: usize = 64 << 10;

/// A readable dataset and its missing-value marker.
pub(super) struct Readable {
    pub(super) array: TetArray,
    pub(super) missing: Option<Vec<u8>>,
}

/// The datasets by number; `None` for unreadable ones.
pub(super) fn readable(store: &TetStore) -> Vec<Option<Readable>> {
    let one = |id| {
        let array = store.dataset(id).ok()?;
        let missing = missing_bytes(&array.schema().dtype, &array.schema().attributes);
        Some(Readable { array, missing })
    };
    (0..store.datasets().len()).map(one).collect()
}

/// The result of checking one row.
#[derive(Default)]
struct Seen {
    problem: Option<String>,
    checksum: Option<u32>,
    /// Zone map numbers, with their problems.
    zones: Vec<(usize, String)>,
}

/// Checks that every chunk decodes and matches its checksum and zone map.
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
    let expected = store.file.expected_checksums();
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
    let range = |number: &u64| {
        let row = store.file.index.row(*number)?;
        Some(row.offset..row.offset.checked_add(row.stored_length)?)
    };
    let fetch = store.file.blob.is_remote().then_some(|numbers: &[u64]| {
        let ranges: Vec<_> = numbers.iter().map(range).collect();
        fetch_ranges(&*store.file.blob, &ranges)
    });
    let walked = check_fetched_in_order(
        each,
        walk,
        |number| range(number).map_or(0, |range| range.end - range.start),
        fetch,
        |number, stored| look.row(number, stored.and_then(|mut stored| stored.pop())).unwrap_or_default(),
        |mut seen| {
            seen.problem.into_iter().for_each(|problem| findings.add(problem));
            checksums.push(seen.checksum);
            wrong.append(&mut seen.zones);
        },
    );
    walked.err().iter().for_each(|error| findings.add_error(error));
    findings.end(|| Some(format!("{count} of {all} chunks decoded")));
    compare(store, expected, &checksums, report);
    if let Some(zones) = zones {
        zones.add(wrong);
    }
}

/// The context for checking rows.
struct Look<'a> {
    store: &'a TetStore,
    datasets: &'a [Option<Readable>],
    zones: Option<&'a Zones>,
    /// Whether there are checksums to compare with.
    checksums: bool,
}

impl Look<'_> {
    /// `None` if the row itself is wrong, which has been reported.
    fn row(&self, number: u64, stored: Option<Bytes>) -> Option<Seen> {
        let file = &self.store.file;
        let row = file.index.row(number)?;
        let dataset = self.datasets.get(usize::try_from(row.dataset).ok()?)?.as_ref()?;
        let codec = file.check_span(number, &row).ok()?;
        let mut seen = Seen::default();
        let looked = match codec {
            Codec::Raw => self.raw(number, &row, dataset, stored, &mut seen),
            _ => self.coded(number, &row, dataset, stored, &mut seen),
        };
        seen.problem = looked.err().map(|error| error.to_string());
        Some(seen)
    }

    /// Checks an uncompressed chunk in pieces, however large it is. Its parts are still in the cache for the second pass.
    fn raw(
        &self,
        number: u64,
        row: &Row,
        dataset: &Readable,
        stored: Option<Bytes>,
        seen: &mut Seen,
    ) -> Result<()> {
        let file = &self.store.file;
        let schema = dataset.array.schema();
        // Zone maps only apply to chunks of the right size; others have been reported.
        let zones = self.zones_of(number).filter(|_| file.check_row(number, row, schema).is_ok());
        let (mut checksum, mut found) = (0, Statistics::of(&schema.dtype, &[], None));
        for start in (0..row.stored_length).step_by(PIECE) {
            let length = (row.stored_length - start).min(PIECE as u64);
            let piece = match &stored {
                Some(stored) => stored.slice(start as usize..(start + length) as usize),
                None => file.blob.read_at(row.offset + start, length)?,
            };
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

    fn coded(
        &self,
        number: u64,
        row: &Row,
        dataset: &Readable,
        stored: Option<Bytes>,
        seen: &mut Seen,
    ) -> Result<()> {
        let file = &self.store.file;
        let stored = match stored {
            Some(stored) => stored,
            None => file.blob.read_at(row.offset, row.stored_length)?,
        };
        seen.checksum = self.checksums.then(|| crc32c(&stored));
        let schema = dataset.array.schema();
        file.check_row(number, row, schema)?;
        // A checked row's length matches the chunk's cells, and is proportional to the stored bytes.
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

/// Compares the checksums of the first rows with the expected ones. `None` if the row could not be fetched.
fn compare(store: &TetStore, expected: &Expected, rows: &[Option<u32>], report: &mut Report) {
    let (sums, rows_each) = match expected {
        Expected::Nothing => return,
        Expected::Stale => {
            let detail = "the chunk index has changed since the checksums were stored";
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
    findings.end(|| Some(format!("{compared} chunks match their checksums")));
}
