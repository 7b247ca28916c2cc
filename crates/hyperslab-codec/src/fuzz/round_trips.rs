//! Round trips through every codec with an encoder. A fuzzer thus starts from valid streams with a few changed bytes.

use crate::blosc::{self, Codec, Filter, Options};
use crate::deflate::Wrapper;
use crate::tiledb::{self, Integer};
use crate::{
    bitshuffle, bzip2, deflate, hdf5_lz4, lz4, lzf, lzma, nbit, pcodec, scale_offset, shuffle, snappy, szip,
    zstd,
};

/// An encoder and its decoder.
#[derive(Debug, Clone, Copy)]
pub struct RoundTrip {
    /// The codec's name.
    pub name: &'static str,
    /// The input length must be a multiple of this.
    pub unit: usize,
    /// Encodes; `None` if the codec refuses the input.
    pub encode: fn(&[u8]) -> Option<Vec<u8>>,
    /// Decodes to this many bytes; `None` if the codec finds damage.
    pub decode: fn(&[u8], usize) -> Option<Vec<u8>>,
}

impl RoundTrip {
    /// Encodes and decodes, then changes bytes of the stream and decodes again.
    ///
    /// Each patch is a two-byte position and a value.
    ///
    /// # Panics
    ///
    /// If the output differs from the input.
    pub fn check(&self, src: &[u8], patches: &[[u8; 3]]) {
        let src = &src[..src.len() / self.unit * self.unit];
        let Some(mut stream) = (self.encode)(src) else { return };
        let decoded = (self.decode)(&stream, src.len());
        assert_eq!(decoded.as_deref(), Some(src), "{}", self.name);
        for [low, high, value] in patches {
            let length = stream.len().max(1);
            if let Some(byte) = stream.get_mut(usize::from(u16::from_le_bytes([*low, *high])) % length) {
                *byte ^= value;
            }
        }
        drop((self.decode)(&stream, src.len()));
    }
}

/// The result of an encoder that appends.
fn appended<E>(encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    encode(&mut out).ok().map(|()| out)
}

/// The result of a function that fills its output.
fn filled<E>(len: usize, work: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Option<Vec<u8>> {
    let mut out = vec![0; len];
    work(&mut out).ok().map(|()| out)
}

fn blosc(codec: Codec, level: i32, element: usize, filter: Option<Filter>, src: &[u8]) -> Option<Vec<u8>> {
    let options = Options::new(codec, level, element).with_filter(filter).with_block_len(256);
    appended(|out| blosc::encode(src, options, out))
}

fn unblosc(src: &[u8], len: usize) -> Option<Vec<u8>> {
    filled(len, |out| blosc::decode(src, out))
}

fn unsigned(size: usize) -> Integer {
    Integer { size, signed: false }
}

/// Parameters of HDF5's n-bit filter: all 16 bits of 2-byte integers.
fn n_bit(elements: usize) -> Option<nbit::NBit> {
    nbit::NBit::parse(&[8, 0, u32::try_from(elements).ok()?, 1, 2, 0, 16, 0]).ok()
}

/// Parameters of HDF5's scale-offset filter: 4-byte integers, with as many bits as needed.
fn scaled(elements: usize) -> Option<scale_offset::ScaleOffset> {
    let mut client = [0; 20];
    client[..6].copy_from_slice(&[2, 0, u32::try_from(elements).ok()?, 0, 4, 1]);
    scale_offset::ScaleOffset::parse(&client).ok()
}

/// Parameters of szip: 8 pixels a block, 16 bits a pixel, nearest neighbours.
fn szipped() -> Option<szip::Szip> {
    szip::Szip::parse(&[32, 8, 16, 64]).ok()
}

/// A stream of metadata and data as one: the length of the first, then both.
fn joined(metadata: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    Some([&u16::try_from(metadata.len()).ok()?.to_le_bytes(), metadata, data].concat())
}

fn parted(src: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = src.split_first_chunk::<2>()?;
    rest.split_at_checked(u16::from_le_bytes(*length).into())
}

/// Every codec with an encoder.
pub const ROUND_TRIPS: &[RoundTrip] = &[
    RoundTrip {
        name: "zstd",
        unit: 1,
        encode: |src| appended(|out| zstd::encode(src, zstd::Options::level(1), out)),
        decode: |src, len| filled(len, |out| zstd::decode(src, out)),
    },
    RoundTrip {
        name: "zstd with a checksum",
        unit: 1,
        encode: |src| appended(|out| zstd::encode(src, zstd::Options::level(3).with_checksum(true), out)),
        decode: |src, len| filled(len, |out| zstd::decode(src, out)),
    },
    RoundTrip {
        name: "deflate",
        unit: 1,
        encode: |src| appended(|out| deflate::encode(Wrapper::Raw, src, 6, out)),
        decode: |src, len| filled(len, |out| deflate::decode(Wrapper::Raw, src, out)),
    },
    RoundTrip {
        name: "zlib",
        unit: 1,
        encode: |src| appended(|out| deflate::encode(Wrapper::Zlib, src, 1, out)),
        decode: |src, len| filled(len, |out| deflate::decode(Wrapper::Zlib, src, out)),
    },
    RoundTrip {
        name: "gzip",
        unit: 1,
        encode: |src| appended(|out| deflate::encode(Wrapper::Gzip, src, 1, out)),
        decode: |src, len| filled(len, |out| deflate::decode(Wrapper::Gzip, src, out)),
    },
    RoundTrip {
        name: "lz4",
        unit: 1,
        encode: |src| appended(|out| lz4::encode(src, out)),
        decode: |src, len| filled(len, |out| lz4::decode(src, out)),
    },
    RoundTrip {
        name: "hdf5 lz4",
        unit: 1,
        encode: |src| appended(|out| hdf5_lz4::encode(src, 64, out)),
        decode: |src, len| filled(len, |out| hdf5_lz4::decode(src, out)),
    },
    RoundTrip {
        name: "bzip2",
        unit: 1,
        encode: |src| appended(|out| bzip2::encode(src, 1, out)),
        decode: |src, len| filled(len, |out| bzip2::decode(src, out)),
    },
    RoundTrip {
        name: "lzf",
        unit: 1,
        encode: |src| {
            let mut out = Vec::new();
            lzf::encode(src, &mut out);
            Some(out)
        },
        decode: |src, len| filled(len, |out| lzf::decode(src, out)),
    },
    RoundTrip {
        name: "snappy",
        unit: 1,
        encode: |src| appended(|out| snappy::encode(src, out)),
        decode: |src, len| filled(len, |out| snappy::decode(src, out)),
    },
    RoundTrip {
        name: "lzma",
        unit: 1,
        encode: |src| appended(|out| lzma::encode(src, 0, out)),
        decode: |src, len| filled(len, |out| lzma::decode(lzma::Container::Xz, src, out)),
    },
    RoundTrip {
        name: "pcodec of floats",
        unit: 4,
        encode: |src| appended(|out| pcodec::encode(pcodec::Number::F32, src, 4, out)),
        decode: |src, len| filled(len, |out| pcodec::decode(pcodec::Number::F32, src, out)),
    },
    RoundTrip {
        name: "pcodec of integers",
        unit: 8,
        encode: |src| appended(|out| pcodec::encode(pcodec::Number::I64, src, 4, out)),
        decode: |src, len| filled(len, |out| pcodec::decode(pcodec::Number::I64, src, out)),
    },
    RoundTrip {
        name: "blosc lz4",
        unit: 1,
        encode: |src| blosc(Codec::Lz4, 5, 4, Some(Filter::Shuffle { size: 4 }), src),
        decode: unblosc,
    },
    RoundTrip {
        name: "blosc zstd",
        unit: 1,
        encode: |src| blosc(Codec::Zstd, 1, 8, Some(Filter::Bitshuffle), src),
        decode: unblosc,
    },
    RoundTrip {
        name: "blosc zlib",
        unit: 1,
        encode: |src| blosc(Codec::Zlib, 1, 1, None, src),
        decode: unblosc,
    },
    RoundTrip {
        name: "shuffle",
        unit: 1,
        encode: |src| filled(src.len(), |out| shuffle::encode(3, src, out)),
        decode: |src, len| filled(len, |out| shuffle::decode(3, src, out)),
    },
    RoundTrip {
        name: "bitshuffle lz4",
        unit: 1,
        encode: |src| appended(|out| bitshuffle::encode_stream(bitshuffle::Inner::Lz4, 2, 16, src, out)),
        decode: |src, len| filled(len, |out| bitshuffle::decode_stream(bitshuffle::Inner::Lz4, 2, src, out)),
    },
    RoundTrip {
        name: "bitshuffle zstd",
        unit: 1,
        encode: |src| {
            appended(|out| bitshuffle::encode_stream(bitshuffle::Inner::Zstd { level: 1 }, 4, 16, src, out))
        },
        decode: |src, len| {
            filled(len, |out| bitshuffle::decode_stream(bitshuffle::Inner::Zstd { level: 1 }, 4, src, out))
        },
    },
    RoundTrip {
        name: "nbit",
        unit: 2,
        encode: |src| appended(|out| n_bit(src.len() / 2).ok_or(())?.encode(src, out).map_err(drop)),
        decode: |src, len| filled(len, |out| n_bit(len / 2).ok_or(())?.decode(src, out).map_err(drop)),
    },
    RoundTrip {
        name: "scale offset",
        unit: 4,
        encode: |src| appended(|out| scaled(src.len() / 4).ok_or(())?.encode(src, out).map_err(drop)),
        decode: |src, len| filled(len, |out| scaled(len / 4).ok_or(())?.decode(src, out).map_err(drop)),
    },
    RoundTrip {
        name: "szip",
        unit: 2,
        encode: |src| appended(|out| szipped().ok_or(())?.encode(src, out).map_err(drop)),
        decode: |src, len| filled(len, |out| szipped().ok_or(())?.decode(src, out).map_err(drop)),
    },
    RoundTrip {
        name: "tiledb delta",
        unit: 4,
        encode: |src| appended(|out| tiledb::encode_delta(4, src, out)),
        decode: |src, len| filled(len, |out| tiledb::decode_delta(4, src, out)),
    },
    RoundTrip {
        name: "tiledb double delta",
        unit: 8,
        encode: |src| appended(|out| tiledb::encode_double_delta(unsigned(8), src, out)),
        decode: |src, len| filled(len, |out| tiledb::decode_double_delta(8, src, out)),
    },
    RoundTrip {
        name: "tiledb xor",
        unit: 2,
        encode: |src| filled(src.len(), |out| tiledb::encode_xor(2, src, out)),
        decode: |src, len| filled(len, |out| tiledb::decode_xor(2, src, out)),
    },
    RoundTrip {
        name: "tiledb runs",
        unit: 2,
        encode: |src| appended(|out| tiledb::encode_runs(2, src, out)),
        decode: |src, len| filled(len, |out| tiledb::decode_runs(2, src, out)),
    },
    RoundTrip {
        name: "tiledb bit width",
        unit: 4,
        encode: |src| {
            let (mut windows, mut data) = (Vec::new(), Vec::new());
            tiledb::encode_bit_width(unsigned(4), 64, src, &mut windows, &mut data).ok()?;
            joined(&windows, &data)
        },
        decode: |src, len| {
            let (windows, data) = parted(src)?;
            filled(len, |out| tiledb::decode_bit_width(unsigned(4), windows, data, out))
        },
    },
];
