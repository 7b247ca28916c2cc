//! One writer at a time: advisory locks on stores that are changed in place.
//!
//! A lock is the system's lock (`flock`) on the store itself, so nothing is left behind and a killed process holds none. A
//! single-file store is locked at its file, which libhdf5 does too; a directory store at its folder. A writer of one node
//! also locks the stores around it, shared with writers of other nodes: who changes the whole store waits for nobody and
//! meets an error, as does who comes second.
//!
//! Readers take no lock: writers publish in an order in which readers find the old content or the new.
//!
//! A file system without locks keeps nobody away. Writers that can compare what they are about to replace with what they
//! read do so there.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::leftovers::is_same;
use super::{failed, parent_of};
use crate::{Error, Result};

/// How often a lock is tried on something that is replaced meanwhile.
const ATTEMPTS: usize = 16;

/// Keeps other writers away from a directory store, until it is dropped.
///
/// ```
/// use hyperslab_core::storage::StoreLock;
/// # let folder = tempfile::tempdir().unwrap();
/// let store = folder.path();
/// let lock = StoreLock::exclusive(store, |_| false)?;
/// assert!(StoreLock::exclusive(store, |_| false).unwrap_err().to_string().contains("another writer"));
/// drop(lock);
/// StoreLock::exclusive(store, |_| false)?;
/// # Ok::<(), hyperslab_core::Error>(())
/// ```
#[derive(Debug)]
pub struct StoreLock {
    held: Vec<File>,
}

/// Who else may hold a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Shared,
    Exclusive,
}

impl StoreLock {
    /// For a writer that replaces something: no other writer works in the folder. `encloses` tells whether a folder above is
    /// part of the same store; writers there are kept away as well.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) when another writer is at work, [`Io`](Error::Io) when the folder cannot be opened.
    pub fn exclusive(store: &Path, encloses: impl Fn(&Path) -> bool) -> Result<Self> {
        Self::take(store, Mode::Exclusive, encloses)
    }

    /// For a writer that only adds what has a name of its own: others that do the same may work in the folder.
    ///
    /// # Errors
    ///
    /// As [`exclusive`](Self::exclusive).
    pub fn shared(store: &Path, encloses: impl Fn(&Path) -> bool) -> Result<Self> {
        Self::take(store, Mode::Shared, encloses)
    }

    fn take(store: &Path, mode: Mode, encloses: impl Fn(&Path) -> bool) -> Result<Self> {
        let store = store.canonicalize().map_err(|source| failed(store, source))?;
        let mut held = Vec::new();
        for above in store.ancestors().skip(1).take_while(|above| encloses(above)) {
            held.extend(lock_folder(above, Mode::Shared)?);
        }
        held.extend(lock_folder(&store, mode)?);
        Ok(Self { held })
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        // By name: a process that is being started may hold the handle for a moment yet.
        for file in &self.held {
            let _ = file.unlock();
        }
    }
}

/// The error of a writer that comes second.
pub(super) fn busy(path: &Path) -> Error {
    Error::invalid(format!(
        "{}: another writer is at work on it, or a program keeps it open; nothing was changed, try again when it is done",
        path.display()
    ))
}

/// Locks a folder that stays the one at its path; `None` on a file system without locks.
fn lock_folder(folder: &Path, mode: Mode) -> Result<Option<File>> {
    for _ in 0..ATTEMPTS {
        let file = open_lock(folder).map_err(|source| failed(folder, source))?;
        let locked = match mode {
            Mode::Shared => file.try_lock_shared(),
            Mode::Exclusive => file.try_lock(),
        };
        match locked {
            Ok(()) if still_there(&file, folder) => return Ok(Some(file)),
            // Replaced between opening and locking.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(busy(folder)),
            Err(TryLockError::Error(_)) => return Ok(None),
        }
    }
    Err(busy(folder))
}

#[cfg(unix)]
fn open_lock(folder: &Path) -> std::io::Result<File> {
    File::open(folder)
}

/// Folders cannot be opened as files here: a file beside it stands for it.
#[cfg(not(unix))]
fn open_lock(folder: &Path) -> std::io::Result<File> {
    if folder.is_file() {
        return File::open(folder);
    }
    let mut name = std::ffi::OsString::from(".");
    name.push(folder.file_name().unwrap_or_default());
    name.push(".lock");
    File::options().read(true).write(true).create(true).truncate(false).open(parent_of(folder).join(name))
}

#[cfg(unix)]
fn still_there(file: &File, folder: &Path) -> bool {
    debug_assert!(parent_of(folder) != Path::new(""), "folders are absolute here");
    is_same(file, folder)
}

#[cfg(not(unix))]
fn still_there(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_writer_of_a_folder_and_of_what_is_around_it() -> Result<()> {
        let folder = tempfile::tempdir().map_err(|source| failed(Path::new("."), source))?;
        let (root, node, other) =
            (folder.path().join("s"), folder.path().join("s/a"), folder.path().join("s/b"));
        for path in [&root, &node, &other] {
            std::fs::create_dir(path).map_err(|source| failed(path, source))?;
        }
        let top = root.canonicalize().map_err(|source| failed(&root, source))?;
        let in_store = |path: &Path| path.starts_with(&top);
        let first = StoreLock::exclusive(&node, in_store)?;
        // Another node of the same store is free; this one and the whole are not.
        let second = StoreLock::exclusive(&other, in_store)?;
        for path in [&root, &node, &other] {
            assert!(StoreLock::exclusive(path, in_store).is_err(), "{}", path.display());
        }
        drop((first, second));
        let adds = (StoreLock::shared(&root, in_store)?, StoreLock::shared(&root, in_store)?);
        assert!(StoreLock::exclusive(&root, in_store).is_err());
        drop(adds);
        StoreLock::exclusive(&root, in_store)?;
        Ok(())
    }
}
