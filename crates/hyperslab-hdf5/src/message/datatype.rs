//! Datatype messages.

pub(crate) use hyperslab_core::{
    ByteOrder as Order, FloatLayout as Float, IntegerLayout as Integer, ReferenceKind, StoredClass as Class,
    StoredType as Type, TextPadding as Padding,
};
use hyperslab_core::{Fields, Result};

use crate::encode::Encoder;
use crate::file::{FileFields, Sizes};

/// The maximum nesting depth of types.
const MAX_DEPTH: usize = 32;

/// A datatype message, which describes a stored type of the core's model.
pub(crate) trait DatatypeMessage: Sized {
    /// The type at the start of these fields.
    fn parse(fields: &mut Fields<'_>) -> Result<Self>;

    /// Encodes this type. Single-number types have one form in all versions.
    fn encode(&self, version: TypeVersion, sizes: Sizes) -> Result<Vec<u8>>;
}

impl DatatypeMessage for Type {
    fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        parse(fields, 0)
    }

    fn encode(&self, version: TypeVersion, sizes: Sizes) -> Result<Vec<u8>> {
        let mut out = Encoder::new(sizes);
        write(self, version, &mut out);
        out.finish()
    }
}

fn parse(fields: &mut Fields<'_>, depth: usize) -> Result<Type> {
    let place = fields.place();
    if depth > MAX_DEPTH {
        return Err(place.corrupt("types are nested too deeply"));
    }
    let first = fields.u8()?;
    let (class, version) = (first & 15, first >> 4);
    if !(1..=5).contains(&version) {
        return Err(place.corrupt(format!("version {version}")));
    }
    let bits = u32::from_le_bytes([fields.u8()?, fields.u8()?, fields.u8()?, 0]);
    let size = fields.u32()? as usize;
    let order = if bits & 1 == 0 { Order::Little } else { Order::Big };
    // libhdf5 creates no type of zero bytes, not even opaque ones.
    if size == 0 {
        return Err(place.corrupt("the element size is zero"));
    }
    let class = match class {
        0 => Class::Integer(integer(fields, order, bits)?),
        1 => Class::Float(float(fields, bits)?),
        2 => Class::Time { order, precision: fields.u16()? },
        3 => Class::String { padding: padding(bits), utf8: bits >> 4 & 15 == 1 },
        4 => Class::Bitfield(integer(fields, order, bits & !8)?),
        5 => {
            let tag = fields.bytes(((bits & 0xff) as usize).next_multiple_of(8).min(fields.remaining()))?;
            let end = tag.iter().position(|byte| *byte == 0).unwrap_or(tag.len());
            Class::Opaque { tag: String::from_utf8_lossy(&tag[..end]).into_owned() }
        }
        6 => Class::Compound { members: members(fields, version, bits & 0xffff, size, depth)? },
        7 => Class::Reference(match bits & 15 {
            0 => ReferenceKind::Object,
            1 => ReferenceKind::Region,
            2..=4 => ReferenceKind::Revised,
            kind => return Err(place.corrupt(format!("unknown reference kind {kind}"))),
        }),
        8 => enumeration(fields, version, bits & 0xffff, depth)?,
        9 => {
            let base = parse(fields, depth + 1)?;
            if bits & 15 == 1 {
                Class::Text { padding: padding(bits >> 4), utf8: bits >> 8 & 15 == 1 }
            } else {
                Class::Sequence(Box::new(base))
            }
        }
        10 => array(fields, version, size, depth)?,
        11 => Class::Complex(Box::new(parse(fields, depth + 1)?)),
        class => return Err(place.corrupt(format!("class {class}"))),
    };
    Ok(Type { class, size })
}

fn padding(bits: u32) -> Padding {
    match bits & 15 {
        0 => Padding::NulTerminated,
        2 => Padding::Space,
        _ => Padding::Nul,
    }
}

fn integer(fields: &mut Fields<'_>, order: Order, bits: u32) -> Result<Integer> {
    let [pad, ..] = (bits & 6).to_le_bytes();
    Ok(Integer { order, signed: bits & 8 != 0, offset: fields.u16()?, precision: fields.u16()?, pad })
}

fn float(fields: &mut Fields<'_>, bits: u32) -> Result<Float> {
    let place = fields.place();
    let order = match bits & 0x41 {
        0 => Order::Little,
        1 => Order::Big,
        0x41 => Order::Vax,
        _ => return Err(place.corrupt("invalid byte order for a float")),
    };
    let (offset, precision) = (fields.u16()?, fields.u16()?);
    let exponent = (fields.u8()?, fields.u8()?);
    let mantissa = (fields.u8()?, fields.u8()?);
    let bias = fields.u32()?;
    let [low, sign, ..] = bits.to_le_bytes();
    let norm = low >> 4 & 3;
    Ok(Float { order, norm, sign, exponent, mantissa, bias, offset, precision, pad: low & 14 })
}

/// A name, padded to a multiple of 8 bytes with its NUL in versions before 3.
fn name(fields: &mut Fields<'_>, version: u8) -> Result<String> {
    let before = fields.position();
    let name = fields.text()?;
    if version < 3 {
        let length = fields.position() - before;
        fields.skip(length.next_multiple_of(8) - length)?;
    }
    Ok(name)
}

/// The smallest number of bytes that holds numbers up to `most`.
pub(crate) fn width(most: u64) -> usize {
    (64 - most.leading_zeros() as usize).div_ceil(8).max(1)
}

fn members(
    fields: &mut Fields<'_>,
    version: u8,
    count: u32,
    size: usize,
    depth: usize,
) -> Result<Vec<(String, usize, Type)>> {
    let place = fields.place();
    // A member has a name, an offset and a type: at least ten bytes.
    if count as usize > fields.remaining() / 10 || count == 0 {
        return Err(place.corrupt(format!("{count} members in {} bytes", fields.remaining())));
    }
    let mut members = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let place = fields.place();
        let name = name(fields, version)?;
        let offset =
            if version >= 3 { fields.uint(width(size as u64))? as usize } else { fields.u32()? as usize };
        let mut shape = Vec::new();
        if version == 1 {
            let place = fields.place();
            let rank = usize::from(fields.u8()?);
            if rank > 4 {
                return Err(place.corrupt(format!("a member of {rank} dimensions")));
            }
            fields.skip(3 + 4 + 4)?;
            for axis in 0..4 {
                let extent = fields.u32()? as usize;
                if axis < rank {
                    shape.push(extent);
                }
            }
        }
        let mut member = parse(fields, depth + 1)?;
        if !shape.is_empty() {
            let whole = shape.iter().try_fold(member.size, |size, extent| size.checked_mul(*extent));
            let whole = whole.filter(|whole| *whole > 0);
            let whole = whole.ok_or_else(|| place.corrupt(format!("an array of {shape:?} elements")))?;
            member = Type { class: Class::Array { shape, base: Box::new(member) }, size: whole };
        }
        if offset.checked_add(member.size).is_none_or(|end| end > size) {
            return Err(place.corrupt(format!(
                "member {name:?} of {} bytes at {offset} in a compound of {size}",
                member.size
            )));
        }
        members.push((name, offset, member));
    }
    Ok(members)
}

fn enumeration(fields: &mut Fields<'_>, version: u8, count: u32, depth: usize) -> Result<Class> {
    let place = fields.place();
    let base = parse(fields, depth + 1)?;
    let count = count as usize;
    if count > fields.remaining() {
        return Err(place.corrupt(format!("{count} members in {} bytes", fields.remaining())));
    }
    let names = (0..count).map(|_| name(fields, version)).collect::<Result<Vec<_>>>()?;
    let mut members = Vec::with_capacity(count);
    for name in names {
        members.push((name, fields.bytes(base.size)?.to_vec()));
    }
    Ok(Class::Enum { base: Box::new(base), members })
}

fn array(fields: &mut Fields<'_>, version: u8, size: usize, depth: usize) -> Result<Class> {
    let place = fields.place();
    let rank = usize::from(fields.u8()?);
    if version < 3 {
        fields.skip(3)?;
    }
    let shape = (0..rank).map(|_| Ok(fields.u32()? as usize)).collect::<Result<Vec<_>>>()?;
    if version < 3 {
        fields.skip(4 * rank)?;
    }
    let base = parse(fields, depth + 1)?;
    let whole = shape.iter().try_fold(base.size, |size, extent| size.checked_mul(*extent));
    if whole != Some(size) {
        return Err(place.corrupt(format!("an array of {shape:?} elements of {} bytes in {size}", base.size)));
    }
    Ok(Class::Array { shape, base: Box::new(base) })
}

/// The count of members has 16 bits.
const MOST_MEMBERS: u64 = 65_535;

/// How types are written: `2` (padded names) for all libraries, `3` (packed) for those since 1.8.
pub(crate) type TypeVersion = u8;

fn write(dtype: &Type, version: TypeVersion, out: &mut Encoder) {
    let (class, own, bits) = head(dtype, version);
    out.u8(class | own << 4).uint(bits, 3).count(dtype.size, 4, "bytes of an element");
    match &dtype.class {
        Class::Integer(integer) | Class::Bitfield(integer) => {
            out.u16(integer.offset).u16(integer.precision);
        }
        Class::Float(float) => {
            out.u16(float.offset).u16(float.precision);
            out.u8(float.exponent.0).u8(float.exponent.1).u8(float.mantissa.0).u8(float.mantissa.1);
            out.u32(float.bias);
        }
        Class::Time { precision, .. } => {
            out.u16(*precision);
        }
        Class::String { .. } | Class::Reference(_) => {}
        Class::Opaque { tag } => {
            out.limit(tag.len(), 248, "bytes of an opaque type's tag");
            let from = out.len();
            out.put(tag.as_bytes()).pad(from, 8);
        }
        Class::Compound { members } => {
            out.limit(members.len(), MOST_MEMBERS, "members of a compound type");
            for (name, offset, member) in members {
                write_name(name, version, out);
                out.uint(*offset as u64, if version >= 3 { width(dtype.size as u64) } else { 4 });
                write(member, version, out);
            }
        }
        Class::Enum { base, members } => {
            out.limit(members.len(), MOST_MEMBERS, "members of an enumeration");
            write(base, version, out);
            members.iter().for_each(|(name, _)| write_name(name, version, out));
            members.iter().for_each(|(_, value)| {
                out.put(value);
            });
        }
        Class::Sequence(base) | Class::Complex(base) => write(base, version, out),
        // Text is a sequence of bytes, as libhdf5 creates it from a C string.
        Class::Text { .. } => write(&BYTE, version, out),
        Class::Array { shape, base } => {
            out.count(shape.len(), 1, "dimensions of an array type").zeros(if version < 3 { 3 } else { 0 });
            shape.iter().for_each(|extent| {
                out.count(*extent, 4, "elements of an array type");
            });
            out.zeros(if version < 3 { 4 * shape.len() } else { 0 });
            write(base, version, out);
        }
    }
}

/// Class number, version and class bits.
fn head(dtype: &Type, version: TypeVersion) -> (u8, u8, u64) {
    let big = |order: &Order| u64::from(*order == Order::Big);
    match &dtype.class {
        Class::Integer(integer) => {
            (0, 1, big(&integer.order) | u64::from(integer.pad & 6) | u64::from(integer.signed) << 3)
        }
        Class::Float(float) => {
            let order = if float.order == Order::Vax { 0x41 } else { big(&float.order) };
            (
                1,
                1,
                order | u64::from(float.pad & 14) | u64::from(float.norm) << 4 | u64::from(float.sign) << 8,
            )
        }
        Class::Time { order, .. } => (2, 1, big(order)),
        Class::String { padding, utf8 } => (3, 1, padding_code(*padding) | u64::from(*utf8) << 4),
        Class::Bitfield(integer) => (4, 1, big(&integer.order) | u64::from(integer.pad & 6)),
        Class::Opaque { tag } => (5, 1, tag.len().next_multiple_of(8) as u64),
        Class::Compound { members } => (6, version, members.len() as u64),
        Class::Reference(kind) => (7, 1, u64::from(*kind == ReferenceKind::Region)),
        Class::Enum { members, .. } => (8, version, members.len() as u64),
        Class::Sequence(_) => (9, 1, 0),
        Class::Text { padding, utf8 } => (9, 1, 1 | padding_code(*padding) << 4 | u64::from(*utf8) << 8),
        Class::Array { .. } => (10, version, 0),
        Class::Complex(_) => (11, 5, 1),
    }
}

const fn padding_code(padding: Padding) -> u64 {
    match padding {
        Padding::NulTerminated => 0,
        Padding::Nul => 1,
        Padding::Space => 2,
    }
}

/// An unsigned byte.
pub(crate) const BYTE: Type = Type {
    class: Class::Integer(Integer { order: Order::Little, signed: false, offset: 0, precision: 8, pad: 0 }),
    size: 1,
};

fn write_name(name: &str, version: TypeVersion, out: &mut Encoder) {
    let from = out.len();
    out.put(name.as_bytes()).u8(0).pad(from, if version < 3 { 8 } else { 1 });
}
