//! Files that libhdf5's drivers cut into several: a family is put together again, others are named and refused.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hyperslab_core::{Blob, Error, Fields, Result};

use crate::file::{File, FileFields};
use crate::header::{Header, kind};
use hyperslab_core::Externals;

const STRUCTURE: &str = "driver information";

/// Members that are looked for; libhdf5 asks for 100 MiB each unless told otherwise.
const MAX_MEMBERS: u64 = 1 << 16;

/// The file's bytes, where they are not all in its first file.
pub(crate) fn members(file: &File, externals: &dyn Externals) -> Result<Option<Arc<dyn Blob>>> {
    match driver(file)? {
        None => Ok(None),
        Some((name, information)) if name == *b"NCSAfami" => {
            let size = Fields::new(&information, file.place(STRUCTURE, 0)).u64()?;
            Family::open(file, externals, size)
        }
        Some((name, _)) if name == *b"NCSAmult" => Err(file
            .unsupported("the multi and split file drivers (metadata and raw data in files of their own)")),
        Some((name, _)) => {
            Err(file.unsupported(format!("the file driver {:?}", String::from_utf8_lossy(&name))))
        }
    }
}

/// The driver's name and what it wrote about itself: in a block of its own, or as a message of the superblock extension.
fn driver(file: &File) -> Result<Option<([u8; 8], Bytes)>> {
    if let Some(address) = file.superblock.driver {
        let head = file.read(STRUCTURE, address, 16)?;
        let mut fields = Fields::new(&head, file.place(STRUCTURE, address));
        fields.version(&[0])?;
        fields.skip(3)?;
        let (length, name) = (fields.u32()?, fields.array::<8>()?);
        return Ok(Some((name, file.read(STRUCTURE, address.saturating_add(16), u64::from(length))?)));
    }
    let Some(extension) = file.superblock.extension else { return Ok(None) };
    // An extension that cannot be read costs only what it would have told.
    let Ok(header) = Header::read(file, extension) else { return Ok(None) };
    let Some(message) = header.find(file, kind::DRIVER)? else { return Ok(None) };
    let mut fields = message.fields(file, "driver information message");
    fields.version(&[0])?;
    let name = fields.array::<8>()?;
    let length = usize::from(fields.u16()?);
    Ok(Some((name, Bytes::copy_from_slice(fields.bytes(length)?))))
}

/// Files of one size, one after the other, as one; the last may be shorter.
#[derive(Debug)]
struct Family {
    name: Arc<str>,
    members: Vec<Arc<dyn Blob>>,
    size: u64,
    length: u64,
}

impl Family {
    /// `None` where the first member holds everything.
    fn open(file: &File, externals: &dyn Externals, size: u64) -> Result<Option<Arc<dyn Blob>>> {
        let end = file.superblock.end;
        if end <= file.length {
            return Ok(None);
        }
        let place = file.place(STRUCTURE, 0);
        let count = (size > 0).then(|| end.div_ceil(size));
        let Some(count) = count.filter(|count| *count <= MAX_MEMBERS && file.length == size) else {
            return Err(place.corrupt(format!("members of {size} bytes, the first has {}", file.length)));
        };
        let mut members = vec![Arc::clone(&file.blob)];
        let mut length = file.length;
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
            length += bytes.min(size);
            members.push(member.blob);
        }
        Ok(Some(Arc::new(Self { name: Arc::clone(&file.name), members, size, length })))
    }

    fn range(&self, range: &Range<u64>) -> Result<Bytes> {
        let whole = |at: u64| (at / self.size) as usize;
        let part = |number: usize, range: &Range<u64>| {
            let first = number as u64 * self.size;
            let last = range.end.min(first + self.size) - first;
            self.members[number].read_range(range.start.max(first) - first..last)
        };
        if range.start >= range.end || range.end > self.length {
            let empty = range.start == range.end && range.end <= self.length;
            return if empty { Ok(Bytes::new()) } else { self.members[0].read_range(self.size..u64::MAX) };
        }
        let (from, to) = (whole(range.start), whole(range.end - 1));
        if from == to {
            return part(from, range);
        }
        let mut bytes = BytesMut::new();
        for number in from..=to {
            bytes.extend_from_slice(&part(number, range)?);
        }
        Ok(bytes.freeze())
    }
}

impl Blob for Family {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64> {
        Ok(self.length)
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().map(|range| self.range(range)).collect()
    }
}

/// The name of another member: the number 0 at the end of the first one's name, counted on.
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
    fn members_are_counted_on() {
        assert_eq!(member_name("/data/family00000.h5", 12).as_deref(), Some("family00012.h5"));
        assert_eq!(member_name("v16-0", 3).as_deref(), Some("v16-3"));
        assert_eq!(member_name("one.h5", 1), None);
    }

    #[test]
    fn ranges_reach_over_members() {
        let member = |text: &str| Arc::new(MemoryBlob::new("m", text.as_bytes().to_vec())) as Arc<dyn Blob>;
        let members = vec![member("hype"), member("rsla"), member("b")];
        let family = Family { name: "f".into(), members, size: 4, length: 9 };
        assert_eq!(
            family.read(&[0..9, 2..4, 4..9, 3..5, 9..9]).unwrap(),
            ["hyperslab", "pe", "rslab", "er", ""]
        );
        assert!(family.read_range(8..10).unwrap_err().is_corrupt());
    }
}
