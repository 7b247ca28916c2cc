//! A Zarr array: locates chunks by object names and shard tables, and decodes them with codecs.

mod layers;

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyperslab_core::{
    Array, ArraySchema, Blob, BlobKey, ByteRange, CellOrder, ChunkCoord, ChunkRef, Coverage, DType, Edges,
    Elements, Error, Extents, FetchCost, Fill, Grid, ObjectPlace, ObjectRange, PartialOutput, Place,
    PlannedChunk, Result, Span, Storage, StoredForm, UNKNOWN_LENGTH, claimed_memory, product, read_spans,
    read_spans_cost,
};

use crate::elements::ElementStream;
use crate::json::Doc;
use crate::keys::KeyEncoding;
use crate::metadata::ArrayMetadata;
use crate::objects::Objects;
use crate::pipeline::{Cells, Pipeline, Serializer, cell_order, compose, permuted, recycle, unpermuted};
use crate::rectilinear::Rectilinear;
use crate::shard::{IndexFormat, ShardIndex};
use crate::vlen;

/// Larger elements are rejected: a document of a few bytes could claim any size, and a fill value has the size of an
/// element.
const MAX_ELEMENT_BYTES: usize = 16 << 20;

/// Limits of the shard index cache: shards, and bytes of their indexes.
const KEPT_SHARDS: usize = 512;
const KEPT_BYTES: usize = 32 << 20;

/// The number of remote shards whose indexes are requested together.
const INDEXES_AT_ONCE: usize = 256;

/// Shards with more decoded bytes are never fetched whole: several requests for their chunks are faster than one.
const WHOLE_SHARD: u64 = 16 << 20;

/// Bounds on how much codecs may enlarge a chunk: they can widen numbers (from 1 byte to 16), and add headers and
/// checksums.
const MAX_GROWTH: u64 = 16;
const GROWTH_ROOM: u64 = 1 << 20;

/// An array of a Zarr store.
///
/// If the only codec is `sharding_indexed`, the chunks are the inner chunks of the shards.
#[derive(Debug)]
pub struct ZarrArray {
    schema: ArraySchema,
    name: Arc<str>,
    directory: Arc<dyn Storage>,
    /// The array's own key, the prefix of its objects.
    key: String,
    keys: KeyEncoding,
    /// The codecs of one chunk.
    pipeline: Pipeline,
    /// The size of a decoded chunk, for fixed-size elements.
    chunk_bytes: Option<usize>,
    /// The number of ticks in a stored time unit.
    scale: i64,
    /// One element, for cells that a nested shard does not store.
    fill: Vec<u8>,
    shards: Option<Shards>,
    /// Set if stored chunks differ in shape; chunks are then assembled from them.
    rectilinear: Option<Rectilinear>,
    /// The objects, if each chunk has its own.
    objects: Objects,
}

/// The layout of chunks in shards.
#[derive(Debug)]
struct Shards {
    /// The shape of a shard in cells.
    shape: Extents,
    /// The number of chunks in a shard, per axis.
    counts: Extents,
    /// The transpose before sharding. The index counts along its axes.
    axes: Vec<u8>,
    index: IndexFormat,
    opened: Mutex<OpenedShards>,
}

#[derive(Debug, Default)]
struct OpenedShards {
    by_key: HashMap<Arc<str>, Arc<Shard>>,
    bytes: usize,
}

/// A shard whose index has been read.
#[derive(Debug)]
struct Shard {
    key: Arc<str>,
    /// The shard's object, for messages.
    object: String,
    blob: Arc<dyn Blob>,
    length: u64,
    index: ShardIndex,
}

/// With at most this many objects, a store is listed as a whole instead of array by array.
const MOST_LISTED: usize = 2000;

impl ZarrArray {
    /// Creates the array that a document describes. Its objects are below `key`.
    pub(crate) fn new(
        directory: &Arc<dyn Storage>,
        key: &str,
        metadata: ArrayMetadata,
        doc: Doc<'_>,
    ) -> Result<Self> {
        let ArrayMetadata {
            shape,
            chunk_shape,
            rectilinear,
            stored,
            fill,
            keys,
            mut pipeline,
            dimensions,
            attributes,
        } = metadata;
        let (mut own_shape, mut axes, mut shards) = (chunk_shape.clone(), pipeline.axes.clone(), None);
        let mut shown = pipeline.shown();
        if let Serializer::Shard(sharding) = &pipeline.serializer
            && pipeline.steps.is_empty()
            && rectilinear.is_none()
        {
            let counts = sharding.counts(&permuted(&pipeline.axes, &chunk_shape), doc)?;
            own_shape = unpermuted(&pipeline.axes, &sharding.chunk_shape);
            axes = compose(&pipeline.axes, &sharding.pipeline.axes);
            shards = Some(Shards {
                shape: chunk_shape,
                counts: unpermuted(&pipeline.axes, &counts),
                axes: pipeline.axes.clone(),
                index: sharding.index,
                opened: Mutex::default(),
            });
            let inner = sharding.pipeline.clone();
            pipeline = inner;
            let order = Pipeline { axes: axes.clone(), ..pipeline.clone() };
            shown = order.shown();
        }
        let grid = Grid::new(&shape, &own_shape).map_err(|error| doc.corrupt(error.to_string()))?;
        let item = stored.dtype.size();
        let cells = product(&own_shape).and_then(|cells| usize::try_from(cells).ok());
        let chunk_bytes = cells.zip(item).and_then(|(cells, item)| cells.checked_mul(item));
        let mut schema = ArraySchema::new(stored.dtype, grid);
        // Assembled chunks are in C order.
        schema.order = if rectilinear.is_some() { CellOrder::RowMajor } else { cell_order(&axes) };
        schema.edges = Edges::Padded;
        schema.dimensions = dimensions;
        schema.attributes = attributes;
        schema.filters = shown;
        schema.chunk_index = if shards.is_some() { "shard index" } else { "object names" }.to_owned();
        schema.stored.shard_shape = shards.as_ref().map(|shards: &Shards| shards.shape.to_vec());
        let fill_bytes = match &fill {
            Fill::Element(element) => element.as_fixed().map(|bytes| bytes.to_vec()),
            _ => None,
        };
        schema.fill = fill;
        // A document can claim elements of any size.
        let place = Place::new(doc.store, "element", 0);
        hyperslab_core::check_empty_elements(item, &shape, place)?;
        if let Some(item) = item.filter(|item| *item > MAX_ELEMENT_BYTES) {
            return Err(doc.unsupported(format!("elements of {item} bytes")));
        }
        let fill = fill_bytes.map_or_else(|| claimed_memory(item.unwrap_or(0), 0, place), Ok)?;
        let name = if key.is_empty() {
            Arc::clone(directory.name())
        } else {
            format!("{}/{key}", directory.name()).into()
        };
        let (directory, key, scale) = (Arc::clone(directory), key.to_owned(), stored.scale);
        let objects = Objects::new(Arc::clone(&directory), schema.grid.chunks());
        Ok(Self {
            schema,
            name,
            directory,
            key,
            keys,
            pipeline,
            chunk_bytes,
            scale,
            fill,
            shards,
            rectilinear,
            objects,
        })
    }

    /// The layout of its chunks, for a writer that adds chunks.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](Error::Unsupported) for layouts that cannot be written.
    pub(crate) fn stored_as(&self) -> Result<(&Pipeline, KeyEncoding, Option<&[u64]>)> {
        let refuse = |what: &str| Err(Error::unsupported(Arc::clone(&self.name), what));
        if self.rectilinear.is_some() {
            return refuse("adding to a rectilinear chunk grid");
        }
        match &self.pipeline.serializer {
            Serializer::Shard(_) => return refuse("adding to shards inside shards"),
            Serializer::Categories { .. } | Serializer::Json => {
                return refuse("adding to categories and JSON texts");
            }
            _ => {}
        }
        if self.shards.as_ref().is_some_and(|own| !own.axes.is_empty() || own.index != IndexFormat::USUAL) {
            return refuse("adding to shards with another index format");
        }
        if self.scale != 1 {
            return refuse("adding times whose unit is a multiple");
        }
        if self.pipeline.serializer == Serializer::Variable && !self.pipeline.axes.is_empty() {
            return refuse("adding transposed elements of variable length");
        }
        if let Some(step) = self.pipeline.steps.iter().find(|step| !step.is_writable()) {
            return refuse(&format!("writing the filter {:?}", step.shown().name));
        }
        Ok((&self.pipeline, self.keys, self.shard_shape()))
    }

    pub(crate) fn schema_mut(&mut self) -> &mut ArraySchema {
        &mut self.schema
    }

    /// The number of chunks in a shard, per axis; `None` if each chunk has its own object.
    #[must_use]
    pub fn chunks_per_shard(&self) -> Option<&[u64]> {
        self.shards.as_ref().map(|shards| shards.counts.as_slice())
    }

    /// The shape of a shard in cells; `None` if each chunk has its own object.
    #[must_use]
    pub fn shard_shape(&self) -> Option<&[u64]> {
        self.shards.as_ref().map(|shards| shards.shape.as_slice())
    }

    /// The name of a chunk's object.
    #[must_use]
    pub fn object_key(&self, chunk: &[u64]) -> String {
        match &self.shards {
            None => self.keys.key(&self.key, chunk),
            Some(shards) => {
                let shard: Extents = chunk.iter().zip(&shards.counts).map(|(at, count)| at / count).collect();
                self.keys.key(&self.key, &shard)
            }
        }
    }

    /// The bytes of a chunk's only element, for chunks of variable-length elements. Avoids a copy if the codecs allow
    /// it. Returns `None` if the chunk was never written.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if the chunk does not decode to one element.
    pub fn single_element(&self, chunk: &ChunkCoord) -> Result<Option<Bytes>> {
        let Some((object, offset, stored)) = self.stored_chunk(chunk)? else { return Ok(None) };
        let place = Place::new(&object, "chunk", offset);
        if self.pipeline.serializer != Serializer::Variable {
            return Err(place.unsupported(format!("a single element of {}", self.schema.dtype)));
        }
        if self.pipeline.steps.is_empty() {
            return vlen::single(&stored, place).map(Some);
        }
        let decoded = Bytes::from(self.pipeline.unwrap(&stored, place)?.into_owned());
        vlen::single(&decoded, place).map(Some)
    }

    /// Streams the elements of a chunk of variable-length elements, in C order. Decodes only a little ahead of the
    /// reader; large chunks are decoded by a separate thread. Returns `None` if the chunk was never written.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](Error::Corrupt) if the chunk has more or fewer elements than cells.
    pub fn element_stream(&self, chunk: &ChunkCoord) -> Result<Option<ElementStream>> {
        let Some(stored) = self.stored_chunk(chunk)? else { return Ok(None) };
        if self.pipeline.serializer != Serializer::Variable || !self.pipeline.axes.is_empty() {
            let place = Place::new(&stored.0, "chunk", stored.1);
            return Err(place.unsupported(format!("a stream of {}", self.schema.dtype)));
        }
        let cells = product(self.schema.grid.chunk_shape());
        ElementStream::new(&self.pipeline, stored, cells).map(Some)
    }

    /// The object name, offset and stored bytes of a chunk; `None` if it was never written.
    fn stored_chunk(&self, chunk: &ChunkCoord) -> Result<Option<(String, u64, Bytes)>> {
        if self.shards.is_none() {
            // For an object that is a single chunk, one lookup is enough.
            let key = self.keys.key(&self.key, chunk);
            let stored = self.directory.read(&key)?;
            return Ok(stored.map(|stored| (format!("{}/{key}", self.directory.name()), 0, stored)));
        }
        let located = self.locate(std::slice::from_ref(chunk))?;
        let Some(Some(reference)) = located.first() else { return Ok(None) };
        let Some(span) = reference.spans().next() else { return Ok(None) };
        let stored = self.blob(&span.blob)?.read_at(span.offset, span.length)?;
        Ok(Some((self.object_name(reference), span.offset, stored)))
    }

    fn no_object(&self, name: &str) -> Error {
        Error::not_found(Arc::clone(self.directory.name()), format!("the object {name:?}"))
    }

    /// The name of a reference's object, for messages.
    fn object_name(&self, reference: &ChunkRef) -> String {
        match reference.spans().next() {
            Some(span) => format!("{}/{}", self.directory.name(), span.blob),
            None => self.name.to_string(),
        }
    }

    fn reference(&self, key: BlobKey, offset: u64, length: u64) -> ChunkRef {
        // If a plain chunk has the wrong size, `decode` reports it.
        if self.pipeline.is_plain()
            && self.scale == 1
            && self.chunk_bytes.map(|bytes| bytes as u64) == Some(length)
        {
            ChunkRef::plain(key, offset, length)
        } else {
            ChunkRef::encoded(key, offset, length, 0)
        }
    }

    /// A reference to a chunk's object, without checking that it exists.
    fn unchecked_reference(&self, key: BlobKey) -> ChunkRef {
        match self.chunk_bytes {
            Some(bytes) if self.pipeline.is_plain() && self.scale == 1 => {
                ChunkRef::plain(key, 0, bytes as u64)
            }
            _ => ChunkRef::encoded(key, 0, UNKNOWN_LENGTH, 0),
        }
    }

    /// Requests the indexes of all shards of these chunks together, if that saves round trips.
    fn prefetch_indexes(&self, shards: &Shards, chunks: &[ChunkCoord]) {
        if !self.directory.is_remote() {
            return;
        }
        let mut wanted: BTreeMap<String, u64> = BTreeMap::new();
        for chunk in chunks {
            *wanted.entry(self.object_key(chunk)).or_default() += 1;
        }
        self.prefetch_whole(shards, &wanted);
        self.prefetch_shards(shards, wanted.into_keys().collect());
    }

    /// Requests complete shards if all of their chunks are wanted, which saves the round trip for the index. Limited
    /// to shards that fit in the cache, whatever the size of their decoded chunks.
    fn prefetch_whole(&self, shards: &Shards, wanted: &BTreeMap<String, u64>) {
        let (Some(chunks), Some(bytes)) = (product(&shards.counts), self.chunk_bytes) else { return };
        let shard =
            chunks.saturating_mul(bytes as u64).saturating_add(shards.index.size(chunks).unwrap_or(0));
        let whole: Vec<&String> = {
            let opened = shards.opened();
            let is_whole = |(key, count): &(&String, &u64)| {
                **count == chunks && !opened.by_key.contains_key(key.as_str())
            };
            wanted.iter().filter(is_whole).map(|(key, _)| key).collect()
        };
        if shard > WHOLE_SHARD || shard.saturating_mul(whole.len() as u64) > self.directory.room() {
            return;
        }
        let requests: Vec<_> = whole.iter().map(|key| ObjectRange::whole(key)).collect();
        self.directory.prefetch(&requests);
    }

    /// Requests the indexes of these shards together.
    fn prefetch_shards(&self, shards: &Shards, mut keys: Vec<String>) {
        let Some(size) = product(&shards.counts).and_then(|chunks| shards.index.size(chunks)) else { return };
        let opened = shards.opened();
        keys.retain(|key| !opened.by_key.contains_key(key.as_str()));
        drop(opened);
        let range = if shards.index.at_start { ByteRange::Bounded(0..size) } else { ByteRange::Suffix(size) };
        let requests: Vec<_> = keys.iter().map(|key| ObjectRange { key, range: range.clone() }).collect();
        self.directory.prefetch(&requests);
    }

    /// A shard's index, read once; `None` if the shard does not exist.
    fn shard(&self, shards: &Shards, coord: &[u64]) -> Result<Option<Arc<Shard>>> {
        let key = self.keys.key(&self.key, coord);
        if let Some(shard) = shards.opened().by_key.get(key.as_str()) {
            return Ok(Some(Arc::clone(shard)));
        }
        let Some(blob) = self.directory.open(&key)? else { return Ok(None) };
        let length = blob.len()?;
        let object = format!("{}/{key}", self.directory.name());
        let place = Place::new(&object, "shard index", 0);
        let chunks =
            product(&shards.counts).ok_or_else(|| place.corrupt("the number of chunks overflows"))?;
        let range = shards.index.range(chunks, length, place)?;
        let place = place.plus(range.start);
        let index = ShardIndex::parse(blob.read_range(range)?, shards.index, length, place)?;
        let shard = Arc::new(Shard { key: key.into(), object, blob, length, index });
        let mut opened = shards.opened();
        if opened.by_key.len() >= KEPT_SHARDS || opened.bytes >= KEPT_BYTES {
            *opened = OpenedShards::default();
        }
        opened.bytes += shard.index.size();
        opened.by_key.insert(Arc::clone(&shard.key), Arc::clone(&shard));
        Ok(Some(shard))
    }

    fn located_in(&self, shards: &Shards, shard: &Shard, inside: &[u64]) -> Result<Option<ChunkRef>> {
        let place = Place::new(&shard.object, "shard index", 0);
        let entry = shard.index.entry(shards.number(inside), shard.length, place)?;
        Ok(entry.map(|range| {
            let key = BlobKey::Named(Arc::clone(&shard.key));
            self.reference(key, range.start, range.end - range.start)
        }))
    }

    /// Rejects an object that is far larger than a chunk's encoded elements can be, before reading or inflating it.
    fn check_inflation(&self, key: &str, size: u64) -> Result<()> {
        let Some(bytes) = self.chunk_bytes.map(|bytes| bytes as u64) else { return Ok(()) };
        if size <= bytes.saturating_mul(MAX_GROWTH).saturating_add(GROWTH_ROOM) {
            return Ok(());
        }
        let object = format!("{}/{key}", self.directory.name());
        Err(Place::new(&object, "chunk", 0).corrupt(format!("{size} bytes for a chunk of {bytes}")))
    }

    /// Visits the objects whose names are those of chunks or shards, in coordinate order, with their sizes if the
    /// listing has them.
    pub(crate) fn visit_objects(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, Option<u64>) -> Result<bool>,
    ) -> Result<()> {
        if self.directory.is_remote() {
            return self.visit_listed(visit);
        }
        let mut of_unknown_size = |coord| visit(coord, None);
        self.keys.visit(&*self.directory, &self.key, self.schema.grid.rank(), &mut of_unknown_size)
    }

    /// Like [`visit_objects`](Self::visit_objects), but with a single listing of everything below the array.
    fn visit_listed(&self, visit: &mut dyn FnMut(ChunkCoord, Option<u64>) -> Result<bool>) -> Result<()> {
        let rank = self.schema.grid.rank();
        let prefix = if self.key.is_empty() { String::new() } else { format!("{}/", self.key) };
        if !self.key.is_empty() {
            // The other arrays of the store are usually listed too.
            self.directory.prefetch_tree("", MOST_LISTED);
        }
        let objects = self.directory.list_all(&self.key)?;
        let named = objects.iter().filter_map(|object| {
            let name = object.key.strip_prefix(&prefix)?;
            Some((self.keys.coord(name, rank)?, object.size))
        });
        let mut found: Vec<(ChunkCoord, u64)> = named.collect();
        found.sort();
        for batch in found.chunks(INDEXES_AT_ONCE) {
            if let Some(shards) = &self.shards {
                let keys = batch.iter().map(|(coord, _)| self.keys.key(&self.key, coord)).collect();
                self.prefetch_shards(shards, keys);
            }
            for (coord, size) in batch {
                if !visit(coord.clone(), Some(*size))? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Visits the stored chunks of a shard that are inside the array.
    fn visit_shard(
        &self,
        shards: &Shards,
        coord: &[u64],
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        let Some(shard) = self.shard(shards, coord)? else { return Ok(true) };
        let inner = Grid::new(&shards.counts, &vec![1; shards.counts.len()])?;
        for number in 0..shard.index.len() {
            let inside = inner.coord(number);
            let first = coord.iter().zip(&shards.counts).map(|(at, count)| at.checked_mul(*count));
            let chunk: Option<ChunkCoord> =
                first.zip(&inside).map(|(first, at)| first?.checked_add(*at)).collect();
            let Some(chunk) = chunk.filter(|chunk| self.schema.grid.contains(chunk)) else { continue };
            if let Some(reference) = self.located_in(shards, &shard, &inside)?
                && visit(chunk, reference)?.is_break()
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns true if chunks are assembled from several objects.
    pub(crate) const fn is_assembled(&self) -> bool {
        self.rectilinear.is_some()
    }

    /// Returns true if the object with these coordinates contains cells of the array.
    pub(crate) fn object_in_grid(&self, coord: &[u64]) -> bool {
        if let Some(grid) = &self.rectilinear {
            return grid.contains(coord);
        }
        match &self.shards {
            None => self.schema.grid.contains(coord),
            Some(shards) => {
                Grid::new(self.schema.grid.shape(), &shards.shape).is_ok_and(|grid| grid.contains(coord))
            }
        }
    }

    /// Visits the chunks of one object of a regular grid.
    pub(crate) fn visit_object(
        &self,
        coord: &ChunkCoord,
        size: Option<u64>,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        match &self.shards {
            Some(shards) => self.visit_shard(shards, coord, visit),
            None if !self.schema.grid.contains(coord) => Ok(true),
            None => {
                let key = self.keys.key(&self.key, coord);
                let size = size.map_or_else(|| self.directory.size(&key), |size| Ok(Some(size)))?;
                let Some(size) = size else { return Ok(true) };
                Ok(visit(coord.clone(), self.reference(BlobKey::named(key), 0, size))?.is_continue())
            }
        }
    }

    /// Rejects a stored chunk whose size shows that it cannot be decoded.
    pub(crate) fn check_size(&self, reference: &ChunkRef) -> Result<()> {
        let regular = self.pipeline.is_plain() && self.rectilinear.is_none();
        let expected = self.chunk_bytes.filter(|_| regular).map(|bytes| bytes as u64);
        let found = reference.stored_bytes();
        match expected {
            Some(expected) if expected != found => {
                let store = self.object_name(reference);
                Err(Place::new(&store, "chunk", 0).corrupt(format!("{found} bytes, expected {expected}")))
            }
            _ => Ok(()),
        }
    }

    /// Converts stored time units to ticks.
    fn rescale(&self, out: &mut [u8], place: Place<'_>) -> Result<()> {
        if self.scale == 1 {
            return Ok(());
        }
        for element in out.as_chunks_mut::<8>().0 {
            let ticks = i64::from_ne_bytes(*element);
            if ticks != i64::MIN {
                let scaled = ticks.checked_mul(self.scale);
                let scaled = scaled.ok_or_else(|| place.corrupt(format!("{ticks} times {}", self.scale)))?;
                *element = scaled.to_ne_bytes();
            }
        }
        Ok(())
    }
}

impl Shards {
    fn opened(&self) -> MutexGuard<'_, OpenedShards> {
        // The map stays consistent even if a thread panicked.
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index entry of the chunk at this position in the shard.
    fn number(&self, inside: &[u64]) -> u64 {
        let counts = permuted(&self.axes, &self.counts);
        permuted(&self.axes, inside).iter().zip(&counts).fold(0, |number, (at, count)| number * count + at)
    }
}

impl Array for ZarrArray {
    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        if let Some(grid) = &self.rectilinear {
            return self.locate_assembled(grid, chunks);
        }
        let Some(shards) = &self.shards else {
            let remote = self.directory.is_remote();
            let locate = |chunk: &ChunkCoord| {
                let key = self.keys.key(&self.key, chunk);
                if remote {
                    return Ok(Some(self.unchecked_reference(BlobKey::named(key))));
                }
                let size = self.objects.size(&key)?;
                size.map(|size| {
                    self.check_inflation(&key, size)?;
                    Ok(self.reference(BlobKey::named(key), 0, size))
                })
                .transpose()
            };
            return chunks.iter().map(locate).collect();
        };
        self.prefetch_indexes(shards, chunks);
        let mut last: Option<(Extents, Option<Arc<Shard>>)> = None;
        let mut located = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let coord: Extents = chunk.iter().zip(&shards.counts).map(|(at, count)| at / count).collect();
            let inside: Extents = chunk.iter().zip(&shards.counts).map(|(at, count)| at % count).collect();
            let shard = match &last {
                Some((own, shard)) if *own == coord => shard.clone(),
                _ => {
                    let shard = self.shard(shards, &coord)?;
                    last = Some((coord, shard.clone()));
                    shard
                }
            };
            located.push(match shard {
                None => None,
                Some(shard) => self.located_in(shards, &shard, &inside)?,
            });
        }
        Ok(located)
    }

    fn blob(&self, key: &BlobKey) -> Result<Arc<dyn Blob>> {
        let BlobKey::Named(name) = key else {
            return Err(Error::invalid(format!("{}: a Zarr array has no main blob", self.name)));
        };
        if let Some(shards) = &self.shards
            && let Some(shard) = shards.opened().by_key.get(name)
        {
            return Ok(Arc::clone(&shard.blob));
        }
        self.directory.open(name)?.ok_or_else(|| self.no_object(name))
    }

    fn is_remote(&self) -> bool {
        self.directory.is_remote()
    }

    fn fetch(&self, spans: &[&Span]) -> Result<Vec<Option<Bytes>>> {
        if self.directory.is_remote() {
            return read_spans(&*self.directory, spans);
        }
        let fetch = |span: &&Span| match &span.blob {
            BlobKey::Named(name) if self.shards.is_none() => {
                let range = span.offset..span.offset.saturating_add(span.length);
                self.objects.read(name, range)?.ok_or_else(|| self.no_object(name)).map(Some)
            }
            key => self.blob(key)?.read_at(span.offset, span.length).map(Some),
        };
        spans.iter().map(fetch).collect()
    }

    fn fetch_cost(&self, spans: &[&Span]) -> Result<FetchCost> {
        read_spans_cost(&*self.directory, spans)
    }

    fn decode(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
        out: &mut [u8],
    ) -> Result<()> {
        let store = self.object_name(reference);
        let place = Place::new(&store, "chunk", reference.spans().next().map_or(0, |span| span.offset));
        if let Some(grid) = &self.rectilinear {
            self.assemble(grid, chunk, (reference, stored), out)?;
            return self.rescale(out, place);
        }
        let [stored] = stored else { return Err(place.corrupt("one span expected")) };
        let cells = Cells { item: self.schema.dtype.size().unwrap_or(0), fill: &self.fill };
        self.pipeline.decode(stored, self.schema.grid.chunk_shape(), cells, out, place)?;
        self.rescale(out, place)
    }

    fn decode_partial(
        &self,
        wanted: &PlannedChunk,
        reference: &ChunkRef,
        stored: &[Bytes],
        out: PartialOutput<'_, '_>,
    ) -> Result<Coverage> {
        let (Some(total), [stored]) = (self.schema.decoded_bytes(&wanted.coord), stored) else {
            return Ok(Coverage::Nothing);
        };
        let Some(out) = out.front.filter(|_| self.rectilinear.is_none()) else {
            return Ok(Coverage::Nothing);
        };
        let item = self.schema.dtype.size().unwrap_or(0);
        if !self.pipeline.decode_front(stored, total, item, out) {
            return Ok(Coverage::Nothing);
        }
        let store = self.object_name(reference);
        self.rescale(
            out,
            Place::new(&store, "chunk", reference.spans().next().map_or(0, |span| span.offset)),
        )?;
        Ok(Coverage::Front)
    }

    fn decode_elements(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
    ) -> Result<Elements> {
        let store = self.object_name(reference);
        let place = Place::new(&store, "chunk", reference.spans().next().map_or(0, |span| span.offset));
        let [stored] = stored else { return Err(place.corrupt("one span expected")) };
        if matches!(self.pipeline.serializer, Serializer::Shard(_) | Serializer::Bytes { .. }) {
            return Err(place.unsupported(format!("{} in nested shards", self.schema.dtype)));
        }
        let decoded = self.pipeline.unwrap(stored, place)?;
        let (shape, region) = (self.schema.grid.chunk_shape(), self.schema.grid.region(chunk).shape);
        let order = &self.schema.order;
        let elements = match &self.pipeline.serializer {
            Serializer::Categories { labels, number } => {
                vlen::categories(&decoded, (labels, *number), shape, &region, order, place)
            }
            Serializer::Json => vlen::json_texts(&decoded, shape, &region, order, place),
            _ => vlen::decode(&decoded, shape, &region, order, place),
        };
        let elements = match &self.schema.dtype {
            DType::List(base) => elements.and_then(|elements| vlen::into_lists(elements, base, place)),
            _ => elements,
        };
        recycle(decoded);
        elements
    }

    fn place(&self, blob: &BlobKey) -> Result<ObjectPlace> {
        match blob {
            BlobKey::Named(name) => self.directory.place(name),
            BlobKey::Main => Ok(ObjectPlace::Object),
        }
    }

    fn stored_form(&self, _: &ChunkCoord, reference: &ChunkRef) -> Option<StoredForm> {
        let one_span = reference.spans().count() == 1 && reference.layers.len() == 1;
        let plain = one_span
            && self.rectilinear.is_none()
            && self.scale == 1
            && self.schema.order == CellOrder::RowMajor;
        let steps = self.pipeline.stored_steps().filter(|_| plain)?;
        Some(StoredForm { shape: self.schema.grid.chunk_shape().into(), steps })
    }

    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        if let Some(grid) = &self.rectilinear {
            return self.visit_assembled(grid, visit);
        }
        self.visit_objects(&mut |coord, size| self.visit_object(&coord, size, visit))
    }
}
