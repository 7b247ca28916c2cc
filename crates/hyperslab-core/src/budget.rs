//! Budgets: limits on the cost of one operation, in proportion to the store's size.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Corrupt, Error, Place, Result};

/// Fuzzers run with smaller floors: an input that exhausts the usual ones takes a second, and teaches nothing more than one that
/// exhausts these.
#[expect(unexpected_cfgs, reason = "cargo-fuzz sets it, and nobody declares it")]
const FLOOR_DIVISOR: u64 = if cfg!(fuzzing) { 64 } else { 1 };
/// The work allowed for every operation, and the additional work per stored byte.
const WORK: u64 = (256 << 20) / FLOOR_DIVISOR;
const WORK_PER_BYTE: u64 = 64;
/// The memory allowed for every operation, and the additional memory per stored byte.
const MEMORY: u64 = (512 << 20) / FLOOR_DIVISOR;
const MEMORY_PER_BYTE: u64 = 16;

/// Up to this size, any claim is accepted; beyond it, at most [`MAX_EXPANSION`] times the stored bytes. No filter expands real
/// data further, so a larger claim is false.
const PLAUSIBLE_BYTES: u64 = (1 << 30) / FLOOR_DIVISOR;
const MAX_EXPANSION: u64 = 1 << 17;

/// Returns true if this many stored bytes can plausibly hold what they claim.
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

/// The maximum number of zero-size elements that an array may claim: they cost nothing to store, but each costs something to
/// read.
const MOST_EMPTY: u64 = 1 << 24;

/// Refuses an array that claims an implausible number of zero-size elements.
///
/// # Errors
///
/// [`Corrupt`](Error::Corrupt) for more than 2^24 of them.
pub fn check_empty_elements(item: Option<usize>, shape: &[u64], place: Place<'_>) -> Result<()> {
    if item == Some(0) && crate::product(shape).is_none_or(|cells| cells > MOST_EMPTY) {
        return Err(place.corrupt(format!("{shape:?} elements of zero bytes")));
    }
    Ok(())
}

/// Allocates zeroed memory of a size claimed by a file, for data of which `stored` bytes exist. Every allocation that no
/// [`Budget`] covers goes through here.
///
/// # Errors
///
/// [`Corrupt`](Error::Corrupt) for a claim that is not [plausible](is_plausible), [`Invalid`](Error::Invalid) if the system
/// cannot provide the memory.
pub fn claimed_memory(claimed: usize, stored: u64, place: Place<'_>) -> Result<Vec<u8>> {
    if !is_plausible(claimed as u64, stored) {
        return Err(place.corrupt(format!("{stored} stored bytes cannot hold {claimed}")));
    }
    zeroed_memory(claimed, || format!("{}: {}", place.store, place.structure))
}

/// Zeroed memory, or an error if the system has none. The system zeroes large allocations only as they are touched, so that a
/// false claim costs nothing.
fn zeroed_memory(bytes: usize, what: impl FnOnce() -> String) -> Result<Vec<u8>> {
    bytemuck::allocation::try_zeroed_vec(bytes)
        .map_err(|()| Error::invalid(format!("{}: cannot allocate {bytes} bytes", what())))
}

/// The remaining work and memory that one operation on a store may cost.
///
/// A file can claim anything: that a tree's children are its own parents, that a million names are the same megabyte, that a
/// chunk of 7 KB holds 64 GB. No single check finds all such claims, but all have the same effect: the operation costs far more
/// than the file's size can justify. A budget bounds that cost. A reader draws on it for all work caused by a file's claims, and
/// fails with [`Corrupt`](Error::Corrupt) when nothing is left.
///
/// # One budget per operation
///
/// A budget belongs to one call into the store (list a group, open a node, locate some chunks, decode one chunk), never to the
/// store itself: a long-lived reader starts each call with a full budget. Everything that a call does on behalf of its caller
/// draws on the same budget, including work in other files that the store refers to, so that nesting multiplies nothing.
///
/// # Units
///
/// One unit of work is about the cost of processing a stored byte. Reading a structure costs its bytes and a constant. Both
/// limits are a generous minimum plus a multiple of the store's size, far above what real files need.
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

    /// Like [`new`](Self::new), with work for `times` as many bytes: for an operation that visits every object of a store, some
    /// of them several times.
    #[must_use]
    pub fn repeated(store: &Arc<str>, length: u64, times: u64) -> Self {
        let work = length.saturating_mul(WORK_PER_BYTE).saturating_add(WORK).saturating_mul(times);
        let memory = length.saturating_mul(MEMORY_PER_BYTE).saturating_add(MEMORY);
        Self { store: Arc::clone(store), work: AtomicU64::new(work), memory: AtomicU64::new(memory) }
    }

    /// Adds another file of `length` bytes to the operation.
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

    /// Adds units of work, for requests beyond the store's size.
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
    /// [`Corrupt`](Error::Corrupt), naming `what` the work was for, if fewer are left. Everything after that fails too.
    pub fn spend(&self, units: u64, what: &'static str) -> Result<()> {
        draw(&self.work, units).map_err(|()| {
            self.exhausted(what, "the file leads to far more work than its size can justify".to_owned())
        })
    }

    /// Draws memory, before it is allocated.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt), naming `what` the memory was for, if less is left.
    pub fn allocate(&self, bytes: u64, what: &'static str) -> Result<()> {
        draw(&self.memory, bytes).map_err(|()| {
            self.exhausted(what, format!("{bytes} more bytes of memory than the file's size can justify"))
        })
    }

    /// Zeroed memory, drawn from the budget.
    ///
    /// # Errors
    ///
    /// As [`allocate`](Self::allocate); [`Invalid`](Error::Invalid) if the system cannot provide the memory.
    pub fn zeroed(&self, bytes: usize, what: &'static str) -> Result<Vec<u8>> {
        self.allocate(bytes as u64, what)?;
        zeroed_memory(bytes, || format!("{}: {what}", self.store))
    }

    /// Runs `work`, then returns the memory that it drew: for a part of an operation that keeps nothing.
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

/// Draws from the remainder, or takes all of it if it is insufficient.
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
    fn an_exhausted_budget_stays_exhausted() {
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
