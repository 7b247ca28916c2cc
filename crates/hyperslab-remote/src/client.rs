//! Requests to one server or bucket: limits their number and bytes, counts them, and works after a fork.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt};
use hyperslab_core::{Error, Result};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore};
use tokio::sync::Semaphore;

use crate::cost::Cost;
use crate::failure::Failure;
use crate::meter::{Meter, Traffic};
use crate::runtime;
use crate::wire::Wire;

/// The maximum number of requests in flight.
const REQUESTS: usize = 64;
/// The limit for bytes in flight is `UNITS` units of `UNIT` bytes.
const UNIT: u64 = 64 << 10;
const UNITS: u32 = 2048;
/// A broken response is requested again up to `TRIES` times, unless the earlier attempts took longer than `TRY_TIME_LIMIT`.
const TRIES: u32 = 3;
const TRY_TIME_LIMIT: Duration = Duration::from_secs(20);
/// The pause before a listing is requested again, times the number of attempts.
const PAUSE: Duration = Duration::from_millis(100);
/// The largest object to read whole. Larger ones are read by ranges.
const MAX_WHOLE: u64 = 4 << 30;

/// Builds the client library's store.
pub(crate) type Build = dyn Fn() -> Result<Arc<dyn ObjectStore>> + Send + Sync;

/// A server or bucket.
pub(crate) struct Client {
    build: Box<Build>,
    /// The store and the process that created it: connections do not survive a fork.
    current: Mutex<Option<(u32, Arc<dyn ObjectStore>)>>,
    limits: Arc<Limits>,
    pub(crate) wire: Wire,
    /// The measured cost of a request.
    pub(crate) cost: Arc<Cost>,
    /// Whether objects can be listed.
    pub(crate) lists: bool,
}

#[derive(Debug)]
struct Limits {
    requests: Semaphore,
    units: Semaphore,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("traffic", &self.traffic()).finish_non_exhaustive()
    }
}

/// A range of an object's bytes.
#[derive(Debug, Clone)]
pub(crate) struct Fetched {
    pub(crate) bytes: Bytes,
    /// The offset of the bytes.
    pub(crate) start: u64,
    pub(crate) version: Version,
}

/// Identifies a version of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    pub(crate) size: u64,
    pub(crate) tag: Option<String>,
    /// Google's generation number.
    pub(crate) generation: Option<String>,
    /// The modification time in seconds since 1970; zero if the server does not send it.
    pub(crate) modified: i64,
}

impl Version {
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        Self {
            size: meta.size,
            tag: meta.e_tag.clone(),
            generation: meta.version.clone(),
            modified: meta.last_modified.timestamp(),
        }
    }

    /// The version of an object that was put.
    pub(crate) fn of_put(size: u64, done: object_store::PutResult) -> Self {
        Self { size, tag: done.e_tag, generation: done.version, modified: 0 }
    }

    /// Returns true if both are the same object, as far as their properties show.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let same = match (&self.tag, &other.tag) {
            (Some(tag), Some(other)) => tag == other,
            (None, None) => self.modified == other.modified,
            _ => false,
        };
        same && self.size == other.size
    }

    /// The tag, if servers can compare it: weak tags never match.
    pub(crate) fn strong_tag(&self) -> Option<String> {
        self.tag.clone().filter(|tag| !tag.starts_with("W/"))
    }
}

/// A request for bytes.
#[derive(Debug, Clone)]
pub(crate) struct Get {
    pub(crate) path: Path,
    pub(crate) range: Option<GetRange>,
    /// The expected version, if known.
    pub(crate) version: Option<Version>,
}

impl Get {
    pub(crate) fn whole(path: Path) -> Self {
        Self { path, range: None, version: None }
    }

    pub(crate) fn bounded(path: Path, range: Range<u64>, version: Option<Version>) -> Self {
        Self { path, range: Some(GetRange::Bounded(range)), version }
    }

    fn units(&self) -> u32 {
        let bytes = match &self.range {
            Some(GetRange::Bounded(range)) => range.end.saturating_sub(range.start),
            Some(GetRange::Suffix(length)) => *length,
            // The size is unknown. It is most likely a chunk.
            _ => 1 << 20,
        };
        u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(UNITS).clamp(1, UNITS)
    }
}

impl Client {
    pub(crate) fn new(lists: bool, build: Box<Build>, wire: Wire, cost: Cost) -> Self {
        let limits = Limits { requests: Semaphore::new(REQUESTS), units: Semaphore::new(UNITS as usize) };
        Self { build, current: Mutex::new(None), limits: Arc::new(limits), wire, cost: Arc::new(cost), lists }
    }

    pub(crate) fn store(&self) -> Result<Arc<dyn ObjectStore>> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        match &*current {
            Some((owner, store)) if *owner == process => Ok(Arc::clone(store)),
            _ => {
                let store = (self.build)()?;
                // Never drop a parent process's store: its connections must not be closed here.
                std::mem::forget(current.replace((process, Arc::clone(&store))));
                Ok(store)
            }
        }
    }

    /// The traffic so far.
    pub(crate) fn traffic(&self) -> Traffic {
        self.wire.meter.traffic()
    }

    /// Runs one future per item concurrently and waits for all of them. Results are in the order of the items.
    fn round<I, T, F>(&self, items: Vec<I>, each: impl Fn(Request, I) -> F) -> Result<Vec<Result<T, Failure>>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        if items.is_empty() {
            return Ok(Vec::new());
        }
        self.wire.meter.round();
        let store = self.store()?;
        let request = || Request {
            store: Arc::clone(&store),
            limits: Arc::clone(&self.limits),
            meter: self.wire.meter.clone(),
            cost: Arc::clone(&self.cost),
        };
        let futures: Vec<F> = items.into_iter().map(|item| each(request(), item)).collect();
        runtime::run_reads(futures_util::stream::iter(futures).buffered(REQUESTS).collect::<Vec<_>>())
    }

    /// Sends all of these requests at once.
    pub(crate) fn get_all(&self, gets: Vec<Get>) -> Result<Vec<Result<Fetched, Failure>>> {
        self.round(gets, |request, get| async move { request.get(get).await })
    }

    /// Queries the sizes and versions of these objects at once.
    pub(crate) fn stat_all(&self, paths: Vec<Path>) -> Result<Vec<Result<Version, Failure>>> {
        self.round(paths, |request, path| async move { request.stat(path).await })
    }

    /// Lists each of these prefixes: the names of sub-prefixes, and objects with their sizes.
    pub(crate) fn list_all(&self, prefixes: Vec<Path>) -> Result<Vec<Result<Listed, Failure>>> {
        self.round(prefixes, |request, prefix| async move { request.list(prefix).await })
    }

    /// Lists all objects below a prefix, with their versions.
    pub(crate) fn walk(&self, prefix: Path) -> Result<Result<Vec<(Path, Version)>, Failure>> {
        self.walk_some(prefix, usize::MAX)
    }

    /// Like [`walk`](Self::walk), but stops after this many objects and one more.
    pub(crate) fn walk_some(
        &self,
        prefix: Path,
        most: usize,
    ) -> Result<Result<Vec<(Path, Version)>, Failure>> {
        let most = most.saturating_add(1);
        let mut answers =
            self.round(vec![prefix], |request, prefix| async move { request.walk(prefix, most).await })?;
        answers.pop().ok_or_else(|| Error::invalid("a request ended without a response"))
    }
}

/// The entries directly below a prefix.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listed {
    pub(crate) prefixes: Vec<Path>,
    pub(crate) objects: Vec<(Path, Version)>,
}

/// The shared state that a request needs.
struct Request {
    store: Arc<dyn ObjectStore>,
    limits: Arc<Limits>,
    meter: Meter,
    cost: Arc<Cost>,
}

impl Request {
    async fn get(&self, get: Get) -> Result<Fetched, Failure> {
        let _bytes = self.limits.units.acquire_many(get.units()).await.map_err(closed)?;
        let _request = self.limits.requests.acquire().await.map_err(closed)?;
        match self.get_again(&get).await {
            Err(Failure::NoRanges) if matches!(get.range, Some(GetRange::Suffix(_))) => {
                let Some(GetRange::Suffix(length)) = get.range else { return Err(Failure::Missing) };
                let whole = self.get_once(&Get { range: None, ..get }).await?;
                let start = (whole.bytes.len() as u64).saturating_sub(length);
                Ok(Fetched { bytes: whole.bytes.slice(start as usize..), start, version: whole.version })
            }
            // Some servers do not support suffix ranges. Determine the object's size first.
            Err(Failure::Other(..)) if matches!(get.range, Some(GetRange::Suffix(_))) => {
                let Some(GetRange::Suffix(length)) = get.range else { return Err(Failure::Missing) };
                let size = self.head(&get.path).await?.size;
                let range = size.saturating_sub(length)..size;
                self.get_once(&Get { range: Some(GetRange::Bounded(range)), ..get }).await
            }
            answer => answer,
        }
    }

    /// Sends a request, and repeats it if the response was broken.
    async fn get_again(&self, get: &Get) -> Result<Fetched, Failure> {
        let started = Instant::now();
        let mut tries = 1;
        loop {
            match self.get_once(get).await {
                Err(Failure::Broken(_)) if tries < TRIES && started.elapsed() < TRY_TIME_LIMIT => tries += 1,
                answer => return answer,
            }
        }
    }

    async fn get_once(&self, get: &Get) -> Result<Fetched, Failure> {
        let known = get.version.as_ref();
        let options = GetOptions {
            range: get.range.clone(),
            if_match: known.and_then(Version::strong_tag),
            ..GetOptions::default()
        };
        let started = Instant::now();
        let answer = self.store.get_opts(&get.path, options).await?;
        let waited = started.elapsed();
        let (range, version) = (answer.range.clone(), Version::of(&answer.meta));
        if known.is_some_and(|known| !known.is_same(&version)) {
            return Err(Failure::Changed);
        }
        let length = range.end.saturating_sub(range.start);
        if length > MAX_WHOLE {
            return Err(Failure::Other(
                std::io::ErrorKind::FileTooLarge,
                format!("an object of {length} bytes is too large to be read whole"),
            ));
        }
        let mut bytes = BytesMut::new();
        let mut body = answer.into_stream();
        let cut_short = |error: object_store::Error| match Failure::from(error) {
            // The client library already retries if the object has a tag.
            Failure::Other(std::io::ErrorKind::Other, text) if version.tag.is_none() => Failure::Broken(text),
            Failure::Broken(text) if version.tag.is_some() => Failure::Other(std::io::ErrorKind::Other, text),
            failure => failure,
        };
        while let Some(piece) = body.try_next().await.map_err(cut_short)? {
            self.meter.received(piece.len() as u64);
            if bytes.len() as u64 + piece.len() as u64 > length {
                return Err(wrong_length(length, bytes.len() + piece.len()));
            }
            bytes.extend_from_slice(&piece);
        }
        if bytes.len() as u64 != length {
            return Err(wrong_length(length, bytes.len()));
        }
        self.cost.answered(waited, length, started.elapsed().saturating_sub(waited));
        Ok(Fetched { bytes: bytes.freeze(), start: range.start, version })
    }

    async fn head(&self, path: &Path) -> Result<Version, Failure> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        Ok(Version::of(&self.store.get_opts(path, options).await?.meta))
    }

    async fn stat(&self, path: Path) -> Result<Version, Failure> {
        let _request = self.limits.requests.acquire().await.map_err(closed)?;
        self.head(&path).await
    }

    async fn list(&self, prefix: Path) -> Result<Listed, Failure> {
        let _request = self.limits.requests.acquire().await.map_err(closed)?;
        let listed = again(|| self.store.list_with_delimiter(Some(&prefix))).await?;
        Ok(Listed {
            prefixes: listed.common_prefixes,
            objects: listed.objects.into_iter().map(with_version).collect(),
        })
    }

    async fn walk(&self, prefix: Path, most: usize) -> Result<Vec<(Path, Version)>, Failure> {
        let _request = self.limits.requests.acquire().await.map_err(closed)?;
        again(|| self.store.list(Some(&prefix)).take(most).map_ok(with_version).try_collect()).await
    }
}

fn with_version(meta: ObjectMeta) -> (Path, Version) {
    let version = Version::of(&meta);
    (meta.location, version)
}

/// Sends a listing request, and repeats it if the response is cut off.
async fn again<T, F>(send: impl Fn() -> F) -> Result<T, Failure>
where
    F: Future<Output = object_store::Result<T>>,
{
    let started = Instant::now();
    let mut tries = 1;
    loop {
        match send().await.map_err(Failure::from) {
            Err(Failure::Other(std::io::ErrorKind::Other, _) | Failure::Broken(_))
                if tries < TRIES && started.elapsed() < TRY_TIME_LIMIT =>
            {
                tokio::time::sleep(PAUSE * tries).await;
                tries += 1;
            }
            answer => return answer,
        }
    }
}

fn closed(_: tokio::sync::AcquireError) -> Failure {
    Failure::Other(std::io::ErrorKind::Other, "no more requests".to_owned())
}

fn wrong_length(expected: u64, found: usize) -> Failure {
    Failure::Broken(format!("the server sent {found} bytes instead of {expected}"))
}
