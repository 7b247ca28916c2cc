//! The nodes of a file that is being written, and their headers.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyperslab_core::{Attributes, Error, Result, Values, child_path, normal_path};

use super::array::{NewArray, Shared};
use super::attributes::{check_attribute, content, set_by_people, values_of};
use super::extend::Additions;
use super::group;
use super::object::{MOST_ATTRIBUTES, NewHeader, Style};
use super::output::Output;
use super::scales::ScaleAttribute;
use crate::convert::Keeper;
use crate::file::{File, Sizes, lock};
use crate::header::{Header, Kind};
use crate::message::attribute::Content;
use crate::message::link::{Link, LinkTarget};
use crate::store::{Found, find};

/// A node of the new file.
#[derive(Debug)]
pub(crate) struct NewNode {
    pub(crate) path: String,
    pub(crate) kind: NewKind,
    pub(crate) attributes: Vec<(String, Values)>,
    /// What dimension scales add.
    pub(crate) scales: Vec<ScaleAttribute>,
    /// Groups: the nodes below, in the order of creation.
    pub(crate) children: Vec<usize>,
    /// Where its header is, once that is known.
    pub(crate) address: u64,
}

/// What a node is.
#[derive(Debug)]
pub(crate) enum NewKind {
    Group {
        /// Did someone make it, or was it only needed for what is below?
        made: bool,
    },
    Array(Arc<NewArray>),
    /// It was in the file before.
    Existing,
}

/// The nodes by path; the first is the root.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<NewNode>,
    paths: BTreeMap<String, usize>,
    style: Style,
    /// The file that is added to.
    file: Option<Arc<File>>,
}

/// The attributes of a node as they will be stored.
pub(crate) fn checked_attributes(
    attributes: &Attributes,
    style: Style,
    sizes: Sizes,
) -> Result<Vec<(String, Values)>> {
    let mut checked = Vec::new();
    for (name, value) in set_by_people(attributes) {
        let values = values_of(name, value)?;
        check_attribute(name, &values, style, sizes)?;
        checked.push((name.to_owned(), values));
    }
    if checked.len() > MOST_ATTRIBUTES {
        return Err(Error::invalid(format!(
            "{} attributes of one object, but HDF5 numbers at most {MOST_ATTRIBUTES}",
            checked.len()
        )));
    }
    Ok(checked)
}

impl Tree {
    /// Writes what the new arrays still hold. Nothing leads to them yet: what is to be changed in its place can be at once.
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

    /// A tree with nothing but a root.
    pub(crate) fn new(style: Style) -> Self {
        let mut tree = Self { nodes: Vec::new(), paths: BTreeMap::new(), style, file: None };
        tree.insert("/".to_owned(), NewKind::Group { made: false }, Vec::new());
        tree
    }

    /// A tree of what is added to a file.
    pub(crate) fn beside(file: &Arc<File>) -> Self {
        let style = if file.superblock.version < 2 { Style::Old } else { Style::New };
        let mut tree = Self::new(style);
        tree.nodes[0].kind = NewKind::Existing;
        tree.nodes[0].address = file.superblock.root;
        tree.file = Some(Arc::clone(file));
        tree
    }

    /// Is there a node here, new or old?
    pub(crate) fn is_taken(&self, path: &str) -> bool {
        self.get(path).is_some() || self.file.as_ref().is_some_and(|file| find(file, path).is_ok())
    }

    /// Takes the nodes on the way to `path` that are in the file into the tree; answers whether the last is there.
    pub(crate) fn adopt(&mut self, path: &str) -> Result<bool> {
        let Some(file) = self.file.clone() else { return Ok(false) };
        let path = normal_path(path);
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
        for end in ends.filter(|end| *end > 1) {
            if self.get(&path[..end]).is_some() {
                continue;
            }
            let found = match find(&file, &path[..end]) {
                Ok(Found::Object(object)) => object,
                Ok(Found::Dangling(_)) => {
                    return Err(Error::invalid(format!("{}: a link leads nowhere", &path[..end])));
                }
                Err(error) if error.is_not_found() => return Ok(false),
                Err(error) => return Err(error),
            };
            if !Arc::ptr_eq(&found.file, &file) {
                return Err(file.unsupported("adding to other files through their links"));
            }
            if end < path.len() && Header::read(&file, found.address)?.kind(&file)? != Kind::Group {
                return Err(Error::invalid(format!("an array stands above {path}")));
            }
            let index = self.insert(path[..end].to_owned(), NewKind::Existing, Vec::new());
            self.nodes[index].address = found.address;
        }
        Ok(self.get(&path).is_some())
    }

    fn insert(&mut self, path: String, kind: NewKind, attributes: Vec<(String, Values)>) -> usize {
        let index = self.nodes.len();
        self.paths.insert(path.clone(), index);
        self.nodes.push(NewNode {
            path,
            kind,
            attributes,
            scales: Vec::new(),
            children: Vec::new(),
            address: 0,
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
            NewKind::Group { .. } | NewKind::Existing => None,
        }
    }

    /// Can a node be made here?
    pub(crate) fn check(&self, path: &str) -> Result<()> {
        let path = normal_path(path);
        if path.contains('\0') {
            return Err(Error::invalid(format!("{path:?} cannot name an HDF5 object")));
        }
        if self
            .get(&path)
            .is_some_and(|index| !matches!(self.nodes[index].kind, NewKind::Group { made: false }))
        {
            return Err(Error::invalid(format!("{path} was made before")));
        }
        let mut above = path.as_str();
        while let Some((parent, _)) = above.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
            if self.array(parent).is_some() {
                return Err(Error::invalid(format!("an array stands above {path}")));
            }
            above = parent;
        }
        Ok(())
    }

    /// Makes a node, and the groups above it that nobody made. [`check`](Self::check) came before.
    pub(crate) fn add(
        &mut self,
        path: &str,
        kind: NewKind,
        attributes: Vec<(String, Values)>,
    ) -> Result<usize> {
        let path = normal_path(path);
        if let Some(index) = self.get(&path) {
            if matches!(kind, NewKind::Array(_)) {
                return Err(Error::invalid(format!("nodes stand below {path}")));
            }
            self.nodes[index].kind = kind;
            self.nodes[index].attributes = attributes;
            return Ok(index);
        }
        let parent = match path.rsplit_once('/') {
            None | Some(("", _)) => 0,
            Some((above, _)) => match self.get(above) {
                Some(parent) => parent,
                None => self.add(above, NewKind::Group { made: false }, Vec::new())?,
            },
        };
        let index = self.insert(path, kind, attributes);
        self.nodes[parent].children.push(index);
        Ok(index)
    }

    /// Takes space for all headers, then writes them. Answers the root's tree and heap in old-style files.
    pub(crate) fn write(&mut self, shared: &Shared) -> Result<Option<(u64, u64)>> {
        if let Some(path) = lock(&shared.stubs).keys().find(|path| self.get(path).is_none()) {
            return Err(Error::invalid(format!("a reference to {path}, which is not in the file")));
        }
        let new = |node: &NewNode| !matches!(node.kind, NewKind::Existing);
        for index in (0..self.nodes.len()).filter(|index| new(&self.nodes[*index])).collect::<Vec<_>>() {
            let (header, _) = self.header(index, &mut Measure { tree: self }, None, shared)?;
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
            let mut keeper = AttributeKeeper { shared, tree: self };
            let (header, symbols) = self.header(index, &mut keeper, Some(&shared.output), shared)?;
            let bytes = if lock(&shared.stubs).contains_key(&self.nodes[index].path) {
                let block = header.encode_continuation(true, shared.sizes)?;
                let at = shared.output.append(&block)?;
                NewHeader::stub(at, block.len() as u64, header.messages.len(), self.style, shared.sizes)?
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

    /// What is added to nodes that were in the file: links to the new ones, and attributes. [`write`](Self::write) came
    /// before.
    pub(crate) fn additions(&self, shared: &Shared) -> Result<Vec<(u64, Additions)>> {
        let mut added = Vec::new();
        for node in self.nodes.iter().filter(|node| matches!(node.kind, NewKind::Existing)) {
            let new = |child: &&usize| !matches!(self.nodes[**child].kind, NewKind::Existing);
            let children: Vec<usize> = node.children.iter().filter(new).copied().collect();
            let mut own = Additions { links: self.links(&children), attributes: Vec::new() };
            let mut keeper = AttributeKeeper { shared, tree: self };
            for (name, values) in &node.attributes {
                own.attributes.push((name.clone(), content(values, shared.sizes, &mut keeper)?));
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
        let mut header = NewHeader { style: self.style, messages: Vec::new() };
        let mut symbols = None;
        match &node.kind {
            NewKind::Group { .. } => {
                symbols = group::links(&mut header, &self.links(&node.children), shared.sizes, write)?
            }
            NewKind::Array(array) => array.messages(&mut header)?,
            NewKind::Existing => {}
        }
        let mut attributes: Vec<(String, Content)> = Vec::new();
        for (name, values) in &node.attributes {
            attributes.push((name.clone(), content(values, shared.sizes, keeper).map_err(named)?));
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

    /// Where the node at a path is, or will be.
    fn address_of(&self, path: &str) -> Result<u64> {
        let new = self.get(&normal_path(path)).map(|index| self.nodes[index].address);
        let found = new.or_else(|| match find(self.file.as_ref()?, path) {
            Ok(Found::Object(object)) => Some(object.address),
            _ => None,
        });
        found.ok_or_else(|| Error::invalid(format!("a reference to {path}, which is not in the file")))
    }

    fn links(&self, children: &[usize]) -> Vec<Link> {
        let link = |(order, child): (usize, &usize)| {
            let child = &self.nodes[*child];
            let name = child.path.rsplit('/').next().unwrap_or_default().to_owned();
            let order = (self.style == Style::New).then_some(order as i64);
            Link { name, target: LinkTarget::Hard(child.address), order }
        };
        children.iter().enumerate().map(link).collect()
    }
}

/// The error, with the node that it is about.
fn named(path: &str, error: Error) -> Error {
    match error {
        Error::Invalid(why) => Error::invalid(format!("{path}: {why}")),
        other => other,
    }
}

/// The path of a node's group.
pub(crate) fn group_of(path: &str) -> &str {
    match path.rsplit_once('/') {
        None | Some(("", _)) => "/",
        Some((group, _)) => group,
    }
}

/// The path of a name, looked for in a group and in those above it.
pub(crate) fn upwards<'a>(group: &'a str, name: &'a str) -> impl Iterator<Item = String> + 'a {
    let mut next = Some(group);
    std::iter::from_fn(move || {
        let group = next?;
        next = (group != "/").then(|| group_of(group));
        Some(child_path(group, name))
    })
}

/// Keeps nothing: for the sizes of headers alone.
struct Measure<'a> {
    tree: &'a Tree,
}

impl Keeper for Measure<'_> {
    fn keep(&mut self, _: &[u8]) -> Result<(u64, u32)> {
        Ok((0, 0))
    }

    fn object(&mut self, path: &str) -> Result<u64> {
        self.tree.address_of(path)
    }
}

struct AttributeKeeper<'a> {
    shared: &'a Shared,
    tree: &'a Tree,
}

impl Keeper for AttributeKeeper<'_> {
    fn keep(&mut self, bytes: &[u8]) -> Result<(u64, u32)> {
        lock(&self.shared.heap).keep(&self.shared.output, bytes)
    }

    fn object(&mut self, path: &str) -> Result<u64> {
        self.tree.address_of(path)
    }
}
