//! Element types and their usual names.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The type of one element after decoding: native byte order, no padding inside numbers.
///
/// [`Display`](fmt::Display) gives the name used on the command line and in JSON.
///
/// ```
/// use hyperslab_core::{DType, StructType};
/// assert_eq!(DType::Float32.to_string(), "float32");
/// assert_eq!(DType::FixedBytes(12).to_string(), "bytes[12]");
/// let point = StructType::packed([("a", DType::Int32), ("b", DType::Float64)]);
/// assert_eq!(DType::from(point).to_string(), "struct{a: int32, b: float64}");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the plain numbers say themselves what they are")]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float16,
    Float32,
    Float64,
    /// The 80-bit float of x87 in 16 bytes, as NumPy's `longdouble` holds it on x86-64.
    Float128,
    /// Two `float32`: real, imaginary.
    Complex64,
    /// Two `float64`: real, imaginary.
    Complex128,
    /// Ticks since 1970-01-01 as `int64`; the smallest `int64` is "not a time".
    DateTime(TimeUnit),
    /// A span of ticks as `int64`.
    Duration(TimeUnit),
    /// This many bytes, padded with zeros. They may be text.
    FixedBytes(usize),
    /// This many UTF-32 code points, padded with zeros.
    FixedText(usize),
    /// This many uninterpreted bytes.
    Opaque(Arc<OpaqueType>),
    /// Named integers.
    Enum(Arc<EnumType>),
    /// Named members.
    Struct(Arc<StructType>),
    /// A small array of fixed shape in every element.
    Array(Arc<DType>, Vec<usize>),
    /// Bytes of any length.
    Bytes,
    /// UTF-8 text of any length.
    String,
    /// Any number of elements of one type.
    List(Arc<DType>),
    /// A reference to an object or a region of one, held as the text of its path.
    Reference,
}

/// Opaque bytes: their number, and the tag that the file gives them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OpaqueType {
    /// Bytes in an element.
    pub size: usize,
    /// The writer's tag for the bytes.
    pub tag: String,
}

/// Integers with names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EnumType {
    /// The integer type that is stored.
    pub base: DType,
    /// Name and value of each member, in the file's order.
    pub members: Vec<(String, i128)>,
    /// Whether the order of the members has a meaning, as in "low, medium, high".
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ordered: bool,
}

impl EnumType {
    /// Names without a meaningful order.
    #[must_use]
    pub const fn new(base: DType, members: Vec<(String, i128)>) -> Self {
        Self { base, members, ordered: false }
    }

    /// Sets whether the order of the members has a meaning.
    #[must_use]
    pub fn with_ordered(self, ordered: bool) -> Self {
        Self { ordered, ..self }
    }

    /// The name of a value, or `None` if it has no name.
    #[must_use]
    pub fn name_of(&self, value: i128) -> Option<&str> {
        // Values usually equal the positions of their names.
        let place = usize::try_from(value).ok().and_then(|place| self.members.get(place));
        let found = match place {
            Some((name, own)) if *own == value => Some(name),
            _ => self.members.iter().find(|(_, own)| *own == value).map(|(name, _)| name),
        };
        found.map(String::as_str)
    }

    /// Returns true if each value equals the position of its name, counted from zero.
    #[must_use]
    pub fn is_numbered(&self) -> bool {
        self.members.iter().zip(0..).all(|((_, value), place)| *value == place)
    }
}

/// One member of a struct.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its byte offset in the element. Meaningless if the struct has a variable-length member.
    pub offset: usize,
    /// Its type.
    pub dtype: DType,
}

/// Named members at given offsets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StructType {
    /// The members, in the file's order.
    pub members: Vec<Member>,
    /// Bytes per element, including padding; 0 if a member has variable length.
    pub size: usize,
}

impl StructType {
    /// A struct whose members are packed without padding.
    pub fn packed<N: Into<String>>(members: impl IntoIterator<Item = (N, DType)>) -> Self {
        let mut size = Some(0);
        let members = members
            .into_iter()
            .map(|(name, dtype)| {
                let offset = size.unwrap_or(0);
                size = size.zip(dtype.size()).and_then(|(a, b)| usize::checked_add(a, b));
                Member { name: name.into(), offset, dtype }
            })
            .collect();
        Self { members, size: size.unwrap_or(0) }
    }
}

/// The length of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "units of time need no explanation")]
pub enum TimeUnit {
    Year,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    Picosecond,
    Femtosecond,
    Attosecond,
}

impl TimeUnit {
    /// NumPy's code of the unit: `Y M W D h m s ms us ns ps fs as`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Year => "Y",
            Self::Month => "M",
            Self::Week => "W",
            Self::Day => "D",
            Self::Hour => "h",
            Self::Minute => "m",
            Self::Second => "s",
            Self::Millisecond => "ms",
            Self::Microsecond => "us",
            Self::Nanosecond => "ns",
            Self::Picosecond => "ps",
            Self::Femtosecond => "fs",
            Self::Attosecond => "as",
        }
    }

    /// All units, longest first.
    pub const ALL: [Self; 13] = [
        Self::Year,
        Self::Month,
        Self::Week,
        Self::Day,
        Self::Hour,
        Self::Minute,
        Self::Second,
        Self::Millisecond,
        Self::Microsecond,
        Self::Nanosecond,
        Self::Picosecond,
        Self::Femtosecond,
        Self::Attosecond,
    ];

    /// The unit with this NumPy code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.code() == code)
    }
}

impl DType {
    /// Bytes per element; `None` if the length varies.
    #[must_use]
    pub fn size(&self) -> Option<usize> {
        Some(match self {
            Self::Bool | Self::Int8 | Self::UInt8 => 1,
            Self::Int16 | Self::UInt16 | Self::Float16 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 => 4,
            Self::Int64
            | Self::UInt64
            | Self::Float64
            | Self::Complex64
            | Self::DateTime(_)
            | Self::Duration(_) => 8,
            Self::Float128 | Self::Complex128 => 16,
            Self::FixedBytes(size) => *size,
            Self::FixedText(points) => points.checked_mul(4)?,
            Self::Opaque(opaque) => opaque.size,
            Self::Enum(named) => named.base.size()?,
            Self::Struct(fields) => {
                for member in &fields.members {
                    member.dtype.size()?;
                }
                fields.size
            }
            Self::Array(base, shape) => {
                shape.iter().try_fold(base.size()?, |size, extent| size.checked_mul(*extent))?
            }
            Self::Bytes | Self::String | Self::List(_) | Self::Reference => return None,
        })
    }

    /// Returns true if elements are references, or contain some.
    #[must_use]
    pub fn has_references(&self) -> bool {
        match self {
            Self::Reference => true,
            Self::Struct(fields) => fields.members.iter().any(|member| member.dtype.has_references()),
            Self::Array(base, _) | Self::List(base) => base.has_references(),
            _ => false,
        }
    }

    /// Returns true if every element has the same number of bytes.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.size().is_some()
    }

    /// The number of bytes that swap together when the byte order changes: the size of the numbers that elements consist of (4
    /// for `complex64`, 1 for bytes). `None` for a struct, whose members differ.
    #[must_use]
    pub fn swap_unit(&self) -> Option<usize> {
        match self {
            Self::Complex64 | Self::FixedText(_) => Some(4),
            Self::Complex128 => Some(8),
            Self::FixedBytes(_) | Self::Opaque(_) => Some(1),
            Self::Enum(named) => named.base.swap_unit(),
            Self::Array(base, _) => base.swap_unit(),
            Self::Struct(_) => None,
            number => number.size(),
        }
    }

    /// Returns true for a number that can be added and compared. Bool and enum are not numeric.
    #[must_use]
    pub const fn is_numeric(&self) -> bool {
        self.is_integer() || self.is_float()
    }

    /// Returns true for a signed or unsigned integer.
    #[must_use]
    pub const fn is_integer(&self) -> bool {
        matches!(
            self,
            Self::Int8
                | Self::Int16
                | Self::Int32
                | Self::Int64
                | Self::UInt8
                | Self::UInt16
                | Self::UInt32
                | Self::UInt64
        )
    }

    /// Returns true for a real floating-point number.
    #[must_use]
    pub const fn is_float(&self) -> bool {
        matches!(self, Self::Float16 | Self::Float32 | Self::Float64 | Self::Float128)
    }

    /// The integer type of this width and sign.
    #[must_use]
    pub const fn integer(size: usize, signed: bool) -> Option<Self> {
        Some(match (size, signed) {
            (1, true) => Self::Int8,
            (2, true) => Self::Int16,
            (4, true) => Self::Int32,
            (8, true) => Self::Int64,
            (1, false) => Self::UInt8,
            (2, false) => Self::UInt16,
            (4, false) => Self::UInt32,
            (8, false) => Self::UInt64,
            _ => return None,
        })
    }
}

impl From<StructType> for DType {
    fn from(fields: StructType) -> Self {
        Self::Struct(Arc::new(fields))
    }
}

impl From<EnumType> for DType {
    fn from(named: EnumType) -> Self {
        Self::Enum(Arc::new(named))
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Bool => "bool",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::UInt8 => "uint8",
            Self::UInt16 => "uint16",
            Self::UInt32 => "uint32",
            Self::UInt64 => "uint64",
            Self::Float16 => "float16",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Float128 => "float128",
            Self::Complex64 => "complex64",
            Self::Complex128 => "complex128",
            Self::Bytes => "bytes",
            Self::String => "string",
            Self::Reference => "reference",
            Self::Enum(_) => "enum",
            Self::DateTime(unit) => return write!(f, "datetime64[{}]", unit.code()),
            Self::Duration(unit) => return write!(f, "timedelta64[{}]", unit.code()),
            Self::FixedBytes(size) => return write!(f, "bytes[{size}]"),
            Self::FixedText(points) => return write!(f, "string[{points}]"),
            Self::Opaque(opaque) => return write!(f, "opaque[{}]", opaque.size),
            Self::List(base) => return write!(f, "list<{base}>"),
            Self::Array(base, shape) => {
                write!(f, "{base}(")?;
                for (i, extent) in shape.iter().enumerate() {
                    write!(f, "{}{extent}", if i > 0 { ", " } else { "" })?;
                }
                return f.write_str(")");
            }
            Self::Struct(fields) => {
                f.write_str("struct{")?;
                for (i, member) in fields.members.iter().enumerate() {
                    write!(f, "{}{}: {}", if i > 0 { ", " } else { "" }, member.name, member.dtype)?;
                }
                return f.write_str("}");
            }
        };
        f.write_str(name)
    }
}
