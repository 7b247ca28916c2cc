//! Where requests run: a small runtime of this crate, apart from whatever the application has.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyperslab_core::{Error, Result};
use tokio::runtime::Runtime;

/// The runtime, and the process that made it: after a fork its threads are gone.
static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

/// Has somebody asked for an end of all reads?
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// How often those who wait look whether they should.
const GLANCE: Duration = Duration::from_millis(50);

/// Ends all reads of this process that wait for a server, and all that come: they return
/// [`Cancelled`](Error::Cancelled). For programs that are about to end, such as one that was interrupted from the keyboard.
/// Uploads are not touched, so that they can take back what they have sent.
pub fn interrupt_reads() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

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
    wait(future, || false)
}

/// As [`run`], until reads are [interrupted](interrupt_reads).
pub(crate) fn run_reads<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T> {
    wait(future, || INTERRUPTED.load(Ordering::Relaxed))
}

fn wait<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
    stopped: impl Fn() -> bool,
) -> Result<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let task = runtime()?.spawn(async move {
        // A caller that is gone wants no answer.
        let _ = sender.send(future.await);
    });
    loop {
        match receiver.recv_timeout(GLANCE) {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Timeout) if stopped() => {
                task.abort();
                return Err(Error::Cancelled);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::invalid("a request ended without an answer"));
            }
        }
    }
}
