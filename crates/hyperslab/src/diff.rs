//! Same values? Two stores compared node by node, whatever their formats and chunkings.
//!
//! Compared are the nodes there are, types, shapes and values, and unless [`DiffOptions::values_only`] is set what people
//! see beside the values: attributes, links, names of dimensions, coordinates, fill values, how far axes may grow, names of
//! the values of an enumeration, and whether there is a dataspace at all. Chunks and filters are not: they are how values
//! are kept. NaN equals NaN, and zero has no sign.
//!
//! Between stores of different formats, what one of the formats cannot say is no difference: links where one has none (each
//! path is compared with what it leads to), fill values and growth where one keeps none, a dimension without a name, labels
//! of another kind, an enumeration that is plain integers elsewhere, an array without a dataspace.

mod about;
mod nodes;
mod tree;
mod values;

use std::collections::BTreeMap;

use hyperslab_core::{Attribute, Attributes, Node, Result, normal_path};
use serde_json::{Value, json};

use crate::OpenStore;

pub(crate) use tree::{below, join};
pub use values::Tolerance;

use tree::{Tree, below_once, compare_links};

/// How to compare.
#[derive(Debug, Clone)]
pub struct DiffOptions {
    /// How far floats may be apart.
    pub tolerance: Tolerance,
    /// Compare attributes too?
    pub attributes: bool,
    /// Compare nothing but nodes, types, shapes and values?
    pub values_only: bool,
    /// Memory for values on their way.
    pub memory: u64,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { tolerance: Tolerance::default(), attributes: true, values_only: false, memory: 256 << 20 }
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
    /// What kind of difference it is. These codes stay as they are:
    ///
    /// | code | what differs |
    /// |---|---|
    /// | `node` | only one side has the node |
    /// | `kind` | an array on one side, a group or table on the other |
    /// | `type`, `shape`, `values` | of an array |
    /// | `columns`, `rows` | of a table |
    /// | `attribute` | its value, or only one side has it |
    /// | `link` | what a path links to, or whether it is a link |
    /// | `dimensions`, `coordinates` | their names; what holds the labels |
    /// | `fill` | what a cell holds that was never written |
    /// | `growth` | how far axes may grow |
    /// | `enumeration` | the names of values |
    /// | `null` | whether there is a dataspace |
    pub code: &'static str,
    /// The first side and the second, in few words.
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

    fn add(&mut self, path: &str, code: &'static str, detail: impl Into<String>) {
        self.differences.push(Difference {
            path: path.to_owned(),
            code,
            detail: detail.into(),
            values: None,
        });
    }
}

impl Difference {
    /// A plain sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let subject = match self.code {
            "node" => "There is",
            "kind" => "The kinds of node differ:",
            "type" => "The types differ:",
            "shape" => "The shapes differ:",
            "values" => "The values differ:",
            "columns" => "The columns differ:",
            "rows" => "The numbers of rows differ:",
            "attribute" => "An attribute differs:",
            "link" => "The links differ:",
            "dimensions" => "The names of the dimensions differ:",
            "coordinates" => "The coordinates differ:",
            "fill" => "The fill values differ:",
            "growth" => "How far the axes may grow differs:",
            "enumeration" => "The names of the values differ:",
            "null" => "Only one of them has a dataspace:",
            other => other,
        };
        format!("{subject} {}.", self.detail)
    }

    fn to_json(&self) -> Value {
        let mut told = json!({
            "path": self.path, "code": self.code, "what": self.code, "detail": self.detail, "sentence": self.sentence(),
        });
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
    let mut report = DiffReport::default();
    let shared = Shared::of(a.0, b.0);
    let (tree_a, tree_b) = trees(&sides, shared.links && !options.values_only)?;
    compare_links(&mut report, &tree_a, &tree_b);
    let (of_a, of_b) = (tree_a.nodes, tree_b.nodes);
    let roots = [sides[0].1.as_str(), sides[1].1.as_str()];
    let mut compare = nodes::Comparison { options, report: &mut report, shared, roots };
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
            None if tree_b.links.contains_key(path) => {}
            None => {
                compare.report.add(path, "node", format!("{} that only the first has", node.kind().one()))
            }
        }
    }
    let untold = |path: &String| !of_a.contains_key(path) && !tree_a.links.contains_key(path);
    for (path, node) in of_b.iter().filter(|(path, _)| untold(path)) {
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

/// What stands on each side. Links are kept apart where both sides have them.
fn trees(sides: &[(&OpenStore, String); 2], links: bool) -> Result<(Tree, Tree)> {
    if links
        && let (Some(one), Some(other)) =
            (below_once(sides[0].0, &sides[0].1)?, below_once(sides[1].0, &sides[1].1)?)
    {
        return Ok((one, other));
    }
    let tree = |(store, root): &(&OpenStore, String)| -> Result<Tree> {
        Ok(Tree { nodes: below(store, root)?, ..Tree::default() })
    };
    Ok((tree(&sides[0])?, tree(&sides[1])?))
}

/// What the formats of both sides can say.
#[derive(Debug, Clone, Copy)]
struct Shared {
    /// Are the formats the same, so that every difference is one?
    format: bool,
    links: bool,
    fill: bool,
    growth: bool,
}

impl Shared {
    fn of(a: &OpenStore, b: &OpenStore) -> Self {
        let format = a.format() == b.format();
        let (one, other) = (a.capabilities(), b.capabilities());
        Self {
            format,
            links: one.links && other.links,
            fill: format || one.fill_values && other.fill_values,
            growth: format || one.unlimited && other.unlimited,
        }
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
