//! Replaces an existing store by a directory store.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path as LocalPath;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures_util::{StreamExt, TryStreamExt, stream};
use hyperslab_core::Result;
use object_store::ObjectStoreExt;
use object_store::path::Path;

use super::put::{Outcome, Target};
use super::{AT_ONCE, Failure, Present, Upload, collect, rank, runtime};
use crate::client::Version;

impl Upload {
    /// Uploads a folder, replacing the objects found before. `last` makes the new store visible, `replaced` the old
    /// one.
    ///
    /// The old store stays unchanged until the new one is complete beside it.
    pub(crate) fn replace_folder(
        &self,
        folder: &LocalPath,
        last: &[&str],
        replaced: &[&str],
        present: &Present,
        stop: &Arc<AtomicBool>,
    ) -> Result<()> {
        let claim = self.claim(stop)?;
        self.check_same(present)?;
        let staged = self.beside(&format!("{:016x}.part", random()))?;
        let complete = self.stage(folder, &staged, stop).and_then(|()| self.check_same(present));
        if let Err(error) = complete {
            // The staged objects were never visible.
            let _ = self.remove_under(&staged);
            return Err(error);
        }
        let base = self.url.strip_suffix(self.key.as_str()).unwrap_or(&self.url);
        let kept = self.exchange(folder, &staged, last, replaced).map_err(|error| {
            self.half_done(&format!(
                "{error}; the old store is gone and the new one is not visible yet, but complete at {base}{staged}"
            ))
        })?;
        let was_file = present.object.is_some();
        let removed = self.remove_except(&kept, was_file).and_then(|()| self.remove_under(&staged));
        drop(claim);
        removed.map_err(|error| {
            self.half_done(&format!(
                "the new store is in its place, but objects of the old one are left: {error}"
            ))
        })
    }

    /// Uploads all files below a key that no reader looks at.
    fn stage(&self, folder: &LocalPath, staged: &str, stop: &Arc<AtomicBool>) -> Result<()> {
        for jobs in self.stages(folder, staged, &[])? {
            // A copy that the server refuses is noticed before anything is hidden. Servers differ in how they decode the
            // names of objects to copy, so the trial is the name with the most characters that need encoding.
            let trial = jobs.iter().map(|job| &job.path).max_by_key(|path| unusual(path.as_ref())).cloned();
            let target = self.target()?;
            let Outcome { failure, .. } = runtime::run(target.put_all(jobs, Arc::clone(stop)))?;
            if let Some(failure) = failure {
                return Err(self.failed(failure));
            }
            if let Some(from) = trial {
                let to = self.path_under(staged, ".trial")?;
                self.copy(vec![(from, to)])?;
            }
        }
        Ok(())
    }

    /// A number that changes when any object below the store is put or removed. It does not depend on the order of
    /// the listing.
    pub(crate) fn fingerprint(&self) -> Result<u64> {
        let found = self.client.walk(self.path("")?)?.map_err(|failure| self.failed(failure))?;
        let one = |(path, version): (Path, Version)| {
            let mut hasher = DefaultHasher::new();
            (path.as_ref(), version).hash(&mut hasher);
            hasher.finish()
        };
        Ok(found.into_iter().map(one).fold(0, u64::wrapping_add))
    }

    /// Fails if another writer has changed the store since it was examined.
    pub(super) fn check_same(&self, present: &Present) -> Result<()> {
        if let Some(fingerprint) = present.fingerprint
            && self.fingerprint()? != fingerprint
        {
            return Err(self.raced());
        }
        if let (Some(version), false) = (&present.object, self.key.is_empty()) {
            match self.client.stat_all(vec![self.path("")?])?.pop() {
                Some(Ok(found)) if found.is_same(version) => {}
                Some(Err(failure)) if !matches!(failure, Failure::Missing) => {
                    return Err(self.failed(failure));
                }
                _ => return Err(self.raced()),
            }
        }
        Ok(())
    }

    /// Hides the old store, copies the new one into place and makes it visible. Returns its objects. The server
    /// copies, so no bytes are transferred.
    fn exchange(
        &self,
        folder: &LocalPath,
        staged: &str,
        last: &[&str],
        replaced: &[&str],
    ) -> Result<HashSet<Path>> {
        let mut files = Vec::new();
        collect(folder, "", &mut files)?;
        let mut stages: Vec<Vec<(Path, Path)>> = vec![Vec::new(); last.len() + 1];
        let mut kept = HashSet::new();
        for (key, _) in &files {
            let to = self.path(key)?;
            kept.insert(to.clone());
            stages[rank(key, last)].push((self.path_under(staged, key)?, to));
        }
        // Remove them in reverse order of their upload.
        let old = self.objects("")?;
        for name in replaced.iter().rev() {
            // A name is that of an object or of a folder.
            let visible = self.path(name)?;
            self.remove(old.iter().filter(|path| path.prefix_matches(&visible)).cloned().collect())?;
        }
        for stage in stages {
            self.copy(stage)?;
        }
        Ok(kept)
    }

    /// Removes the objects of the old store that the new one does not have.
    fn remove_except(&self, kept: &HashSet<Path>, was_file: bool) -> Result<()> {
        // Some servers take the removal of an absent object of this name for the removal of the folder, and refuse it.
        let mut others = if was_file && !self.key.is_empty() { vec![self.path("")?] } else { Vec::new() };
        others.extend(self.objects("")?.into_iter().filter(|path| !kept.contains(path)));
        self.remove(others)
    }

    fn copy(&self, copies: Vec<(Path, Path)>) -> Result<()> {
        let Target { store, .. } = self.target()?;
        let copy = async move {
            let each = copies.into_iter().map(|(from, to)| {
                let store = Arc::clone(&store);
                async move { store.copy(&from, &to).await }
            });
            stream::iter(each).buffered(AT_ONCE).try_collect::<Vec<()>>().await.map_err(Failure::from)
        };
        runtime::run(copy)?.map(|_| ()).map_err(|failure| self.failed(failure))
    }

    fn remove_under(&self, root: &str) -> Result<()> {
        let found = self.client.walk(self.path_under(root, "")?)?.map_err(|failure| self.failed(failure))?;
        self.remove(found.into_iter().map(|(path, _)| path).collect())
    }
}

/// How many characters of a key must be encoded in a URL.
fn unusual(key: &str) -> usize {
    key.bytes().filter(|byte| !byte.is_ascii_alphanumeric() && !b"/-._~".contains(byte)).count()
}

/// A random number, so that no other writer uses the same one.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().build_hasher().finish()
}
