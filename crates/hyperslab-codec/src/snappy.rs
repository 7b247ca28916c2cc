//! The raw Snappy format: the decoded size as a varint, then the data. Blosc may hold such blocks.

use crate::error::{Result, corrupt, invalid, size};

const CODEC: &str = "snappy";

/// Decodes `src` into `out`, which it must fill.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if `src` is damaged or truncated,
/// [`Size`](crate::CodecError::Size) if it states any other size.
pub fn decode(src: &[u8], out: &mut [u8]) -> Result<()> {
    let stated = snap::raw::decompress_len(src).map_err(|error| corrupt(CODEC, error.to_string()))?;
    if stated != out.len() {
        return Err(size(CODEC, out.len(), stated));
    }
    let written =
        snap::raw::Decoder::new().decompress(src, out).map_err(|error| corrupt(CODEC, error.to_string()))?;
    if written == out.len() { Ok(()) } else { Err(size(CODEC, out.len(), written)) }
}

/// Appends `src`, compressed, to `out`.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if `src` is longer than a 32-bit length.
pub fn encode(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let base = out.len();
    out.resize(base + snap::raw::max_compress_len(src.len()), 0);
    match snap::raw::Encoder::new().compress(src, &mut out[base..]) {
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

    #[test]
    fn the_example_of_the_format_description_decodes() {
        // "xababab": a literal of three bytes, then a copy of four from two back.
        let mut out = [0; 7];
        decode(b"\x07\x08xab\x01\x02", &mut out).unwrap();
        assert_eq!(&out, b"xababab");
        assert!(decode(b"\x07\x08xab\x01\x02", &mut [0; 6]).is_err());
        assert!(decode(b"\x07\x08xab\x01\x02", &mut [0; 8]).is_err());
    }

    proptest! {
        #[test]
        fn round_trip(data: Vec<u8>) {
            let (mut stored, mut out) = (Vec::new(), vec![0; data.len()]);
            encode(&data, &mut stored).unwrap();
            decode(&stored, &mut out).unwrap();
            prop_assert_eq!(&out, &data);
        }

        #[test]
        fn arbitrary_bytes_never_panic(data: Vec<u8>, len in 0..512usize) {
            let _ = decode(&data, &mut vec![0; len]);
        }
    }
}
