//! Files that are changed in place.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::leftovers::is_same;
use super::lock::busy;
use super::trace::{Step, record};
use super::{StagedFile, failed, parent_of, system};
use crate::{Error, Result};

/// Bytes that are copied at once.
const PIECE: usize = 1 << 20;

/// How often a lock is tried on a file that is replaced meanwhile.
const LOCK_ATTEMPTS: usize = 16;

/// A file that is read and written by position, from any thread: one that is changed in place, or one that is staged.
#[derive(Debug)]
pub struct LocalFile {
    file: File,
    path: PathBuf,
    /// What errors call it: of a staged file its target.
    shown: PathBuf,
}

impl LocalFile {
    /// An existing file, to be changed.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when it cannot be opened for writing.
    pub fn open(path: &Path) -> Result<Self> {
        let file =
            File::options().read(true).write(true).open(path).map_err(|source| failed(path, source))?;
        Ok(Self { file, path: path.to_owned(), shown: path.to_owned() })
    }

    /// An existing file, to be changed by this writer alone: others who lock it are kept away until this is dropped.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) when another writer has it; otherwise as [`open`](Self::open).
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

    /// Another handle on a staged file. It stays valid when the file is published.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the system has no more handles.
    pub fn of(staged: &StagedFile) -> Result<Self> {
        let file = staged.file().try_clone().map_err(|source| staged.failed(source))?;
        Ok(Self { file, path: staged.path().to_owned(), shown: staged.target().to_owned() })
    }

    /// A nameless file in a folder, for what does not fit in memory. It disappears with the handle.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the folder cannot be written.
    pub fn scratch(folder: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(folder).map_err(|source| failed(folder, source))?;
        Ok(Self { file, path: folder.to_owned(), shown: folder.to_owned() })
    }

    /// The path that it was opened by; of a nameless file that of its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length in bytes.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the system cannot tell.
    pub fn length(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|source| self.failed(source))?.len())
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

    /// Fills `bytes` from `offset`.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the system refuses, or the file ends before.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        crate::blob::read_exact_at(&self.file, bytes, offset).map_err(|source| self.failed(source))
    }

    /// Copies bytes from a place of a file to a place of this one, piece by piece through `write`. The places do not overlap.
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

    /// Keeps others who lock the file away until this is dropped; `false` when another has locked it. On a file system
    /// without locks no one can be kept away.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the system refuses.
    pub fn try_lock(&self) -> Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(source)) if source.kind() == ErrorKind::Unsupported => Ok(true),
            Err(TryLockError::Error(source)) => Err(self.failed(source)),
        }
    }

    /// Lets others lock the file.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the system refuses.
    pub fn unlock(&self) -> Result<()> {
        self.file.unlock().map_err(|source| self.failed(source))
    }

    /// Makes the file this long: what is new reads as zeros.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the system refuses.
    pub fn set_length(&self, length: u64) -> Result<()> {
        self.file.set_len(length).map_err(|source| self.failed(source))?;
        record(|| Step::Write(self.path.clone()));
        Ok(())
    }

    /// Waits until the content is on the disk; times and permissions may come later.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the system refuses.
    pub fn sync_data(&self) -> Result<()> {
        system::sync_data(&self.file, &self.path).map_err(|source| self.failed(source))
    }

    /// Waits until everything is on the disk.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the system refuses.
    pub fn sync(&self) -> Result<()> {
        system::sync_file(&self.file, &self.path).map_err(|source| self.failed(source))
    }

    /// Removes the file at `path`, durably. A missing one is fine.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) when the system refuses.
    pub fn remove(path: &Path) -> Result<()> {
        system::remove(path).map_err(|source| failed(path, source))?;
        system::sync_folder(parent_of(path)).map_err(|source| failed(path, source))
    }

    fn failed(&self, source: std::io::Error) -> Error {
        failed(&self.shown, source)
    }
}
