//! Checks that the stores of a combination agree, and collects facts about each.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use hyperslab_core::{
    Array, ArraySchema, Attribute, Attributes, Calendar, DType, Error, Node, Positions, Result, TimeAxis,
    Values, dimension_axis, read_serial,
};
use serde_json::Value;

use super::rebase::{Times, time_axis};
use crate::OpenStore;
use crate::convert::nodes_by_path;

/// Arrays without the dimension are compared by value up to this many bytes.
const MOST_COMPARED: u64 = 16 << 20;

/// Attributes that define the meaning of stored values. If they differ, joined values would be wrong.
const MEANING: [&str; 4] = ["units", "scale_factor", "add_offset", "_Unsigned"];
/// Like [`MEANING`], but compared only if both stores have them: formats differ in whether they state them.
const MARKERS: [&str; 2] = ["_FillValue", "missing_value"];

/// The structure of the first store, which all others must have.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) dimension: String,
    /// The first store, for messages.
    pub(super) first: String,
    /// The nodes, parents first.
    pub(super) nodes: Vec<(String, ModelNode)>,
    /// The array that labels the dimension.
    pub(super) coordinate: Option<String>,
    /// The values of arrays that must be equal.
    same: HashMap<String, Values>,
    /// Arrays that are too large to compare.
    pub(super) not_compared: Vec<String>,
}

/// A node of the first store.
#[derive(Debug)]
pub(super) enum ModelNode {
    Group(Attributes),
    /// An array with the dimension.
    Joined {
        axis: usize,
        schema: Box<ArraySchema>,
    },
    /// An array without it.
    Same(Box<ArraySchema>),
}

impl ModelNode {
    /// Returns true for a dimension that no array describes.
    fn is_declared(&self) -> bool {
        matches!(self, Self::Joined { schema, .. } | Self::Same(schema) if schema.is_dimension)
    }
}

/// Returns true for a dimension that no array describes.
fn is_declared(node: &Node) -> bool {
    matches!(node, Node::Array(array) if array.schema().is_dimension)
}

/// Facts about one store.
#[derive(Debug)]
pub(super) struct StoreFacts {
    /// The length of the dimension.
    pub(super) length: u64,
    /// The coordinate, converted to the first store's numbers.
    pub(super) coordinate: Option<Vec<f64>>,
    /// The attributes of every node.
    pub(super) attributes: HashMap<String, Attributes>,
    /// Arrays whose times count from another date.
    pub(super) times: HashMap<String, Times>,
}

impl Model {
    /// Makes the first store the model.
    pub(super) fn new(store: OpenStore, path: &Path, dimension: &str) -> Result<(Self, StoreFacts)> {
        let mut model = Self {
            dimension: dimension.to_owned(),
            first: path.display().to_string(),
            nodes: Vec::new(),
            coordinate: None,
            same: HashMap::new(),
            not_compared: Vec::new(),
        };
        let nodes = nodes_by_path(&store)?;
        let mut names: Vec<Option<String>> = Vec::new();
        for (path, node) in nodes {
            let kind = match node {
                Node::Group(attributes) => ModelNode::Group(attributes),
                Node::Array(array) => {
                    let schema = array.schema();
                    names.extend(schema.dimensions.iter().cloned());
                    model.take_array(&path, &*array)?
                }
                Node::Link(_) | Node::Type(..) => continue,
                other => {
                    let what = format!("joining {path}, which is {},", other.kind().one());
                    return Err(Error::unsupported(model.first.as_str(), what));
                }
            };
            model.nodes.push((path, kind));
        }
        if !model.nodes.iter().any(|(_, kind)| matches!(kind, ModelNode::Joined { .. })) {
            names.sort();
            names.dedup();
            let why = dimension_axis(&names, dimension).err().map_or_else(String::new, |why| why.to_string());
            return Err(Error::invalid(format!("{}: {why}", model.first)));
        }
        let facts = model.examine(store, path)?;
        Ok((model, facts))
    }

    fn take_array(&mut self, path: &str, array: &dyn Array) -> Result<ModelNode> {
        let schema = array.schema();
        let named = schema.dimensions.iter().filter(|name| name.as_deref() == Some(&self.dimension)).count();
        if named == 0 {
            if !schema.is_dimension {
                self.keep_values(path, array)?;
            }
            return Ok(ModelNode::Same(Box::new(schema.clone())));
        }
        if named > 1 {
            let what = format!("{path} has the dimension {} twice", self.dimension);
            return Err(Error::invalid(format!("{}: {what}; an array is joined along one axis", self.first)));
        }
        let axis = dimension_axis(&schema.dimensions, &self.dimension)?;
        let is_coordinate = schema.dimensions.len() == 1
            && !schema.is_dimension
            && path.rsplit('/').next() == Some(self.dimension.as_str());
        if is_coordinate && self.coordinate.is_none() {
            self.coordinate = Some(path.to_owned());
        }
        Ok(ModelNode::Joined { axis, schema: Box::new(schema.clone()) })
    }

    fn keep_values(&mut self, path: &str, array: &dyn Array) -> Result<()> {
        let schema = array.schema();
        if schema.bytes().is_some_and(|bytes| bytes > MOST_COMPARED) {
            self.not_compared.push(path.to_owned());
        } else {
            self.same.insert(path.to_owned(), read_serial(array, Positions::whole(schema.shape()))?);
        }
        Ok(())
    }

    /// Compares a store with the model.
    pub(super) fn examine(&self, store: OpenStore, path: &Path) -> Result<StoreFacts> {
        let name = path.display().to_string();
        let differs = |what: String| Error::invalid(format!("{name}: {what}"));
        let nodes: HashMap<String, Node> = nodes_by_path(&store)?.into_iter().collect();
        let mut facts =
            StoreFacts { length: 0, coordinate: None, attributes: HashMap::new(), times: HashMap::new() };
        let mut length: Option<(u64, String)> = None;
        for (path, kind) in &self.nodes {
            // A dimension that is only declared is no coordinate.
            let found = nodes.get(path).filter(|node| kind.is_declared() || !is_declared(node));
            let (axis, own) = match (kind, found) {
                (ModelNode::Group(_), Some(Node::Group(attributes))) => {
                    facts.attributes.insert(path.clone(), portable(attributes));
                    continue;
                }
                (ModelNode::Joined { axis, schema }, Some(Node::Array(array))) => {
                    (Some(*axis), self.same_schema(path, schema, array.schema(), Some(*axis)).map(|()| array))
                }
                (ModelNode::Same(schema), Some(Node::Array(array))) => {
                    (None, self.same_schema(path, schema, array.schema(), None).map(|()| array))
                }
                // Some formats declare dimensions, others only name them.
                (kind, None) if kind.is_declared() => continue,
                (ModelNode::Group(_), None) => continue,
                (_, None) => {
                    return Err(differs(format!(
                        "{path} is missing; {} has it; use --drop {path} to leave it out",
                        self.first
                    )));
                }
                (_, Some(node)) => {
                    let what = format!("{path} is {}, which it is not in {}", node.kind().one(), self.first);
                    return Err(differs(what));
                }
            };
            let array = own.map_err(&differs)?;
            let schema = array.schema();
            facts.attributes.insert(path.clone(), portable(&schema.attributes));
            let Some(axis) = axis else {
                self.same_values(path, &**array).map_err(&differs)?;
                continue;
            };
            let extent = schema.shape()[axis];
            match &length {
                Some((known, other)) if *known != extent => {
                    let dimension = &self.dimension;
                    let what = format!("{path} is {extent} long along {dimension}, {other} is {known} long");
                    return Err(differs(what));
                }
                _ => length = Some((extent, path.clone())),
            }
        }
        let known: HashSet<&str> = self.nodes.iter().map(|(path, _)| path.as_str()).collect();
        let extra = nodes.iter().filter(|(path, node)| {
            matches!(node, Node::Array(_)) && !is_declared(node) && !known.contains(path.as_str())
        });
        if let Some(path) = extra.map(|(path, _)| path).min() {
            return Err(differs(format!(
                "{path} is missing in {}; use --drop {path} to leave it out",
                self.first
            )));
        }
        facts.length = length.map_or(0, |(length, _)| length);
        self.find_times(&nodes, &mut facts).map_err(differs)?;
        facts.coordinate = self.coordinate_values(&nodes, &facts)?;
        Ok(facts)
    }

    /// Checks that an array has the model's schema. The error describes the difference.
    fn same_schema(
        &self,
        path: &str,
        first: &ArraySchema,
        own: &ArraySchema,
        axis: Option<usize>,
    ) -> std::result::Result<(), String> {
        let there = &self.first;
        if own.dtype != first.dtype {
            return Err(format!("{path} has type {}, but {} in {there}", own.dtype, first.dtype));
        }
        let named = |names: &[Option<String>]| -> String {
            let names: Vec<&str> = names.iter().map(|name| name.as_deref().unwrap_or("?")).collect();
            format!("({})", names.join(", "))
        };
        let same_name = |(one, other): (&Option<String>, &Option<String>)| {
            one == other || one.is_none() || other.is_none()
        };
        let same_names = own.dimensions.len() == first.dimensions.len()
            && own.dimensions.iter().zip(&first.dimensions).all(same_name);
        if !same_names {
            let (own, first) = (named(&own.dimensions), named(&first.dimensions));
            return Err(format!("{path} has the dimensions {own}, but {first} in {there}"));
        }
        let same_extent = |at: usize| Some(at) == axis || own.shape()[at] == first.shape()[at];
        if let Some(at) = (0..own.shape().len()).find(|at| !same_extent(*at)) {
            let dimension = own.dimensions[at].clone().unwrap_or_else(|| format!("axis {at}"));
            let (own, first) = (own.shape()[at], first.shape()[at]);
            return Err(format!("{path} is {own} long along {dimension}, but {first} in {there}"));
        }
        if own.nullable != first.nullable {
            return Err(format!("{path} differs from {there} in whether values may be missing"));
        }
        same_meaning(path, &first.attributes, &own.attributes, there)
    }

    fn same_values(&self, path: &str, array: &dyn Array) -> std::result::Result<(), String> {
        let Some(first) = self.same.get(path) else { return Ok(()) };
        let own =
            read_serial(array, Positions::whole(array.schema().shape())).map_err(|why| why.to_string())?;
        if own.elements == first.elements {
            return Ok(());
        }
        Err(format!(
            "{path} has other values than in {}; only arrays along {} may differ; use --drop {path} to leave it out",
            self.first, self.dimension
        ))
    }

    /// Finds times that count from another date, and their bounds.
    fn find_times(
        &self,
        nodes: &HashMap<String, Node>,
        facts: &mut StoreFacts,
    ) -> std::result::Result<(), String> {
        for (path, kind) in &self.nodes {
            let ModelNode::Joined { schema, .. } = kind else { continue };
            let Some(attributes) = facts.attributes.get(path) else { continue };
            let Some(times) = Times::new(attributes, &schema.attributes) else { continue };
            let group = path.rsplit_once('/').map_or("", |(group, _)| group);
            let bounds = ["bounds", "climatology"].iter().filter_map(|name| attributes.get(name)?.as_text());
            let mut all: Vec<String> = bounds.map(|name| format!("{group}/{name}")).collect();
            all.retain(|path| matches!(nodes.get(path), Some(Node::Array(_))));
            all.push(path.clone());
            for path in all {
                let Some(Node::Array(array)) = nodes.get(&path) else { continue };
                let values = read_serial(&**array, Positions::whole(array.schema().shape()));
                if !times.is_exact(&values.map_err(|why| why.to_string())?) {
                    return Err(format!(
                        "{path} cannot count \"{}\", as {} does, in {} without rounding; store it as float64 first",
                        times.units(),
                        self.first,
                        array.schema().dtype
                    ));
                }
                facts.times.insert(path, times.clone());
            }
        }
        Ok(())
    }

    fn coordinate_values(
        &self,
        nodes: &HashMap<String, Node>,
        facts: &StoreFacts,
    ) -> Result<Option<Vec<f64>>> {
        let Some(path) = &self.coordinate else { return Ok(None) };
        let Some(Node::Array(array)) = nodes.get(path) else { return Ok(None) };
        let array = match facts.times.get(path) {
            Some(times) => times.applied(std::sync::Arc::clone(array))?,
            None => std::sync::Arc::clone(array),
        };
        Ok(numbers(&read_serial(&*array, Positions::whole(array.schema().shape()))?))
    }

    /// The time axis of the coordinate.
    pub(super) fn time(&self) -> Option<TimeAxis> {
        let coordinate = self.coordinate.as_ref()?;
        self.nodes.iter().find(|(path, _)| path == coordinate).and_then(|(_, kind)| match kind {
            ModelNode::Joined { schema, .. } => time_axis(&schema.attributes),
            _ => None,
        })
    }
}

/// The attributes without any format's bookkeeping.
fn portable(attributes: &Attributes) -> Attributes {
    let names: HashSet<&str> =
        crate::convert::portable_attributes(attributes, false).into_iter().map(|(name, _)| name).collect();
    attributes.filtered(|name, _| names.contains(name))
}

/// The numbers of a coordinate; `None` if it is not numeric.
fn numbers(values: &Values) -> Option<Vec<f64>> {
    if let (DType::DateTime(_), Some(bytes)) = (&values.dtype, values.elements.as_fixed()) {
        return Some(
            bytes.chunks_exact(8).map(|bytes| bytemuck::pod_read_unaligned::<i64>(bytes) as f64).collect(),
        );
    }
    crate::labels::numbers_of(values)
}

/// Refuses arrays whose stored values mean different things.
fn same_meaning(
    path: &str,
    first: &Attributes,
    own: &Attributes,
    there: &str,
) -> std::result::Result<(), String> {
    let text = |attributes: &Attributes, name: &str| attributes.get(name).and_then(Attribute::as_text);
    let both_count_time = time_like(first) && time_like(own);
    if both_count_time {
        let calendar = |attributes: &Attributes| text(attributes, "calendar").unwrap_or_default();
        let (ours, theirs) = (calendar(own), calendar(first));
        if Calendar::from_name(&ours) != Calendar::from_name(&theirs) {
            let name = |calendar: String| if calendar.is_empty() { "standard".to_owned() } else { calendar };
            let (ours, theirs) = (name(ours), name(theirs));
            return Err(format!("{path} counts time in the calendar {ours}, but in {theirs} in {there}"));
        }
        if time_axis(first).is_none() || time_axis(own).is_none() {
            let (ours, theirs) = (text(own, "units"), text(first, "units"));
            if ours != theirs {
                let (ours, theirs) = (ours.unwrap_or_default(), theirs.unwrap_or_default());
                return Err(format!(
                    "{path} counts \"{ours}\", but \"{theirs}\" in {there}, and one of the two is not understood"
                ));
            }
        }
    }
    for name in MEANING.into_iter().filter(|name| !(both_count_time && *name == "units")) {
        let (ours, theirs) = (own.get(name), first.get(name));
        if !same_attribute(ours, theirs) {
            let shown = |attribute: Option<&Attribute>| attribute.map_or("none".to_owned(), shown);
            return Err(format!("{path} has {name} {}, but {} in {there}", shown(ours), shown(theirs)));
        }
    }
    for name in MARKERS {
        if let (Some(ours), Some(theirs)) = (own.get(name), first.get(name))
            && !same_attribute(Some(ours), Some(theirs))
        {
            return Err(format!("{path} has {name} {}, but {} in {there}", shown(ours), shown(theirs)));
        }
    }
    Ok(())
}

fn time_like(attributes: &Attributes) -> bool {
    let units = attributes.get("units").and_then(Attribute::as_text);
    units.is_some_and(|units| units.contains(" since "))
}

/// An attribute as text, for messages.
pub(super) fn shown(attribute: &Attribute) -> String {
    match attribute.to_json() {
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}

/// Returns true if attributes are equal, regardless of the precision in which formats store numbers.
pub(super) fn same_attribute(one: Option<&Attribute>, other: Option<&Attribute>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one == other || same_json(&one.to_json(), &other.to_json()),
        (one, other) => one.is_none() && other.is_none(),
    }
}

fn same_json(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap_or(f64::NAN), other.as_f64().unwrap_or(f64::NAN));
            one == other || (one - other).abs() <= 1e-6 * one.abs().max(other.abs())
        }
        // A single number equals a list of one.
        (Value::Array(items), value) | (value, Value::Array(items)) if !value.is_array() => {
            items.len() == 1 && same_json(&items[0], value)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_json(one, other))
        }
        _ => one == other,
    }
}
