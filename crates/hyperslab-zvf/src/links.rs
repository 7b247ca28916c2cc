//! Stored links: records of rows in one chunk or in several.

use std::sync::Arc;

use bytes::Bytes;
use hyperslab_core::{DType, Error, Fields, Place, Result, Store};
use hyperslab_zarr::ZarrStore;
use serde_json::Value;

use crate::cells::CellArray;
use crate::coord::{Coord, parse_segment, segment_name};
use crate::fragment::FragmentIndex;
use crate::level::Level;
use crate::meta::corrupt;
use crate::older;

/// The maximum number of endpoints of one link.
const MAX_WIDTH: usize = 16;

/// The links within one level, `links/0`, or from it to another one, `links/+1`.
#[derive(Debug)]
pub(crate) struct Links {
    /// The level of all ends after the first, relative to this one.
    pub(crate) delta: i64,
    pub(crate) width: usize,
    pub(crate) directed: bool,
    duplicate: bool,
    /// The declared number of links.
    pub(crate) count: Option<u64>,
    pub(crate) segments: Vec<Segment>,
    /// The rows that are links, in arrays of links within a chunk.
    groups: Option<CellArray>,
}

/// The links whose endpoints lie in chunks with the same relative offsets.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) cells: CellArray,
    /// The offsets from the first endpoint's chunk to the others.
    pub(crate) offsets: Vec<Coord>,
    permuted: bool,
    /// The type of stored rows.
    integer: Integer,
}

/// An integer type: its size in bytes and its signedness.
#[derive(Debug, Clone, Copy)]
struct Integer {
    size: usize,
    signed: bool,
}

impl Integer {
    const INT64: Self = Self { size: 8, signed: true };

    /// The type with this name, such as `uint32`.
    fn named(name: &str) -> Option<Self> {
        let dtype = crate::meta::dtype(name)?;
        let signed = matches!(dtype, DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64);
        let unsigned = matches!(dtype, DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64);
        if signed || unsigned { Some(Self { size: dtype.size()?, signed }) } else { None }
    }

    /// A little-endian number of this type.
    fn read(self, word: &[u8]) -> i128 {
        let negative = self.signed && word.last().is_some_and(|byte| *byte >= 0x80);
        let mut wide = [if negative { 0xff } else { 0 }; 16];
        wide[..word.len()].copy_from_slice(word);
        i128::from_le_bytes(wide)
    }
}

impl Segment {
    /// Links with 64-bit rows in the order given to the writer.
    pub(crate) const fn plain(cells: CellArray, offsets: Vec<Coord>) -> Self {
        Self { cells, offsets, permuted: false, integer: Integer::INT64 }
    }

    /// Links with rows of the type that the cells declare.
    pub(crate) fn new(cells: CellArray, offsets: Vec<Coord>, permuted: bool) -> Result<Self> {
        let integer = match cells.attributes.get("dtype") {
            None => Integer::INT64,
            Some(name) => name
                .as_str()
                .and_then(Integer::named)
                .ok_or_else(|| Error::unsupported(cells.name(), format!("links of the type {name}")))?,
        };
        Ok(Self { cells, offsets, permuted, integer })
    }

    /// Bytes of one record of links with `width` endpoints.
    const fn record_size(&self, width: usize) -> usize {
        self.integer.size * (width + self.permuted as usize)
    }

    /// The chunk of an endpoint of a record in the cell of `source`.
    pub(crate) fn chunk_of(&self, source: &Coord, end: usize) -> Coord {
        match end.checked_sub(1).and_then(|k| self.offsets.get(k)) {
            None => source.clone(),
            Some(offset) => source.iter().zip(offset).map(|(at, by)| at.wrapping_add(*by)).collect(),
        }
    }

    /// Returns true if all endpoints are in one chunk.
    pub(crate) fn is_local(&self) -> bool {
        self.offsets.iter().all(|offset| offset.iter().all(|part| *part == 0))
    }
}

impl Links {
    /// Links within a level, in cells built by the reader.
    pub(crate) const fn arranged(width: usize, segments: Vec<Segment>, groups: Option<CellArray>) -> Self {
        Self { delta: 0, width, directed: false, duplicate: false, count: None, segments, groups }
    }

    /// The number of links: as declared, or otherwise counted.
    pub(crate) fn total(&self) -> Result<u64> {
        if let Some(count) = self.count {
            return Ok(count);
        }
        let mut total = 0;
        for segment in &self.segments {
            for chunk in segment.cells.chunks()? {
                total += self.records(segment, chunk)?.len() as u64;
            }
        }
        Ok(total)
    }

    /// The relative levels that a level's links lead to; 0 is the level itself.
    pub(crate) fn deltas(level: &Level) -> Result<Vec<i64>> {
        let names = level.members(&format!("{}/links", level.path))?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// The links of a level; `None` if it has none.
    pub(crate) fn open(level: &Level, delta: i64) -> Result<Option<Self>> {
        if level.is_older() {
            return if delta == 0 { older::links(level) } else { Ok(None) };
        }
        let (zarr, level) = (&level.zarr, level.path.as_str());
        let name = if delta == 0 { "0".to_owned() } else { format!("{delta:+}") };
        let family = format!("{level}/links/{name}");
        let Some(attributes) = zarr.group(&family)? else { return Ok(None) };
        let attributes = attributes.to_json();
        let wrong = |problem: String| corrupt(zarr.name(), &family[1..], problem);
        let number = |key: &str| attributes.get(key).and_then(Value::as_u64);
        let width = attributes.get("link_width");
        let width = link_width(width).ok_or_else(|| wrong(format!("link_width {width:?}")))?;
        let directed = attributes.get("directed").and_then(Value::as_bool).unwrap_or(false);
        let duplicate = match attributes.get("store").and_then(Value::as_str) {
            None | Some("canonical") => false,
            Some("duplicate") => true,
            Some(other) => return Err(wrong(format!("store {other:?}"))),
        };
        let mut segments = Vec::new();
        for name in zarr.children(&family)? {
            let path = format!("{family}/{name}");
            let Some(cells) = CellArray::open(zarr, &path)? else { continue };
            let offsets = parse_segment(&name, width, cells.rank());
            let offsets =
                offsets.ok_or_else(|| wrong(format!("the link array {name:?} for {width} endpoints")))?;
            let local = offsets.iter().all(|offset| offset.iter().all(|part| *part == 0));
            let permuted = !local && delta == 0 && (duplicate || !directed);
            if cells.attributes.get("has_perm").and_then(Value::as_bool).is_some_and(|own| own != permuted) {
                return Err(wrong(format!("has_perm of {name:?} contradicts directed and store")));
            }
            segments.push(Segment::new(cells, offsets, permuted)?);
        }
        let groups = match delta {
            0 => CellArray::open(zarr, &format!("{level}/link_fragments"))?,
            _ => None,
        };
        Ok(Some(Self { delta, width, directed, duplicate, count: number("num_links"), segments, groups }))
    }

    /// The records of one cell: for each, its number and its endpoints as (chunk, row), in the order given to the
    /// writer. Chunk 0 is the cell's own, and chunk `k` is the one at offset `k - 1`.
    pub(crate) fn records(&self, segment: &Segment, chunk: &Coord) -> Result<Vec<(usize, Record)>> {
        let Some(cell) = segment.cells.cell(chunk)? else { return Ok(Vec::new()) };
        let name = format!("{} chunk {}", segment.cells.name(), crate::coord::dotted(chunk));
        let place = Place::new(&name, "links", 0);
        let row = segment.record_size(self.width);
        let (data, kept) = if self.is_flat(segment) {
            let kept = self.local_rows(&cell, row, chunk)?;
            (cell.clone(), kept)
        } else {
            (inline_data(&cell, place)?, None)
        };
        if data.len() % row != 0 {
            return Err(place.corrupt(format!("{} bytes of records of {row}", data.len())));
        }
        let mut records = Vec::with_capacity(data.len() / row);
        let mut read = |number: usize| -> Result<()> {
            let bytes = &data[number * row..(number + 1) * row];
            records.push((number, self.record(segment, bytes, place.plus((number * row) as u64))?));
            Ok(())
        };
        match kept {
            None => (0..data.len() / row).try_for_each(&mut read)?,
            Some(rows) => rows.into_iter().try_for_each(|number| read(number as usize))?,
        }
        if self.duplicate {
            records.retain(|(_, record)| is_first_copy(segment, record));
        }
        Ok(records)
    }

    fn record(&self, segment: &Segment, bytes: &[u8], place: Place<'_>) -> Result<Record> {
        let mut numbers = bytes.chunks_exact(segment.integer.size).map(|word| segment.integer.read(word));
        let code = if segment.permuted { numbers.next().unwrap_or(0) } else { 0 };
        let mut stored = Record::with_capacity(self.width);
        for (k, row) in numbers.enumerate() {
            let row = u64::try_from(row).map_err(|_| place.corrupt(format!("a link to row {row}")))?;
            stored.push((k, row));
        }
        if !segment.permuted {
            return Ok(stored);
        }
        let order = i64::try_from(code).ok().and_then(|code| lehmer(code, self.width));
        let order = order.ok_or_else(|| place.corrupt(format!("permutation {code}")))?;
        let mut original = stored.clone();
        for (i, place) in order.into_iter().enumerate() {
            original[place] = stored[i];
        }
        Ok(original)
    }

    /// Returns true if cells hold only records, without a header.
    pub(crate) fn is_flat(&self, segment: &Segment) -> bool {
        self.delta == 0 && segment.is_local()
    }

    /// Returns true if there is an index of the records of this cell, which is required within a chunk.
    pub(crate) fn is_grouped(&self, chunk: &Coord) -> Result<bool> {
        match &self.groups {
            Some(groups) => Ok(groups.cell(chunk)?.is_some()),
            None => Ok(false),
        }
    }

    /// The number of records in a cell, named or not.
    pub(crate) fn stored(&self, segment: &Segment, chunk: &Coord) -> Result<usize> {
        let Some(cell) = segment.cells.cell(chunk)? else { return Ok(0) };
        let row = segment.record_size(self.width);
        let place = Place::new(segment.cells.name(), "links", 0);
        let data = if self.is_flat(segment) { cell.len() } else { inline_data(&cell, place)?.len() };
        Ok(data / row)
    }

    /// The rows named by the groups, each once; `None` if they name all rows in order.
    fn local_rows(&self, cell: &Bytes, row: usize, chunk: &Coord) -> Result<Option<Vec<u64>>> {
        let Some(groups) = &self.groups else { return Ok(None) };
        let Some(blob) = groups.cell(chunk)? else { return Ok(None) };
        let name = format!("{} chunk {}", groups.name(), crate::coord::dotted(chunk));
        let place = Place::new(&name, "fragment index", 0);
        let index = FragmentIndex::parse(blob, place)?;
        let rows = (cell.len() / row) as u64;
        index.check_rows(rows, place)?;
        if index.tiles(rows) {
            return Ok(None);
        }
        let mut seen = vec![false; rows as usize];
        let mut named = Vec::new();
        for row in (0..index.len()).filter_map(|f| index.rows(f)).flatten() {
            if !std::mem::replace(&mut seen[row as usize], true) {
                named.push(row);
            }
        }
        Ok(Some(named))
    }
}

/// An attribute of the links within one level: `link_attributes/<name>/0`.
#[derive(Debug)]
pub(crate) struct LinkAttribute {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    /// Values of a row; `None` for a plain column.
    pub(crate) width: Option<u64>,
    /// The cells, by the name of the link array.
    segments: Vec<(String, CellArray)>,
}

impl LinkAttribute {
    /// Opens all attributes of a level's links.
    pub(crate) fn open_all(level: &Level) -> Result<Vec<Self>> {
        if level.is_older() {
            return older::link_attributes(level);
        }
        let (zarr, level): (&Arc<ZarrStore>, _) = (&level.zarr, level.path.as_str());
        let family = format!("{level}/link_attributes");
        let mut attributes = Vec::new();
        if zarr.group(&family)?.is_none() {
            return Ok(attributes);
        }
        for name in zarr.children(&family)? {
            let own = format!("{family}/{name}/0");
            if zarr.group(&own)?.is_none() {
                continue;
            }
            let mut segments = Vec::new();
            for segment in zarr.children(&own)? {
                if let Some(cells) = CellArray::open(zarr, &format!("{own}/{segment}"))? {
                    segments.push((segment, cells));
                }
            }
            let Some((_, first)) = segments.first() else { continue };
            let shape = first.attributes.get("row_shape").and_then(Value::as_array);
            let width = if shape.is_none_or(Vec::is_empty) { None } else { first.row_width() };
            let dtype = first.dtype()?;
            attributes.push(Self::new(name, dtype, width, segments));
        }
        Ok(attributes)
    }

    /// An attribute with these cells, by the name of the link array.
    pub(crate) const fn new(
        name: String,
        dtype: DType,
        width: Option<u64>,
        segments: Vec<(String, CellArray)>,
    ) -> Self {
        Self { name, dtype, width, segments }
    }

    pub(crate) fn row_size(&self) -> usize {
        self.dtype.size().unwrap_or(1) * self.width.unwrap_or(1) as usize
    }

    /// The rows of a link array's cell, which must have `records` rows; `None` if there is no cell.
    pub(crate) fn cell(&self, segment: &Segment, chunk: &Coord, records: usize) -> Result<Option<Bytes>> {
        let name = segment_name(&segment.offsets);
        let Some((_, cells)) = self.segments.iter().find(|(own, _)| *own == name) else { return Ok(None) };
        let Some(cell) = cells.cell(chunk)? else { return Ok(None) };
        if cell.len() != records * self.row_size() {
            let place = format!("{} chunk {}", cells.name(), crate::coord::dotted(chunk));
            let problem = format!("{} bytes of {} for {records} links", cell.len(), self.dtype);
            return Err(Place::new(&place, "link attribute", 0).corrupt(problem));
        }
        Ok(Some(cell))
    }
}

/// The declared number of endpoints of a family of links.
pub(crate) fn link_width(declared: Option<&Value>) -> Option<usize> {
    let width = declared.and_then(Value::as_u64).and_then(|width| usize::try_from(width).ok());
    width.filter(|width| (1..=MAX_WIDTH).contains(width))
}

/// A link's endpoints: the chunk in its segment, and the row in that chunk.
pub(crate) type Record = Vec<(usize, u64)>;

/// A link is stored once per chunk that it touches. Only the copy in the lowest chunk counts.
fn is_first_copy(segment: &Segment, record: &Record) -> bool {
    let zero = |k: usize| if k == 0 { None } else { segment.offsets.get(k - 1) };
    record
        .iter()
        .filter_map(|(k, _)| zero(*k))
        .all(|offset| offset.iter().find(|part| **part != 0).is_none_or(|part| *part > 0))
}

/// Layout: `i64` number of groups, `i64` byte offset of each, then the records.
fn inline_data(cell: &Bytes, place: Place<'_>) -> Result<Bytes> {
    let mut fields = Fields::new(cell, place);
    let groups = fields.count_u64(8)?;
    let data = cell.len() - 8 * (groups + 1);
    let mut last = 0;
    for _ in 0..groups {
        let (at, offset) = (fields.place(), fields.u64()?);
        if offset < last || offset > data as u64 {
            return Err(at.corrupt(format!("a group at {offset} of {data} bytes, after {last}")));
        }
        last = offset;
    }
    Ok(cell.slice(cell.len() - data..))
}

/// The permutation with this Lehmer code: the position of each stored endpoint before sorting.
pub(crate) fn lehmer(code: i64, width: usize) -> Option<Vec<usize>> {
    let mut code = usize::try_from(code).ok()?;
    let mut left: Vec<usize> = (0..width).collect();
    let mut order = Vec::with_capacity(width);
    for i in 0..width {
        let below: usize = (1..width - i).product();
        let digit = code / below;
        code %= below;
        if digit >= left.len() {
            return None;
        }
        order.push(left.remove(digit));
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lehmer_codes_number_the_permutations() {
        assert_eq!((lehmer(0, 2), lehmer(1, 2), lehmer(2, 2)), (Some(vec![0, 1]), Some(vec![1, 0]), None));
        let all: Vec<_> = (0..6).map(|code| lehmer(code, 3).unwrap()).collect();
        assert_eq!(all, [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]);
        assert_eq!((lehmer(6, 3), lehmer(-1, 3)), (None, None));
    }

    #[test]
    fn rows_of_any_integer_type_are_read() {
        let read = |name: &str, word: &[u8]| Integer::named(name).map(|integer| integer.read(word));
        assert_eq!(read("int16", &[0xfe, 0xff]), Some(-2));
        assert_eq!(read("uint16", &[0xfe, 0xff]), Some(0xfffe));
        assert_eq!(read("int64", &[0xff; 8]), Some(-1));
        assert_eq!(read("uint64", &[0xff; 8]), Some(i128::from(u64::MAX)));
        assert_eq!(read("uint8", &[200]), Some(200));
        assert_eq!((read("float32", &[0; 4]), read("bool", &[0])), (None, None));
    }

    #[test]
    fn inline_groups_are_checked() {
        let place = Place::new("x.zv", "links", 0);
        let cell =
            |words: &[i64]| Bytes::from(words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
        assert_eq!(inline_data(&cell(&[1, 0, 7, 8]), place).unwrap(), cell(&[7, 8]));
        for words in [&[-1_i64, 0][..], &[9, 0], &[1, 99, 7], &[2, 8, 0, 7]] {
            assert!(inline_data(&cell(words), place).unwrap_err().is_corrupt(), "{words:?}");
        }
    }
}
