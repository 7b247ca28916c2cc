//! The resources of an operation, with its progress and cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Threads;
use crate::{Error, Result};

/// The resources of an operation: threads and memory. Also carries progress and cancellation.
#[derive(Debug, Clone)]
pub struct Context {
    /// The threads that decode chunks.
    pub threads: Threads,
    /// The memory limit for chunks, partial results and the result.
    pub memory: u64,
    progress: Option<Arc<Progress>>,
}

impl Context {
    /// A context with the caller's thread pool and this memory limit.
    #[must_use]
    pub const fn new(memory: u64) -> Self {
        Self { threads: Threads::Shared, memory, progress: None }
    }

    /// Sets the threads.
    #[must_use]
    pub fn with_threads(mut self, threads: Threads) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the progress, through which the operation is watched and cancelled.
    #[must_use]
    pub fn with_progress(mut self, progress: Arc<Progress>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Fails if the operation was cancelled.
    ///
    /// # Errors
    ///
    /// [`Cancelled`](Error::Cancelled) if it was.
    pub fn check_cancelled(&self) -> Result<()> {
        self.progress.as_ref().map_or(Ok(()), |progress| progress.check_cancelled())
    }
}

/// The progress of an operation, to be watched and cancelled from another thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes of elements processed so far.
    pub done: AtomicU64,
    /// Bytes of elements in total.
    pub total: AtomicU64,
    /// Set to end the operation with an error.
    pub stop: AtomicBool,
}

impl Progress {
    /// Fails if the operation was cancelled.
    ///
    /// # Errors
    ///
    /// [`Cancelled`](Error::Cancelled) if it was.
    pub fn check_cancelled(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
}
