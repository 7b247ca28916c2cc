//! Staging of folders of objects.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::leftovers::Holder;
use super::{StageOptions, StageWriter, failed, parent_of, system};
use crate::{Error, Result};

/// A folder of objects that is filled beside its target. [`publish`](Self::publish) moves it into place in one step. A folder
/// that is dropped instead leaves nothing behind.
///
/// ```
/// use hyperslab_core::storage::{StageOptions, StagedFolder};
/// # let folder = tempfile::tempdir().unwrap();
/// let target = folder.path().join("store");
/// let staged = StagedFolder::create(&target, StageOptions::default())?;
/// staged.writer().put("group/object", b"content")?;
/// assert!(!target.exists());
/// staged.publish()?;
/// assert!(target.join("group/object").exists());
/// # Ok::<(), hyperslab_core::Error>(())
/// ```
#[derive(Debug)]
pub struct StagedFolder {
    holder: Holder,
    writer: StageWriter,
    target: PathBuf,
    options: StageOptions,
}

impl StagedFolder {
    /// Starts a folder for `target`. Without [`replace`](StageOptions::replace), an existing target is refused now and again at
    /// [`publish`](Self::publish).
    ///
    /// # Errors
    ///
    /// [`Exists`](Error::Exists) if the target exists; [`Unsupported`](Error::Unsupported) if the file system cannot replace it
    /// in one step; [`Io`](Error::Io) if the parent folder cannot be written.
    pub fn create(target: &Path, options: StageOptions) -> Result<Self> {
        let exists = target.symlink_metadata().is_ok();
        if exists && !options.replace {
            return Err(Error::exists(target));
        }
        let holder = Holder::create(target)?;
        if exists {
            // Both are still empty folders, so this changes nothing.
            system::exchange_names(&holder.content(), &holder.scratch())
                .map_err(|source| refused(target, source))?;
        }
        let writer = StageWriter::new(holder.content());
        Ok(Self { holder, writer, target: target.to_owned(), options })
    }

    /// Writes the objects of the folder.
    #[must_use]
    pub const fn writer(&self) -> &StageWriter {
        &self.writer
    }

    /// A writer for objects that are not published, unless the other writer [takes](StageWriter::take) them.
    #[must_use]
    pub fn scratch(&self) -> StageWriter {
        StageWriter::new(self.holder.scratch())
    }

    /// The temporary path, until the folder is published.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.writer.folder()
    }

    /// The final path.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Moves the folder into place. See the [module](super) for the durability contract.
    ///
    /// # Errors
    ///
    /// [`Exists`](Error::Exists) if the target exists and must not be replaced, [`Io`](Error::Io) if the system reports an error.
    /// The target is then untouched, unless syncing its parent folder failed.
    pub fn publish(self) -> Result<()> {
        let (content, target) = (self.path(), self.target.as_path());
        let sync = || system::sync_tree(content).map_err(|source| failed(target, source));
        let mut durable = self.options.sync;
        if durable {
            sync()?;
        }
        // Opened now: a failure after the rename would come too late.
        let folder = (durable || self.options.replace)
            .then(|| system::Folder::open(parent_of(target)))
            .transpose()
            .map_err(|source| failed(target, source))?;
        match system::rename_new(content, target) {
            Err(source) if is_there(&source) => {
                if !self.options.replace {
                    return Err(Error::exists(target));
                }
                if !durable {
                    sync()?;
                }
                // The old content is removed with the holder.
                system::exchange(content, target).map_err(|source| refused(target, source))?;
                durable = true;
            }
            done => done.map_err(|source| failed(target, source))?,
        }
        match folder.filter(|_| durable) {
            Some(folder) => folder.sync().map_err(|source| failed(target, source)),
            None => Ok(()),
        }
    }
}

/// Returns true if a rename failed because the target exists.
pub(super) fn is_there(source: &std::io::Error) -> bool {
    matches!(
        source.kind(),
        ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory
    )
}

fn refused(target: &Path, source: std::io::Error) -> Error {
    match source.kind() {
        ErrorKind::Unsupported => Error::unsupported(
            target.display().to_string(),
            "replacing a folder in one step on this file system (remove it first, or choose another target)",
        ),
        _ => failed(target, source),
    }
}
