//! Temporary names, the locks on them, and what killed writers left under them.

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::trace::{Step, record};
use super::{failed, parent_of, system};
use crate::{Error, Result};

const SUFFIX: &str = ".part";

/// Digits between name and suffix.
const DIGITS: usize = 16;

/// Longer names are cut here, so that the temporary name is one that file systems take.
const LONGEST: usize = 200;

/// How often a name is tried. Collisions of 64 bits do not happen; cleaners that win a race against us may.
const ATTEMPTS: usize = 64;

/// A new file beside `target`, locked.
pub(super) fn create_file(target: &Path) -> Result<(File, PathBuf)> {
    sweep(target);
    create(target, |path| {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        record(|| Step::Create(path.to_owned()));
        Ok(file)
    })
}

/// A folder beside `target`, locked, in which a stage lives. Dropped, it is removed with everything in it.
#[derive(Debug)]
pub(super) struct Holder {
    path: PathBuf,
    /// Until it is dropped.
    lock: Option<File>,
}

impl Holder {
    pub(super) fn create(target: &Path) -> Result<Self> {
        sweep(target);
        let (lock, path) = create(target, |path| {
            private_folder(path)?;
            open_folder(path)
        })?;
        let holder = Self { path, lock: Some(lock) };
        for folder in [holder.content(), holder.scratch()] {
            std::fs::create_dir(&folder).map_err(|source| failed(&folder, source))?;
        }
        record(|| Step::Create(holder.content()));
        Ok(holder)
    }

    /// What is published.
    pub(super) fn content(&self) -> PathBuf {
        self.path.join("content")
    }

    /// What is not.
    pub(super) fn scratch(&self) -> PathBuf {
        self.path.join("scratch")
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        if std::fs::remove_dir_all(&self.path).is_err() {
            // A process that has no handle left: one is enough, and the lock has one. A cleaner that comes now helps.
            self.lock = None;
            let _ = remove_level_by_level(&self.path);
        }
    }
}

/// Removes a folder and what is in it with one handle at a time; the library's own way takes one for each level.
fn remove_level_by_level(folder: &Path) -> io::Result<()> {
    // Paths, not entries: an entry keeps the handle of its folder.
    let paths: Vec<_> = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    for path in paths {
        if path.symlink_metadata()?.is_dir() {
            remove_level_by_level(&path)?;
        } else {
            std::fs::remove_file(&path)?;
        }
    }
    std::fs::remove_dir(folder)
}

/// Makes something under a new temporary name and locks it.
fn create(target: &Path, make: impl Fn(&Path) -> io::Result<File>) -> Result<(File, PathBuf)> {
    let name = target.file_name().ok_or_else(|| {
        Error::invalid(format!("{}: the last part of the path is not a name", target.display()))
    })?;
    let folder = parent_of(target);
    for _ in 0..ATTEMPTS {
        let mut own = prefix(name);
        own.push(format!("{:0DIGITS$x}{SUFFIX}", random()));
        let path = folder.join(own);
        let file = match make(&path) {
            Err(source) if source.kind() == ErrorKind::AlreadyExists => continue,
            // A cleaner took the new folder for a leftover before it was opened.
            Err(source) if source.kind() == ErrorKind::NotFound && folder.is_dir() => continue,
            made => made.map_err(|source| failed(folder, source))?,
        };
        // A cleaner may take it for a leftover before it is locked.
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => continue,
            // A file system without locks.
            Err(TryLockError::Error(_)) => return Ok((file, path)),
            Ok(()) if is_same(&file, &path) => return Ok((file, path)),
            Ok(()) => {}
        }
    }
    Err(Error::io(folder.display().to_string(), ErrorKind::AlreadyExists.into()))
}

/// Removes what killed writers to this target left behind. Failing to do so harms no one.
#[cfg(unix)]
fn sweep(target: &Path) {
    let Some(name) = target.file_name() else { return };
    let prefix = prefix(name);
    let Ok(entries) = std::fs::read_dir(parent_of(target)) else { return };
    for entry in entries.flatten() {
        if !is_leftover(&entry.file_name(), &prefix) {
            continue;
        }
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        // Links, pipes and devices are none of ours.
        if kind.is_file() || kind.is_dir() {
            // The lock is held while it is removed: two cleaners do not meet.
            let Ok(file) = File::open(&path) else { continue };
            if file.try_lock().is_ok() && is_same(&file, &path) {
                let _ = system::remove(&path);
            }
        }
    }
}

/// A lock keeps others from writing here, and files that are open cannot be removed.
#[cfg(not(unix))]
fn sweep(_: &Path) {}

fn is_leftover(name: &OsStr, prefix: &OsStr) -> bool {
    let rest = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
    let digits = rest.and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    digits.is_some_and(|digits| {
        digits.len() == DIGITS && digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// `.NAME.`, where a long name is cut.
fn prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    if name.len() <= LONGEST {
        prefix.push(name);
    } else {
        let text = name.to_string_lossy();
        prefix.push(&text[..text.floor_char_boundary(LONGEST)]);
    }
    prefix.push(".");
    prefix
}

/// A number that no other writer has, on this machine or another.
fn random() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(COUNT.fetch_add(1, Ordering::Relaxed));
    hasher.write_u32(std::process::id());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    hasher.write_u128(now.map_or(0, |since| since.as_nanos()));
    hasher.finish()
}

/// Does the path still lead to this file?
#[cfg(unix)]
pub(super) fn is_same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(own), Ok(there)) => (own.dev(), own.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
pub(super) fn is_same(_: &File, _: &Path) -> bool {
    true
}

/// A folder that others cannot enter: what is in it is not ready.
#[cfg(unix)]
fn private_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn private_folder(path: &Path) -> io::Result<()> {
    std::fs::create_dir(path)
}

#[cfg(unix)]
fn open_folder(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Folders cannot be opened as files here: a file inside stands for it.
#[cfg(not(unix))]
fn open_folder(path: &Path) -> io::Result<File> {
    File::create(path.join("lock"))
}
