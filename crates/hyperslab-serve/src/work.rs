//! Engine work: on a bounded number of threads, in bounded memory and time, and cancelled if the client disconnects.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyperslab::Progress;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::ServeOptions;
use crate::answer::Failure;
use crate::connections::MIN_READ_RATE;

/// Memory is counted in units of this many bytes.
const UNIT: u64 = 4096;

/// The maximum time to wait for memory held by other responses.
const MEMORY_WAIT: Duration = Duration::from_secs(20);

/// Jobs that may wait for memory at once; further ones are refused.
const MAX_MEMORY_WAITS: usize = 64;

/// Limits for concurrent work.
#[derive(Debug)]
pub(crate) struct Work {
    slots: Arc<Semaphore>,
    memory: Arc<Semaphore>,
    /// The part of the memory that streams may hold, so that slow readers of streams leave some for others.
    stream_memory: Arc<Semaphore>,
    /// The total number of units.
    units: u32,
    waiting: AtomicUsize,
    memory_waits: AtomicUsize,
    most_waiting: usize,
    timeout: Duration,
}

/// One piece of work: its memory and its cancellation.
#[derive(Debug)]
pub(crate) struct Job {
    work: Arc<Work>,
    pub(crate) progress: Arc<Progress>,
    handle: Handle,
    /// One of the bounded number of threads, held while the job runs and does not wait for memory.
    slot: Mutex<Option<OwnedSemaphorePermit>>,
}

/// Memory held by a response until it is sent.
#[derive(Debug)]
pub(crate) struct Held(
    #[expect(dead_code, reason = "released with the response")] OwnedSemaphorePermit,
    #[expect(dead_code, reason = "released with the response")] Option<OwnedSemaphorePermit>,
);

/// Cancels a job when the future that waits for it is dropped: the client disconnected, or time ran out.
pub(crate) struct StopOnDrop(pub(crate) Arc<Progress>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

/// Counts waiting jobs. Returns `None` if there are too many.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        let before = count.fetch_add(1, Ordering::Relaxed);
        let waiting = Self(count);
        (before < most).then_some(waiting)
    }
}

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
            stream_memory: Arc::new(Semaphore::new(units as usize / 2)),
            units,
            waiting: AtomicUsize::new(0),
            memory_waits: AtomicUsize::new(0),
            most_waiting: options.waiting,
            timeout: options.timeout,
        }
    }

    /// Runs work on a thread that may block.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(Job) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let waiting = Waiting::begin(&self.waiting, self.most_waiting).ok_or_else(Failure::busy)?;
        let slot = self.slot().await;
        drop(waiting);
        let slot = Mutex::new(Some(slot.ok_or_else(Failure::busy)?));
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

    /// One of the bounded number of threads; `None` if none becomes free in time.
    pub(crate) async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        let slot = Arc::clone(&self.slots).acquire_owned();
        tokio::time::timeout(self.timeout, slot).await.ok()?.ok()
    }

    /// Reserves memory for a stream; `None` if other streams do not release theirs in time.
    pub(crate) async fn reserve_stream(&self, bytes: u64) -> Option<Held> {
        let units = self.units_of(bytes).min(self.units / 2);
        let both = async {
            let share = Arc::clone(&self.stream_memory).acquire_many_owned(units).await.ok()?;
            let memory = Arc::clone(&self.memory).acquire_many_owned(units).await.ok()?;
            Some(Held(memory, Some(share)))
        };
        tokio::time::timeout(self.timeout, both).await.ok()?
    }

    /// The longest that a client may take to read this many bytes.
    pub(crate) fn time_to_read(&self, bytes: u64) -> Duration {
        self.timeout + Duration::from_secs(bytes / MIN_READ_RATE)
    }

    fn units_of(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(self.units)
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
        let units = self.work.units_of(bytes);
        let memory = &self.work.memory;
        let permit = match Arc::clone(memory).try_acquire_many_owned(units) {
            Ok(permit) => permit,
            Err(_) => self.wait_for_memory(units)?,
        };
        self.progress.check_cancelled()?;
        Ok(Held(permit, None))
    }

    /// Waits for responses that are still being sent. Others may use the thread meanwhile.
    fn wait_for_memory(&self, units: u32) -> Result<OwnedSemaphorePermit, Failure> {
        let waiting = Waiting::begin(&self.work.memory_waits, MAX_MEMORY_WAITS).ok_or_else(Failure::busy)?;
        *self.lock_slot() = None;
        let wait = Arc::clone(&self.work.memory).acquire_many_owned(units);
        let permit = self.handle.block_on(async { tokio::time::timeout(MEMORY_WAIT, wait).await });
        drop(waiting);
        let Ok(Ok(permit)) = permit else { return Err(Failure::busy()) };
        let slot = self.handle.block_on(self.work.slot()).ok_or_else(Failure::busy)?;
        *self.lock_slot() = Some(slot);
        Ok(permit)
    }

    fn lock_slot(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the thread, for work that continues while the response is being sent.
    pub(crate) fn into_parts(self) -> (Handle, Arc<Work>) {
        (self.handle, self.work)
    }
}
