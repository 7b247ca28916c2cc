//! Runs and dictionaries of strings. Decoding also restores the strings' offsets.

use std::collections::HashMap;

use crate::error::{Result, corrupt, invalid, size as size_error};

const RUNS: &str = "string rle";
const DICTIONARY: &str = "string dictionary";

/// The widths of the numbers inside runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringRuns {
    /// Of a run's count.
    pub count_bytes: u8,
    /// Of a string's length.
    pub length_bytes: u8,
}

/// The widths of the ids and of the numbers inside a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringDictionary {
    /// Of an id.
    pub id_bytes: u8,
    /// Of a string's length.
    pub length_bytes: u8,
}

fn check_width(codec: &'static str, bytes: u8) -> Result<usize> {
    match bytes {
        1 | 2 | 4 | 8 => Ok(usize::from(bytes)),
        other => Err(corrupt(codec, format!("numbers of {other} bytes"))),
    }
}

/// The next big-endian number of `width` bytes.
fn number(codec: &'static str, src: &mut &[u8], width: usize) -> Result<usize> {
    let Some((head, tail)) = src.split_at_checked(width) else {
        return Err(corrupt(codec, "ends inside a number"));
    };
    *src = tail;
    let wide = head.iter().fold(0_u64, |wide, byte| wide << 8 | u64::from(*byte));
    usize::try_from(wide).map_err(|_| corrupt(codec, "a length past memory"))
}

fn put(value: usize, width: u8, out: &mut Vec<u8>) {
    out.extend(&(value as u64).to_be_bytes()[8 - usize::from(width)..]);
}

/// The smallest width of 1, 2, 4 or 8 bytes for a number.
const fn width_of(largest: usize) -> u8 {
    match largest as u64 {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

/// Decodes runs into `out`, which they must fill, and appends each string's offset to `offsets`, `cells` in all.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) or [`Size`](crate::CodecError::Size) for invalid bytes.
pub fn decode_string_runs(
    form: StringRuns,
    mut src: &[u8],
    cells: usize,
    out: &mut [u8],
    offsets: &mut Vec<u64>,
) -> Result<()> {
    let (count_width, length_width) =
        (check_width(RUNS, form.count_bytes)?, check_width(RUNS, form.length_bytes)?);
    let (mut at, mut seen) = (0, 0_usize);
    while !src.is_empty() {
        let count = number(RUNS, &mut src, count_width)?;
        let length = number(RUNS, &mut src, length_width)?;
        let Some((string, rest)) = src.split_at_checked(length) else {
            return Err(corrupt(RUNS, format!("a string of {length} bytes, {} there", src.len())));
        };
        src = rest;
        seen = seen
            .checked_add(count)
            .filter(|seen| *seen <= cells)
            .ok_or_else(|| size_error(RUNS, cells, count))?;
        for _ in 0..count {
            let end = at + length;
            let Some(target) = out.get_mut(at..end) else { return Err(size_error(RUNS, out.len(), end)) };
            target.copy_from_slice(string);
            offsets.push(at as u64);
            at = end;
        }
    }
    if at != out.len() || seen != cells {
        return Err(size_error(RUNS, out.len(), at));
    }
    Ok(())
}

/// Appends the runs of these strings to `out`.
pub fn encode_string_runs<'a>(
    strings: impl Iterator<Item = &'a [u8]> + Clone,
    out: &mut Vec<u8>,
) -> StringRuns {
    let (mut longest, mut longest_run, mut run, mut last) = (0, 0, 0_usize, None);
    for string in strings.clone() {
        run = if last == Some(string) { run + 1 } else { 1 };
        (longest, longest_run, last) = (longest.max(string.len()), longest_run.max(run), Some(string));
    }
    let form = StringRuns { count_bytes: width_of(longest_run), length_bytes: width_of(longest) };
    let mut strings = strings.peekable();
    while let Some(string) = strings.next() {
        let mut count = 1;
        while strings.next_if_eq(&string).is_some() {
            count += 1;
        }
        put(count, form.count_bytes, out);
        put(string.len(), form.length_bytes, out);
        out.extend_from_slice(string);
    }
    form
}

/// Decodes ids through a dictionary into `out`, which they must fill, and appends each string's offset to `offsets`,
/// `cells` in all.
///
/// # Errors
///
/// [`Corrupt`](crate::CodecError::Corrupt) or [`Size`](crate::CodecError::Size) for invalid bytes.
pub fn decode_string_dictionary(
    form: StringDictionary,
    mut dictionary: &[u8],
    src: &[u8],
    cells: usize,
    out: &mut [u8],
    offsets: &mut Vec<u64>,
) -> Result<()> {
    let id_width = check_width(DICTIONARY, form.id_bytes)?;
    let length_width = check_width(DICTIONARY, form.length_bytes)?;
    let mut strings = Vec::new();
    while !dictionary.is_empty() {
        let length = number(DICTIONARY, &mut dictionary, length_width)?;
        let Some((string, rest)) = dictionary.split_at_checked(length) else {
            return Err(corrupt(
                DICTIONARY,
                format!("a string of {length} bytes, {} there", dictionary.len()),
            ));
        };
        dictionary = rest;
        strings.push(string);
    }
    if cells.checked_mul(id_width) != Some(src.len()) {
        return Err(size_error(DICTIONARY, cells, src.len() / id_width));
    }
    let mut at = 0;
    for mut id in src.chunks_exact(id_width) {
        let id = number(DICTIONARY, &mut id, id_width)?;
        let Some(string) = strings.get(id) else {
            return Err(corrupt(DICTIONARY, format!("id {id}, the dictionary has {}", strings.len())));
        };
        let end = at + string.len();
        let Some(target) = out.get_mut(at..end) else { return Err(size_error(DICTIONARY, out.len(), end)) };
        target.copy_from_slice(string);
        offsets.push(at as u64);
        at = end;
    }
    if at != out.len() {
        return Err(size_error(DICTIONARY, out.len(), at));
    }
    Ok(())
}

/// Appends the dictionary of these strings to `dictionary` and their ids to `out`. Like libtiledb, chooses the width of an id
/// by the number of strings, not of distinct ones.
///
/// # Errors
///
/// [`Invalid`](crate::CodecError::Invalid) if the number of strings exceeds `usize`.
pub fn encode_string_dictionary<'a>(
    strings: impl Iterator<Item = &'a [u8]> + Clone,
    dictionary: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<StringDictionary> {
    let longest = strings.clone().map(<[u8]>::len).max().unwrap_or(0);
    let form =
        StringDictionary { id_bytes: width_of(strings.clone().count()), length_bytes: width_of(longest) };
    let mut ids: HashMap<&[u8], usize> = HashMap::new();
    for string in strings {
        let next = ids.len();
        let id = *ids.entry(string).or_insert(next);
        if id == next {
            put(string.len(), form.length_bytes, dictionary);
            dictionary.extend_from_slice(string);
        }
        if width_of(id) > form.id_bytes {
            return Err(invalid(DICTIONARY, "more strings than were counted"));
        }
        put(id, form.id_bytes, out);
    }
    Ok(form)
}
