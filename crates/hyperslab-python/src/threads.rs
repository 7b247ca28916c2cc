//! Thread pools by size. `hyperslab._threads` determines the number of threads for the current context.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hyperslab::Threads;
use hyperslab::convert::Progress;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

type Pools = HashMap<usize, Arc<rayon::ThreadPool>>;

static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

/// Set in a forked process. The threads of the global pool do not exist there.
static FORKED: AtomicBool = AtomicBool::new(false);

/// A pool of this many threads; by default as many as `hyperslab.threads()` gives.
pub(crate) fn wanted(py: Python<'_>, count: Option<usize>) -> PyResult<Threads> {
    match wanted_count(py, count)? {
        0 | 1 => Ok(Threads::Caller),
        count => pool_of(py, count).map(Threads::Pool),
    }
}

fn wanted_count(py: Python<'_>, count: Option<usize>) -> PyResult<usize> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if let Some(count) = count {
        return Ok(count);
    }
    let current = CURRENT
        .get_or_try_init(py, || py.import("hyperslab._threads")?.getattr("current").map(Bound::unbind))?;
    current.bind(py).call0()?.extract()
}

/// The pool of this many threads, created once.
fn pool_of(py: Python<'_>, count: usize) -> PyResult<Arc<rayon::ThreadPool>> {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let pools = pools.get_or_insert_default();
    if let Some(pool) = pools.get(&count) {
        return Ok(Arc::clone(pool));
    }
    let pool = Arc::new(new_pool(py, count)?);
    pools.insert(count, Arc::clone(&pool));
    Ok(pool)
}

fn new_pool(py: Python<'_>, count: usize) -> PyResult<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(count)
        .thread_name(|number| format!("hyperslab-{number}"))
        .build()
        .map_err(|error| crate::errors::invalid(py, error.to_string()))
}

/// Runs engine work that chooses its own threads, in the wanted pool and without the GIL.
pub(crate) fn within<T: Send>(
    py: Python<'_>,
    count: Option<usize>,
    work: impl FnOnce() -> hyperslab::Result<T> + Send,
) -> PyResult<T> {
    // A single thread needs a pool too, because the global pool has all cores.
    let pool = pool_of(py, wanted_count(py, count)?.max(1))?;
    crate::errors::detached(py, || pool.install(work))
}

/// Like [`within`], for work that can be stopped: a signal handler that raises an exception, as on Ctrl-C, stops it.
pub(crate) fn within_stoppable<T: Send>(
    py: Python<'_>,
    count: Option<usize>,
    work: impl FnOnce(&Progress) -> hyperslab::Result<T> + Send,
) -> PyResult<T> {
    let pool = pool_of(py, wanted_count(py, count)?.max(1))?;
    let progress = Progress::default();
    let run = || pool.install(|| work(&progress));
    #[cfg(unix)]
    let run = || hyperslab::driver::guarded(run);
    let stop = || progress.stop.store(true, Ordering::Relaxed);
    crate::signals::run_watched(py, stop, run)?.map_err(|error| crate::errors::raised(py, &error))
}

/// In a forked child, the pool for all work: code that uses the global pool would wait for threads that do not exist.
pub(crate) fn after_fork(py: Python<'_>) -> PyResult<Option<Arc<rayon::ThreadPool>>> {
    if !FORKED.load(Ordering::Relaxed) {
        return Ok(None);
    }
    pool_of(py, wanted_count(py, None)?.max(1)).map(Some)
}

/// Like [`after_fork`], for work that blocks on its caller and must not occupy a shared pool.
pub(crate) fn own_after_fork(py: Python<'_>) -> PyResult<Option<rayon::ThreadPool>> {
    if !FORKED.load(Ordering::Relaxed) {
        return Ok(None);
    }
    new_pool(py, wanted_count(py, None)?.max(1)).map(Some)
}

/// Forgets the pools: their threads do not exist in the child process.
#[pyfunction]
pub(crate) fn _after_fork() {
    FORKED.store(true, Ordering::Relaxed);
    let mut pools = match POOLS.try_lock() {
        Ok(pools) => pools,
        Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        // Another thread of the parent was creating a pool during the fork. The lock's owner does not exist here.
        Err(std::sync::TryLockError::WouldBlock) => return,
    };
    // Not dropped: dropping a pool waits for its threads.
    std::mem::forget(pools.take());
}
