//! The start of a damaged file with a new end.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{Blob, Place, Result};

/// The start of a file, followed by a directory.
#[derive(Debug)]
pub(super) struct Joined {
    inner: Arc<dyn Blob>,
    end: u64,
    directory: Bytes,
}

impl Joined {
    /// The bytes of `inner` before `end`, followed by a directory.
    pub(super) fn new(inner: &Arc<dyn Blob>, end: u64, directory: Bytes) -> Self {
        Self { inner: Arc::clone(inner), end, directory }
    }
}

impl Blob for Joined {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn len(&self) -> Result<u64> {
        Ok(self.end + self.directory.len() as u64)
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let one = |range: &Range<u64>| {
            let inside = range.start.min(self.end)..range.end.min(self.end);
            let after = |offset: u64| usize::try_from(offset.saturating_sub(self.end)).unwrap_or(usize::MAX);
            let (start, end) = (after(range.start), after(range.end));
            if range.start > range.end || end > self.directory.len() {
                let problem = format!("bytes {range:?} of a restored file of {} bytes", self.len()?);
                return Err(Place::new(self.name(), "restored file", range.start).corrupt(problem));
            }
            if inside.is_empty() {
                return Ok(self.directory.slice(start..end));
            }
            let own = self.inner.read_range(inside)?;
            if start == end {
                return Ok(own);
            }
            Ok([&own[..], &self.directory[start..end]].concat().into())
        };
        ranges.iter().map(one).collect()
    }
}
