//! The stored form of the chunk index: a header and fixed-size rows.

use hyperslab_core::{Extents, Fields, Place, Result};

use crate::dataset::MAX_RANK;

const MAGIC: &[u8; 4] = b"TIDX";

/// The header of the chunk index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexHeader {
    /// The number of rows.
    pub rows: u64,
    /// The recommended memory budget, in hundredths of a percent of the machine's memory; 0 for the default. It is advisory:
    /// reads never fail because of it.
    pub memory_budget_bps: u16,
    /// The recommended memory budget in bytes; 0 if not set.
    pub memory_budget_bytes: u32,
}

impl IndexHeader {
    /// The number of bytes that [`parse`](Self::parse) needs.
    pub const LEN: usize = 32;

    /// Parses the header, given the length of the whole index.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](hyperslab_core::Error::Corrupt) if the magic is not `TIDX` or the rows do not fill the index;
    /// [`Unsupported`](hyperslab_core::Error::Unsupported) for another version.
    pub fn parse(bytes: &[u8], index_length: u64, place: Place<'_>) -> Result<Self> {
        let mut fields = Fields::new(bytes, place);
        fields.magic(MAGIC)?;
        match fields.u32()? {
            1 => {}
            version => return Err(place.unsupported(format!("chunk index version {version}"))),
        }
        let rows = fields.u64()?;
        let memory_budget_bps = fields.u16()?;
        fields.skip(2)?;
        let memory_budget_bytes = fields.u32()?;
        if Self::index_length(rows) != Some(index_length) {
            return Err(place.corrupt(format!("{rows} rows in an index of {index_length} bytes")));
        }
        Ok(Self { rows, memory_budget_bps, memory_budget_bytes })
    }

    /// The length of an index with this many rows; `None` on overflow of `u64`.
    #[must_use]
    pub const fn index_length(rows: u64) -> Option<u64> {
        match rows.checked_mul(Row::LEN as u64) {
            Some(bytes) => bytes.checked_add(Self::LEN as u64),
            None => None,
        }
    }

    /// Encodes the header.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4..8].copy_from_slice(&1_u32.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.rows.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.memory_budget_bps.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.memory_budget_bytes.to_le_bytes());
        bytes
    }
}

/// The encoding of a chunk's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Unencoded.
    Raw,
    /// One or more zstd frames.
    Zstd,
}

impl Codec {
    /// The codec with this number; `None` if the format has no such codec.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Raw),
            1 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The codec's number in rows.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Raw => 0,
            Self::Zstd => 1,
        }
    }

    /// The codec's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Zstd => "zstd",
        }
    }
}

/// One row of the chunk index as stored, unchecked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The dataset's position in the directory.
    pub dataset: u64,
    /// The chunk's coordinate; slots past the rank should be 0.
    pub coord: [u64; MAX_RANK],
    /// The offset of its bytes in the file.
    pub offset: u64,
    /// The number of bytes after decoding.
    pub raw_length: u64,
    /// The number of bytes in the file.
    pub stored_length: u64,
    /// The number of the codec.
    pub codec: u32,
    /// Should be 0.
    pub reserved: u32,
}

/// A row's bytes.
pub(crate) type RowBytes = [u8; Row::LEN];

/// The `u64` at `offset` of a row.
pub(crate) fn word(row: &RowBytes, offset: usize) -> u64 {
    row.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

impl Row {
    /// The size of a row in bytes.
    pub const LEN: usize = 104;
    /// The offsets of fields in a row.
    pub(crate) const COORD: usize = 8;
    pub(crate) const STORED: usize = 88;
    pub(crate) const CODEC: usize = 96;

    /// The end of the stored bytes; `None` on overflow of `u64`.
    #[must_use]
    pub const fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.stored_length)
    }

    /// The chunk's coordinate in a grid of this rank.
    #[must_use]
    pub fn coord(&self, rank: usize) -> Extents {
        self.coord[..rank.min(MAX_RANK)].into()
    }

    /// Parses a row.
    #[must_use]
    pub fn parse(bytes: &[u8; Self::LEN]) -> Self {
        let high = word(bytes, Self::CODEC);
        Self {
            dataset: word(bytes, 0),
            coord: std::array::from_fn(|axis| word(bytes, Self::COORD + 8 * axis)),
            offset: word(bytes, 72),
            raw_length: word(bytes, 80),
            stored_length: word(bytes, Self::STORED),
            codec: high as u32,
            reserved: (high >> 32) as u32,
        }
    }

    /// Encodes the row.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let words = [self.dataset].into_iter().chain(self.coord);
        let words = words.chain([self.offset, self.raw_length, self.stored_length]);
        for (field, word) in bytes.chunks_exact_mut(8).zip(words) {
            field.copy_from_slice(&word.to_le_bytes());
        }
        bytes[96..100].copy_from_slice(&self.codec.to_le_bytes());
        bytes[100..].copy_from_slice(&self.reserved.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn header_round_trips_and_invalid_ones_are_refused() -> Result<()> {
        let place = Place::new("x.tet", "chunk index", 104);
        let header = IndexHeader { rows: 2, memory_budget_bps: 2500, memory_budget_bytes: 7 };
        assert_eq!(IndexHeader::parse(&header.encode(), 240, place)?, header);
        for length in [0, 32, 239, 241, u64::MAX] {
            assert!(IndexHeader::parse(&header.encode(), length, place).unwrap_err().is_corrupt());
        }
        let many = IndexHeader { rows: u64::MAX / 104 + 1, ..header };
        assert!(IndexHeader::parse(&many.encode(), 8, place).unwrap_err().is_corrupt());
        Ok(())
    }

    proptest! {
        #[test]
        fn rows_round_trip(bytes in prop::collection::vec(any::<u8>(), Row::LEN)) {
            let bytes: [u8; Row::LEN] = bytes.try_into().unwrap();
            prop_assert_eq!(Row::parse(&bytes).encode(), bytes);
        }
    }
}
