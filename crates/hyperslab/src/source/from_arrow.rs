//! Converts Arrow arrays to elements.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit as ArrowUnit};
use hyperslab_core::{DType, Elements, Error, Result, TimeUnit, Validity};

/// Our type for an Arrow type; `None` if there is none. Dictionaries of texts are texts until their names are known.
pub(super) fn dtype_of(data_type: &DataType) -> Option<DType> {
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
        DataType::Duration(unit) => DType::Duration(unit_of(*unit)),
        DataType::FixedSizeBinary(size) => DType::FixedBytes(usize::try_from(*size).ok()?),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DType::String,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DType::Bytes,
        DataType::Dictionary(_, values) => match dtype_of(values)? {
            DType::String => DType::String,
            _ => return None,
        },
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
    let validity = array.nulls().map(|nulls| Validity::from_flags(nulls.iter()));
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
        // Arrow's days are 32 bits wide.
        DType::DateTime(TimeUnit::Day) => {
            let days = array
                .as_primitive_opt::<arrow_array::types::Date32Type>()
                .ok_or_else(|| unexpected(array))?;
            Elements::fixed(
                days.values().iter().flat_map(|day| i64::from(*day).to_ne_bytes()).collect::<Vec<u8>>(),
            )
        }
        dtype => {
            let size = dtype.size().ok_or_else(|| unexpected(array))?;
            let data = array.to_data();
            let from = data.offset().checked_mul(size);
            let bytes = data.buffers().first().zip(from).and_then(|(buffer, from)| {
                buffer.as_slice().get(from..from.checked_add(length.checked_mul(size)?)?)
            });
            Elements::fixed(bytes.ok_or_else(|| unexpected(array))?.to_vec())
        }
    };
    Ok(elements.with_validity(validity))
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
