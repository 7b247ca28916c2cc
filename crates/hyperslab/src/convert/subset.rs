//! A part of a store that is whole: arrays cut along their dimensions, together with what describes them.
//!
//! A selection names dimensions, and every array that has one of them is cut along it by the same positions. Of one node,
//! the arrays that its dimensions and its CF attributes name come along, and those that these name in turn.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hyperslab_core::{
    Array, ArraySchema, Attributes, AxisPositions, AxisSelection, Error, Labels, Node, Positions, Result,
    Selection, SelectionItem, child_path, dimension_axis, normal_path,
};

use super::nodes;
use crate::conventions::companions;
use crate::{OpenStore, labels};

/// What a conversion takes of each array.
pub(super) struct Subset<'a> {
    source: &'a OpenStore,
    /// The nodes to convert, with everything below them; none for all.
    pub(super) only: Vec<String>,
    /// What is selected along named dimensions.
    items: Vec<(String, SelectionItem)>,
    /// What is selected along dimensions without a name, of the main arrays.
    by_axis: Vec<AxisSelection>,
    /// The arrays that describe no other.
    main: HashSet<String>,
    /// What labels were found to mean: item, array of labels, length.
    known: RefCell<HashMap<(usize, String, u64), AxisSelection>>,
}

type Arrays = Vec<(String, Arc<dyn Array>)>;

impl<'a> Subset<'a> {
    /// Takes all of the node, or of the store; or what the selection says, `with_companions`.
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
        own.items.iter().try_for_each(|(name, _)| dimension_axis(&names, name).map(|_| ()))?;
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

    /// Is everything taken of every array?
    fn is_all(&self) -> bool {
        self.items.is_empty() && self.by_axis.is_empty()
    }

    /// Finds the arrays that describe others, and adds those that are elsewhere to what is converted.
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

    /// The arrays that the one at this path names: coordinates and declared dimensions, and those in its attributes.
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

    /// The array that holds the labels of a dimension, or declares it: of its name and with it alone, in the group of `path`
    /// or the nearest above.
    fn coordinate(&self, path: &str, name: &str) -> Result<Option<(String, Arc<dyn Array>)>> {
        let found = self.named(path, name)?;
        Ok(found.filter(|(_, array)| matches!(&array.schema().dimensions[..], [Some(own)] if own == name)))
    }

    /// The array that a name means in the group of `path`: there, or in the nearest group above.
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
        let node = match self.source.node(path) {
            Ok(node) => node,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(why) => return Err(why),
        };
        Ok(match (crate::fields::own_field(self.source, path, &node)?, node) {
            (Some(Node::Array(array)), _) | (None, Node::Array(array)) => Some(array),
            _ => None,
        })
    }

    /// Turns a selection into what is selected along dimensions.
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
            self.items.push((named.clone(), item.clone()));
        }
        // A dimension with a name is cut wherever it is.
        if let Some(schema) = main.first().filter(|_| !self.by_axis.is_empty()) {
            for (axis, selection) in self.by_axis.iter_mut().enumerate() {
                let Some(name) = &schema.dimensions[axis] else { continue };
                let shared = schema.dimensions.iter().flatten().filter(|own| *own == name).count() > 1;
                if *selection != AxisSelection::ALL && !shared {
                    let selection = std::mem::replace(selection, AxisSelection::ALL);
                    self.items.push((name.clone(), SelectionItem::Named(name.clone(), selection)));
                }
            }
        }
        let mut names = HashSet::new();
        match self.items.iter().find(|(name, _)| !names.insert(name)) {
            Some((name, _)) => Err(Error::invalid(format!("dimension {name} is selected twice"))),
            None => Ok(()),
        }
    }

    /// What is taken of the array at this path. An array that was adapted may have more axes than the source's: these are
    /// whole.
    pub(super) fn positions(&self, path: &str, schema: &ArraySchema) -> Result<Positions> {
        if self.is_all() {
            return Ok(Positions::whole(schema.shape()));
        }
        let is_main = self.main.contains(path);
        let mut axes = Vec::with_capacity(schema.shape().len());
        for (axis, name) in schema.dimensions.iter().enumerate() {
            let named = name.as_ref().and_then(|name| self.items.iter().position(|(own, _)| own == name));
            axes.push(match named {
                Some(item) => self.along(item, path, schema, axis)?,
                None => self.by_axis.get(axis).copied().filter(|_| is_main).unwrap_or(AxisSelection::ALL),
            });
        }
        let positions = Selection::positions(axes).resolve(schema.shape(), &[]);
        positions.map_err(|why| Error::invalid(format!("{path}: {why}")))
    }

    /// What an item selects along an axis. Labels are read once for all arrays.
    fn along(&self, item: usize, path: &str, schema: &ArraySchema, axis: usize) -> Result<AxisSelection> {
        let (name, selection) = &self.items[item];
        let own = match &schema.labels[axis] {
            Labels::None => match self.coordinate(path, name)? {
                Some((found, array)) if !array.schema().is_dimension => Labels::Node(found),
                _ => Labels::None,
            },
            own => own.clone(),
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
            labels::along(selection, &own, extent, &**self.source.inner())?.unwrap_or(AxisSelection::ALL);
        if let Some(key) = key {
            self.known.borrow_mut().insert(key, found);
        }
        Ok(found)
    }

    /// The attributes of an array of which an index dropped dimensions: their coordinates are scalars now, and
    /// `coordinates` names them. Only arrays that describe no others say so.
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

/// What is selected along each axis of arrays that are all alike.
fn by_position(
    head: &[AxisSelection],
    tail: &[AxisSelection],
    main: &[&ArraySchema],
) -> Result<Vec<AxisSelection>> {
    let alike = |a: &ArraySchema, b: &ArraySchema| a.shape() == b.shape() && a.dimensions == b.dimensions;
    let Some(first) = main.first() else {
        return Err(Error::invalid("a selection needs an array, there is none"));
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
            "{} axes selected, the array has {rank}",
            head.len() + tail.len()
        )));
    }
    let mut axes = vec![AxisSelection::ALL; rank];
    axes[..head.len()].copy_from_slice(head);
    axes[rank - tail.len()..].copy_from_slice(tail);
    Ok(axes)
}

/// Are these all positions of an axis, in their order?
pub(super) fn is_whole(axis: &AxisPositions, extent: u64) -> bool {
    axis.keep && axis.start == 0 && axis.step == 1 && axis.count == extent
}

/// The labels of the positions that are taken along an axis.
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
