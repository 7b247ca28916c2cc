//! SWC: neuron trees, one line per vertex with its parent.

use std::io::Write;

use hyperslab_core::{Error, Result};

use super::{Selected, view};

/// Writes SWC: `id type x y z radius parent`, parents before children. Links are read as `[child, parent]` if that gives trees;
/// otherwise their direction is ignored. Without links, line objects are paths. The attributes `radius` and `type` (or
/// `swc_type`) are used if present.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) if the links form a cycle or join more than two vertices; [`Io`](Error::Io) if the system reports
/// an error.
pub fn write_swc(selected: &Selected, out: &mut dyn Write) -> Result<()> {
    let failed = |source| Error::io("output", source);
    let points = view::points(selected)?;
    let parents = parents(selected)?;
    let attribute = |names: &[&str]| {
        let found = selected.data.attributes.iter().find(|(name, _)| names.contains(&name.as_str()));
        found.map(|(_, values)| view::floats(values)).filter(|numbers| numbers.len() == points.len())
    };
    let (radius, kind) = (attribute(&["radius", "radii"]), attribute(&["type", "swc_type", "compartment"]));
    let mut ids = vec![0_usize; points.len()];
    writeln!(out, "# id type x y z radius parent").map_err(failed)?;
    for (number, row) in order(&parents)?.into_iter().enumerate() {
        ids[row] = number + 1;
        let parent = parents[row].map_or("-1".to_owned(), |parent| ids[parent].to_string());
        let kind = kind.as_ref().map_or(0.0, |kinds| kinds[row]) as i64;
        let radius = radius.as_ref().map_or(1.0, |radii| radii[row]);
        let [x, y, z] = points[row];
        writeln!(out, "{} {kind} {x} {y} {z} {radius} {parent}", number + 1).map_err(failed)?;
    }
    Ok(())
}

fn cycle() -> Error {
    Error::invalid("the links form a cycle, but SWC can only hold trees")
}

/// The parent of every vertex.
fn parents(selected: &Selected) -> Result<Vec<Option<usize>>> {
    let mut links = view::links(selected)?;
    if links.is_empty() && view::are_lines(selected) {
        for (_, rows) in &selected.data.objects {
            links.extend(rows.windows(2).map(|pair| vec![pair[1] as usize, pair[0] as usize]));
        }
    }
    let count = selected.vertices();
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut parents: Vec<Option<usize>> = vec![None; count];
    let mut directed = true;
    for link in &links {
        let [child, parent] = link[..] else {
            return Err(Error::invalid("links join more than two vertices, but SWC can only hold trees"));
        };
        directed &= parents[child].replace(parent).is_none();
        neighbours[child].push(parent);
        neighbours[parent].push(child);
    }
    if directed && order(&parents).is_ok() {
        return Ok(parents);
    }
    let (mut parents, mut seen, mut used) = (vec![None; count], vec![false; count], 0);
    for root in 0..count {
        let mut pending = vec![root];
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        while let Some(row) = pending.pop() {
            for &next in &neighbours[row] {
                if !std::mem::replace(&mut seen[next], true) {
                    parents[next] = Some(row);
                    used += 1;
                    pending.push(next);
                }
            }
        }
    }
    if used == links.len() { Ok(parents) } else { Err(cycle()) }
}

/// All vertices, parents before their children, otherwise as close to their own order as a depth-first walk allows.
fn order(parents: &[Option<usize>]) -> Result<Vec<usize>> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); parents.len()];
    for (row, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent {
            children[*parent].push(row);
        }
    }
    let mut order = Vec::with_capacity(parents.len());
    for root in (0..parents.len()).filter(|row| parents[*row].is_none()) {
        let mut pending = vec![root];
        while let Some(row) = pending.pop() {
            order.push(row);
            pending.extend(children[row].iter().rev());
        }
    }
    if order.len() == parents.len() { Ok(order) } else { Err(cycle()) }
}
