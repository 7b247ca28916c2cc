//! Uploads of stores to a bucket: visible complete or not at all.
//!
//! A store is built locally and then uploaded. A file is one object, which appears when its upload completes. A
//! directory becomes visible through the objects that identify it, so they are uploaded last.
//!
//! Every request that could destroy another writer's work carries a condition: an object must not exist yet, or must
//! still be the version that was seen. Requests are retried after failures, so a rejection may result from an earlier
//! attempt that succeeded. To detect this, each object records the request that created it.
//!
//! Replacing or extending a directory first requires a claim: an object beside it that excludes other writers. A new
//! directory is uploaded beside the old one. When it is complete, the old one is hidden and the new objects are
//! copied into place by the server.
//!
//! | module | content |
//! |---|---|
//! | `put` | uploads one object, or many |
//! | `claim` | the object that excludes other writers |
//! | `replace` | replaces a directory |
//! | `change` | extends a directory |

mod change;
mod claim;
mod put;
mod replace;

use std::io::ErrorKind;
use std::path::Path as LocalPath;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::TryStreamExt;
use futures_util::stream::{self, StreamExt};
use hyperslab_core::{Error, Result};
use object_store::path::Path;

use put::{Failed, Job, Mode, Outcome, Source, Target};

use crate::client::{Client, Version};
use crate::failure::Failure;
use crate::runtime;

/// The number of objects that are listed, removed or copied at once.
const AT_ONCE: usize = 32;

/// The objects at a URL before a write.
#[derive(Debug, Clone, Default)]
pub struct Present {
    /// The object with this name.
    pub(crate) object: Option<Version>,
    /// Whether there are objects below it.
    pub(crate) directory: bool,
    /// The fingerprint of the objects below it, if they are to be replaced.
    pub(crate) fingerprint: Option<u64>,
}

impl Present {
    /// Returns true if anything exists.
    #[must_use]
    pub const fn is_there(&self) -> bool {
        self.object.is_some() || self.directory
    }

    /// Returns true if there are objects below the URL.
    #[must_use]
    pub const fn is_directory(&self) -> bool {
        self.directory
    }
}

/// The time limit for removing the objects of a failed upload.
const UNDO_TIME: Duration = Duration::from_secs(10);

/// An upload to a bucket.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) client: Arc<Client>,
    /// The key of the file, or of the directory.
    pub(crate) key: String,
    /// For messages.
    pub(crate) url: String,
}

impl Upload {
    /// The object name of a key below the store; that of the store itself for the empty key.
    fn path(&self, key: &str) -> Result<Path> {
        self.path_under(&self.key, key)
    }

    fn path_under(&self, root: &str, key: &str) -> Result<Path> {
        let whole = match (root.is_empty(), key.is_empty()) {
            (true, _) => key.to_owned(),
            (false, true) => root.to_owned(),
            (false, false) => format!("{root}/{key}"),
        };
        Path::parse(&whole)
            .map_err(|_| Error::invalid(format!("{}: {key:?} is not the name of an object", self.url)))
    }

    fn failed(&self, failure: Failure) -> Error {
        match failure {
            Failure::Other(ErrorKind::AlreadyExists, _) => Error::Exists { path: self.url.as_str().into() },
            Failure::Other(ErrorKind::Interrupted, _) => Error::Cancelled,
            Failure::Changed => self.raced(),
            failure => failure.to_error(&self.url),
        }
    }

    /// The error for a writer that lost a race.
    fn raced(&self) -> Error {
        let text = "another writer changed it meanwhile; nothing was replaced, try again";
        Error::io(self.url.as_str(), std::io::Error::new(ErrorKind::ResourceBusy, text))
    }

    /// An error that says what was done.
    fn half_done(&self, text: &str) -> Error {
        Error::io(self.url.as_str(), std::io::Error::other(text.to_owned()))
    }

    fn no_answer(&self) -> Error {
        self.failed(Failure::Other(ErrorKind::TimedOut, "the server does not answer".to_owned()))
    }

    /// Uploads a file as one object. Replaces only the object that was found there.
    pub(crate) fn file(&self, file: &LocalPath, present: &Present, stop: &Arc<AtomicBool>) -> Result<()> {
        let mode = present.object.as_ref().map_or(Mode::Create, |version| Mode::Update(version.clone()));
        let job = Job { path: self.path("")?, source: Source::of_file(file)?, mode };
        if present.fingerprint.is_some() {
            self.check_same(present)?;
        }
        let (target, stop) = (self.target()?, Arc::clone(stop));
        let sent = runtime::run(async move { target.put_decisive(&job, &stop).await })?;
        sent.map_err(|Failed { failure, is_doubtful }| {
            let is_doubtful = is_doubtful && !failure.is_interruption();
            let error = self.failed(failure);
            if is_doubtful {
                self.half_done(&format!("{error}; it may have been uploaded all the same"))
            } else {
                error
            }
        })?;
        // It replaces a directory.
        if present.directory { self.remove(self.objects("")?) } else { Ok(()) }
    }

    /// Uploads the files of a folder to a location where nothing exists. Files whose first path component is in
    /// `last` are uploaded last, in that order, because they make the store visible.
    pub(crate) fn new_folder(&self, folder: &LocalPath, last: &[&str], stop: &Arc<AtomicBool>) -> Result<()> {
        let mut uploaded = Vec::new();
        for (number, stage) in self.stages(folder, &self.key, last)?.into_iter().enumerate() {
            let target = self.target()?;
            let Outcome { mut done, doubtful, disputed, failure } =
                runtime::run(target.put_all(stage, Arc::clone(stop)))?;
            done.extend(doubtful);
            uploaded.push(done);
            let Some(failure) = failure else { continue };
            let error = self.failed(failure);
            // The objects of the first stage are invisible.
            return Err(match disputed.first().filter(|_| number > 0) {
                Some(path) => self.half_done(&format!(
                    "{error}; it is unknown whether {path} was uploaded, so nothing was removed; examine the store"
                )),
                None => self.remove_uploaded(error, uploaded),
            });
        }
        Ok(())
    }

    /// Lists the files of a folder as objects below a key, in stages: first those that are not in `last`.
    fn stages(&self, folder: &LocalPath, root: &str, last: &[&str]) -> Result<Vec<Vec<Job>>> {
        let mut files = Vec::new();
        collect(folder, "", &mut files)?;
        let mut stages: Vec<Vec<Job>> = vec![Vec::new(); last.len() + 1];
        for (key, file) in &files {
            let (path, source) = (self.path_under(root, key)?, Source::of_file(file)?);
            stages[rank(key, last)].push(Job { path, source, mode: Mode::Create });
        }
        Ok(stages)
    }

    /// The error for a failed upload, after removing its objects: those of the last stage first, because they make
    /// the others visible.
    fn remove_uploaded(&self, error: Error, stages: Vec<Vec<Path>>) -> Error {
        let removed = stages.into_iter().rev().try_for_each(|paths| self.remove_within(UNDO_TIME, paths));
        match removed {
            Ok(()) => error,
            Err(removing) => self.half_done(&format!("{error}; the uploaded objects remain: {removing}")),
        }
    }

    fn target(&self) -> Result<Target> {
        Ok(Target { store: self.client.store()?, wire: self.client.wire.clone() })
    }

    /// All objects below a key.
    fn objects(&self, key: &str) -> Result<Vec<Path>> {
        let found = self.client.walk(self.path(key)?)?.map_err(|failure| self.failed(failure))?;
        Ok(found.into_iter().map(|(path, _)| path).collect())
    }

    fn remove(&self, paths: Vec<Path>) -> Result<()> {
        self.remove_within(Duration::MAX, paths)
    }

    /// Removes objects, with a time limit.
    fn remove_within(&self, most: Duration, paths: Vec<Path>) -> Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        let target = self.target()?;
        let remove = async move {
            let paths = stream::iter(paths.into_iter().map(Ok)).boxed();
            let mut removed = target.store.delete_stream(paths);
            loop {
                match removed.try_next().await {
                    Ok(Some(_)) | Err(object_store::Error::NotFound { .. }) => {}
                    Ok(None) => return Ok(()),
                    Err(error) => return Err(Failure::from(error)),
                }
            }
        };
        let removed = runtime::run(async move { tokio::time::timeout(most, remove).await })?;
        match removed {
            Ok(removed) => removed.map_err(|failure| self.failed(failure)),
            Err(_) => Err(self.no_answer()),
        }
    }
}

/// The stage in which an object is uploaded: zero, or its position in `last` plus one.
fn rank(key: &str, last: &[&str]) -> usize {
    let first = key.split('/').next().unwrap_or_default();
    last.iter().position(|name| *name == first).map_or(0, |place| place + 1)
}

/// Collects the files of a folder with their keys.
fn collect(folder: &LocalPath, prefix: &str, files: &mut Vec<(String, std::path::PathBuf)>) -> Result<()> {
    let failed = |source| Error::io(folder.display().to_string(), source);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let key = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().map_err(failed)?.is_dir() {
            collect(&entry.path(), &format!("{key}/"), files)?;
        } else {
            files.push((key, entry.path()));
        }
    }
    Ok(())
}
