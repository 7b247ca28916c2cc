//! The LZ4 stream of HDF5 filter 32004.
//!
//! The decoded size (u64) and the size of a block (u32), then for every block its stored length (u32) and an LZ4 block.
//! A block stored at its decoded size is uncompressed. The last block may be shorter. All integers are big-endian.

use crate::bytes::Reader;
use crate::error::{Result, corrupt, invalid, size, too_long};
use crate::lz4;

const CODEC: &str = "hdf5 lz4";

/// The filter's default block size.
pub const DEFAULT_BLOCK: usize = 1 << 30;

/// The decoded size stated by a stream, unverified.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if the stream is shorter than its header.
pub fn stream_len(src: &[u8]) -> Result<u64> {
    Reader::new(CODEC, src).u64_be()
}

/// Decodes the stream `src` into `out`, which it must fill.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if it is damaged or truncated, [`Size`](crate::CodecError::Size) if it
/// decodes to any other size.
pub fn decode(src: &[u8], out: &mut [u8]) -> Result<()> {
    let mut reader = Reader::new(CODEC, src);
    let total = reader.u64_be()?;
    if total != out.len() as u64 {
        return Err(size(CODEC, out.len(), usize::try_from(total).unwrap_or(usize::MAX)));
    }
    let block = reader.u32_be()? as usize;
    if block == 0 {
        return if out.is_empty() { Ok(()) } else { Err(corrupt(CODEC, "a block size of 0")) };
    }
    for block in out.chunks_mut(block) {
        let len = reader.u32_be()? as usize;
        let stored = reader.take(len)?;
        if len == block.len() {
            block.copy_from_slice(stored);
        } else {
            lz4::decode(stored, block)?;
        }
    }
    if reader.is_empty() { Ok(()) } else { Err(corrupt(CODEC, "bytes after the last block")) }
}

/// Decodes the stream `src` and appends the result, at most `limit` bytes, to `out`.
///
/// # Errors
///
/// As [`decode`]; [`Size`](crate::CodecError::Size) if the result is longer than `limit`. `out` is then unchanged.
pub fn decode_vec(src: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    let total = usize::try_from(stream_len(src)?).ok().filter(|&n| n <= limit);
    let total = total.ok_or_else(|| too_long(CODEC, limit))?;
    let base = out.len();
    out.resize(base + total, 0);
    decode(src, &mut out[base..]).inspect_err(|_| out.truncate(base))
}

/// Appends `src` to `out` as a stream of blocks of `block` bytes (0: [`DEFAULT_BLOCK`]).
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if a block is longer than LZ4 allows.
pub fn encode(src: &[u8], block: usize, out: &mut Vec<u8>) -> Result<()> {
    let block = if block == 0 { DEFAULT_BLOCK } else { block }.min(src.len().max(1));
    let stated = u32::try_from(block).map_err(|_| invalid(CODEC, format!("a block of {block} bytes")))?;
    out.extend((src.len() as u64).to_be_bytes());
    out.extend(stated.to_be_bytes());
    for from in src.chunks(block) {
        let at = out.len();
        out.extend([0; 4]);
        lz4::encode(from, out)?;
        if out.len() - at - 4 >= from.len() {
            out.truncate(at + 4);
            out.extend_from_slice(from);
        }
        let len = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&len.to_be_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::steps;

    #[test]
    fn streams_of_the_reference_decode() {
        for (stored, want) in [
            (include_bytes!("../tests/data/steps.hdf5lz4").as_slice(), steps()),
            (
                include_bytes!("../tests/data/noise.hdf5lz4"),
                include_bytes!("../tests/data/noise.raw").to_vec(),
            ),
        ] {
            let mut out = Vec::new();
            decode_vec(stored, want.len(), &mut out).unwrap();
            assert_eq!(out, want);
            assert!(decode_vec(stored, want.len() - 1, &mut out).is_err());
            assert!(decode(&stored[..stored.len() - 1], &mut out).is_err());
            assert!(decode(&[stored, b"x"].concat(), &mut out).is_err());
        }
    }

    proptest! {
        #[test]
        fn round_trip(data: Vec<u8>, block in 0..200usize) {
            let (mut stored, mut out) = (Vec::new(), vec![0; data.len()]);
            encode(&data, block, &mut stored).unwrap();
            decode(&stored, &mut out).unwrap();
            prop_assert_eq!(&out, &data);
        }

        #[test]
        fn arbitrary_bytes_never_panic(data: Vec<u8>, len: u8, block: u8) {
            let stream = [&[0, 0, 0, 0, 0, 0, 0, len, 0, 0, 0, block][..], &data].concat();
            for stream in [&stream, &data] {
                let mut out = Vec::new();
                let _ = decode_vec(stream, len.into(), &mut out);
                prop_assert!(out.len() <= len.into());
            }
        }
    }
}
