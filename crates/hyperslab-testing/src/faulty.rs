//! Storage that fails.

use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use hyperslab_core::{Blob, Error, ObjectStat, Result, Storage, StorageEntry};

/// The kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The system answers with an error.
    Error(ErrorKind),
    /// One byte less than requested.
    Short,
}

/// Counts requests and makes one of them fail.
#[derive(Debug, Clone)]
pub struct Faults {
    left: Arc<AtomicU64>,
    fault: Fault,
}

impl Faults {
    /// Makes the request with this number fail, counted from 0.
    #[must_use]
    pub fn at(request: u64, fault: Fault) -> Self {
        Self { left: Arc::new(AtomicU64::new(request + 1)), fault }
    }

    /// Returns true if a request has failed.
    #[must_use]
    pub fn met(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Counts a request. Returns true if it is the one that fails.
    fn next(&self) -> bool {
        let counted =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        counted == Ok(1)
    }

    fn check(&self, name: &Arc<str>) -> Result<()> {
        match self.fault {
            Fault::Error(kind) if self.next() => Err(Error::io(Arc::clone(name), kind.into())),
            _ => Ok(()),
        }
    }
}

/// A blob of which one read fails. It never claims to be mapped.
#[derive(Debug)]
pub struct FaultyBlob {
    inner: Arc<dyn Blob>,
    faults: Faults,
}

impl FaultyBlob {
    /// The blob, with these faults.
    #[must_use]
    pub fn new(inner: Arc<dyn Blob>, faults: Faults) -> Self {
        Self { inner, faults }
    }
}

impl Blob for FaultyBlob {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.faults.check(self.name())?;
        let mut parts = self.inner.read(ranges)?;
        if let Some(last) = parts.last_mut().filter(|last| !last.is_empty())
            && self.faults.fault == Fault::Short
            && self.faults.next()
        {
            last.truncate(last.len() - 1);
        }
        Ok(parts)
    }
}

/// A directory of which one request fails.
#[derive(Debug)]
pub struct FaultyStorage<D> {
    inner: D,
    faults: Faults,
}

impl<D: Storage> FaultyStorage<D> {
    /// The directory, with these faults.
    pub const fn new(inner: D, faults: Faults) -> Self {
        Self { inner, faults }
    }
}

impl<D: Storage> Storage for FaultyStorage<D> {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Blob>>> {
        self.faults.check(self.name())?;
        let Some(inner) = self.inner.open(key)? else { return Ok(None) };
        Ok(Some(Arc::new(FaultyBlob::new(inner, self.faults.clone()))))
    }

    fn stat(&self, key: &str) -> Result<Option<ObjectStat>> {
        self.faults.check(self.name())?;
        self.inner.stat(key)
    }

    fn list(&self, key: &str) -> Result<Vec<StorageEntry>> {
        self.faults.check(self.name())?;
        self.inner.list(key)
    }
}
