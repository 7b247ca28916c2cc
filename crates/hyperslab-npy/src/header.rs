//! The header of a `.npy` file: magic, version, a Python dict of type, order and shape, padded to 64 bytes.

use std::fmt::Write as _;
use std::ops::Range;

use hyperslab_core::{Blob, DType, Error, Member, OpaqueType, Place, Result, StructType, TimeUnit};

use crate::literal::Literal;

/// The magic bytes of a file.
pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// The maximum length of a header.
const LONGEST: u64 = 1 << 20;
/// NumPy's own limit on dimensions, of arrays and of the fields of a struct.
const MOST_AXES: usize = 64;

/// A parsed header.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Header {
    pub(crate) dtype: DType,
    /// Whether the elements have the opposite byte order of the machine.
    pub(crate) swapped: bool,
    /// Fortran order: the first axis varies fastest.
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<u64>,
}

impl Header {
    /// Reads the header at the start of `range`, and its length in bytes.
    pub(crate) fn read(blob: &dyn Blob, range: Range<u64>, place: Place<'_>) -> Result<(Self, u64)> {
        let available = range.end.saturating_sub(range.start);
        let head = blob.read_at(range.start, available.min(12))?;
        if !head.starts_with(MAGIC) || head.len() < 10 {
            return Err(place.corrupt("it does not start with \\x93NUMPY"));
        }
        // Version 1 has a 2-byte length, versions 2 and 3 a 4-byte length.
        let (start, length) = match head[6] {
            1 => (10, u64::from(u16::from_le_bytes([head[8], head[9]]))),
            2 | 3 if head.len() == 12 => {
                (12, u64::from(u32::from_le_bytes([head[8], head[9], head[10], head[11]])))
            }
            other => return Err(place.corrupt(format!("version {other}, expected 1 to 3"))),
        };
        if length > LONGEST || start + length > available {
            return Err(place.corrupt(format!("a header of {length} bytes, but only {available} are left")));
        }
        let text = blob.read_at(range.start + start, length)?;
        // Version 3 is UTF-8; earlier versions are Latin-1, which differs only in field names.
        let text = match head[6] {
            3 => String::from_utf8_lossy(&text).into_owned(),
            _ => text.iter().map(|byte| char::from(*byte)).collect(),
        };
        Ok((Self::parse(&text, place)?, start + length))
    }

    fn parse(text: &str, place: Place<'_>) -> Result<Self> {
        let wrong = |why: &str| place.corrupt(why);
        let Literal::Dict(entries) = Literal::parse(text).map_err(|why| wrong(&why))? else {
            return Err(wrong("the header is not a dict"));
        };
        let entry = |key: &str| {
            let found = entries.iter().find(|(own, _)| own == key).map(|(_, value)| value);
            found.ok_or_else(|| wrong(&format!("no {key:?} in the header")))
        };
        let fortran = *entry("fortran_order")? == Literal::Bool(true);
        let Literal::Sequence(shape) = entry("shape")? else { return Err(wrong("the shape is not a tuple")) };
        let shape = shape
            .iter()
            .map(|extent| match extent {
                Literal::Number(extent) => u64::try_from(*extent).ok(),
                _ => None,
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| wrong("the shape does not consist of whole numbers"))?;
        check_rank(&shape, place)?;
        let (dtype, order) = dtype_of(entry("descr")?, place)?;
        let swapped = match order {
            Order::Little => cfg!(target_endian = "big"),
            Order::Big => cfg!(target_endian = "little"),
            Order::Any => false,
        };
        Ok(Self { dtype, swapped, fortran, shape })
    }

    /// The header's bytes, padded so that the data start at a multiple of 64.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        if self.shape.len() > MOST_AXES {
            return Err(Error::invalid(format!(
                "NumPy files cannot hold {} dimensions, at most {MOST_AXES}",
                self.shape.len()
            )));
        }
        let mut dict = String::from("{'descr': ");
        dict.push_str(&descr(&self.dtype)?);
        let order = if self.fortran { "True" } else { "False" };
        let _ = write!(dict, ", 'fortran_order': {order}, 'shape': (");
        for extent in &self.shape {
            let _ = write!(dict, "{extent}, ");
        }
        // Python writes `(3,)` and `(3, 4)`.
        if self.shape.len() == 1 {
            dict.pop();
        } else if !self.shape.is_empty() {
            dict.truncate(dict.len() - 2);
        }
        dict.push_str("), }");
        let wide = dict.len() + 75 > usize::from(u16::MAX);
        let before = if wide { 12 } else { 10 };
        let length = (before + dict.len() + 1).next_multiple_of(64) - before;
        let mut header = MAGIC.to_vec();
        if wide || !dict.is_ascii() {
            // Field names beyond ASCII need version 3.
            let version = if dict.is_ascii() { 2 } else { 3 };
            let length = (12 + dict.len() + 1).next_multiple_of(64) - 12;
            header.extend_from_slice(&[version, 0]);
            header.extend_from_slice(&(length as u32).to_le_bytes());
            header.extend_from_slice(dict.as_bytes());
            header.resize(12 + length - 1, b' ');
        } else {
            header.extend_from_slice(&[1, 0]);
            header.extend_from_slice(&(length as u16).to_le_bytes());
            header.extend_from_slice(dict.as_bytes());
            header.resize(10 + length - 1, b' ');
        }
        header.push(b'\n');
        Ok(header)
    }
}

/// The header of a file with elements in C order and native byte order. The elements follow it.
///
/// # Errors
///
/// [`Unsupported`](Error::Unsupported) for a type that NumPy's files cannot hold.
pub fn encode_header(dtype: &DType, shape: &[u64]) -> Result<Vec<u8>> {
    Header { dtype: dtype.clone(), swapped: false, fortran: false, shape: shape.to_vec() }.encode()
}

/// Refuses more dimensions than NumPy has: walks over them are recursive.
fn check_rank<T>(shape: &[T], place: Place<'_>) -> Result<()> {
    if shape.len() > MOST_AXES {
        return Err(place.corrupt(format!("{} dimensions, NumPy has at most {MOST_AXES}", shape.len())));
    }
    Ok(())
}

/// The byte order of a type's numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    Little,
    Big,
    /// Single bytes have no byte order.
    Any,
}

impl Order {
    /// The common order of two members.
    fn and(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, order) | (order, Self::Any) => Some(order),
            (a, b) => (a == b).then_some(a),
        }
    }
}

fn dtype_of(descr: &Literal, place: Place<'_>) -> Result<(DType, Order)> {
    match descr {
        Literal::Text(text) => simple_dtype(text, place),
        Literal::Sequence(members) => struct_dtype(members, place),
        _ => Err(place.corrupt("a type is neither text nor a list")),
    }
}

fn simple_dtype(text: &str, place: Place<'_>) -> Result<(DType, Order)> {
    let unsupported = || place.unsupported(format!("NumPy's type {text:?}"));
    let (order, kind) = match text.split_at_checked(1) {
        Some(("<", kind)) => (Order::Little, kind),
        Some((">", kind)) => (Order::Big, kind),
        Some(("|", kind)) => (Order::Any, kind),
        Some(("=", kind)) => (if cfg!(target_endian = "little") { Order::Little } else { Order::Big }, kind),
        _ => (Order::Any, text),
    };
    let size = || kind[1..].parse::<usize>().map_err(|_| unsupported());
    let dtype = match kind {
        "b1" | "?" => DType::Bool,
        "f2" => DType::Float16,
        "f4" => DType::Float32,
        "f8" => DType::Float64,
        "f16" => DType::Float128,
        "c8" => DType::Complex64,
        "c16" => DType::Complex128,
        _ if kind.starts_with('i') => DType::integer(size()?, true).ok_or_else(unsupported)?,
        _ if kind.starts_with('u') => DType::integer(size()?, false).ok_or_else(unsupported)?,
        _ if kind.starts_with('S') => DType::FixedBytes(size()?),
        _ if kind.starts_with('U') => DType::FixedText(size()?),
        _ if kind.starts_with('V') => DType::Opaque(OpaqueType { size: size()?, tag: String::new() }.into()),
        _ if kind.starts_with("M8[") => DType::DateTime(unit(kind).ok_or_else(unsupported)?),
        _ if kind.starts_with("m8[") => DType::Duration(unit(kind).ok_or_else(unsupported)?),
        "O" | "O8" => return Err(place.unsupported("a NumPy array of Python objects (a pickle)")),
        _ => return Err(unsupported()),
    };
    let order = if dtype.swap_unit() == Some(1) { Order::Any } else { order };
    Ok((dtype, order))
}

fn unit(kind: &str) -> Option<TimeUnit> {
    TimeUnit::from_code(kind.get(3..)?.strip_suffix(']')?)
}

fn struct_dtype(members: &[Literal], place: Place<'_>) -> Result<(DType, Order)> {
    let (mut offset, mut order, mut named) = (0_usize, Order::Any, Vec::new());
    for member in members {
        let Literal::Sequence(parts) = member else {
            return Err(place.corrupt("a field is not a tuple"));
        };
        let (name, descr, shape) = match parts.as_slice() {
            [name, descr] => (name, descr, None),
            [name, descr, Literal::Sequence(shape)] => (name, descr, Some(shape)),
            _ => return Err(place.corrupt("a field is not (name, type[, shape])")),
        };
        let name = match name {
            Literal::Text(name) => name,
            // ('title', 'name'): the name is the usual one.
            Literal::Sequence(both) => match both.as_slice() {
                [_, Literal::Text(name)] => name,
                _ => return Err(place.corrupt("a field has no name")),
            },
            _ => return Err(place.corrupt("a field has no name")),
        };
        let (mut dtype, own) = dtype_of(descr, place)?;
        if let Some(shape) = shape {
            check_rank(shape, place)?;
            let extents = shape.iter().map(|extent| match extent {
                Literal::Number(extent) => usize::try_from(*extent).ok(),
                _ => None,
            });
            let extents =
                extents.collect::<Option<_>>().ok_or_else(|| place.corrupt("invalid shape of a field"))?;
            dtype = DType::Array(dtype.into(), extents);
        }
        let size = dtype.size().and_then(|size| offset.checked_add(size));
        let end =
            size.filter(|end| *end <= 1 << 30).ok_or_else(|| place.corrupt("a type is larger than 1 GiB"))?;
        // An unnamed void is padding.
        if !name.is_empty() {
            order = order.and(own).ok_or_else(|| place.unsupported("a struct of mixed byte orders"))?;
            named.push(Member { name: name.clone(), offset, dtype });
        }
        offset = end;
    }
    Ok((StructType { members: named, size: offset }.into(), order))
}

/// The type in NumPy's notation, in native byte order.
fn descr(dtype: &DType) -> Result<String> {
    let end = if cfg!(target_endian = "little") { '<' } else { '>' };
    let text = match dtype {
        DType::Bool => "|b1".to_owned(),
        DType::Int8 => "|i1".to_owned(),
        DType::UInt8 => "|u1".to_owned(),
        DType::Int16 => format!("{end}i2"),
        DType::Int32 => format!("{end}i4"),
        DType::Int64 => format!("{end}i8"),
        DType::UInt16 => format!("{end}u2"),
        DType::UInt32 => format!("{end}u4"),
        DType::UInt64 => format!("{end}u8"),
        DType::Float16 => format!("{end}f2"),
        DType::Float32 => format!("{end}f4"),
        DType::Float64 => format!("{end}f8"),
        DType::Float128 => format!("{end}f16"),
        DType::Complex64 => format!("{end}c8"),
        DType::Complex128 => format!("{end}c16"),
        DType::DateTime(unit) => format!("{end}M8[{}]", unit.code()),
        DType::Duration(unit) => format!("{end}m8[{}]", unit.code()),
        DType::FixedBytes(size) => format!("|S{size}"),
        DType::FixedText(points) => format!("{end}U{points}"),
        DType::Opaque(opaque) => format!("|V{}", opaque.size),
        DType::Enum(named) => return descr(&named.base),
        DType::Struct(fields) if dtype.is_fixed() => return struct_descr(fields),
        other => return Err(Error::invalid(format!("NumPy files cannot hold elements of {other}"))),
    };
    Ok(format!("'{text}'"))
}

fn struct_descr(fields: &StructType) -> Result<String> {
    let mut members: Vec<&Member> = fields.members.iter().collect();
    members.sort_by_key(|member| member.offset);
    let (mut text, mut offset) = (String::from("["), 0);
    let pad = |text: &mut String, size: usize| {
        let _ = write!(text, "('', '|V{size}'), ");
    };
    for member in members {
        if member.offset < offset {
            return Err(Error::invalid(format!(
                "NumPy files cannot hold the overlapping member {}",
                member.name
            )));
        }
        if member.offset > offset {
            pad(&mut text, member.offset - offset);
        }
        let name = member.name.replace('\\', "\\\\").replace('\'', "\\'");
        if let DType::Array(base, shape) = &member.dtype {
            let shape: String = shape.iter().map(|extent| format!("{extent},")).collect();
            let _ = write!(text, "('{name}', {}, ({shape})), ", descr(base)?);
        } else {
            let _ = write!(text, "('{name}', {}), ", descr(&member.dtype)?);
        }
        offset = member.offset + member.dtype.size().unwrap_or(0);
    }
    if fields.size > offset {
        pad(&mut text, fields.size - offset);
    }
    text.truncate(text.trim_end_matches(", ").len());
    text.push(']');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_elements_of_no_bytes_are_refused() {
        let header = |count| Header {
            dtype: DType::FixedBytes(0),
            swapped: false,
            fortran: false,
            shape: vec![count],
        };
        let open = |count| {
            let blob = hyperslab_core::MemoryBlob::new("x.npy", header(count).encode().unwrap());
            crate::array::NpyArray::open(std::sync::Arc::new(blob), 0, None, "x.npy".into())
        };
        assert!(open(3).is_ok());
        assert!(open(1 << 62).unwrap_err().is_corrupt());
    }

    #[test]
    fn field_names_are_latin_1_before_version_3() {
        let text = "{'descr': [('é', '|u1')], 'fortran_order': False, 'shape': (1,)}\n";
        let latin: Vec<u8> = text.chars().map(|character| character as u8).collect();
        for (version, text) in [(1, &latin[..]), (3, text.as_bytes())] {
            let mut bytes = [MAGIC, &[version, 0]].concat();
            let length = (text.len() as u32).to_le_bytes();
            bytes.extend_from_slice(if version == 1 { &length[..2] } else { &length });
            bytes.extend_from_slice(text);
            let blob = hyperslab_core::MemoryBlob::new("x.npy", bytes);
            let whole = 0..blob.len().unwrap();
            let (header, _) = Header::read(&blob, whole, Place::new("x.npy", "npy header", 0)).unwrap();
            let DType::Struct(fields) = header.dtype else { panic!("{:?}", header.dtype) };
            assert_eq!(fields.members[0].name, "é");
        }
    }

    #[test]
    fn more_dimensions_than_numpy_has_are_refused() {
        let place = Place::new("x.npy", "npy header", 0);
        let header = |rank: usize, own: usize| {
            let (ones, own) = ("1,".repeat(rank), "1,".repeat(own));
            format!("{{'descr': [('a', '|u1', ({own}))], 'fortran_order': False, 'shape': ({ones})}}")
        };
        assert!(Header::parse(&header(64, 64), place).is_ok());
        assert!(Header::parse(&header(65, 1), place).unwrap_err().is_corrupt());
        assert!(Header::parse(&header(1, 400_000), place).unwrap_err().is_corrupt());
        assert!(encode_header(&DType::UInt8, &[1; 65]).is_err());
    }

    fn round_trip(dtype: DType, shape: &[u64]) {
        let header = Header { dtype, swapped: false, fortran: false, shape: shape.to_vec() };
        let bytes = header.encode().unwrap();
        assert_eq!(bytes.len() % 64, 0);
        let blob = hyperslab_core::MemoryBlob::new("x.npy", bytes.clone());
        let place = Place::new("x.npy", "npy header", 0);
        assert_eq!(Header::read(&blob, 0..bytes.len() as u64, place).unwrap(), (header, bytes.len() as u64));
    }

    #[test]
    fn headers_round_trip() {
        round_trip(DType::Float32, &[3, 4]);
        round_trip(DType::DateTime(TimeUnit::Nanosecond), &[7]);
        round_trip(DType::FixedText(5), &[]);
        let mut padded = StructType::packed([("a", DType::UInt8), ("gemäß", DType::Float64)]);
        padded.members[1].offset = 8;
        padded.size = 24;
        round_trip(padded.into(), &[2]);
        let many: Vec<_> =
            (0..9000).map(|i| (format!("field_{i}"), DType::Array(DType::Int16.into(), vec![2]))).collect();
        round_trip(StructType::packed(many).into(), &[1]);
    }

    #[test]
    fn header_matches_numpy() {
        let header = Header { dtype: DType::Int64, swapped: false, fortran: false, shape: vec![3] };
        let text = String::from_utf8_lossy(&header.encode().unwrap()[10..]).into_owned();
        assert_eq!(text.trim_end(), "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }");
    }
}
