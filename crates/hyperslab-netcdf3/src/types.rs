//! The element types of the format, and the default fill values.

use hyperslab_core::{DType, Elements, Fill};

/// A type, by its number in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum NcType {
    Byte = 1,
    Char = 2,
    Short = 3,
    Int = 4,
    Float = 5,
    Double = 6,
    UByte = 7,
    UShort = 8,
    UInt = 9,
    Int64 = 10,
    UInt64 = 11,
}

/// All types, by number.
const ALL: [NcType; 11] = [
    NcType::Byte,
    NcType::Char,
    NcType::Short,
    NcType::Int,
    NcType::Float,
    NcType::Double,
    NcType::UByte,
    NcType::UShort,
    NcType::UInt,
    NcType::Int64,
    NcType::UInt64,
];

impl NcType {
    /// The type with this number.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        ALL.into_iter().find(|own| *own as u32 == number)
    }

    /// The file type for elements of a variable; `None` if there is none.
    pub(crate) fn of(dtype: &DType) -> Option<Self> {
        ALL.into_iter().find(|own| own.dtype() == *dtype)
    }

    /// Returns true for types that only CDF-5 has.
    pub(crate) fn is_extended(self) -> bool {
        self as u32 > Self::Double as u32
    }

    /// Bytes per element.
    pub(crate) const fn size(self) -> u64 {
        match self {
            Self::Byte | Self::Char | Self::UByte => 1,
            Self::Short | Self::UShort => 2,
            Self::Int | Self::Float | Self::UInt => 4,
            Self::Double | Self::Int64 | Self::UInt64 => 8,
        }
    }

    /// The element type in memory. Characters are single bytes, as in NetCDF-4.
    pub(crate) const fn dtype(self) -> DType {
        match self {
            Self::Byte => DType::Int8,
            Self::Char => DType::FixedBytes(1),
            Self::Short => DType::Int16,
            Self::Int => DType::Int32,
            Self::Float => DType::Float32,
            Self::Double => DType::Float64,
            Self::UByte => DType::UInt8,
            Self::UShort => DType::UInt16,
            Self::UInt => DType::UInt32,
            Self::Int64 => DType::Int64,
            Self::UInt64 => DType::UInt64,
        }
    }

    /// The format's name for it, for messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Byte => "byte",
            Self::Char => "char",
            Self::Short => "short",
            Self::Int => "int",
            Self::Float => "float",
            Self::Double => "double",
            Self::UByte => "ubyte",
            Self::UShort => "ushort",
            Self::UInt => "uint",
            Self::Int64 => "int64",
            Self::UInt64 => "uint64",
        }
    }

    /// The library's value for cells that were never written, unless `_FillValue` overrides it.
    pub(crate) fn default_fill(self) -> Fill {
        const FLOAT: f32 = 9.969_21e36;
        let bytes = match self {
            Self::Char => return Fill::Zero,
            Self::Byte => (-127_i8).to_ne_bytes().to_vec(),
            Self::Short => (-32767_i16).to_ne_bytes().to_vec(),
            Self::Int => (-2_147_483_647_i32).to_ne_bytes().to_vec(),
            Self::Float => FLOAT.to_ne_bytes().to_vec(),
            Self::Double => f64::from(FLOAT).to_ne_bytes().to_vec(),
            Self::UByte => vec![u8::MAX],
            Self::UShort => u16::MAX.to_ne_bytes().to_vec(),
            Self::UInt => u32::MAX.to_ne_bytes().to_vec(),
            Self::Int64 => (i64::MIN + 2).to_ne_bytes().to_vec(),
            Self::UInt64 => (u64::MAX - 1).to_ne_bytes().to_vec(),
        };
        Fill::Element(Elements::fixed(bytes))
    }
}

/// The version of a file: the width of its counts and offsets, and its types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    /// CDF-1: 32-bit offsets.
    Classic = 1,
    /// CDF-2: 64-bit offsets.
    Offset64 = 2,
    /// CDF-5: 64-bit counts as well, and more types.
    Data64 = 5,
}

impl Version {
    /// The version given by a file's fourth byte.
    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Classic,
            2 => Self::Offset64,
            5 => Self::Data64,
            _ => return None,
        })
    }

    /// The variant name for conversions.
    pub(crate) const fn variant(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Offset64 => "64-bit-offset",
            Self::Data64 => "cdf5",
        }
    }

    /// The version for a variant name.
    pub(crate) fn from_variant(name: &str) -> Option<Self> {
        [Self::Classic, Self::Offset64, Self::Data64].into_iter().find(|own| own.variant() == name)
    }
}
