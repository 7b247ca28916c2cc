//! Stores that are put into a bucket: visible whole or not at all.
//!
//! A store is built on this machine and then uploaded. A file is one object, which appears when its upload completes. A
//! directory appears with the objects by which it is recognised: they are uploaded last.

use std::collections::HashSet;
use std::io::{ErrorKind, Read};
use std::path::Path as LocalPath;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use hyperslab_core::{Error, Result};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};

use crate::client::Client;
use crate::failure::Failure;
use crate::meter::Meter;
use crate::runtime;

/// Objects up to this size are put in one request, which the server refuses when another object is there.
const ONE_REQUEST: u64 = 64 << 20;
/// Parts of larger ones, and how many are on their way.
const PART: usize = 16 << 20;
const PARTS: usize = 4;
/// Objects of a directory that are on their way.
const OBJECTS: usize = 32;

/// An upload to a bucket.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) client: Arc<Client>,
    /// The key of the file, or of the directory.
    pub(crate) key: String,
    /// For messages.
    pub(crate) url: String,
    /// Replace what is there.
    pub(crate) replace: bool,
}

/// An object and the file that holds its bytes.
#[derive(Debug, Clone)]
struct Source {
    path: Path,
    file: std::path::PathBuf,
    size: u64,
}

impl Upload {
    fn path(&self, key: &str) -> Result<Path> {
        let whole = match (self.key.is_empty(), key.is_empty()) {
            (true, _) => key.to_owned(),
            (false, true) => self.key.clone(),
            (false, false) => format!("{}/{key}", self.key),
        };
        Path::parse(&whole)
            .map_err(|_| Error::invalid(format!("{}: {key:?} is not the name of an object", self.url)))
    }

    fn failed(&self, failure: Failure) -> Error {
        match failure {
            Failure::Other(ErrorKind::AlreadyExists, _) => Error::Exists { path: self.url.as_str().into() },
            failure => failure.to_error(&self.url),
        }
    }

    /// Uploads a file as one object.
    pub(crate) fn file(&self, file: &LocalPath, stop: &Arc<AtomicBool>) -> Result<()> {
        let source = self.source("", file)?;
        let (target, stop, mode) = (self.target()?, Arc::clone(stop), self.mode());
        runtime::run(async move { put(&target, source, mode, &stop).await })?
            .map_err(|failure| self.failed(failure))?;
        // It may have been a directory before.
        if self.replace { self.remove(self.objects("")?) } else { Ok(()) }
    }

    /// Uploads the files of a folder. Those whose first name is among `last` come last, in that order: they make the store
    /// visible. Those of `replaced` make the old store visible.
    pub(crate) fn folder(
        &self,
        folder: &LocalPath,
        last: &[&str],
        replaced: &[&str],
        stop: &Arc<AtomicBool>,
    ) -> Result<()> {
        let mut files = Vec::new();
        collect(folder, "", &mut files)?;
        let rank = |key: &str| {
            let first = key.split('/').next().unwrap_or_default();
            last.iter().position(|name| *name == first).map_or(0, |place| place + 1)
        };
        let mut stages: Vec<Vec<Source>> = vec![Vec::new(); last.len() + 1];
        for (key, file) in &files {
            stages[rank(key)].push(self.source(key, file)?);
        }
        if self.replace {
            self.hide(replaced)?;
            self.hide(last)?;
        }
        let mut uploaded: HashSet<Path> = HashSet::new();
        for stage in stages {
            let put = put_all(self.target()?, stage, self.mode(), Arc::clone(stop));
            let Put { done, doubtful, failure } = runtime::run(put)?;
            uploaded.extend(done);
            if let Some(failure) = failure {
                return Err(self.taken_back(failure, uploaded, doubtful));
            }
        }
        if self.replace { self.remove_others(&uploaded) } else { Ok(()) }
    }

    /// The error of a failed upload, after what was uploaded of a new store is removed. Nobody has seen it.
    fn taken_back(&self, failure: Failure, uploaded: HashSet<Path>, doubtful: Vec<Path>) -> Error {
        let error = self.failed(failure);
        if self.replace || uploaded.is_empty() && doubtful.is_empty() {
            return error;
        }
        match self.remove(uploaded.into_iter().chain(doubtful).collect()) {
            Ok(()) => error,
            Err(removing) => Error::io(
                self.url.as_str(),
                std::io::Error::other(format!("{error}; what was uploaded is still there: {removing}")),
            ),
        }
    }

    fn target(&self) -> Result<Target> {
        Ok(Target { store: self.client.store()?, meter: self.client.meter.clone() })
    }

    fn mode(&self) -> PutMode {
        if self.replace { PutMode::Overwrite } else { PutMode::Create }
    }

    fn source(&self, key: &str, file: &LocalPath) -> Result<Source> {
        let metadata = file.metadata().map_err(|source| Error::io(file.display().to_string(), source))?;
        Ok(Source { path: self.path(key)?, file: file.to_owned(), size: metadata.len() })
    }

    /// Removes the objects that make the old store visible, so that readers never see a mixture of old and new objects.
    fn hide(&self, last: &[&str]) -> Result<()> {
        // It may have been a file before.
        let mut paths = if self.key.is_empty() { Vec::new() } else { vec![self.path("")?] };
        for name in last.iter().rev() {
            paths.push(self.path(name)?);
            paths.extend(self.objects(name)?);
        }
        self.remove(paths)
    }

    /// Every object under a key.
    fn objects(&self, key: &str) -> Result<Vec<Path>> {
        let found = self.client.walk(self.path(key)?)?.map_err(|failure| self.failed(failure))?;
        Ok(found.into_iter().map(|(path, _)| path).collect())
    }

    fn remove_others(&self, kept: &HashSet<Path>) -> Result<()> {
        let others = self.objects("")?.into_iter().filter(|path| !kept.contains(path)).collect();
        self.remove(others)
    }

    fn remove(&self, paths: Vec<Path>) -> Result<()> {
        let target = self.target()?;
        let remove = async move {
            let each = paths.into_iter().map(|path| {
                let target = target.clone();
                async move {
                    target.meter.request();
                    match target.store.delete(&path).await {
                        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                        Err(error) => Err(Failure::from(error)),
                    }
                }
            });
            futures_util::stream::iter(each).buffered(OBJECTS).try_collect::<Vec<()>>().await.map(|_| ())
        };
        runtime::run(remove)?.map_err(|failure| self.failed(failure))
    }
}

/// The files of a folder, with their keys.
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

/// Where objects go.
#[derive(Debug, Clone)]
struct Target {
    store: Arc<dyn ObjectStore>,
    meter: Meter,
}

impl Target {
    async fn has(&self, path: &Path) -> Result<bool, Failure> {
        self.meter.request();
        match self.store.head(path).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// What became of a list of uploads.
#[derive(Debug, Default)]
struct Put {
    /// These objects are there.
    done: Vec<Path>,
    /// These may have arrived although the answer did not.
    doubtful: Vec<Path>,
    /// The first failure.
    failure: Option<Failure>,
}

/// Puts objects, many at once. After a failure nothing more is started, and what is on its way is waited for: it could
/// arrive later, else.
async fn put_all(target: Target, sources: Vec<Source>, mode: PutMode, stop: Arc<AtomicBool>) -> Put {
    let failed = Arc::new(AtomicBool::new(false));
    let each = sources.into_iter().map(|source| {
        let (target, stop, failed, mode) =
            (target.clone(), Arc::clone(&stop), Arc::clone(&failed), mode.clone());
        async move {
            if failed.load(Ordering::Relaxed) {
                return None;
            }
            let path = source.path.clone();
            let result = put(&target, source, mode, &stop).await;
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            Some((path, result))
        }
    });
    let mut all = Put::default();
    let mut answers = futures_util::stream::iter(each).buffer_unordered(OBJECTS);
    while let Some(answer) = answers.next().await {
        let Some((path, result)) = answer else { continue };
        match result {
            Ok(()) => all.done.push(path),
            Err(failure) => {
                if !failure.is_refusal() {
                    all.doubtful.push(path);
                }
                all.failure.get_or_insert(failure);
            }
        }
    }
    all
}

/// Puts one object: in one request, or in parts that become an object when all are there.
async fn put(target: &Target, source: Source, mode: PutMode, stop: &AtomicBool) -> Result<(), Failure> {
    let local =
        |error: std::io::Error| Failure::Other(error.kind(), format!("{}: {error}", source.file.display()));
    let stopped = || Failure::Other(ErrorKind::Interrupted, "stopped before the end".to_owned());
    if stop.load(Ordering::Relaxed) {
        return Err(stopped());
    }
    if source.size <= ONE_REQUEST {
        let bytes = Bytes::from(std::fs::read(&source.file).map_err(local)?);
        target.meter.upload(source.size);
        target.store.put_opts(&source.path, PutPayload::from(bytes), PutOptions::from(mode)).await?;
        return Ok(());
    }
    if mode == PutMode::Create && target.has(&source.path).await? {
        return Err(Failure::Other(ErrorKind::AlreadyExists, String::new()));
    }
    let mut file = std::fs::File::open(&source.file).map_err(local)?;
    target.meter.request();
    let mut upload = target.store.put_multipart(&source.path).await?;
    let result = async {
        put_parts(&mut *upload, &mut file, &target.meter, stop).await?;
        // Another writer may have been faster.
        if mode == PutMode::Create && target.has(&source.path).await? {
            return Err(Failure::Other(ErrorKind::AlreadyExists, String::new()));
        }
        target.meter.request();
        upload.complete().await?;
        Ok(())
    }
    .await;
    if result.is_err() {
        // The parts are of no use; the error that matters is the first.
        let _ = upload.abort().await;
    }
    result
}

async fn put_parts(
    upload: &mut dyn MultipartUpload,
    file: &mut std::fs::File,
    meter: &Meter,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Other(error.kind(), error.to_string());
    loop {
        let mut parts = Vec::new();
        while parts.len() < PARTS {
            let mut part = Vec::with_capacity(PART);
            file.by_ref().take(PART as u64).read_to_end(&mut part).map_err(failed)?;
            if part.is_empty() {
                break;
            }
            meter.upload(part.len() as u64);
            parts.push(upload.put_part(PutPayload::from(part)));
        }
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Other(ErrorKind::Interrupted, "stopped before the end".to_owned()));
        }
        if parts.is_empty() {
            return Ok(());
        }
        futures_util::future::try_join_all(parts).await?;
    }
}
