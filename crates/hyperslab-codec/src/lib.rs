//! Byte transforms as kernels on slices.
#![deny(unsafe_code)]

mod bytes;
pub mod checksum;
mod error;
pub mod shuffle;
#[cfg(test)]
mod testing;
pub mod zstd;

pub use error::{CodecError, Result};
