//! Changes to existing folder stores.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::folder::is_there;
use super::leftovers::Holder;
use super::trace::{Step, record};
use super::{StageWriter, failed, parent_of, system};
use crate::{Result, join_inside, removable_inside};

/// New objects for an existing folder store. They are written beside the store, under their final keys, and moved
/// into place when they are published. A change that is dropped instead leaves nothing behind.
///
/// Every change is durable: objects are synced before they move, and their target folders afterwards.
///
/// ```
/// use hyperslab_core::storage::StagedChange;
/// # let folder = tempfile::tempdir().unwrap();
/// let store = folder.path().join("store");
/// # std::fs::create_dir(&store).unwrap();
/// let change = StagedChange::open(&store)?;
/// change.writer().put("data/7", b"cells")?;
/// change.writer().put("index", b"there is a 7")?;
/// // The index makes the object visible, so it moves last.
/// change.publish(&["index"])?;
/// assert!(store.join("data/7").exists());
/// # Ok::<(), hyperslab_core::Error>(())
/// ```
#[derive(Debug)]
pub struct StagedChange {
    writer: StageWriter,
    scratch: PathBuf,
    place: ChangePlace,
}

/// The target of a change.
#[derive(Debug)]
enum ChangePlace {
    /// A local folder. The holder exists as long as the change.
    Folder { _holder: Holder, target: PathBuf },
    /// Another machine. The caller uploads the objects.
    Elsewhere(ChangeSteps),
}

/// A step of a change to a remote store. All steps before it are complete when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeStep {
    /// Put objects with these keys. Nothing refers to them yet.
    Put(Vec<String>),
    /// Put an object that makes the objects before it visible.
    Show(String),
    /// Remove the objects with these keys.
    Remove(Vec<String>),
}

/// The steps of a change to a remote store, in order.
#[derive(Debug, Clone, Default)]
pub struct ChangeSteps(Arc<Mutex<Vec<ChangeStep>>>);

impl ChangeSteps {
    fn push(&self, step: ChangeStep) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(step);
    }

    /// The steps so far.
    #[must_use]
    pub fn take(&self) -> Vec<ChangeStep> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns true if the object with this key was put.
    fn has(&self, key: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|step| match step {
            ChangeStep::Put(keys) => keys.iter().any(|own| own == key),
            ChangeStep::Show(own) => own == key,
            ChangeStep::Remove(_) => false,
        })
    }
}

impl StagedChange {
    /// Starts a change of the store at `target`. If `target` is a symbolic link, the objects are written beside the store itself.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::Error::Io) if the store does not exist, or its parent folder is not writable.
    pub fn open(target: &Path) -> Result<Self> {
        let target = target.canonicalize().map_err(|source| failed(target, source))?;
        let holder = Holder::create(&target)?;
        let (writer, scratch) = (StageWriter::new(holder.content()), holder.scratch());
        Ok(Self { writer, scratch, place: ChangePlace::Folder { _holder: holder, target } })
    }

    /// Starts a change of a remote store. Its objects are written to `folder` under their final keys, and the caller removes
    /// that folder. Instead of publishing the objects, this records the steps by which the caller has to upload
    /// them.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::Error::Io) if the folder cannot be written.
    pub fn elsewhere(folder: &Path) -> Result<(Self, ChangeSteps)> {
        let (content, scratch) = (folder.join("content"), folder.join("scratch"));
        for folder in [&content, &scratch] {
            std::fs::create_dir_all(folder).map_err(|source| failed(folder, source))?;
        }
        let steps = ChangeSteps::default();
        let place = ChangePlace::Elsewhere(steps.clone());
        Ok((Self { writer: StageWriter::new(content), scratch, place }, steps))
    }

    /// The writer of the change's objects.
    #[must_use]
    pub const fn writer(&self) -> &StageWriter {
        &self.writer
    }

    /// A writer for objects that are not published, unless the other writer [takes](StageWriter::take) them.
    #[must_use]
    pub fn scratch(&self) -> StageWriter {
        StageWriter::new(self.scratch.clone())
    }

    /// Moves one object into place, durably. An existing object is replaced in one step.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::Error::Io) if the system reports an error.
    pub fn place(&self, key: &str) -> Result<()> {
        if let ChangePlace::Elsewhere(steps) = &self.place {
            steps.push(ChangeStep::Show(key.to_owned()));
            return Ok(());
        }
        let path = join_inside(self.writer.folder(), key)?;
        let file = std::fs::File::open(&path).map_err(|source| failed(&path, source))?;
        system::sync_file(&file, &path).map_err(|source| failed(&path, source))?;
        self.move_last(key)
    }

    /// Removes objects of the store durably; see [`remove_inside`].
    ///
    /// # Errors
    ///
    /// As [`remove_inside`].
    pub fn remove<K: AsRef<str>>(&self, keys: impl IntoIterator<Item = K>) -> Result<()> {
        match &self.place {
            ChangePlace::Folder { target, .. } => remove_inside(target, keys),
            ChangePlace::Elsewhere(steps) => {
                let keys = keys.into_iter().map(|key| key.as_ref().to_owned()).collect();
                steps.push(ChangeStep::Remove(keys));
                Ok(())
            }
        }
    }

    /// Moves all objects into place: first those not in `last`, in any order, then those in `last`, in this order. All
    /// earlier objects are durable before the next one of `last` moves. A folder that the store lacks is moved as a whole.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::Error::Io) if the system reports an error. Objects that were already moved stay. They are not visible
    /// unless an object of `last` was moved too.
    pub fn publish<K: AsRef<str>>(self, last: &[K]) -> Result<()> {
        self.place_except(last)?;
        last.iter().try_for_each(|key| self.move_last(key.as_ref()))
    }

    /// Moves all objects written so far into place, durably. More may follow.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::Error::Io) if the system reports an error.
    pub fn place_all(&self) -> Result<()> {
        self.place_except::<&str>(&[])
    }

    fn place_except<K: AsRef<str>>(&self, last: &[K]) -> Result<()> {
        let content = self.writer.folder();
        let target = match &self.place {
            ChangePlace::Folder { target, .. } => target,
            ChangePlace::Elsewhere(steps) => {
                let mut keys = Vec::new();
                keys_below(content, "", &mut keys)?;
                keys.retain(|key| !steps.has(key) && last.iter().all(|own| own.as_ref() != key));
                if !keys.is_empty() {
                    steps.push(ChangeStep::Put(keys));
                }
                return Ok(());
            }
        };
        system::sync_tree(content).map_err(|source| failed(target, source))?;
        let mut paths = Vec::with_capacity(last.len());
        for key in last {
            paths.push(join_inside(content, key.as_ref())?);
        }
        let mut touched = BTreeSet::new();
        merge(content, target, &paths, &mut touched)?;
        for folder in touched {
            system::sync_folder(&folder).map_err(|source| failed(&folder, source))?;
        }
        Ok(())
    }

    /// Moves an object that was synced.
    fn move_last(&self, key: &str) -> Result<()> {
        let target = match &self.place {
            ChangePlace::Folder { target, .. } => target,
            ChangePlace::Elsewhere(steps) => {
                steps.push(ChangeStep::Show(key.to_owned()));
                return Ok(());
            }
        };
        let (path, place) = (join_inside(self.writer.folder(), key)?, join_inside(target, key)?);
        let folder = parent_of(&place);
        if !folder.is_dir() {
            std::fs::create_dir_all(folder).map_err(|source| failed(folder, source))?;
            // Sync its name, and those of folders created for it.
            for above in folder.ancestors().skip(1).take_while(|above| above.starts_with(target)) {
                system::sync_folder(above).map_err(|source| failed(above, source))?;
            }
        }
        // Open the folder first, because after the move the object is visible.
        let opened = system::Folder::open(folder).map_err(|source| failed(folder, source))?;
        system::rename(&path, &place).map_err(|source| failed(&place, source))?;
        opened.sync().map_err(|source| failed(folder, source))
    }
}

/// The keys of the files below a folder.
fn keys_below(folder: &Path, prefix: &str, keys: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder).map_err(|source| failed(folder, source))? {
        let entry = entry.map_err(|source| failed(folder, source))?;
        let key = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            keys_below(&entry.path(), &format!("{key}/"), keys)?;
        } else {
            keys.push(key);
        }
    }
    keys.sort();
    Ok(())
}

/// Moves the contents of `from` into `to`, except the files in `last`. Folders that `to` lacks are moved as a whole.
fn merge(from: &Path, to: &Path, last: &[PathBuf], touched: &mut BTreeSet<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(from).map_err(|source| failed(from, source))? {
        let entry = entry.map_err(|source| failed(from, source))?;
        let (own, place) = (entry.path(), to.join(entry.file_name()));
        if last.contains(&own) {
            continue;
        }
        let is_folder = own.is_dir();
        let holds_last = is_folder && last.iter().any(|path| path.starts_with(&own));
        if holds_last && !place.is_dir() {
            std::fs::create_dir(&place).map_err(|source| failed(&place, source))?;
            record(|| Step::Create(place.clone()));
            touched.insert(to.to_owned());
        }
        if is_folder && place.is_dir() {
            merge(&own, &place, last, touched)?;
            continue;
        }
        match system::rename(&own, &place) {
            // Another writer created the folder meanwhile.
            Err(source) if is_folder && is_there(&source) && place.is_dir() => {
                merge(&own, &place, last, touched)?;
            }
            done => {
                done.map_err(|source| failed(&place, source))?;
                touched.insert(to.to_owned());
            }
        }
    }
    Ok(())
}

/// Removes objects and folders of a store by key, then syncs the folders that contained them. Missing ones are ignored. A
/// symbolic link is removed, not its target, and nothing is removed through a link.
///
/// # Errors
///
/// [`Invalid`](crate::Error::Invalid) for a key that leads out of the store, [`Io`](crate::Error::Io) if the system reports an error.
pub fn remove_inside<K: AsRef<str>>(store: &Path, keys: impl IntoIterator<Item = K>) -> Result<()> {
    let mut touched = BTreeSet::new();
    for key in keys {
        let path = removable_inside(store, key.as_ref())?;
        if path.symlink_metadata().is_ok() {
            system::remove(&path).map_err(|source| failed(&path, source))?;
            touched.insert(parent_of(&path).to_owned());
        }
    }
    touched.iter().try_for_each(|folder| system::sync_folder(folder).map_err(|source| failed(folder, source)))
}
