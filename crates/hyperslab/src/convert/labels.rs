//! Converts labels along dimensions to the form that the target supports.

use std::collections::{HashMap, HashSet};

use hyperslab_core::{ArraySchema, ArraySpec, Attribute, DType, Labels, Node, Positions, Result, child_path};

use super::ConvertReport;
use super::nodes::Item;
use super::subset::cut_labels;
use crate::Format;
use crate::forms::{CreatedCoordinates, DimensionLabels, HeldLabels, labels_of};

/// CF's attribute for the labels of an array.
const COORDINATES: &str = "coordinates";

/// The labels of a conversion, and where the target stores them.
pub(super) struct PlacedLabels {
    made: CreatedCoordinates,
    /// Coordinates of the source that become labels in the target.
    folded: HashMap<String, Labels>,
    /// Arrays of the source that the target stores as dimension labels, beside its other arrays.
    kept: HashMap<String, DimensionLabels>,
    /// Whether the target records which array labels an axis, whatever the array's name.
    names_labels: bool,
    same_format: bool,
}

impl PlacedLabels {
    /// Adds coordinates to `items` for labels that the target cannot hold, and removes the coordinates that become
    /// labels.
    pub(super) fn new(
        items: &mut Vec<(String, Item)>,
        format: Format,
        same_format: bool,
        report: &mut ConvertReport,
    ) -> Result<Self> {
        let capabilities = format.info().capabilities;
        let held = HeldLabels { domains: capabilities.domains, texts: capabilities.label_texts };
        let (mut made, mut folded) = (CreatedCoordinates::default(), HashMap::new());
        let (mut kept, names_labels) = (HashMap::new(), capabilities.label_texts);
        if same_format || !capabilities.several_arrays {
            return Ok(Self { made, folded, kept, names_labels, same_format });
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
        if held.domains {
            let labels = |(path, array): (&String, &std::sync::Arc<dyn hyperslab_core::Array>)| {
                Some((path.clone(), DimensionLabels::parse(array.schema())?))
            };
            kept.extend(arrays.clone().filter_map(labels));
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
        Ok(Self { made, folded, kept, names_labels, same_format })
    }

    /// The labels of arrays of a view, with these coordinates.
    #[cfg(feature = "zarr")]
    pub(super) fn of_view(made: CreatedCoordinates, same_format: bool) -> Self {
        Self { made, folded: HashMap::new(), kept: HashMap::new(), names_labels: false, same_format }
    }

    /// Sets the labels of an array of the target.
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
        if self.same_format {
            return;
        }
        if let Some(order) = spec.stored.label {
            let dimension = spec.dimensions.first().cloned().flatten().unwrap_or_default();
            let dtype = spec.stored.dimension_types.first().cloned();
            let own = DimensionLabels { order, dimension, dtype };
            own.set(&mut spec.attributes);
        }
        if let Some(own) = self.kept.get(path) {
            let reversed = positions.axes.first().is_some_and(|axis| axis.step < 0);
            spec.stored.label = Some(if reversed { own.order.reversed() } else { own.order });
            spec.attributes = DimensionLabels::unset(&spec.attributes);
        }
        self.keep_dimension_types(path, spec);
        self.forget_kept(path, spec);
        self.name_coordinates(path, spec);
    }

    /// The labels that the target stores along a dimension of a group's arrays.
    fn kept_along(&self, path: &str, dimension: &str) -> Option<&DimensionLabels> {
        let group = path.rsplit_once('/').map_or("", |(group, _)| group);
        let beside = |own: &str| own.rsplit_once('/').is_some_and(|(above, _)| above == group);
        let along = |labels: &&DimensionLabels| labels.dimension == dimension;
        self.kept.iter().filter(|(own, _)| beside(own)).map(|(_, labels)| labels).find(along)
    }

    /// Sets the types of dimensions from their labels.
    fn keep_dimension_types(&self, path: &str, spec: &mut ArraySpec) {
        let type_of = |name: &Option<String>| self.kept_along(path, name.as_deref()?)?.dtype.clone();
        let types: Vec<Option<DType>> = spec.dimensions.iter().map(type_of).collect();
        if types.iter().any(Option::is_some) {
            spec.stored.dimension_types =
                types.into_iter().map(|dtype| dtype.unwrap_or(DType::Int64)).collect();
        }
    }

    /// Removes labels that the target stores itself from the `coordinates` attribute.
    fn forget_kept(&self, path: &str, spec: &mut ArraySpec) {
        let Some(text) = spec.attributes.get(COORDINATES).and_then(Attribute::as_text) else { return };
        let group =
            path.rsplit_once('/').map_or("/", |(group, _)| if group.is_empty() { "/" } else { group });
        let is_kept = |name: &&str| self.kept.contains_key(&child_path(group, name));
        if !text.split_whitespace().any(|name| is_kept(&name)) {
            return;
        }
        let left: Vec<&str> = text.split_whitespace().filter(|name| !is_kept(name)).collect();
        if left.is_empty() {
            spec.attributes = spec.attributes.filtered(|name, _| name != COORDINATES);
        } else {
            spec.attributes.set(COORDINATES, left.join(" ").as_str());
        }
    }

    /// Adds labels whose names differ from their dimension's to the attribute `coordinates`, which CF readers use to
    /// find them.
    fn name_coordinates(&self, path: &str, spec: &mut ArraySpec) {
        let known = spec.attributes.get(COORDINATES).and_then(Attribute::as_text).unwrap_or_default();
        let mut names: Vec<&str> = known.split_whitespace().collect();
        let before = names.len();
        let mut unnamed = Vec::new();
        for (axis, (dimension, labels)) in spec.dimensions.iter().zip(&spec.labels).enumerate() {
            let Labels::Node(node) = labels else { continue };
            let name = node.rsplit('/').next().unwrap_or_default();
            if dimension.as_deref() == Some(name) || name.contains(' ') {
                continue;
            }
            if dimension.is_some() && !self.names_labels {
                unnamed.push(axis);
            }
            if node != path && !self.kept.contains_key(node) && !names.contains(&name) {
                names.push(name);
            }
        }
        let text = (names.len() > before).then(|| names.join(" "));
        unnamed.into_iter().for_each(|axis| spec.labels[axis] = Labels::None);
        if let Some(text) = text {
            spec.attributes.set(COORDINATES, text.as_str());
        }
    }
}
