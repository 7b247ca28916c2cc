//! References to the chunks of a store: a Zarr store that other programs open without copying data.
//!
//! ```no_run
//! let store = hyperslab::open("climate.h5")?;
//! let options = hyperslab::references::Options::new(&store);
//! hyperslab::references::write(&store, &options, "climate.json".as_ref(), false)?;
//! # Ok::<(), hyperslab::Error>(())
//! ```

#[cfg(feature = "arrow")]
mod parquet;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use hyperslab_core::storage::{StageOptions, StagedFile};
use hyperslab_core::{Attributes, Error, Node, Result};
use hyperslab_zarr::{ExportOptions, Reference, array_references, group_references, references_to_json};
use serde_json::Value;

#[cfg(feature = "arrow")]
pub use self::parquet::ParquetReferencesDriver;
use crate::{OpenStore, absolute_location};

/// The default limit for bytes of one array that are copied into the document.
const INLINE_LIMIT: u64 = 64 << 20;

/// Options for references.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where readers find the file: a path or URL.
    pub url: String,
    /// The maximum number of bytes of one array that may be copied into the document.
    pub inline_limit: u64,
}

impl Options {
    /// References to the store's current location, valid anywhere on this machine.
    #[must_use]
    pub fn new(store: &OpenStore) -> Self {
        Self { url: absolute_location(store.path()).display().to_string(), inline_limit: INLINE_LIMIT }
    }
}

/// The references of all groups and arrays of a store, by their key in the resulting Zarr store.
///
/// # Errors
///
/// [`Unsupported`](Error::Unsupported), with the array's name, if chunks cannot be referenced and are too large to be copied.
pub fn references(store: &OpenStore, options: &Options) -> Result<BTreeMap<String, Reference>> {
    let export = ExportOptions { url: options.url.clone(), inline_limit: options.inline_limit };
    let mut found = BTreeMap::new();
    store.walk(&mut |path, node| {
        let key = path.trim_matches('/');
        let prefix = if key.is_empty() { String::new() } else { format!("{key}/") };
        match node? {
            Node::Group(attributes) => {
                found.extend(group_references(&prefix, &user_attributes(&attributes)));
            }
            // A dimension without a variable has no values; the arrays along it name it.
            Node::Array(array) if array.schema().is_dimension => {}
            Node::Array(array) => {
                let attributes = user_attributes(&array.schema().attributes);
                found.extend(array_references(&*array, &attributes, &prefix, &export)?);
            }
            other => {
                let what = format!("references to a {} ({path})", other.kind());
                return Err(Error::unsupported(store.path().display().to_string(), what));
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// The attributes without any format's bookkeeping.
fn user_attributes(attributes: &Attributes) -> Attributes {
    let user = crate::convert::portable_attributes(attributes, false);
    user.into_iter().map(|(name, value)| (name, value.clone())).collect()
}

/// The references as kerchunk's JSON document, version 1.
///
/// # Errors
///
/// As [`references`].
pub fn to_json(store: &OpenStore, options: &Options) -> Result<Value> {
    Ok(references_to_json(&references(store, options)?))
}

/// Writes references to a file of kerchunk's JSON (`.json`), or to a directory of its Parquet files (`.parq`,
/// `.parquet`). The target appears complete or not at all.
///
/// # Errors
///
/// As [`references`]; [`Exists`](Error::Exists) if the target exists and `replace` is false,
/// [`Unsupported`](Error::Unsupported) for another extension.
pub fn write(store: &OpenStore, options: &Options, target: &Path, replace: bool) -> Result<()> {
    let target = &*crate::location::local_target(target)?;
    match target.extension().and_then(|extension| extension.to_str()) {
        Some("json") => {}
        #[cfg(feature = "arrow")]
        Some("parq" | "parquet") => {
            let found = references(store, options)?;
            if replace {
                crate::formats::check_replaceable(target, hyperslab_core::StoreForm::Directory)?;
            }
            return self::parquet::write(&found, target, replace);
        }
        _ => {
            let what = "references in another form than .json or .parq";
            return Err(Error::unsupported(target.display().to_string(), what));
        }
    }
    let document = to_json(store, options)?;
    if replace {
        crate::formats::check_replaceable_file(target)?;
    }
    let staged = StagedFile::create(target, StageOptions::default().with_replace(replace))?;
    let mut out = std::io::BufWriter::new(staged.file());
    serde_json::to_writer(&mut out, &document).map_err(|error| staged.failed(error.into()))?;
    out.flush().map_err(|error| staged.failed(error))?;
    drop(out);
    staged.publish()
}
