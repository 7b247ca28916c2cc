//! Global heap collections: variable-length elements, region references, virtual mappings.

use bytes::Bytes;
use hyperslab_core::{Fields, Result};

use crate::file::{File, FileFields};

const STRUCTURE: &str = "global heap collection";

/// One collection, with the positions of its objects.
#[derive(Debug)]
pub(crate) struct Collection {
    address: u64,
    bytes: Bytes,
    /// Object index, start, length; sorted by index.
    objects: Vec<(u16, usize, usize)>,
}

impl Collection {
    pub(crate) fn read(file: &File, address: u64) -> Result<Self> {
        let sizes = file.sizes();
        let head = file.read(STRUCTURE, address, 8 + sizes.length as u64)?;
        let mut fields = Fields::new(&head, file.place(STRUCTURE, address));
        fields.magic(b"GCOL")?;
        fields.version(&[1])?;
        fields.skip(3)?;
        let bytes = file.read(STRUCTURE, address, fields.length(sizes)?)?;
        let mut fields = Fields::new(&bytes, file.place(STRUCTURE, address));
        // Headers of the collection and its objects are padded to a multiple of 8 bytes.
        let head = (8 + sizes.length).next_multiple_of(8);
        fields.skip(head)?;
        let mut objects = Vec::new();
        while fields.remaining() >= head {
            let place = fields.place();
            let index = fields.u16()?;
            // References, padding.
            fields.skip(6)?;
            let size = fields.length(sizes)?;
            fields.skip(head - 8 - sizes.length)?;
            if index == 0 {
                break;
            }
            let size = usize::try_from(size).ok().filter(|size| *size <= fields.remaining());
            let size = size.ok_or_else(|| place.corrupt("an object reaches past the collection"))?;
            objects.push((index, fields.position(), size));
            fields.skip(size.next_multiple_of(8).min(fields.remaining()))?;
        }
        objects.sort_unstable();
        Ok(Self { address, bytes, objects })
    }

    /// The approximate size in memory.
    pub(crate) const fn bytes(&self) -> u64 {
        (self.bytes.len() + self.objects.len() * size_of::<(u16, usize, usize)>()) as u64
    }

    /// The object with this index.
    pub(crate) fn object(&self, file: &File, index: u32) -> Result<&[u8]> {
        let found = u16::try_from(index)
            .ok()
            .and_then(|index| self.objects.binary_search_by_key(&index, |object| object.0).ok());
        match found {
            Some(found) => {
                let (_, start, length) = self.objects[found];
                Ok(&self.bytes[start..start + length])
            }
            None => Err(file.place(STRUCTURE, self.address).corrupt(format!("no object {index}"))),
        }
    }
}
