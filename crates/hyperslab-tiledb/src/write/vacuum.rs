//! Removal of what consolidated fragments replaced.

use std::collections::HashSet;
use std::path::Path;

use hyperslab_core::storage::{StagedChange, remove_inside};
use hyperslab_core::{Result, join_inside};

use super::consolidate::{arrays, open};
use super::{WriteOptions, key_in, locks, timed_name};
use crate::array::OpenArray;

/// Removes the fragments that consolidated ones replaced, in an array or in all arrays of a group. Returns how many.
///
/// At each step a fragment is first hidden, then taken away: whenever this ends, readers see what they saw before.
///
/// # Errors
///
/// [`Io`](hyperslab_core::Error::Io) if the system reports an error; whatever is wrong with the schema or the commits.
pub fn vacuum(path: &Path, options: &WriteOptions) -> Result<usize> {
    let mut removed = 0;
    for array in arrays(path, options.key.as_ref())? {
        removed += vacuum_array(path, &array, options)?;
    }
    Ok(removed)
}

fn vacuum_array(store: &Path, key: &str, options: &WriteOptions) -> Result<usize> {
    let path = &join_inside(store, key)?;
    let _lock = locks::maintaining(path)?;
    let array = open(path, options.key.as_ref(), crate::TimeWindow::default())?;
    let commits = array.commits()?;
    let mut removed = HashSet::new();
    for (vac, names) in &commits.vacuums {
        if !commits.replaces(&vac.stem) {
            continue;
        }
        // Commits inside a consolidated file stay in it: a list says that they no longer count.
        let ignored: String = names
            .iter()
            .filter(|name| commits.consolidated.contains(*name) && commits.fragments.contains_key(*name))
            .map(|name| format!("__commits/{name}.wrt\n"))
            .collect();
        if !ignored.is_empty() {
            ignore(store, key, &timed_name(vac.start, vac.end, true)?, &ignored)?;
        }
        // Each call is durable before the next: a commit never outlives its fragment.
        remove_inside(
            path,
            names.iter().flat_map(|name| [format!("__commits/{name}.wrt"), format!("{name}.ok")]),
        )?;
        for name in names {
            let folders = folders(&array, name);
            if !folders.is_empty() {
                removed.insert(name.as_str());
            }
            remove_inside(path, folders)?;
        }
        remove_inside(path, [format!("__commits/{}.vac", vac.stem), format!("{}.vac", vac.stem)])?;
    }
    Ok(removed.len())
}

/// The folders that a fragment of this name has, below the array's.
fn folders(array: &OpenArray, name: &str) -> Vec<String> {
    let listing = &array.listing;
    let below =
        listing.fragments.iter().filter(|own| own.stem == name).map(|_| format!("__fragments/{name}"));
    let root = listing.root.iter().filter(|(own, folder)| *folder && own.stem == name);
    below.chain(root.map(|_| name.to_owned())).collect()
}

/// Adds a list of commits that no longer count.
pub(super) fn ignore(store: &Path, array: &str, name: &str, commits: &str) -> Result<()> {
    let change = StagedChange::open(store)?;
    let list = key_in(array, &format!("__commits/{name}.ign"));
    change.writer().put(&list, commits.as_bytes())?;
    change.publish(&[list])
}
