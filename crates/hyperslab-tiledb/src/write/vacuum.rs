//! Removal of what consolidated fragments replaced.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use hyperslab_core::Result;

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
            for commit in
                [path.join("__commits").join(format!("{name}.wrt")), path.join(format!("{name}.ok"))]
            {
                remove_file(&commit)?;
            }
            for folder in folders(&array, path, name) {
                remove_folder(&folder)?;
                removed.insert(name.as_str());
            }
        }
        let file = format!("{}.vac", vac.stem);
        remove_file(&path.join("__commits").join(&file))?;
        remove_file(&path.join(&file))?;
    }
    Ok(removed.len())
}

/// The folders that a fragment of this name has.
fn folders(array: &OpenArray, path: &Path, name: &str) -> Vec<PathBuf> {
    let listing = &array.listing;
    let below =
        listing.fragments.iter().filter(|own| own.stem == name).map(|_| path.join("__fragments").join(name));
    let root =
        listing.root.iter().filter(|(own, folder)| *folder && own.stem == name).map(|_| path.join(name));
    below.chain(root).collect()
}

pub(super) fn remove_file(file: &Path) -> Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(file, error)),
        _ => Ok(()),
    }
}

pub(super) fn remove_folder(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(folder, error)),
        _ => Ok(()),
    }
}
