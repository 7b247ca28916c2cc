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

/// The key of an object that is copied to see whether the server copies objects.
const TRIAL: &str = ".trial";

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
        let staged = self.beside(&format!("{:016x}.part", random()))?;
        // A change before the claim is noticed here as well. Every listing is a round trip for each thousand objects.
        let complete = self.stage(folder, &staged, stop).and_then(|()| self.check_same(present));
        let old = match complete {
            Ok(old) => old,
            Err(error) => {
                // The staged objects were never visible.
                let _ = self.remove_under(&staged);
                return Err(error);
            }
        };
        let mut files = Vec::new();
        collect(folder, "", &mut files)?;
        let keys: Vec<String> = files.into_iter().map(|(key, _)| key).collect();
        let base = self.url.strip_suffix(self.key.as_str()).unwrap_or(&self.url);
        let kept = self.exchange(&keys, &staged, &old, last, replaced).map_err(|error| {
            self.half_done(&format!(
                "{error}; the old store is gone and the new one is not visible yet, but complete at {base}{staged}"
            ))
        })?;
        let was_file = present.object.is_some();
        let removed = self
            .remove_except(old, &kept, replaced, was_file)
            .and_then(|()| self.remove_staged(&keys, &staged));
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
                let to = self.path_under(staged, TRIAL)?;
                self.copy(vec![(from, to)])?;
            }
        }
        Ok(())
    }

    /// A number that changes when any object below the store is put or removed. It does not depend on the order of
    /// the listing.
    pub(crate) fn fingerprint(&self) -> Result<u64> {
        self.listed_fingerprint().map(|(_, fingerprint)| fingerprint)
    }

    /// The objects below the store, and their [fingerprint](Self::fingerprint).
    fn listed_fingerprint(&self) -> Result<(Vec<Path>, u64)> {
        let found = self.client.walk(self.path("")?)?.map_err(|failure| self.failed(failure))?;
        let paths = found.iter().map(|(path, _)| path.clone()).collect();
        let one = |(path, version): (Path, Version)| {
            let mut hasher = DefaultHasher::new();
            (path.as_ref(), version).hash(&mut hasher);
            hasher.finish()
        };
        Ok((paths, found.into_iter().map(one).fold(0, u64::wrapping_add)))
    }

    /// Fails if another writer has changed the store since it was examined. Returns its objects.
    pub(super) fn check_same(&self, present: &Present) -> Result<Vec<Path>> {
        let mut objects = Vec::new();
        if let Some(fingerprint) = present.fingerprint {
            let (found, now) = self.listed_fingerprint()?;
            if now != fingerprint {
                return Err(self.raced());
            }
            objects = found;
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
        Ok(objects)
    }

    /// Hides the old store, copies the new one into place and makes it visible. Returns its objects. The server
    /// copies, so no bytes are transferred.
    fn exchange(
        &self,
        keys: &[String],
        staged: &str,
        old: &[Path],
        last: &[&str],
        replaced: &[&str],
    ) -> Result<HashSet<Path>> {
        let mut stages: Vec<Vec<(Path, Path)>> = vec![Vec::new(); last.len() + 1];
        let mut kept = HashSet::new();
        for key in keys {
            let to = self.path(key)?;
            kept.insert(to.clone());
            stages[rank(key, last)].push((self.path_under(staged, key)?, to));
        }
        // Remove them in reverse order of their upload.
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

    /// Removes the objects of the old store that the new one does not have. Those that made it visible are gone already.
    fn remove_except(
        &self,
        old: Vec<Path>,
        kept: &HashSet<Path>,
        replaced: &[&str],
        was_file: bool,
    ) -> Result<()> {
        let gone = replaced.iter().map(|name| self.path(name)).collect::<Result<Vec<Path>>>()?;
        let is_left =
            |path: &Path| !kept.contains(path) && !gone.iter().any(|name| path.prefix_matches(name));
        // Some servers take the removal of an absent object of this name for the removal of the folder, and refuse it.
        let mut others = if was_file && !self.key.is_empty() { vec![self.path("")?] } else { Vec::new() };
        others.extend(old.into_iter().filter(is_left));
        self.remove(others)
    }

    /// Removes the objects that were staged.
    fn remove_staged(&self, keys: &[String], staged: &str) -> Result<()> {
        let trial = std::iter::once(TRIAL).filter(|_| !keys.is_empty());
        let all = keys.iter().map(String::as_str).chain(trial);
        self.remove(all.map(|key| self.path_under(staged, key)).collect::<Result<_>>()?)
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
