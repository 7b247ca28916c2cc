//! Files that libhdf5's drivers split into several. The family driver and those with separate files for metadata and raw data are
//! supported; other drivers are refused by name.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hyperslab_core::{Blob, Error, Fields, Place, Result};

use crate::file::{File, FileFields};
use crate::header::{Header, kind};
use hyperslab_core::Externals;

const STRUCTURE: &str = "driver information";

/// The maximum number of members of a family. libhdf5's default member size is 100 MiB.
const MAX_MEMBERS: u64 = 1 << 16;

/// Joins the files of a split file; `None` if the first file holds everything.
pub(crate) fn members(file: &File, externals: &dyn Externals) -> Result<Option<Whole>> {
    match driver(file, externals)? {
        None => Ok(None),
        Some((name, information)) if name == *b"NCSAfami" => {
            let size = Fields::new(&information, file.place(STRUCTURE, 0)).u64()?;
            family(file, externals, size)
        }
        Some((name, information)) if name == *b"NCSAmult" => multi(file, externals, &information).map(Some),
        Some((name, _)) if name.starts_with(b"Subfil") => Err(file.unsupported(
            "the subfiling driver, whose data is in files named .subfile_; join them with h5fuse of libhdf5",
        )),
        Some((name, _)) => {
            Err(file.unsupported(format!("the file driver {:?}", String::from_utf8_lossy(&name))))
        }
    }
}

/// The driver's name and its information, from a block of its own or a message of the superblock extension.
fn driver(file: &File, externals: &dyn Externals) -> Result<Option<([u8; 8], Bytes)>> {
    if let Some(address) = file.superblock.driver {
        let head = file.read(STRUCTURE, address, 16)?;
        let mut fields = Fields::new(&head, file.place(STRUCTURE, address));
        fields.version(&[0])?;
        fields.skip(3)?;
        let (length, name) = (fields.u32()?, fields.array::<8>()?);
        return Ok(Some((name, file.read(STRUCTURE, address.saturating_add(16), u64::from(length))?)));
    }
    let Some(extension) = file.superblock.extension else { return Ok(None) };
    let apart = extension_apart(file, externals, extension)?;
    let file = apart.as_ref().unwrap_or(file);
    // If the extension cannot be read, continue without its messages.
    let Ok(header) = Header::read(file, extension) else { return Ok(None) };
    let Some(message) = header.find(file, kind::DRIVER)? else { return Ok(None) };
    let mut fields = message.fields(file, "driver information message");
    fields.version(&[0])?;
    let name = fields.array::<8>()?;
    let length = usize::from(fields.u16()?);
    Ok(Some((name, Bytes::copy_from_slice(fields.bytes(length)?))))
}

/// The file joined with the one that has its superblock extension, if that is another file. The names of the files are in the
/// extension, so this assumes the names and addresses that the multi driver uses by default.
fn extension_apart(file: &File, externals: &dyn Externals, extension: u64) -> Result<Option<File>> {
    /// The ends of the names, in the order of the addresses.
    const LETTERS: [char; 6] = ['s', 'b', 'r', 'g', 'l', 'o'];
    const APART: u64 = (u64::MAX - 1) / LETTERS.len() as u64;
    let own = Path::new(&*file.name).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = own.strip_suffix("-s.h5");
    let number = usize::try_from(extension / APART).ok().filter(|number| *number > 0);
    let (Some(stem), Some((number, letter))) = (stem, number.and_then(|at| Some((at, LETTERS.get(at)?))))
    else {
        return Ok(None);
    };
    let name = format!("{stem}-{letter}.h5");
    let Some(member) = externals.open(&name)? else {
        return Err(missing(file, &name));
    };
    let parts = vec![
        (0, file.length, Arc::clone(&file.blob)),
        (number as u64 * APART, member.blob.len()?, member.blob),
    ];
    let whole = Whole::new(Members { name: Arc::clone(&file.name), parts });
    let superblock = file.superblock.clone();
    File::alone(whole.blob, superblock, Arc::clone(&file.externals), file.distance).map(Some)
}

fn missing(file: &File, name: &str) -> Error {
    Error::not_found(Arc::clone(&file.name), format!("the file {name} of the multi driver"))
}

/// Several files, each mapped to a range of addresses.
#[derive(Debug)]
struct Members {
    name: Arc<str>,
    /// The first address, length and bytes of each file, sorted by address.
    parts: Vec<(u64, u64, Arc<dyn Blob>)>,
}

impl Members {
    /// The end of the last file.
    fn end(&self) -> u64 {
        self.parts.last().map_or(0, |(start, length, _)| start.saturating_add(*length))
    }

    fn range(&self, range: &Range<u64>) -> Result<Bytes> {
        let (mut at, mut pieces) = (range.start, Vec::new());
        while at < range.end {
            let number = self.parts.partition_point(|(start, ..)| *start <= at);
            let part = number.checked_sub(1).and_then(|number| self.parts.get(number));
            let Some((start, length, blob)) = part.filter(|(start, length, _)| at - start < *length) else {
                let what = format!("no file has the bytes from {at:#x} on");
                return Err(Place::new(&self.name, STRUCTURE, at).corrupt(what));
            };
            let end = range.end.min(start.saturating_add(*length));
            pieces.push(blob.read_range(at - start..end - start)?);
            at = end;
        }
        if let [only] = pieces.as_slice() {
            return Ok(only.clone());
        }
        let mut bytes = BytesMut::new();
        pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
        Ok(bytes.freeze())
    }
}

impl Blob for Members {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64> {
        Ok(self.end())
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().map(|range| self.range(range)).collect()
    }

    fn is_remote(&self) -> bool {
        self.parts.iter().any(|(.., blob)| blob.is_remote())
    }
}

/// Joins files of one size, of which the last may be shorter. `None` if the first holds everything.
fn family(file: &File, externals: &dyn Externals, size: u64) -> Result<Option<Whole>> {
    let end = file.superblock.end;
    if end <= file.length {
        return Ok(None);
    }
    let place = file.place(STRUCTURE, 0);
    let count = (size > 0).then(|| end.div_ceil(size));
    let Some(count) = count.filter(|count| *count <= MAX_MEMBERS && file.length == size) else {
        return Err(place.corrupt(format!("members of {size} bytes, the first has {}", file.length)));
    };
    let mut parts = vec![(0, size, Arc::clone(&file.blob))];
    for number in 1..count {
        let name = member_name(&file.name, number)
            .ok_or_else(|| place.corrupt("the first of a family whose name has no number 0"))?;
        let Some(member) = externals.open(&name)? else {
            return Err(Error::not_found(Arc::clone(&file.name), format!("the family's member {name}")));
        };
        let bytes = member.blob.len()?;
        if number + 1 < count && bytes != size {
            return Err(place.corrupt(format!("{name} has {bytes} bytes, a member {size}")));
        }
        parts.push((number * size, bytes.min(size), member.blob));
    }
    Ok(Some(Whole::new(Members { name: Arc::clone(&file.name), parts })))
}

/// Joins separate files for metadata and raw data. The information is a `u8 file` for each of six kinds of bytes, two unused
/// bytes, `u64 address, u64 end` of each file, then their names with `%s` for the common part, padded to 8 bytes.
fn multi(file: &File, externals: &dyn Externals, information: &[u8]) -> Result<Whole> {
    const KINDS: usize = 6;
    let place = file.place(STRUCTURE, 0);
    let mut fields = Fields::new(information, place);
    let kinds: [u8; KINDS] = fields.array()?;
    fields.skip(2)?;
    let mut order: Vec<u8> = Vec::new();
    for (kind, own) in (1_u8..).zip(kinds) {
        let own = if own == 0 { kind } else { own };
        if own as usize > KINDS {
            return Err(place.corrupt(format!("file {own} of {KINDS}")));
        }
        if !order.contains(&own) {
            order.push(own);
        }
    }
    let mut starts = Vec::new();
    for _ in &order {
        starts.push(fields.u64()?);
        fields.skip(8)?;
    }
    let mut patterns = Vec::new();
    for _ in &order {
        let rest = fields.rest();
        let length =
            rest.iter().position(|byte| *byte == 0).ok_or_else(|| place.corrupt("a name without an end"))?;
        patterns.push(String::from_utf8_lossy(fields.bytes(length)?).into_owned());
        fields.skip((length / 8 + 1) * 8 - length)?;
    }
    let first = starts.iter().position(|start| *start == 0);
    let first = first.ok_or_else(|| place.corrupt("no file starts at address 0"))?;
    let own = Path::new(&*file.name).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = patterns[first].split_once("%s");
    let stem = stem.and_then(|(before, after)| own.strip_prefix(before)?.strip_suffix(after));
    let stem = stem.ok_or_else(|| {
        file.unsupported(format!(
            "a file of the multi driver that was renamed: {own} is no {}",
            patterns[first]
        ))
    })?;
    let mut parts = vec![(0, file.length, Arc::clone(&file.blob))];
    for (number, (start, pattern)) in starts.iter().zip(&patterns).enumerate().filter(|(at, _)| *at != first)
    {
        let name = pattern.replacen("%s", stem, 1);
        if *start == 0 || starts[..number].contains(start) {
            return Err(place.corrupt(format!("two files at {start:#x}")));
        }
        let Some(member) = externals.open(&name)? else {
            return Err(missing(file, &name));
        };
        parts.push((*start, member.blob.len()?, member.blob));
    }
    parts.sort_by_key(|(start, ..)| *start);
    // A file ends where the next one starts, or earlier.
    let ends: Vec<u64> = parts.iter().skip(1).map(|(start, ..)| *start).chain([u64::MAX]).collect();
    for ((start, length, _), end) in parts.iter_mut().zip(ends) {
        *length = (*length).min(end - *start);
    }
    Ok(Whole::new(Members { name: Arc::clone(&file.name), parts }))
}

/// The joined bytes of a split file, and the number of bytes stored.
pub(crate) struct Whole {
    pub(crate) blob: Arc<dyn Blob>,
    pub(crate) stored: u64,
}

impl Whole {
    fn new(members: Members) -> Self {
        let stored = members.parts.iter().fold(0_u64, |sum, (_, length, _)| sum.saturating_add(*length));
        Self { blob: Arc::new(members), stored }
    }
}

/// The name of a member: the first one's name, with the number 0 at its end replaced.
fn member_name(first: &str, number: u64) -> Option<String> {
    let name = Path::new(first).file_name()?.to_str()?;
    let (stem, ending) =
        name.rsplit_once('.').map_or((name, String::new()), |(stem, ending)| (stem, format!(".{ending}")));
    let head = stem.trim_end_matches('0');
    let width = stem.len() - head.len();
    (width > 0).then(|| format!("{head}{number:0width$}{ending}"))
}

#[cfg(test)]
mod tests {
    use hyperslab_core::MemoryBlob;

    use super::*;

    #[test]
    fn member_names_are_numbered() {
        assert_eq!(member_name("/data/family00000.h5", 12).as_deref(), Some("family00012.h5"));
        assert_eq!(member_name("v16-0", 3).as_deref(), Some("v16-3"));
        assert_eq!(member_name("one.h5", 1), None);
    }

    #[test]
    fn ranges_span_members() {
        let member = |text: &str| Arc::new(MemoryBlob::new("m", text.as_bytes().to_vec())) as Arc<dyn Blob>;
        let parts = vec![(0, 4, member("hype")), (4, 4, member("rsla")), (8, 1, member("b"))];
        let family = Members { name: "f".into(), parts };
        assert_eq!(
            family.read(&[0..9, 2..4, 4..9, 3..5, 9..9]).unwrap(),
            ["hyperslab", "pe", "rslab", "er", ""]
        );
        assert!(family.read_range(8..10).unwrap_err().is_corrupt());
        let apart =
            Members { name: "f".into(), parts: vec![(0, 4, member("hype")), (1 << 62, 4, member("rsla"))] };
        assert_eq!(apart.read(&[1..3, (1 << 62)..(1 << 62) + 4]).unwrap(), ["yp", "rsla"]);
        assert!(apart.read_range(3..6).unwrap_err().is_corrupt());
    }
}
