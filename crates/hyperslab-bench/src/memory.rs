//! Measures the private memory of the process during an operation. Pages of mapped files belong to the system and do
//! not count.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Samples the memory every few milliseconds.
#[derive(Debug)]
pub(crate) struct Watch {
    before: Option<u64>,
    peak: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Watch {
    /// Starts sampling.
    pub(crate) fn start() -> Self {
        let (peak, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (seen, end) = (Arc::clone(&peak), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                seen.fetch_max(own().unwrap_or(0), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Self { before: own(), peak, stop, thread }
    }

    /// The peak beyond the memory in use at the start; `None` if the system does not report it.
    pub(crate) fn peak(self) -> Option<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
        Some(self.peak.load(Ordering::Relaxed).saturating_sub(self.before?))
    }
}

/// The private memory of the process in bytes.
fn own() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}
