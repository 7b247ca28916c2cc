//! Reads a file whose append was committed but not applied, as it will be afterwards. Nothing is written.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hyperslab_core::{Blob, Error, FileBlob, MappedBlob, Place, Result};

use super::real_path;
use super::redo::{Redo, redo_path};

/// The file with the append from its redo file applied; `None` if there is no redo file for it.
///
/// # Errors
///
/// [`Io`](Error::Io) if the redo file cannot be read: without it the file may be a mix of old and new.
pub(crate) fn completed(base: &Arc<dyn Blob>, path: &Path, mapped: bool) -> Result<Option<Arc<dyn Blob>>> {
    let path = redo_path(&real_path(path));
    let opened: Result<Arc<dyn Blob>> = if mapped {
        MappedBlob::open(&path).map(|blob| Arc::new(blob) as Arc<dyn Blob>)
    } else {
        FileBlob::open(&path).map(|blob| Arc::new(blob) as Arc<dyn Blob>)
    };
    let redo = match opened {
        Ok(redo) => redo,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let (trailer, head, old_head) = match Redo::read(&*redo) {
        Ok(read) => read,
        // Not a redo file, or an incomplete one.
        Err(Error::Corrupt(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !trailer.belongs_to(&**base, &head, &old_head)? {
        return Ok(None);
    }
    Ok(Some(Arc::new(Completed { base: Arc::clone(base), redo, head, trailer })))
}

/// The bytes of the file after the append: the new head, then the old file after it, then the tail.
#[derive(Debug)]
struct Completed {
    base: Arc<dyn Blob>,
    redo: Arc<dyn Blob>,
    head: Bytes,
    trailer: Redo,
}

impl Completed {
    fn end(&self) -> u64 {
        // The sum was checked when the trailer was read.
        self.trailer.tail_start + self.trailer.tail_length
    }

    /// The longest prefix of the range that a single source holds; not empty unless the range is.
    fn part(&self, range: &Range<u64>) -> Result<Bytes> {
        let Redo { tail_start, head_length, .. } = self.trailer;
        let kept_end = self.trailer.kept_end();
        let Range { start, end } = *range;
        if start < head_length {
            // The casts are safe: both numbers are at most the length of the head, which is in memory.
            return Ok(self.head.slice(start as usize..end.min(head_length) as usize));
        }
        if start < kept_end {
            return self.base.read_range(start..end.min(kept_end));
        }
        if start < tail_start {
            // A gap that was never written. Its length was checked when the trailer was read.
            let length = usize::try_from(end.min(tail_start) - start).unwrap_or(usize::MAX);
            return Ok(Bytes::from(vec![0; length]));
        }
        self.redo.read_range(start - tail_start..end - tail_start)
    }
}

impl Blob for Completed {
    fn name(&self) -> &Arc<str> {
        self.base.name()
    }

    fn len(&self) -> Result<u64> {
        Ok(self.end())
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let read = |range: &Range<u64>| {
            if range.start > range.end || range.end > self.end() {
                let problem = format!("bytes up to {:#x}, the file ends at {:#x}", range.end, self.end());
                return Err(Place::new(self.name(), "bytes", range.start).corrupt(problem));
            }
            let first = self.part(range)?;
            let mut at = range.start + first.len() as u64;
            if at == range.end {
                return Ok(first);
            }
            let mut all = BytesMut::from(&first[..]);
            while at < range.end {
                let next = self.part(&(at..range.end))?;
                at += next.len() as u64;
                all.extend_from_slice(&next);
            }
            Ok(all.freeze())
        };
        ranges.iter().map(read).collect()
    }
}
