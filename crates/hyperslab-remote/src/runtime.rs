//! The runtime for requests: a small one of this crate, independent of the application's.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyperslab_core::{Error, Result};
use tokio::runtime::Runtime;

/// The runtime and the process that created it. After a fork, its threads do not exist.
static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

/// Whether all reads were asked to end.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// How often waiting callers check for an interruption.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Interrupts all current and future reads of this process that wait for a server: they return
/// [`Cancelled`](Error::Cancelled). For programs that are about to exit, for example after an interrupt from the
/// keyboard. Uploads continue, so that they can remove what they have sent.
pub fn interrupt_reads() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// The number of interruptions of current reads.
static INTERRUPTIONS: AtomicU64 = AtomicU64::new(0);

/// Like [`interrupt_reads`], for the reads that are waiting now. Later reads are not affected.
pub fn interrupt_current_reads() {
    INTERRUPTIONS.fetch_add(1, Ordering::Relaxed);
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
    // Never drop the runtime of a parent process: dropping waits for threads that do not exist in this process.
    std::mem::forget(held.replace((process, Arc::clone(&runtime))));
    Ok(runtime)
}

/// Runs a future to completion. Works on any thread, including those of another runtime.
pub(crate) fn run<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T> {
    wait(future, || false)
}

/// Like [`run`], until reads are [interrupted](interrupt_reads).
pub(crate) fn run_reads<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T> {
    let before = INTERRUPTIONS.load(Ordering::Relaxed);
    wait(future, || INTERRUPTED.load(Ordering::Relaxed) || INTERRUPTIONS.load(Ordering::Relaxed) != before)
}

fn wait<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
    stopped: impl Fn() -> bool,
) -> Result<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let task = runtime()?.spawn(async move {
        // Fails if the caller is gone, which is fine.
        let _ = sender.send(future.await);
    });
    loop {
        match receiver.recv_timeout(POLL_INTERVAL) {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Timeout) if stopped() => {
                task.abort();
                return Err(Error::Cancelled);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::invalid("a request ended without a response"));
            }
        }
    }
}
