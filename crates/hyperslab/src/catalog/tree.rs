//! The nodes of a catalog in words, and as a tree.

use std::fmt::Write as _;

use hyperslab_core::{ArraySchema, Filter, Node};

use super::{Catalog, CatalogNode};
use crate::conventions::Multiscale;

/// A readable description of a node: the columns of `tet info`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeFacts {
    /// The element type of an array, otherwise the kind of the node.
    pub kind: String,
    /// Extents with the names of dimensions, rows and columns, vertices, the target of a link, or an error.
    pub shape: String,
    /// The shape of a chunk, or the layout of an array without chunks.
    pub chunks: String,
    /// The filters, in the order of writing.
    pub filters: String,
}

impl CatalogNode {
    /// Describes the node.
    #[must_use]
    pub fn facts(&self) -> NodeFacts {
        let facts = |kind: &str, shape: String| NodeFacts { kind: kind.into(), shape, ..Default::default() };
        match &self.node {
            Err(error) => {
                facts(if error.is_unsupported() { "unsupported" } else { "damaged" }, error.to_string())
            }
            Ok(Node::Array(array)) => array_facts(array.schema()),
            Ok(Node::Table(table)) => {
                let columns = counted(table.schema().columns.len() as u64, "column");
                let rows = table.rows().map_or_else(|error| error.to_string(), |rows| counted(rows, "row"));
                facts("table", format!("{rows}, {columns}"))
            }
            Ok(Node::Geometry(geometry)) => {
                let finest = geometry.levels().map_or_else(
                    |error| error.to_string(),
                    |levels| format!("{} vertices", levels.first().map_or(0, |level| level.vertices)),
                );
                facts(&geometry.schema().kinds.join(", "), finest)
            }
            Ok(Node::Group(attributes)) => {
                let levels =
                    Multiscale::all(attributes).iter().map(|image| image.levels.len()).sum::<usize>();
                let image = if levels > 0 { format!("image at {levels} levels") } else { String::new() };
                facts("group", image)
            }
            Ok(Node::Link(target)) => facts("link", format!("→ {target}")),
            Ok(Node::Type(dtype, _)) => facts("type", dtype.to_string()),
            Ok(other) => facts(&other.kind().to_string(), String::new()),
        }
    }
}

fn array_facts(schema: &ArraySchema) -> NodeFacts {
    NodeFacts {
        kind: schema.dtype.to_string(),
        shape: shape_text(schema),
        chunks: chunk_text(schema),
        filters: schema.filters.iter().map(Filter::short).collect::<Vec<_>>().join(" "),
    }
}

/// A number of things: `1 row`, `2 rows`.
fn counted(number: u64, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// The chunk shape, and the shape of the shards that contain the chunks: `8 × 8 (shards 64 × 64)`.
fn chunk_text(schema: &ArraySchema) -> String {
    if !schema.chunked {
        return schema.chunk_index.clone();
    }
    let chunks = join_extents(schema.grid.chunk_shape());
    match &schema.stored.shard_shape {
        Some(shards) => format!("{chunks} (shards {})", join_extents(shards)),
        None => chunks,
    }
}

/// Extents joined by crosses: `365 × 720`. A single value has none.
fn join_extents(extents: &[u64]) -> String {
    if extents.is_empty() {
        return "scalar".to_owned();
    }
    extents.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ")
}

/// The shape, with dimension names if there are any: `time 365 × lat 720`.
fn shape_text(schema: &ArraySchema) -> String {
    if schema.dimensions.iter().all(Option::is_none) {
        return join_extents(schema.shape());
    }
    let named = schema.shape().iter().zip(&schema.dimensions).map(|(extent, name)| match name {
        Some(name) => format!("{name} {extent}"),
        None => extent.to_string(),
    });
    named.collect::<Vec<_>>().join(" × ")
}

impl Catalog {
    /// The nodes as an indented tree, one line per node.
    ///
    /// ```text
    /// /
    /// ├── climate
    /// │   ├── lat  float64  lat 720  chunks 720
    /// │   └── t    float32  time 365 × lat 720  chunks 1 × 720  gzip:4
    /// └── title  string  scalar  compact
    /// ```
    #[must_use]
    pub fn tree(&self) -> String {
        let shown: Vec<&CatalogNode> = self.nodes.iter().filter(|node| !node.is_dimension()).collect();
        let Some(root) = shown.first() else { return String::new() };
        let mut text = one_line(&root.path);
        if !matches!(root.node, Ok(Node::Group(_))) {
            add_facts(&mut text, &root.facts());
        }
        let base = depth(&root.path);
        let levels: Vec<usize> =
            shown.iter().map(|node| depth(&node.path).saturating_sub(base).max(1)).collect();
        let more = followed(&levels);
        // Whether a branch at each depth still has nodes to come.
        let mut open: Vec<bool> = Vec::new();
        for (index, node) in shown.iter().enumerate().skip(1) {
            let (level, has_next) = (levels[index], more[index]);
            open.resize(level, false);
            open[level - 1] = has_next;
            text.push('\n');
            for above in &open[..level - 1] {
                text.push_str(if *above { "│   " } else { "    " });
            }
            text.push_str(if has_next { "├── " } else { "└── " });
            let name = shown_name(node);
            if matches!(node.node, Ok(Node::Group(_))) {
                text.push_str(&name);
            } else {
                let width = widest(&shown, index);
                let _ = write!(text, "{name:<width$}");
                add_facts(&mut text, &node.facts());
            }
        }
        text
    }
}

/// For each node: whether another node of its group follows.
fn followed(levels: &[usize]) -> Vec<bool> {
    let mut seen: Vec<bool> = Vec::new();
    let mut more = vec![false; levels.len()];
    for (index, level) in levels.iter().enumerate().rev() {
        seen.resize(level + 1, false);
        more[index] = seen[*level];
        seen[*level] = true;
    }
    more
}

/// The name of a node, with the target of a link.
fn shown_name(node: &CatalogNode) -> String {
    let title = node.title();
    let parent = node.path.rfind('/').map_or(0, |at| at + 1);
    one_line(&title[parent..])
}

/// Escapes a name so that it fits on one line.
fn one_line(name: &str) -> String {
    name.chars().map(|letter| if letter.is_control() { '�' } else { letter }).collect()
}

fn depth(path: &str) -> usize {
    path.split('/').filter(|part| !part.is_empty()).count()
}

/// The longest name among the neighbours in the same group, up to a limit.
fn widest(shown: &[&CatalogNode], index: usize) -> usize {
    const MOST: usize = 24;
    let parent = |node: &CatalogNode| node.path.rfind('/').map(|at| node.path[..at].to_owned());
    let own = parent(shown[index]);
    let near = shown[index.saturating_sub(64)..shown.len().min(index + 64)].iter();
    let names = near.filter(|node| parent(node) == own && !matches!(node.node, Ok(Node::Group(_))));
    let lengths = names.map(|node| shown_name(node).chars().count());
    lengths.filter(|length| *length <= MOST).max().unwrap_or(0)
}

fn add_facts(text: &mut String, facts: &NodeFacts) {
    let chunks = match facts.chunks.chars().next() {
        Some('0'..='9') => format!("chunks {}", facts.chunks),
        _ => facts.chunks.clone(),
    };
    for fact in [&facts.kind, &facts.shape, &chunks, &facts.filters] {
        if !fact.is_empty() {
            let _ = write!(text, "  {fact}");
        }
    }
}
