//! Format-independent descriptions of stored bytes, so that they can be copied from one store to another unchanged; and format
//! details of nodes beyond their content.

mod nodes;
mod types;

pub use nodes::{
    CreationOrder, FillState, LabelOrder, Link, LinkTarget, ObjectId, StoredArray, StoredAttribute,
    StoredFill, StoredFilter, StoredGroup, StoredLayout, StoredNamedType, StoredObject, TypeName,
    VirtualSource,
};
pub use types::{ByteOrder, FloatLayout, IntegerLayout, ReferenceKind, StoredClass, StoredType, TextPadding};

use crate::Extents;

/// How stored bytes become the elements of a chunk. Two formats that describe a chunk in the same way store the same bytes, or
/// bytes that decode to the same elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredForm {
    /// The shape of the decoded chunk. Cells are packed in C order, little-endian.
    pub shape: Extents,
    /// The transforms, in writing order.
    pub steps: Vec<StoredStep>,
}

/// One transform that gives the same bytes in every format that has it. Encoder settings (a level, a block size) are not part of
/// it, because a decoder does not need them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoredStep {
    /// All first bytes of elements of this size, then all second bytes, and so on; a remainder is left as is.
    Shuffle(usize),
    /// A zlib stream (RFC 1950).
    Zlib,
    /// A gzip member (RFC 1952).
    Gzip,
    /// A Zstandard frame.
    Zstd,
    /// A bzip2 stream.
    Bzip2,
    /// A Blosc 1 buffer, whose header describes the rest.
    Blosc,
    /// The bytes, then their CRC-32C, little-endian.
    Crc32c,
    /// Elements in the array's [stored type](StoredArray::dtype), not as little-endian elements of its type. Comes first, and is
    /// only comparable between arrays with the same stored type.
    Typed,
    /// A filter that other formats do not have, by its number in the format. Only comparable between arrays with the same [stored
    /// filters](StoredArray::filters).
    Numbered(u32),
    /// The bytes, then their Fletcher checksum as in HDF5, little-endian.
    Fletcher32,
}
