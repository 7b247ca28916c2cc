//! The metadata cache image: structures that a writer stored in one block instead of in place.

use std::collections::BTreeMap;

use bytes::Bytes;
use hyperslab_core::{Fields, Result};

use crate::file::{File, FileFields};
use crate::header::{Header, kind};

const STRUCTURE: &str = "metadata cache image";

/// Structures by the address where they belong.
#[derive(Debug, Default)]
pub(crate) struct CacheImage {
    entries: BTreeMap<u64, Bytes>,
}

impl CacheImage {
    /// The image named by the superblock extension; empty if there is none.
    pub(crate) fn read(file: &File) -> Result<Self> {
        let Some(extension) = file.superblock.extension else { return Ok(Self::default()) };
        let Some(message) = Header::read(file, extension)?.find(file, kind::CACHE_IMAGE)? else {
            return Ok(Self::default());
        };
        let mut fields = message.fields(file, "metadata cache image message");
        fields.version(&[0])?;
        let Some(address) = fields.address(file.sizes())? else { return Ok(Self::default()) };
        let length = fields.length(file.sizes())?;
        let bytes = file.read_checked(STRUCTURE, address, length)?;
        Self::parse(file, &bytes, address)
    }

    fn parse(file: &File, bytes: &Bytes, address: u64) -> Result<Self> {
        let sizes = file.sizes();
        let mut fields = Fields::new(bytes, file.place(STRUCTURE, address));
        fields.magic(b"MDCI")?;
        fields.version(&[0])?;
        let _flags = fields.u8()?;
        let _length = fields.length(sizes)?;
        let count = fields.u32()?;
        let mut entries = BTreeMap::new();
        for _ in 0..count {
            let place = fields.place();
            // Type, flags, ring, age; children, those that are dirty.
            fields.skip(4 + 2 + 2)?;
            let parents = usize::from(fields.u16()?);
            // The position in the LRU list.
            fields.skip(4)?;
            let at = fields.defined(sizes)?;
            let size = fields.length(sizes)?;
            fields.skip(parents * sizes.address)?;
            let start = fields.position();
            let size = usize::try_from(size).ok().filter(|size| *size <= fields.remaining());
            let size = size.ok_or_else(|| place.corrupt("an entry reaches past the image"))?;
            fields.skip(size)?;
            entries.insert(at, bytes.slice(start..start + size));
        }
        Ok(Self { entries })
    }

    /// The bytes starting at this address, if a structure of the image holds them.
    pub(crate) fn get(&self, address: u64) -> Option<Bytes> {
        let (start, bytes) = self.entries.range(..=address).next_back()?;
        let within = usize::try_from(address - start).ok().filter(|within| *within < bytes.len())?;
        Some(bytes.slice(within..))
    }
}
