//! Pools of threads, by size. `hyperslab._threads` says how many are wanted here and now.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hyperslab::Threads;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

type Pools = HashMap<usize, Arc<rayon::ThreadPool>>;

static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

/// The threads of this many; of as many as `hyperslab.threads()` says when it is left out.
pub(crate) fn wanted(py: Python<'_>, count: Option<usize>) -> PyResult<Threads> {
    let count = match count {
        Some(count) => count,
        None => {
            static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let current = CURRENT.get_or_try_init(py, || {
                py.import("hyperslab._threads")?.getattr("current").map(Bound::unbind)
            })?;
            current.bind(py).call0()?.extract()?
        }
    };
    if count <= 1 {
        return Ok(Threads::Caller);
    }
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let pools = pools.get_or_insert_default();
    if let Some(pool) = pools.get(&count) {
        return Ok(Threads::Pool(Arc::clone(pool)));
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(count)
        .thread_name(|number| format!("hyperslab-{number}"))
        .build()
        .map_err(|error| crate::errors::invalid(py, error.to_string()))?;
    let pool = Arc::new(pool);
    pools.insert(count, Arc::clone(&pool));
    Ok(Threads::Pool(pool))
}

/// Runs engine work that finds its threads by itself, in the wanted pool and without the GIL.
pub(crate) fn within<T: Send>(
    py: Python<'_>,
    count: Option<usize>,
    work: impl FnOnce() -> hyperslab::Result<T> + Send,
) -> PyResult<T> {
    let threads = match wanted(py, count)? {
        // Work that has no say in its threads must not reach the global pool, which does not outlive a fork.
        Threads::Caller => wanted_alone(py)?,
        threads => threads,
    };
    crate::errors::detached(py, || match threads {
        Threads::Pool(pool) => pool.install(work),
        _ => work(),
    })
}

fn wanted_alone(py: Python<'_>) -> PyResult<Threads> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
    match pool {
        Ok(pool) => Ok(Threads::Pool(Arc::new(pool))),
        // This thread is in a pool already: one of its own then.
        Err(_) => rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .map(|pool| Threads::Pool(Arc::new(pool)))
            .map_err(|error| crate::errors::invalid(py, error.to_string())),
    }
}

/// Forgets the pools: their threads did not come along into the child process.
#[pyfunction]
pub(crate) fn _after_fork() {
    let mut pools = match POOLS.try_lock() {
        Ok(pools) => pools,
        Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        // Another thread of the parent was making a pool. It is gone; so is its lock's owner.
        Err(std::sync::TryLockError::WouldBlock) => return,
    };
    // Not dropped: dropping a pool waits for its threads.
    std::mem::forget(pools.take());
}
