//! Mapped files that are cut short: an error instead of the end of the process.
//!
//! Touching a mapped page that its file no longer has raises `SIGBUS`, which ends a process without a word. After
//! [`guard_mapped_files`] a handler puts empty pages in place of the missing ones, notes which mapping lost them, and lets the
//! access go on. What was read so far is worthless; the caller finds out by comparing [`lost_mapped_pages`] before and after
//! its work, and every later read through the mapping fails.
//!
//! A signal of any other address goes to the handler that was there before.

#![expect(unsafe_code, reason = "a signal handler can be set in no other way")]

use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Mappings that can be watched at once. A process with more has some that end it when they are cut short.
const MOST: usize = 8192;

/// A mapping that is watched: where it starts (0: the slot is free), its bytes, and whether it lost some.
#[derive(Debug)]
struct Slot {
    start: AtomicUsize,
    length: AtomicUsize,
    lost: AtomicBool,
}

#[expect(clippy::declare_interior_mutable_const, reason = "the initial value of each slot")]
const FREE: Slot =
    Slot { start: AtomicUsize::new(0), length: AtomicUsize::new(0), lost: AtomicBool::new(false) };

static SLOTS: [Slot; MOST] = [FREE; MOST];
/// Slots from here on were never used.
static USED: AtomicUsize = AtomicUsize::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// How often the process touched mapped pages that their file had lost.
#[must_use]
pub fn lost_mapped_pages() -> u64 {
    LOST.load(Ordering::Acquire)
}

/// Watches all files that are mapped from now on. Returns whether the system took the handler; a second call does nothing.
pub fn guard_mapped_files() -> bool {
    if BEFORE.get().is_some() {
        return true;
    }
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null pointer for the new action only asks for the present one, which the system writes to `before`.
    let asked = unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), before.as_mut_ptr()) };
    // SAFETY: all zeros is a valid value of this plain structure, and the system has filled it in.
    let before = unsafe { before.assume_init() };
    // Kept before the handler is set: the handler reads it.
    if asked != 0 || BEFORE.set(before).is_err() {
        return BEFORE.get().is_some();
    }
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_signal;
    let mut own = before;
    own.sa_sigaction = handler as libc::sighandler_t;
    own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler only makes calls that may be made from a handler; the set is one of ours.
    let set = unsafe {
        libc::sigemptyset(&raw mut own.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const own, std::ptr::null_mut())
    };
    set == 0
}

/// A mapping that is watched until this is dropped.
#[derive(Debug)]
pub(super) struct Watch(&'static Slot);

impl Watch {
    /// Watches the bytes of a mapping; `None` when nobody asked for it, or there are too many.
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        BEFORE.get()?;
        let start = bytes.as_ptr() as usize;
        for (number, slot) in SLOTS.iter().enumerate() {
            if slot.start.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                continue;
            }
            slot.lost.store(false, Ordering::Relaxed);
            slot.length.store(bytes.len(), Ordering::Relaxed);
            slot.start.store(start, Ordering::Release);
            USED.fetch_max(number + 1, Ordering::AcqRel);
            return Some(Self(slot));
        }
        None
    }

    /// Did the file lose pages of it?
    pub(super) fn lost(&self) -> bool {
        self.0.lost.load(Ordering::Acquire)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.length.store(0, Ordering::Relaxed);
        self.0.start.store(0, Ordering::Release);
    }
}

extern "C" fn on_signal(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the system passes a valid structure to a handler with SA_SIGINFO.
    let address = unsafe { (*info).si_addr() } as usize;
    if !replace_pages(address) {
        // Not ours. The access is repeated when this returns, and meets the handler of before.
        if let Some(before) = BEFORE.get() {
            // SAFETY: `sigaction` may be called from a handler, with an action that the system gave us.
            unsafe { libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()) };
        }
    }
}

/// Puts empty pages at an address of a watched mapping and behind it, up to its end.
fn replace_pages(address: usize) -> bool {
    // SAFETY: asks for a constant of the system; may be called from a handler.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let page = usize::try_from(page).unwrap_or(4096).max(1);
    let used = USED.load(Ordering::Acquire).min(MOST);
    for slot in &SLOTS[..used] {
        let start = slot.start.load(Ordering::Acquire);
        let end = start.saturating_add(slot.length.load(Ordering::Relaxed));
        if start <= 1 || address < start || address >= end {
            continue;
        }
        slot.lost.store(true, Ordering::Release);
        LOST.fetch_add(1, Ordering::AcqRel);
        // Pages of a mapping start with it.
        let from = address - address % page;
        // SAFETY: the range lies in a mapping of ours that is alive, for the access that faulted borrows it. The pages in it
        // that are replaced are as readable as before, and nobody writes to them.
        let mapped = unsafe {
            libc::mmap(
                from as *mut libc::c_void,
                end - from,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        return mapped != libc::MAP_FAILED;
    }
    false
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use std::fs::File;

    use super::*;
    use crate::{Blob, MappedBlob};

    #[test]
    fn a_file_that_is_cut_short_is_an_error_and_the_process_lives() {
        assert!(guard_mapped_files() && guard_mapped_files());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let blob = MappedBlob::open(&path).unwrap();
        let bytes = blob.read_at(0, 1 << 20).unwrap();
        let before = lost_mapped_pages();
        File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
        let sum: u64 = bytes.iter().map(|byte| u64::from(*byte)).sum();
        assert_eq!(sum, 7 * 4096);
        assert!(lost_mapped_pages() > before);
        let error = blob.read_at(0, 1).unwrap_err().to_string();
        assert!(error.contains("cut short"), "{error}");
        // Another mapping of the file as it is now is as good as any.
        assert_eq!(MappedBlob::open(&path).unwrap().read_at(4095, 1).unwrap()[0], 7);
    }
}
