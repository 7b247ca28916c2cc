//! Restores the directory at the end of a truncated zip archive from the headers before its members.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hyperslab_core::{Blob, Fields, Place, Result};

use super::joined::Joined;

const LOCAL_MARK: u32 = 0x0403_4b50;
const ENTRY_MARK: u32 = 0x0201_4b50;
const END_MARK: u32 = 0x0605_4b50;
const LONG_END_MARK: u32 = 0x0606_4b50;
const LONG_LOCATOR_MARK: u32 = 0x0706_4b50;

/// The length of a header before the name.
const LOCAL_HEADER: u64 = 30;
/// The lengths of the record at the end, and of the longest comment after it.
const END_RECORD: u64 = 22;
const LONGEST_COMMENT: u64 = 0xffff;
/// The version that understands records of 64 bits.
const VERSION: u16 = 45;
/// The number of a field of 64-bit sizes.
const LONG_SIZES: u16 = 1;
/// The flag for sizes that follow the member.
const SIZES_FOLLOW: u16 = 8;

/// The whole members of a truncated archive.
#[derive(Debug)]
pub(super) struct RestoredArchive {
    /// The members, with a new directory.
    pub(super) blob: Arc<dyn Blob>,
    /// The number of whole members.
    pub(super) members: usize,
    /// The member that is cut, if its name is known.
    pub(super) cut: Option<String>,
}

/// A member, as its header describes it.
struct Member {
    header: u64,
    /// Flags, method, time, date and checksum.
    properties: Vec<u8>,
    stored: u64,
    size: u64,
    name: Vec<u8>,
}

/// The whole members of an archive whose end is missing; `None` for other files.
pub(super) fn restored(inner: &Arc<dyn Blob>) -> Result<Option<RestoredArchive>> {
    let length = inner.len()?;
    let tail = inner.read_range(length.saturating_sub(END_RECORD + LONGEST_COMMENT)..length)?;
    if tail.windows(4).any(|window| window == END_MARK.to_le_bytes()) {
        return Ok(None);
    }
    let (mut members, mut at, mut cut) = (Vec::new(), 0_u64, None);
    while at.saturating_add(LOCAL_HEADER) <= length {
        let head = inner.read_at(at, LOCAL_HEADER)?;
        let place = Place::new(inner.name(), "zip member", at);
        let Ok(Some((mut member, after))) = header(&head, at, place) else { break };
        let named = at + LOCAL_HEADER;
        let start = named.saturating_add(member.name.len() as u64).saturating_add(after);
        if start > length {
            break;
        }
        let rest = inner.read_range(named..start)?;
        let (name, extra) = rest.split_at(member.name.len());
        member.name.copy_from_slice(name);
        let sizes_follow = read_long_sizes(extra, &mut member, place).is_err()
            || u16::from_le_bytes([member.properties[0], member.properties[1]]) & SIZES_FOLLOW != 0;
        let end = start.checked_add(member.stored).filter(|end| *end <= length && !sizes_follow);
        let Some(end) = end else {
            cut = Some(String::from_utf8_lossy(&member.name).into_owned());
            break;
        };
        members.push(member);
        at = end;
    }
    if members.is_empty() {
        return Ok(None);
    }
    let directory = directory(&members, at);
    let blob = Joined::new(inner, at, directory);
    Ok(Some(RestoredArchive { blob: Arc::new(blob), members: members.len(), cut }))
}

/// Parses a header. Also returns the length of the fields after the name; the name itself is left empty. `None` if this is no
/// header.
fn header(head: &[u8], at: u64, place: Place<'_>) -> Result<Option<(Member, u64)>> {
    let mut fields = Fields::new(head, place);
    if fields.u32()? != LOCAL_MARK {
        return Ok(None);
    }
    fields.skip(2)?;
    let properties = fields.bytes(12)?.to_vec();
    let (stored, size) = (u64::from(fields.u32()?), u64::from(fields.u32()?));
    let (name, extra) = (fields.u16()?, fields.u16()?);
    let member = Member { header: at, properties, stored, size, name: vec![0; name.into()] };
    Ok(Some((member, extra.into())))
}

/// Takes sizes beyond 32 bits from the fields after the name.
fn read_long_sizes(extra: &[u8], member: &mut Member, place: Place<'_>) -> Result<()> {
    let mut fields = Fields::new(extra, place);
    while fields.rest().len() >= 4 {
        let (kind, length) = (fields.u16()?, fields.u16()?);
        let mut long = Fields::new(fields.bytes(length.into())?, place);
        if kind == LONG_SIZES {
            for value in [&mut member.size, &mut member.stored] {
                if *value == u64::from(u32::MAX) {
                    *value = long.u64()?;
                }
            }
        }
    }
    Ok(())
}

/// The directory of these members, which end at `at`, and the records after it. All sizes and offsets have 64 bits.
fn directory(members: &[Member], at: u64) -> Bytes {
    let mut bytes = BytesMut::new();
    let elsewhere = u32::MAX.to_le_bytes();
    for member in members {
        bytes.extend_from_slice(&ENTRY_MARK.to_le_bytes());
        bytes.extend_from_slice(&[VERSION.to_le_bytes(), VERSION.to_le_bytes()].concat());
        bytes.extend_from_slice(&member.properties);
        bytes.extend_from_slice(&[elsewhere, elsewhere].concat());
        bytes.extend_from_slice(&(member.name.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&28_u16.to_le_bytes());
        // No comment, the first disk, no attributes.
        bytes.extend_from_slice(&[0; 10]);
        bytes.extend_from_slice(&elsewhere);
        bytes.extend_from_slice(&member.name);
        bytes.extend_from_slice(&[LONG_SIZES.to_le_bytes(), 24_u16.to_le_bytes()].concat());
        for value in [member.size, member.stored, member.header] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
    }
    let (length, count) = (bytes.len() as u64, members.len() as u64);
    bytes.extend_from_slice(&LONG_END_MARK.to_le_bytes());
    bytes.extend_from_slice(&44_u64.to_le_bytes());
    bytes.extend_from_slice(&[VERSION.to_le_bytes(), VERSION.to_le_bytes()].concat());
    bytes.extend_from_slice(&[0; 8]);
    for value in [count, count, length, at] {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes.extend_from_slice(&LONG_LOCATOR_MARK.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&(at + length).to_le_bytes());
    bytes.extend_from_slice(&1_u32.to_le_bytes());
    bytes.extend_from_slice(&END_MARK.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&[0xff; 12]);
    bytes.extend_from_slice(&[0; 2]);
    bytes.freeze()
}
