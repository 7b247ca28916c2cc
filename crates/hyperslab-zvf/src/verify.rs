//! Checks a store: every invariant of fragment indexes, manifests, links and attributes, across all chunks.

mod chunks;
mod links;
mod objects;

use hyperslab_core::{Depth, Error, Report, Result};
use serde_json::Value;

use crate::coord::{Coord, dotted};
use crate::level::Level;
use crate::meta::corrupt;
use crate::store::Levels;

/// The maximum number of findings of one kind listed per level; the rest are counted.
const MAX_LISTED: usize = 16;

pub(crate) fn store(levels: &Levels, _: Depth, report: &mut Report) {
    if levels.root.levels.is_empty() {
        report.error("levels", "there are none");
    }
    for name in &levels.root.levels {
        let path = format!("/{name}");
        match levels.level(name.parse().unwrap_or(usize::MAX)) {
            Ok(level) => check_level(levels, level, report),
            Err(error) => {
                report.failure("metadata", &error);
                report.at_node(&path);
            }
        }
    }
}

/// The failures of one check, and its warnings.
struct Failures<'a> {
    report: &'a mut Report,
    check: &'static str,
    node: &'a str,
    count: usize,
    warnings: usize,
}

impl<'a> Failures<'a> {
    fn new(report: &'a mut Report, check: &'static str, node: &'a str) -> Self {
        Self { report, check, node, count: 0, warnings: 0 }
    }

    fn add(&mut self, error: &Error) {
        self.count += 1;
        if self.count <= MAX_LISTED {
            self.report.failure(self.check, error);
            self.report.at_node(self.node);
        }
    }

    fn warn(&mut self, problem: impl Into<String>) {
        self.warnings += 1;
        if self.warnings <= MAX_LISTED {
            self.report.warning(self.check, problem);
            self.report.at_node(self.node);
        }
    }

    fn end(self, passed: String) {
        if self.warnings > MAX_LISTED {
            self.report.warning(self.check, format!("{} more", self.warnings - MAX_LISTED));
            self.report.at_node(self.node);
        }
        if self.count == 0 {
            self.report.passed(self.check, passed);
        } else if self.count > MAX_LISTED {
            self.report.error(self.check, format!("{} more", self.count - MAX_LISTED));
        } else {
            return;
        }
        self.report.at_node(self.node);
    }
}

fn check_level(levels: &Levels, level: &Level, report: &mut Report) {
    let node = level.path.clone();
    if level.adds {
        let mut failures = Failures::new(report, "refinement", &node);
        if let Err(error) = check_additive(levels, level, &mut failures) {
            failures.add(&error);
        }
        failures.end("adds to the next coarser level".to_owned());
    }
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
    let mut cells = Failures::new(report, "chunks", &node);
    let vertices = chunks::check(level, &chunks, &mut cells);
    cells.end(format!("{vertices} vertices in {} chunks", chunks.len()));
    if let Some(declared) = level.metadata.get("vertex_count").and_then(Value::as_u64)
        && declared != vertices
    {
        report.warning("vertex_count", format!("{declared} declared, {vertices} stored"));
        report.at_node(&node);
    }
    let mut failures = Failures::new(report, "object_index", &node);
    let count = objects::check(level, &mut failures).unwrap_or_else(|error| {
        failures.add(&error);
        0
    });
    failures.end(format!("{count} objects"));
    let mut failures = Failures::new(report, "links", &node);
    let count = links::check(levels, level, &mut failures).unwrap_or_else(|error| {
        failures.add(&error);
        0
    });
    failures.end(format!("{count} links"));
}

/// Other readers find a level's chunks only through this list.
fn check_listing(level: &Level, failures: &mut Failures<'_>) -> Result<()> {
    let wrong = |problem: String| corrupt(level.vertices.name(), "zarr.json", problem);
    let Some(mut listed) = level.vertices.listed()? else {
        failures.add(&wrong("no nonempty_chunks: other readers find nothing here".to_owned()));
        return Ok(());
    };
    listed.sort_unstable();
    for chunk in level.vertices.stored()? {
        if listed.binary_search(&chunk).is_err() && level.vertices.cell(&chunk)?.is_some() {
            failures.add(&wrong(format!("chunk {} is stored but not in nonempty_chunks", dotted(&chunk))));
        }
    }
    Ok(())
}

/// Checks a level that adds to the next coarser one: that level must exist, the store must declare it, and no object
/// may be stored at both.
fn check_additive(levels: &Levels, level: &Level, failures: &mut Failures<'_>) -> Result<()> {
    let store = levels.zarr.directory().name();
    let wrong = |problem: String| corrupt(store, "zarr.json", problem);
    if !levels.root.requires_additive {
        let problem =
            "required_capabilities lack \"additive_levels\": other readers treat the level as complete";
        failures.add(&wrong(problem.to_owned()));
    }
    let number: usize = level.path[1..].parse().unwrap_or(0);
    let chain = levels.chain(number)?;
    let [_, coarser, ..] = chain.as_slice() else {
        failures.add(&wrong(format!("level {number} adds to level {}, which does not exist", number + 1)));
        return Ok(());
    };
    let (Some(own), Some(other)) = (level.objects()?, coarser.objects()?) else { return Ok(()) };
    for row in 0..own.len() {
        let id = own.id(row)?;
        let Ok(there) = other.row(id) else { continue };
        if !own.manifest(row)?.is_empty() && !other.manifest(there)?.is_empty() {
            failures.add(&wrong(format!("object {id} of {} is also in {}", level.path, coarser.path)));
        }
    }
    Ok(())
}
