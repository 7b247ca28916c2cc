//! A record of storage operations, to test their order.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::parent_of;

/// One step of a writer on the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// A file or folder was created.
    Create(PathBuf),
    /// Bytes were written to a file.
    Write(PathBuf),
    /// The content of a file was synced.
    Sync(PathBuf),
    /// The content of a folder and of everything in it was synced.
    SyncTree(PathBuf),
    /// The names in a folder were synced.
    SyncFolder(PathBuf),
    /// A file or folder was renamed.
    Rename {
        /// Its name before.
        from: PathBuf,
        /// Its name afterwards.
        to: PathBuf,
        /// Whether it replaced something.
        replaced: bool,
    },
    /// A file moved inside a stage.
    Move {
        /// Its name before.
        from: PathBuf,
        /// Its name afterwards.
        to: PathBuf,
    },
    /// Two files or folders exchanged their names.
    Exchange {
        /// The staged one, which holds the old content afterwards.
        from: PathBuf,
        /// The target, which holds the new content afterwards.
        to: PathBuf,
    },
    /// A file or folder was removed.
    Remove(PathBuf),
}

/// The steps of one thread, for tests that assert the possible results of a power cut.
///
/// Only operations of this module are recorded. Writes to the [`File`](std::fs::File) of a stage are not; the creation of that
/// file represents them.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// The steps in order.
    pub steps: Vec<Step>,
}

type Watcher = Box<dyn FnMut(Step)>;

thread_local! {
    static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
}

/// Reports a step to the watcher of this thread.
pub(super) fn record(step: impl FnOnce() -> Step) {
    // Taken out while it runs, so that the watcher's own steps are not reported.
    let Some(mut watcher) = WATCHER.take() else { return };
    watcher(step());
    WATCHER.set(Some(watcher));
}

impl Trace {
    /// Runs `work` and records its steps on this thread.
    pub fn of<T>(work: impl FnOnce() -> T) -> (T, Self) {
        let steps = Rc::new(RefCell::new(Vec::new()));
        let kept = Rc::clone(&steps);
        let result = Self::watch(work, move |step| kept.borrow_mut().push(step));
        (result, Self { steps: steps.take() })
    }

    /// Runs `work` and reports each of its steps on this thread right after it was taken, so that the files can be inspected in
    /// that state.
    pub fn watch<T>(work: impl FnOnce() -> T, each: impl FnMut(Step) + 'static) -> T {
        let before = WATCHER.replace(Some(Box::new(each)));
        let result = work();
        WATCHER.set(before);
        result
    }

    /// Renames and exchanges that a power cut could leave half done, as text. Empty if the durability contract holds.
    ///
    /// Checks the renames that replace something. With `change`, the steps change an existing store and all renames are checked;
    /// the folders of all other renames must then be synced before the last one, which makes them visible.
    #[must_use]
    pub fn violations(&self, change: bool) -> Vec<String> {
        let mut found = Vec::new();
        let last_rename = self.steps.iter().rposition(|step| matches!(step, Step::Rename { .. }));
        for (at, step) in self.steps.iter().enumerate() {
            let (from, to) = match step {
                Step::Rename { from, to, replaced } if *replaced || change => (from, to),
                Step::Exchange { from, to } => (from, to),
                _ => continue,
            };
            for path in self.unsynced(from, at) {
                found.push(format!("{} became {} before it was synced", path.display(), to.display()));
            }
            let folder = parent_of(to);
            let end = match last_rename {
                Some(last) if change && at < last => last,
                _ => self.steps.len(),
            };
            let synced = self.steps[at..end].iter().any(|step| match step {
                Step::SyncFolder(own) => own == folder,
                _ => false,
            });
            if !synced {
                found.push(format!("{} was renamed, and its folder was not synced in time", to.display()));
            }
        }
        found
    }

    /// Files at or below `top` that were written before this step and not synced since.
    fn unsynced<'a>(&'a self, top: &Path, before: usize) -> BTreeSet<&'a Path> {
        let mut dirty: BTreeSet<&Path> = BTreeSet::new();
        for step in &self.steps[..before] {
            match step {
                Step::Create(path) | Step::Write(path) if path.starts_with(top) => {
                    dirty.insert(path);
                }
                Step::Sync(path) | Step::SyncFolder(path) => {
                    dirty.remove(path.as_path());
                }
                Step::SyncTree(folder) => dirty.retain(|path| !path.starts_with(folder)),
                Step::Remove(gone) => dirty.retain(|path| !path.starts_with(gone)),
                // Even if the content was synced before, the new name is not.
                Step::Move { from, to } => {
                    dirty.remove(from.as_path());
                    if to.starts_with(top) {
                        dirty.insert(to);
                    }
                }
                _ => {}
            }
        }
        dirty
    }
}
