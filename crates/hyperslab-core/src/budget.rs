//! The cost that one operation on a store may have, in proportion to the store's size.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Corrupt, Error, Place, Result};

/// Work that every operation may do, and the additional work per stored byte.
const WORK: u64 = 256 << 20;
const WORK_PER_BYTE: u64 = 64;
/// Memory that every operation may take, and the additional memory per stored byte.
const MEMORY: u64 = 512 << 20;
const MEMORY_PER_BYTE: u64 = 16;
/// Allocations up to this size are not expected to fail.
const ORDINARY: usize = 16 << 20;

/// Something may claim to hold this much whatever is stored of it; beyond, not more than [`MAX_EXPANSION`] times its stored
/// bytes. No filter expands real data further, so the claim is false.
const PLAUSIBLE_BYTES: u64 = 1 << 30;
const MAX_EXPANSION: u64 = 1 << 17;

/// May so many stored bytes hold what they claim?
///
/// ```
/// use hyperslab_core::is_plausible;
/// assert!(is_plausible(1 << 20, 10) && is_plausible(1 << 40, 1 << 30));
/// assert!(!is_plausible(1 << 40, 7_600));
/// ```
#[must_use]
pub const fn is_plausible(claimed: u64, stored: u64) -> bool {
    claimed <= PLAUSIBLE_BYTES || claimed / MAX_EXPANSION <= stored
}

/// Most elements of no bytes that an array may claim: they cost nothing to store, and each costs something to read.
const MOST_EMPTY: u64 = 1 << 24;

/// Refuses an array that claims more elements of no bytes than anyone has.
///
/// # Errors
///
/// [`Corrupt`](Error::Corrupt) for more than 2^24 of them.
pub fn check_empty_elements(item: Option<usize>, shape: &[u64], place: Place<'_>) -> Result<()> {
    if item == Some(0) && crate::product(shape).is_none_or(|cells| cells > MOST_EMPTY) {
        return Err(place.corrupt(format!("{shape:?} elements of no bytes")));
    }
    Ok(())
}

/// Zeroed memory of a size that a file claims, for something of which so many bytes are stored. Every allocation that no
/// [`Budget`] covers goes through here.
///
/// # Errors
///
/// [`Corrupt`](Error::Corrupt) for a claim that is not [plausible](is_plausible), [`Invalid`](Error::Invalid) when the system has
/// no such memory to give.
pub fn claimed_memory(claimed: usize, stored: u64, place: Place<'_>) -> Result<Vec<u8>> {
    if !is_plausible(claimed as u64, stored) {
        return Err(place.corrupt(format!("{stored} stored bytes cannot hold {claimed}")));
    }
    zeroed_memory(claimed, || format!("{}: {}", place.store, place.structure))
}

/// Zeroed memory, or an error where the system has none to give.
fn zeroed_memory(bytes: usize, what: impl FnOnce() -> String) -> Result<Vec<u8>> {
    // The system zeroes fresh memory at no cost, but a failure ends the process: only for sizes that any system has.
    if bytes <= ORDINARY {
        return Ok(vec![0; bytes]);
    }
    let mut memory = Vec::new();
    memory
        .try_reserve_exact(bytes)
        .map_err(|_| Error::invalid(format!("{}: no memory for {bytes} bytes", what())))?;
    memory.resize(bytes, 0);
    Ok(memory)
}

/// The work and the memory that one operation on a store may still cost.
///
/// A file can claim anything: that a tree's children are its own parents, that a million names are the same megabyte,
/// that a chunk of 7 KB holds 64 GB. No single check finds all such claims, but all have the same effect: the operation
/// costs far more than the file's size can justify. A budget bounds that cost. A reader draws on it for whatever a
/// file's claims make it do, and fails with [`Corrupt`](Error::Corrupt) when nothing is left.
///
/// # One budget per operation
///
/// A budget belongs to one call into the store (list a group, open a node, locate some chunks, decode one chunk), never
/// to the store itself: a reader that lives for months starts each call with a full budget. Everything that a call does
/// on behalf of its caller draws on the same budget, also in other files that the store refers to, so that nesting
/// multiplies nothing.
///
/// # Units
///
/// One unit of work is about what it takes to look at a stored byte. Reading a structure costs its bytes and a constant;
/// both limits are a generous floor plus a multiple of the store's bytes, far above what any writer's files need.
///
/// ```
/// use hyperslab_core::Budget;
/// let budget = Budget::new(&"tiny.h5".into(), 7_600);
/// budget.spend(2048, "B-tree node")?;
/// let error = budget.allocate(64 << 30, "chunk").unwrap_err();
/// assert!(error.is_corrupt());
/// # Ok::<(), hyperslab_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Budget {
    store: Arc<str>,
    work: AtomicU64,
    memory: AtomicU64,
}

impl Budget {
    /// A full budget for an operation on a store of `length` bytes.
    #[must_use]
    pub fn new(store: &Arc<str>, length: u64) -> Self {
        Self::repeated(store, length, 1)
    }

    /// As [`new`](Self::new), with work for `times` as many bytes: for an operation that looks at every object of a
    /// store, some of them several times.
    #[must_use]
    pub fn repeated(store: &Arc<str>, length: u64, times: u64) -> Self {
        let work = length.saturating_mul(WORK_PER_BYTE).saturating_add(WORK).saturating_mul(times);
        let memory = length.saturating_mul(MEMORY_PER_BYTE).saturating_add(MEMORY);
        Self { store: Arc::clone(store), work: AtomicU64::new(work), memory: AtomicU64::new(memory) }
    }

    /// Another file of `length` bytes takes part in the operation.
    pub fn extend(&self, length: u64) {
        let add = |left: &AtomicU64, more: u64| {
            let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |own| {
                // An exhausted budget stays exhausted.
                (own > 0).then(|| own.saturating_add(more))
            });
        };
        add(&self.work, length.saturating_mul(WORK_PER_BYTE).saturating_add(1 << 20));
        add(&self.memory, length.saturating_mul(MEMORY_PER_BYTE));
    }

    /// Adds units of work: for what the caller asks for beyond the store's size.
    #[must_use]
    pub fn with_work(mut self, units: u64) -> Self {
        let work = self.work.get_mut();
        *work = work.saturating_add(units);
        self
    }

    /// Draws units of work.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt), naming `what` the work was for, when fewer are left. Everything after that fails too.
    pub fn spend(&self, units: u64, what: &'static str) -> Result<()> {
        draw(&self.work, units).map_err(|()| {
            self.exhausted(what, "the file leads to far more work than its size can justify".to_owned())
        })
    }

    /// Draws memory, before it is taken.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt), naming `what` the memory was for, when less is left.
    pub fn allocate(&self, bytes: u64, what: &'static str) -> Result<()> {
        draw(&self.memory, bytes).map_err(|()| {
            self.exhausted(what, format!("{bytes} more bytes of memory than the file's size can justify"))
        })
    }

    /// Zeroed memory, drawn from the budget.
    ///
    /// # Errors
    ///
    /// As [`allocate`](Self::allocate); [`Invalid`](Error::Invalid) when the system has no such memory to give.
    pub fn zeroed(&self, bytes: usize, what: &'static str) -> Result<Vec<u8>> {
        self.allocate(bytes as u64, what)?;
        zeroed_memory(bytes, || format!("{}: {what}", self.store))
    }

    /// Runs `work`, then gives back the memory that it drew: for a part of an operation that keeps nothing.
    pub fn releasing<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = self.memory.load(Ordering::Relaxed);
        let result = work();
        self.memory.store(before, Ordering::Relaxed);
        result
    }

    fn exhausted(&self, what: &'static str, problem: String) -> Error {
        Error::Corrupt(Box::new(Corrupt {
            store: Arc::clone(&self.store),
            structure: Cow::Borrowed(what),
            offset: None,
            problem,
        }))
    }
}

/// Draws from the remainder; takes all of it if that is too little.
fn draw(left: &AtomicU64, amount: u64) -> Result<(), ()> {
    let drawn = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |own| own.checked_sub(amount));
    if drawn.is_err() {
        left.store(0, Ordering::Relaxed);
    }
    drawn.map(|_| ()).map_err(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_up_stays_used_up() {
        let budget = Budget::new(&"x".into(), 100);
        budget.spend(WORK, "a").unwrap();
        budget.spend(6400, "a").unwrap();
        let error = budget.spend(1, "tree").unwrap_err();
        assert!(error.is_corrupt() && error.to_string().starts_with("x: tree: "), "{error}");
        budget.extend(1 << 30);
        assert!(budget.spend(1, "a").is_err());
        // Memory is counted apart.
        let budget = Budget::new(&"x".into(), 100);
        budget.allocate(MEMORY, "a").unwrap();
        assert!(budget.allocate(1601, "a").is_err());
        assert!(budget.zeroed(1, "a").is_err());
        budget.spend(WORK, "a").unwrap();
    }

    #[test]
    fn claims_are_compared_with_what_is_stored() {
        let place = Place::new("x", "tile", 0);
        assert_eq!(claimed_memory(5, 0, place).unwrap(), [0; 5]);
        assert!(claimed_memory(64 << 30, 7_600, place).unwrap_err().is_corrupt());
        assert!(check_empty_elements(Some(0), &[1 << 62], place).unwrap_err().is_corrupt());
        assert!(check_empty_elements(Some(0), &[1 << 40, 1 << 40], place).is_err());
        assert!(check_empty_elements(Some(0), &[1 << 62, 0], place).is_ok());
        assert!(check_empty_elements(Some(4), &[1 << 62], place).is_ok());
    }

    #[test]
    fn other_files_add_to_it_and_parts_give_back() {
        let budget = Budget::new(&"x".into(), 0);
        budget.extend(10);
        budget.spend(WORK + 640 + (1 << 20), "a").unwrap();
        for _ in 0..10 {
            budget.releasing(|| budget.allocate(MEMORY, "part")).unwrap();
        }
        assert_eq!(budget.zeroed(5, "a").unwrap(), [0; 5]);
        assert!(Budget::repeated(&"x".into(), 0, 4).spend(4 * WORK, "a").is_ok());
        assert!(Budget::new(&"x".into(), 0).with_work(7).spend(WORK + 7, "a").is_ok());
    }
}
