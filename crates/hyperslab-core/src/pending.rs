//! A file that appears whole or not at all.

use std::fs::File;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::{Error, Result};

/// A file that is being written beside its target, under a temporary name. [`commit`](Self::commit) puts it in the
/// target's place in one step; dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct PendingFile {
    file: NamedTempFile,
    target: PathBuf,
    replace: bool,
}

impl PendingFile {
    /// Starts a file that will stand at `target`. With `replace`, what stands there is replaced at commit; without,
    /// it is refused now and again at commit.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) when the target exists, [`Io`](Error::Io) when its folder cannot be written.
    pub fn create(target: &Path, replace: bool) -> Result<Self> {
        if !replace && target.symlink_metadata().is_ok() {
            return Err(exists(target));
        }
        let folder = folder_of(target);
        let file = tempfile::Builder::new()
            .prefix(".tet-")
            .suffix(".part")
            .tempfile_in(folder)
            .map_err(|source| Error::io(folder.display().to_string(), source))?;
        Ok(Self { file, target: target.to_owned(), replace })
    }

    /// The file, for writing.
    #[must_use]
    pub fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Where it stands until it is committed.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Where it will stand.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// An error of the system about this file.
    #[must_use]
    pub fn failed(&self, source: std::io::Error) -> Error {
        Error::io(self.target.display().to_string(), source)
    }

    /// Puts the file in its place. What replaces something is on the disk before it does, so that not even a power cut
    /// costs both; what is new is as durable as any copy.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the system refuses; the target is untouched then.
    pub fn commit(self) -> Result<()> {
        let failed = |source| Error::io(self.target.display().to_string(), source);
        let replaces = self.replace && self.target.symlink_metadata().is_ok();
        if replaces {
            self.file.as_file().sync_all().map_err(failed)?;
        }
        give_usual_permissions(self.file.as_file()).map_err(failed)?;
        let placed = if self.replace {
            self.file.persist(&self.target).map_err(|refused| refused.error)
        } else {
            self.file.persist_noclobber(&self.target).map_err(|refused| refused.error)
        };
        match placed {
            Err(source) if source.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(exists(&self.target));
            }
            placed => placed.map_err(failed)?,
        };
        if replaces { sync_folder(folder_of(&self.target)).map_err(failed) } else { Ok(()) }
    }
}

fn exists(target: &Path) -> Error {
    Error::exists(target)
}

fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Temporary files are private; the result is as readable as any new file.
#[cfg(unix)]
fn give_usual_permissions(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn give_usual_permissions(_: &File) -> std::io::Result<()> {
    Ok(())
}

/// A rename is durable once the folder is.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn appears_whole_or_not_at_all() -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        drop(PendingFile::create(&target, false)?);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let pending = PendingFile::create(&target, false)?;
        pending.file().write_all(b"new").unwrap();
        assert!(!target.exists());
        pending.commit()?;
        assert_eq!(std::fs::read(&target).unwrap(), b"new");
        assert!(matches!(PendingFile::create(&target, false), Err(Error::Exists { .. })));
        PendingFile::create(&target, true)?.commit()?;
        assert_eq!(std::fs::read(&target).unwrap(), b"");
        Ok(())
    }
}
