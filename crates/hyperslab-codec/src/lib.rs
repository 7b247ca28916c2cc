//! Byte transforms as kernels on slices.
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
pub mod hdf5_lz4;
pub mod lz4;
pub mod lzf;
pub mod nbit;
pub mod scale_offset;
pub mod shuffle;
pub mod snappy;
pub mod szip;
#[cfg(test)]
mod testing;
pub mod tiledb;
pub mod zstd;

pub use error::{CodecError, Result};
