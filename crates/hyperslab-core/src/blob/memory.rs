//! Blobs in memory.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::{Blob, slice};
use crate::Result;

/// A blob in memory: for tests, fuzzing and small objects.
#[derive(Debug, Clone)]
pub struct MemoryBlob {
    name: Arc<str>,
    bytes: Bytes,
}

impl MemoryBlob {
    /// A blob of these bytes, with this name in messages.
    pub fn new(name: impl Into<Arc<str>>, bytes: impl Into<Bytes>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }
}

impl Blob for MemoryBlob {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().map(|range| slice(&self.name, &self.bytes, range)).collect()
    }

    fn mapped(&self) -> Option<&Bytes> {
        Some(&self.bytes)
    }
}
