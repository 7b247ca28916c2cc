//! Metadata that several filters share: lists of lengths of parts.

use crate::bytes::Reader;
use crate::error::{Result, invalid};

const CODEC: &str = "tiledb parts";

/// `u32 count, u32 length × count`: own metadata of byteshuffle, bitshuffle, xor, float scale and webp.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parts {
    /// The parts' lengths in bytes.
    pub lengths: Vec<u32>,
}

impl Parts {
    /// Parses the list at the front of `metadata`; answers with what follows it.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::CodecError::Corrupt) where it is cut off.
    pub fn parse(metadata: &[u8]) -> Result<(Self, &[u8])> {
        let mut reader = Reader::new(CODEC, metadata);
        let count = reader.u32_le()? as usize;
        // Taken before it is kept, so that a claim alone allocates nothing.
        let words = reader.take(count.saturating_mul(4))?;
        let lengths = words.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        Ok((Self { lengths }, reader.rest()))
    }

    /// Appends the list to `out`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::CodecError::Invalid) where there are more parts than 32 bits can count.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        let count = u32::try_from(self.lengths.len()).map_err(|_| invalid(CODEC, "too many parts"))?;
        out.extend(count.to_le_bytes());
        out.extend(self.lengths.iter().flat_map(|length| length.to_le_bytes()));
        Ok(())
    }
}

/// Own metadata of a compressor: how long every part was and is, those of metadata first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompressedParts {
    /// Original and stored length of every part of metadata.
    pub metadata: Vec<(u32, u32)>,
    /// Original and stored length of every part of data.
    pub data: Vec<(u32, u32)>,
}

impl CompressedParts {
    /// Parses the lists at the front of `metadata`; answers with what follows them.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::CodecError::Corrupt) where they are cut off.
    pub fn parse(metadata: &[u8]) -> Result<(Self, &[u8])> {
        let mut reader = Reader::new(CODEC, metadata);
        let (first, second) = (reader.u32_le()? as usize, reader.u32_le()? as usize);
        let mut list = |count: usize| -> Result<Vec<(u32, u32)>> {
            let pairs = reader.take(count.saturating_mul(8))?.as_chunks::<8>().0;
            let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            Ok(pairs.iter().map(|pair| (word(&pair[..4]), word(&pair[4..]))).collect())
        };
        let parts = Self { metadata: list(first)?, data: list(second)? };
        Ok((parts, reader.rest()))
    }

    /// Appends the lists to `out`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::CodecError::Invalid) where there are more parts than 32 bits can count.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        for list in [&self.metadata, &self.data] {
            let count = u32::try_from(list.len()).map_err(|_| invalid(CODEC, "too many parts"))?;
            out.extend(count.to_le_bytes());
        }
        for (original, stored) in self.metadata.iter().chain(&self.data) {
            out.extend(original.to_le_bytes());
            out.extend(stored.to_le_bytes());
        }
        Ok(())
    }
}
