//! A guard for files that are cut short while they are mapped.
//!
//! Touching a part of a mapping that its file no longer has raises `SIGBUS`, which ends the process. An application that calls
//! [`guard_mappings`] once and runs its work in [`guarded`] gets an error instead: the handler puts empty memory in the place of
//! what is missing and notes which file it was, the work goes on to its end, and its result is thrown away. From then on every
//! read of that mapping is an error. Outside of guarded work nobody could be told: there the handler says which signal it was and
//! leaves the process to its end.
//!
//! As in every mapping, bytes that are missing from the last page that is left read as zeros, and no signal tells.

#![expect(unsafe_code, reason = "signals are handled and mappings replaced by calls to the system")]

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use crate::{Error, Result};

/// Mappings that are guarded at once. Those beyond are not.
const SLOTS: usize = 1 << 14;

/// A mapping that is guarded, as the handler sees it: without locks.
struct Slot {
    /// Its first byte; 0 for a free slot.
    start: AtomicUsize,
    /// The end of its last page.
    end: AtomicUsize,
    /// Has its file been cut short?
    cut: AtomicBool,
}

static TABLE: [Slot; SLOTS] =
    [const { Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), cut: AtomicBool::new(false) } };
        SLOTS];

/// Slots that were ever used: no others are looked at.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Slots below `USED` that are free.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// Pieces of guarded work that run now.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// How often a file was found cut short.
static CUTS: AtomicUsize = AtomicUsize::new(0);
static INSTALLED: AtomicBool = AtomicBool::new(false);
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();
static PAGE: AtomicUsize = AtomicUsize::new(4096);

const MESSAGE: &[u8] =
    b"hyperslab: a mapped file was truncated, and the missing part of a view into it was touched\n";

/// Handles the signal of mapped files that are cut short, for mappings that are made from now on.
///
/// Does nothing the second time. A handler that was there is called for all other causes of the signal.
pub fn guard_mappings() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: asks for a number.
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

/// Runs work; an error when a mapped file was cut short underneath, whatever the work says.
///
/// # Errors
///
/// [`Io`](Error::Io) for a file that was cut short, otherwise those of `work`.
pub fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    /// Counted down also when the work panics.
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
    // The error of a read that met the mark names the file, and says the same.
    if CUTS.load(Ordering::SeqCst) == before || result.as_ref().is_err_and(is_cut) {
        return result;
    }
    Err(cut_error("a mapped file"))
}

fn is_cut(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::UnexpectedEof)
}

/// What reading a file that was cut short answers.
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

    /// Fails when the file was cut short.
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
    // SAFETY: the system gives a valid pointer.
    let info = unsafe { &*info };
    // SAFETY: the signal is one that has an address.
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
    // As if this handler were not there: the same instruction runs again, and raises the signal again.
    if let Some(before) = BEFORE.get() {
        // SAFETY: the action that was there before.
        unsafe { libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()) };
    } else {
        // SAFETY: the default action, which ends the process.
        unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    }
}

/// Puts memory of zeros in the place of a mapping, from the page of an address to its end.
fn replace(address: usize, end: usize) -> bool {
    let start = address & !(PAGE.load(Ordering::Relaxed) - 1);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let at = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: the pages belong to a registered mapping, which is read-only and whose owner has not unmapped it: it takes itself
    // off the table first. `mmap` is a plain system call.
    let made = unsafe { libc::mmap(at, end - start, libc::PROT_READ, flags, -1, 0) };
    made == at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Blob, MappedBlob};

    #[test]
    fn a_mapped_file_that_is_cut_short_is_an_error() {
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
        // It stays an error, by name, and other files are not concerned.
        let error = blob.read_range(0..10).unwrap_err();
        assert!(error.to_string().contains(&**blob.name()), "{error}");
        assert!(blob.mapped().is_none());
        assert_eq!(guarded(|| Ok(3)).unwrap(), 3);
        let other = MappedBlob::open(&path).unwrap();
        assert_eq!(guarded(|| other.read_range(0..1)).unwrap(), [1][..]);
    }
}
