//! Staging of single files.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::trace::{Step, record};
use super::{StageOptions, failed, leftovers, parent_of, system};
use crate::{Error, Result};

/// A file that is written under a temporary name beside its target. [`publish`](Self::publish) moves it into place in one step. A
/// file that is dropped instead leaves nothing behind.
///
/// ```
/// use hyperslab_core::storage::{StageOptions, StagedFile};
/// # let folder = tempfile::tempdir().unwrap();
/// let target = folder.path().join("x");
/// let staged = StagedFile::create(&target, StageOptions::default())?;
/// staged.write_at(b"content", 0)?;
/// assert!(!target.exists());
/// staged.publish()?;
/// assert!(target.exists());
/// # Ok::<(), hyperslab_core::Error>(())
/// ```
#[derive(Debug)]
pub struct StagedFile {
    file: File,
    path: PathBuf,
    target: PathBuf,
    options: StageOptions,
    published: bool,
}

impl StagedFile {
    /// Starts a file for `target`. Without [`replace`](StageOptions::replace), an existing target is refused now and again at
    /// [`publish`](Self::publish).
    ///
    /// # Errors
    ///
    /// [`Exists`](Error::Exists) if the target exists, [`Io`](Error::Io) if its folder cannot be written.
    pub fn create(target: &Path, options: StageOptions) -> Result<Self> {
        if !options.replace && target.symlink_metadata().is_ok() {
            return Err(Error::exists(target));
        }
        let (file, path) = leftovers::create_file(target)?;
        Ok(Self { file, path, target: target.to_owned(), options, published: false })
    }

    /// The file, for writing.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// The temporary path, until the file is published.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The final path.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Wraps a system error about this file.
    #[must_use]
    pub fn failed(&self, source: std::io::Error) -> Error {
        failed(&self.target, source)
    }

    /// Writes all bytes at `offset`.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system reports an error.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        system::write_all_at(&self.file, bytes, offset).map_err(|source| self.failed(source))?;
        record(|| Step::Write(self.path.clone()));
        Ok(())
    }

    /// Copies the permissions of the file to be replaced, as far as the file system supports them.
    pub fn keep_permissions(&self) {
        if let Ok(metadata) = self.target.metadata() {
            let _ = self.file.set_permissions(metadata.permissions());
        }
    }

    /// Moves the file into place. See the [module](super) for the durability contract.
    ///
    /// # Errors
    ///
    /// [`Exists`](Error::Exists) if the target exists and must not be replaced, [`Io`](Error::Io) if the system reports an error.
    /// The target is then untouched, unless syncing its folder failed.
    pub fn publish(mut self) -> Result<()> {
        let mut durable = self.options.sync;
        if durable {
            self.sync()?;
        }
        // Opened now: a failure after the rename would come too late.
        let folder = (durable || self.options.replace)
            .then(|| system::Folder::open(parent_of(&self.target)))
            .transpose()
            .map_err(|source| self.failed(source))?;
        // A new target needs no sync. Only trying shows whether the target exists.
        match system::rename_new(&self.path, &self.target) {
            Err(source) if source.kind() == ErrorKind::AlreadyExists => {
                if !self.options.replace {
                    return Err(Error::exists(&self.target));
                }
                if !durable {
                    self.sync()?;
                }
                system::rename(&self.path, &self.target).map_err(|source| self.failed(source))?;
                durable = true;
            }
            done => done.map_err(|source| self.failed(source))?,
        }
        self.published = true;
        // Handles that share this one would keep the lock.
        let _ = self.file.unlock();
        match folder.filter(|_| durable) {
            Some(folder) => folder.sync().map_err(|source| self.failed(source)),
            None => Ok(()),
        }
    }

    fn sync(&self) -> Result<()> {
        system::sync_file(&self.file, &self.path).map_err(|source| self.failed(source))
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if !self.published {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
