//! Writing: fragments whose commit file comes last, so that a killed writer leaves an invisible fragment.
//!
//! Everything goes through the core's stages: a new array or group is a `StagedFolder`, whatever is added to one that exists
//! a `StagedChange`.

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
pub use table::{TileDbTable, append_table, create_table};
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
    /// The millisecond of the write; now by default. Never reused: of two writes at one time a random one wins.
    pub at: Option<u64>,
    /// The key to encrypt with.
    pub key: Option<Key>,
    /// Replace what stands at the path.
    pub force: bool,
    /// Make a new array or group durable before it is committed. What replaces or changes one always is.
    pub sync: bool,
    /// Arrays that are added to a store are new ones, and arrays that it has grow. Otherwise each is a new fragment of the
    /// array of its name, or of the only array that there is.
    pub by_name: bool,
}

/// A millisecond that no other write of this process has had, and later than `after`.
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

/// The millisecond of a write that is newer than all that the array has.
pub(crate) fn time_of(array: &OpenArray, options: &WriteOptions) -> Result<u64> {
    let names = array.commits()?.fragments.values().map(|(name, _)| name.end);
    let schemas = array.listing.schemas.iter().map(|name| name.end);
    Ok(next_time(options.at, names.chain(schemas).max().unwrap_or(0)))
}

/// `__T_T_UUID`, with the version behind it where `versioned`.
pub(crate) fn timed_name(start: u64, end: u64, versioned: bool) -> Result<String> {
    let name = format!("__{start}_{end}_{}", random::uuid()?);
    Ok(if versioned { format!("{name}_{WRITTEN}") } else { name })
}

/// The key of an object of an array, from the key of the array in its store.
fn key_in(array: &str, key: &str) -> String {
    if array.is_empty() { key.to_owned() } else { format!("{array}/{key}") }
}

/// Writes a schema into an array's directory; returns its name.
pub(crate) fn put_schema(array: &StageWriter, schema: &Schema, at: u64, key: Option<&Key>) -> Result<String> {
    let name = timed_name(at, at, false)?;
    array.put(&schema_key(&name), &crate::generic::encode(&schema.encode(), WRITTEN, key)?)?;
    Ok(name)
}

/// The key of a schema in its array.
pub(crate) fn schema_key(name: &str) -> String {
    format!("__schema/{name}")
}

/// The schema that a new fragment has, and its name. A fragment must not be newer than its schema: an old array gets the same
/// schema once more, in the version that is written.
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

/// Writes what makes a fragment visible; returns its key in the array.
pub(crate) fn put_commit(array: &StageWriter, fragment: &str) -> Result<String> {
    let key = format!("__commits/{fragment}.wrt");
    array.put(&key, &[])?;
    Ok(key)
}
