//! Adapts a blob to the standard library's `Read` and `Seek`.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{Blob, Result};

/// The number of bytes read ahead.
const AHEAD: u64 = 1 << 20;

/// A position in a blob, and buffered bytes around it.
#[derive(Debug, Clone)]
pub(super) struct BlobReader {
    blob: Arc<dyn Blob>,
    length: u64,
    at: u64,
    /// The bytes starting at `start`.
    held: Bytes,
    start: u64,
}

impl BlobReader {
    pub(super) fn new(blob: Arc<dyn Blob>, at: u64) -> Result<Self> {
        let length = blob.len()?;
        Ok(Self { blob, length, at, held: Bytes::new(), start: 0 })
    }
}

impl Read for BlobReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.length || out.is_empty() {
            return Ok(0);
        }
        if !(self.start..self.start + self.held.len() as u64).contains(&self.at) {
            let wanted = AHEAD.max(out.len() as u64).min(self.length - self.at);
            self.held = self.blob.read_at(self.at, wanted).map_err(io::Error::other)?;
            self.start = self.at;
        }
        let from = (self.at - self.start) as usize;
        let count = out.len().min(self.held.len() - from);
        out[..count].copy_from_slice(&self.held[from..from + count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for BlobReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = target
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "cannot seek before the start"))?;
        Ok(self.at)
    }
}
