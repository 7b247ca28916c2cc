//! Writes selected geometry to a file, in the format given by its extension.

use std::io::{BufWriter, Write};
use std::path::Path;

use hyperslab_core::storage::{StageOptions, StagedFile};
use hyperslab_core::{Error, Result};

use super::{Selected, write_obj, write_ply, write_swc};
use crate::rows;

/// The extensions of geometry files. Files of rows have others.
pub const ENDINGS: &[&str] = &["json", "ply", "obj", "swc"];

/// Writes selected geometry: `.json`, `.ply`, `.obj` and `.swc` with its links, any file of rows with one row per vertex. The
/// file appears complete or not at all.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for an unknown extension or content that the format cannot hold, [`Exists`](Error::Exists) if the
/// file exists and `replace` is false; [`Io`](Error::Io) if the system reports an error.
pub fn write(selected: &Selected, path: &Path, replace: bool) -> Result<()> {
    write_staged(selected, path, StageOptions::default().with_replace(replace))
}

/// Like [`write`], with all staging options.
pub(crate) fn write_staged(selected: &Selected, path: &Path, options: StageOptions) -> Result<()> {
    let path = &*crate::location::local_target(path)?;
    let ending = rows::ending(path);
    if !ENDINGS.contains(&ending.as_str()) {
        if rows::writes(path) {
            return rows::write_staged(selected.rows()?, path, options);
        }
        let all: Vec<_> =
            ENDINGS.iter().chain(rows::ENDINGS.iter().filter(|own| **own != "json")).copied().collect();
        return Err(Error::invalid(format!(
            "{}: cannot infer the format from the extension; use one of .{}",
            crate::location_name(path),
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
