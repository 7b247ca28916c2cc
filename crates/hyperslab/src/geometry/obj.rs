//! Wavefront OBJ: vertices, then points, lines or faces, by object.

use std::collections::HashMap;
use std::io::Write;

use hyperslab_core::{Error, Result};

use super::{Selected, view};

/// Writes OBJ. Links of two vertices become lines, longer ones faces. Without links, line objects become lines and everything
/// else points. The parts of an object follow its `o` line.
///
/// # Errors
///
/// [`Invalid`](Error::Invalid) for more than three axes; [`Io`](Error::Io) if the system reports an error.
pub fn write_obj(selected: &Selected, out: &mut dyn Write) -> Result<()> {
    let failed = |source| Error::io("output", source);
    for [x, y, z] in view::points(selected)? {
        writeln!(out, "v {x} {y} {z}").map_err(failed)?;
    }
    for (object, lines) in parts(selected)? {
        if let Some(id) = object {
            writeln!(out, "o {id}").map_err(failed)?;
        }
        for (kind, vertices) in lines {
            let vertices: Vec<_> = vertices.iter().map(|vertex| (vertex + 1).to_string()).collect();
            writeln!(out, "{kind} {}", vertices.join(" ")).map_err(failed)?;
        }
    }
    Ok(())
}

/// A point, line or face: its letter and its vertices.
type Piece = (char, Vec<usize>);
/// An optional object and its pieces.
type ObjectPieces = (Option<i64>, Vec<Piece>);

fn parts(selected: &Selected) -> Result<Vec<ObjectPieces>> {
    let links = view::links(selected)?;
    if links.is_empty() && view::are_lines(selected) {
        let line = |(id, rows): &(i64, Vec<u64>)| {
            let rows: Vec<usize> = rows.iter().map(|row| *row as usize).collect();
            let kind = if rows.len() > 1 { 'l' } else { 'p' };
            (Some(*id), if rows.is_empty() { Vec::new() } else { vec![(kind, rows)] })
        };
        return Ok(selected.data.objects.iter().map(line).collect());
    }
    let owners = selected.owners();
    let elements: Vec<(Option<i64>, Piece)> = if links.is_empty() {
        (0..selected.vertices()).map(|row| (owners[row], ('p', vec![row]))).collect()
    } else {
        let kind = |link: &Vec<usize>| if link.len() > 2 { 'f' } else { 'l' };
        links.into_iter().map(|link| (owners[link[0]], (kind(&link), link))).collect()
    };
    let mut places: HashMap<Option<i64>, usize> = HashMap::new();
    let mut parts: Vec<ObjectPieces> = Vec::new();
    for (owner, element) in elements {
        let place = *places.entry(owner).or_insert_with(|| {
            parts.push((owner, Vec::new()));
            parts.len() - 1
        });
        parts[place].1.push(element);
    }
    // Pieces without an object must come before the first `o`.
    parts.sort_by_key(|(owner, _)| owner.is_some());
    Ok(parts)
}
