//! Objects of one chunk each. Few and large ones stay mapped from one read to the next.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyperslab_core::{Blob, MAPPED_FROM, ObjectStat, Result, Storage};

/// Arrays with more objects keep none: unmapping would cost more than the mappings save.
const KEPT: u64 = 4096;

/// The objects of an array.
#[derive(Debug)]
pub(crate) struct Objects {
    directory: Arc<dyn Storage>,
    /// The mapped objects and their state; `None` if none is kept.
    kept: Option<Mutex<HashMap<Arc<str>, Kept>>>,
}

#[derive(Debug)]
struct Kept {
    stat: ObjectStat,
    blob: Arc<dyn Blob>,
}

impl Objects {
    /// The objects of an array with at most `count` of them.
    pub(crate) fn new(directory: Arc<dyn Storage>, count: Option<u64>) -> Self {
        let kept = count.is_some_and(|count| count <= KEPT).then(Mutex::default);
        Self { directory, kept }
    }

    fn kept(&self) -> Option<MutexGuard<'_, HashMap<Arc<str>, Kept>>> {
        // The map stays consistent even if a thread panicked.
        Some(self.kept.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The object's size; `None` if it does not exist. A kept object that was replaced is dropped.
    pub(crate) fn size(&self, key: &str) -> Result<Option<u64>> {
        let found = self.directory.stat(key)?;
        if let Some(mut kept) = self.kept()
            && kept.get(key).is_some_and(|kept| Some(kept.stat) != found)
        {
            kept.remove(key);
        }
        Ok(found.map(|stat| stat.size))
    }

    /// A range of the object's bytes; `None` if it does not exist.
    pub(crate) fn read(&self, key: &Arc<str>, range: Range<u64>) -> Result<Option<Bytes>> {
        let Some(kept) = self.kept() else { return self.directory.read_range(key, range) };
        let known = kept.get(key).map(|kept| Arc::clone(&kept.blob));
        drop(kept);
        if let Some(blob) = known {
            return blob.read_range(range).map(Some);
        }
        if range.end < MAPPED_FROM {
            return self.directory.read_range(key, range);
        }
        // Queried before opening: if the object is replaced in between, it is dropped the next time.
        let Some(stat) = self.directory.stat(key)?.filter(|stat| stat.size >= MAPPED_FROM) else {
            return self.directory.read_range(key, range);
        };
        let Some(blob) = self.directory.open(key)? else { return Ok(None) };
        // Other blobs would keep files open or use memory.
        if blob.mapped().is_some()
            && let Some(mut kept) = self.kept()
        {
            kept.insert(Arc::clone(key), Kept { stat, blob: Arc::clone(&blob) });
        }
        blob.read_range(range).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_core::LocalStorage;

    #[test]
    fn a_replaced_object_is_read_again() -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("0"), folder.path().join("new"));
        let directory: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder.path()));
        let size = MAPPED_FROM as usize + 1;
        for count in [Some(1), Some(KEPT + 1), None] {
            std::fs::write(&path, vec![1; size]).unwrap();
            let objects = Objects::new(Arc::clone(&directory), count);
            let key: Arc<str> = "0".into();
            assert_eq!(objects.size(&key)?, Some(size as u64));
            assert_eq!(objects.read(&key, 5..7)?.unwrap()[..], [1, 1]);
            // Like any careful writer: another file of the same size, renamed.
            std::fs::write(&other, vec![2; size]).unwrap();
            std::fs::rename(&other, &path).unwrap();
            assert_eq!(objects.size(&key)?, Some(size as u64));
            assert_eq!(objects.read(&key, 5..7)?.unwrap()[..], [2, 2]);
            std::fs::remove_file(&path).unwrap();
            assert_eq!(objects.size(&key)?, None);
            assert!(objects.read(&key, 5..7)?.is_none());
        }
        Ok(())
    }
}
