//! Removing what no reader needs.

use std::path::Path;

use hyperslab_core::storage::remove_inside;
use hyperslab_core::{Result, join_inside};

use super::consolidate::{arrays, open};
use super::vacuum::ignore;
use super::{WriteOptions, locks, timed_name};
use crate::TimeWindow;
use crate::stale::{self, Mend};

/// What is safe to remove from an array, or from the arrays of a group, by the code and words of the check that found it. Unless
/// `dry_run`, it is removed. A fragment that another program is still writing looks like one that was never committed: repair
/// when no one writes.
///
/// # Errors
///
/// [`Io`](hyperslab_core::Error::Io) if the system reports an error; whatever is wrong with the schema or the commits.
pub fn repair(path: &Path, options: &WriteOptions, dry_run: bool) -> Result<Vec<(&'static str, String)>> {
    let mut fixes = Vec::new();
    for key in arrays(path, options.key.as_ref())? {
        let folder = join_inside(path, &key)?;
        let _locks = if dry_run { [None, None] } else { locks::alone(&folder)? };
        let array = open(&folder, options.key.as_ref(), TimeWindow::default())?;
        let stale = stale::find(&array)?;
        if !dry_run {
            mend(path, &key, stale.iter().map(|stale| &stale.mend))?;
        }
        fixes.extend(stale.into_iter().map(|stale| (stale.code, stale.fix)));
    }
    Ok(fixes)
}

fn mend<'a>(store: &Path, array: &str, mends: impl Iterator<Item = &'a Mend>) -> Result<()> {
    let (mut ignored, mut removed) = (String::new(), Vec::new());
    for mend in mends {
        match mend {
            Mend::Ignore(commit) => ignored.push_str(&format!("{commit}\n")),
            Mend::Remove(key) => removed.push(key),
        }
    }
    remove_inside(&join_inside(store, array)?, removed)?;
    if !ignored.is_empty() {
        let at = super::next_time(None, 0);
        ignore(store, array, &timed_name(at, at, true)?, &ignored)?;
    }
    Ok(())
}
