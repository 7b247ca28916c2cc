//! System calls, each recorded in the trace.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::trace::{Step, record};

/// With this many files or more, a tree is synced by one file-system request instead of one per file.
#[cfg(any(target_os = "linux", target_os = "android"))]
const SYNCED_ONE_BY_ONE: usize = 64;

pub(super) fn sync_file(file: &File, path: &Path) -> io::Result<()> {
    file.sync_all()?;
    record(|| Step::Sync(path.to_owned()));
    Ok(())
}

pub(super) fn sync_data(file: &File, path: &Path) -> io::Result<()> {
    file.sync_data()?;
    record(|| Step::Sync(path.to_owned()));
    Ok(())
}

/// A folder whose entries are to be made durable. It is opened before they change, so that a process without free handles fails
/// before the change is visible.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// `None` where folders cannot be opened.
    handle: Option<File>,
}

impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let handle = if cfg!(unix) { Some(File::open(path)?) } else { None };
        Ok(Self { path: path.to_owned(), handle })
    }

    /// Makes the entries durable. A file system without such a request does so in its own way.
    pub(super) fn sync(&self) -> io::Result<()> {
        match self.handle.as_ref().map_or(Ok(()), File::sync_all) {
            Err(source) if matches!(source.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {}
            done => done?,
        }
        record(|| Step::SyncFolder(self.path.clone()));
        Ok(())
    }
}

/// Makes the entries of a folder durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    Folder::open(folder)?.sync()
}

/// Makes a folder and all its contents durable.
pub(super) fn sync_tree(folder: &Path) -> io::Result<()> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    let mut next = 0;
    while next < folders.len() {
        for entry in std::fs::read_dir(&folders[next])? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
        next += 1;
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if files.len() > SYNCED_ONE_BY_ONE {
            rustix::fs::syncfs(File::open(folder)?)?;
            record(|| Step::SyncTree(folder.to_owned()));
            return Ok(());
        }
    }
    for path in files {
        File::open(path)?.sync_all()?;
    }
    // Folder entries last, from the inside out.
    for path in folders.iter().rev() {
        sync_folder(path)?;
    }
    record(|| Step::SyncTree(folder.to_owned()));
    Ok(())
}

/// Renames a file or folder, replacing an existing file.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let replaced = to.symlink_metadata().is_ok();
    std::fs::rename(from, to)?;
    record(|| Step::Rename { from: from.to_owned(), to: to.to_owned(), replaced });
    Ok(())
}

/// Renames a file or folder to a new name; [`ErrorKind::AlreadyExists`] if the name exists.
pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    rename_exclusive(from, to)?;
    record(|| Step::Rename { from: from.to_owned(), to: to.to_owned(), replaced: false });
    Ok(())
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_exclusive(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(problem) if is_missing(problem) => link_and_remove(from, to),
        done => Ok(done?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_exclusive(from: &Path, to: &Path) -> io::Result<()> {
    link_and_remove(from, to)
}

/// Fallback for file systems without such a request. A file is hard-linked, which fails if the name exists. Folders, and files
/// where links are not available, are renamed if the name is free; another writer may win the race in between.
fn link_and_remove(from: &Path, to: &Path) -> io::Result<()> {
    if to.symlink_metadata().is_ok() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    if !from.is_dir() {
        match std::fs::hard_link(from, to) {
            Ok(()) => return std::fs::remove_file(from),
            Err(source) if source.kind() == ErrorKind::AlreadyExists => return Err(source),
            Err(_) => {}
        }
    }
    std::fs::rename(from, to)
}

/// Exchanges two files or folders; [`ErrorKind::Unsupported`] if the file system cannot.
pub(super) fn exchange(from: &Path, to: &Path) -> io::Result<()> {
    exchange_names(from, to)?;
    record(|| Step::Exchange { from: from.to_owned(), to: to.to_owned() });
    Ok(())
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(super) fn exchange_names(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE) {
        Err(problem) if is_missing(problem) => Err(ErrorKind::Unsupported.into()),
        done => Ok(done?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(super) fn exchange_names(_: &Path, _: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Returns true if the file system lacks the request.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn is_missing(problem: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    matches!(problem, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

/// Removes a file, a link, or a folder with its contents. A missing path is fine.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(source) => Err(source),
    };
    match removed {
        Err(source) if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
        done => {
            done?;
            record(|| Step::Remove(path.to_owned()));
            Ok(())
        }
    }
}

#[cfg(unix)]
pub(super) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
pub(super) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}
