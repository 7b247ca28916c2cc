//! Links between the selected vertices: stored ones, and those that the kind implies.

use std::collections::{HashMap, HashSet};

use hyperslab_core::{Elements, Place, Result, Validity, Values};

use super::select::{Path, Selected};
use crate::coord::{Coord, dotted};
use crate::links::{LinkAttribute, Record, Segment};
use crate::write::columns::swap_little_endian;

/// Consecutive vertices of the objects or, without objects, of the fragments.
pub(crate) fn of_paths(selected: &mut Selected<'_>, paths: &[Path]) -> Result<Vec<u32>> {
    let mut edges = Vec::new();
    for path in paths {
        for (pair, joined) in path.rows.windows(2).zip(&path.joined) {
            if *joined {
                edges.extend_from_slice(pair);
            }
        }
    }
    if selected.level.objects()?.is_none() {
        in_fragments(selected, &mut |_, child, parent| edges.extend([parent, child]))?;
    }
    Ok(edges)
}

/// Visits each selected row of a fragment: (chunk and row, its place, the place of the preceding row).
fn in_fragments(selected: &mut Selected<'_>, visit: &mut dyn FnMut((usize, u64), u32, u32)) -> Result<()> {
    for chunk in 0..selected.chunks.len() {
        let index = std::sync::Arc::clone(selected.index(chunk)?);
        for fragment in 0..index.len() {
            let mut last = None;
            for row in index.rows(fragment).into_iter().flatten() {
                let place = selected.place(chunk, row);
                if let (Some(child), Some(parent)) = (place, last) {
                    visit((chunk, row), child, parent);
                }
                last = place;
            }
        }
    }
    Ok(())
}

/// `[child, parent]` of each vertex whose parent is selected too. The parent is the preceding row of its fragment,
/// unless a link overrides it.
pub(crate) fn of_tree(selected: &mut Selected<'_>) -> Result<Vec<u32>> {
    let mut implied = Vec::new();
    in_fragments(selected, &mut |row, child, parent| implied.push((row, child, parent)))?;
    let (mut stored, mut overridden) = (Vec::new(), HashSet::new());
    if let Some(links) = selected.level.links()? {
        for segment in &links.segments {
            for source in sources(selected, segment, true)? {
                for (_, record) in links.records(segment, &source)? {
                    let ends = places(selected, segment, &source, &record)?;
                    if let [Some((chunk, row)), _] = ends.rows.as_slice()
                        && !links.directed
                    {
                        overridden.insert((*chunk, *row));
                    }
                    if let [Some(child), Some(parent)] = ends.places.as_slice() {
                        stored.extend([*child, *parent]);
                    }
                }
            }
        }
    }
    let mut edges: Vec<u32> = implied
        .into_iter()
        .filter(|(row, _, _)| !overridden.contains(row))
        .flat_map(|(_, child, parent)| [child, parent])
        .collect();
    edges.extend(stored);
    Ok(edges)
}

/// Links between the selected vertices: the number of endpoints, their rows, and their attributes.
#[derive(Debug, Default)]
pub(crate) struct FoundLinks {
    pub(crate) width: usize,
    pub(crate) rows: Vec<u32>,
    pub(crate) attributes: Vec<(String, Values)>,
}

/// Links whose endpoints are all selected, optionally with attributes.
pub(crate) fn stored(selected: &Selected<'_>, attributes: bool) -> Result<Option<FoundLinks>> {
    let level = selected.level;
    let Some(links) = level.links()? else { return Ok(None) };
    let wanted = if attributes { level.link_attributes()? } else { &[] };
    // The bytes of each attribute, and the links that have a value.
    let mut columns = vec![(Vec::new(), Vec::new()); wanted.len()];
    let mut rows = Vec::new();
    for segment in &links.segments {
        for source in sources(selected, segment, false)? {
            let count = if wanted.is_empty() { 0 } else { links.stored(segment, &source)? };
            let cells = wanted.iter().map(|attribute| attribute.cell(segment, &source, count));
            let cells = cells.collect::<Result<Vec<_>>>()?;
            for (number, record) in links.records(segment, &source)? {
                let ends = places(selected, segment, &source, &record)?;
                let all: Option<Vec<u32>> = ends.places.into_iter().collect();
                let Some(all) = all else { continue };
                rows.extend(all);
                for ((cell, attribute), column) in cells.iter().zip(wanted).zip(&mut columns) {
                    let ((bytes, there), size) = (column, attribute.row_size());
                    there.push(cell.is_some());
                    match cell {
                        Some(cell) => bytes.extend_from_slice(&cell[number * size..(number + 1) * size]),
                        None => bytes.resize(bytes.len() + size, 0),
                    }
                }
            }
        }
    }
    let count = (rows.len() / links.width) as u64;
    let column = |(attribute, (mut bytes, there)): (&LinkAttribute, (Vec<u8>, Vec<bool>))| {
        swap_little_endian(&attribute.dtype, &mut bytes);
        let shape: Vec<u64> = std::iter::once(count).chain(attribute.width).collect();
        let each = attribute.width.unwrap_or(1) as usize;
        let missing = there.contains(&false).then(|| {
            Validity::from_flags(there.into_iter().flat_map(|there| std::iter::repeat_n(there, each)))
        });
        let elements = Elements::fixed(bytes).with_validity(missing);
        Ok((attribute.name.clone(), Values::new(attribute.dtype.clone(), &shape, elements)?))
    };
    let attributes = wanted.iter().zip(columns).map(column).collect::<Result<_>>()?;
    Ok(Some(FoundLinks { width: links.width, rows, attributes }))
}

/// The cells of a segment that may contain links of the chunks read: the cells of those chunks and, if a link's first
/// endpoint may be elsewhere (`all`), of the chunks that link to them.
fn sources(selected: &Selected<'_>, segment: &Segment, all: bool) -> Result<Vec<Coord>> {
    let mut sources = Vec::new();
    let mut seen = HashMap::new();
    for chunk in &selected.chunks {
        let mut consider = |source: Coord| -> Result<()> {
            if seen.insert(source.clone(), ()).is_none() && segment.cells.may_have(&source)? {
                sources.push(source);
            }
            Ok(())
        };
        consider(chunk.coord.clone())?;
        if all {
            for offset in &segment.offsets {
                let back = chunk.coord.iter().zip(offset).map(|(at, by)| at.wrapping_sub(*by));
                consider(back.collect())?;
            }
        }
    }
    Ok(sources)
}

/// The endpoints of a record.
struct Ends {
    /// The chunk and row of each endpoint in a chunk that was read.
    rows: Vec<Option<(usize, u64)>>,
    /// The place of each selected endpoint in the result.
    places: Vec<Option<u32>>,
}

fn places(selected: &Selected<'_>, segment: &Segment, source: &Coord, record: &Record) -> Result<Ends> {
    let mut ends = Ends { rows: Vec::with_capacity(record.len()), places: Vec::with_capacity(record.len()) };
    for (k, row) in record {
        let coord = segment.chunk_of(source, *k);
        let chunk = selected.number(&coord);
        if let Some(rows) = chunk.map(|chunk| selected.chunks[chunk].vertices.rows).filter(|rows| row >= rows)
        {
            let name = format!("{} chunk {}", segment.cells.name(), dotted(source));
            let problem = format!("a link to row {row} of chunk {}, which has {rows}", dotted(&coord));
            return Err(Place::new(&name, "links", 0).corrupt(problem));
        }
        ends.rows.push(chunk.map(|chunk| (chunk, *row)));
        ends.places.push(chunk.and_then(|chunk| selected.place(chunk, *row)));
    }
    Ok(ends)
}
