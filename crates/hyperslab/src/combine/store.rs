//! The combined store.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use hyperslab_core::{
    ArraySchema, Attributes, CellOrder, Depth, Error, Grid, Node, Report, Result, Store, StoredArray,
    StoredGroup,
};

use super::AttributeRule;
use super::array::{JoinedArray, Piece};
use super::examine::{Model, ModelNode, StoreFacts};
use super::merge::merged;
use super::parts::PartStores;
use crate::OpenStore;
use crate::adapt::Described;
use crate::convert::default_chunk_shape;

/// Several stores as one.
#[derive(Debug)]
pub(super) struct CombinedStore {
    name: Arc<str>,
    /// Supplies the tree, the format and everything that is not joined.
    first: OpenStore,
    nodes: HashMap<String, Joined>,
    /// The paths of the joined arrays, in the order of the first store.
    pub(super) joined: Vec<String>,
}

/// A node of the combined store.
#[derive(Debug)]
enum Joined {
    Group(Attributes),
    Array(Arc<JoinedArray>),
    /// The first store's array, with these attributes.
    Same(Attributes),
}

impl CombinedStore {
    pub(super) fn new(
        parts: Arc<PartStores>,
        model: Model,
        all: &[StoreFacts],
        order: &[usize],
        paths: &[PathBuf],
        rule: AttributeRule,
        notes: &mut Vec<(String, String)>,
    ) -> Result<Self> {
        let first = parts.store(0)?;
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let (mut nodes, mut joined) = (HashMap::new(), Vec::new());
        for path in &model.not_compared {
            let what =
                "taken from the first file, because it is too large to compare with the others".to_owned();
            notes.push((path.clone(), what));
        }
        for (path, kind) in model.nodes {
            let own = match &kind {
                ModelNode::Group(attributes) => attributes,
                ModelNode::Joined { schema, .. } | ModelNode::Same(schema) => &schema.attributes,
            };
            let others = (1..all.len()).filter_map(|number| {
                let facts = &all[number];
                Some((names[number].as_str(), facts.attributes.get(&path)?, facts.times.contains_key(&path)))
            });
            let portable = all[0].attributes.get(&path).unwrap_or(own);
            let attributes = merged(rule, &path, (names[0].as_str(), own, portable), others, notes)?;
            let node = match kind {
                ModelNode::Group(_) => Joined::Group(attributes),
                ModelNode::Same(_) => Joined::Same(attributes),
                ModelNode::Joined { axis, schema } => {
                    joined.push(path.clone());
                    let pieces = pieces(&path, all, order)?;
                    let schema = joined_schema(*schema, axis, &pieces, attributes)?;
                    let name = format!("{} and {} more{path}", names[0], names.len() - 1);
                    let parts = Arc::clone(&parts);
                    let array = JoinedArray { name, path: path.clone(), schema, axis, pieces, parts };
                    Joined::Array(Arc::new(array))
                }
            };
            nodes.insert(path, node);
        }
        let name = format!("{} and {} more", names[0], names.len() - 1).into();
        Ok(Self { name, first, nodes, joined })
    }

    /// A joined array.
    pub(super) fn array(&self, path: &str) -> Result<Arc<JoinedArray>> {
        match self.nodes.get(path) {
            Some(Joined::Array(array)) => Ok(Arc::clone(array)),
            _ => Err(Error::not_found(Arc::clone(&self.name), path)),
        }
    }
}

/// Each store's piece of an array, in order.
fn pieces(path: &str, all: &[StoreFacts], order: &[usize]) -> Result<Vec<Piece>> {
    let (mut start, mut pieces) = (0_u64, Vec::with_capacity(order.len()));
    for number in order.iter().copied().filter(|number| all[*number].length > 0) {
        let length = all[number].length;
        pieces.push(Piece { part: number, start, length, times: all[number].times.get(path).cloned() });
        start = start
            .checked_add(length)
            .ok_or_else(|| Error::invalid(format!("{path}: the length of the joined array overflows")))?;
    }
    Ok(pieces)
}

fn joined_schema(
    first: ArraySchema,
    axis: usize,
    pieces: &[Piece],
    attributes: Attributes,
) -> Result<ArraySchema> {
    let mut shape = first.shape().to_vec();
    shape[axis] = pieces.last().map_or(0, |piece| piece.start + piece.length);
    let item = first.dtype.size().unwrap_or(16) as u64;
    let chunk_shape = if shape.len() == 1 {
        // Labels are read as a whole, so use one chunk rather than one per file.
        default_chunk_shape(&shape, item)
    } else {
        first.grid.chunk_shape().to_vec()
    };
    let mut schema = ArraySchema {
        grid: Grid::new(&shape, &chunk_shape)?,
        order: CellOrder::RowMajor,
        attributes,
        stored: StoredArray { dtype: first.stored.dtype.clone(), ..StoredArray::default() },
        chunk_index: "joined".to_owned(),
        ..first
    };
    // A dimension that could not grow gets the length of all stores together.
    if schema.max_shape[axis].is_some() {
        schema.max_shape[axis] = Some(shape[axis]);
    }
    Ok(schema)
}

impl Store for CombinedStore {
    fn format(&self) -> &'static str {
        self.first.format()
    }

    fn variant(&self) -> Option<&'static str> {
        self.first.inner().variant()
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn is_remote(&self) -> bool {
        self.first.inner().is_remote()
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        // An array and its own field are one node.
        match self.nodes.get(path) {
            Some(Joined::Group(_)) => {
                let mut names = self.first.children(path)?;
                names.retain(|name| self.nodes.contains_key(&hyperslab_core::child_path(path, name)));
                Ok(names)
            }
            Some(_) => Ok(Vec::new()),
            None => Err(Error::not_found(Arc::clone(&self.name), path)),
        }
    }

    fn node(&self, path: &str) -> Result<Node> {
        match self.nodes.get(path) {
            Some(Joined::Group(attributes)) => Ok(Node::Group(attributes.clone())),
            Some(Joined::Array(array)) => {
                Ok(Node::Array(Arc::clone(array) as Arc<dyn hyperslab_core::Array>))
            }
            Some(Joined::Same(attributes)) => {
                let array = match self.first.node(path)? {
                    Node::Array(array) => array,
                    _ => return Err(Error::not_found(Arc::clone(&self.name), path)),
                };
                let mut schema = array.schema().clone();
                schema.attributes = attributes.clone();
                schema.stored.named_type = None;
                Ok(Node::Array(Arc::new(Described::new(array, schema))))
            }
            None => Err(Error::not_found(Arc::clone(&self.name), path)),
        }
    }

    fn stored_group(&self, path: &str) -> Result<StoredGroup> {
        self.first.inner().stored_group(path)
    }

    fn verify(&self, _: Depth, _: &mut Report) -> Result<()> {
        Err(Error::unsupported(Arc::clone(&self.name), "verifying several stores at once"))
    }
}
