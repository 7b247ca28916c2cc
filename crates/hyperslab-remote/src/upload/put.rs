//! Uploads objects: one, or many at once.

use std::io::{ErrorKind, Read};
use std::path::{Path as LocalPath, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{self, Either};
use futures_util::{StreamExt, stream};
use hyperslab_core::{Error, Result};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, GetOptions, MultipartUpload, ObjectStore, PutMode, PutMultipartOptions,
    PutOptions, PutPayload, UpdateVersion,
};

use super::AT_ONCE;
use crate::client::Version;
use crate::failure::Failure;
use crate::wire::{Condition, Wire};

/// Objects up to this size are uploaded in one request.
const ONE_REQUEST: u64 = 32 << 20;
/// The part size of larger uploads, and the number of parts in flight.
const PART: usize = 16 << 20;
const PARTS: usize = 4;
/// How often an upload checks whether it should stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The time limit for asking the server whether an upload succeeded although its response was lost.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for telling the server that an upload is aborted.
const ABORT_TIMEOUT: Duration = Duration::from_secs(20);
/// The metadata field that records the request that created an object.
const MADE_BY: &str = "hyperslabwrite";

/// The destination of objects.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) wire: Wire,
}

/// The bytes of an object.
#[derive(Debug, Clone)]
pub(super) enum Source {
    File(PathBuf, u64),
    Bytes(Bytes),
}

impl Source {
    pub(super) fn of_file(file: &LocalPath) -> Result<Self> {
        let metadata = file.metadata().map_err(|source| Error::io(file.display().to_string(), source))?;
        Ok(Self::File(file.to_owned(), metadata.len()))
    }

    const fn size(&self) -> u64 {
        match self {
            Self::File(_, size) => *size,
            Self::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

/// The condition for the object's previous state.
#[derive(Debug, Clone)]
pub(super) enum Mode {
    /// It must not exist.
    Create,
    /// It must be this version.
    Update(Version),
}

/// An object to put.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) path: Path,
    pub(super) source: Source,
    pub(super) mode: Mode,
}

/// A failed upload of one object.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) failure: Failure,
    /// The object may exist all the same, or appear later.
    pub(super) is_doubtful: bool,
}

impl From<Failure> for Failed {
    /// A failure before the request was sent.
    fn from(failure: Failure) -> Self {
        Self { failure, is_doubtful: false }
    }
}

/// The result of several uploads.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Objects that were uploaded.
    pub(super) done: Vec<Path>,
    /// Objects that may have been uploaded, although the response was lost.
    pub(super) doubtful: Vec<Path>,
    /// Objects that may have been uploaded, or belong to another writer.
    pub(super) disputed: Vec<Path>,
    /// The first failure.
    pub(super) failure: Option<Failure>,
}

fn stopped() -> Failure {
    Failure::Other(ErrorKind::Interrupted, "stopped before the end".to_owned())
}

/// Waits for a request. Drops it if the caller asks to stop.
async fn unless_stopped<T>(
    stop: &AtomicBool,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut work = std::pin::pin!(work);
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        match future::select(work, std::pin::pin!(tokio::time::sleep(POLL_INTERVAL))).await {
            Either::Left((answer, _)) => return answer,
            Either::Right(((), unfinished)) => work = unfinished,
        }
    }
}

/// A mark that identifies this request among those of all writers.
fn mark() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(count);
    hasher.write_u32(std::process::id());
    format!("{:016x}{count:x}", hasher.finish())
}

impl Target {
    /// Uploads objects, many at once. After a failure, no more uploads are started, but those in flight are awaited,
    /// because they might otherwise arrive later.
    pub(super) async fn put_all(self, jobs: Vec<Job>, stop: Arc<AtomicBool>) -> Outcome {
        let failed = Arc::new(AtomicBool::new(false));
        let each = jobs.into_iter().map(|job| {
            let (target, stop, failed) = (self.clone(), Arc::clone(&stop), Arc::clone(&failed));
            async move {
                if failed.load(Ordering::Relaxed) {
                    return None;
                }
                let result = target.put(&job, &stop).await;
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                Some((job.path, result))
            }
        });
        let mut all = Outcome::default();
        let mut answers = stream::iter(each).buffer_unordered(AT_ONCE);
        while let Some(answer) = answers.next().await {
            let Some((path, result)) = answer else { continue };
            match result {
                Ok(_) => all.done.push(path),
                Err(Failed { failure, is_doubtful }) => {
                    match (is_doubtful, failure.is_refusal()) {
                        (true, false) => all.doubtful.push(path),
                        (true, true) => all.disputed.push(path),
                        (false, _) => {}
                    }
                    all.failure.get_or_insert(failure);
                }
            }
        }
        all
    }

    /// Uploads one object. Returns its version.
    ///
    /// If the response to an attempt was lost, the mark of the existing object shows whether that attempt succeeded.
    async fn put(&self, job: &Job, stop: &AtomicBool) -> Result<Version, Failed> {
        let mark = mark();
        match self.send(job, &mark, stop).await {
            Ok(version) => Ok(version),
            Err(failure) if failure.is_interruption() => Err(Failed { failure, is_doubtful: true }),
            Err(failure) => self.settle(job, &mark, failure).await,
        }
    }

    /// Like [`put`](Self::put), for an object that makes others visible. Even after an interruption, this asks whether
    /// the object exists.
    pub(super) async fn put_decisive(&self, job: &Job, stop: &AtomicBool) -> Result<Version, Failed> {
        if stop.load(Ordering::Relaxed) {
            return Err(stopped().into());
        }
        let mark = mark();
        match self.send(job, &mark, stop).await {
            Ok(version) => Ok(version),
            Err(failure) => self.settle(job, &mark, failure).await,
        }
    }

    /// Finds out whether a failed upload succeeded after all.
    async fn settle(&self, job: &Job, mark: &str, failure: Failure) -> Result<Version, Failed> {
        let found = tokio::time::timeout(CHECK_TIMEOUT, self.find_mark(&job.path)).await;
        let is_doubtful = match found {
            Ok(Ok(Some((version, Some(own))))) if own == mark => return Ok(version),
            // The request may still be on its way.
            Ok(Ok(None | Some((_, Some(_))))) => failure.is_interruption() || failure.is_timeout(),
            // Objects of other programs have no mark, and some servers do not keep it.
            Ok(Ok(Some((version, None)))) => {
                let is_old = matches!(&job.mode, Mode::Update(old) if old.is_same(&version));
                !is_old || failure.is_interruption() || failure.is_timeout()
            }
            Ok(Err(_)) | Err(_) => true,
        };
        Err(Failed { failure, is_doubtful })
    }

    /// Sends one object: in one request, or in parts that become an object when all are complete.
    async fn send(&self, job: &Job, mark: &str, stop: &AtomicBool) -> Result<Version, Failure> {
        let attributes: Attributes =
            [(Attribute::Metadata(MADE_BY.into()), mark.to_owned())].into_iter().collect();
        match &job.source {
            Source::File(file, size) if *size > ONE_REQUEST => {
                self.put_in_parts(job, file, attributes, stop).await
            }
            source => unless_stopped(stop, self.put_whole(job, source, attributes)).await,
        }
    }

    async fn put_whole(
        &self,
        job: &Job,
        source: &Source,
        attributes: Attributes,
    ) -> Result<Version, Failure> {
        let bytes = match source {
            Source::Bytes(bytes) => bytes.clone(),
            Source::File(file, _) => Bytes::from(std::fs::read(file).map_err(|error| local(file, &error))?),
        };
        let mode = match &job.mode {
            Mode::Create => PutMode::Create,
            Mode::Update(version) => PutMode::Update(UpdateVersion {
                e_tag: version.tag.clone(),
                version: version.generation.clone(),
            }),
        };
        let size = bytes.len() as u64;
        self.wire.meter.sends(size);
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        let done = self.store.put_opts(&job.path, PutPayload::from(bytes), options).await?;
        Ok(Version::of_put(size, done))
    }

    async fn put_in_parts(
        &self,
        job: &Job,
        file: &LocalPath,
        attributes: Attributes,
        stop: &AtomicBool,
    ) -> Result<Version, Failure> {
        self.check(job).await?;
        let size = job.source.size();
        let mut opened = std::fs::File::open(file).map_err(|error| local(file, &error))?;
        let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
        let mut upload = self.store.put_multipart_opts(&job.path, options).await?;
        let condition = match &job.mode {
            Mode::Create => Some(Condition::Absent),
            Mode::Update(version) => version.strong_tag().map(Condition::Tag),
        };
        let result = unless_stopped(stop, async {
            self.put_parts(&mut *upload, &mut opened, file).await?;
            // For servers without conditions on multipart uploads, check beforehand.
            self.check(job).await?;
            self.wire.expect(&job.path, condition);
            let completed = upload.complete().await;
            self.wire.expect(&job.path, None);
            match completed {
                Err(object_store::Error::Precondition { .. }) if matches!(job.mode, Mode::Create) => {
                    Err(Failure::Other(ErrorKind::AlreadyExists, String::new()))
                }
                completed => Ok(Version::of_put(size, completed?)),
            }
        })
        .await;
        if result.is_err() {
            self.wire.expect(&job.path, None);
            // The parts are useless now. Report the first error, not a failure to abort.
            let _ = tokio::time::timeout(ABORT_TIMEOUT, upload.abort()).await;
        }
        result
    }

    async fn put_parts(
        &self,
        upload: &mut dyn MultipartUpload,
        opened: &mut std::fs::File,
        file: &LocalPath,
    ) -> Result<(), Failure> {
        loop {
            let mut parts = Vec::new();
            while parts.len() < PARTS {
                let mut part = Vec::with_capacity(PART);
                let read = opened.by_ref().take(PART as u64).read_to_end(&mut part);
                read.map_err(|error| local(file, &error))?;
                if part.is_empty() {
                    break;
                }
                self.wire.meter.sends(part.len() as u64);
                parts.push(upload.put_part(PutPayload::from(part)));
            }
            if parts.is_empty() {
                return Ok(());
            }
            future::try_join_all(parts).await?;
        }
    }

    /// Checks the condition for the object's previous state.
    async fn check(&self, job: &Job) -> Result<(), Failure> {
        match (self.version(&job.path).await?, &job.mode) {
            (None, Mode::Create) => Ok(()),
            (Some(_), Mode::Create) => Err(Failure::Other(ErrorKind::AlreadyExists, String::new())),
            (Some(found), Mode::Update(wanted)) if found.is_same(wanted) => Ok(()),
            (_, Mode::Update(_)) => Err(Failure::Changed),
        }
    }

    /// The current version of the object.
    async fn version(&self, path: &Path) -> Result<Option<Version>, Failure> {
        Ok(self.find_mark(path).await?.map(|(version, _)| version))
    }

    /// The current version of the object, and the mark of the request that created it.
    async fn find_mark(&self, path: &Path) -> Result<Option<(Version, Option<String>)>, Failure> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        match self.store.get_opts(path, options).await {
            Ok(found) => {
                let mark = found.attributes.get(&Attribute::Metadata(MADE_BY.into()));
                Ok(Some((Version::of(&found.meta), mark.map(|mark| mark.as_ref().to_owned()))))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn local(file: &LocalPath, error: &std::io::Error) -> Failure {
    Failure::Other(error.kind(), format!("{}: {error}", file.display()))
}
