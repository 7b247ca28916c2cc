//! Decodes one chunk through its pipeline.
//!
//! The filters run in reverse. Each removes its own metadata from the front of its input; compression and encryption
//! store the metadata of earlier filters inside their data. Intermediate bytes live in two thread-local buffers; the
//! last filter that changes the data writes to the caller's memory.

use hyperslab_codec::tiledb::{
    Integer, decode_bit_width, decode_delta, decode_double_delta, decode_float_scale, decode_positive_delta,
    decode_runs, decode_xor,
};
use hyperslab_codec::{aes_gcm, bitshuffle, bzip2, checksum, deflate, lz4, shuffle, webp, zstd};
use hyperslab_core::{Error, Fields, Place, Result, recycle_scratch, take_scratch};
use smallvec::SmallVec;

use super::{TileChunk, TileCodec};
use crate::datatype::{Datatype, Number};
use crate::pipeline::{Filter, delta_number};

/// The maximum size of a chunk between two filters: RLE at worst triples it, float scale doubles it, the other
/// filters add headers. A larger claim is corrupt.
const fn limit(original: usize) -> usize {
    original.saturating_mul(8).saturating_add(1 << 20)
}

struct Scratch {
    data: [Vec<u8>; 2],
    metadata: [Vec<u8>; 2],
}

/// Runs `work` with this thread's buffers.
fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    let mut scratch =
        Scratch { data: [take_scratch(), take_scratch()], metadata: [take_scratch(), take_scratch()] };
    let result = work(&mut scratch);
    let Scratch { data: [a, b], metadata: [c, d] } = scratch;
    for buffer in [d, c, b, a] {
        recycle_scratch(buffer);
    }
    result
}

/// The lengths of a part before and after filtering.
#[derive(Debug, Clone, Copy)]
struct FilteredPart {
    plain: usize,
    stored: usize,
}

/// A filter's metadata, parsed before its data is processed.
enum Step<'m> {
    /// The data is unchanged.
    Pass,
    /// Parts of these lengths, each filtered separately.
    Parts(SmallVec<[u32; 4]>),
    /// Bit-width reduction: input length and window metadata.
    BitWidth { input: usize, windows: &'m [u8] },
    /// Positive delta: window metadata, total length.
    PositiveDelta { windows: &'m [u8], total: usize },
    /// Compression or encryption: parts of metadata, parts of data, and (for encryption) a 28-byte seal for each.
    Packed {
        metadata: SmallVec<[FilteredPart; 4]>,
        data: SmallVec<[FilteredPart; 2]>,
        seals: SmallVec<[&'m [u8]; 4]>,
    },
}

/// Returns true if the filter does not change the data.
fn keeps_data(filter: &Filter, datatype: Datatype, version: u32) -> bool {
    matches!(filter, Filter::NoOp | Filter::Md5 | Filter::Sha256) || filter.passes_through(datatype, version)
}

impl TileCodec {
    /// Decodes a chunk into `out`, which has its original length.
    pub(crate) fn decode_chunk(&self, chunk: &TileChunk<'_>, out: &mut [u8], place: Place<'_>) -> Result<()> {
        let place = Place { offset: chunk.offset, ..place };
        let last = self.last_change(0);
        let Some(last) = last else {
            // There are only checksums, and the data is already in place.
            with_scratch(|scratch| self.undo(chunk, 0, None, out, scratch, place).map(|_| ()))?;
            return copy_exact(chunk.data, out, place);
        };
        with_scratch(|scratch| self.undo(chunk, 0, Some(last), out, scratch, place).map(|_| ()))
    }

    /// The first filter at or after `from` that changes the data. It is the last one to be undone.
    fn last_change(&self, from: usize) -> Option<usize> {
        (from..self.filters.len()).find(|&i| !keeps_data(&self.filters[i], self.types[i], self.version))
    }

    /// Undoes all filters but the first, for first filters whose output is not just bytes. Calls `work` with the
    /// metadata and the data that the first filter produced.
    pub(super) fn decode_to_first<T>(
        &self,
        chunk: &TileChunk<'_>,
        place: Place<'_>,
        work: impl FnOnce(&[u8], &[u8]) -> Result<T>,
    ) -> Result<T> {
        let place = Place { offset: chunk.offset, ..place };
        with_scratch(|scratch| {
            let (metadata, data) = self.undo(chunk, 1, None, &mut [], scratch, place)?;
            let metadata = match metadata {
                Held::Chunk { skip } => &chunk.metadata[skip..],
                Held::Buffer { slot, skip } => &scratch.metadata[slot][skip..],
            };
            let data = match data {
                Held::Chunk { .. } => chunk.data,
                Held::Buffer { slot, .. } => &scratch.data[slot][..],
            };
            work(metadata, data)
        })
    }

    /// Undoes the filters from the last down to `stop`. The filter with index `direct` writes to `out`, the others to
    /// the scratch buffers. Returns where the metadata and the data are then.
    fn undo(
        &self,
        chunk: &TileChunk<'_>,
        stop: usize,
        direct: Option<usize>,
        out: &mut [u8],
        scratch: &mut Scratch,
        place: Place<'_>,
    ) -> Result<(Held, Held)> {
        let limit = limit(chunk.original);
        let (mut metadata, mut data) = (Held::Chunk { skip: 0 }, Held::Chunk { skip: 0 });
        for index in (stop..self.filters.len()).rev() {
            let (filter, datatype) = (&self.filters[index], self.types[index]);
            if matches!(filter, Filter::NoOp) || filter.passes_through(datatype, self.version) {
                continue;
            }
            let Scratch { data: buffers, metadata: metadata_buffers } = scratch;
            let (held_metadata, spare_metadata) = metadata.resolve(chunk.metadata, metadata_buffers);
            let (held_data, spare_data) = data.resolve(chunk.data, buffers);
            if direct.is_some_and(|direct| index < direct) {
                // All changes are undone. Only checksums remain, over the bytes in the caller's memory.
                let mut fields = Fields::new(held_metadata, place);
                self.read_step(filter, out.len(), &mut fields)?;
                self.verify_checksums(filter, held_metadata, fields.rest(), out, place)?;
                metadata.advance(fields.position());
                continue;
            }
            let mut fields = Fields::new(held_metadata, place);
            let step = self.read_step(filter, held_data.len(), &mut fields)?;
            let skip = fields.position();
            // The metadata that this filter did not consume stays in place, further back.
            let rest_of_metadata = fields.rest();
            match &step {
                Step::Pass => {
                    self.verify_checksums(filter, held_metadata, rest_of_metadata, held_data, place)?;
                }
                Step::Packed { metadata: parts, .. } => {
                    let total = parts.iter().map(|part| part.plain).sum();
                    check_limit(total, limit, place)?;
                    spare_metadata.1.clear();
                    spare_metadata.1.resize(total, 0);
                }
                _ => {}
            }
            if matches!(step, Step::Pass) {
                metadata.advance(skip);
                continue;
            }
            let length = self.step_length(filter, datatype, &step);
            check_limit(length, limit, place)?;
            let target: &mut [u8] = if direct == Some(index) {
                if length != out.len() {
                    return Err(place.corrupt(format!(
                        "{} makes {length} bytes of a chunk, expected {}",
                        filter.shown().name,
                        out.len()
                    )));
                }
                out
            } else {
                spare_data.1.resize(length, 0);
                &mut spare_data.1[..length]
            };
            self.run_step(filter, datatype, &step, held_data, target, spare_metadata.1, place)?;
            if matches!(step, Step::Packed { .. }) {
                metadata = Held::Buffer { slot: spare_metadata.0, skip: 0 };
            } else {
                metadata.advance(skip);
            }
            if direct != Some(index) {
                data = Held::Buffer { slot: spare_data.0, skip: 0 };
            }
        }
        Ok((metadata, data))
    }

    /// Parses a filter's own metadata from the front.
    fn read_step<'m>(&self, filter: &Filter, data: usize, fields: &mut Fields<'m>) -> Result<Step<'m>> {
        match filter {
            Filter::Bitshuffle
            | Filter::Byteshuffle
            | Filter::Xor
            | Filter::FloatScale { .. }
            | Filter::Webp(_) => {
                let place = fields.place();
                let count = fields.count_u32(4)?;
                let lengths = (0..count).map(|_| fields.u32()).collect::<Result<SmallVec<[u32; 4]>>>()?;
                let total: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
                if total != data as u64 {
                    return Err(place.corrupt(format!("parts of {total} bytes, the data has {data}")));
                }
                Ok(Step::Parts(lengths))
            }
            Filter::BitWidthReduction(_) => {
                let input = fields.u32()? as usize;
                let size = self.size_at(filter);
                let count = fields.count_u32(size + 5)?;
                Ok(Step::BitWidth { input, windows: fields.bytes(count * (size + 5))? })
            }
            Filter::PositiveDelta(_) => {
                let size = self.size_at(filter);
                let count = fields.count_u32(size + 4)?;
                let windows = fields.bytes(count * (size + 4))?;
                let total = windows
                    .chunks_exact(size + 4)
                    .map(|window| {
                        u32::from_le_bytes([
                            window[size],
                            window[size + 1],
                            window[size + 2],
                            window[size + 3],
                        ]) as usize
                    })
                    .sum();
                Ok(Step::PositiveDelta { windows, total })
            }
            Filter::Md5 | Filter::Sha256 => {
                let digest = if matches!(filter, Filter::Md5) { 16 } else { 32 };
                let (metadata, data) = (fields.u32()? as usize, fields.u32()? as usize);
                let entries = metadata.checked_add(data).and_then(|count| count.checked_mul(8 + digest));
                fields.skip(entries.unwrap_or(usize::MAX))?;
                Ok(Step::Pass)
            }
            _ => {
                let seal = if matches!(filter, Filter::Aes256Gcm) { 28 } else { 0 };
                read_packed(fields, data, seal)
            }
        }
    }

    /// The size of the input values of this filter.
    fn size_at(&self, filter: &Filter) -> usize {
        let index = self.filters.iter().position(|own| std::ptr::eq(own, filter));
        index.and_then(|index| self.types.get(index)).map_or(1, |datatype| datatype.number().size())
    }

    /// The length of the filter's input in bytes.
    fn step_length(&self, filter: &Filter, datatype: Datatype, step: &Step<'_>) -> usize {
        match step {
            Step::Pass => 0,
            Step::Parts(lengths) => {
                let total: usize = lengths.iter().map(|length| *length as usize).sum();
                match filter {
                    Filter::FloatScale { width, .. } => total / *width as usize * datatype.size(),
                    Filter::Webp(options) => options.bytes().saturating_mul(lengths.len()),
                    _ => total,
                }
            }
            Step::BitWidth { input, .. } => *input,
            Step::PositiveDelta { total, .. } => *total,
            Step::Packed { data, .. } => data.iter().map(|part| part.plain).sum(),
        }
    }

    /// Undoes one filter: writes `data` to `out`, and the metadata packed with it to `metadata_out`.
    #[expect(clippy::too_many_arguments, reason = "all inputs and outputs of a filter")]
    fn run_step(
        &self,
        filter: &Filter,
        datatype: Datatype,
        step: &Step<'_>,
        data: &[u8],
        out: &mut [u8],
        metadata_out: &mut [u8],
        place: Place<'_>,
    ) -> Result<()> {
        match step {
            Step::Pass => Ok(()),
            Step::Parts(lengths) => {
                let (mut from, mut to) = (0, 0);
                for &length in lengths {
                    let part = &data[from..from + length as usize];
                    let made = match filter {
                        Filter::FloatScale { width, .. } => part.len() / *width as usize * datatype.size(),
                        Filter::Webp(options) => options.bytes(),
                        _ => part.len(),
                    };
                    let target = &mut out[to..to + made];
                    undo_part(filter, datatype, part, target).map_err(|error| codec(error, place))?;
                    (from, to) = (from + part.len(), to + made);
                }
                Ok(())
            }
            Step::BitWidth { windows, .. } => {
                decode_bit_width(integer(datatype.number()), windows, data, out)
                    .map_err(|error| codec(error, place))
            }
            Step::PositiveDelta { windows, .. } => {
                decode_positive_delta(datatype.number().size(), windows, data, out)
                    .map_err(|error| codec(error, place))
            }
            Step::Packed { metadata, data: parts, seals } => {
                let (mut at, mut to, mut metadata_to) = (0, 0, 0);
                for (number, part) in metadata.iter().chain(parts).enumerate() {
                    let stored = &data[at..at + part.stored];
                    at += part.stored;
                    let target = if number < metadata.len() {
                        metadata_to += part.plain;
                        &mut metadata_out[metadata_to - part.plain..metadata_to]
                    } else {
                        to += part.plain;
                        &mut out[to - part.plain..to]
                    };
                    self.unpack(filter, datatype, stored, seals.get(number).copied(), target, place)?;
                }
                Ok(())
            }
        }
    }

    /// Decompresses or decrypts one part.
    fn unpack(
        &self,
        filter: &Filter,
        datatype: Datatype,
        stored: &[u8],
        seal: Option<&[u8]>,
        out: &mut [u8],
        place: Place<'_>,
    ) -> Result<()> {
        if out.is_empty() && !matches!(filter, Filter::Aes256Gcm) {
            return Ok(());
        }
        let failed = |error| codec(error, place);
        match filter {
            Filter::Gzip(_) => deflate::decode(deflate::Wrapper::Zlib, stored, out).map_err(failed),
            Filter::Zstd(_) => zstd::decode(stored, out).map_err(failed),
            Filter::Lz4(_) => lz4::decode(stored, out).map_err(failed),
            Filter::Bzip2(_) => bzip2::decode(stored, out).map_err(failed),
            Filter::Rle(_) => decode_runs(self.cell, stored, out).map_err(failed),
            Filter::DoubleDelta(_, reinterpret) => {
                let number = delta_number(datatype, *reinterpret);
                decode_double_delta(number.size(), stored, out).map_err(failed)
            }
            Filter::Delta(_, reinterpret) => {
                let number = delta_number(datatype, *reinterpret);
                decode_delta(number.size(), stored, out).map_err(failed)
            }
            Filter::Dictionary(_) => Err(place.corrupt("a dictionary filter that is not the first on text")),
            Filter::Aes256Gcm => {
                let key = self.key.as_ref().ok_or_else(|| no_key(place))?;
                let mut fields = Fields::new(seal.unwrap_or_default(), place);
                let (iv, tag) = (fields.array()?, fields.array()?);
                aes_gcm::open(key.bytes(), &iv, &tag, stored, out).map_err(failed)
            }
            _ => Err(place.corrupt(format!("filter {} does not pack", filter.code()))),
        }
    }

    /// Verifies the digests of a checksum filter.
    fn verify_checksums(
        &self,
        filter: &Filter,
        metadata: &[u8],
        metadata_in: &[u8],
        data: &[u8],
        place: Place<'_>,
    ) -> Result<()> {
        let mut fields = Fields::new(metadata, place);
        let counts = (fields.u32()?, fields.u32()?);
        for (count, covered, what) in [(counts.0, metadata_in, "metadata"), (counts.1, data, "data")] {
            let mut at = 0_usize;
            for _ in 0..count {
                let length = fields.u64()?;
                let end = usize::try_from(length).ok().and_then(|length| at.checked_add(length));
                let part = end.and_then(|end| covered.get(at..end));
                let part = part.ok_or_else(|| {
                    place.corrupt(format!(
                        "a checksum over {length} bytes of {what}, but there are {}",
                        covered.len()
                    ))
                })?;
                let good = match filter {
                    Filter::Md5 => fields.bytes(16)? == checksum::md5(part),
                    _ => fields.bytes(32)? == checksum::sha256(part),
                };
                if !good {
                    let name = if matches!(filter, Filter::Md5) { "MD5" } else { "SHA-256" };
                    return Err(
                        place.corrupt(format!("{name} of the chunk's {what} differs from the stored one"))
                    );
                }
                at += part.len();
            }
        }
        Ok(())
    }
}

/// The location of the bytes between two filters.
#[derive(Debug, Clone, Copy)]
enum Held {
    /// In the stored chunk, from byte `skip` on.
    Chunk { skip: usize },
    /// In a scratch buffer, from byte `skip` on.
    Buffer { slot: usize, skip: usize },
}

impl Held {
    /// Returns the bytes, and the free buffer with its index.
    fn resolve<'a>(
        &self,
        chunk: &'a [u8],
        buffers: &'a mut [Vec<u8>; 2],
    ) -> (&'a [u8], (usize, &'a mut Vec<u8>)) {
        let [first, second] = buffers;
        match self {
            Self::Chunk { skip } => (&chunk[*skip..], (0, first)),
            Self::Buffer { slot: 0, skip } => (&first[*skip..], (1, second)),
            Self::Buffer { skip, .. } => (&second[*skip..], (0, first)),
        }
    }

    const fn advance(&mut self, by: usize) {
        match self {
            Self::Chunk { skip } | Self::Buffer { skip, .. } => *skip += by,
        }
    }
}

fn read_packed<'m>(fields: &mut Fields<'m>, data: usize, seal: usize) -> Result<Step<'m>> {
    let place = fields.place();
    let (metadata_parts, data_parts) = (fields.u32()?, fields.u32()?);
    let (mut metadata, mut parts, mut seals) = (SmallVec::new(), SmallVec::new(), SmallVec::new());
    let mut total = 0_u64;
    for number in 0..u64::from(metadata_parts) + u64::from(data_parts) {
        let part = FilteredPart { plain: fields.u32()? as usize, stored: fields.u32()? as usize };
        total += part.stored as u64;
        if seal > 0 {
            seals.push(fields.bytes(seal)?);
        }
        if number < u64::from(metadata_parts) { metadata.push(part) } else { parts.push(part) }
    }
    if total != data as u64 {
        return Err(place.corrupt(format!("packed parts of {total} bytes, the data has {data}")));
    }
    Ok(Step::Packed { metadata, data: parts, seals })
}

/// Undoes shuffle, XOR or scale for one part.
fn undo_part(
    filter: &Filter,
    datatype: Datatype,
    part: &[u8],
    out: &mut [u8],
) -> hyperslab_codec::Result<()> {
    match filter {
        Filter::Byteshuffle => {
            // The tail, shorter than one value, is copied.
            let body = part.len() - part.len() % datatype.size();
            shuffle::decode(datatype.size(), &part[..body], &mut out[..body])?;
            out[body..].copy_from_slice(&part[body..]);
            Ok(())
        }
        Filter::Bitshuffle => undo_bitshuffle(datatype.size(), part, out),
        Filter::Xor => decode_xor(datatype.size(), part, out),
        Filter::FloatScale { scale, offset, width } => {
            decode_float_scale(datatype.size(), *scale, *offset, *width as usize, part, out)
        }
        Filter::Webp(options) => {
            let (width, height) = options.size();
            webp::decode(options.pixels, width, height, part, out)
        }
        _ => Ok(()),
    }
}

/// Undoes bitshuffle in blocks of 8192 bytes, each transposed separately in multiples of 8 elements, with its own
/// tail. A part whose length is not a multiple of both 8 and the value's size was stored unchanged.
fn undo_bitshuffle(size: usize, part: &[u8], out: &mut [u8]) -> hyperslab_codec::Result<()> {
    if !part.len().is_multiple_of(8) || !part.len().is_multiple_of(size) {
        out.copy_from_slice(part);
        return Ok(());
    }
    for (from, to) in part.chunks(8192).zip(out.chunks_mut(8192)) {
        let body = from.len() - from.len() % (8 * size);
        bitshuffle::decode_block(size, &from[..body], &mut to[..body])?;
        to[body..].copy_from_slice(&from[body..]);
    }
    Ok(())
}

/// The kernels' type for a number.
pub(super) const fn integer(number: Number) -> Integer {
    Integer { size: number.size(), signed: number.is_signed() }
}

fn check_limit(length: usize, limit: usize, place: Place<'_>) -> Result<()> {
    if length > limit {
        return Err(place.corrupt(format!("{length} bytes between two filters, expected at most {limit}")));
    }
    Ok(())
}

fn copy_exact(from: &[u8], to: &mut [u8], place: Place<'_>) -> Result<()> {
    check_length(from, to.len(), place)?;
    to.copy_from_slice(from);
    Ok(())
}

/// Fails if the stored bytes of an unfiltered chunk do not have the length of its cells.
pub(super) fn check_length(stored: &[u8], expected: usize, place: Place<'_>) -> Result<()> {
    if stored.len() != expected {
        return Err(place.corrupt(format!("{} stored bytes in a chunk of {expected}", stored.len())));
    }
    Ok(())
}

/// Converts a kernel's error, adding its place.
pub(super) fn codec(error: hyperslab_codec::CodecError, place: Place<'_>) -> Error {
    match &error {
        hyperslab_codec::CodecError::Unsupported { .. } => Error::unsupported(place.store, error.to_string()),
        _ => place.corrupt(error.to_string()),
    }
}

/// The error for an encrypted array without a key.
pub(crate) fn no_key(place: Place<'_>) -> Error {
    Error::invalid(format!("{}: the array is encrypted; a key is needed", place.store))
}

/// The error for a structure that is not encrypted although a key was given.
pub(crate) fn not_encrypted(place: Place<'_>) -> Error {
    Error::invalid(format!(
        "{}: the {} is not encrypted, but a key was given; open it without a key if you trust it",
        place.store, place.structure
    ))
}
