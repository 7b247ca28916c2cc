use proptest::prelude::*;

use super::parts::{CompressedParts, Parts};
use super::rle::Widths;
use super::testing::{INTEGERS, tile};
use super::*;
use crate::testing::{hex, noise};

fn integers(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn bit_width_reduction_is_that_of_libtiledb() {
    for (name, integer) in INTEGERS.into_iter().chain([("wild", Integer::I64)]) {
        let (metadata, stored, raw) = tile(&format!("bwr.{name}"));
        let (windows, rest) = bit_width::Windows::parse(integer, &metadata).unwrap();
        assert!(rest.is_empty());
        let mut out = vec![0; raw.len()];
        windows.decode(integer, &stored, &mut out).unwrap();
        assert!(out == raw, "{name}");
        assert!(windows.decode(integer, &stored[1..], &mut out).is_err());
        assert!(windows.decode(integer, &stored, &mut out[1..]).is_err());
        let (mut again, mut back, mut written) = (bit_width::Windows::default(), Vec::new(), Vec::new());
        again.encode(integer, if name == "wild" { 64 } else { 256 }, &raw, &mut back).unwrap();
        again.write(integer, &mut written).unwrap();
        assert!(back == stored, "{name}");
        // The least value of windows that are stored as they are is undefined in libtiledb.
        if name == "wild" {
            assert_eq!(again.windows.len(), windows.windows.len());
        } else {
            assert_eq!(written, metadata);
        }
    }
}

#[test]
fn small_vectors_of_libtiledb_are_met() {
    let x = integers(&[0, 1, 2, 3, 4, 5, 6, 7, 1000, -5]);
    let s = integers(&[10, 10, 12, 300, 70000]);
    let (mut windows, mut data, mut metadata) = (bit_width::Windows::default(), Vec::new(), Vec::new());
    windows.encode(Integer::I32, 16, &x, &mut data).unwrap();
    windows.write(Integer::I32, &mut metadata).unwrap();
    assert_eq!(data, hex("00010203 00010203 ed030000"));
    assert_eq!(
        metadata,
        hex("2800000003000000 00000000 08 10000000 04000000 08 10000000 fbffffff 10 08000000")
    );

    let (mut windows, mut data, mut metadata) = (positive_delta::Windows::default(), Vec::new(), Vec::new());
    windows.encode(Integer::I32, 1024, &s, &mut data).unwrap();
    windows.write(Integer::I32, &mut metadata).unwrap();
    assert_eq!(data, hex("0000000000000000020000002001000044100100"));
    assert_eq!(metadata, hex("01000000 0a000000 14000000"));
    assert!(windows.encode(Integer::I32, 1024, &x, &mut data).is_err());

    let mut data = Vec::new();
    delta::encode(4, &s, &mut data).unwrap();
    assert_eq!(data, hex("05000000000000000a00000000000000020000002001000044100100"));

    let mut data = Vec::new();
    double_delta::encode(Integer::I32, &integers(&[100, 110, 121, 131, 140]), &mut data).unwrap();
    assert_eq!(data, hex("040500000000000000 64000000 6e000000 000000000000620c"));

    let mut data = vec![0; 20];
    xor::encode(4, &s, &mut data).unwrap();
    assert_eq!(data, hex("0a0000000000000006000000200100005c100100"));

    let mut data = Vec::new();
    rle::encode(4, &integers(&[7, 7, 7, 9]), &mut data).unwrap();
    assert_eq!(data, hex("070000000003 090000000001"));

    let scale = float_scale::FloatScale { scale: 0.25, offset: 10.0, width: 2 };
    let floats: Vec<u8> = [10.0f64, 10.25, 10.754, 11.0001].iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut data = Vec::new();
    scale.encode(8, &floats, &mut data).unwrap();
    assert_eq!(data, hex("0000010003000400"));

    let words = ["a", "a", "bb", "a", ""].map(str::as_bytes);
    let mut data = Vec::new();
    assert_eq!(rle::encode_strings(words.into_iter(), &mut data), Widths { run: 1, len: 1 });
    assert_eq!(data, hex("0201 61 0102 6262 0101 61 0100"));
    let mut data = Vec::new();
    let dictionary = dictionary::Dictionary::encode(words.into_iter(), &mut data);
    assert_eq!((dictionary.id, dictionary.len), (1, 1));
    assert_eq!(dictionary.entries, hex("0161 026262 00"));
    assert_eq!(data, hex("0000010002"));
}

#[test]
fn positive_delta_is_that_of_libtiledb() {
    for (name, integer) in INTEGERS {
        let (metadata, stored, raw) = tile(&format!("pd.{name}"));
        let (windows, rest) = positive_delta::Windows::parse(integer, &metadata).unwrap();
        assert!(rest.is_empty());
        let mut out = vec![0; raw.len()];
        windows.decode(integer, &stored, &mut out).unwrap();
        assert!(out == raw, "{name}");
        let (mut again, mut back, mut written) = (positive_delta::Windows::default(), Vec::new(), Vec::new());
        again.encode(integer, 400, &raw, &mut back).unwrap();
        again.write(integer, &mut written).unwrap();
        assert!(back == stored && written == metadata, "{name}");
    }
}

#[test]
fn differences_are_those_of_libtiledb() {
    for (name, integer) in INTEGERS.into_iter().chain([("wild", Integer::I64)]) {
        let (metadata, stored, raw) = tile(&format!("dd.{name}"));
        let (parts, rest) = CompressedParts::parse(&metadata).unwrap();
        assert!(rest.is_empty());
        assert_eq!(parts.data, [(raw.len() as u32, stored.len() as u32)]);
        let mut out = vec![0; raw.len()];
        double_delta::decode(integer, &stored, &mut out).unwrap();
        assert!(out == raw, "dd {name}");
        assert!(double_delta::decode(integer, &stored[..stored.len() - 8], &mut out).is_err());
        let mut back = Vec::new();
        double_delta::encode(integer, &raw, &mut back).unwrap();
        assert!(back == stored, "dd {name}");
        if name == "wild" {
            continue;
        }
        let (_, stored, raw) = tile(&format!("delta.{name}"));
        delta::decode(integer.size(), &stored, &mut out).unwrap();
        assert!(out == raw, "delta {name}");
        let mut back = Vec::new();
        delta::encode(integer.size(), &raw, &mut back).unwrap();
        assert!(back == stored, "delta {name}");

        let (metadata, stored, raw) = tile(&format!("xor.{name}"));
        let (parts, rest) = Parts::parse(&metadata).unwrap();
        assert_eq!((parts.lengths.as_slice(), rest), (&[raw.len() as u32][..], &[][..]));
        xor::decode(integer.size(), &stored, &mut out).unwrap();
        assert!(out == raw, "xor {name}");

        let (_, stored, raw) = tile(&format!("rle.{name}"));
        rle::decode(integer.size(), &stored, &mut out).unwrap();
        assert!(out == raw, "rle {name}");
        let mut back = Vec::new();
        rle::encode(integer.size(), &raw, &mut back).unwrap();
        assert!(back == stored, "rle {name}");
    }
}

#[test]
fn float_scale_is_that_of_libtiledb() {
    for (name, float, scale) in [
        ("scale.f8", 8, float_scale::FloatScale { scale: 0.25, offset: 10.0, width: 4 }),
        ("scale.f4", 4, float_scale::FloatScale { scale: 0.1, offset: -3.0, width: 2 }),
    ] {
        let (_, stored, raw) = tile(name);
        let mut back = Vec::new();
        scale.encode(float, &raw, &mut back).unwrap();
        assert!(back == stored, "{name}");
        let mut out = vec![0; raw.len()];
        scale.decode(float, &stored, &mut out).unwrap();
        let mut again = Vec::new();
        scale.encode(float, &out, &mut again).unwrap();
        assert!(again == stored, "{name}");
    }
}

#[test]
fn strings_are_those_of_libtiledb() {
    let words: Vec<Vec<u8>> = (0..400)
        .map(|i| {
            [b"".to_vec(), b"a".to_vec(), b"bb".to_vec(), b"quartz".to_vec(), vec![b'a'; 300]][i / 4 % 5]
                .clone()
        })
        .collect();
    let starts: Vec<u64> =
        words.iter().scan(0, |at, word| Some(std::mem::replace(at, *at + word.len() as u64))).collect();

    let (metadata, stored, raw) = tile("rle.words");
    assert_eq!(metadata[16..], [0x80, 0x0c, 0, 0, 1, 2]);
    let (mut offsets, mut out) = (vec![0; 400], vec![0; raw.len()]);
    rle::decode_strings(Widths { run: 1, len: 2 }, &stored, &mut offsets, &mut out).unwrap();
    assert!(out == raw && offsets == starts);
    let mut back = Vec::new();
    assert_eq!(rle::encode_strings(words.iter().map(Vec::as_slice), &mut back), Widths { run: 1, len: 2 });
    assert_eq!(back, stored);

    let (metadata, stored, raw) = tile("dict.words");
    let (id, len, entries) = (metadata[20], metadata[21], metadata[26..].to_vec());
    let dictionary = dictionary::Dictionary { id, len, entries };
    let (mut offsets, mut out) = (vec![0; 400], vec![0; raw.len()]);
    dictionary.decode(&stored, &mut offsets, &mut out).unwrap();
    assert!(out == raw && offsets == starts);
    let mut back = Vec::new();
    assert_eq!(dictionary::Dictionary::encode(words.iter().map(Vec::as_slice), &mut back), dictionary);
    assert_eq!(back, stored);
}

#[test]
fn bitshuffle_and_md5_are_those_of_libtiledb() {
    for (name, size) in [("bitshuffle.i4", 4), ("bitshuffle.i8", 8)] {
        let (_, stored, raw) = tile(name);
        let mut out = vec![0; raw.len()];
        crate::bitshuffle::decode(size, 8192 / size, &stored, &mut out).unwrap();
        assert!(out == raw, "{name}");
    }
    let (metadata, _, raw) = tile("md5");
    assert_eq!(metadata[16..], crate::checksum::md5(&raw));
}

#[test]
fn encryption_is_that_of_libtiledb() {
    let (metadata, mut data, raw) = tile("aes");
    let key = b"0123456789abcdef0123456789ABCDEF";
    // No part of metadata, one of data: plain length, stored length, nonce, tag.
    assert_eq!(metadata.len(), 8 + 8 + 12 + 16);
    assert_eq!(metadata[..8], [0, 0, 0, 0, 1, 0, 0, 0]);
    let nonce = metadata[16..28].try_into().unwrap();
    let tag = metadata[28..].try_into().unwrap();
    crate::aes_gcm::decrypt(key, nonce, tag, &mut data).unwrap();
    assert!(data == raw);
}

fn any_integer() -> impl Strategy<Value = Integer> {
    prop::sample::select(vec![
        Integer::I8,
        Integer::U8,
        Integer::I16,
        Integer::U16,
        Integer::I32,
        Integer::U32,
        Integer::I64,
        Integer::U64,
    ])
}

proptest! {
    #[test]
    fn everything_round_trips(integer in any_integer(), n in 0..100usize, window in 0..80u32, small: bool) {
        let size = integer.size();
        let mut src = noise(n * size);
        if small {
            for value in src.chunks_mut(size) {
                value[1..].fill(0);
            }
        }
        let mut out = vec![0; src.len()];
        let mut stored = Vec::new();
        if size > 1 {
            let mut windows = bit_width::Windows::default();
            windows.encode(integer, window, &src, &mut stored).unwrap();
            let mut metadata = Vec::new();
            windows.write(integer, &mut metadata).unwrap();
            bit_width::Windows::parse(integer, &metadata).unwrap().0.decode(integer, &stored, &mut out).unwrap();
            prop_assert_eq!(&out, &src);
        }
        stored.clear();
        if double_delta::encode(integer, &src, &mut stored).is_ok() {
            double_delta::decode(integer, &stored, &mut out).unwrap();
            prop_assert_eq!(&out, &src);
        }
        stored.clear();
        delta::encode(size, &src, &mut stored).unwrap();
        delta::decode(size, &stored, &mut out).unwrap();
        prop_assert_eq!(&out, &src);
        stored.clear();
        rle::encode(size, &src, &mut stored).unwrap();
        rle::decode(size, &stored, &mut out).unwrap();
        prop_assert_eq!(&out, &src);
        let mut stored = vec![0; src.len()];
        xor::encode(size, &src, &mut stored).unwrap();
        xor::decode(size, &stored, &mut out).unwrap();
        prop_assert_eq!(&out, &src);
    }

    #[test]
    fn double_delta_round_trips_between_limits(values in prop::collection::vec(-1i64 << 40..1i64 << 40, 0..60)) {
        let src: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let (mut stored, mut out) = (Vec::new(), vec![0; src.len()]);
        double_delta::encode(Integer::I64, &src, &mut stored).unwrap();
        double_delta::decode(Integer::I64, &stored, &mut out).unwrap();
        prop_assert_eq!(out, src);
    }

    #[test]
    fn strings_round_trip(words in prop::collection::vec("[ab]{0,3}", 0..80)) {
        let total = words.iter().map(String::len).sum();
        let (mut stored, mut offsets, mut out) = (Vec::new(), vec![0; words.len()], vec![0; total]);
        let widths = rle::encode_strings(words.iter().map(String::as_bytes), &mut stored);
        rle::decode_strings(widths, &stored, &mut offsets, &mut out).unwrap();
        prop_assert_eq!(&out, &words.concat().into_bytes());
        stored.clear();
        let dictionary = dictionary::Dictionary::encode(words.iter().map(String::as_bytes), &mut stored);
        dictionary.decode(&stored, &mut offsets, &mut out).unwrap();
        prop_assert_eq!(&out, &words.concat().into_bytes());
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(integer in any_integer(), data: Vec<u8>, metadata: Vec<u8>, len in 0..300usize, width in 0..10u8) {
        let mut out = vec![0; len];
        if let Ok((windows, _)) = bit_width::Windows::parse(integer, &metadata) {
            let _ = windows.decode(integer, &data, &mut out);
        }
        if let Ok((windows, _)) = positive_delta::Windows::parse(integer, &metadata) {
            let _ = windows.decode(integer, &data, &mut out);
        }
        let _ = Parts::parse(&metadata);
        let _ = CompressedParts::parse(&metadata);
        let _ = double_delta::decode(integer, &data, &mut out);
        let _ = delta::decode(integer.size(), &data, &mut out);
        let _ = xor::decode(integer.size(), &data, &mut out);
        let _ = rle::decode(integer.size(), &data, &mut out);
        let mut offsets = vec![0; len % 50];
        let _ = rle::decode_strings(Widths { run: width, len: 1 }, &data, &mut offsets, &mut out);
        let dictionary = dictionary::Dictionary { id: 1, len: width, entries: metadata };
        let _ = dictionary.decode(&data, &mut offsets, &mut out);
        let scale = float_scale::FloatScale { scale: 0.5, offset: 1.0, width: width.into() };
        let _ = scale.decode(8, &data, &mut out);
        // A head that is right, before bytes that are not.
        let n = (len / integer.size()) as u8;
        let stream = [&[width, n, 0, 0, 0, 0, 0, 0, 0][..], &data].concat();
        let whole = usize::from(n) * integer.size();
        let _ = double_delta::decode(integer, &stream, &mut out[..whole.min(len)]);
        let _ = delta::decode(integer.size(), &stream[1..], &mut out[..whole.min(len)]);
    }
}
