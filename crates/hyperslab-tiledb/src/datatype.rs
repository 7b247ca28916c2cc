//! TileDB's element types, by code, and the corresponding types of the core.

use std::sync::Arc;

use hyperslab_core::{DType, Place, Result, TimeUnit};

/// The number of values per cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellValues {
    /// Varies from cell to cell.
    Variable,
    /// Constant.
    Fixed(u32),
}

impl CellValues {
    /// The code in files for a variable number of values.
    pub const VARIABLE: u32 = u32::MAX;

    /// The number with this code.
    #[must_use]
    pub const fn from_code(code: u32) -> Self {
        if code == Self::VARIABLE { Self::Variable } else { Self::Fixed(code) }
    }

    /// The code in files.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::Variable => Self::VARIABLE,
            Self::Fixed(count) => count,
        }
    }
}

/// A datatype of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the format")]
pub enum Datatype {
    Int32,
    Int64,
    Float32,
    Float64,
    Char,
    Int8,
    UInt8,
    Int16,
    UInt16,
    UInt32,
    UInt64,
    StringAscii,
    StringUtf8,
    StringUtf16,
    StringUtf32,
    StringUcs2,
    StringUcs4,
    Any,
    /// Codes 18 to 30, year to attosecond.
    DateTime(TimeUnit),
    /// Codes 31 to 39, hour to attosecond.
    Time(TimeUnit),
    Blob,
    Bool,
    GeomWkb,
    GeomWkt,
}

/// The numeric type of values, for comparing, adding and filtering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Number {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

/// Codes 0 to 17.
const LOW: [Datatype; 18] = [
    Datatype::Int32,
    Datatype::Int64,
    Datatype::Float32,
    Datatype::Float64,
    Datatype::Char,
    Datatype::Int8,
    Datatype::UInt8,
    Datatype::Int16,
    Datatype::UInt16,
    Datatype::UInt32,
    Datatype::UInt64,
    Datatype::StringAscii,
    Datatype::StringUtf8,
    Datatype::StringUtf16,
    Datatype::StringUtf32,
    Datatype::StringUcs2,
    Datatype::StringUcs4,
    Datatype::Any,
];

/// Codes 40 to 43.
const HIGH: [Datatype; 4] = [Datatype::Blob, Datatype::Bool, Datatype::GeomWkb, Datatype::GeomWkt];

impl Datatype {
    /// The datatype with this code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        let index = usize::from(code);
        match code {
            0..=17 => LOW.get(index).copied(),
            18..=30 => TimeUnit::ALL.get(index - 18).map(|unit| Self::DateTime(*unit)),
            31..=39 => TimeUnit::ALL.get(index - 31 + 4).map(|unit| Self::Time(*unit)),
            40..=43 => HIGH.get(index - 40).copied(),
            _ => None,
        }
    }

    /// Like [`from_code`](Self::from_code), but an unknown code is an error.
    pub(crate) fn parse(code: u8, place: Place<'_>) -> Result<Self> {
        Self::from_code(code).ok_or_else(|| place.corrupt(format!("datatype {code}, expected at most 43")))
    }

    /// The code in files.
    #[must_use]
    pub fn code(self) -> u8 {
        let unit_index = |unit| TimeUnit::ALL.iter().position(|own| *own == unit).unwrap_or(0);
        let position = |of: &[Self]| of.iter().position(|own| *own == self);
        let code = match self {
            Self::DateTime(unit) => 18 + unit_index(unit),
            Self::Time(unit) => 31 + unit_index(unit).saturating_sub(4),
            _ => position(&LOW).or_else(|| position(&HIGH).map(|index| index + 40)).unwrap_or(17),
        };
        code as u8
    }

    /// Bytes of one value.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Char
            | Self::Int8
            | Self::UInt8
            | Self::StringAscii
            | Self::StringUtf8
            | Self::Any
            | Self::Blob
            | Self::Bool
            | Self::GeomWkb
            | Self::GeomWkt => 1,
            Self::Int16 | Self::UInt16 | Self::StringUtf16 | Self::StringUcs2 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 | Self::StringUtf32 | Self::StringUcs4 => 4,
            Self::Int64 | Self::UInt64 | Self::Float64 | Self::DateTime(_) | Self::Time(_) => 8,
        }
    }

    /// The numeric type of a value. Text and blobs count as bytes; `char` is signed, as in the library on x86.
    #[must_use]
    pub const fn number(self) -> Number {
        match self {
            Self::Int8 | Self::Char => Number::I8,
            Self::UInt8
            | Self::StringAscii
            | Self::StringUtf8
            | Self::Any
            | Self::Blob
            | Self::Bool
            | Self::GeomWkb
            | Self::GeomWkt => Number::U8,
            Self::Int16 => Number::I16,
            Self::UInt16 | Self::StringUtf16 | Self::StringUcs2 => Number::U16,
            Self::Int32 => Number::I32,
            Self::UInt32 | Self::StringUtf32 | Self::StringUcs4 => Number::U32,
            Self::Int64 | Self::DateTime(_) | Self::Time(_) => Number::I64,
            Self::UInt64 => Number::U64,
            Self::Float32 => Number::F32,
            Self::Float64 => Number::F64,
        }
    }

    /// Returns true if it is a date or a time.
    #[must_use]
    pub const fn is_time(self) -> bool {
        matches!(self, Self::DateTime(_) | Self::Time(_))
    }

    /// Returns true if it is text of one-byte units. RLE and dictionary filters handle it specially if its length
    /// varies.
    #[must_use]
    pub const fn is_narrow_text(self) -> bool {
        matches!(self, Self::StringAscii | Self::StringUtf8)
    }

    /// Returns true if a cell of this type holds text or bytes rather than numbers.
    #[must_use]
    pub const fn is_bytes(self) -> bool {
        matches!(
            self,
            Self::Char
                | Self::StringAscii
                | Self::StringUtf8
                | Self::Any
                | Self::Blob
                | Self::GeomWkb
                | Self::GeomWkt
        )
    }

    /// The type of one value.
    fn value_dtype(self) -> DType {
        match self {
            Self::Int8 => DType::Int8,
            Self::Int16 => DType::Int16,
            Self::Int32 => DType::Int32,
            Self::Int64 => DType::Int64,
            Self::UInt8 => DType::UInt8,
            Self::UInt16 | Self::StringUtf16 | Self::StringUcs2 => DType::UInt16,
            Self::UInt32 => DType::UInt32,
            Self::UInt64 => DType::UInt64,
            Self::Float32 => DType::Float32,
            Self::Float64 => DType::Float64,
            Self::Bool => DType::Bool,
            Self::DateTime(unit) => DType::DateTime(unit),
            Self::Time(unit) => DType::Duration(unit),
            Self::StringUtf32 | Self::StringUcs4 => DType::FixedText(1),
            Self::Char
            | Self::StringAscii
            | Self::StringUtf8
            | Self::Any
            | Self::Blob
            | Self::GeomWkb
            | Self::GeomWkt => DType::FixedBytes(1),
        }
    }

    /// The type of a cell with this many values. Two floats are a complex number, as in the Python package.
    #[must_use]
    pub fn dtype(self, values: CellValues) -> DType {
        match (self, values) {
            (Self::StringAscii | Self::StringUtf8 | Self::GeomWkt, CellValues::Variable) => DType::String,
            (bytes, CellValues::Variable) if bytes.is_bytes() => DType::Bytes,
            (_, CellValues::Variable) => DType::List(Arc::new(self.value_dtype())),
            (bytes, CellValues::Fixed(count)) if bytes.is_bytes() => DType::FixedBytes(count as usize),
            (Self::StringUtf32 | Self::StringUcs4, CellValues::Fixed(count)) => {
                DType::FixedText(count as usize)
            }
            (Self::Float32, CellValues::Fixed(2)) => DType::Complex64,
            (Self::Float64, CellValues::Fixed(2)) => DType::Complex128,
            (_, CellValues::Fixed(1)) => self.value_dtype(),
            (_, CellValues::Fixed(count)) => DType::Array(Arc::new(self.value_dtype()), vec![count as usize]),
        }
    }

    /// The library's fill value for cells that were never written, if the schema gives none.
    #[must_use]
    pub fn default_fill(self) -> Vec<u8> {
        match self.number() {
            _ if matches!(self, Self::Char) => vec![0x80],
            _ if self.is_bytes() || matches!(self, Self::Bool) => vec![0],
            _ if matches!(
                self,
                Self::StringUtf16 | Self::StringUcs2 | Self::StringUtf32 | Self::StringUcs4
            ) =>
            {
                vec![0; self.size()]
            }
            Number::I8 => i8::MIN.to_le_bytes().into(),
            Number::I16 => i16::MIN.to_le_bytes().into(),
            Number::I32 => i32::MIN.to_le_bytes().into(),
            Number::I64 => i64::MIN.to_le_bytes().into(),
            Number::U8 | Number::U16 | Number::U32 | Number::U64 => vec![0xff; self.size()],
            Number::F32 => 0x7fc0_0000_u32.to_le_bytes().into(),
            Number::F64 => 0x7ff8_0000_0000_0000_u64.to_le_bytes().into(),
        }
    }
}

impl Number {
    /// The size of one value in bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// The smallest and the largest value of an integer type.
    pub(crate) const fn limits(self) -> (i128, i128) {
        let bits = 8 * self.size() as u32;
        if self.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
    }

    /// Returns true if it is a float.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Returns true if it is a signed integer.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_match_the_format() {
        for code in 0..=43 {
            assert_eq!(Datatype::from_code(code).map(Datatype::code), Some(code));
        }
        assert_eq!(Datatype::from_code(44), None);
        assert_eq!(Datatype::from_code(21), Some(Datatype::DateTime(TimeUnit::Day)));
        assert_eq!(Datatype::from_code(31), Some(Datatype::Time(TimeUnit::Hour)));
    }

    #[test]
    fn two_floats_are_complex() {
        assert_eq!(Datatype::Float32.dtype(CellValues::Fixed(2)), DType::Complex64);
        assert_eq!(Datatype::Int32.dtype(CellValues::Fixed(3)).to_string(), "int32(3)");
        assert_eq!(Datatype::StringUtf8.dtype(CellValues::Variable), DType::String);
    }
}
