//! A part of a blob as a blob, and a blob as a stream.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::{Blob, past_end};
use crate::Result;

/// A part of another blob: a member of an archive, a chunk inside a file.
#[derive(Debug)]
pub struct BlobPart {
    name: Arc<str>,
    blob: Arc<dyn Blob>,
    start: u64,
    length: u64,
    /// The bytes, if the other blob is mapped.
    mapped: Option<Bytes>,
}

impl BlobPart {
    /// `length` bytes starting at `start`, called `name` in messages.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::Error::Corrupt) if they reach past the end of a blob whose length is known without a request.
    pub fn new(name: impl Into<Arc<str>>, blob: Arc<dyn Blob>, start: u64, length: u64) -> Result<Self> {
        let end = start.checked_add(length);
        let end = end.ok_or_else(|| past_end(blob.name(), &(start..u64::MAX), 0))?;
        let mapped = blob.mapped().is_some().then(|| blob.read_range(start..end)).transpose()?;
        if !blob.is_remote() && mapped.is_none() && blob.len()? < end {
            return Err(past_end(blob.name(), &(start..end), blob.len()?));
        }
        Ok(Self { name: name.into(), blob, start, length, mapped })
    }
}

impl Blob for BlobPart {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64> {
        Ok(self.length)
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let inside = |range: &Range<u64>| {
            if range.start > range.end || range.end > self.length {
                return Err(past_end(&self.name, range, self.length));
            }
            Ok(self.start + range.start..self.start + range.end)
        };
        self.blob.read(&ranges.iter().map(inside).collect::<Result<Vec<_>>>()?)
    }

    fn mapped(&self) -> Option<&Bytes> {
        self.mapped.as_ref()
    }

    fn is_remote(&self) -> bool {
        self.blob.is_remote()
    }
}

/// A blob as a seekable stream.
#[derive(Debug)]
pub struct BlobReader {
    blob: Arc<dyn Blob>,
    position: u64,
    length: u64,
}

impl BlobReader {
    /// A reader positioned at the start.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::Error::Io) if the system cannot determine the length.
    pub fn new(blob: Arc<dyn Blob>) -> Result<Self> {
        Ok(Self { length: blob.len()?, blob, position: 0 })
    }
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = (buffer.len() as u64).min(self.length.saturating_sub(self.position));
        let bytes = self.blob.read_at(self.position, count).map_err(io::Error::other)?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        self.position += count;
        Ok(bytes.len())
    }
}

impl Seek for BlobReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        self.position = target.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryBlob;

    #[test]
    fn parts_are_bounded() -> Result<()> {
        let whole: Arc<dyn Blob> = Arc::new(MemoryBlob::new("m", b"hyperslab".to_vec()));
        let part = BlobPart::new("m/part", Arc::clone(&whole), 5, 3)?;
        assert_eq!(
            (part.len()?, part.read(&[0..3, 1..2, 3..3])?),
            (3, vec!["sla".into(), "l".into(), Bytes::new()])
        );
        assert!(part.read_range(1..4).unwrap_err().is_corrupt() && part.read(&[0..1, 2..4]).is_err());
        assert!(BlobPart::new("x", Arc::clone(&whole), 5, 5).unwrap_err().is_corrupt());
        assert!(BlobPart::new("x", whole, u64::MAX, 5).unwrap_err().is_corrupt());
        Ok(())
    }
}
