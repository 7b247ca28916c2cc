//! A folder that appears whole or not at all.

use std::path::{Path, PathBuf};

use hyperslab_core::{Error, Result};
use serde_json::Value;
use tempfile::TempDir;

/// A folder that is being filled beside its place. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct PendingFolder {
    /// Holds the folder, and at commit the one that is replaced.
    holder: TempDir,
    path: PathBuf,
    target: PathBuf,
    replace: bool,
}

impl PendingFolder {
    /// Starts a folder that will stand at `target`.
    pub(crate) fn create(target: &Path, replace: bool) -> Result<Self> {
        if !replace && target.symlink_metadata().is_ok() {
            return Err(exists(target));
        }
        let parent = parent_of(target);
        let failed = |source| Error::io(parent.display().to_string(), source);
        let holder =
            tempfile::Builder::new().prefix(".tet-").suffix(".part").tempdir_in(parent).map_err(failed)?;
        // The holder is private to its owner; the folder inside has the usual permissions.
        let path = holder.path().join("store");
        std::fs::create_dir(&path).map_err(failed)?;
        Ok(Self { holder, path, target: target.to_owned(), replace })
    }

    /// Where it stands until it is committed.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a metadata document.
    pub(crate) fn document(&self, key: &str, document: &Value) -> Result<()> {
        let path = self.path.join(key);
        let failed = |source| Error::io(path.display().to_string(), source);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut text = serde_json::to_vec_pretty(document)
            .map_err(|problem| Error::invalid(format!("{key}: {problem}")))?;
        text.push(b'\n');
        std::fs::write(&path, text).map_err(failed)
    }

    /// Puts the folder in its place.
    pub(crate) fn commit(self) -> Result<()> {
        let failed = |source| Error::io(self.target.display().to_string(), source);
        if self.target.symlink_metadata().is_ok() {
            if !self.replace {
                return Err(exists(&self.target));
            }
            let old = self.holder.path().join("old");
            std::fs::rename(&self.target, &old).map_err(failed)?;
            if let Err(problem) = std::fs::rename(&self.path, &self.target) {
                // Put back what stood there.
                std::fs::rename(&old, &self.target).map_err(failed)?;
                return Err(failed(problem));
            }
        } else {
            std::fs::rename(&self.path, &self.target).map_err(failed)?;
        }
        sync_folder(parent_of(&self.target)).map_err(failed)
    }
}

fn parent_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A rename is durable once the folder is.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> std::io::Result<()> {
    Ok(())
}

fn exists(target: &Path) -> Error {
    Error::invalid(format!("{} exists; --force replaces it", target.display()))
}
