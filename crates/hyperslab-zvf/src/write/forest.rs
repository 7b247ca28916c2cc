//! Trees, walked depth first from their roots.

use hyperslab_core::{Error, Result};

use super::arrange::Forest;

/// Trees over numbered vertices.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) parent: Vec<Option<u32>>,
    /// The root of each tree.
    pub(crate) root: Vec<u32>,
    pub(crate) forest: Forest,
}

/// Walks the links `[child, parent]` depth first. If `strict`, they must form trees; otherwise, links that close a
/// cycle are dropped.
pub(crate) fn depth_first(count: usize, links: &[u32], strict: bool) -> Result<Walk> {
    let mut has_parent = vec![false; count];
    let mut degree = vec![0_u32; count + 1];
    for link in links.chunks_exact(2) {
        if strict && std::mem::replace(&mut has_parent[link[0] as usize], true) {
            return Err(Error::invalid(format!("vertex {} of a skeleton has two parents", link[0])));
        }
        has_parent[link[0] as usize] = true;
        degree[link[0] as usize + 1] += 1;
        degree[link[1] as usize + 1] += 1;
    }
    for vertex in 0..count {
        degree[vertex + 1] += degree[vertex];
    }
    let mut at = degree.clone();
    let mut neighbours = vec![0_u32; links.len()];
    for link in links.chunks_exact(2) {
        for (from, to) in [(link[0], link[1]), (link[1], link[0])] {
            neighbours[at[from as usize] as usize] = to;
            at[from as usize] += 1;
        }
    }
    let mut walk = Walk {
        parent: vec![None; count],
        root: Vec::new(),
        forest: Forest { tree: vec![u32::MAX; count], number: vec![0; count] },
    };
    // Vertices without a parent are roots. Unless strict, vertices on cycles follow.
    let roots = (0..count).filter(|vertex| !has_parent[*vertex]).chain((0..count).filter(|_| !strict));
    let mut number = 0;
    for root in roots {
        if walk.forest.tree[root] != u32::MAX {
            continue;
        }
        let tree = walk.root.len() as u32;
        walk.root.push(root as u32);
        let mut stack = vec![(root as u32, None)];
        while let Some((vertex, parent)) = stack.pop() {
            let own = vertex as usize;
            if walk.forest.tree[own] != u32::MAX {
                continue;
            }
            walk.forest.tree[own] = tree;
            walk.forest.number[own] = number;
            walk.parent[own] = parent;
            number += 1;
            let next = &neighbours[degree[own] as usize..degree[own + 1] as usize];
            let next = next.iter().rev().filter(|next| walk.forest.tree[**next as usize] == u32::MAX);
            stack.extend(next.map(|next| (*next, Some(vertex))));
        }
    }
    if number as usize != count {
        return Err(Error::invalid("the links of a skeleton close a cycle"));
    }
    Ok(walk)
}
