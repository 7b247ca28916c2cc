//! Queries of a level by box, object or group.
//!
//! A vertex is a row of a chunk that is in some fragment. A box selects the vertices inside it, including its border;
//! an object selects the vertices of its fragments, in order. Each vertex occurs once. A link is selected if all of
//! its endpoints are.

mod columns;
mod edges;
mod places;
mod select;

use hyperslab_core::{DType, Elements, Error, GeometryData, GeometryQuery, Result, Values};

use crate::level::Level;
use crate::meta::Linking;
use crate::objects;
use edges::FoundLinks;
use select::{BoxTest, Path, Selected};

/// Runs a query on a level.
pub(crate) fn run(level: &Level, query: &GeometryQuery) -> Result<GeometryData> {
    let wanted = columns::wanted(level, query.attributes.as_deref())?;
    let test = match &query.region {
        Some(region) => Some(BoxTest::new(level, region)?),
        None => None,
    };
    let mut selected = Selected::new(level, test);
    let paths = if query.objects.is_empty() && query.groups.is_empty() {
        selected.pick_all()?;
        selected.paths_of_picked()?
    } else {
        let mut ids = query.objects.clone();
        for group in &query.groups {
            ids.extend(objects::group(level, *group)?);
        }
        let mut seen = std::collections::HashSet::new();
        ids.retain(|id| seen.insert(*id));
        selected.pick_objects(&ids)?
    };
    let edges = |rows| FoundLinks { width: 2, rows, attributes: Vec::new() };
    let links = match level.root.linking() {
        Linking::None => None,
        Linking::Path => Some(edges(edges::of_paths(&mut selected, &paths)?)),
        Linking::Tree => Some(edges(edges::of_tree(&mut selected)?)),
        Linking::Stored => edges::stored(&selected, query.attributes.is_none())?,
    };
    let attributes = columns::gather(&selected, &wanted)?;
    let ids: Vec<i64> = paths.iter().map(|path| path.id).collect();
    let object_attributes =
        if query.attributes.is_none() { objects::attributes(level, &ids)? } else { Vec::new() };
    let (links, link_attributes) = match links {
        None => (None, Vec::new()),
        Some(found) => (Some(link_values(found.width, &found.rows)?), found.attributes),
    };
    Ok(GeometryData {
        vertices: columns::vertices(&selected)?,
        attributes,
        links,
        link_attributes,
        objects: paths.into_iter().map(Path::into_rows).collect(),
        object_attributes,
    })
}

/// One row per link.
fn link_values(width: usize, rows: &[u32]) -> Result<Values> {
    if width == 0 || !rows.len().is_multiple_of(width) {
        return Err(Error::invalid("the links differ in width"));
    }
    let bytes: Vec<u8> = rows.iter().flat_map(|row| u64::from(*row).to_ne_bytes()).collect();
    Values::new(DType::UInt64, &[(rows.len() / width) as u64, width as u64], Elements::fixed(bytes))
}
