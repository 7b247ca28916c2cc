//! Engine work: on a bounded number of threads, in bounded memory and time, and cancelled if the client disconnects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyperslab::Progress;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::ServeOptions;
use crate::answer::Failure;

/// Memory is counted in units of this many bytes.
const UNIT: u64 = 4096;

/// The maximum time to wait for memory held by other responses.
const MEMORY_WAIT: Duration = Duration::from_secs(20);

/// Limits for concurrent work.
#[derive(Debug)]
pub(crate) struct Work {
    slots: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    /// The total number of units.
    units: u32,
    waiting: AtomicUsize,
    most_waiting: usize,
    timeout: Duration,
}

/// One piece of work: its memory and its cancellation.
#[derive(Debug)]
pub(crate) struct Job {
    work: Arc<Work>,
    pub(crate) progress: Arc<Progress>,
    handle: Handle,
    /// One of the bounded number of threads, held while the job runs.
    slot: OwnedSemaphorePermit,
}

/// Memory held by a response until it is sent.
#[derive(Debug)]
pub(crate) struct Held(#[expect(dead_code, reason = "dropped with the answer")] OwnedSemaphorePermit);

/// Cancels a job when the future that waits for it is dropped: the client disconnected, or time ran out.
struct StopOnDrop(Arc<Progress>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Work {
    pub(crate) fn new(options: &ServeOptions, memory: u64) -> Self {
        let units = u32::try_from(memory / UNIT).unwrap_or(u32::MAX >> 3).clamp(1, u32::MAX >> 3);
        Self {
            slots: Arc::new(Semaphore::new(options.workers.max(1))),
            memory: Arc::new(Semaphore::new(units as usize)),
            units,
            waiting: AtomicUsize::new(0),
            most_waiting: options.waiting,
            timeout: options.timeout,
        }
    }

    /// Runs work on a thread that may block.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(Job) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.most_waiting {
            drop(Waiting(&self.waiting));
            return Err(Failure::busy());
        }
        let waiting = Waiting(&self.waiting);
        let slot = Arc::clone(&self.slots).acquire_owned();
        let slot = tokio::time::timeout(self.timeout, slot).await;
        drop(waiting);
        let Ok(Ok(slot)) = slot else { return Err(Failure::busy()) };
        let progress = Arc::new(Progress::default());
        let stop = StopOnDrop(Arc::clone(&progress));
        let job = Job { work: Arc::clone(self), progress, handle: Handle::current(), slot };
        let running = tokio::task::spawn_blocking(move || work(job));
        let done = tokio::time::timeout(self.timeout, running).await;
        let outcome = match done {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Failure::internal("the work ended unexpectedly")),
            Err(_) => Err(Failure::too_slow(self.timeout)),
        };
        drop(stop);
        outcome
    }
}

impl Job {
    /// The memory limit of a single response.
    pub(crate) fn limit(&self) -> u64 {
        u64::from(self.work.units) * UNIT / 2
    }

    /// Reserves memory, waiting for responses that are still being sent. A request that exceeds the limit is refused at once.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<Held, Failure> {
        let limit = self.limit();
        if bytes > limit {
            return Err(Failure::too_large(bytes, limit));
        }
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(self.work.units);
        let wait = Arc::clone(&self.work.memory).acquire_many_owned(units);
        let permit = self.handle.block_on(async { tokio::time::timeout(MEMORY_WAIT, wait).await });
        match permit {
            Ok(Ok(permit)) => {
                self.progress.check_cancelled()?;
                Ok(Held(permit))
            }
            _ => Err(Failure::busy()),
        }
    }

    /// Releases the thread, for work that continues while the response is being sent.
    pub(crate) fn into_parts(self) -> (Handle, Duration, OwnedSemaphorePermit) {
        (self.handle, self.work.timeout, self.slot)
    }
}
