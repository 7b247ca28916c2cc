//! Extracts a self-contained part of a store: arrays cut along their dimensions, with the arrays that describe them.
//!
//! A selection names dimensions, and every array that has one of them is cut along it by the same positions. With a node, the
//! arrays that its dimensions and CF attributes name are included, and those that these name in turn.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hyperslab_core::{
    Array, ArraySchema, Attributes, AxisPositions, AxisSelection, Error, Labels, Node, Positions, Result,
    Selection, SelectionItem, child_path, dimension_axis, normal_path,
};

use super::nodes;
use crate::conventions::companions;
use crate::open::is_label;
use crate::{OpenStore, labels};

/// The part of each array that a conversion takes.
pub(super) struct Subset<'a> {
    source: &'a OpenStore,
    /// The nodes to convert, with everything below them; empty for all.
    pub(super) only: Vec<String>,
    /// The selections along named dimensions.
    items: Vec<Item>,
    /// The selections along unnamed dimensions of the main arrays.
    by_axis: Vec<AxisSelection>,
    /// The arrays that describe no other.
    main: HashSet<String>,
    /// Resolved labels: item, label array, length.
    known: RefCell<HashMap<(usize, String, u64), AxisSelection>>,
}

/// The selection along a dimension.
struct Item {
    dimension: String,
    selection: SelectionItem,
    /// The label array, if it is not the dimension's own.
    labels: Option<String>,
}

type Arrays = Vec<(String, Arc<dyn Array>)>;

impl<'a> Subset<'a> {
    /// Takes the whole node or store; or the selection, `with_companions`.
    pub(super) fn new(
        source: &'a OpenStore,
        node: Option<&str>,
        selection: &Selection,
        with_companions: bool,
    ) -> Result<Self> {
        let mut own = Self {
            source,
            only: node.map(normal_path).into_iter().collect(),
            items: Vec::new(),
            by_axis: Vec::new(),
            main: HashSet::new(),
            known: RefCell::default(),
        };
        if *selection == Selection::all() {
            return Ok(own);
        }
        let nodes = nodes::by_path(source, &own.only)?.into_nodes();
        let (dimensions, arrays): (Arrays, Arrays) = nodes
            .into_iter()
            .filter_map(|(path, node)| if let Node::Array(array) = node { Some((path, array)) } else { None })
            .partition(|(_, array)| array.schema().is_dimension);
        own.find_main(&arrays, node.is_some() && with_companions)?;
        own.take(selection, &arrays)?;
        let mut names: Vec<_> = arrays
            .iter()
            .chain(&dimensions)
            .flat_map(|(_, array)| array.schema().dimensions.clone())
            .collect();
        names.sort();
        names.dedup();
        own.items.iter().try_for_each(|item| dimension_axis(&names, &item.dimension).map(|_| ()))?;
        Ok(own)
    }

    /// These nodes, and the arrays that describe them: coordinates, bounds, grid mappings and the like.
    pub(super) fn with_companions(source: &'a OpenStore, nodes: &[String]) -> Result<Vec<String>> {
        let mut own = Self {
            source,
            only: nodes.iter().map(|node| normal_path(node)).collect(),
            items: Vec::new(),
            by_axis: Vec::new(),
            main: HashSet::new(),
            known: RefCell::default(),
        };
        let arrays: Arrays = nodes::by_path(source, &own.only)?
            .into_nodes()
            .into_iter()
            .filter_map(|(path, node)| if let Node::Array(array) = node { Some((path, array)) } else { None })
            .collect();
        own.find_main(&arrays, true)?;
        Ok(own.only)
    }

    /// Returns true if every array is taken as a whole.
    fn is_all(&self) -> bool {
        self.items.is_empty() && self.by_axis.is_empty()
    }

    /// Finds the arrays that describe others, and adds those outside the selection to the conversion.
    fn find_main(&mut self, arrays: &Arrays, collect: bool) -> Result<()> {
        let mut described: HashSet<String> = HashSet::new();
        let mut seen: HashSet<String> = arrays.iter().map(|(path, _)| path.clone()).collect();
        let mut pending: Arrays = arrays.clone();
        while let Some((path, array)) = pending.pop() {
            for (found, companion) in self.companions(&path, array.schema())? {
                if found == path {
                    continue;
                }
                if seen.insert(found.clone()) && collect {
                    self.only.push(found.clone());
                    pending.push((found.clone(), companion));
                }
                described.insert(found);
            }
        }
        self.main =
            arrays.iter().map(|(path, _)| path.clone()).filter(|path| !described.contains(path)).collect();
        if self.main.is_empty() || arrays.len() == 1 {
            self.main = arrays.iter().map(|(path, _)| path.clone()).collect();
        }
        Ok(())
    }

    /// The arrays that the one at this path refers to: coordinates and declared dimensions, and those in its attributes.
    fn companions(&self, path: &str, schema: &ArraySchema) -> Result<Arrays> {
        let mut found = Vec::new();
        for axis in 0..schema.dimensions.len() {
            let coordinate = match &schema.labels[axis] {
                Labels::Node(path) => self.array(path)?.map(|array| (path.clone(), array)),
                _ => {
                    schema.dimensions[axis].as_deref().map_or(Ok(None), |name| self.coordinate(path, name))?
                }
            };
            found.extend(coordinate);
        }
        for name in companions(&schema.attributes) {
            found.extend(self.named(path, &name)?);
        }
        Ok(found)
    }

    /// The array that labels or declares a dimension: with the same name and on this dimension, in the group of `path` or the
    /// nearest above.
    fn coordinate(&self, path: &str, name: &str) -> Result<Option<(String, Arc<dyn Array>)>> {
        let found = self.named(path, name)?;
        Ok(found.filter(|(_, array)| is_label(name, array.schema())))
    }

    /// The array with this name in the group of `path`, or in the nearest group above.
    fn named(&self, path: &str, name: &str) -> Result<Option<(String, Arc<dyn Array>)>> {
        if name.split('/').any(|part| part == "..") {
            return Ok(None);
        }
        if name.starts_with('/') {
            let name = normal_path(name);
            return Ok(self.array(&name)?.map(|array| (name, array)));
        }
        let mut group = path;
        while let Some((above, _)) = group.rsplit_once('/') {
            group = above;
            let place = normal_path(&child_path(if above.is_empty() { "/" } else { above }, name));
            if let Some(array) = self.array(&place)? {
                return Ok(Some((place, array)));
            }
        }
        Ok(None)
    }

    fn array(&self, path: &str) -> Result<Option<Arc<dyn Array>>> {
        match self.source.node(path) {
            Ok(Node::Array(array)) => Ok(Some(array)),
            Ok(_) | Err(Error::NotFound { .. }) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Converts a selection to selections along dimensions.
    fn take(&mut self, selection: &Selection, arrays: &Arrays) -> Result<()> {
        let main: Vec<&ArraySchema> = arrays
            .iter()
            .filter(|(path, _)| self.main.contains(path))
            .map(|(_, array)| array.schema())
            .collect();
        for item in &selection.items {
            let named = match item {
                SelectionItem::Positions { head, tail } => {
                    self.by_axis = by_position(head, tail, &main)?;
                    continue;
                }
                SelectionItem::Named(name, _) => name,
                SelectionItem::Labels { dimension, .. } | SelectionItem::Nearest { dimension, .. } => {
                    dimension
                }
            };
            let of = |(_, array): &(String, Arc<dyn Array>)| {
                let (axis, node) = labels::coordinate_of(array.schema(), named)?;
                Some((array.schema().dimensions[axis].clone()?, node.to_owned()))
            };
            let by_label = matches!(item, SelectionItem::Labels { .. } | SelectionItem::Nearest { .. });
            let (dimension, labels) = match arrays.iter().find_map(of).filter(|_| by_label) {
                Some((dimension, node)) => (dimension, Some(node)),
                None => (named.clone(), None),
            };
            self.items.push(Item { dimension, selection: item.clone(), labels });
        }
        // A named dimension is cut wherever it occurs.
        if let Some(schema) = main.first().filter(|_| !self.by_axis.is_empty()) {
            for (axis, selection) in self.by_axis.iter_mut().enumerate() {
                let Some(name) = &schema.dimensions[axis] else { continue };
                let shared = schema.dimensions.iter().flatten().filter(|own| *own == name).count() > 1;
                if *selection != AxisSelection::ALL && !shared {
                    let selection = std::mem::replace(selection, AxisSelection::ALL);
                    let selection = SelectionItem::Named(name.clone(), selection);
                    self.items.push(Item { dimension: name.clone(), selection, labels: None });
                }
            }
        }
        let mut names = HashSet::new();
        match self.items.iter().find(|item| !names.insert(&item.dimension)) {
            Some(item) => Err(Error::invalid(format!("dimension {} is selected twice", item.dimension))),
            None => Ok(()),
        }
    }

    /// The positions taken from the array at this path. An adapted array may have more axes than the source; these are taken as a
    /// whole.
    pub(super) fn positions(&self, path: &str, schema: &ArraySchema) -> Result<Positions> {
        if self.is_all() {
            return Ok(Positions::whole(schema.shape()));
        }
        let is_main = self.main.contains(path);
        let mut axes = Vec::with_capacity(schema.shape().len());
        for (axis, name) in schema.dimensions.iter().enumerate() {
            let named =
                name.as_ref().and_then(|name| self.items.iter().position(|item| item.dimension == *name));
            axes.push(match named {
                Some(item) => self.along(item, path, schema, axis)?,
                None => self.by_axis.get(axis).copied().filter(|_| is_main).unwrap_or(AxisSelection::ALL),
            });
        }
        let positions = Selection::positions(axes).resolve(schema.shape(), &[]);
        positions.map_err(|why| Error::invalid(format!("{path}: {why}")))
    }

    /// The selection of an item along an axis. Labels are read once for all arrays.
    fn along(&self, item: usize, path: &str, schema: &ArraySchema, axis: usize) -> Result<AxisSelection> {
        let Item { dimension, selection, labels } = &self.items[item];
        let own = match (labels, &schema.labels[axis]) {
            (Some(node), _) => Labels::Node(node.clone()),
            (None, Labels::None) => match self.coordinate(path, dimension)? {
                Some((found, array)) if !array.schema().is_dimension => Labels::Node(found),
                _ => Labels::None,
            },
            (None, own) => own.clone(),
        };
        let extent = schema.shape()[axis];
        let key = match &own {
            Labels::Node(node) => Some((item, node.clone(), extent)),
            _ => None,
        };
        if let Some(known) = key.as_ref().and_then(|key| self.known.borrow().get(key).copied()) {
            return Ok(known);
        }
        let found =
            labels::along(selection, &own, extent, self.source.inner())?.unwrap_or(AxisSelection::ALL);
        if let Some(key) = key {
            self.known.borrow_mut().insert(key, found);
        }
        Ok(found)
    }

    /// The attributes of an array that lost dimensions to an index: their coordinates are now scalars, and `coordinates` names
    /// them. Only for arrays that describe no others.
    pub(super) fn name_scalars(
        &self,
        path: &str,
        schema: &ArraySchema,
        positions: &Positions,
        attributes: &mut Attributes,
    ) -> Result<()> {
        if !self.main.contains(path) {
            return Ok(());
        }
        let text =
            attributes.get("coordinates").and_then(hyperslab_core::Attribute::as_text).unwrap_or_default();
        let mut names: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let before = names.len();
        for axis in (0..schema.dimensions.len()).filter(|axis| !positions.axes[*axis].keep) {
            let Some(name) = &schema.dimensions[axis] else { continue };
            let near = self.coordinate(path, name)?.filter(|(_, array)| !array.schema().is_dimension);
            let near = near.map(|(found, _)| found);
            let (found, scalar) = match (&schema.labels[axis], near) {
                (Labels::Node(node), near) if near.as_ref() != Some(node) => (node.clone(), node.clone()),
                (_, Some(found)) => (found, name.clone()),
                _ => continue,
            };
            if found != path && !names.contains(&scalar) {
                names.push(scalar);
            }
        }
        if names.len() > before {
            attributes.set("coordinates", names.join(" ").as_str());
        }
        Ok(())
    }
}

/// The selection along each axis of arrays with equal dimensions.
fn by_position(
    head: &[AxisSelection],
    tail: &[AxisSelection],
    main: &[&ArraySchema],
) -> Result<Vec<AxisSelection>> {
    let alike = |a: &ArraySchema, b: &ArraySchema| a.shape() == b.shape() && a.dimensions == b.dimensions;
    let Some(first) = main.first() else {
        return Err(Error::invalid("the selection needs an array, but there is none"));
    };
    if !main.iter().all(|schema| alike(first, schema)) {
        return Err(Error::invalid(format!(
            "a selection by position needs one array, or arrays of the same dimensions; there are {}; name one, or name the \
             dimensions, as in time[3:7]",
            main.len()
        )));
    }
    let rank = first.shape().len();
    if head.len() + tail.len() > rank {
        return Err(Error::invalid(format!(
            "the selection has {} axes, but the array has {rank}",
            head.len() + tail.len()
        )));
    }
    let mut axes = vec![AxisSelection::ALL; rank];
    axes[..head.len()].copy_from_slice(head);
    axes[rank - tail.len()..].copy_from_slice(tail);
    Ok(axes)
}

/// Returns true if these are all positions of an axis, in order.
pub(super) fn is_whole(axis: &AxisPositions, extent: u64) -> bool {
    axis.keep && axis.start == 0 && axis.step == 1 && axis.count == extent
}

/// The labels of the positions taken along an axis.
pub(super) fn cut_labels(labels: &Labels, axis: &AxisPositions) -> Labels {
    match labels {
        Labels::None => Labels::None,
        Labels::Node(path) => Labels::Node(path.clone()),
        Labels::Texts(texts) => {
            let at = |index: u64| axis.start.checked_add_signed(axis.step.checked_mul(index as i64)?);
            let text = |index| texts.get(usize::try_from(at(index)?).ok()?).cloned();
            (0..axis.count)
                .map(text)
                .collect::<Option<Vec<String>>>()
                .map_or(Labels::None, |texts| Labels::Texts(texts.into()))
        }
        Labels::Domain { first, dtype } => match (axis.step, first.checked_add_unsigned(axis.start)) {
            (1, Some(first)) => Labels::Domain { first, dtype: dtype.clone() },
            _ => Labels::None,
        },
    }
}
