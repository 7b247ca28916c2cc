//! Objects in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::{ObjectStat, Storage, StorageEntry};
use crate::{Blob, MemoryBlob, Result};

/// Objects in memory: for tests and fuzzing.
#[derive(Debug, Clone)]
pub struct MemoryStorage {
    name: Arc<str>,
    blobs: BTreeMap<String, Bytes>,
}

impl MemoryStorage {
    /// These objects, with this name in messages.
    pub fn new<K: Into<String>, B: Into<Bytes>>(
        name: impl Into<Arc<str>>,
        blobs: impl IntoIterator<Item = (K, B)>,
    ) -> Self {
        let blobs = blobs.into_iter().map(|(key, bytes)| (key.into(), bytes.into())).collect();
        Self { name: name.into(), blobs }
    }
}

impl Storage for MemoryStorage {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Blob>>> {
        let blob = self.blobs.get(key).map(|bytes| {
            Arc::new(MemoryBlob::new(format!("{}/{key}", self.name), bytes.clone())) as Arc<dyn Blob>
        });
        Ok(blob)
    }

    fn stat(&self, key: &str) -> Result<Option<ObjectStat>> {
        Ok(self.blobs.get(key).map(|bytes| ObjectStat { size: bytes.len() as u64, version: 0 }))
    }

    fn list(&self, key: &str) -> Result<Vec<StorageEntry>> {
        let prefix = if key.is_empty() { String::new() } else { format!("{key}/") };
        let mut entries: Vec<StorageEntry> = Vec::new();
        for (below, bytes) in
            self.blobs.iter().filter_map(|(name, bytes)| Some((name.strip_prefix(&prefix)?, bytes)))
        {
            let (name, is_directory) = below.split_once('/').map_or((below, false), |(name, _)| (name, true));
            if entries.last().is_none_or(|last| last.name != name) {
                entries.push(StorageEntry {
                    name: name.to_owned(),
                    is_directory,
                    size: (!is_directory).then_some(bytes.len() as u64),
                });
            }
        }
        entries.sort();
        Ok(entries)
    }
}
