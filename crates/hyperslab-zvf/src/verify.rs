//! Is a store whole? Every invariant of the fragment indexes, manifests and links, across all chunks.

use hyperslab_core::{Depth, Report, Result};
use serde_json::Value;

use crate::coord::{Coord, dotted};
use crate::level::Level;
use crate::store::Levels;

/// Findings of one kind that are listed for a level; the rest are counted.
const LISTED: usize = 16;

pub(crate) fn store(levels: &Levels, depth: Depth, report: &mut Report) {
    if levels.root.levels.is_empty() {
        report.error("levels", "there are none");
    }
    for name in &levels.root.levels {
        let path = format!("/{name}");
        match levels.level(name.parse().unwrap_or(usize::MAX)) {
            Ok(level) => check_level(level, depth, report),
            Err(error) => {
                report.failure("metadata", &error);
                report.at_node(&path);
            }
        }
    }
}

/// Failures of one check.
struct Failures<'a> {
    report: &'a mut Report,
    check: &'static str,
    node: &'a str,
    count: usize,
}

impl<'a> Failures<'a> {
    fn new(report: &'a mut Report, check: &'static str, node: &'a str) -> Self {
        Self { report, check, node, count: 0 }
    }

    fn add(&mut self, error: &hyperslab_core::Error) {
        self.count += 1;
        if self.count <= LISTED {
            self.report.failure(self.check, error);
            self.report.at_node(self.node);
        }
    }

    fn end(self, passed: String) {
        if self.count == 0 {
            self.report.passed(self.check, passed);
        } else if self.count > LISTED {
            self.report.error(self.check, format!("{} more", self.count - LISTED));
        } else {
            return;
        }
        self.report.at_node(self.node);
    }
}

fn check_level(level: &Level, depth: Depth, report: &mut Report) {
    let node = level.path.clone();
    let mut listing = Failures::new(report, "nonempty_chunks", &node);
    if let Err(error) = check_listing(level, &mut listing) {
        listing.add(&error);
    }
    listing.end(String::new());
    let chunks: Vec<Coord> = match level.vertices.chunks() {
        Ok(chunks) => chunks.to_vec(),
        Err(error) => {
            report.failure("vertices", &error);
            return report.at_node(&node);
        }
    };
    let mut vertices = 0;
    let mut cells = Failures::new(report, "chunks", &node);
    for chunk in &chunks {
        match check_chunk(level, chunk, depth) {
            Ok(rows) => vertices += rows,
            Err(error) => cells.add(&error),
        }
    }
    cells.end(format!("{vertices} vertices in {} chunks", chunks.len()));
    if let Some(declared) = level.metadata.get("vertex_count").and_then(Value::as_u64)
        && declared != vertices
    {
        report.warning("vertex_count", format!("{declared} declared, {vertices} stored"));
        report.at_node(&node);
    }
    let mut objects = Failures::new(report, "object_index", &node);
    let count = check_objects(level, &mut objects).unwrap_or_else(|error| {
        objects.add(&error);
        0
    });
    objects.end(format!("{count} objects"));
    let mut links = Failures::new(report, "links", &node);
    let count = check_links(level, &mut links).unwrap_or_else(|error| {
        links.add(&error);
        0
    });
    links.end(format!("{count} links"));
}

/// Readers find a level's chunks by this list alone.
fn check_listing(level: &Level, failures: &mut Failures<'_>) -> Result<()> {
    let wrong = |problem: String| crate::meta::corrupt(level.vertices.name(), "zarr.json", problem);
    let Some(mut listed) = level.vertices.listed()? else {
        failures.add(&wrong("no nonempty_chunks: other readers find nothing here".to_owned()));
        return Ok(());
    };
    listed.sort_unstable();
    for chunk in level.vertices.stored()? {
        if listed.binary_search(&chunk).is_err() && level.vertices.cell(&chunk)?.is_some() {
            failures.add(&wrong(format!("chunk {} is stored and not in nonempty_chunks", dotted(&chunk))));
        }
    }
    Ok(())
}

/// Vertices, fragments and attributes of one chunk.
fn check_chunk(level: &Level, chunk: &Coord, depth: Depth) -> Result<u64> {
    let wrong = |problem: String| {
        crate::meta::corrupt(level.vertices.name(), &format!("chunk {}", dotted(chunk)), problem)
    };
    let vertices = level.chunk(chunk)?.ok_or_else(|| wrong("listed as non-empty, and empty".to_owned()))?;
    let index = level.fragments(chunk, vertices.rows)?;
    if level.claims_tiles() && !index.tiles(vertices.rows) {
        return Err(wrong("fragments_tile is claimed, and the fragments do not tile the rows".to_owned()));
    }
    if depth == Depth::Deep {
        for (name, cells) in level.attributes()? {
            let Some(cell) = cells.cell(chunk)? else { continue };
            let size = vertices.rows * cells.dtype()?.size().unwrap_or(1) as u64;
            if size == 0 || !(cell.len() as u64).is_multiple_of(size) || cell.is_empty() {
                let problem =
                    format!("the attribute {name:?} has {} bytes for {} vertices", cell.len(), vertices.rows);
                return Err(wrong(problem));
            }
        }
    }
    Ok(vertices.rows)
}

/// Every manifest: its chunks have vertices, its fragments are there.
fn check_objects(level: &Level, failures: &mut Failures<'_>) -> Result<u64> {
    let Some(objects) = level.objects()? else { return Ok(0) };
    let mut counts = std::collections::HashMap::new();
    for row in 0..objects.len() {
        let blocks = match objects.manifest(row) {
            Ok(blocks) => blocks,
            Err(error) => {
                failures.add(&error);
                continue;
            }
        };
        for block in blocks {
            let count = *counts.entry(block.chunk.clone()).or_insert_with(|| {
                let rows = level.chunk(&block.chunk).ok().flatten().map(|vertices| vertices.rows);
                rows.and_then(|rows| level.fragments(&block.chunk, rows).ok()).map(|index| index.len() as u64)
            });
            let problem = match (count, block.fragments.last()) {
                (None, _) => Some("no readable fragments".to_owned()),
                (Some(count), Some(last)) if last >= count => Some(format!("fragment {last} of {count}")),
                _ => None,
            };
            if let Some(problem) = problem {
                let place = format!("manifest of object {}", objects.id(row)?);
                let problem = format!("{problem} in chunk {}", dotted(&block.chunk));
                failures.add(&crate::meta::corrupt(level.vertices.name(), &place, problem));
            }
        }
    }
    Ok(objects.len())
}

/// Every link: its rows are there.
fn check_links(level: &Level, failures: &mut Failures<'_>) -> Result<u64> {
    let Some(links) = level.links()? else { return Ok(0) };
    let (mut count, mut rows) = (0, std::collections::HashMap::new());
    for segment in &links.segments {
        for source in segment.cells.chunks()? {
            let records = match links.records(segment, source) {
                Ok(records) => records,
                Err(error) => {
                    failures.add(&error);
                    continue;
                }
            };
            count += records.len() as u64;
            for (k, row) in records.into_iter().flatten() {
                let target: Coord = match k.checked_sub(1).and_then(|k| segment.offsets.get(k)) {
                    None => source.clone(),
                    Some(offset) => source.iter().zip(offset).map(|(at, by)| at.wrapping_add(*by)).collect(),
                };
                let there = *rows.entry(target.clone()).or_insert_with(|| {
                    level.chunk(&target).ok().flatten().map_or(0, |vertices| vertices.rows)
                });
                if row >= there {
                    let place = format!("chunk {}", dotted(source));
                    let problem =
                        format!("a link to row {row} of chunk {}, which has {there}", dotted(&target));
                    failures.add(&crate::meta::corrupt(segment.cells.name(), &place, problem));
                }
            }
        }
    }
    if let Some(declared) = links.count.filter(|declared| *declared != count) {
        let problem = format!("num_links {declared}, {count} are stored");
        failures.add(&crate::meta::corrupt(level.vertices.name(), "links/0", problem));
    }
    Ok(count)
}
