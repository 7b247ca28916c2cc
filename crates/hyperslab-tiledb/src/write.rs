//! Writing. The commit file comes last, so a killed writer leaves only an invisible fragment.
//!
//! All writes go through the core's stages: a `StagedFolder` for a new array or group, a `StagedChange` for changes
//! to an existing one.

mod append;
mod consolidate;
mod delete;
mod dense;
mod empty;
mod enumeration;
mod evolve;
mod fragment;
mod grow;
mod labels;
mod locks;
mod metadata;
mod repair;
mod sparse;
mod statistics;
mod table;
mod template;
mod tree;
mod types;
mod vacuum;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use hyperslab_core::storage::StageWriter;
use hyperslab_core::{Error, Result};

pub use append::{TileDbAppend, append, append_elsewhere};
pub use consolidate::{ConsolidateOptions, consolidate};
pub use delete::delete_rows;
pub use evolve::evolve;
pub(crate) use fragment::{FieldTile, FragmentWriter};
pub use repair::repair;
pub use sparse::{create_sparse, write_sparse};
pub(crate) use statistics::TileStats;
pub use table::{TileDbTable, append_table, append_table_elsewhere, create_table};
pub use tree::{TileDbSink, create};
pub(crate) use types::datatype;
pub use vacuum::vacuum;

use crate::array::OpenArray;
use crate::key::Key;
use crate::random;
use crate::schema::{Schema, WRITTEN};

/// How to write.
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// The time of the write in milliseconds; now by default. Never reused: of two writes at the same time, a random
    /// one wins.
    pub at: Option<u64>,
    /// The key to encrypt with.
    pub key: Option<Key>,
    /// Replace whatever exists at the path.
    pub force: bool,
    /// Sync a new array or group before its commit. Replacements and changes are always synced.
    pub sync: bool,
    /// Arrays are matched by name: new names create arrays, existing arrays grow. Otherwise, each array becomes a new
    /// fragment of the array with its name, or of the only array in the store.
    pub by_name: bool,
}

/// Returns a millisecond later than `after` that no other write of this process has used.
pub(crate) fn next_time(wanted: Option<u64>, after: u64) -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    if let Some(wanted) = wanted {
        return wanted;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let mut chosen = 0;
    let _ = LAST.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| {
        chosen = now.max(last + 1).max(after.saturating_add(1));
        Some(chosen)
    });
    chosen
}

/// Returns a millisecond later than every write of the array.
pub(crate) fn time_of(array: &OpenArray, options: &WriteOptions) -> Result<u64> {
    let names = array.commits()?.fragments.values().map(|(name, _)| name.end);
    let schemas = array.listing.schemas.iter().map(|name| name.end);
    Ok(next_time(options.at, names.chain(schemas).max().unwrap_or(0)))
}

/// Returns `__T_T_UUID`, followed by the version if `versioned`.
pub(crate) fn timed_name(start: u64, end: u64, versioned: bool) -> Result<String> {
    let name = format!("__{start}_{end}_{}", random::uuid()?);
    Ok(if versioned { format!("{name}_{WRITTEN}") } else { name })
}

/// Joins the key of an array in its store with the key of an object in the array.
fn key_in(array: &str, key: &str) -> String {
    if array.is_empty() { key.to_owned() } else { format!("{array}/{key}") }
}

/// Writes a schema into an array's directory. Returns its name.
pub(crate) fn put_schema(array: &StageWriter, schema: &Schema, at: u64, key: Option<&Key>) -> Result<String> {
    let name = timed_name(at, at, false)?;
    array.put(&schema_key(&name), &crate::generic::encode(&schema.encode(), WRITTEN, key)?)?;
    Ok(name)
}

/// The key of a schema in its array.
pub(crate) fn schema_key(name: &str) -> String {
    format!("__schema/{name}")
}

/// Returns the schema for a new fragment, and its name. A fragment's format version must not exceed its schema's, so
/// an array in an older version first gets a copy of its schema in the current version.
pub(crate) fn schema_to_write(
    folder: &StageWriter,
    array: &OpenArray,
    key: Option<&Key>,
) -> Result<(Arc<Schema>, String)> {
    let name = array
        .listing
        .schema_at(array.window())
        .ok_or_else(|| Error::not_found(Arc::clone(&array.name), "a schema"))?;
    if array.schema.version >= WRITTEN {
        return Ok((Arc::clone(&array.schema), name));
    }
    let last = array.listing.schemas.iter().map(|name| name.end).max().unwrap_or(0);
    let schema = Arc::new(Schema { version: WRITTEN, ..(*array.schema).clone() });
    let name = put_schema(folder, &schema, next_time(None, last), key)?;
    Ok((schema, name))
}

/// Writes the commit file, which makes a fragment visible. Returns its key in the array.
pub(crate) fn put_commit(array: &StageWriter, fragment: &str) -> Result<String> {
    let key = format!("__commits/{fragment}.wrt");
    array.put(&key, &[])?;
    Ok(key)
}
