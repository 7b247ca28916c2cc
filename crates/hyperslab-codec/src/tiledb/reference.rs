//! Tiles written by libtiledb, each with one chunk and one filter: every kernel restores the values.

use super::{
    Integer, StringDictionary, StringRuns, decode_bit_width, decode_delta, decode_double_delta,
    decode_float_scale, decode_positive_delta, decode_runs, decode_string_dictionary, decode_string_runs,
    decode_xor,
};
use crate::testing::data;

const INTEGERS: [(&str, Integer); 4] = [
    ("i2", Integer { size: 2, signed: true }),
    ("u4", Integer { size: 4, signed: false }),
    ("i8", Integer { size: 8, signed: true }),
    ("u8", Integer { size: 8, signed: false }),
];

/// The metadata and the data of the only chunk of a tile, and the values.
fn tile(name: &str) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let tile = data(&format!("tiledb.{name}.tdb"));
    let word = |at: usize| u32::from_le_bytes(tile[at..at + 4].try_into().unwrap()) as usize;
    assert_eq!(word(0), 1, "{name}: one chunk");
    let (filtered, metadata) = (word(12), word(16));
    let (metadata, rest) = tile[20..].split_at(metadata);
    assert_eq!(rest.len(), filtered, "{name}");
    (metadata.to_vec(), rest.to_vec(), data(&format!("tiledb.{name}.raw")))
}

/// Decodes a tile with this kernel and compares.
fn check(name: &str, decode: impl FnOnce(&[u8], &[u8], &mut [u8]) -> crate::Result<()>) {
    let (metadata, stored, raw) = tile(name);
    let mut out = vec![0xaa; raw.len()];
    decode(&metadata, &stored, &mut out).unwrap();
    assert_eq!(out, raw, "{name}");
}

#[test]
fn integers_match_libtiledb() {
    for (name, integer) in INTEGERS {
        let size = integer.size;
        check(&format!("bwr.{name}"), |metadata, stored, out| {
            decode_bit_width(integer, &metadata[8..], stored, out)
        });
        check(&format!("pd.{name}"), |metadata, stored, out| {
            decode_positive_delta(size, &metadata[4..], stored, out)
        });
        check(&format!("dd.{name}"), |_, stored, out| decode_double_delta(size, stored, out));
        check(&format!("delta.{name}"), |_, stored, out| decode_delta(size, stored, out));
        check(&format!("xor.{name}"), |_, stored, out| decode_xor(size, stored, out));
        check(&format!("rle.{name}"), |_, stored, out| decode_runs(size, stored, out));
    }
    check("dd.wild", |_, stored, out| decode_double_delta(8, stored, out));
    let signed = Integer { size: 8, signed: true };
    check("bwr.wild", |metadata, stored, out| decode_bit_width(signed, &metadata[8..], stored, out));
}

#[test]
fn scaled_floats_match_libtiledb() {
    // The library rounds when writing, so results are within half a step.
    for (name, size, scale, offset, width) in [("scale.f8", 8, 0.25, 10.0, 4), ("scale.f4", 4, 0.1, -3.0, 2)]
    {
        let (_, stored, raw) = tile(name);
        let mut out = vec![0; raw.len()];
        decode_float_scale(size, scale, offset, width, &stored, &mut out).unwrap();
        let value = |bytes: &[u8]| match size {
            8 => f64::from_le_bytes(bytes.try_into().unwrap()),
            _ => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
        };
        for (own, theirs) in out.chunks(size).zip(raw.chunks(size)) {
            assert!((value(own) - value(theirs)).abs() <= scale / 2.0 + 1e-5, "{name}");
        }
    }
}

#[test]
fn strings_match_libtiledb() {
    let words = |i: usize| {
        ["".to_owned(), "a".into(), "bb".into(), "quartz".into(), "a".repeat(300)][i / 4 % 5].clone()
    };
    let mut starts = vec![0];
    starts.extend((0..399).scan(0, |at, i| {
        *at += words(i).len() as u64;
        Some(*at)
    }));
    for name in ["rle.words", "dict.words"] {
        let (metadata, stored, raw) = tile(name);
        let (mut out, mut offsets) = (vec![0; raw.len()], Vec::new());
        let (first, length_bytes) = (metadata[20], metadata[21]);
        if name == "rle.words" {
            let form = StringRuns { count_bytes: first, length_bytes };
            decode_string_runs(form, &stored, 400, &mut out, &mut offsets).unwrap();
        } else {
            let form = StringDictionary { id_bytes: first, length_bytes };
            decode_string_dictionary(form, &metadata[26..], &stored, 400, &mut out, &mut offsets).unwrap();
        }
        assert_eq!((out, offsets), (raw, starts.clone()), "{name}");
    }
}

#[test]
fn encryption_matches_libtiledb() {
    let (metadata, stored, raw) = tile("aes");
    let key = *b"0123456789abcdef0123456789ABCDEF";
    let (iv, tag) = (metadata[16..28].try_into().unwrap(), metadata[28..44].try_into().unwrap());
    let mut out = vec![0; stored.len()];
    crate::aes_gcm::open(&key, &iv, &tag, &stored, &mut out).unwrap();
    assert_eq!(out, raw);
}
