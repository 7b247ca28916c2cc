//! Protects the process from mapped files that are truncated.
//!
//! Accessing a part of a mapping that is no longer in the file raises `SIGBUS`, which ends the process. An application that
//! calls [`guard_mappings`] once and runs its work in [`guarded`] gets an error instead: the handler maps zeroed memory over
//! the missing part and records the affected mapping. The work runs to its end, but its result is discarded, and every later
//! read of that mapping fails. Outside of guarded work there is no caller to report an error to: the handler then prints a
//! message and lets the signal end the process.
//!
//! As in every mapping, missing bytes of the last remaining page read as zeros, without a signal.

#![expect(unsafe_code, reason = "signals are handled and mappings replaced by calls to the system")]

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use crate::{Error, Result};

/// The maximum number of guarded mappings. Any further mappings are not guarded.
const SLOTS: usize = 1 << 14;

/// A guarded mapping. The signal handler reads it without locks.
struct Slot {
    /// The address of its first byte; 0 for a free slot.
    start: AtomicUsize,
    /// The end of its last page.
    end: AtomicUsize,
    /// Whether its file was truncated.
    cut: AtomicBool,
}

static TABLE: [Slot; SLOTS] =
    [const { Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), cut: AtomicBool::new(false) } };
        SLOTS];

/// The number of slots that were ever used. The handler looks at no others.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Slots below `USED` that are free.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// The number of guarded pieces of work that are running.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// The number of truncations detected.
static CUTS: AtomicUsize = AtomicUsize::new(0);
static INSTALLED: AtomicBool = AtomicBool::new(false);
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();
static PAGE: AtomicUsize = AtomicUsize::new(4096);

const MESSAGE: &[u8] =
    b"hyperslab: a mapped file was truncated, and the missing part of a view into it was touched\n";

/// Handles the signal for truncated files, for mappings created from now on.
///
/// Further calls do nothing. An earlier handler is called for all other causes of the signal.
pub fn guard_mappings() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the call only returns a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        PAGE.store(usize::try_from(page).unwrap_or(4096), Ordering::Relaxed);
        // SAFETY: all zeros are a valid `sigaction`: no flags, no mask, the default action.
        let (mut own, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_signal;
        own.sa_sigaction = handler as usize;
        own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        // SAFETY: both are valid, and the handler makes only calls that a handler may make.
        if unsafe { libc::sigaction(libc::SIGBUS, &raw const own, &raw mut before) } == 0 {
            let _ = BEFORE.set(before);
            INSTALLED.store(true, Ordering::Release);
        }
    });
}

/// Runs `work`. Fails if a mapped file was truncated meanwhile, whatever `work` returns.
///
/// # Errors
///
/// [`Io`](Error::Io) for a truncated file; otherwise as `work`.
pub fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    /// Decrements the counter, even if the work panics.
    struct Running;
    impl Drop for Running {
        fn drop(&mut self) {
            RUNNING.fetch_sub(1, Ordering::SeqCst);
        }
    }
    if !INSTALLED.load(Ordering::Acquire) {
        return work();
    }
    RUNNING.fetch_add(1, Ordering::SeqCst);
    let running = Running;
    let before = CUTS.load(Ordering::SeqCst);
    let result = work();
    drop(running);
    // If a read already noticed the truncation, its error names the file and is the better one.
    if CUTS.load(Ordering::SeqCst) == before || result.as_ref().is_err_and(is_cut) {
        return result;
    }
    Err(cut_error("a mapped file"))
}

fn is_cut(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::UnexpectedEof)
}

/// The error for reading a truncated file.
fn cut_error(name: &str) -> Error {
    let source = io::Error::new(io::ErrorKind::UnexpectedEof, "truncated while it was mapped");
    Error::io(Arc::<str>::from(name), source)
}

/// The registration of a mapping.
#[derive(Debug)]
pub(super) struct Guarded(Option<usize>);

impl Guarded {
    /// Registers a mapping, if mappings are guarded.
    pub(super) fn new(bytes: &[u8]) -> Self {
        if !INSTALLED.load(Ordering::Acquire) || bytes.is_empty() {
            return Self(None);
        }
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = free.pop().or_else(|| {
            let next = USED.load(Ordering::Relaxed);
            (next < SLOTS).then(|| {
                USED.store(next + 1, Ordering::Release);
                next
            })
        });
        let Some(slot) = slot else { return Self(None) };
        let page = PAGE.load(Ordering::Relaxed);
        let start = bytes.as_ptr().addr();
        TABLE[slot].cut.store(false, Ordering::Relaxed);
        TABLE[slot].end.store((start + bytes.len()).next_multiple_of(page), Ordering::Relaxed);
        TABLE[slot].start.store(start, Ordering::Release);
        Self(Some(slot))
    }

    /// Fails if the file was truncated.
    pub(super) fn check(&self, name: &str) -> Result<()> {
        match self.0 {
            Some(slot) if TABLE[slot].cut.load(Ordering::Relaxed) => Err(cut_error(name)),
            _ => Ok(()),
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            TABLE[slot].start.store(0, Ordering::Release);
            FREE.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
        }
    }
}

extern "C" fn on_signal(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the system passes a valid pointer.
    let info = unsafe { &*info };
    // SAFETY: `SIGBUS` provides an address.
    let address = unsafe { info.si_addr() }.addr();
    let used = USED.load(Ordering::Acquire);
    let holds = |slot: &&Slot| {
        let start = slot.start.load(Ordering::Acquire);
        start != 0 && (start..slot.end.load(Ordering::Relaxed)).contains(&address)
    };
    let found = TABLE[..used].iter().find(holds);
    if let Some(slot) = found
        && RUNNING.load(Ordering::SeqCst) > 0
        && replace(address, slot.end.load(Ordering::Relaxed))
    {
        slot.cut.store(true, Ordering::SeqCst);
        CUTS.fetch_add(1, Ordering::SeqCst);
        return;
    }
    if found.is_some() {
        // SAFETY: `write` may be called from a handler, and the text is static.
        unsafe { libc::write(2, MESSAGE.as_ptr().cast(), MESSAGE.len()) };
    }
    // Restore the earlier handler. The instruction runs again and raises the signal again.
    if let Some(before) = BEFORE.get() {
        // SAFETY: this is the action that was installed before.
        unsafe { libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()) };
    } else {
        // SAFETY: the default action, which ends the process.
        unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    }
}

/// Maps zeroed memory over a mapping, from the page of an address to the end.
fn replace(address: usize, end: usize) -> bool {
    let start = address & !(PAGE.load(Ordering::Relaxed) - 1);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let at = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: the pages belong to a registered mapping, which is read-only and not unmapped: its owner removes it from the
    // table first. `mmap` is a plain system call.
    let made = unsafe { libc::mmap(at, end - start, libc::PROT_READ, flags, -1, 0) };
    made == at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Blob, MappedBlob};

    #[test]
    fn truncated_mapped_files_are_errors() {
        guard_mappings();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let blob = MappedBlob::open(&path).unwrap();
        let sum = || -> Result<u64> {
            let bytes = blob.mapped().ok_or_else(|| Error::invalid("not mapped"))?;
            Ok(bytes.iter().map(|byte| u64::from(*byte)).sum())
        };
        assert_eq!(guarded(sum).unwrap(), 1 << 20);
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(8192).unwrap();
        let error = guarded(sum).unwrap_err();
        assert!(error.to_string().contains("truncated"), "{error}");
        // Later reads fail too, naming the file. Other files are not affected.
        let error = blob.read_range(0..10).unwrap_err();
        assert!(error.to_string().contains(&**blob.name()), "{error}");
        assert!(blob.mapped().is_none());
        assert_eq!(guarded(|| Ok(3)).unwrap(), 3);
        let other = MappedBlob::open(&path).unwrap();
        assert_eq!(guarded(|| other.read_range(0..1)).unwrap(), [1][..]);
    }
}
