//! Removal of what consolidated fragments replaced.

use std::collections::HashSet;
use std::path::Path;

use hyperslab_core::{Result, removable_inside};

use super::consolidate::{arrays, open};
use super::{WriteOptions, io, put_file, timed_name};
use crate::array::OpenArray;

/// Removes the fragments that consolidated ones replaced, in an array or in all arrays of a group. Returns how many.
///
/// At each step a fragment is first hidden, then taken away: whenever this ends, readers see what they saw before.
///
/// # Errors
///
/// [`Io`](hyperslab_core::Error::Io) when the system refuses; whatever is wrong with the schema or the commits.
pub fn vacuum(path: &Path, options: &WriteOptions) -> Result<usize> {
    let mut removed = 0;
    for folder in arrays(path, options.key.as_ref())? {
        removed += vacuum_array(&folder, options)?;
    }
    Ok(removed)
}

fn vacuum_array(path: &Path, options: &WriteOptions) -> Result<usize> {
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
            let list = format!("{}.ign", timed_name(vac.start, vac.end, true)?);
            put_file(&path.join("__commits").join(list), ignored.as_bytes())?;
        }
        for name in names {
            remove_file(path, &format!("__commits/{name}.wrt"))?;
            remove_file(path, &format!("{name}.ok"))?;
            for folder in folders(&array, name) {
                remove_folder(path, &folder)?;
                removed.insert(name.as_str());
            }
        }
        let file = format!("{}.vac", vac.stem);
        remove_file(path, &format!("__commits/{file}"))?;
        remove_file(path, &file)?;
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

/// Removes a file of an array, by its key in the array's folder.
pub(super) fn remove_file(array: &Path, key: &str) -> Result<()> {
    let file = removable_inside(array, key)?;
    match std::fs::remove_file(&file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(&file, error)),
        _ => Ok(()),
    }
}

/// Removes a folder of an array, by its key in the array's folder.
pub(super) fn remove_folder(array: &Path, key: &str) -> Result<()> {
    let folder = removable_inside(array, key)?;
    match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(&folder, error)),
        _ => Ok(()),
    }
}
