//! One writer at a time: advisory locks on stores that are changed in place.
//!
//! A lock is the system's lock (`flock`) on the store itself, so it leaves nothing behind and ends with the process. A
//! single-file store is locked at its file, as libhdf5 does; a directory store at its folder. A writer of one node also takes a
//! shared lock on the enclosing stores, so writers of different nodes can work at the same time. Locks never wait: a second
//! writer, or one that changes the whole store meanwhile, fails at once.
//!
//! Readers take no lock: writers publish in an order in which readers see either the old or the new content.
//!
//! A file system without locks cannot keep other writers out. There, writers compare what they are about to replace with what they read, where
//! they can.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::leftovers::is_same;
use super::{failed, parent_of};
use crate::{Error, Result};

/// The number of attempts to lock something that is being replaced.
const ATTEMPTS: usize = 16;

/// Locks a directory store against other writers until it is dropped.
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

/// Which other locks are compatible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Shared,
    Exclusive,
}

impl StoreLock {
    /// A lock for a writer that replaces something: no other writer works in the folder. `encloses` tells whether a parent folder
    /// belongs to the same store; writers there are excluded as well.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if another writer is active, [`Io`](Error::Io) if the folder cannot be opened.
    pub fn exclusive(store: &Path, encloses: impl Fn(&Path) -> bool) -> Result<Self> {
        Self::take(store, Mode::Exclusive, encloses)
    }

    /// A lock for a writer that only adds objects with unique names. Other such writers may work in the folder.
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
        // Unlock explicitly: a process that is being started may still hold the handle for a moment.
        for file in &self.held {
            let _ = file.unlock();
        }
    }
}

/// The error for a second writer.
pub(super) fn busy(path: &Path) -> Error {
    Error::invalid(format!(
        "{}: another writer is active, or another program has it open; nothing was changed, try again later",
        path.display()
    ))
}

/// Locks a folder and checks that it is still the one at its path; `None` on a file system without locks.
fn lock_folder(folder: &Path, mode: Mode) -> Result<Option<File>> {
    for _ in 0..ATTEMPTS {
        let file = open_lock(folder).map_err(|source| failed(folder, source))?;
        let locked = match mode {
            Mode::Shared => file.try_lock_shared(),
            Mode::Exclusive => file.try_lock(),
        };
        match locked {
            Ok(()) if still_there(&file, folder) => return Ok(Some(file)),
            // It was replaced between opening and locking.
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

/// On this system folders cannot be opened as files, so a file beside the folder is locked instead.
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
    fn a_folder_and_its_parents_have_one_writer() -> Result<()> {
        let folder = tempfile::tempdir().map_err(|source| failed(Path::new("."), source))?;
        let (root, node, other) =
            (folder.path().join("s"), folder.path().join("s/a"), folder.path().join("s/b"));
        for path in [&root, &node, &other] {
            std::fs::create_dir(path).map_err(|source| failed(path, source))?;
        }
        let top = root.canonicalize().map_err(|source| failed(&root, source))?;
        let in_store = |path: &Path| path.starts_with(&top);
        let first = StoreLock::exclusive(&node, in_store)?;
        // Another node of the same store is free; this node and the whole store are not.
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
