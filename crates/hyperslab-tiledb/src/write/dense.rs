//! Writes attributes of new dense arrays through the core's sink.
//!
//! Tiles are encoded by any number of threads and written in tile order.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use hyperslab_core::storage::StageWriter;
use hyperslab_core::{
    ArraySink, ArraySpec, Attributes, CellOrder, ChunkCoord, Data, Elements, EncodedChunk, Error, Extents,
    Fields, Grid, Labels, Layout, Place, Result, Validity, copy_box,
};

use super::enumeration::NewEnumeration;
use super::fragment::FieldFiles;
use super::{FieldTile, TileStats, WriteOptions, template, types};
use crate::datatype::{CellValues, Datatype};
use crate::field::FieldCodecs;
use crate::pipeline::{Filter, Pipeline};
use crate::schema::{ArrayKind, Attribute, Dimension, Order, Range, Schema, WRITTEN, integer_bytes};

/// Tiles that arrive out of order wait in memory up to this size, then on disk.
const WAITING_BYTES: usize = 64 << 20;

/// One attribute that is being written.
#[derive(Debug)]
pub(super) struct DenseSink {
    pub(super) spec: ArraySpec,
    pub(super) attribute: Attribute,
    pub(super) enumeration: Option<NewEnumeration>,
    /// Its metadata, which may be extended until the commit.
    pub(super) attributes: Mutex<Attributes>,
    /// The array's schema, without attributes so far.
    pub(super) schema: Schema,
    codecs: FieldCodecs,
    pub(super) tile_shape: Extents,
    pub(super) parts: Parts,
    state: Mutex<State>,
}

/// The location of an attribute's files until the fragment is assembled.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) folder: StageWriter,
    /// The common prefix of their keys.
    pub(super) stem: String,
}

/// Appends tiles to the files in order. Tiles that arrive early wait.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) files: FieldFiles,
    /// The next tile to append.
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

/// The first `extent` coordinates of a dimension.
pub(super) fn written_range(dimension: &Dimension, extent: u64) -> Range {
    let (low, _) = dimension.bounds().unwrap_or((0, 0));
    let high = low + i128::from(extent) - 1;
    let bytes = |value| integer_bytes(dimension.datatype.number(), value);
    Range { low: bytes(low), high: bytes(high), text: false }
}

impl DenseSink {
    pub(super) fn new(name: &str, spec: &ArraySpec, parts: Parts, options: &WriteOptions) -> Result<Self> {
        let mut attribute = types::attribute(name, spec)?;
        let (enumeration, attributes) = NewEnumeration::from_attributes(name, &spec.dtype, &spec.attributes);
        let mut spec = spec.clone();
        spec.attributes.clone_from(&attributes);
        let (shape, chunk) = (spec.grid.shape(), spec.grid.chunk_shape());
        if shape.is_empty() {
            return Err(Error::unsupported("tiledb", format!("writing an array of shape {shape:?}")));
        }
        // A domain has at least one cell. For axes without cells, see `empty`.
        let tile_shape: Extents =
            shape.iter().zip(chunk).map(|(extent, chunk)| (*chunk).min(*extent).max(1)).collect();
        let source = template::parse(spec.stored.encoded.as_deref());
        let source = source.filter(|source| source.kind == ArrayKind::Dense);
        let mut dimensions = dimensions(&spec, &tile_shape)?;
        if let Some(source) = &source {
            template::keep_attribute(&mut attribute, source, &spec.filters);
            dimensions.iter_mut().for_each(|own| template::keep_dimension(own, source, None));
        }
        types::set_image_size(&mut attribute, &tile_shape)?;
        // TileDB rejects an attribute with the name of a dimension, which is what coordinates have. Its NetCDF
        // converter adds the same suffix.
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
        if let Some(source) = &source {
            template::keep_shared(&mut schema, source);
            if spec.grid.rank() == source.dimensions.len() {
                (schema.tile_order, schema.cell_order) = (source.tile_order, source.cell_order);
            }
        }
        if spec.max_shape.iter().zip(shape).any(|(max, extent)| *max != Some(*extent)) {
            let ranges = schema.dimensions.iter().zip(shape);
            let ranges = ranges.map(|(dimension, extent)| written_range(dimension, (*extent).max(1)));
            schema.current_domain = Some(ranges.collect());
        }
        let codecs = FieldCodecs::attribute(&schema, 0, WRITTEN, options.key.as_ref());
        schema.attributes.clear();
        let (attributes, state) = (Mutex::new(attributes), Mutex::default());
        Ok(Self { spec, attribute, enumeration, attributes, schema, codecs, tile_shape, parts, state })
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_untouched(&self) -> bool {
        self.locked().seen.is_empty()
    }

    /// The first and the last tile along each dimension.
    fn tiles(&self) -> Vec<(u64, u64)> {
        self.spec.grid.extents().iter().map(|count| (0, count.saturating_sub(1))).collect()
    }

    /// The position of a tile in the files.
    fn number(&self, chunk: &ChunkCoord) -> Result<u64> {
        let outside = || Error::invalid(format!("chunk {chunk:?} is outside the grid"));
        let number = self.spec.grid.linear(chunk).ok_or_else(outside)?;
        if self.schema.tile_order != Order::ColumnMajor {
            return Ok(number);
        }
        let tiles = self.tiles();
        let reversed = chunk.iter().zip(&tiles).rev();
        Ok(reversed.fold(0, |number, (at, (_, last))| number * (last + 1) + at))
    }

    /// Expands a clipped chunk in C order to a whole tile. Cells outside are zero, and null.
    fn padded(&self, chunk: &[u64], elements: &Elements) -> Result<Elements> {
        let shape = self.spec.grid.region(chunk).shape;
        let order = self.schema.cell_order.cell_order();
        let one_axis = self.tile_shape.iter().filter(|extent| **extent > 1).count() <= 1;
        if shape == self.tile_shape && (order == CellOrder::RowMajor || one_axis) {
            return Ok(elements.clone());
        }
        let strides = order.strides(&self.tile_shape);
        let cells = hyperslab_core::product(&self.tile_shape).unwrap_or(0) as usize;
        if let (Data::Fixed(bytes), Some(item), None) =
            (&elements.data, self.spec.dtype.size(), &elements.validity)
        {
            let mut tile = vec![0; cells * item];
            let steps = strides.iter().map(|stride| *stride as isize * item as isize).collect();
            let (from, to) = (Layout::packed(&shape, item), Layout { offset: 0, strides: steps });
            copy_box(bytes, &from, &mut tile, &to, &shape, item)?;
            return Ok(Elements::fixed(tile));
        }
        let zero = zero_cell(&self.attribute, &self.spec.dtype);
        let mut picks = vec![(1, 0); cells];
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

    /// Fills gaps with fill values and closes the files.
    pub(super) fn complete(&self) -> Result<FieldFiles> {
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
            let chunk = crate::dense::coord_in(&self.tiles(), next, self.schema.tile_order);
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

/// A cell outside the written box: zeros (a single one if lengths vary), and null.
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
    /// Appends a tile to the files if it is the next one, otherwise sets it aside.
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

/// Serialises a tile as parts: the field's tiles, then the statistics.
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
        let number = self.number(chunk)?;
        let tile = from_parts(encoded.parts)?;
        let mut state = self.locked();
        if !state.seen.insert(number) {
            return Err(Error::invalid(format!("chunk {chunk:?} was already written")));
        }
        state.put(number, tile, &self.parts)
    }
}

/// The dimensions of an array: integers from zero, or the domain given by the labels. Uses the source's types if all
/// coordinates fit; all dimensions of a dense array share one type.
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

/// The type of an axis's coordinates in the source.
fn wanted_type(spec: &ArraySpec, axis: usize) -> Option<Datatype> {
    let dtype = match spec.labels.get(axis) {
        Some(Labels::Domain { dtype, .. }) => Some(dtype),
        _ => spec.stored.dimension_types.get(axis),
    };
    let (datatype, _) = types::datatype(dtype?)?;
    (!datatype.number().is_float() && !datatype.is_bytes()).then_some(datatype)
}

/// Builds dimensions of one type. Without a given type, 64-bit integers, or dates if the labels are dates.
fn dimensions_of(spec: &ArraySpec, tile_shape: &[u64], wanted: Option<Datatype>) -> Result<Vec<Dimension>> {
    let mut dimensions = Vec::new();
    for (axis, extent) in spec.grid.shape().iter().map(|extent| (*extent).max(1)).enumerate() {
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
            Some(max) => first + i128::from(max.max(extent)) - 1,
            // Whole tiles up to the end of the type.
            None => (most - 1 - tile - first.max(0)) / tile * tile + first.max(0) - 1,
        };
        let fits = first >= least && last >= first + i128::from(extent) - 1 && last <= most - tile;
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
