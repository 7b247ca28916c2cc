//! The header: dimensions, attributes and variables, all big-endian, names and values padded to four bytes.

use std::collections::HashSet;

use hyperslab_core::{Blob, Place, Result};

use crate::types::{NcType, Version};

/// The maximum name length; the library's own limit is 256.
const LONGEST_NAME: u64 = 1 << 16;
/// The library's own limit on the dimensions of a variable.
const MOST_AXES: u64 = 1024;
/// The maximum header length; a real one has some kilobytes.
const LONGEST_HEADER: u64 = 1 << 28;
/// The number of bytes read first from an unmapped file.
const FIRST: u64 = 1 << 14;

const DIMENSION: u32 = 10;
const VARIABLE: u32 = 11;
const ATTRIBUTE: u32 = 12;

/// The header of a file, parsed but not yet validated.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Header {
    pub(crate) version: Version,
    /// The number of records; `None` if the writer left it open (a stream), so that it follows from the file length.
    pub(crate) records: Option<u64>,
    pub(crate) dimensions: Vec<Dimension>,
    pub(crate) attributes: Vec<RawAttribute>,
    pub(crate) variables: Vec<Variable>,
    /// The length of the header.
    pub(crate) length: u64,
}

/// A dimension: a name and a length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dimension {
    pub(crate) name: String,
    /// Zero for the record dimension, whose length is the number of records.
    pub(crate) length: u64,
}

/// An attribute as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawAttribute {
    pub(crate) name: String,
    pub(crate) kind: NcType,
    /// The values, big-endian and without padding.
    pub(crate) bytes: Vec<u8>,
}

/// A variable as declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// The numbers of its dimensions. All exist.
    pub(crate) dimensions: Vec<usize>,
    pub(crate) attributes: Vec<RawAttribute>,
    pub(crate) kind: NcType,
    /// The size given by the writer. Writers differ in it, so it is not used.
    pub(crate) noted_size: u64,
    /// The offset of its data.
    pub(crate) begin: u64,
    /// The offset of its declaration, for messages.
    pub(crate) at: u64,
}

impl Header {
    /// Reads the header at the start of a file. From an unmapped file, only as much as needed is read.
    pub(crate) fn read(blob: &dyn Blob) -> Result<Self> {
        let place = Place::new(blob.name(), "NetCDF header", 0);
        let length = blob.len()?;
        if let Some(bytes) = blob.mapped() {
            return Self::parse(bytes, place);
        }
        let mut end = length.min(FIRST);
        loop {
            let bytes = blob.read_at(0, end)?;
            let mut reader = Reader { bytes: &bytes, position: 0, place, needed: 0, wide: false };
            match reader.header() {
                Err(_) if reader.needed > end && end < length => {
                    let more = reader.needed.max(end.saturating_mul(2)).min(length);
                    if more > LONGEST_HEADER {
                        return Err(place.unsupported(format!("a header of {more} bytes or more")));
                    }
                    end = more;
                }
                header => return header,
            }
        }
    }

    /// Parses a header.
    pub(crate) fn parse(bytes: &[u8], place: Place<'_>) -> Result<Self> {
        Reader { bytes, position: 0, place, needed: 0, wide: false }.header()
    }

    /// The number of the record dimension.
    pub(crate) fn record_dimension(&self) -> Option<usize> {
        self.dimensions.iter().position(|dimension| dimension.length == 0)
    }
}

/// Reads big-endian fields, each checked.
struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    place: Place<'a>,
    /// The number of bytes that the last truncated field needs.
    needed: u64,
    /// Whether counts are eight bytes wide.
    wide: bool,
}

impl<'a> Reader<'a> {
    fn here(&self) -> Place<'a> {
        self.place.plus(self.position as u64)
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8]> {
        let end = (self.position as u64).saturating_add(count);
        let taken = usize::try_from(end).ok().and_then(|end| self.bytes.get(self.position..end));
        match taken {
            Some(taken) => {
                self.position += taken.len();
                Ok(taken)
            }
            None => {
                self.needed = end;
                let left = self.bytes.len() - self.position;
                Err(self.here().corrupt(format!("{count} bytes expected, {left} left")))
            }
        }
    }

    fn u32(&mut self) -> Result<u32> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(u32::from_be_bytes(bytes))
    }

    /// A non-negative number of four or eight bytes.
    fn number(&mut self, wide: bool, what: &str) -> Result<u64> {
        let place = self.here();
        let (value, sign) = if wide {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(self.take(8)?);
            (u64::from_be_bytes(bytes), 63)
        } else {
            (u64::from(self.u32()?), 31)
        };
        if value >> sign != 0 {
            return Err(place.corrupt(format!("{what} {value:#x}, which is negative")));
        }
        Ok(value)
    }

    /// A count of items of at least `each` bytes that must follow.
    fn count(&mut self, each: u64, what: &str) -> Result<usize> {
        let place = self.here();
        let count = self.number(self.wide, what)?;
        let end = (self.position as u64).saturating_add(count.saturating_mul(each));
        if end > self.bytes.len() as u64 {
            self.needed = end;
            return Err(place.corrupt(format!(
                "{count} for {what}, with room for {}",
                (self.bytes.len() - self.position) as u64 / each
            )));
        }
        Ok(count as usize)
    }

    /// Bytes padded to a multiple of four.
    fn padded(&mut self, count: u64) -> Result<&'a [u8]> {
        let bytes = self.take(count)?;
        self.take(count.next_multiple_of(4) - count)?;
        Ok(bytes)
    }

    fn name(&mut self) -> Result<String> {
        let place = self.here();
        let length = self.number(self.wide, "the length of a name")?;
        if length == 0 || length > LONGEST_NAME {
            return Err(place.corrupt(format!("a name of {length} bytes")));
        }
        Ok(String::from_utf8_lossy(self.padded(length)?).into_owned())
    }

    fn nc_type(&mut self, version: Version) -> Result<NcType> {
        let place = self.here();
        let number = self.u32()?;
        NcType::from_number(number)
            .filter(|kind| version == Version::Data64 || !kind.is_extended())
            .ok_or_else(|| place.corrupt(format!("type {number}, which CDF-{} does not have", version as u8)))
    }

    /// The tag and the count of a list; an absent list is two zeros.
    fn list(&mut self, tag: u32, each: u64, what: &str) -> Result<usize> {
        let place = self.here();
        let found = self.u32()?;
        let count = self.count(each, what)?;
        // An empty list may have its own tag as well.
        if found == tag || found == 0 && count == 0 {
            return Ok(count);
        }
        Err(place.corrupt(format!("tag {found} before {count} {what}, expected {tag}")))
    }

    fn header(&mut self) -> Result<Header> {
        let magic = self.take(4)?;
        let version = match magic {
            [b'C', b'D', b'F', version] => Version::from_byte(*version),
            _ => None,
        };
        let version = version.ok_or_else(|| {
            self.place.corrupt(format!("magic \"{}\", expected CDF and 1, 2 or 5", magic.escape_ascii()))
        })?;
        self.wide = version == Version::Data64;
        let width = if self.wide { 8 } else { 4 };
        let left_open = self.bytes.get(4..4 + width).is_some_and(|bytes| bytes.iter().all(|b| *b == 0xff));
        let records = if left_open {
            self.take(width as u64)?;
            None
        } else {
            Some(self.number(self.wide, "the number of records")?)
        };
        let dimensions = self.dimensions()?;
        let attributes = self.attributes(version)?;
        let variables = self.variables(version, &dimensions)?;
        let length = self.position as u64;
        Ok(Header { version, records, dimensions, attributes, variables, length })
    }

    fn dimensions(&mut self) -> Result<Vec<Dimension>> {
        let count = self.list(DIMENSION, 12, "dimensions")?;
        let (mut dimensions, mut names) = (Vec::with_capacity(count), HashSet::new());
        let mut record = None;
        for _ in 0..count {
            let place = self.here();
            let name = self.name()?;
            let length = self.number(self.wide, "the length of a dimension")?;
            if !names.insert(name.clone()) {
                return Err(place.corrupt(format!("a second dimension {name:?}")));
            }
            if length == 0
                && let Some(first) = record.replace(name.clone())
            {
                return Err(place.corrupt(format!("two record dimensions, {first:?} and {name:?}")));
            }
            dimensions.push(Dimension { name, length });
        }
        Ok(dimensions)
    }

    fn attributes(&mut self, version: Version) -> Result<Vec<RawAttribute>> {
        let count = self.list(ATTRIBUTE, 16, "attributes")?;
        let mut attributes = Vec::with_capacity(count);
        for _ in 0..count {
            let name = self.name()?;
            let kind = self.nc_type(version)?;
            let values = self.count(kind.size(), "values of an attribute")? as u64;
            let bytes = self.padded(values * kind.size())?.to_vec();
            attributes.push(RawAttribute { name, kind, bytes });
        }
        Ok(attributes)
    }

    fn variables(&mut self, version: Version, dimensions: &[Dimension]) -> Result<Vec<Variable>> {
        let count = self.list(VARIABLE, 32, "variables")?;
        let (mut variables, mut names) = (Vec::with_capacity(count), HashSet::new());
        for _ in 0..count {
            let at = self.here().offset;
            let place = self.here();
            let name = self.name()?;
            if !names.insert(name.clone()) {
                return Err(place.corrupt(format!("a second variable {name:?}")));
            }
            let own = self.axes(&name, dimensions)?;
            let attributes = self.attributes(version)?;
            let kind = self.nc_type(version)?;
            let noted_size = if self.wide {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(self.take(8)?);
                u64::from_be_bytes(bytes)
            } else {
                u64::from(self.u32()?)
            };
            let begin = self.number(version != Version::Classic, "the offset of a variable")?;
            variables.push(Variable { name, dimensions: own, attributes, kind, noted_size, begin, at });
        }
        Ok(variables)
    }

    /// The dimensions of a variable.
    fn axes(&mut self, name: &str, dimensions: &[Dimension]) -> Result<Vec<usize>> {
        let place = self.here();
        let rank = self.count(if self.wide { 8 } else { 4 }, "dimensions of a variable")?;
        if rank as u64 > MOST_AXES {
            return Err(place.corrupt(format!("variable {name:?} has {rank} dimensions")));
        }
        let mut axes = Vec::with_capacity(rank);
        for axis in 0..rank {
            let place = self.here();
            let number = self.number(self.wide, "the number of a dimension")?;
            let known =
                usize::try_from(number).ok().and_then(|number| Some((number, dimensions.get(number)?)));
            let Some((number, dimension)) = known else {
                return Err(place
                    .corrupt(format!("variable {name:?} has dimension {number} of {}", dimensions.len())));
            };
            if axis > 0 && dimension.length == 0 {
                return Err(place.corrupt(format!(
                    "variable {name:?} has the record dimension {:?} as axis {axis}, not first",
                    dimension.name
                )));
            }
            axes.push(number);
        }
        Ok(axes)
    }
}
