//! Maps our types to Arrow's.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, TimeUnit as ArrowUnit};
use hyperslab_core::{DType, TimeUnit};

/// The capabilities of the target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrowTarget {
    /// Whether there are timestamps in seconds. Parquet's longest unit is the millisecond.
    pub(crate) seconds: bool,
    /// Whether dictionaries keep the order of their names. Parquet's hold values in the order of their first occurrence.
    pub(crate) order: bool,
}

/// The key of the names of an enumeration in a field's metadata: an object of names and numbers.
pub(crate) const NAMES: &str = "hyperslab.enum";
/// The key that marks the order of the names as meaningful.
pub(crate) const ORDERED: &str = "hyperslab.ordered";

impl ArrowTarget {
    pub(crate) const ARROW: Self = Self { seconds: true, order: true };
    pub(crate) const PARQUET: Self = Self { seconds: false, order: false };
}

/// The Arrow field of a column.
#[must_use]
pub fn field(name: &str, dtype: &DType, nullable: bool) -> Field {
    field_in(name, dtype, nullable, ArrowTarget::ARROW)
}

pub(super) fn field_in(name: &str, dtype: &DType, nullable: bool, target: ArrowTarget) -> Field {
    let mut metadata = HashMap::from([("hyperslab.dtype".to_owned(), dtype.to_string())]);
    match dtype {
        DType::Enum(named) => {
            let members: serde_json::Map<_, _> = named
                .members
                .iter()
                .map(|(name, value)| {
                    (name.clone(), serde_json::Value::from(i64::try_from(*value).unwrap_or(i64::MAX)))
                })
                .collect();
            metadata.insert(NAMES.to_owned(), serde_json::Value::Object(members).to_string());
            if named.ordered {
                metadata.insert(ORDERED.to_owned(), "true".to_owned());
            }
        }
        DType::Opaque(opaque) if !opaque.tag.is_empty() => {
            metadata.insert("hyperslab.tag".to_owned(), opaque.tag.clone());
        }
        _ => {}
    }
    // "Not a time" is null in Arrow, and so is an enumeration code out of range, as in TileDB cells that were never written.
    let nullable = nullable
        || matches!(dtype, DType::DateTime(_) | DType::Duration(_))
        || matches!(dtype, DType::Enum(named) if named.is_numbered());
    let ordered = target.order && matches!(dtype, DType::Enum(named) if named.ordered);
    Field::new(name, data_type(dtype, target), nullable).with_metadata(metadata).with_dict_is_ordered(ordered)
}

/// Arrow's unit, and the number of its ticks per tick of ours.
pub(super) fn timestamp(unit: TimeUnit, target: ArrowTarget) -> Option<(ArrowUnit, i64)> {
    Some(match unit {
        TimeUnit::Millisecond => (ArrowUnit::Millisecond, 1),
        TimeUnit::Microsecond => (ArrowUnit::Microsecond, 1),
        TimeUnit::Nanosecond => (ArrowUnit::Nanosecond, 1),
        TimeUnit::Second | TimeUnit::Minute | TimeUnit::Hour | TimeUnit::Week => {
            let seconds = match unit {
                TimeUnit::Second => 1,
                TimeUnit::Minute => 60,
                TimeUnit::Hour => 3600,
                _ => 7 * 86_400,
            };
            if target.seconds {
                (ArrowUnit::Second, seconds)
            } else {
                (ArrowUnit::Millisecond, seconds * 1000)
            }
        }
        _ => return None,
    })
}

/// Arrow's unit for a duration, if it has ours.
pub(super) const fn duration(unit: TimeUnit) -> Option<ArrowUnit> {
    match unit {
        TimeUnit::Second => Some(ArrowUnit::Second),
        TimeUnit::Millisecond => Some(ArrowUnit::Millisecond),
        TimeUnit::Microsecond => Some(ArrowUnit::Microsecond),
        TimeUnit::Nanosecond => Some(ArrowUnit::Nanosecond),
        _ => None,
    }
}

pub(super) fn data_type(dtype: &DType, target: ArrowTarget) -> DataType {
    match dtype {
        DType::Bool => DataType::Boolean,
        DType::Int8 => DataType::Int8,
        DType::Int16 => DataType::Int16,
        DType::Int32 => DataType::Int32,
        DType::Int64 => DataType::Int64,
        DType::UInt8 => DataType::UInt8,
        DType::UInt16 => DataType::UInt16,
        DType::UInt32 => DataType::UInt32,
        DType::UInt64 => DataType::UInt64,
        DType::Float16 => DataType::Float16,
        DType::Float32 => DataType::Float32,
        DType::Float64 | DType::Float128 => DataType::Float64,
        DType::Complex64 => DataType::FixedSizeList(item(&DType::Float32, false, target), 2),
        DType::Complex128 => DataType::FixedSizeList(item(&DType::Float64, false, target), 2),
        DType::DateTime(TimeUnit::Day) => DataType::Date32,
        DType::DateTime(unit) => {
            timestamp(*unit, target).map_or(DataType::Int64, |(unit, _)| DataType::Timestamp(unit, None))
        }
        DType::Duration(unit) => duration(*unit).map_or(DataType::Int64, DataType::Duration),
        DType::Enum(named) if named.is_numbered() => {
            DataType::Dictionary(Box::new(data_type(&named.base, target)), Box::new(DataType::Utf8))
        }
        // Custom codes may lack a name, so they stay integers. The field's metadata holds the names.
        DType::Enum(named) => data_type(&named.base, target),
        DType::Struct(fields) => {
            let member =
                |member: &hyperslab_core::Member| field_in(&member.name, &member.dtype, true, target);
            DataType::Struct(fields.members.iter().map(member).collect())
        }
        DType::List(base) => DataType::LargeList(item(base, true, target)),
        DType::Array(base, shape) => shape.iter().rev().fold(data_type(base, target), |inner, &extent| {
            let extent = i32::try_from(extent).unwrap_or(i32::MAX);
            DataType::FixedSizeList(Arc::new(Field::new("item", inner, true)), extent)
        }),
        DType::FixedBytes(0) | DType::Bytes => DataType::LargeBinary,
        DType::FixedBytes(size) => DataType::FixedSizeBinary(i32::try_from(*size).unwrap_or(i32::MAX)),
        DType::Opaque(opaque) if opaque.size > 0 => {
            DataType::FixedSizeBinary(i32::try_from(opaque.size).unwrap_or(i32::MAX))
        }
        DType::Opaque(_) => DataType::LargeBinary,
        // Types added later are exported as text.
        _ => DataType::LargeUtf8,
    }
}

fn item(dtype: &DType, nullable: bool, target: ArrowTarget) -> Arc<Field> {
    Arc::new(Field::new("item", data_type(dtype, target), nullable))
}
