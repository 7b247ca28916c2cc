//! Handles mapped files that another program truncates. Touching the missing part raises `SIGBUS`, which ends a process without a
//! message unless it is handled.

#![expect(unsafe_code, reason = "setting a signal handler requires it")]

const TEXT: &[u8] =
    b"error: a file was truncated while it was read; --no-map reads by position and names the file\n";

/// Handles `SIGBUS`: prints a message and exits with the code of an error. Commands that write do not map their input, so nothing
/// half-written is left behind.
pub(crate) fn handle() {
    let handler: extern "C" fn(libc::c_int) = on_signal;
    // SAFETY: the handler only makes async-signal-safe calls.
    unsafe {
        libc::signal(libc::SIGBUS, handler as libc::sighandler_t);
    }
}

extern "C" fn on_signal(_: libc::c_int) {
    // SAFETY: `write` is async-signal-safe, and the text is static.
    unsafe {
        libc::write(2, TEXT.as_ptr().cast(), TEXT.len());
    }
    // SAFETY: `_exit` is async-signal-safe and does not return.
    unsafe { libc::_exit(2) }
}
