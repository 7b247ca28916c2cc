//! Vacuum: removes fragments that consolidation replaced.

use std::collections::HashSet;
use std::path::Path;

use hyperslab_core::storage::{StagedChange, remove_inside};
use hyperslab_core::{Result, join_inside};

use super::consolidate::{arrays, open};
use super::{WriteOptions, key_in, locks, timed_name};
use crate::array::OpenArray;

/// Removes the replaced fragments of an array, or of all arrays in a group. Returns their number.
///
/// Each fragment is hidden before it is removed, so readers see the same data even if this is interrupted.
///
/// # Errors
///
/// [`Io`](hyperslab_core::Error::Io) if the system reports an error; otherwise any error in the schema or the
/// commits.
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
        // Commits in a consolidated file stay there. An ignore file marks them as invalid.
        let ignored: String = names
            .iter()
            .filter(|name| commits.consolidated.contains(*name) && commits.fragments.contains_key(*name))
            .map(|name| format!("__commits/{name}.wrt\n"))
            .collect();
        if !ignored.is_empty() {
            ignore(store, key, &timed_name(vac.start, vac.end, true)?, &ignored)?;
        }
        // Each call is durable before the next, so that a commit never outlives its fragment.
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

/// The folders of the fragment with this name, relative to the array.
fn folders(array: &OpenArray, name: &str) -> Vec<String> {
    let listing = &array.listing;
    let below =
        listing.fragments.iter().filter(|own| own.stem == name).map(|_| format!("__fragments/{name}"));
    let root = listing.root.iter().filter(|(own, folder)| *folder && own.stem == name);
    below.chain(root.map(|_| name.to_owned())).collect()
}

/// Adds an ignore file for these commits.
pub(super) fn ignore(store: &Path, array: &str, name: &str, commits: &str) -> Result<()> {
    let change = StagedChange::open(store)?;
    let list = key_in(array, &format!("__commits/{name}.ign"));
    change.writer().put(&list, commits.as_bytes())?;
    change.publish(&[list])
}
