//! Attributes of dense arrays, presented as arrays.

mod part;
mod statistics;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hyperslab_core::{
    Array, ArraySchema, Blob, BlobKey, ChunkCoord, ChunkRef, Coverage, Edges, Elements, Error, Extents, Fill,
    Grid, Labels, Layer, Layout, PartialOutput, Place, PlannedChunk, Region, Result, Span, copy_box,
};
use smallvec::SmallVec;

use crate::array::OpenArray;
use crate::datatype::CellValues;
use crate::field::FieldCodecs;
use crate::fragment::{Field, FieldPart, Fragment, List, Stats};
use crate::schema::{Attribute, Order, Schema};

/// The number of layers that are decoded at a time when a tile is merged.
const LAYERS: usize = 8;

/// One attribute of a dense array.
#[derive(Debug)]
pub(crate) struct DenseAttribute {
    array: Arc<OpenArray>,
    attribute: Attribute,
    schema: ArraySchema,
    name: String,
    fragments: OnceLock<Vec<DenseFragment>>,
}

/// A layer of a chunk: its fragment, its location and its stored bytes.
type StoredLayer<'a> = (&'a DenseFragment, &'a Layer, &'a [Bytes]);

/// A fragment that has the attribute.
#[derive(Debug)]
pub(crate) struct DenseFragment {
    pub(crate) fragment: Arc<Fragment>,
    pub(crate) field: Field,
    pub(crate) codecs: FieldCodecs,
    /// First and last cell along each dimension, counted from the domain's start.
    cells: Vec<(u64, u64)>,
    /// First and last tile along each dimension.
    tiles: Vec<(u64, u64)>,
    /// The file names, as keys in the store and as labels for messages.
    files: SmallVec<[(Arc<str>, String); 1]>,
    parts: SmallVec<[FieldPart; 1]>,
    /// Per-tile statistics from the fragment metadata, read on first use.
    stats: OnceLock<Option<Stats>>,
}

impl DenseAttribute {
    pub(crate) fn new(array: Arc<OpenArray>, index: usize, node: &str) -> Result<Self> {
        let attribute = array.schema.attributes[index].clone();
        let mut schema = dense_schema(&array.schema, &attribute, &array.name)?;
        let empty = array.empty_axes();
        if !empty.is_empty() {
            let mut shape = Extents::from_slice(schema.shape());
            for (axis, grows) in empty {
                shape[axis] = 0;
                schema.max_shape[axis] = if grows { schema.max_shape[axis] } else { Some(0) };
            }
            schema.grid = Grid::new(&shape, schema.grid.chunk_shape())?;
        }
        // Damaged metadata must not make the values unreadable.
        schema.attributes = array.attributes_of(&attribute.name).unwrap_or_default();
        schema.dtype = array.dtype_of(&attribute);
        if let Some(name) = &attribute.enumeration {
            schema.attributes.set("enumeration", enumeration_attribute(&array, name));
        }
        if !array.is_label {
            for (axis, path) in crate::label::coordinates(&array.schema, node) {
                if schema.labels[axis] == Labels::None {
                    schema.labels[axis] = Labels::Node(path.clone());
                }
                schema.stored.coordinates.push((axis, path));
            }
        }
        let name = format!("{}{node}", array.directory.name());
        Ok(Self { array, attribute, schema, name, fragments: OnceLock::new() })
    }

    pub(crate) const fn schema_mut(&mut self) -> &mut ArraySchema {
        &mut self.schema
    }

    /// The attribute as seen through these fragments only.
    pub(crate) fn of_fragments(
        array: Arc<OpenArray>,
        index: usize,
        fragments: &[Arc<Fragment>],
    ) -> Result<Self> {
        let attribute = Self::new(array, index, "/")?;
        let mut own = Vec::new();
        for fragment in fragments {
            own.extend(attribute.prepare(fragment)?);
        }
        let _ = attribute.fragments.set(own);
        Ok(attribute)
    }

    fn fragments(&self) -> Result<&[DenseFragment]> {
        if let Some(known) = self.fragments.get() {
            return Ok(known);
        }
        let mut fragments = Vec::new();
        for fragment in self.array.fragments()? {
            fragments.extend(self.prepare(fragment)?);
        }
        Ok(self.fragments.get_or_init(|| fragments))
    }

    /// Extracts what this attribute needs from a fragment. Returns `None` if the fragment lacks the attribute or
    /// nothing was written.
    fn prepare(&self, fragment: &Arc<Fragment>) -> Result<Option<DenseFragment>> {
        let Some((index, attribute)) = fragment.schema.attribute(&self.attribute.name) else {
            return Ok(None);
        };
        if (attribute.datatype, attribute.values, attribute.nullable)
            != (self.attribute.datatype, self.attribute.values, self.attribute.nullable)
        {
            return Err(Error::unsupported(
                self.name.as_str(),
                format!("attribute {:?} changing its type between fragments", self.attribute.name),
            ));
        }
        if fragment.footer.domain.is_none() {
            return Ok(None);
        }
        let boxes =
            fragment.footer.cell_box(&fragment.schema).zip(fragment.footer.tile_box(&fragment.schema));
        let Some((cells, tiles)) = boxes else {
            return Err(fragment
                .place("fragment footer")
                .corrupt("a non-empty domain outside the array's domain"));
        };
        let field = Field::Attribute(index);
        let mut parts: SmallVec<[FieldPart; 1]> = SmallVec::from_slice(&[FieldPart::Fixed]);
        if attribute.values == CellValues::Variable {
            parts.push(FieldPart::Values);
        }
        if attribute.nullable {
            parts.push(FieldPart::Validity);
        }
        let files = parts.iter().map(|part| {
            let file = fragment.file(field, *part);
            let label = format!("{}/{file}", self.array.directory.name());
            (Arc::from(file), label)
        });
        Ok(Some(DenseFragment {
            field,
            codecs: FieldCodecs::attribute(
                &fragment.schema,
                index,
                fragment.version(),
                self.array.options.key.as_ref(),
            ),
            cells,
            tiles,
            files: files.collect(),
            parts,
            fragment: Arc::clone(fragment),
            stats: OnceLock::new(),
        }))
    }

    /// Locates a chunk in one fragment. Returns `None` if the fragment does not cover it.
    fn layer(&self, number: usize, fragment: &DenseFragment, chunk: &[u64]) -> Result<Option<Layer>> {
        let Some(tile) = fragment.tile_index(chunk, self.array.schema.tile_order) else { return Ok(None) };
        let whole = self.schema.grid.region(chunk);
        let written = Region {
            start: fragment.cells.iter().map(|(low, _)| *low).collect(),
            shape: fragment.cells.iter().map(|(low, high)| high - low + 1).collect(),
        };
        let Some(mut region) = written.intersect(&whole) else { return Ok(None) };
        let region = if region == whole {
            None
        } else {
            for (start, origin) in region.start.iter_mut().zip(&whole.start) {
                *start -= origin;
            }
            Some(region)
        };
        let mut spans = SmallVec::new();
        for (part, (file, _)) in fragment.parts.iter().zip(&fragment.files) {
            let (offset, length) = fragment.fragment.tile_span(fragment.field, *part, tile)?;
            spans.push(Span { blob: BlobKey::Named(Arc::clone(file)), offset, length });
        }
        let tag = ((number as u64) << 40) | tile as u64;
        Ok(Some(Layer { spans, filter_mask: 0, plain: false, region: region.map(Box::new), tag }))
    }

    fn locate_one(&self, chunk: &[u64]) -> Result<Option<ChunkRef>> {
        let mut layers: SmallVec<[Layer; 1]> = SmallVec::new();
        // Newest first, until a layer covers the whole chunk and hides all older ones.
        for (number, fragment) in self.fragments()?.iter().enumerate().rev() {
            if let Some(layer) = self.layer(number, fragment, chunk)? {
                let covers = layer.region.is_none();
                layers.push(layer);
                if covers {
                    break;
                }
            }
        }
        layers.reverse();
        Ok((!layers.is_empty()).then_some(ChunkRef { layers }))
    }

    /// The fragments and the stored bytes of the layers, oldest first.
    fn stored_layers<'a>(
        &'a self,
        reference: &'a ChunkRef,
        stored: &'a [Bytes],
    ) -> Result<SmallVec<[StoredLayer<'a>; 1]>> {
        let fragments = self.fragments()?;
        let mut rest = stored;
        let mut layers = SmallVec::new();
        for layer in &reference.layers {
            let fragment = fragments.get((layer.tag >> 40) as usize);
            let (Some(fragment), Some((own, later))) = (fragment, rest.split_at_checked(layer.spans.len()))
            else {
                return Err(Error::invalid(format!("{}: a chunk reference of another array", self.name)));
            };
            layers.push((fragment, layer, own));
            rest = later;
        }
        Ok(layers)
    }

    /// Merges a tile of the box `tiles` from all fragments, in stored order, and returns its cells inside the box
    /// `cells`. Used by consolidation.
    pub(crate) fn merged_tile(
        &self,
        number: u64,
        tiles: &[(u64, u64)],
        cells: &[(u64, u64)],
    ) -> Result<(Elements, Elements)> {
        let chunk = coord_in(tiles, number, self.array.schema.tile_order);
        let reference = self.locate_one(&chunk)?.unwrap_or(ChunkRef { layers: SmallVec::new() });
        let stored = hyperslab_core::fetch(self, &reference.spans().collect::<Vec<_>>())?;
        let Fill::Element(fill) = &self.schema.fill else {
            return Err(Error::invalid(format!("{}: no fill value", self.name)));
        };
        let extents = Extents::from_slice(self.schema.grid.chunk_shape());
        let strides = self.schema.order.strides(&extents);
        let too_large = || Error::invalid(format!("{}: a tile larger than memory", self.name));
        let count = hyperslab_core::product(&extents).and_then(|count| usize::try_from(count).ok());
        let count = count.ok_or_else(too_large)?;
        let mut whole = Elements::gather(&self.schema.dtype, &[fill], &vec![(0, 0); count])?;
        // Merge a few layers at a time, because a tile may have any number of them.
        for layers in self.stored_layers(&reference, &stored)?.chunks(LAYERS) {
            let mut rows = vec![whole];
            let mut picks: Vec<(usize, usize)> = (0..count).map(|cell| (0, cell)).collect();
            for (fragment, layer, stored) in layers {
                let row = rows.len();
                rows.push(self.layer_elements(fragment, layer, stored)?);
                let region = layer
                    .region
                    .as_deref()
                    .cloned()
                    .unwrap_or_else(|| Region::whole(&self.schema.grid.region(&chunk).shape));
                for_each_cell(&region, &extents, &strides, |_, from| picks[from] = (row, from));
            }
            let rows: Vec<&Elements> = rows.iter().collect();
            whole = Elements::gather(&self.schema.dtype, &rows, &picks)?;
        }
        let origin: Extents = chunk.iter().zip(&extents).map(|(at, extent)| at * extent).collect();
        let written = Region {
            start: cells.iter().map(|(low, _)| *low).collect(),
            shape: cells.iter().map(|(low, high)| high - low + 1).collect(),
        };
        let own = match written.intersect(&Region { start: origin.clone(), shape: extents.clone() }) {
            Some(mut region) if region.shape != extents => {
                for (start, origin) in region.start.iter_mut().zip(&origin) {
                    *start -= origin;
                }
                let mut own = Vec::new();
                for_each_cell(&region, &extents, &strides, |_, from| own.push((0, from)));
                Elements::gather(&self.schema.dtype, &[&whole], &own)?
            }
            _ => whole.clone(),
        };
        Ok((whole, own))
    }

    fn fill_bytes(&self) -> &[u8] {
        &self.attribute.fill
    }

    /// One layer's cells as elements, in the tile's order.
    fn layer_elements(&self, fragment: &DenseFragment, layer: &Layer, stored: &[Bytes]) -> Result<Elements> {
        let cells = hyperslab_core::product(self.schema.grid.chunk_shape())
            .and_then(|cells| usize::try_from(cells).ok());
        let cells =
            cells.ok_or_else(|| Error::invalid(format!("{}: a tile larger than memory", self.name)))?;
        let tile = (layer.tag & ((1 << 40) - 1)) as usize;
        let var_size = if self.attribute.values == CellValues::Variable {
            fragment.fragment.list(List::VarSizes, fragment.field)?.get(tile).copied()
        } else {
            None
        };
        let places: SmallVec<[Place<'_>; 3]> = layer
            .spans
            .iter()
            .zip(&fragment.files)
            .map(|(span, (_, label))| Place::new(label, "tile", span.offset))
            .collect();
        fragment.codecs.decode(cells, var_size, stored, &places)
    }
}

impl DenseFragment {
    /// The number of a tile of the array's grid in this fragment's files: the fragment stores the box of tiles that it
    /// touches, in tile order.
    fn tile_index(&self, chunk: &[u64], order: Order) -> Option<usize> {
        let mut index = 0_u64;
        let rank = self.tiles.len();
        for step in 0..rank {
            let axis = if order == Order::ColumnMajor { rank - 1 - step } else { step };
            let (low, high) = self.tiles[axis];
            let at = *chunk.get(axis)?;
            if at < low || at > high {
                return None;
            }
            index = index.checked_mul(high - low + 1)?.checked_add(at - low)?;
        }
        usize::try_from(index).ok()
    }

    /// The coordinates of tile `index`: the inverse of [`tile_index`](Self::tile_index).
    fn tile_coord(&self, index: u64, order: Order) -> ChunkCoord {
        coord_in(&self.tiles, index, order)
    }

    fn place(&self, part: usize, layer: &Layer) -> Place<'_> {
        let label = self.files.get(part).map_or("", |(_, label)| label.as_str());
        Place::new(label, "tile", layer.spans.get(part).map_or(0, |span| span.offset))
    }
}

impl Array for DenseAttribute {
    fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn locate(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<ChunkRef>>> {
        chunks.iter().map(|chunk| self.locate_one(chunk)).collect()
    }

    fn blob(&self, key: &BlobKey) -> Result<Arc<dyn Blob>> {
        self.array.blob(key)
    }

    fn is_remote(&self) -> bool {
        self.array.directory.is_remote()
    }

    fn fetch(&self, spans: &[&Span]) -> Result<Vec<Option<Bytes>>> {
        if self.is_remote() {
            return hyperslab_core::read_spans(&*self.array.directory, spans);
        }
        hyperslab_core::fetch_from_blobs(self, spans)
    }

    fn fetch_cost(&self, spans: &[&Span]) -> Result<hyperslab_core::FetchCost> {
        hyperslab_core::read_spans_cost(&*self.array.directory, spans)
    }

    fn decode(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
        out: &mut [u8],
    ) -> Result<()> {
        let layers = self.stored_layers(reference, stored)?;
        let item = self.schema.dtype.size().unwrap_or(0);
        if layers.first().is_none_or(|(_, layer, _)| layer.region.is_some()) && item > 0 {
            for cell in out.chunks_exact_mut(item) {
                cell.copy_from_slice(self.fill_bytes());
            }
        }
        let shape = self.schema.decoded_shape(chunk);
        let strides = self.schema.order.strides(&shape);
        for (fragment, layer, stored) in layers {
            let tile = stored.first().map(AsRef::as_ref).unwrap_or_default();
            let place = fragment.place(0, layer);
            let Some(region) = &layer.region else {
                fragment.codecs.values.decode_tile_into(tile, out, place)?;
                continue;
            };
            let bytes = fragment.codecs.values.decode_tile(tile, out.len(), place)?;
            let layout = Layout {
                offset: region
                    .start
                    .iter()
                    .zip(&strides)
                    .map(|(at, stride)| (at * stride) as usize * item)
                    .sum(),
                strides: strides.iter().map(|stride| *stride as isize * item as isize).collect(),
            };
            copy_box(&bytes, &layout, out, &layout, &region.shape, item)?;
        }
        Ok(())
    }

    fn decode_partial(
        &self,
        wanted: &PlannedChunk,
        reference: &ChunkRef,
        stored: &[Bytes],
        out: PartialOutput<'_, '_>,
    ) -> Result<Coverage> {
        let Some(slot) = out.slot else { return Ok(Coverage::Nothing) };
        let done = self.decode_wanted(wanted, reference, stored, slot)?;
        Ok(if done { Coverage::Slot } else { Coverage::Nothing })
    }

    fn decode_elements(
        &self,
        chunk: &ChunkCoord,
        reference: &ChunkRef,
        stored: &[Bytes],
    ) -> Result<Elements> {
        let Fill::Element(fill) = &self.schema.fill else {
            return Err(Error::invalid(format!("{}: no fill value", self.name)));
        };
        let mut rows = vec![fill.clone()];
        let shape = self.schema.grid.region(chunk).shape;
        let strides = self.schema.order.strides(self.schema.grid.chunk_shape());
        let cells =
            hyperslab_core::product(&shape).and_then(|cells| usize::try_from(cells).ok()).unwrap_or(0);
        let mut picks = vec![(0, 0); cells];
        for (fragment, layer, stored) in self.stored_layers(reference, stored)? {
            let row = rows.len();
            rows.push(self.layer_elements(fragment, layer, stored)?);
            let region = layer.region.as_deref().cloned().unwrap_or_else(|| Region::whole(&shape));
            for_each_cell(&region, &shape, &strides, |to, from| picks[to] = (row, from));
        }
        Elements::gather(&self.schema.dtype, &rows.iter().collect::<Vec<_>>(), &picks)
    }

    fn statistics(&self, chunks: &[ChunkCoord]) -> Result<Vec<Option<hyperslab_core::ChunkStatistics>>> {
        self.chunk_statistics(chunks)
    }

    fn visit_chunks(
        &self,
        visit: &mut dyn FnMut(ChunkCoord, ChunkRef) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let order = self.array.schema.tile_order;
        let fragments = self.fragments()?;
        let mut seen = BTreeSet::new();
        for fragment in fragments {
            // The list is bounded by its file: claims of a larger box are rejected when it is read.
            let tiles = fragment.fragment.list(List::TileOffsets, fragment.field)?.len() as u64;
            for tile in 0..tiles {
                let coord = fragment.tile_coord(tile, order);
                if !self.schema.grid.contains(&coord) || (fragments.len() > 1 && !seen.insert(coord.clone()))
                {
                    continue;
                }
                if let Some(reference) = self.locate_one(&coord)?
                    && visit(coord, reference)?.is_break()
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// The coordinates of tile `index` of a box of tiles.
pub(crate) fn coord_in(tiles: &[(u64, u64)], mut index: u64, order: Order) -> ChunkCoord {
    let rank = tiles.len();
    let mut coord: ChunkCoord = SmallVec::from_elem(0, rank);
    for step in 0..rank {
        let axis = if order == Order::ColumnMajor { step } else { rank - 1 - step };
        let (low, high) = tiles[axis];
        let extent = high - low + 1;
        coord[axis] = low + index % extent;
        index /= extent;
    }
    coord
}

/// Visits the cells of a region of a chunk with their indices in the clipped chunk (C order) and in the stored tile.
fn for_each_cell(region: &Region, shape: &[u64], strides: &[u64], mut visit: impl FnMut(usize, usize)) {
    let rank = shape.len();
    let mut at: Extents = SmallVec::from_elem(0, rank);
    let Some(cells) = region.cells() else { return };
    for _ in 0..cells {
        let (mut to, mut from) = (0, 0);
        for axis in 0..rank {
            let cell = region.start[axis] + at[axis];
            to = to * shape[axis] + cell;
            from += cell * strides[axis];
        }
        visit(to as usize, from as usize);
        for axis in (0..rank).rev() {
            at[axis] += 1;
            if at[axis] < region.shape[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
}

/// The values of an enumeration, as an attribute of the node.
fn enumeration_attribute(array: &OpenArray, name: &str) -> hyperslab_core::Attribute {
    match array.enumeration(name) {
        Ok(enumeration) => enumeration.to_json().into(),
        Err(error) => hyperslab_core::Attribute::Unreadable(error.to_string()),
    }
}

/// The number of cells along a dimension, counted from the start of its domain.
pub(crate) fn reach(schema: &Schema, index: usize) -> Option<u64> {
    let dimension = schema.dimensions.get(index)?;
    let (low, high) = dimension.bounds()?;
    // A current domain hides cells after its end. The grid still starts at the domain's start.
    let end = schema.current_domain.as_ref().and_then(|ranges| ranges.get(index)).map_or(high, |range| {
        crate::schema::integer(dimension.datatype.number(), &range.high).clamp(low - 1, high)
    });
    u64::try_from(end - low + 1).ok()
}

/// Converts an attribute's schema to the core's.
fn dense_schema(schema: &Schema, attribute: &Attribute, store: &str) -> Result<ArraySchema> {
    let mut shape = Extents::new();
    let mut max_shape = Vec::new();
    let mut tiles = Extents::new();
    let mut labels = Vec::new();
    for (index, dimension) in schema.dimensions.iter().enumerate() {
        let unsupported = || Error::unsupported(store, format!("dimension {:?}", dimension.name));
        let (low, _) = dimension.bounds().ok_or_else(unsupported)?;
        let cells = dimension.cells().ok_or_else(unsupported)?;
        shape.push(reach(schema, index).ok_or_else(unsupported)?);
        let tile = dimension.tile_extent().ok_or_else(unsupported)?;
        // A domain that extends to the end of its type is the default, not a limit set by the user.
        let (_, most) = dimension.datatype.number().limits();
        let ends = dimension.bounds().is_some_and(|(_, high)| most - high <= 2 * i128::from(tile) + 2);
        max_shape.push(Some(cells).filter(|cells| !ends || Some(*cells) == shape.last().copied()));
        tiles.push(tile);
        let first = i64::try_from(low).ok();
        labels.push(match first {
            Some(first) if first != 0 || dimension.datatype.is_time() => {
                Labels::Domain { first, dtype: dimension.dtype() }
            }
            _ => Labels::None,
        });
    }
    let mut core = ArraySchema::new(attribute.dtype(), Grid::new(&shape, &tiles)?);
    core.max_shape = max_shape;
    core.order = schema.cell_order.cell_order();
    core.edges = Edges::Padded;
    core.nullable = attribute.nullable;
    core.fill = attribute.fill();
    core.dimensions =
        schema.dimensions.iter().map(|d| Some(d.name.clone()).filter(|name| !name.is_empty())).collect();
    core.labels = labels;
    core.filters = attribute.pipeline.shown();
    core.chunk_index = "fragments".to_owned();
    core.stored.encoded = Some(schema.encode().into());
    core.stored.dimension_types = schema.dimensions.iter().map(crate::schema::Dimension::dtype).collect();
    Ok(core)
}
