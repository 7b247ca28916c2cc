//! A mapped file that another program cuts short: the system raises `SIGBUS` where the missing part is touched, and its own
//! way is to kill us without a word.

#![expect(unsafe_code, reason = "a signal handler can be set in no other way")]

const TEXT: &[u8] =
    b"error: a file was cut short while it was read; --no-map reads by position and says which\n";

/// Says what happened and ends with the exit code of an error. Commands that write do not map what they read, so nothing
/// half-written is left behind.
pub(crate) fn tell() {
    let handler: extern "C" fn(libc::c_int) = told;
    // SAFETY: the handler only makes calls that may be made from a handler.
    unsafe {
        libc::signal(libc::SIGBUS, handler as libc::sighandler_t);
    }
}

extern "C" fn told(_: libc::c_int) {
    // SAFETY: `write` and `_exit` are safe in a signal handler, and the text is static.
    unsafe {
        libc::write(2, TEXT.as_ptr().cast(), TEXT.len());
        libc::_exit(2);
    }
}
