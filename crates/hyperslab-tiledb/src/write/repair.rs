//! Removing what no reader needs.

use std::path::Path;

use hyperslab_core::{Result, removable_inside};

use super::consolidate::{arrays, open};
use super::vacuum::{remove_file, remove_folder};
use super::{WriteOptions, put_file, timed_name};
use crate::TimeWindow;
use crate::stale::{self, Mend};

/// What is safe to remove from an array, or from the arrays of a group, by the code and words of the check that found it. Unless
/// `dry_run`, it is removed. A fragment that another process is still writing looks like one that was never committed: repair
/// when no one writes.
///
/// # Errors
///
/// [`Io`](hyperslab_core::Error::Io) when the system refuses; whatever is wrong with the schema or the commits.
pub fn repair(path: &Path, options: &WriteOptions, dry_run: bool) -> Result<Vec<(&'static str, String)>> {
    let mut fixes = Vec::new();
    for folder in arrays(path, options.key.as_ref())? {
        let array = open(&folder, options.key.as_ref(), TimeWindow::default())?;
        let stale = stale::find(&array)?;
        if !dry_run {
            mend(&folder, stale.iter().map(|stale| &stale.mend))?;
        }
        fixes.extend(stale.into_iter().map(|stale| (stale.code, stale.fix)));
    }
    Ok(fixes)
}

fn mend<'a>(folder: &Path, mends: impl Iterator<Item = &'a Mend>) -> Result<()> {
    let mut ignored = String::new();
    for mend in mends {
        match mend {
            Mend::Ignore(commit) => ignored.push_str(&format!("{commit}\n")),
            Mend::Remove(key) => {
                // A symbolic link is removed, never what it leads to.
                let target = removable_inside(folder, key)?;
                let is_folder = target.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
                if is_folder { remove_folder(folder, key)? } else { remove_file(folder, key)? }
            }
        }
    }
    if !ignored.is_empty() {
        let at = super::next_time(None, 0);
        let list = format!("{}.ign", timed_name(at, at, true)?);
        put_file(&folder.join("__commits").join(list), ignored.as_bytes())?;
    }
    Ok(())
}
