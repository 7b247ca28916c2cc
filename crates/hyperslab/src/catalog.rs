//! The catalog shown by `info`: nodes with shapes, types, filters and attributes.

mod aliases;
mod arrange;
mod cdl;
mod tree;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyperslab_core::{
    Array, Attribute, Attributes, DType, Elements, Error, Fill, Geometry, Labels, Node, Result, Table, Usage,
    child_path, element_to_json, is_child_path,
};
use serde_json::{Map, Value, json};

pub use aliases::Alias;
pub use arrange::{CatalogDimension, SortBy, Total};
pub use tree::NodeFacts;

use crate::OpenStore;
use crate::open::MOST_NODES;

/// The nodes of a store.
#[derive(Debug)]
pub struct Catalog {
    /// The path that was opened.
    pub path: String,
    /// The format's name.
    pub format: &'static str,
    /// The nodes, parents first, in file order.
    pub nodes: Vec<CatalogNode>,
}

/// One node.
#[derive(Debug)]
pub struct CatalogNode {
    /// Its path.
    pub path: String,
    /// The node, or why it cannot be read.
    pub node: Result<Node>,
    /// The stored size of an array, or why it is unknown.
    pub usage: Option<Result<Usage>>,
    /// The link that the path is, if the object has another path.
    pub alias: Option<Alias>,
}

impl Catalog {
    pub(crate) fn of(store: &OpenStore) -> Result<Self> {
        if store.inner().is_remote() {
            return Self::of_remote(store);
        }
        let mut nodes = Vec::new();
        store.walk(&mut |path, node| {
            let usage = if let Ok(Node::Array(array)) = &node { Some(array.usage()) } else { None };
            nodes.push(CatalogNode { path: path.to_owned(), node, usage, alias: None });
            Ok(())
        })?;
        aliases::find(&**store.inner(), &mut nodes);
        Ok(Self { path: store.path().display().to_string(), format: store.format(), nodes })
    }

    /// Opens all nodes of a level at once, because each takes at least one round trip.
    fn of_remote(store: &OpenStore) -> Result<Self> {
        let mut levels: HashMap<String, (CatalogNode, Vec<String>)> = HashMap::new();
        let mut pending = vec!["/".to_owned()];
        while !pending.is_empty() {
            let looked = at_once(&pending, |path| {
                let node = store.inner().node(path);
                let below = match &node {
                    Ok(Node::Group(_)) => store.inner().children(path),
                    _ => Ok(Vec::new()),
                };
                let (node, below) = match below {
                    Ok(below) => (node, below),
                    Err(error) => (Err(error), Vec::new()),
                };
                let usage = if let Ok(Node::Array(array)) = &node { Some(array.usage()) } else { None };
                (CatalogNode { path: path.clone(), node, usage, alias: None }, below)
            });
            pending.clear();
            for (node, below) in looked {
                let below: Vec<String> = below.iter().map(|name| child_path(&node.path, name)).collect();
                pending.extend(below.iter().filter(|path| is_child_path(path)).cloned());
                levels.insert(node.path.clone(), (node, below));
            }
            if levels.len() as u64 > MOST_NODES {
                return Err(Error::invalid(format!(
                    "{}: more than {MOST_NODES} nodes",
                    store.inner().name()
                )));
            }
        }
        let mut nodes = Vec::with_capacity(levels.len());
        let mut order = vec!["/".to_owned()];
        while let Some(path) = order.pop() {
            if let Some((node, below)) = levels.remove(&path) {
                nodes.push(node);
                order.extend(below.into_iter().rev());
            }
        }
        aliases::find(&**store.inner(), &mut nodes);
        Ok(Self { path: store.path().display().to_string(), format: store.format(), nodes })
    }

    /// The output of `tet info --json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let nodes: Vec<_> = self.nodes.iter().map(CatalogNode::to_json).collect();
        json!({ "path": self.path, "format": self.format, "nodes": nodes })
    }
}

/// The number of threads that wait for responses. They do almost nothing else.
const WAITING: usize = 32;

/// Runs `work` for all items, many at a time. Results are in item order.
fn at_once<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let mut answers: Vec<(usize, T)> = std::thread::scope(|scope| {
        let worker = || {
            let mut own = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(number) else { return own };
                own.push((number, work(item)));
            }
        };
        let others: Vec<_> = (1..items.len().min(WAITING)).map(|_| scope.spawn(worker)).collect();
        let mut all = worker();
        // A worker that panicked has no results; the panic has been reported.
        all.extend(others.into_iter().filter_map(|thread| thread.join().ok()).flatten());
        all
    });
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

impl CatalogNode {
    /// The attributes of a node, including the format's bookkeeping.
    #[must_use]
    pub fn attributes(&self) -> Option<&Attributes> {
        match self.node.as_ref().ok()? {
            Node::Group(attributes) | Node::Type(_, attributes) => Some(attributes),
            Node::Array(array) => Some(&array.schema().attributes),
            Node::Table(table) => Some(&table.schema().attributes),
            Node::Geometry(geometry) => Some(&geometry.schema().attributes),
            _ => None,
        }
    }

    /// The path, and where it leads if it is a link: `/latest → /2024`.
    #[must_use]
    pub fn title(&self) -> String {
        match &self.alias {
            // The target of a link node is among its facts.
            Some(alias) if !matches!(self.node, Ok(Node::Link(_))) => {
                format!("{} → {}", self.path, alias.target())
            }
            _ => self.path.clone(),
        }
    }

    /// User attributes: all but a format's bookkeeping, such as HDF5's lists of dimension scales.
    #[must_use]
    pub fn user_attributes(&self) -> Vec<(&str, &Attribute)> {
        self.attributes().map(|all| crate::convert::portable_attributes(all, false)).unwrap_or_default()
    }

    /// One of the `nodes` of `tet info --json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = Map::from_iter([("path".to_owned(), Value::from(self.path.as_str()))]);
        let node = match &self.node {
            Ok(node) => node,
            Err(error) => {
                let kind = if error.is_unsupported() { "unsupported" } else { "damaged" };
                object.insert("kind".into(), kind.into());
                object.insert("error".into(), error.to_string().into());
                return Value::Object(object);
            }
        };
        object.insert("kind".into(), node.kind().to_string().into());
        match node {
            Node::Group(attributes) => {
                let images = crate::conventions::Multiscale::all(attributes);
                if !images.is_empty() {
                    let images = images.iter().map(crate::conventions::Multiscale::to_json).collect();
                    object.insert("multiscales".into(), Value::Array(images));
                }
                with_attributes(&mut object, attributes);
            }
            Node::Array(array) => array_json(&mut object, &**array, self.usage.as_ref()),
            Node::Table(table) => table_json(&mut object, &**table),
            Node::Geometry(geometry) => geometry_json(&mut object, &**geometry),
            Node::Link(target) => {
                object.insert("target".into(), target.as_str().into());
            }
            Node::Type(dtype, attributes) => {
                object.insert("dtype".into(), dtype.to_string().into());
                with_dtype_details(&mut object, dtype);
                with_attributes(&mut object, attributes);
            }
            _ => {}
        }
        if let Some(alias) = &self.alias {
            object.insert("link".into(), alias.to_json());
        }
        Value::Object(object)
    }
}

fn with_attributes(object: &mut Map<String, Value>, attributes: &Attributes) {
    object.insert("attributes".into(), Value::Object(attributes.to_json()));
}

fn array_json(object: &mut Map<String, Value>, array: &dyn Array, usage: Option<&Result<Usage>>) {
    let schema = array.schema();
    object.insert("dtype".into(), schema.dtype.to_string().into());
    with_dtype_details(object, &schema.dtype);
    // HDF5's null dataspace: an array without elements or even a shape.
    let shape = if schema.chunk_index == "null" { Value::Null } else { json!(schema.shape()) };
    object.insert("shape".into(), shape);
    let chunk_shape = if schema.chunked { json!(schema.grid.chunk_shape()) } else { Value::Null };
    object.insert("chunk_shape".into(), chunk_shape);
    if let Some(shard_shape) = &schema.stored.shard_shape {
        object.insert("shard_shape".into(), json!(shard_shape));
    }
    let fixed = schema.shape().iter().map(|extent| Some(*extent)).eq(schema.max_shape.iter().copied());
    if !fixed {
        object.insert("max_shape".into(), json!(schema.max_shape));
    }
    object.insert("dimensions".into(), json!(schema.dimensions));
    if let Some(labels) = labels_json(&schema.labels) {
        object.insert("labels".into(), labels);
    }
    object.insert("fill_value".into(), fill_json(&schema.dtype, &schema.fill));
    if schema.nullable {
        object.insert("nullable".into(), true.into());
    }
    let filters: Vec<_> = schema.filters.iter().map(hyperslab_core::Filter::to_json).collect();
    object.insert("filters".into(), filters.into());
    object.insert("chunk_index".into(), schema.chunk_index.as_str().into());
    match usage {
        Some(Ok(usage)) => {
            object.insert("chunks_stored".into(), usage.chunks.into());
            object.insert("stored_bytes".into(), usage.bytes.into());
        }
        Some(Err(error)) => {
            object.insert("error".into(), error.to_string().into());
        }
        None => {}
    }
    with_attributes(object, &schema.attributes);
}

/// Details that a type's name does not express.
fn with_dtype_details(object: &mut Map<String, Value>, dtype: &DType) {
    match dtype {
        DType::Enum(named) => {
            let members: Map<_, _> = named
                .members
                .iter()
                .map(|(name, value)| {
                    let value =
                        i64::try_from(*value).map_or_else(|_| Value::from(value.to_string()), Value::from);
                    (name.clone(), value)
                })
                .collect();
            object.insert("enum".into(), json!({ "base": named.base.to_string(), "members": members }));
        }
        DType::Opaque(opaque) if !opaque.tag.is_empty() => {
            object.insert("tag".into(), opaque.tag.as_str().into());
        }
        _ => {}
    }
}

fn labels_json(labels: &[Labels]) -> Option<Value> {
    if labels.iter().all(|labels| *labels == Labels::None) {
        return None;
    }
    let one = |labels: &Labels| match labels {
        Labels::None => Value::Null,
        Labels::Texts(texts) => json!(&texts[..]),
        Labels::Node(path) => json!({ "node": path }),
        Labels::Domain { first, dtype } => {
            let first = Elements::fixed(first.to_ne_bytes().to_vec());
            let dtype = if matches!(dtype, DType::DateTime(_)) { dtype } else { &DType::Int64 };
            json!({ "first": element_to_json(dtype, &first, 0) })
        }
    };
    Some(labels.iter().map(one).collect())
}

/// The fill value as one element.
pub(crate) fn fill_json(dtype: &DType, fill: &Fill) -> Value {
    match fill {
        Fill::Undefined => Value::Null,
        Fill::Zero => element_to_json(dtype, &Elements::zero(dtype), 0),
        Fill::Element(element) => element_to_json(dtype, element, 0),
    }
}

fn table_json(object: &mut Map<String, Value>, table: &dyn Table) {
    let schema = table.schema();
    let columns: Vec<_> = schema
        .columns
        .iter()
        .map(|column| {
            let mut described = json!({
                "name": column.name, "dtype": column.dtype.to_string(), "nullable": column.nullable,
            });
            if column.dimension {
                described["dimension"] = true.into();
            }
            if !column.filters.is_empty() {
                described["filters"] = column.filters.iter().map(hyperslab_core::Filter::to_json).collect();
            }
            described
        })
        .collect();
    object.insert("columns".into(), columns.into());
    insert_or_error(object, "rows", table.rows().map(Value::from));
    with_attributes(object, &schema.attributes);
}

fn geometry_json(object: &mut Map<String, Value>, geometry: &dyn Geometry) {
    let schema = geometry.schema();
    object.insert("kinds".into(), json!(schema.kinds));
    object.insert("axes".into(), json!(schema.axes));
    let levels = geometry.levels().map(|levels| {
        let one = |level: &hyperslab_core::GeometryLevel| {
            json!({
                "path": level.path, "vertices": level.vertices, "links": level.links, "objects": level.objects,
            })
        };
        levels.iter().map(one).collect()
    });
    insert_or_error(object, "levels", levels);
    object.insert("bounds".into(), json!(schema.bounds));
    with_attributes(object, &schema.attributes);
}

fn insert_or_error(object: &mut Map<String, Value>, key: &str, value: Result<Value, Error>) {
    match value {
        Ok(value) => object.insert(key.to_owned(), value),
        Err(error) => object.insert("error".to_owned(), error.to_string().into()),
    };
}
