//! Blosc2 contiguous frames (HDF5 filter 32026): chunks of [`blosc`](crate::blosc), an index, and metadata.
//!
//! A frame begins with a MessagePack array of 14: the magic `b2frame`, lengths of header and frame, flags, decoded and stored
//! size, sizes of element, block and chunk, the filters, and named metadata. Then come the chunks, then a chunk that
//! holds the offset of every chunk, 64 bits each, relative to the end of the header. An offset with its top bit set is a
//! special chunk: zeros, NaN, or never written.
//!
//! Metadata named `b2nd` marks the data as an array, and holds the shapes of the array, of its chunks and of their blocks.
//! Chunks and blocks are then boxes in C order, padded to full size; decoding puts them in place in the array.
//!
//! Frames can only be read. Sparse frames (directories), dictionaries and plugin codecs are not supported.

mod frame;
mod nd;

pub use self::frame::Frame;
pub use self::nd::NdShape;
use crate::error::{Result, size, too_long};

const CODEC: &str = "blosc2";

/// Decodes the frame `src` into `out`, which it must fill: an array in C order if the frame holds one.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) if the frame is damaged or truncated, [`Size`](crate::CodecError::Size) if it
/// decodes to any other size, [`Unsupported`](crate::CodecError::Unsupported) if it needs a feature that is not built in.
pub fn decode(src: &[u8], out: &mut [u8]) -> Result<()> {
    let frame = Frame::parse(src)?;
    let len = frame.decoded_len()?;
    if len != out.len() {
        return Err(size(CODEC, out.len(), len));
    }
    frame.decode(out)
}

/// Decodes the frame `src` and appends the result, at most `limit` bytes, to `out`.
///
/// # Errors
///
/// As [`decode`]; [`Size`](crate::CodecError::Size) if the result is longer than `limit`. `out` is then unchanged.
pub fn decode_vec(src: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
    let frame = Frame::parse(src)?;
    let len = frame.decoded_len()?;
    if len > limit {
        return Err(too_long(CODEC, limit));
    }
    let base = out.len();
    out.resize(base + len, 0);
    frame.decode(&mut out[base..]).inspect_err(|_| out.truncate(base))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{data, ramp, stair};

    fn frames() -> Vec<(String, Vec<u8>)> {
        let mut frames = Vec::new();
        for codec in ["blosclz", "lz4", "zlib", "zstd"] {
            for shuffle in 0..3 {
                frames.push((format!("stair4.blosc2.{codec}.{shuffle}"), stair(6001, 4)));
            }
        }
        frames.push(("ramp4.blosc2.delta".into(), ramp(5003, 4)));
        frames.push(("cube2.blosc2.lz4".into(), stair(12 * 35 * 50, 2)));
        frames.push(("zeros.blosc2".into(), vec![0; 12000]));
        frames.push(("ones.blosc2".into(), 1f32.to_le_bytes().repeat(3000)));
        frames.push(("noise.blosc2".into(), data("noise.raw")));
        frames
    }

    #[test]
    fn frames_of_the_hdf5_filter_decode() {
        for (name, want) in frames() {
            let stored = data(&name);
            let mut out = vec![1; want.len()];
            decode(&stored, &mut out).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(out == want, "{name}");
            assert!(decode(&stored, &mut out[1..]).is_err());
            assert!(decode_vec(&stored, want.len() - 1, &mut Vec::new()).is_err());
            assert!(decode(&stored[..80], &mut out).is_err());
        }
    }

    #[test]
    fn arrays_of_many_blocks_are_reassembled() {
        let mut out = Vec::new();
        decode_vec(&data("blocks2.blosc2"), 1 << 22, &mut out).unwrap();
        assert!(out == stair(20 * 150 * 301, 2));
        let frame = data("blocks2.blosc2");
        let shape = Frame::parse(&frame).unwrap().array().unwrap().clone();
        assert_eq!(shape.shape, [20, 150, 301]);
        assert_ne!(shape.block, shape.chunk);
    }

    #[test]
    fn frames_of_several_chunks_decode() {
        for name in [
            "chunks", "delta", "delta12", "bits", "trunc", "group", "nosplit", "split", "stored", "zeros",
            "nan", "value", "nans", "cube", "plane", "line", "mixed",
        ] {
            let (stored, want) = (data(&format!("frame.{name}.b2")), data(&format!("frame.{name}.raw")));
            let mut out = vec![1; want.len()];
            decode(&stored, &mut out).unwrap_or_else(|error| panic!("{name}: {error}"));
            let first = out.iter().zip(&want).position(|(a, b)| a != b);
            assert!(out == want, "{name}: differs at byte {first:?}");
        }
    }

    proptest! {
        #[test]
        fn damage_never_panics(
            which in 0..17usize,
            head in 0..200usize,
            anywhere: prop::sample::Index,
            bytes: [u8; 2],
            cut: prop::sample::Index,
        ) {
            let (name, want) = frames().swap_remove(which);
            let mut stored = data(&name);
            let head = head.min(stored.len() - 1);
            stored[head] = bytes[0];
            let at = anywhere.index(stored.len());
            stored[at] = bytes[1];
            let mut out = Vec::new();
            let _ = decode_vec(&stored, want.len() * 2, &mut out);
            prop_assert!(out.len() <= want.len() * 2);
            stored.truncate(cut.index(stored.len()));
            let _ = decode_vec(&stored, want.len() * 2, &mut out);
        }
    }
}
