//! The LZ4 block format: no header, no size, no checksum.
//!
//! TileDB filter 3, HDF5 filters 32004 and 32008 and Blosc contain such blocks; numcodecs `lz4`
//! stores the decoded size, 32 bits little-endian, before one. Decoding and encoding are safe Rust.

use lz4_flex::block::{DecompressError, compress_into, decompress_into, get_maximum_output_size};

use crate::bytes::decode_growing;
use crate::error::{Result, corrupt, invalid, size, too_long};

const CODEC: &str = "lz4";

fn decode_some(src: &[u8], out: &mut [u8]) -> Result<Option<usize>> {
    match decompress_into(src, out) {
        Ok(n) => Ok(Some(n)),
        Err(DecompressError::OutputTooSmall { .. }) => Ok(None),
        Err(error) => Err(corrupt(CODEC, error.to_string())),
    }
}

/// Decodes the block `src` into `out`, which it must fill.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if the block is damaged or truncated,
/// [`Size`](crate::CodecError::Size) if it decodes to any other size.
pub fn decode(src: &[u8], out: &mut [u8]) -> Result<()> {
    match decode_some(src, out)? {
        Some(n) if n == out.len() => Ok(()),
        Some(n) => Err(size(CODEC, out.len(), n)),
        None => Err(too_long(CODEC, out.len())),
    }
}

/// Decodes the block `src` and appends the result, at most `limit` bytes, to `out`.
///
/// # Errors
///
/// As [`decode`]; [`Size`](crate::CodecError::Size) if the result is longer than `limit`. `out` is then unchanged.
pub fn decode_vec(src: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    decode_growing(CODEC, src.len().saturating_mul(4), limit, out, |room| decode_some(src, room))
}

/// Appends `src` as one block to `out`.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if `src` is longer than a block may be (2 113 929 216 bytes).
pub fn encode(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if src.len() > 0x7e00_0000 {
        return Err(invalid(CODEC, format!("{} bytes are too many for one block", src.len())));
    }
    let base = out.len();
    out.resize(base + get_maximum_output_size(src.len()), 0);
    match compress_into(src, &mut out[base..]) {
        Ok(n) => {
            out.truncate(base + n);
            Ok(())
        }
        Err(error) => {
            out.truncate(base);
            Err(invalid(CODEC, error.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::CodecError;
    use crate::testing::steps;

    const BLOCK: &[u8] = include_bytes!("../tests/data/steps.lz4");

    #[test]
    fn a_block_of_the_reference_decodes() {
        let mut out = vec![0; 1200];
        decode(BLOCK, &mut out).unwrap();
        assert_eq!(out, steps());
        let mut out = Vec::new();
        decode_vec(BLOCK, 1200, &mut out).unwrap();
        assert_eq!(out, steps());
        for len in [0, 1, 1199, 1201] {
            let error = decode(BLOCK, &mut vec![0; len]).unwrap_err();
            assert!(matches!(error, CodecError::Size { .. }), "{error}");
        }
        for len in 0..BLOCK.len() {
            assert!(decode(&BLOCK[..len], &mut vec![0; 1200]).is_err());
        }
    }

    proptest! {
        #[test]
        fn round_trip(data: Vec<u8>) {
            let mut stored = Vec::new();
            encode(&data, &mut stored).unwrap();
            let mut out = vec![0; data.len()];
            decode(&stored, &mut out).unwrap();
            prop_assert_eq!(&out, &data);
        }

        #[test]
        fn arbitrary_bytes_never_panic(data: Vec<u8>, len in 0..512usize) {
            let _ = decode(&data, &mut vec![0; len]);
            let mut out = Vec::new();
            let _ = decode_vec(&data, len, &mut out);
            prop_assert!(out.capacity() <= len.max(64));
        }
    }
}
