//! Rows to a file, in the form that its ending means.

use std::io::{BufWriter, Write};
use std::path::Path;

use hyperslab_core::storage::{StageOptions, StagedFile};
use hyperslab_core::{DType, Error, Result};

use super::{Rows, write_csv, write_json, write_npy};
use crate::ArrayReader;

/// The endings that rows can be written as, in this build.
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

/// Can rows be written to a file of this name?
#[must_use]
pub fn writes(path: &Path) -> bool {
    ENDINGS.contains(&ending(path).as_str())
}

/// Are the elements of an array of this type written to such a file as they stand, not as rows? `.csv` takes structs as rows
/// and anything else by lines of the last axis; files of columns take all arrays as rows.
#[must_use]
pub fn takes_elements(path: &Path, dtype: &DType) -> bool {
    match ending(path).as_str() {
        "csv" => !matches!(dtype, DType::Struct(_)),
        "json" | "npy" => true,
        _ => !writes(path),
    }
}

/// Is an array written to such a file as rows? As [`takes_elements`] says; where labels stand along its dimensions, `.csv` takes
/// rows as well, so that they are kept.
#[must_use]
pub fn as_rows(path: &Path, array: &ArrayReader) -> bool {
    !takes_elements(path, &array.schema().dtype) || ending(path) == "csv" && array.has_labels()
}

pub(crate) fn ending(path: &Path) -> String {
    path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase()
}

/// Writes rows in the form that the ending of `path` means: `.csv`, `.json`, `.npy`, `.arrow` (`.feather`), `.parquet`.
/// The file appears whole or not at all.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for an ending that we do not know or a type that the form cannot hold,
/// [`Exists`](Error::Exists) when the file exists and `replace` is false; [`Io`](Error::Io) when the system refuses; otherwise
/// whatever a batch says.
pub fn write(rows: Rows<'_>, path: &Path, replace: bool) -> Result<()> {
    write_staged(rows, path, StageOptions::default().with_replace(replace))
}

/// As [`write`], with all options of the stage.
pub(crate) fn write_staged(rows: Rows<'_>, path: &Path, options: StageOptions) -> Result<()> {
    let ending = ending(path);
    if !ENDINGS.contains(&ending.as_str()) {
        return Err(Error::invalid(format!(
            "{}: the ending is none of .{}",
            path.display(),
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
