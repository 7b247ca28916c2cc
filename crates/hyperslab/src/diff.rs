//! Compares two stores node by node, whatever their formats and chunkings.
//!
//! The comparison covers the set of nodes, types, shapes and values. Unless [`DiffOptions::values_only`] is set, it also covers
//! attributes, links, dimension names, coordinates, fill values, maximum shapes, names of enumeration values, and whether an
//! array has a dataspace at all. Chunks and filters do not count: they are only a matter of storage. NaN equals NaN, and -0
//! equals 0.
//!
//! Between stores of different formats, properties that one of the formats cannot express are no difference: links if one format
//! has none (each path is compared with its target), fill values and maximum shapes if one format does not store them, a
//! dimension without a name, labels of another kind, an enumeration that is plain integers on the other side, an array without a
//! dataspace.

mod about;
mod alike;
mod nodes;
mod tree;
mod values;

use std::collections::{BTreeMap, HashMap};

use hyperslab_core::{Attribute, Attributes, Node, Result, normal_path};
use serde_json::{Value, json};

use crate::OpenStore;
use crate::forms::{HeldLabels, labels_of};

pub(crate) use tree::{below, join};
pub use values::Tolerance;

use tree::{Tree, below_once, compare_links};

/// Options for a comparison.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DiffOptions {
    /// The tolerance for floats.
    pub tolerance: Tolerance,
    /// Compare attributes.
    pub attributes: bool,
    /// Compare only nodes, types, shapes and values.
    pub values_only: bool,
    /// The memory limit for values being compared.
    pub memory: u64,
}

hyperslab_core::option_setters! { DiffOptions {
    with_tolerance = tolerance: Tolerance,
    with_attributes = attributes: bool,
    with_values_only = values_only: bool,
    with_memory = memory: u64,
} }

impl Default for DiffOptions {
    fn default() -> Self {
        Self { tolerance: Tolerance::default(), attributes: true, values_only: false, memory: 256 << 20 }
    }
}

/// The differences between two stores.
#[derive(Debug, Clone, Default)]
pub struct DiffReport {
    /// Every difference; empty if the two are the same.
    pub differences: Vec<Difference>,
    /// The number of compared nodes that have values.
    pub nodes: u64,
    /// The number of compared elements.
    pub elements: u64,
}

/// One difference.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The node.
    pub path: String,
    /// The kind of difference. These codes are stable:
    ///
    /// | code | what differs |
    /// |---|---|
    /// | `node` | only one side has the node |
    /// | `kind` | an array on one side, a group or table on the other |
    /// | `type`, `shape`, `values` | of an array |
    /// | `columns`, `rows` | of a table |
    /// | `attribute` | its value, or only one side has it |
    /// | `link` | the target of a link, or whether the path is a link |
    /// | `dimensions`, `coordinates` | dimension names; the source of the labels |
    /// | `fill` | the fill value |
    /// | `growth` | the maximum shape |
    /// | `enumeration` | the names of values |
    /// | `null` | whether there is a dataspace |
    pub code: &'static str,
    /// A short description of both sides.
    pub detail: String,
    /// For values: the number of differences and the first one.
    pub values: Option<ValueDifference>,
}

/// How the values of an array differ.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueDifference {
    /// The number of differing elements.
    pub count: u64,
    /// The number of compared elements.
    pub of: u64,
    /// The position of the first difference, in C order.
    pub first: Vec<u64>,
    /// Its value on either side.
    pub values: [Value; 2],
    /// The largest difference between numbers.
    pub largest: Option<f64>,
}

impl DiffReport {
    /// Returns true if the two are the same.
    #[must_use]
    pub fn same(&self) -> bool {
        self.differences.is_empty()
    }

    /// Converts to JSON.
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
    /// The difference as an English sentence.
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
            "growth" => "The maximum shapes differ:",
            "enumeration" => "The names of the values differ:",
            "null" => "Only one of them has a dataspace:",
            other => other,
        };
        format!("{subject} {}.", self.detail)
    }

    fn to_json(&self) -> Value {
        let mut described = json!({
            "path": self.path, "code": self.code, "what": self.code, "detail": self.detail, "sentence": self.sentence(),
        });
        if let Some(values) = &self.values {
            described["count"] = values.count.into();
            described["of"] = values.of.into();
            described["first"] = json!(values.first);
            described["a"] = values.values[0].clone();
            described["b"] = values.values[1].clone();
            described["largest"] = json!(values.largest);
        }
        described
    }
}

/// Compares everything at and below two paths. If each side has exactly one node with values, those two are compared whatever
/// their names.
///
/// # Errors
///
/// Any error from reading: a node that cannot be read cannot be compared.
pub fn diff(a: (&OpenStore, &str), b: (&OpenStore, &str), options: &DiffOptions) -> Result<DiffReport> {
    let sides = [(a.0, normal_path(a.1)), (b.0, normal_path(b.1))];
    let mut report = DiffReport::default();
    let shared = Shared::of(a.0, b.0);
    let (tree_a, tree_b) = trees(&sides, shared.links && !options.values_only)?;
    compare_links(&mut report, &tree_a, &tree_b);
    let (mut of_a, mut of_b) = (tree_a.nodes, tree_b.nodes);
    drop_stated_labels(&mut of_a, &of_b, b.0)?;
    drop_stated_labels(&mut of_b, &of_a, a.0)?;
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

/// Removes coordinates that only represent labels which the other side's arrays hold themselves.
fn drop_stated_labels(
    own: &mut BTreeMap<String, Node>,
    others: &BTreeMap<String, Node>,
    other: &OpenStore,
) -> Result<()> {
    let capabilities = other.capabilities();
    let held = HeldLabels { domains: capabilities.domains, texts: capabilities.label_texts };
    let mut stated = Vec::new();
    for (path, node) in own.iter().filter(|(path, _)| !others.contains_key(*path)) {
        let Node::Array(array) = node else { continue };
        let Some(labels) = labels_of(array, held)? else { continue };
        let name = path.rsplit('/').next().unwrap_or_default();
        let states = |node: &Node| match node {
            Node::Array(array) => {
                let schema = array.schema();
                let mut axes = schema.dimensions.iter().zip(&schema.labels);
                axes.any(|(dimension, own)| dimension.as_deref() == Some(name) && *own == labels)
            }
            _ => false,
        };
        if others.values().any(states) {
            stated.push(path.clone());
        }
    }
    stated.iter().for_each(|path| drop(own.remove(path)));
    Ok(())
}

/// The only node with values, if there is exactly one.
fn only(nodes: &BTreeMap<String, Node>) -> Option<String> {
    let holds = |node: &Node| matches!(node, Node::Array(_) | Node::Table(_) | Node::Geometry(_));
    let mut found = nodes.iter().filter(|(_, node)| holds(node));
    match (found.next(), found.next()) {
        (Some((path, _)), None) => Some(path.clone()),
        _ => None,
    }
}

/// The nodes on each side. Links are kept separate if both sides have them.
fn trees(sides: &[(&OpenStore, String); 2], links: bool) -> Result<(Tree, Tree)> {
    if links
        && let (Some(one), Some(other)) =
            (below_once(sides[0].0, &sides[0].1)?, below_once(sides[1].0, &sides[1].1)?)
    {
        return Ok((one, other));
    }
    let tree = |(store, root): &(&OpenStore, String)| -> Result<Tree> {
        let mut nodes = below(store, root)?;
        // Named types exist only in formats with links.
        if !links {
            nodes.retain(|_, node| !matches!(node, Node::Type(..)));
        }
        Ok(Tree { nodes, ..Tree::default() })
    };
    Ok((tree(&sides[0])?, tree(&sides[1])?))
}

/// The properties that the formats of both sides can express.
#[derive(Debug, Clone, Copy)]
struct Shared {
    /// Whether the formats are the same, so that every difference counts.
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

/// Attributes are compared as JSON, because formats differ in their attribute types. Between formats, a list or an object also equals
/// its text. The origin of a store and HDF5's bookkeeping
/// attributes for dimension scales do not count as content.
fn attributes(report: &mut DiffReport, path: &str, a: &Attributes, b: &Attributes, shared: Shared) {
    let [a, b] = [a, b].map(|attributes| {
        let mut content = crate::convert::portable_attributes(attributes, false);
        content.retain(|(name, _)| *name != crate::convert::PROVENANCE);
        content
    });
    let [in_a, in_b]: [HashMap<&str, &Attribute>; 2] =
        [&a, &b].map(|all| all.iter().rev().copied().collect());
    for (name, value) in &a {
        let value = value.to_json();
        match in_b.get(name).map(|other| other.to_json()) {
            None => report.add(path, "attribute", format!("{name}: only the first has it")),
            Some(other)
                if !alike(&value, &other)
                    && (shared.format || !(is_text_of(&value, &other) || is_text_of(&other, &value))) =>
            {
                report.add(path, "attribute", format!("{name}: {value} ≠ {other}"));
            }
            Some(_) => {}
        }
    }
    for (name, _) in b.iter().filter(|(name, _)| !in_a.contains_key(name)) {
        report.add(path, "attribute", format!("{name}: only the second has it"));
    }
}

/// Returns true if `text` is the text of a list or an object.
fn is_text_of(text: &Value, content: &Value) -> bool {
    let (Value::String(text), Value::Object(_) | Value::Array(_)) = (text, content) else { return false };
    serde_json::from_str::<Value>(text).is_ok_and(|parsed| parsed == *content)
}

/// Returns true for equal documents. `1` equals `1.0`, and a list of one value equals that value.
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
