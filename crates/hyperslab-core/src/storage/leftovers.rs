//! Temporary names, the locks on them, and leftovers of killed writers.

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

/// Random digits between the name and the suffix.
const DIGITS: usize = 16;

/// Longer names are truncated, so that file systems accept the temporary name.
const LONGEST: usize = 200;

/// The number of attempts to create a name. 64-bit collisions do not happen, but cleaners may win a race against us.
const ATTEMPTS: usize = 64;

/// Creates and locks a new file beside `target`.
pub(super) fn create_file(target: &Path) -> Result<(File, PathBuf)> {
    sweep(target);
    create(target, |path| {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        record(|| Step::Create(path.to_owned()));
        Ok(file)
    })
}

/// A locked folder beside `target` that holds a stage. Dropping it removes it with its contents.
#[derive(Debug)]
pub(super) struct Holder {
    path: PathBuf,
    /// `None` once it is dropped.
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

    /// The part that is published.
    pub(super) fn content(&self) -> PathBuf {
        self.path.join("content")
    }

    /// The part that is not published.
    pub(super) fn scratch(&self) -> PathBuf {
        self.path.join("scratch")
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        if std::fs::remove_dir_all(&self.path).is_err() {
            // The process may have no file handle left. One is enough, so release the lock's. A cleaner that comes now only
            // helps.
            self.lock = None;
            let _ = remove_level_by_level(&self.path);
        }
    }
}

/// Removes a folder and its contents with one handle at a time. The standard library's version needs one per level.
fn remove_level_by_level(folder: &Path) -> io::Result<()> {
    // Collect paths, because an entry keeps the handle of its folder.
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

/// Creates something under a new temporary name and locks it.
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
            // The file system has no locks.
            Err(TryLockError::Error(_)) => return Ok((file, path)),
            Ok(()) if is_same(&file, &path) => return Ok((file, path)),
            Ok(()) => {}
        }
    }
    Err(Error::io(folder.display().to_string(), ErrorKind::AlreadyExists.into()))
}

/// Removes the leftovers of killed writers to this target. Failure is harmless.
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
        // We never create links, pipes or devices.
        if kind.is_file() || kind.is_dir() {
            // Hold the lock during removal, so that two cleaners do not interfere.
            let Ok(file) = File::open(&path) else { continue };
            if file.try_lock().is_ok() && is_same(&file, &path) {
                let _ = system::remove(&path);
            }
        }
    }
}

/// A temporary file or folder beside a target, abandoned by its writer or still in use.
#[derive(Debug)]
pub struct Leftover {
    /// Its path.
    pub path: PathBuf,
    /// The total size of its files.
    pub bytes: u64,
    /// Its state.
    pub state: LeftoverState,
}

/// The state of a leftover.
#[derive(Debug)]
#[non_exhaustive]
pub enum LeftoverState {
    /// No process uses it, but it has not been removed.
    Abandoned,
    /// It was removed.
    Removed,
    /// A running writer uses it, or the file system cannot tell.
    InUse,
    /// Removal failed, with the reason.
    Failed(String),
}

impl LeftoverState {
    /// Its name in reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Abandoned => "abandoned",
            Self::Removed => "removed",
            Self::InUse => "in use",
            Self::Failed(_) => "failed",
        }
    }
}

/// Finds the leftovers of killed writers in a folder, whatever their targets, and removes them unless `dry_run`. Those in use by
/// a running process stay, and so does everything under other names, including links.
///
/// # Errors
///
/// [`Io`](Error::Io) if the folder cannot be read.
pub fn clean_leftovers(folder: &Path, dry_run: bool) -> Result<Vec<Leftover>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|source| failed(folder, source))? {
        let entry = entry.map_err(|source| failed(folder, source))?;
        let kind = entry.file_type().map_err(|source| failed(folder, source))?;
        if is_any_leftover(&entry.file_name()) && (kind.is_file() || kind.is_dir()) {
            let path = entry.path();
            let bytes = size_of_tree(&path);
            found.push(Leftover { state: clean_one(&path, dry_run), path, bytes });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

#[cfg(unix)]
fn clean_one(path: &Path, dry_run: bool) -> LeftoverState {
    // Hold the lock during removal, so that two cleaners do not interfere and no writer takes it.
    match File::open(path) {
        Err(why) => LeftoverState::Failed(why.to_string()),
        Ok(file) if file.try_lock().is_err() || !is_same(&file, path) => LeftoverState::InUse,
        Ok(_) if dry_run => LeftoverState::Abandoned,
        Ok(file) => {
            let removed = system::remove(path);
            drop(file);
            removed.map_or_else(|why| LeftoverState::Failed(why.to_string()), |()| LeftoverState::Removed)
        }
    }
}

/// On this system open files cannot be removed, so trying does no harm.
#[cfg(not(unix))]
fn clean_one(path: &Path, dry_run: bool) -> LeftoverState {
    if dry_run {
        return LeftoverState::Abandoned;
    }
    system::remove(path)
        .map_or_else(|why| LeftoverState::Failed(why.to_string()), |()| LeftoverState::Removed)
}

/// `.NAME.<16 digits>.part`, whatever the name is.
fn is_any_leftover(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    let Some(rest) = bytes.strip_suffix(SUFFIX.as_bytes()) else { return false };
    let Some(at) = rest.len().checked_sub(DIGITS + 1) else { return false };
    let (prefix, digits) = rest.split_at(at);
    prefix.len() > 1
        && prefix[0] == b'.'
        && digits[0] == b'.'
        && digits[1..].iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// The size of a file, or of all files in a folder. Unreadable entries count as zero.
fn size_of_tree(path: &Path) -> u64 {
    let Ok(metadata) = path.symlink_metadata() else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.iter().map(|path| size_of_tree(path)).fold(0, u64::saturating_add)
}

/// On this system a lock keeps others from writing, and open files cannot be removed.
#[cfg(not(unix))]
fn sweep(_: &Path) {}

fn is_leftover(name: &OsStr, prefix: &OsStr) -> bool {
    let rest = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
    let digits = rest.and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    digits.is_some_and(|digits| {
        digits.len() == DIGITS && digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// `.NAME.`, with a long name truncated.
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

/// A random number that no other writer uses, on this machine or another.
fn random() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(COUNT.fetch_add(1, Ordering::Relaxed));
    hasher.write_u32(std::process::id());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    hasher.write_u128(now.map_or(0, |since| since.as_nanos()));
    hasher.finish()
}

/// Returns true if the path still leads to this file.
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

/// Creates a folder that other users cannot enter, because its contents are incomplete.
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

/// On this system folders cannot be opened as files, so a file inside the folder is used instead.
#[cfg(not(unix))]
fn open_folder(path: &Path) -> io::Result<File> {
    File::create(path.join("lock"))
}
