//! Extends an existing directory store.
//!
//! A change is complete or undone: if it fails, the objects that became visible get their old content back, and only
//! then the objects that it created are removed. If that is impossible, or if it is unknown whether an object became
//! visible, nothing is removed, and the error names the objects that have changed.

use std::path::Path as LocalPath;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use hyperslab_core::storage::ChangeStep;
use hyperslab_core::{Error, Result, Storage};
use object_store::path::Path;

use super::put::{Failed, Job, Mode, Outcome, Source};
use super::{ErrorKind, Failure, UNDO_TIME, Upload, runtime};
use crate::client::Version;
use crate::storage::RemoteStorage;

/// The visible effects of a change so far.
#[derive(Debug, Default)]
struct Applied {
    /// Objects that did not exist before. Only shown objects refer to them.
    created: Vec<Path>,
    /// Objects that made others visible, in order.
    shown: Vec<Shown>,
}

/// An object that made others visible.
#[derive(Debug)]
struct Shown {
    key: String,
    /// Its content before; `None` if it did not exist.
    before: Option<Bytes>,
    version: Version,
}

/// The reason why a step failed.
enum Problem {
    /// The step has no visible effect.
    Undone(Error),
    /// The object with this key may have become visible.
    Doubtful(Error, String),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Undone(error)
    }
}

impl Upload {
    /// Claims the store, lets `make` read it and determine the changes, and applies them.
    ///
    /// Objects that were read through the storage are only replaced if they are still the same.
    pub(crate) fn change<T>(
        &self,
        storage: &RemoteStorage,
        make: impl FnOnce() -> Result<(T, Vec<ChangeStep>)>,
        folder: &LocalPath,
        stop: &Arc<AtomicBool>,
    ) -> Result<T> {
        let _claim = self.claim(stop)?;
        // Data read before the claim may be outdated.
        storage.forget();
        let (made, steps) = make()?;
        let mut applied = Applied::default();
        for (number, step) in steps.iter().enumerate() {
            let done = match step {
                ChangeStep::Put(keys) => {
                    self.put_keys(storage, keys, folder, stop, &mut applied.created).map_err(Problem::from)
                }
                ChangeStep::Show(key) => {
                    let is_last = number + 1 == steps.len();
                    self.show(storage, key, folder, stop, is_last).map(|shown| applied.shown.push(shown))
                }
                ChangeStep::Remove(keys) => {
                    let paths = keys.iter().map(|key| self.path(key)).collect::<Result<_>>();
                    if let Err(error) = paths.and_then(|paths| self.remove(paths)) {
                        // What was shown before no longer needs the removed objects, so it stays.
                        return Err(self.half_done(&format!(
                            "the change is visible, but objects that it replaces are left: {error}"
                        )));
                    }
                    Ok(())
                }
            };
            if let Err(problem) = done {
                return Err(self.undo(&applied, problem));
            }
        }
        Ok(made)
    }

    /// Undoes a change. Returns the error, which says what could not be undone.
    fn undo(&self, applied: &Applied, problem: Problem) -> Error {
        let changed = |shown: &[Shown]| {
            let keys: Vec<&str> = shown.iter().map(|own| own.key.as_str()).collect();
            keys.join(", ")
        };
        let error = match problem {
            Problem::Undone(error) => error,
            Problem::Doubtful(error, key) => {
                let before = match applied.shown.as_slice() {
                    [] => String::new(),
                    shown => format!("{} changed, and ", changed(shown)),
                };
                return self.half_done(&format!(
                    "{error}; {before}it is unknown whether {key} changed, so nothing was removed; examine the store"
                ));
            }
        };
        for (number, shown) in applied.shown.iter().enumerate().rev() {
            if let Err(why) = self.put_back(shown) {
                let changed = changed(&applied.shown[..=number]);
                return self.half_done(&format!(
                    "{error}; the change is incomplete: {changed} changed and could not be restored: {why}"
                ));
            }
        }
        self.remove_uploaded(error, vec![applied.created.clone()])
    }

    /// Restores an object that was shown.
    fn put_back(&self, shown: &Shown) -> Result<()> {
        let path = self.path(&shown.key)?;
        let Some(before) = &shown.before else { return self.remove_within(UNDO_TIME, vec![path]) };
        let mode = Mode::Update(shown.version.clone());
        let job = Job { path, source: Source::Bytes(before.clone()), mode };
        let target = self.target()?;
        let put = async move {
            // The request to stop has been obeyed: this ends the change.
            let stop = AtomicBool::new(false);
            tokio::time::timeout(UNDO_TIME, target.put_decisive(&job, &stop)).await
        };
        match runtime::run(put)? {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(Failed { failure, .. })) => Err(self.failed(failure)),
            Err(_) => Err(self.no_answer()),
        }
    }

    /// Puts an object that makes others visible.
    fn show(
        &self,
        storage: &RemoteStorage,
        key: &str,
        folder: &LocalPath,
        stop: &Arc<AtomicBool>,
        is_last: bool,
    ) -> Result<Shown, Problem> {
        let source = Source::of_file(&hyperslab_core::join_inside(folder, key)?)?;
        let (mode, before) = match storage.known_version(key) {
            None => (Mode::Create, None),
            // After the last step, nothing is restored.
            Some(version) if is_last => (Mode::Update(version), None),
            Some(version) => {
                let before = storage.read(key)?.ok_or_else(|| self.raced())?;
                (Mode::Update(version), Some(before))
            }
        };
        let job = Job { path: self.path(key)?, source, mode };
        let (target, stop) = (self.target()?, Arc::clone(stop));
        match runtime::run(async move { target.put_decisive(&job, &stop).await })? {
            Ok(version) => Ok(Shown { key: key.to_owned(), before, version }),
            Err(Failed { failure, is_doubtful }) => {
                let error = match failure {
                    // Another writer ignored the claim.
                    Failure::Other(ErrorKind::AlreadyExists, _) => self.raced(),
                    failure => self.failed(failure),
                };
                Err(if is_doubtful { Problem::Doubtful(error, key.to_owned()) } else { error.into() })
            }
        }
    }

    fn put_keys(
        &self,
        storage: &RemoteStorage,
        keys: &[String],
        folder: &LocalPath,
        stop: &Arc<AtomicBool>,
        created: &mut Vec<Path>,
    ) -> Result<()> {
        let mut jobs = Vec::with_capacity(keys.len());
        for key in keys {
            let file = hyperslab_core::join_inside(folder, key)?;
            let mode = storage.known_version(key).map_or(Mode::Create, Mode::Update);
            jobs.push(Job { path: self.path(key)?, source: Source::of_file(&file)?, mode });
        }
        let (done, failure) = self.put_jobs(jobs.clone(), stop, created)?;
        match failure {
            None => Ok(()),
            Some(Failure::Other(ErrorKind::AlreadyExists, _)) => {
                jobs.retain(|job| !done.contains(&job.path));
                self.put_over_leftovers(jobs, stop, created)
            }
            Some(failure) => Err(self.failed(failure)),
        }
    }

    /// Uploads objects, and records those that did not exist before. Returns the uploaded ones, and the first failure.
    fn put_jobs(
        &self,
        jobs: Vec<Job>,
        stop: &Arc<AtomicBool>,
        created: &mut Vec<Path>,
    ) -> Result<(Vec<Path>, Option<Failure>)> {
        let new: Vec<Path> =
            jobs.iter().filter(|job| matches!(job.mode, Mode::Create)).map(|job| job.path.clone()).collect();
        let Outcome { done, doubtful, failure, .. } =
            runtime::run(self.target()?.put_all(jobs, Arc::clone(stop)))?;
        created.extend(done.iter().chain(&doubtful).filter(|path| new.contains(path)).cloned());
        Ok((done, failure))
    }

    /// Objects that no document refers to are leftovers of a killed writer: the claim excludes active writers.
    fn put_over_leftovers(
        &self,
        jobs: Vec<Job>,
        stop: &Arc<AtomicBool>,
        created: &mut Vec<Path>,
    ) -> Result<()> {
        let found = self.client.stat_all(jobs.iter().map(|job| job.path.clone()).collect())?;
        let mut again = Vec::with_capacity(jobs.len());
        for (job, found) in jobs.into_iter().zip(found) {
            let mode = match (found, job.mode) {
                (Ok(version), Mode::Create) => Mode::Update(version),
                (Err(Failure::Missing) | Ok(_), mode) => mode,
                (Err(failure), _) => return Err(self.failed(failure)),
            };
            again.push(Job { mode, ..job });
        }
        let (_, failure) = self.put_jobs(again, stop, created)?;
        failure.map_or(Ok(()), |failure| Err(self.failed(failure)))
    }
}
