//! Undoes one filter.

use hyperslab_codec::{
    CodecError, bitshuffle, blosc, blosc2, bzip2, checksum, deflate, hdf5_lz4, lzf, nbit, scale_offset,
    shuffle, szip, zfp, zstd,
};
use hyperslab_core::{Error, Place, Result};

use super::id;
use super::name_of;
use crate::message::pipeline::FilterSpec;

/// Adds the location to a kernel's error.
fn failed(place: Place<'_>, error: CodecError) -> Error {
    match error {
        CodecError::Unsupported { codec, feature } => place.unsupported(format!("{codec}: {feature}")),
        error => place.corrupt(error.to_string()),
    }
}

/// Undoes a filter into `out`, which it must fill.
pub(super) fn decode(spec: &FilterSpec, stored: &[u8], out: &mut [u8], place: Place<'_>) -> Result<()> {
    let value = |index: usize| spec.values.get(index).copied().unwrap_or(0) as usize;
    let done = match spec.id {
        id::DEFLATE => deflate::decode(deflate::Wrapper::Zlib, stored, out),
        id::SHUFFLE => shuffle::decode(value(0).max(1), stored, out),
        id::FLETCHER32 => {
            let data = fletcher32(stored, place)?;
            if data.len() != out.len() {
                return Err(wrong_size("fletcher32", data.len(), out.len(), place));
            }
            out.copy_from_slice(data);
            Ok(())
        }
        id::BZIP2 => bzip2::decode(stored, out),
        id::LZF => lzf::decode(stored, out),
        id::BLOSC => blosc::decode(stored, out),
        id::BLOSC2 => blosc2::decode(stored, out),
        id::LZ4 => hdf5_lz4::decode(stored, out),
        id::ZSTD => zstd::decode(stored, out),
        id::BITSHUFFLE => match bitshuffle_inner(spec) {
            None => bitshuffle::decode(value(2).max(1), bitshuffle_block(spec), stored, out),
            Some(inner) => bitshuffle::decode_stream(inner, value(2).max(1), stored, out),
        },
        id::SZIP => szip::Szip::parse(&spec.values).and_then(|szip| szip.decode(stored, out)),
        id::NBIT if nbit_passes(spec) => {
            if stored.len() != out.len() {
                return Err(wrong_size("nbit", stored.len(), out.len(), place));
            }
            out.copy_from_slice(stored);
            Ok(())
        }
        id::NBIT => nbit::NBit::parse(&spec.values).and_then(|nbit| nbit.decode(stored, out)),
        id::SCALE_OFFSET => {
            scale_offset::ScaleOffset::parse(&spec.values).and_then(|scale| scale.decode(stored, out))
        }
        id::ZFP => zfp_header(spec).and_then(|header| zfp::decode(&header.field, header.mode, stored, out)),
        _ => return Err(unknown(spec, place)),
    };
    done.map_err(|error| failed(place, error))
}

/// The parameters of H5Z-ZFP: versions, then the header that its chunks lack.
fn zfp_header(spec: &FilterSpec) -> std::result::Result<zfp::Header, CodecError> {
    let words = spec.values.get(1..).unwrap_or_default();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    zfp::Header::parse(&bytes)
}

/// Undoes a filter whose output size is not known, up to `limit` bytes.
pub(super) fn decode_vec(
    spec: &FilterSpec,
    stored: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
    place: Place<'_>,
) -> Result<()> {
    let value = |index: usize| spec.values.get(index).copied().unwrap_or(0) as usize;
    let done = match spec.id {
        id::DEFLATE => deflate::decode_vec(deflate::Wrapper::Zlib, stored, limit, out),
        // These two keep or reduce the size by a known amount.
        id::SHUFFLE => {
            out.resize(stored.len(), 0);
            shuffle::decode(value(0).max(1), stored, out)
        }
        id::FLETCHER32 => {
            out.extend_from_slice(fletcher32(stored, place)?);
            Ok(())
        }
        id::BZIP2 => bzip2::decode_vec(stored, limit, out),
        id::LZF => lzf::decode_vec(stored, limit, out),
        id::BLOSC => blosc::decode_vec(stored, limit, out),
        id::BLOSC2 => blosc2::decode_vec(stored, limit, out),
        id::LZ4 => hdf5_lz4::decode_vec(stored, limit, out),
        id::ZSTD => zstd::decode_vec(stored, limit, out),
        id::BITSHUFFLE => match bitshuffle_inner(spec) {
            None => {
                out.resize(stored.len(), 0);
                bitshuffle::decode(value(2).max(1), bitshuffle_block(spec), stored, out)
            }
            Some(inner) => bitshuffle::decode_stream_vec(inner, value(2).max(1), stored, limit, out),
        },
        id::SZIP => szip::Szip::parse(&spec.values).and_then(|szip| szip.decode_vec(stored, limit, out)),
        id::NBIT if nbit_passes(spec) => {
            out.extend_from_slice(stored);
            Ok(())
        }
        id::NBIT => nbit::NBit::parse(&spec.values).and_then(|nbit| {
            out.resize(nbit.decoded_len().unwrap_or(usize::MAX).min(limit), 0);
            nbit.decode(stored, out)
        }),
        id::SCALE_OFFSET => scale_offset::ScaleOffset::parse(&spec.values).and_then(|scale| {
            out.resize(scale.decoded_len().unwrap_or(usize::MAX).min(limit), 0);
            scale.decode(stored, out)
        }),
        id::ZFP => zfp_header(spec).and_then(|header| {
            out.resize(header.field.bytes().unwrap_or(usize::MAX).min(limit), 0);
            zfp::decode(&header.field, header.mode, stored, out)
        }),
        _ => return Err(unknown(spec, place)),
    };
    done.map_err(|error| failed(place, error))
}

/// The data before the checksum, which is verified.
fn fletcher32<'a>(stored: &'a [u8], place: Place<'_>) -> Result<&'a [u8]> {
    let Some((data, sum)) = stored.split_last_chunk::<4>() else {
        return Err(place.corrupt("fletcher32: no room for the checksum"));
    };
    checksum::verify_fletcher32(data, u32::from_le_bytes(*sum)).map_err(|error| failed(place, error))?;
    Ok(data)
}

/// The codec of the bit-shuffled blocks; `None` if they are stored uncompressed.
pub(super) fn bitshuffle_inner(spec: &FilterSpec) -> Option<bitshuffle::Inner> {
    match spec.values.get(4) {
        Some(2) => Some(bitshuffle::Inner::Lz4),
        Some(3) => Some(bitshuffle::Inner::Zstd { level: 0 }),
        _ => None,
    }
}

/// Elements per block. The filter chooses the number if the file does not give it.
pub(super) fn bitshuffle_block(spec: &FilterSpec) -> usize {
    let value = |index: usize| spec.values.get(index).copied().unwrap_or(0) as usize;
    if value(3) == 0 { bitshuffle::default_block(value(2).max(1)) } else { value(3) }
}

/// If no bit can be saved, n-bit passes its input on unchanged.
fn nbit_passes(spec: &FilterSpec) -> bool {
    spec.values.get(1).is_some_and(|need_not| *need_not != 0)
}

fn wrong_size(filter: &str, found: usize, expected: usize, place: Place<'_>) -> Error {
    place.corrupt(format!("{filter}: {found} bytes, expected {expected}"))
}

fn unknown(spec: &FilterSpec, place: Place<'_>) -> Error {
    let needed = match spec.id {
        32017 | 32024 => "the SZ library's decoder",
        305 => "an LZO decoder",
        32018 => "the JPEG-LS decoder of FCIDECOMP",
        32019 => "a JPEG XR decoder",
        32028 => "the SPERR library's decoder",
        _ => "a decoder that is not included (rewrite the dataset with h5repack or with another filter)",
    };
    place.unsupported(format!("filter {} ({}), which needs {needed},", spec.id, name_of(spec)))
}
