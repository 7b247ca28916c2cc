//! The threads on which an operation runs.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use crate::Result;

/// Chunks per task: enough to share index blocks, few enough to keep all cores busy.
const CHUNKS_PER_TASK: u64 = 32;
/// The minimum number of chunks per task on remote storage.
const REMOTE_CHUNKS_PER_TASK: u64 = 64;
/// The number of threads for remote arrays, which mostly wait for responses. Each requests its chunks in one round, so more
/// threads would send more and smaller requests.
const REMOTE_THREADS: usize = 8;
/// The minimum number of tasks per thread. At the end, other threads wait for at most one task.
const TASKS_PER_THREAD: u64 = 64;

/// The threads on which an operation runs.
#[derive(Debug, Clone, Default)]
pub enum Threads {
    /// The pool that the caller runs in, or the global pool.
    #[default]
    Shared,
    /// The caller's thread only, for callers that are themselves parallel.
    Caller,
    /// This pool.
    Pool(Arc<rayon::ThreadPool>),
}

impl Threads {
    /// More threads than cores, for arrays on other machines.
    #[must_use]
    pub fn for_remote() -> Self {
        static POOL: OnceLock<Option<Arc<rayon::ThreadPool>>> = OnceLock::new();
        let build = || {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(REMOTE_THREADS);
            builder.thread_name(|number| format!("remote {number}")).build().ok().map(Arc::new)
        };
        POOL.get_or_init(build).clone().map_or(Self::Shared, Self::Pool)
    }

    /// The number of threads.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Self::Shared => rayon::current_num_threads() as u64,
            Self::Caller => 1,
            Self::Pool(pool) => pool.current_num_threads() as u64,
        }
    }

    /// Runs `work` inside this pool, so that rayon's parallel iterators use it.
    pub fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match self {
            Self::Pool(pool) => pool.install(work),
            Self::Shared | Self::Caller => work(),
        }
    }

    /// Runs `work` for each of these numbers. The results are in the order of the numbers.
    ///
    /// # Errors
    ///
    /// The first error from `work`.
    pub fn map<T: Send>(
        &self,
        count: usize,
        work: impl Fn(usize) -> Result<T> + Sync + Send,
    ) -> Result<Vec<T>> {
        match self {
            Self::Caller => (0..count).map(work).collect(),
            _ => self.install(|| (0..count).into_par_iter().with_max_len(1).map(work).collect()),
        }
    }

    /// Runs `work(first, count)` over runs of neighbouring chunks. A single run stays on the caller's thread, because handing it
    /// over would cost more than a small read. Runs of `remote` chunks are longer, so that neighbours are requested together.
    ///
    /// # Errors
    ///
    /// The first error from `work`.
    pub fn run<T: Send>(
        &self,
        length: u64,
        remote: bool,
        work: impl Fn(u64, u64) -> Result<T> + Sync + Send,
    ) -> Result<Vec<T>> {
        let threads = self.count();
        let each = if remote {
            length.div_ceil(threads).max(REMOTE_CHUNKS_PER_TASK)
        } else if threads == 1 {
            CHUNKS_PER_TASK
        } else {
            (length / (threads * TASKS_PER_THREAD)).clamp(1, CHUNKS_PER_TASK)
        };
        let one = |start: u64| work(start, each.min(length - start));
        if threads == 1 || length <= each {
            return (0..length).step_by(each as usize).map(one).collect();
        }
        let runs = usize::try_from(length.div_ceil(each)).unwrap_or(usize::MAX);
        let all = || (0..runs).into_par_iter().with_max_len(1).map(|run| one(run as u64 * each)).collect();
        if let Self::Pool(pool) = self { pool.install(all) } else { all() }
    }

    /// Runs `work` on each of these.
    ///
    /// # Errors
    ///
    /// The first error from `work`.
    pub fn each<T: Send>(&self, parts: Vec<T>, work: impl Fn(T) -> Result<()> + Sync + Send) -> Result<()> {
        match self {
            Self::Caller => parts.into_iter().try_for_each(work),
            Self::Shared => parts.into_par_iter().with_max_len(1).try_for_each(work),
            Self::Pool(pool) => pool.install(|| parts.into_par_iter().with_max_len(1).try_for_each(work)),
        }
    }
}
