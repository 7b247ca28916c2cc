//! The nodes of a file being written, and their headers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hyperslab_core::{CreationOrder, Error, Result, StoredGroup, TypeName, child_path, normal_path};

use super::array::{NewArray, Shared};
use super::attributes::NewAttribute;
use super::extend::Additions;
use super::group;
use super::names::{AttributeKeeper, Measure, address_of};
use super::node::{Child, ChildTarget, NewKind, NewNode};
use super::object::{CONSTANT, NewHeader, NewMessage, Style};
use super::output::Output;
use crate::conversion::Keeper;
use crate::file::{File, lock};
use crate::header::{Header, ObjectKind, kind};
use crate::message::attribute::Content;
use crate::message::datatype::DatatypeMessage;
use crate::message::link::{Link, LinkTarget};
use crate::store::{Resolved, find};

/// The nodes by path. The first is the root.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<NewNode>,
    paths: BTreeMap<String, usize>,
    /// The paths of links other than those to new nodes.
    links_at: BTreeSet<String>,
    style: Style,
    /// The existing file to which nodes are added.
    file: Option<Arc<File>>,
}

impl Tree {
    /// Writes the pending data of new arrays. Nothing refers to them yet, so in-place changes are applied at once.
    pub(crate) fn flush_arrays(&self, output: &Output) -> Result<()> {
        for node in &self.nodes {
            if let NewKind::Array(array) = &node.kind {
                for patch in array.flush()? {
                    output.write_at(patch.address, &patch.bytes)?;
                }
            }
        }
        Ok(())
    }

    /// A tree with only a root.
    pub(crate) fn new(style: Style) -> Self {
        let mut tree =
            Self { nodes: Vec::new(), paths: BTreeMap::new(), links_at: BTreeSet::new(), style, file: None };
        tree.insert("/".to_owned(), NewKind::Group { made: false }, Vec::new());
        tree
    }

    /// A tree of additions to a file.
    pub(crate) fn beside(file: &Arc<File>) -> Self {
        let style = if file.superblock.version < 2 { Style::Old } else { Style::New };
        let mut tree = Self::new(style);
        tree.nodes[0].kind = NewKind::Existing;
        tree.nodes[0].address = file.superblock.root;
        tree.file = Some(Arc::clone(file));
        tree
    }

    /// Returns true if the path is taken by a new or existing node.
    pub(crate) fn is_taken(&self, path: &str) -> bool {
        self.get(path).is_some() || self.file.as_ref().is_some_and(|file| find(file, path).is_ok())
    }

    /// Adds the existing nodes along `path` to the tree. Returns whether the last one exists.
    pub(crate) fn adopt(&mut self, path: &str) -> Result<bool> {
        let Some(file) = self.file.clone() else { return Ok(false) };
        let path = normal_path(path);
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
        for end in ends.filter(|end| *end > 1) {
            if self.get(&path[..end]).is_some() {
                continue;
            }
            let found = match find(&file, &path[..end]) {
                Ok(Resolved::Object(object)) => object,
                Ok(Resolved::Dangling(_)) => {
                    return Err(Error::invalid(format!("{}: the link is dangling", &path[..end])));
                }
                Err(error) if error.is_not_found() => return Ok(false),
                Err(error) => return Err(error),
            };
            if !Arc::ptr_eq(&found.file, &file) {
                return Err(file.unsupported("adding to other files through their links"));
            }
            if end < path.len() && Header::read(&file, found.address)?.kind(&file)? != ObjectKind::Group {
                return Err(Error::invalid(format!("an array is a parent of {path}")));
            }
            let index = self.insert(path[..end].to_owned(), NewKind::Existing, Vec::new());
            self.nodes[index].address = found.address;
        }
        Ok(self.get(&path).is_some())
    }

    fn insert(&mut self, path: String, kind: NewKind, attributes: Vec<NewAttribute>) -> usize {
        let index = self.nodes.len();
        self.paths.insert(path.clone(), index);
        self.nodes.push(NewNode {
            path,
            kind,
            attributes,
            scales: Vec::new(),
            children: Vec::new(),
            address: 0,
            stored: StoredGroup::default(),
            links: 1,
        });
        index
    }

    /// The node at a path.
    pub(crate) fn get(&self, path: &str) -> Option<usize> {
        self.paths.get(path).copied()
    }

    /// The array at a path.
    pub(crate) fn array(&self, path: &str) -> Option<(usize, &Arc<NewArray>)> {
        let index = self.get(path)?;
        match &self.nodes[index].kind {
            NewKind::Array(array) => Some((index, array)),
            NewKind::Group { .. } | NewKind::Type(_) | NewKind::Existing => None,
        }
    }

    /// Checks that a node can be created here.
    pub(crate) fn check(&self, path: &str) -> Result<()> {
        let path = normal_path(path);
        if path.contains('\0') {
            return Err(Error::invalid(format!("{path:?} cannot name an HDF5 object")));
        }
        if self
            .get(&path)
            .is_some_and(|index| !matches!(self.nodes[index].kind, NewKind::Group { made: false }))
        {
            return Err(Error::invalid(format!("{path} already exists")));
        }
        if self.links_at.contains(&path) {
            return Err(Error::invalid(format!("{path} already exists, as a link")));
        }
        let mut above = path.as_str();
        while let Some((parent, _)) = above.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
            if self.array(parent).is_some() {
                return Err(Error::invalid(format!("an array is a parent of {path}")));
            }
            if self.links_at.contains(parent) {
                return Err(Error::invalid(format!("a link is a parent of {path}")));
            }
            above = parent;
        }
        Ok(())
    }

    /// Creates a node and its missing parent groups. [`check`](Self::check) must have passed.
    pub(crate) fn add(&mut self, path: &str, kind: NewKind, attributes: Vec<NewAttribute>) -> Result<usize> {
        let path = normal_path(path);
        if let Some(index) = self.get(&path) {
            if matches!(kind, NewKind::Array(_) | NewKind::Type(_)) {
                return Err(Error::invalid(format!("nodes already exist below {path}")));
            }
            self.nodes[index].kind = kind;
            self.nodes[index].attributes = attributes;
            return Ok(index);
        }
        let (parent, name) = self.parent(&path)?;
        let index = self.insert(path, kind, attributes);
        self.nodes[parent].children.push(Child { name, target: ChildTarget::Node(index) });
        Ok(index)
    }

    /// The parent group of a path, created if missing, and the path's name in it.
    fn parent(&mut self, path: &str) -> Result<(usize, String)> {
        Ok(match path.rsplit_once('/') {
            None => (0, path.to_owned()),
            Some(("", name)) => (0, name.to_owned()),
            Some((above, name)) => {
                let parent = match self.get(above) {
                    Some(parent) => parent,
                    None => self.add(above, NewKind::Group { made: false }, Vec::new())?,
                };
                (parent, name.to_owned())
            }
        })
    }

    /// Changes the path of a node within its group.
    pub(crate) fn move_node(&mut self, index: usize, path: String) {
        let old = std::mem::replace(&mut self.nodes[index].path, path.clone());
        self.paths.remove(&old);
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        let last = old.rsplit('/').next().unwrap_or_default();
        if let Some(group) = self.get(group_of(&path)) {
            let is_it = |child: &&mut Child| {
                child.name == last && matches!(child.target, ChildTarget::Node(own) if own == index)
            };
            self.nodes[group]
                .children
                .iter_mut()
                .filter(is_it)
                .for_each(|child| child.name.clone_from(&name));
        }
        self.paths.insert(path, index);
    }

    /// Adds a link. [`check`](Self::check) must have passed.
    pub(crate) fn link(&mut self, path: &str, target: ChildTarget) -> Result<()> {
        let path = normal_path(path);
        if path == "/" || self.get(&path).is_some() {
            return Err(Error::invalid(format!("{path} already exists")));
        }
        let (parent, name) = self.parent(&path)?;
        if let ChildTarget::Node(index) = target {
            self.nodes[index].links = self.nodes[index].links.saturating_add(1);
        }
        self.nodes[parent].children.push(Child { name, target });
        self.links_at.insert(path);
        Ok(())
    }

    /// Nodes whose tracked creation order is lost, because old-style objects cannot store it.
    pub(crate) fn lost_creation_orders(&self) -> Vec<(String, String)> {
        let kept =
            |order: Option<CreationOrder>| order.is_some_and(|order| order != CreationOrder::Untracked);
        let ordered = |node: &&NewNode| {
            kept(node.stored.link_order) && !node.children.is_empty()
                || kept(node.stored.object.attribute_order) && !node.attributes.is_empty()
        };
        let told = "the order of creation is not kept for libraries before 1.8";
        self.nodes.iter().filter(ordered).map(|node| (node.path.clone(), told.to_owned())).collect()
    }

    /// Counts the uses of committed types, which libhdf5 counts as links.
    fn count_uses(&mut self, shared: &Shared) {
        let mut used = Vec::new();
        for node in &self.nodes {
            if let NewKind::Array(array) = &node.kind {
                used.extend(array.plan.named_type.clone());
            }
            let of = |attribute: &NewAttribute| match &attribute.stored.as_ref()?.named_type {
                Some(TypeName::Path(path)) => Some(path.clone()),
                _ => None,
            };
            used.extend(node.attributes.iter().filter_map(of));
        }
        let names = lock(&shared.names);
        for path in used {
            if let Some(index) = self.get(&names.canonical(&path)) {
                self.nodes[index].links = self.nodes[index].links.saturating_add(1);
            }
        }
    }

    /// Allocates all headers, then writes them. Returns the root's tree and heap in old-style files.
    pub(crate) fn write(&mut self, shared: &Shared) -> Result<Option<(u64, u64)>> {
        if let Some(path) = lock(&shared.stubs).keys().find(|path| self.get(path).is_none()) {
            return Err(Error::invalid(format!("a reference to {path}, which is not in the file")));
        }
        self.count_uses(shared);
        let new = |node: &NewNode| !matches!(node.kind, NewKind::Existing);
        for index in (0..self.nodes.len()).filter(|index| new(&self.nodes[*index])).collect::<Vec<_>>() {
            let (header, _) = self.header(index, &mut Measure { tree: self, shared }, None, shared)?;
            let stub = lock(&shared.stubs).get(&self.nodes[index].path).copied();
            self.nodes[index].address = match stub {
                Some(address) => address,
                None => {
                    let placed = header.place(shared.sizes, &shared.output);
                    placed.map_err(|error| named(&self.nodes[index].path, error))?
                }
            };
        }
        let mut root = None;
        for index in (0..self.nodes.len()).filter(|index| new(&self.nodes[*index])) {
            let mut keeper = AttributeKeeper { shared, tree: self, node: &self.nodes[index].path };
            let (header, symbols) = self.header(index, &mut keeper, Some(&shared.output), shared)?;
            let bytes = if lock(&shared.stubs).contains_key(&self.nodes[index].path) {
                let ordered = header.order != CreationOrder::Untracked;
                let block = header.encode_continuation(ordered, shared.sizes)?;
                let at = shared.output.append(&block)?;
                header.stub(at, block.len() as u64, shared.sizes)?
            } else {
                header.encode(shared.sizes).map_err(|error| named(&self.nodes[index].path, error))?
            };
            shared.output.write_at(self.nodes[index].address, &bytes)?;
            if index == 0 {
                root = symbols;
            }
        }
        lock(&shared.heap).close(&shared.output)?;
        Ok(root)
    }

    /// The links and attributes to add to nodes that were in the file before. Call [`write`](Self::write) first.
    pub(crate) fn additions(&self, shared: &Shared) -> Result<Vec<(u64, Additions)>> {
        let mut added = Vec::new();
        for node in self.nodes.iter().filter(|node| matches!(node.kind, NewKind::Existing)) {
            let new = |child: &&Child| match child.target {
                ChildTarget::Node(index) => !matches!(self.nodes[index].kind, NewKind::Existing),
                ChildTarget::Soft(_) | ChildTarget::External { .. } => true,
            };
            let links = self.links(node.children.iter().filter(new), self.style == Style::New);
            let mut own = Additions { links, attributes: Vec::new() };
            let mut keeper = AttributeKeeper { shared, tree: self, node: &node.path };
            for attribute in &node.attributes {
                own.attributes.push((attribute.name.clone(), attribute.content(shared.sizes, &mut keeper)?));
            }
            if !own.links.is_empty() || !own.attributes.is_empty() {
                added.push((node.address, own));
            }
        }
        Ok(added)
    }

    /// The header of a node. Its size does not depend on the addresses in it.
    fn header(
        &self,
        index: usize,
        keeper: &mut dyn Keeper,
        write: Option<&Output>,
        shared: &Shared,
    ) -> Result<(NewHeader, Option<(u64, u64)>)> {
        let node = &self.nodes[index];
        let named = |error: Error| named(&node.path, error);
        let mut header = NewHeader::new(self.style);
        header.order = node.stored.object.attribute_order.unwrap_or(CreationOrder::Indexed);
        let mut symbols = None;
        match &node.kind {
            NewKind::Group { .. } => {
                let order = node.stored.link_order.unwrap_or(CreationOrder::Indexed);
                let tracked = self.style == Style::New && order != CreationOrder::Untracked;
                let links = self.links(node.children.iter(), tracked);
                symbols = group::links(&mut header, &links, order, shared.sizes, write)?;
            }
            NewKind::Array(array) => {
                let named_type = array.plan.named_type.as_deref();
                let named_type = named_type.map(|path| address_of(self, shared, path)).transpose()?;
                array.messages(&mut header, named_type)?;
            }
            NewKind::Type(dtype) => {
                let dtype = dtype.encode(self.style.types(), shared.sizes)?;
                self.style.check_message("the datatype", dtype.len()).map_err(named)?;
                header.messages.push(NewMessage::new(kind::DATATYPE, CONSTANT, dtype));
            }
            NewKind::Existing => {}
        }
        header.count_links(node.links, shared.sizes)?;
        if let Some(comment) = &node.stored.object.comment {
            let text = [comment.as_bytes(), &[0]].concat();
            header.messages.push(NewMessage::new(kind::COMMENT, 0, text));
        }
        let mut attributes: Vec<(String, Content)> = Vec::new();
        for attribute in &node.attributes {
            let content = attribute.content(shared.sizes, keeper).map_err(named)?;
            attributes.push((attribute.name.clone(), content));
        }
        for scale in &node.scales {
            attributes.push(scale.content(self, shared.sizes, keeper)?);
        }
        header.attributes(&attributes, shared.sizes, write).map_err(named)?;
        if let NewKind::Array(array) = &node.kind {
            array.last_messages(&mut header).map_err(named)?;
        }
        Ok((header, symbols))
    }

    /// The present or future address of the node at a path; `None` if there is none.
    pub(crate) fn address_of(&self, path: &str) -> Option<u64> {
        let new = self.get(path).map(|index| self.nodes[index].address);
        new.or_else(|| match find(self.file.as_ref()?, path) {
            Ok(Resolved::Object(object)) => Some(object.address),
            _ => None,
        })
    }

    fn links<'a>(&self, children: impl Iterator<Item = &'a Child>, tracked: bool) -> Vec<Link> {
        let link = |(order, child): (usize, &Child)| {
            let target = match &child.target {
                ChildTarget::Node(index) => LinkTarget::Hard(self.nodes[*index].address),
                ChildTarget::Soft(path) => LinkTarget::Soft(path.clone()),
                ChildTarget::External { file, path } => {
                    LinkTarget::External { file: file.clone(), path: path.clone() }
                }
            };
            Link { name: child.name.clone(), target, order: tracked.then_some(order as i64), utf8: false }
        };
        children.enumerate().map(link).collect()
    }
}

/// Adds the node's path to an error.
fn named(path: &str, error: Error) -> Error {
    match error {
        Error::Invalid(why) => Error::invalid(format!("{path}: {why}")),
        other => other,
    }
}

/// The path of a node's parent group.
pub(crate) fn group_of(path: &str) -> &str {
    match path.rsplit_once('/') {
        None | Some(("", _)) => "/",
        Some((group, _)) => group,
    }
}

/// The paths of a name in a group and in each group above it.
pub(crate) fn in_enclosing_groups<'a>(group: &'a str, name: &'a str) -> impl Iterator<Item = String> + 'a {
    let mut next = Some(group);
    std::iter::from_fn(move || {
        let group = next?;
        next = (group != "/").then(|| group_of(group));
        Some(child_path(group, name))
    })
}
