use proptest::prelude::*;

use super::*;
use crate::testing::{hex, noise, ramp};

/// The definition, bit by bit.
fn slow(size: usize, src: &[u8]) -> Vec<u8> {
    let n = src.len() / size;
    let mut out = vec![0; src.len()];
    for (e, element) in src.chunks(size).enumerate() {
        for (j, byte) in element.iter().enumerate() {
            for k in 0..8 {
                out[(j * 8 + k) * (n / 8) + e / 8] |= (byte >> k & 1) << (e % 8);
            }
        }
    }
    out
}

#[test]
fn every_size_agrees_with_the_definition() {
    for size in (1..=17).chain([24, 100]) {
        for n in [0, 8, 16, 24, 64, 128, 136, 264, 1024] {
            let src = noise(n * size);
            let mut out = vec![0; src.len()];
            encode_block(size, &src, &mut out).unwrap();
            assert_eq!(out, slow(size, &src), "size {size}, {n} elements");
            let mut back = vec![0; src.len()];
            decode_block(size, &out, &mut back).unwrap();
            assert_eq!(back, src, "size {size}, {n} elements");
        }
    }
}

#[test]
fn tiledb_shuffles_the_same() {
    // libtiledb: bitshuffle of int32 [0, 1, 2, 3, 4, 5, 6, 7, 1000, -5]
    let src: Vec<u8> = [0i32, 1, 2, 3, 4, 5, 6, 7, 1000, -5].iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut out = vec![0; 40];
    encode(4, 2048, &src, &mut out).unwrap();
    let want = [hex("aaccf000"), vec![0; 28], hex("e8030000fbffffff")].concat();
    assert_eq!(out, want);
}

#[test]
fn streams_of_the_hdf5_filter_decode() {
    let zstd = Inner::Zstd { level: 3 };
    for (inner, size, n, stored) in [
        (Inner::Lz4, 1, 1003, include_bytes!("../../tests/data/ramp1.bshuf.lz4").as_slice()),
        (Inner::Lz4, 2, 2050, include_bytes!("../../tests/data/ramp2.bshuf.lz4")),
        (Inner::Lz4, 4, 5003, include_bytes!("../../tests/data/ramp4.bshuf.lz4")),
        (Inner::Lz4, 4, 500, include_bytes!("../../tests/data/ramp4.bshuf.lz4.64")),
        (Inner::Lz4, 8, 1029, include_bytes!("../../tests/data/ramp8.bshuf.lz4")),
        (zstd, 2, 2050, include_bytes!("../../tests/data/ramp2.bshuf.zstd")),
        (zstd, 4, 5003, include_bytes!("../../tests/data/ramp4.bshuf.zstd")),
    ] {
        let mut out = Vec::new();
        decode_stream_vec(inner, size, stored, n * size, &mut out).unwrap();
        assert_eq!(out, ramp(n as u64, size));
        assert!(decode_stream_vec(inner, size, stored, n * size - 1, &mut out).is_err());
        assert!(decode_stream(inner, size, &stored[..stored.len() - 1], &mut out).is_err());
        assert!(decode_stream(inner, size, &[stored, b"x"].concat(), &mut out).is_err());
        assert!(decode_stream(inner, size, stored, &mut out[1..]).is_err());
    }
}

#[test]
fn chunks_of_the_hdf5_filter_without_compression_are_the_plain_transform() {
    for (size, n, stored) in [
        (2, 2050, include_bytes!("../../tests/data/ramp2.bshuf.none").as_slice()),
        (4, 5003, include_bytes!("../../tests/data/ramp4.bshuf.none")),
    ] {
        let src = ramp(n, size);
        let mut out = vec![0; src.len()];
        encode(size, 0, &src, &mut out).unwrap();
        assert_eq!(out, stored);
        let mut back = vec![0; src.len()];
        decode(size, 0, stored, &mut back).unwrap();
        assert_eq!(back, src);
    }
}

#[test]
fn wrong_arguments_are_errors() {
    assert!(encode(0, 8, &[1], &mut [0]).is_err());
    assert!(encode(1, 7, &[1], &mut [0]).is_err());
    assert!(encode(usize::MAX, 8, &[1], &mut [0]).is_err());
    assert!(encode_block(2, &[0; 14], &mut [0; 14]).is_err());
    assert!(encode_stream(Inner::Lz4, 4, 8, &[1], &mut Vec::new()).is_err());
    assert!(decode_stream(Inner::Lz4, 0, &[0; 12], &mut []).is_err());
}

proptest! {
    #[test]
    fn round_trip(data in proptest::collection::vec(any::<u8>(), 0..2000), size in 1..20usize, block in 0..20usize) {
        let data = &data[..data.len() / size * size];
        let mut out = vec![0; data.len()];
        encode(size, block * 8, data, &mut out).unwrap();
        let mut back = vec![0; data.len()];
        decode(size, block * 8, &out, &mut back).unwrap();
        prop_assert_eq!(&back, data);
        for inner in [Inner::Lz4, Inner::Zstd { level: 1 }] {
            let mut stored = Vec::new();
            encode_stream(inner, size, block * 8, data, &mut stored).unwrap();
            decode_stream(inner, size, &stored, &mut back).unwrap();
            prop_assert_eq!(&back, data);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(data: Vec<u8>, len in 0..200u8, block in 0..64u8, size in 0..10usize) {
        let stream = [&[0, 0, 0, 0, 0, 0, 0, len, 0, 0, 0, block][..], &data].concat();
        for stream in [&stream, &data] {
            let mut out = vec![0; len.into()];
            let _ = decode_stream(Inner::Lz4, size, stream, &mut out);
            let mut out = Vec::new();
            let _ = decode_stream_vec(Inner::Zstd { level: 0 }, size, stream, len.into(), &mut out);
            prop_assert!(out.len() <= len.into());
        }
    }
}
