//! The response cache, limited in bytes.

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// Content type, file name and body.
type Kept = (&'static str, Option<&'static str>, Bytes);

/// Responses by entity tag.
pub(crate) struct Answers {
    cache: Cache<String, Kept, ByBytes>,
    /// Larger responses are not cached: one of them would evict all others.
    largest: usize,
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answers").field("bytes", &self.cache.weight()).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<String, Kept> for ByBytes {
    fn weight(&self, key: &String, (_, _, body): &Kept) -> u64 {
        (key.len() + body.len() + 128) as u64
    }
}

impl Answers {
    pub(crate) fn new(bytes: u64) -> Self {
        let items = usize::try_from(bytes / (64 << 10)).unwrap_or(1 << 16).clamp(16, 1 << 16);
        let largest = usize::try_from(bytes / 16).unwrap_or(usize::MAX);
        Self { cache: Cache::with_weighter(items, bytes, ByBytes), largest }
    }

    pub(crate) fn get(&self, tag: &str) -> Option<Kept> {
        self.cache.get(tag)
    }

    pub(crate) fn keep(&self, tag: &str, kind: &'static str, file: Option<&'static str>, body: &Bytes) {
        if body.len() <= self.largest {
            self.cache.insert(tag.to_owned(), (kind, file, body.clone()));
        }
    }
}
