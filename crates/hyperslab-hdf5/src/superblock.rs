//! The superblock: the start of the file, the width of addresses, and the root.

use hyperslab_core::{Blob, Fields, Place, Result};

use crate::encode::Encoder;
use crate::file::{FileFields, Sizes, check_sum};

/// The first eight bytes of every HDF5 file (after its user block).
pub(crate) const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

const STRUCTURE: &str = "superblock";

/// The contents of the superblock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) version: u8,
    pub(crate) sizes: Sizes,
    /// Addresses are relative to this offset.
    pub(crate) base: u64,
    /// The end of the file, counted from its first byte.
    pub(crate) end: u64,
    /// The root group's object header.
    pub(crate) root: u64,
    /// An object header with messages about the file.
    pub(crate) extension: Option<u64>,
    /// Before version 2: the address of information by the driver that wrote the file.
    pub(crate) driver: Option<u64>,
    /// Version 3: bit 0 opened for writing, bit 2 for SWMR writing; neither if the file was closed properly.
    pub(crate) flags: u8,
    /// Half the entries of a symbol node, and half the children of a group's tree node.
    pub(crate) halves: (u16, u16),
}

/// The offset of the signature: 0, 512, 1024 and so on, doubling. `None` if it is not found.
pub(crate) fn find_signature(blob: &dyn Blob) -> Result<Option<u64>> {
    let length = blob.len()?;
    let mut offset = 0_u64;
    while offset.saturating_add(8) <= length {
        if blob.read_at(offset, 8)?[..] == SIGNATURE {
            return Ok(Some(offset));
        }
        offset = if offset == 0 { 512 } else { offset.saturating_mul(2) };
    }
    Ok(None)
}

impl Superblock {
    /// Finds and reads the superblock.
    pub(crate) fn read(blob: &dyn Blob) -> Result<Self> {
        let name = blob.name();
        let Some(offset) = find_signature(blob)? else {
            return Err(Place::new(name, STRUCTURE, 0).corrupt("no HDF5 signature at 0, 512, 1024, …"));
        };
        // The longest (version 1 with 8-byte addresses) has 100 bytes.
        let bytes = blob.read_range(offset..blob.len()?.min(offset.saturating_add(256)))?;
        Self::parse(&bytes, offset, Place::new(name, STRUCTURE, offset))
    }

    /// The superblock of versions 2 and 3.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut out = Encoder::new(self.sizes);
        out.put(&SIGNATURE).u8(self.version);
        self.put_sizes(&mut out);
        out.u8(self.flags);
        out.address(Some(self.base)).address(self.extension);
        out.address(Some(self.end)).address(Some(self.root));
        out.summed()
    }

    fn put_sizes(&self, out: &mut Encoder) {
        out.count(self.sizes.address, 1, "bytes of an address").count(
            self.sizes.length,
            1,
            "bytes of a length",
        );
    }

    /// The change to the superblock when the file's end moves: its offset and bytes.
    pub(crate) fn encode_end(&self) -> Result<(u64, Vec<u8>)> {
        if self.version >= 2 {
            return Ok((0, self.encode()?));
        }
        // After the signature, the numbers, the base and the address of free space.
        let at = 24 + if self.version == 1 { 4 } else { 0 } + 2 * self.sizes.address;
        let mut end = Encoder::new(self.sizes);
        end.address(Some(self.end));
        Ok((at as u64, end.finish()?))
    }

    /// The superblock of version 0, whose root is a group with this tree and heap.
    pub(crate) fn encode_old(&self, tree: u64, heap: u64) -> Result<Vec<u8>> {
        let mut out = Encoder::new(self.sizes);
        out.put(&SIGNATURE).zeros(5);
        self.put_sizes(&mut out);
        out.u8(0);
        // Half the entries of a symbol node, half the children of a group's tree node, unused flags.
        out.u16(self.halves.0).u16(self.halves.1).u32(0);
        out.address(Some(self.base)).address(None).address(Some(self.end)).address(None);
        // The root's entry has no name; its scratch space holds the content of the group's message.
        out.length(0).address(Some(self.root)).u32(1).u32(0).address(Some(tree)).address(Some(heap));
        out.finish()
    }

    fn parse(bytes: &[u8], offset: u64, place: Place<'_>) -> Result<Self> {
        let mut fields = Fields::new(bytes, place);
        fields.magic(&SIGNATURE)?;
        match fields.version(&[0, 1, 2, 3])? {
            version @ (0 | 1) => Self::parse_old(&mut fields, version, offset),
            version => Self::parse_new(&mut fields, version, offset, bytes),
        }
    }

    fn parse_old(fields: &mut Fields<'_>, version: u8, offset: u64) -> Result<Self> {
        fields.skip(4)?;
        let sizes = sizes(fields)?;
        fields.skip(1)?;
        let halves = (fields.u16()?, fields.u16()?);
        // Consistency flags; version 1: indexed-storage K, reserved.
        fields.skip(4 + if version == 1 { 4 } else { 0 })?;
        let base = fields.uint(sizes.address)?;
        let _free_space = fields.address(sizes)?;
        let end = fields.uint(sizes.address)?;
        let driver = fields.address(sizes)?;
        let _name = fields.length(sizes)?;
        let root = fields.defined(sizes)?;
        Ok(Self {
            version,
            sizes,
            base: true_base(base, offset),
            end,
            root,
            extension: None,
            driver,
            flags: 0,
            halves,
        })
    }

    fn parse_new(fields: &mut Fields<'_>, version: u8, offset: u64, bytes: &[u8]) -> Result<Self> {
        let sizes = sizes(fields)?;
        let flags = fields.u8()?;
        let base = fields.uint(sizes.address)?;
        let extension = fields.address(sizes)?;
        let end = fields.uint(sizes.address)?;
        let root = fields.defined(sizes)?;
        let whole = fields.position() + 4;
        let place = Place { offset, ..fields.place() };
        let Some(summed) = bytes.get(..whole) else { return Err(place.corrupt("truncated")) };
        check_sum(summed, place)?;
        let halves = (crate::symbol_table::LEAF_K, crate::symbol_table::TREE_K);
        Ok(Self {
            version,
            sizes,
            base: true_base(base, offset),
            end,
            root,
            extension,
            driver: None,
            flags,
            halves,
        })
    }
}

/// A file that was placed after other bytes without updating its superblock still has base 0. Like libhdf5, count from the
/// signature in that case.
fn true_base(stored: u64, found: u64) -> u64 {
    if stored == found { stored } else { found }
}

fn sizes(fields: &mut Fields<'_>) -> Result<Sizes> {
    let place = fields.place();
    let sizes = Sizes { address: usize::from(fields.u8()?), length: usize::from(fields.u8()?) };
    match (sizes.address, sizes.length) {
        (2 | 4 | 8, 2 | 4 | 8) => Ok(sizes),
        (2 | 4 | 8 | 16 | 32, 2 | 4 | 8 | 16 | 32) => {
            Err(place.unsupported("addresses or lengths of more than 8 bytes"))
        }
        (address, length) => {
            Err(place.corrupt(format!("addresses of {address} bytes and lengths of {length}")))
        }
    }
}
