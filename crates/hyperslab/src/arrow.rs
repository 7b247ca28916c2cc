//! Elements as Arrow arrays, and rows as Arrow and Parquet files.
//!
//! Where the layouts agree (numbers, complex numbers, variable-length text and bytes, lists, validity), buffers are passed on
//! without a copy.
//!
//! | Hyperslab | Arrow |
//! |---|---|
//! | `bool`, integers, `float16/32/64` | the same |
//! | `float128` | `Float64`, rounded |
//! | `complex64/128` | `FixedSizeList(2)` of the parts |
//! | `datetime64` in s, ms, us, ns | `Timestamp`; "not a time" is null |
//! | `datetime64` in days; weeks, hours and minutes | `Date32`; `Timestamp` in seconds |
//! | other `datetime64` | `Int64` ticks |
//! | `timedelta64` in s, ms, us, ns; others | `Duration`; `Int64` ticks |
//! | `bytes[n]`, `opaque[n]` | `FixedSizeBinary(n)` |
//! | `string[n]`, `string`, `reference` | `LargeUtf8` |
//! | `bytes` | `LargeBinary` |
//! | `enum` | `Dictionary` of its names, ordered if the type is; an integer without a name is null |
//! | `struct`, `list<T>`, `T(n, m)` | `Struct`, `LargeList`, nested `FixedSizeList` |
//!
//! Every field's metadata holds our name of the type under `hyperslab.dtype`. Parquet has no timestamps in seconds; they are
//! written in milliseconds.
//!
//! ```
//! use hyperslab::{DType, Elements};
//! use hyperslab::arrow::to_array;
//! let texts = to_array(&DType::String, Elements::variable(["a", "bc"]), 2)?;
//! assert_eq!(texts.len(), 2);
//! # Ok::<(), hyperslab::Error>(())
//! ```

mod convert;
mod fields;
mod file;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, make_array};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use hyperslab_core::{Batch, Column, DType, Elements, Error, Result};

use crate::OpenStore;

pub use fields::field;
pub use file::{write_arrow, write_parquet};

pub(crate) use fields::{ArrowTarget, NAMES, ORDERED};

/// Converts `length` elements to an Arrow array of the type given by [`field`].
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if the elements do not have the layout of their type, are too few, or contain text that is not
/// UTF-8 or a date outside the range of Arrow's type.
pub fn to_array(dtype: &DType, elements: Elements, length: usize) -> Result<ArrayRef> {
    let data =
        convert::array_data(dtype, elements, length, ArrowTarget::ARROW).map_err(|e| unfit(dtype, &e))?;
    Ok(make_array(data))
}

/// The schema of these columns.
#[must_use]
pub fn schema(columns: &[Column]) -> SchemaRef {
    schema_in(columns, ArrowTarget::ARROW)
}

fn schema_in(columns: &[Column], target: ArrowTarget) -> SchemaRef {
    let field = |column: &Column| fields::field_in(&column.name, &column.dtype, column.nullable, target);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// Converts a batch to an Arrow record batch.
///
/// # Errors
///
/// As [`to_array`], naming the column.
pub fn record_batch(columns: &[Column], batch: Batch) -> Result<RecordBatch> {
    record_batch_in(columns, batch, &schema(columns), ArrowTarget::ARROW)
}

/// A store whose only node is a table of these record batches, to convert or query. `name` is its name in messages.
///
/// # Errors
///
/// [`Unsupported`](Error::Unsupported) for a column of a type that has no counterpart.
pub fn store_of(name: &str, schema: &SchemaRef, batches: Vec<RecordBatch>) -> Result<OpenStore> {
    Ok(OpenStore::from_store(crate::source::batches_store(name, schema, batches)?, name))
}

fn record_batch_in(
    columns: &[Column],
    batch: Batch,
    schema: &SchemaRef,
    target: ArrowTarget,
) -> Result<RecordBatch> {
    let rows = batch.rows;
    let arrays = columns
        .iter()
        .zip(batch.columns)
        .map(|(column, elements)| {
            let data = convert::array_data(&column.dtype, elements, rows, target);
            let data = data.map_err(|error| {
                Error::invalid(format!(
                    "cannot convert column {} of type {} to Arrow: {error}",
                    column.name, column.dtype
                ))
            })?;
            Ok(make_array(data))
        })
        .collect::<Result<Vec<_>>>()?;
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
        .map_err(|error| Error::invalid(error.to_string()))
}

fn unfit(dtype: &DType, error: &ArrowError) -> Error {
    Error::invalid(format!("cannot convert elements of {dtype} to Arrow: {error}"))
}

#[cfg(test)]
mod tests;
