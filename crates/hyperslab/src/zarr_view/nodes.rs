//! The nodes of a store as Zarr can hold them: in [forms](crate::forms), and with the coordinates that a conversion adds.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use hyperslab_core::{Array, Attributes, DType, Node, Progress, Result, Variant, child_path, is_child_path};

use crate::convert::TargetFormat;
use crate::forms::{CreatedCoordinates, HeldLabels, NativeSupport, is_mask_name, stored_arrays};
use crate::{Format, OpenStore};

/// The maximum number of groups whose additional nodes are kept in memory.
const MOST_GROUPS: usize = 1000;

/// A store whose nodes appear in forms that Zarr can hold.
#[derive(Debug)]
pub(super) struct FormedNodes {
    pub(super) store: OpenStore,
    format: Format,
    variant: Option<Variant>,
    pub(super) target: TargetFormat,
    /// By group.
    added: Mutex<HashMap<String, Arc<AddedNodes>>>,
}

/// The nodes of a group that its store does not have: masks and coordinates.
#[derive(Debug, Default)]
pub(super) struct AddedNodes {
    pub(super) nodes: HashMap<String, Node>,
    pub(super) coordinates: CreatedCoordinates,
}

impl FormedNodes {
    /// The nodes of a store in the format that `format` names, in a variant.
    pub(super) fn new(store: OpenStore, format: Format, variant: &str) -> Self {
        // A store of the same format already has the forms.
        let store = if store.format() == format.name() { store.as_stored() } else { store };
        let variant = format.info().variant(variant);
        let target = TargetFormat::new(&store, format, variant, false);
        Self { store, format, variant, target, added: Mutex::default() }
    }

    /// The node at a path: a group or an array that Zarr can hold. `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](hyperslab_core::Error::Unsupported) for an array that Zarr cannot hold in any form.
    pub(super) fn node(&self, path: &str) -> Result<Option<Node>> {
        // A store may hide a node with the name of a mask.
        if is_mask_name(path)
            && let Ok(Node::Group(_)) = self.store.node(parent(path))
            && let Some(node) = self.added(parent(path), &Progress::default())?.nodes.get(path)
        {
            return Ok(Some(node.clone()));
        }
        let why = match self.store.node(path) {
            Ok(node) => return Ok(at_path(self.formed(path, node)?, path)),
            Err(why) => why,
        };
        match self.nearest(path) {
            // Formats report in different ways that an array has no members.
            Some((above, node @ Node::Array(_))) => Ok(at_path(self.formed(above, node)?, path)),
            _ if !why.is_not_found() => Err(why),
            Some((above, Node::Group(_))) => {
                Ok(self.added(above, &Progress::default())?.nodes.get(path).cloned())
            }
            _ => Ok(None),
        }
    }

    /// The nearest node of the store above a path.
    fn nearest<'a>(&self, path: &'a str) -> Option<(&'a str, Node)> {
        let above = std::iter::successors(Some(path), |path| (*path != "/").then(|| parent(path)));
        above.skip(1).find_map(|above| Some((above, self.store.node(above).ok()?)))
    }

    /// The nodes that represent a node of the store: an array and its mask, or a group and its members. Parents come first.
    ///
    /// # Errors
    ///
    /// As [`node`](Self::node).
    pub(super) fn formed(&self, path: &str, node: Node) -> Result<Vec<(String, Node)>> {
        let array = match node {
            // A dimension without a variable has no values; the arrays along it name it.
            Node::Array(array) if array.schema().is_dimension => return Ok(Vec::new()),
            Node::Array(array) => array,
            Node::Group(attributes) => return Ok(vec![self.group(path, &attributes)]),
            Node::Table(table) => return Ok(vec![self.group(path, &table.schema().attributes)]),
            Node::Geometry(geometry) => return Ok(vec![self.group(path, &geometry.schema().attributes)]),
            _ => return Ok(Vec::new()),
        };
        let dtype = |dtype: &DType| self.format.driver().holds(dtype, self.variant);
        let holds = NativeSupport::new(&dtype, self.format.info().capabilities);
        let siblings = || self.store.children(parent(path)).unwrap_or_default();
        let siblings = std::cell::LazyCell::new(|| siblings().into_iter().collect::<HashSet<String>>());
        let taken = |path: &str| path.rsplit('/').next().is_some_and(|name| siblings.contains(name));
        let (mut formed, mut pending) = (Vec::new(), vec![(path.to_owned(), array)]);
        while let Some((path, array)) = pending.pop() {
            let Some((nodes, _)) = stored_arrays(&path, &array, &holds, &taken)? else {
                formed.push((path, Node::Array(array)));
                continue;
            };
            // The nodes of a form may need a form in turn.
            for (path, node) in nodes.into_iter().rev() {
                match node {
                    Node::Array(array) => pending.push((path, array)),
                    other => formed.push((path, other)),
                }
            }
        }
        formed.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(formed)
    }

    /// The nodes below a group that represents an array; none for other groups.
    pub(super) fn below(&self, path: &str) -> Result<Vec<(String, Node)>> {
        let own = self.store.node(path).ok().map(|node| (path, node));
        let Some((origin, node @ Node::Array(_))) = own.or_else(|| self.nearest(path)) else {
            return Ok(Vec::new());
        };
        let below = format!("{path}/");
        Ok(self.formed(origin, node)?.into_iter().filter(|(own, _)| own.starts_with(&below)).collect())
    }

    fn group(&self, path: &str, attributes: &Attributes) -> (String, Node) {
        let attributes =
            self.target.attributes(path, attributes, &mut crate::convert::ConvertReport::default());
        (path.to_owned(), Node::Group(attributes))
    }

    /// The nodes that a group has in addition to those of the store.
    pub(super) fn added(&self, group: &str, progress: &Progress) -> Result<Arc<AddedNodes>> {
        if let Some(known) = self.added.lock().unwrap_or_else(PoisonError::into_inner).get(group) {
            return Ok(Arc::clone(known));
        }
        let names = self.store.children(group)?;
        let siblings: HashSet<&String> = names.iter().collect();
        let mut added = AddedNodes::default();
        for path in names.iter().map(|name| child_path(group, name)).filter(|path| is_child_path(path)) {
            progress.check_cancelled()?;
            let Ok(Node::Array(array)) = self.store.node(&path) else { continue };
            if array.schema().nullable
                && let Ok(formed) = self.formed(&path, Node::Array(Arc::clone(&array)))
            {
                let below = format!("{path}/");
                let beside = formed.into_iter().filter(|(own, _)| *own != path && !own.starts_with(&below));
                added.nodes.extend(beside);
            }
            self.create_coordinates(&path, &*array, &siblings, &mut added)?;
        }
        let added = Arc::new(added);
        let mut known = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_GROUPS {
            known.clear();
        }
        known.insert(group.to_owned(), Arc::clone(&added));
        Ok(added)
    }

    /// Creates coordinates for the labels of an array that Zarr cannot hold.
    fn create_coordinates(
        &self,
        path: &str,
        array: &dyn Array,
        siblings: &HashSet<&String>,
        added: &mut AddedNodes,
    ) -> Result<()> {
        if !self.needs_coordinates(array) {
            return Ok(());
        }
        let taken = |path: &str| siblings.iter().any(|name| path.rsplit('/').next() == Some(name.as_str()));
        added.coordinates.add(path, array, self.held_labels(), &taken)?;
        added.nodes.extend(added.coordinates.nodes.drain(..));
        Ok(())
    }

    fn held_labels(&self) -> HeldLabels {
        let capabilities = &self.format.info().capabilities;
        HeldLabels { domains: capabilities.domains, texts: capabilities.label_texts }
    }

    /// Returns true if Zarr cannot hold some labels of an array.
    pub(super) fn needs_coordinates(&self, array: &dyn Array) -> bool {
        let held = self.held_labels();
        !array.schema().labels.iter().all(|labels| held.holds(labels))
    }

    /// The coordinates created for an array, at a path below the root.
    pub(super) fn coordinates(&self, path: &str, array: &dyn Array) -> Result<CreatedCoordinates> {
        if path == "/" || !self.needs_coordinates(array) {
            return Ok(CreatedCoordinates::default());
        }
        Ok(self.added(parent(path), &Progress::default())?.coordinates.clone())
    }
}

fn at_path(nodes: Vec<(String, Node)>, path: &str) -> Option<Node> {
    nodes.into_iter().find(|(own, _)| own == path).map(|(_, node)| node)
}

fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some((above, _)) if !above.is_empty() => above,
        _ => "/",
    }
}
