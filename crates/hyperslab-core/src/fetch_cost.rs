//! The cost of fetching bytes, before they are fetched.

use std::ops::{AddAssign, Range};

/// The requests for some bytes.
///
/// ```
/// use hyperslab_core::FetchCost;
/// let mut cost = FetchCost::of_runs(&[0..10, 10..20, 50..60]);
/// assert_eq!((cost.requests, cost.bytes), (2, 30));
/// cost += FetchCost { requests: 1, bytes: 5 };
/// assert_eq!((cost.requests, cost.bytes), (3, 35));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FetchCost {
    /// The number of requests.
    pub requests: u64,
    /// Their bytes, including any between the wanted ones. An object of unknown size counts as none.
    pub bytes: u64,
}

impl FetchCost {
    /// One request for each run of adjacent ranges.
    #[must_use]
    pub fn of_runs(ranges: &[Range<u64>]) -> Self {
        let mut cost = Self::default();
        let mut end = None;
        for range in ranges {
            cost.requests += u64::from(end != Some(range.start));
            cost.bytes = cost.bytes.saturating_add(range.end.saturating_sub(range.start));
            end = Some(range.end);
        }
        cost
    }
}

impl AddAssign for FetchCost {
    fn add_assign(&mut self, other: Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}
