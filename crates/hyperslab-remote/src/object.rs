//! One remote object, read by ranges. What was read of its structures is kept.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyperslab_core::{Blob, Error, FetchCost, Place, Result};
use object_store::path::Path;

use crate::client::{Client, Fetched, Get, Version};
use crate::disk::DiskCache;
use crate::failure::Failure;
use crate::merge::Requests;

/// Reads of structures start and end at multiples of this.
const PAGE: u64 = 4 << 10;
/// A read of a structure takes at least this much, and up to [`MOST_AHEAD`] while reads follow each other.
const LEAST_AHEAD: u64 = 8 << 10;
const MOST_AHEAD: u64 = 256 << 10;
/// Longer reads are data: nothing of them is kept.
const MOST_KEPT: u64 = 4 << 20;
/// An object of a server without ranges is kept whole up to this size.
const WHOLE_WITHOUT_RANGES: u64 = 256 << 20;

/// A remote object.
#[derive(Debug)]
pub(crate) struct RemoteObject {
    client: Arc<Client>,
    path: Path,
    name: Arc<str>,
    state: Mutex<State>,
    /// All bytes that objects of the storage keep, and how many they may.
    kept: Arc<Kept>,
    /// Where they are kept for the next run, and under which key.
    disk: Option<(Arc<DiskCache>, String)>,
}

/// How much is kept.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) bytes: AtomicU64,
    pub(crate) most: u64,
}

#[derive(Debug)]
struct State {
    version: Version,
    /// What was read, by where it starts.
    extents: BTreeMap<u64, Bytes>,
    /// Where the last read from the server ended, and how far it went ahead.
    last: (u64, u64),
    /// Has the server sent something that the cache on disk lacks?
    is_new: bool,
}

impl State {
    /// The bytes of a range, where one extent has all of them.
    fn get(&self, range: &Range<u64>) -> Option<Bytes> {
        // An extent that starts earlier may reach further.
        self.extents.range(..=range.start).rev().take(4).find_map(|(start, bytes)| {
            let (from, to) = (range.start - start, range.end - start);
            (to <= bytes.len() as u64).then(|| bytes.slice(from as usize..to as usize))
        })
    }
}

impl RemoteObject {
    /// An object whose version is known.
    pub(crate) fn new(
        client: Arc<Client>,
        path: Path,
        name: Arc<str>,
        version: Version,
        kept: Arc<Kept>,
        disk: Option<(Arc<DiskCache>, String)>,
    ) -> Self {
        let state = State { version, extents: BTreeMap::new(), last: (0, LEAST_AHEAD), is_new: false };
        Self { client, path, name, state: Mutex::new(state), kept, disk }
    }

    /// Takes over what the cache on disk has of this version.
    pub(crate) fn restore(&self) {
        let Some((disk, key)) = &self.disk else { return };
        let Some(extents) = disk.load(key, &self.version()) else { return };
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

    /// The bytes of a range, where they are kept.
    pub(crate) fn kept_bytes(&self, range: &Range<u64>) -> Option<Bytes> {
        if range.is_empty() {
            return Some(Bytes::new());
        }
        self.state().get(range)
    }

    /// Keeps what was fetched.
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
        // Of two that start at the same byte, the longer stays.
        if let Some(old) = replaced {
            self.kept.bytes.fetch_sub(length.min(old.len() as u64), Ordering::Relaxed);
            if old.len() as u64 > length {
                state.extents.insert(start, old);
            }
        }
    }

    /// A read of a structure, made a little larger: what is beside it is often wanted next.
    fn widened(&self, range: &Range<u64>) -> Range<u64> {
        let mut state = self.state();
        let (end, ahead) = state.last;
        let follows = range.start <= end.saturating_add(MOST_AHEAD) && range.end >= end.saturating_sub(PAGE);
        let ahead = if follows && end > 0 { (ahead * 2).min(MOST_AHEAD) } else { LEAST_AHEAD };
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
            "{} expected, the object ends at {size:#x}",
            range.end.saturating_sub(range.start)
        )))
    }

    /// Requests these ranges at once.
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

    /// For servers that send everything or nothing: the whole object is read once and kept.
    fn request_whole(&self, ranges: &[Range<u64>]) -> Result<Vec<Fetched>> {
        let version = self.version();
        if version.size > WHOLE_WITHOUT_RANGES {
            return Err(Failure::NoRanges.to_error(&self.name));
        }
        let get = Get { version: Some(version.clone()), ..Get::whole(self.path.clone()) };
        let whole = self.client.get_all(vec![get])?.pop();
        let whole = whole.ok_or_else(|| Error::invalid("a request ended without an answer"))?;
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
        // A failure is left to the read that needs the bytes.
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
        if range.end - range.start > MOST_KEPT {
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
