//! Files written by position. In tests, the process can "die" at any byte.

use std::path::Path;
#[cfg(test)]
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(test)]
use hyperslab_core::Error;
use hyperslab_core::Result;
use hyperslab_core::storage::{LocalFile, StagedFile};

/// An open file, written by position from any thread.
#[derive(Debug)]
pub(crate) struct Disk {
    file: LocalFile,
    /// For tests: the process "dies" when this many bytes and steps are used up.
    #[cfg(test)]
    pub(crate) life: Option<std::sync::Arc<AtomicU64>>,
}

impl Disk {
    /// A staged file. It can still be read and written after it is published.
    pub(crate) fn of(staged: &StagedFile) -> Result<Self> {
        Ok(Self::new(LocalFile::of(staged)?))
    }

    /// Opens an existing file for changes.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self::new(LocalFile::open(path)?))
    }

    /// Opens and locks an existing file for changes.
    pub(crate) fn open_locked(path: &Path) -> Result<Self> {
        Ok(Self::new(LocalFile::open_locked(path)?))
    }

    const fn new(file: LocalFile) -> Self {
        Self {
            file,
            #[cfg(test)]
            life: None,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn length(&self) -> Result<u64> {
        self.file.length()
    }

    /// Writes all bytes at `offset`.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        #[cfg(test)]
        let bytes = &bytes[..self.live(bytes.len() as u64) as usize];
        self.file.write_at(bytes, offset)?;
        self.still_alive()
    }

    /// Fills `bytes` from `offset`.
    pub(crate) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_at(bytes, offset)
    }

    /// Copies a range to another position or file. The ranges must not overlap.
    pub(crate) fn copy_from(&self, source: &Self, from: u64, to: u64, length: u64) -> Result<()> {
        source.file.copy_to(from, length, |piece, done| self.write_at(piece, to + done))
    }

    /// Locks the file until this is dropped; `false` if another writer holds the lock.
    pub(crate) fn try_lock(&self) -> Result<bool> {
        self.file.try_lock()
    }

    /// Waits until everything is on disk.
    pub(crate) fn sync(&self) -> Result<()> {
        self.step()?;
        // Tests die thousands of times and need not wait for the disk.
        if cfg!(test) { Ok(()) } else { self.file.sync() }
    }

    /// Removes the file at `path`, durably.
    pub(crate) fn remove(&self, path: &Path) -> Result<()> {
        self.step()?;
        LocalFile::remove(path)
    }

    /// A step that does not write bytes.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "tests die here")]
    pub(crate) const fn step(&self) -> Result<()> {
        Ok(())
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "tests die here")]
    const fn still_alive(&self) -> Result<()> {
        Ok(())
    }

    /// The number of these bytes that are written before the process dies.
    #[cfg(test)]
    fn live(&self, cost: u64) -> u64 {
        let Some(life) = &self.life else { return cost };
        let left = life.load(Ordering::Relaxed);
        let now = cost.min(left);
        // Dead: nothing more can be written.
        life.store(if cost > left { u64::MAX / 2 } else { left - now }, Ordering::Relaxed);
        if left >= u64::MAX / 2 { 0 } else { now }
    }

    #[cfg(test)]
    pub(crate) fn step(&self) -> Result<()> {
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
