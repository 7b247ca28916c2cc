//! Files changed in place.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::leftovers::is_same;
use super::lock::busy;
use super::trace::{Step, record};
use super::{StagedFile, failed, parent_of, system};
use crate::{Error, Result};

/// The block size for copying.
const PIECE: usize = 1 << 20;

/// The number of attempts to lock a file that is being replaced.
const LOCK_ATTEMPTS: usize = 16;

/// A file that is read and written by position, from any thread: one changed in place, or a staged file.
#[derive(Debug)]
pub struct LocalFile {
    file: File,
    path: PathBuf,
    /// The path to show in errors: for a staged file, its target.
    shown: PathBuf,
}

impl LocalFile {
    /// Opens an existing file for changes.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if it cannot be opened for writing.
    pub fn open(path: &Path) -> Result<Self> {
        let file =
            File::options().read(true).write(true).open(path).map_err(|source| failed(path, source))?;
        Ok(Self { file, path: path.to_owned(), shown: path.to_owned() })
    }

    /// Opens an existing file and locks it against other writers until this is dropped.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if another writer holds the lock; otherwise as [`open`](Self::open).
    pub fn open_locked(path: &Path) -> Result<Self> {
        for _ in 0..LOCK_ATTEMPTS {
            let own = Self::open(path)?;
            if !own.try_lock()? {
                return Err(busy(path));
            }
            // A file that was replaced between opening and locking is not the one that others see.
            if path.canonicalize().is_ok_and(|path| is_same(&own.file, &path)) {
                return Ok(own);
            }
        }
        Err(busy(path))
    }

    /// Another handle to a staged file. It stays valid after the file is published.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system has no more handles.
    pub fn of(staged: &StagedFile) -> Result<Self> {
        let file = staged.file().try_clone().map_err(|source| staged.failed(source))?;
        Ok(Self { file, path: staged.path().to_owned(), shown: staged.target().to_owned() })
    }

    /// An unnamed file in a folder, for data that does not fit in memory. It disappears with the handle.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the folder cannot be written.
    pub fn scratch(folder: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(folder).map_err(|source| failed(folder, source))?;
        Ok(Self { file, path: folder.to_owned(), shown: folder.to_owned() })
    }

    /// The path by which it was opened; for an unnamed file, the path of its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length in bytes.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system cannot determine it.
    pub fn length(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|source| self.failed(source))?.len())
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

    /// Fills `bytes` from `offset`.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system reports an error or the file is too short.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        crate::blob::read_exact_at(&self.file, bytes, offset).map_err(|source| self.failed(source))
    }

    /// Copies a range of one file to another position of this one, block by block through `write`. The ranges must not overlap.
    ///
    /// # Errors
    ///
    /// As [`read_at`](Self::read_at) and whatever `write` fails with.
    pub fn copy_to(
        &self,
        from: u64,
        length: u64,
        mut write: impl FnMut(&[u8], u64) -> Result<()>,
    ) -> Result<()> {
        let mut piece = vec![0; PIECE.min(usize::try_from(length).unwrap_or(PIECE))];
        let mut done = 0;
        while done < length {
            let now = (length - done).min(PIECE as u64);
            let piece = &mut piece[..now as usize];
            self.read_at(piece, from + done)?;
            write(piece, done)?;
            done += now;
        }
        Ok(())
    }

    /// Locks the file against other writers until this is dropped. Returns `false` if another writer holds the lock. A file
    /// system without locks cannot keep others out.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system reports an error.
    pub fn try_lock(&self) -> Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(source)) if source.kind() == ErrorKind::Unsupported => Ok(true),
            Err(TryLockError::Error(source)) => Err(self.failed(source)),
        }
    }

    /// Releases the lock.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system reports an error.
    pub fn unlock(&self) -> Result<()> {
        self.file.unlock().map_err(|source| self.failed(source))
    }

    /// Sets the file's length. New bytes read as zeros.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system reports an error.
    pub fn set_length(&self, length: u64) -> Result<()> {
        self.file.set_len(length).map_err(|source| self.failed(source))?;
        record(|| Step::Write(self.path.clone()));
        Ok(())
    }

    /// Waits until the content is on disk. Times and permissions may follow later.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system reports an error.
    pub fn sync_data(&self) -> Result<()> {
        system::sync_data(&self.file, &self.path).map_err(|source| self.failed(source))
    }

    /// Waits until everything is on disk.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system reports an error.
    pub fn sync(&self) -> Result<()> {
        system::sync_file(&self.file, &self.path).map_err(|source| self.failed(source))
    }

    /// Removes the file at `path`, durably. A missing file is fine.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system reports an error.
    pub fn remove(path: &Path) -> Result<()> {
        system::remove(path).map_err(|source| failed(path, source))?;
        system::sync_folder(parent_of(path)).map_err(|source| failed(path, source))
    }

    fn failed(&self, source: std::io::Error) -> Error {
        failed(&self.shown, source)
    }
}
