//! What a request costs, measured as requests are answered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The gap that is bridged before anything was measured.
const USUAL_GAP: u64 = 128 << 10;
/// The measured gap stays between these.
const GAPS: std::ops::RangeInclusive<u64> = 32 << 10..=1 << 20;
/// This many requests wait at the same time, so that one more takes this fraction of its latency.
const SHARED: u64 = 16;
/// Answers before the measurements count.
const LEAST_ANSWERS: u64 = 4;
/// Smaller answers tell the latency only.
const LEAST_BYTES: u64 = 64 << 10;

/// The latency and bandwidth of a server: moving averages, in which the latest answer counts a quarter.
#[derive(Debug, Default)]
pub(crate) struct Cost {
    /// A gap that the user chose.
    fixed: Option<u64>,
    answers: AtomicU64,
    /// Microseconds to the first byte.
    latency: AtomicU64,
    /// Bytes per millisecond of one connection.
    bandwidth: AtomicU64,
}

impl Cost {
    pub(crate) fn new(fixed: Option<u64>) -> Self {
        Self { fixed, ..Self::default() }
    }

    /// Notes an answer: the time to its first byte, its bytes, and the time that they took.
    pub(crate) fn answered(&self, waited: Duration, bytes: u64, took: Duration) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        average(&self.latency, waited.as_micros());
        if bytes >= LEAST_BYTES {
            average(&self.bandwidth, u128::from(bytes) * 1_000_000 / took.as_nanos().max(1));
        }
    }

    /// The widest gap between two ranges for which one request is cheaper than two: the bytes that the server could send
    /// in the time that another request takes.
    pub(crate) fn gap(&self) -> u64 {
        if let Some(gap) = self.fixed {
            return gap;
        }
        let (latency, bandwidth) =
            (self.latency.load(Ordering::Relaxed), self.bandwidth.load(Ordering::Relaxed));
        if self.answers.load(Ordering::Relaxed) < LEAST_ANSWERS || bandwidth == 0 {
            return USUAL_GAP;
        }
        (latency.saturating_mul(bandwidth) / 1000 / SHARED).clamp(*GAPS.start(), *GAPS.end())
    }
}

/// Moves an average towards a new value. Two answers at once may lose one of them.
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
        assert_eq!(Cost::default().gap(), USUAL_GAP);
        let bucket = measured(30, 100_000_000);
        assert!((150_000..200_000).contains(&bucket), "{bucket}");
        assert_eq!(measured(1, 10_000_000), *GAPS.start());
        assert_eq!(measured(500, 1_000_000_000), *GAPS.end());
        assert_eq!(Cost::new(Some(7)).gap(), 7);
    }
}
