//! Counts requests and bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counted traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// The number of requests.
    pub requests: u64,
    /// The size of their responses in bytes.
    pub bytes: u64,
    /// The number of times that a caller waited for one or more concurrent requests.
    pub rounds: u64,
    /// The size of uploads in bytes.
    pub sent: u64,
}

#[derive(Debug, Default)]
struct Counters {
    requests: AtomicU64,
    bytes: AtomicU64,
    rounds: AtomicU64,
    sent: AtomicU64,
}

/// Counts requests. Clones share the same counters.
///
/// ```
/// use hyperslab_remote::{Meter, RemoteOptions, Traffic};
/// let meter = Meter::default();
/// let options = RemoteOptions::default().with_meter(meter.clone());
/// assert_eq!(meter.traffic(), Traffic::default());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Counters>);

impl PartialEq for Meter {
    /// Returns true if both share the same counters.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Meter {}

impl Meter {
    /// The traffic so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        Traffic {
            requests: self.0.requests.load(Ordering::Relaxed),
            bytes: self.0.bytes.load(Ordering::Relaxed),
            rounds: self.0.rounds.load(Ordering::Relaxed),
            sent: self.0.sent.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn request(&self) {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn round(&self) {
        self.0.rounds.fetch_add(1, Ordering::Relaxed);
    }

    /// Records bytes sent to the server.
    pub(crate) fn sends(&self, bytes: u64) {
        self.0.sent.fetch_add(bytes, Ordering::Relaxed);
    }
}
