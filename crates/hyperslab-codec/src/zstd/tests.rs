use proptest::prelude::*;

use super::*;
use crate::CodecError;
use crate::testing::hex;

/// `numpy.arange(40, dtype="<i4") * 3` by numcodecs 0.16.6 `Zstd(3)`.
const PLAIN: &str =
    "28b52ffd20a0650200020a121850cb9b01a056bfc5f55afdf6ed73feffffffffffffff23526f9cf1c5154f1cf1c30d2f9cf0c105
    0f1cf0efdebb73dfae3d3bf6ebd6ab539f2e3d3af4e7ce9b335fae3c39f2e30300";
/// The same with `checksum=True`.
const CHECKED: &str =
    "28b52ffd24a0650200020a121850cb9b01a056bfc5f55afdf6ed73feffffffffffffff23526f9cf1c5154f1cf1c30d2f9cf0
    c1050f1cf0efdebb73dfae3d3bf6ebd6ab539f2e3d3af4e7ce9b335fae3c39f2e303007ee257df";
/// `abcabc` from a streaming writer: no content size in the header.
const UNSIZED: &str = "28b52ffd0048 310000 616263616263";
/// A skippable frame of three bytes.
const SKIPPABLE: &str = "502a4d18 03000000 aabbcc";

fn expected() -> Vec<u8> {
    (0..40i32).flat_map(|v| (v * 3).to_le_bytes()).collect()
}

#[test]
fn frames_of_the_reference_decode() {
    for frame in [PLAIN, CHECKED] {
        let mut out = vec![0; 160];
        decode(&hex(frame), &mut out).unwrap();
        assert_eq!(out, expected());
        let mut out = vec![7];
        decode_vec(&hex(frame), 160, &mut out).unwrap();
        assert_eq!(out[1..], expected());
    }
}

#[test]
fn frames_follow_one_another_and_skippable_ones_are_skipped() {
    let stream = [hex(SKIPPABLE), hex(PLAIN), hex(SKIPPABLE), hex(UNSIZED), hex(SKIPPABLE)].concat();
    let mut want = expected();
    want.extend_from_slice(b"abcabc");
    let mut out = vec![0; want.len()];
    decode(&stream, &mut out).unwrap();
    assert_eq!(out, want);
    let mut out = Vec::new();
    decode_vec(&stream, 1 << 20, &mut out).unwrap();
    assert_eq!(out, want);
}

#[test]
fn decoding_the_front_gives_the_same_bytes() {
    let plain: Vec<u8> = (0..200_000_u32).flat_map(|i| (i.wrapping_mul(i) / 7).to_le_bytes()).collect();
    let mut stored = Vec::new();
    encode(&plain, Options::level(3).with_checksum(true), &mut stored).unwrap();
    for length in [0, 1, 4, 131_071, 131_073, 500_000, plain.len() - 1, plain.len()] {
        let mut out = vec![0; length];
        assert!(decode_front(&stored, plain.len(), &mut out));
        assert!(out == plain[..length], "{length}");
        // An abandoned frame does not affect the next.
        let mut whole = vec![0; plain.len()];
        decode(&stored, &mut whole).unwrap();
        assert!(whole == plain);
    }
    // Half of the bytes hold only the first part.
    let half = &stored[..stored.len() / 2];
    let mut out = vec![0; plain.len() / 8];
    assert!(decode_front(half, plain.len(), &mut out));
    assert!(out == plain[..plain.len() / 8]);
    assert!(!decode_front(half, plain.len(), &mut vec![0; plain.len()]));
}

#[test]
fn frames_without_a_size_have_no_front() {
    let mut out = [0; 3];
    assert!(!decode_front(&hex(UNSIZED), 6, &mut out));
    assert!(!decode_front(&hex(PLAIN), 161, &mut out));
    assert!(!decode_front(&[hex(SKIPPABLE), hex(PLAIN)].concat(), 160, &mut out));
    assert!(!decode_front(&hex(PLAIN), 160, &mut [0; 161]));
    assert!(!decode_front(b"", 160, &mut out));
    assert!(decode_front(&hex(PLAIN), 160, &mut out));
    assert_eq!(out, expected()[..3]);
}

#[test]
fn any_other_size_is_an_error() {
    for len in [0, 1, 159, 161, 4096] {
        let mut out = vec![0; len];
        let error = decode(&hex(PLAIN), &mut out).unwrap_err();
        assert!(matches!(error, CodecError::Size { .. }), "{len}: {error}");
    }
    let mut out = vec![1, 2];
    assert!(decode_vec(&hex(PLAIN), 159, &mut out).is_err());
    assert_eq!(out, [1, 2]);
}

#[test]
fn trailing_bytes_truncation_and_damage_are_errors() {
    let mut out = vec![0; 160];
    for tail in [&[0u8][..], &[0; 3], &[0; 9], b"\x28\xb5\x2f"] {
        let stream = [hex(PLAIN), tail.to_vec()].concat();
        assert!(decode(&stream, &mut out).is_err(), "{tail:?}");
    }
    let frame = hex(CHECKED);
    for len in 0..frame.len() {
        assert!(decode(&frame[..len], &mut out).is_err());
    }
    let mut damaged = frame;
    damaged[60] ^= 1;
    assert!(decode(&damaged, &mut out).is_err());
    decode(&hex(PLAIN), &mut out).unwrap();
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let mut bomb = Vec::new();
    encode(&vec![0; 64 << 20], Options::level(1), &mut bomb).unwrap();
    let mut out = Vec::new();
    assert!(decode_vec(&bomb, 1 << 16, &mut out).is_err());
    assert!(out.capacity() <= 1 << 17);
}

/// Earlier use of a level has no effect.
#[test]
fn levels_do_not_disturb_each_other() {
    let plain: Vec<u8> = (0..300_000_u32)
        .flat_map(|i| (i.wrapping_mul(2_654_435_761) >> (i / 50_000)).to_le_bytes())
        .collect();
    let stored = |level| {
        let mut stored = Vec::new();
        encode(&plain, Options::level(level), &mut stored).unwrap();
        let mut out = vec![0; plain.len()];
        decode(&stored, &mut out).unwrap();
        assert!(out == plain, "level {level}");
        stored
    };
    for level in [-3, 0, 1, 3, 4, 5, 9] {
        let alone = std::thread::scope(|scope| scope.spawn(|| stored(level)).join().unwrap());
        let _ = (stored(3), stored(9));
        assert!(stored(level) == alone, "level {level}");
    }
}

proptest! {
    #[test]
    fn round_trip(data: Vec<u8>, level in -7..=9i32, checksum: bool) {
        let mut stored = vec![9];
        encode(&data, Options::level(level).with_checksum(checksum), &mut stored).unwrap();
        let mut out = vec![0; data.len()];
        decode(&stored[1..], &mut out).unwrap();
        prop_assert_eq!(&out, &data);
    }

    #[test]
    fn arbitrary_bytes_never_panic(data: Vec<u8>, len in 0..512usize) {
        let stream = [&[0x28, 0xb5, 0x2f, 0xfd], &data[..]].concat();
        let mut out = vec![0; len];
        let _ = decode(&stream, &mut out);
        let _ = decode(&data, &mut out);
        let mut out = Vec::new();
        let _ = decode_vec(&stream, len, &mut out);
        prop_assert!(out.len() <= len);
    }
}
