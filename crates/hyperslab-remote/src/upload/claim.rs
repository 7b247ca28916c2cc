//! The object beside a directory store that excludes other writers while it changes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hyperslab_core::{Error, Result};
use object_store::path::Path;

use super::put::{Failed, Job, Mode, Source};
use super::{ErrorKind, Failure, UNDO_TIME, Upload, runtime};

/// A claim on a store. Released when it is dropped.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    upload: &'a Upload,
    path: Path,
}

impl Upload {
    /// A key beside the store: `.NAME.ENDING` in the same folder.
    pub(super) fn beside(&self, ending: &str) -> Result<String> {
        let (folder, name) = self.key.rsplit_once('/').unwrap_or(("", &self.key));
        if name.is_empty() {
            let text = "changing a store that is a whole bucket";
            return Err(Error::unsupported(self.url.as_str(), text));
        }
        let own = format!(".{name}.{ending}");
        Ok(if folder.is_empty() { own } else { format!("{folder}/{own}") })
    }

    /// Excludes other writers from the store.
    ///
    /// # Errors
    ///
    /// [`Io`](Error::Io) if another writer holds the claim.
    pub(super) fn claim(&self, stop: &Arc<AtomicBool>) -> Result<Claim<'_>> {
        let key = self.beside("claim")?;
        let path = self.path_under("", &key)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let text = format!("{{\"claimed_at\": {now}, \"process\": {}}}\n", std::process::id());
        let job = Job { path: path.clone(), source: Source::Bytes(Bytes::from(text)), mode: Mode::Create };
        let (target, stop) = (self.target()?, Arc::clone(stop));
        let base = self.url.strip_suffix(self.key.as_str()).unwrap_or(&self.url);
        match runtime::run(async move { target.put_decisive(&job, &stop).await })? {
            Ok(_) => Ok(Claim { upload: self, path }),
            Err(Failed { failure: Failure::Other(ErrorKind::AlreadyExists, _), .. }) => {
                let text = format!(
                    "another writer is changing it; if none is, one was killed: remove {base}{key} and try again"
                );
                Err(Error::io(self.url.as_str(), std::io::Error::new(ErrorKind::ResourceBusy, text)))
            }
            Err(Failed { failure, is_doubtful: false }) => Err(self.failed(failure)),
            Err(Failed { failure, is_doubtful: true }) => Err(self.half_done(&format!(
                "{}; if {base}{key} exists and there is no other writer, remove it",
                self.failed(failure)
            ))),
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // If this fails, the next writer's error names the remaining object.
        let _ = self.upload.remove_within(UNDO_TIME, vec![self.path.clone()]);
    }
}
