//! Formats that keep every write apart, as TileDB does: writes put together, and what they replaced removed.

use std::path::Path;
use std::sync::atomic::Ordering;

use hyperslab_core::{Error, FormatDriver, Result, Selection};

use crate::convert::Progress;
use crate::{OpenOptions, RowCondition, TableReader, open_with};

/// Puts the fragments of an array, or of each array of a group, together into one. Those that it replaces stay, hidden, until
/// [`vacuum_path`]; [`OpenOptions::at`] chooses those that were written in a time. Returns how many were replaced.
///
/// # Errors
///
/// [`Unsupported`](Error::Unsupported) for a format that has no fragments; [`Invalid`](Error::Invalid) when stopped. The array
/// holds what it held, however this ends.
pub fn consolidate_path(path: &Path, options: &OpenOptions, progress: &Progress) -> Result<u64> {
    let follow = |done, total| {
        progress.total.store(total, Ordering::Relaxed);
        progress.done.store(done, Ordering::Relaxed);
        !progress.stop.load(Ordering::Relaxed)
    };
    driver_of(path, options)?.consolidate(path, &options.context(path), &follow)
}

/// Removes the fragments that consolidated ones replaced. Returns how many.
///
/// # Errors
///
/// [`Unsupported`](Error::Unsupported) for a format that has no fragments; [`Io`](Error::Io) when the system refuses.
pub fn vacuum_path(path: &Path, options: &OpenOptions) -> Result<u64> {
    driver_of(path, options)?.vacuum(path, &options.context(path))
}

/// Deletes the rows of a table that meet a condition, in formats that keep deletes beside their data. Earlier times still have
/// them. Returns how many rows were deleted.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) when the store is not one table, or for a condition that does not fit its columns;
/// [`Unsupported`](Error::Unsupported) where rows cannot be deleted.
pub fn delete_rows(path: &Path, condition: &RowCondition, options: &OpenOptions) -> Result<u64> {
    let driver = driver_of(path, options)?;
    let table = open_with(path, options)?.table("/")?;
    let count = |table: &TableReader, condition: &RowCondition| -> Result<u64> {
        let scan = table.scan_where(&Selection::all(), Some(&[]), Some(condition))?;
        table.rows_of(&scan)?.batches.try_fold(0, |rows, batch| Ok(rows + batch?.rows as u64))
    };
    let filter = condition.bind(&table.schema().columns)?;
    let before = table.inner().rows()?;
    if count(&table, condition)? == 0 {
        return Ok(0);
    }
    driver.delete_rows(path, &filter, &options.context(path))?;
    let after = open_with(path, options)?.table("/")?.inner().rows()?;
    Ok(before.saturating_sub(after))
}

fn driver_of(path: &Path, options: &OpenOptions) -> Result<&'static dyn FormatDriver> {
    crate::location::check_local(path, "changing")?;
    let format = open_with(path, options)?.driver();
    let format = format.ok_or_else(|| Error::invalid(format!("{}: no format", path.display())))?;
    Ok(format.driver())
}
