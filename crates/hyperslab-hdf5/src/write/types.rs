//! Chooses the file type for an element type: the same as h5py for the corresponding NumPy type.

use hyperslab_core::{DType, Error, Result};

use crate::conversion::Element;
use crate::file::Sizes;
use crate::message::datatype::{BYTE, Class, Float, Integer, Order, Padding, ReferenceKind, Type};

/// The file type for these elements.
pub(crate) fn file_type(dtype: &DType, sizes: Sizes) -> Result<Type> {
    let make = |class, size| Ok(Type { class, size });
    match dtype {
        DType::Bool => {
            let members = vec![("FALSE".to_owned(), vec![0]), ("TRUE".to_owned(), vec![1])];
            make(Class::Enum { base: Box::new(integer(1, true)), members }, 1)
        }
        DType::Int8 => Ok(integer(1, true)),
        DType::Int16 => Ok(integer(2, true)),
        DType::Int32 => Ok(integer(4, true)),
        DType::Int64 => Ok(integer(8, true)),
        DType::UInt8 => Ok(integer(1, false)),
        DType::UInt16 => Ok(integer(2, false)),
        DType::UInt32 => Ok(integer(4, false)),
        DType::UInt64 => Ok(integer(8, false)),
        DType::Float16 => Ok(float(2, 10, 5)),
        DType::Float32 => Ok(float(4, 23, 8)),
        DType::Float64 => Ok(float(8, 52, 11)),
        DType::Float128 => Ok(long_double()),
        DType::Complex64 => Ok(complex(float(4, 23, 8))),
        DType::Complex128 => Ok(complex(float(8, 52, 11))),
        // h5py's convention for NumPy dates: opaque bytes tagged with the type.
        DType::DateTime(unit) => make(Class::Opaque { tag: format!("NUMPY:<M8[{}]", unit.code()) }, 8),
        DType::Duration(unit) => make(Class::Opaque { tag: format!("NUMPY:<m8[{}]", unit.code()) }, 8),
        DType::FixedBytes(0) | DType::FixedText(0) => Err(Error::invalid("HDF5 has no text of zero bytes")),
        DType::FixedBytes(size) => make(Class::String { padding: Padding::Nul, utf8: false }, small(*size)?),
        DType::FixedText(points) => {
            make(Class::String { padding: Padding::Nul, utf8: true }, small(points.saturating_mul(4))?)
        }
        DType::Opaque(opaque) => {
            if opaque.tag.len() > 248 {
                return Err(Error::invalid("an opaque type's tag of more than 248 bytes"));
            }
            make(Class::Opaque { tag: opaque.tag.clone() }, small(opaque.size.max(1))?)
        }
        DType::Enum(named) => {
            let base = file_type(&named.base, sizes)?;
            let Class::Integer(_) = base.class else {
                return Err(Error::invalid(format!("names for values of type {}", named.base)));
            };
            if named.members.len() > usize::from(u16::MAX) {
                return Err(Error::invalid(format!("an enumeration of {} names", named.members.len())));
            }
            let members = named.members.iter();
            let members =
                members.map(|(name, value)| (name.clone(), value.to_le_bytes()[..base.size].to_vec()));
            let size = base.size;
            make(Class::Enum { members: members.collect(), base: Box::new(base) }, size)
        }
        DType::Struct(fields) => compound(dtype, fields, sizes),
        DType::Array(base, shape) => {
            let base = file_type(base, sizes)?;
            if shape.is_empty() || shape.len() > 32 || shape.contains(&0) {
                return Err(Error::invalid(format!("HDF5 has no arrays of {shape:?} in an element")));
            }
            let size = shape.iter().try_fold(base.size, |size, extent| size.checked_mul(*extent));
            let size = small(size.unwrap_or(usize::MAX))?;
            make(Class::Array { shape: shape.clone(), base: Box::new(base) }, size)
        }
        DType::String => make(Class::Text { padding: Padding::NulTerminated, utf8: true }, 8 + sizes.address),
        DType::Bytes => make(Class::Sequence(Box::new(BYTE)), 8 + sizes.address),
        DType::List(base) => make(Class::Sequence(Box::new(file_type(base, sizes)?)), 8 + sizes.address),
        DType::Reference => make(Class::Reference(ReferenceKind::Object), sizes.address),
        other => Err(Error::invalid(format!("HDF5 has no type for {other}"))),
    }
}

/// The source file's type with its element encoding, if it represents `dtype`.
pub(crate) fn fitting(stored: &Type, dtype: &DType, sizes: Sizes) -> Option<(Type, Element)> {
    let own = resized(stored, sizes)?;
    let element = Element::new(&own, sizes, "hdf5").ok()?;
    (element.dtype == *dtype && element.unstorable().is_none()).then_some((own, element))
}

/// The type in a file with another address width. HDF5 1.12 references become plain ones.
fn resized(stored: &Type, sizes: Sizes) -> Option<Type> {
    let mut own = stored.clone();
    match &mut own.class {
        Class::Reference(kind) => {
            if *kind == ReferenceKind::Revised {
                *kind = ReferenceKind::Object;
            }
            own.size = sizes.address + if *kind == ReferenceKind::Region { 4 } else { 0 };
        }
        Class::Text { .. } => own.size = 8 + sizes.address,
        Class::Sequence(base) => {
            **base = resized(base, sizes)?;
            own.size = 8 + sizes.address;
        }
        Class::Array { shape, base } => {
            **base = resized(base, sizes)?;
            own.size = shape.iter().try_fold(base.size, |size, extent| size.checked_mul(*extent))?;
        }
        Class::Compound { members } => {
            let mut moved = false;
            for (_, _, member) in members.iter_mut() {
                let resized = resized(member, sizes)?;
                moved |= resized.size != member.size;
                *member = resized;
            }
            if moved {
                own.size = 0;
                for (_, offset, member) in members {
                    *offset = own.size;
                    own.size = own.size.checked_add(member.size)?;
                }
            }
        }
        Class::Integer(_)
        | Class::Float(_)
        | Class::Time { .. }
        | Class::String { .. }
        | Class::Bitfield(_)
        | Class::Opaque { .. }
        | Class::Enum { .. }
        | Class::Complex(_) => {}
    }
    Some(own)
}

/// A type's size has 32 bits.
fn small(size: usize) -> Result<usize> {
    if u32::try_from(size).is_ok() {
        Ok(size)
    } else {
        Err(Error::invalid(format!("elements of {size} bytes")))
    }
}

fn compound(dtype: &DType, fields: &hyperslab_core::StructType, sizes: Sizes) -> Result<Type> {
    if fields.members.is_empty() || fields.members.len() > usize::from(u16::MAX) {
        return Err(Error::invalid(format!("HDF5 has no compound of {} members", fields.members.len())));
    }
    let (mut end, fixed) = (0, dtype.is_fixed());
    let mut members = Vec::with_capacity(fields.members.len());
    for member in &fields.members {
        if member.name.is_empty() || member.name.contains('\0') {
            return Err(Error::invalid(format!("{:?} cannot name a compound's member", member.name)));
        }
        let own = file_type(&member.dtype, sizes)?;
        // Offsets are kept if elements have a fixed size; else members are packed.
        let offset = if fixed { member.offset } else { end };
        end = offset + own.size;
        members.push((member.name.clone(), offset, own));
    }
    let size = small(if fixed { fields.size.max(end) } else { end })?;
    Ok(Type { class: Class::Compound { members }, size })
}

fn integer(size: u8, signed: bool) -> Type {
    let (precision, size) = (8 * u16::from(size), usize::from(size));
    Type {
        class: Class::Integer(Integer { order: Order::Little, signed, offset: 0, precision, pad: 0 }),
        size,
    }
}

fn float(size: u8, mantissa: u8, exponent: u8) -> Type {
    Type {
        class: Class::Float(Float {
            order: Order::Little,
            norm: 2,
            sign: 8 * size - 1,
            exponent: (mantissa, exponent),
            mantissa: (0, mantissa),
            bias: (1 << (exponent - 1)) - 1,
            offset: 0,
            precision: 8 * u16::from(size),
            pad: 0,
        }),
        size: usize::from(size),
    }
}

/// The 80-bit x87 float in 16 bytes. The leading bit of the mantissa is stored.
fn long_double() -> Type {
    Type {
        class: Class::Float(Float {
            order: Order::Little,
            norm: 0,
            sign: 79,
            exponent: (64, 15),
            mantissa: (0, 64),
            bias: 16383,
            offset: 0,
            precision: 80,
            pad: 0,
        }),
        size: 16,
    }
}

fn complex(base: Type) -> Type {
    let size = base.size;
    let members = vec![("r".to_owned(), 0, base.clone()), ("i".to_owned(), size, base)];
    Type { class: Class::Compound { members }, size: 2 * size }
}
