//! Writing little-endian fields: what [`FileFields`](crate::file::FileFields) reads.

use hyperslab_codec::checksum::lookup3;

use crate::file::{Sizes, ones};

/// The bytes of one structure that is being put together.
#[derive(Debug, Clone)]
pub(crate) struct Encoder {
    pub(crate) bytes: Vec<u8>,
    sizes: Sizes,
}

impl Encoder {
    pub(crate) const fn new(sizes: Sizes) -> Self {
        Self { bytes: Vec::new(), sizes }
    }

    /// A structure that starts with four letters and a version.
    pub(crate) fn magic(sizes: Sizes, magic: &[u8; 4], version: u8) -> Self {
        let mut encoder = Self::new(sizes);
        encoder.put(magic).u8(version);
        encoder
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.put(&[value])
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    /// A number of `width` (at most 8) bytes; higher bits are cut off.
    pub(crate) fn uint(&mut self, value: u64, width: usize) -> &mut Self {
        self.put(&value.to_le_bytes()[..width.min(8)])
    }

    /// An address; `None` is "nowhere", all bits one.
    pub(crate) fn address(&mut self, address: Option<u64>) -> &mut Self {
        let width = self.sizes.address;
        self.uint(address.unwrap_or_else(|| ones(width)), width)
    }

    /// A length or count.
    pub(crate) fn length(&mut self, length: u64) -> &mut Self {
        self.uint(length, self.sizes.length)
    }

    /// Zeros up to the next multiple of `unit` bytes, counted from `from`.
    pub(crate) fn pad(&mut self, from: usize, unit: usize) -> &mut Self {
        let length = (self.bytes.len() - from).next_multiple_of(unit);
        self.bytes.resize(from + length, 0);
        self
    }

    /// Zeros.
    pub(crate) fn zeros(&mut self, count: usize) -> &mut Self {
        self.bytes.resize(self.bytes.len() + count, 0);
        self
    }

    /// The bytes, closed with their checksum.
    pub(crate) fn summed(mut self) -> Vec<u8> {
        let sum = lookup3(&self.bytes, 0);
        self.u32(sum);
        self.bytes
    }
}

/// Renews the checksum that closes these bytes.
pub(crate) fn renew_sum(bytes: &mut [u8]) {
    if let Some((body, sum)) = bytes.split_last_chunk_mut::<4>() {
        *sum = lookup3(body, 0).to_le_bytes();
    }
}
