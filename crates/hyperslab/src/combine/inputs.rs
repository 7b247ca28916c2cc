//! Expands paths and patterns into a list of stores.

use std::path::{Path, PathBuf};

use hyperslab_core::{Error, Result};

/// Expands paths and patterns (`data/*.nc`); matches are sorted by name. An existing path is never treated as a pattern, and
/// neither is a URL.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for an invalid pattern or one without matches; [`Io`](Error::Io) if a folder cannot be read.
pub fn expand(inputs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::with_capacity(inputs.len());
    for input in inputs {
        match pattern(input) {
            Some(pattern) => paths.extend(matches(pattern)?),
            None => paths.push(input.clone()),
        }
    }
    Ok(paths)
}

/// The pattern, if the input is one.
fn pattern(input: &Path) -> Option<&str> {
    let text = input.to_str()?;
    let has_signs = text.contains(['*', '?', '[']);
    (has_signs && !crate::is_remote(input) && input.symlink_metadata().is_err()).then_some(text)
}

fn matches(pattern: &str) -> Result<Vec<PathBuf>> {
    let wrong = |why: &dyn std::fmt::Display| Error::invalid(format!("{pattern}: invalid pattern: {why}"));
    let mut paths = Vec::new();
    for found in glob::glob(pattern).map_err(|why| wrong(&why))? {
        paths.push(found.map_err(|why| {
            let path = why.path().display().to_string();
            Error::io(path, why.into())
        })?);
    }
    if paths.is_empty() {
        return Err(Error::invalid(format!(
            "{pattern}: no file matches; check the folder and the extension"
        )));
    }
    Ok(paths)
}
