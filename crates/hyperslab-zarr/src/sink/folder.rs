//! A folder that appears whole or not at all.

use std::path::{Path, PathBuf};

use hyperslab_core::{Error, Result, join_inside};
use serde_json::Value;
use tempfile::TempDir;

use crate::json::to_text;

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
        let path = join_inside(&self.path, key)?;
        let failed = |source| Error::io(path.display().to_string(), source);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let text = to_text(key, document)?;
        std::fs::write(&path, text).map_err(failed)
    }

    /// Puts the folder in its place. What replaces another is on the disk before it does; what is new is as durable as any
    /// copy.
    pub(crate) fn commit(self) -> Result<()> {
        let failed = |source| Error::io(self.target.display().to_string(), source);
        if self.target.symlink_metadata().is_ok() {
            if !self.replace {
                return Err(exists(&self.target));
            }
            sync_contents(&self.path).map_err(failed)?;
            self.exchange().map_err(failed)?;
            return sync_folder(parent_of(&self.target)).map_err(failed);
        }
        std::fs::rename(&self.path, &self.target).map_err(failed)
    }
}

impl PendingFolder {
    /// Puts the new folder where the old one stands, and the old one where the new one stood: in one step, so that whoever is
    /// killed at any instant leaves one of them at the target, whole.
    #[cfg(target_os = "linux")]
    fn exchange(&self) -> std::io::Result<()> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, &self.path, CWD, &self.target, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(()),
            // Some file systems cannot exchange.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {
                self.two_renames()
            }
            Err(problem) => Err(problem.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn exchange(&self) -> std::io::Result<()> {
        self.two_renames()
    }

    /// Where nothing better is there: the old one aside, the new one in. Killed between the two, the target is missing and both are
    /// beside it, in a folder `.tet-*.part`: `old` and `store`.
    fn two_renames(&self) -> std::io::Result<()> {
        let old = self.holder.path().join("old");
        std::fs::rename(&self.target, &old)?;
        std::fs::rename(&self.path, &self.target).inspect_err(|_| {
            // Put back what stood there.
            let _ = std::fs::rename(&old, &self.target);
        })
    }
}

fn parent_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Waits until the files of a folder are on the disk: in one request, as there may be very many.
#[cfg(target_os = "linux")]
fn sync_contents(folder: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::syncfs(std::fs::File::open(folder)?)?)
}

/// Where there is no such request the system writes in its own time.
#[cfg(not(target_os = "linux"))]
fn sync_contents(_: &Path) -> std::io::Result<()> {
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways of replacing leave the new one, and nothing beside it.
    #[test]
    fn an_old_folder_is_replaced() {
        for two in [false, true] {
            let parent = tempfile::tempdir().unwrap();
            let target = parent.path().join("store");
            std::fs::create_dir(&target).unwrap();
            std::fs::write(target.join("old"), "old").unwrap();
            assert!(PendingFolder::create(&target, false).is_err());
            let pending = PendingFolder::create(&target, true).unwrap();
            std::fs::write(pending.path().join("new"), "new").unwrap();
            assert!(target.join("old").exists());
            if two {
                pending.two_renames().unwrap();
                drop(pending);
            } else {
                pending.commit().unwrap();
            }
            assert!(target.join("new").exists() && !target.join("old").exists());
            assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1);
        }
    }
}
