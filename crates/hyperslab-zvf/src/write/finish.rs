//! Writes a level from collected records: chunks on all cores, then objects, then links.

use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_core::{Error, Result};
use hyperslab_zarr::ZarrSink;
use rayon::prelude::*;
use serde_json::{Value, json};

use super::arrange::{Arranged, KEY, Layout, arrange};
use super::buckets::{Buckets, words};
use super::cells::{CellSink, ChunkList, LevelSink};
use super::columns::ColumnSpec;
use super::documents::{self, LevelDocument};
use super::forest;
use super::links::{LinkStream, Places};
use super::objects::{self, Uses};
use super::segments::Segments;
use super::writer::ZvfWriter;
use super::{GeometryKind, columns};
use crate::fragment::{self, Fragment};
use crate::pyramid;

/// Data about the chunks of a level, needed for its objects and links.
struct ChunkData {
    uses: Option<Uses>,
    places: Option<Places>,
    /// The first rows of fragments, by chunk.
    starts: Option<std::sync::Mutex<Buckets>>,
    vertices: AtomicU64,
}

/// Writes all levels into the sink.
pub(super) fn finish(mut writer: ZvfWriter) -> Result<ZarrSink> {
    for id in writer.options.groups.iter().flatten() {
        if !writer.ids.contains(*id) {
            return Err(Error::invalid(format!("a group names the object {id}, which does not exist")));
        }
    }
    let rank = writer.spec.rank;
    if let Some([low, high]) = &writer.options.bounds {
        let inside = (0..rank)
            .all(|axis| low[axis] <= writer.chunks.low[axis] && writer.chunks.high[axis] <= high[axis]);
        if !inside && writer.count > 0 {
            return Err(Error::invalid(format!("vertices outside the bounds {low:?} to {high:?}")));
        }
    }
    let mut order: Vec<u32> = (0..writer.chunks.coords.len() as u32).collect();
    order.sort_unstable_by(|a, b| writer.chunks.coords[*a as usize].cmp(&writer.chunks.coords[*b as usize]));
    let chunks =
        ChunkList::new(order.iter().map(|at| writer.chunks.coords[*at as usize].clone()).collect(), rank);
    let (ids, ranks) = writer.ids.sorted();
    let mut tree_links = None;
    if writer.spec.kind == GeometryKind::Skeleton {
        tree_links = Some(walk_trees(&mut writer)?);
    }
    let has_objects = !ids.is_empty();
    let wants_places = writer.links.is_some() || tree_links.is_some();
    let (memory, folder) = (writer.options.memory, writer.folder.clone());
    let spilling = |share: usize| Buckets::new(memory / share, &folder);
    let chunk_data = ChunkData {
        uses: has_objects.then(|| Uses::new(spilling(4))),
        places: wants_places.then(|| Places::new(spilling(8))),
        starts: wants_places.then(|| std::sync::Mutex::new(spilling(8))),
        vertices: AtomicU64::new(0),
    };
    let document = writer.document();
    let root = match &writer.kept {
        Some(kept) => kept.root(&document.bounds),
        None => documents::root(&document),
    };
    let ZvfWriter {
        mut sink,
        vertices,
        layout,
        spec,
        options,
        dtype,
        record,
        links,
        object_attributes,
        kept,
        ..
    } = writer;
    hyperslab_core::Sink::group(&mut sink, "/", &super::cells::json_attributes(&root))?;
    let mut level = LevelSink {
        sink: &mut sink,
        path: "/0".to_owned(),
        rank,
        compression: options.compression,
        shards: false,
        folder: &folder,
        extras: kept.as_ref().map(|kept| &kept.extras),
    };
    let arrays = ChunkArrays::create(&mut level, &spec.attributes, &dtype, &chunks)?;
    let gathered = vertices.gathered();
    (0..chunks.len()).into_par_iter().try_for_each(|number| {
        let records = gathered.take(order[number] as usize)?;
        let coord = &chunks.coords[number];
        let arranged = arrange(&layout, &records, record, &dtype, coord, number as u64, &ranks);
        let key = if layout.is_keyed() { KEY } else { 0 };
        arrays.put(coord, &arranged, &records, record, key)?;
        collect_chunk_data(&chunk_data, number as u32, &arranged, &records, record)
    })?;
    drop(gathered);
    let width = spec.link_width.unwrap_or(2);
    let mut segments = Segments::new(width, &spec.link_attributes, 0, spilling(4));
    if let Some(uses) = chunk_data.uses {
        let path = spec.kind.is_path();
        objects::write_index(&mut level, &ids, uses, &chunks.coords, &mut |from, to| {
            if path { segments.add(&[from, to], &chunks.coords, &[]) } else { Ok(()) }
        })?;
    }
    let starts = chunk_data
        .starts
        .map(|starts| starts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).gathered());
    if let Some(places) = chunk_data.places {
        let places = places.gathered();
        match (links, tree_links) {
            (Some(links), _) => links.resolve(&places, &chunks.coords, |_| true, &mut segments)?,
            (_, Some(tree)) => {
                // Links implied by the order of the rows are not stored.
                let stored = |link: &[(u32, u32)]| link[0].0 != link[1].0 || link[0].1 != link[1].1 + 1;
                tree.resolve(&places, &chunks.coords, stored, &mut segments)?;
            }
            _ => {}
        }
    }
    let declared = spec.kind.stores_links() && spec.link_width.is_some();
    let linked = segments.len() > 0 || declared;
    if linked {
        level.group("links", &Value::Null)?;
        if !spec.link_attributes.is_empty() {
            level.group("link_attributes", &Value::Null)?;
        }
        segments.write(&mut level, "links/0", &chunks, starts.as_ref())?;
    }
    objects::write_groups(&mut level, &options.groups)?;
    write_object_attributes(&mut level, object_attributes, &ids)?;
    let document = LevelDocument {
        level: 0,
        vertices: chunk_data.vertices.into_inner(),
        attributes: !spec.attributes.is_empty(),
        links: linked,
        objects: has_objects.then_some(ids.len() as u64),
        ..LevelDocument::default()
    };
    let document = document.to_json();
    level.group("", &kept.as_ref().map_or(document.clone(), |kept| kept.level(&document)))?;
    let generated = (!options.factors.is_empty()).then(|| pyramid::generated(&options));
    if let Some(pyramid) = generated.or(kept.and_then(|kept| kept.pyramid)) {
        sink.settle()?;
        pyramid::add_to(&mut sink, &pyramid)?;
    }
    Ok(sink)
}

/// Walks the trees of a skeleton. Returns their links, which are stored unless the row order implies them.
fn walk_trees(writer: &mut ZvfWriter) -> Result<LinkStream> {
    let count = writer.count as usize;
    if let Some(row) = writer.tree.iter().find(|row| **row as usize >= count) {
        return Err(Error::invalid(format!("a link to vertex {row} of {count}")));
    }
    let walk = forest::depth_first(count, &writer.tree, true)?;
    writer.tree = Vec::new();
    let (memory, folder) = (writer.options.memory, writer.folder.clone());
    let mut stream = LinkStream::new(2, &[], || Buckets::new(memory / 8, &folder));
    let none = columns::Rows::new(&[], &[], 0)?;
    for (vertex, parent) in walk.parent.iter().enumerate() {
        if let Some(parent) = parent {
            stream.push(&[vertex as u64, u64::from(*parent)], &none)?;
        }
    }
    writer.layout = Layout::Trees(walk.forest);
    Ok(stream)
}

/// Collects a chunk's data that later steps need.
fn collect_chunk_data(
    chunk_data: &ChunkData,
    chunk: u32,
    arranged: &Arranged,
    records: &[u8],
    size: usize,
) -> Result<()> {
    chunk_data.vertices.fetch_add(arranged.rows.len() as u64, Ordering::Relaxed);
    if let Some(uses) = &chunk_data.uses {
        uses.add(chunk, &arranged.uses)?;
    }
    if let Some(places) = &chunk_data.places {
        let vertex = |row: &u32| words::<2>(&records[*row as usize * size..])[1];
        places.add(chunk, arranged.rows.iter().map(vertex))?;
    }
    if let Some(starts) = &chunk_data.starts {
        let mut starts = starts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for fragment in &arranged.fragments {
            if let Fragment::Range { start, .. } = fragment {
                starts.push(chunk as usize, &start.to_le_bytes())?;
            }
        }
    }
    Ok(())
}

/// The arrays with one cell per chunk.
pub(crate) struct ChunkArrays {
    vertices: CellSink,
    fragments: CellSink,
    /// For each attribute, its offset in a record after the position, its size, and its cells.
    attributes: Vec<(usize, usize, CellSink)>,
    position: usize,
}

impl ChunkArrays {
    pub(crate) fn create(
        level: &mut LevelSink<'_>,
        attributes: &[ColumnSpec],
        dtype: &hyperslab_core::DType,
        chunks: &ChunkList,
    ) -> Result<Self> {
        let own = json!({"zv_array": "vertices", "dtype": dtype.to_string(), "encoding": "raw"});
        let vertices = level.cells("vertices", &own, chunks, 0..chunks.len())?;
        let own = json!({"zv_array": "vertex_fragments", "encoding": "fragment_index_v1"});
        let fragments = level.cells("vertex_fragments", &own, chunks, 0..chunks.len())?;
        if !attributes.is_empty() {
            level.group("vertex_attributes", &Value::Null)?;
        }
        let (mut made, mut at) = (Vec::with_capacity(attributes.len()), 0);
        for column in attributes {
            let row_shape: Vec<u64> = column.width.into_iter().collect();
            let own = json!({
                "zv_array": "attribute", "name": column.name, "dtype": column.dtype.to_string(), "row_shape": row_shape,
            });
            let name = format!("vertex_attributes/{}", column.name);
            made.push((at, column.row_size(), level.cells(&name, &own, chunks, 0..chunks.len())?));
            at += column.row_size();
        }
        let position = dtype.size().unwrap_or(4) * level.rank;
        Ok(Self { vertices, fragments, attributes: made, position })
    }

    /// Writes the cells of a chunk from its records, which start with `key` bytes that are not stored.
    pub(crate) fn put(
        &self,
        coord: &crate::coord::Coord,
        arranged: &Arranged,
        records: &[u8],
        size: usize,
        key: usize,
    ) -> Result<()> {
        let gather = |offset: usize, length: usize| -> Vec<u8> {
            let mut cell = Vec::with_capacity(arranged.rows.len() * length);
            for row in &arranged.rows {
                cell.extend_from_slice(&records[*row as usize * size + offset..][..length]);
            }
            cell
        };
        self.vertices.put(coord, &gather(key, self.position))?;
        self.fragments.put(coord, &fragment::encode(&arranged.fragments, arranged.rows.len() as u64)?)?;
        for (offset, length, cells) in &self.attributes {
            cells.put(coord, &gather(key + self.position + offset, *length))?;
        }
        Ok(())
    }
}

fn write_object_attributes(
    level: &mut LevelSink<'_>,
    columns: Vec<objects::ObjectColumn>,
    ids: &[i64],
) -> Result<()> {
    if columns.is_empty() {
        return Ok(());
    }
    level.group("object_attributes", &Value::Null)?;
    for (name, values) in objects::joined_columns(columns, ids)? {
        objects::write_attribute(level, &name, &values)?;
    }
    Ok(())
}
