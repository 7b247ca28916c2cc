//! Same values? Two stores compared node by node, whatever their formats and chunkings.
//!
//! Compared are the nodes there are, types, shapes, values and attributes, and the names of dimensions where both have
//! them. Chunks, filters and fill values are not: they are how values are kept. NaN equals NaN, and zero has no sign.

mod nodes;
mod values;

use std::collections::BTreeMap;

use hyperslab_core::{Attribute, Attributes, Error, Node, Result, child_path, normal_path};
use serde_json::{Value, json};

use crate::OpenStore;

pub use values::Tolerance;

/// How to compare.
#[derive(Debug, Clone)]
pub struct DiffOptions {
    /// How far floats may be apart.
    pub tolerance: Tolerance,
    /// Compare attributes too?
    pub attributes: bool,
    /// Memory for values on their way.
    pub memory: u64,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { tolerance: Tolerance::default(), attributes: true, memory: 256 << 20 }
    }
}

/// What differs.
#[derive(Debug, Clone, Default)]
pub struct DiffReport {
    /// Every difference; none when the two are the same.
    pub differences: Vec<Difference>,
    /// Nodes with values that were compared.
    pub nodes: u64,
    /// Elements that were compared.
    pub elements: u64,
}

/// One difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The node.
    pub path: String,
    /// `node`, `kind`, `type`, `shape`, `dimensions`, `attribute`, `columns`, `rows` or `values`.
    pub what: &'static str,
    /// In words.
    pub detail: String,
    /// Of values: how many, and the first.
    pub values: Option<ValueDifference>,
}

/// How values differ.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueDifference {
    /// How many elements differ.
    pub count: u64,
    /// Of how many.
    pub of: u64,
    /// The first that differs, in C order.
    pub first: Vec<u64>,
    /// Its value in the one and in the other.
    pub values: [Value; 2],
    /// The largest difference of numbers.
    pub largest: Option<f64>,
}

impl DiffReport {
    /// Are the two the same?
    #[must_use]
    pub fn same(&self) -> bool {
        self.differences.is_empty()
    }

    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let differences: Vec<_> = self.differences.iter().map(Difference::to_json).collect();
        json!({
            "same": self.same(), "differences": differences, "nodes": self.nodes, "elements": self.elements,
        })
    }

    fn add(&mut self, path: &str, what: &'static str, detail: impl Into<String>) {
        self.differences.push(Difference {
            path: path.to_owned(),
            what,
            detail: detail.into(),
            values: None,
        });
    }
}

impl Difference {
    fn to_json(&self) -> Value {
        let mut told = json!({ "path": self.path, "what": self.what, "detail": self.detail });
        if let Some(values) = &self.values {
            told["count"] = values.count.into();
            told["of"] = values.of.into();
            told["first"] = json!(values.first);
            told["a"] = values.values[0].clone();
            told["b"] = values.values[1].clone();
            told["largest"] = json!(values.largest);
        }
        told
    }
}

/// Compares what stands at and below two paths. Where each side has one node with values, those two are compared,
/// whatever their names.
///
/// # Errors
///
/// Whatever reading says: what cannot be read cannot be compared.
pub fn diff(a: (&OpenStore, &str), b: (&OpenStore, &str), options: &DiffOptions) -> Result<DiffReport> {
    let sides = [(a.0, normal_path(a.1)), (b.0, normal_path(b.1))];
    let [of_a, of_b] = [below(sides[0].0, &sides[0].1)?, below(sides[1].0, &sides[1].1)?];
    let mut report = DiffReport::default();
    let mut compare = nodes::Comparison { options, report: &mut report };
    if let (Some(one), Some(other)) = (only(&of_a), only(&of_b))
        && one != other
    {
        let paths = [join(&sides[0].1, &one), join(&sides[1].1, &other)];
        compare
            .nodes(&one, [(sides[0].0, &paths[0], &of_a[&one]), (sides[1].0, &paths[1], &of_b[&other])])?;
        return Ok(report);
    }
    for (path, node) in &of_a {
        match of_b.get(path) {
            Some(other) => {
                let paths = [join(&sides[0].1, path), join(&sides[1].1, path)];
                compare.nodes(path, [(sides[0].0, &paths[0], node), (sides[1].0, &paths[1], other)])?;
            }
            None => {
                compare.report.add(path, "node", format!("{} that only the first has", node.kind().one()))
            }
        }
    }
    for (path, node) in of_b.iter().filter(|(path, _)| !of_a.contains_key(*path)) {
        compare.report.add(path, "node", format!("{} that only the second has", node.kind().one()));
    }
    Ok(report)
}

/// The only node with values.
fn only(nodes: &BTreeMap<String, Node>) -> Option<String> {
    let holds = |node: &Node| matches!(node, Node::Array(_) | Node::Table(_) | Node::Geometry(_));
    let mut found = nodes.iter().filter(|(_, node)| holds(node));
    match (found.next(), found.next()) {
        (Some((path, _)), None) => Some(path.clone()),
        _ => None,
    }
}

/// The nodes at and below a path, by their paths below it.
pub(crate) fn below(store: &OpenStore, root: &str) -> Result<BTreeMap<String, Node>> {
    let mut found = BTreeMap::new();
    let mut pending = vec!["/".to_owned()];
    while let Some(path) = pending.pop() {
        let full = join(root, &path);
        let node = store.node(&full)?;
        // A dimension is compared where arrays name it.
        if matches!(&node, Node::Array(array) if array.schema().is_dimension) {
            continue;
        }
        let field = if path == "/" { None } else { crate::fields::own_field(store, &full, &node)? };
        let node = field.unwrap_or(node);
        if matches!(node, Node::Group(_)) {
            pending.extend(store.children(&full)?.iter().map(|name| child_path(&path, name)));
        }
        if found.insert(path, node).is_some() {
            return Err(Error::invalid(format!("{full} is there twice")));
        }
    }
    Ok(found)
}

/// The path of what stands at `path` below `root`.
pub(crate) fn join(root: &str, path: &str) -> String {
    match (root, path) {
        ("/", path) => path.to_owned(),
        (root, "/") => root.to_owned(),
        (root, path) => format!("{root}{path}"),
    }
}

/// Attributes compare as JSON: formats differ in how they type them. Where a store came from, and HDF5's bookkeeping
/// of dimension scales, are not content.
fn attributes(report: &mut DiffReport, path: &str, a: &Attributes, b: &Attributes) {
    let [a, b] = [a, b].map(|attributes| {
        let mut content = crate::convert::portable_attributes(attributes, false);
        content.retain(|(name, _)| *name != crate::convert::PROVENANCE);
        content
    });
    let of = |all: &[(&str, &Attribute)], wanted: &str| {
        all.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.to_json())
    };
    for (name, value) in &a {
        let value = value.to_json();
        match of(&b, name) {
            None => report.add(path, "attribute", format!("{name}: only the first has it")),
            Some(other) if !alike(&value, &other) => {
                report.add(path, "attribute", format!("{name}: {value} ≠ {other}"));
            }
            Some(_) => {}
        }
    }
    for (name, _) in b.iter().filter(|(name, _)| of(&a, name).is_none()) {
        report.add(path, "attribute", format!("{name}: only the second has it"));
    }
}

/// The same document; `1` and `1.0` are the same number, and a list of one value is that value.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(one), other) | (other, Value::Array(one)) if one.len() == 1 && !other.is_array() => {
            alike(&one[0], other)
        }
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| alike(value, other)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests;
