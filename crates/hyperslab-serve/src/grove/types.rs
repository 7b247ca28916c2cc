//! Describes element types like h5grove: the HDF5 class, NumPy's name, and class-specific properties.

use hyperslab::driver::{ByteOrder, StoredClass, StoredType, TextPadding};
use hyperslab::{Column, DType, StructType};
use serde_json::{Map, Value, json};

/// Describes a type stored in an HDF5 file.
pub(crate) fn of_stored(stored: &StoredType) -> Value {
    let (class, more) = match &stored.class {
        StoredClass::Integer(layout) => {
            (0, json!({"order": order(layout.order), "sign": u8::from(layout.signed)}))
        }
        StoredClass::Float(layout) => (1, json!({"order": order(layout.order)})),
        StoredClass::Time { .. } => (2, json!({})),
        StoredClass::String { padding, utf8 } => (3, string(*padding, *utf8, false)),
        StoredClass::Text { padding, utf8 } => (3, string(*padding, *utf8, true)),
        StoredClass::Bitfield(layout) => (4, json!({"order": order(layout.order)})),
        StoredClass::Opaque { tag } => (5, json!({"tag": tag})),
        StoredClass::Compound { members } => {
            let members: Vec<Value> =
                members.iter().map(|(name, _, own)| named(name, of_stored(own))).collect();
            (6, json!({"members": members}))
        }
        StoredClass::Reference(_) => (7, json!({})),
        StoredClass::Enum { base, members } => {
            let value = |bytes: &[u8]| integer(bytes, base);
            let members: Map<String, Value> =
                members.iter().map(|(name, bytes)| (name.clone(), value(bytes))).collect();
            (8, json!({"members": members, "base": of_stored(base)}))
        }
        StoredClass::Sequence(base) => (9, json!({"base": of_stored(base)})),
        StoredClass::Array { shape, base } => (10, json!({"dims": shape, "base": of_stored(base)})),
        StoredClass::Complex(_) => (11, json!({})),
    };
    described(class, dtype_of_stored(stored), memory_size(stored), more)
}

/// Describes a type of any other format by the equivalent HDF5 type.
pub(crate) fn of_dtype(dtype: &DType) -> Value {
    let size = dtype.size().unwrap_or(0);
    let (class, more) = match dtype {
        DType::Bool => (8, json!({"members": {"FALSE": 0, "TRUE": 1}, "base": of_dtype(&DType::Int8)})),
        number if number.is_integer() => (0, json!({"order": 0, "sign": u8::from(is_signed(number))})),
        DType::DateTime(_) | DType::Duration(_) => (0, json!({"order": 0, "sign": 1})),
        number if number.is_float() => (1, json!({"order": 0})),
        DType::Complex64 | DType::Complex128 => {
            let part = if *dtype == DType::Complex64 { DType::Float32 } else { DType::Float64 };
            let members = ["r", "i"].map(|name| named(name, of_dtype(&part)));
            (6, json!({"members": members}))
        }
        DType::FixedBytes(_) | DType::FixedText(_) => (3, string(TextPadding::Nul, true, false)),
        DType::String | DType::Bytes | DType::Reference => {
            return described(3, json!("|O"), 8, string(TextPadding::NulTerminated, true, true));
        }
        DType::Opaque(opaque) => (5, json!({"tag": opaque.tag})),
        DType::Enum(named) => {
            let members: Map<String, Value> = named
                .members
                .iter()
                .map(|(name, value)| (name.clone(), i64::try_from(*value).map_or(Value::Null, Value::from)))
                .collect();
            (8, json!({"members": members, "base": of_dtype(&named.base)}))
        }
        DType::Struct(fields) => return of_struct(fields),
        DType::Array(base, shape) => (10, json!({"dims": shape, "base": of_dtype(base)})),
        DType::List(base) => return described(9, json!("|O"), 16, json!({"base": of_dtype(base)})),
        _ => (5, json!({"tag": ""})),
    };
    described(class, dtype_name(dtype), size, more)
}

/// Describes the columns of a table as a compound type.
pub(crate) fn of_columns(columns: &[Column]) -> Value {
    of_struct(&StructType::packed(columns.iter().map(|column| (column.name.clone(), column.dtype.clone()))))
}

fn of_struct(fields: &StructType) -> Value {
    let members: Vec<Value> =
        fields.members.iter().map(|member| named(&member.name, of_dtype(&member.dtype))).collect();
    let dtype: Map<String, Value> =
        fields.members.iter().map(|member| (member.name.clone(), dtype_name(&member.dtype))).collect();
    described(6, Value::Object(dtype), fields.size, json!({"members": members}))
}

fn described(class: u8, dtype: Value, size: usize, more: Value) -> Value {
    let mut described = json!({"class": class, "dtype": dtype, "size": size});
    if let (Value::Object(described), Value::Object(more)) = (&mut described, more) {
        described.extend(more);
    }
    described
}

fn named(name: &str, mut described: Value) -> Value {
    described["name"] = name.into();
    described
}

const fn order(order: ByteOrder) -> u8 {
    match order {
        ByteOrder::Little => 0,
        ByteOrder::Big => 1,
        ByteOrder::Vax => 2,
    }
}

fn string(padding: TextPadding, utf8: bool, variable: bool) -> Value {
    let padding = match padding {
        TextPadding::NulTerminated => 0,
        TextPadding::Nul => 1,
        TextPadding::Space => 2,
    };
    // H5Web expects `strPad`.
    json!({"cset": u8::from(utf8), "strpad": padding, "strPad": padding, "vlen": variable})
}

const fn is_signed(dtype: &DType) -> bool {
    matches!(dtype, DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64)
}

/// The size in memory as reported by libhdf5, where variable-length values are pointers.
fn memory_size(stored: &StoredType) -> usize {
    match &stored.class {
        StoredClass::Text { .. } => 8,
        StoredClass::Sequence(_) => 16,
        StoredClass::Compound { members } => {
            let change: i64 =
                members.iter().map(|(_, _, own)| memory_size(own) as i64 - own.size as i64).sum();
            usize::try_from(stored.size as i64 + change).unwrap_or(stored.size)
        }
        StoredClass::Array { shape, base } => memory_size(base).saturating_mul(shape.iter().product()),
        _ => stored.size,
    }
}

/// Returns true for the compound type that h5py reads as a complex number.
pub(crate) fn is_complex(members: &[(String, usize, StoredType)]) -> bool {
    let [(real, _, first), (imaginary, _, second)] = members else { return false };
    real == "r" && imaginary == "i" && first == second && matches!(first.class, StoredClass::Float(_))
}

/// NumPy's name of a stored type, or the names of its members' types.
fn dtype_of_stored(stored: &StoredType) -> Value {
    let with_order = |kind: char, own: ByteOrder, size: usize| {
        let mark = match (size, own) {
            (1, _) => '|',
            (_, ByteOrder::Big) => '>',
            _ => '<',
        };
        json!(format!("{mark}{kind}{size}"))
    };
    match &stored.class {
        StoredClass::Integer(layout) => {
            with_order(if layout.signed { 'i' } else { 'u' }, layout.order, stored.size)
        }
        StoredClass::Bitfield(layout) => with_order('u', layout.order, stored.size),
        StoredClass::Float(layout) => with_order('f', layout.order, stored.size),
        StoredClass::String { .. } => json!(format!("|S{}", stored.size)),
        StoredClass::Opaque { tag } => match tag.strip_prefix("NUMPY:") {
            Some(numpy) => json!(numpy),
            None => json!(format!("|V{}", stored.size)),
        },
        StoredClass::Compound { members } if is_complex(members) => match &members[0].2.class {
            StoredClass::Float(layout) => with_order('c', layout.order, stored.size),
            _ => Value::Null,
        },
        StoredClass::Compound { members } => members
            .iter()
            .map(|(name, _, own)| (name.clone(), dtype_of_stored(own)))
            .collect::<Map<_, _>>()
            .into(),
        StoredClass::Enum { members, .. } if is_truth(members) => json!("|b1"),
        StoredClass::Enum { base, .. } => dtype_of_stored(base),
        StoredClass::Array { .. } => json!(format!("|V{}", memory_size(stored))),
        StoredClass::Complex(part) => match &part.class {
            StoredClass::Float(layout) => with_order('c', layout.order, stored.size),
            _ => Value::Null,
        },
        StoredClass::Time { order, .. } => with_order('i', *order, stored.size),
        StoredClass::Text { .. } | StoredClass::Sequence(_) | StoredClass::Reference(_) => json!("|O"),
    }
}

/// Returns true for h5py's booleans.
fn is_truth(members: &[(String, Vec<u8>)]) -> bool {
    let has = |name: &str, value: u8| members.iter().any(|(own, bytes)| own == name && bytes[..] == [value]);
    members.len() == 2 && has("FALSE", 0) && has("TRUE", 1)
}

/// NumPy's name of a type in memory, or the names of its members' types.
fn dtype_name(dtype: &DType) -> Value {
    let size = dtype.size().unwrap_or(0);
    let plain = |kind: char| json!(format!("{}{kind}{size}", if size == 1 { '|' } else { '<' }));
    match dtype {
        DType::Bool => json!("|b1"),
        number if number.is_integer() => plain(if is_signed(number) { 'i' } else { 'u' }),
        DType::DateTime(_) | DType::Duration(_) => plain('i'),
        number if number.is_float() => plain('f'),
        DType::Complex64 | DType::Complex128 => plain('c'),
        DType::FixedBytes(size) => json!(format!("|S{size}")),
        DType::FixedText(points) => json!(format!("<U{points}")),
        DType::Enum(named) => dtype_name(&named.base),
        DType::Struct(fields) => {
            let members =
                fields.members.iter().map(|member| (member.name.clone(), dtype_name(&member.dtype)));
            Value::Object(members.collect())
        }
        DType::Opaque(_) | DType::Array(..) => json!(format!("|V{size}")),
        _ => json!("|O"),
    }
}

/// The value of an enum member.
fn integer(bytes: &[u8], base: &StoredType) -> Value {
    let StoredClass::Integer(layout) = &base.class else { return Value::Null };
    let mut wide = [0_u8; 16];
    if bytes.is_empty() || bytes.len() > 8 {
        return Value::Null;
    }
    let little: Vec<u8> =
        if layout.order == ByteOrder::Big { bytes.iter().rev().copied().collect() } else { bytes.to_vec() };
    let negative = layout.signed && little.last().is_some_and(|top| top >> 7 == 1);
    if negative {
        wide = [0xff; 16];
    }
    wide[..little.len()].copy_from_slice(&little);
    let value = i128::from_le_bytes(wide);
    i64::try_from(value)
        .map(Value::from)
        .or_else(|_| u64::try_from(value).map(Value::from))
        .unwrap_or(Value::Null)
}
