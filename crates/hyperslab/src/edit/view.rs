//! A view of a store with changes applied: nodes renamed or left out, attributes changed. Nothing is written.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hyperslab_core::{
    Array, ArraySchema, Attribute, Attributes, Depth, Error, Labels, Link, LinkTarget, Node, ObjectId,
    Report, Result, Store, StoredGroup, StoredNamedType, child_path, normal_path,
};
use serde_json::{Map, Value};

use super::{Edit, attribute_edit};
use crate::OpenStore;
use crate::adapt::Described;
use crate::conventions::rename_companion;

/// A change of an attribute.
#[derive(Debug, Clone)]
pub(crate) enum AttributeEdit {
    Set(String, Attribute),
    Delete(String),
}

/// The changes of a view. Paths are those of the source unless stated otherwise.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    /// Old and new paths, in the order in which they apply.
    renames: Vec<(String, String)>,
    removed: HashSet<String>,
    /// Only these nodes, with everything below them and the groups above.
    kept: Option<Vec<String>>,
    /// Old and new names of dimensions.
    dimensions: HashMap<String, String>,
    attributes: HashMap<String, Vec<AttributeEdit>>,
}

/// The new path of a node. A name without a slash stays in the node's group.
pub(crate) fn new_path(from: &str, to: &str) -> String {
    if to.starts_with('/') {
        return normal_path(to);
    }
    let from = normal_path(from);
    let group = from.rsplit_once('/').map_or("", |(group, _)| group);
    normal_path(&format!("{group}/{to}"))
}

fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((group, _)) => group,
    }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn is_below(path: &str, above: &str) -> bool {
    above == "/" || path == above || path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

impl Changes {
    /// Checks edits against the existing nodes.
    pub(crate) fn new(store: &OpenStore, edits: &[Edit]) -> Result<Self> {
        let mut changes = Self::default();
        for edit in edits {
            if let Some((path, edit)) = attribute_edit(store, edit)? {
                changes.attributes.entry(path).or_default().push(edit);
                continue;
            }
            match edit {
                Edit::Rename { from, to } => changes.rename(store, from, to)?,
                Edit::Remove { node } => changes.remove(store, node)?,
                _ => {}
            }
        }
        Ok(changes)
    }

    /// Renames a node, and its dimension if the node is a coordinate.
    pub(crate) fn rename(&mut self, store: &OpenStore, from: &str, to: &str) -> Result<()> {
        let (old, new) = (normal_path(from), new_path(from, to));
        let name = store.path().display().to_string();
        if old == "/" || new == "/" {
            return Err(Error::invalid(format!("{name}: the root cannot be renamed")));
        }
        let node = store.find(&old)?;
        if is_below(&new, &old) && new != old {
            return Err(Error::invalid(format!("{name}: {old} cannot be put below itself")));
        }
        let taken = store.node(&new).is_ok()
            && !self.removed.contains(&new)
            && !self.renames.iter().any(|(own, _)| *own == new);
        if taken && new != old || self.renames.iter().any(|(_, own)| *own == new) {
            return Err(Error::invalid(format!(
                "{name}: {new} exists already; remove it first, or choose another name"
            )));
        }
        match store.node(parent(&new)) {
            Ok(Node::Group(_)) => {}
            Ok(_) => return Err(Error::invalid(format!("{name}: {} is not a group", parent(&new)))),
            Err(_) => {
                return Err(Error::invalid(format!("{name}: there is no group {} for {new}", parent(&new))));
            }
        }
        if let Node::Array(array) = &node
            && matches!(&array.schema().dimensions[..], [Some(own)] if own == base(&old))
            && base(&old) != base(&new)
        {
            self.dimensions.insert(base(&old).to_owned(), base(&new).to_owned());
        }
        self.renames.push((old, new));
        Ok(())
    }

    /// Renames a dimension that has no array of the same name.
    pub(crate) fn rename_dimension(&mut self, from: &str, to: &str) {
        self.dimensions.insert(from.to_owned(), to.to_owned());
    }

    /// Leaves out a node.
    pub(crate) fn remove(&mut self, store: &OpenStore, node: &str) -> Result<()> {
        let path = normal_path(node);
        if path == "/" {
            let name = store.path().display();
            return Err(Error::invalid(format!(
                "{name}: the root cannot be removed; remove the file instead"
            )));
        }
        store.find(&path)?;
        self.removed.insert(path);
        Ok(())
    }

    /// Keeps only these nodes and everything below them.
    pub(crate) fn keep(&mut self, nodes: Vec<String>) {
        self.kept = Some(nodes);
    }

    /// Returns true if any node gets another path.
    pub(crate) fn moves_nodes(&self) -> bool {
        !self.renames.is_empty()
            || !self.removed.is_empty()
            || self.kept.is_some()
            || !self.dimensions.is_empty()
    }

    fn to_new(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for (old, new) in &self.renames {
            if is_below(&path, old) {
                path = format!("{new}{}", &path[old.len()..]);
            }
        }
        path
    }

    fn to_old(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for (old, new) in self.renames.iter().rev() {
            if is_below(&path, new) {
                path = format!("{old}{}", &path[new.len()..]);
            }
        }
        path
    }

    fn is_hidden(&self, old: &str) -> bool {
        let removed = self.removed.iter().any(|removed| is_below(old, removed));
        let kept = self
            .kept
            .as_ref()
            .is_none_or(|kept| kept.iter().any(|kept| is_below(old, kept) || is_below(kept, old)));
        removed || !kept
    }

    /// The attributes of a node with the changes applied.
    fn attributes(&self, old: &str, attributes: &Attributes) -> Attributes {
        let mut own = attributes.clone();
        for edit in self.attributes.get(old).into_iter().flatten() {
            match edit {
                AttributeEdit::Set(name, value) => own.set(name.as_str(), value.clone()),
                AttributeEdit::Delete(name) => own = own.filtered(|other, _| other != name),
            }
        }
        for (from, to) in &self.renames {
            rename_companion(&mut own, base(from), base(to));
        }
        own
    }

    fn schema(&self, old: &str, schema: &ArraySchema) -> ArraySchema {
        let mut own = schema.clone();
        own.attributes = self.attributes(old, &schema.attributes);
        for name in own.dimensions.iter_mut().flatten() {
            if let Some(new) = self.dimensions.get(name) {
                name.clone_from(new);
            }
        }
        for labels in &mut own.labels {
            if let Labels::Node(path) = labels {
                *labels = if self.is_hidden(path) { Labels::None } else { Labels::Node(self.to_new(path)) };
            }
        }
        own.stored.coordinates.retain(|(_, path)| !self.is_hidden(path));
        own.stored.coordinates.iter_mut().for_each(|(_, path)| *path = self.to_new(path));
        own
    }
}

/// A view of the store with the changes applied.
pub(crate) fn edited(store: &OpenStore, changes: Changes) -> OpenStore {
    let view = EditedStore { inner: Arc::clone(store.inner()), changes };
    OpenStore::from_store(Arc::new(view), store.path())
}

/// A view of a store with changes applied.
#[derive(Debug)]
struct EditedStore {
    inner: Arc<dyn Store>,
    changes: Changes,
}

impl EditedStore {
    /// The path of a node in the source.
    fn source_path(&self, path: &str) -> Result<String> {
        let old = self.changes.to_old(path);
        if self.changes.to_new(&old) != path || self.changes.is_hidden(&old) {
            return Err(Error::not_found(Arc::clone(self.inner.name()), path));
        }
        Ok(old)
    }

    /// The children of a group with the changes applied: their paths in the source and their new names.
    fn members(&self, path: &str, names: Vec<String>) -> Result<Vec<(String, String)>> {
        let old = self.source_path(path)?;
        let own = names.into_iter().map(|name| child_path(&old, &name));
        let arrived = self.changes.renames.iter().map(|(from, _)| from.clone());
        let arrived = arrived.filter(|from| parent(from) != old);
        let members = own.chain(arrived).filter(|old| !self.changes.is_hidden(old));
        Ok(members
            .map(|old| (self.changes.to_new(&old), old))
            .filter(|(new, _)| parent(new) == path)
            .map(|(new, old)| (old, base(&new).to_owned()))
            .collect())
    }
}

impl Store for EditedStore {
    fn format(&self) -> &'static str {
        self.inner.format()
    }

    fn variant(&self) -> Option<&'static str> {
        self.inner.variant()
    }

    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        let names = self.inner.children(&self.source_path(path)?)?;
        Ok(self.members(path, names)?.into_iter().map(|(_, name)| name).collect())
    }

    fn node(&self, path: &str) -> Result<Node> {
        let old = self.source_path(path)?;
        Ok(match self.inner.node(&old)? {
            Node::Group(attributes) => Node::Group(self.changes.attributes(&old, &attributes)),
            Node::Type(dtype, attributes) => Node::Type(dtype, self.changes.attributes(&old, &attributes)),
            Node::Array(array) => {
                let schema = self.changes.schema(&old, array.schema());
                Node::Array(Arc::new(Described::new(array, schema)) as Arc<dyn Array>)
            }
            other if self.changes.attributes.contains_key(&old) => {
                let what = format!("editing the attributes of {}", other.kind().one());
                return Err(Error::unsupported(Arc::clone(self.inner.name()), what));
            }
            other => other,
        })
    }

    fn links(&self, path: &str) -> Result<Option<Vec<Link>>> {
        let Some(links) = self.inner.links(&self.source_path(path)?)? else { return Ok(None) };
        let names = links.iter().map(|link| link.name.clone()).collect();
        let mut found = Vec::new();
        for (old, name) in self.members(path, names)? {
            let Some(all) = self.inner.links(parent(&old))? else { return Ok(None) };
            let Some(mut link) = all.into_iter().find(|link| link.name == base(&old)) else { continue };
            link.utf8 |= !name.is_ascii();
            link.name = name;
            if let LinkTarget::Soft(to) = &mut link.target
                && to.starts_with('/')
            {
                *to = self.changes.to_new(&normal_path(to));
            }
            found.push(link);
        }
        Ok(Some(found))
    }

    fn identity(&self, path: &str) -> Result<Option<ObjectId>> {
        self.inner.identity(&self.source_path(path)?)
    }

    fn stored_group(&self, path: &str) -> Result<StoredGroup> {
        self.inner.stored_group(&self.source_path(path)?)
    }

    fn stored_type(&self, path: &str) -> Result<Option<StoredNamedType>> {
        self.inner.stored_type(&self.source_path(path)?)
    }

    fn preamble(&self) -> Result<Option<bytes::Bytes>> {
        self.inner.preamble()
    }

    fn page_size(&self) -> Result<Option<u64>> {
        self.inner.page_size()
    }

    fn details(&self) -> Result<Map<String, Value>> {
        self.inner.details()
    }

    fn verify(&self, depth: Depth, report: &mut Report) -> Result<()> {
        self.inner.verify(depth, report)
    }
}
