//! Who may write an array at the same time.
//!
//! Fragments have names of their own, so any number of processes may add some, beside a consolidation. Not so a writer that
//! continues where the array ends, for two would write the same cells; nor two consolidations or removals of old fragments; nor a
//! repair beside anyone, for a fragment that is being written looks like one that a killed writer left. libtiledb takes no
//! locks.

use std::path::Path;

use hyperslab_core::Result;
use hyperslab_core::storage::StoreLock;

/// For a writer that adds fragments anywhere.
pub(super) fn adding(array: &Path) -> Result<StoreLock> {
    StoreLock::shared(array, |_| false)
}

/// For a writer that continues where the array ends.
pub(super) fn continuing(array: &Path) -> Result<StoreLock> {
    StoreLock::exclusive(array, |_| false)
}

/// For who replaces fragments by others with the same cells, or removes those that were replaced.
pub(super) fn maintaining(array: &Path) -> Result<StoreLock> {
    let schemas = array.join("__schema");
    StoreLock::exclusive(if schemas.is_dir() { &schemas } else { array }, |_| false)
}

/// For who removes what no one needs: nobody else is at work.
pub(super) fn alone(array: &Path) -> Result<[Option<StoreLock>; 2]> {
    let writing = continuing(array)?;
    // Of an old array both are the same lock.
    let both = array.join("__schema").is_dir();
    Ok([Some(writing), both.then(|| maintaining(array)).transpose()?])
}
