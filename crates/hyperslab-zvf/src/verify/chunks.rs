//! Checks the vertices, fragments and attributes of each chunk.

use hyperslab_core::{Error, Result, product};
use rayon::prelude::*;

use super::Failures;
use crate::cells::CellArray;
use crate::coord::{Coord, chunk_of, dotted};
use crate::fragment::FragmentIndex;
use crate::level::{Level, Vertices};
use crate::meta::{corrupt, sizes};
use crate::numbers::to_f64;

/// The findings for one chunk.
#[derive(Default)]
struct ChunkFindings {
    rows: u64,
    errors: Vec<Error>,
    warnings: Vec<String>,
}

/// Checks all chunks. Returns the number of vertices.
pub(super) fn check(level: &Level, chunks: &[Coord], failures: &mut Failures<'_>) -> u64 {
    let fragment_attributes = fragment_attributes(level).unwrap_or_else(|error| {
        failures.add(&error);
        Vec::new()
    });
    let bins = Bins::declared(level);
    let found: Vec<ChunkFindings> =
        chunks.par_iter().map(|chunk| one(level, chunk, &fragment_attributes, bins.as_ref())).collect();
    for own in &found {
        own.errors.iter().for_each(|error| failures.add(error));
        own.warnings.iter().for_each(|warning| failures.warn(warning.as_str()));
    }
    found.iter().map(|own| own.rows).sum()
}

/// The attributes of fragments, which have one row per fragment.
fn fragment_attributes(level: &Level) -> Result<Vec<(String, CellArray)>> {
    let family = format!("{}/fragment_attributes", level.path);
    let mut found = Vec::new();
    for name in level.members(&family)? {
        if let Some(cells) = CellArray::open(&level.zarr, &format!("{family}/{name}"))? {
            found.push((name, cells));
        }
    }
    Ok(found)
}

fn one(
    level: &Level,
    chunk: &Coord,
    fragment_attributes: &[(String, CellArray)],
    bins: Option<&Bins>,
) -> ChunkFindings {
    let mut found = ChunkFindings::default();
    if let Err(error) = parts(level, chunk, fragment_attributes, bins, &mut found) {
        found.errors.push(error);
    }
    found
}

fn parts(
    level: &Level,
    chunk: &Coord,
    fragment_attributes: &[(String, CellArray)],
    bins: Option<&Bins>,
    found: &mut ChunkFindings,
) -> Result<()> {
    let wrong =
        |problem: String| corrupt(level.vertices.name(), &format!("chunk {}", dotted(chunk)), problem);
    let vertices = level.chunk(chunk)?.ok_or_else(|| wrong("listed as non-empty, but empty".to_owned()))?;
    found.rows = vertices.rows;
    positions(level, chunk, &vertices, found);
    let index = level.fragments(chunk, vertices.rows)?;
    if index.has_dirty_padding() {
        found.warnings.push(format!("chunk {}: the bitmap's padding is not zero", dotted(chunk)));
    }
    if level.claims_tiles() && !index.tiles(vertices.rows) {
        let problem = "fragments_tile is declared, but the fragments do not tile the rows";
        found.errors.push(wrong(problem.to_owned()));
    }
    if let Some(bins) = bins {
        bins.check(level, chunk, &vertices, &index, found);
    }
    let columns = level.attributes()?.iter().map(|column| (column, vertices.rows, "vertices"));
    let columns =
        columns.chain(fragment_attributes.iter().map(|column| (column, index.len() as u64, "fragments")));
    for ((name, cells), rows, what) in columns {
        let Some(cell) = cells.cell(chunk)? else {
            if what == "vertices" {
                found.warnings.push(format!("chunk {}: no values of the attribute {name:?}", dotted(chunk)));
            }
            continue;
        };
        let size = rows * cells.dtype()?.size().unwrap_or(1) as u64;
        if size == 0 || !(cell.len() as u64).is_multiple_of(size) {
            let problem = format!("the attribute {name:?} has {} bytes for {rows} {what}", cell.len());
            found.errors.push(wrong(problem));
        }
    }
    Ok(())
}

/// Checks that every vertex is in its chunk, where a box query would look for it, and inside the bounds.
fn positions(level: &Level, chunk: &Coord, vertices: &Vertices, found: &mut ChunkFindings) {
    let rank = level.root.rank();
    let space = &chunk[chunk.len() - rank..];
    let (mut outside, mut beyond) = (0, 0);
    let bounds = level.root.bounds.as_ref().filter(|_| level.root.offset.is_none());
    for vertex in to_f64(&level.dtype, &vertices.bytes).chunks_exact(rank) {
        let own = vertex.iter().zip(space).zip(&level.chunk_shape);
        outside += u64::from(
            own.into_iter().any(|((at, chunk), size)| chunk_of(*at, *size) != *chunk || at.is_nan()),
        );
        let inside = |[low, high]: &[Vec<f64>; 2]| {
            (0..rank).all(|axis| low[axis] <= vertex[axis] && vertex[axis] <= high[axis])
        };
        beyond += u64::from(bounds.is_some_and(|bounds| !inside(bounds)));
    }
    if outside > 0 {
        let problem = format!("{outside} of {} vertices lie outside it", vertices.rows);
        found.errors.push(corrupt(level.vertices.name(), &format!("chunk {}", dotted(chunk)), problem));
    }
    if beyond > 0 {
        found.warnings.push(format!("chunk {}: {beyond} vertices are outside the bounds", dotted(chunk)));
    }
}

/// The bins of a store whose fragments are bins. Other readers use a bin's number as its fragment number.
struct Bins {
    size: Vec<f64>,
    counts: Vec<u64>,
}

impl Bins {
    /// The bins of the finest level, for points without objects.
    fn declared(level: &Level) -> Option<Self> {
        let own = level.root.attributes.get("zarr_vectors")?;
        let size = sizes(own.get("base_bin_shape"), level.root.rank())?;
        let plain = level.path == "/0" && level.root.kinds[0] == "point_cloud" && level.leading() == 0;
        if !plain || size == level.root.chunk_shape || level.objects().ok()?.is_some() {
            return None;
        }
        let counts =
            level.chunk_shape.iter().zip(&size).map(|(chunk, bin)| (chunk / bin).round() as u64).collect();
        Some(Self { size, counts })
    }

    fn check(
        &self,
        level: &Level,
        chunk: &Coord,
        vertices: &Vertices,
        index: &FragmentIndex,
        found: &mut ChunkFindings,
    ) {
        let total = product(&self.counts).unwrap_or(u64::MAX);
        if index.len() as u64 != total {
            let problem =
                format!("{} fragments, but {total} bins: other readers lose points in boxes", index.len());
            found.warnings.push(format!("chunk {}: {problem}", dotted(chunk)));
            return;
        }
        let rank = self.size.len();
        let positions = to_f64(&level.dtype, &vertices.bytes);
        let mut wrong = 0;
        for fragment in 0..index.len() {
            let mut left = fragment as u64;
            let mut bin = vec![0; rank];
            for axis in (0..rank).rev() {
                bin[axis] = left % self.counts[axis];
                left /= self.counts[axis];
            }
            for row in index.rows(fragment).into_iter().flatten() {
                let inside = (0..rank).all(|axis| {
                    let from =
                        chunk[axis] as f64 * level.chunk_shape[axis] + bin[axis] as f64 * self.size[axis];
                    let slack = self.size[axis] * 1e-6;
                    let at = positions[row as usize * rank + axis];
                    from - slack <= at && at <= from + self.size[axis] + slack
                });
                wrong += u64::from(!inside);
            }
        }
        if wrong > 0 {
            let problem = format!("{wrong} vertices are in the fragment of another bin");
            found.warnings.push(format!("chunk {}: {problem}", dotted(chunk)));
        }
    }
}
