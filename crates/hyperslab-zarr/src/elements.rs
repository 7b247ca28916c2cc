//! Streams the variable-length elements of a chunk, decoding only a little ahead of the reader.

use bytes::Bytes;
use hyperslab_codec::CodecError;
use hyperslab_core::{Place, Result};

use crate::codec::Step;
use crate::pieces::Pieces;
use crate::pipeline::{Pipeline, failed};

/// Chunks with fewer stored bytes are decoded at once.
const MIN_STREAMED_BYTES: usize = 64 << 10;

/// Iterates over the elements of one chunk, in stored order. See
/// [`ZarrArray::element_stream`](crate::ZarrArray::element_stream).
#[derive(Debug)]
pub struct ElementStream {
    object: String,
    offset: u64,
    source: Source,
    left: u32,
}

/// The decoded bytes, complete or streamed.
#[derive(Debug)]
enum Source {
    Whole { bytes: Bytes, at: usize },
    Pieces(Box<Pieces>),
}

impl Source {
    fn new(pipeline: &Pipeline, stored: Bytes, place: Place<'_>) -> Result<Self> {
        if let ([Step::Zstd { .. }], true) = (&pipeline.steps[..], stored.len() >= MIN_STREAMED_BYTES) {
            // If streaming fails, decode at once: that reports the same error, or handles what streaming cannot
            // (large windows).
            if let Ok(pieces) = Pieces::new(stored.clone()) {
                return Ok(Self::Pieces(Box::new(pieces)));
            }
        }
        let bytes = if pipeline.steps.is_empty() {
            stored
        } else {
            Bytes::from(pipeline.unwrap(&stored, place)?.into_owned())
        };
        Ok(Self::Whole { bytes, at: 0 })
    }

    /// The next `n` bytes; `None` if fewer are left.
    fn take(&mut self, n: usize) -> Result<Option<&[u8]>, CodecError> {
        match self {
            Self::Whole { bytes, at } => {
                let start = *at;
                let taken = start.checked_add(n).and_then(|end| bytes.get(start..end));
                *at += taken.map_or(0, <[u8]>::len);
                Ok(taken)
            }
            Self::Pieces(pieces) => pieces.take(n),
        }
    }

    fn is_at_end(&mut self) -> Result<bool, CodecError> {
        match self {
            Self::Whole { bytes, at } => Ok(*at == bytes.len()),
            Self::Pieces(pieces) => pieces.is_at_end(),
        }
    }
}

impl ElementStream {
    /// The elements of a stored chunk, which must contain `count` elements.
    pub(crate) fn new(
        pipeline: &Pipeline,
        (object, offset, stored): (String, u64, Bytes),
        count: Option<u64>,
    ) -> Result<Self> {
        let place = Place::new(&object, "chunk", offset);
        let mut source = Source::new(pipeline, stored, place)?;
        let left = number(source.take(4), place)?;
        if count != Some(u64::from(left)) {
            return Err(place.corrupt(format!("{left} elements in a chunk")));
        }
        Ok(Self { object, offset, source, left })
    }

    /// Returns true if nothing more can arrive, because the decoding thread belongs to the parent of this forked
    /// process.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(&self.source, Source::Pieces(pieces) if pieces.is_lost())
    }

    /// The next element; `None` after the last.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](hyperslab_core::Error::Corrupt) if the chunk does not decode, or has too few or too
    /// many elements. The stream must not be used afterwards.
    pub fn next_element(&mut self) -> Result<Option<&[u8]>> {
        let place = Place::new(&self.object, "chunk", self.offset);
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        let length = number(self.source.take(4), place)? as usize;
        self.left = left;
        if left == 0 {
            // Check for the end before returning the last element.
            let last = self.source.take(length).map_err(|error| failed(error, place))?;
            let last = last.ok_or_else(|| cut(length, place))?.to_vec();
            if !self.source.is_at_end().map_err(|error| failed(error, place))? {
                return Err(place.corrupt("bytes after the last element"));
            }
            self.source = Source::Whole { bytes: last.into(), at: 0 };
        }
        let element = self.source.take(length).map_err(|error| failed(error, place))?;
        element.map(Some).ok_or_else(|| cut(length, place))
    }
}

/// Reads a little-endian `u32`.
fn number(taken: Result<Option<&[u8]>, CodecError>, place: Place<'_>) -> Result<u32> {
    let bytes = taken.map_err(|error| failed(error, place))?;
    let bytes = bytes.and_then(<[u8]>::first_chunk::<4>);
    bytes.map(|bytes| u32::from_le_bytes(*bytes)).ok_or_else(|| cut(4, place))
}

fn cut(wanted: usize, place: Place<'_>) -> hyperslab_core::Error {
    place.corrupt(format!("ends within an element of {wanted} bytes"))
}
