//! Local heaps: the names of old-style groups.

use bytes::Bytes;
use hyperslab_core::{Fields, Result};

use crate::file::{File, FileFields};

const STRUCTURE: &str = "local heap";

/// A local heap's names.
#[derive(Debug, Clone)]
pub(crate) struct LocalHeap {
    address: u64,
    data: Bytes,
}

impl LocalHeap {
    pub(crate) fn read(file: &File, address: u64) -> Result<Self> {
        let sizes = file.sizes();
        let length = 8 + 2 * sizes.length + sizes.address;
        let header = file.read(STRUCTURE, address, length as u64)?;
        let mut fields = Fields::new(&header, file.place(STRUCTURE, address));
        fields.magic(b"HEAP")?;
        fields.version(&[0])?;
        fields.skip(3)?;
        let size = fields.length(sizes)?;
        let _free = fields.length(sizes)?;
        let data = fields.defined(sizes)?;
        Ok(Self { address, data: file.read("local heap data", data, size)? })
    }

    /// The address of the heap's header.
    pub(crate) const fn address(&self) -> u64 {
        self.address
    }

    /// All bytes of the heap.
    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    /// The bytes of the NUL-terminated name at this offset.
    pub(crate) fn bytes(&self, file: &File, offset: u64) -> Result<&[u8]> {
        let tail = usize::try_from(offset).ok().and_then(|offset| self.data.get(offset..));
        let name = tail.and_then(|tail| Some(&tail[..tail.iter().position(|byte| *byte == 0)?]));
        file.spend(name.or(tail).map_or(0, <[u8]>::len) as u64, STRUCTURE)?;
        name.ok_or_else(|| {
            file.place(STRUCTURE, self.address)
                .corrupt(format!("no name at {offset} of its {} bytes", self.data.len()))
        })
    }

    /// The name at this offset.
    pub(crate) fn name(&self, file: &File, offset: u64) -> Result<String> {
        let name = self.bytes(file, offset)?;
        file.allocate(name.len() as u64, STRUCTURE)?;
        Ok(String::from_utf8_lossy(name).into_owned())
    }
}
