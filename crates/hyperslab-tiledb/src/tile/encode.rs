//! Encodes tiles through their pipelines.
//!
//! A chunk passes through the filters as two lists of parts: metadata and data. Data stays one part, unless
//! bitshuffle splits off a tail. Metadata has one part per filter that produced any.

use hyperslab_codec::tiledb::{
    encode_bit_width, encode_delta, encode_double_delta, encode_float_scale, encode_positive_delta,
    encode_runs, encode_xor,
};
use hyperslab_codec::{aes_gcm, bitshuffle, bzip2, checksum, deflate, lz4, shuffle, webp, zstd};
use hyperslab_core::{Error, Result};

use super::decode::integer;
use super::{CHUNK_HEADER, TileCodec};
use crate::datatype::Datatype;
use crate::pipeline::{Filter, delta_number};
use crate::random;

/// The size of a chunk before filtering; the same as in the library.
const CHUNK: usize = 64 << 10;

/// A chunk between two filters.
pub(super) struct Chunk {
    pub(super) metadata: Vec<Vec<u8>>,
    pub(super) data: Vec<Vec<u8>>,
}

impl TileCodec {
    /// Encodes a tile of fixed-size cells.
    pub(crate) fn encode_tile(&self, cells: &[u8]) -> Result<Vec<u8>> {
        let each = match self.filters.iter().any(|filter| matches!(filter, Filter::Webp(_))) {
            // The webp filter encodes a whole tile as one image.
            true => cells.len().max(1),
            false => (CHUNK / self.cell.max(1)).max(1) * self.cell.max(1),
        };
        self.encode_cut(cells, cells.chunks(each).map(<[u8]>::len))
    }

    /// Encodes a tile of variable-length values; `offsets` are the starts of the cells. Chunks are divided only
    /// between cells.
    pub(crate) fn encode_values(&self, values: &[u8], offsets: &[u64]) -> Result<Vec<u8>> {
        if self.keeps_offsets() {
            let mut tile = Vec::new();
            // The chunk's sizes and `8 * cells` are stored in 32 bits.
            if values.len() > u32::MAX as usize || offsets.len() > (u32::MAX / 8) as usize {
                return Err(Error::invalid("a tile of more than 4 GiB of text"));
            }
            if offsets.is_empty() {
                return Ok(0_u64.to_le_bytes().to_vec());
            }
            tile.extend(1_u64.to_le_bytes());
            let chunk = self.encode_string_chunk(values, offsets)?;
            self.finish(chunk, 1, values.len(), &mut tile)?;
            return Ok(tile);
        }
        let mut cuts = Vec::new();
        let mut start = 0;
        for end in offsets.iter().skip(1).copied().chain([values.len() as u64]) {
            let end = end as usize;
            if end - start >= CHUNK {
                cuts.push(end - start);
                start = end;
            }
        }
        if start < values.len() {
            cuts.push(values.len() - start);
        }
        self.encode_cut(values, cuts.into_iter())
    }

    fn encode_cut(&self, bytes: &[u8], cuts: impl ExactSizeIterator<Item = usize>) -> Result<Vec<u8>> {
        let mut tile = Vec::with_capacity(bytes.len() + 8 + cuts.len() * CHUNK_HEADER);
        tile.extend((cuts.len() as u64).to_le_bytes());
        let mut at = 0;
        for length in cuts {
            let part = &bytes[at..at + length];
            at += length;
            if self.is_plain() {
                put_header(length, length, 0, &mut tile)?;
                tile.extend_from_slice(part);
                continue;
            }
            let chunk = Chunk { metadata: Vec::new(), data: vec![part.to_vec()] };
            self.finish(chunk, 0, length, &mut tile)?;
        }
        Ok(tile)
    }

    /// Applies the filters from index `first` on and appends the chunk to the tile.
    fn finish(&self, mut chunk: Chunk, first: usize, original: usize, tile: &mut Vec<u8>) -> Result<()> {
        for (filter, datatype) in self.filters.iter().zip(&self.types).skip(first) {
            if !filter.passes_through(*datatype, self.version) {
                chunk = self.apply(filter, *datatype, chunk)?;
            }
        }
        let total = |parts: &[Vec<u8>]| parts.iter().map(Vec::len).sum::<usize>();
        put_header(original, total(&chunk.data), total(&chunk.metadata), tile)?;
        for part in chunk.metadata.iter().chain(&chunk.data) {
            tile.extend_from_slice(part);
        }
        Ok(())
    }

    fn apply(&self, filter: &Filter, datatype: Datatype, mut chunk: Chunk) -> Result<Chunk> {
        let failed = |error: hyperslab_codec::CodecError| Error::invalid(error.to_string());
        let mut own = Vec::new();
        match filter {
            Filter::NoOp => return Ok(chunk),
            Filter::Byteshuffle
            | Filter::Bitshuffle
            | Filter::Xor
            | Filter::FloatScale { .. }
            | Filter::Webp(_) => {
                let mut parts = Vec::new();
                for part in &chunk.data {
                    transform(filter, datatype, part, &mut parts).map_err(failed)?;
                }
                own.extend((parts.len() as u32).to_le_bytes());
                for part in &parts {
                    own.extend((part.len() as u32).to_le_bytes());
                }
                chunk.data = parts;
            }
            Filter::BitWidthReduction(window) | Filter::PositiveDelta(window) => {
                let input = chunk.data.concat();
                let (mut windows, mut out) = (Vec::new(), Vec::new());
                let number = integer(datatype.number());
                let window = *window as usize;
                let reduce = matches!(filter, Filter::BitWidthReduction(_));
                let encode = if reduce { encode_bit_width } else { encode_positive_delta };
                let count = encode(number, window, &input, &mut windows, &mut out).map_err(failed)?;
                if reduce {
                    own.extend((input.len() as u32).to_le_bytes());
                }
                own.extend(count.to_le_bytes());
                own.extend(windows);
                chunk.data = vec![out];
            }
            Filter::Md5 | Filter::Sha256 => {
                own.extend((chunk.metadata.len() as u32).to_le_bytes());
                own.extend((chunk.data.len() as u32).to_le_bytes());
                for part in chunk.metadata.iter().chain(&chunk.data) {
                    own.extend((part.len() as u64).to_le_bytes());
                    match filter {
                        Filter::Md5 => own.extend(checksum::md5(part)),
                        _ => own.extend(checksum::sha256(part)),
                    }
                }
            }
            _ => return self.pack(filter, datatype, &chunk),
        }
        chunk.metadata.insert(0, own);
        Ok(chunk)
    }

    /// Compression and encryption: processes each part separately, metadata first, and appends everything to the
    /// data.
    fn pack(&self, filter: &Filter, datatype: Datatype, chunk: &Chunk) -> Result<Chunk> {
        let (mut own, mut data) = (Vec::new(), Vec::new());
        own.extend((chunk.metadata.len() as u32).to_le_bytes());
        own.extend((chunk.data.len() as u32).to_le_bytes());
        for part in chunk.metadata.iter().chain(&chunk.data) {
            let start = data.len();
            let seal = self.pack_part(filter, datatype, part, &mut data)?;
            own.extend((part.len() as u32).to_le_bytes());
            own.extend(((data.len() - start) as u32).to_le_bytes());
            own.extend(seal);
        }
        Ok(Chunk { metadata: vec![own], data: vec![data] })
    }

    fn pack_part(
        &self,
        filter: &Filter,
        datatype: Datatype,
        part: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Vec<u8>> {
        let done = match filter {
            Filter::Gzip(level) => {
                let level = if *level < 0 { 6 } else { (*level).min(9) };
                deflate::encode(deflate::Wrapper::Zlib, part, level, out)
            }
            Filter::Zstd(level) => {
                let level = if *level < -7 { zstd::Options::default() } else { zstd::Options::level(*level) };
                zstd::encode(part, level, out)
            }
            Filter::Lz4(_) => lz4::encode(part, out),
            Filter::Bzip2(level) => bzip2::encode(part, (*level).clamp(1, 9) as u32, out),
            Filter::Rle(_) => encode_runs(self.cell, part, out),
            Filter::DoubleDelta(_, reinterpret) => {
                encode_double_delta(integer(delta_number(datatype, *reinterpret)), part, out)
            }
            Filter::Delta(_, reinterpret) => {
                encode_delta(delta_number(datatype, *reinterpret).size(), part, out)
            }
            Filter::Aes256Gcm => {
                let Some(key) = &self.key else { return Err(Error::invalid("encryption needs a key")) };
                let iv = random::bytes::<12>()?;
                let start = out.len();
                out.resize(start + part.len(), 0);
                let tag = aes_gcm::seal(key.bytes(), &iv, part, &mut out[start..])
                    .map_err(|error| Error::invalid(error.to_string()))?;
                return Ok([&iv[..], &tag].concat());
            }
            other => {
                return Err(Error::unsupported(
                    "tiledb",
                    format!("writing through the filter {}", other.shown().name),
                ));
            }
        };
        done.map_err(|error| Error::invalid(error.to_string()))?;
        Ok(Vec::new())
    }
}

fn put_header(original: usize, filtered: usize, metadata: usize, tile: &mut Vec<u8>) -> Result<()> {
    for length in [original, filtered, metadata] {
        let length = u32::try_from(length).map_err(|_| Error::invalid("a chunk of more than 4 GiB"))?;
        tile.extend(length.to_le_bytes());
    }
    Ok(())
}

/// Applies shuffle, XOR or scale to one part.
fn transform(
    filter: &Filter,
    datatype: Datatype,
    part: &[u8],
    parts: &mut Vec<Vec<u8>>,
) -> hyperslab_codec::Result<()> {
    let size = datatype.size();
    match filter {
        Filter::Byteshuffle => {
            let mut out = part.to_vec();
            let body = part.len() - part.len() % size;
            shuffle::encode(size, &part[..body], &mut out[..body])?;
            parts.push(out);
        }
        Filter::Bitshuffle => {
            // A multiple of 8 bytes, then the remainder as a separate part.
            let (even, odd) = part.split_at(part.len() - part.len() % 8);
            for part in [even, odd].into_iter().filter(|part| !part.is_empty()) {
                let mut out = part.to_vec();
                if part.len().is_multiple_of(8) && part.len().is_multiple_of(size) {
                    for (from, to) in part.chunks(8192).zip(out.chunks_mut(8192)) {
                        let body = from.len() - from.len() % (8 * size);
                        bitshuffle::encode_block(size, &from[..body], &mut to[..body])?;
                    }
                }
                parts.push(out);
            }
        }
        Filter::Xor => {
            let mut out = vec![0; part.len()];
            encode_xor(size, part, &mut out)?;
            parts.push(out);
        }
        Filter::FloatScale { scale, offset, width } => {
            let mut out = Vec::new();
            encode_float_scale(size, *scale, *offset, *width as usize, part, &mut out)?;
            parts.push(out);
        }
        Filter::Webp(options) => {
            let ((width, height), mut out) = (options.size(), Vec::new());
            webp::encode(options.pixels, width, height, part, &mut out)?;
            parts.push(out);
        }
        _ => {}
    }
    Ok(())
}
