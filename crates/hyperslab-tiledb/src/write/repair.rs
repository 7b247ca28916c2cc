//! Removing what no reader looks at: fragments that were never committed, consolidated footers of fragments that are gone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::{LocalDirectory, Result};

use super::{WriteOptions, io};
use crate::OpenOptions;
use crate::array::OpenArray;

/// What is safe to remove from an array, by the code and words of the check that found it. Unless `dry_run`, it is removed. A
/// fragment that another process is still writing looks like one that was never committed: repair when no one writes.
///
/// # Errors
///
/// [`Io`](hyperslab_core::Error::Io) when the system refuses; whatever is wrong with the schema or the commits.
pub fn repair(path: &Path, options: &WriteOptions, dry_run: bool) -> Result<Vec<(&'static str, String)>> {
    let open = OpenOptions { key: options.key.clone(), ..OpenOptions::default() };
    let array = OpenArray::open(Arc::new(LocalDirectory::new(path)), String::new(), open)?;
    let commits = array.commits()?;
    let mut fixes: Vec<(&'static str, String, PathBuf)> = Vec::new();
    for name in &array.listing.fragments {
        if !commits.fragments.contains_key(&name.stem) {
            let message = format!("remove the fragment {}, which was never committed", name.stem);
            fixes.push(("remove_orphan_fragments", message, path.join("__fragments").join(&name.stem)));
        }
    }
    for (file, names) in array.consolidated_footers().unwrap_or_default() {
        if names.iter().any(|name| !commits.fragments.contains_key(name)) {
            let message = format!("remove {file}, which names fragments that are gone");
            fixes.push(("remove_stale_footers", message, path.join("__fragment_meta").join(&file)));
        }
    }
    if !dry_run {
        for (_, _, target) in &fixes {
            let done =
                if target.is_dir() { std::fs::remove_dir_all(target) } else { std::fs::remove_file(target) };
            done.map_err(|error| io(target, error))?;
        }
    }
    Ok(fixes.into_iter().map(|(code, message, _)| (code, message)).collect())
}
