//! Storage: the objects of a store are read from a location, and targets are published to one.
//!
//! [`Storage`] is the read side: the objects at a location, such as a folder or a bucket. It is a format's only access to
//! its store.
//!
//! On the write side, a target is built beside its final path and published in one step. Every writer uses one of these:
//!
//! | type | for |
//! |---|---|
//! | [`StagedFile`] | a target that is one file |
//! | [`StagedFolder`] | a target that is a folder of objects |
//! | [`StagedChange`] | additions to an existing folder store, local or remote |
//! | [`LocalFile`] | a file changed in place, under the format's ordered or journalled protocol; scratch files |
//!
//! # Durability
//!
//! A writer that is **killed** at any instant leaves either the old content or the new:
//!
//! - Nothing is visible at the target before `publish`. Everything is written under a temporary name beside it.
//! - A new target appears by one rename that refuses to replace anything.
//! - A file is replaced by one rename, a folder by one exchange. There is no instant without a target. A file system that
//!   cannot exchange two folders is refused when the stage is created, before anything is written.
//! - A change to an existing store first moves the objects that nothing refers to yet, and then the objects that make
//!   them visible, in the order given by the caller.
//!
//! A **power cut** has no other effects:
//!
//! - Anything that replaces or changes a store is synced before it becomes visible: first its content, then
//!   the rename or exchange, then the folder that holds the name. A change syncs the folders of all other objects before
//!   it moves the first object that makes them visible.
//! - Objects that a change removes are first hidden durably: [`remove_inside`] syncs the affected folders
//!   before it returns.
//! - A new target is as durable as a copied file: the system writes it back later, and a power cut may lose it.
//!   [`StageOptions::sync`] makes it durable before `publish` returns.
//!
//! # Names and leftovers
//!
//! The temporary name of the target `NAME` is `.NAME.<16 hexadecimal digits>.part`, in the same folder. A dropped stage
//! removes it. A killed writer leaves it behind, and the next writer to the same target removes it. A running writer holds
//! an advisory lock on its own, so that others leave it alone. On a file system without locks, leftovers stay, because
//! nothing shows whether their writer is still running.
//!
//! # One writer at a time
//!
//! Writers that change something in place hold an advisory lock: [`LocalFile::open_locked`] on the file, [`StoreLock`] on
//! the folder. A second writer gets an error. A file system without locks cannot keep other writers out.
//!
//! Files and folders get the permissions that the process's umask gives to new ones.

mod change;
mod file;
mod folder;
mod leftovers;
mod local;
mod lock;
mod objects;
mod system;
mod trace;
mod writer;

pub use change::{ChangeStep, ChangeSteps, StagedChange, remove_inside};
pub use file::StagedFile;
pub use folder::StagedFolder;
pub use leftovers::{Leftover, LeftoverState, clean_leftovers};
pub use local::LocalFile;
pub use lock::StoreLock;
pub use objects::{
    ByteRange, ListedObject, LocalStorage, MAPPED_FROM, MemoryStorage, ObjectPlace, ObjectRange, ObjectStat,
    Storage, StorageEntry, read_spans, read_spans_cost,
};
pub use trace::{Step, Trace};
pub use writer::{StageObject, StageWriter};

use std::path::Path;

use crate::Error;

/// How a stage is published.
///
/// ```
/// use hyperslab_core::storage::StageOptions;
/// let options = StageOptions::default().with_replace(true);
/// assert!(options.replace && !options.sync);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StageOptions {
    /// Replace an existing target. Otherwise an existing target is an error.
    pub replace: bool,
    /// Sync a new target before `publish` returns. A target that replaces something is always synced.
    pub sync: bool,
}

impl StageOptions {
    /// Sets whether to replace an existing target.
    #[must_use]
    pub const fn with_replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// Sets whether to sync a new target.
    #[must_use]
    pub const fn with_sync(mut self, sync: bool) -> Self {
        self.sync = sync;
        self
    }
}

/// The folder that contains a path.
fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A system error for a path.
fn failed(path: &Path, source: std::io::Error) -> Error {
    Error::io(path.display().to_string(), source)
}

#[cfg(test)]
mod tests;
