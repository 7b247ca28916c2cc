//! Labels along dimensions, in the form that the target has for them.

use std::collections::{HashMap, HashSet};

use hyperslab_core::{ArraySchema, ArraySpec, Attribute, Labels, Node, Positions, Result};

use super::ConvertReport;
use super::nodes::Item;
use super::subset::cut_labels;
use crate::Format;
use crate::forms::{HeldLabels, MadeCoordinates, labels_of};

/// What becomes of labels.
pub(super) struct PlacedLabels {
    made: MadeCoordinates,
    /// Coordinates of the source that are labels in the target.
    folded: HashMap<String, Labels>,
    same_format: bool,
}

impl PlacedLabels {
    /// Adds coordinates for labels that the target does not hold to `items`, and takes those away that it holds as labels.
    pub(super) fn new(
        items: &mut Vec<(String, Item)>,
        format: Format,
        same_format: bool,
        report: &mut ConvertReport,
    ) -> Result<Self> {
        let capabilities = format.info().capabilities;
        let held = HeldLabels { domains: capabilities.domains, texts: capabilities.label_texts };
        let (mut made, mut folded) = (MadeCoordinates::default(), HashMap::new());
        if same_format || !capabilities.several_arrays {
            return Ok(Self { made, folded, same_format });
        }
        let taken: HashSet<String> = items.iter().map(|(path, _)| path.clone()).collect();
        let arrays = items.iter().filter_map(|(path, item)| match item.node() {
            Some(Node::Array(array)) => Some((path, array)),
            _ => None,
        });
        for (path, array) in arrays.clone() {
            made.add(path, &**array, held, &|path| taken.contains(path))?;
        }
        let mut used: HashSet<&str> = HashSet::new();
        for (path, array) in arrays.clone() {
            used.extend(array.schema().labels.iter().filter_map(|labels| match labels {
                Labels::Node(node) if node != path => Some(node.as_str()),
                _ => None,
            }));
        }
        if held.domains || held.texts {
            for (path, array) in arrays.filter(|(path, _)| used.contains(path.as_str())) {
                if let Some(labels) = labels_of(array, held)? {
                    folded.insert(path.clone(), labels);
                }
            }
        }
        items.retain(|(path, _)| !folded.contains_key(path));
        items.extend(made.nodes.drain(..).map(|(path, node)| (path, Item::Node(node))));
        for (path, what) in made.lost.drain(..) {
            report.drop(&path, what);
        }
        Ok(Self { made, folded, same_format })
    }

    /// Gives an array of the target its labels.
    pub(super) fn place(
        &self,
        path: &str,
        schema: &ArraySchema,
        positions: &Positions,
        spec: &mut ArraySpec,
    ) {
        let kept = positions.axes.iter().enumerate().filter(|(_, axis)| axis.keep);
        for ((index, axis), labels) in kept.zip(&mut spec.labels) {
            if let Some(coordinate) = self.made.labels(path, schema, index) {
                *labels = coordinate;
            } else if let Labels::Node(node) = &labels
                && let Some(own) = self.folded.get(node)
            {
                *labels = cut_labels(own, axis);
            }
        }
        if !self.same_format {
            name_coordinates(spec);
        }
    }
}

/// Names labels that are not called like their dimension in the attribute `coordinates`, by which CF finds them.
fn name_coordinates(spec: &mut ArraySpec) {
    let known = spec.attributes.get("coordinates").and_then(Attribute::as_text).unwrap_or_default();
    let mut names: Vec<&str> = known.split_whitespace().collect();
    let before = names.len();
    for (dimension, labels) in spec.dimensions.iter().zip(&spec.labels) {
        let Labels::Node(path) = labels else { continue };
        let name = path.rsplit('/').next().unwrap_or_default();
        if dimension.as_deref() != Some(name) && !name.contains(' ') && !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() > before {
        let text = names.join(" ");
        spec.attributes.set("coordinates", text.as_str());
    }
}
