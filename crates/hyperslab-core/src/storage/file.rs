//! Targets that are one file.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::trace::{Step, record};
use super::{StageOptions, failed, leftovers, parent_of, system};
use crate::{Error, Result};

/// A file that is written under a temporary name beside its target. [`publish`](Self::publish) puts it there in one step;
/// dropped, it leaves nothing behind.
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
    /// Starts a file that will be at `target`. Without [`replace`](StageOptions::replace), an existing target is refused
    /// now and again at [`publish`](Self::publish).
    ///
    /// # Errors
    ///
    /// [`Exists`](Error::Exists) when the target exists, [`Io`](Error::Io) when its folder cannot be written.
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

    /// Where the file is until it is published.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the file will be.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// An error of the system about this file.
    #[must_use]
    pub fn failed(&self, source: std::io::Error) -> Error {
        failed(&self.target, source)
    }

    /// Writes all bytes at `offset`.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the system refuses.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        system::write_all_at(&self.file, bytes, offset).map_err(|source| self.failed(source))?;
        record(|| Step::Write(self.path.clone()));
        Ok(())
    }

    /// Gives the file the permissions of the one that it replaces, as far as the file system supports them.
    pub fn keep_permissions(&self) {
        if let Ok(metadata) = self.target.metadata() {
            let _ = self.file.set_permissions(metadata.permissions());
        }
    }

    /// Puts the file in its place. See the [module](super) for what is durable when.
    ///
    /// # Errors
    ///
    /// [`Exists`](Error::Exists) when the target exists and is not to be replaced, [`Io`](Error::Io) when the system
    /// refuses. The target is untouched then, unless syncing its folder failed.
    pub fn publish(mut self) -> Result<()> {
        let mut durable = self.options.sync;
        if durable {
            self.sync()?;
        }
        // Opened now: afterwards the target is there.
        let folder = (durable || self.options.replace)
            .then(|| system::Folder::open(parent_of(&self.target)))
            .transpose()
            .map_err(|source| self.failed(source))?;
        // Where nothing is there, nothing need be synced. Whether something is there is only known by trying.
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
