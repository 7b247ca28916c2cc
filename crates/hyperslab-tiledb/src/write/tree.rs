//! New arrays and groups: maps the nodes of a sink to the folders of a store.
//!
//! Each array becomes one attribute. A group whose arrays all have the same grid and dimensions becomes one TileDB
//! array with an attribute for each, so that its nodes keep their paths. Otherwise, it becomes a TileDB group in
//! which each array is a TileDB array with one attribute.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, PoisonError};

use hyperslab_core::storage::{StageOptions, StageWriter, StagedFolder};
use hyperslab_core::{ArraySink, ArraySpec, Attributes, Error, Result, Sink, child_path, normal_path};

use super::dense::{DenseSink, Parts, written_range};
use super::enumeration;
use super::fragment::{Extra, FragmentWriter};
use super::labels::{self, LabelSink};
use super::{WriteOptions, empty, key_in, metadata, put_commit, put_schema};
use crate::fragment::RTree;
use crate::generic;
use crate::names::NODE_NAMES;
use crate::schema::{Range, Schema, WRITTEN};

/// A new array or group, invisible until the commit.
#[derive(Debug)]
pub struct TileDbSink {
    staged: StagedFolder,
    options: WriteOptions,
    nodes: NewNodes,
}

/// Starts a new array or group at `path`.
///
/// # Errors
///
/// [`Exists`](Error::Exists) if something exists at the path and `force` is not set; [`Io`](Error::Io) if the staging
/// folder beside it cannot be created.
pub fn create(path: &Path, options: WriteOptions) -> Result<TileDbSink> {
    let stage = StageOptions::default().with_replace(options.force).with_sync(options.sync);
    let staged = StagedFolder::create(path, stage)?;
    let nodes = NewNodes::new(path.display().to_string());
    Ok(TileDbSink { staged, options, nodes })
}

impl Sink for TileDbSink {
    fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        self.nodes.group(path, attributes)
    }

    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        let array = self.nodes.array(path, spec, self.staged.scratch(), &self.options)?;
        Ok(array)
    }

    fn attributes(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        self.nodes.add_attributes(path, attributes)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let Self { staged, options, mut nodes } = *self;
        nodes.groups.entry("/".to_owned()).or_default();
        nodes.put(staged.writer(), &options, &|_| Ok(None))?;
        staged.publish()
    }
}

/// Nodes that are declared but not yet written.
#[derive(Debug)]
pub(super) struct NewNodes {
    /// The store's name, for messages.
    store: String,
    groups: BTreeMap<String, Attributes>,
    arrays: Vec<(String, Arc<DenseSink>)>,
    /// The paths of `arrays`.
    array_paths: BTreeSet<String>,
}

/// A group that already exists in the store.
#[derive(Debug)]
pub(super) struct KnownGroup {
    /// Its key.
    pub(super) key: String,
    /// The names of files and folders in it.
    pub(super) taken: BTreeSet<String>,
}

/// The arrays of a group: its values, and the labels of their dimensions.
type Members = Vec<(String, Arc<DenseSink>)>;

/// Splits a path into its parent and its last part.
fn split(path: &str) -> (String, String) {
    match path.rsplit_once('/') {
        Some(("", last)) => ("/".to_owned(), last.to_owned()),
        Some((parent, last)) => (parent.to_owned(), last.to_owned()),
        None => ("/".to_owned(), path.to_owned()),
    }
}

impl NewNodes {
    pub(super) const fn new(store: String) -> Self {
        Self { store, groups: BTreeMap::new(), arrays: Vec::new(), array_paths: BTreeSet::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.arrays.is_empty()
    }

    /// Checks the path of a new node. Its parts become folders, so each must be a valid folder name.
    fn claim(&self, path: &str) -> Result<String> {
        let path = format!("/{}", NODE_NAMES.key(&self.store, path)?);
        let mut above = path.match_indices('/').map(|(at, _)| &path[..at]);
        match above.find(|above| self.array_paths.contains(*above)) {
            Some(own) => Err(Error::invalid(format!("{path} cannot be created below the array {own}"))),
            None => Ok(path),
        }
    }

    /// Returns true if there is a node below this path.
    fn has_below(&self, path: &str) -> bool {
        let first = format!("{path}/");
        let group = self.groups.range(first.clone()..).next().map(|(own, _)| own);
        let array = self.array_paths.range(first.clone()..).next();
        [group, array].into_iter().flatten().any(|own| own.starts_with(&first))
    }

    pub(super) fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let path = self.claim(path)?;
        if self.array_paths.contains(&path) {
            return Err(Error::invalid(format!("{path} was already created")));
        }
        self.groups.insert(path, attributes.clone());
        Ok(())
    }

    /// Sets attributes of a declared node.
    fn add_attributes(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let path = normal_path(path);
        let set = |own: &mut Attributes| {
            attributes.iter().for_each(|(name, value)| own.set(name, value.clone()));
        };
        if let Some((_, sink)) = self.arrays.iter().find(|(own, _)| *own == path) {
            set(&mut sink.attributes.lock().unwrap_or_else(PoisonError::into_inner));
        } else if path == "/" || self.groups.contains_key(&path) {
            set(self.groups.entry(path).or_default());
        } else {
            return Err(Error::not_found(self.store.as_str(), path));
        }
        Ok(())
    }

    pub(super) fn array(
        &mut self,
        path: &str,
        spec: &ArraySpec,
        scratch: StageWriter,
        options: &WriteOptions,
    ) -> Result<Arc<DenseSink>> {
        let path = self.claim(path)?;
        let (_, name) = split(&path);
        if self.array_paths.contains(&path) || self.groups.contains_key(&path) {
            return Err(Error::invalid(format!("{path} was already created")));
        }
        if path != "/" && self.has_below(&path) {
            return Err(Error::invalid(format!("{path} cannot be an array: there are nodes below it")));
        }
        let parts = Parts { folder: scratch, stem: format!("new{}", self.arrays.len()) };
        let name = if name.is_empty() { "data".to_owned() } else { name };
        let sink = Arc::new(DenseSink::new(&name, spec, parts, options)?);
        self.array_paths.insert(path.clone());
        self.arrays.push((path, Arc::clone(&sink)));
        Ok(sink)
    }

    /// Writes everything. Returns the keys of the files that add members to existing groups.
    pub(super) fn put(
        self,
        writer: &StageWriter,
        options: &WriteOptions,
        known: &dyn Fn(&str) -> Result<Option<KnownGroup>>,
    ) -> Result<Vec<String>> {
        let Self { mut groups, arrays, .. } = self;
        let mut members: BTreeMap<String, Members> = BTreeMap::new();
        for (path, sink) in arrays {
            let (parent, name) = split(&path);
            members.entry(parent).or_default().push((name, sink));
        }
        // Every ancestor is a group, even if it was not declared.
        for path in members.keys().chain(groups.keys()).cloned().collect::<Vec<_>>() {
            groups.entry(path.clone()).or_default();
            let mut parent = path;
            while parent != "/" {
                parent = split(&parent).0;
                groups.entry(parent.clone()).or_default();
            }
        }
        let mut known_groups = BTreeMap::new();
        for path in groups.keys() {
            known_groups.extend(known(path)?.map(|group| (path.clone(), group)));
        }
        Tree { groups, members, known: known_groups, keys: BTreeMap::new() }.put(writer, options)
    }
}

/// All nodes, at the time of writing.
struct Tree {
    groups: BTreeMap<String, Attributes>,
    members: BTreeMap<String, Members>,
    known: BTreeMap<String, KnownGroup>,
    /// The keys of groups, once determined.
    keys: BTreeMap<String, String>,
}

impl Tree {
    fn put(mut self, writer: &StageWriter, options: &WriteOptions) -> Result<Vec<String>> {
        let at = super::next_time(options.at, 0);
        let mut visible = Vec::new();
        let mut groups_below: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (parent, name) in self.groups.keys().filter(|path| *path != "/").map(|path| split(path)) {
            groups_below.entry(parent).or_default().push(name);
        }
        // A group of compatible arrays without subgroups becomes one array, which its parent must record as an array.
        let is_array = |path: &String| {
            let own = self.members.get(path).map_or(&[][..], Vec::as_slice);
            let (values, _) = labels::split_labels(own);
            // A single array with the group's own name becomes an array in place of the group.
            let named_alike = own.len() == 1 && own[0].0 == split(path).1;
            let alone = !groups_below.contains_key(path) && !self.known.contains_key(path);
            !values.is_empty() && alone && !named_alike && one_array(&values)
        };
        let arrays: BTreeSet<String> = self.groups.keys().filter(|path| is_array(path)).cloned().collect();
        // Parents before children.
        for (path, attributes) in std::mem::take(&mut self.groups) {
            let known = self.known.remove(&path);
            let key = match &known {
                Some(group) => group.key.clone(),
                None => self.keys.remove(&path).unwrap_or_else(|| path.trim_start_matches('/').to_owned()),
            };
            let folder = writer.below(&key)?;
            let own = self.members.remove(&path).unwrap_or_default();
            if arrays.contains(&path) {
                let (values, labels) = labels::split_labels(&own);
                put_array(&folder, &values, &labels, &attributes, at, options)?;
                continue;
            }
            let mut taken = known.as_ref().map(|group| group.taken.clone()).unwrap_or_default();
            let mut listed = Vec::new();
            for name in groups_below.remove(&path).unwrap_or_default() {
                let child = child_path(&path, &name);
                if self.known.contains_key(&child) {
                    continue;
                }
                let kind = if arrays.contains(&child) { 2 } else { 1 };
                let uri = free_name(&name, &mut taken);
                self.keys.insert(child, key_in(&key, &uri));
                listed.push(NewMember { name, uri, kind });
            }
            for (name, sink) in own {
                let uri = free_name(&name, &mut taken);
                let own = [(name.clone(), sink)];
                put_array(&folder.below(&uri)?, &own, &[], &Attributes::new(), at, options)?;
                listed.push(NewMember { name, uri, kind: 2 });
            }
            match known {
                None => put_group(&folder, &listed, &attributes, at, options)?,
                Some(_) if listed.is_empty() => {}
                Some(_) => visible.push(key_in(&key, &put_members(&folder, &listed, at, options)?)),
            }
        }
        Ok(visible)
    }
}

/// A free folder name for a member. A killed writer may have left a folder with the member's name.
fn free_name(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut free = name.to_owned();
    let mut number = 1_u32;
    while !taken.insert(free.clone()) {
        free = format!("{name}_{number}");
        number += 1;
    }
    free
}

/// Returns true if these arrays can be attributes of one TileDB array.
fn one_array(own: &[(String, Arc<DenseSink>)]) -> bool {
    let shape = |sink: &DenseSink| {
        let spec = &sink.spec;
        let orders = (sink.schema.tile_order, sink.schema.cell_order);
        (spec.grid.clone(), spec.max_shape.clone(), spec.dimensions.clone(), orders)
    };
    own.windows(2)
        .all(|pair| shape(&pair[0].1) == shape(&pair[1].1) && pair[0].1.spec.labels == pair[1].1.spec.labels)
}

/// A new member of a group, stored in a subfolder.
struct NewMember {
    name: String,
    uri: String,
    /// 1 for a group, 2 for an array.
    kind: u8,
}

/// Writes a file that adds members to a group. Returns its key.
fn put_members(
    folder: &StageWriter,
    members: &[NewMember],
    at: u64,
    options: &WriteOptions,
) -> Result<String> {
    let mut payload = 2_u32.to_le_bytes().to_vec();
    payload.extend((members.len() as u64).to_le_bytes());
    for NewMember { name, uri, kind } in members {
        payload.extend(2_u32.to_le_bytes());
        payload.extend([*kind, 1]);
        payload.extend((uri.len() as u64).to_le_bytes());
        payload.extend(uri.as_bytes());
        payload.push(1);
        payload.extend((name.len() as u64).to_le_bytes());
        payload.extend(name.as_bytes());
        payload.push(0);
    }
    let key = format!("__group/{}_2", super::timed_name(at, at, false)?);
    folder.put(&key, &generic::encode(&payload, WRITTEN, options.key.as_ref())?)?;
    Ok(key)
}

fn put_group(
    folder: &StageWriter,
    members: &[NewMember],
    attributes: &Attributes,
    at: u64,
    options: &WriteOptions,
) -> Result<()> {
    folder.put("__tiledb_group.tdb", &[])?;
    put_members(folder, members, at, options)?;
    metadata::put(folder, attributes, at, options.key.as_ref())
}

/// Assembles an array with one or more attributes from their finished files.
fn put_array(
    folder: &StageWriter,
    own: &[(String, Arc<DenseSink>)],
    labels: &[LabelSink],
    attributes: &Attributes,
    at: u64,
    options: &WriteOptions,
) -> Result<()> {
    let Some((_, first)) = own.first() else { return Ok(()) };
    let mut schema = first.schema.clone();
    schema.attributes = own.iter().map(|(_, sink)| sink.attribute.clone()).collect();
    let enumerations = own.iter().enumerate();
    let enumerations =
        enumerations.filter_map(|(index, (_, sink))| Some((index, sink.enumeration.as_ref()?)));
    enumeration::put(folder, &mut schema, enumerations, options.key.as_ref())?;
    schema.labels = labels::put(folder, &schema, labels, at, options)?;
    let mut attributes = attributes.clone();
    empty::record(&first.spec, &mut attributes);
    let sinks: Vec<&DenseSink> = own.iter().map(|(_, sink)| &**sink).collect();
    put_fields(folder, schema, &sinks, &attributes, at, options)
}

/// Writes the schema, the metadata and the only fragment of a new array.
pub(super) fn put_fields(
    folder: &StageWriter,
    schema: Schema,
    sinks: &[&DenseSink],
    attributes: &Attributes,
    at: u64,
    options: &WriteOptions,
) -> Result<()> {
    let Some(first) = sinks.first() else { return Ok(()) };
    let schema = Arc::new(schema);
    let schema_name = put_schema(folder, &schema, at, options.key.as_ref())?;
    let prefixed: Vec<(String, Attributes)> = schema
        .attributes
        .iter()
        .zip(sinks)
        .map(|(attribute, sink)| {
            let prefix = format!("{}{}.", crate::metadata::ATTRIBUTE_PREFIX, attribute.name);
            (prefix, sink.attributes.lock().unwrap_or_else(PoisonError::into_inner).clone())
        })
        .collect();
    let sets =
        std::iter::once(("", attributes)).chain(prefixed.iter().map(|(prefix, own)| (prefix.as_str(), own)));
    metadata::put_prefixed(folder, sets, at, options.key.as_ref())?;
    if sinks.iter().all(|sink| sink.is_untouched()) {
        return Ok(());
    }
    let name = super::timed_name(at, at, true)?;
    let mut writer = FragmentWriter::create(
        folder,
        &name,
        Arc::clone(&schema),
        schema_name,
        Extra::default(),
        options.key.clone(),
    )?;
    for (index, sink) in sinks.iter().enumerate() {
        let files = sink.complete()?;
        for (key, suffix) in files.keys() {
            writer.folder.take(&format!("a{index}{suffix}"), &sink.parts.folder, key)?;
        }
        writer.fields[index] = files;
    }
    let tiles = first.spec.grid.chunks().unwrap_or(0);
    let cells = hyperslab_core::product(&first.tile_shape).unwrap_or(0);
    let domain: Vec<Range> = schema
        .dimensions
        .iter()
        .zip(first.spec.grid.shape())
        .map(|(dimension, extent)| written_range(dimension, *extent))
        .collect();
    writer.finish(&domain, tiles, cells, &RTree::default())?;
    put_commit(folder, &name).map(|_| ())
}
