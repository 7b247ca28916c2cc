//! Pools of threads, by size. `hyperslab._threads` says how many are wanted here and now.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hyperslab::Threads;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

type Pools = HashMap<usize, Arc<rayon::ThreadPool>>;

static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

/// Has this process come from another one by forking? The threads of the global pool did not come along.
static FORKED: AtomicBool = AtomicBool::new(false);

/// The threads of this many; of as many as `hyperslab.threads()` says when it is left out.
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

/// The pool of this many threads, which is made once.
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

/// Runs engine work that finds its threads by itself, in the wanted pool and without the GIL.
pub(crate) fn within<T: Send>(
    py: Python<'_>,
    count: Option<usize>,
    work: impl FnOnce() -> hyperslab::Result<T> + Send,
) -> PyResult<T> {
    // A single thread is a pool too: the global one has all.
    let pool = pool_of(py, wanted_count(py, count)?.max(1))?;
    crate::errors::detached(py, || pool.install(work))
}

/// In a forked child, the pool in which all work runs: whatever finds its threads by itself would wait for those of the
/// global pool, which are not here.
pub(crate) fn after_fork(py: Python<'_>) -> PyResult<Option<Arc<rayon::ThreadPool>>> {
    if !FORKED.load(Ordering::Relaxed) {
        return Ok(None);
    }
    pool_of(py, wanted_count(py, None)?.max(1)).map(Some)
}

/// As [`after_fork`], for work that waits for its caller, and would keep a shared pool from others meanwhile.
pub(crate) fn own_after_fork(py: Python<'_>) -> PyResult<Option<rayon::ThreadPool>> {
    if !FORKED.load(Ordering::Relaxed) {
        return Ok(None);
    }
    new_pool(py, wanted_count(py, None)?.max(1)).map(Some)
}

/// Forgets the pools: their threads did not come along into the child process.
#[pyfunction]
pub(crate) fn _after_fork() {
    FORKED.store(true, Ordering::Relaxed);
    let mut pools = match POOLS.try_lock() {
        Ok(pools) => pools,
        Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        // Another thread of the parent was making a pool. It is gone; so is its lock's owner.
        Err(std::sync::TryLockError::WouldBlock) => return,
    };
    // Not dropped: dropping a pool waits for its threads.
    std::mem::forget(pools.take());
}
