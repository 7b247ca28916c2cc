//! Tiles: how a field's cells are divided into chunks, and how a chunk is decoded by its pipeline.
//!
//! A tile is `u64 chunks`, then per chunk `u32 original, u32 filtered, u32 metadata_len, metadata, data`. Chunks are independent,
//! so a reader decodes only those it needs; without filters it copies cells directly from them.

mod decode;
mod encode;
mod strings;

use hyperslab_core::{Fields, Place, Result, claimed_memory};

pub(crate) use decode::{no_key, not_encrypted};

use crate::datatype::Datatype;
use crate::key::Key;
use crate::pipeline::{Filter, Pipeline};

/// Up to this size, a tile may expand by any factor; above it, by at most the following factor.
const PLAUSIBLE_BYTES: u64 = 16 << 20;
const MAX_EXPANSION: u64 = 1 << 17;

/// Bytes of a chunk's header.
pub(crate) const CHUNK_HEADER: usize = 12;

/// One chunk of a tile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TileChunk<'a> {
    /// The start of its bytes in the decoded tile.
    pub(crate) start: usize,
    /// Its decoded size in bytes.
    pub(crate) original: usize,
    /// Metadata of the filters.
    pub(crate) metadata: &'a [u8],
    /// The filtered bytes.
    pub(crate) data: &'a [u8],
    /// The chunk's offset in the file, for messages.
    pub(crate) offset: u64,
}

impl TileChunk<'_> {
    /// The end of its bytes in the decoded tile.
    pub(crate) const fn end(&self) -> usize {
        self.start + self.original
    }
}

/// The chunks of a tile, in order and contiguous: `[..].start` is sorted.
#[derive(Debug)]
pub(crate) struct TileChunks<'a> {
    pub(crate) chunks: Vec<TileChunk<'a>>,
    /// Bytes of the decoded tile.
    pub(crate) total: usize,
}

impl<'a> TileChunks<'a> {
    /// Parses a stored tile into its chunks. Claims are checked against the available bytes.
    pub(crate) fn parse(tile: &'a [u8], place: Place<'a>) -> Result<Self> {
        let mut fields = Fields::new(tile, place);
        let count = fields.count_u64(CHUNK_HEADER)?;
        let mut chunks = Vec::with_capacity(count);
        let mut total = 0_usize;
        for _ in 0..count {
            let offset = fields.place().offset;
            let original = fields.u32()? as usize;
            let (filtered, metadata) = (fields.u32()? as usize, fields.u32()? as usize);
            let metadata = fields.bytes(metadata)?;
            let data = fields.bytes(filtered)?;
            chunks.push(TileChunk { start: total, original, metadata, data, offset });
            total = total
                .checked_add(original)
                .ok_or_else(|| place.corrupt("the chunks are larger than memory"))?;
        }
        let stored = tile.len() as u64;
        if total as u64 > PLAUSIBLE_BYTES && total as u64 / MAX_EXPANSION > stored {
            return Err(place.corrupt(format!("{stored} stored bytes cannot hold {total}")));
        }
        Ok(Self { chunks, total })
    }

    /// Like [`parse`](Self::parse), but fails for a tile of another size.
    pub(crate) fn parse_exact(tile: &'a [u8], expected: usize, place: Place<'a>) -> Result<Self> {
        let chunks = Self::parse(tile, place)?;
        if chunks.total != expected {
            return Err(place.corrupt(format!("a tile of {} bytes, expected {expected} bytes", chunks.total)));
        }
        Ok(chunks)
    }

    /// The number of the chunk that holds byte `at` of the decoded tile.
    pub(crate) fn holding(&self, at: usize) -> Option<usize> {
        let index = self.chunks.partition_point(|chunk| chunk.end() <= at);
        (index < self.chunks.len()).then_some(index)
    }

    /// Fails if a chunk's stored size differs from its decoded size, for a codec without filters.
    pub(crate) fn check_plain(&self, place: Place<'_>) -> Result<()> {
        for chunk in &self.chunks {
            decode::check_length(chunk.data, chunk.original, Place { offset: chunk.offset, ..place })?;
        }
        Ok(())
    }

    /// Returns true if all chunks start and end between cells of this size.
    pub(crate) fn whole_cells(&self, cell: usize) -> bool {
        cell > 0 && self.chunks.iter().all(|chunk| chunk.original.is_multiple_of(cell))
    }
}

/// Pipeline, types and key for converting a field's tiles to cells and back.
#[derive(Debug, Clone)]
pub(crate) struct TileCodec {
    filters: Vec<Filter>,
    /// The input type of each filter.
    types: Vec<Datatype>,
    /// Bytes per cell, or per value if cells have variable length.
    cell: usize,
    /// Whether it is variable-length text, which RLE and dictionary filters handle separately.
    text: bool,
    /// The format version of the fragment.
    version: u32,
    key: Option<Key>,
}

impl TileCodec {
    /// The codec of a field. `variable` is for the values of a variable-length field.
    pub(crate) fn new(
        pipeline: &Pipeline,
        datatype: Datatype,
        cell: usize,
        variable: bool,
        version: u32,
        key: Option<&Key>,
    ) -> Self {
        let mut pipeline = pipeline.clone();
        // A schema's pipeline never contains encryption; it is appended at run time if there is a key. Generic tiles list it, so
        // do not add it twice.
        if key.is_some() && !pipeline.filters.contains(&Filter::Aes256Gcm) {
            pipeline.filters.push(Filter::Aes256Gcm);
        }
        let types = pipeline.types(datatype);
        let text = variable && datatype.is_narrow_text();
        Self { filters: pipeline.filters, types, cell, text, version, key: key.cloned() }
    }

    /// Returns true if the pipeline changes nothing, so that stored chunks are the cells.
    pub(crate) fn is_plain(&self) -> bool {
        self.filters.iter().all(|filter| *filter == Filter::NoOp)
    }

    /// Returns true if the first filter stores the offsets of variable-length text, instead of an offsets tile.
    pub(crate) fn keeps_offsets(&self) -> bool {
        self.text
            && match self.filters.first() {
                Some(Filter::Rle(_)) => self.ascii_or(12, 17),
                Some(Filter::Dictionary(_)) => self.ascii_or(13, 17),
                _ => false,
            }
    }

    /// Returns true if the version is late enough: from the first on for ASCII, from the second on for UTF-8.
    fn ascii_or(&self, ascii: u32, utf8: u32) -> bool {
        let least = if self.types.first() == Some(&Datatype::StringAscii) { ascii } else { utf8 };
        self.version >= least
    }

    /// Decodes a whole tile of exactly `expected` bytes.
    pub(crate) fn decode_tile(&self, tile: &[u8], expected: usize, place: Place<'_>) -> Result<Vec<u8>> {
        let chunks = TileChunks::parse_exact(tile, expected, place)?;
        let mut out = claimed_memory(chunks.total, tile.len() as u64, place)?;
        self.decode_chunks(&chunks, &mut out, place)?;
        Ok(out)
    }

    /// Decodes a whole tile into `out`, which it must fill.
    pub(crate) fn decode_tile_into(&self, tile: &[u8], out: &mut [u8], place: Place<'_>) -> Result<()> {
        let chunks = TileChunks::parse_exact(tile, out.len(), place)?;
        self.decode_chunks(&chunks, out, place)
    }

    /// Decodes the chunks of a tile into `out`, which has their total length.
    pub(crate) fn decode_chunks(
        &self,
        chunks: &TileChunks<'_>,
        out: &mut [u8],
        place: Place<'_>,
    ) -> Result<()> {
        for chunk in &chunks.chunks {
            self.decode_chunk(chunk, &mut out[chunk.start..chunk.end()], place)?;
        }
        Ok(())
    }
}
