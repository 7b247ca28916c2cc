//! The index of a shard, which locates its inner chunks.

use std::ops::Range;

use bytes::Bytes;
use hyperslab_codec::checksum::{agree, crc32c};
use hyperslab_core::{Place, Result};
use serde_json::{Map, Value, json};

use crate::json::Doc;

/// The offset and length of an inner chunk that was never written.
const MISSING: u64 = u64::MAX;

/// How the index is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexFormat {
    pub(crate) at_start: bool,
    pub(crate) checksum: bool,
    pub(crate) big: bool,
}

impl IndexFormat {
    /// The common format: at the end, little-endian, with a checksum.
    pub(crate) const USUAL: Self = Self { at_start: false, checksum: true, big: false };

    pub(crate) fn parse(configuration: &Map<String, Value>, doc: Doc<'_>) -> Result<Self> {
        let at_start = match configuration.get("index_location").and_then(Value::as_str) {
            None | Some("end") => false,
            Some("start") => true,
            Some(other) => return Err(doc.corrupt(format!("index_location {other:?}"))),
        };
        let mut format = Self { at_start, checksum: false, big: cfg!(target_endian = "big") };
        for codec in doc.list(doc.field(configuration, "index_codecs")?, "index_codecs")? {
            let name = codec.as_str().or_else(|| codec.get("name").and_then(Value::as_str));
            match name.unwrap_or_default() {
                "bytes" | "endian" => {
                    let order =
                        codec.get("configuration").and_then(|of| of.get("endian")).and_then(Value::as_str);
                    match order {
                        Some("little") => format.big = false,
                        Some("big") => format.big = true,
                        _ => {}
                    }
                }
                "crc32c" => format.checksum = true,
                _ => return Err(doc.unsupported(format!("index codec {codec}"))),
            }
        }
        Ok(format)
    }

    /// The index codecs and location, for a `sharding_indexed` configuration.
    pub(crate) fn index_codecs() -> Value {
        json!([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}])
    }

    /// The size in bytes of an index of `chunks` entries.
    pub(crate) fn size(self, chunks: u64) -> Option<u64> {
        chunks.checked_mul(16)?.checked_add(if self.checksum { 4 } else { 0 })
    }

    /// The byte range of an index of `chunks` entries in an object of `length` bytes.
    pub(crate) fn range(self, chunks: u64, length: u64, place: Place<'_>) -> Result<Range<u64>> {
        match self.size(chunks) {
            Some(size) if size <= length => Ok(if self.at_start { 0..size } else { length - size..length }),
            _ => {
                Err(place
                    .corrupt(format!("{length} bytes have no room for the index of {chunks} inner chunks")))
            }
        }
    }
}

/// The entries of a shard, in their stored form.
#[derive(Debug, Clone)]
pub(crate) struct ShardIndex {
    entries: Bytes,
    big: bool,
}

impl ShardIndex {
    /// Parses the bytes at [`IndexFormat::range`] of an object of `length` bytes. Entries that overlap could make a
    /// small shard arbitrarily large, so the sum of their lengths must not exceed the object.
    pub(crate) fn parse(raw: Bytes, format: IndexFormat, length: u64, place: Place<'_>) -> Result<Self> {
        let mut entries = raw;
        if format.checksum {
            let Some((body, stored)) = entries.split_last_chunk::<4>() else {
                return Err(place.corrupt("the index has no checksum"));
            };
            let (computed, stored) = (crc32c(body), u32::from_le_bytes(*stored));
            if !agree(computed, stored) {
                return Err(
                    place.corrupt(format!("shard index checksum {computed:#010x}, stored {stored:#010x}"))
                );
            }
            entries.truncate(entries.len() - 4);
        }
        let index = Self { entries, big: format.big };
        let sizes = index.entries.chunks_exact(16).map(|raw| index.words(raw));
        let stored = sizes
            .filter(|entry| *entry != (MISSING, MISSING))
            .fold(0, |sum: u64, (_, size)| sum.saturating_add(size));
        if stored > length {
            return Err(place.corrupt(format!(
                "the index refers to {stored} bytes, but the shard has {length}: inner chunks overlap"
            )));
        }
        Ok(index)
    }

    /// The offset and size in an entry.
    fn words(&self, raw: &[u8]) -> (u64, u64) {
        let word = |half: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&raw[8 * half..8 * half + 8]);
            if self.big { u64::from_be_bytes(word) } else { u64::from_le_bytes(word) }
        };
        (word(0), word(1))
    }

    /// Encodes entries (offset and length, or `None`) in the usual format.
    pub(crate) fn encode(entries: &[Option<(u64, u64)>]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(entries.len() * 16 + 4);
        for entry in entries {
            let (offset, length) = entry.unwrap_or((MISSING, MISSING));
            bytes.extend(offset.to_le_bytes());
            bytes.extend(length.to_le_bytes());
        }
        bytes.extend(crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// Its size in memory.
    pub(crate) fn size(&self) -> usize {
        self.entries.len()
    }

    /// The number of inner chunks.
    pub(crate) fn len(&self) -> u64 {
        (self.entries.len() / 16) as u64
    }

    /// The range of inner chunk `number` in an object of `length` bytes; `None` if it was never written.
    pub(crate) fn entry(&self, number: u64, length: u64, place: Place<'_>) -> Result<Option<Range<u64>>> {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_mul(16));
        let raw = at.and_then(|at| self.entries.get(at..)?.split_first_chunk::<16>());
        let Some((raw, _)) = raw else {
            return Err(place.corrupt(format!("no index entry {number}")));
        };
        let (offset, size) = self.words(raw);
        if offset == MISSING && size == MISSING {
            return Ok(None);
        }
        match offset.checked_add(size) {
            Some(end) if end <= length => Ok(Some(offset..end)),
            _ => Err(place.corrupt(format!(
                "index entry {number} refers to {size} bytes at {offset:#x}, but the shard has {length}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> = Place::new("x.zarr", "shard index", 0);

    #[test]
    fn entries_round_trip_and_damage_is_detected() -> Result<()> {
        let encoded = ShardIndex::encode(&[Some((0, 5)), None, Some((5, 7))]);
        assert_eq!(IndexFormat::USUAL.range(3, 64, PLACE)?, 12..64);
        let index = ShardIndex::parse(encoded.clone().into(), IndexFormat::USUAL, 64, PLACE)?;
        assert_eq!(index.len(), 3);
        assert_eq!(index.entry(0, 64, PLACE)?, Some(0..5));
        assert_eq!(index.entry(1, 64, PLACE)?, None);
        assert_eq!(index.entry(2, 64, PLACE)?, Some(5..12));
        assert!(index.entry(2, 11, PLACE).unwrap_err().is_corrupt());
        assert!(index.entry(3, 64, PLACE).is_err());
        assert!(IndexFormat::USUAL.range(u64::MAX, 64, PLACE).is_err());
        let shared = ShardIndex::encode(&[Some((0, 40)), Some((0, 40))]);
        assert!(ShardIndex::parse(shared.into(), IndexFormat::USUAL, 64, PLACE).unwrap_err().is_corrupt());
        for at in 0..encoded.len() {
            let mut damaged = encoded.clone();
            damaged[at] ^= 1;
            assert!(
                ShardIndex::parse(damaged.into(), IndexFormat::USUAL, 64, PLACE).unwrap_err().is_corrupt()
            );
        }
        Ok(())
    }
}
