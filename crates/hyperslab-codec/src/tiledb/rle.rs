//! Run lengths (filter 4).
//!
//! Of cells of fixed size: the cell, then how often (u16, big-endian). Of strings: how often, the length, and the string, the
//! numbers big-endian in as few of 1, 2, 4 or 8 bytes as the largest of a kind needs; the two widths are in the metadata.

use crate::bytes::Reader;
use crate::error::{Result, corrupt, invalid, size as size_error};

const CODEC: &str = "tiledb rle";

/// Appends the part `src`, cells of `cell` bytes, encoded, to `out`.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) where `src` is not whole cells.
pub fn encode(cell: usize, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if cell == 0 || !src.len().is_multiple_of(cell) {
        return Err(invalid(CODEC, format!("{} bytes of cells of {cell} bytes", src.len())));
    }
    let mut rest = src;
    while !rest.is_empty() {
        let value = &rest[..cell];
        let run =
            rest.chunks_exact(cell).take(usize::from(u16::MAX)).take_while(|next| *next == value).count();
        out.extend_from_slice(value);
        out.extend((run as u16).to_be_bytes());
        rest = &rest[run * cell..];
    }
    Ok(())
}

/// Decodes the part `src`, cells of `cell` bytes, into `out`, which it must fill.
///
/// # Errors
///
/// [`Size`](crate::CodecError::Size) where the runs are of another length, [`Corrupt`](crate::CodecError::Corrupt) where
/// `src` is cut off.
pub fn decode(cell: usize, src: &[u8], out: &mut [u8]) -> Result<()> {
    if cell == 0 || !src.len().is_multiple_of(cell.saturating_add(2)) {
        return Err(corrupt(CODEC, format!("{} bytes of runs of cells of {cell} bytes", src.len())));
    }
    let mut at = 0;
    for run in src.chunks_exact(cell + 2) {
        let (value, count) = run.split_at(cell);
        let count = usize::from(u16::from_be_bytes([count[0], count[1]]));
        let len = count * cell;
        let room = out.get_mut(at..at + len).ok_or_else(|| crate::error::too_long(CODEC, at))?;
        for to in room.chunks_exact_mut(cell) {
            to.copy_from_slice(value);
        }
        at += len;
    }
    if at == out.len() { Ok(()) } else { Err(size_error(CODEC, out.len(), at)) }
}

/// The widths of the numbers in encoded strings, in bytes: the metadata of the filter itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Widths {
    /// Of how often a string comes.
    pub run: u8,
    /// Of a string's length.
    pub len: u8,
}

/// The bytes that a number up to `most` needs.
pub(super) const fn width_for(most: u64) -> u8 {
    match most {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

/// Appends the low `width` bytes of `value`, big-endian.
pub(super) fn push_be(value: u64, width: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_be_bytes()[8 - usize::from(width)..]);
}

/// A big-endian number of `width` bytes: 1, 2, 4 or 8.
pub(super) fn take_be(reader: &mut Reader<'_>, width: u8) -> Result<u64> {
    Ok(reader.take(width.into())?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

pub(super) fn check_width(codec: &'static str, width: u8) -> Result<()> {
    if matches!(width, 1 | 2 | 4 | 8) {
        Ok(())
    } else {
        Err(corrupt(codec, format!("numbers of {width} bytes")))
    }
}

/// Appends strings, encoded, to `out`; answers with the widths that were needed.
pub fn encode_strings<'a>(strings: impl Iterator<Item = &'a [u8]> + Clone, out: &mut Vec<u8>) -> Widths {
    let runs = || {
        let mut strings = strings.clone().peekable();
        std::iter::from_fn(move || {
            let first = strings.next()?;
            let mut run = 1u64;
            while strings.next_if(|next| *next == first).is_some() {
                run += 1;
            }
            Some((run, first))
        })
    };
    let (mut longest_run, mut longest) = (0, 0);
    for (run, string) in runs() {
        longest_run = longest_run.max(run);
        longest = longest.max(string.len() as u64);
    }
    let widths = Widths { run: width_for(longest_run), len: width_for(longest) };
    for (run, string) in runs() {
        push_be(run, widths.run, out);
        push_be(string.len() as u64, widths.len, out);
        out.extend_from_slice(string);
    }
    widths
}

/// Decodes the part `src` into `out` and the offsets of the strings in it, both of which it must fill.
///
/// # Errors
///
/// [`Size`](crate::CodecError::Size) where there are more or fewer strings or bytes,
/// [`Corrupt`](crate::CodecError::Corrupt) where `src` is cut off.
pub fn decode_strings(widths: Widths, src: &[u8], offsets: &mut [u64], out: &mut [u8]) -> Result<()> {
    check_width(CODEC, widths.run)?;
    check_width(CODEC, widths.len)?;
    let mut reader = Reader::new(CODEC, src);
    let (mut cell, mut at) = (0usize, 0usize);
    while !reader.is_empty() {
        let run = take_be(&mut reader, widths.run)?;
        let len = take_be(&mut reader, widths.len)?;
        let len = usize::try_from(len).map_err(|_| corrupt(CODEC, format!("a string of {len} bytes")))?;
        let string = reader.take(len)?;
        let run = usize::try_from(run).ok().filter(|run| *run <= offsets.len() - cell);
        let run = run.ok_or_else(|| crate::error::too_long(CODEC, offsets.len()))?;
        for offset in &mut offsets[cell..cell + run] {
            let room = out.get_mut(at..at + len).ok_or_else(|| crate::error::too_long(CODEC, at))?;
            room.copy_from_slice(string);
            *offset = at as u64;
            at += len;
        }
        cell += run;
    }
    if cell != offsets.len() {
        return Err(size_error(CODEC, offsets.len(), cell));
    }
    if at == out.len() { Ok(()) } else { Err(size_error(CODEC, out.len(), at)) }
}
