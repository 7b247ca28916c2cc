//! The stores in a folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::{Content, Error, FileBlob, LocalStorage, Result};

use crate::{Format, formats};

/// The stores directly inside a folder, sorted by name, each with its format. Everything else is left out, including hidden
/// files.
///
/// # Errors
///
/// [`Io`](Error::Io) if the folder cannot be read.
pub fn stores_in(folder: &Path) -> Result<Vec<(PathBuf, Format)>> {
    let failed = |source| Error::io(folder.display().to_string(), source);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let Ok(metadata) = path.metadata() else { continue };
        let content = if metadata.is_dir() {
            Content::Directory(Arc::new(LocalStorage::new(&path)))
        } else if metadata.is_file() {
            // Skip files that we may not read.
            let Ok(blob) = FileBlob::open(&path) else { continue };
            Content::File(Arc::new(blob))
        } else {
            continue;
        };
        if let (false, Ok(Some(format))) = (hidden, formats::recognise(&content)) {
            found.push((path, format));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(found)
}
