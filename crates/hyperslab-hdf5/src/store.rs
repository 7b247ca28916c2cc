//! The open file as a store: resolves paths to nodes.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use hyperslab_core::{
    CreationOrder, Depth, Error, Link, Node, ObjectId, Report, Result, Store, StoredGroup, StoredNamedType,
    child_path, normal_path,
};

use crate::attributes;
use crate::conversion::Element;
use crate::dataset::Dataset;
use crate::dimensions::{non_coordinate_path, shown, stored_path};
use crate::file::{File, lock};
use crate::header::{Header, ObjectKind, kind};
use crate::message::datatype::{DatatypeMessage, Type};
use crate::message::link::{Link as StoredLink, LinkTarget};
use crate::paths;
use crate::verify;
use crate::write::FileSpace;
use hyperslab_core::External;

/// The number of bytes of an object header to prefetch: most headers are smaller.
const OBJECT_HEADER: u64 = 1 << 10;

/// The numbers of links for which a listed group is cached.
const LISTED: Range<usize> = 64..1 << 20;

/// The maximum number of links followed on one path; libhdf5 follows 16.
const MAX_LINKS: u32 = 64;
/// The maximum size of a user block that can be read.
const MAX_USER_BLOCK: u64 = 64 << 20;
/// The maximum length of a chain of external links between files.
const MAX_FILES: u32 = 16;

/// An open HDF5 or NetCDF-4 file.
#[derive(Debug, Clone)]
pub struct Hdf5Store {
    pub(crate) file: Arc<File>,
    /// Show NetCDF-4's variables under their own names if they are stored under others.
    pub(crate) own_names: bool,
}

impl Hdf5Store {
    pub(crate) const fn new(file: Arc<File>) -> Self {
        Self { file, own_names: true }
    }

    /// Resolves a path of the store.
    fn find(&self, path: &str) -> Result<Resolved> {
        if self.own_names { find(&self.file, &stored_path(&self.file, path)) } else { find(&self.file, path) }
    }

    /// The variable with this path, if it is stored under another name.
    fn renamed(&self, path: &str) -> Result<Option<Node>> {
        let other = non_coordinate_path(path).filter(|_| self.own_names);
        let Some(Ok(Resolved::Object(object))) = other.map(|other| find(&self.file, &other)) else {
            return Ok(None);
        };
        Object { path: path.to_owned(), ..object }.node(&self.file, path).map(Some)
    }
}

/// The result of resolving a path.
pub(crate) enum Resolved {
    Object(Object),
    /// A dangling link, and its target.
    Dangling(String),
}

/// An object, and the path that led to it.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) file: Arc<File>,
    pub(crate) address: u64,
    /// Its path in its own file, with links resolved.
    pub(crate) path: String,
    /// The objects above it on the requested path.
    above: Vec<Above>,
}

/// An object above another on a path.
#[derive(Debug, Clone)]
struct Above {
    file: Arc<File>,
    address: u64,
    path: Arc<str>,
}

/// The last resolved path, if it had only hard links. A caller that lists a tree requests neighbours next, whose lookup
/// then need not start at the root.
#[derive(Debug)]
pub(crate) struct LastWalk {
    asked: String,
    address: u64,
    path: String,
    above: Vec<(u64, Arc<str>)>,
}

/// The members of a large group. A caller that lists a group usually requests its members next, which then need no search.
#[derive(Debug)]
pub(crate) struct Listing {
    group: u64,
    /// The addresses of members with hard links, by name.
    members: HashMap<String, u64>,
}

impl Listing {
    /// Caches the links of a group, unless searching them is cheap anyway.
    fn remember(file: &File, group: u64, links: &[StoredLink]) {
        if !LISTED.contains(&links.len()) {
            return;
        }
        let hard = links.iter().filter_map(|link| match link.target {
            LinkTarget::Hard(address) => Some((link.name.clone(), address)),
            _ => None,
        });
        *lock(&file.last_listing) = Some(Self { group, members: hard.collect() });
    }

    /// The address of a member, if its group was the last one listed.
    fn find(file: &File, group: u64, name: &str) -> Option<u64> {
        let listing = lock(&file.last_listing);
        let listing = listing.as_ref().filter(|listing| listing.group == group)?;
        listing.members.get(name).copied()
    }
}

/// A component of a path still to resolve.
struct PathComponent {
    name: String,
    /// Whether a component of the requested path ends here.
    asked: bool,
}

/// Resolves a path object by object.
struct Walker {
    file: Arc<File>,
    address: u64,
    path: String,
    parts: VecDeque<PathComponent>,
    above: Vec<Above>,
    links: u32,
}

fn parts(path: &str) -> impl DoubleEndedIterator<Item = String> + '_ {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned)
}

impl Walker {
    fn new(file: &Arc<File>, path: &str) -> Self {
        Self {
            address: file.superblock.root,
            file: Arc::clone(file),
            path: "/".to_owned(),
            parts: parts(path).map(|name| PathComponent { name, asked: true }).collect(),
            above: Vec::new(),
            links: 0,
        }
    }

    /// Continues from the deepest group shared with the last walk.
    fn resume(file: &Arc<File>, path: &str) -> Option<Self> {
        let last = lock(&file.last_walk);
        let last = last.as_ref()?;
        let (mut own, mut wanted) = (parts(&last.asked).peekable(), parts(path).peekable());
        let mut depth = 0;
        while own.peek().is_some() && own.peek() == wanted.peek() {
            own.next();
            wanted.next();
            depth += 1;
        }
        let (address, path) = match last.above.get(depth) {
            Some((address, path)) => (*address, path.to_string()),
            None => (last.address, last.path.clone()),
        };
        let above = |(address, path): &(u64, Arc<str>)| Above {
            file: Arc::clone(file),
            address: *address,
            path: Arc::clone(path),
        };
        Some(Self {
            file: Arc::clone(file),
            address,
            path,
            parts: wanted.map(|name| PathComponent { name, asked: true }).collect(),
            above: last.above.iter().take(depth).map(above).collect(),
            links: 0,
        })
    }

    /// Records the object that the walk leaves.
    fn leave(&mut self) {
        let (file, path) = (Arc::clone(&self.file), Arc::from(self.path.as_str()));
        self.above.push(Above { file, address: self.address, path });
    }

    fn run(mut self, asked_path: &str) -> Result<Resolved> {
        let root = Arc::clone(&self.file);
        while let Some(part) = self.parts.pop_front() {
            let listed = Listing::find(&self.file, self.address, &part.name).map(LinkTarget::Hard);
            let target = match listed {
                Some(target) => Some(target),
                None => {
                    let group = self.file.group(self.address)?;
                    group.find(&self.file, &part.name)?.map(|link| link.target)
                }
            };
            let Some(target) = target else {
                let what = child_path(&self.path, &part.name);
                if self.links > 0 && self.parts.is_empty() {
                    return Ok(Resolved::Dangling(what));
                }
                return Err(Error::not_found(Arc::clone(&self.file.name), what));
            };
            match target {
                LinkTarget::Hard(address) => {
                    if part.asked {
                        self.leave();
                    }
                    self.path = child_path(&self.path, &part.name);
                    self.address = address;
                }
                target => {
                    let words = target.describe();
                    if !self.follow(target, part.asked)? {
                        if self.parts.is_empty() {
                            return Ok(Resolved::Dangling(words));
                        }
                        return Err(Error::not_found(Arc::clone(&self.file.name), words));
                    }
                }
            }
        }
        if self.links == 0 {
            *lock(&root.last_walk) = Some(LastWalk {
                asked: asked_path.to_owned(),
                address: self.address,
                path: self.path.clone(),
                above: self.above.iter().map(|above| (above.address, Arc::clone(&above.path))).collect(),
            });
        }
        Ok(Resolved::Object(Object {
            file: self.file,
            address: self.address,
            path: self.path,
            above: self.above,
        }))
    }

    /// Prepends a link's target to the remaining path. Returns `false` if the target cannot be followed.
    fn follow(&mut self, target: LinkTarget, asked: bool) -> Result<bool> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Ok(false);
        }
        if asked {
            self.leave();
        }
        let path = match target {
            LinkTarget::Soft(path) => {
                if path.starts_with('/') {
                    self.address = self.file.superblock.root;
                    "/".clone_into(&mut self.path);
                }
                path
            }
            LinkTarget::External { file, path } => {
                let Some(file) = open_external(&self.file, &file)? else { return Ok(false) };
                self.address = file.superblock.root;
                self.file = file;
                "/".clone_into(&mut self.path);
                path
            }
            LinkTarget::Hard(_) | LinkTarget::Other(_) => return Ok(false),
        };
        for name in parts(&path).rev() {
            self.parts.push_front(PathComponent { name, asked: false });
        }
        Ok(true)
    }
}

/// Opens another file that this one refers to; `None` if it does not exist or may not be opened.
pub(crate) fn open_external(file: &Arc<File>, name: &str) -> Result<Option<Arc<File>>> {
    if file.distance >= MAX_FILES {
        return Ok(None);
    }
    let Some(External { blob, externals }) = file.externals.open(name)? else { return Ok(None) };
    Ok(Some(Arc::new(File::open(blob, externals, file.distance + 1)?)))
}

/// The error for data in another file that may not be opened.
pub(crate) fn not_followed(file: &File, what: &str, other: &str) -> Error {
    Error::invalid(format!(
        "{}: {what} is in {other}, which the policy for external files does not allow to be opened; allow any",
        file.name
    ))
}

/// Resolves a path of a file.
pub(crate) fn find(file: &Arc<File>, path: &str) -> Result<Resolved> {
    Walker::resume(file, path).unwrap_or_else(|| Walker::new(file, path)).run(path)
}

impl Object {
    /// If a link leads back up: the path of the group above that is this same object.
    fn circle(&self) -> Option<String> {
        let same = |above: &&Above| {
            let same_file = Arc::ptr_eq(&above.file, &self.file)
                || above.file.name == self.file.name && above.file.distance != self.file.distance;
            same_file && above.address == self.address
        };
        self.above.iter().find(same).map(|above| above.path.to_string())
    }

    /// The group's own path, if too many other paths have led to it. Its own path always leads to a group.
    fn as_alias(&self, root: &File, asked: &str) -> Option<String> {
        if lock(&root.reached).reach(&self.file.name, self.address, asked) {
            return None;
        }
        let own = paths::path_of(&self.file, self.address).unwrap_or_else(|| self.path.clone());
        (own != asked).then_some(own)
    }

    /// The node that `asked` leads to from the root of `root`.
    fn node(&self, root: &File, asked: &str) -> Result<Node> {
        let header = Header::read(&self.file, self.address)?;
        // References mostly lead to neighbours and to objects above them.
        if header.has(kind::ATTRIBUTE) || header.has(kind::ATTRIBUTE_INFO) {
            self.learn();
        }
        match header.kind(&self.file)? {
            ObjectKind::Group => match self.circle() {
                Some(path) => Ok(Node::Link(path)),
                None => {
                    if let Some(own) = self.as_alias(root, asked) {
                        return Ok(Node::Link(own));
                    }
                    let raw = attributes::raw(&self.file, &header)?;
                    Ok(Node::Group(attributes::decode(&self.file, &raw)))
                }
            },
            ObjectKind::Dataset => Ok(Node::Array(Arc::new(Dataset::open(&self.file, &header, &self.path)?))),
            ObjectKind::Type => {
                let raw = attributes::raw(&self.file, &header)?;
                let message = header.find(&self.file, kind::DATATYPE)?;
                let message = message
                    .ok_or_else(|| self.file.place("object header", self.address).corrupt("no datatype"))?;
                let dtype = Type::parse(&mut message.fields(&self.file, "datatype message"))?;
                let element = Element::new(&dtype, self.file.sizes(), &self.file.name)?;
                Ok(Node::Type(element.dtype, attributes::decode(&self.file, &raw)))
            }
        }
    }

    /// Records the paths of the neighbours, once per group.
    fn learn(&self) {
        for Above { file, address, path } in &self.above {
            if Arc::ptr_eq(file, &self.file)
                && let Ok(group) = file.group(*address)
            {
                paths::learn(file, path, &group);
            }
        }
    }
}

impl Store for Hdf5Store {
    fn format(&self) -> &'static str {
        "hdf5"
    }

    fn name(&self) -> &Arc<str> {
        &self.file.name
    }

    fn is_remote(&self) -> bool {
        self.file.blob.is_remote()
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        let path = normal_path(path);
        let names = || match find(&self.file, &path)? {
            Resolved::Object(object) if object.file.blob.is_remote() => {
                let links = object.file.group(object.address)?.all(&object.file)?;
                // Callers that list a group mostly open its members next.
                let headers = links.iter().filter_map(|link| match &link.target {
                    LinkTarget::Hard(address) => Some(*address),
                    _ => None,
                });
                object.file.prefetch(headers, OBJECT_HEADER);
                Ok(links.into_iter().map(|link| link.name).collect())
            }
            Resolved::Object(object) => object.file.group(object.address)?.names(&object.file),
            Resolved::Dangling(_) => Ok(Vec::new()),
        };
        self.file.operation(|| {
            let names = names()?;
            Ok(if self.own_names { shown(&self.file, &path, names, |name| name) } else { names })
        })
    }

    fn node(&self, path: &str) -> Result<Node> {
        let path = normal_path(path);
        self.file.operation(|| {
            let node = match find(&self.file, &path) {
                Ok(Resolved::Object(object)) => object.node(&self.file, &path),
                Ok(Resolved::Dangling(target)) => Ok(Node::Link(target)),
                Err(error) => Err(error),
            };
            let may_be_stored_elsewhere = match &node {
                Ok(Node::Array(array)) => array.schema().is_dimension,
                Ok(_) => false,
                Err(error) => error.is_not_found(),
            };
            let renamed = if may_be_stored_elsewhere { self.renamed(&path)? } else { None };
            renamed.map_or(node, Ok)
        })
    }

    fn as_stored(&self) -> Option<Arc<dyn Store>> {
        self.own_names
            .then(|| Arc::new(Self { file: Arc::clone(&self.file), own_names: false }) as Arc<dyn Store>)
    }

    fn variant(&self) -> Option<&'static str> {
        // The NetCDF library has marked its files like this since 4.4.1.
        let root = self.file.operation(|| {
            let header = Header::read(&self.file, self.file.superblock.root)?;
            attributes::raw(&self.file, &header)
        });
        root.ok()?.iter().any(|attribute| attribute.name == "_NCProperties").then_some("netcdf4")
    }

    fn links(&self, path: &str) -> Result<Option<Vec<Link>>> {
        let path = normal_path(path);
        self.file.operation(|| match find(&self.file, &path)? {
            Resolved::Object(object) => {
                let links = object.file.group(object.address)?.all(&object.file)?;
                Listing::remember(&object.file, object.address, &links);
                let links = links.into_iter().map(StoredLink::into_model);
                if !self.own_names {
                    return Ok(Some(links.collect()));
                }
                let named: Vec<(String, Link)> = links.map(|link| (link.name.clone(), link)).collect();
                let shown = shown(&self.file, &path, named, |(_, link)| &mut link.name);
                let mark = |(stored, link): (String, Link)| Link { renamed: stored != link.name, ..link };
                Ok(Some(shown.into_iter().map(mark).collect()))
            }
            Resolved::Dangling(_) => Ok(None),
        })
    }

    fn identity(&self, path: &str) -> Result<Option<ObjectId>> {
        let path = normal_path(path);
        self.file.operation(|| match self.find(&path)? {
            Resolved::Object(object) if Arc::ptr_eq(&object.file, &self.file) => {
                Ok(Some(ObjectId(object.address)))
            }
            _ => Ok(None),
        })
    }

    fn stored_group(&self, path: &str) -> Result<StoredGroup> {
        let path = normal_path(path);
        self.file.operation(|| {
            let Resolved::Object(object) = find(&self.file, &path)? else {
                return Ok(StoredGroup::default());
            };
            let header = Header::read(&object.file, object.address)?;
            let flags = match header.find(&object.file, kind::LINK_INFO)? {
                Some(message) => {
                    let mut fields = message.fields(&object.file, "link info message");
                    crate::file::FileFields::version(&mut fields, &[0])?;
                    fields.u8()?
                }
                None => 0,
            };
            let link_order = match flags & 3 {
                0 | 2 => CreationOrder::Untracked,
                1 => CreationOrder::Tracked,
                _ => CreationOrder::Indexed,
            };
            Ok(StoredGroup { object: header.stored_object(&object.file), link_order: Some(link_order) })
        })
    }

    fn stored_type(&self, path: &str) -> Result<Option<StoredNamedType>> {
        let path = normal_path(path);
        self.file.operation(|| {
            let Resolved::Object(object) = find(&self.file, &path)? else { return Ok(None) };
            let header = Header::read(&object.file, object.address)?;
            if header.kind(&object.file)? != ObjectKind::Type {
                return Ok(None);
            }
            let Some(message) = header.find(&object.file, kind::DATATYPE)? else { return Ok(None) };
            let dtype = Type::parse(&mut message.fields(&object.file, "datatype message"))?.into();
            Ok(Some(StoredNamedType { object: header.stored_object(&object.file), dtype }))
        })
    }

    fn preamble(&self) -> Result<Option<bytes::Bytes>> {
        match self.file.superblock.base {
            0 => Ok(None),
            length if length > MAX_USER_BLOCK => {
                Err(self.file.unsupported(format!("a user block of {length} bytes")))
            }
            length => self.file.blob.read_range(0..length).map(Some),
        }
    }

    fn page_size(&self) -> Result<Option<u64>> {
        Ok(self.file.operation(|| FileSpace::read(&self.file))?.page)
    }

    fn verify(&self, depth: Depth, report: &mut Report) -> Result<()> {
        self.file.whole_operation(|| verify::verify(self, depth, report))
    }
}
