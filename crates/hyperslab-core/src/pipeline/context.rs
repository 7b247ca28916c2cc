//! The resources of an operation, its progress and its cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Threads;
use crate::{Error, Result};

/// The resources of an operation: threads and memory. Also carries progress and cancellation.
#[derive(Debug, Clone)]
pub struct Context {
    /// Where chunks are decoded.
    pub threads: Threads,
    /// The most memory for chunks, partial results and the result.
    pub memory: u64,
    progress: Option<Arc<Progress>>,
}

impl Context {
    /// All threads of the caller's pool, and this much memory.
    #[must_use]
    pub const fn new(memory: u64) -> Self {
        Self { threads: Threads::Shared, memory, progress: None }
    }

    /// The same, on these threads.
    #[must_use]
    pub fn with_threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }

    /// The same, reporting to and stopped by `progress`.
    #[must_use]
    pub fn with_progress(mut self, progress: Arc<Progress>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Ends an operation that was cancelled.
    ///
    /// # Errors
    ///
    /// [`Cancelled`](Error::Cancelled) when it was.
    pub fn check_cancelled(&self) -> Result<()> {
        self.progress.as_ref().map_or(Ok(()), |progress| progress.check_cancelled())
    }
}

/// How far an operation is, to be watched and cancelled from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes of elements that are done.
    pub done: AtomicU64,
    /// Bytes of elements in all.
    pub total: AtomicU64,
    /// Set to end the operation with an error.
    pub stop: AtomicBool,
}

impl Progress {
    /// Ends an operation that was cancelled.
    ///
    /// # Errors
    ///
    /// [`Cancelled`](Error::Cancelled) when it was.
    pub fn check_cancelled(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
}
