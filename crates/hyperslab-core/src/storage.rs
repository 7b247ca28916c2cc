//! Where stores are: objects that are read from a location, and targets that are published to one.
//!
//! [`Storage`] is the read side: the objects at a location, such as a folder or a bucket. Formats see nothing else of where
//! a store is.
//!
//! On the write side targets are built beside their place and published in one step. Every writer goes through one of these:
//!
//! | type | for |
//! |---|---|
//! | [`StagedFile`] | a target that is one file |
//! | [`StagedFolder`] | a target that is a folder of objects |
//! | [`StagedChange`] | additions to a folder store that exists, here or elsewhere |
//! | [`LocalFile`] | a file that is changed in place, under an ordered or journalled protocol of its format; scratch |
//!
//! # Durability
//!
//! A writer that is **killed** at any instant leaves the old content or the new:
//!
//! - Nothing is visible at the target before `publish`. Everything is written under a temporary name beside it.
//! - A new target appears by one rename that refuses to replace anything.
//! - A file is replaced by one rename, a folder by one exchange. There is no instant without a target. A file system that
//!   cannot exchange two folders is refused when the stage is created, before anything is written.
//! - A change to an existing store moves the objects that no one refers to first, and the objects that make them visible
//!   last, in the order that the caller gives.
//!
//! A **power cut** does no worse:
//!
//! - What replaces something, or changes an existing store, is synced before it becomes visible: first its content, then
//!   the rename or exchange, then the folder that holds the name. In a change the folders of all other objects are synced
//!   before the first object moves that makes them visible.
//! - What a change removes is hidden durably before it is removed: [`remove_inside`] syncs the folders that it touched
//!   before it returns.
//! - A new target is as durable as a copy: the system writes it in its own time, and a power cut may cost it.
//!   [`StageOptions::sync`] makes it durable before `publish` returns.
//!
//! # Names and leftovers
//!
//! The temporary name of the target `NAME` is `.NAME.<16 hexadecimal digits>.part`, in the same folder. A stage that is
//! dropped removes it. A killed writer leaves it behind, and the next writer to the same target removes it. Writers that are
//! alive hold an advisory lock on theirs, so they are left alone. A file system without locks keeps its leftovers: no one
//! can tell whether their writer is alive.
//!
//! # One writer at a time
//!
//! Writers that change something in place hold an advisory lock: [`LocalFile::open_locked`] on the file, [`StoreLock`] on the
//! folder. Who comes second gets an error. A file system without locks keeps no one away.
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
    ByteRange, ListedObject, LocalStorage, MAPPED_FROM, MemoryStorage, ObjectRange, ObjectStat, Storage,
    StorageEntry, read_spans, read_spans_cost,
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
    /// Replace what is at the target. Otherwise an existing target is an error.
    pub replace: bool,
    /// Make a new target durable before `publish` returns. What replaces something always is.
    pub sync: bool,
}

impl StageOptions {
    /// The same options, replacing or not.
    #[must_use]
    pub const fn with_replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// The same options, durable at once or not.
    #[must_use]
    pub const fn with_sync(mut self, sync: bool) -> Self {
        self.sync = sync;
        self
    }
}

/// The folder that a path is in.
fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// An error of the system about a path.
fn failed(path: &Path, source: std::io::Error) -> Error {
    Error::io(path.display().to_string(), source)
}

#[cfg(test)]
mod tests;
