//! Tiles of variable-length text whose first filter is RLE or dictionary. The filter restores the offsets.
//!
//! Such a tile has one chunk. Its metadata is `u32 0, u32 1, u32 input_len, u32 output_len, u32 8 * cells`, then for
//! RLE `u8 run_bytes, u8 length_bytes`, for a dictionary `u8 id_bytes, u8 length_bytes, u32 dictionary_bytes,
//! dictionary`.

use hyperslab_codec::tiledb::{
    StringDictionary, StringRuns, decode_string_dictionary, decode_string_runs, encode_string_dictionary,
    encode_string_runs,
};
use hyperslab_core::{Fields, Place, Result, claimed_memory};

use super::decode::codec;
use super::encode::Chunk;
use super::{TileChunk, TileChunks, TileCodec};
use crate::pipeline::Filter;

impl TileCodec {
    /// Decodes a tile of `expected` bytes. Returns the values and the start of each of the `cells` cells.
    pub(crate) fn decode_strings(
        &self,
        tile: &[u8],
        expected: usize,
        cells: usize,
        place: Place<'_>,
    ) -> Result<(Vec<u8>, Vec<u64>)> {
        let chunks = TileChunks::parse_exact(tile, expected, place)?;
        let mut values = claimed_memory(chunks.total, tile.len() as u64, place)?;
        let mut offsets = Vec::new();
        for chunk in &chunks.chunks {
            let out = &mut values[chunk.start..chunk.end()];
            let base = offsets.len();
            self.decode_string_chunk(chunk, out, &mut offsets, place)?;
            for offset in &mut offsets[base..] {
                *offset += chunk.start as u64;
            }
        }
        if offsets.len() != cells {
            return Err(place.corrupt(format!("{} strings in a tile of {cells} cells", offsets.len())));
        }
        Ok((values, offsets))
    }

    fn decode_string_chunk(
        &self,
        chunk: &TileChunk<'_>,
        out: &mut [u8],
        offsets: &mut Vec<u64>,
        place: Place<'_>,
    ) -> Result<()> {
        self.decode_to_first(chunk, place, |metadata, data| {
            let mut fields = Fields::new(metadata, place);
            let parts = (fields.u32()?, fields.u32()?);
            if parts != (0, 1) {
                return Err(place.corrupt(format!("{parts:?} parts of strings, expected (0, 1)")));
            }
            fields.skip(8)?;
            let cells = fields.u32()? as usize / 8;
            // Runs of empty strings take almost no bytes: a few bytes can encode 2^32 of them. Limit the number by
            // the stored size. The caller also checks it against the tile's cell count.
            if cells > limit(chunk) {
                return Err(place.corrupt(format!("{cells} strings in a chunk of {} bytes", chunk.original)));
            }
            let widths = (fields.u8()?, fields.u8()?);
            let done = match &self.filters[0] {
                Filter::Rle(_) => {
                    let form = StringRuns { count_bytes: widths.0, length_bytes: widths.1 };
                    decode_string_runs(form, data, cells, out, offsets)
                }
                _ => {
                    let form = StringDictionary { id_bytes: widths.0, length_bytes: widths.1 };
                    let length = fields.count_u32(1)?;
                    decode_string_dictionary(form, fields.bytes(length)?, data, cells, out, offsets)
                }
            };
            done.map_err(|error| codec(error, place))
        })
    }

    /// Encodes a whole tile of strings as one chunk, before the remaining filters.
    pub(super) fn encode_string_chunk(&self, values: &[u8], offsets: &[u64]) -> Result<Chunk> {
        let ends = offsets.iter().skip(1).copied().chain([values.len() as u64]);
        let strings = offsets.iter().zip(ends).map(|(start, end)| &values[*start as usize..end as usize]);
        let (mut data, mut dictionary) = (Vec::new(), Vec::new());
        let widths = match &self.filters[0] {
            Filter::Rle(_) => {
                let form = encode_string_runs(strings, &mut data);
                [form.count_bytes, form.length_bytes]
            }
            _ => {
                let form = encode_string_dictionary(strings, &mut dictionary, &mut data)
                    .map_err(|error| hyperslab_core::Error::invalid(error.to_string()))?;
                [form.id_bytes, form.length_bytes]
            }
        };
        let mut metadata = Vec::new();
        for word in [0, 1, values.len() as u32, data.len() as u32, 8 * offsets.len() as u32] {
            metadata.extend(word.to_le_bytes());
        }
        metadata.extend(widths);
        if matches!(self.filters[0], Filter::Dictionary(_)) {
            metadata.extend((dictionary.len() as u32).to_le_bytes());
            metadata.extend(dictionary);
        }
        Ok(Chunk { metadata: vec![metadata], data: vec![data] })
    }
}

/// The maximum plausible number of strings in a chunk. Empty strings have no value bytes, and runs of them need few.
const fn limit(chunk: &TileChunk<'_>) -> usize {
    chunk.original.saturating_add((chunk.data.len() + 64).saturating_mul(1 << 17))
}
