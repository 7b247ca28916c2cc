//! Compares with bytes written by libtiledb, and round trips for encodings without fixed bytes.

use proptest::prelude::*;

use super::*;

fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn ints(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

const INT32: Integer = Integer { size: 4, signed: true };

#[test]
fn bit_width_reduction_matches_libtiledb() {
    let x = ints(&[0, 1, 2, 3, 4, 5, 6, 7, 1000, -5]);
    for (window, metadata, data) in [
        (256, "fbffffff 10 28000000", "050006000700080009000a000b000c00ed030000"),
        (16, "00000000 08 10000000 04000000 08 10000000 fbffffff 10 08000000", "00010203 00010203 ed030000"),
    ] {
        let (mut windows, mut out) = (Vec::new(), Vec::new());
        encode_bit_width(INT32, window, &x, &mut windows, &mut out).unwrap();
        assert_eq!((&windows, &out), (&hex(metadata), &hex(data)));
        let mut back = vec![0; x.len()];
        decode_bit_width(INT32, &windows, &out, &mut back).unwrap();
        assert_eq!(back, x);
    }
}

#[test]
fn differences_match_libtiledb() {
    let s = ints(&[10, 10, 12, 300, 70000]);
    let mut back = vec![0; s.len()];
    let (mut windows, mut out) = (Vec::new(), Vec::new());
    encode_positive_delta(INT32, 1024, &s, &mut windows, &mut out).unwrap();
    assert_eq!(windows, hex("0a000000 14000000"));
    assert_eq!(out, hex("0000000000000000020000002001000044100100"));
    decode_positive_delta(4, &windows, &out, &mut back).unwrap();
    assert_eq!(back, s);

    let mut out = Vec::new();
    encode_delta(4, &s, &mut out).unwrap();
    assert_eq!(out, hex("05000000000000000a00000000000000020000002001000044100100"));
    decode_delta(4, &out, &mut back).unwrap();
    assert_eq!(back, s);

    let mut out = vec![0; s.len()];
    encode_xor(4, &s, &mut out).unwrap();
    assert_eq!(out, hex("0a0000000000000006000000200100005c100100"));
    decode_xor(4, &out, &mut back).unwrap();
    assert_eq!(back, s);
}

#[test]
fn double_delta_matches_libtiledb() {
    let values = ints(&[100, 110, 121, 131, 140]);
    let mut out = Vec::new();
    encode_double_delta(INT32, &values, &mut out).unwrap();
    assert_eq!(out, hex("040500000000000000 64000000 6e000000 000000000000620c"));
    let mut back = vec![0; values.len()];
    decode_double_delta(4, &out, &mut back).unwrap();
    assert_eq!(back, values);
}

#[test]
fn runs_match_libtiledb() {
    let mut out = Vec::new();
    encode_runs(4, &ints(&[7, 7, 7, 9]), &mut out).unwrap();
    assert_eq!(out, hex("070000000003 090000000001"));
    let mut back = vec![0; 16];
    decode_runs(4, &out, &mut back).unwrap();
    assert_eq!(back, ints(&[7, 7, 7, 9]));
}

#[test]
fn scaled_floats_match_libtiledb() {
    let floats: Vec<u8> = [10.0_f64, 10.25, 10.754, 11.0001].iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut out = Vec::new();
    encode_float_scale(8, 0.25, 10.0, 2, &floats, &mut out).unwrap();
    assert_eq!(out, hex("0000010003000400"));
    let mut back = vec![0; 32];
    decode_float_scale(8, 0.25, 10.0, 2, &out, &mut back).unwrap();
    let expected: Vec<u8> = [10.0_f64, 10.25, 10.75, 11.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(back, expected);
}

#[test]
fn strings_match_libtiledb() {
    let strings: [&[u8]; 5] = [b"a", b"a", b"bb", b"a", b""];
    let (mut out, mut back, mut offsets) = (Vec::new(), [0; 5], Vec::new());
    let form = encode_string_runs(strings.into_iter(), &mut out);
    assert_eq!((form.count_bytes, form.length_bytes), (1, 1));
    assert_eq!(out, hex("0201 61 0102 6262 0101 61 0100"));
    decode_string_runs(form, &out, 5, &mut back, &mut offsets).unwrap();
    assert_eq!((&back, offsets.as_slice()), (b"aabba", &[0, 1, 2, 4, 5][..]));

    let (mut out, mut dictionary, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
    let form = encode_string_dictionary(strings.into_iter(), &mut dictionary, &mut out).unwrap();
    assert_eq!((&dictionary, &out), (&hex("0161 026262 00"), &hex("0000010002")));
    decode_string_dictionary(form, &dictionary, &out, 5, &mut back, &mut offsets).unwrap();
    assert_eq!((&back, offsets.as_slice()), (b"aabba", &[0, 1, 2, 4, 5][..]));
}

/// The length of the last string must be included, which libtiledb forgets.
#[test]
fn a_long_last_string_survives_runs() {
    let long = vec![b'x'; 300];
    let strings: [&[u8]; 2] = [b"a", &long];
    let (mut out, mut back, mut offsets) = (Vec::new(), vec![0; 301], Vec::new());
    let form = encode_string_runs(strings.into_iter(), &mut out);
    decode_string_runs(form, &out, 2, &mut back, &mut offsets).unwrap();
    assert_eq!(back[1..], long);
}

proptest! {
    #[test]
    fn integers_round_trip(
        values in prop::collection::vec(any::<i64>(), 0..200),
        shift in 0_u32..64,
        size in prop::sample::select(vec![1_usize, 2, 4, 8]),
        signed: bool,
        window in 1_usize..100,
    ) {
        let bytes: Vec<u8> =
            values.iter().flat_map(|value| (value >> shift).to_le_bytes()[..size].to_vec()).collect();
        let integer = Integer { size, signed };
        let mut back = vec![0; bytes.len()];
        let (mut windows, mut out) = (Vec::new(), Vec::new());
        encode_bit_width(integer, window * size, &bytes, &mut windows, &mut out).unwrap();
        decode_bit_width(integer, &windows, &out, &mut back).unwrap();
        prop_assert_eq!(&back, &bytes);
        let mut out = Vec::new();
        if encode_double_delta(integer, &bytes, &mut out).is_ok() {
            back.fill(0);
            decode_double_delta(size, &out, &mut back).unwrap();
            prop_assert_eq!(&back, &bytes);
        }
        let mut out = Vec::new();
        encode_delta(size, &bytes, &mut out).unwrap();
        decode_delta(size, &out, &mut back).unwrap();
        prop_assert_eq!(&back, &bytes);
    }

    /// Decoders terminate for any bytes.
    #[test]
    fn noise_is_refused_or_decoded(
        noise in prop::collection::vec(any::<u8>(), 0..80),
        more in prop::collection::vec(any::<u8>(), 0..40),
        size in prop::sample::select(vec![0_usize, 1, 2, 3, 4, 8]),
        length in 0_usize..64,
    ) {
        let mut out = vec![0; length];
        let mut offsets = Vec::new();
        let integer = Integer { size, signed: true };
        let _ = decode_bit_width(integer, &more, &noise, &mut out);
        let _ = decode_positive_delta(size, &more, &noise, &mut out);
        let _ = decode_double_delta(size, &noise, &mut out);
        let _ = decode_delta(size, &noise, &mut out);
        let _ = decode_xor(size, &noise, &mut out);
        let _ = decode_runs(size, &noise, &mut out);
        let _ = decode_float_scale(size, 1.5, 0.0, 2, &noise, &mut out);
        let form = StringRuns { count_bytes: 1, length_bytes: 1 };
        let _ = decode_string_runs(form, &noise, length, &mut out, &mut offsets);
        let form = StringDictionary { id_bytes: 1, length_bytes: 1 };
        let _ = decode_string_dictionary(form, &more, &noise, noise.len(), &mut out, &mut offsets);
    }
}
