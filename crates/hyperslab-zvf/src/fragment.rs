//! Fragment indexes: groups of rows in a chunk.
//!
//! ```text
//! header   u32 magic, u16 version = 1, u16 flags = 0, u32 fragments F, u32 ranges R
//! bitmap   ceil(F / 8) bytes, padded to 8: bit f (lowest first) is set if fragment f is a range
//! ranges   R pairs of i64: first row, count
//! offsets  u32[E + 1], E = F - R: list fragment e has rows offsets[e] .. offsets[e + 1]
//! rows     i64[offsets[E]]
//! ```
//!
//! Without fragments, there is only the header. Everything is little-endian, and nothing after the offsets is
//! aligned.

use std::sync::OnceLock;

use bytes::Bytes;
use hyperslab_core::{Error, Fields, Place, Result};
use serde_json::{Value, json};

/// The first bytes of a blob: `0x5A564647`, little-endian.
pub const MAGIC: [u8; 4] = [0x47, 0x46, 0x56, 0x5A];

/// The size of the header.
const HEADER: usize = 16;

/// A fragment index, backed by the bytes of its blob without a copy.
#[derive(Debug, Clone)]
pub struct FragmentIndex {
    blob: Bytes,
    fragments: usize,
    ranges: usize,
    /// The start of the range table, the offsets and the rows.
    table: usize,
    offsets: usize,
    rows: usize,
    /// The number of ranges before fragment `64 * i`, computed on first use.
    ranks: OnceLock<Box<[u32]>>,
}

/// Ranges may have this many times the rows of their chunk and the bytes of their index, and always this many.
const MAX_SHARED: u64 = 64;
const FEW_ROWS: u64 = 1 << 22;

/// One fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fragment {
    /// Consecutive rows.
    Range {
        /// The first row.
        start: u64,
        /// The number of rows.
        count: u64,
    },
    /// Any rows in any order, possibly with repetitions.
    Rows(Vec<u64>),
}

impl Fragment {
    /// These rows in the smaller form: 16 bytes for a range, or 4 bytes plus 8 per row for a list.
    #[must_use]
    pub fn smallest(rows: &[u64]) -> Self {
        let run = rows.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        match rows {
            [first, _, ..] if run => Self::Range { start: *first, count: rows.len() as u64 },
            _ => Self::Rows(rows.to_vec()),
        }
    }

    /// The form shown by `tet info`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Range { start, count } => json!({"range": [start, count]}),
            Self::Rows(rows) => json!({"rows": rows}),
        }
    }

    /// The number of rows.
    #[must_use]
    pub const fn len(&self) -> u64 {
        match self {
            Self::Range { count, .. } => *count,
            Self::Rows(rows) => rows.len() as u64,
        }
    }

    /// Returns true if it has no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl FragmentIndex {
    /// Parses a blob. Rejects everything that a writer must not write: a wrong magic, version or flag, implausible
    /// counts, a bitmap that contradicts the number of ranges, offsets that do not start at zero or that decrease,
    /// negative rows, ranges past the last `i64`, missing bytes and trailing bytes.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) for each of these, with the position.
    pub fn parse(blob: Bytes, place: Place<'_>) -> Result<Self> {
        let mut fields = Fields::new(&blob, place);
        fields.magic(&MAGIC)?;
        let at = fields.place();
        let (version, flags) = (fields.u16()?, fields.u16()?);
        if version != 1 || flags != 0 {
            return Err(at.corrupt(format!("version {version} and flags {flags}, expected 1 and 0")));
        }
        let at = fields.place();
        let (fragments, ranges) = (fields.u32()? as usize, fields.u32()? as usize);
        if ranges > fragments {
            return Err(at.corrupt(format!("{ranges} ranges among {fragments} fragments")));
        }
        let mut index = Self {
            fragments,
            ranges,
            table: HEADER,
            offsets: HEADER,
            rows: HEADER,
            ranks: OnceLock::new(),
            blob: Bytes::new(),
        };
        if fragments > 0 {
            let bitmap = fragments.div_ceil(8).next_multiple_of(8);
            index.table = HEADER + bitmap;
            let set = count_ranges(fields.bytes(bitmap)?, fragments);
            if set != ranges {
                return Err(place
                    .plus(HEADER as u64)
                    .corrupt(format!("{set} bits set, {ranges} ranges declared")));
            }
            let at = fields.place();
            index.offsets = index.table + 16 * ranges;
            check_ranges(fields.bytes(16 * ranges)?, at)?;
            let (at, lists) = (fields.place(), fragments - ranges);
            index.rows = index.offsets + 4 * (lists + 1);
            let total = check_offsets(fields.bytes(4 * (lists + 1))?, at)?;
            let at = fields.place();
            let needed = total.checked_mul(8).filter(|needed| *needed <= fields.remaining());
            let Some(needed) = needed else {
                return Err(at.corrupt(format!("{total} rows in lists, {} bytes left", fields.remaining())));
            };
            check_rows(fields.bytes(needed)?, at)?;
        }
        fields.end()?;
        index.blob = blob;
        Ok(index)
    }

    /// The number of fragments.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.fragments
    }

    /// Returns true if there are no fragments.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.fragments == 0
    }

    /// The size of the blob in bytes.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.blob.len()
    }

    /// The number of fragments that are ranges.
    #[must_use]
    pub const fn ranges(&self) -> usize {
        self.ranges
    }

    /// Returns true if fragment `f` is a range. Only tests a bit.
    #[must_use]
    pub fn is_range(&self, f: usize) -> bool {
        f < self.fragments && self.blob[HEADER + f / 8] >> (f % 8) & 1 == 1
    }

    /// The first row and the count of fragment `f`, if it is a range.
    #[must_use]
    pub fn range(&self, f: usize) -> Option<(u64, u64)> {
        if !self.is_range(f) {
            return None;
        }
        let at = self.table + 16 * self.rank(f);
        Some((self.word(at), self.word(at + 8)))
    }

    /// The rows of fragment `f`, in order; `None` if there is no such fragment.
    pub fn rows(&self, f: usize) -> Option<impl ExactSizeIterator<Item = u64> + '_> {
        if f >= self.fragments {
            return None;
        }
        let (start, count, list) = match self.range(f) {
            Some((start, count)) => (start, usize::try_from(count).unwrap_or(usize::MAX), None),
            None => {
                let e = f - self.rank(f);
                let (first, last) = (self.offset(e), self.offset(e + 1));
                (0, last - first, Some(self.rows + 8 * first))
            }
        };
        Some((0..count).map(move |i| match list {
            None => start + i as u64,
            Some(at) => self.word(at + 8 * i),
        }))
    }

    /// Fragment `f`, by value.
    #[must_use]
    pub fn fragment(&self, f: usize) -> Option<Fragment> {
        match self.range(f) {
            Some((start, count)) => Some(Fragment::Range { start, count }),
            None => Some(Fragment::Rows(self.rows(f)?.collect())),
        }
    }

    /// All fragments.
    pub fn iter(&self) -> impl Iterator<Item = Fragment> + '_ {
        (0..self.fragments).filter_map(|f| self.fragment(f))
    }

    /// Fails if the index names rows beyond the chunk's `rows` rows.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) for the first such fragment.
    pub fn check_rows(&self, rows: u64, place: Place<'_>) -> Result<()> {
        let table = self.blob[self.table..self.offsets].as_chunks::<16>().0;
        // Neither the sum nor the difference overflows: parsing has checked the sum, and all values are non-negative.
        let last = i64::try_from(rows).unwrap_or(i64::MAX);
        let end = |pair: &[u8; 16]| signed(pair) + signed(&pair[8..]);
        if table.iter().fold(0, |over, pair| over | (last - end(pair))) < 0
            && let Some((r, pair)) = table.iter().enumerate().find(|(_, pair)| end(pair) > last)
        {
            let problem = format!("a range that ends at row {}, the chunk has {rows}", end(pair));
            return Err(place.plus((self.table + 16 * r) as u64).corrupt(problem));
        }
        let listed = if self.fragments == 0 { &[][..] } else { &self.blob[self.rows..] }.as_chunks::<8>().0;
        if listed.iter().fold(0, |over, row| over | (last - 1 - signed(row))) < 0
            && let Some((at, row)) = listed.iter().enumerate().find(|(_, row)| signed(*row) >= last)
        {
            let problem = format!("row {}, the chunk has {rows}", signed(row));
            return Err(place.plus((self.rows + 8 * at) as u64).corrupt(problem));
        }
        Ok(())
    }

    /// Fails if fragments share rows to such a degree that visiting each of them costs far more than the chunk's size can justify.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) for such an index.
    pub fn check_shared(&self, rows: u64, place: Place<'_>) -> Result<()> {
        let ranges = self.blob[self.table..self.offsets].as_chunks::<16>().0;
        let counts = ranges.iter().map(|pair| signed(&pair[8..]).unsigned_abs());
        let most = (rows + self.blob.len() as u64).saturating_mul(MAX_SHARED).max(FEW_ROWS);
        let total = counts.fold(0, u64::saturating_add);
        if total > most {
            let problem = format!("{} ranges of {total} rows in total, the chunk has {rows}", self.ranges);
            return Err(place.corrupt(problem));
        }
        Ok(())
    }

    /// Returns true if the padding of the bitmap is not zero. Readers ignore it, but writers must write zeros.
    #[must_use]
    pub fn has_dirty_padding(&self) -> bool {
        let (whole, rest) = (self.fragments / 8, self.fragments % 8);
        let padding = self.blob.get(HEADER + whole..self.table).unwrap_or_default();
        padding.iter().enumerate().any(|(at, byte)| if at == 0 { byte >> rest != 0 } else { *byte != 0 })
    }

    /// Returns true if ranges cover the rows `0 .. rows` in order, so that the chunk can be used unchanged.
    #[must_use]
    pub fn tiles(&self, rows: u64) -> bool {
        let mut next = 0;
        self.ranges == self.fragments
            && (0..self.ranges).all(|r| {
                let at = self.table + 16 * r;
                let fits = self.word(at) == next || self.word(at + 8) == 0;
                next += self.word(at + 8);
                fits
            })
            && next == rows
    }

    /// The number of ranges among the fragments before `f`.
    fn rank(&self, f: usize) -> usize {
        let ranks = self.ranks.get_or_init(|| {
            let mut sum = 0;
            let words = self.fragments.div_ceil(64);
            let mut ranks = Vec::with_capacity(words);
            for word in 0..words {
                ranks.push(sum);
                sum += self.bits(word).count_ones();
            }
            ranks.into()
        });
        let before = self.bits(f / 64) & ((1_u64 << (f % 64)) - 1);
        (ranks[f / 64] + before.count_ones()) as usize
    }

    /// A 64-bit word of the bitmap, which is padded to whole words.
    fn bits(&self, word: usize) -> u64 {
        self.word(HEADER + 8 * word)
    }

    fn word(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.blob[at..at + 8]);
        u64::from_le_bytes(word)
    }

    fn offset(&self, e: usize) -> usize {
        let at = self.offsets + 4 * e;
        let mut word = [0; 4];
        word.copy_from_slice(&self.blob[at..at + 4]);
        u32::from_le_bytes(word) as usize
    }
}

/// Counts the set bits for the first `fragments` fragments. The bits after them are padding.
fn count_ranges(bitmap: &[u8], fragments: usize) -> usize {
    let whole: u32 = bitmap[..fragments / 8].iter().map(|byte| byte.count_ones()).sum();
    let rest = fragments % 8;
    let last = if rest == 0 { 0 } else { bitmap[fragments / 8] & ((1 << rest) - 1) };
    (whole + last.count_ones()) as usize
}

// These checks run over all values without branches. They search for the invalid one only if there is one.

fn check_ranges(table: &[u8], place: Place<'_>) -> Result<()> {
    let table = table.as_chunks::<16>().0;
    // The sign bit is set if the start, the count or their sum is negative. The sum of two non-negative numbers
    // overflows to a negative one.
    let signs = |pair: &[u8; 16]| {
        let (start, count) = (signed(pair), signed(&pair[8..]));
        start | count | start.wrapping_add(count)
    };
    if table.iter().fold(0, |all, pair| all | signs(pair)) < 0
        && let Some((r, pair)) = table.iter().enumerate().find(|(_, pair)| signs(pair) < 0)
    {
        let (start, count) = (signed(pair), signed(&pair[8..]));
        return Err(place.plus(16 * r as u64).corrupt(format!("range {r} is {count} rows from {start}")));
    }
    Ok(())
}

fn check_rows(rows: &[u8], place: Place<'_>) -> Result<()> {
    let words = rows.as_chunks::<8>().0;
    if words.iter().fold(0, |all, row| all | signed(row)) < 0
        && let Some((at, row)) = words.iter().enumerate().find(|(_, row)| signed(*row) < 0)
    {
        return Err(place.plus(8 * at as u64).corrupt(format!("row {}", signed(row))));
    }
    Ok(())
}

fn signed(bytes: &[u8]) -> i64 {
    bytes.first_chunk::<8>().map_or(0, |word| i64::from_le_bytes(*word))
}

/// Checks that the first offset is zero and none decreases. Returns the last offset.
fn check_offsets(offsets: &[u8], place: Place<'_>) -> Result<usize> {
    let mut last = 0;
    for (e, offset) in offsets.as_chunks::<4>().0.iter().enumerate() {
        let offset = u32::from_le_bytes(*offset);
        if (e == 0 && offset != 0) || offset < last {
            let problem = format!("offset {e} of the lists is {offset}, after {last}");
            return Err(place.plus(4 * e as u64).corrupt(problem));
        }
        last = offset;
    }
    Ok(last as usize)
}

/// Encodes fragments, each in its given form, for a chunk of `rows` rows.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if a fragment names a row that the chunk does not have, or if the format cannot
/// represent the counts.
pub fn encode(fragments: &[Fragment], rows: u64) -> Result<Vec<u8>> {
    let count = u32::try_from(fragments.len()).map_err(|_| Error::invalid("more than 2^32 fragments"))?;
    if i64::try_from(rows).is_err() {
        return Err(Error::invalid(format!("a chunk of {rows} rows")));
    }
    let mut bitmap = vec![0_u8; fragments.len().div_ceil(8).next_multiple_of(8)];
    let (mut table, mut offsets, mut list) = (Vec::new(), vec![0_u32], Vec::new());
    for (f, fragment) in fragments.iter().enumerate() {
        let outside =
            || Error::invalid(format!("fragment {f} names rows that a chunk of {rows} does not have"));
        match fragment {
            Fragment::Range { start, count } => {
                start.checked_add(*count).filter(|end| *end <= rows).ok_or_else(outside)?;
                bitmap[f / 8] |= 1 << (f % 8);
                table.extend(start.to_le_bytes());
                table.extend(count.to_le_bytes());
            }
            Fragment::Rows(own) => {
                if own.iter().any(|row| *row >= rows) {
                    return Err(outside());
                }
                list.extend(own.iter().flat_map(|row| row.to_le_bytes()));
                let total = u32::try_from(list.len() / 8);
                offsets.push(total.map_err(|_| Error::invalid("more than 2^32 rows in lists"))?);
            }
        }
    }
    let mut blob = Vec::with_capacity(HEADER + bitmap.len() + table.len() + 4 * offsets.len() + list.len());
    blob.extend(MAGIC);
    blob.extend([1, 0, 0, 0]);
    blob.extend(count.to_le_bytes());
    blob.extend(((table.len() / 16) as u32).to_le_bytes());
    if count > 0 {
        blob.extend(bitmap);
        blob.extend(table);
        blob.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
        blob.extend(list);
    }
    Ok(blob)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLACE: Place<'_> = Place::new("x.zv", "fragment index", 0);

    /// The worked example of the specification, byte for byte.
    const EXAMPLE: [u8; 88] = [
        0x47, 0x46, 0x56, 0x5A, 1, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, // header
        5, 0, 0, 0, 0, 0, 0, 0, // bitmap
        0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, // range 0
        20, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, // range 1
        0, 0, 0, 0, 3, 0, 0, 0, // offsets
        12, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 19, 0, 0, 0, 0, 0, 0, 0, // rows
    ];

    fn example() -> Vec<Fragment> {
        vec![
            Fragment::Range { start: 0, count: 4 },
            Fragment::Rows(vec![12, 7, 19]),
            Fragment::Range { start: 20, count: 8 },
        ]
    }

    fn parse(bytes: &[u8]) -> Result<FragmentIndex> {
        FragmentIndex::parse(Bytes::copy_from_slice(bytes), PLACE)
    }

    #[test]
    fn the_worked_example_round_trips_exactly() -> Result<()> {
        assert_eq!(encode(&example(), 28)?, EXAMPLE);
        let index = parse(&EXAMPLE)?;
        assert_eq!(index.iter().collect::<Vec<_>>(), example());
        assert_eq!((index.is_range(0), index.is_range(1), index.is_range(3)), (true, false, false));
        assert_eq!(index.rows(1).unwrap().collect::<Vec<_>>(), [12, 7, 19]);
        assert!(index.rows(3).is_none());
        index.check_rows(28, PLACE)?;
        assert!(index.check_rows(27, PLACE).unwrap_err().to_string().contains("ends at row 28"));
        Ok(())
    }

    #[test]
    fn edge_cases_have_the_right_size() -> Result<()> {
        assert_eq!(encode(&[], 5)?.len(), 16);
        assert!(parse(&encode(&[], 5)?)?.is_empty());
        let ranges = [Fragment::Range { start: 0, count: 2 }, Fragment::Range { start: 2, count: 0 }];
        let blob = encode(&ranges, 2)?;
        assert_eq!(blob.len(), 16 + 8 + 32 + 4);
        assert!(parse(&blob)?.tiles(2));
        assert!(!parse(&blob)?.tiles(3));
        assert!(parse(&blob[..blob.len() - 4]).is_err());
        Ok(())
    }

    /// Everything that must be rejected, as a change to the example and the resulting error.
    #[test]
    fn malformed_blobs_are_rejected_with_the_reason() {
        let damage: [(&str, usize, &[u8]); 12] = [
            ("magic", 0, &[0x5A, 0x56, 0x46, 0x47]),
            ("version 2", 4, &[2]),
            ("flags 1", 6, &[1]),
            ("4 ranges among 3", 12, &[4]),
            ("2 bits set, 1 ranges", 12, &[1]),
            ("1 bits set", 16, &[1]),
            ("bytes expected", 8, &[255, 255, 255, 255]),
            ("range 0 is 4 rows from -", 31, &[0x80]),
            ("range 1 is -", 55, &[0xff]),
            ("offset 0 of the lists is 9", 56, &[9]),
            ("4 rows in lists", 60, &[4]),
            ("row -", 71, &[0x80]),
        ];
        for (reason, at, bytes) in damage {
            let mut blob = EXAMPLE;
            blob[at..at + bytes.len()].copy_from_slice(bytes);
            let error = parse(&blob).unwrap_err();
            assert!(error.is_corrupt() && error.to_string().contains(reason), "{reason}: {error}");
        }
        for length in 0..EXAMPLE.len() {
            assert!(parse(&EXAMPLE[..length]).unwrap_err().is_corrupt(), "{length}");
        }
        let mut longer = EXAMPLE.to_vec();
        longer.push(0);
        assert!(parse(&longer).unwrap_err().to_string().contains("1 bytes left over"));
        // A range that ends past the last i64.
        let mut far = EXAMPLE;
        far[24..32].copy_from_slice(&i64::MAX.to_le_bytes());
        assert!(parse(&far).is_err());
        // Padding is ignored.
        let mut dirty = EXAMPLE;
        dirty[16] |= 0xf8;
        dirty[17] = 255;
        assert_eq!(parse(&dirty).unwrap().iter().collect::<Vec<_>>(), example());
        assert!(parse(&dirty).unwrap().has_dirty_padding() && !parse(&EXAMPLE).unwrap().has_dirty_padding());
    }

    #[test]
    fn invalid_fragments_are_rejected() {
        assert!(encode(&[Fragment::Range { start: 3, count: 2 }], 4).is_err());
        assert!(encode(&[Fragment::Range { start: u64::MAX, count: 2 }], 4).is_err());
        assert!(encode(&[Fragment::Rows(vec![0, 4])], 4).is_err());
        assert_eq!(Fragment::smallest(&[5, 6, 7]), Fragment::Range { start: 5, count: 3 });
        assert_eq!(Fragment::smallest(&[5]), Fragment::Rows(vec![5]));
        assert_eq!(Fragment::smallest(&[5, 7]), Fragment::Rows(vec![5, 7]));
    }

    proptest! {
        #[test]
        fn any_fragments_round_trip(parts in prop::collection::vec(prop::collection::vec(0_u64..40, 0..5), 0..200), kinds: u64) {
            let fragments: Vec<Fragment> = parts
                .iter()
                .enumerate()
                .map(|(i, rows)| match rows.as_slice() {
                    [start, count, ..] if kinds >> (i % 64) & 1 == 1 => Fragment::Range { start: *start, count: *count },
                    _ => Fragment::Rows(rows.clone()),
                })
                .collect();
            let index = parse(&encode(&fragments, 80).unwrap()).unwrap();
            prop_assert_eq!(index.iter().collect::<Vec<_>>(), fragments);
        }

        #[test]
        fn damage_never_panics(at in 0_usize..88, value: u8, length in 0_usize..90) {
            let mut blob = EXAMPLE.to_vec();
            blob[at] = value;
            blob.resize(length, 0);
            if let Ok(index) = parse(&blob) {
                let _ = index.check_rows(100, PLACE);
                if index.check_rows(1 << 20, PLACE).is_ok() {
                    prop_assert_eq!(index.iter().count(), index.len());
                }
            }
        }
    }
}
