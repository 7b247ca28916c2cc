//! Where requests run: a small runtime of this crate, apart from whatever the application has.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use hyperslab_core::{Error, Result};
use tokio::runtime::Runtime;

/// The runtime, and the process that made it: after a fork its threads are gone.
static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

fn runtime() -> Result<Arc<Runtime>> {
    let mut held = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, runtime)) = &*held
        && *owner == process
    {
        return Ok(Arc::clone(runtime));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("remote")
        .enable_all()
        .build()
        .map_err(|source| Error::io("threads for requests", source))?;
    let runtime = Arc::new(runtime);
    // The runtime of a parent process is never dropped: dropping waits for threads that this process does not have.
    std::mem::forget(held.replace((process, Arc::clone(&runtime))));
    Ok(runtime)
}

/// Runs a future to its end. Works on any thread, also on one of another runtime.
pub(crate) fn run<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // A caller that is gone wants no answer.
        let _ = sender.send(future.await);
    });
    receiver.recv().map_err(|_| Error::invalid("a request ended without an answer"))
}
