//! Every decoder as a function of arbitrary bytes, for fuzzers and for the tests of this crate.
//!
//! A decoder with parameters takes them from the first bytes. No decoder may panic, or write or allocate much more than
//! `limit`. Results are discarded.

mod round_trips;

use crate::blosc::{self, Chunk};
use crate::narrow::Narrow;
use crate::tiledb::{self, Integer, StringDictionary, StringRuns};
use crate::{
    aes_gcm, bitshuffle, blosc2, bzip2, deflate, hdf5_lz4, lz4, lzf, lzma, nbit, numcodecs, pcodec,
    scale_offset, shuffle, snappy, szip, zfp, zstd,
};

pub use round_trips::{ROUND_TRIPS, RoundTrip};

/// A name, and a function of arbitrary bytes and of the maximum output size.
pub type Decoder = (&'static str, fn(&[u8], usize));

/// Every decoder.
pub const DECODERS: &[Decoder] = &[
    ("zstd", |src, limit| drop(zstd::decode_vec(src, limit, &mut Vec::new()))),
    ("zstd into", |src, limit| drop(zstd::decode(src, &mut vec![0; limit]))),
    ("zstd front", |src, limit| _ = zstd::decode_front(src, limit, &mut vec![0; limit / 2])),
    ("zstd stream", |src, limit| {
        let Ok(mut stream) = zstd::Stream::new(src) else { return };
        let (mut piece, mut left) = (vec![0; 4096], limit);
        while let Ok(read @ 1..) = stream.read(&mut piece)
            && left > 0
        {
            left = left.saturating_sub(read);
        }
    }),
    ("deflate", |src, limit| drop(deflate::decode_vec(deflate::Wrapper::Raw, src, limit, &mut Vec::new()))),
    ("zlib", |src, limit| drop(deflate::decode_vec(deflate::Wrapper::Zlib, src, limit, &mut Vec::new()))),
    ("gzip", |src, limit| drop(deflate::decode_vec(deflate::Wrapper::Gzip, src, limit, &mut Vec::new()))),
    ("lz4", |src, limit| drop(lz4::decode_vec(src, limit, &mut Vec::new()))),
    ("hdf5 lz4", |src, limit| drop(hdf5_lz4::decode_vec(src, limit, &mut Vec::new()))),
    ("bzip2", |src, limit| drop(bzip2::decode_vec(src, limit, &mut Vec::new()))),
    ("lzf", |src, limit| drop(lzf::decode_vec(src, limit, &mut Vec::new()))),
    ("snappy", |src, limit| drop(snappy::decode(src, &mut vec![0; limit]))),
    ("blosc", |src, limit| drop(blosc::decode_vec(src, limit, &mut Vec::new()))),
    ("blosc range", blosc_range),
    ("blosc2", |src, limit| drop(blosc2::decode_vec(src, limit, &mut Vec::new()))),
    ("shuffle", |src, limit| {
        with_bytes(src, |[size], src| drop(shuffle::decode(size.into(), src, &mut room(src, limit))))
    }),
    ("bitshuffle", |src, limit| {
        with_bytes(src, |[size, block], src| {
            drop(bitshuffle::decode(size.into(), block.into(), src, &mut room(src, limit)));
        });
    }),
    ("bitshuffle lz4", |src, limit| bitshuffle_stream(bitshuffle::Inner::Lz4, src, limit)),
    ("bitshuffle zstd", |src, limit| bitshuffle_stream(bitshuffle::Inner::Zstd { level: 0 }, src, limit)),
    ("nbit", |src, limit| {
        with_client(src, |client, src| {
            let Ok(filter) = nbit::NBit::parse(client) else { return };
            let len = filter.decoded_len().filter(|&len| len <= limit).unwrap_or(limit);
            drop(filter.decode(src, &mut vec![0; len]));
        });
    }),
    ("scale offset", |src, limit| {
        with_client(src, |client, src| {
            let Ok(filter) = scale_offset::ScaleOffset::parse(client) else { return };
            let len = filter.decoded_len().filter(|&len| len <= limit).unwrap_or(limit);
            drop(filter.decode(src, &mut vec![0; len]));
        });
    }),
    ("szip", |src, limit| {
        with_client(src, |client, src| {
            let Ok(filter) = szip::Szip::parse(client) else { return };
            drop(filter.decode_vec(src, limit, &mut Vec::new()));
        });
    }),
    ("numcodecs", |src, limit| {
        use numcodecs::{Delta, FixedScaleOffset, Number};
        let mut out = vec![0; limit];
        drop(Delta { decoded: Number::I16, stored: Number::F32 }.decode(src, &mut out));
        drop(Delta { decoded: Number::F64, stored: Number::U8 }.decode(src, &mut out));
        let codec = FixedScaleOffset { decoded: Number::F32, stored: Number::I16, scale: 0.1, offset: 3.0 };
        drop(codec.decode(src, &mut out));
        drop(numcodecs::unpack_bits(src, &mut out));
    }),
    ("lzma", |src, limit| {
        for container in [lzma::Container::Xz, lzma::Container::Alone] {
            drop(lzma::decode_vec(container, src, limit, &mut Vec::new()));
        }
    }),
    ("pcodec", |src, limit| drop(pcodec::decode(pcodec::Number::F32, src, &mut vec![0; limit & !3]))),
    ("narrow", |src, limit| {
        with_bytes(src, |[kind, big], src| {
            let names =
                ["int2", "int4", "uint2", "uint4", "bfloat16", "float8_e4m3", "float8_e5m2", "float4_e2m1fn"];
            let Some(narrow) = Narrow::parse(names[usize::from(kind) % names.len()]) else { return };
            drop(narrow.decode(big & 1 != 0, src, &mut vec![0; src.len().min(limit) * 4]));
        });
    }),
    ("aes-gcm", |src, limit| {
        with_bytes(src, |tag: [u8; 16], src| {
            drop(aes_gcm::open(&[7; 32], &[1; 12], &tag, src, &mut room(src, limit)))
        });
    }),
    ("zfp", |src, limit| drop(zfp::decode_vec(src, limit, &mut Vec::new()))),
    ("tiledb integers", tiledb_integers),
    ("tiledb strings", tiledb_strings),
];

/// A buffer as long as `src`, for transforms that keep the size, unless that is too long.
fn room(src: &[u8], limit: usize) -> Vec<u8> {
    vec![0; src.len().min(limit)]
}

fn with_bytes<const N: usize>(src: &[u8], work: impl FnOnce([u8; N], &[u8])) {
    if let Some((head, rest)) = src.split_first_chunk::<N>() {
        work(*head, rest);
    }
}

/// The first byte says how many 32-bit parameters follow.
fn with_client(src: &[u8], work: impl FnOnce(&[u32], &[u8])) {
    let Some((&count, rest)) = src.split_first() else { return };
    let Some((words, rest)) = rest.split_at_checked(usize::from(count) * 4) else { return };
    let client: Vec<u32> = words.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    work(&client, rest);
}

fn blosc_range(src: &[u8], limit: usize) {
    with_bytes(src, |[start, len], src| {
        let Ok(chunk) = Chunk::parse(src) else { return };
        if chunk.header().decoded_len <= limit {
            drop(chunk.decode_range(start.into(), &mut vec![0; len.into()]));
        }
    });
}

fn bitshuffle_stream(inner: bitshuffle::Inner, src: &[u8], limit: usize) {
    with_bytes(src, |[size], src| {
        drop(bitshuffle::decode_stream_vec(inner, size.into(), src, limit, &mut Vec::new()))
    });
}

fn tiledb_integers(src: &[u8], limit: usize) {
    with_bytes(src, |[kind, metadata], src| {
        let integer = Integer { size: 1 << (kind % 4), signed: kind & 4 != 0 };
        let mut out = vec![0; limit];
        drop(tiledb::decode_delta(integer.size, src, &mut out));
        drop(tiledb::decode_double_delta(integer.size, src, &mut out));
        drop(tiledb::decode_xor(integer.size, src, &mut room(src, limit)));
        drop(tiledb::decode_runs(integer.size, src, &mut out));
        let (windows, data) = src.split_at(usize::from(metadata).min(src.len()));
        drop(tiledb::decode_bit_width(integer, windows, data, &mut out));
        drop(tiledb::decode_positive_delta(integer.size, windows, data, &mut room(data, limit)));
        drop(tiledb::decode_float_scale(8, 0.5, 1.0, integer.size, src, &mut out));
    });
}

fn tiledb_strings(src: &[u8], limit: usize) {
    with_bytes(src, |[id_bytes, length_bytes, cells, dictionary], src| {
        let (mut offsets, mut out) = (Vec::new(), vec![0; limit]);
        let runs = StringRuns { count_bytes: id_bytes, length_bytes };
        drop(tiledb::decode_string_runs(runs, src, cells.into(), &mut out, &mut offsets));
        let (entries, data) = src.split_at(usize::from(dictionary).min(src.len()));
        let form = StringDictionary { id_bytes, length_bytes };
        drop(tiledb::decode_string_dictionary(form, entries, data, cells.into(), &mut out, &mut Vec::new()));
    });
}
