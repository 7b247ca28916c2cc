//! The measured cost of requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The maximum gap to bridge before measurements are available.
const DEFAULT_GAP: u64 = 128 << 10;
/// The bounds for the measured gap.
const GAPS: std::ops::RangeInclusive<u64> = 32 << 10..=1 << 20;
/// The typical number of concurrent requests. One more request costs this fraction of its latency.
const SHARED: u64 = 16;
/// The minimum number of responses before measurements are used.
const MIN_RESPONSES: u64 = 4;
/// Smaller responses only measure the latency.
const MIN_BYTES: u64 = 64 << 10;

/// The latency and bandwidth of a server, as moving averages in which the latest response has a weight of one
/// quarter.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    /// The gap set by the user.
    fixed: Option<u64>,
    answers: AtomicU64,
    /// Microseconds until the first byte.
    latency: AtomicU64,
    /// Bytes per millisecond on one connection.
    bandwidth: AtomicU64,
}

impl Cost {
    pub(crate) fn new(fixed: Option<u64>) -> Self {
        Self { fixed, ..Self::default() }
    }

    /// Records a response: the time to its first byte, its size, and the duration of the transfer.
    pub(crate) fn answered(&self, waited: Duration, bytes: u64, took: Duration) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        average(&self.latency, waited.as_micros());
        if bytes >= MIN_BYTES {
            average(&self.bandwidth, u128::from(bytes) * 1_000_000 / took.as_nanos().max(1));
        }
    }

    /// The widest gap between two ranges for which one request is cheaper than two: the number of bytes that the
    /// server could send in the time of another request.
    pub(crate) fn gap(&self) -> u64 {
        if let Some(gap) = self.fixed {
            return gap;
        }
        let (latency, bandwidth) =
            (self.latency.load(Ordering::Relaxed), self.bandwidth.load(Ordering::Relaxed));
        if self.answers.load(Ordering::Relaxed) < MIN_RESPONSES || bandwidth == 0 {
            return DEFAULT_GAP;
        }
        (latency.saturating_mul(bandwidth) / 1000 / SHARED).clamp(*GAPS.start(), *GAPS.end())
    }
}

/// Updates a moving average. Concurrent updates may lose one of the values.
fn average(of: &AtomicU64, value: u128) {
    let value = u64::try_from(value).unwrap_or(u64::MAX);
    let old = of.load(Ordering::Relaxed);
    let new = if old == 0 { value } else { old - old / 4 + value / 4 };
    of.store(new.max(1), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(latency: u64, per_second: u64) -> u64 {
        let cost = Cost::default();
        for _ in 0..20 {
            let took = Duration::from_secs_f64((1 << 20) as f64 / per_second as f64);
            cost.answered(Duration::from_millis(latency), 1 << 20, took);
        }
        cost.gap()
    }

    #[test]
    fn slow_answers_and_fast_connections_widen_the_gap() {
        assert_eq!(Cost::default().gap(), DEFAULT_GAP);
        let bucket = measured(30, 100_000_000);
        assert!((150_000..200_000).contains(&bucket), "{bucket}");
        assert_eq!(measured(1, 10_000_000), *GAPS.start());
        assert_eq!(measured(500, 1_000_000_000), *GAPS.end());
        assert_eq!(Cost::new(Some(7)).gap(), 7);
    }
}
