//! Links among the picked vertices: those that are stored, and those that the kind implies.

use std::collections::{HashMap, HashSet};

use hyperslab_core::{Place, Result};

use super::select::{Path, Selected};
use crate::coord::{Coord, dotted};
use crate::links::{Links, Record, Segment};

/// Consecutive vertices of the objects; without objects, of the fragments.
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

/// Visits each picked row of a fragment, its place, and that of the picked row before it: (chunk and row, child, parent).
fn in_fragments(selected: &mut Selected<'_>, visit: &mut dyn FnMut((usize, u64), u32, u32)) -> Result<()> {
    for chunk in 0..selected.chunks.len() {
        let index = selected.index(chunk)?.clone();
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

/// `[child, parent]` of every vertex whose parent was picked too: the row before it in its fragment, unless a link says otherwise.
pub(crate) fn of_tree(selected: &mut Selected<'_>) -> Result<Vec<u32>> {
    let mut implied = Vec::new();
    in_fragments(selected, &mut |row, child, parent| implied.push((row, child, parent)))?;
    let (mut stored, mut overridden) = (Vec::new(), HashSet::new());
    if let Some(links) = selected.level.links()? {
        for segment in &links.segments {
            for source in sources(selected, segment, true)? {
                for record in links.records(segment, &source)? {
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

/// Links whose endpoints were all picked, and how many endpoints they have.
pub(crate) fn stored(selected: &Selected<'_>) -> Result<Option<(usize, Vec<u32>)>> {
    let Some(links) = selected.level.links()? else { return Ok(None) };
    let mut rows = Vec::new();
    for segment in &links.segments {
        for source in sources(selected, segment, false)? {
            for record in links.records(segment, &source)? {
                let ends = places(selected, segment, &source, &record)?;
                let all: Option<Vec<u32>> = ends.places.into_iter().collect();
                rows.extend(all.into_iter().flatten());
            }
        }
    }
    Ok(Some((links_width(links), rows)))
}

const fn links_width(links: &Links) -> usize {
    links.width
}

/// The cells of a segment that can hold links of the chunks that were read: those chunks themselves, and where a link's
/// first endpoint may be elsewhere (`all`), the chunks from which they are reached.
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

/// Where the endpoints of a record are.
struct Ends {
    /// Chunk and row, for chunks that were read.
    rows: Vec<Option<(usize, u64)>>,
    /// Places in the result, for rows that were picked.
    places: Vec<Option<u32>>,
}

fn places(selected: &Selected<'_>, segment: &Segment, source: &Coord, record: &Record) -> Result<Ends> {
    let mut ends = Ends { rows: Vec::with_capacity(record.len()), places: Vec::with_capacity(record.len()) };
    for (k, row) in record {
        let coord: Coord = match k.checked_sub(1).and_then(|k| segment.offsets.get(k)) {
            None => source.clone(),
            Some(offset) => source.iter().zip(offset).map(|(at, by)| at.wrapping_add(*by)).collect(),
        };
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
