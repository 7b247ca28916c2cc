//! Encodes headers.

use hyperslab_core::{Error, Result};

use crate::header::{Dimension, Header, RawAttribute, Variable};
use crate::types::{NcType, Version};

/// The maximum size of a variable of CDF-1 and CDF-2 unless it is the last.
const CDF1_MOST: u64 = (1 << 31) - 4;
const CDF2_MOST: u64 = (1 << 32) - 4;
/// The largest 32-bit count.
const MOST: u64 = (1 << 31) - 1;

/// The bytes of a header. Its `length` is ignored.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for a number that does not fit the version.
pub(crate) fn encode(header: &Header) -> Result<Vec<u8>> {
    let mut writer = Writer { bytes: Vec::new(), version: header.version };
    writer.bytes.extend_from_slice(b"CDF");
    writer.bytes.push(header.version as u8);
    writer.count(header.records.unwrap_or(0))?;
    writer.list(10, &header.dimensions, |writer, dimension: &Dimension| {
        writer.name(&dimension.name)?;
        writer.count(dimension.length)
    })?;
    writer.attributes(&header.attributes)?;
    writer.list(11, &header.variables, Writer::variable)?;
    Ok(writer.bytes)
}

struct Writer {
    bytes: Vec<u8>,
    version: Version,
}

impl Writer {
    fn count(&mut self, count: u64) -> Result<()> {
        if self.version == Version::Data64 {
            self.bytes.extend_from_slice(&count.to_be_bytes());
            return Ok(());
        }
        match u32::try_from(count) {
            Ok(count) if u64::from(count) <= MOST => self.bytes.extend_from_slice(&count.to_be_bytes()),
            _ => return Err(Error::invalid(format!("{count} is too large for CDF-{}", self.version as u8))),
        }
        Ok(())
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn name(&mut self, name: &str) -> Result<()> {
        self.count(name.len() as u64)?;
        self.bytes.extend_from_slice(name.as_bytes());
        self.pad();
        Ok(())
    }

    fn list<T>(&mut self, tag: u32, items: &[T], item: impl Fn(&mut Self, &T) -> Result<()>) -> Result<()> {
        let tag = if items.is_empty() { 0 } else { tag };
        self.bytes.extend_from_slice(&tag.to_be_bytes());
        self.count(items.len() as u64)?;
        items.iter().try_for_each(|own| item(self, own))
    }

    fn attributes(&mut self, attributes: &[RawAttribute]) -> Result<()> {
        self.list(12, attributes, |writer, attribute| {
            writer.name(&attribute.name)?;
            writer.kind(attribute.kind);
            writer.count(attribute.bytes.len() as u64 / attribute.kind.size())?;
            writer.bytes.extend_from_slice(&attribute.bytes);
            writer.pad();
            Ok(())
        })
    }

    fn kind(&mut self, kind: NcType) {
        self.bytes.extend_from_slice(&(kind as u32).to_be_bytes());
    }

    fn variable(&mut self, variable: &Variable) -> Result<()> {
        self.name(&variable.name)?;
        self.count(variable.dimensions.len() as u64)?;
        variable.dimensions.iter().try_for_each(|number| self.count(*number as u64))?;
        self.attributes(&variable.attributes)?;
        self.kind(variable.kind);
        if self.version == Version::Data64 {
            self.bytes.extend_from_slice(&variable.noted_size.to_be_bytes());
        } else {
            // A size that does not fit is stored as the largest number.
            let noted = u32::try_from(variable.noted_size).unwrap_or(u32::MAX);
            self.bytes.extend_from_slice(&noted.to_be_bytes());
        }
        match self.version {
            Version::Classic => self.count(variable.begin),
            _ => {
                self.bytes.extend_from_slice(&variable.begin.to_be_bytes());
                Ok(())
            }
        }
    }
}

/// Returns true if variables of these sizes (each with whether it has records) and the last offset fit the version.
pub(crate) fn sizes_fit(version: Version, sizes: &[(u64, bool)], last_begin: u64) -> bool {
    let most = match version {
        Version::Classic if last_begin > MOST => return false,
        Version::Classic => CDF1_MOST,
        Version::Offset64 => CDF2_MOST,
        Version::Data64 => return true,
    };
    let has_records = sizes.iter().any(|(_, is_record)| *is_record);
    // One variable may be larger if nothing follows it.
    [false, true].into_iter().all(|kind| {
        let mut own = sizes.iter().filter(|(_, is_record)| *is_record == kind).map(|(size, _)| *size).rev();
        let last = own.next().unwrap_or(0);
        own.all(|size| size <= most) && (last <= most || kind == has_records)
    })
}

/// Returns true if a dimension length or a number of records is too large for 32-bit counts.
pub(crate) const fn is_wide(length: u64) -> bool {
    length > MOST
}

#[cfg(test)]
mod tests {
    use hyperslab_core::Place;

    use super::*;

    #[test]
    fn headers_round_trip() {
        for version in [Version::Classic, Version::Offset64, Version::Data64] {
            let attribute =
                RawAttribute { name: "é".to_owned(), kind: NcType::Short, bytes: vec![1, 2, 3, 4, 5, 6] };
            let variable = |name: &str, begin| Variable {
                name: name.to_owned(),
                dimensions: vec![0, 1],
                attributes: vec![attribute.clone()],
                kind: NcType::Double,
                noted_size: 16,
                begin,
                at: 0,
            };
            let dimension = |name: &str, length| Dimension { name: name.to_owned(), length };
            let mut header = Header {
                version,
                records: Some(3),
                dimensions: vec![dimension("time", 0), dimension("long name", 2)],
                attributes: vec![attribute.clone()],
                variables: vec![variable("a", 1000), variable("b", 2000)],
                length: 0,
            };
            let bytes = encode(&header).unwrap();
            let mut back = Header::parse(&bytes, Place::new("x.nc", "NetCDF header", 0)).unwrap();
            assert_eq!(back.length, bytes.len() as u64);
            back.length = 0;
            back.variables.iter_mut().for_each(|own| own.at = 0);
            assert_eq!(back, header);
            header.variables[1].begin = 1 << 31;
            assert_eq!(encode(&header).is_ok(), version != Version::Classic);
        }
    }

    /// The limits of the NetCDF library.
    #[test]
    fn sizes_have_the_limits_of_each_version() {
        const GIB: u64 = 1 << 30;
        let fits = |sizes: &[(u64, bool)]| {
            [Version::Classic, Version::Offset64, Version::Data64]
                .map(|version| sizes_fit(version, sizes, 1000))
        };
        assert_eq!(fits(&[(GIB, false), (GIB, false)]), [true, true, true]);
        assert_eq!(fits(&[(2 * GIB, false), (4, false)]), [false, true, true]);
        assert_eq!(fits(&[(4 * GIB, false), (4, false)]), [false, false, true]);
        // The last one may have any size if no records follow.
        assert_eq!(fits(&[(4, false), (8 * GIB, false)]), [true, true, true]);
        assert_eq!(fits(&[(4, false), (8 * GIB, false), (4, true)]), [false, false, true]);
        assert_eq!(fits(&[(4, false), (4, true), (8 * GIB, true)]), [true, true, true]);
        assert_eq!(fits(&[(4, false), (8 * GIB, true), (4, true)]), [false, false, true]);
        assert!(!sizes_fit(Version::Classic, &[(4, false)], 2 * GIB));
        assert!(sizes_fit(Version::Offset64, &[(4, false)], 2 * GIB));
    }
}
