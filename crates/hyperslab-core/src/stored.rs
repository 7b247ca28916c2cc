//! A chunk's stored bytes in terms that all formats share, so that they can be copied from one store to
//! another as they are; and what a store keeps of its nodes beyond their content.

mod nodes;
mod types;

pub use nodes::{
    CreationOrder, FillState, Link, LinkTarget, ObjectId, StoredArray, StoredAttribute, StoredFill,
    StoredFilter, StoredGroup, StoredLayout, StoredNamedType, StoredObject, TypeName, VirtualSource,
};
pub use types::{ByteOrder, FloatLayout, IntegerLayout, ReferenceKind, StoredClass, StoredType, TextPadding};

use crate::Extents;

/// How stored bytes become the elements of a chunk. Two formats that say the same of a chunk store the same bytes, or
/// bytes that decode to the same elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredForm {
    /// Cells of the decoded chunk per dimension. They are packed in C order, little-endian.
    pub shape: Extents,
    /// The transforms, in the order of writing.
    pub steps: Vec<StoredStep>,
}

/// One transform whose result is the same bytes in every format that has it. Choices of the encoder (a level, a
/// block size) is not part of it: a decoder does not need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoredStep {
    /// All first bytes of elements of this size, then all second bytes, and so on; what is left over stays.
    Shuffle(usize),
    /// A zlib stream (RFC 1950).
    Zlib,
    /// A gzip member (RFC 1952).
    Gzip,
    /// A Zstandard frame.
    Zstd,
    /// A bzip2 stream.
    Bzip2,
    /// A Blosc 1 buffer, whose header says the rest.
    Blosc,
    /// The bytes, then their CRC-32C, little-endian.
    Crc32c,
    /// Elements as the array's [stored type](StoredArray::dtype) says, not as little-endian elements of its type. Comes
    /// first, and means the same only where both arrays have the same stored type.
    Typed,
    /// A filter that other formats do not have, by its number in the format. Means the same only where both arrays have the
    /// same [stored filters](StoredArray::filters).
    Numbered(u32),
    /// The bytes, then their Fletcher checksum as HDF5 has it, little-endian.
    Fletcher32,
}
