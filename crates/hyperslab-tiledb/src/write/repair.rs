//! Repair: removes leftovers that no reader needs.

use std::path::Path;

use hyperslab_core::storage::remove_inside;
use hyperslab_core::{Result, join_inside};

use super::consolidate::{arrays, open};
use super::vacuum::ignore;
use super::{WriteOptions, locks, timed_name};
use crate::TimeWindow;
use crate::stale::{self, FixAction};

/// Returns what is safe to remove from an array, or from the arrays of a group: the check's code and a description of
/// the fix. Removes it unless `dry_run` is set. A fragment that another program is still writing looks like an
/// uncommitted one, so nothing else may write during a repair.
///
/// # Errors
///
/// [`Io`](hyperslab_core::Error::Io) if the system reports an error; otherwise any error in the schema or the
/// commits.
pub fn repair(path: &Path, options: &WriteOptions, dry_run: bool) -> Result<Vec<(&'static str, String)>> {
    let mut fixes = Vec::new();
    for key in arrays(path, options.key.as_ref())? {
        let folder = join_inside(path, &key)?;
        let _locks = if dry_run { [None, None] } else { locks::alone(&folder)? };
        let array = open(&folder, options.key.as_ref(), TimeWindow::default())?;
        let stale = stale::find(&array)?;
        if !dry_run {
            apply(path, &key, stale.iter().map(|stale| &stale.action))?;
        }
        fixes.extend(stale.into_iter().map(|stale| (stale.code, stale.fix)));
    }
    Ok(fixes)
}

fn apply<'a>(store: &Path, array: &str, actions: impl Iterator<Item = &'a FixAction>) -> Result<()> {
    let (mut ignored, mut removed) = (String::new(), Vec::new());
    for action in actions {
        match action {
            FixAction::Ignore(commit) => ignored.push_str(&format!("{commit}\n")),
            FixAction::Remove(key) => removed.push(key),
        }
    }
    remove_inside(&join_inside(store, array)?, removed)?;
    if !ignored.is_empty() {
        let at = super::next_time(None, 0);
        ignore(store, array, &timed_name(at, at, true)?, &ignored)?;
    }
    Ok(())
}
