//! Stored element types: byte order, width, padding, names.

/// The stored type of an element, in all the detail that a format keeps.
///
/// A [`DType`](crate::DType) describes an element in memory; a stored type describes its encoding. Several stored types may read
/// as the same [`DType`](crate::DType). A target that has the same stored types preserves them.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredType {
    /// The class of the type.
    pub class: StoredClass,
    /// Bytes of a stored element.
    pub size: usize,
}

/// How the bytes of a number are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least significant byte first.
    Little,
    /// The most significant byte first.
    Big,
    /// Pairs of bytes, each little-endian, the most significant pair first.
    Vax,
}

/// The padding of a fixed-length string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPadding {
    /// The text ends at the first NUL.
    NulTerminated,
    /// NULs.
    Nul,
    /// Spaces.
    Space,
}

/// The target of a reference, and how it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceKind {
    /// An object.
    Object,
    /// A region of an array.
    Region,
    /// The revised form of HDF5 1.12, which describes itself.
    Revised,
}

/// The bit positions of the parts of a float.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatLayout {
    /// The order of the bytes.
    pub order: ByteOrder,
    /// 0: no normalisation, 1: the leading bit is stored and set, 2: it is implied.
    pub norm: u8,
    /// The bit position of the sign.
    pub sign: u8,
    /// Bit position and width of the exponent.
    pub exponent: (u8, u8),
    /// Bit position and width of the mantissa.
    pub mantissa: (u8, u8),
    /// The exponent bias.
    pub bias: u32,
    /// The first significant bit.
    pub offset: u16,
    /// The number of significant bits.
    pub precision: u16,
    /// The contents of unused bits: flags of the format.
    pub pad: u8,
}

/// The bit position of an integer in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntegerLayout {
    /// The order of the bytes.
    pub order: ByteOrder,
    /// Whether it is signed.
    pub signed: bool,
    /// The first significant bit.
    pub offset: u16,
    /// The number of significant bits.
    pub precision: u16,
    /// The contents of unused bits: flags of the format.
    pub pad: u8,
}

/// The class of a stored type, with its properties.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredClass {
    /// An integer.
    Integer(IntegerLayout),
    /// A float.
    Float(FloatLayout),
    /// A time, as a count whose meaning only the writer knows.
    Time {
        /// The order of the bytes.
        order: ByteOrder,
        /// The number of significant bits.
        precision: u16,
    },
    /// Text of a fixed size.
    String {
        /// What follows the text.
        padding: TextPadding,
        /// UTF-8 if true, ASCII otherwise.
        utf8: bool,
    },
    /// Bits without an arithmetic meaning.
    Bitfield(IntegerLayout),
    /// Uninterpreted bytes.
    Opaque {
        /// The writer's tag for them.
        tag: String,
    },
    /// Named members.
    Compound {
        /// Name, offset and type of each.
        members: Vec<(String, usize, StoredType)>,
    },
    /// A reference to an object or a region of one.
    Reference(ReferenceKind),
    /// Named integers.
    Enum {
        /// The integer that is stored.
        base: Box<StoredType>,
        /// Name and stored value of each.
        members: Vec<(String, Vec<u8>)>,
    },
    /// Any number of elements.
    Sequence(Box<StoredType>),
    /// Text of any length.
    Text {
        /// The declared padding.
        padding: TextPadding,
        /// UTF-8 if true, ASCII otherwise.
        utf8: bool,
    },
    /// A small array in each element.
    Array {
        /// Its extents.
        shape: Vec<usize>,
        /// The type of its elements.
        base: Box<StoredType>,
    },
    /// A complex number of two such floats.
    Complex(Box<StoredType>),
}
