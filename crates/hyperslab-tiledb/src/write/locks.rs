//! Locks: which writers may work on an array at the same time.
//!
//! Fragments have unique names, so any number of processes may add fragments, even during a consolidation. Some writers need
//! exclusion: two that continue at the end of the array would write the same cells; two consolidations or vacuums would
//! interfere; and a repair must be alone, because a fragment that is being written looks like a leftover. libtiledb takes no
//! locks.

use std::path::Path;

use hyperslab_core::Result;
use hyperslab_core::storage::StoreLock;

/// For a writer that adds fragments anywhere.
pub(super) fn adding(array: &Path) -> Result<StoreLock> {
    StoreLock::shared(array, |_| false)
}

/// For a writer that continues at the end of the array.
pub(super) fn continuing(array: &Path) -> Result<StoreLock> {
    StoreLock::exclusive(array, |_| false)
}

/// For replacing fragments by others with the same cells, or removing replaced ones.
pub(super) fn maintaining(array: &Path) -> Result<StoreLock> {
    let schemas = array.join("__schema");
    StoreLock::exclusive(if schemas.is_dir() { &schemas } else { array }, |_| false)
}

/// For removing leftovers: no other writer may be active.
pub(super) fn alone(array: &Path) -> Result<[Option<StoreLock>; 2]> {
    let writing = continuing(array)?;
    // For an old array both are the same lock.
    let both = array.join("__schema").is_dir();
    Ok([Some(writing), both.then(|| maintaining(array)).transpose()?])
}
