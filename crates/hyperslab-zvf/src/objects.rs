//! Objects: ids, manifests, groups.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use hyperslab_core::{
    Array, Attribute, Budget, DType, Elements, Error, Place, Positions, Result, Store, Values, read_serial,
};
use hyperslab_zarr::{ZarrArray, ZarrStore};
use serde_json::Value;

use crate::coord::Coord;
use crate::level::Level;
use crate::manifest::{self, Block, Fragments};
use crate::manifests::{ChunkBox, Manifests};
use crate::meta::corrupt;
use crate::older::{self, Strings};

/// The number of cached chunks of manifests.
const KEPT_CHUNKS: usize = 16;
/// Up to this many objects may be claimed without manifests.
const MANY: u64 = 1 << 20;
/// The maximum number of manifests per stored byte. An empty one has four bytes before compression.
const MANIFESTS_PER_BYTE: u64 = 1 << 15;

/// The objects of a level.
#[derive(Debug)]
pub(crate) struct Objects {
    name: String,
    count: u64,
    present: Option<u64>,
    /// The chunks that manifests may name.
    chunks: ChunkBox,
    manifests: Source,
    /// Ids by row; `None` if an object's id is its row.
    ids: Option<ZarrArray>,
    table: OnceLock<Ids>,
    /// Decoded chunks of the manifests.
    kept: Mutex<HashMap<u64, Manifests>>,
    by_chunk: OnceLock<HashMap<Coord, Vec<Use>>>,
}

/// The location of the manifests.
#[derive(Debug)]
enum Source {
    Array(Box<ZarrArray>),
    /// In one blob, as in version 0.6.
    Strings(Strings),
    /// Not stored. By the identity convention, fragment `i` of this chunk is object `i`.
    Only(Coord),
}

#[derive(Debug)]
struct Ids {
    ids: Vec<i64>,
    /// The row of each id; `None` if the ids ascend and can be searched.
    rows: Option<HashMap<i64, u64>>,
}

/// Fragments of one chunk, and their position in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Use {
    /// The object's row.
    pub(crate) object: u64,
    /// The position of the first one among the object's fragments.
    pub(crate) ordinal: u64,
    pub(crate) fragments: Fragments,
}

impl Objects {
    /// The objects of the level whose group is `level`; `None` if it has none.
    pub(crate) fn open(zarr: &ZarrStore, level: &str, chunks: ChunkBox) -> Result<Option<Self>> {
        let path = format!("{level}/object_index");
        let Some(attributes) = zarr.group(&path)? else { return Ok(None) };
        let attributes = attributes.to_json();
        let name = format!("{}{path}", zarr.name());
        let number = |key: &str| attributes.get(key).and_then(Value::as_u64);
        let layout = attributes.get("layout").and_then(Value::as_str);
        let strings = if layout.is_none() { Strings::open(zarr, &path)? } else { None };
        if let Some(strings) = strings {
            let count = strings.len() as u64;
            let source = Source::Strings(strings);
            return Ok(Some(Self::new(name, count, chunks, source, None, None)));
        }
        let with_ids = match layout {
            Some("vlen_manifests_v1") => false,
            Some("vlen_manifests_v2") => true,
            other => return Err(Error::unsupported(name, format!("the object index layout {other:?}"))),
        };
        let manifests = zarr.array(&format!("{path}/manifests"))?;
        let schema = manifests.schema();
        if schema.dtype != DType::Bytes || schema.grid.rank() != 1 {
            return Err(corrupt(&name, "manifests", format!("an array of {}", schema.dtype)));
        }
        let count = schema.shape()[0];
        // Every object is visited, even if its manifest was never written.
        if count > MANY && count / MANIFESTS_PER_BYTE > manifests.usage()?.bytes {
            return Err(corrupt(&name, "manifests", format!("{count} objects, almost none of them stored")));
        }
        if number("num_objects").is_some_and(|own| own != count) {
            return Err(corrupt(
                &name,
                "zarr.json",
                format!("num_objects of {count} manifests is {:?}", number("num_objects")),
            ));
        }
        let rank = number("sid_ndim").map_or(Ok(chunks.rank()), |own| {
            usize::try_from(own)
                .ok()
                .filter(|own| (1..=17).contains(own))
                .ok_or_else(|| corrupt(&name, "zarr.json", "sid_ndim"))
        })?;
        // Chunks outside the level's grid have no numbers in it.
        let chunks = if rank == chunks.rank() { chunks } else { ChunkBox::none(rank) };
        let ids = match zarr.array(&format!("{path}/object_ids")) {
            Ok(ids) if with_ids => Some(ids),
            Err(error) if !error.is_not_found() => return Err(error),
            _ => None,
        };
        if ids
            .as_ref()
            .is_some_and(|ids| ids.schema().shape() != [count] || ids.schema().dtype != DType::Int64)
        {
            return Err(corrupt(&name, "object_ids", format!("not {count} int64")));
        }
        let source = Source::Array(Box::new(manifests));
        Ok(Some(Self::new(name, count, chunks, source, ids, number("num_present"))))
    }

    fn new(
        name: String,
        count: u64,
        chunks: ChunkBox,
        manifests: Source,
        ids: Option<ZarrArray>,
        present: Option<u64>,
    ) -> Self {
        let (table, kept, by_chunk) = (OnceLock::new(), Mutex::default(), OnceLock::new());
        Self { name, count, present, chunks, manifests, ids, table, kept, by_chunk }
    }

    /// The convention without an index: object `i` is fragment `i` of the only chunk.
    pub(crate) fn identity(name: &str, chunk: Coord, fragments: u64) -> Self {
        let chunks = ChunkBox::none(chunk.len());
        Self::new(name.to_owned(), fragments, chunks, Source::Only(chunk), None, None)
    }

    /// The number of rows of the index, including objects that are absent at this level.
    pub(crate) const fn len(&self) -> u64 {
        self.count
    }

    /// The number of objects that have fragments here, according to the index.
    pub(crate) fn present(&self) -> u64 {
        self.present.unwrap_or(self.count)
    }

    /// The declared number of objects.
    pub(crate) const fn declared_present(&self) -> Option<u64> {
        self.present
    }

    fn table(&self) -> Result<Option<&Ids>> {
        let Some(array) = &self.ids else { return Ok(None) };
        if let Some(table) = self.table.get() {
            return Ok(Some(table));
        }
        let values = read_serial(array, Positions::whole(array.schema().shape()))?;
        let bytes = values.elements.as_fixed().map_or(&[][..], |bytes| bytes.as_ref());
        let ids: Vec<i64> = bytes.as_chunks::<8>().0.iter().map(|id| i64::from_ne_bytes(*id)).collect();
        let ascending = ids.windows(2).all(|pair| pair[0] < pair[1]);
        let rows = || ids.iter().enumerate().map(|(row, id)| (*id, row as u64)).collect();
        let rows = if ascending { None } else { Some(rows()) };
        Ok(Some(self.table.get_or_init(|| Ids { ids, rows })))
    }

    /// The id of a row.
    pub(crate) fn id(&self, row: u64) -> Result<i64> {
        Ok(match self.table()? {
            Some(table) => table.ids.get(row as usize).copied().unwrap_or(row as i64),
            None => row as i64,
        })
    }

    /// The row of an id.
    pub(crate) fn row(&self, id: i64) -> Result<u64> {
        let row = match self.table()? {
            Some(Ids { rows: Some(rows), .. }) => rows.get(&id).copied(),
            Some(Ids { ids, rows: None }) => ids.binary_search(&id).ok().map(|row| row as u64),
            None => u64::try_from(id).ok().filter(|row| *row < self.count),
        };
        row.ok_or_else(|| Error::invalid(format!("{}: there is no object {id}", self.name)))
    }

    /// The fragments of an object, in order.
    pub(crate) fn manifest(&self, row: u64) -> Result<Vec<Block>> {
        let store = || Ok::<_, Error>(format!("{} object {}", self.name, self.id(row)?));
        let array = match &self.manifests {
            Source::Array(array) => array,
            Source::Only(only) => {
                return Ok(vec![Block { chunk: only.clone(), fragments: Fragments::One(row) }]);
            }
            Source::Strings(strings) => {
                let stored = strings.get(row as usize).unwrap_or_default();
                return manifest::parse(&stored, self.chunks.rank(), Place::new(&store()?, "manifest", 0));
            }
        };
        let each = array.schema().grid.chunk_shape()[0];
        let store = store()?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let number = row / each;
        let stream = || array.element_stream(&[number].as_slice().into());
        if !kept.contains_key(&number) {
            if kept.len() >= KEPT_CHUNKS {
                kept.clear();
            }
            kept.insert(number, Manifests::new(stream()?, self.chunks.clone()));
        }
        let Some(manifests) = kept.get_mut(&number) else { return Ok(Vec::new()) };
        manifests.get((row % each) as usize, Place::new(&store, "manifest", 0), stream)
    }

    /// The objects that use the fragments of each chunk. Built once, from all manifests.
    pub(crate) fn by_chunk(&self) -> Result<&HashMap<Coord, Vec<Use>>> {
        if let Some(by_chunk) = self.by_chunk.get() {
            return Ok(by_chunk);
        }
        let mut by_chunk: HashMap<Coord, Vec<Use>> = HashMap::new();
        for object in 0..self.count {
            let mut ordinal = 0_u64;
            for block in self.manifest(object)? {
                // Keep runs as runs, because only the chunk's own index shows whether their length is plausible.
                let (next, fragments) = (ordinal.saturating_add(block.fragments.len()), block.fragments);
                by_chunk.entry(block.chunk).or_default().push(Use { object, ordinal, fragments });
                ordinal = next;
            }
        }
        Ok(self.by_chunk.get_or_init(|| by_chunk))
    }
}

/// The attributes of these objects, by name, one row per object in this order.
pub(crate) fn attributes(level: &Level, ids: &[i64]) -> Result<Vec<(String, Values)>> {
    let family = format!("{}/object_attributes", level.path);
    let Some(objects) = level.objects()? else { return Ok(Vec::new()) };
    let names = level.members(&family)?;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let rows = ids.iter().map(|id| objects.row(*id)).collect::<Result<Vec<u64>>>()?;
    let mut attributes = Vec::new();
    for name in names {
        let path = format!("{family}/{name}");
        let all = if level.is_older() { older::object_attribute(&level.zarr, &path)? } else { None };
        let all = match all {
            Some(all) => all,
            None => {
                let array = level.zarr.array(&path)?;
                read_serial(&array, Positions::whole(array.schema().shape()))?
            }
        };
        let shape = all.shape.to_vec();
        if shape.first().copied() != Some(objects.len()) || shape.len() > 2 {
            let problem = format!("{:?} rows for {} objects", shape, objects.len());
            return Err(corrupt(&format!("{}{path}", level.zarr.name()), "object attribute", problem));
        }
        let each = shape.get(1).copied().unwrap_or(1);
        let cells = rows.iter().flat_map(|row| (0..each).map(move |part| (0, (row * each + part) as usize)));
        let picks: Vec<(usize, usize)> = cells.collect();
        let elements = Elements::gather(&all.dtype, &[&all.elements], &picks)?;
        let shape: Vec<u64> = std::iter::once(ids.len() as u64).chain(shape.get(1).copied()).collect();
        attributes.push((name, Values::new(all.dtype, &shape, elements)?));
    }
    Ok(attributes)
}

/// The groups of a level.
enum Groups {
    Array(Box<ZarrArray>),
    /// In one blob, as in versions 0.6 and 0.7.
    Strings(Strings),
}

impl Groups {
    /// The groups of a level; `None` if it has none.
    fn open(zarr: &ZarrStore, level: &str) -> Result<Option<Self>> {
        let path = format!("{level}/groups");
        let array = match zarr.array(&path) {
            Ok(array) => array,
            Err(error) if error.is_not_found() => {
                return Ok(Strings::open(zarr, &path)?.map(Self::Strings));
            }
            Err(error) => return Err(error),
        };
        let schema = array.schema();
        if schema.dtype != DType::Bytes || schema.grid.rank() != 1 {
            return Err(corrupt(array.name(), "groups", format!("an array of {}", schema.dtype)));
        }
        Ok(Some(Self::Array(Box::new(array))))
    }

    fn len(&self) -> u64 {
        match self {
            Self::Array(array) => array.schema().shape()[0],
            Self::Strings(strings) => strings.len() as u64,
        }
    }

    /// The ranges of ids that define groups, by the number of the group.
    fn ranges(&self) -> Option<Value> {
        let Self::Array(array) = self else { return None };
        match array.schema().attributes.get("group_ranges")? {
            Attribute::Json(ranges) => Some(ranges.clone()),
            other => Some(other.to_json()),
        }
    }

    fn stored(&self, group: u64) -> Result<Bytes> {
        match self {
            Self::Array(array) => {
                let region = hyperslab_core::Region::new(&[group], &[1]);
                let row = read_serial(&**array, Positions::region(&region))?;
                Ok(Bytes::copy_from_slice(row.elements.variable_at(0).unwrap_or_default()))
            }
            Self::Strings(strings) => Ok(strings.get(group as usize).unwrap_or_default()),
        }
    }
}

/// The number of groups of a level.
pub(crate) fn group_count(level: &Level) -> Result<u64> {
    Ok(Groups::open(&level.zarr, &level.path)?.map_or(0, |groups| groups.len()))
}

/// The ids of all groups.
pub(crate) fn groups(level: &Level) -> Result<Vec<Vec<i64>>> {
    let Some(groups) = Groups::open(&level.zarr, &level.path)? else { return Ok(Vec::new()) };
    let objects = level.objects()?.map_or(0, Objects::len);
    let budget = Budget::new(level.zarr.name(), objects.saturating_mul(8));
    let ranges = groups.ranges();
    (0..groups.len()).map(|number| ids_of(level, &groups, ranges.as_ref(), number, &budget)).collect()
}

/// The ids of the objects in a group.
pub(crate) fn group(level: &Level, group: u64) -> Result<Vec<i64>> {
    let groups = Groups::open(&level.zarr, &level.path)?.filter(|groups| group < groups.len());
    let Some(groups) = groups else {
        let level = format!("{}{}", level.zarr.name(), level.path);
        return Err(Error::invalid(format!("{level}: there is no group {group}")));
    };
    let objects = level.objects()?.map_or(0, Objects::len);
    let budget = Budget::new(level.zarr.name(), objects.saturating_mul(8));
    ids_of(level, &groups, groups.ranges().as_ref(), group, &budget)
}

/// The ids in a group. A range of ids takes no space in the store, so it draws on the budget.
fn ids_of(
    level: &Level,
    groups: &Groups,
    ranges: Option<&Value>,
    group: u64,
    budget: &Budget,
) -> Result<Vec<i64>> {
    let wrong = |problem: String| corrupt(&format!("{}{}", level.zarr.name(), level.path), "groups", problem);
    if let Some(range) = ranges.and_then(|ranges| ranges.get(group.to_string())) {
        let end = |i: usize| range.get(i).and_then(Value::as_i64);
        let (Some(start), Some(stop)) = (end(0), end(1)) else {
            return Err(wrong(format!("group_ranges of {group} is {range}")));
        };
        budget.allocate(stop.saturating_sub(start).max(0).unsigned_abs().saturating_mul(8), "group range")?;
        return Ok((start..stop).collect());
    }
    let bytes = groups.stored(group)?;
    if bytes.len() % 8 != 0 {
        return Err(wrong(format!("group {group} has {} bytes", bytes.len())));
    }
    Ok(bytes.as_chunks::<8>().0.iter().map(|id| i64::from_le_bytes(*id)).collect())
}
