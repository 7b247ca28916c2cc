//! Keeps stores open, and reopens them when their files change.

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

/// The maximum number of open stores.
const MAX_OPEN: usize = 64;
/// The minimum time between checks of a directory for changes.
const DIRECTORY_AGE: Duration = Duration::from_secs(1);
/// The time after which a store at a URL is reopened.
const REMOTE_AGE: Duration = Duration::from_secs(60);
/// The maximum number of directory entries to check for changes.
const MAX_ENTRIES: usize = 4096;

/// An open store at one version of its content.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The store.
    pub(crate) store: OpenStore,
    /// The name that requests use.
    pub(crate) name: String,
    /// Changes when the content does. For a directory, it covers metadata documents, but not chunks.
    pub(crate) version: u64,
    /// Whether it is a single file, whose size and modification time show every change.
    pub(crate) is_file: bool,
    views: [OnceLock<ZarrView>; 3],
    root: OnceLock<Option<NodeKind>>,
}

impl Opened {
    /// Returns true if the store holds geometries, whose parts are shown as datasets.
    pub(crate) fn has_geometry(&self) -> bool {
        self.root_kind() == Some(NodeKind::Geometry)
    }

    /// Returns true if the store's root is an array or a table, not a group.
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

/// The open stores.
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

    /// Opens the current version of the store at a location.
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
        if entries.len() >= MAX_OPEN && !entries.contains_key(&located.name) {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.used).map(|(name, _)| name.clone());
            oldest.and_then(|name| entries.remove(&name));
        }
        entries.insert(located.name.clone(), entry);
        Ok(opened)
    }

    /// Returns true if a store with this name is open.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.entries().contains_key(name)
    }

    /// Closes a store, so that its next use reopens it: reading a remote object that has changed is an error.
    pub(crate) fn forget(&self, name: &str) {
        self.entries().remove(name);
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, HashMap<String, Entry>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Returns true if the store needs no check for changes yet. Files are checked each time, which takes
    /// microseconds.
    fn is_current(&self, located: &Located, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.checked);
        if located.within.is_none() { age < REMOTE_AGE } else { !self.opened.is_file && age < DIRECTORY_AGE }
    }
}

/// A version that differs from that of all other openings.
fn new_version(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, std::time::SystemTime::now()).hash(&mut hasher);
    hasher.finish()
}

/// A hash that changes with a file, or with the metadata documents of a directory.
fn version_of(path: &Path) -> Result<u64, Failure> {
    let failed = |source| hyperslab::Error::io(path.display().to_string(), source);
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let metadata = std::fs::metadata(path).map_err(failed)?;
    hash_metadata(&metadata, &mut hasher);
    if metadata.is_dir() {
        let mut left = MAX_ENTRIES;
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
