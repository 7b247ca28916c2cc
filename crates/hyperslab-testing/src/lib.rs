//! Test support: storage that logs requests, so that a test can assert which bytes an operation needs.
//!
//! [`LoggedStorage`] wraps other storage; [`FaultyStorage`] fails once; [`WebServer`] is a server for remote storage,
//! with latency, limited bandwidth and faults.
#![forbid(unsafe_code)]

mod faulty;
mod server;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
pub use faulty::{Fault, Faults, FaultyBlob, FaultyStorage};
pub use server::{Answered, Behaviour, FaultRule, WebServer, WireFault};

use hyperslab_core::{Blob, ObjectStat, Result, Storage, StorageEntry};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Bytes of an object.
    Read(String, Range<u64>),
    /// A whole object, or a request for one that does not exist.
    Whole(String),
    /// The size of an object, if it exists.
    Size(String),
    /// A listing of the objects under a name.
    List(String),
}

/// The requests, in order.
#[derive(Debug, Clone, Default)]
pub struct RequestLog(Arc<Mutex<Vec<Request>>>);

impl RequestLog {
    fn held(&self) -> MutexGuard<'_, Vec<Request>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, request: Request) {
        self.held().push(request);
    }

    /// Takes the requests since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut *self.held())
    }

    /// The objects whose bytes were requested since the last call, sorted and without duplicates. Metadata documents
    /// are left out.
    #[must_use]
    pub fn objects(&self) -> Vec<String> {
        let of = |request: Request| match request {
            Request::Read(key, _) | Request::Whole(key) => Some(key),
            Request::Size(_) | Request::List(_) => None,
        };
        let document = |key: &String| {
            let last = key.rsplit('/').next().unwrap_or_default();
            last == "zarr.json" || last.starts_with(".z")
        };
        let mut objects: Vec<String> =
            self.take().into_iter().filter_map(of).filter(|key| !document(key)).collect();
        objects.sort();
        objects.dedup();
        objects
    }
}

/// Storage that logs its requests.
#[derive(Debug)]
pub struct LoggedStorage<D> {
    inner: D,
    log: RequestLog,
}

impl<D: Storage> LoggedStorage<D> {
    /// Logs the requests to `inner`.
    pub fn new(inner: D) -> Self {
        Self { inner, log: RequestLog::default() }
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> RequestLog {
        self.log.clone()
    }
}

impl<D: Storage> Storage for LoggedStorage<D> {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Blob>>> {
        let Some(inner) = self.inner.open(key)? else { return Ok(None) };
        Ok(Some(Arc::new(LoggedBlob { inner, key: key.to_owned(), log: self.log.clone() })))
    }

    fn stat(&self, key: &str) -> Result<Option<ObjectStat>> {
        self.log.note(Request::Size(key.to_owned()));
        self.inner.stat(key)
    }

    fn list(&self, key: &str) -> Result<Vec<StorageEntry>> {
        self.log.note(Request::List(key.to_owned()));
        self.inner.list(key)
    }

    fn read(&self, key: &str) -> Result<Option<Bytes>> {
        self.log.note(Request::Whole(key.to_owned()));
        self.inner.read(key)
    }
}

/// A blob that logs its requests. It never claims to be mapped, because access to a mapping cannot be logged.
#[derive(Debug)]
struct LoggedBlob {
    inner: Arc<dyn Blob>,
    key: String,
    log: RequestLog,
}

impl Blob for LoggedBlob {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().for_each(|range| self.log.note(Request::Read(self.key.clone(), range.clone())));
        self.inner.read(ranges)
    }
}
