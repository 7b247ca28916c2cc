use proptest::prelude::*;

use super::*;
use crate::testing::{data, noise, ramp, stair, steps};

fn frames() -> Vec<(String, Vec<u8>)> {
    let mut frames = Vec::new();
    for codec in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"] {
        for shuffle in 0..3 {
            frames.push((format!("stair4.blosc.{codec}.{shuffle}"), stair(6001, 4)));
        }
    }
    frames.push(("ramp4.blosc.blosclz.1".into(), ramp(1503, 4)));
    frames.push(("ramp8.blosc.lz4.1".into(), ramp(1029, 8)));
    frames.push(("stair2.blosc.zstd.2".into(), stair(2051, 2)));
    frames.push(("stair1.blosc.lz4.2".into(), stair(1008, 1)));
    frames.push(("noise.blosc".into(), data("noise.raw")));
    let long: Vec<u8> = (0..400_000u32).flat_map(|i| (i / 64).to_le_bytes()).collect();
    frames.push(("long4.blosc.lz4.1".into(), long.clone()));
    frames.push(("long4.blosc.blosclz.1".into(), long));
    let fifty: Vec<u8> = steps().chunks(4).flat_map(|v| v.repeat(50)).collect();
    frames.push(("steps.blosc.blosclz.0".into(), fifty));
    frames
}

#[test]
fn chunks_of_c_blosc_decode() {
    for (name, want) in frames() {
        let stored = data(&name);
        let mut out = vec![0; want.len()];
        decode(&stored, &mut out).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(out == want, "{name}");
        assert!(decode(&stored, &mut out[1..]).is_err());
        assert!(decode(&stored[..stored.len() - 1], &mut out).is_err());
        assert!(decode_vec(&stored, want.len() - 1, &mut Vec::new()).is_err());
        let chunk = Chunk::parse(&stored).unwrap();
        for range in [0..1, 100..700, want.len() - 5..want.len(), 0..want.len(), 7..7] {
            let mut out = vec![0; range.len()];
            chunk.decode_range(range.start, &mut out).unwrap();
            assert!(out == want[range.clone()], "{name} {range:?}");
        }
        assert!(chunk.decode_range(want.len(), &mut [0]).is_err());
    }
}

#[test]
fn chunks_round_trip() {
    for codec in [Codec::Lz4, Codec::Snappy, Codec::Zlib, Codec::Zstd] {
        for element in [1, 2, 3, 4, 8, 16, 17, 255] {
            for filter in [None, Some(Filter::Shuffle { size: element }), Some(Filter::Bitshuffle)] {
                for src in [Vec::new(), noise(100), stair(5001, 4), noise(3000)] {
                    let options = Options::new(codec, 3, element).with_filter(filter).with_block_len(2000);
                    let mut stored = vec![1];
                    encode(&src, options, &mut stored).unwrap();
                    assert!(stored.len() <= src.len() + 17);
                    let mut out = Vec::new();
                    decode_vec(&stored[1..], src.len(), &mut out).unwrap();
                    assert!(out == src, "{options:?}");
                }
            }
        }
    }
}

#[test]
fn wrong_options_are_errors() {
    assert!(encode(b"x", Options::new(Codec::BloscLz, 1, 1), &mut Vec::new()).is_err());
    assert!(encode(b"x", Options::new(Codec::Lz4, 1, 0), &mut Vec::new()).is_err());
    assert!(encode(b"x", Options::new(Codec::Lz4, 1, 256), &mut Vec::new()).is_err());
    assert!(encode(&[0; 500], Options::new(Codec::Zlib, 99, 1), &mut Vec::new()).is_err());
}

proptest! {
    #[test]
    fn damage_never_panics(
        which in 0..20usize,
        head in 0..40usize,
        anywhere: prop::sample::Index,
        bytes: [u8; 2],
        cut: prop::sample::Index,
    ) {
        let (name, want) = frames().swap_remove(which);
        let mut stored = data(&name);
        stored[head] = bytes[0];
        let at = anywhere.index(stored.len());
        stored[at] = bytes[1];
        let mut out = Vec::new();
        let _ = decode_vec(&stored, want.len() * 2, &mut out);
        prop_assert!(out.len() <= want.len() * 2);
        stored.truncate(cut.index(stored.len()));
        let _ = decode_vec(&stored, want.len() * 2, &mut out);
    }

    #[test]
    fn arbitrary_streams_never_panic(data: Vec<u8>, len in 0..600usize) {
        let _ = blosclz::decode(&data, &mut vec![0; len]);
    }
}
