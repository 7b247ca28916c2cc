//! The first 32 bytes of a file.

use hyperslab_core::{Fields, Place, Result};

/// The first bytes of every file.
pub(crate) const MAGIC: &[u8; 4] = b"TETR";

/// The offset of the dataset records: after the superblock and the length of the directory.
pub(crate) const DIRECTORY_START: u64 = 40;

/// The flag of a footer at the end of the file: the lowest bit.
pub(crate) const FLAG_FOOTER: u32 = 1;

/// Rounds up to a multiple of 8; `None` on overflow of `u64`.
pub(crate) const fn align8(n: u64) -> Option<u64> {
    match n.checked_add(7) {
        Some(padded) => Some(padded & !7),
        None => None,
    }
}

/// The superblock: the number of datasets and the location of the chunk index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Superblock {
    /// The number of records in the dataset directory; 0 for an empty file, which has neither directory nor index.
    pub dataset_count: u32,
    /// The lowest bit: a footer ends the file. Others are reserved.
    pub flags: u32,
    /// The offset of the chunk index.
    pub index_offset: u64,
    /// The length of the chunk index.
    pub index_length: u64,
}

impl Superblock {
    /// The number of bytes that [`parse`](Self::parse) needs.
    pub const LEN: usize = 32;

    /// The superblock of an empty file.
    pub(crate) const EMPTY: Self =
        Self { dataset_count: 0, flags: 0, index_offset: Self::LEN as u64, index_length: 0 };

    /// Returns true if the superblock announces a footer.
    #[must_use]
    pub const fn has_footer(&self) -> bool {
        self.flags & FLAG_FOOTER != 0
    }

    /// The end of the chunk index. Cannot overflow, because [`parse`](Self::parse) refuses that.
    #[must_use]
    pub const fn index_end(&self) -> u64 {
        self.index_offset.saturating_add(self.index_length)
    }

    /// Parses the superblock, given the length of the file.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](hyperslab_core::Error::Corrupt) if the magic is not `TETR` or the index reaches past the end;
    /// [`Unsupported`](hyperslab_core::Error::Unsupported) for another layout version.
    pub fn parse(bytes: &[u8], file_length: u64, place: Place<'_>) -> Result<Self> {
        let mut fields = Fields::new(bytes, place);
        fields.magic(MAGIC)?;
        match fields.u32()? {
            1 => {}
            version => return Err(place.unsupported(format!("layout version {version} of the .tet format"))),
        }
        let dataset_count = fields.u32()?;
        let flags = fields.u32()?;
        let at_offset = fields.place();
        let (index_offset, index_length) = (fields.u64()?, fields.u64()?);
        if index_offset.checked_add(index_length).is_none_or(|end| end > file_length) {
            return Err(at_offset.corrupt(format!(
                "chunk index of {index_length} bytes at {index_offset:#x}, the file ends at {file_length:#x}"
            )));
        }
        let block = Self { dataset_count, flags, index_offset, index_length };
        if dataset_count == 0 && (index_offset, index_length) != (Self::LEN as u64, 0) {
            return Err(at_offset.corrupt(format!(
                "chunk index of {index_length} bytes at {index_offset:#x} in an empty file, expected 0 at 0x20"
            )));
        }
        Ok(block)
    }

    /// Encodes the superblock.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4..8].copy_from_slice(&1_u32.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.dataset_count.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.flags.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.index_offset.to_le_bytes());
        bytes[24..].copy_from_slice(&self.index_length.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'static> = Place::new("x.tet", "superblock", 0);

    #[test]
    fn encode_and_parse_are_inverse() -> Result<()> {
        let block = Superblock { dataset_count: 1, flags: 1, index_offset: 104, index_length: 240 };
        assert_eq!(Superblock::parse(&block.encode(), 344, PLACE)?, block);
        assert_eq!(Superblock::parse(&Superblock::EMPTY.encode(), 32, PLACE)?, Superblock::EMPTY);
        Ok(())
    }

    #[test]
    fn invalid_fields_are_refused() {
        let good = Superblock { dataset_count: 1, flags: 0, index_offset: 104, index_length: 240 };
        let refused = |change: &dyn Fn(&mut [u8; 32]), length: u64| {
            let mut bytes = good.encode();
            change(&mut bytes);
            Superblock::parse(&bytes, length, PLACE).unwrap_err()
        };
        assert!(refused(&|bytes| bytes[0] = b'X', 344).is_corrupt());
        assert!(refused(&|bytes| bytes[4] = 2, 344).is_unsupported());
        assert!(refused(&|_| {}, 343).is_corrupt());
        assert!(refused(&|bytes| bytes[16..24].fill(0xff), 344).is_corrupt());
        assert!(refused(&|bytes| bytes[8] = 0, 344).is_corrupt());
        assert!(Superblock::parse(&good.encode()[..31], 344, PLACE).unwrap_err().is_corrupt());
    }
}
