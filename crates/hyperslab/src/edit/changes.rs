//! Changes of nodes: other paths, other attributes, nodes left out. Paths are those of the source unless stated otherwise.

use std::collections::{HashMap, HashSet};

use hyperslab_core::{
    ArraySchema, Attribute, Attributes, Error, Labels, Node, ObjectId, Result, Store, child_path, normal_path,
};

use super::{Edit, attribute_edit};
use crate::OpenStore;
use crate::conventions::rename_companions;
use crate::forms;

/// A change of an attribute.
#[derive(Debug, Clone)]
pub(crate) enum AttributeEdit {
    Set(String, Attribute),
    Delete(String),
}

/// The node of an attribute. Several paths can lead to one object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum NodeKey {
    Path(String),
    Object(ObjectId),
}

impl NodeKey {
    fn of(store: &dyn Store, path: &str) -> Result<Self> {
        Ok(store.identity(path)?.map_or_else(|| Self::Path(path.to_owned()), Self::Object))
    }
}

/// The changes of a view.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    /// Old and new paths, in the order in which they apply.
    pub(super) renames: Vec<(String, String)>,
    removed: HashSet<String>,
    /// Only these nodes, with everything below them and the groups above.
    kept: Option<Vec<String>>,
    /// Old and new names of dimensions without a coordinate, in all groups.
    dimensions: HashMap<String, String>,
    attributes: HashMap<NodeKey, Vec<AttributeEdit>>,
}

/// The new path of a node. A name without a slash stays in the node's group.
pub(crate) fn new_path(from: &str, to: &str) -> String {
    if to.contains('/') {
        return normal_path(to);
    }
    normal_path(&child_path(parent(&normal_path(from)), to))
}

pub(super) fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((group, _)) => group,
    }
}

pub(super) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn is_below(path: &str, above: &str) -> bool {
    above == "/" || path == above || path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

/// The paths to which a name in a group can refer: the member of the group, then those of the groups above it.
fn in_scope<'a>(group: &'a str, name: &'a str) -> impl Iterator<Item = String> + 'a {
    let above = |group: &&'a str| (*group != "/").then(|| parent(group));
    std::iter::successors(Some(group), above).map(move |group| child_path(group, name))
}

/// Returns true if this is the coordinate of a dimension of this name and length.
fn is_coordinate(store: &dyn Store, path: &str, name: &str, length: u64) -> bool {
    matches!(store.node(path), Ok(Node::Array(array)) if {
        let schema = array.schema();
        matches!(&schema.dimensions[..], [Some(own)] if own == name) && schema.shape() == [length]
    })
}

impl Changes {
    /// Checks edits against the existing nodes.
    pub(crate) fn new(store: &OpenStore, edits: &[Edit]) -> Result<Self> {
        let mut changes = Self::default();
        for edit in edits {
            if let Some((path, edit)) = attribute_edit(edit) {
                changes.edit_attribute(&**store.inner(), &path, edit)?;
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

    fn edit_attribute(&mut self, store: &dyn Store, path: &str, edit: AttributeEdit) -> Result<()> {
        let key = NodeKey::of(store, path)?;
        // A store whose objects have identities has none for those of other files.
        if matches!(key, NodeKey::Path(_)) && store.identity("/")?.is_some() {
            return Err(Error::invalid(format!(
                "{}: {path} is a link to another file; change the attributes there",
                store.name()
            )));
        }
        self.attributes.entry(key).or_default().push(edit);
        Ok(())
    }

    /// Renames a node, and its dimension if the node is a coordinate.
    pub(crate) fn rename(&mut self, store: &OpenStore, from: &str, to: &str) -> Result<()> {
        let (old, new) = (normal_path(from), new_path(from, to));
        let name = store.path().display().to_string();
        if old == "/" || new == "/" {
            return Err(Error::invalid(format!("{name}: the root cannot be renamed")));
        }
        store.find(&old)?;
        if is_below(&new, &old) && new != old {
            return Err(Error::invalid(format!("{name}: {old} cannot be put below itself")));
        }
        self.check_free(store, &old, &new)?;
        match store.node(parent(&new)) {
            Ok(Node::Group(_)) => {}
            Ok(_) => return Err(Error::invalid(format!("{name}: {} is not a group", parent(&new)))),
            Err(_) => {
                return Err(Error::invalid(format!("{name}: there is no group {} for {new}", parent(&new))));
            }
        }
        if let Some(mask) = forms::mask_of(store.inner(), &old)? {
            let renamed = format!("{new}{}", forms::MASK_ENDING);
            self.check_free(store, &mask, &renamed)?;
            let named = AttributeEdit::Set(forms::MASK.to_owned(), base(&renamed).into());
            self.edit_attribute(&**store.inner(), &old, named)?;
            self.renames.push((mask, renamed));
        }
        self.renames.push((old, new));
        Ok(())
    }

    /// Refuses the new path of a node if another node has it.
    fn check_free(&self, store: &OpenStore, old: &str, new: &str) -> Result<()> {
        let taken = store.node(new).is_ok()
            && !self.removed.contains(new)
            && !self.renames.iter().any(|(own, _)| own == new);
        if taken && new != old || self.renames.iter().any(|(_, own)| own == new) {
            return Err(Error::invalid(format!(
                "{}: {new} exists already; remove it first, or choose another name",
                store.path().display()
            )));
        }
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
        self.removed.extend(forms::mask_of(store.inner(), &path)?);
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

    pub(super) fn to_new(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for (old, new) in &self.renames {
            if is_below(&path, old) {
                path = format!("{new}{}", &path[old.len()..]);
            }
        }
        path
    }

    pub(super) fn to_old(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for (old, new) in self.renames.iter().rev() {
            if is_below(&path, new) {
                path = format!("{old}{}", &path[new.len()..]);
            }
        }
        path
    }

    pub(super) fn is_hidden(&self, old: &str) -> bool {
        let removed = self.removed.iter().any(|removed| is_below(old, removed));
        let kept = self
            .kept
            .as_ref()
            .is_none_or(|kept| kept.iter().any(|kept| is_below(old, kept) || is_below(kept, old)));
        removed || !kept
    }

    /// Returns true if attributes of this node are set or deleted.
    pub(super) fn edits_attributes_of(&self, store: &dyn Store, old: &str) -> Result<bool> {
        Ok(!self.attributes.is_empty() && self.attributes.contains_key(&NodeKey::of(store, old)?))
    }

    /// The attributes of a node with the changes applied. Names in them are looked up from `group`.
    pub(super) fn attributes(
        &self,
        store: &dyn Store,
        (old, group): (&str, &str),
        attributes: &Attributes,
    ) -> Result<Attributes> {
        let mut own = attributes.clone();
        if !self.attributes.is_empty() {
            for edit in self.attributes.get(&NodeKey::of(store, old)?).into_iter().flatten() {
                match edit {
                    AttributeEdit::Set(name, value) => own.set(name.as_str(), value.clone()),
                    AttributeEdit::Delete(name) => own = own.filtered(|other, _| other != name),
                }
            }
        }
        if !self.renames.is_empty() {
            rename_companions(&mut own, &|word| self.companion(store, group, word));
        }
        Ok(own)
    }

    /// The new name of a variable that an attribute in a group refers to by this name; `None` if it stays the same.
    fn companion(&self, store: &dyn Store, group: &str, word: &str) -> Option<String> {
        let target = if word.starts_with('/') {
            normal_path(word)
        } else if word.contains('/') {
            normal_path(&child_path(group, word))
        } else {
            // Only names of renamed nodes are looked up.
            self.renames.iter().find(|(old, _)| base(old) == word)?;
            in_scope(group, word).find(|path| store.node(path).is_ok())?
        };
        let (new, group) = (self.to_new(&target), self.to_new(group));
        if new == target {
            return None;
        }
        if !word.contains('/') && is_below(&group, parent(&new)) {
            return Some(base(&new).to_owned());
        }
        let inside = new.strip_prefix(&group).and_then(|rest| rest.strip_prefix('/'));
        Some(inside.filter(|_| !word.starts_with('/')).map_or_else(|| new.clone(), str::to_owned))
    }

    /// The new name of a dimension; `None` if it stays the same.
    fn dimension(
        &self,
        store: &dyn Store,
        (path, axis): (&str, usize),
        schema: &ArraySchema,
    ) -> Option<String> {
        let name = schema.dimensions[axis].as_ref()?;
        if self.renames.iter().any(|(old, _)| base(old) == name) {
            let length = schema.shape()[axis];
            let label = match schema.labels.get(axis) {
                Some(Labels::Node(label)) if base(label) == name => Some(label.clone()),
                _ => None,
            };
            let mut known = label.into_iter().chain(in_scope(parent(path), name));
            if let Some(coordinate) = known.find(|path| is_coordinate(store, path, name, length)) {
                let new = self.to_new(&coordinate);
                return Some(base(&new).to_owned()).filter(|new| new != name);
            }
        }
        self.dimensions.get(name).cloned()
    }

    /// The schema of an array with the changes applied.
    pub(super) fn schema(&self, store: &dyn Store, old: &str, schema: &ArraySchema) -> Result<ArraySchema> {
        let mut own = schema.clone();
        own.attributes = self.attributes(store, (old, parent(old)), &schema.attributes)?;
        for axis in 0..own.dimensions.len() {
            if let Some(new) = self.dimension(store, (old, axis), schema) {
                own.dimensions[axis] = Some(new);
            }
        }
        for labels in &mut own.labels {
            if let Labels::Node(path) = labels {
                *labels = if self.is_hidden(path) { Labels::None } else { Labels::Node(self.to_new(path)) };
            }
        }
        own.stored.coordinates.retain(|(_, path)| !self.is_hidden(path));
        own.stored.coordinates.iter_mut().for_each(|(_, path)| *path = self.to_new(path));
        Ok(own)
    }
}

/// Returns the array of which the node is a part, if it is a member of an array of structs.
pub(super) fn struct_above(store: &OpenStore, path: &str) -> Option<String> {
    let path = normal_path(path);
    let above = |group: &String| (group != "/").then(|| parent(group).to_owned());
    let mut groups = std::iter::successors(above(&path), above);
    groups.find(|group| matches!(store.node(group), Ok(Node::Array(_))))
}
