//! Byte transforms as kernels on slices.
#![deny(unsafe_code)]

pub mod aes_gcm;
pub mod bitshuffle;
mod bytes;
pub mod bzip2;
pub mod checksum;
pub mod deflate;
mod error;
pub mod hdf5_lz4;
pub mod lz4;
pub mod lzf;
pub mod shuffle;
pub mod snappy;
#[cfg(test)]
mod testing;
pub mod tiledb;
pub mod zstd;

pub use error::{CodecError, Result};
