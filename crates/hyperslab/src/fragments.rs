//! Operations of formats that store every write separately, such as TileDB: consolidate and vacuum fragments, delete rows, add
//! and drop fields.

use std::path::Path;
use std::sync::atomic::Ordering;

use hyperslab_core::{Attribute, DType, Elements, Error, FormatDriver, Result, Selection, closest};
pub use hyperslab_core::{FieldChange, FieldSpec};

use crate::convert::Progress;
use crate::edit::parse_attribute;
use crate::{OpenOptions, RowCondition, TableReader, open_with};

/// Names of types that are suggested for misspelt ones.
const TYPES: [&str; 13] = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
    "string", "bytes",
];

/// Merges the fragments of an array, or of each array of a group, into one. Replaced fragments stay, hidden, until
/// [`vacuum_path`]. [`OpenOptions::at`] selects fragments by time. Returns the number of replaced fragments.
///
/// # Errors
///
/// [`Unsupported`](Error::Unsupported) for a format without fragments; [`Invalid`](Error::Invalid) if cancelled. The content of
/// the array never changes.
pub fn consolidate_path(path: &Path, options: &OpenOptions, progress: &Progress) -> Result<u64> {
    let follow = |done, total| {
        progress.total.store(total, Ordering::Relaxed);
        progress.done.store(done, Ordering::Relaxed);
        !progress.stop.load(Ordering::Relaxed)
    };
    driver_of(path, options)?.consolidate(path, &options.context(path), &follow)
}

/// Removes the fragments that consolidated ones replaced. Returns their number.
///
/// # Errors
///
/// [`Unsupported`](Error::Unsupported) for a format without fragments; [`Io`](Error::Io) if the system reports an error.
pub fn vacuum_path(path: &Path, options: &OpenOptions) -> Result<u64> {
    driver_of(path, options)?.vacuum(path, &options.context(path))
}

/// Deletes the rows of a table that meet a condition, in formats that store deletes beside their data. Earlier times still
/// include them. Returns the number of deleted rows.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if the store is not one table, or the condition does not fit its columns;
/// [`Unsupported`](Error::Unsupported) if rows cannot be deleted.
pub fn delete_rows(path: &Path, condition: &RowCondition, options: &OpenOptions) -> Result<u64> {
    let driver = driver_of(path, options)?;
    let table = open_with(path, options)?.table("/")?;
    let count = |table: &TableReader, condition: &RowCondition| -> Result<u64> {
        let scan = table.scan_where(&Selection::all(), Some(&[]), Some(condition))?;
        table.rows_of(&scan)?.batches.try_fold(0, |rows, batch| Ok(rows + batch?.rows as u64))
    };
    let filter = condition.bind(&table.schema().columns)?;
    let before = table.inner().rows()?;
    // TileDB also deletes rows for which the condition is unknown because a value is missing.
    let may_miss = table.schema().columns.iter().any(|column| column.nullable);
    if !may_miss && count(&table, condition)? == 0 {
        return Ok(0);
    }
    driver.delete_rows(path, &filter, &options.context(path))?;
    let after = open_with(path, options)?.table("/")?.inner().rows()?;
    Ok(before.saturating_sub(after))
}

/// Adds fields to an existing array or table, and drops others: all of the changes or none. Existing cells hold the fill value of
/// a new field; earlier times still include a dropped one. With `dry_run`, only checks the changes.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for a name that is taken or does not exist; [`Unsupported`](Error::Unsupported) for a format whose
/// fields cannot change.
pub fn change_fields(
    path: &Path,
    node: &str,
    changes: &[FieldChange],
    options: &OpenOptions,
    dry_run: bool,
) -> Result<()> {
    driver_of(path, options)?.change_fields(path, node, changes, &options.context(path), dry_run)
}

/// Parses a new field: `quality:int16`, `note:string?` for a nullable field, `quality:int16=-1` with a fill value.
///
/// ```
/// use hyperslab::fragments::parse_field;
/// let field = parse_field("quality:int16=-1")?;
/// assert_eq!((field.name.as_str(), field.dtype, field.nullable), ("quality", hyperslab::DType::Int16, false));
/// assert!(parse_field("note:string?")?.nullable);
/// assert!(parse_field("quality:int7").is_err());
/// assert!(parse_field("quality:int8=400").is_err());
/// # Ok::<(), hyperslab::Error>(())
/// ```
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for an unknown type, or a fill value that the type cannot hold.
pub fn parse_field(text: &str) -> Result<FieldSpec> {
    let wrong = |why: &str| Error::invalid(format!("{text:?}: {why}, as in quality:int16 or note:string?"));
    let (name, rest) = text.split_once(':').ok_or_else(|| wrong("a field is a name and a type"))?;
    let (kind, fill) = rest.split_once('=').map_or((rest, None), |(kind, fill)| (kind, Some(fill)));
    let (kind, nullable) = kind.strip_suffix('?').map_or((kind, false), |kind| (kind, true));
    let dtype = crate::forms::parse_type(kind.trim()).ok_or_else(|| {
        let hint =
            closest(kind.trim(), TYPES).map_or_else(String::new, |name| format!("did you mean {name}? "));
        Error::invalid(format!("no type {}; {hint}write quality:int16 or note:string?", kind.trim()))
    })?;
    let fill = fill.map(|fill| field_fill(fill, &dtype)).transpose()?;
    Ok(FieldSpec { name: name.trim().to_owned(), dtype, nullable, fill, filters: Vec::new() })
}

/// Parses the fill value of a field.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for a value that the type cannot hold.
pub fn field_fill(text: &str, dtype: &DType) -> Result<Elements> {
    if matches!(dtype, DType::String | DType::Bytes) {
        return Ok(Elements::variable([text]));
    }
    // Times are counts.
    let number = if matches!(dtype, DType::DateTime(_) | DType::Duration(_)) { &DType::Int64 } else { dtype };
    match parse_attribute(text, Some(number))? {
        Attribute::Values(values) if values.dtype == *number && values.len() == 1 => Ok(values.elements),
        _ => Err(Error::invalid(format!("{text:?} is not a fill value of type {dtype}"))),
    }
}

fn driver_of(path: &Path, options: &OpenOptions) -> Result<&'static dyn FormatDriver> {
    crate::location::check_local(path, "changing fragments, rows or fields on")?;
    let format = open_with(path, options)?.driver();
    let format =
        format.ok_or_else(|| Error::invalid(format!("{}: the format is unknown", path.display())))?;
    Ok(format.driver())
}
