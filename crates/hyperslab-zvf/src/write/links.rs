//! Links to write: which are stored, in which array, how a record is spelled.

use std::collections::BTreeMap;

use hyperslab_core::{Error, Result};

use super::place::PlacedChunk;
use super::source::Source;
use crate::coord::Coord;

/// Chunk and row of each endpoint, in the order that the link had.
pub(super) type Link = Vec<(u32, u32)>;

/// All links of the source.
pub(super) fn all(source: &Source, rows: &[(u32, u32)]) -> Vec<Link> {
    let Some((width, links)) = &source.links else { return Vec::new() };
    links
        .chunks_exact(*width)
        .map(|link| link.iter().map(|vertex| rows[*vertex as usize]).collect())
        .collect()
}

/// The cells of all link arrays: offsets, then chunk, then records.
pub(super) type Segments = BTreeMap<Vec<Coord>, BTreeMap<u32, Vec<i64>>>;

/// Sorts links into arrays. Within a chunk they stay as they are; across, their endpoints are sorted by chunk and row, and the
/// record starts with the number of the permutation that puts them back.
pub(super) fn segments(links: &[Link], chunks: &[PlacedChunk]) -> Segments {
    let mut segments = Segments::new();
    for link in links {
        let local = link.iter().all(|end| end.0 == link[0].0);
        let mut order: Vec<usize> = (0..link.len()).collect();
        if !local {
            // Chunks are numbered in the order of their coordinates.
            order.sort_by_key(|k| link[*k]);
        }
        let first = &chunks[link[order[0]].0 as usize].coord;
        let offset = |k: &usize| -> Coord {
            chunks[link[*k].0 as usize].coord.iter().zip(first).map(|(to, from)| to - from).collect()
        };
        let offsets: Vec<Coord> = order[1..].iter().map(offset).collect();
        let cell = segments.entry(offsets).or_default().entry(link[order[0]].0).or_default();
        if !local {
            cell.push(lehmer_code(&order));
        }
        cell.extend(order.iter().map(|k| i64::from(link[*k].1)));
    }
    segments
}

/// The number of a permutation; the inverse of [`crate::links::lehmer`].
fn lehmer_code(order: &[usize]) -> i64 {
    let mut code = 0;
    for i in 0..order.len() {
        let smaller = order[i + 1..].iter().filter(|later| **later < order[i]).count();
        code = code * (order.len() - i) as i64 + smaller as i64;
    }
    code
}

/// Trees, walked from their roots down.
#[derive(Debug)]
pub(super) struct Walk {
    /// Vertices, parents before children.
    pub(super) order: Vec<u32>,
    pub(super) parent: Vec<Option<u32>>,
    /// The tree of each vertex.
    pub(super) tree: Vec<u32>,
    /// The root of each tree.
    pub(super) root: Vec<u32>,
}

/// Walks the links `[child, parent]` depth first. Where `strict`, they must be trees; otherwise links that close a cycle are left out.
pub(super) fn depth_first(source: &Source, strict: bool) -> Result<Walk> {
    let count = source.len();
    let links = source.links.as_ref().map_or(&[][..], |(_, links)| links.as_slice());
    let mut has_parent = vec![false; count];
    let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); count];
    for link in links.chunks_exact(2) {
        if strict && std::mem::replace(&mut has_parent[link[0] as usize], true) {
            return Err(Error::invalid(format!("vertex {} of a skeleton has two parents", link[0])));
        }
        has_parent[link[0] as usize] = true;
        neighbours[link[0] as usize].push(link[1]);
        neighbours[link[1] as usize].push(link[0]);
    }
    let mut walk = Walk {
        order: Vec::with_capacity(count),
        parent: vec![None; count],
        tree: vec![u32::MAX; count],
        root: Vec::new(),
    };
    // True roots first, then whatever a cycle keeps from having one.
    let roots = (0..count).filter(|vertex| !has_parent[*vertex]).chain((0..count).filter(|_| !strict));
    for root in roots {
        if walk.tree[root] != u32::MAX {
            continue;
        }
        let tree = walk.root.len() as u32;
        walk.root.push(root as u32);
        let mut stack = vec![(root as u32, None)];
        while let Some((vertex, parent)) = stack.pop() {
            if walk.tree[vertex as usize] != u32::MAX {
                continue;
            }
            walk.tree[vertex as usize] = tree;
            walk.parent[vertex as usize] = parent;
            walk.order.push(vertex);
            let next = neighbours[vertex as usize]
                .iter()
                .rev()
                .filter(|next| walk.tree[**next as usize] == u32::MAX);
            stack.extend(next.map(|next| (*next, Some(vertex))));
        }
    }
    if walk.order.len() != count {
        return Err(Error::invalid("the links of a skeleton close a cycle"));
    }
    Ok(walk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_that_the_reader_undoes() {
        for width in 1..5 {
            let all: i64 = (1..=width as i64).product();
            for code in 0..all {
                assert_eq!(lehmer_code(&crate::links::lehmer(code, width).unwrap()), code);
            }
        }
    }
}
