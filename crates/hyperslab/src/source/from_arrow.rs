//! Converts Arrow arrays to elements.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_schema::{DataType, Field, TimeUnit as ArrowUnit};
use hyperslab_core::{DType, Data, Elements, Error, Result, TimeUnit, Validity};

/// The key of our name of the type in a field's metadata.
const OWN_TYPE: &str = "hyperslab.dtype";

/// Our type for the values of an Arrow field; `None` if there is none. Dictionaries of texts are texts until their names are known.
pub(super) fn dtype_of(field: &Field) -> Option<DType> {
    type_of(field.data_type()).map(|dtype| {
        match (&dtype, field.metadata().get(OWN_TYPE).map(String::as_str)) {
            // We write complex numbers as their two parts.
            (DType::Array(base, shape), Some("complex64")) if **base == DType::Float32 && *shape == [2] => {
                DType::Complex64
            }
            (DType::Array(base, shape), Some("complex128")) if **base == DType::Float64 && *shape == [2] => {
                DType::Complex128
            }
            _ => dtype,
        }
    })
}

fn type_of(data_type: &DataType) -> Option<DType> {
    Some(match data_type {
        // All values are missing, so any type would do.
        DataType::Null => DType::Bytes,
        DataType::Boolean => DType::Bool,
        DataType::Int8 => DType::Int8,
        DataType::Int16 => DType::Int16,
        DataType::Int32 => DType::Int32,
        DataType::Int64 => DType::Int64,
        DataType::UInt8 => DType::UInt8,
        DataType::UInt16 => DType::UInt16,
        DataType::UInt32 => DType::UInt32,
        DataType::UInt64 => DType::UInt64,
        DataType::Float16 => DType::Float16,
        DataType::Float32 => DType::Float32,
        DataType::Float64 => DType::Float64,
        DataType::Date32 => DType::DateTime(TimeUnit::Day),
        DataType::Date64 => DType::DateTime(TimeUnit::Millisecond),
        DataType::Timestamp(unit, _) => DType::DateTime(unit_of(*unit)),
        // A time of day is the time since midnight.
        DataType::Duration(unit) | DataType::Time32(unit) | DataType::Time64(unit) => {
            DType::Duration(unit_of(*unit))
        }
        DataType::FixedSizeBinary(size) => DType::FixedBytes(usize::try_from(*size).ok()?),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DType::String,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DType::Bytes,
        DataType::Dictionary(_, values) => type_of(values)?,
        DataType::FixedSizeList(item, size) => {
            let (size, base) = (usize::try_from(*size).ok()?, type_of(item.data_type())?);
            match base {
                DType::Array(base, inner) => DType::Array(base, [size].into_iter().chain(inner).collect()),
                base => DType::Array(base.into(), vec![size]),
            }
        }
        DataType::List(item) | DataType::LargeList(item) => DType::List(type_of(item.data_type())?.into()),
        _ => return None,
    })
}

const fn unit_of(unit: ArrowUnit) -> TimeUnit {
    match unit {
        ArrowUnit::Second => TimeUnit::Second,
        ArrowUnit::Millisecond => TimeUnit::Millisecond,
        ArrowUnit::Microsecond => TimeUnit::Microsecond,
        ArrowUnit::Nanosecond => TimeUnit::Nanosecond,
    }
}

/// The names in the dictionary of an array.
pub(super) fn names(array: &ArrayRef) -> Result<Vec<String>> {
    let dictionary =
        array.as_any_dictionary_opt().ok_or_else(|| Error::invalid("the column has no dictionary"))?;
    let values = dictionary.values();
    Ok((0..values.len()).map(|at| String::from_utf8_lossy(text(values, at)).into_owned()).collect())
}

/// Converts an array to elements of this type. `codes` holds the code of each enumeration name.
pub(super) fn elements(dtype: &DType, array: &ArrayRef, codes: &HashMap<String, usize>) -> Result<Elements> {
    let length = array.len();
    if array.data_type() == &DataType::Null {
        let missing = Validity::from_flags((0..length).map(|_| false));
        return Ok(Elements::variable((0..length).map(|_| "")).with_validity(Some(missing)));
    }
    let validity = array.logical_nulls().map(|nulls| Validity::from_flags(nulls.iter()));
    if let (Some(dictionary), false) = (array.as_any_dictionary_opt(), matches!(dtype, DType::Enum(_))) {
        let values = elements(dtype, dictionary.values(), codes)?;
        let empty = dictionary.values().is_empty();
        let keys = if empty { Vec::new() } else { dictionary.normalized_keys() };
        let picks: Vec<(usize, usize)> = keys.into_iter().map(|key| (0, key)).collect();
        if picks.len() < length {
            return empty_elements(dtype, length).map(|elements| elements.with_validity(validity));
        }
        // A missing row may have any key.
        let last = dictionary.values().len() - 1;
        let picks: Vec<(usize, usize)> = picks.into_iter().map(|(row, key)| (row, key.min(last))).collect();
        return Ok(Elements::gather(dtype, &[&values], &picks)?.with_validity(validity));
    }
    let elements = match dtype {
        DType::Enum(named) => {
            let size = named.base.size().unwrap_or(4);
            let dictionary = array
                .as_any_dictionary_opt()
                .ok_or_else(|| Error::invalid("the column has no dictionary"))?;
            let own: Vec<usize> =
                names(array)?.iter().map(|name| codes.get(name).copied().unwrap_or(usize::MAX)).collect();
            // An empty dictionary has no keys: all rows are null.
            let keys = if own.is_empty() { vec![0; length] } else { dictionary.normalized_keys() };
            let code = |key: &usize| own.get(*key).copied().unwrap_or(0);
            Elements::fixed(keys.iter().flat_map(|key| little(code(key), size)).collect::<Vec<u8>>())
        }
        DType::Bool => {
            let values = array.as_boolean_opt().ok_or_else(|| unexpected(array))?.values();
            Elements::fixed(values.iter().map(u8::from).collect::<Vec<u8>>())
        }
        DType::String | DType::Bytes => Elements::variable(
            (0..length).map(|row| if array.is_null(row) { &[][..] } else { text(array, row) }),
        ),
        // Arrow's days and some of its times are 32 bits wide.
        DType::DateTime(_) | DType::Duration(_)
            if matches!(array.data_type(), DataType::Date32 | DataType::Time32(_)) =>
        {
            let ticks = plain(array, 4)?;
            let ticks =
                ticks.chunks_exact(4).map(|tick| i32::from_ne_bytes(tick.try_into().unwrap_or_default()));
            Elements::fixed(ticks.flat_map(|tick| i64::from(tick).to_ne_bytes()).collect::<Vec<u8>>())
        }
        DType::Array(base, shape) => small_arrays(base, shape, array, codes)?,
        DType::Complex64 => small_arrays(&DType::Float32, &[2], array, codes)?,
        DType::Complex128 => small_arrays(&DType::Float64, &[2], array, codes)?,
        DType::List(base) => match array.data_type() {
            DataType::LargeList(_) => lists::<i64>(base, array, codes)?,
            _ => lists::<i32>(base, array, codes)?,
        },
        dtype => Elements::fixed(plain(array, dtype.size().ok_or_else(|| unexpected(array))?)?),
    };
    Ok(elements.with_validity(validity))
}

/// The bytes of an array of plain values.
fn plain(array: &ArrayRef, size: usize) -> Result<Vec<u8>> {
    let data = array.to_data();
    let from = data.offset().checked_mul(size);
    let bytes = data.buffers().first().zip(from).and_then(|(buffer, from)| {
        buffer.as_slice().get(from..from.checked_add(array.len().checked_mul(size)?)?)
    });
    bytes.map(<[u8]>::to_vec).ok_or_else(|| unexpected(array))
}

/// Elements that are all missing.
fn empty_elements(dtype: &DType, length: usize) -> Result<Elements> {
    match dtype.size() {
        Some(size) => Ok(Elements::fixed(vec![0; size.saturating_mul(length)])),
        None if matches!(dtype, DType::String | DType::Bytes) => {
            Ok(Elements::variable((0..length).map(|_| "")))
        }
        None => Err(Error::invalid("a dictionary of lists without values")),
    }
}

/// Lists of a fixed size, nested for each extent of the shape.
fn small_arrays(
    base: &DType,
    shape: &[usize],
    array: &ArrayRef,
    codes: &HashMap<String, usize>,
) -> Result<Elements> {
    let mut items = Arc::clone(array);
    for (axis, extent) in shape.iter().enumerate() {
        let list = items.as_fixed_size_list_opt().ok_or_else(|| unexpected(array))?;
        if usize::try_from(list.value_length()) != Ok(*extent) {
            return Err(unexpected(array));
        }
        let next = Arc::clone(list.values());
        let each: usize = shape[..=axis].iter().product();
        check_items(&next, |item| array.is_null(item / each.max(1)))?;
        items = next;
    }
    let held = elements(base, &items, codes)?.with_validity(None);
    Ok(match held.data {
        Data::Fixed(_) => held,
        _ => {
            let items = Box::new(held);
            Elements { data: Data::FixedList { each: shape.iter().product(), items }, validity: None }
        }
    })
}

fn lists<O: OffsetSizeTrait>(
    base: &DType,
    array: &ArrayRef,
    codes: &HashMap<String, usize>,
) -> Result<Elements> {
    let list = array.as_list_opt::<O>().ok_or_else(|| unexpected(array))?;
    // A missing list may have items, which nobody sees.
    let (mut offsets, mut picks) = (vec![0_u64], Vec::new());
    for row in 0..list.len() {
        if list.is_valid(row) {
            picks.extend(list.value_offsets()[row].as_usize()..list.value_offsets()[row + 1].as_usize());
        }
        offsets.push(picks.len() as u64);
    }
    let values = list.values();
    if values.null_count() > 0 && picks.iter().any(|item| values.is_null(*item)) {
        return Err(Error::invalid(MISSING_ITEM));
    }
    let held = elements(base, values, codes)?.with_validity(None);
    let picks: Vec<(usize, usize)> = picks.into_iter().map(|item| (0, item)).collect();
    let items = Box::new(Elements::gather(base, &[&held], &picks)?);
    Ok(Elements { data: Data::List { offsets, items }, validity: None })
}

const MISSING_ITEM: &str = "items are missing inside lists";

fn check_items(items: &ArrayRef, is_hidden: impl Fn(usize) -> bool) -> Result<()> {
    if items.null_count() > 0 && (0..items.len()).any(|item| items.is_null(item) && !is_hidden(item)) {
        return Err(Error::invalid(MISSING_ITEM));
    }
    Ok(())
}

fn little(code: usize, size: usize) -> impl Iterator<Item = u8> {
    let bytes = (code as u64).to_ne_bytes();
    let from = if cfg!(target_endian = "little") { 0 } else { 8 - size };
    bytes.into_iter().skip(from).take(size)
}

/// One text or byte string.
fn text(array: &dyn Array, row: usize) -> &[u8] {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().value(row).as_bytes(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).as_bytes(),
        DataType::Utf8View => array.as_string_view().value(row).as_bytes(),
        DataType::Binary => array.as_binary::<i32>().value(row),
        DataType::LargeBinary => array.as_binary::<i64>().value(row),
        DataType::BinaryView => array.as_binary_view().value(row),
        _ => &[],
    }
}

fn unexpected(array: &ArrayRef) -> Error {
    Error::invalid(format!("values of Arrow type {} do not match the schema", array.data_type()))
}
