//! The byte transforms of all chunked-array formats, as kernels on slices.
//!
//! No I/O and no formats: a kernel is given bytes and, to decode, the expected output size. How transforms
//! are chained, masked and described in a file is handled by the format crates.
//!
//! ```
//! use hyperslab_codec::{shuffle, zstd};
//!
//! // A writer encodes a chunk of 32-bit numbers …
//! let chunk: Vec<u8> = (0..1000u32).flat_map(|i| (i * i).to_le_bytes()).collect();
//! let mut shuffled = vec![0; chunk.len()];
//! shuffle::encode(4, &chunk, &mut shuffled)?;
//! let mut stored = Vec::new();
//! zstd::encode(&shuffled, zstd::Options::level(3), &mut stored)?;
//! assert!(stored.len() < chunk.len() / 2);
//!
//! // … and a reader decodes it, into its own buffers.
//! let mut unpacked = vec![0; chunk.len()];
//! zstd::decode(&stored, &mut unpacked)?;
//! let mut out = vec![0; chunk.len()];
//! shuffle::decode(4, &unpacked, &mut out)?;
//! assert_eq!(out, chunk);
//!
//! // The output must have exactly the requested size.
//! assert!(zstd::decode(&stored, &mut [0; 100]).is_err());
//! # Ok::<(), hyperslab_codec::CodecError>(())
//! ```
//!
//! # Map
//!
//! | module | transform | HDF5 filter | TileDB filter | Zarr codec |
//! |---|---|---|---|---|
//! | [`shuffle`] | bytes of elements into planes | 2 | 9 | `shuffle` |
//! | [`bitshuffle`] | bits of elements into rows; the framed stream | 32008 | 8 | (`blosc`) |
//! | [`deflate`] | zlib, gzip, bare | 1 | 1 | `zlib`, `gzip` |
//! | [`zstd`] | Zstandard | 32015 | 2 | `zstd` |
//! | [`lz4`] | LZ4 block | (32004, 32008) | 3 | `lz4` |
//! | [`hdf5_lz4`] | LZ4 blocks in a stream | 32004 | | |
//! | [`bzip2`] | bzip2 | 307 | 5 | `bz2` |
//! | [`lzma`] | `.xz`, `.lzma`, raw LZMA2 | | | `lzma` |
//! | [`lzf`] | LZF | 32000 | | |
//! | [`snappy`] | raw Snappy | | | (`blosc`) |
//! | [`blosc`] | Blosc chunks | 32001 | | `blosc` |
//! | [`blosc2`] | Blosc2 frames | 32026 | | |
//! | [`nbit`] | significant bits only | 5 | | |
//! | [`scale_offset`] | distances from the least value | 6 | | |
//! | [`szip`] | CCSDS 121 | 4 | | |
//! | [`numcodecs`] | delta, fixed scale and offset, quantize, packbits | | | the same |
//! | [`narrow`] | bfloat16, small floats, small integers | | | (data types) |
//! | [`pcodec`] | Pcodec | | | `pcodec` |
//! | [`webp`] | WebP images | | 18 | |
//! | [`zfp`] | zfp, read only | 32013 | | `zfp`, `zfpy` |
//! | [`tiledb`] | deltas, bit widths, run lengths, dictionaries, … | | 4, 6, 7, 10, 14–16, 19 | |
//! | [`checksum`] | CRC-32, CRC-32C, Adler, Fletcher, lookup3, MD5, SHA-256 | 3, metadata | 12, 13 | `crc32c`, … |
//! | [`aes_gcm`] | AES-256-GCM | | 11 | |
//!
//! # Conventions
//!
//! - `encode` is for writers and `decode` for readers; both are defined side by side.
//! - `decode(src, out)` fills `out` exactly, or fails. Decoding stops at the end of `out` even if the stream continues.
//! - `decode_vec(src, limit, out)` appends to `out`, for sizes that are only bounded, as between two filters. It fails rather
//!   than write more than `limit` bytes, and then leaves `out` unchanged.
//! - Lengths and counts in the stored bytes are unverified *claims*. None of them determines an allocation or a loop before
//!   it is compared with the available bytes or output space.
//! - Contexts of the C libraries (zstd, libdeflate) and scratch buffers are kept per thread.
//!
//! Decoders return an error for invalid bytes; they never panic, and never allocate more than a small multiple
//! of the given size. [`CodecError`] tells whether the bytes are wrong (`Corrupt`, `Size`, `Checksum`), valid but
//! unsupported (`Unsupported`), or the call is wrong (`Invalid`).
#![deny(unsafe_code)]

pub mod aes_gcm;
mod bits;
pub mod bitshuffle;
pub mod blosc;
pub mod blosc2;
mod bytes;
pub mod bzip2;
pub mod checksum;
pub mod deflate;
mod error;
#[doc(hidden)]
pub mod fuzz;
pub mod hdf5_lz4;
pub mod lz4;
pub mod lzf;
pub mod lzma;
pub mod narrow;
pub mod nbit;
pub mod numcodecs;
pub mod pcodec;
pub mod scale_offset;
pub mod shuffle;
pub mod snappy;
pub mod szip;
#[cfg(test)]
mod testing;
pub mod tiledb;
pub mod webp;
pub mod zfp;
pub mod zstd;

pub use error::{CodecError, Result};
