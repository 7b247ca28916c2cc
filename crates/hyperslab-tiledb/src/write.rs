//! Writing: fragments whose commit file comes last, so that a killed writer leaves an invisible fragment.

mod append;
mod consolidate;
mod dense;
mod fragment;
mod grow;
mod metadata;
mod repair;
mod sparse;
mod statistics;
mod types;
mod vacuum;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use hyperslab_core::{Error, Result};

pub use append::{TileDbAppend, append};
pub use consolidate::{ConsolidateOptions, consolidate};
pub use dense::{TileDbSink, create};
pub(crate) use fragment::{FieldTile, FragmentWriter};
pub use repair::repair;
pub use sparse::{create_sparse, write_sparse};
pub(crate) use statistics::TileStats;
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

fn io(path: &Path, error: std::io::Error) -> Error {
    Error::io(path.display().to_string(), error)
}

/// Writes a whole file and waits for the disk.
pub(crate) fn put_file(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|error| io(parent, error))?;
    }
    let mut file = std::fs::File::create(path).map_err(|error| io(path, error))?;
    std::io::Write::write_all(&mut file, bytes)
        .and_then(|()| file.sync_all())
        .map_err(|error| io(path, error))
}

/// Writes a schema into an array's directory; returns its name.
pub(crate) fn put_schema(array: &Path, schema: &Schema, at: u64, key: Option<&Key>) -> Result<String> {
    let name = timed_name(at, at, false)?;
    put_file(&array.join("__schema").join(&name), &crate::generic::encode(&schema.encode(), WRITTEN, key)?)?;
    Ok(name)
}

/// The schema that a new fragment has, and its name. A fragment must not be newer than its schema: an old array gets the same
/// schema once more, in the version that is written.
pub(crate) fn schema_to_write(
    folder: &Path,
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

/// Makes a fragment visible.
pub(crate) fn put_commit(array: &Path, fragment: &str) -> Result<()> {
    put_file(&array.join("__commits").join(format!("{fragment}.wrt")), &[])
}

/// A folder beside the target in which a new array is built; removed when it is dropped before it is published.
#[derive(Debug)]
pub(crate) struct Staging {
    pub(crate) path: PathBuf,
    target: PathBuf,
    force: bool,
    published: bool,
}

impl Staging {
    pub(crate) fn new(target: &Path, force: bool) -> Result<Self> {
        if target.exists() && !force {
            return Err(Error::invalid(format!("{} exists; --force replaces it", target.display())));
        }
        let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let path = target.with_file_name(format!(".{name}.{}.tmp", random::uuid()?));
        std::fs::create_dir_all(&path).map_err(|error| io(&path, error))?;
        Ok(Self { path, target: target.to_owned(), force, published: false })
    }

    /// Puts the folder in its place.
    pub(crate) fn publish(mut self) -> Result<()> {
        self.place(&self.path)?;
        self.published = true;
        Ok(())
    }

    /// Puts a folder inside it in its place; the rest is removed.
    pub(crate) fn publish_part(self, part: &Path) -> Result<()> {
        self.place(part)
    }

    fn place(&self, folder: &Path) -> Result<()> {
        if !self.target.exists() {
            return std::fs::rename(folder, &self.target).map_err(|error| io(&self.target, error));
        }
        if !self.force {
            return Err(Error::invalid(format!("{} exists; --force replaces it", self.target.display())));
        }
        // Aside first: at no instant is half of either there.
        let aside = self.path.with_extension("old");
        std::fs::rename(&self.target, &aside).map_err(|error| io(&self.target, error))?;
        if let Err(error) = std::fs::rename(folder, &self.target) {
            let _ = std::fs::rename(&aside, &self.target);
            return Err(io(&self.target, error));
        }
        let removed =
            if aside.is_dir() { std::fs::remove_dir_all(&aside) } else { std::fs::remove_file(&aside) };
        removed.map_err(|error| io(&aside, error))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.published {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
