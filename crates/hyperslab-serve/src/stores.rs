//! Open stores, opened again when their files change.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hyperslab::zarr_view::{CodecSet, ZarrView};
use hyperslab::{NodeKind, OpenStore, open_with};

use crate::ServeOptions;
use crate::answer::Failure;
use crate::root::Located;

/// Stores that stay open.
const MOST_OPEN: usize = 64;
/// A directory is looked through for changes this often at most.
const DIRECTORY_AGE: Duration = Duration::from_secs(1);
/// A store at a URL is opened again after this time.
const REMOTE_AGE: Duration = Duration::from_secs(60);
/// Entries of a directory that are looked at for changes.
const MOST_ENTRIES: usize = 4096;

/// An open store in one version.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The store.
    pub(crate) store: OpenStore,
    /// The name that requests use.
    pub(crate) name: String,
    /// What changes when the content does. Of a directory it tells of changed documents, not of changed chunks.
    pub(crate) version: u64,
    /// Is it one file, whose size and time of change tell of every change?
    pub(crate) is_file: bool,
    views: [OnceLock<ZarrView>; 3],
    root: OnceLock<Option<NodeKind>>,
}

impl Opened {
    /// Is the store one of geometries, whose parts are shown as datasets?
    pub(crate) fn has_geometry(&self) -> bool {
        self.root_kind() == Some(NodeKind::Geometry)
    }

    /// Is the store a single array or table, without a group around it?
    pub(crate) fn has_leaf_root(&self) -> bool {
        matches!(self.root_kind(), Some(NodeKind::Array | NodeKind::Table))
    }

    fn root_kind(&self) -> Option<NodeKind> {
        *self.root.get_or_init(|| self.store.node("/").ok().map(|root| root.kind()))
    }

    /// The store as a Zarr store.
    pub(crate) fn zarr(&self, codecs: CodecSet) -> &ZarrView {
        let slot = match codecs {
            CodecSet::Core => &self.views[0],
            CodecSet::Numcodecs => &self.views[1],
            CodecSet::V2 => &self.views[2],
        };
        slot.get_or_init(|| ZarrView::new(self.store.clone(), codecs))
    }
}

/// The stores that are open.
#[derive(Debug)]
pub(crate) struct Stores {
    open: Mutex<HashMap<String, Entry>>,
    options: ServeOptions,
}

#[derive(Debug, Clone)]
struct Entry {
    opened: Arc<Opened>,
    checked: Instant,
    used: Instant,
}

impl Stores {
    pub(crate) fn new(options: &ServeOptions) -> Self {
        Self { open: Mutex::default(), options: options.clone() }
    }

    /// The store at a location, in its present version.
    pub(crate) fn open(&self, located: &Located) -> Result<Arc<Opened>, Failure> {
        let now = Instant::now();
        let known = self.entries().get(&located.name).cloned();
        if let Some(entry) = &known
            && entry.is_current(located, now)
        {
            let mut entries = self.entries();
            if let Some(entry) = entries.get_mut(&located.name) {
                entry.used = now;
            }
            return Ok(Arc::clone(&entry.opened));
        }
        let remote = located.within.is_none();
        let version = if remote { new_version(&located.name) } else { version_of(&located.path)? };
        if let Some(mut entry) = known
            && !remote
            && entry.opened.version == version
        {
            (entry.checked, entry.used) = (now, now);
            let opened = Arc::clone(&entry.opened);
            self.entries().insert(located.name.clone(), entry);
            return Ok(opened);
        }
        let store = open_with(&located.path, &self.options.open_options(located.within.clone()))?;
        let is_file = !remote && located.path.is_file();
        let opened = Arc::new(Opened {
            store,
            name: located.name.clone(),
            version,
            is_file,
            views: Default::default(),
            root: OnceLock::new(),
        });
        let entry = Entry { opened: Arc::clone(&opened), checked: now, used: now };
        let mut entries = self.entries();
        if entries.len() >= MOST_OPEN && !entries.contains_key(&located.name) {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.used).map(|(name, _)| name.clone());
            oldest.and_then(|name| entries.remove(&name));
        }
        entries.insert(located.name.clone(), entry);
        Ok(opened)
    }

    /// Is there an open store of this name?
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.entries().contains_key(name)
    }

    /// Opens a store anew when it is next asked for: remote objects that changed are errors.
    pub(crate) fn forget(&self, name: &str) {
        self.entries().remove(name);
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, HashMap<String, Entry>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Need nobody look whether it has changed? A file is looked at every time, which takes microseconds.
    fn is_current(&self, located: &Located, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.checked);
        if located.within.is_none() { age < REMOTE_AGE } else { !self.opened.is_file && age < DIRECTORY_AGE }
    }
}

/// A version that no other opening has.
fn new_version(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, std::time::SystemTime::now()).hash(&mut hasher);
    hasher.finish()
}

/// What changes when a file or the documents of a directory do.
fn version_of(path: &Path) -> Result<u64, Failure> {
    let failed = |source| hyperslab::Error::io(path.display().to_string(), source);
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let metadata = std::fs::metadata(path).map_err(failed)?;
    hash_metadata(&metadata, &mut hasher);
    if metadata.is_dir() {
        let mut left = MOST_ENTRIES;
        hash_entries(path, 2, &mut left, &mut hasher);
    }
    Ok(hasher.finish())
}

fn hash_metadata(metadata: &std::fs::Metadata, hasher: &mut DefaultHasher) {
    (metadata.len(), metadata.modified().ok()).hash(hasher);
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (metadata.ino(), metadata.ctime(), metadata.ctime_nsec()).hash(hasher);
    }
}

fn hash_entries(folder: &Path, depth: usize, left: &mut usize, hasher: &mut DefaultHasher) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.flatten().take(*left).collect();
    *left -= entries.len();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let Ok(metadata) = entry.metadata() else { continue };
        entry.file_name().hash(hasher);
        hash_metadata(&metadata, hasher);
        if metadata.is_dir() && depth > 0 && *left > 0 {
            hash_entries(&entry.path(), depth - 1, left, hasher);
        }
    }
}
