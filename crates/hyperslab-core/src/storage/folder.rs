//! Targets that are folders of objects.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::leftovers::Holder;
use super::{StageOptions, StageWriter, failed, parent_of, system};
use crate::{Error, Result};

/// A folder of objects that is filled beside its target. [`publish`](Self::publish) puts it there in one step; dropped, it
/// leaves nothing behind.
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
    /// Starts a folder that will be at `target`. Without [`replace`](StageOptions::replace), an existing target is refused
    /// now and again at [`publish`](Self::publish).
    ///
    /// # Errors
    ///
    /// [`Exists`](Error::Exists) when the target exists; [`Unsupported`](Error::Unsupported) when it is to be replaced on a
    /// file system that cannot do so in one step; [`Io`](Error::Io) when the folder around it cannot be written.
    pub fn create(target: &Path, options: StageOptions) -> Result<Self> {
        let exists = target.symlink_metadata().is_ok();
        if exists && !options.replace {
            return Err(Error::exists(target));
        }
        let holder = Holder::create(target)?;
        if exists {
            // Both are empty folders still, so this changes nothing.
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

    /// Writes objects that are not published, unless the other writer [takes](StageWriter::take) them.
    #[must_use]
    pub fn scratch(&self) -> StageWriter {
        StageWriter::new(self.holder.scratch())
    }

    /// Where the folder is until it is published.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.writer.folder()
    }

    /// Where the folder will be.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Puts the folder in its place. See the [module](super) for what is durable when.
    ///
    /// # Errors
    ///
    /// [`Exists`](Error::Exists) when the target exists and is not to be replaced, [`Io`](Error::Io) when the system
    /// refuses. The target is untouched then, unless syncing the folder around it failed.
    pub fn publish(self) -> Result<()> {
        let (content, target) = (self.path(), self.target.as_path());
        let sync = || system::sync_tree(content).map_err(|source| failed(target, source));
        let mut durable = self.options.sync;
        if durable {
            sync()?;
        }
        // Opened now: afterwards the target is there.
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
                // The old content goes with the holder.
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

/// Did a rename fail because something is there?
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
