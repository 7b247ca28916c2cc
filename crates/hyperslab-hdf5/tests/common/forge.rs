//! Builds files structure by structure, for contents that no library writes.

use hyperslab_codec::checksum::lookup3;

/// The undefined address.
pub(crate) const NONE: u64 = u64::MAX;

/// A file with addresses and lengths of 8 bytes. Its superblock has version 2; object headers have version 1, which have
/// no checksums.
pub(crate) struct Forge {
    bytes: Vec<u8>,
}

impl Forge {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; 48] }
    }

    /// Appends a structure. Returns its address.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let address = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        address
    }

    /// Reserves space for a structure that is written later.
    pub(crate) fn reserve(&mut self, length: usize) -> u64 {
        self.put(&vec![0; length])
    }

    /// Writes a structure to reserved space.
    pub(crate) fn write(&mut self, address: u64, bytes: &[u8]) {
        self.bytes[address as usize..address as usize + bytes.len()].copy_from_slice(bytes);
    }

    /// An object header with these messages.
    pub(crate) fn header(&mut self, messages: &[(u16, Vec<u8>)]) -> u64 {
        let header = header(messages);
        self.put(&header)
    }

    /// A group with these hard links in its header.
    pub(crate) fn group(&mut self, links: &[(&str, u64)]) -> u64 {
        let mut messages = vec![(2, link_info(NONE, NONE))];
        messages.extend(links.iter().map(|(name, address)| (6, link(name, *address))));
        self.header(&messages)
    }

    /// Returns the file, with the root group's header at this address.
    pub(crate) fn finish(mut self, root: u64) -> Vec<u8> {
        let mut superblock = b"\x89HDF\r\n\x1a\n\x02\x08\x08\x00".to_vec();
        for address in [0, NONE, self.bytes.len() as u64, root] {
            superblock.extend(address.to_le_bytes());
        }
        let superblock = summed(superblock);
        self.bytes[..48].copy_from_slice(&superblock);
        self.bytes
    }
}

/// The bytes followed by their checksum.
pub(crate) fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = lookup3(&bytes, 0);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// A version 1 object header.
pub(crate) fn header(messages: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let block = messages_of(messages);
    let mut out = vec![1, 0];
    out.extend((messages.len() as u16).to_le_bytes());
    out.extend(1_u32.to_le_bytes());
    out.extend((block.len() as u32).to_le_bytes());
    out.extend([0; 4]);
    out.extend(block);
    out
}

/// The messages of a version 1 object header, or of a continuation of one.
pub(crate) fn messages_of(messages: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (kind, body) in messages {
        let size = body.len().next_multiple_of(8);
        out.extend(kind.to_le_bytes());
        out.extend((size as u16).to_le_bytes());
        out.extend([0; 4]);
        out.extend(body);
        out.resize(out.len() + size - body.len(), 0);
    }
    out
}

/// A link info message, with the address of the heap and of the tree of names.
pub(crate) fn link_info(heap: u64, names: u64) -> Vec<u8> {
    [&[0, 0][..], &heap.to_le_bytes(), &names.to_le_bytes()].concat()
}

/// A link message of a hard link.
pub(crate) fn link(name: &str, address: u64) -> Vec<u8> {
    let length = (name.len() as u16).to_le_bytes();
    [&[1, 1][..], &length, name.as_bytes(), &address.to_le_bytes()].concat()
}

/// A dataspace message.
pub(crate) fn space(shape: &[u64]) -> Vec<u8> {
    let mut out = vec![1, shape.len() as u8, 0, 0, 0, 0, 0, 0];
    out.extend(shape.iter().flat_map(|extent| extent.to_le_bytes()));
    out
}

/// A datatype: class and version, class bits, size, properties.
pub(crate) fn dtype(class: u8, bits: u32, size: u32, properties: &[u8]) -> Vec<u8> {
    [&[class][..], &bits.to_le_bytes()[..3], &size.to_le_bytes(), properties].concat()
}

/// Unsigned integers of this many bytes.
pub(crate) fn unsigned(size: u32) -> Vec<u8> {
    let bits = (8 * size as u16).to_le_bytes();
    dtype(0x10, 0, size, &[0, 0, bits[0], bits[1]])
}

/// Text of variable length.
pub(crate) fn text() -> Vec<u8> {
    dtype(0x19, 1, 16, &unsigned(1))
}

/// An attribute message.
pub(crate) fn attribute(name: &str, dtype: &[u8], space: &[u8], data: &[u8]) -> Vec<u8> {
    let padded = |bytes: &[u8]| [bytes, &vec![0; bytes.len().next_multiple_of(8) - bytes.len()]].concat();
    let name = [name.as_bytes(), &[0]].concat();
    let mut out = vec![1, 0];
    for part in [&name[..], dtype, space] {
        out.extend((part.len() as u16).to_le_bytes());
    }
    for part in [&name[..], dtype, space] {
        out.extend(padded(part));
    }
    out.extend(data);
    out
}
