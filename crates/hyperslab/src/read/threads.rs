//! On which threads a read runs.

use std::sync::Arc;

use hyperslab_core::Result;
use rayon::prelude::*;

/// Chunks that one task locates and reads: enough to share index blocks, few enough to keep all cores busy.
const CHUNKS_PER_TASK: u64 = 32;
/// Tasks that each thread gets at least: the last one to finish keeps the others waiting for a task at most.
const TASKS_PER_THREAD: u64 = 64;

/// On which threads the chunks of a read are decoded.
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
    /// Runs `work(first, count)` over runs of neighbours of `length` chunks. A single run stays on the caller's
    /// thread: handing it over would cost more than a small read.
    pub(crate) fn run<T: Send>(
        &self,
        length: u64,
        work: impl Fn(u64, u64) -> Result<T> + Sync + Send,
    ) -> Result<Vec<T>> {
        let threads = match self {
            Self::Shared => rayon::current_num_threads() as u64,
            Self::Caller => 1,
            Self::Pool(pool) => pool.current_num_threads() as u64,
        };
        let each = if threads == 1 {
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
    pub(crate) fn each<T: Send>(
        &self,
        parts: Vec<T>,
        work: impl Fn(T) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        match self {
            Self::Caller => parts.into_iter().try_for_each(work),
            Self::Shared => parts.into_par_iter().with_max_len(1).try_for_each(work),
            Self::Pool(pool) => pool.install(|| parts.into_par_iter().with_max_len(1).try_for_each(work)),
        }
    }
}
