//! Merges ranges of one object into requests.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use hyperslab_core::FetchCost;

/// Gaps up to this size are always bridged: a second request takes longer than these bytes.
const SMALL_GAP: u64 = 16 << 10;
/// The maximum size of a request. Longer ranges are divided, so that several connections transfer them.
const MAX_REQUEST: u64 = 8 << 20;

/// The requests that cover some ranges, sorted by offset.
#[derive(Debug)]
pub(crate) struct Requests {
    /// The ranges to request. They do not overlap.
    pub(crate) ranges: Vec<Range<u64>>,
}

impl Requests {
    /// Covers these ranges, which must not be reversed. Bridges gaps up to `gap` as long as at most half of the bytes
    /// are wasted.
    pub(crate) fn covering(wanted: &[Range<u64>], gap: u64) -> Self {
        let mut sorted: Vec<&Range<u64>> = wanted.iter().filter(|range| !range.is_empty()).collect();
        sorted.sort_by_key(|range| (range.start, range.end));
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut useful = 0_u64;
        for range in sorted {
            if let Some(last) = ranges.last_mut()
                && (range.start <= last.end || joins(last, useful, range, gap))
            {
                useful += range.end.saturating_sub(range.start.max(last.end));
                last.end = last.end.max(range.end);
            } else {
                useful = range.end - range.start;
                ranges.push(range.clone());
            }
        }
        Self { ranges: ranges.into_iter().flat_map(cut).collect() }
    }

    /// The cost of the requests.
    pub(crate) fn cost(&self) -> FetchCost {
        let bytes = self.ranges.iter().map(|range| range.end - range.start).sum();
        FetchCost { requests: self.ranges.len() as u64, bytes }
    }

    /// Extracts a covered range from the fetched bytes.
    pub(crate) fn bytes_of(&self, fetched: &[Bytes], wanted: &Range<u64>) -> Option<Bytes> {
        if wanted.is_empty() {
            return Some(Bytes::new());
        }
        let first = self.ranges.partition_point(|range| range.end <= wanted.start);
        let part = |number: usize| {
            let (range, bytes) = (self.ranges.get(number)?, fetched.get(number)?);
            let start = wanted.start.max(range.start).checked_sub(range.start)?;
            let end = wanted.end.min(range.end).checked_sub(range.start)?;
            (start <= end && end <= bytes.len() as u64).then(|| bytes.slice(start as usize..end as usize))
        };
        let whole = part(first)?;
        let length = (wanted.end - wanted.start) as usize;
        if whole.len() == length {
            return Some(whole);
        }
        let mut joined = BytesMut::with_capacity(length);
        joined.extend_from_slice(&whole);
        let mut number = first;
        while joined.len() < length {
            number += 1;
            let next = part(number).filter(|next| !next.is_empty())?;
            joined.extend_from_slice(&next);
        }
        Some(joined.freeze())
    }
}

/// Returns true if a range should be requested together with the preceding request.
fn joins(request: &Range<u64>, useful: u64, next: &Range<u64>, widest: u64) -> bool {
    let gap = next.start - request.end;
    let whole = next.end.saturating_sub(request.start);
    let wasted = whole.saturating_sub(useful).saturating_sub(next.end - next.start);
    whole <= MAX_REQUEST && (gap <= SMALL_GAP || gap <= widest && wasted <= whole / 2)
}

/// Divides a request that is too long into equal pieces.
fn cut(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let length = range.end - range.start;
    let pieces = length.div_ceil(MAX_REQUEST).max(1);
    let each = length.div_ceil(pieces);
    (0..pieces).map(move |piece| {
        let start = range.start + piece * each;
        start..range.end.min(start.saturating_add(each))
    })
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "lists of one range")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn close_ranges_are_merged() {
        let requests = |ranges: &[Range<u64>]| Requests::covering(ranges, 128 << 10).ranges;
        assert_eq!(requests(&[0..10, 10..20, 30..40]), [0..40]);
        assert_eq!(requests(&[0..10, 1_000_000..1_000_010]), [0..10, 1_000_000..1_000_010]);
        // At most half of the bytes may be waste.
        assert_eq!(requests(&[0..100_000, 200_000..300_000]), [0..300_000]);
        assert_eq!(requests(&[0..10_000, 110_000..120_000]), [0..10_000, 110_000..120_000]);
        let long = requests(&[0..10 * MAX_REQUEST]);
        assert_eq!(long.len(), 10);
        assert_eq!(long[9].end, 10 * MAX_REQUEST);
        assert_eq!(requests(&[5..5]), []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn every_range_is_covered(
            ranges in proptest::collection::vec((0..20_000_000_u64, 0..9_000_000_u64), 0..20),
            gap in 0..2_000_000_u64,
        ) {
            let ranges: Vec<_> = ranges.into_iter().map(|(start, length)| start..start + length).collect();
            let requests = Requests::covering(&ranges, gap);
            prop_assert!(requests.ranges.is_sorted_by(|a, b| a.end <= b.start));
            prop_assert!(requests.ranges.iter().all(|range| range.end - range.start <= MAX_REQUEST));
            let content = |range: &Range<u64>| -> Bytes { range.clone().map(|at| (at % 251) as u8).collect() };
            let fetched: Vec<_> = requests.ranges.iter().map(content).collect();
            for range in &ranges {
                prop_assert_eq!(requests.bytes_of(&fetched, range), Some(content(range)));
            }
        }
    }
}
