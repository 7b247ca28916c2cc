//! Link arrays: assigns links to arrays and encodes their records.

use std::collections::{BTreeMap, HashMap};

use hyperslab_core::Result;
use serde_json::{Value, json};

use super::buckets::{Buckets, Gathered};
use super::cells::{CellSink, ChunkList, LevelSink};
use super::columns::ColumnSpec;
use super::objects::VertexPlace;
use crate::coord::{Coord, segment_name};
use crate::fragment::{self, Fragment};

/// The links of one family, sorted into arrays by the offsets between the chunks of their ends.
#[derive(Debug)]
pub(crate) struct Segments {
    width: usize,
    specs: Vec<ColumnSpec>,
    row_size: usize,
    /// The relative level of ends after the first; 0 for links within a level.
    delta: i64,
    numbers: HashMap<Vec<Coord>, usize>,
    list: Vec<Segment>,
    buckets: Buckets,
    next: usize,
    count: u64,
    /// Whether each link is stored only once, regardless of its direction.
    distinct: bool,
}

#[derive(Debug)]
struct Segment {
    offsets: Vec<Coord>,
    /// The bucket of each chunk's records.
    cells: BTreeMap<u32, usize>,
}

impl Segment {
    fn is_local(&self) -> bool {
        self.offsets.iter().all(|offset| offset.iter().all(|part| *part == 0))
    }
}

impl Segments {
    pub(crate) fn new(width: usize, specs: &[ColumnSpec], delta: i64, buckets: Buckets) -> Self {
        Self {
            width,
            specs: specs.to_vec(),
            row_size: specs.iter().map(ColumnSpec::row_size).sum(),
            delta,
            numbers: HashMap::new(),
            list: Vec::new(),
            buckets,
            next: 0,
            count: 0,
            distinct: false,
        }
    }

    /// Stores only the first of several links between the same vertices.
    pub(crate) const fn distinct(mut self) -> Self {
        self.distinct = true;
        self
    }

    pub(crate) const fn len(&self) -> u64 {
        self.count
    }

    /// Adds a link within the level. Within a chunk its ends stay in order; across chunks they are sorted by chunk and row, and
    /// the record starts with the number of the permutation that restores the order.
    pub(crate) fn add(&mut self, link: &[VertexPlace], coords: &[Coord], attributes: &[u8]) -> Result<()> {
        let local = link.iter().all(|end| end.0 == link[0].0);
        let mut order: Vec<usize> = (0..link.len()).collect();
        if !local {
            // Chunk numbers follow the order of their coordinates.
            order.sort_by_key(|k| link[*k]);
        }
        let first = &coords[link[order[0]].0 as usize];
        let offset = |k: &usize| difference(&coords[link[*k].0 as usize], first);
        let offsets: Vec<Coord> = order[1..].iter().map(offset).collect();
        let mut record: Vec<u8> = Vec::with_capacity(8 * (self.width + 1) + attributes.len());
        if !local {
            record.extend(lehmer_code(&order).to_le_bytes());
        }
        record.extend(order.iter().flat_map(|k| i64::from(link[*k].1).to_le_bytes()));
        self.put(offsets, link[order[0]].0, record, attributes)
    }

    /// Adds a link to another level: its first end is a row of `source`, the other a row of the chunk at `offset` from the
    /// source's position there.
    pub(crate) fn add_cross(&mut self, source: u32, offset: Coord, rows: [u32; 2]) -> Result<()> {
        let record = rows.iter().flat_map(|row| i64::from(*row).to_le_bytes()).collect();
        self.put(vec![offset], source, record, &[])
    }

    fn put(&mut self, offsets: Vec<Coord>, chunk: u32, mut record: Vec<u8>, attributes: &[u8]) -> Result<()> {
        let number = match self.numbers.get(&offsets) {
            Some(number) => *number,
            None => {
                self.list.push(Segment { offsets: offsets.clone(), cells: BTreeMap::new() });
                self.numbers.insert(offsets, self.list.len() - 1);
                self.list.len() - 1
            }
        };
        let next = &mut self.next;
        let bucket = *self.list[number].cells.entry(chunk).or_insert_with(|| {
            *next += 1;
            *next - 1
        });
        record.extend_from_slice(attributes);
        self.count += 1;
        self.buckets.push(bucket, &record)
    }

    /// Writes all arrays of the family under `prefix`, which is `links/0` within a level. `starts` gives the first rows of each
    /// chunk's fragments.
    pub(crate) fn write(
        self,
        level: &mut LevelSink<'_>,
        prefix: &str,
        chunks: &ChunkList,
        starts: Option<&Gathered>,
    ) -> Result<()> {
        let buckets = self.buckets.gathered();
        let mut family = Family {
            prefix,
            width: self.width,
            delta: self.delta,
            specs: &self.specs,
            row_size: self.row_size,
            distinct: self.distinct,
            count: 0,
        };
        for segment in &self.list {
            family.write(segment, level, chunks, &buckets, starts)?;
        }
        let count = family.count;
        let own = json!({
            "zv_array": "links_family", "level_delta": self.delta, "link_width": self.width,
            "directed": self.delta != 0, "store": "canonical", "sid_ndim": level.rank, "num_links": count,
            "num_physical_records": count,
        });
        level.group(prefix, &own)?;
        for spec in &self.specs {
            let own = json!({
                "zv_array": "link_attribute_family", "name": spec.name, "level_delta": self.delta,
                "num_links": count,
            });
            level.group(&format!("link_attributes/{}/{}", spec.name, self.delta), &own)?;
        }
        Ok(())
    }
}

/// The properties that all arrays of a family share.
struct Family<'a> {
    prefix: &'a str,
    width: usize,
    delta: i64,
    specs: &'a [ColumnSpec],
    row_size: usize,
    distinct: bool,
    count: u64,
}

impl Family<'_> {
    fn write(
        &mut self,
        segment: &Segment,
        level: &mut LevelSink<'_>,
        chunks: &ChunkList,
        buckets: &Gathered,
        starts: Option<&Gathered>,
    ) -> Result<()> {
        let local = segment.is_local() && self.delta == 0;
        let permuted = !local && self.delta == 0;
        let present = || segment.cells.keys().map(|chunk| *chunk as usize);
        let offsets: Vec<&[i64]> = segment.offsets.iter().map(|offset| offset.as_slice()).collect();
        let own = json!({
            "zv_array": "links", "dtype": "int64", "offsets": offsets, "has_perm": permuted,
            "link_width": self.width, "level_delta": self.delta,
        });
        let name = segment_name(&segment.offsets);
        let path = if self.prefix.is_empty() { name.clone() } else { format!("{}/{name}", self.prefix) };
        let links = level.cells(&path, &own, chunks, present())?;
        let index = json!({"zv_array": "link_fragments", "encoding": "fragment_index_v1"});
        let groups =
            if local { Some(level.cells("link_fragments", &index, chunks, present())?) } else { None };
        let mut columns = Vec::with_capacity(self.specs.len());
        for spec in self.specs {
            let own = self.attribute_document(spec, &offsets);
            let path = format!("link_attributes/{}/{}/{name}", spec.name, self.delta);
            columns.push(level.cells(&path, &own, chunks, present())?);
        }
        for (chunk, bucket) in &segment.cells {
            let coord = &chunks.coords[*chunk as usize];
            let ends = 8 * (self.width + usize::from(permuted));
            let bytes = buckets.take(*bucket)?;
            let mut records: Vec<&[u8]> = bytes.chunks_exact(ends + self.row_size).collect();
            if self.distinct {
                records = distinct(records, 8 * usize::from(permuted), ends);
            }
            self.count += records.len() as u64;
            if let Some(groups) = &groups {
                let starts = starts.map_or(Ok(Vec::new()), |starts| starts.take(*chunk as usize))?;
                put_groups(groups, coord, &mut records, &starts)?;
            }
            let mut cell = Vec::with_capacity(16 + ends * records.len());
            if !local {
                cell.extend(1_i64.to_le_bytes());
                cell.extend(0_i64.to_le_bytes());
            }
            records.iter().for_each(|record| cell.extend_from_slice(&record[..ends]));
            links.put(coord, &cell)?;
            let mut at = ends;
            for (spec, cells) in self.specs.iter().zip(&columns) {
                let size = spec.row_size();
                let rows = records.iter().flat_map(|record| &record[at..at + size]).copied();
                cells.put(coord, &rows.collect::<Vec<u8>>())?;
                at += size;
            }
        }
        Ok(())
    }

    fn attribute_document(&self, spec: &ColumnSpec, offsets: &[&[i64]]) -> Value {
        json!({
            "zv_array": "link_attribute", "name": spec.name, "dtype": spec.dtype.to_string(), "offsets": offsets,
            "level_delta": self.delta, "row_shape": spec.width.into_iter().collect::<Vec<u64>>(),
        })
    }
}

/// Keeps only the first of records with the same ends, in any order. The ends are the bytes from `first` to `last`.
fn distinct(records: Vec<&[u8]>, first: usize, last: usize) -> Vec<&[u8]> {
    let mut seen = std::collections::HashSet::with_capacity(records.len());
    let mut kept = records;
    kept.retain(|record| {
        let mut ends: smallvec::SmallVec<[[u8; 8]; 4]> = record[first..last].as_chunks::<8>().0.into();
        ends.sort_unstable();
        seen.insert(ends)
    });
    kept
}

/// Sorts the links inside a chunk by the fragment of their first row, and writes the groups.
fn put_groups(groups: &CellSink, coord: &Coord, records: &mut [&[u8]], starts: &[u8]) -> Result<()> {
    let starts: Vec<i64> = starts.as_chunks::<8>().0.iter().map(|start| i64::from_le_bytes(*start)).collect();
    let fragment_of = |record: &[u8]| {
        let row = record.first_chunk::<8>().map_or(0, |row| i64::from_le_bytes(*row));
        starts.partition_point(|start| *start <= row).saturating_sub(1)
    };
    records.sort_by_key(|record| fragment_of(record));
    let mut counts = vec![0_u64; starts.len().max(1)];
    records.iter().for_each(|record| counts[fragment_of(record)] += 1);
    let mut start = 0;
    let ranges: Vec<Fragment> = counts
        .into_iter()
        .map(|count| {
            start += count;
            Fragment::Range { start: start - count, count }
        })
        .collect();
    groups.put(coord, &fragment::encode(&ranges, records.len() as u64)?)
}

pub(crate) fn difference(to: &[i64], from: &[i64]) -> Coord {
    to.iter().zip(from).map(|(to, from)| to - from).collect()
}

/// The number of a permutation; the inverse of [`crate::links::lehmer`].
fn lehmer_code(order: &[usize]) -> i64 {
    let mut code = 0;
    for i in 0..order.len() {
        let smaller = order[i + 1..].iter().filter(|later| **later < order[i]).count();
        code = code * (order.len() - i) as i64 + smaller as i64;
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_match_the_reader() {
        for width in 1..5 {
            let all: i64 = (1..=width as i64).product();
            for code in 0..all {
                assert_eq!(lehmer_code(&crate::links::lehmer(code, width).unwrap()), code);
            }
        }
    }
}
