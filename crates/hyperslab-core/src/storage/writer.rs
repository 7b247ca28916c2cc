//! Writes the objects of a stage, by key.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::trace::{Step, record};
use super::{failed, system};
use crate::{Error, Result, join_inside};

/// Writes objects below a folder of a stage, by `/`-separated keys that cannot lead out of it. Cheap to clone and usable from any
/// thread. Once the stage is published or dropped, every write fails.
#[derive(Debug, Clone)]
pub struct StageWriter {
    /// The top of the stage. Folders below it are created on demand; the top itself is not.
    root: Arc<Path>,
    folder: PathBuf,
}

impl StageWriter {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { folder: root.clone(), root: root.into() }
    }

    /// A writer whose keys start at `key` of this one.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) for a key that leads out of the folder.
    pub fn below(&self, key: &str) -> Result<Self> {
        Ok(Self { root: Arc::clone(&self.root), folder: join_inside(&self.folder, key)? })
    }

    /// The folder that keys start at. Objects can be read there before they are published.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes an object, replacing one with the same key.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if the system reports an error, [`Invalid`](Error::Invalid) for a key that leads out of the folder.
    pub fn put(&self, key: &str, bytes: &[u8]) -> Result<()> {
        let path = join_inside(&self.folder, key)?;
        self.open(&path, || File::create(&path))
            .and_then(|mut file| file.write_all(bytes))
            .map_err(|source| failed(&path, source))?;
        record(|| Step::Write(path));
        Ok(())
    }

    /// Writes a new object from its parts.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put); [`Invalid`](Error::Invalid) if the key exists.
    pub fn put_new(&self, key: &str, parts: &[&[u8]]) -> Result<()> {
        let path = join_inside(&self.folder, key)?;
        let mut file =
            self.open(&path, || File::create_new(&path)).map_err(|source| match source.kind() {
                ErrorKind::AlreadyExists => Error::invalid(format!("{} was already written", path.display())),
                _ => failed(&path, source),
            })?;
        parts.iter().try_for_each(|part| file.write_all(part)).map_err(|source| failed(&path, source))?;
        record(|| Step::Write(path));
        Ok(())
    }

    /// Writes parts one after another into an existing object. The object is opened for each call, because there may be more
    /// objects than a process may have open files.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub fn write_at(&self, key: &str, offset: u64, parts: &[&[u8]]) -> Result<()> {
        let path = join_inside(&self.folder, key)?;
        let file = File::options().write(true).open(&path).map_err(|source| failed(&path, source))?;
        let mut at = offset;
        for part in parts {
            system::write_all_at(&file, part, at).map_err(|source| failed(&path, source))?;
            at += part.len() as u64;
        }
        record(|| Step::Write(path));
        Ok(())
    }

    /// Creates an object to be written as a stream, replacing one with the same key.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub fn create(&self, key: &str) -> Result<StageObject> {
        let path = join_inside(&self.folder, key)?;
        let file = self.open(&path, || File::create(&path)).map_err(|source| failed(&path, source))?;
        record(|| Step::Create(path));
        Ok(StageObject(file))
    }

    /// Reads an object that was written; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub fn read(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let path = join_inside(&self.folder, key)?;
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(source) if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(source) => Err(failed(&path, source)),
        }
    }

    /// Removes an object, or a folder of objects.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub fn remove(&self, key: &str) -> Result<()> {
        let path = join_inside(&self.folder, key)?;
        system::remove(&path).map_err(|source| failed(&path, source))
    }

    /// Moves an object here from another writer of the same stage.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub fn take(&self, key: &str, from: &Self, from_key: &str) -> Result<()> {
        let (path, own) = (join_inside(&self.folder, key)?, join_inside(&from.folder, from_key)?);
        self.open(&path, || std::fs::rename(&own, &path)).map_err(|source| failed(&path, source))?;
        record(|| Step::Move { from: own, to: path });
        Ok(())
    }

    /// Creates something. If its parent folders are missing, creates them and tries again, which happens once for many objects.
    fn open<T>(&self, path: &Path, make: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match make() {
            Err(source) if source.kind() == ErrorKind::NotFound => {
                if let Some(folder) = path.parent() {
                    self.folders(folder)?;
                }
                make()
            }
            made => made,
        }
    }

    /// Creates a folder and its parents, up to the top of the stage.
    fn folders(&self, folder: &Path) -> io::Result<()> {
        if folder == &*self.root {
            // The stage was published or dropped.
            return if folder.is_dir() { Ok(()) } else { Err(ErrorKind::NotFound.into()) };
        }
        match std::fs::create_dir(folder) {
            Ok(()) => {}
            Err(source) if source.kind() == ErrorKind::AlreadyExists => return Ok(()),
            Err(source) if source.kind() == ErrorKind::NotFound => {
                match folder.parent() {
                    Some(above) if folder.starts_with(&*self.root) => self.folders(above)?,
                    _ => return Err(source),
                }
                match std::fs::create_dir(folder) {
                    // Another thread was faster.
                    Err(source) if source.kind() == ErrorKind::AlreadyExists => return Ok(()),
                    made => made?,
                }
            }
            Err(source) => return Err(source),
        }
        record(|| Step::Create(folder.to_owned()));
        Ok(())
    }
}

/// An object of a stage, written as a stream.
#[derive(Debug)]
pub struct StageObject(File);

impl Write for StageObject {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
