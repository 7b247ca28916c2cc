//! Writes rows to a file, in the format given by its extension.

use std::io::{BufWriter, Write};
use std::path::Path;

use hyperslab_core::storage::{StageOptions, StagedFile};
use hyperslab_core::{DType, Error, Result};

use super::{Rows, write_csv, write_json, write_npy};
use crate::ArrayReader;

/// The extensions for files of rows in this build.
pub const ENDINGS: &[&str] = &[
    "csv",
    "json",
    "npy",
    #[cfg(feature = "arrow")]
    "arrow",
    #[cfg(feature = "arrow")]
    "feather",
    #[cfg(feature = "arrow")]
    "parquet",
];

/// Returns true if rows can be written to a file with this name.
#[must_use]
pub fn writes(path: &Path) -> bool {
    ENDINGS.contains(&ending(path).as_str())
}

/// Returns true if an array of this type is written to such a file element by element, not as rows. `.csv` takes structs as rows
/// and anything else as lines along the last axis; columnar files take all arrays as rows.
#[must_use]
pub fn takes_elements(path: &Path, dtype: &DType) -> bool {
    match ending(path).as_str() {
        "csv" => !matches!(dtype, DType::Struct(_)),
        "json" | "npy" => true,
        _ => !writes(path),
    }
}

/// Returns true if an array is written to such a file as rows, by the rule of [`takes_elements`]. `.csv` also takes an array with
/// labels along its dimensions as rows, so that the labels are kept.
#[must_use]
pub fn as_rows(path: &Path, array: &ArrayReader) -> bool {
    !takes_elements(path, &array.schema().dtype) || ending(path) == "csv" && array.has_labels()
}

/// Returns true if values are decoded by the file's conventions when written to such a file. This applies to files
/// for spreadsheets and data frames, which cannot hold the attributes needed for decoding. `.json` and `.npy` get the
/// stored values.
#[must_use]
pub fn takes_decoded(path: &Path) -> bool {
    matches!(ending(path).as_str(), "csv" | "arrow" | "feather" | "parquet")
}

pub(crate) fn ending(path: &Path) -> String {
    path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase()
}

/// Writes rows in the format given by the extension of `path`: `.csv`, `.json`, `.npy`, `.arrow` (`.feather`), `.parquet`. The
/// file appears complete or not at all.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for an unknown extension or a type that the format cannot hold, [`Exists`](Error::Exists) if the
/// file exists and `replace` is false; [`Io`](Error::Io) if the system reports an error; otherwise any error from a batch.
pub fn write(rows: Rows<'_>, path: &Path, replace: bool) -> Result<()> {
    write_staged(rows, path, StageOptions::default().with_replace(replace))
}

/// Like [`write`], with all staging options.
pub(crate) fn write_staged(rows: Rows<'_>, path: &Path, options: StageOptions) -> Result<()> {
    let path = &*crate::location::local_target(path)?;
    let ending = ending(path);
    if !ENDINGS.contains(&ending.as_str()) {
        return Err(Error::invalid(format!(
            "{}: cannot infer the format from the extension; use one of .{}",
            crate::location_name(path),
            ENDINGS.join(", .")
        )));
    }
    if options.replace {
        crate::formats::check_replaceable_file(path)?;
    }
    let staged = StagedFile::create(path, options)?;
    let mut out = BufWriter::with_capacity(1 << 20, staged.file());
    match ending.as_str() {
        "csv" => write_csv(rows, &mut out)?,
        "json" => write_json(rows, &mut out)?,
        "npy" => write_npy(rows, &mut out)?,
        #[cfg(feature = "arrow")]
        "parquet" => crate::arrow::write_parquet(rows, &mut out)?,
        #[cfg(feature = "arrow")]
        _ => crate::arrow::write_arrow(rows, &mut out)?,
        #[cfg(not(feature = "arrow"))]
        _ => {}
    }
    out.flush().map_err(|source| staged.failed(source))?;
    drop(out);
    staged.publish()
}
