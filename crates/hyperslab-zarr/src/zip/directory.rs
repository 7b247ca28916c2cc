//! The directory at the end of a zip archive, and the header before each member.
//!
//! Opening an archive reads only the directory. A member's header, which determines where its bytes start, is read
//! with the member. So a remote archive needs one or two requests, whatever the number of members.

use hyperslab_core::{Blob, Fields, Place, Result};

/// Bytes of the header before a member's name.
pub(super) const LOCAL_HEADER: u64 = 30;
const END_RECORD: u64 = 22;
const LONG_LOCATOR: u64 = 20;
const LONG_END_RECORD: u64 = 56;
/// The end record, the longest comment after it, and the Zip64 records before it.
const TAIL: u64 = END_RECORD + LONG_LOCATOR + LONG_END_RECORD + 0xffff;

const END_MARK: u32 = 0x0605_4b50;
const LONG_LOCATOR_MARK: u32 = 0x0706_4b50;
const LONG_END_MARK: u32 = 0x0606_4b50;
const ENTRY_MARK: u32 = 0x0201_4b50;
const LOCAL_MARK: u32 = 0x0403_4b50;

/// The value of a field that is stored in the Zip64 records.
const ELSEWHERE: u64 = 0xffff_ffff;

/// A directory entry.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) method: u16,
    pub(super) is_encrypted: bool,
    pub(super) checksum: u32,
    /// The member's size in the archive and its original size.
    pub(super) stored: u64,
    pub(super) size: u64,
    /// The offset of its header.
    pub(super) header: u64,
    /// The length of the name and the extra fields in the directory, which may differ from the header's.
    pub(super) extra: u64,
}

/// The members of an archive.
pub(super) fn read(blob: &dyn Blob) -> Result<Vec<Entry>> {
    let length = blob.len()?;
    let tail_start = length.saturating_sub(TAIL);
    let tail = blob.read_range(tail_start..length)?;
    let place = Place::new(blob.name(), "zip directory", tail_start);
    let end = find_end(&tail).ok_or_else(|| place.corrupt("no end record"))?;
    let (count, size, offset) = match parse_end(&tail[end..], place.plus(end as u64))? {
        End::Here(count, size, offset) => (count, size, offset),
        End::Elsewhere => {
            let at = (tail_start + end as u64).checked_sub(LONG_LOCATOR);
            let at = at.ok_or_else(|| place.corrupt("no record of a large archive"))?;
            let locator = blob.read_at(at, LONG_LOCATOR)?;
            let record = parse_locator(&locator, Place::new(blob.name(), "zip64 locator", at))?;
            let bytes = blob.read_at(record, LONG_END_RECORD)?;
            parse_long_end(&bytes, Place::new(blob.name(), "zip64 end record", record))?
        }
    };
    let place = Place::new(blob.name(), "zip directory", offset);
    if offset.checked_add(size).is_none_or(|end| end > length) {
        return Err(place.corrupt(format!("{size} bytes, of {length} in the archive")));
    }
    parse_entries(&blob.read_at(offset, size)?, count, place)
}

/// Finds the start of the end record: the last signature whose comment fits.
fn find_end(tail: &[u8]) -> Option<usize> {
    let last = tail.len().checked_sub(END_RECORD as usize)?;
    (0..=last).rev().find(|at| {
        let record = &tail[*at..];
        let comment = usize::from(u16::from_le_bytes([record[20], record[21]]));
        record.starts_with(&END_MARK.to_le_bytes()) && record.len() >= END_RECORD as usize + comment
    })
}

enum End {
    /// The number of members, the size of the directory, and its offset.
    Here(u64, u64, u64),
    /// These values are in the Zip64 end record.
    Elsewhere,
}

fn parse_end(bytes: &[u8], place: Place<'_>) -> Result<End> {
    let mut fields = Fields::new(bytes, place);
    fields.skip(4)?;
    let (disk, first, _, count) = (fields.u16()?, fields.u16()?, fields.u16()?, fields.u16()?);
    let (size, offset) = (u64::from(fields.u32()?), u64::from(fields.u32()?));
    if count == u16::MAX || size == ELSEWHERE || offset == ELSEWHERE {
        return Ok(End::Elsewhere);
    }
    if disk != 0 || first != 0 {
        return Err(place.unsupported("a zip archive in several parts"));
    }
    Ok(End::Here(count.into(), size, offset))
}

fn parse_locator(bytes: &[u8], place: Place<'_>) -> Result<u64> {
    let mut fields = Fields::new(bytes, place);
    if fields.u32()? != LONG_LOCATOR_MARK {
        return Err(place.corrupt("no locator of a large archive"));
    }
    fields.skip(4)?;
    fields.u64()
}

fn parse_long_end(bytes: &[u8], place: Place<'_>) -> Result<(u64, u64, u64)> {
    let mut fields = Fields::new(bytes, place);
    if fields.u32()? != LONG_END_MARK {
        return Err(place.corrupt("no end record of a large archive"));
    }
    fields.skip(28)?;
    Ok((fields.u64()?, fields.u64()?, fields.u64()?))
}

fn parse_entries(bytes: &[u8], count: u64, place: Place<'_>) -> Result<Vec<Entry>> {
    let mut fields = Fields::new(bytes, place);
    let mut entries = Vec::new();
    while !fields.rest().is_empty() {
        entries.push(parse_entry(&mut fields, place)?);
    }
    if entries.len() as u64 != count {
        return Err(place.corrupt(format!("{} members, expected {count}", entries.len())));
    }
    Ok(entries)
}

fn parse_entry(fields: &mut Fields<'_>, place: Place<'_>) -> Result<Entry> {
    if fields.u32()? != ENTRY_MARK {
        return Err(place.corrupt("no directory entry"));
    }
    fields.skip(4)?;
    let (flags, method) = (fields.u16()?, fields.u16()?);
    fields.skip(4)?;
    let checksum = fields.u32()?;
    let (mut stored, mut size) = (u64::from(fields.u32()?), u64::from(fields.u32()?));
    let (name, extra, comment) = (fields.u16()?, fields.u16()?, fields.u16()?);
    fields.skip(8)?;
    let mut header = u64::from(fields.u32()?);
    let name_bytes = fields.bytes(name.into())?;
    let own = std::str::from_utf8(name_bytes)
        .map_err(|_| place.corrupt("the name of a member is not UTF-8"))?
        .to_owned();
    let mut more = Fields::new(fields.bytes(extra.into())?, place);
    while more.rest().len() >= 4 {
        let (kind, length) = (more.u16()?, more.u16()?);
        let mut long = Fields::new(more.bytes(length.into())?, place);
        if kind == 1 {
            for value in [&mut size, &mut stored, &mut header] {
                if *value == ELSEWHERE {
                    *value = long.u64()?;
                }
            }
        }
    }
    fields.skip(comment.into())?;
    let extra = u64::from(name) + u64::from(extra);
    Ok(Entry { name: own, method, is_encrypted: flags & 1 != 0, checksum, stored, size, header, extra })
}

/// The offset of a member's bytes, after its header.
pub(super) fn start_of(header: &[u8], place: Place<'_>) -> Result<u64> {
    let mut fields = Fields::new(header, place);
    if fields.u32()? != LOCAL_MARK {
        return Err(place.corrupt("no header of a member"));
    }
    fields.skip(22)?;
    let after = LOCAL_HEADER + u64::from(fields.u16()?) + u64::from(fields.u16()?);
    place.offset.checked_add(after).ok_or_else(|| place.corrupt("a member past the end"))
}
