//! Chooses the element type for a file's type.

use std::sync::Arc;

use hyperslab_core::{DType, EnumType, Member, OpaqueType, Result, StructType, TimeUnit};

use super::{Element, FloatPlan, IntegerPlan, MemberStep, Step};
use crate::file::Sizes;
use crate::message::datatype::{Class, Float, Integer, Order, Padding, ReferenceKind, Type};

/// The byte order of this machine.
const NATIVE: Order = if cfg!(target_endian = "little") { Order::Little } else { Order::Big };

impl Element {
    /// Chooses how to read elements of this type. `name` is that of the store, for error messages.
    pub(crate) fn new(dtype: &Type, sizes: Sizes, name: &str) -> Result<Self> {
        let corrupt = |what: &str| {
            Err(hyperslab_core::Place::new(name, "datatype message", 0)
                .corrupt(format!("{what} in {} bytes", dtype.size)))
        };
        let built = match &dtype.class {
            Class::Integer(integer) | Class::Bitfield(integer) => number(*integer, dtype.size),
            Class::Time { order, .. } => {
                let bits = u16::try_from(dtype.size.saturating_mul(8)).unwrap_or(u16::MAX);
                number(
                    Integer { order: *order, signed: true, offset: 0, precision: bits, pad: 0 },
                    dtype.size,
                )
            }
            // None of our types can hold it, so its bytes are returned as is.
            Class::Float(float) => self::float(*float, dtype.size).unwrap_or_else(|| {
                let tag = describe_float(*float);
                (DType::Opaque(Arc::new(OpaqueType { size: dtype.size, tag })), Step::Copy)
            }),
            Class::String { padding, .. } => {
                let step = if *padding == Padding::Nul { Step::Copy } else { Step::Trim(*padding) };
                (DType::FixedBytes(dtype.size), step)
            }
            Class::Opaque { tag } => opaque(tag, dtype.size),
            Class::Compound { members } => {
                let members = members.iter().map(|(name_of, offset, member)| {
                    Ok((name_of.clone(), *offset, Self::new(member, sizes, name)?))
                });
                compound(members.collect::<Result<Vec<_>>>()?, dtype.size)
            }
            Class::Reference(kind) => {
                let needed = match kind {
                    ReferenceKind::Object => sizes.address,
                    ReferenceKind::Region => sizes.address + 4,
                    ReferenceKind::Revised => 6,
                };
                if dtype.size < needed {
                    return corrupt("a reference");
                }
                (DType::Reference, Step::Reference(*kind))
            }
            Class::Enum { base, members } => enumeration(Self::new(base, sizes, name)?, members),
            Class::Text { .. } | Class::Sequence(_) if dtype.size < 8 + sizes.address => {
                return corrupt("a variable-length element");
            }
            Class::Text { .. } => (DType::String, Step::Text),
            Class::Sequence(base) => {
                let base = Self::new(base, sizes, name)?;
                (DType::List(Arc::new(base.dtype.clone())), Step::List(Box::new(base)))
            }
            Class::Array { shape, base } => array(shape, Self::new(base, sizes, name)?),
            Class::Complex(base) => {
                if base.size.checked_mul(2) != Some(dtype.size) {
                    return corrupt("a complex number");
                }
                let base = Self::new(base, sizes, name)?;
                let second = base.stored;
                compound(vec![("r".into(), 0, base.clone()), ("i".into(), second, base)], dtype.size)
            }
        };
        let (dtype_in_memory, step) = built;
        Ok(Self { size: dtype_in_memory.size(), dtype: dtype_in_memory, stored: dtype.size, step })
    }
}

fn number(integer: Integer, stored: usize) -> (DType, Step) {
    let whole = Some(usize::from(integer.precision)) == stored.checked_mul(8) && integer.offset == 0;
    let plan = Step::Integer(IntegerPlan::new(integer, stored));
    match (stored, DType::integer(stored, integer.signed)) {
        (1, Some(dtype)) if whole => (dtype, Step::Copy),
        (_, Some(dtype)) if whole && integer.order == NATIVE => (dtype, Step::Copy),
        (_, Some(dtype)) if whole && integer.order != Order::Vax => (dtype, Step::Swap(stored)),
        (_, Some(dtype)) => (dtype, plan),
        (3, None) => (if integer.signed { DType::Int32 } else { DType::UInt32 }, plan),
        (5..=16, None) if stored < 8 || integer.precision <= 64 => {
            (if integer.signed { DType::Int64 } else { DType::UInt64 }, plan)
        }
        // None of our types can hold it, so its bytes are returned as is.
        _ => {
            let tag = format!("{}int{}", if integer.signed { "" } else { "u" }, integer.precision);
            (DType::Opaque(Arc::new(OpaqueType { size: stored, tag })), Step::Copy)
        }
    }
}

/// The float types in memory: bits of exponent and mantissa, largest and smallest exponent.
const FLOATS: [(DType, usize, u8, i64, i64); 3] = [
    (DType::Float16, 2, 10, 15, -14),
    (DType::Float32, 4, 23, 127, -126),
    (DType::Float64, 8, 52, 1023, -1022),
];

/// The smallest of our floats that holds every value, as in h5py.
fn float(float: Float, stored: usize) -> Option<(DType, Step)> {
    let plan = Step::Float(FloatPlan { stored, float });
    let significant = if float.norm == 2 { float.mantissa.1 } else { float.mantissa.1.saturating_sub(1) };
    if stored > 16 || float.exponent.1 > 32 {
        return None;
    }
    let is_x87 = float.norm != 2 && float.mantissa.1 == 64 && float.exponent.1 == 15;
    if is_x87 {
        let standard = float.offset == 0 && float.mantissa.0 == 0 && stored == 16;
        let step = if standard && float.order == Order::Little { Step::Copy } else { plan };
        return (float.order != Order::Vax).then_some((DType::Float128, step));
    }
    let greatest = (1_i64 << float.exponent.1) - 2 - i64::from(float.bias);
    let least = 1 - i64::from(float.bias);
    let (dtype, size, mantissa, _, _) = FLOATS
        .into_iter()
        .find(|(_, _, mantissa, max, min)| significant <= *mantissa && greatest <= *max && least >= *min)?;
    let standard = float.norm == 2
        && size == stored
        && float.mantissa == (0, mantissa)
        && float.exponent == (mantissa, (8 * size) as u8 - 1 - mantissa)
        && usize::from(float.sign) == 8 * size - 1
        && i64::from(float.bias) == (1_i64 << (float.exponent.1 - 1)) - 1;
    let step = match float.order {
        order if standard && order == NATIVE => Step::Copy,
        Order::Little | Order::Big if standard => Step::Swap(size),
        _ => plan,
    };
    Some((dtype, step))
}

fn describe_float(float: Float) -> String {
    format!("float{} with {} bits of exponent", float.precision, float.exponent.1)
}

/// h5py stores NumPy types that HDF5 lacks as opaque bytes tagged with `NUMPY:` and the type: dates, durations, and byte strings
/// where a string type would not do.
fn opaque(tag: &str, size: usize) -> (DType, Step) {
    if tag.strip_prefix("NUMPY:|S").is_some_and(|length| length.parse() == Ok(size)) {
        return (DType::FixedBytes(size), Step::Copy);
    }
    let numpy = tag.strip_prefix("NUMPY:").and_then(|name| {
        let (order, kind) = name.split_at_checked(1)?;
        let swap = match order {
            "<" | "|" | "=" => false,
            ">" => true,
            _ => return None,
        };
        let (kind, unit) = kind.strip_suffix(']')?.split_once('[')?;
        let unit = TimeUnit::from_code(unit)?;
        let dtype = match kind {
            "M8" => DType::DateTime(unit),
            "m8" => DType::Duration(unit),
            _ => return None,
        };
        let native = swap == cfg!(target_endian = "big");
        (size == 8).then_some((dtype, if native { Step::Copy } else { Step::Swap(8) }))
    });
    numpy.unwrap_or_else(|| (DType::Opaque(Arc::new(OpaqueType { size, tag: tag.to_owned() })), Step::Copy))
}

fn enumeration(base: Element, members: &[(String, Vec<u8>)]) -> (DType, Step) {
    let value = |bytes: &[u8]| -> i128 {
        let mut memory = vec![0; base.size.unwrap_or(0)];
        let place = hyperslab_core::Place::new("", "enumeration", 0);
        if base.convert(bytes, &mut memory, place).is_err() {
            return 0;
        }
        let signed = matches!(base.dtype, DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64);
        let bits = u16::try_from(8 * memory.len()).unwrap_or(0);
        let native = Integer { order: NATIVE, signed, offset: 0, precision: bits, pad: 0 };
        IntegerPlan::new(native, memory.len()).value(&memory)
    };
    let members: Vec<_> = members.iter().map(|(name, bytes)| (name.clone(), value(bytes))).collect();
    let is_bool = base.size == Some(1) && members.len() == 2 && {
        let named = |name: &str, value: i128| members.iter().any(|m| m.0 == name && m.1 == value);
        named("FALSE", 0) && named("TRUE", 1)
    };
    if is_bool {
        return (DType::Bool, base.step);
    }
    (EnumType::new(base.dtype, members).into(), base.step)
}

fn array(shape: &[usize], base: Element) -> (DType, Step) {
    // The parser has checked that the array fits in memory.
    let count = shape.iter().fold(1_usize, |count, extent| count.saturating_mul(*extent));
    let dtype = DType::Array(Arc::new(base.dtype.clone()), shape.to_vec());
    let step = match base.step {
        Step::Copy => Step::Copy,
        Step::Swap(unit) => Step::Swap(unit),
        _ => Step::Array { count, base: Box::new(base) },
    };
    (dtype, step)
}

/// h5py stores complex numbers as compounds of two equal floats named `r` and `i`.
fn complex(members: &[(String, usize, Element)], size: usize) -> Option<(DType, Step)> {
    let [(r, 0, real), (i, at, imaginary)] = members else { return None };
    let dtype = match real.dtype {
        DType::Float32 if size == 8 => DType::Complex64,
        DType::Float64 if size == 16 => DType::Complex128,
        _ => return None,
    };
    let step = match (&real.step, &imaginary.step) {
        (Step::Copy, Step::Copy) => Step::Copy,
        (Step::Swap(a), Step::Swap(b)) if a == b => Step::Swap(*a),
        _ => return None,
    };
    (r == "r" && i == "i" && *at == real.stored && real.dtype == imaginary.dtype).then_some((dtype, step))
}

fn compound(members: Vec<(String, usize, Element)>, size: usize) -> (DType, Step) {
    if let Some(complex) = complex(&members, size) {
        return complex;
    }
    // The file's own offsets are kept if no member changes its size.
    let keeps = members.iter().all(|(_, _, element)| element.size == Some(element.stored));
    if keeps {
        let fields = members.iter().map(|(name, offset, element)| Member {
            name: name.clone(),
            offset: *offset,
            dtype: element.dtype.clone(),
        });
        let dtype = StructType { members: fields.collect(), size }.into();
        if members.iter().all(|(_, _, element)| element.is_plain()) {
            return (dtype, Step::Copy);
        }
        let steps = members.into_iter().map(|(_, at, element)| MemberStep { from: at, to: at, element });
        return (dtype, Step::Struct(steps.collect()));
    }
    let packed = members.iter().map(|(name, _, element)| (name.as_str(), element.dtype.clone()));
    let fields = StructType::packed(packed);
    let places: Vec<usize> = fields.members.iter().map(|member| member.offset).collect();
    let steps =
        members.into_iter().zip(places).map(|((_, from, element), to)| MemberStep { from, to, element });
    let steps = steps.collect();
    (fields.into(), Step::Struct(steps))
}
