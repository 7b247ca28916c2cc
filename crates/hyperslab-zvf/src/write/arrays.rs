//! One level's groups and arrays.

use std::collections::BTreeMap;

use hyperslab_core::{
    ArraySpec, Attribute, Attributes, ChunkCoord, DType, Elements, Filter, Grid, Result, Sink,
};
use serde_json::{Value, json};

use super::links::segments;
use super::place::{Placed, PlacedChunk};
use super::source::Source;
use super::{Kind, WriteOptions};
use crate::coord::{Coord, dotted, segment_name};
use crate::fragment::{self, Fragment};
use crate::manifest;

/// Manifests in one chunk of their array.
const MANIFESTS_PER_CHUNK: u64 = 16384;

/// Writes one level.
pub(super) struct LevelWriter<'a> {
    pub(super) sink: &'a mut dyn Sink,
    pub(super) options: &'a WriteOptions,
    pub(super) kind: Kind,
    pub(super) level: usize,
    pub(super) rank: usize,
    pub(super) objects: usize,
}

/// A chunk-grid array's cells, by the number of their chunk.
type Cells<'a> = &'a dyn Fn(u32) -> Result<Vec<u8>>;

impl LevelWriter<'_> {
    pub(super) fn write(&mut self, source: &Source, placed: &Placed) -> Result<()> {
        let path = format!("/{}", self.level);
        self.sink.group(&path, &self.level_attributes(source, placed))?;
        let all: Vec<u32> = (0..placed.chunks.len() as u32).collect();
        let vertices = json!({"zv_array": "vertices", "dtype": source.dtype.to_string(), "encoding": "raw"});
        self.cells(&format!("{path}/vertices"), placed, &all, vertices, &|chunk| {
            Ok(positions(source, &placed.chunks[chunk as usize]))
        })?;
        let fragments = json!({"zv_array": "vertex_fragments", "encoding": "fragment_index_v1"});
        self.cells(&format!("{path}/vertex_fragments"), placed, &all, fragments, &|chunk| {
            let chunk = &placed.chunks[chunk as usize];
            fragment::encode(&chunk.fragments, chunk.rows.len() as u64)
        })?;
        if !source.attributes.is_empty() {
            self.sink.group(&format!("{path}/vertex_attributes"), &Attributes::new())?;
        }
        for column in &source.attributes {
            let row_shape: Vec<u64> = column.width.into_iter().collect();
            let attributes = json!({
                "zv_array": "attribute", "name": column.name, "dtype": column.dtype.to_string(), "row_shape": row_shape,
            });
            let size = column.row_size();
            self.cells(
                &format!("{path}/vertex_attributes/{}", column.name),
                placed,
                &all,
                attributes,
                &|chunk| {
                    let rows = &placed.chunks[chunk as usize].rows;
                    let mut bytes = Vec::with_capacity(rows.len() * size);
                    rows.iter().for_each(|row| {
                        bytes.extend_from_slice(&column.bytes[*row as usize * size..][..size])
                    });
                    to_little(&column.dtype, &mut bytes);
                    Ok(bytes)
                },
            )?;
        }
        self.links(&path, source, placed)?;
        if self.objects > 0 {
            self.object_index(&path, source, placed)?;
        }
        if !self.options.groups.is_empty() {
            self.groups(&path)?;
        }
        Ok(())
    }

    fn level_attributes(&self, source: &Source, placed: &Placed) -> Attributes {
        let vertices: usize = placed.chunks.iter().map(|chunk| chunk.rows.len()).sum();
        let mut present = vec!["vertices", "vertex_fragments"];
        if !source.attributes.is_empty() {
            present.push("vertex_attributes");
        }
        if !placed.links.is_empty() {
            present.push("links");
        }
        if self.objects > 0 {
            present.push("object_index");
        }
        let mut own = json!({
            "level": self.level, "object_sparsity": 1.0, "vertex_count": vertices,
            "coarsening_method": if self.level == 0 { "none" } else { "per_object" },
            "parent_level": self.level.checked_sub(1), "arrays_present": present, "fragments_tile": true,
        });
        if self.level > 0 && self.objects > 0 {
            own["preserves_object_ids"] = json!(true);
            own["inherited_num_objects"] = json!(self.objects);
            own["shared_fragments"] = json!(true);
        }
        Attributes::from_iter([("zarr_vectors_level", Attribute::Json(own))])
    }

    /// A chunk-grid array: one byte string for each of these chunks.
    fn cells(
        &mut self,
        path: &str,
        placed: &Placed,
        chunks: &[u32],
        own: Value,
        cells: Cells<'_>,
    ) -> Result<()> {
        let (origin, shape) = extent(&placed.chunks, self.rank);
        let mut names: Vec<String> =
            chunks.iter().map(|chunk| dotted(&placed.chunks[*chunk as usize].coord)).collect();
        names.sort();
        let mut attributes = Attributes::from_iter([("nonempty_chunks", Attribute::Json(json!(names)))]);
        if origin.iter().any(|part| *part != 0) {
            attributes.set("chunk_grid_origin", Attribute::Json(json!(origin.as_slice())));
        }
        for (name, value) in own.as_object().into_iter().flatten() {
            attributes.set(name.as_str(), Attribute::Json(value.clone()));
        }
        let mut spec = ArraySpec::new(DType::Bytes, Grid::new(&shape, &vec![1; self.rank])?);
        spec.attributes = attributes;
        spec.filters = self.filters();
        let array = self.sink.array(path, &spec)?;
        for chunk in chunks {
            let coord = &placed.chunks[*chunk as usize].coord;
            let at: ChunkCoord = coord.iter().zip(&origin).map(|(at, origin)| at.abs_diff(*origin)).collect();
            let encoded = array.encode(&at, &Elements::variable([cells(*chunk)?]))?;
            array.write(&at, encoded)?;
        }
        Ok(())
    }

    fn filters(&self) -> Vec<Filter> {
        self.options.compression.map(|level| Filter::new("zstd").with("level", level)).into_iter().collect()
    }

    fn links(&mut self, path: &str, source: &Source, placed: &Placed) -> Result<()> {
        let width = source.links.as_ref().map_or(2, |(width, _)| *width);
        let declared =
            matches!(self.kind, Kind::Graph | Kind::Mesh | Kind::Skeleton) && source.links.is_some();
        if placed.links.is_empty() && !declared {
            return Ok(());
        }
        self.sink.group(&format!("{path}/links"), &Attributes::new())?;
        let family = json!({
            "zv_array": "links_family", "level_delta": 0, "link_width": width, "directed": false, "store": "canonical",
            "sid_ndim": self.rank, "num_links": placed.links.len(), "num_physical_records": placed.links.len(),
        });
        self.sink.group(&format!("{path}/links/0"), &json_attributes(&family))?;
        for (offsets, cells) in &mut segments(&placed.links, &placed.chunks) {
            let local = offsets.iter().all(|offset| offset.iter().all(|part| *part == 0));
            if local {
                self.link_fragments(path, width, cells, placed)?;
            }
            let chunks: Vec<u32> = cells.keys().copied().collect();
            let plain: Vec<&[i64]> = offsets.iter().map(|offset| offset.as_slice()).collect();
            let attributes = json!({
                "zv_array": "links", "dtype": "int64", "offsets": plain, "has_perm": !local, "link_width": width,
                "level_delta": 0,
            });
            let name = format!("{path}/links/0/{}", segment_name(offsets));
            self.cells(&name, placed, &chunks, attributes, &|chunk| {
                let mut bytes = Vec::new();
                if !local {
                    bytes.extend(1_i64.to_le_bytes());
                    bytes.extend(0_i64.to_le_bytes());
                }
                bytes.extend(cells.get(&chunk).into_iter().flatten().flat_map(|row| row.to_le_bytes()));
                Ok(bytes)
            })?;
        }
        Ok(())
    }

    /// Orders the links inside each chunk by the fragment of their first row, and writes which belong to which.
    fn link_fragments(
        &mut self,
        path: &str,
        width: usize,
        cells: &mut BTreeMap<u32, Vec<i64>>,
        placed: &Placed,
    ) -> Result<()> {
        let mut indexes = BTreeMap::new();
        for (chunk, records) in cells.iter_mut() {
            let fragments = &placed.chunks[*chunk as usize].fragments;
            let starts: Vec<u64> = fragments
                .iter()
                .map(|fragment| if let Fragment::Range { start, .. } = fragment { *start } else { 0 })
                .collect();
            let fragment_of =
                |record: &[i64]| starts.partition_point(|start| *start <= record[0].unsigned_abs()) - 1;
            let mut sorted: Vec<Vec<i64>> = records.chunks_exact(width).map(<[i64]>::to_vec).collect();
            sorted.sort_by_key(|record| fragment_of(record));
            let mut groups = vec![0_u64; fragments.len()];
            sorted.iter().for_each(|record| groups[fragment_of(record)] += 1);
            let mut start = 0;
            let ranges: Vec<Fragment> = groups
                .into_iter()
                .map(|count| {
                    start += count;
                    Fragment::Range { start: start - count, count }
                })
                .collect();
            indexes.insert(*chunk, fragment::encode(&ranges, sorted.len() as u64)?);
            *records = sorted.concat();
        }
        let chunks: Vec<u32> = indexes.keys().copied().collect();
        let attributes = json!({"zv_array": "link_fragments", "encoding": "fragment_index_v1"});
        self.cells(&format!("{path}/link_fragments"), placed, &chunks, attributes, &|chunk| {
            Ok(indexes.get(&chunk).cloned().unwrap_or_default())
        })
    }

    fn object_index(&mut self, path: &str, source: &Source, placed: &Placed) -> Result<()> {
        let count = source.objects.len() as u64;
        let present = placed.manifests.iter().filter(|manifest| !manifest.is_empty()).count();
        let own = json!({
            "zv_array": "object_index", "num_objects": count, "num_present": present, "sid_ndim": self.rank,
            "layout": "vlen_manifests_v2", "object_ids_sorted": true,
        });
        self.sink.group(&format!("{path}/object_index"), &json_attributes(&own))?;
        let rows: Vec<Vec<u8>> =
            placed.manifests.iter().map(|manifest| manifest::encode(manifest)).collect::<Result<_>>()?;
        self.rows(&format!("{path}/object_index/manifests"), &rows, Attributes::new())?;
        let ids: Vec<u8> = source.objects.iter().flat_map(|(id, _)| id.to_ne_bytes()).collect();
        let mut spec = ArraySpec::new(DType::Int64, Grid::single(&[count]));
        spec.filters = self.filters();
        let array = self.sink.array(&format!("{path}/object_index/object_ids"), &spec)?;
        let first: ChunkCoord = [0].as_slice().into();
        array.write(&first, array.encode(&first, &Elements::fixed(ids))?)
    }

    fn groups(&mut self, path: &str) -> Result<()> {
        let rows: Vec<Vec<u8>> = self
            .options
            .groups
            .iter()
            .map(|ids| ids.iter().flat_map(|id| id.to_le_bytes()).collect())
            .collect();
        let own = json!({"zv_array": "groups", "num_groups": rows.len()});
        self.rows(&format!("{path}/groups"), &rows, json_attributes(&own))
    }

    /// A one-dimensional array of byte strings.
    fn rows(&mut self, path: &str, rows: &[Vec<u8>], attributes: Attributes) -> Result<()> {
        let count = rows.len() as u64;
        let each = count.clamp(1, MANIFESTS_PER_CHUNK);
        let mut spec = ArraySpec::new(DType::Bytes, Grid::new(&[count], &[each])?);
        spec.attributes = attributes;
        spec.filters = vec![Filter::new("zstd").with("level", 0)];
        let array = self.sink.array(path, &spec)?;
        for (number, part) in rows.chunks(each as usize).enumerate() {
            let at: ChunkCoord = [number as u64].as_slice().into();
            array.write(&at, array.encode(&at, &Elements::variable(part))?)?;
        }
        Ok(())
    }
}

fn json_attributes(object: &Value) -> Attributes {
    let fields = object.as_object().into_iter().flatten();
    fields.map(|(name, value)| (name.as_str(), Attribute::Json(value.clone()))).collect()
}

/// The lowest coordinate, and how many chunks there are from there on, per axis.
fn extent(chunks: &[PlacedChunk], rank: usize) -> (Coord, Vec<u64>) {
    let Some(first) = chunks.first() else { return (Coord::from_elem(0, rank), vec![1; rank]) };
    let (mut low, mut high) = (first.coord.clone(), first.coord.clone());
    for chunk in chunks {
        for axis in 0..rank {
            low[axis] = low[axis].min(chunk.coord[axis]);
            high[axis] = high[axis].max(chunk.coord[axis]);
        }
    }
    let shape = low.iter().zip(&high).map(|(low, high)| high.abs_diff(*low).saturating_add(1)).collect();
    (low, shape)
}

fn positions(source: &Source, chunk: &PlacedChunk) -> Vec<u8> {
    let rows = chunk.rows.iter().flat_map(|row| source.position(*row as usize));
    match source.dtype {
        DType::Float64 => rows.flat_map(|part| part.to_le_bytes()).collect(),
        _ => rows.flat_map(|part| (*part as f32).to_le_bytes()).collect(),
    }
}

fn to_little(dtype: &DType, bytes: &mut [u8]) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(dtype.swap_unit().unwrap_or(1)).for_each(<[u8]>::reverse);
    }
}
