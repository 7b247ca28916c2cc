//! Which chunk and row each vertex gets, in which fragments, and which of those make an object.

use std::collections::HashMap;

use hyperslab_core::{Error, Result};

use super::links::{self, Link};
use super::source::{NOBODY, Source};
use super::{Kind, WriteOptions};
use crate::coord::{Coord, chunk_of};
use crate::fragment::Fragment;
use crate::manifest::{Block, Fragments};

/// A level, ready to be written.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// In numeric order of their coordinates.
    pub(super) chunks: Vec<PlacedChunk>,
    /// One per object of the source.
    pub(super) manifests: Vec<Vec<Block>>,
    /// Links to store, by (chunk, row) of their endpoints.
    pub(super) links: Vec<Link>,
}

/// A chunk's rows.
#[derive(Debug)]
pub(super) struct PlacedChunk {
    pub(super) coord: Coord,
    /// The source's vertex of each row.
    pub(super) rows: Vec<u32>,
    pub(super) fragments: Vec<Fragment>,
}

/// Chunks of all vertices: their coordinates in numeric order, and each vertex's chunk.
struct Cut {
    coords: Vec<Coord>,
    of: Vec<u32>,
}

fn cut(source: &Source, options: &WriteOptions) -> Result<Cut> {
    let rank = source.rank;
    let chunk = |vertex: &[f64], axis: usize| chunk_of(vertex[axis], options.chunk_shape[axis]);
    let (mut low, mut high) = (vec![i64::MAX; rank], vec![i64::MIN; rank]);
    for vertex in source.positions.chunks_exact(rank) {
        for axis in 0..rank {
            let at = chunk(vertex, axis);
            low[axis] = low[axis].min(at);
            high[axis] = high[axis].max(at);
        }
    }
    // One number a chunk, in the order of the coordinates.
    let mut strides = vec![1_u64; rank];
    for axis in (0..rank.saturating_sub(1)).rev() {
        let extent = high[axis + 1].checked_sub(low[axis + 1]).and_then(|extent| u64::try_from(extent).ok());
        let next = extent.and_then(|extent| strides[axis + 1].checked_mul(extent + 1));
        strides[axis] =
            next.ok_or_else(|| Error::invalid("chunks too small for the extent of the vertices"))?;
    }
    let extent = high.first().zip(low.first()).and_then(|(high, low)| high.checked_sub(*low)).unwrap_or(0);
    let total = u64::try_from(extent).ok().and_then(|extent| strides[0].checked_mul(extent + 1));
    if total.is_none_or(|total| i64::try_from(total).is_err()) && source.len() > 0 {
        return Err(Error::invalid("chunks too small for the extent of the vertices"));
    }
    let key = |vertex: &[f64]| -> u64 {
        (0..rank).map(|axis| (chunk(vertex, axis) - low[axis]) as u64 * strides[axis]).sum()
    };
    let keys: Vec<u64> = source.positions.chunks_exact(rank).map(key).collect();
    let mut distinct = keys.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let numbers: HashMap<u64, u32> =
        distinct.iter().enumerate().map(|(number, key)| (*key, number as u32)).collect();
    let mut of = Vec::with_capacity(keys.len());
    let mut last = (u64::MAX, 0);
    for key in keys {
        if key != last.0 {
            last = (key, numbers[&key]);
        }
        of.push(last.1);
    }
    let coord = |mut key: u64| -> Coord {
        (0..rank)
            .map(|axis| {
                let at = key / strides[axis];
                key %= strides[axis];
                low[axis] + at as i64
            })
            .collect()
    };
    Ok(Cut { coords: distinct.into_iter().map(coord).collect(), of })
}

/// The finest level.
pub(super) fn base(source: &Source, options: &WriteOptions, bin: Option<&[f64]>) -> Result<Placed> {
    let cut = cut(source, options)?;
    if source.kind.is_path() {
        return paths(source, &cut);
    }
    if source.kind == Kind::Skeleton {
        return tree(source, &cut);
    }
    let mut placed = match bin {
        Some(bin) if source.objects.is_empty() => bins(source, options, &cut, bin),
        _ => by_owner(source, &cut, &source.owners()?),
    };
    placed.links = links::all(source, &rows_of(source, &placed));
    Ok(placed)
}

/// Chunk and row of each vertex of the source, where each has one.
fn rows_of(source: &Source, placed: &Placed) -> Vec<(u32, u32)> {
    let mut rows = vec![(0, 0); source.len()];
    for (number, chunk) in placed.chunks.iter().enumerate() {
        for (row, vertex) in chunk.rows.iter().enumerate() {
            rows[*vertex as usize] = (number as u32, row as u32);
        }
    }
    rows
}

fn empty(cut: &Cut, objects: usize) -> Placed {
    let chunk = |coord: &Coord| PlacedChunk { coord: coord.clone(), rows: Vec::new(), fragments: Vec::new() };
    Placed {
        chunks: cut.coords.iter().map(chunk).collect(),
        manifests: vec![Vec::new(); objects],
        links: Vec::new(),
    }
}

/// Points in bins: one fragment a bin, also for empty ones, so that readers find a bin's fragment by its number.
fn bins(source: &Source, options: &WriteOptions, cut: &Cut, bin: &[f64]) -> Placed {
    let counts: Vec<u64> =
        options.chunk_shape.iter().zip(bin).map(|(chunk, bin)| (chunk / bin).round() as u64).collect();
    let bin_of = |vertex: usize| {
        let chunk = &cut.coords[cut.of[vertex] as usize];
        let mut number = 0;
        for (axis, position) in source.position(vertex).iter().enumerate() {
            let inside = position - chunk[axis] as f64 * options.chunk_shape[axis];
            // Rounding must not move a vertex out of its own chunk.
            let at = chunk_of(inside, bin[axis]).clamp(0, counts[axis] as i64 - 1);
            number = number * counts[axis] + at as u64;
        }
        number
    };
    let mut order: Vec<(u32, u64, u32)> =
        (0..source.len()).map(|vertex| (cut.of[vertex], bin_of(vertex), vertex as u32)).collect();
    order.sort_unstable();
    let mut placed = empty(cut, 0);
    for (number, chunk) in placed.chunks.iter_mut().enumerate() {
        let own = order.partition_point(|entry| (entry.0 as usize) < number)
            ..order.partition_point(|entry| entry.0 as usize <= number);
        let own = &order[own];
        let mut start = 0;
        for bin in 0..counts.iter().product::<u64>() {
            let count = own[start..].iter().take_while(|entry| entry.1 == bin).count();
            chunk.fragments.push(Fragment::Range { start: start as u64, count: count as u64 });
            start += count;
        }
        chunk.rows = own.iter().map(|entry| entry.2).collect();
    }
    placed
}

/// One fragment for each owner in each chunk; vertices without an owner come last.
fn by_owner(source: &Source, cut: &Cut, owners: &[(u32, u32)]) -> Placed {
    let mut order: Vec<(u32, u32, u32, u32)> = (0..source.len())
        .map(|vertex| (cut.of[vertex], owners[vertex].0, owners[vertex].1, vertex as u32))
        .collect();
    order.sort_unstable();
    let mut placed = empty(cut, source.objects.len());
    for run in order.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (chunk, owner) = (&mut placed.chunks[run[0].0 as usize], run[0].1);
        let start = chunk.rows.len() as u64;
        chunk.rows.extend(run.iter().map(|entry| entry.3));
        chunk.fragments.push(Fragment::Range { start, count: run.len() as u64 });
        if let Some(manifest) = placed.manifests.get_mut(owner as usize) {
            let fragments = Fragments::One(chunk.fragments.len() as u64 - 1);
            manifest.push(Block { chunk: chunk.coord.clone(), fragments });
        }
    }
    placed
}

/// Lines: one fragment for each visit of a chunk, and a link at each crossing. A vertex of two lines is stored twice.
fn paths(source: &Source, cut: &Cut) -> Result<Placed> {
    let mut placed = empty(cut, source.objects.len());
    let mut used = vec![false; source.len()];
    for (object, (_, rows)) in source.objects.iter().enumerate() {
        let mut last: Option<(u32, u32)> = None;
        for run in rows.chunk_by(|a, b| cut.of[*a as usize] == cut.of[*b as usize]) {
            let number = cut.of[run[0] as usize];
            let chunk = &mut placed.chunks[number as usize];
            let start = chunk.rows.len() as u32;
            chunk.rows.extend_from_slice(run);
            chunk.fragments.push(Fragment::Range { start: start.into(), count: run.len() as u64 });
            let fragments = Fragments::One(chunk.fragments.len() as u64 - 1);
            placed.manifests[object].push(Block { chunk: chunk.coord.clone(), fragments });
            if let Some(last) = last {
                placed.links.push(vec![last, (number, start)]);
            }
            last = Some((number, chunk.rows.len() as u32 - 1));
            run.iter().for_each(|row| used[*row as usize] = true);
        }
    }
    match used.iter().position(|used| !used) {
        Some(vertex) => Err(Error::invalid(format!("vertex {vertex} belongs to no line"))),
        None => Ok(placed),
    }
}

/// Trees: depth first, so that most parents are the row before; the other links are stored.
fn tree(source: &Source, cut: &Cut) -> Result<Placed> {
    let owners = source.owners()?;
    let walk = links::depth_first(source, true)?;
    // Each tree has fragments of its own: only a first row may be without a parent. The keys are no objects: manifests
    // come from the trees' owners afterwards.
    let first_key = source.objects.len() as u32;
    let mut keys = vec![(0, 0); source.len()];
    for (number, vertex) in walk.order.iter().enumerate() {
        keys[*vertex as usize] = (first_key.saturating_add(walk.tree[*vertex as usize]), number as u32);
    }
    let trees = walk.tree.iter().max().map_or(0, |last| *last as usize + 1);
    let mut owner_of_tree = vec![NOBODY; trees];
    for vertex in 0..source.len() {
        let (tree, owner) = (walk.tree[vertex] as usize, owners[vertex].0);
        if vertex != walk.root[tree] as usize && owner != owners[walk.root[tree] as usize].0 {
            return Err(Error::invalid(format!("vertex {vertex} belongs to another object than its tree")));
        }
        owner_of_tree[tree] = owner;
    }
    let mut placed = by_owner(source, cut, &keys);
    placed.manifests = vec![Vec::new(); source.objects.len()];
    let rows = rows_of(source, &placed);
    for chunk in &placed.chunks {
        for (number, fragment) in chunk.fragments.iter().enumerate() {
            let Fragment::Range { start, .. } = fragment else { continue };
            let owner = owner_of_tree[walk.tree[chunk.rows[*start as usize] as usize] as usize];
            if owner != NOBODY {
                let fragments = Fragments::One(number as u64);
                placed.manifests[owner as usize].push(Block { chunk: chunk.coord.clone(), fragments });
            }
        }
    }
    for (vertex, parent) in walk.parent.iter().enumerate() {
        let Some(parent) = parent else { continue };
        let (child, parent) = (rows[vertex], rows[*parent as usize]);
        if child.0 != parent.0 || child.1 != parent.1 + 1 {
            placed.links.push(vec![child, parent]);
        }
    }
    Ok(placed)
}

/// A coarser level: every vertex is a fragment of its own, which any number of objects may name.
pub(super) fn coarse(source: &Source, options: &WriteOptions) -> Result<Placed> {
    let cut = cut(source, options)?;
    let nobody = vec![(NOBODY, 0); source.len()];
    let mut placed = by_owner(&Source { objects: Vec::new(), ..source.clone() }, &cut, &nobody);
    let rows = rows_of(source, &placed);
    let single = !source.objects.is_empty() || source.kind == Kind::Skeleton;
    if single {
        for chunk in &mut placed.chunks {
            let rows = 0..chunk.rows.len() as u64;
            chunk.fragments = rows.map(|start| Fragment::Range { start, count: 1 }).collect();
        }
    }
    for (_, own) in &source.objects {
        placed.manifests.push(runs(own, &rows, &placed.chunks));
    }
    placed.links = if source.kind == Kind::Skeleton {
        let walk = links::depth_first(source, false)?;
        let edge = |(vertex, parent): (usize, &Option<u32>)| {
            parent.map(|parent| vec![rows[vertex], rows[parent as usize]])
        };
        walk.parent.iter().enumerate().filter_map(edge).collect()
    } else if source.kind.is_path() {
        crossings(source, &rows)
    } else {
        links::all(source, &rows)
    };
    Ok(placed)
}

/// A path over single-row fragments, runs of neighbours as one block.
fn runs(path: &[u32], rows: &[(u32, u32)], chunks: &[PlacedChunk]) -> Vec<Block> {
    let mut blocks: Vec<(u32, u64, u64)> = Vec::new();
    for vertex in path {
        let (chunk, row) = rows[*vertex as usize];
        match blocks.last_mut() {
            Some((own, first, count)) if *own == chunk && *first + *count == u64::from(row) => *count += 1,
            _ => blocks.push((chunk, row.into(), 1)),
        }
    }
    let block = |(chunk, first, count): (u32, u64, u64)| Block {
        chunk: chunks[chunk as usize].coord.clone(),
        fragments: if count == 1 { Fragments::One(first) } else { Fragments::Run { first, count } },
    };
    blocks.into_iter().map(block).collect()
}

/// Links between the vertices of a path that lie in different chunks.
fn crossings(source: &Source, rows: &[(u32, u32)]) -> Vec<Link> {
    let mut links = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (_, path) in &source.objects {
        for pair in path.windows(2) {
            let (a, b) = (rows[pair[0] as usize], rows[pair[1] as usize]);
            if a.0 != b.0 && seen.insert((a.min(b), a.max(b))) {
                links.push(vec![a, b]);
            }
        }
    }
    links
}
