//! Converts elements to Arrow's array data. Arrow validates lengths, offsets and UTF-8.

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::{ArrowError, DataType};
use bytes::Bytes;
use hyperslab_core::{
    DType, Data, Elements, EnumType, StructType, TimeUnit, Validity, element_to_json, element_to_text,
};

use super::fields::{ArrowTarget, data_type, duration, timestamp};

type Result<T> = std::result::Result<T, ArrowError>;

/// Converts `length` elements to Arrow's data.
pub(super) fn array_data(
    dtype: &DType,
    elements: Elements,
    length: usize,
    target: ArrowTarget,
) -> Result<ArrayData> {
    let nulls = elements.validity.as_ref().map(|validity| null_buffer(validity, length)).transpose()?;
    let builder = ArrayData::builder(data_type(dtype, target)).len(length).nulls(nulls).align_buffers(true);
    match (dtype, elements.data) {
        (DType::Struct(fields), data) => {
            let elements = Elements { data, validity: elements.validity };
            struct_data(builder, fields, &elements, length, target)
        }
        (_, Data::Fixed(bytes)) => {
            fixed_data(builder, dtype, bytes, elements.validity.as_ref(), length, target)
        }
        (DType::String | DType::Bytes | DType::Reference, Data::Variable { offsets, bytes }) => {
            builder.add_buffer(offset_buffer(offsets, length)?).add_buffer(Buffer::from(bytes)).build()
        }
        (DType::List(base), Data::List { offsets, items }) => {
            let count = items.len(base);
            let child = array_data(base, *items, count, target)?;
            builder.add_buffer(offset_buffer(offsets, length)?).add_child_data(child).build()
        }
        (DType::Array(base, shape), Data::FixedList { items, .. }) => {
            let child = array_data(base, *items, cells(shape, length)?, target)?;
            nested(builder, base, shape, child, length, target)
        }
        (_, data) => Err(wrong(format!("unexpected layout: {}", kind(&data)))),
    }
}

fn kind(data: &Data) -> &'static str {
    match data {
        Data::Fixed(_) => "plain bytes",
        Data::Variable { .. } => "offsets and bytes",
        Data::List { .. } => "lists",
        Data::FixedList { .. } => "small arrays",
        Data::Struct { .. } => "structs",
    }
}

fn wrong(problem: impl Into<String>) -> ArrowError {
    ArrowError::InvalidArgumentError(problem.into())
}

fn null_buffer(validity: &Validity, length: usize) -> Result<NullBuffer> {
    if validity.len() != length {
        return Err(wrong(format!("validity of {} elements for {length}", validity.len())));
    }
    Ok(NullBuffer::new(BooleanBuffer::new(Buffer::from(validity.bits().clone()), 0, length)))
}

/// Our offsets are unsigned and Arrow's signed. Both stay within the common range, so the bytes are the same.
fn offset_buffer(offsets: Vec<u64>, length: usize) -> Result<Buffer> {
    if offsets.len() != length + 1 {
        return Err(wrong(format!("{} offsets for {length} elements", offsets.len())));
    }
    Ok(Buffer::from_vec(offsets))
}

fn cells(shape: &[usize], length: usize) -> Result<usize> {
    shape
        .iter()
        .try_fold(length, |cells, extent| cells.checked_mul(*extent))
        .ok_or_else(|| wrong("the number of cells overflows"))
}

fn struct_data(
    builder: ArrayDataBuilder,
    fields: &StructType,
    elements: &Elements,
    length: usize,
    target: ArrowTarget,
) -> Result<ArrayData> {
    let members = crate::rows::members(fields, elements).map_err(|error| wrong(error.to_string()))?;
    let children = fields
        .members
        .iter()
        .zip(members)
        .map(|(member, held)| array_data(&member.dtype, held, length, target))
        .collect::<Result<Vec<_>>>()?;
    builder.child_data(children).build()
}

/// Fixed-size arrays as nested lists, the last extent innermost.
fn nested(
    builder: ArrayDataBuilder,
    base: &DType,
    shape: &[usize],
    mut child: ArrayData,
    length: usize,
    target: ArrowTarget,
) -> Result<ArrayData> {
    if shape.is_empty() {
        return Ok(child);
    }
    for axis in (1..shape.len()).rev() {
        let dtype = DType::Array(base.clone().into(), shape[axis..].to_vec());
        let count = cells(&shape[..axis], length)?;
        child = ArrayData::builder(data_type(&dtype, target)).len(count).add_child_data(child).build()?;
    }
    builder.add_child_data(child).build()
}

fn fixed_data(
    builder: ArrayDataBuilder,
    dtype: &DType,
    bytes: Bytes,
    validity: Option<&Validity>,
    length: usize,
    target: ArrowTarget,
) -> Result<ArrayData> {
    let size = dtype.size().unwrap_or(0);
    if Some(bytes.len()) != length.checked_mul(size) {
        return Err(wrong(format!("{} bytes for {length} elements", bytes.len())));
    }
    match dtype {
        DType::Bool => {
            let bits = BooleanBuffer::collect_bool(length, |index| bytes[index] != 0);
            builder.add_buffer(bits.into_inner()).build()
        }
        DType::Enum(named) if named.is_numbered() => names(builder, named, bytes, validity, length),
        DType::Float128 => {
            let elements = Elements::fixed(bytes);
            let number = |index| match element_to_json(dtype, &elements, index) {
                serde_json::Value::String(text) if text == "Infinity" => f64::INFINITY,
                serde_json::Value::String(text) if text == "-Infinity" => f64::NEG_INFINITY,
                value => value.as_f64().unwrap_or(f64::NAN),
            };
            builder.add_buffer(Buffer::from_vec((0..length).map(number).collect::<Vec<f64>>())).build()
        }
        DType::Complex64 | DType::Complex128 => {
            let part = if *dtype == DType::Complex64 { DType::Float32 } else { DType::Float64 };
            let parts = array_data(&part, Elements::fixed(bytes), length * 2, target)?;
            builder.add_child_data(parts).build()
        }
        DType::DateTime(unit) => dates(builder, *unit, bytes, validity, length, target),
        DType::Duration(unit) if duration(*unit).is_some() => {
            let nulls = without_nat(&bytes, validity, length);
            builder.nulls(nulls).add_buffer(Buffer::from(bytes)).build()
        }
        DType::FixedText(_) => {
            let elements = Elements::fixed(bytes);
            let texts = Elements::variable((0..length).map(|index| element_to_text(dtype, &elements, index)));
            let Data::Variable { offsets, bytes } = texts.data else { return Err(wrong("text")) };
            builder.add_buffer(offset_buffer(offsets, length)?).add_buffer(Buffer::from(bytes)).build()
        }
        DType::Array(base, shape) => {
            let child = array_data(base, Elements::fixed(bytes), cells(shape, length)?, target)?;
            nested(builder, base, shape, child, length, target)
        }
        // No bytes at all: empty values.
        _ if matches!(data_type(dtype, target), DataType::LargeBinary) => builder
            .add_buffer(offset_buffer(vec![0; length + 1], length)?)
            .add_buffer(Buffer::from(bytes))
            .build(),
        _ => builder.add_buffer(Buffer::from(bytes)).build(),
    }
}

/// Enumerations that number their members from zero become dictionaries of the names. The dictionary is the same for every batch.
fn names(
    builder: ArrayDataBuilder,
    named: &EnumType,
    bytes: Bytes,
    validity: Option<&Validity>,
    length: usize,
) -> Result<ArrayData> {
    let size = named.base.size().unwrap_or(1);
    let base = &named.base;
    let place = |value: i128| usize::try_from(value).ok().filter(|place| *place < named.members.len());
    let places: Vec<Option<usize>> = (0..length)
        .map(|index| {
            let there = validity.is_none_or(|validity| validity.get(index));
            there.then(|| integer(base, &bytes[index * size..(index + 1) * size])).flatten().and_then(place)
        })
        .collect();
    let nulls: BooleanBuffer = places.iter().map(Option::is_some).collect();
    let keys: Vec<u8> = places.iter().flat_map(|place| key(place.unwrap_or(0), size)).collect();
    let texts = Elements::variable(named.members.iter().map(|(name, _)| name));
    let Data::Variable { offsets, bytes: all } = texts.data else { return Err(wrong("text")) };
    let offsets =
        offsets.iter().map(|offset| i32::try_from(*offset)).collect::<std::result::Result<Vec<_>, _>>();
    let offsets = offsets.map_err(|_| wrong("the names of an enumeration exceed 2 GiB"))?;
    let names = ArrayData::builder(DataType::Utf8)
        .len(named.members.len())
        .add_buffer(Buffer::from_vec(offsets))
        .add_buffer(Buffer::from(all))
        .build()?;
    builder.nulls(Some(NullBuffer::new(nulls))).add_buffer(Buffer::from(keys)).add_child_data(names).build()
}

/// A position as an integer of this many bytes.
fn key(place: usize, size: usize) -> impl Iterator<Item = u8> {
    let bytes = (place as u64).to_ne_bytes();
    let from = if cfg!(target_endian = "little") { 0 } else { 8 - size };
    bytes.into_iter().skip(from).take(size)
}

/// The integer in these bytes.
fn integer(base: &DType, bytes: &[u8]) -> Option<i128> {
    let size = bytes.len();
    let mut wide = [0; 8];
    if cfg!(target_endian = "little") {
        wide.get_mut(..size)?.copy_from_slice(bytes);
    } else {
        wide.get_mut(8 - size..)?.copy_from_slice(bytes);
    }
    let word = u64::from_ne_bytes(wide);
    let signed = matches!(base, DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64);
    let shift = 64 - 8 * u32::try_from(size).ok()?;
    Some(if signed { i128::from(((word << shift) as i64) >> shift) } else { i128::from(word) })
}

fn ticks(bytes: &[u8]) -> impl ExactSizeIterator<Item = i64> + '_ {
    bytes.chunks_exact(8).map(|tick| i64::from_ne_bytes(tick.try_into().unwrap_or_default()))
}

/// The smallest `int64` is "not a time", which is null in Arrow.
fn without_nat(bytes: &[u8], validity: Option<&Validity>, length: usize) -> Option<NullBuffer> {
    if validity.is_none() && ticks(bytes).all(|tick| tick != i64::MIN) {
        return None;
    }
    let there = ticks(bytes)
        .enumerate()
        .map(|(index, tick)| tick != i64::MIN && validity.is_none_or(|validity| validity.get(index)));
    let bits: BooleanBuffer = there.collect();
    debug_assert_eq!(bits.len(), length, "one bit per element");
    Some(NullBuffer::new(bits))
}

fn dates(
    builder: ArrayDataBuilder,
    unit: TimeUnit,
    bytes: Bytes,
    validity: Option<&Validity>,
    length: usize,
    target: ArrowTarget,
) -> Result<ArrayData> {
    let nulls = without_nat(&bytes, validity, length);
    let there = |index: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(index));
    let out_of_reach =
        |tick: i64| wrong(format!("{tick} {} since 1970 is out of range for Arrow", unit.code()));
    let buffer = match (unit, timestamp(unit, target)) {
        (TimeUnit::Day, _) => {
            let day = |(index, tick): (usize, i64)| match i32::try_from(tick) {
                Ok(day) => Ok(day),
                Err(_) if there(index) => Err(out_of_reach(tick)),
                Err(_) => Ok(0),
            };
            Buffer::from_vec(ticks(&bytes).enumerate().map(day).collect::<Result<Vec<i32>>>()?)
        }
        (_, Some((_, each))) if each > 1 => {
            let scaled = |(index, tick): (usize, i64)| match tick.checked_mul(each) {
                Some(scaled) => Ok(scaled),
                None if there(index) => Err(out_of_reach(tick)),
                None => Ok(0),
            };
            Buffer::from_vec(ticks(&bytes).enumerate().map(scaled).collect::<Result<Vec<i64>>>()?)
        }
        _ => Buffer::from(bytes),
    };
    builder.nulls(nulls).add_buffer(buffer).build()
}
