//! bzip2: one or more concatenated streams (HDF5 filter 307, TileDB filter 5, numcodecs `bz2`).
//!
//! The decoder allocates what a stream's level requires, at most 3.7 MB, whatever the output's size.

use bzip2::{Action, Compress, Compression, Decompress, Status};

use crate::bytes::decode_growing;
use crate::error::{Result, corrupt, invalid, size, too_long};

const CODEC: &str = "bzip2";

/// Decodes one stream. Returns the bytes consumed and written, or `None` if it does not fit.
fn decode_stream(src: &[u8], out: &mut [u8]) -> Result<Option<(usize, usize)>> {
    let mut decoder = Decompress::new(false);
    let (mut taken, mut written) = (0, 0);
    // One extra byte distinguishes a full output from one that is too small.
    let mut spill = [0];
    loop {
        let full = written == out.len();
        let room = if full { &mut spill[..] } else { &mut out[written..] };
        let status = decoder.decompress(&src[taken..], room);
        let (now_in, now_out) = (decoder.total_in() as usize, decoder.total_out() as usize);
        let idle = now_in == taken && now_out == written;
        if full && now_out > written {
            return Ok(None);
        }
        (taken, written) = (now_in, now_out);
        match status {
            Ok(Status::StreamEnd) => return Ok(Some((taken, written))),
            Ok(Status::MemNeeded) => return Err(invalid(CODEC, "no memory for a context")),
            Ok(_) if idle => return Err(corrupt(CODEC, "ends early")),
            Ok(_) => {}
            Err(error) => return Err(corrupt(CODEC, error.to_string())),
        }
    }
}

fn decode_some(src: &[u8], out: &mut [u8]) -> Result<Option<usize>> {
    let (mut at, mut filled) = (0, 0);
    loop {
        match decode_stream(&src[at..], &mut out[filled..])? {
            Some((taken, written)) => {
                at += taken;
                filled += written;
            }
            None => return Ok(None),
        }
        if at == src.len() {
            return Ok(Some(filled));
        }
    }
}

/// Decodes all streams of `src` into `out`, which they must fill.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if a stream is damaged or truncated, or other bytes follow the last;
/// [`Size`](crate::CodecError::Size) if they decode to any other size.
pub fn decode(src: &[u8], out: &mut [u8]) -> Result<()> {
    match decode_some(src, out)? {
        Some(n) if n == out.len() => Ok(()),
        Some(n) => Err(size(CODEC, out.len(), n)),
        None => Err(too_long(CODEC, out.len())),
    }
}

/// Decodes all streams of `src` and appends the result, at most `limit` bytes, to `out`.
///
/// # Errors
///
/// As [`decode`]; [`Size`](crate::CodecError::Size) if the result is longer than `limit`. `out` is then unchanged.
pub fn decode_vec(src: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    decode_growing(CODEC, src.len().saturating_mul(8), limit, out, |room| decode_some(src, room))
}

/// Appends `src` as one stream to `out`; `level` is 1 to 9, in units of 100 kB per block.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if the level does not exist.
pub fn encode(src: &[u8], level: u32, out: &mut Vec<u8>) -> Result<()> {
    let level = Compression::try_new(level).ok_or_else(|| invalid(CODEC, format!("no level {level}")))?;
    let base = out.len();
    let mut encoder = Compress::new(level, 0);
    out.reserve(src.len() / 2 + 64);
    loop {
        let taken = encoder.total_in() as usize;
        match encoder.compress_vec(&src[taken..], out, Action::Finish) {
            Ok(Status::StreamEnd) => return Ok(()),
            Ok(_) => out.reserve(out.capacity().max(1024)),
            Err(error) => {
                out.truncate(base);
                return Err(invalid(CODEC, error.to_string()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::CodecError;
    use crate::testing::{noise, steps};

    const STREAM: &[u8] = include_bytes!("../tests/data/steps.bz2");

    #[test]
    fn a_stream_of_the_reference_decodes() {
        let mut out = vec![0; 1200];
        decode(STREAM, &mut out).unwrap();
        assert_eq!(out, steps());
        let mut out = Vec::new();
        decode_vec(&[STREAM, STREAM].concat(), 2400, &mut out).unwrap();
        assert_eq!(out, [steps(), steps()].concat());
        for len in [0, 1, 1199, 1201] {
            let error = decode(STREAM, &mut vec![0; len]).unwrap_err();
            assert!(matches!(error, CodecError::Size { .. }), "{error}");
        }
        for len in 0..STREAM.len() {
            assert!(decode(&STREAM[..len], &mut vec![0; 1200]).is_err());
        }
        assert!(decode(&[STREAM, b"x"].concat(), &mut vec![0; 1200]).is_err());
    }

    #[test]
    fn levels_are_checked() {
        assert!(encode(b"x", 0, &mut Vec::new()).is_err());
        assert!(encode(b"x", 10, &mut Vec::new()).is_err());
        let (src, mut stored, mut out) = (noise(250_000), Vec::new(), vec![0; 250_000]);
        encode(&src, 1, &mut stored).unwrap();
        decode(&stored, &mut out).unwrap();
        assert_eq!(out, src);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn round_trip(data: Vec<u8>, level in 1..=9u32) {
            let mut stored = vec![0; 3];
            encode(&data, level, &mut stored).unwrap();
            let mut out = vec![0; data.len()];
            decode(&stored[3..], &mut out).unwrap();
            prop_assert_eq!(&out, &data);
        }

        #[test]
        fn damage_never_panics(at in 0..STREAM.len(), to: u8, len in 0..1300usize, tail: Vec<u8>) {
            let mut stream = STREAM.to_vec();
            stream[at] = to;
            let _ = decode(&stream, &mut vec![0; len]);
            stream.truncate(at);
            stream.extend(tail);
            let mut out = Vec::new();
            let _ = decode_vec(&stream, len, &mut out);
            prop_assert!(out.len() <= len);
        }
    }
}
