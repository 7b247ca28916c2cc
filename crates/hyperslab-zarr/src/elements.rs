//! The elements of a chunk of variable length, one after the other, decoded as far as somebody asks.

use bytes::Bytes;
use hyperslab_codec::{CodecError, zstd};
use hyperslab_core::{Place, Result};

use crate::codec::Step;
use crate::pipeline::{Pipeline, failed, plausible};

/// Chunks that are stored in fewer bytes are decoded at once.
const WORTH_STREAMING: usize = 64 << 10;
/// What is decoded at a time.
const PIECE: usize = 128 << 10;

/// The elements of one chunk, in the order in which they are stored. See
/// [`ZarrArray::element_stream`](crate::ZarrArray::element_stream).
#[derive(Debug)]
pub struct ElementStream {
    object: String,
    offset: u64,
    source: Source,
    left: u32,
}

/// Decoded bytes.
#[derive(Debug)]
enum Source {
    Whole { bytes: Bytes, at: usize },
    Pieces(Box<Pieces>),
}

/// Bytes that are decoded when they are wanted; what is before `start` was used.
#[derive(Debug)]
struct Pieces {
    stream: zstd::Stream<Bytes>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// How many more bytes what is stored can plausibly become.
    room: usize,
}

impl Source {
    fn new(pipeline: &Pipeline, stored: Bytes, place: Place<'_>) -> Result<Self> {
        if let ([Step::Zstd { .. }], true) = (&pipeline.steps[..], stored.len() >= WORTH_STREAMING) {
            let room = plausible(stored.len());
            // Where this fails, so does decoding at once, or it can do what this cannot: large windows.
            if let Ok(stream) = zstd::Stream::new(stored.clone()) {
                let mut pieces = Pieces { stream, buffer: Vec::new(), start: 0, end: 0, room };
                if pieces.make(4).is_ok() {
                    return Ok(Self::Pieces(Box::new(pieces)));
                }
            }
        }
        let bytes = if pipeline.steps.is_empty() {
            stored
        } else {
            Bytes::from(pipeline.unwrap(&stored, place)?.into_owned())
        };
        Ok(Self::Whole { bytes, at: 0 })
    }

    /// The next `n` bytes; `None` when fewer are left.
    fn take(&mut self, n: usize) -> Result<Option<&[u8]>, CodecError> {
        match self {
            Self::Whole { bytes, at } => {
                let start = *at;
                let taken = start.checked_add(n).and_then(|end| bytes.get(start..end));
                *at += taken.map_or(0, <[u8]>::len);
                Ok(taken)
            }
            Self::Pieces(pieces) => {
                if !pieces.make(n)? {
                    return Ok(None);
                }
                let start = pieces.start;
                pieces.start += n;
                Ok(Some(&pieces.buffer[start..start + n]))
            }
        }
    }

    fn is_at_end(&mut self) -> Result<bool, CodecError> {
        match self {
            Self::Whole { bytes, at } => Ok(*at == bytes.len()),
            Self::Pieces(pieces) => Ok(!pieces.make(1)?),
        }
    }
}

impl Pieces {
    /// Decodes until `n` bytes are there; are they?
    fn make(&mut self, n: usize) -> Result<bool, CodecError> {
        while self.end - self.start < n {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.end == self.buffer.len() {
                // Lengths are claims: memory follows what is really there.
                let longer = (2 * self.buffer.len()).max(PIECE).min(n.max(PIECE));
                self.buffer.resize(longer, 0);
            }
            let piece = &mut self.buffer[self.end..];
            let piece_length = piece.len().min(self.room);
            let read = self.stream.read(&mut piece[..piece_length])?;
            if read == 0 {
                return Ok(false);
            }
            self.end += read;
            self.room -= read;
        }
        Ok(true)
    }
}

impl ElementStream {
    /// The elements of a stored chunk, which must be `count`.
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

    /// Is there so much to decode that it is not decoded at once?
    #[must_use]
    pub const fn is_long(&self) -> bool {
        matches!(self.source, Source::Pieces(_))
    }

    /// The next element; `None` after the last.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](hyperslab_core::Error::Corrupt) when the chunk does not decode, or ends before or after its elements.
    /// The stream is of no use then.
    pub fn next_element(&mut self) -> Result<Option<&[u8]>> {
        let place = Place::new(&self.object, "chunk", self.offset);
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        let length = number(self.source.take(4), place)? as usize;
        self.left = left;
        if left == 0 {
            // The end is looked at before the last element is handed out.
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

/// A `u32`, little-endian.
fn number(taken: Result<Option<&[u8]>, CodecError>, place: Place<'_>) -> Result<u32> {
    let bytes = taken.map_err(|error| failed(error, place))?;
    let bytes = bytes.and_then(<[u8]>::first_chunk::<4>);
    bytes.map(|bytes| u32::from_le_bytes(*bytes)).ok_or_else(|| cut(4, place))
}

fn cut(wanted: usize, place: Place<'_>) -> hyperslab_core::Error {
    place.corrupt(format!("ends within an element of {wanted} bytes"))
}
