//! Files being written: positional writes, temporary names, moving into place.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_core::{Error, Result};

/// Bytes moved at once when payloads change their place.
const PIECE: usize = 1 << 20;

/// An open file that is written by position, from any thread.
#[derive(Debug)]
pub(crate) struct Disk {
    file: File,
    path: PathBuf,
    /// For tests: the process "dies" when this many bytes and steps are used up.
    #[cfg(test)]
    pub(crate) life: Option<std::sync::Arc<AtomicU64>>,
}

impl Disk {
    /// A new file next to `target`, with a name that nobody has. Removed by whoever does not want it.
    pub(crate) fn beside(target: &Path) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = target.with_file_name(format!(".{name}.{}-{number}.tmp", std::process::id()));
            match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Self::new(file, path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
    }

    /// An existing file, to be changed.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).open(path).map_err(|error| failed(path, error))?;
        Ok(Self::new(file, path.to_owned()))
    }

    fn new(file: File, path: PathBuf) -> Self {
        Self {
            file,
            path,
            #[cfg(test)]
            life: None,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn length(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|error| failed(&self.path, error))?.len())
    }

    /// Writes all bytes at `offset`.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        #[cfg(test)]
        let bytes = &bytes[..self.live(bytes.len() as u64) as usize];
        write_all_at(&self.file, bytes, offset).map_err(|error| failed(&self.path, error))?;
        self.still_alive()
    }

    /// Fills `bytes` from `offset`.
    pub(crate) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        read_exact_at(&self.file, bytes, offset).map_err(|error| failed(&self.path, error))
    }

    /// Copies bytes from one place of a file to another place or file; the places do not overlap.
    pub(crate) fn copy_from(&self, source: &Self, from: u64, to: u64, length: u64) -> Result<()> {
        let mut piece = vec![0; PIECE.min(usize::try_from(length).unwrap_or(PIECE))];
        let mut done = 0;
        while done < length {
            let now = (length - done).min(PIECE as u64);
            let piece = &mut piece[..now as usize];
            source.read_at(piece, from + done)?;
            self.write_at(piece, to + done)?;
            done += now;
        }
        Ok(())
    }

    /// Keeps others who lock the file away until this is dropped; `false` when one is at it.
    pub(crate) fn try_lock(&self) -> Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(std::fs::TryLockError::WouldBlock) => Ok(false),
            Err(std::fs::TryLockError::Error(error)) => match error.kind() {
                // A file system without locks: nobody can be kept away.
                io::ErrorKind::Unsupported => Ok(true),
                _ => Err(failed(&self.path, error)),
            },
        }
    }

    /// Waits until everything is on the disk.
    pub(crate) fn sync(&self) -> Result<()> {
        self.step()?;
        // Tests die by the thousand and need not wait for the disk.
        if cfg!(test) {
            return Ok(());
        }
        self.file.sync_all().map_err(|error| failed(&self.path, error))
    }

    /// Moves the file to `target`, atomically; whatever stands there is replaced.
    pub(crate) fn rename(&self, target: &Path) -> Result<()> {
        self.step()?;
        std::fs::rename(&self.path, target).map_err(|error| failed(target, error))?;
        sync_folder(target)
    }

    /// Moves the file to `target` if nothing stands there, atomically.
    pub(crate) fn rename_new(&self, target: &Path) -> Result<()> {
        match std::fs::hard_link(&self.path, target) {
            Ok(()) => {
                let _ = std::fs::remove_file(&self.path);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(failed(target, error)),
            // A file system without links.
            Err(_) if !target.exists() => self.rename(target),
            Err(_) => Err(failed(target, io::ErrorKind::AlreadyExists.into())),
        }
    }

    /// Removes the file at `path`.
    pub(crate) fn remove(&self, path: &Path) -> Result<()> {
        self.step()?;
        std::fs::remove_file(path).map_err(|error| failed(path, error))?;
        sync_folder(path)
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "tests die here")]
    const fn step(&self) -> Result<()> {
        Ok(())
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "tests die here")]
    const fn still_alive(&self) -> Result<()> {
        Ok(())
    }

    /// How many of these bytes are written before the process dies.
    #[cfg(test)]
    fn live(&self, cost: u64) -> u64 {
        let Some(life) = &self.life else { return cost };
        let left = life.load(Ordering::Relaxed);
        let now = cost.min(left);
        // Dead: one less than nothing is left.
        life.store(if cost > left { u64::MAX / 2 } else { left - now }, Ordering::Relaxed);
        if left >= u64::MAX / 2 { 0 } else { now }
    }

    #[cfg(test)]
    fn step(&self) -> Result<()> {
        self.live(1);
        self.still_alive()
    }

    #[cfg(test)]
    fn still_alive(&self) -> Result<()> {
        match &self.life {
            Some(life) if life.load(Ordering::Relaxed) >= u64::MAX / 2 => {
                life.store(u64::MAX / 2, Ordering::Relaxed);
                Err(Error::invalid("killed"))
            }
            _ => Ok(()),
        }
    }
}

/// Makes a new name in a folder last. Not every system can; then the name lasts when the system says so.
fn sync_folder(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if cfg!(unix)
        && !cfg!(test)
        && let Ok(folder) = File::open(folder)
    {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// An error of the system about a path.
pub(crate) fn failed(path: &Path, error: io::Error) -> Error {
    Error::io(path.display().to_string(), error)
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                bytes = &mut bytes[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}
