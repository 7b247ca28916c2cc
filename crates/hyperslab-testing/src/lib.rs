//! For tests only: storage that notes what is asked of it, so that a test can say which bytes an answer needed.
//!
//! [`LoggedStorage`] wraps other storage; [`FaultyStorage`] fails once; [`WebServer`] is remote storage with a latency, a bandwidth and faults.
#![forbid(unsafe_code)]

mod faulty;
mod server;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
pub use faulty::{Fault, Faults, FaultyBlob, FaultyStorage};
pub use server::{Answered, Behaviour, WebServer, WireFault};

use hyperslab_core::{Blob, ObjectStat, Result, Storage, StorageEntry};

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Bytes of an object.
    Read(String, Range<u64>),
    /// A whole object, or that there is none.
    Whole(String),
    /// Is it there, and how large?
    Size(String),
    /// What stands under a name?
    List(String),
}

/// What was asked, in order.
#[derive(Debug, Clone, Default)]
pub struct RequestLog(Arc<Mutex<Vec<Request>>>);

impl RequestLog {
    fn held(&self) -> MutexGuard<'_, Vec<Request>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, request: Request) {
        self.held().push(request);
    }

    /// What was asked since the last time.
    #[must_use]
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut *self.held())
    }

    /// The objects whose bytes were asked for since the last time, each once, sorted; metadata documents are left out.
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

/// A directory whose requests are noted.
#[derive(Debug)]
pub struct LoggedStorage<D> {
    inner: D,
    log: RequestLog,
}

impl<D: Storage> LoggedStorage<D> {
    /// Notes the requests to `inner`.
    pub fn new(inner: D) -> Self {
        Self { inner, log: RequestLog::default() }
    }

    /// What is noted.
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

/// A blob whose requests are noted. It never says that it is mapped: that would hide them.
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
