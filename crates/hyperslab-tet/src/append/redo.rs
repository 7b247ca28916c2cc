//! The redo file: everything that an append will write to the target, recorded in advance.
//!
//! ```text
//! tail: new and moved payloads, then the new footer   → to be written at `tail_start` of the target
//! head: new superblock, directory and index           → to be written at 0
//! old head: the bytes of the target where the head will be written
//! trailer: 96 bytes, its own checksum last
//! ```
//!
//! It becomes valid when it is renamed to its final name, after it has reached the disk: that instant is the commit. Applying it
//! is idempotent.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use hyperslab_codec::checksum::crc32c;
use hyperslab_core::{Blob, Fields, Place, Result};

use super::{ALIGNMENT, FREED};
use crate::disk::Disk;

const MAGIC: &[u8; 8] = b"HSREDO\x01\0";

/// Bytes of the target before the tail that must not have changed.
const GUARD: u64 = 4096;

/// The end of a redo file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Redo {
    /// The length of the target before the append.
    pub(super) old_length: u64,
    /// Where the tail goes.
    pub(super) tail_start: u64,
    pub(super) tail_length: u64,
    /// The length of the footer at the end of the tail.
    pub(super) footer_length: u64,
    pub(super) head_length: u64,
    guard_start: u64,
    guard_sum: u32,
    head_sum: u32,
    old_sum: u32,
}

/// The redo file of a target: beside it, with a recognisable name.
pub(super) fn redo_path(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".redo");
    target.with_file_name(name)
}

impl Redo {
    const LEN: usize = 96;

    /// Writes head, checksums and trailer after the tail, which `redo` already holds.
    pub(super) fn write(
        redo: &Disk,
        target: &Disk,
        (tail_start, tail_length, footer_length): (u64, u64, u64),
        head: &[u8],
    ) -> Result<Self> {
        let old_length = target.length()?;
        let mut old_head = vec![0; head.len()];
        let there = usize::try_from(old_length).unwrap_or(head.len()).min(head.len());
        target.read_at(&mut old_head[..there], 0)?;
        // Only bytes that the append does not change.
        let guard_end = old_length.min(tail_start);
        let guard_start = guard_end.saturating_sub(GUARD).max(head.len() as u64).min(guard_end);
        let mut guard = vec![0; (guard_end - guard_start) as usize];
        target.read_at(&mut guard, guard_start)?;
        let own = Self {
            old_length,
            tail_start,
            tail_length,
            footer_length,
            head_length: head.len() as u64,
            guard_start,
            guard_sum: crc32c(&guard),
            head_sum: crc32c(head),
            old_sum: crc32c(&old_head),
        };
        redo.write_at(head, tail_length)?;
        redo.write_at(&old_head, tail_length + own.head_length)?;
        redo.write_at(&own.encode(), tail_length + 2 * own.head_length)?;
        Ok(own)
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let lengths = [self.old_length, self.tail_start, self.tail_length, self.footer_length];
        for field in lengths.into_iter().chain([self.head_length, self.guard_start]) {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        for sum in [self.guard_sum, self.head_sum, self.old_sum] {
            bytes.extend_from_slice(&sum.to_le_bytes());
        }
        bytes.resize(Self::LEN - 4, 0);
        bytes.extend_from_slice(&crc32c(&bytes).to_le_bytes());
        bytes
    }

    fn parse(bytes: &[u8], place: Place<'_>) -> Result<Self> {
        let mut fields = Fields::new(bytes, place);
        fields.magic(MAGIC)?;
        let own = Self {
            old_length: fields.u64()?,
            tail_start: fields.u64()?,
            tail_length: fields.u64()?,
            footer_length: fields.u64()?,
            head_length: fields.u64()?,
            guard_start: fields.u64()?,
            guard_sum: fields.u32()?,
            head_sum: fields.u32()?,
            old_sum: fields.u32()?,
        };
        if own.encode() != bytes {
            return Err(place.corrupt("checksum"));
        }
        Ok(own)
    }

    /// Reads the trailer of a redo file, the new and the old head, and checks that they belong together.
    pub(super) fn read(redo: &dyn Blob) -> Result<(Self, Bytes, Bytes)> {
        let length = redo.len()?;
        let at = length.saturating_sub(Self::LEN as u64);
        let place = Place::new(redo.name(), "redo trailer", at);
        let own = Self::parse(&redo.read_range(at..length)?, place)?;
        let parts = [own.tail_length, own.head_length, own.head_length, Self::LEN as u64];
        let sum = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(*part));
        let reach = own.tail_start.checked_add(own.tail_length);
        if sum != Some(length)
            || reach.is_none()
            || reach.is_some_and(|reach| reach < own.old_length)
            || own.footer_length > own.tail_length
            || own.head_length > own.tail_start
            || own.gap() > FREED.max(own.head_length / 2) + ALIGNMENT
        {
            return Err(place.corrupt("the lengths do not match"));
        }
        let head = redo.read_at(own.tail_length, own.head_length)?;
        let old_head = redo.read_at(own.tail_length + own.head_length, own.head_length)?;
        if (crc32c(&head), crc32c(&old_head)) != (own.head_sum, own.old_sum) {
            return Err(place.corrupt("the checksum of the head is wrong"));
        }
        Ok((own, head, old_head))
    }

    /// Bytes between the end of the old file, or of the new head, and the tail. Nothing is written there.
    fn gap(&self) -> u64 {
        self.tail_start.saturating_sub(self.old_length.max(self.head_length))
    }

    /// The end of the bytes that the append does not change.
    pub(super) fn kept_end(&self) -> u64 {
        self.old_length.min(self.tail_start)
    }

    /// Returns true if the append was made for this file, wherever it was interrupted.
    pub(super) fn belongs_to(&self, target: &dyn Blob, head: &[u8], old_head: &[u8]) -> Result<bool> {
        let length = target.len()?;
        if length < self.old_length || length > self.tail_start + self.tail_length {
            return Ok(false);
        }
        if sum_of(target, self.guard_start, self.kept_end())? != self.guard_sum {
            return Ok(false);
        }
        // Each byte of the head is either old or new.
        let found = first_bytes(target, head.len())?;
        Ok(found.iter().zip(old_head).zip(head).all(|((found, old), new)| found == old || found == new))
    }
}

/// The checksum of bytes of a file.
fn sum_of(blob: &dyn Blob, start: u64, end: u64) -> Result<u32> {
    Ok(crc32c(&blob.read_range(start.min(end)..end)?))
}

/// The first `count` bytes of a file. Bytes past its end count as zeros.
fn first_bytes(blob: &dyn Blob, count: usize) -> Result<Vec<u8>> {
    let mut bytes = blob.read_range(0..blob.len()?.min(count as u64))?.to_vec();
    bytes.resize(count, 0);
    Ok(bytes)
}
