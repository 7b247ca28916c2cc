//! The filter pipeline for writing.

use std::borrow::Cow;

use hyperslab_codec::{
    CodecError, bitshuffle, blosc, bzip2, checksum, deflate, hdf5_lz4, lzf, nbit, scale_offset, shuffle,
    szip, zstd,
};
use hyperslab_core::{Error, Result};

use super::{Pipeline, id, name_of};
use crate::message::pipeline::FilterSpec;

impl Pipeline {
    /// Applies all filters to a chunk. Returns its bytes and the mask of filters that were skipped because they saved nothing.
    pub(crate) fn encode<'a>(&self, raw: &'a [u8]) -> Result<(Cow<'a, [u8]>, u32)> {
        let (mut bytes, mut mask) = (Cow::Borrowed(raw), 0);
        for (index, spec) in self.specs.iter().enumerate() {
            // A chunk may skip an unsupported filter; its mask records that.
            if check(spec).is_err() {
                mask |= 1 << index;
                continue;
            }
            let coded = encode(spec, &bytes)?;
            if spec.optional && spec.is_compressor() && coded.len() >= bytes.len() {
                mask |= 1 << index;
            } else {
                bytes = Cow::Owned(coded);
            }
        }
        Ok((bytes, mask))
    }
}

impl FilterSpec {
    /// Returns true if its purpose is to make chunks smaller.
    fn is_compressor(&self) -> bool {
        match self.id {
            id::SHUFFLE | id::FLETCHER32 => false,
            id::BITSHUFFLE => super::step::bitshuffle_inner(self).is_some(),
            _ => true,
        }
    }
}

fn encode(spec: &FilterSpec, raw: &[u8]) -> Result<Vec<u8>> {
    let value = |index: usize| spec.values.get(index).copied().unwrap_or(0);
    let mut out = Vec::new();
    let done = match spec.id {
        id::DEFLATE => deflate::encode(deflate::Wrapper::Zlib, raw, value(0).cast_signed(), &mut out),
        id::SHUFFLE => {
            out.resize(raw.len(), 0);
            shuffle::encode(value(0).max(1) as usize, raw, &mut out)
        }
        id::FLETCHER32 => {
            out.reserve_exact(raw.len() + 4);
            out.extend_from_slice(raw);
            out.extend_from_slice(&checksum::fletcher32(raw).to_le_bytes());
            Ok(())
        }
        id::BZIP2 => bzip2::encode(raw, value(0), &mut out),
        id::LZF => {
            lzf::encode(raw, &mut out);
            Ok(())
        }
        id::ZSTD => zstd::encode(raw, zstd::Options::level(value(0).cast_signed()), &mut out),
        id::LZ4 => hdf5_lz4::encode(raw, value(0) as usize, &mut out),
        id::BITSHUFFLE => bit_shuffle(spec, raw, &mut out),
        id::BLOSC => blosc_options(spec)
            .ok_or_else(|| unsupported(spec))
            .map(|options| blosc::encode(raw, options, &mut out))?,
        id::SZIP => szip::Szip::parse(&spec.values).and_then(|szip| szip.encode(raw, &mut out)),
        id::NBIT => nbit::NBit::parse(&spec.values).and_then(|nbit| nbit.encode(raw, &mut out)),
        id::SCALE_OFFSET => {
            scale_offset::ScaleOffset::parse(&spec.values).and_then(|scale| scale.encode(raw, &mut out))
        }
        _ => return Err(unsupported(spec)),
    };
    done.map_err(|error: CodecError| Error::invalid(error.to_string()))?;
    Ok(out)
}

fn unsupported(spec: &FilterSpec) -> Error {
    Error::unsupported("hdf5", format!("writing with filter {} ({})", spec.id, name_of(spec)))
}

fn bit_shuffle(spec: &FilterSpec, raw: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    let size = spec.values.get(2).copied().unwrap_or(1).max(1) as usize;
    let block = super::step::bitshuffle_block(spec);
    match super::step::bitshuffle_inner(spec) {
        None => {
            out.resize(raw.len(), 0);
            bitshuffle::encode(size, block, raw, out)
        }
        Some(bitshuffle::Inner::Zstd { .. }) => {
            let level = spec.values.get(5).map_or(0, |level| level.cast_signed());
            bitshuffle::encode_stream(bitshuffle::Inner::Zstd { level }, size, block, raw, out)
        }
        Some(inner) => bitshuffle::encode_stream(inner, size, block, raw, out),
    }
}

/// The Blosc options for the parameters; `None` for Blosc's own codec, which we only read.
fn blosc_options(spec: &FilterSpec) -> Option<blosc::Options> {
    let value = |index: usize| spec.values.get(index).copied().unwrap_or(0);
    let codec = match value(6) {
        1 | 2 => blosc::Codec::Lz4,
        3 => blosc::Codec::Snappy,
        4 => blosc::Codec::Zlib,
        5 => blosc::Codec::Zstd,
        _ => return None,
    };
    let element = usize::try_from(value(2)).ok().filter(|size| (1..=255).contains(size)).unwrap_or(1);
    let filter = match value(5) {
        0 => None,
        2 => Some(blosc::Filter::Bitshuffle),
        _ => Some(blosc::Filter::Shuffle { size: element }),
    };
    Some(blosc::Options::new(codec, value(4).cast_signed(), element).with_filter(filter))
}

/// Returns true if chunks can be written with this filter.
pub(crate) fn check(spec: &FilterSpec) -> Result<()> {
    let known = match spec.id {
        id::DEFLATE
        | id::SHUFFLE
        | id::FLETCHER32
        | id::BZIP2
        | id::LZF
        | id::ZSTD
        | id::LZ4
        | id::BITSHUFFLE => true,
        id::BLOSC => blosc_options(spec).is_some(),
        id::SZIP => szip::Szip::parse(&spec.values).is_ok(),
        id::NBIT => nbit::NBit::parse(&spec.values).is_ok(),
        id::SCALE_OFFSET => scale_offset::ScaleOffset::parse(&spec.values).is_ok(),
        _ => false,
    };
    if known { Ok(()) } else { Err(unsupported(spec)) }
}
