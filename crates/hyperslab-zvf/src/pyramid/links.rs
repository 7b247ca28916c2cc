//! Links of a coarser level: the links of the finer level, between the bins of their ends.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use hyperslab_core::{Place, Result};

use super::aggregate::NO_ROW;
use crate::coord::{Coord, dotted};
use crate::level::Level;
use crate::links::{Links, Segment};
use crate::write::buckets::Gathered;
use crate::write::forest;
use crate::write::segments::Segments;

/// Maps rows of the finer level to rows of the coarser one.
pub(super) struct RowMaps {
    maps: Gathered,
    /// The number of each finer chunk, by coordinate.
    pub(super) numbers: HashMap<Coord, usize>,
    pub(super) coarse: Vec<u32>,
    kept: Mutex<Kept>,
    memory: usize,
}

/// The maps read so far, and their size in bytes.
type Kept = (HashMap<usize, Arc<[u32]>>, usize);

impl RowMaps {
    pub(super) fn new(
        maps: Gathered,
        numbers: HashMap<Coord, usize>,
        coarse: Vec<u32>,
        memory: usize,
    ) -> Self {
        Self { maps, numbers, coarse, kept: Mutex::default(), memory }
    }

    /// The coarser row of each row of a chunk.
    pub(super) fn of(&self, chunk: usize) -> Result<Arc<[u32]>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(map) = kept.0.get(&chunk) {
            return Ok(Arc::clone(map));
        }
        let bytes = self.maps.copy(chunk)?;
        let map: Arc<[u32]> = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        kept.1 += bytes.len();
        if kept.1 > self.memory {
            *kept = (HashMap::new(), bytes.len());
        }
        kept.0.insert(chunk, Arc::clone(&map));
        Ok(map)
    }

    /// The coarser row for the end of a link; `None` if its row is in no fragment.
    fn end(&self, links: &Segment, source: &Coord, end: (usize, u64)) -> Result<Option<(u32, u32)>> {
        let coord = links.chunk_of(source, end.0);
        let wrong = |problem: String| {
            let name = format!("{} chunk {}", links.cells.name(), dotted(source));
            Place::new(&name, "links", 0).corrupt(problem)
        };
        let Some(chunk) = self.numbers.get(&coord) else {
            return Err(wrong(format!("a link to chunk {}, which is empty", dotted(&coord))));
        };
        let map = self.of(*chunk)?;
        match map.get(end.1 as usize) {
            Some(&NO_ROW) => Ok(None),
            Some(row) => Ok(Some((self.coarse[*chunk], *row))),
            None => Err(wrong(format!(
                "a link to row {} of chunk {}, which has {}",
                end.1,
                dotted(&coord),
                map.len()
            ))),
        }
    }
}

/// Adds every stored link whose ends remain distinct, with its attributes.
pub(super) fn stored(level: &Level, maps: &RowMaps, coords: &[Coord], segments: &mut Segments) -> Result<()> {
    let Some(links) = level.links()? else { return Ok(()) };
    let attributes = level.link_attributes()?;
    let mut row = Vec::new();
    for segment in &links.segments {
        for source in segment.cells.chunks()? {
            let records = links.records(segment, source)?;
            let count = links.stored(segment, source)?;
            let cells = attributes.iter().map(|attribute| attribute.cell(segment, source, count));
            let cells = cells.collect::<Result<Vec<_>>>()?;
            for (number, record) in records {
                let ends = record.iter().map(|end| maps.end(segment, source, *end));
                let ends: Option<Vec<(u32, u32)>> = ends.collect::<Result<_>>()?;
                let Some(ends) = ends.filter(|ends| are_distinct(ends)) else { continue };
                row.clear();
                for (cell, attribute) in cells.iter().zip(attributes) {
                    let size = attribute.row_size();
                    match cell {
                        Some(cell) => row.extend_from_slice(&cell[number * size..(number + 1) * size]),
                        None => row.resize(row.len() + size, 0),
                    }
                }
                segments.add(&ends, coords, &row)?;
            }
        }
    }
    Ok(())
}

fn are_distinct(ends: &[(u32, u32)]) -> bool {
    ends.iter().enumerate().all(|(k, end)| !ends[..k].contains(end))
}

/// Adds the links of a skeleton: the tree edges among all implied and stored links.
pub(super) fn of_trees(
    level: &Level,
    maps: &RowMaps,
    coords: &[Coord],
    rows: &[u64],
    segments: &mut Segments,
) -> Result<()> {
    let mut starts = vec![0_u64];
    rows.iter().for_each(|rows| starts.push(starts[starts.len() - 1] + rows));
    let total = starts[starts.len() - 1];
    let total = usize::try_from(total).ok().filter(|total| *total < u32::MAX as usize);
    let total = total.ok_or_else(|| hyperslab_core::Error::invalid("a coarser skeleton of 2^32 vertices"))?;
    let number = |place: (u32, u32)| (starts[place.0 as usize] + u64::from(place.1)) as u32;
    let (mut edges, mut overridden) = (Vec::new(), HashSet::new());
    if let Some(links) = level.links()? {
        visit_stored(links, maps, &mut |child, ends| {
            // In a directed family, fragments are unbranched paths, so stored links do not override implied ones.
            if !links.directed {
                overridden.insert(child);
            }
            edges.extend(ends.map(|(child, parent)| [number(child), number(parent)]));
        })?;
    }
    for (coord, chunk) in &maps.numbers {
        let Some(vertices) = level.chunk(coord)? else { continue };
        let (index, map) = (level.fragments(coord, vertices.rows)?, maps.of(*chunk)?);
        for fragment in 0..index.len() {
            let mut last = None;
            for row in index.rows(fragment).into_iter().flatten() {
                let place = (maps.coarse[*chunk], map[row as usize]);
                if let Some(parent) = last.filter(|_| !overridden.contains(&(*chunk, row)))
                    && parent != place
                {
                    edges.push([number(place), number(parent)]);
                }
                last = Some(place);
            }
        }
    }
    edges.retain(|edge| edge[0] != edge[1]);
    edges.sort_unstable();
    edges.dedup();
    let walk = forest::depth_first(total, edges.as_flattened(), false)?;
    let place = |vertex: u32| {
        let chunk = starts.partition_point(|start| *start <= u64::from(vertex)) - 1;
        (chunk as u32, (u64::from(vertex) - starts[chunk]) as u32)
    };
    for (vertex, parent) in walk.parent.iter().enumerate() {
        if let Some(parent) = parent {
            segments.add(&[place(vertex as u32), place(*parent)], coords, &[])?;
        }
    }
    Ok(())
}

/// A row of a finer chunk, given by the chunk's number.
type FineRow = (usize, u64);
/// The coarser rows of both ends.
type Ends = ((u32, u32), (u32, u32));

/// Visits the stored links: the child's row, and the coarser rows of both ends.
fn visit_stored(links: &Links, maps: &RowMaps, visit: &mut dyn FnMut(FineRow, Option<Ends>)) -> Result<()> {
    for segment in &links.segments {
        for source in segment.cells.chunks()? {
            for (_, record) in links.records(segment, source)? {
                let [child, parent] = record.as_slice() else { continue };
                // Directed families, as written by the chunked skeleton writer, point from parents to children.
                let (child, parent) = if links.directed { (parent, child) } else { (child, parent) };
                let coord = segment.chunk_of(source, child.0);
                let row = (maps.numbers.get(&coord).copied().unwrap_or(usize::MAX), child.1);
                let ends = maps.end(segment, source, *child)?.zip(maps.end(segment, source, *parent)?);
                visit(row, ends);
            }
        }
    }
    Ok(())
}
