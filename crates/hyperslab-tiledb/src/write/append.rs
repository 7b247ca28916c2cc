//! Adds a new fragment to an existing dense array.
//!
//! The position follows from the source's labels if there are any; otherwise the cells are appended along the first
//! dimension. An array as large as the whole domain replaces all values. Cells arrive in chunks of the tiles' shape
//! that need not be aligned with tiles, so each tile is collected until it is complete.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hyperslab_core::storage::{StageWriter, StagedChange, StoreLock};
use hyperslab_core::{
    ArraySink, ArraySpec, Attributes, ChunkCoord, Elements, EncodedChunk, Error, Extents, Grid, LocalStorage,
    Region, Result, Sink, Storage, join_inside, normal_path,
};

use super::dense::{Parts, State};
use super::evolve::Evolution;
use super::fragment::{Extra, FieldFiles};
use super::grow::{GrowSink, Growth, place};
use super::tree::{KnownGroup, NewNodes};
use super::{
    FieldTile, FragmentWriter, TileStats, WriteOptions, key_in, locks, metadata, put_commit, put_schema,
    schema_key, schema_to_write,
};
use crate::OpenOptions;
use crate::array::OpenArray;
use crate::field::FieldCodecs;
use crate::fragment::RTree;
use crate::schema::{ArrayKind, Attribute, Order, Range, Schema, WRITTEN, integer_bytes};
use crate::store::TileDbStore;

/// New fragments for existing arrays, invisible until the commit.
#[derive(Debug)]
pub struct TileDbAppend {
    place: StorePlace,
    options: WriteOptions,
    /// The change to publish at the commit.
    change: StagedChange,
    /// The attributes being written, by the key of their array.
    arrays: BTreeMap<String, (Arc<OpenArray>, Vec<Arc<AppendSink>>)>,
    /// Metadata to set, by the key of its node: pairs of a key prefix and attributes.
    metadata: BTreeMap<String, Vec<(String, Attributes)>>,
    /// Metadata keys to delete, by the key of their node.
    deleted: BTreeMap<String, Vec<String>>,
    /// Locks by the key of their array, held from the moment its end is determined.
    locks: Mutex<BTreeMap<String, StoreLock>>,
    /// Arrays and groups that the store does not have yet.
    new: NewNodes,
    /// Attributes to drop, by the key of their array.
    dropped: BTreeMap<String, Vec<String>>,
}

/// The location of the store.
#[derive(Debug)]
enum StorePlace {
    Path(PathBuf),
    /// Remote storage. The caller must prevent concurrent writers.
    Storage(Arc<dyn Storage>),
}

impl StorePlace {
    /// The store's name, for messages.
    fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Storage(storage) => storage.name().to_string(),
        }
    }
}

/// Like [`append`], for a store that is not on this machine. Nothing else may change the store meanwhile.
///
/// # Errors
///
/// Like [`append`].
pub fn append_elsewhere(
    storage: Arc<dyn Storage>,
    change: StagedChange,
    options: WriteOptions,
) -> Result<TileDbAppend> {
    let open = OpenOptions { key: options.key.clone(), ..OpenOptions::default() };
    crate::open(Arc::clone(&storage), open)?;
    Ok(TileDbAppend::new(StorePlace::Storage(storage), change, options))
}

/// Starts adding to the dense array at `path`, or to the dense arrays of the group there.
///
/// # Errors
///
/// [`NotFound`](Error::NotFound) if there is none.
pub fn append(path: &Path, options: WriteOptions) -> Result<TileDbAppend> {
    let open = OpenOptions { key: options.key.clone(), ..OpenOptions::default() };
    crate::open_path(path, open)?;
    let change = StagedChange::open(path)?;
    Ok(TileDbAppend::new(StorePlace::Path(path.to_owned()), change, options))
}

impl TileDbAppend {
    fn new(place: StorePlace, change: StagedChange, options: WriteOptions) -> Self {
        let new = NewNodes::new(place.name());
        Self {
            place,
            options,
            change,
            arrays: BTreeMap::new(),
            metadata: BTreeMap::new(),
            deleted: BTreeMap::new(),
            locks: Mutex::default(),
            new,
            dropped: BTreeMap::new(),
        }
    }

    /// Opens the store in its current state.
    fn store(&self) -> Result<TileDbStore> {
        let options = OpenOptions { key: self.options.key.clone(), ..OpenOptions::default() };
        match &self.place {
            StorePlace::Path(path) => crate::open_path(path, options),
            StorePlace::Storage(storage) => crate::open(Arc::clone(storage), options),
        }
    }

    /// The folder of an array in the store. Local arrays are locked.
    fn folder(&self, key: &str) -> Result<Arc<dyn Storage>> {
        match &self.place {
            StorePlace::Path(path) => {
                let folder = join_inside(path, key)?;
                self.lock(key, &folder)?;
                Ok(Arc::new(LocalStorage::new(&folder)))
            }
            StorePlace::Storage(storage) if key.is_empty() => Ok(Arc::clone(storage)),
            StorePlace::Storage(storage) => storage
                .below(key)
                .ok_or_else(|| Error::unsupported(self.name(), "adding to an array of a group here")),
        }
    }

    /// Opens an array at its own folder, because names in its fragments are relative to it.
    fn open_array(&self, key: &str) -> Result<OpenArray> {
        let options = OpenOptions { key: self.options.key.clone(), ..OpenOptions::default() };
        OpenArray::open(self.folder(key)?, String::new(), options)
    }

    fn name(&self) -> String {
        self.place.name()
    }

    /// The array and attribute that a node of the source is added to: the one at the same path or, if the options
    /// allow it, the only one in the store.
    fn target(&self, path: &str) -> Result<Option<(String, Arc<OpenArray>, usize)>> {
        let (mut found, mut all) = (None, Vec::new());
        let (mut above, mut label) = (None, None);
        self.store()?.walk("/", 0, &mut |node, array| {
            let Ok(array) = array else { return };
            if array.is_label {
                label = if node == path { above.clone() } else { label.take() };
                return;
            }
            above = Some(Arc::clone(&array));
            for index in 0..array.schema.attributes.len() {
                let own = hyperslab_core::child_path(node, &TileDbStore::node_name(&array, index));
                all.push((Arc::clone(&array), index));
                if own == path || node == path && TileDbStore::is_single_field(&array, node) {
                    found = Some((Arc::clone(&array), index));
                }
            }
        });
        if let Some(array) = label {
            return self.label(path, &array).map(Some);
        }
        // If the store itself is the array, any name matches. In a group, another name means another array.
        if let ([only], None, true) = (all.as_slice(), &found, !self.options.by_name)
            && only.0.prefix.is_empty()
        {
            found = Some(only.clone());
        }
        let Some((array, index)) = found else { return Ok(None) };
        if array.schema.kind != ArrayKind::Dense {
            return Err(Error::unsupported(Arc::clone(&array.name), "adding an array to a sparse one"));
        }
        let key = array.prefix.trim_end_matches('/').to_owned();
        let array = Arc::new(self.open_array(&key)?);
        Ok(Some((key, array, index)))
    }

    /// The labels of an array at a path.
    fn label(&self, path: &str, array: &OpenArray) -> Result<(String, Arc<OpenArray>, usize)> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let found = crate::label::shown(&array.schema).find(|(_, label)| label.name == name);
        let (_, label) = found.ok_or_else(|| self.no_array(path))?;
        let key = format!("{}{}", array.prefix, label.uri.trim_matches('/'));
        let mut own = self.open_array(&key)?;
        let index = crate::label::adopt_dimension(&mut own, array, label)?;
        Ok((key, Arc::new(own), index))
    }

    /// Locks an array, so that no other writer appends to it.
    fn lock(&self, key: &str, folder: &Path) -> Result<()> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if !locks.contains_key(key) {
            locks.insert(key.to_owned(), locks::continuing(folder)?);
        }
        Ok(())
    }

    fn no_array(&self, path: &str) -> Error {
        Error::invalid(format!("{}: there is no array {path} to add to", self.name()))
    }

    /// The location of the next attribute's files.
    fn parts(&self) -> Parts {
        let count: usize = self.arrays.values().map(|(_, sinks)| sinks.len()).sum();
        Parts { folder: self.change.scratch(), stem: format!("part{count}") }
    }

    /// Registers an attribute to be written in a box of its array.
    fn add(
        &mut self,
        path: &str,
        key: String,
        array: Arc<OpenArray>,
        sink: AppendSink,
    ) -> Result<Arc<AppendSink>> {
        let sink = Arc::new(sink);
        let (_, sinks) = self.arrays.entry(key).or_insert_with(|| (array, Vec::new()));
        if sinks.iter().any(|own| own.index == sink.index && own.overlaps(&sink)) {
            return Err(Error::invalid(format!("{path} was already added")));
        }
        sinks.push(Arc::clone(&sink));
        Ok(sink)
    }

    /// The key of the node whose metadata holds the attributes of `path`, and the prefix of their keys there.
    fn metadata_location(&self, path: &str) -> Result<Option<(String, String)>> {
        if let Some((key, array, index)) = self.target(path)? {
            let name = &array.schema.attributes[index].name;
            return Ok(Some((key, format!("{}{name}.", crate::metadata::ATTRIBUTE_PREFIX))));
        }
        Ok(self.store()?.folder_of(path)?.map(|below| (below, String::new())))
    }

    /// Fails for a new node below an array: fields are added to arrays by other means.
    fn check_above(&self, path: &str) -> Result<()> {
        let store = self.store()?;
        if !store.is_group() {
            return Err(Error::unsupported(
                self.name(),
                format!(
                    "creating {path} inside an array; convert into a group, or add a field with tet evolve"
                ),
            ));
        }
        for (at, _) in path.match_indices('/').skip(1) {
            if store.is_group_at(&path[..at])? == Some(false) {
                let above = &path[..at];
                return Err(Error::invalid(format!(
                    "{}: {path} cannot be created below {above}",
                    self.name()
                )));
            }
        }
        Ok(())
    }

    /// The group at a path, if the store has one.
    fn known_group(&self, path: &str) -> Result<Option<KnownGroup>> {
        let Some(key) = self.store()?.folder_of(path)? else { return Ok(None) };
        let entries = match &self.place {
            StorePlace::Path(path) => LocalStorage::new(path).list(&key)?,
            StorePlace::Storage(storage) => storage.list(&key)?,
        };
        Ok(Some(KnownGroup { key, taken: entries.into_iter().map(|entry| entry.name).collect() }))
    }

    /// Records metadata to write. Returns false if there is no such node.
    fn record_metadata(&mut self, path: &str, attributes: &Attributes) -> Result<bool> {
        let Some((key, prefix)) = self.metadata_location(path)? else { return Ok(false) };
        if !attributes.is_empty() {
            self.metadata.entry(key).or_default().push((prefix, attributes.clone()));
        }
        Ok(true)
    }
}

impl Sink for TileDbAppend {
    /// Sets these attributes of an existing group and keeps its others. If everything goes to the only array in the
    /// store, groups remain unchanged.
    fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let path = normal_path(path);
        let store = self.store()?;
        if store.node_exists(&path)? || (!self.options.by_name && !store.is_group()) {
            return if self.options.by_name {
                self.record_metadata(&path, attributes).map(|_| ())
            } else {
                Ok(())
            };
        }
        self.check_above(&path)?;
        self.new.group(&path, attributes)
    }

    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        let path = normal_path(path);
        let found = self.target(&path)?;
        let Some((key, array, index)) = found else {
            if self.store()?.node_exists(&path)? {
                return Err(Error::invalid(format!(
                    "{}: {path} already exists and is not an array",
                    self.name()
                )));
            }
            self.check_above(&path)?;
            return Ok(self.new.array(&path, spec, self.change.scratch(), &self.options)?);
        };
        if self.options.by_name {
            return Err(Error::invalid(format!("{}: {path} already exists", self.name())));
        }
        check_kind(&array, index, spec)?;
        let cells = place(&array, spec)?;
        let sink = AppendSink::new(&array, index, spec, cells, self.parts(), &self.options)?;
        Ok(self.add(&path, key, array, sink)?)
    }

    fn grow(&mut self, path: &str, shape: &[u64]) -> Result<Arc<dyn ArraySink>> {
        let path = normal_path(path);
        let (key, array, index) = self.target(&path)?.ok_or_else(|| self.no_array(&path))?;
        let place = Growth::new(&array, index, &path, shape)?;
        let mut own = Vec::new();
        for part in &place.parts {
            let cells = part.cells.clone();
            let sink = AppendSink::new(&array, index, &part.spec, cells, self.parts(), &self.options)?;
            own.push(self.add(&path, key.clone(), Arc::clone(&array), sink)?);
        }
        Ok(Arc::new(GrowSink::new(place, own)))
    }

    /// Drops an attribute from an array's schema.
    fn remove(&mut self, path: &str) -> Result<()> {
        let path = normal_path(path);
        let found = self.target(&path)?.filter(|(_, array, _)| !array.is_label);
        let Some((key, array, index)) = found else {
            return Err(Error::unsupported(self.name(), format!("removing {path} in place")));
        };
        self.dropped.entry(key).or_default().push(array.schema.attributes[index].name.clone());
        Ok(())
    }

    fn attributes(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let path = normal_path(path);
        if self.record_metadata(&path, attributes)? {
            return Ok(());
        }
        Err(Error::not_found(self.name(), path))
    }

    fn delete_attributes(&mut self, path: &str, names: &[&str]) -> Result<()> {
        let path = normal_path(path);
        let Some((key, prefix)) = self.metadata_location(&path)? else {
            return Err(Error::not_found(self.name(), path));
        };
        self.metadata.entry(key.clone()).or_default();
        self.deleted.entry(key).or_default().extend(names.iter().map(|name| format!("{prefix}{name}")));
        Ok(())
    }

    /// Writes new nodes and fragments first: beyond an array's end, they are invisible. Then updates the arrays'
    /// extents.
    fn commit(mut self: Box<Self>) -> Result<()> {
        let new = std::mem::replace(&mut self.new, NewNodes::new(String::new()));
        let mut visible = Vec::new();
        let mut schemas = Vec::new();
        if !new.is_empty() {
            let known = |path: &str| self.known_group(path);
            schemas = new.put(self.change.writer(), &self.options, &known)?;
        }
        let dropped = std::mem::take(&mut self.dropped);
        let dropped = dropped
            .into_iter()
            .map(|(key, names)| Ok((self.open_array(&key)?, key, names)))
            .collect::<Result<Vec<_>>>()?;
        let Self { options, change, arrays, metadata, deleted, locks: _locks, .. } = *self;
        for (array_key, (array, sinks)) in arrays {
            let folder = change.writer().below(&array_key)?;
            let (own, schema) = put_boxes(&folder, &array, &sinks, &options)?;
            visible.extend(own.iter().map(|own| key_in(&array_key, own)));
            schemas.extend(schema.map(|name| key_in(&array_key, &schema_key(&name))));
        }
        for (array, array_key, names) in dropped {
            let mut evolution = Evolution::new(&array);
            names.iter().try_for_each(|name| evolution.drop_attribute(name))?;
            evolution.check()?;
            let folder = change.writer().below(&array_key)?;
            let name = evolution.put(&folder, super::time_of(&array, &options)?, &options)?;
            schemas.push(key_in(&array_key, &schema_key(&name)));
        }
        visible.append(&mut schemas);
        for (node_key, sets) in metadata {
            let at = super::next_time(options.at, 0);
            let sets = sets.iter().map(|(prefix, own)| (prefix.as_str(), own));
            let folder = change.writer().below(&node_key)?;
            let gone = deleted.get(&node_key).map_or(&[][..], Vec::as_slice);
            let put = metadata::put_changes(&folder, sets, gone, at, options.key.as_ref())?;
            visible.extend(put.map(|own| key_in(&node_key, &own)));
        }
        change.publish(&visible)
    }
}

/// Writes a fragment for each box of an array. Returns the keys of the commit files in order, and the name of the new
/// schema if the array became larger.
fn put_boxes(
    folder: &StageWriter,
    array: &Arc<OpenArray>,
    sinks: &[Arc<AppendSink>],
    options: &WriteOptions,
) -> Result<(Vec<String>, Option<String>)> {
    let mut boxes: BTreeMap<&[(u64, u64)], Vec<Arc<AppendSink>>> = BTreeMap::new();
    for sink in sinks {
        boxes.entry(&sink.cells).or_default().push(Arc::clone(sink));
    }
    let mut at = super::time_of(array, options)?;
    let (mut visible, mut reach) = (Vec::new(), None);
    for (number, mut own) in boxes.into_values().enumerate() {
        own.sort_by_key(|sink| sink.index);
        check_complete(array, &own)?;
        if number > 0 {
            at = super::next_time(options.at.map(|at| at + number as u64), at);
        }
        let (keys, schema) = put_fragment(folder, array, &own, at, options)?;
        visible.extend(keys);
        let schema = reach.as_ref().unwrap_or(&*schema);
        let further = own.first().and_then(|sink| grown(schema, &sink.domain(schema)));
        reach = further.or(reach.take());
    }
    // The extent of labels is in the schema of the labelled array.
    let reach = reach.filter(|_| !array.is_label);
    let name = reach.map(|schema| put_schema(folder, &schema, at, options.key.as_ref())).transpose()?;
    Ok((visible, name))
}

/// Fails if an attribute is missing from a box: a fragment has all attributes.
fn check_complete(array: &OpenArray, sinks: &[Arc<AppendSink>]) -> Result<()> {
    let missing =
        (0..array.schema.attributes.len()).find(|index| sinks.iter().all(|own| own.index != *index));
    let Some(index) = missing else { return Ok(()) };
    let name = &array.schema.attributes[index].name;
    let cells = sinks.first().map(|sink| sink.cells.as_slice()).unwrap_or_default();
    Err(Error::invalid(format!("{}: attribute {name:?} is missing from the box {cells:?}", array.name)))
}

/// Assembles a fragment from the finished files of all attributes. Returns the keys of the commit files in order, and
/// the fragment's schema.
fn put_fragment(
    folder: &StageWriter,
    array: &Arc<OpenArray>,
    sinks: &[Arc<AppendSink>],
    at: u64,
    options: &WriteOptions,
) -> Result<(Vec<String>, Arc<Schema>)> {
    let Some(first) = sinks.first() else { return Ok((Vec::new(), Arc::clone(&array.schema))) };
    let files = sinks.iter().map(|sink| sink.complete()).collect::<Result<Vec<_>>>()?;
    let key = options.key.as_ref();
    let (schema, schema_name) = schema_to_write(folder, array, key)?;
    let domain = first.domain(&schema);
    let name = super::timed_name(at, at, true)?;
    let writer = FragmentWriter::create(
        folder,
        &name,
        Arc::clone(&schema),
        schema_name,
        Extra::default(),
        options.key.clone(),
    )?;
    fill(writer, sinks, files, &domain)?;
    let own: Vec<(String, &Attributes)> = sinks
        .iter()
        .filter(|sink| !sink.spec.attributes.is_empty())
        .map(|sink| {
            let prefix = format!("{}{}.", crate::metadata::ATTRIBUTE_PREFIX, sink.attribute.name);
            (prefix, &sink.spec.attributes)
        })
        .collect();
    let sets = own.iter().map(|(prefix, own)| (prefix.as_str(), *own));
    let mut visible: Vec<String> = metadata::put_prefixed(folder, sets, at, key)?.into_iter().collect();
    visible.push(put_commit(folder, &name)?);
    Ok((visible, schema))
}

/// Moves the finished files into the fragment and writes its metadata.
fn fill(
    mut writer: FragmentWriter,
    sinks: &[Arc<AppendSink>],
    files: Vec<FieldFiles>,
    domain: &[Range],
) -> Result<()> {
    for (sink, files) in sinks.iter().zip(files) {
        for (key, suffix) in files.keys() {
            writer.folder.take(&format!("a{}{suffix}", sink.index), &sink.parts.folder, key)?;
        }
        writer.fields[sink.index] = files;
    }
    let Some(first) = sinks.first() else { return Ok(()) };
    let cells = hyperslab_core::product(&first.extents).unwrap_or(0);
    writer.finish(domain, first.tile_count(), cells, &RTree::default())
}

/// The schema with a current domain that includes a box; `None` if it does already.
fn grown(schema: &Schema, domain: &[Range]) -> Option<Schema> {
    let current = schema.current_domain.as_ref()?;
    let joined = crate::sparse::join(schema, current, domain);
    (joined != *current).then(|| Schema { version: WRITTEN, current_domain: Some(joined), ..schema.clone() })
}

/// An attribute that is being appended to.
#[derive(Debug)]
pub(super) struct AppendSink {
    index: usize,
    spec: ArraySpec,
    attribute: Attribute,
    codecs: FieldCodecs,
    /// The first and the last cell along each dimension, counted from the domain's start.
    cells: Vec<(u64, u64)>,
    /// The first and the last tile along each dimension.
    tiles: Vec<(u64, u64)>,
    extents: Extents,
    /// The distance between adjacent cells in a stored tile, per axis.
    strides: Extents,
    tile_order: Order,
    parts: Parts,
    pending: Mutex<HashMap<u64, Arc<Mutex<Pending>>>>,
    /// The tiles that a chunk completed, kept until that chunk is written.
    ready: Mutex<HashMap<u64, Vec<(u64, FieldTile)>>>,
    state: Mutex<State>,
}

/// A tile with only some of its cells so far.
#[derive(Debug, Default)]
struct Pending {
    elements: Option<Elements>,
    present: u64,
}

/// Fails if the elements do not have the attribute's type.
fn check_kind(array: &OpenArray, index: usize, spec: &ArraySpec) -> Result<()> {
    let attribute = &array.schema.attributes[index];
    // Accept members of the same enumeration, or plain integers, which are codes already.
    let dtype = array.dtype_of(attribute);
    let alike = dtype == spec.dtype || attribute.dtype() == spec.dtype;
    if !alike || attribute.nullable != spec.nullable {
        return Err(Error::invalid(format!(
            "{}: attribute {:?} holds {}{}, not {}{}",
            array.name,
            attribute.name,
            dtype,
            if attribute.nullable { " or null" } else { "" },
            spec.dtype,
            if spec.nullable { " or null" } else { "" },
        )));
    }
    Ok(())
}

impl AppendSink {
    fn new(
        array: &Arc<OpenArray>,
        index: usize,
        spec: &ArraySpec,
        cells: Vec<(u64, u64)>,
        parts: Parts,
        options: &WriteOptions,
    ) -> Result<Self> {
        let schema = &array.schema;
        let attribute = schema.attributes[index].clone();
        let no_tiles = || Error::unsupported(Arc::clone(&array.name), "adding to dimensions without tiles");
        let extents: Extents = schema
            .dimensions
            .iter()
            .map(|own| own.tile_extent())
            .collect::<Option<_>>()
            .ok_or_else(no_tiles)?;
        let tiles =
            cells.iter().zip(&extents).map(|((low, high), extent)| (low / extent, high / extent)).collect();
        let chunk: Extents =
            extents.iter().zip(spec.grid.shape()).map(|(tile, extent)| (*tile).min(*extent)).collect();
        let spec = ArraySpec { grid: Grid::new(spec.grid.shape(), &chunk)?, ..spec.clone() };
        Ok(Self {
            index,
            codecs: FieldCodecs::attribute(schema, index, WRITTEN, options.key.as_ref()),
            strides: schema.cell_order.cell_order().strides(&extents),
            tile_order: schema.tile_order,
            spec,
            attribute,
            cells,
            tiles,
            extents,
            parts,
            pending: Mutex::default(),
            ready: Mutex::default(),
            state: Mutex::default(),
        })
    }

    /// Returns true if two boxes share cells.
    fn overlaps(&self, other: &Self) -> bool {
        self.cells.iter().zip(&other.cells).all(|(own, other)| own.0 <= other.1 && other.0 <= own.1)
    }

    fn tile_count(&self) -> u64 {
        let counts: Vec<u64> = self.tiles.iter().map(|(low, high)| high - low + 1).collect();
        hyperslab_core::product(&counts).unwrap_or(u64::MAX)
    }

    /// The written box, in the dimensions' coordinates.
    fn domain(&self, schema: &Schema) -> Vec<Range> {
        let range = |(dimension, (first, last)): (&crate::schema::Dimension, &(u64, u64))| {
            let (low, _) = dimension.bounds().unwrap_or((0, 0));
            let bytes = |cell: u64| integer_bytes(dimension.datatype.number(), low + i128::from(cell));
            Range { low: bytes(*first), high: bytes(*last), text: false }
        };
        schema.dimensions.iter().zip(&self.cells).map(range).collect()
    }

    /// The part of the written box in a tile, relative to the tile's origin.
    fn written(&self, tile: &[u64]) -> Option<Region> {
        let whole = Region {
            start: self.cells.iter().map(|(low, _)| *low).collect(),
            shape: self.cells.iter().map(|(low, high)| high - low + 1).collect(),
        };
        self.inside(tile, &whole)
    }

    /// The part of a region of the array in a tile, relative to the tile's origin.
    fn inside(&self, tile: &[u64], region: &Region) -> Option<Region> {
        let origin: Extents = tile.iter().zip(&self.extents).map(|(at, extent)| at * extent).collect();
        let mut part = region.intersect(&Region { start: origin.clone(), shape: self.extents.clone() })?;
        for (start, origin) in part.start.iter_mut().zip(&origin) {
            *start -= origin;
        }
        Some(part)
    }

    /// A tile's number in the fragment.
    fn number(&self, tile: &[u64]) -> u64 {
        let rank = tile.len();
        (0..rank).fold(0, |number, step| {
            let axis = if self.tile_order == Order::ColumnMajor { rank - 1 - step } else { step };
            let (low, high) = self.tiles[axis];
            number * (high - low + 1) + (tile[axis] - low)
        })
    }

    /// The tiles that a region of the array touches.
    fn touched(&self, region: &Region) -> Vec<ChunkCoord> {
        let ends = region.start.iter().zip(&region.shape).zip(&self.extents);
        let boxes: Vec<(u64, u64)> =
            ends.map(|((start, count), extent)| (start / extent, (start + count - 1) / extent)).collect();
        let counts: Vec<u64> = boxes.iter().map(|(low, high)| high - low + 1).collect();
        let count = hyperslab_core::product(&counts).unwrap_or(0);
        (0..count).map(|number| crate::dense::coord_in(&boxes, number, Order::RowMajor)).collect()
    }

    /// Copies a chunk's cells into their tiles. Returns the tiles that are now complete.
    fn take(&self, region: &Region, elements: &Elements) -> Result<Vec<(ChunkCoord, Elements)>> {
        let mut whole = Vec::new();
        for tile in self.touched(region) {
            let (Some(part), Some(written)) = (self.inside(&tile, region), self.written(&tile)) else {
                continue;
            };
            let (number, cells) = (self.number(&tile), written.cells().unwrap_or(0));
            let pending = || self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            let held = Arc::clone(pending().entry(number).or_default());
            // Only chunks that share this tile wait for each other.
            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
            let before = match held.elements.take() {
                Some(before) => before,
                None => self.padding()?,
            };
            let merged = self.placed(&tile, &part, region, &before, elements)?;
            held.present += part.cells().unwrap_or(0);
            if held.present >= cells {
                pending().remove(&number);
                whole.push((tile, merged));
            } else {
                held.elements = Some(merged);
            }
        }
        Ok(whole)
    }

    /// A tile of padding for cells outside the written box: zeros and nulls.
    fn padding(&self) -> Result<Elements> {
        let cells = hyperslab_core::product(&self.extents).and_then(|cells| usize::try_from(cells).ok());
        let cells = cells.ok_or_else(|| Error::invalid("a tile larger than memory"))?;
        let zero = super::dense::zero_cell(&self.attribute, &self.spec.dtype);
        Elements::gather(&self.spec.dtype, &[&zero], &vec![(0, 0); cells])
    }

    /// Copies the part of a chunk that lies in a tile.
    fn placed(
        &self,
        tile: &[u64],
        part: &Region,
        region: &Region,
        before: &Elements,
        elements: &Elements,
    ) -> Result<Elements> {
        let cells = before.len(&self.spec.dtype);
        let mut picks: Vec<(usize, usize)> = (0..cells).map(|cell| (0, cell)).collect();
        let origin: Extents = tile.iter().zip(&self.extents).map(|(at, extent)| at * extent).collect();
        let steps = hyperslab_core::CellOrder::RowMajor.strides(&region.shape);
        super::dense::visit(&part.shape, |at| {
            let (mut to, mut from) = (0, 0);
            for axis in 0..at.len() {
                let cell = part.start[axis] + at[axis];
                to += cell * self.strides[axis];
                from += (origin[axis] + cell - region.start[axis]) * steps[axis];
            }
            picks[to as usize] = (1, from as usize);
        });
        Elements::gather(&self.spec.dtype, &[before, elements], &picks)
    }

    fn encoded(&self, tile: &[u64], elements: &Elements) -> Result<FieldTile> {
        let cells = elements.len(&self.spec.dtype);
        let mut coded = self.codecs.encode(elements, cells)?;
        let mut own = Vec::new();
        if let Some(written) = self.written(tile) {
            super::dense::visit(&written.shape, |at| {
                let to: u64 =
                    (0..at.len()).map(|axis| (written.start[axis] + at[axis]) * self.strides[axis]).sum();
                own.push((0, to as usize));
            });
        }
        let own_elements = Elements::gather(&self.spec.dtype, &[elements], &own)?;
        coded.stats = TileStats::of(&self.attribute, &own_elements, own.len());
        Ok(coded)
    }

    /// Closes the files.
    fn complete(&self) -> Result<FieldFiles> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.next != self.tile_count() {
            let name = &self.attribute.name;
            return Err(Error::invalid(format!("attribute {name:?}: chunks are missing")));
        }
        let mut files = std::mem::take(&mut state.files);
        files.finish()?;
        Ok(files)
    }
}

impl ArraySink for AppendSink {
    fn grid(&self) -> &Grid {
        &self.spec.grid
    }

    fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<EncodedChunk> {
        self.spec.check_chunk(chunk, elements)?;
        let mut region = self.spec.grid.region(chunk);
        for (start, (low, _)) in region.start.iter_mut().zip(&self.cells) {
            *start += low;
        }
        let mut tiles = Vec::new();
        for (tile, elements) in self.take(&region, elements)? {
            tiles.push((self.number(&tile), self.encoded(&tile, &elements)?));
        }
        let number = self.spec.grid.linear(chunk).unwrap_or(u64::MAX);
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).insert(number, tiles);
        let raw_length = elements.as_fixed().map_or(0, |bytes| bytes.len() as u64);
        Ok(EncodedChunk { parts: Vec::new(), filter_mask: 0, raw_length, tag: number })
    }

    fn write(&self, chunk: &ChunkCoord, _encoded: EncodedChunk) -> Result<()> {
        let number = self.spec.grid.linear(chunk).unwrap_or(u64::MAX);
        let tiles = self.ready.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        let tiles = tiles.ok_or_else(|| Error::invalid(format!("chunk {chunk:?} was already written")))?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for (tile, coded) in tiles {
            state.put(tile, coded, &self.parts)?;
        }
        Ok(())
    }
}
