//! An opened array: its schemas, the fragments inside the time window, metadata, deletes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use hyperslab_core::{
    Attribute, Attributes, Blob, BlobKey, ByteRange, DType, Error, Fields, ObjectRange, Place, Result,
    Storage,
};
use rayon::prelude::*;

use crate::OpenOptions;
use crate::condition::Delete;
use crate::fragment::{Fragment, MetadataFile};
use crate::generic;
use crate::listing::{Commits, Listing};
use crate::metadata;
use crate::names::{TimeWindow, TimedName};
use crate::schema::{ArrayKind, Enumeration, Schema};

/// Bytes at the end of a fragment's metadata file that are requested first. Most files fit completely.
const METADATA_TAIL: u64 = 64 << 10;

/// An opened array.
pub(crate) struct OpenArray {
    pub(crate) directory: Arc<dyn Storage>,
    /// The array's directory in the store: empty, or ending in a slash.
    pub(crate) prefix: String,
    /// For messages.
    pub(crate) name: Arc<str>,
    pub(crate) options: OpenOptions,
    pub(crate) listing: Listing,
    pub(crate) schema: Arc<Schema>,
    schemas: Mutex<HashMap<String, Arc<Schema>>>,
    commits: OnceLock<Commits>,
    fragments: OnceLock<Vec<Arc<Fragment>>>,
    metadata: OnceLock<BTreeMap<String, Attribute>>,
    blobs: Mutex<HashMap<Arc<str>, Arc<dyn Blob>>>,
    /// Whether the array holds the labels of another array, which then determines its extent.
    pub(crate) is_label: bool,
}

impl std::fmt::Debug for OpenArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenArray")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl OpenArray {
    /// Lists the directory and reads the schema for the time window.
    pub(crate) fn open(directory: Arc<dyn Storage>, prefix: String, options: OpenOptions) -> Result<Self> {
        let name: Arc<str> = match prefix.trim_end_matches('/') {
            "" => Arc::clone(directory.name()),
            below => format!("{}/{below}", directory.name()).into(),
        };
        let listing = Listing::read(&*directory, &prefix)?;
        let newest =
            listing.schema_at(options.at).ok_or_else(|| Error::not_found(Arc::clone(&name), "a schema"))?;
        let schema = read_schema(&*directory, &prefix, &newest, &options)?;
        Ok(Self {
            directory,
            prefix,
            name,
            options,
            schemas: Mutex::new(HashMap::from([(newest, Arc::clone(&schema))])),
            listing,
            schema,
            commits: OnceLock::new(),
            fragments: OnceLock::new(),
            metadata: OnceLock::new(),
            blobs: Mutex::new(HashMap::new()),
            is_label: false,
        })
    }

    pub(crate) const fn window(&self) -> TimeWindow {
        self.options.at
    }

    /// Returns the schema with the name that a fragment gives. Without a name, returns the oldest schema.
    pub(crate) fn schema_named(&self, name: Option<&str>) -> Result<Arc<Schema>> {
        let name = match name {
            Some(name) => name.rsplit('/').next().unwrap_or(name).to_owned(),
            None => self
                .listing
                .oldest_schema()
                .ok_or_else(|| Error::not_found(Arc::clone(&self.name), "a schema"))?,
        };
        let locked = || self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = locked().get(&name) {
            return Ok(Arc::clone(known));
        }
        let schema = read_schema(&*self.directory, &self.prefix, &name, &self.options)?;
        locked().insert(name, Arc::clone(&schema));
        Ok(schema)
    }

    /// Everything that was ever committed, regardless of the time window.
    pub(crate) fn commits(&self) -> Result<&Commits> {
        if let Some(known) = self.commits.get() {
            return Ok(known);
        }
        let commits = Commits::read(&*self.directory, &self.prefix, &self.listing)?;
        Ok(self.commits.get_or_init(|| commits))
    }

    /// The names and directories of the fragments in the time window, oldest first.
    pub(crate) fn visible(&self) -> Result<Vec<(TimedName, String)>> {
        let commits = self.commits()?;
        let sparse = self.schema.kind == ArrayKind::Sparse;
        let window = self.window();
        // Since version 15, a sparse fragment may hold cells of several times, so an overlap is enough.
        let counts = |name: &TimedName| {
            if sparse && name.version.is_some_and(|version| version >= 15) {
                name.overlaps(window)
            } else {
                name.inside(window)
            }
        };
        let vacuumed: HashSet<&str> = commits
            .vacuums
            .iter()
            .filter(|(name, _)| counts(name))
            .flat_map(|(_, names)| names)
            .map(String::as_str)
            .collect();
        let mut visible: Vec<(TimedName, String)> = commits
            .fragments
            .values()
            .filter(|(name, _)| counts(name) && !vacuumed.contains(name.stem.as_str()))
            .filter(|(name, _)| !self.options.without.contains(&name.stem))
            .map(|(name, key)| (name.clone(), key.clone()))
            .collect();
        visible.sort_by(|a, b| a.0.order().cmp(&b.0.order()));
        Ok(visible)
    }

    /// The fragments in the time window, oldest first.
    pub(crate) fn fragments(&self) -> Result<&[Arc<Fragment>]> {
        if let Some(known) = self.fragments.get() {
            return Ok(known);
        }
        let visible = self.visible()?;
        let footers = self.known_footers();
        if self.directory.is_remote() {
            let missing = visible.iter().filter(|(name, _)| !footers.contains_key(&name.stem));
            let keys: Vec<String> = missing.map(|(_, key)| MetadataFile::key_of(key)).collect();
            let last = |key| ObjectRange { key, range: ByteRange::Suffix(METADATA_TAIL) };
            self.directory.prefetch(&keys.iter().map(|key| last(key.as_str())).collect::<Vec<_>>());
        }
        let open = |(name, key): (TimedName, String)| {
            let known = footers.get(&name.stem).map(AsRef::as_ref);
            self.open_fragment(name, key, known).map(Arc::new)
        };
        // These are many small files, so request several at a time.
        let fragments: Vec<Arc<Fragment>> =
            visible.into_par_iter().with_min_len(16).map(open).collect::<Result<_>>()?;
        Ok(self.fragments.get_or_init(|| fragments))
    }

    /// Opens one fragment. Its dimensions must be those of the array: a schema can evolve only in its attributes.
    pub(crate) fn open_fragment(
        &self,
        name: TimedName,
        key: String,
        known: Option<&[u8]>,
    ) -> Result<Fragment> {
        let mut schemas = |name: Option<&str>| self.schema_named(name);
        let fragment =
            Fragment::open(&self.directory, key, name, &mut schemas, self.options.key.as_ref(), known)?;
        let types =
            |schema: &Schema| -> Vec<_> { schema.dimensions.iter().map(|own| own.datatype).collect() };
        let (own, current) = (types(&fragment.schema), types(&self.schema));
        if own != current {
            return Err(fragment.place("fragment footer").corrupt(format!(
                "a schema with dimensions of the types {own:?}, in an array of {current:?}"
            )));
        }
        Ok(fragment)
    }

    /// Footers from consolidated files, by fragment. A file that cannot be read is skipped: each fragment has its own
    /// footer.
    fn known_footers(&self) -> HashMap<String, Bytes> {
        let files = self.listing.fragment_metas.iter();
        files.filter_map(|name| self.footer_file(name).ok()).flatten().collect()
    }

    /// The delete conditions in the time window, oldest first.
    pub(crate) fn deletes(&self) -> Result<Vec<Delete>> {
        let mut deletes = Vec::new();
        for (name, source) in &self.commits()?.deletes {
            if name.inside(self.window()) {
                let bytes = match source {
                    Some(bytes) => bytes.clone(),
                    None => {
                        let key = format!("{}__commits/{}.del", self.prefix, name.stem);
                        self.directory
                            .read(&key)?
                            .ok_or_else(|| Error::not_found(Arc::clone(&self.name), key))?
                    }
                };
                let label = format!("{}/__commits/{}.del", self.name, name.stem);
                let place = Place::new(&label, "delete condition", 0);
                let payload = generic::decode_whole(&bytes, self.options.key.as_ref(), place)?;
                deletes.push(Delete::parse(name.clone(), &payload, place)?);
            }
        }
        deletes.sort_by(|a, b| a.name.order().cmp(&b.name.order()));
        Ok(deletes)
    }

    /// The array's metadata as attributes, without the keys that belong to its TileDB attributes.
    pub(crate) fn attributes(&self) -> Result<Attributes> {
        let names: HashSet<&str> = self.schema.attributes.iter().map(|own| own.name.as_str()).collect();
        // Both an attribute's name and the key after it may contain dots.
        let belongs = |key: &str| {
            key.strip_prefix(metadata::ATTRIBUTE_PREFIX)
                .is_some_and(|rest| rest.match_indices('.').any(|(at, _)| names.contains(&rest[..at])))
        };
        let own = self.metadata()?.iter().filter(|(key, _)| !belongs(key) && *key != metadata::EMPTY_AXES);
        Ok(own.map(|(key, value)| (key.as_str(), value.clone())).collect())
    }

    /// The metadata keys that belong to one attribute.
    pub(crate) fn attributes_of(&self, attribute: &str) -> Result<Attributes> {
        let prefix = format!("{}{attribute}.", metadata::ATTRIBUTE_PREFIX);
        let from = self.metadata()?.range(prefix.clone()..);
        let own = from.map_while(|(key, value)| Some((key.strip_prefix(&prefix)?, value.clone())));
        Ok(own.collect())
    }

    /// The axes without cells, and whether each may grow, according to the metadata. Only valid until something is
    /// written.
    pub(crate) fn empty_axes(&self) -> Vec<(usize, bool)> {
        let noted = self.metadata().ok().and_then(|all| all.get(metadata::EMPTY_AXES));
        let Some(serde_json::Value::Array(numbers)) = noted.map(Attribute::to_json) else {
            return Vec::new();
        };
        if !self.visible().is_ok_and(|fragments| fragments.is_empty()) {
            return Vec::new();
        }
        let numbers: Vec<u64> = numbers.iter().filter_map(serde_json::Value::as_u64).collect();
        let pairs = numbers.chunks_exact(2).map(|pair| (usize::try_from(pair[0]), pair[1] != 0));
        let rank = self.schema.dimensions.len();
        pairs.filter_map(|(axis, grows)| Some((axis.ok().filter(|axis| *axis < rank)?, grows))).collect()
    }

    /// All metadata keys, read once.
    fn metadata(&self) -> Result<&BTreeMap<String, Attribute>> {
        if let Some(known) = self.metadata.get() {
            return Ok(known);
        }
        let key = self.options.key.as_ref();
        let read = metadata::read(&*self.directory, &self.prefix, self.window(), key)?;
        Ok(self.metadata.get_or_init(|| read))
    }

    /// The type of an attribute's cells: an enum if its integers index an enumeration.
    pub(crate) fn dtype_of(&self, attribute: &crate::schema::Attribute) -> DType {
        let stored = attribute.dtype();
        // A damaged enumeration must not make the values unreadable.
        let enumeration = attribute.enumeration.as_ref().and_then(|name| self.enumeration(name).ok());
        enumeration.and_then(|enumeration| enumeration.dtype(&stored)).unwrap_or(stored)
    }

    /// Reads the enumeration with this name.
    pub(crate) fn enumeration(&self, name: &str) -> Result<Enumeration> {
        let (_, file) = self
            .schema
            .enumerations
            .iter()
            .find(|(own, _)| own == name)
            .ok_or_else(|| Error::not_found(Arc::clone(&self.name), format!("enumeration {name:?}")))?;
        let key = format!("{}__schema/__enumerations/{file}", self.prefix);
        let bytes = self
            .directory
            .read(&key)?
            .ok_or_else(|| Error::not_found(Arc::clone(&self.name), key.clone()))?;
        let label = format!("{}/{key}", self.directory.name());
        let place = Place::new(&label, "enumeration", 0);
        Enumeration::parse(&generic::decode_whole(&bytes, self.options.key.as_ref(), place)?, place)
    }

    /// Returns an open blob of the store; repeated calls share it.
    pub(crate) fn blob(&self, key: &BlobKey) -> Result<Arc<dyn Blob>> {
        let BlobKey::Named(name) = key else {
            return Err(Error::invalid(format!("{}: an array has no main file", self.name)));
        };
        let locked = || self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = locked().get(name) {
            return Ok(Arc::clone(known));
        }
        let blob = self.directory.open(name)?.ok_or_else(|| {
            Place::new(&self.name, "fragment", 0).corrupt(format!("the file {name} is missing"))
        })?;
        locked().insert(Arc::clone(name), Arc::clone(&blob));
        Ok(blob)
    }

    /// Parses a file of consolidated footers: `u32 n`, `n` names with offsets, then the footers without their length
    /// suffixes.
    pub(crate) fn footer_file(&self, name: &str) -> Result<Vec<(String, Bytes)>> {
        let key = format!("{}__fragment_meta/{name}", self.prefix);
        let bytes = self.directory.read(&key)?.unwrap_or_default();
        let label = format!("{}/{key}", self.directory.name());
        let place = Place::new(&label, "consolidated footers", 0);
        let payload = Bytes::from(generic::decode_whole(&bytes, self.options.key.as_ref(), place)?);
        let mut fields = Fields::new(&payload, place);
        let count = fields.count_u32(16)?;
        let mut starts = Vec::with_capacity(count);
        for _ in 0..count {
            let length = fields.count_u64(1)?;
            let fragment = String::from_utf8_lossy(fields.bytes(length)?).into_owned();
            let fragment = fragment.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
            starts.push((fragment, fields.u64()?));
        }
        let ends: Vec<u64> =
            starts.iter().skip(1).map(|(_, start)| *start).chain([payload.len() as u64]).collect();
        let mut footers = Vec::with_capacity(count);
        for ((fragment, start), end) in starts.into_iter().zip(ends) {
            let (Ok(first), Ok(last)) = (usize::try_from(start), usize::try_from(end)) else {
                return Err(place.corrupt(format!("a footer from {start} to {end}")));
            };
            if first > last || last > payload.len() {
                return Err(place.corrupt(format!("a footer from {start} to {end} of {}", payload.len())));
            }
            footers.push((fragment, payload.slice(first..last)));
        }
        Ok(footers)
    }
}

fn read_schema(
    directory: &dyn Storage,
    prefix: &str,
    name: &str,
    options: &OpenOptions,
) -> Result<Arc<Schema>> {
    let key = if name == "__array_schema.tdb" {
        format!("{prefix}{name}")
    } else {
        format!("{prefix}__schema/{name}")
    };
    let bytes =
        directory.read(&key)?.ok_or_else(|| Error::not_found(Arc::clone(directory.name()), key.clone()))?;
    let label = format!("{}/{key}", directory.name());
    let place = Place::new(&label, "array schema", 0);
    Schema::parse(&generic::decode_whole(&bytes, options.key.as_ref(), place)?, place).map(Arc::new)
}
