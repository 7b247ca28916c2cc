//! Python's signal handlers, such as that of Ctrl-C, while the engine works.
//!
//! Python runs them on its main thread only, and only between instructions. So work that may wait for a server runs
//! on another thread, while the main thread waits for it and runs the handlers. If one raises an exception, the work is
//! asked to stop, and the exception is raised when it has.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;

/// How often signals are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Whether this process has used remote storage. Reads of local files do not wait, and need no other thread.
static USES_SERVERS: AtomicBool = AtomicBool::new(false);

/// Declares that a location, or locations it refers to, are about to be opened.
pub(crate) fn expect_server(location: &Path, any_external: bool) {
    if any_external || hyperslab::is_remote(location) {
        USES_SERVERS.store(true, Ordering::Relaxed);
    }
}

/// Runs work without the GIL. If it may wait for a server, signals are handled meanwhile.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> hyperslab::Result<T> + Send,
) -> PyResult<hyperslab::Result<T>> {
    if USES_SERVERS.load(Ordering::Relaxed) { run_watched(py, || {}, work) } else { Ok(py.detach(work)) }
}

/// Runs work without the GIL, and handles signals meanwhile. If a handler raises an exception, this calls `stop` and
/// interrupts reads from servers until the work ends.
pub(crate) fn run_watched<T: Send>(
    py: Python<'_>,
    stop: impl Fn(),
    work: impl FnOnce() -> hyperslab::Result<T> + Send,
) -> PyResult<hyperslab::Result<T>> {
    if !is_main_thread(py)? {
        return Ok(py.detach(work));
    }
    std::thread::scope(|scope| {
        let (sender, mut receiver) = mpsc::sync_channel(1);
        // Sending cannot fail: the receiver lives until the work ends.
        let thread = scope.spawn(move || drop(sender.send(work())));
        let mut raised = None;
        loop {
            let answer;
            (receiver, answer) = py.detach(move || {
                let answer = receiver.recv_timeout(POLL_INTERVAL);
                (receiver, answer)
            });
            match answer {
                Ok(answer) => return raised.map_or(Ok(answer), Err),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => match thread.join() {
                    Err(panic) => std::panic::resume_unwind(panic),
                    Ok(()) => return Err(crate::errors::invalid(py, "the work ended without a result")),
                },
            }
            if raised.is_none() {
                raised = py.check_signals().err();
            }
            if raised.is_some() {
                stop();
                hyperslab::interrupt_current_reads();
            }
        }
    })
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import(intern!(py, "threading"))?;
    let current = threading.call_method0(intern!(py, "current_thread"))?;
    Ok(current.is(&threading.call_method0(intern!(py, "main_thread"))?))
}
