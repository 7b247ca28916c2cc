//! A progress bar on stderr, only on a terminal and only for work that takes a while.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyperslab::convert::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The exit code of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Runs `work` with a progress bar, if one is wanted. Ctrl-C asks the work to stop and ends reads that wait for a
/// server; the work then removes what it has written. A second Ctrl-C exits at once.
pub(crate) fn with_bar<T>(wanted: bool, work: impl FnOnce(&Progress) -> T) -> T {
    let progress = Arc::new(Progress::default());
    let stopping = Arc::clone(&progress);
    // If no handler can be set, Ctrl-C ends the process, as it does by default.
    let _ = ctrlc::set_handler(move || {
        if stopping.stop.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
        hyperslab::interrupt_reads();
    });
    if !wanted || !std::io::stderr().is_terminal() {
        return work(&progress);
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let template = "  {bar:32.cyan/dim} {bytes:>10} of {total_bytes}  {binary_bytes_per_sec:>12}  {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("━━─"));
    }
    std::thread::scope(|scope| {
        let (done, finished) = std::sync::mpsc::channel::<()>();
        let (bar, shared) = (&bar, &progress);
        scope.spawn(move || {
            // Short work shows no bar.
            let mut wait = Duration::from_millis(300);
            while finished.recv_timeout(wait).is_err() {
                bar.set_length(shared.total.load(Ordering::Relaxed));
                bar.set_position(shared.done.load(Ordering::Relaxed));
                wait = Duration::from_millis(80);
            }
            bar.finish_and_clear();
        });
        let result = work(&progress);
        let _ = done.send(());
        result
    })
}
