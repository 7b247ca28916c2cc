//! Checksums per chunk, which the format lacks. They are stored under our own key of the metadata.
//!
//! The table is bound to the index: it includes a checksum of the index rows. If another program rewrites the index, the table is
//! recognised as stale, and intact chunks are not reported as damaged.

use std::ops::Range;

use hyperslab_codec::checksum::crc32c;
use serde::{Deserialize, Serialize};

/// Up to this many rows, each has its own checksum in the metadata. Beyond, several rows share one.
const MOST: usize = 1 << 20;

/// The checksums of all chunks' stored bytes, in the order of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksums {
    /// Always `crc32c`.
    pub algorithm: String,
    /// The number of rows per checksum: with 1, it covers the stored bytes; above, the rows' checksums (little-endian).
    pub rows_each: u64,
    /// The checksum of the rows of the index.
    pub index: u32,
    /// The checksums (little-endian), in base64.
    pub base64: String,
}

impl Checksums {
    /// Builds the table from the checksum of each row's stored bytes.
    pub(crate) fn new(rows: &[u32], index: u32) -> Self {
        let rows_each = rows.len().div_ceil(MOST).max(1);
        let sums: Vec<u8> =
            rows.chunks(rows_each).flat_map(|group| combine(group, rows_each).to_le_bytes()).collect();
        Self {
            algorithm: "crc32c".to_owned(),
            rows_each: rows_each as u64,
            index,
            base64: encode_base64(&sums),
        }
    }

    /// One checksum per [`rows_each`](Self::rows_each) rows; `None` if the table cannot be read.
    pub(crate) fn sums(&self, rows: u64) -> Option<Vec<u32>> {
        if self.algorithm != "crc32c" || self.rows_each == 0 {
            return None;
        }
        let bytes = decode_base64(&self.base64)?;
        let (sums, rest) = bytes.as_chunks();
        let whole = rest.is_empty() && sums.len() as u64 == rows.div_ceil(self.rows_each);
        whole.then(|| sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect())
    }
}

/// The checksums that the rows of a file should have.
#[derive(Debug)]
pub(crate) enum Expected {
    /// None were stored.
    Nothing,
    /// They were stored for another index.
    Stale,
    /// One checksum per `rows_each` rows.
    Sums { sums: Vec<u32>, rows_each: usize },
}

impl Expected {
    /// The expected checksums for the rows of an index, according to the table.
    pub(crate) fn of(table: Option<&Checksums>, index: &[u8], rows: u64) -> Self {
        let Some(table) = table else { return Self::Nothing };
        match table.sums(rows).filter(|_| table.index == crc32c(index)) {
            Some(sums) => {
                Self::Sums { sums, rows_each: usize::try_from(table.rows_each).unwrap_or(usize::MAX) }
            }
            None => Self::Stale,
        }
    }
}

/// The rows that share a checksum. The last group may be smaller.
pub(crate) fn group(number: usize, rows_each: usize, rows: u64) -> Option<Range<usize>> {
    let start = number.checked_mul(rows_each)?;
    let end = start.saturating_add(rows_each).min(usize::try_from(rows).ok()?);
    (start < end).then_some(start..end)
}

/// The checksum that represents these rows.
pub(crate) fn combine(group: &[u32], rows_each: usize) -> u32 {
    match group {
        [sum] if rows_each == 1 => *sum,
        _ => crc32c(&group.iter().flat_map(|sum| sum.to_le_bytes()).collect::<Vec<_>>()),
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// RFC 4648 base64, with padding.
fn encode_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let at = |i: usize| u32::from(part.get(i).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let sextet = ALPHABET[(word >> (18 - 6 * digit) & 63) as usize];
            text.push(if digit <= part.len() { sextet.into() } else { '=' });
        }
    }
    text
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for part in digits.chunks(4) {
        let mut word = 0_u32;
        for digit in 0..4 {
            word = word << 6 | part.get(digit).map_or(Some(0), |digit| value(*digit))?;
        }
        bytes.extend_from_slice(word.to_be_bytes().get(1..part.len())?);
    }
    Some(bytes)
}

const fn value(digit: u8) -> Option<u32> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    } as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn base64_matches_the_rfc() {
        for (plain, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(encode_base64(plain.as_bytes()), text);
            assert_eq!(decode_base64(text).unwrap(), plain.as_bytes());
        }
        for wrong in ["Z", "Zg", "Zg=", "Z===", "Zm9v!A==", "===="] {
            assert_eq!(decode_base64(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn many_rows_share_a_checksum() {
        let rows: Vec<u32> = (0..MOST as u32 * 2 + 1).collect();
        let table = Checksums::new(&rows, 7);
        assert_eq!(table.rows_each, 3);
        let sums = table.sums(rows.len() as u64).unwrap();
        assert_eq!(sums[1], combine(&rows[3..6], 3));
        assert_eq!(table.sums(rows.len() as u64 + 3), None);
    }

    proptest! {
        #[test]
        fn tables_round_trip(rows: Vec<u32>) {
            prop_assert_eq!(Checksums::new(&rows, 7).sums(rows.len() as u64), Some(rows));
        }
    }
}
