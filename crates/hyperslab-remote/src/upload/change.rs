//! Extends an existing directory store.

use std::path::Path as LocalPath;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hyperslab_core::Result;
use hyperslab_core::storage::ChangeStep;
use object_store::path::Path;

use super::put::{Job, Mode, Outcome, Source};
use super::{Failure, Upload, runtime};
use crate::storage::RemoteStorage;

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
        let _claim = self.claim()?;
        // Data read before the claim may be outdated.
        storage.forget();
        let (made, steps) = make()?;
        let mut created = Vec::new();
        for step in steps {
            let done = match &step {
                ChangeStep::Put(keys) => self.put_keys(storage, keys, folder, stop, &mut created),
                ChangeStep::Show(key) => {
                    self.put_keys(storage, std::slice::from_ref(key), folder, stop, &mut Vec::new())
                }
                ChangeStep::Remove(keys) => {
                    let paths = keys.iter().map(|key| self.path(key)).collect::<Result<_>>();
                    paths.and_then(|paths| self.remove(paths))
                }
            };
            if let Err(error) = done {
                // No document refers to these objects.
                let _ = self.remove(created);
                return Err(error);
            }
            if matches!(step, ChangeStep::Show(_)) {
                created.clear();
            }
        }
        Ok(made)
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
        let new: Vec<Path> =
            jobs.iter().filter(|job| matches!(job.mode, Mode::Create)).map(|job| job.path.clone()).collect();
        let Outcome { done, doubtful, failure } =
            runtime::run(self.target()?.put_all(jobs.clone(), Arc::clone(stop)))?;
        created.extend(done.iter().chain(&doubtful).filter(|path| new.contains(path)).cloned());
        match failure {
            None => Ok(()),
            Some(Failure::Other(std::io::ErrorKind::AlreadyExists, _)) => {
                self.put_over_leftovers(jobs, &done, stop)
            }
            Some(failure) => Err(self.failed(failure)),
        }
    }

    /// Objects that no document refers to are leftovers of a killed writer: the claim excludes active writers.
    fn put_over_leftovers(&self, jobs: Vec<Job>, done: &[Path], stop: &Arc<AtomicBool>) -> Result<()> {
        let left: Vec<Job> = jobs.into_iter().filter(|job| !done.contains(&job.path)).collect();
        let found = self.client.stat_all(left.iter().map(|job| job.path.clone()).collect())?;
        let mut again = Vec::with_capacity(left.len());
        for (job, found) in left.into_iter().zip(found) {
            let mode = match (found, job.mode) {
                (Ok(version), Mode::Create) => Mode::Update(version),
                (Err(Failure::Missing) | Ok(_), mode) => mode,
                (Err(failure), _) => return Err(self.failed(failure)),
            };
            again.push(Job { mode, ..job });
        }
        let Outcome { failure, .. } = runtime::run(self.target()?.put_all(again, Arc::clone(stop)))?;
        failure.map_or(Ok(()), |failure| Err(self.failed(failure)))
    }
}
