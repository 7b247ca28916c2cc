//! Writes shards. Chunks arrive in any order, from any thread.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyperslab_core::storage::StageWriter;
use hyperslab_core::{ChunkCoord, Error, Extents, Grid, Result};

use super::append::Before;
use crate::keys::KeyEncoding;
use crate::shard::ShardIndex;

/// Chunks of at least `LARGE_CHUNK` bytes are written at once. Smaller ones are collected up to `MAX_COLLECTED_PER_SHARD` bytes per
/// shard, and `MAX_COLLECTED` bytes in total.
const LARGE_CHUNK: usize = 64 << 10;
const MAX_COLLECTED_PER_SHARD: usize = 1 << 20;
const MAX_COLLECTED: usize = 64 << 20;

/// The shards of one array.
#[derive(Debug)]
pub(crate) struct ShardWriter {
    /// Chunks per axis of a shard.
    counts: Extents,
    /// Chunks per axis of the array.
    extents: Extents,
    open: Mutex<HashMap<Extents, Arc<Mutex<OpenShard>>>>,
    gathered: AtomicUsize,
    objects: StageWriter,
    keys: KeyEncoding,
    /// The previous content of the shards.
    old: Option<Arc<Before>>,
}

#[derive(Debug)]
struct OpenShard {
    entries: Vec<Option<(u64, u64)>>,
    /// Which chunks have arrived, stored or not.
    seen: Vec<bool>,
    /// The number of chunks still to come.
    left: u64,
    /// Whether the file exists.
    created: bool,
    /// The number of bytes in the file or being written to it.
    flushed: u64,
    /// Bytes not yet in the file.
    gathered: Vec<u8>,
}

impl ShardWriter {
    pub(crate) fn new(
        counts: Extents,
        extents: Extents,
        objects: StageWriter,
        keys: KeyEncoding,
        old: Option<Arc<Before>>,
    ) -> Self {
        Self { counts, extents, open: Mutex::default(), gathered: AtomicUsize::new(0), objects, keys, old }
    }

    /// Adds a chunk; `None` if it contains only the fill value.
    pub(crate) fn write(&self, chunk: &[u64], bytes: Option<&Bytes>) -> Result<()> {
        let coord: Extents = chunk.iter().zip(&self.counts).map(|(at, count)| at / count).collect();
        let number =
            chunk.iter().zip(&self.counts).fold(0, |number, (at, count)| number * count + at % count);
        let shard = {
            let mut open = held(&self.open);
            match open.get(&coord) {
                Some(shard) => Arc::clone(shard),
                None => {
                    let shard = Arc::new(Mutex::new(self.start(&coord)?));
                    open.insert(coord.clone(), Arc::clone(&shard));
                    shard
                }
            }
        };
        let (shard, key) = (&*shard, self.keys.key("", &coord));
        let mut shard = held(shard);
        match shard.seen.get_mut(number as usize) {
            Some(seen) if !*seen => *seen = true,
            _ => return Err(Error::invalid(format!("chunk {chunk:?} was already written"))),
        }
        // The position of a large chunk is chosen under the lock; it is written outside.
        let mut on_its_own = None;
        if let Some(bytes) = bytes {
            if bytes.len() >= LARGE_CHUNK {
                self.flush(&mut shard, &key, &[])?;
                shard.create(&self.objects, &key)?;
                on_its_own = Some((shard.flushed, bytes));
                shard.flushed += bytes.len() as u64;
            }
            let end = shard.flushed + shard.gathered.len() as u64;
            let offset = on_its_own.map_or(end, |(offset, _)| offset);
            shard.entries[number as usize] = Some((offset, bytes.len() as u64));
            if on_its_own.is_none() {
                shard.gathered.extend_from_slice(bytes);
                let all = self.gathered.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len();
                if shard.gathered.len() >= MAX_COLLECTED_PER_SHARD || all >= MAX_COLLECTED {
                    self.flush(&mut shard, &key, &[])?;
                }
            }
        }
        shard.left -= 1;
        if shard.left == 0 {
            self.end(&mut shard, &key)?;
            // Keep an empty entry, so that a duplicate chunk is detected.
            shard.entries = Vec::new();
        }
        drop(shard);
        match on_its_own {
            Some((offset, bytes)) => self.objects.write_at(&key, offset, &[bytes]),
            None => Ok(()),
        }
    }

    /// Finishes the shards that did not receive every chunk.
    pub(crate) fn finish(&self) -> Result<()> {
        for (coord, shard) in held(&self.open).drain() {
            let mut shard = held(&shard);
            if shard.left > 0 {
                self.end(&mut shard, &self.keys.key("", &coord))?;
            }
        }
        Ok(())
    }

    fn start(&self, coord: &[u64]) -> Result<OpenShard> {
        let total: u64 = self.counts.iter().product();
        let inside = |axis: usize| {
            self.counts[axis].min(self.extents[axis].saturating_sub(coord[axis] * self.counts[axis]))
        };
        let left = (0..coord.len()).map(inside).product();
        let (entries, seen) = (vec![None; total as usize], vec![false; total as usize]);
        let mut shard = OpenShard { entries, seen, left, created: false, flushed: 0, gathered: Vec::new() };
        if let Some(old) = &self.old {
            self.keep(old, coord, &mut shard)?;
        }
        Ok(shard)
    }

    /// Copies the chunks that do not change.
    fn keep(&self, old: &Before, coord: &[u64], shard: &mut OpenShard) -> Result<()> {
        let inner = Grid::new(&self.counts, &vec![1; self.counts.len()])?;
        for number in 0..shard.entries.len() {
            let chunk: ChunkCoord = inner
                .coord(number as u64)
                .iter()
                .zip(coord.iter().zip(&self.counts))
                .map(|(at, (shard, count))| shard * count + at)
                .collect();
            if !old.is_unchanged(&chunk) {
                continue;
            }
            (shard.seen[number], shard.left) = (true, shard.left.saturating_sub(1));
            if let Some(bytes) = old.stored(&chunk)? {
                shard.entries[number] = Some((shard.gathered.len() as u64, bytes.len() as u64));
                shard.gathered.extend_from_slice(&bytes);
            }
        }
        self.gathered.fetch_add(shard.gathered.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Writes the collected bytes and the index. A shard without chunks is not stored, unless it replaces one.
    fn end(&self, shard: &mut OpenShard, key: &str) -> Result<()> {
        if shard.entries.iter().all(Option::is_none) && self.old.is_none() {
            return Ok(());
        }
        let index = ShardIndex::encode(&shard.entries);
        self.flush(shard, key, &index)
    }

    fn flush(&self, shard: &mut OpenShard, key: &str, index: &[u8]) -> Result<()> {
        if shard.gathered.is_empty() && index.is_empty() {
            return Ok(());
        }
        shard.create(&self.objects, key)?;
        self.objects.write_at(key, shard.flushed, &[&shard.gathered, index])?;
        self.gathered.fetch_sub(shard.gathered.len(), Ordering::Relaxed);
        shard.flushed += shard.gathered.len() as u64;
        shard.gathered.clear();
        if shard.left == 0 {
            shard.gathered = Vec::new();
        }
        Ok(())
    }
}

impl OpenShard {
    /// Creates the file, unless it exists.
    fn create(&mut self, objects: &StageWriter, key: &str) -> Result<()> {
        if !self.created {
            objects.put_new(key, &[])?;
            self.created = true;
        }
        Ok(())
    }
}

/// Locks even if a thread panicked: an error discards the whole store anyway.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
