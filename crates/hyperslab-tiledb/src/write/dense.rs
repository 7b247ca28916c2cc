//! Dense arrays through the core's sink.
//!
//! Each array becomes one attribute. A group whose arrays all have the same grid and dimensions is one TileDB array with an
//! attribute each, so that its nodes keep their paths; otherwise it is a TileDB group, and each array in it a TileDB array of
//! one attribute. Tiles are encoded by any number of threads and written in tile order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyperslab_core::storage::{StageOptions, StageWriter, StagedFolder};
use hyperslab_core::{
    ArraySink, ArraySpec, Attributes, ChunkCoord, Data, Elements, EncodedChunk, Error, Extents, Fields, Grid,
    Labels, Layout, Place, Result, Sink, Validity, child_path, copy_box,
};

use super::enumeration::{self, NewEnumeration};
use super::fragment::{Extra, FieldFiles, FragmentWriter};
use super::{FieldTile, TileStats, WriteOptions, metadata, put_commit, put_schema, types};
use crate::datatype::{CellValues, Datatype};
use crate::field::FieldCodecs;
use crate::fragment::RTree;
use crate::generic;
use crate::names::NODE_NAMES;
use crate::pipeline::{Filter, Pipeline};
use crate::schema::{ArrayKind, Attribute, Dimension, Order, Range, Schema, WRITTEN, integer_bytes};

/// Tiles that arrive early wait in memory up to this many bytes, then on disk.
const WAITING_BYTES: usize = 64 << 20;

/// A new array or group, invisible until it is committed.
#[derive(Debug)]
pub struct TileDbSink {
    staged: StagedFolder,
    options: WriteOptions,
    groups: BTreeMap<String, Attributes>,
    arrays: Vec<(String, Arc<DenseSink>)>,
    /// The paths of `arrays`.
    array_paths: BTreeSet<String>,
}

/// Starts a new array or group at `path`.
///
/// # Errors
///
/// [`Exists`](Error::Exists) when something stands there and `force` is not set; [`Io`](Error::Io) when the folder beside
/// it cannot be made.
pub fn create(path: &Path, options: WriteOptions) -> Result<TileDbSink> {
    let stage = StageOptions::default().with_replace(options.force).with_sync(options.sync);
    let staged = StagedFolder::create(path, stage)?;
    let (groups, arrays, array_paths) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
    Ok(TileDbSink { staged, options, groups, arrays, array_paths })
}

/// The parent of a path and its last part.
fn split(path: &str) -> (String, String) {
    match path.rsplit_once('/') {
        Some(("", last)) => ("/".to_owned(), last.to_owned()),
        Some((parent, last)) => (parent.to_owned(), last.to_owned()),
        None => ("/".to_owned(), path.to_owned()),
    }
}

impl TileDbSink {
    /// The path of a new node. Its parts become folders, so each must be a name that a folder may have.
    fn claim(&self, path: &str) -> Result<String> {
        let path = format!("/{}", NODE_NAMES.key(&self.staged.target().display().to_string(), path)?);
        let mut above = path.match_indices('/').map(|(at, _)| &path[..at]);
        match above.find(|above| self.array_paths.contains(*above)) {
            Some(own) => Err(Error::invalid(format!("{path} cannot be made below the array {own}"))),
            None => Ok(path),
        }
    }

    /// Does a node stand below this path?
    fn has_below(&self, path: &str) -> bool {
        let first = format!("{path}/");
        let group = self.groups.range(first.clone()..).next().map(|(own, _)| own);
        let array = self.array_paths.range(first.clone()..).next();
        [group, array].into_iter().flatten().any(|own| own.starts_with(&first))
    }
}

impl Sink for TileDbSink {
    fn group(&mut self, path: &str, attributes: &Attributes) -> Result<()> {
        let path = self.claim(path)?;
        if self.array_paths.contains(&path) {
            return Err(Error::invalid(format!("{path} was made before")));
        }
        self.groups.insert(path, attributes.clone());
        Ok(())
    }

    fn array(&mut self, path: &str, spec: &ArraySpec) -> Result<Arc<dyn ArraySink>> {
        let path = self.claim(path)?;
        let (_, name) = split(&path);
        if self.array_paths.contains(&path) || self.groups.contains_key(&path) {
            return Err(Error::invalid(format!("{path} was made before")));
        }
        if path != "/" && self.has_below(&path) {
            return Err(Error::invalid(format!("{path} cannot be an array: nodes stand below it")));
        }
        let parts = Parts { folder: self.staged.scratch(), stem: format!("part{}", self.arrays.len()) };
        let name = if name.is_empty() { "data".to_owned() } else { name };
        let sink = Arc::new(DenseSink::new(&name, spec, parts, &self.options)?);
        self.array_paths.insert(path.clone());
        self.arrays.push((path, Arc::clone(&sink)));
        Ok(sink)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let Self { staged, options, mut groups, arrays, .. } = *self;
        let at = super::next_time(options.at, 0);
        let mut members: BTreeMap<String, Vec<(String, Arc<DenseSink>)>> = BTreeMap::new();
        for (path, sink) in arrays {
            let (parent, name) = split(&path);
            members.entry(parent).or_default().push((name, sink));
        }
        for path in members.keys().cloned().collect::<Vec<_>>() {
            groups.entry(path).or_default();
        }
        // Every group on the way is one, whether or not it was named.
        for path in groups.keys().cloned().collect::<Vec<_>>() {
            let mut parent = path;
            while parent != "/" {
                parent = split(&parent).0;
                groups.entry(parent.clone()).or_default();
            }
        }
        groups.entry("/".to_owned()).or_default();
        let mut groups_below: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (parent, name) in groups.keys().filter(|path| *path != "/").map(|path| split(path)) {
            groups_below.entry(parent).or_default().push(name);
        }
        // A group whose members are alike and that has no groups below is one array, and its parent must say so.
        let is_array = |path: &str| {
            let own = members.get(path).map_or(&[][..], Vec::as_slice);
            // An array with one field of its own name is an array in the place of the group.
            let named_alike = own.len() == 1 && own[0].0 == split(path).1;
            !own.is_empty() && !groups_below.contains_key(path) && !named_alike && one_array(own)
        };
        let arrays: std::collections::BTreeSet<String> =
            groups.keys().filter(|path| is_array(path)).cloned().collect();
        for (path, attributes) in &groups {
            let folder = staged.writer().below(path.trim_start_matches('/'))?;
            let own = members.remove(path).unwrap_or_default();
            let below = groups_below.remove(path).unwrap_or_default();
            if arrays.contains(path) {
                put_array(&folder, &own, attributes, at, &options)?;
                continue;
            }
            let kind = |name: &str| if arrays.contains(&child_path(path, name)) { 2 } else { 1 };
            let mut listed: Vec<(String, u8)> = below
                .into_iter()
                .map(|name| {
                    let kind = kind(&name);
                    (name, kind)
                })
                .collect();
            for (name, sink) in own {
                let own = [(name.clone(), sink)];
                put_array(&folder.below(&name)?, &own, &Attributes::new(), at, &options)?;
                listed.push((name, 2));
            }
            put_group(&folder, &listed, attributes, at, &options)?;
        }
        staged.publish()
    }
}

/// Can these be attributes of one array?
fn one_array(own: &[(String, Arc<DenseSink>)]) -> bool {
    let shape = |sink: &DenseSink| {
        (sink.spec.grid.clone(), sink.spec.max_shape.clone(), sink.spec.dimensions.clone())
    };
    own.windows(2)
        .all(|pair| shape(&pair[0].1) == shape(&pair[1].1) && pair[0].1.spec.labels == pair[1].1.spec.labels)
}

fn put_group(
    folder: &StageWriter,
    members: &[(String, u8)],
    attributes: &Attributes,
    at: u64,
    options: &WriteOptions,
) -> Result<()> {
    let mut payload = 2_u32.to_le_bytes().to_vec();
    payload.extend((members.len() as u64).to_le_bytes());
    for (name, kind) in members {
        payload.extend(2_u32.to_le_bytes());
        payload.extend([*kind, 1]);
        payload.extend((name.len() as u64).to_le_bytes());
        payload.extend(name.as_bytes());
        payload.push(1);
        payload.extend((name.len() as u64).to_le_bytes());
        payload.extend(name.as_bytes());
        payload.push(0);
    }
    folder.put("__tiledb_group.tdb", &[])?;
    let name = format!("{}_2", super::timed_name(at, at, false)?);
    let key = options.key.as_ref();
    folder.put(&format!("__group/{name}"), &generic::encode(&payload, WRITTEN, key)?)?;
    metadata::put(folder, attributes, at, key)
}

/// Puts an array of one or more attributes together out of their finished files.
fn put_array(
    folder: &StageWriter,
    own: &[(String, Arc<DenseSink>)],
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
    let schema = Arc::new(schema);
    let schema_name = put_schema(folder, &schema, at, options.key.as_ref())?;
    let prefixed: Vec<(String, &Attributes)> = own
        .iter()
        .map(|(_, sink)| {
            let prefix = format!("{}{}.", crate::metadata::ATTRIBUTE_PREFIX, sink.attribute.name);
            (prefix, &sink.spec.attributes)
        })
        .collect();
    let sets =
        std::iter::once(("", attributes)).chain(prefixed.iter().map(|(prefix, own)| (prefix.as_str(), *own)));
    metadata::put_prefixed(folder, sets, at, options.key.as_ref())?;
    if own.iter().all(|(_, sink)| sink.is_untouched()) {
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
    for (index, (_, sink)) in own.iter().enumerate() {
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

/// The first `extent` coordinates of a dimension.
fn written_range(dimension: &Dimension, extent: u64) -> Range {
    let (low, _) = dimension.bounds().unwrap_or((0, 0));
    let high = low + i128::from(extent) - 1;
    let bytes = |value| integer_bytes(dimension.datatype.number(), value);
    Range { low: bytes(low), high: bytes(high), text: false }
}

/// One attribute that is being written.
#[derive(Debug)]
struct DenseSink {
    spec: ArraySpec,
    attribute: Attribute,
    enumeration: Option<NewEnumeration>,
    /// With no attributes yet.
    schema: Schema,
    codecs: FieldCodecs,
    tile_shape: Extents,
    parts: Parts,
    state: Mutex<State>,
}

/// Where the files of one attribute are until they are put together.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) folder: StageWriter,
    /// What their keys begin with.
    pub(super) stem: String,
}

/// Tiles go to the files in order; those that come early wait.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) files: FieldFiles,
    /// The tile that the files wait for.
    pub(super) next: u64,
    waiting: BTreeMap<u64, Waiting>,
    waiting_bytes: usize,
    seen: std::collections::HashSet<u64>,
}

#[derive(Debug)]
enum Waiting {
    Memory(FieldTile),
    Disk(String),
}

impl DenseSink {
    fn new(name: &str, spec: &ArraySpec, parts: Parts, options: &WriteOptions) -> Result<Self> {
        let mut attribute = types::attribute(name, spec)?;
        let (enumeration, attributes) = NewEnumeration::from_attributes(name, &spec.dtype, &spec.attributes);
        let mut spec = spec.clone();
        spec.attributes = attributes;
        let (shape, chunk) = (spec.grid.shape(), spec.grid.chunk_shape());
        if shape.is_empty() || shape.contains(&0) {
            return Err(Error::unsupported("tiledb", format!("writing an array of shape {shape:?}")));
        }
        let tile_shape: Extents =
            shape.iter().zip(chunk).map(|(extent, chunk)| (*chunk).min(*extent)).collect();
        let dimensions = dimensions(&spec, &tile_shape)?;
        // TileDB refuses an attribute that is called like a dimension, as coordinates are. Its own converter of NetCDF files
        // adds the same ending.
        while dimensions.iter().any(|dimension| dimension.name == attribute.name) {
            attribute.name.push_str(crate::store::COORDINATE_ENDING);
        }
        let mut schema = Schema {
            version: WRITTEN,
            allows_duplicates: false,
            kind: ArrayKind::Dense,
            tile_order: Order::RowMajor,
            cell_order: Order::RowMajor,
            capacity: 10_000,
            coords: Pipeline::of([Filter::Zstd(3)]),
            offsets: Pipeline::of([Filter::Zstd(3)]),
            validity: Pipeline::of([Filter::Rle(-1)]),
            dimensions,
            attributes: vec![attribute.clone()],
            labels: Vec::new(),
            enumerations: Vec::new(),
            current_domain: None,
        };
        if spec.max_shape.iter().zip(shape).any(|(max, extent)| *max != Some(*extent)) {
            let ranges =
                schema.dimensions.iter().zip(shape).map(|(d, extent)| written_range(d, *extent)).collect();
            schema.current_domain = Some(ranges);
        }
        let codecs = FieldCodecs::attribute(&schema, 0, WRITTEN, options.key.as_ref());
        schema.attributes.clear();
        Ok(Self { spec, attribute, enumeration, schema, codecs, tile_shape, parts, state: Mutex::default() })
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_untouched(&self) -> bool {
        self.locked().seen.is_empty()
    }

    /// A clipped chunk in C order as a whole tile: what lies outside is zeros, and null.
    fn padded(&self, chunk: &[u64], elements: &Elements) -> Result<Elements> {
        let shape = self.spec.grid.region(chunk).shape;
        if shape == self.tile_shape {
            return Ok(elements.clone());
        }
        let cells = hyperslab_core::product(&self.tile_shape).unwrap_or(0) as usize;
        if let (Data::Fixed(bytes), Some(item), None) =
            (&elements.data, self.spec.dtype.size(), &elements.validity)
        {
            let mut tile = vec![0; cells * item];
            let (from, to) = (Layout::packed(&shape, item), Layout::packed(&self.tile_shape, item));
            copy_box(bytes, &from, &mut tile, &to, &shape, item)?;
            return Ok(Elements::fixed(tile));
        }
        let zero = zero_cell(&self.attribute, &self.spec.dtype);
        let mut picks = vec![(1, 0); cells];
        let strides = hyperslab_core::CellOrder::RowMajor.strides(&self.tile_shape);
        let mut cell = 0;
        visit(&shape, |at| {
            let to: u64 = at.iter().zip(&strides).map(|(at, stride)| at * stride).sum();
            picks[to as usize] = (0, cell);
            cell += 1;
        });
        Elements::gather(&self.spec.dtype, &[elements, &zero], &picks)
    }

    fn encode_tile(&self, chunk: &[u64], elements: &Elements) -> Result<FieldTile> {
        let cells = hyperslab_core::product(&self.tile_shape).unwrap_or(0) as usize;
        let padded = self.padded(chunk, elements)?;
        let mut tile = self.codecs.encode(&padded, cells)?;
        let own = elements.len(&self.spec.dtype);
        tile.stats = TileStats::of(&self.attribute, elements, own);
        Ok(tile)
    }

    /// Puts fill values where nothing was written, and closes the files.
    fn complete(&self) -> Result<FieldFiles> {
        let tiles =
            self.spec.grid.chunks().ok_or_else(|| Error::invalid("more tiles than can be counted"))?;
        loop {
            let (next, missing) = {
                let state = self.locked();
                (state.next, state.next < tiles)
            };
            if !missing {
                break;
            }
            let chunk = self.spec.grid.coord(next);
            let cells = self.spec.grid.region(&chunk).cells().unwrap_or(0) as usize;
            let fill = match self.attribute.fill() {
                hyperslab_core::Fill::Element(element) => element,
                _ => Elements::zero(&self.spec.dtype),
            };
            let elements = Elements::gather(&self.spec.dtype, &[&fill], &vec![(0, 0); cells])?;
            let tile = self.encode_tile(&chunk, &elements)?;
            self.locked().put(next, tile, &self.parts)?;
        }
        let mut files = std::mem::take(&mut self.locked().files);
        files.finish()?;
        Ok(files)
    }
}

/// What a cell outside the written box holds: zeros, one of them where lengths vary, and null.
pub(super) fn zero_cell(attribute: &Attribute, dtype: &hyperslab_core::DType) -> Elements {
    let size = attribute.datatype.size();
    let zero = match attribute.values {
        CellValues::Variable
            if attribute.datatype.is_bytes() || matches!(dtype, hyperslab_core::DType::String) =>
        {
            Elements::variable([vec![0; size]])
        }
        CellValues::Variable => Elements {
            data: Data::List { offsets: vec![0, 1], items: Box::new(Elements::fixed(vec![0; size])) },
            validity: None,
        },
        CellValues::Fixed(_) => Elements::zero(dtype),
    };
    zero.with_validity(attribute.nullable.then(|| Validity::from_flags([false])))
}

/// Visits the cells of a box in C order.
pub(super) fn visit(shape: &[u64], mut each: impl FnMut(&[u64])) {
    let mut at: Extents = smallvec::SmallVec::from_elem(0, shape.len());
    for _ in 0..hyperslab_core::product(shape).unwrap_or(0) {
        each(&at);
        for axis in (0..shape.len()).rev() {
            at[axis] += 1;
            if at[axis] < shape[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
}

impl State {
    /// Takes a tile: into the files when it is the next one, else aside.
    pub(super) fn put(&mut self, number: u64, tile: FieldTile, parts: &Parts) -> Result<()> {
        let Parts { folder, stem } = parts;
        if number != self.next {
            let bytes = tile_bytes(&tile);
            let waiting = if self.waiting_bytes + bytes > WAITING_BYTES {
                let key = format!("{stem}.{number}.wait");
                folder.put(&key, &pack(&tile))?;
                Waiting::Disk(key)
            } else {
                self.waiting_bytes += bytes;
                Waiting::Memory(tile)
            };
            self.waiting.insert(number, waiting);
            return Ok(());
        }
        self.files.append(folder, stem, &tile)?;
        self.next += 1;
        while let Some(waiting) = self.waiting.remove(&self.next) {
            let tile = match waiting {
                Waiting::Memory(tile) => {
                    self.waiting_bytes -= tile_bytes(&tile);
                    tile
                }
                Waiting::Disk(key) => {
                    let bytes = folder.read(&key)?.ok_or_else(|| Error::not_found("tiledb", key.as_str()))?;
                    folder.remove(&key)?;
                    unpack(&bytes.into())?
                }
            };
            self.files.append(folder, stem, &tile)?;
            self.next += 1;
        }
        Ok(())
    }
}

fn tile_bytes(tile: &FieldTile) -> usize {
    tile.fixed.len()
        + tile.values.as_ref().map_or(0, |(values, _)| values.len())
        + tile.validity.as_ref().map_or(0, Bytes::len)
}

/// A tile as parts: what the field has, then its statistics.
fn parts(tile: FieldTile) -> Vec<Bytes> {
    let mut note = vec![u8::from(tile.values.is_some()), u8::from(tile.validity.is_some())];
    note.extend(tile.values.as_ref().map_or(0, |(_, size)| *size).to_le_bytes());
    note.extend(tile.stats.pack());
    let mut parts = vec![tile.fixed];
    parts.extend(tile.values.map(|(values, _)| values));
    parts.extend(tile.validity);
    parts.push(note.into());
    parts
}

/// The inverse of [`parts`].
fn from_parts(mut parts: Vec<Bytes>) -> Result<FieldTile> {
    let wrong = || Error::invalid("a chunk that was not encoded here");
    let note = parts.pop().ok_or_else(wrong)?;
    let mut fields = Fields::new(&note, Place::new("encoded chunk", "statistics", 0));
    let (values, validity, size) = (fields.u8()? != 0, fields.u8()? != 0, fields.u64()?);
    let stats = TileStats::unpack(&mut fields)?;
    let mut parts = parts.into_iter();
    let fixed = parts.next().ok_or_else(wrong)?;
    let values = if values { Some((parts.next().ok_or_else(wrong)?, size)) } else { None };
    let validity = if validity { Some(parts.next().ok_or_else(wrong)?) } else { None };
    Ok(FieldTile { fixed, values, validity, stats })
}

fn pack(tile: &FieldTile) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts(tile.clone()) {
        out.extend((part.len() as u64).to_le_bytes());
        out.extend(&part);
    }
    out
}

fn unpack(bytes: &Bytes) -> Result<FieldTile> {
    let mut fields = Fields::new(bytes, Place::new("waiting tile", "parts", 0));
    let mut parts = Vec::new();
    while fields.remaining() > 0 {
        let length = fields.count_u64(1)?;
        parts.push(Bytes::copy_from_slice(fields.bytes(length)?));
    }
    from_parts(parts)
}

impl ArraySink for DenseSink {
    fn grid(&self) -> &Grid {
        &self.spec.grid
    }

    fn encode(&self, chunk: &ChunkCoord, elements: &Elements) -> Result<EncodedChunk> {
        self.spec.check_chunk(chunk, elements)?;
        let raw_length = elements.as_fixed().map_or(0, |bytes| bytes.len() as u64);
        let tile = self.encode_tile(chunk, elements)?;
        Ok(EncodedChunk { parts: parts(tile), filter_mask: 0, raw_length, tag: 0 })
    }

    fn write(&self, chunk: &ChunkCoord, encoded: EncodedChunk) -> Result<()> {
        let number = self.spec.grid.linear(chunk);
        let number = number.ok_or_else(|| Error::invalid(format!("chunk {chunk:?} is outside the grid")))?;
        let tile = from_parts(encoded.parts)?;
        let mut state = self.locked();
        if !state.seen.insert(number) {
            return Err(Error::invalid(format!("chunk {chunk:?} was written before")));
        }
        state.put(number, tile, &self.parts)
    }
}

/// The dimensions of an array: integers from zero, or the domain that the labels give. Their types are those of the source where
/// all fit in them; a dense array has one type for all.
fn dimensions(spec: &ArraySpec, tile_shape: &[u64]) -> Result<Vec<Dimension>> {
    let types: Vec<Option<Datatype>> = (0..tile_shape.len()).map(|axis| wanted_type(spec, axis)).collect();
    let narrow = match types.as_slice() {
        [Some(first), rest @ ..] if rest.iter().all(|other| *other == Some(*first)) => Some(*first),
        _ => None,
    };
    if let Some(found) = narrow.and_then(|datatype| dimensions_of(spec, tile_shape, Some(datatype)).ok()) {
        return Ok(found);
    }
    dimensions_of(spec, tile_shape, None)
}

/// The type that the coordinates of an axis had.
fn wanted_type(spec: &ArraySpec, axis: usize) -> Option<Datatype> {
    let dtype = match spec.labels.get(axis) {
        Some(Labels::Domain { dtype, .. }) => Some(dtype),
        _ => spec.stored.dimension_types.get(axis),
    };
    let (datatype, _) = types::datatype(dtype?)?;
    (!datatype.number().is_float() && !datatype.is_bytes()).then_some(datatype)
}

/// Dimensions of one type; of 64 bits, or dates where labels say so, when none is given.
fn dimensions_of(spec: &ArraySpec, tile_shape: &[u64], wanted: Option<Datatype>) -> Result<Vec<Dimension>> {
    let mut dimensions = Vec::new();
    for (axis, extent) in spec.grid.shape().iter().enumerate() {
        let too_large = || Error::unsupported("tiledb", format!("axis {axis} of {extent} cells"));
        let (own, first) = match spec.labels.get(axis) {
            Some(Labels::Domain { first, dtype }) => match types::datatype(dtype) {
                Some((datatype @ Datatype::DateTime(_), _)) => (datatype, *first),
                _ => (Datatype::Int64, *first),
            },
            _ => (Datatype::Int64, 0),
        };
        let datatype = wanted.unwrap_or(own);
        let number = datatype.number();
        let (least, most) = number.limits();
        let (first, tile) = (i128::from(first), i128::from(tile_shape[axis]));
        let last = match spec.max_shape.get(axis).copied().flatten() {
            Some(max) => first + i128::from(max.max(*extent)) - 1,
            // As far as whole tiles fit before the end of the type.
            None => (most - 1 - tile - first.max(0)) / tile * tile + first.max(0) - 1,
        };
        let fits = first >= least && last >= first + i128::from(*extent) - 1 && last <= most - tile;
        if !fits || last > i128::from(i64::MAX) {
            return Err(too_large());
        }
        let name = spec.dimensions.get(axis).cloned().flatten().unwrap_or_else(|| format!("__dim_{axis}"));
        dimensions.push(Dimension {
            name,
            datatype,
            values: CellValues::Fixed(1),
            pipeline: Pipeline::default(),
            domain: [integer_bytes(number, first), integer_bytes(number, last)].concat(),
            extent: Some(integer_bytes(number, tile)),
        });
    }
    Ok(dimensions)
}
