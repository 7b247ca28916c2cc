//! Checks manifests, ids, groups and attributes of objects.

use std::collections::{HashMap, HashSet};

use hyperslab_core::{Array, Budget, Result, Store};
use serde_json::Value;

use super::Failures;
use crate::coord::{Coord, dotted};
use crate::level::Level;
use crate::meta::corrupt;
use crate::objects::Objects;
use crate::older;

/// Checks that the chunks of every manifest have vertices, and that its fragments exist. Returns the number of
/// objects.
pub(super) fn check(level: &Level, failures: &mut Failures<'_>) -> Result<u64> {
    let Some(objects) = level.objects()? else { return Ok(0) };
    // For each chunk, the fragments named so far.
    let mut chunks: HashMap<Coord, Option<Vec<bool>>> = HashMap::new();
    let (mut present, mut shared) = (0, 0_u64);
    let budget = Budget::new(level.zarr.name(), objects.len().saturating_mul(16));
    let claims_shared = level.metadata.get("shared_fragments").and_then(Value::as_bool).unwrap_or(false);
    for row in 0..objects.len() {
        let blocks = match objects.manifest(row) {
            Ok(blocks) => blocks,
            Err(error) => {
                failures.add(&error);
                continue;
            }
        };
        present += u64::from(!blocks.is_empty());
        for block in blocks {
            let named = chunks.entry(block.chunk.clone()).or_insert_with(|| {
                let rows = level.chunk(&block.chunk).ok().flatten().map(|vertices| vertices.rows);
                let index = rows.and_then(|rows| level.fragments(&block.chunk, rows).ok());
                budget.extend(index.as_ref().map_or(0, |index| index.size() as u64));
                index.map(|index| vec![false; index.len()])
            });
            let problem = match (&*named, block.fragments.last()) {
                (None, _) => Some("no readable fragments".to_owned()),
                (Some(all), Some(last)) if last >= all.len() as u64 => {
                    Some(format!("fragment {last} of {}", all.len()))
                }
                _ => None,
            };
            if let Some(problem) = problem {
                let place = format!("manifest of object {}", objects.id(row)?);
                let problem = format!("{problem} in chunk {}", dotted(&block.chunk));
                failures.add(&corrupt(level.vertices.name(), &place, problem));
            } else if let Some(named) = named.as_mut().filter(|_| !claims_shared) {
                budget.spend(block.fragments.len(), "manifests")?;
                for fragment in block.fragments.iter() {
                    shared += u64::from(std::mem::replace(&mut named[fragment as usize], true));
                }
            }
        }
    }
    if shared > 0 {
        failures.warn(format!(
            "{shared} fragments are named more than once, but the level does not declare shared_fragments"
        ));
    }
    if let Some(declared) = objects.declared_present().filter(|declared| *declared != present) {
        failures.warn(format!("num_present {declared}, {present} objects have fragments"));
    }
    let ids = check_ids(level, objects, failures)?;
    check_groups(level, &ids, failures);
    check_attributes(level, objects, failures);
    Ok(objects.len())
}

fn check_ids(level: &Level, objects: &Objects, failures: &mut Failures<'_>) -> Result<HashSet<i64>> {
    let mut ids = HashSet::new();
    for row in 0..objects.len() {
        let id = objects.id(row)?;
        if !ids.insert(id) {
            failures.add(&corrupt(
                level.vertices.name(),
                "object_index/object_ids",
                format!("{id} occurs twice"),
            ));
        }
    }
    Ok(ids)
}

fn check_groups(level: &Level, ids: &HashSet<i64>, failures: &mut Failures<'_>) {
    match crate::objects::groups(level) {
        Err(error) => failures.add(&error),
        Ok(groups) => {
            for (number, group) in groups.iter().enumerate() {
                if let Some(id) = group.iter().find(|id| !ids.contains(id)) {
                    let problem = format!("group {number} names the object {id}, which does not exist");
                    failures.add(&corrupt(level.vertices.name(), "groups", problem));
                }
            }
        }
    }
}

/// Checks that each attribute has one row per object.
fn check_attributes(level: &Level, objects: &Objects, failures: &mut Failures<'_>) {
    let family = format!("{}/object_attributes", level.path);
    for name in level.members(&family).unwrap_or_default() {
        let path = format!("{family}/{name}");
        let shape = if level.is_older() {
            older::object_attribute(&level.zarr, &path)
                .map(|own| own.map_or_else(Vec::new, |own| own.shape.to_vec()))
        } else {
            level.zarr.array(&path).map(|array| array.schema().shape().to_vec())
        };
        match shape {
            Err(error) => failures.add(&error),
            Ok(shape) if shape.first() != Some(&objects.len()) => {
                let problem = format!("{shape:?} rows for {} objects", objects.len());
                failures.add(&corrupt(&format!("{}{path}", level.zarr.name()), "object attribute", problem));
            }
            Ok(_) => {}
        }
    }
}
