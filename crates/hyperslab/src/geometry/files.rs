//! Selected geometry to a file, in the form that its ending means.

use std::io::{BufWriter, Write};
use std::path::Path;

use hyperslab_core::storage::{StageOptions, StagedFile};
use hyperslab_core::{Error, Result};

use super::{Selected, write_obj, write_ply, write_swc};
use crate::rows;

/// The endings of files that hold geometry; rows have more.
pub const ENDINGS: &[&str] = &["json", "ply", "obj", "swc"];

/// Writes selected geometry: `.json`, `.ply`, `.obj` and `.swc` with its links, any other form of rows as one row a vertex.
/// The file appears whole or not at all.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for an ending that we do not know or what the form cannot hold, [`Exists`](Error::Exists) when
/// the file exists and `replace` is false; [`Io`](Error::Io) when the system refuses.
pub fn write(selected: &Selected, path: &Path, replace: bool) -> Result<()> {
    write_staged(selected, path, StageOptions::default().with_replace(replace))
}

/// As [`write`], with all options of the stage.
pub(crate) fn write_staged(selected: &Selected, path: &Path, options: StageOptions) -> Result<()> {
    let ending = rows::ending(path);
    if !ENDINGS.contains(&ending.as_str()) {
        if rows::writes(path) {
            return rows::write_staged(selected.rows()?, path, options);
        }
        let all: Vec<_> =
            ENDINGS.iter().chain(rows::ENDINGS.iter().filter(|own| **own != "json")).copied().collect();
        return Err(Error::invalid(format!(
            "{}: the ending is none of .{}",
            path.display(),
            all.join(", .")
        )));
    }
    if options.replace {
        crate::formats::check_replaceable_file(path)?;
    }
    let staged = StagedFile::create(path, options)?;
    let mut out = BufWriter::with_capacity(1 << 20, staged.file());
    match ending.as_str() {
        "ply" => write_ply(selected, &mut out)?,
        "obj" => write_obj(selected, &mut out)?,
        "swc" => write_swc(selected, &mut out)?,
        _ => serde_json::to_writer(&mut out, &selected.to_json())
            .map_err(|error| staged.failed(error.into()))?,
    }
    out.flush().map_err(|source| staged.failed(source))?;
    drop(out);
    staged.publish()
}
