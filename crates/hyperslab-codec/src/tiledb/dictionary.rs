//! Strings as numbers of entries in a dictionary (filter 14).
//!
//! The dictionary, which is in the metadata, is the length and the bytes of every distinct string in order of first appearance,
//! without a count; the data is the number of an entry for every string. Numbers are big-endian, of 1, 2, 4 or 8 bytes.

use std::collections::HashMap;

use super::rle::{check_width, push_be, take_be, width_for};
use crate::bytes::Reader;
use crate::error::{Result, corrupt, size as size_error, too_long};

const CODEC: &str = "tiledb dictionary";

/// The dictionary and the widths of numbers, in bytes: the metadata of the filter itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dictionary {
    /// Of an entry's number.
    pub id: u8,
    /// Of a string's length.
    pub len: u8,
    /// The entries.
    pub entries: Vec<u8>,
}

impl Dictionary {
    /// Appends the numbers of `strings` to `out`; answers with their dictionary.
    ///
    /// The width of a number is chosen by how many strings there are, not by how many distinct ones, as libtiledb does.
    pub fn encode<'a>(strings: impl Iterator<Item = &'a [u8]> + Clone, out: &mut Vec<u8>) -> Self {
        let (mut count, mut longest) = (0, 0);
        for string in strings.clone() {
            count += 1;
            longest = longest.max(string.len() as u64);
        }
        let (id, len) = (width_for(count), width_for(longest));
        let mut entries = Vec::new();
        let mut numbers: HashMap<&[u8], u64> = HashMap::new();
        for string in strings {
            let next = numbers.len() as u64;
            let number = *numbers.entry(string).or_insert_with(|| {
                push_be(string.len() as u64, len, &mut entries);
                entries.extend_from_slice(string);
                next
            });
            push_be(number, id, out);
        }
        Self { id, len, entries }
    }

    /// Decodes the part `src` into `out` and the offsets of the strings in it, both of which it must fill.
    ///
    /// # Errors
    ///
    /// [`Size`](crate::CodecError::Size) where there are more or fewer strings or bytes,
    /// [`Corrupt`](crate::CodecError::Corrupt) where the dictionary is damaged or has no such entry.
    pub fn decode(&self, src: &[u8], offsets: &mut [u64], out: &mut [u8]) -> Result<()> {
        check_width(CODEC, self.id)?;
        check_width(CODEC, self.len)?;
        let mut reader = Reader::new(CODEC, &self.entries);
        let mut entries = Vec::new();
        while !reader.is_empty() {
            let len = take_be(&mut reader, self.len)?;
            let len = usize::try_from(len).map_err(|_| corrupt(CODEC, format!("a string of {len} bytes")))?;
            entries.push(reader.take(len)?);
        }
        if offsets.len().checked_mul(self.id.into()) != Some(src.len()) {
            return Err(size_error(CODEC, offsets.len(), src.len() / usize::from(self.id)));
        }
        let mut at = 0;
        let mut ids = Reader::new(CODEC, src);
        for offset in offsets {
            let id = take_be(&mut ids, self.id)?;
            let entry = usize::try_from(id).ok().and_then(|id| entries.get(id));
            let entry = entry.ok_or_else(|| corrupt(CODEC, format!("entry {id} of {}", entries.len())))?;
            let room = out.get_mut(at..at + entry.len()).ok_or_else(|| too_long(CODEC, at))?;
            room.copy_from_slice(entry);
            *offset = at as u64;
            at += entry.len();
        }
        if at == out.len() { Ok(()) } else { Err(size_error(CODEC, out.len(), at)) }
    }
}
