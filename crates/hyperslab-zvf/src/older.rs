//! The layouts of versions 0.6 and 0.7: links across chunks, objects, groups and attributes of objects.
//!
//! | part | 0.6 and 0.7 | since 0.9 |
//! |---|---|---|
//! | cells | an array of bytes per chunk, `vertices/0.1` | one array over the grid of chunks |
//! | links within a chunk | `links/0/<chunk>` | `links/0/<zero offsets>` |
//! | links across chunks | one list, `cross_chunk_links/0/data` | `links/0/<offsets>` |
//! | manifests | `object_index/manifests`; in 0.6 `object_index/data`, `offsets` | `object_index/manifests` |
//! | groups | `groups/data`, `offsets` | the array `groups` |
//! | attributes of objects | `object_attributes/<name>/data`, `present_mask` | the array `object_attributes/<name>` |

use std::collections::BTreeMap;

use bytes::Bytes;
use hyperslab_core::{Elements, Error, Place, Result, Store, Validity, Values};
use hyperslab_zarr::ZarrStore;
use serde_json::{Map, Value};

use crate::cells::{CellArray, byte_array};
use crate::coord::{Coord, segment_name};
use crate::level::Level;
use crate::links::{LinkAttribute, Links, Segment, link_width};
use crate::meta::{corrupt, dtype};
use crate::write::columns::swap_little_endian;

/// The links of a level.
pub(crate) fn links(level: &Level) -> Result<Option<Links>> {
    let family = format!("{}/links/0", level.path);
    let local = CellArray::open(&level.zarr, &family)?;
    let across = CrossLinks::open(level)?;
    let declared = local.as_ref().map(|local| local.attributes.get("link_width"));
    let width = match (declared, &across) {
        (Some(declared), _) => link_width(declared)
            .ok_or_else(|| corrupt(level.zarr.name(), &family[1..], format!("link_width {declared:?}")))?,
        (None, Some(across)) => across.width,
        (None, None) => return Ok(None),
    };
    let mut segments = Vec::new();
    if let Some(across) = across {
        if across.width != width {
            let problem = format!("links of {} endpoints beside links of {width}", across.width);
            return Err(corrupt(level.zarr.name(), "cross_chunk_links", problem));
        }
        segments = across.segments()?;
    }
    if let Some(local) = local {
        segments.push(Segment::new(local, zero_offsets(level, width), false)?);
    }
    let groups = CellArray::open(&level.zarr, &format!("{}/link_fragments", level.path))?;
    Ok(Some(Links::arranged(width, segments, groups)))
}

/// The attributes of the links of a level.
pub(crate) fn link_attributes(level: &Level) -> Result<Vec<LinkAttribute>> {
    let family = format!("{}/link_attributes", level.path);
    let across_family = format!("{}/cross_chunk_link_attributes", level.path);
    let mut names = Vec::new();
    for family in [&family, &across_family] {
        names.extend(level.members(family)?);
    }
    names.sort_unstable();
    names.dedup();
    let (across, width) = (CrossLinks::open(level)?, level.links()?.map_or(2, |links| links.width));
    let mut attributes = Vec::with_capacity(names.len());
    for name in names {
        let local = CellArray::open(&level.zarr, &format!("{family}/{name}/0"))?;
        let path = format!("{across_family}/{name}/0");
        let far = level.zarr.group(&path)?.map(|attributes| attributes.to_json());
        let declared = local.as_ref().map(|local| &local.attributes).or(far.as_ref());
        let Some(dtype) = declared.and_then(|own| own.get("dtype")?.as_str()).and_then(dtype) else {
            return Err(corrupt(level.zarr.name(), &path[1..], format!("the dtype of {name:?}")));
        };
        // Only the list of links across chunks declares a shape.
        let columns = far.as_ref().and_then(|far| far.get("shape")?.as_array()?.get(1)?.as_u64());
        let mut segments = Vec::new();
        if let (Some(across), Some(far)) = (&across, far) {
            let rows = byte_array(&level.zarr, &format!("{path}/data"))?.unwrap_or_default();
            segments = across.attribute(&rows, &far)?;
        }
        if let Some(local) = local {
            segments.push((segment_name(&zero_offsets(level, width)), local));
        }
        attributes.push(LinkAttribute::new(name, dtype, columns, segments));
    }
    Ok(attributes)
}

fn zero_offsets(level: &Level, width: usize) -> Vec<Coord> {
    vec![Coord::from_elem(0, level.vertices.rank()); width.saturating_sub(1)]
}

/// The list of links across chunks.
struct CrossLinks {
    name: String,
    width: usize,
    /// The ends of all links: their chunks and rows.
    ends: Vec<(Coord, u64)>,
}

/// The indices of links, by the offsets between their chunks, then by the chunk of the first end.
type Arrangement = BTreeMap<Vec<Coord>, BTreeMap<Coord, Vec<usize>>>;

impl CrossLinks {
    fn open(level: &Level) -> Result<Option<Self>> {
        let path = format!("{}/cross_chunk_links/0", level.path);
        let Some(attributes) = level.zarr.group(&path)? else { return Ok(None) };
        let attributes = attributes.to_json();
        let name = format!("{}{path}", level.zarr.name());
        let Some(data) = byte_array(&level.zarr, &format!("{path}/data"))? else {
            if level.zarr.children(&path)?.is_empty() {
                return Ok(None);
            }
            return Err(Error::unsupported(name, "links across chunks in the layout of Zarr Vectors 0.8"));
        };
        let wrong = |problem: String| Place::new(&name, "links across chunks", 0).corrupt(problem);
        let width = match attributes.get("link_width") {
            None => 2,
            declared => link_width(declared).ok_or_else(|| wrong(format!("link_width {declared:?}")))?,
        };
        let rank = level.vertices.rank();
        if attributes.get("sid_ndim").and_then(Value::as_u64).is_some_and(|own| own != rank as u64) {
            return Err(wrong(format!("sid_ndim of a grid of {rank} dimensions")));
        }
        let size = 8 * width * (rank + 1);
        if !data.len().is_multiple_of(size) {
            return Err(wrong(format!("{} bytes of records of {size}", data.len())));
        }
        let words: Vec<i64> = data.as_chunks::<8>().0.iter().map(|word| i64::from_le_bytes(*word)).collect();
        let end = |words: &[i64]| {
            let row =
                u64::try_from(words[rank]).map_err(|_| wrong(format!("a link to row {}", words[rank])))?;
            Ok((words[..rank].into(), row))
        };
        let ends = words.chunks_exact(rank + 1).map(end).collect::<Result<_>>()?;
        Ok(Some(Self { name, width, ends }))
    }

    fn arrangement(&self) -> Result<Arrangement> {
        let mut arrangement = Arrangement::new();
        for (number, link) in self.ends.chunks_exact(self.width).enumerate() {
            let source = &link[0].0;
            let offset = |end: &(Coord, u64)| -> Coord {
                end.0.iter().zip(source).map(|(to, from)| to.wrapping_sub(*from)).collect()
            };
            let offsets: Vec<Coord> = link[1..].iter().map(offset).collect();
            if offsets.iter().flatten().all(|part| *part == 0) {
                let problem = format!("link {number} stays in one chunk");
                return Err(Place::new(&self.name, "links across chunks", 0).corrupt(problem));
            }
            arrangement.entry(offsets).or_default().entry(source.clone()).or_default().push(number);
        }
        Ok(arrangement)
    }

    /// The links as arrays with one cell per chunk. Each cell has a single group.
    fn segments(&self) -> Result<Vec<Segment>> {
        let mut segments = Vec::new();
        for (offsets, sources) in self.arrangement()? {
            let cell = |numbers: Vec<usize>| -> Bytes {
                let links = numbers.into_iter().map(|number| &self.ends[number * self.width..][..self.width]);
                let rows = links.flatten().map(|(_, row)| *row);
                [1, 0].into_iter().chain(rows).flat_map(u64::to_le_bytes).collect()
            };
            let cells = sources.into_iter().map(|(source, numbers)| (source, cell(numbers))).collect();
            let cells = CellArray::in_memory(self.name.clone(), cells, Map::new())?;
            segments.push(Segment::plain(cells, offsets));
        }
        Ok(segments)
    }

    /// The rows of an attribute, one per link, in the cells of the links.
    fn attribute(&self, rows: &[u8], attributes: &Map<String, Value>) -> Result<Vec<(String, CellArray)>> {
        let count = self.ends.len() / self.width;
        let size = rows.len().checked_div(count).unwrap_or(0);
        if size * count != rows.len() {
            let problem = format!("{} bytes of an attribute for {count} links", rows.len());
            return Err(Place::new(&self.name, "link attribute", 0).corrupt(problem));
        }
        let mut segments = Vec::new();
        for (offsets, sources) in self.arrangement()? {
            let cell = |numbers: Vec<usize>| -> Bytes {
                numbers.into_iter().flat_map(|number| &rows[number * size..][..size]).copied().collect()
            };
            let cells = sources.into_iter().map(|(source, numbers)| (source, cell(numbers))).collect();
            let cells = CellArray::in_memory(self.name.clone(), cells, attributes.clone())?;
            segments.push((segment_name(&offsets), cells));
        }
        Ok(segments)
    }
}

/// Concatenated byte strings, with the start of each.
#[derive(Debug)]
pub(crate) struct Strings {
    data: Bytes,
    starts: Vec<usize>,
}

impl Strings {
    /// The strings in `data` and `offsets` of a group; `None` if they do not exist.
    pub(crate) fn open(zarr: &ZarrStore, path: &str) -> Result<Option<Self>> {
        let read = |name: &str| byte_array(zarr, &format!("{path}/{name}"));
        let (Some(data), Some(offsets)) = (read("data")?, read("offsets")?) else { return Ok(None) };
        let starts = offsets.as_chunks::<8>().0.iter().map(|word| i64::from_le_bytes(*word));
        let starts: Option<Vec<usize>> = starts.map(|start| usize::try_from(start).ok()).collect();
        let ascending = |starts: &Vec<usize>| {
            starts.windows(2).all(|pair| pair[0] <= pair[1])
                && starts.last().is_none_or(|last| *last <= data.len())
        };
        match starts.filter(ascending).filter(|_| offsets.len().is_multiple_of(8)) {
            Some(starts) => Ok(Some(Self { data, starts })),
            None => Err(corrupt(zarr.name(), &path[1..], format!("offsets into {} bytes", data.len()))),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<Bytes> {
        let start = *self.starts.get(index)?;
        Some(self.data.slice(start..self.starts.get(index + 1).copied().unwrap_or(self.data.len())))
    }
}

/// The attribute of all objects at a path; `None` if it does not exist.
pub(crate) fn object_attribute(zarr: &ZarrStore, path: &str) -> Result<Option<Values>> {
    let Some(attributes) = zarr.group(path)? else { return Ok(None) };
    let attributes = attributes.to_json();
    let wrong = |problem: &str| corrupt(zarr.name(), &path[1..], problem);
    let own = attributes.get("dtype").and_then(Value::as_str).and_then(dtype);
    let own = own.ok_or_else(|| wrong("dtype"))?;
    let shape = attributes.get("shape").and_then(Value::as_array);
    let shape: Option<Vec<u64>> = shape.and_then(|shape| shape.iter().map(Value::as_u64).collect());
    let shape = shape.filter(|shape| (1..=2).contains(&shape.len())).ok_or_else(|| wrong("shape"))?;
    let mut bytes = byte_array(zarr, &format!("{path}/data"))?.unwrap_or_default().to_vec();
    swap_little_endian(&own, &mut bytes);
    let mask = byte_array(zarr, &format!("{path}/present_mask"))?;
    if mask.as_ref().is_some_and(|mask| mask.len() as u64 != shape[0]) {
        return Err(wrong("present_mask"));
    }
    let columns = shape.get(1).copied().unwrap_or(1) as usize;
    let present = mask.filter(|mask| mask.contains(&0)).map(|mask| {
        Validity::from_flags(mask.iter().flat_map(|there| std::iter::repeat_n(*there != 0, columns)))
    });
    Values::new(own, &shape, Elements::fixed(bytes).with_validity(present))
        .map(Some)
        .map_err(|error| wrong(&error.to_string()))
}
