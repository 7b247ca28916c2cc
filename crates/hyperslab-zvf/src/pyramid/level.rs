//! Generates one coarser level.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_core::{Array, DType, Error, Positions, Result, Store, Values, read_serial};
use rayon::prelude::*;
use serde_json::Value;

use super::PyramidOptions;
use super::aggregate::{Grouping, Piece, Shape, aggregate};
use super::links::{self, RowMaps};
use super::objects::FineUses;
use crate::coord::Coord;
use crate::level::Level;
use crate::links::LinkAttribute;
use crate::meta::Linking;
use crate::store::Levels;
use crate::write::buckets::Buckets;
use crate::write::cells::{ChunkList, LevelSink};
use crate::write::documents::LevelDocument;
use crate::write::finish::ChunkArrays;
use crate::write::objects::{self, Uses};
use crate::write::segments::Segments;
use crate::write::{ColumnSpec, CrossLevel};

/// The maximum number of finer chunks per axis that a coarser chunk covers.
const MAX_COVERED: u32 = 64;

/// The parameters for generating a level from the previous one.
pub(super) struct Coarsening<'a> {
    /// The number of the new level.
    pub(super) number: usize,
    pub(super) bin: &'a [f64],
    pub(super) options: &'a PyramidOptions,
}

/// The chunks of the finer level and the coarser chunks that cover them.
struct Cover {
    chunk_shape: Vec<f64>,
    counts: Vec<u64>,
    chunks: ChunkList,
    /// The numbers of the finer chunks, for each coarser chunk.
    covered: Vec<Vec<usize>>,
    fine: Vec<Coord>,
    coarse_of: Vec<u32>,
}

/// The links from the finer level to the coarser one, to be written with the finer level.
pub(super) struct Upward {
    pub(super) rank: usize,
    segments: Option<(Segments, ChunkList)>,
}

impl Upward {
    pub(super) fn write(self, level: &mut LevelSink<'_>, prefix: &str) -> Result<()> {
        match self.segments {
            Some((segments, chunks)) => segments.write(level, prefix, &chunks, None),
            None => Ok(()),
        }
    }
}

impl Coarsening<'_> {
    /// Writes the level. Returns the links from the finer level to it.
    pub(super) fn run(&self, levels: &Levels, sink: &mut LevelSink<'_>) -> Result<Upward> {
        let level = levels.level(self.number - 1)?;
        let cover = self.cover(level)?;
        let objects = level.objects()?;
        let linking = level.root.linking();
        let grouping = match (objects.is_some(), linking) {
            (false, Linking::Path) => return Err(Error::invalid("coarser lines without an object index")),
            (false, _) if linking == Linking::Tree => Grouping::Shared { paths: false },
            (false, _) => Grouping::Bins,
            (true, Linking::Path) if self.options.shared_fragments => Grouping::Shared { paths: true },
            (true, Linking::Path) => Grouping::Stretches,
            (true, Linking::Tree) => Grouping::Shared { paths: false },
            (true, _) if self.options.shared_fragments => Grouping::Shared { paths: false },
            (true, _) => Grouping::Owned,
        };
        let numbers: HashMap<Coord, usize> =
            cover.fine.iter().enumerate().map(|(number, coord)| (coord.clone(), number)).collect();
        let spilling = |share: usize| Buckets::new(self.options.memory / share, sink.folder);
        let fine_uses =
            objects.map(|objects| FineUses::gather(level, objects, &numbers, spilling(4))).transpose()?;
        let specs = columns(level)?;
        let dtype = if level.dtype == DType::Float64 { DType::Float64 } else { DType::Float32 };
        let uses = Uses::new(spilling(4));
        let maps = Mutex::new(spilling(4));
        let rows: Vec<AtomicU64> = cover.chunks.coords.iter().map(|_| AtomicU64::new(0)).collect();
        let keeps_maps = self.options.cross_level != CrossLevel::None
            || matches!(linking, Linking::Tree | Linking::Stored);
        let arrays = ChunkArrays::create(sink, &specs, &dtype, &cover.chunks)?;
        let shape = Shape { chunk: &cover.chunk_shape, bin: self.bin, counts: &cover.counts };
        (0..cover.chunks.len()).into_par_iter().try_for_each(|number| -> Result<()> {
            let (coord, mut pieces, mut who) = (&cover.chunks.coords[number], Vec::new(), Vec::new());
            for fine in &cover.covered[number] {
                let uses = fine_uses.as_ref().map_or(Ok(Vec::new()), |uses| uses.of(*fine))?;
                if let Some(piece) = Piece::read(level, &cover.fine[*fine], &specs, uses)? {
                    pieces.push(piece);
                    who.push(*fine);
                }
            }
            let made = aggregate(grouping, &shape, coord, number as u64, &pieces, &dtype, &specs);
            rows[number].store(made.arranged.rows.len() as u64, Ordering::Relaxed);
            arrays.put(coord, &made.arranged, &made.records, made.record, 0)?;
            uses.add(number as u32, &made.arranged.uses)?;
            if keeps_maps {
                let mut maps = maps.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                for (fine, map) in who.iter().zip(&made.maps) {
                    map.iter().for_each(|row| maps.buffer(*fine).extend(row.to_le_bytes()));
                    maps.settle(4 * map.len())?;
                }
            }
            Ok(())
        })?;
        let rows: Vec<u64> = rows.into_iter().map(AtomicU64::into_inner).collect();
        let maps = maps.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).gathered();
        let maps = RowMaps::new(maps, numbers, cover.coarse_of.clone(), self.options.memory / 4);
        let finished = Finished { level, cover: &cover, maps: &maps, rows: &rows, grouping };
        self.finish(finished, uses, &specs, sink)
    }

    /// Writes the objects, the links and the level's document.
    fn finish(
        &self,
        done: Finished<'_>,
        uses: Uses,
        specs: &[ColumnSpec],
        sink: &mut LevelSink<'_>,
    ) -> Result<Upward> {
        let (level, coords) = (done.level, &done.cover.chunks.coords);
        let linking = level.root.linking();
        let attributes = if linking == Linking::Stored { level.link_attributes()? } else { &[] };
        let link_specs: Vec<ColumnSpec> = attributes.iter().map(link_column).collect();
        let width = level.links()?.map_or(2, |links| links.width);
        let spilling = || Buckets::new(self.options.memory / 4, sink.folder);
        let mut segments = Segments::new(width, &link_specs, 0, spilling()).distinct();
        let count = level.objects()?.map(|objects| objects.len());
        if let Some(objects) = level.objects()? {
            let ids = (0..objects.len()).map(|row| objects.id(row)).collect::<Result<Vec<i64>>>()?;
            objects::write_index(sink, &ids, uses, coords, &mut |from, to| {
                if linking == Linking::Path { segments.add(&[from, to], coords, &[]) } else { Ok(()) }
            })?;
        }
        match linking {
            Linking::Stored => links::stored(level, done.maps, coords, &mut segments)?,
            Linking::Tree => links::of_trees(level, done.maps, coords, done.rows, &mut segments)?,
            Linking::Path | Linking::None => {}
        }
        let linked = segments.len() > 0 || linking == Linking::Stored && level.links()?.is_some();
        if linked {
            sink.group("links", &Value::Null)?;
            if !link_specs.is_empty() {
                sink.group("link_attributes", &Value::Null)?;
            }
            let mut starts = spilling_starts(&done, self.options.memory, sink)?;
            segments.write(sink, "links/0", &done.cover.chunks, starts.take().as_ref())?;
        }
        carry_over(level, sink)?;
        let vertices: u64 = done.rows.iter().sum();
        let own_shape =
            (done.cover.chunk_shape != level.root.chunk_shape).then(|| done.cover.chunk_shape.clone());
        let document = LevelDocument {
            level: self.number,
            vertices,
            attributes: !specs.is_empty(),
            links: linked,
            objects: count,
            chunk_shape: own_shape,
            shared: matches!(done.grouping, Grouping::Shared { .. }),
        };
        let upward = self.cross(&done, linked, sink)?;
        sink.group("", &document.to_json())?;
        Ok(upward)
    }

    /// Writes the links between the levels, in the directions that the options select.
    fn cross(&self, done: &Finished<'_>, linked: bool, sink: &mut LevelSink<'_>) -> Result<Upward> {
        let rank = sink.rank;
        if self.options.cross_level == CrossLevel::None {
            return Ok(Upward { rank, segments: None });
        }
        let spilling = || Buckets::new(self.options.memory / 4, sink.folder);
        let mut up = Segments::new(2, &[], 1, spilling());
        let mut down = Segments::new(2, &[], -1, spilling());
        let root = &done.level.root.chunk_shape;
        let ratio = |shape: &[f64]| -> Vec<i64> {
            shape.iter().zip(root).map(|(own, root)| ((own / root).round() as i64).max(1)).collect()
        };
        let (fine, coarse) = (ratio(&done.level.chunk_shape), ratio(&done.cover.chunk_shape));
        for (number, coord) in done.cover.fine.iter().enumerate() {
            let to = done.maps.coarse[number];
            let target = &done.cover.chunks.coords[to as usize];
            let upward = offset(target, coord, &fine, &coarse);
            let downward = offset(coord, target, &coarse, &fine);
            for (row, place) in done.maps.of(number)?.iter().enumerate() {
                if *place != super::aggregate::NO_ROW {
                    up.add_cross(number as u32, upward.clone(), [row as u32, *place])?;
                    if self.options.cross_level == CrossLevel::Both {
                        down.add_cross(to, downward.clone(), [*place, row as u32])?;
                    }
                }
            }
        }
        if self.options.cross_level == CrossLevel::Both {
            if !linked {
                sink.group("links", &Value::Null)?;
            }
            down.write(sink, "links/-1", &done.cover.chunks, None)?;
        }
        Ok(Upward { rank, segments: Some((up, ChunkList::new(done.cover.fine.clone(), rank))) })
    }

    /// Chooses the chunks of the new level: the same size, or groups of chunks that contain whole bins.
    fn cover(&self, level: &Level) -> Result<Cover> {
        let (mut times, mut chunk_shape, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for (size, bin) in level.chunk_shape.iter().zip(self.bin) {
            let whole = |times: &u32| {
                let bins = size * f64::from(*times) / bin;
                bins >= 0.999 && (bins.round() - bins).abs() < 1e-9 * bins.max(1.0)
            };
            let Some(own) = (1..=MAX_COVERED).find(whole) else {
                return Err(Error::invalid(format!("bins of {bin} do not fit chunks of {size}")));
            };
            times.push(i64::from(own));
            chunk_shape.push(size * f64::from(own));
            counts.push((size * f64::from(own) / bin).round() as u64);
        }
        let leading = level.leading();
        let fine = level.vertices.chunks()?.to_vec();
        let mut covers: BTreeMap<Coord, Vec<usize>> = BTreeMap::new();
        for (number, coord) in fine.iter().enumerate() {
            let mut coarse = coord.clone();
            for (axis, times) in times.iter().enumerate() {
                coarse[leading + axis] = coord[leading + axis].div_euclid(*times);
            }
            covers.entry(coarse).or_default().push(number);
        }
        let mut coarse_of = vec![0; fine.len()];
        for (number, own) in covers.values().enumerate() {
            own.iter().for_each(|fine| coarse_of[*fine] = number as u32);
        }
        let (coords, covered) = covers.into_iter().unzip();
        let chunks = ChunkList::new(coords, level.vertices.rank());
        Ok(Cover { chunk_shape, counts, chunks, covered, fine, coarse_of })
    }
}

/// The finished chunks of the new level.
struct Finished<'a> {
    level: &'a Level,
    cover: &'a Cover,
    maps: &'a RowMaps,
    /// The number of rows in each chunk.
    rows: &'a [u64],
    grouping: Grouping,
}

/// The offset from the source's position at the target's level to the target.
fn offset(target: &[i64], source: &[i64], of_source: &[i64], of_target: &[i64]) -> Coord {
    let leading = target.len() - of_source.len();
    let mut offset: Coord = target.iter().zip(source).map(|(target, source)| target - source).collect();
    for axis in 0..of_source.len() {
        let anchor = (source[leading + axis] * of_source[axis]).div_euclid(of_target[axis]);
        offset[leading + axis] = target[leading + axis] - anchor;
    }
    offset
}

/// The first rows of each chunk's fragments, which group its links.
fn spilling_starts(
    done: &Finished<'_>,
    memory: usize,
    sink: &LevelSink<'_>,
) -> Result<Option<crate::write::buckets::Gathered>> {
    if done.level.root.linking() == Linking::Path {
        return Ok(None);
    }
    let mut starts = Buckets::new(memory / 8, sink.folder);
    for (chunk, rows) in done.rows.iter().enumerate() {
        let single = matches!(done.grouping, Grouping::Shared { .. });
        for row in 0..if single { *rows } else { 1 } {
            starts.push(chunk, &row.to_le_bytes())?;
        }
    }
    Ok(Some(starts.gathered()))
}

/// The columns of the vertex attributes, with the shapes of their actual cells.
fn columns(level: &Level) -> Result<Vec<ColumnSpec>> {
    let mut specs = Vec::new();
    for (name, cells) in level.attributes()? {
        let dtype = cells.dtype()?;
        let declared = cells
            .attributes
            .get("row_shape")
            .and_then(Value::as_array)
            .is_some_and(|shape| !shape.is_empty());
        let mut width = cells.row_width().filter(|_| declared);
        // Some writers declare an empty row shape for rows of several columns.
        for chunk in level.vertices.chunks()?.iter().take(4) {
            if let (Some(cell), Some(vertices)) = (cells.cell(chunk)?, level.chunk(chunk)?) {
                let found = cell.len() as u64 / (vertices.rows * dtype.size().unwrap_or(1) as u64).max(1);
                width = if found > 1 || declared { Some(found.max(1)) } else { None };
                break;
            }
        }
        specs.push(ColumnSpec { name: name.clone(), dtype, width });
    }
    Ok(specs)
}

fn link_column(attribute: &LinkAttribute) -> ColumnSpec {
    ColumnSpec { name: attribute.name.clone(), dtype: attribute.dtype.clone(), width: attribute.width }
}

/// Copies groups and attributes of objects, which are the same at every level.
fn carry_over(level: &Level, sink: &mut LevelSink<'_>) -> Result<()> {
    let groups = crate::objects::groups(level)?;
    objects::write_groups(sink, &groups)?;
    let family = format!("{}/object_attributes", level.path);
    if level.zarr.group(&family)?.is_none() {
        return Ok(());
    }
    sink.group("object_attributes", &Value::Null)?;
    for name in level.zarr.children(&family)? {
        let array = level.zarr.array(&format!("{family}/{name}"))?;
        let values: Values = read_serial(&array, Positions::whole(array.schema().shape()))?;
        // Text attributes of objects stay at the finest level only.
        if values.elements.as_fixed().is_some() && crate::meta::dtype(&values.dtype.to_string()).is_some() {
            objects::write_attribute(sink, &name, &values)?;
        }
    }
    Ok(())
}
