//! The objects below a URL.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyperslab_core::{
    Blob, ByteRange, Error, FetchCost, ListedObject, ObjectRange, ObjectStat, Result, Storage, StorageEntry,
};
use object_store::GetRange;
use object_store::path::Path;

use crate::client::{Client, Fetched, Get, Listed, Version};
use crate::disk::DiskCache;
use crate::failure::Failure;
use crate::merge::Requests;
use crate::meter::Traffic;
use crate::object::{Kept, RemoteObject};

/// The maximum number of remembered objects.
const MAX_KNOWN: usize = 16 << 10;
/// The maximum size of objects to cache whole. Meant for documents, not chunks.
const DOCUMENT: u64 = 1 << 20;

/// The objects below a URL.
///
/// Caches structures and documents, and which objects are missing: an open store sees each object as it was when it
/// was first read.
#[derive(Debug)]
pub struct RemoteStorage {
    client: Arc<Client>,
    /// The key of the root inside the bucket or server.
    root: String,
    name: Arc<str>,
    known: Mutex<HashMap<String, Known>>,
    listed: Mutex<HashMap<String, Arc<Vec<StorageEntry>>>>,
    /// Everything below some keys, or `None` if it was too much.
    trees: Mutex<BTreeMap<String, Option<Arc<Tree>>>>,
    /// The versions of listed objects with an entry in the disk cache.
    listed_versions: Mutex<HashMap<String, Version>>,
    /// A listing has succeeded, so that a denial is never a missing object.
    may_list: AtomicBool,
    kept: Arc<Kept>,
    cache: Cache,
    disk: Option<Arc<DiskCache>>,
}

/// The objects below a key, by their whole key.
type Tree = BTreeMap<String, Version>;

/// Options of the cache.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    /// The memory limit in bytes.
    pub(crate) memory: u64,
    /// The folder of the disk cache.
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, Clone)]
enum Known {
    Missing,
    Object(Arc<RemoteObject>),
    /// A prefetch failed. The first read that needs the object returns the error.
    Failed(Failure),
}

impl RemoteStorage {
    pub(crate) fn new(client: Arc<Client>, root: String, name: Arc<str>, cache: Cache) -> Self {
        let kept = Arc::new(Kept { bytes: AtomicU64::new(0), most: cache.memory });
        let disk = cache.folder.as_ref().map(|folder| Arc::new(DiskCache::new(folder, &name)));
        Self {
            client,
            root,
            name,
            known: Mutex::default(),
            listed: Mutex::default(),
            trees: Mutex::default(),
            listed_versions: Mutex::default(),
            may_list: AtomicBool::new(false),
            kept,
            cache,
            disk,
        }
    }

    /// The traffic so far, for everything on this server or bucket.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.client.traffic()
    }

    /// Clears the cache.
    pub(crate) fn forget(&self) {
        self.known().clear();
        self.listed.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.listed_versions().clear();
        self.trees().clear();
    }

    /// The version of the object that was read under a key; `None` if none was read.
    pub(crate) fn known_version(&self, key: &str) -> Option<Version> {
        match self.lookup(key) {
            Some(Known::Object(object)) => Some(object.version()),
            _ => None,
        }
    }

    /// Queries the current version of an object.
    pub(crate) fn find_version(&self, key: &str) -> Result<Option<Version>> {
        Ok(self.object(key)?.map(|object| object.version()))
    }

    /// Copies an object into a file, piece by piece.
    pub(crate) fn copy_to(&self, key: &str, size: u64, file: &std::path::Path) -> Result<()> {
        use std::io::Write;
        /// The number of bytes in memory at a time.
        const PIECE: u64 = 64 << 20;
        let failed = |source| Error::io(file.display().to_string(), source);
        let Some(object) = self.object(key)? else {
            return Err(Error::not_found(self.url(key), "the object"));
        };
        let mut out = std::fs::File::create(file).map_err(failed)?;
        for start in (0..size).step_by(PIECE as usize) {
            let bytes = object.read_range(start..size.min(start + PIECE))?;
            out.write_all(&bytes).map_err(failed)?;
        }
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trees(&self) -> MutexGuard<'_, BTreeMap<String, Option<Arc<Tree>>>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A listing that contains everything below a key.
    fn tree(&self, key: &str) -> Option<Arc<Tree>> {
        let is_above = |above: &str| {
            let rest = key.strip_prefix(above);
            above.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.trees().iter().find_map(|(above, tree)| tree.clone().filter(|_| is_above(above)))
    }

    /// The key below the root of this storage of an object's name.
    fn key_of(&self, path: &Path) -> Option<String> {
        let below = path.as_ref().strip_prefix(self.root.trim_matches('/'))?;
        Some(below.trim_start_matches('/').to_owned())
    }

    fn listed_versions(&self) -> MutexGuard<'_, HashMap<String, Version>> {
        self.listed_versions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lookup(&self, key: &str) -> Option<Known> {
        self.known().get(key).cloned()
    }

    /// The object name of a key. Keys come from files, so they must not lead outside the root.
    fn path(&self, key: &str) -> Result<Path> {
        let whole = match (self.root.is_empty(), key.is_empty()) {
            (true, _) => key.to_owned(),
            (false, true) => self.root.clone(),
            (false, false) => format!("{}/{key}", self.root),
        };
        Path::parse(&whole)
            .map_err(|_| Error::invalid(format!("{}: {key:?} is not the name of an object", self.name)))
    }

    fn url(&self, key: &str) -> String {
        if key.is_empty() { self.name.to_string() } else { format!("{}/{key}", self.name) }
    }

    fn remember(&self, key: &str, known: Known) {
        let mut all = self.known();
        if all.len() >= MAX_KNOWN {
            all.clear();
        }
        all.insert(key.to_owned(), known);
    }

    /// Remembers the object with this version.
    fn remember_object(&self, key: &str, path: Path, version: Version) -> Arc<RemoteObject> {
        if let Some(Known::Object(object)) = self.lookup(key)
            && object.version() == version
        {
            return object;
        }
        let (client, kept) = (Arc::clone(&self.client), Arc::clone(&self.kept));
        let disk = self.disk.as_ref().map(|disk| (Arc::clone(disk), key.to_owned()));
        let object = Arc::new(RemoteObject::new(client, path, self.url(key).into(), version, kept, disk));
        self.remember(key, Known::Object(Arc::clone(&object)));
        object
    }

    /// Loads objects from the disk cache if they are unchanged. Takes one request each, all concurrent, and none for an object that
    /// was listed with the same entity tag.
    fn restore<'a>(&self, keys: impl Iterator<Item = &'a str>) {
        let Some(disk) = &self.disk else { return };
        let mut wanted: Vec<(&str, Path)> = keys
            .filter(|key| disk.contains(key) && self.lookup(key).is_none())
            .filter_map(|key| Some((key, self.path(key).ok()?)))
            .filter(|(key, path)| !self.restore_listed(disk, key, path))
            .collect();
        wanted.sort();
        wanted.dedup();
        let answers = self.client.stat_all(wanted.iter().map(|(_, path)| path.clone()).collect());
        for ((key, path), answer) in wanted.into_iter().zip(answers.unwrap_or_default()) {
            match answer {
                Ok(version) => self.remember_object(key, path, version).restore(),
                Err(Failure::Missing) => self.remember(key, Known::Missing),
                // The read that needs the bytes will report the failure.
                Err(_) => {}
            }
        }
    }

    /// Loads an object from the disk cache if a listing has shown its entity tag. Servers may list other tags than they send with
    /// objects, so only an equal one counts.
    fn restore_listed(&self, disk: &DiskCache, key: &str, path: &Path) -> bool {
        let Some(version) = self.listed_versions().get(key).cloned() else { return false };
        let Some(extents) = disk.peek(key, &version) else { return false };
        self.remember_object(key, path.clone(), version).keep_extents(extents);
        true
    }

    /// Finds out whether an object exists, unless this is already known.
    fn object(&self, key: &str) -> Result<Option<Arc<RemoteObject>>> {
        self.restore(std::iter::once(key));
        let failure = match self.lookup(key) {
            Some(Known::Missing) => return Ok(None),
            Some(Known::Object(object)) => return Ok(Some(object)),
            Some(Known::Failed(failure)) => failure,
            None => {
                let path = self.path(key)?;
                match self.client.stat_all(vec![path.clone()])?.pop() {
                    Some(Ok(version)) => return Ok(Some(self.remember_object(key, path, version))),
                    Some(Err(failure)) => failure,
                    None => return Err(Error::invalid("a request ended without a response")),
                }
            }
        };
        if matches!(failure, Failure::Denied(_)) && !key.is_empty() {
            // A shard or another object of data, not a document that may be missing.
            self.known().remove(key);
            return Err(failure.to_error(&self.url(key)));
        }
        self.absent(key, &failure).map(|()| None)
    }

    /// Remembers that there is no such document, or returns the error. A bucket without list permission also denies
    /// access to objects that do not exist. If other objects were readable, the credentials are valid and the document
    /// is missing.
    fn absent(&self, key: &str, failure: &Failure) -> Result<()> {
        let found = || self.known().values().any(|known| matches!(known, Known::Object(_)));
        let is_hidden =
            || matches!(failure, Failure::Denied(_)) && !self.may_list.load(Ordering::Relaxed) && found();
        if matches!(failure, Failure::Missing) || is_hidden() {
            self.remember(key, Known::Missing);
            return Ok(());
        }
        self.known().remove(key);
        Err(failure.to_error(&self.url(key)))
    }

    /// Records an object's properties from a response, and caches its bytes.
    fn record_response(&self, key: &str, path: Path, answer: &Result<Fetched, Failure>) {
        match answer {
            Ok(fetched) => self.remember_object(key, path, fetched.version.clone()).keep(fetched),
            Err(Failure::Missing) => self.remember(key, Known::Missing),
            Err(failure) if failure.is_final() => self.remember(key, Known::Failed(failure.clone())),
            // The read that needs the bytes will report the failure.
            Err(_) => {}
        }
    }

    fn entries(&self, key: &str, listed: Listed) -> Vec<StorageEntry> {
        self.may_list.store(true, Ordering::Relaxed);
        let name = |path: &Path| path.filename().unwrap_or_default().to_owned();
        let folders = listed.prefixes.iter().map(|path| StorageEntry {
            name: name(path),
            is_directory: true,
            size: None,
        });
        if let Some(disk) = &self.disk {
            let mut versions = self.listed_versions();
            for (path, version) in &listed.objects {
                let own = if key.is_empty() { name(path) } else { format!("{key}/{}", name(path)) };
                if disk.contains(&own) {
                    versions.insert(own, version.clone());
                }
            }
        }
        let objects = listed.objects.iter().map(|(path, version)| StorageEntry {
            name: name(path),
            is_directory: false,
            size: Some(version.size),
        });
        let mut entries: Vec<StorageEntry> =
            folders.chain(objects).filter(|entry| !entry.name.is_empty()).collect();
        entries.sort();
        self.listed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key.to_owned(), Arc::new(entries.clone()));
        entries
    }

    fn no_lists(&self) -> Error {
        Error::unsupported(
            Arc::clone(&self.name),
            "listing a plain web server (of Zarr stores, those with consolidated metadata can be read, and named arrays)",
        )
    }

    /// Plans the requests for one item of a batch.
    fn plan<'a>(&self, request: &ObjectRange<'a>) -> Result<Planned> {
        let path = self.path(request.key)?;
        let (object, version) = match self.lookup(request.key) {
            Some(Known::Missing) => return Ok(Planned::Missing),
            Some(Known::Object(object)) => {
                let version = object.version();
                (Some(object), Some(version))
            }
            Some(Known::Failed(_)) | None => (None, None),
        };
        let range = match (&request.range, &version) {
            (ByteRange::Bounded(range), _) => Some(range.clone()),
            (ByteRange::Whole, Some(version)) => Some(0..version.size),
            (ByteRange::Suffix(length), Some(version)) => {
                Some(version.size.saturating_sub(*length)..version.size)
            }
            _ => None,
        };
        if let (Some(object), Some(range)) = (object, &range)
            && let Some(bytes) = object.kept_bytes(range)
        {
            return Ok(Planned::Kept(bytes));
        }
        Ok(match (&request.range, range) {
            (_, Some(range)) => Planned::Ranges(path, range, version),
            (ByteRange::Suffix(length), None) => {
                Planned::Get(Get { path, range: Some(GetRange::Suffix(*length)), version: None })
            }
            _ => Planned::Get(Get::whole(path)),
        })
    }
}

/// The objects of a tree below a key.
fn below<'a>(tree: &'a Tree, key: &str) -> impl Iterator<Item = (&'a String, &'a Version)> {
    let prefix = if key.is_empty() { String::new() } else { format!("{key}/") };
    let start = prefix.clone();
    tree.range(start..).take_while(move |(own, _)| own.starts_with(&prefix))
}

/// The entries directly below a key.
fn entries_of(tree: &Tree, key: &str) -> Vec<StorageEntry> {
    let skip = if key.is_empty() { 0 } else { key.len() + 1 };
    let mut entries: Vec<StorageEntry> = below(tree, key)
        .map(|(own, version)| match own[skip..].split_once('/') {
            Some((name, _)) => StorageEntry { name: name.to_owned(), is_directory: true, size: None },
            None => {
                StorageEntry { name: own[skip..].to_owned(), is_directory: false, size: Some(version.size) }
            }
        })
        .filter(|entry| !entry.name.is_empty())
        .collect();
    entries.sort();
    entries.dedup();
    entries
}

/// The way in which an item of a batch is read.
enum Planned {
    Missing,
    Kept(Bytes),
    Get(Get),
    /// A range that may be merged with other ranges of the same object.
    Ranges(Path, Range<u64>, Option<Version>),
}

impl Planned {
    /// The object, range and version, if it can be merged.
    fn range(&self) -> Option<(&Path, &Range<u64>, &Option<Version>)> {
        match self {
            Self::Ranges(path, range, version) => Some((path, range, version)),
            _ => None,
        }
    }
}

/// Requests that are sent concurrently.
struct Batch<'a> {
    /// The plan for each item.
    planned: Vec<Planned>,
    gets: Vec<Get>,
    /// For each item with a request of its own, the index of that request.
    places: Vec<Option<usize>>,
    /// The merged requests of each object, and the index of the first.
    covered: HashMap<&'a str, (Requests, usize)>,
}

impl Batch<'_> {
    fn cost(&self) -> FetchCost {
        let mut cost = FetchCost { requests: self.places.iter().flatten().count() as u64, bytes: 0 };
        self.covered.values().for_each(|(cover, _)| cost += cover.cost());
        cost
    }
}

impl RemoteStorage {
    /// Merges the ranges of each object.
    fn batch<'a>(&self, requests: &[ObjectRange<'a>]) -> Result<Batch<'a>> {
        let planned: Vec<Planned> =
            requests.iter().map(|request| self.plan(request)).collect::<Result<_>>()?;
        let mut ranges: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut gets = Vec::new();
        let mut places = vec![None; requests.len()];
        for (number, plan) in planned.iter().enumerate() {
            match plan {
                Planned::Ranges(..) => ranges.entry(requests[number].key).or_default().push(number),
                Planned::Get(get) => {
                    places[number] = Some(gets.len());
                    gets.push(get.clone());
                }
                Planned::Missing | Planned::Kept(_) => {}
            }
        }
        let mut covered = HashMap::new();
        for (key, numbers) in ranges {
            let of_key = || numbers.iter().filter_map(|number| planned[*number].range());
            let wanted: Vec<Range<u64>> = of_key().map(|(_, range, _)| range.clone()).collect();
            let Some((path, _, version)) = of_key().next() else { continue };
            let cover = Requests::covering(&wanted, self.client.cost.gap());
            let get = |range: &Range<u64>| Get::bounded(path.clone(), range.clone(), version.clone());
            let first = gets.len();
            gets.extend(cover.ranges.iter().map(get));
            covered.insert(key, (cover, first));
        }
        Ok(Batch { planned, gets, places, covered })
    }
}

impl Storage for RemoteStorage {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Blob>>> {
        Ok(self.object(key)?.map(|object| object as Arc<dyn Blob>))
    }

    fn stat(&self, key: &str) -> Result<Option<ObjectStat>> {
        use std::hash::{Hash, Hasher};
        Ok(self.object(key)?.map(|object| {
            let version = object.version();
            let mut hasher = std::hash::DefaultHasher::new();
            version.tag.hash(&mut hasher);
            ObjectStat { size: version.size, version: hasher.finish() }
        }))
    }

    fn list(&self, key: &str) -> Result<Vec<StorageEntry>> {
        if !self.client.lists {
            return Err(self.no_lists());
        }
        let held = self.listed.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        if let Some(entries) = held {
            return Ok(entries.to_vec());
        }
        if let Some(tree) = self.tree(key) {
            return Ok(entries_of(&tree, key));
        }
        match self.client.list_all(vec![self.path(key)?])?.pop() {
            Some(Ok(listed)) => Ok(self.entries(key, listed)),
            Some(Err(failure)) => Err(failure.to_error(&self.url(key))),
            None => Ok(Vec::new()),
        }
    }

    fn prefetch_lists(&self, keys: &[&str]) {
        if !self.client.lists {
            return;
        }
        let keys: Vec<&str> = keys.iter().copied().filter(|key| self.tree(key).is_none()).collect();
        let held = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let missing: Vec<(&str, Path)> = keys
            .iter()
            .filter(|key| !held.contains_key(**key))
            .filter_map(|key| Some((*key, self.path(key).ok()?)))
            .collect();
        drop(held);
        let answers = self.client.list_all(missing.iter().map(|(_, path)| path.clone()).collect());
        for ((key, _), answer) in missing.iter().zip(answers.unwrap_or_default()) {
            if let Ok(listed) = answer {
                self.entries(key, listed);
            }
        }
    }

    fn prefetch_tree(&self, key: &str, most: usize) {
        if !self.client.lists || self.tree(key).is_some() {
            return;
        }
        let Ok(path) = self.path(key) else { return };
        // Held during the request, so that other threads wait for its result instead of sending their own.
        let mut trees = self.trees();
        if trees.contains_key(key) {
            return;
        }
        // The listing that needs the entries will report a failure.
        let Ok(Ok(found)) = self.client.walk_some(path, most) else { return };
        self.may_list.store(true, Ordering::Relaxed);
        let is_complete = found.len() <= most;
        let tree: Tree =
            found.into_iter().filter_map(|(path, version)| Some((self.key_of(&path)?, version))).collect();
        if let (true, Some(disk)) = (is_complete, &self.disk) {
            let cached = tree.iter().filter(|(key, _)| disk.contains(key));
            self.listed_versions().extend(cached.map(|(key, version)| (key.clone(), version.clone())));
        }
        trees.insert(key.to_owned(), is_complete.then(|| Arc::new(tree)));
    }

    fn list_all(&self, key: &str) -> Result<Vec<ListedObject>> {
        if !self.client.lists {
            return Err(self.no_lists());
        }
        if let Some(tree) = self.tree(key) {
            let object =
                |(key, version): (&String, &Version)| ListedObject { key: key.clone(), size: version.size };
            return Ok(below(&tree, key).map(object).collect());
        }
        let found = self.client.walk(self.path(key)?)?.map_err(|failure| failure.to_error(&self.url(key)))?;
        let mut objects: Vec<ListedObject> = found
            .iter()
            .filter_map(|(path, version)| Some(ListedObject { key: self.key_of(path)?, size: version.size }))
            .collect();
        objects.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(objects)
    }

    fn prefetch(&self, requests: &[ObjectRange<'_>]) {
        self.restore(requests.iter().map(|request| request.key));
        let mut wanted: Vec<(&str, Get)> = Vec::new();
        for (number, request) in requests.iter().enumerate() {
            if requests[..number].contains(request) {
                continue;
            }
            match self.plan(request) {
                Ok(Planned::Get(get)) => wanted.push((request.key, get)),
                Ok(Planned::Ranges(path, range, version)) => {
                    wanted.push((request.key, Get::bounded(path, range, version)));
                }
                _ => {}
            }
        }
        let answers = self.client.get_all(wanted.iter().map(|(_, get)| get.clone()).collect());
        for ((key, get), answer) in wanted.into_iter().zip(answers.unwrap_or_default()) {
            self.record_response(key, get.path, &answer);
        }
    }

    fn read_cost(&self, requests: &[ObjectRange<'_>]) -> FetchCost {
        // If a key is invalid, the read reports it.
        self.batch(requests).map(|batch| batch.cost()).unwrap_or_default()
    }

    fn read_many(&self, requests: &[ObjectRange<'_>]) -> Result<Vec<Option<Bytes>>> {
        self.restore(requests.iter().map(|request| request.key));
        let batch = self.batch(requests)?;
        let answers = self.client.get_all(batch.gets)?;
        let mut results = Vec::with_capacity(requests.len());
        for (number, plan) in batch.planned.into_iter().enumerate() {
            let key = requests[number].key;
            results.push(match plan {
                Planned::Missing => None,
                Planned::Kept(bytes) => Some(bytes),
                Planned::Get(_) => {
                    let answer = batch.places[number].and_then(|place| answers.get(place));
                    self.take(key, answer)?.map(|fetched| fetched.bytes)
                }
                Planned::Ranges(_, range, _) => {
                    let Some((cover, first)) = batch.covered.get(key) else { return Err(self.lost(key)) };
                    self.assemble(key, cover, &answers[*first..first + cover.ranges.len()], &range)?
                }
            });
        }
        Ok(results)
    }

    fn read(&self, key: &str) -> Result<Option<Bytes>> {
        self.restore(std::iter::once(key));
        if let Some(Known::Failed(failure)) = self.lookup(key) {
            return self.absent(key, &failure).map(|()| None);
        }
        let request = ObjectRange::whole(key);
        match self.plan(&request)? {
            Planned::Missing => Ok(None),
            Planned::Kept(bytes) => Ok(Some(bytes)),
            Planned::Get(get) => {
                let path = get.path.clone();
                let answer = self.client.get_all(vec![get])?.pop();
                match &answer {
                    // Too large to cache, but its version is remembered.
                    Some(Ok(fetched)) if fetched.version.size > DOCUMENT => {
                        self.remember_object(key, path, fetched.version.clone());
                    }
                    Some(Err(failure @ Failure::Denied(_))) => {
                        return self.absent(key, failure).map(|()| None);
                    }
                    Some(answer) => self.record_response(key, path, answer),
                    None => {}
                }
                Ok(self.take(key, answer.as_ref())?.map(|fetched| fetched.bytes))
            }
            Planned::Ranges(..) => match self.object(key)? {
                Some(object) => object.read_range(0..object.len()?).map(Some),
                None => Ok(None),
            },
        }
    }

    fn remembers(&self, key: &str) -> bool {
        matches!(self.lookup(key), Some(Known::Object(_)))
            || self.disk.as_ref().is_some_and(|disk| disk.contains(key))
    }

    fn room(&self) -> u64 {
        self.kept.most.saturating_sub(self.kept.bytes.load(Ordering::Relaxed))
    }

    fn below(&self, key: &str) -> Option<Arc<dyn Storage>> {
        let root = self.path(key).ok()?.as_ref().to_owned();
        let client = Arc::clone(&self.client);
        Some(Arc::new(Self::new(client, root, self.url(key).into(), self.cache.clone())))
    }

    fn read_range(&self, key: &str, range: Range<u64>) -> Result<Option<Bytes>> {
        let mut answers = self.read_many(&[ObjectRange { key, range: ByteRange::Bounded(range) }])?;
        answers.pop().ok_or_else(|| self.lost(key))
    }
}

impl RemoteStorage {
    fn lost(&self, key: &str) -> Error {
        Error::invalid(format!("{}: a request ended without a response", self.url(key)))
    }

    /// The bytes of a response; `None` if there is no such object.
    fn take(&self, key: &str, answer: Option<&Result<Fetched, Failure>>) -> Result<Option<Fetched>> {
        match answer {
            Some(Ok(fetched)) => Ok(Some(fetched.clone())),
            Some(Err(Failure::Missing)) => {
                self.remember(key, Known::Missing);
                Ok(None)
            }
            Some(Err(failure)) => Err(failure.to_error(&self.url(key))),
            None => Err(self.lost(key)),
        }
    }

    /// Extracts a range from the responses that cover it.
    fn assemble(
        &self,
        key: &str,
        cover: &Requests,
        answers: &[Result<Fetched, Failure>],
        range: &Range<u64>,
    ) -> Result<Option<Bytes>> {
        if answers.iter().any(|answer| matches!(answer, Err(Failure::NoRanges))) {
            return match self.object(key)? {
                Some(object) => object.read_range(range.clone()).map(Some),
                None => Ok(None),
            };
        }
        let mut fetched = Vec::with_capacity(answers.len());
        for answer in answers {
            match self.take(key, Some(answer))? {
                Some(part) => fetched.push(part.bytes),
                None => return Ok(None),
            }
        }
        let bytes = cover.bytes_of(&fetched, range);
        let short = || {
            hyperslab_core::Place::new(&self.url(key), "bytes", range.start).corrupt(format!(
                "{} expected, but the object is shorter",
                range.end.saturating_sub(range.start)
            ))
        };
        bytes.map(Some).ok_or_else(short)
    }
}
