//! A remote object, read by ranges. Caches its structures.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyperslab_core::{Blob, Error, FetchCost, Place, Result};
use object_store::path::Path;

use crate::client::{Client, Fetched, Get, Version};
use crate::disk::{DiskCache, Extents};
use crate::failure::Failure;
use crate::merge::Requests;

/// Reads of structures are aligned to multiples of this size.
const PAGE: u64 = 4 << 10;
/// The minimum read-ahead for structures. It grows up to [`MAX_AHEAD`] while reads are sequential.
const MIN_AHEAD: u64 = 8 << 10;
const MAX_AHEAD: u64 = 256 << 10;
/// Longer reads are data and are not cached.
const MAX_CACHED: u64 = 4 << 20;
/// Without support for ranges, an object up to this size is cached whole.
const WHOLE_WITHOUT_RANGES: u64 = 256 << 20;

/// A remote object.
#[derive(Debug)]
pub(crate) struct RemoteObject {
    client: Arc<Client>,
    path: Path,
    name: Arc<str>,
    state: Mutex<State>,
    /// The cache size and limit, shared by all objects of the storage.
    kept: Arc<Kept>,
    /// The disk cache, and the object's key in it.
    disk: Option<(Arc<DiskCache>, String)>,
}

/// The size and the limit of the cache.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) bytes: AtomicU64,
    pub(crate) most: u64,
}

#[derive(Debug)]
struct State {
    version: Version,
    /// The cached bytes, by offset.
    extents: BTreeMap<u64, Bytes>,
    /// The end of the last read from the server, and its read-ahead.
    last: (u64, u64),
    /// Whether there are bytes that the disk cache lacks.
    is_new: bool,
}

impl State {
    /// The bytes of a range, if a single extent contains all of them.
    fn get(&self, range: &Range<u64>) -> Option<Bytes> {
        // An earlier extent may reach further.
        self.extents.range(..=range.start).rev().take(4).find_map(|(start, bytes)| {
            let (from, to) = (range.start - start, range.end - start);
            (to <= bytes.len() as u64).then(|| bytes.slice(from as usize..to as usize))
        })
    }
}

impl RemoteObject {
    /// Creates an object whose version is known.
    pub(crate) fn new(
        client: Arc<Client>,
        path: Path,
        name: Arc<str>,
        version: Version,
        kept: Arc<Kept>,
        disk: Option<(Arc<DiskCache>, String)>,
    ) -> Self {
        let state = State { version, extents: BTreeMap::new(), last: (0, MIN_AHEAD), is_new: false };
        Self { client, path, name, state: Mutex::new(state), kept, disk }
    }

    /// Loads cached bytes of this version from disk.
    pub(crate) fn restore(&self) {
        let Some((disk, key)) = &self.disk else { return };
        if let Some(extents) = disk.load(key, &self.version()) {
            self.keep_extents(extents);
        }
    }

    /// Adds bytes from the disk cache.
    pub(crate) fn keep_extents(&self, extents: Extents) {
        for (start, bytes) in extents {
            self.keep_bytes(start, bytes);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn version(&self) -> Version {
        self.state().version.clone()
    }

    /// The bytes of a range, if they are cached.
    pub(crate) fn kept_bytes(&self, range: &Range<u64>) -> Option<Bytes> {
        if range.is_empty() {
            return Some(Bytes::new());
        }
        self.state().get(range)
    }

    /// Caches fetched bytes.
    pub(crate) fn keep(&self, fetched: &Fetched) {
        self.keep_bytes(fetched.start, fetched.bytes.clone());
        self.state().is_new = true;
    }

    fn keep_bytes(&self, start: u64, bytes: Bytes) {
        let length = bytes.len() as u64;
        if length == 0 || length > WHOLE_WITHOUT_RANGES {
            return;
        }
        let mut state = self.state();
        if self.kept.bytes.fetch_add(length, Ordering::Relaxed) + length > self.kept.most {
            let freed: u64 = state.extents.values().map(|bytes| bytes.len() as u64).sum();
            state.extents.clear();
            self.kept.bytes.fetch_sub(freed, Ordering::Relaxed);
        }
        let replaced = state.extents.insert(start, bytes);
        // Of two extents with the same start, keep the longer one.
        if let Some(old) = replaced {
            self.kept.bytes.fetch_sub(length.min(old.len() as u64), Ordering::Relaxed);
            if old.len() as u64 > length {
                state.extents.insert(start, old);
            }
        }
    }

    /// Enlarges a read of a structure slightly, because adjacent bytes are often needed next.
    fn widened(&self, range: &Range<u64>) -> Range<u64> {
        let mut state = self.state();
        let (end, ahead) = state.last;
        let follows = range.start <= end.saturating_add(MAX_AHEAD) && range.end >= end.saturating_sub(PAGE);
        let ahead = if follows && end > 0 { (ahead * 2).min(MAX_AHEAD) } else { MIN_AHEAD };
        let start = range.start / PAGE * PAGE;
        let end = range.end.max(start.saturating_add(ahead)).next_multiple_of(PAGE);
        let end = end.min(state.version.size).max(range.end);
        state.last = (end, ahead);
        start..end
    }

    fn check(&self, range: &Range<u64>) -> Result<()> {
        let size = self.state().version.size;
        if range.start <= range.end && range.end <= size {
            return Ok(());
        }
        Err(Place::new(&self.name, "bytes", range.start).corrupt(format!(
            "{} expected, but the object ends at {size:#x}",
            range.end.saturating_sub(range.start)
        )))
    }

    /// Requests these ranges concurrently.
    fn request(&self, ranges: &[Range<u64>]) -> Result<Vec<Fetched>> {
        let version = self.version();
        let gets = ranges
            .iter()
            .map(|range| Get::bounded(self.path.clone(), range.clone(), Some(version.clone())))
            .collect();
        let answers = self.client.get_all(gets)?;
        if answers.iter().any(|answer| matches!(answer, Err(Failure::NoRanges))) {
            return self.request_whole(ranges);
        }
        answers.into_iter().map(|answer| answer.map_err(|failure| failure.to_error(&self.name))).collect()
    }

    /// For servers without ranges: reads the whole object once and caches it.
    fn request_whole(&self, ranges: &[Range<u64>]) -> Result<Vec<Fetched>> {
        let version = self.version();
        if version.size > WHOLE_WITHOUT_RANGES {
            return Err(Failure::NoRanges.to_error(&self.name));
        }
        let get = Get { version: Some(version.clone()), ..Get::whole(self.path.clone()) };
        let whole = self.client.get_all(vec![get])?.pop();
        let whole = whole.ok_or_else(|| Error::invalid("a request ended without a response"))?;
        let whole = whole.map_err(|failure| failure.to_error(&self.name))?;
        self.keep(&whole);
        let part = |range: &Range<u64>| Fetched {
            bytes: whole.bytes.slice(range.start as usize..range.end as usize),
            start: range.start,
            version: version.clone(),
        };
        ranges.iter().map(|range| self.check(range).map(|()| part(range))).collect()
    }
}

impl Drop for RemoteObject {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some((disk, key)) = self.disk.as_ref().filter(|_| state.is_new) {
            disk.save(key, &state.version, &state.extents);
        }
    }
}

impl Blob for RemoteObject {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64> {
        Ok(self.state().version.size)
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().try_for_each(|range| self.check(range))?;
        let kept: Vec<Option<Bytes>> = ranges.iter().map(|range| self.kept_bytes(range)).collect();
        let missing: Vec<Range<u64>> = ranges
            .iter()
            .zip(&kept)
            .filter(|(_, kept)| kept.is_none())
            .map(|(range, _)| range.clone())
            .collect();
        let requests = Requests::covering(&missing, self.client.cost.gap());
        let fetched: Vec<Bytes> =
            self.request(&requests.ranges)?.into_iter().map(|fetched| fetched.bytes).collect();
        let each = ranges.iter().zip(kept).map(|(range, kept)| {
            kept.or_else(|| requests.bytes_of(&fetched, range))
                .ok_or_else(|| Error::invalid(format!("{}: {range:?} was not fetched", self.name)))
        });
        each.collect()
    }

    fn read_cost(&self, ranges: &[Range<u64>]) -> FetchCost {
        let missing: Vec<Range<u64>> =
            ranges.iter().filter(|range| self.kept_bytes(range).is_none()).cloned().collect();
        Requests::covering(&missing, self.client.cost.gap()).cost()
    }

    fn prefetch(&self, ranges: &[Range<u64>]) {
        let size = self.state().version.size;
        let missing: Vec<Range<u64>> = ranges
            .iter()
            .map(|range| range.start..range.end.min(size))
            .filter(|range| range.start < range.end && self.kept_bytes(range).is_none())
            .map(|range| range.start / PAGE * PAGE..range.end.next_multiple_of(PAGE).min(size))
            .collect();
        let requests = Requests::covering(&missing, self.client.cost.gap());
        // Ignore failures. The read that needs the bytes will report them.
        if let Ok(fetched) = self.request(&requests.ranges) {
            fetched.iter().for_each(|fetched| self.keep(fetched));
        }
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        self.check(&range)?;
        if let Some(bytes) = self.kept_bytes(&range) {
            return Ok(bytes);
        }
        let only = |mut parts: Vec<Bytes>| parts.pop().ok_or_else(|| Error::invalid("nothing was fetched"));
        if range.end - range.start > MAX_CACHED {
            return only(self.read(&[range])?);
        }
        let wide = self.widened(&range);
        let fetched = self.request(std::slice::from_ref(&wide))?;
        let fetched = fetched.first().ok_or_else(|| Error::invalid("nothing was fetched"))?;
        self.keep(fetched);
        let (start, end) = (range.start - fetched.start, range.end - fetched.start);
        Ok(fetched.bytes.slice(start as usize..end as usize))
    }
}
