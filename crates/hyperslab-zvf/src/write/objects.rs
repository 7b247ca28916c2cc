//! Writes objects: ids, and the fragments of each.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use hyperslab_core::{ArraySpec, ChunkCoord, DType, Elements, Error, Fill, Grid, Result, Sink, Values};
use rayon::prelude::*;
use serde_json::json;

use super::arrange::FragmentUse;
use super::buckets::{Buckets, record, words};
use super::cells::LevelSink;
use crate::coord::Coord;
use crate::manifest;

/// The number of manifests per chunk of their array. Small enough that looking up one object decodes few others.
pub(crate) const PER_CHUNK: u64 = 2048;

/// Ids below this are looked up in a table, which grows with them; ids usually count from zero.
const TABLE: i64 = 1 << 22;
/// Marks an unknown number; there are never this many objects.
const UNKNOWN: u32 = u32::MAX;

/// Objects by arrival number.
#[derive(Debug, Default)]
pub(crate) struct ObjectIds {
    small: Vec<u32>,
    numbers: HashMap<i64, u32>,
    ids: Vec<i64>,
}

impl ObjectIds {
    /// The number of an id, and whether it is new.
    pub(crate) fn number(&mut self, id: i64) -> Result<(u32, bool)> {
        if let Some(number) = self.known(id) {
            return Ok((number, false));
        }
        let number = u32::try_from(self.ids.len()).ok().filter(|number| *number != UNKNOWN);
        let number = number.ok_or_else(|| Error::invalid("more than 2^32 objects"))?;
        if (0..TABLE).contains(&id) {
            let at = id as usize;
            if at >= self.small.len() {
                self.small.resize((at + 1).next_power_of_two(), UNKNOWN);
            }
            self.small[at] = number;
        } else {
            self.numbers.insert(id, number);
        }
        self.ids.push(id);
        Ok((number, true))
    }

    fn known(&self, id: i64) -> Option<u32> {
        match usize::try_from(id) {
            Ok(at) if id < TABLE => self.small.get(at).copied().filter(|number| *number != UNKNOWN),
            _ => self.numbers.get(&id).copied(),
        }
    }

    pub(crate) fn contains(&self, id: i64) -> bool {
        self.known(id).is_some()
    }

    /// The ids in ascending order, and the position there of each arrival number.
    pub(crate) fn sorted(&self) -> (Vec<i64>, Vec<u32>) {
        let mut order: Vec<u32> = (0..self.ids.len() as u32).collect();
        order.sort_unstable_by_key(|number| self.ids[*number as usize]);
        let mut ranks = vec![0; order.len()];
        order.iter().enumerate().for_each(|(rank, number)| ranks[*number as usize] = rank as u32);
        (order.iter().map(|number| self.ids[*number as usize]).collect(), ranks)
    }
}

/// Words of a use: object, order, chunk and fragment, first and last row.
const WORDS: usize = 4;

/// The fragments of all objects, in any order.
#[derive(Debug)]
pub(crate) struct Uses {
    buckets: Mutex<Buckets>,
}

impl Uses {
    pub(crate) fn new(buckets: Buckets) -> Self {
        Self { buckets: Mutex::new(buckets) }
    }

    /// Records the fragments of a chunk.
    pub(crate) fn add(&self, chunk: u32, uses: &[FragmentUse]) -> Result<()> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        for own in uses {
            let words = [own.object, own.order, pair(chunk, own.fragment), pair(own.first, own.last)];
            buckets.push((own.object / PER_CHUNK) as usize, record::<WORDS>(words).as_flattened())?;
        }
        Ok(())
    }
}

/// A chunk and a row in it.
pub(crate) type VertexPlace = (u32, u32);

/// Writes ids and manifests. `crossing` receives the last row of a fragment and the first of the next in its object, if that lies
/// in another chunk.
pub(crate) fn write_index(
    level: &mut LevelSink<'_>,
    ids: &[i64],
    uses: Uses,
    coords: &[Coord],
    crossing: &mut dyn FnMut(VertexPlace, VertexPlace) -> Result<()>,
) -> Result<()> {
    let count = ids.len() as u64;
    let uses = uses.buckets.into_inner().unwrap_or_else(PoisonError::into_inner).gathered();
    // The group comes first in the tree, but its attributes are only known at the end.
    let manifests = level.rows("object_index/manifests", count, PER_CHUNK, &json!({}))?;
    let blocks = count.div_ceil(PER_CHUNK) as usize;
    let mut present = 0;
    for part in (0..blocks).collect::<Vec<_>>().chunks(4 * rayon::current_num_threads().max(1)) {
        let done: Vec<(usize, Vec<(VertexPlace, VertexPlace)>)> = part
            .par_iter()
            .map(|block| {
                let first = *block as u64 * PER_CHUNK;
                let made = manifests_of(first, (count - first).min(PER_CHUNK), &uses.take(*block)?, coords)?;
                let at: ChunkCoord = [*block as u64].as_slice().into();
                manifests.write(&at, manifests.encode(&at, &Elements::variable(&made.rows))?)?;
                Ok((made.present, made.crossings))
            })
            .collect::<Result<_>>()?;
        for (own, crossings) in done {
            present += own;
            crossings.into_iter().try_for_each(|(from, to)| crossing(from, to))?;
        }
    }
    write_ids(level, ids, present)
}

fn write_ids(level: &mut LevelSink<'_>, ids: &[i64], present: usize) -> Result<()> {
    let count = ids.len() as u64;
    let rank = json!({
        "zv_array": "object_index", "num_objects": count, "num_present": present, "sid_ndim": level.rank,
        "layout": "vlen_manifests_v2", "object_ids_sorted": true,
    });
    level.group("object_index", &rank)?;
    let mut spec = ArraySpec::new(DType::Int64, Grid::single(&[count]));
    spec.filters = level.filters();
    let array = level.sink.array(&format!("{}/object_index/object_ids", level.path), &spec)?;
    let first: ChunkCoord = [0].as_slice().into();
    let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_ne_bytes()).collect();
    array.write(&first, array.encode(&first, &Elements::fixed(bytes))?)
}

struct Manifests {
    rows: Vec<Vec<u8>>,
    present: usize,
    crossings: Vec<(VertexPlace, VertexPlace)>,
}

fn manifests_of(first: u64, count: u64, uses: &[u8], coords: &[Coord]) -> Result<Manifests> {
    let mut made = Manifests { rows: vec![vec![0; 4]; count as usize], present: 0, crossings: Vec::new() };
    let (mut sorted, ends) = by_object(first, count as usize, uses);
    let mut start = 0;
    for (end, row) in ends.into_iter().zip(&mut made.rows) {
        let own = &mut sorted[start..end];
        start = end;
        own.sort_unstable();
        let halves = |word: u64| ((word >> 32) as u32, word as u32);
        let mut encoder = manifest::Encoder::default();
        let mut last: Option<(u64, u64)> = None;
        for [_, at, rows] in own.iter() {
            // At coarser levels, consecutive vertices may fall into the same bin.
            if last.is_some_and(|last| last.0 == *at) {
                continue;
            }
            let (chunk, fragment) = halves(*at);
            encoder.add(chunk, &coords[chunk as usize], fragment.into())?;
            if let Some((before, rows_before)) = last.filter(|last| halves(last.0).0 != chunk) {
                made.crossings.push(((halves(before).0, halves(rows_before).1), (chunk, halves(*rows).0)));
            }
            last = Some((*at, *rows));
        }
        if last.is_some() {
            made.present += 1;
            *row = encoder.finish();
        }
    }
    Ok(made)
}

/// The uses of each object, without its number, and the end of each object's uses.
fn by_object(first: u64, count: usize, uses: &[u8]) -> (Vec<[u64; WORDS - 1]>, Vec<usize>) {
    let all = || uses.chunks_exact(8 * WORDS).map(words::<WORDS>);
    let row = |object: u64| ((object - first) as usize).min(count.saturating_sub(1));
    let mut starts = vec![0; count + 1];
    all().for_each(|words| starts[row(words[0]) + 1] += 1);
    (0..count).for_each(|at| starts[at + 1] += starts[at]);
    let mut sorted = vec![[0; WORDS - 1]; starts[count]];
    for [object, rest @ ..] in all() {
        let at = &mut starts[row(object)];
        sorted[*at] = rest;
        *at += 1;
    }
    // Each start has moved to its object's end.
    starts.truncate(count);
    (sorted, starts)
}

/// Groups of objects, by id.
pub(crate) fn write_groups(level: &mut LevelSink<'_>, groups: &[Vec<i64>]) -> Result<()> {
    if groups.is_empty() {
        return Ok(());
    }
    let count = groups.len() as u64;
    let array = level.rows("groups", count, count, &json!({"zv_array": "groups", "num_groups": count}))?;
    let rows: Vec<Vec<u8>> =
        groups.iter().map(|ids| ids.iter().flat_map(|id| id.to_le_bytes()).collect()).collect();
    let at: ChunkCoord = [0].as_slice().into();
    array.write(&at, array.encode(&at, &Elements::variable(&rows))?)
}

/// Rows per array chunk of object attributes, as in other writers.
const ATTRIBUTE_ROWS: u64 = 65536;

/// An attribute of all objects, in the order of their index.
pub(crate) fn write_attribute(level: &mut LevelSink<'_>, name: &str, values: &Values) -> Result<()> {
    hyperslab_zarr::NODE_NAMES.name("Zarr Vectors", name)?;
    let mut chunk = values.shape.to_vec();
    if let Some(first) = chunk.first_mut() {
        *first = (*first).clamp(1, ATTRIBUTE_ROWS);
    }
    let mut spec = ArraySpec::new(values.dtype.clone(), Grid::new(&values.shape, &chunk)?);
    spec.fill = absent(&values.dtype);
    spec.filters = level.filters();
    spec.attributes = super::cells::json_attributes(&json!({
        "zv_array": "object_attribute", "name": name, "dtype": values.dtype.to_string(),
        "shape": values.shape.as_slice(), "fill_sentinel_meaning": "absent",
    }));
    level.add_extras(&format!("object_attributes/{name}"), &mut spec.attributes);
    let array = level.sink.array(&format!("{}/object_attributes/{name}", level.path), &spec)?;
    let rows = values.shape.first().copied().unwrap_or(0);
    let bytes = values.elements.as_fixed();
    let bytes =
        bytes.ok_or_else(|| Error::invalid(format!("the object attribute {name:?} of {}", values.dtype)))?;
    let row = if rows == 0 { 0 } else { bytes.len() / rows as usize };
    for (number, start) in (0..rows).step_by(chunk[0] as usize).enumerate() {
        let end = (start + chunk[0]).min(rows);
        let part = bytes.slice(start as usize * row..end as usize * row);
        let at: ChunkCoord = std::iter::once(number as u64).chain(chunk[1..].iter().map(|_| 0)).collect();
        array.write(&at, array.encode(&at, &Elements::fixed(part))?)?;
    }
    Ok(())
}

/// An attribute of some objects.
#[derive(Debug)]
pub(crate) struct ObjectColumn {
    pub(crate) name: String,
    /// The objects, in the order of the rows; `None` for all of them in ascending order of their ids.
    pub(crate) ids: Option<Vec<i64>>,
    pub(crate) values: Values,
}

/// The attributes of all objects. An object without a value has the one that marks absence.
pub(crate) fn joined_columns(columns: Vec<ObjectColumn>, ids: &[i64]) -> Result<Vec<(String, Values)>> {
    let mut joined: Vec<(String, Values)> = Vec::new();
    for column in columns {
        let ObjectColumn { name, ids: own, values } = column;
        let own = own.as_deref().unwrap_or(ids);
        let wrong = |problem: String| Error::invalid(format!("the object attribute {name:?} {problem}"));
        if values.shape.first().copied() != Some(own.len() as u64) || values.shape.len() > 2 {
            return Err(wrong(format!("of the shape {:?} for {} objects", values.shape, own.len())));
        }
        let before = joined.iter().position(|(other, _)| *other == name);
        let mut shape = values.shape.clone();
        shape[0] = ids.len() as u64;
        if let Some((_, other)) = before.map(|at| &joined[at])
            && (other.dtype != values.dtype || other.shape != shape)
        {
            return Err(wrong(format!(
                "is {} in the store, but {} in the added data",
                other.dtype, values.dtype
            )));
        }
        let bytes = values.elements.as_fixed().filter(|_| values.elements.validity.is_none());
        let bytes = bytes.ok_or_else(|| wrong(format!("of {}", values.dtype)))?;
        let (item, size) = (values.dtype.size().unwrap_or(1), bytes.len() / own.len().max(1));
        let mut all = match before {
            Some(at) => joined.remove(at).1.elements.as_fixed().map_or_else(Vec::new, |all| all.to_vec()),
            None => absent_bytes(&values.dtype)
                .unwrap_or_else(|| vec![0; item])
                .repeat(size / item.max(1) * ids.len()),
        };
        for (id, row) in own.iter().zip(bytes.chunks_exact(size.max(1))) {
            let at = ids.binary_search(id).map_err(|_| wrong(format!("names the unknown object {id}")))?;
            all[at * size..(at + 1) * size].copy_from_slice(row);
        }
        joined.push((name, Values::new(values.dtype, &shape, Elements::fixed(all))?));
    }
    Ok(joined)
}

/// The value that marks an absent attribute: NaN, the lowest signed or the highest unsigned number.
fn absent(dtype: &DType) -> Fill {
    absent_bytes(dtype).map_or(Fill::Zero, |bytes| Fill::Element(Elements::fixed(bytes)))
}

fn absent_bytes(dtype: &DType) -> Option<Vec<u8>> {
    Some(match dtype {
        DType::Float32 => f32::NAN.to_ne_bytes().to_vec(),
        DType::Float64 => f64::NAN.to_ne_bytes().to_vec(),
        DType::Int8 => vec![0x80],
        DType::Int16 => i16::MIN.to_ne_bytes().to_vec(),
        DType::Int32 => i32::MIN.to_ne_bytes().to_vec(),
        DType::Int64 => i64::MIN.to_ne_bytes().to_vec(),
        DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64 => vec![0xff; dtype.size().unwrap_or(1)],
        _ => return None,
    })
}
