//! On which threads an operation runs.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use crate::Result;

/// Chunks that one task locates and reads: enough to share index blocks, few enough to keep all cores busy.
const CHUNKS_PER_TASK: u64 = 32;
/// As [`CHUNKS_PER_TASK`], of remote chunks: at the least.
const REMOTE_CHUNKS_PER_TASK: u64 = 64;
/// Threads for remote arrays, which wait for responses most of the time.
const REMOTE_THREADS: usize = 16;
/// Tasks that each thread gets at least: the last one to finish keeps the others waiting for a task at most.
const TASKS_PER_THREAD: u64 = 64;

/// On which threads an operation runs.
#[derive(Debug, Clone, Default)]
pub enum Threads {
    /// Those of the pool that the caller is in, or the global one.
    #[default]
    Shared,
    /// The caller's own, alone: for callers that are many themselves.
    Caller,
    /// Those of this pool.
    Pool(Arc<rayon::ThreadPool>),
}

impl Threads {
    /// More threads than there are cores, for arrays on other machines.
    #[must_use]
    pub fn for_remote() -> Self {
        static POOL: OnceLock<Option<Arc<rayon::ThreadPool>>> = OnceLock::new();
        let build = || {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(REMOTE_THREADS);
            builder.thread_name(|number| format!("remote {number}")).build().ok().map(Arc::new)
        };
        POOL.get_or_init(build).clone().map_or(Self::Shared, Self::Pool)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Self::Shared => rayon::current_num_threads() as u64,
            Self::Caller => 1,
            Self::Pool(pool) => pool.current_num_threads() as u64,
        }
    }

    /// Runs `work` with these threads as rayon's own, so that parallel iterators inside use them.
    pub fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match self {
            Self::Pool(pool) => pool.install(work),
            Self::Shared | Self::Caller => work(),
        }
    }

    /// Runs `work` for each of these numbers; the results are in the order of the numbers.
    ///
    /// # Errors
    ///
    /// The first that `work` returns.
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

    /// Runs `work(first, count)` over runs of neighbours of `length` chunks. A single run stays on the caller's
    /// thread: handing it over would cost more than a small read. Runs of `remote` chunks are longer, so that neighbours are
    /// requested together.
    ///
    /// # Errors
    ///
    /// The first that `work` returns.
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
    /// The first that `work` returns.
    pub fn each<T: Send>(&self, parts: Vec<T>, work: impl Fn(T) -> Result<()> + Sync + Send) -> Result<()> {
        match self {
            Self::Caller => parts.into_iter().try_for_each(work),
            Self::Shared => parts.into_par_iter().with_max_len(1).try_for_each(work),
            Self::Pool(pool) => pool.install(|| parts.into_par_iter().with_max_len(1).try_for_each(work)),
        }
    }
}
