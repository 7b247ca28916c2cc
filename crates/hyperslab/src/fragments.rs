//! Formats that keep every write apart, as TileDB does: writes put together, and what they replaced removed.

use std::path::Path;
#[cfg(feature = "tiledb")]
use std::sync::atomic::Ordering;

use hyperslab_core::{Error, Result};

use crate::convert::Progress;
use crate::{OpenOptions, open_with};

/// Puts the fragments of an array, or of each array of a group, together into one. Those that it replaces stay, hidden, until
/// [`vacuum_path`]; [`OpenOptions::at`] chooses those that were written in a time. Returns how many were replaced.
///
/// # Errors
///
/// [`Unsupported`](Error::Unsupported) for a format that has no fragments; [`Invalid`](Error::Invalid) when stopped. The array
/// holds what it held, however this ends.
pub fn consolidate_path(path: &Path, options: &OpenOptions, progress: &Progress) -> Result<u64> {
    refuse_others(path, options, "consolidating")?;
    #[cfg(feature = "tiledb")]
    {
        let at = options.at.map_or_else(hyperslab_tiledb::TimeWindow::default, |(start, end)| {
            hyperslab_tiledb::TimeWindow { start, end }
        });
        let follow = |done, total| {
            progress.total.store(total, Ordering::Relaxed);
            progress.done.store(done, Ordering::Relaxed);
            !progress.stop.load(Ordering::Relaxed)
        };
        let key = options.key.as_ref().map(crate::EncryptionKey::to_tiledb);
        let options = hyperslab_tiledb::ConsolidateOptions { at, key, progress: &follow };
        Ok(hyperslab_tiledb::consolidate(path, &options)? as u64)
    }
    #[cfg(not(feature = "tiledb"))]
    {
        let _ = progress;
        Ok(0)
    }
}

/// Removes the fragments that consolidated ones replaced. Returns how many.
///
/// # Errors
///
/// [`Unsupported`](Error::Unsupported) for a format that has no fragments; [`Io`](Error::Io) when the system refuses.
pub fn vacuum_path(path: &Path, options: &OpenOptions) -> Result<u64> {
    refuse_others(path, options, "vacuuming")?;
    #[cfg(feature = "tiledb")]
    {
        let key = options.key.as_ref().map(crate::EncryptionKey::to_tiledb);
        let tiledb = hyperslab_tiledb::WriteOptions { key, ..hyperslab_tiledb::WriteOptions::default() };
        Ok(hyperslab_tiledb::vacuum(path, &tiledb)? as u64)
    }
    #[cfg(not(feature = "tiledb"))]
    Ok(0)
}

/// Only TileDB keeps writes apart.
fn refuse_others(path: &Path, options: &OpenOptions, doing: &str) -> Result<()> {
    match open_with(path, options)?.format() {
        "tiledb" => Ok(()),
        other => Err(Error::unsupported(path.display().to_string(), format!("{doing} {other}"))),
    }
}
