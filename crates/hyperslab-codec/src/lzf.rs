//! LZF, the small Lempel-Ziv code of h5py (HDF5 filter 32000).
//!
//! A control byte `c` below 32 is followed by `c + 1` literal bytes. Any other is a copy: its top three bits and, if
//! those are all set, the next byte added to them, are the length less 2; its low five bits and one more byte, big-endian,
//! are the distance less 1. Copies reach back at most 8192 bytes and are 3 to 264 long. There is no header.

use crate::bytes::decode_growing;
use crate::error::{Result, corrupt, size, too_long};

const CODEC: &str = "lzf";
const MAX_LITERALS: usize = 32;
const MAX_DISTANCE: usize = 1 << 13;
const MAX_COPY: usize = 264;
const HASH_BITS: u32 = 14;

fn decode_some(src: &[u8], out: &mut [u8]) -> Result<Option<usize>> {
    let early = || corrupt(CODEC, "ends early");
    let (mut at, mut filled) = (0, 0);
    while let Some(&control) = src.get(at) {
        at += 1;
        let control = usize::from(control);
        if control < MAX_LITERALS {
            let literals = src.get(at..at + control + 1).ok_or_else(early)?;
            at += literals.len();
            let Some(room) = out.get_mut(filled..filled + literals.len()) else { return Ok(None) };
            room.copy_from_slice(literals);
            filled += literals.len();
            continue;
        }
        let mut len = control >> 5;
        if len == 7 {
            len += usize::from(*src.get(at).ok_or_else(early)?);
            at += 1;
        }
        let len = len + 2;
        let distance = ((control & 31) << 8 | usize::from(*src.get(at).ok_or_else(early)?)) + 1;
        at += 1;
        if distance > filled {
            return Err(corrupt(CODEC, format!("a copy from {distance} bytes back at byte {filled}")));
        }
        if len > out.len() - filled {
            return Ok(None);
        }
        crate::bytes::copy_back(out, filled, distance, len);
        filled += len;
    }
    Ok(Some(filled))
}

/// Decodes `src` into `out`, which it must fill.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if `src` is damaged or truncated,
/// [`Size`](crate::CodecError::Size) if it decodes to any other size.
pub fn decode(src: &[u8], out: &mut [u8]) -> Result<()> {
    match decode_some(src, out)? {
        Some(n) if n == out.len() => Ok(()),
        Some(n) => Err(size(CODEC, out.len(), n)),
        None => Err(too_long(CODEC, out.len())),
    }
}

/// Decodes `src` and appends the result, at most `limit` bytes, to `out`.
///
/// # Errors
///
/// As [`decode`]; [`Size`](crate::CodecError::Size) if the result is longer than `limit`. `out` is then unchanged.
pub fn decode_vec(src: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    decode_growing(CODEC, src.len().saturating_mul(4), limit, out, |room| decode_some(src, room))
}

/// Appends `src`, compressed, to `out`. The result is at most 1/32 longer than `src`.
///
/// h5py stores a chunk that does not shrink unfiltered, so compare the sizes.
pub fn encode(src: &[u8], out: &mut Vec<u8>) {
    // Positions of three-byte prefixes, plus one; 0 means none.
    let mut seen = vec![0usize; 1 << HASH_BITS];
    let (mut at, mut literals, mut misses) = (0, 0, 0);
    while let Some(&[a, b, c]) = src.get(at..).and_then(|rest| rest.first_chunk::<3>()) {
        let key = u32::from_le_bytes([a, b, c, 0]);
        let slot = (key.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize;
        let candidate = std::mem::replace(&mut seen[slot], at + 1);
        let from = candidate.wrapping_sub(1);
        if candidate == 0 || at - from > MAX_DISTANCE || src[from..from + 3] != [a, b, c] {
            // Search less often in incompressible data.
            misses += 1;
            at += 1 + (misses >> 6);
            continue;
        }
        misses = 0;
        let longest = MAX_COPY.min(src.len() - at);
        let len = (3..longest).find(|&i| src[from + i] != src[at + i]).unwrap_or(longest);
        push_literals(&src[literals..at], out);
        let (distance, short) = (at - from - 1, len - 2);
        if short < 7 {
            out.push((short << 5 | distance >> 8) as u8);
        } else {
            out.extend([(7 << 5 | distance >> 8) as u8, (short - 7) as u8]);
        }
        out.push(distance as u8);
        at += len;
        literals = at;
    }
    push_literals(&src[literals..], out);
}

fn push_literals(bytes: &[u8], out: &mut Vec<u8>) {
    for run in bytes.chunks(MAX_LITERALS) {
        out.push((run.len() - 1) as u8);
        out.extend_from_slice(run);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::CodecError;
    use crate::testing::{noise, steps};

    const STREAM: &[u8] = include_bytes!("../tests/data/steps.lzf");

    #[test]
    fn a_chunk_of_h5py_decodes() {
        let mut out = vec![0; 1200];
        decode(STREAM, &mut out).unwrap();
        assert_eq!(out, steps());
        for len in [0, 1, 1199, 1201] {
            let error = decode(STREAM, &mut vec![0; len]).unwrap_err();
            assert!(matches!(error, CodecError::Size { .. }), "{error}");
        }
    }

    #[test]
    fn long_runs_and_noise_round_trip() {
        for src in [vec![5; 100_000], noise(100_000), steps().repeat(40), noise(9000).repeat(3)] {
            let (mut stored, mut out) = (Vec::new(), Vec::new());
            encode(&src, &mut stored);
            assert!(stored.len() <= src.len() + src.len().div_ceil(32));
            decode_vec(&stored, src.len(), &mut out).unwrap();
            assert_eq!(out, src);
        }
        let mut stored = Vec::new();
        encode(&steps(), &mut stored);
        assert!(stored.len() <= STREAM.len() + 8, "{} bytes, h5py {}", stored.len(), STREAM.len());
    }

    proptest! {
        #[test]
        fn round_trip(data in proptest::collection::vec(0..4u8, 0..600)) {
            let (mut stored, mut out) = (Vec::new(), vec![0; data.len()]);
            encode(&data, &mut stored);
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
