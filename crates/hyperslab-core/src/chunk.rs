//! Chunk references: where a chunk's bytes are stored, as plain data.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

use crate::Region;

/// Identifies a blob of a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BlobKey {
    /// The store's own file.
    Main,
    /// Another file or object, by its name inside the store.
    Named(Arc<str>),
}

impl BlobKey {
    /// A blob by its name inside the store.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Self::Named(name.into())
    }
}

impl fmt::Display for BlobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main => f.write_str("-"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// Stored bytes: a blob, an offset, a length.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The blob that holds the bytes.
    pub blob: BlobKey,
    /// Where the bytes start.
    pub offset: u64,
    /// The number of bytes, or [`UNKNOWN_LENGTH`] for a whole object whose size has not been looked up.
    pub length: u64,
}

/// The length of a span that is a whole object of unknown size. The object may not exist; the chunk was then never written.
/// Remote storage uses such spans because looking up the size costs as much as reading.
pub const UNKNOWN_LENGTH: u64 = u64::MAX;

impl Span {
    /// Returns true if the span is a whole object of unknown size.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.length == UNKNOWN_LENGTH
    }

    /// Its bytes.
    #[must_use]
    pub const fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.length)
    }
}

/// Some of a chunk's cells, as written by one write.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Layer {
    /// Its stored bytes: one span for most formats; offsets, values and validity for variable-length ones.
    pub spans: SmallVec<[Span; 1]>,
    /// Bit `i`: filter `i` of the pipeline was skipped for this chunk.
    pub filter_mask: u32,
    /// The stored bytes are the elements: native byte order, the schema's cell order, nothing to decode.
    pub plain: bool,
    /// The cells it covers, relative to the chunk's start. `None`, the usual case, means all of them.
    pub region: Option<Box<Region>>,
    /// For the format's own use (a fragment's or tile's number).
    pub tag: u64,
}

/// Where one chunk is stored: one layer for most formats, several where writes overlap, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ChunkRef {
    /// The layers, oldest first. Later layers win.
    pub layers: SmallVec<[Layer; 1]>,
}

impl ChunkRef {
    /// One span of encoded bytes.
    #[must_use]
    pub fn encoded(blob: BlobKey, offset: u64, length: u64, filter_mask: u32) -> Self {
        let spans = smallvec![Span { blob, offset, length }];
        Self { layers: smallvec![Layer { spans, filter_mask, plain: false, region: None, tag: 0 }] }
    }

    /// One span that holds the elements as is.
    #[must_use]
    pub fn plain(blob: BlobKey, offset: u64, length: u64) -> Self {
        let mut chunk = Self::encoded(blob, offset, length, 0);
        chunk.layers[0].plain = true;
        chunk
    }

    /// The only span, if it holds the elements as is.
    #[must_use]
    pub fn as_plain(&self) -> Option<&Span> {
        match self.layers.as_slice() {
            [Layer { plain: true, region: None, spans, .. }] if spans.len() == 1 => spans.first(),
            _ => None,
        }
    }

    /// All spans, oldest layer first.
    pub fn spans(&self) -> impl Iterator<Item = &Span> {
        self.layers.iter().flat_map(|layer| &layer.spans)
    }

    /// The number of stored bytes, not counting spans of unknown length.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        let known = self.spans().filter(|span| !span.is_whole());
        known.fold(0, |sum, span| sum.saturating_add(span.length))
    }
}
