//! Levels that add to the next coarser one (`refinement: "add"`): their content is what they store plus the content
//! of that level.
//!
//! A query runs on each level of the chain. Its vertices, links and objects are concatenated, finest level first. An
//! attribute is part of the result if every level with vertices (links, objects) has it.

use std::collections::HashMap;

use hyperslab_core::{
    DType, Elements, Error, GeometryData, GeometryLevel, GeometryQuery, Result, Values, element_to_json,
};

use crate::level::Level;
use crate::{objects, query};

/// The summary of a chain's content for `info`.
pub(crate) fn summary(chain: &[&Level]) -> Result<GeometryLevel> {
    let mut parts = chain.iter().map(|level| level.summary());
    let mut all = parts.next().ok_or_else(|| Error::invalid("no level"))??;
    for part in parts {
        let part = part?;
        all.vertices += part.vertices;
        all.links += part.links;
        all.objects += part.objects;
    }
    Ok(all)
}

/// Runs a query over a chain.
pub(crate) fn query(chain: &[&Level], wanted: &GeometryQuery) -> Result<GeometryData> {
    if let [only] = chain {
        return query::run(only, wanted);
    }
    let ids = wanted_objects(chain, wanted)?;
    let mut parts = Vec::with_capacity(chain.len());
    for level in chain {
        let own = match &ids {
            None => Vec::new(),
            Some(ids) => stored_here(level, ids)?,
        };
        if ids.is_some() && own.is_empty() {
            continue;
        }
        let part = GeometryQuery { objects: own, groups: Vec::new(), ..wanted.clone() };
        parts.push(query::run(level, &part)?);
    }
    joined(parts, ids.as_deref())
}

/// The objects that a query requests, each once; `None` if it requests no specific ones.
fn wanted_objects(chain: &[&Level], wanted: &GeometryQuery) -> Result<Option<Vec<i64>>> {
    if wanted.objects.is_empty() && wanted.groups.is_empty() {
        return Ok(None);
    }
    let mut ids = wanted.objects.clone();
    for group in &wanted.groups {
        ids.extend(group_of(chain, *group)?);
    }
    let mut seen = std::collections::HashSet::new();
    ids.retain(|id| seen.insert(*id));
    for id in &ids {
        let mut known = false;
        for level in chain {
            known |= !stored_here(level, &[*id])?.is_empty();
        }
        if !known {
            return Err(Error::invalid(format!(
                "{}{}: there is no object {id}",
                chain[0].zarr.directory().name(),
                chain[0].path
            )));
        }
    }
    Ok(Some(ids))
}

/// The objects of a group, from the finest level that has groups.
fn group_of(chain: &[&Level], group: u64) -> Result<Vec<i64>> {
    let mut found = Err(Error::invalid(format!("there is no group {group}")));
    for level in chain {
        found = objects::group(level, group);
        if !matches!(found, Err(Error::Invalid(_))) {
            break;
        }
    }
    found
}

/// The subset of these objects with a row in the index of a level.
fn stored_here(level: &Level, ids: &[i64]) -> Result<Vec<i64>> {
    let Some(objects) = level.objects()? else { return Ok(Vec::new()) };
    let mut own = Vec::new();
    for id in ids {
        match objects.row(*id) {
            Ok(_) => own.push(*id),
            Err(Error::Invalid(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(own)
}

/// Concatenates the parts of a result. `ids` gives the order of the objects.
fn joined(parts: Vec<GeometryData>, ids: Option<&[i64]>) -> Result<GeometryData> {
    let rows = |part: &GeometryData| part.vertices.shape[0];
    let mut starts = Vec::with_capacity(parts.len());
    let mut start = 0;
    for part in &parts {
        starts.push(start);
        start += rows(part);
    }
    let with_links = |part: &GeometryData| part.links.as_ref().is_some_and(|links| links.shape[0] > 0);
    let (objects, sources) = joined_objects(&parts, &starts, ids);
    Ok(GeometryData {
        vertices: joined_positions(&parts.iter().map(|part| &part.vertices).collect::<Vec<_>>())?,
        attributes: columns(&parts, rows_of_vertices, |part| rows(part) > 0)?,
        links: joined_links(&parts, &starts)?,
        link_attributes: columns(&parts, rows_of_links, with_links)?,
        object_attributes: object_columns(&parts, &sources)?,
        objects,
    })
}

type Columns = [(String, Values)];

fn rows_of_vertices(part: &GeometryData) -> &Columns {
    &part.attributes
}

fn rows_of_links(part: &GeometryData) -> &Columns {
    &part.link_attributes
}

/// The column with this name.
fn named<'a>(columns: &'a Columns, name: &str) -> Option<&'a Values> {
    columns.iter().find(|(own, _)| own == name).map(|(_, values)| values)
}

/// The columns that all parts with rows have, concatenated.
fn columns(
    parts: &[GeometryData],
    of: fn(&GeometryData) -> &Columns,
    has_rows: impl Fn(&GeometryData) -> bool,
) -> Result<Vec<(String, Values)>> {
    let mut with_rows: Vec<&GeometryData> = parts.iter().filter(|part| has_rows(part)).collect();
    if with_rows.is_empty() {
        with_rows.extend(parts.first());
    }
    let Some(first) = with_rows.first() else { return Ok(Vec::new()) };
    let mut joined = Vec::new();
    for (name, _) in of(first) {
        let Some(all) = with_rows.iter().map(|part| named(of(part), name)).collect::<Option<Vec<&Values>>>()
        else {
            continue;
        };
        let rows = |(part, values): (usize, &&Values)| {
            let count = values.shape[0] as usize;
            (0..count).map(move |row| (part, row))
        };
        let picks: Vec<(usize, usize)> = all.iter().enumerate().flat_map(rows).collect();
        joined.push((name.clone(), picked(name, &all, &picks)?));
    }
    Ok(joined)
}

/// Picks rows from several columns; each row is given as a column number and a row in it.
fn picked(name: &str, columns: &[&Values], rows: &[(usize, usize)]) -> Result<Values> {
    let first = columns[0];
    if let Some(other) =
        columns.iter().find(|own| own.dtype != first.dtype || own.shape[1..] != first.shape[1..])
    {
        let feature = format!(
            "the attribute {name:?} is {} of {:?} at one level and {} of {:?} at another",
            first.dtype,
            &first.shape[1..],
            other.dtype,
            &other.shape[1..]
        );
        return Err(Error::unsupported("levels that add to each other", feature));
    }
    let each: usize = first.shape[1..].iter().product::<u64>() as usize;
    let picks: Vec<(usize, usize)> = rows
        .iter()
        .flat_map(|(column, row)| (0..each).map(move |part| (*column, row * each + part)))
        .collect();
    let elements: Vec<&Elements> = columns.iter().map(|column| &column.elements).collect();
    let mut shape = first.shape.clone();
    shape[0] = rows.len() as u64;
    Values::new(first.dtype.clone(), &shape, Elements::gather(&first.dtype, &elements, &picks)?)
}

/// The positions, as 64-bit floats if the levels differ in type.
fn joined_positions(parts: &[&Values]) -> Result<Values> {
    let Some(first) = parts.first() else { return Err(Error::invalid("no level has any of these objects")) };
    let shape = [parts.iter().map(|part| part.shape[0]).sum(), first.shape[1]];
    let same = parts.iter().all(|part| part.dtype == first.dtype);
    let mut bytes = Vec::new();
    for part in parts {
        match part.elements.as_fixed().filter(|_| same) {
            Some(own) => bytes.extend_from_slice(own),
            None => bytes.extend((0..part.len()).flat_map(|index| {
                let number = element_to_json(&part.dtype, &part.elements, index);
                number.as_f64().unwrap_or(f64::NAN).to_ne_bytes()
            })),
        }
    }
    Values::new(if same { first.dtype.clone() } else { DType::Float64 }, &shape, Elements::fixed(bytes))
}

/// The links, renumbered to the rows of the result.
fn joined_links(parts: &[GeometryData], starts: &[u64]) -> Result<Option<Values>> {
    let width = parts.iter().filter_map(|part| part.links.as_ref()).map(|links| links.shape[1]).max();
    let Some(width) = width else { return Ok(None) };
    let (mut bytes, mut count) = (Vec::new(), 0);
    for (part, start) in parts.iter().zip(starts) {
        let Some(links) = part.links.as_ref().filter(|links| links.shape[0] > 0) else { continue };
        if links.shape[1] != width {
            return Err(Error::invalid("the links of the levels differ in width"));
        }
        count += links.shape[0];
        bytes.extend(links.to_vec::<u64>()?.iter().flat_map(|row| (row + start).to_ne_bytes()));
    }
    Values::new(DType::UInt64, &[count, width], Elements::fixed(bytes)).map(Some)
}

/// Objects with their rows in the result.
type Objects = Vec<(i64, Vec<u64>)>;

/// The objects and, for each, its part and its number in that part. Only one level stores an object's content;
/// another may have an empty row for it.
fn joined_objects(
    parts: &[GeometryData],
    starts: &[u64],
    ids: Option<&[i64]>,
) -> (Objects, Vec<(usize, usize)>) {
    let mut joined: Objects = Vec::new();
    let mut sources: Vec<(usize, usize)> = Vec::new();
    let mut places: HashMap<i64, usize> = HashMap::new();
    for (number, (part, start)) in parts.iter().zip(starts).enumerate() {
        for (at, (id, rows)) in part.objects.iter().enumerate() {
            let place = *places.entry(*id).or_insert_with(|| {
                joined.push((*id, Vec::new()));
                sources.push((number, at));
                joined.len() - 1
            });
            if joined[place].1.is_empty() {
                sources[place] = (number, at);
            }
            joined[place].1.extend(rows.iter().map(|row| row + start));
        }
    }
    let order: Vec<usize> = match ids {
        Some(ids) => ids.iter().filter_map(|id| places.get(id).copied()).collect(),
        None => (0..joined.len()).collect(),
    };
    let objects = order.iter().map(|at| std::mem::take(&mut joined[*at])).collect();
    (objects, order.iter().map(|at| sources[*at]).collect())
}

/// The attributes of objects that all levels with objects have.
fn object_columns(parts: &[GeometryData], sources: &[(usize, usize)]) -> Result<Vec<(String, Values)>> {
    let used: std::collections::BTreeSet<usize> = sources.iter().map(|(part, _)| *part).collect();
    let Some(first) = used.first() else { return Ok(Vec::new()) };
    let mut joined = Vec::new();
    for (name, values) in &parts[*first].object_attributes {
        let own = |part: usize| named(&parts[part].object_attributes, name);
        if used.iter().any(|part| own(*part).is_none()) {
            continue;
        }
        // Skip parts without objects.
        let columns: Vec<&Values> = (0..parts.len())
            .map(|part| own(part).filter(|_| used.contains(&part)).unwrap_or(values))
            .collect();
        joined.push((name.clone(), picked(name, &columns, sources)?));
    }
    Ok(joined)
}
