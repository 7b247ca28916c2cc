//! The frame: header, chunks, index.

use super::{CODEC, NdShape};
use crate::blosc::Chunk;
use crate::bytes::Reader;
use crate::error::{Result, corrupt, size, unsupported};

/// Blocks of up to this size are decoded even if the array is much smaller.
const MAX_BLOCK: usize = 1 << 24;

/// A parsed frame.
#[derive(Debug, Clone)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    header_len: usize,
    decoded_len: usize,
    stored_len: usize,
    element: usize,
    chunk_len: usize,
    array: Option<NdShape>,
}

/// The meaning of one entry of the index.
enum IndexEntry<'a> {
    Chunk(Chunk<'a>),
    Zeros,
    Nan,
}

impl<'a> Frame<'a> {
    /// Parses the header of a frame.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::CodecError::Corrupt) if it is not a valid frame,
    /// [`Unsupported`](crate::CodecError::Unsupported) for an unsupported kind of frame.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = Reader::new(CODEC, bytes);
        let magic: [u8; 10] = reader.array()?;
        if magic[0] & 0xf0 != 0x90 || &magic[1..] != b"\xa8b2frame\0" {
            return Err(corrupt(CODEC, "no frame: the magic is missing"));
        }
        let header_len = claim(tagged::<4>(&mut reader, 0xd2)?)?;
        let frame_len = claim(tagged::<8>(&mut reader, 0xcf)?)?;
        let [general, kind, _, _] = tagged::<4>(&mut reader, 0xa4)?;
        let decoded_len = claim(tagged::<8>(&mut reader, 0xd3)?)?;
        let stored_len = claim(tagged::<8>(&mut reader, 0xd3)?)?;
        let element = claim(tagged::<4>(&mut reader, 0xd2)?)?;
        let _block_len = claim(tagged::<4>(&mut reader, 0xd2)?)?;
        let chunk_len = claim(tagged::<4>(&mut reader, 0xd2)?)?;
        if kind & 15 != 0 {
            return Err(unsupported(CODEC, "a sparse frame"));
        }
        if general & 0xc0 != 0 {
            return Err(unsupported(CODEC, "chunks or blocks of variable length"));
        }
        if general >> 4 & 3 != 1 {
            return Err(unsupported(CODEC, "places of other than 64 bits"));
        }
        if frame_len > bytes.len() || header_len > frame_len || stored_len > frame_len - header_len {
            return Err(corrupt(
                CODEC,
                format!(
                    "header of {header_len} bytes, chunks of {stored_len}, frame of {frame_len}; {} there",
                    bytes.len()
                ),
            ));
        }
        if decoded_len > 0 && chunk_len == 0 {
            return Err(corrupt(CODEC, "chunk size 0"));
        }
        let bytes = &bytes[..frame_len];
        // Threads (two int16), a flag, and the filters: 6 + 1 + 18 bytes; every chunk has its own filters.
        reader.take(25)?;
        let array = match find_metadata(bytes, header_len, &mut reader, b"b2nd")? {
            Some(content) => Some(NdShape::parse(content)?),
            None => None,
        };
        Ok(Self { bytes, header_len, decoded_len, stored_len, element, chunk_len, array })
    }

    /// The array in the frame, if it holds one.
    #[must_use]
    pub const fn array(&self) -> Option<&NdShape> {
        self.array.as_ref()
    }

    /// The decoded size, unverified: that of the array if the frame holds one, else that of all chunks.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::CodecError::Corrupt) if it overflows.
    pub fn decoded_len(&self) -> Result<usize> {
        match &self.array {
            Some(array) => array.byte_len(self.element),
            None => Ok(self.decoded_len),
        }
    }

    /// Decodes the frame into `out` of [`decoded_len`](Self::decoded_len) bytes.
    ///
    /// # Errors
    ///
    /// As [`decode`](super::decode).
    pub fn decode(&self, out: &mut [u8]) -> Result<()> {
        let expected = self.decoded_len()?;
        if out.len() != expected {
            return Err(size(CODEC, out.len(), expected));
        }
        if out.is_empty() {
            return Ok(());
        }
        let Some(array) = &self.array else {
            let count = out.len().div_ceil(self.chunk_len);
            let places = self.places(count)?;
            for (chunk, place) in out.chunks_mut(self.chunk_len).zip(places) {
                match self.place(place)? {
                    IndexEntry::Chunk(stored) => stored.decode(chunk)?,
                    IndexEntry::Zeros => chunk.fill(0),
                    IndexEntry::Nan => self.fill_nan(chunk)?,
                }
            }
            return Ok(());
        };
        let count = array.chunk_count()?;
        let places = self.places(count)?;
        let block_len = array.block_len(self.element)?;
        if block_len > out.len().saturating_mul(16).max(MAX_BLOCK) {
            return Err(unsupported(
                CODEC,
                format!("blocks of {block_len} bytes in an array of {}", out.len()),
            ));
        }
        let mut block = Vec::new();
        for (i, place) in places.into_iter().enumerate() {
            match self.place(place)? {
                IndexEntry::Chunk(stored) => {
                    // Decode only blocks that overlap the array, so that padding costs nothing.
                    array.each_block(i, |number, origin| {
                        if stored.block_range(number).len() != block_len {
                            return Err(corrupt(
                                CODEC,
                                format!("chunk {i} has no block {number} of {block_len} bytes"),
                            ));
                        }
                        block.resize(block_len, 0);
                        stored.decode_block(number, &mut block)?;
                        array.paste(&block, origin, self.element, out)
                    })?;
                }
                special @ (IndexEntry::Zeros | IndexEntry::Nan) => {
                    let nan = matches!(special, IndexEntry::Nan);
                    block.clear();
                    block.resize(array.row_len(self.element), 0);
                    if nan {
                        self.fill_nan(&mut block)?;
                    }
                    array.fill_chunk(i, &block, self.element, out)?;
                }
            }
        }
        Ok(())
    }

    /// The offsets of `count` chunks.
    fn places(&self, count: usize) -> Result<Vec<i64>> {
        let index = &self.bytes[self.header_len + self.stored_len..];
        let index = Chunk::parse(index)?;
        let len = count.checked_mul(8).filter(|&n| n == index.header().decoded_len);
        let len = len.ok_or_else(|| {
            corrupt(CODEC, format!("an index of {} bytes for {count} chunks", index.header().decoded_len))
        })?;
        let mut places = vec![0; len];
        index.decode(&mut places)?;
        Ok(places.as_chunks::<8>().0.iter().map(|place| i64::from_le_bytes(*place)).collect())
    }

    fn place(&self, place: i64) -> Result<IndexEntry<'a>> {
        if place < 0 {
            return match (place as u64) >> 56 & 7 {
                1 | 4 => Ok(IndexEntry::Zeros),
                2 => Ok(IndexEntry::Nan),
                other => Err(corrupt(CODEC, format!("special value {other}"))),
            };
        }
        let bytes = usize::try_from(place).ok().and_then(|place| {
            let chunks = &self.bytes[self.header_len..];
            chunks.get(place..)
        });
        bytes
            .ok_or_else(|| corrupt(CODEC, format!("a chunk at byte {place}")))
            .and_then(Chunk::parse)
            .map(IndexEntry::Chunk)
    }

    fn fill_nan(&self, out: &mut [u8]) -> Result<()> {
        match self.element {
            4 => out.as_chunks_mut::<4>().0.fill(f32::NAN.to_le_bytes()),
            8 => out.as_chunks_mut::<8>().0.fill(f64::NAN.to_le_bytes()),
            other => return Err(unsupported(CODEC, format!("NaN of {other} bytes"))),
        }
        Ok(())
    }
}

/// A MessagePack value of `N` bytes after its tag.
fn tagged<const N: usize>(reader: &mut Reader<'_>, tag: u8) -> Result<[u8; N]> {
    let found = reader.u8()?;
    if found != tag {
        return Err(corrupt(CODEC, format!("field of type {found:#x}, expected {tag:#x}")));
    }
    reader.array()
}

/// A big-endian size, which must not be negative.
fn claim<const N: usize>(bytes: [u8; N]) -> Result<usize> {
    let mut wide = [0; 8];
    wide[8 - N..].copy_from_slice(&bytes);
    let negative = bytes.first().is_some_and(|b| b & 0x80 != 0);
    let value = usize::try_from(u64::from_be_bytes(wide)).ok().filter(|_| !negative);
    value.ok_or_else(|| corrupt(CODEC, "a negative size"))
}

/// The content of the metadata called `name`, whose table is next in `reader`.
fn find_metadata<'a>(
    bytes: &'a [u8],
    header_len: usize,
    reader: &mut Reader<'a>,
    name: &[u8],
) -> Result<Option<&'a [u8]>> {
    let [array] = reader.array()?;
    if array != 0x93 {
        return Err(corrupt(CODEC, format!("metadata of type {array:#x}, expected an array of 3")));
    }
    let _len: [u8; 2] = tagged(reader, 0xcd)?;
    let count = u16::from_be_bytes(tagged(reader, 0xde)?);
    for _ in 0..count {
        let tag = reader.u8()?;
        if tag & 0xe0 != 0xa0 {
            return Err(corrupt(CODEC, format!("a metadata name of type {tag:#x}")));
        }
        let key = reader.take((tag & 31).into())?;
        let place = claim(tagged::<4>(reader, 0xd2)?)?;
        if key == name {
            let content = bytes.get(place..header_len).unwrap_or_default();
            let mut reader = Reader::new(CODEC, content);
            let len = claim(tagged::<4>(&mut reader, 0xc6)?)?;
            return reader.take(len).map(Some);
        }
    }
    Ok(None)
}
