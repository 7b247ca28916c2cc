//! Checks links within a level and to other levels.

use std::collections::HashMap;

use hyperslab_core::Result;

use super::Failures;
use crate::coord::{Coord, dotted};
use crate::level::Level;
use crate::links::{Links, Segment};
use crate::meta::corrupt;
use crate::store::Levels;

/// Checks that the rows of every link exist. Returns the number of links.
pub(super) fn check(levels: &Levels, level: &Level, failures: &mut Failures<'_>) -> Result<u64> {
    let mut total = 0;
    if level.is_older() {
        return older(level, failures);
    }
    for delta in Links::deltas(level)? {
        let Some(links) = Links::open(level, delta)? else { continue };
        let own: i64 = level.path[1..].parse().unwrap_or(0);
        let Some(target) = usize::try_from(own + delta).ok().and_then(|number| levels.level(number).ok())
        else {
            let problem = format!("links to level {}, which does not exist", own + delta);
            failures.add(&corrupt(level.vertices.name(), &format!("links/{delta:+}"), problem));
            continue;
        };
        total += family(level, target, &links, failures)?;
    }
    Ok(total)
}

/// Checks the links of a level in the layout before 0.9, except those to other levels, which are stored in another
/// form.
fn older(level: &Level, failures: &mut Failures<'_>) -> Result<u64> {
    if Links::deltas(level)?.iter().any(|delta| *delta != 0) {
        failures.warn("links to other levels are not checked in the layout before 0.9");
    }
    match level.links()? {
        Some(links) => family(level, level, links, failures),
        None => Ok(0),
    }
}

fn family(level: &Level, target: &Level, links: &Links, failures: &mut Failures<'_>) -> Result<u64> {
    let (mut count, mut near, mut far) = (0, Rows::new(level), Rows::new(target));
    let ratio = |own: &Level| -> Vec<i64> {
        let root = &own.root.chunk_shape;
        own.chunk_shape.iter().zip(root).map(|(own, root)| ((own / root).round() as i64).max(1)).collect()
    };
    let ratios = (ratio(level), ratio(target));
    for segment in &links.segments {
        for source in segment.cells.chunks()? {
            let records = match links.records(segment, source) {
                Ok(records) => records,
                Err(error) => {
                    failures.add(&error);
                    continue;
                }
            };
            if links.is_flat(segment) && !links.is_grouped(source)? {
                failures.warn(format!("chunk {}: it has links without link_fragments", dotted(source)));
            }
            if links.delta == 0 {
                check_attributes(level, links, segment, source, failures)?;
            }
            count += records.len() as u64;
            for (k, row) in records.into_iter().flat_map(|(_, record)| record) {
                let chunk = target_chunk(links, segment, source, k, &ratios);
                let there = if k == 0 || links.delta == 0 { near.of(&chunk) } else { far.of(&chunk) };
                if row >= there {
                    let place = format!("chunk {}", dotted(source));
                    let problem =
                        format!("a link to row {row} of chunk {}, which has {there}", dotted(&chunk));
                    failures.add(&corrupt(segment.cells.name(), &place, problem));
                }
            }
        }
    }
    if let Some(declared) = links.count.filter(|declared| *declared != count) {
        let problem = format!("num_links {declared}, {count} are stored");
        failures.add(&corrupt(level.vertices.name(), &format!("links/{}", links.delta), problem));
    }
    Ok(count)
}

fn check_attributes(
    level: &Level,
    links: &Links,
    segment: &Segment,
    source: &Coord,
    failures: &mut Failures<'_>,
) -> Result<()> {
    let count = links.stored(segment, source)?;
    for attribute in level.link_attributes()? {
        if let Err(error) = attribute.cell(segment, source, count) {
            failures.add(&error);
        }
    }
    Ok(())
}

/// The chunk of an end. For links to another level, relative to the source's position at that level.
fn target_chunk(
    links: &Links,
    segment: &Segment,
    source: &Coord,
    k: usize,
    ratios: &(Vec<i64>, Vec<i64>),
) -> Coord {
    if links.delta == 0 || k == 0 {
        return segment.chunk_of(source, k);
    }
    let mut anchor = source.clone();
    let leading = anchor.len().saturating_sub(ratios.0.len());
    for (axis, (own, other)) in ratios.0.iter().zip(&ratios.1).enumerate() {
        anchor[leading + axis] = anchor[leading + axis].saturating_mul(*own).div_euclid(*other);
    }
    segment.chunk_of(&anchor, k)
}

/// The number of rows in each chunk of a level, read once.
struct Rows<'a> {
    level: &'a Level,
    known: HashMap<Coord, u64>,
}

impl<'a> Rows<'a> {
    fn new(level: &'a Level) -> Self {
        Self { level, known: HashMap::new() }
    }

    fn of(&mut self, chunk: &Coord) -> u64 {
        if let Some(rows) = self.known.get(chunk) {
            return *rows;
        }
        let rows = self.level.chunk(chunk).ok().flatten().map_or(0, |vertices| vertices.rows);
        self.known.insert(chunk.clone(), rows);
        rows
    }
}
