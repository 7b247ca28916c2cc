//! The open file as a store: paths to nodes.

use std::collections::VecDeque;
use std::sync::Arc;

use hyperslab_core::{
    CreationOrder, Depth, Error, Link, Node, ObjectId, Report, Result, Store, StoredGroup, StoredNamedType,
    child_path, normal_path,
};

use crate::attributes;
use crate::conversion::Element;
use crate::dataset::Dataset;
use crate::file::{File, lock};
use crate::header::{Header, Kind, kind};
use crate::message::datatype::{DatatypeMessage, Type};
use crate::message::link::{Link as StoredLink, LinkTarget};
use crate::paths;
use crate::verify;
use crate::write::FileSpace;
use hyperslab_core::External;

/// Bytes of an object header that are requested ahead: most headers have fewer.
const OBJECT_HEADER: u64 = 1 << 10;

/// Links followed on one path; libhdf5 follows 16.
const MAX_LINKS: u32 = 64;
/// A user block that is held in memory.
const MAX_USER_BLOCK: u64 = 64 << 20;
/// Files opened one through the other.
const MAX_FILES: u32 = 16;

/// An open HDF5 or NetCDF-4 file.
#[derive(Debug, Clone)]
pub struct Hdf5Store {
    pub(crate) file: Arc<File>,
}

/// What a path leads to.
pub(crate) enum Found {
    Object(Object),
    /// A link that leads nowhere: its target.
    Dangling(String),
}

/// An object, and how it was reached.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) file: Arc<File>,
    pub(crate) address: u64,
    /// Its path in its own file, links resolved.
    pub(crate) path: String,
    /// The objects above it, by the path that was asked for.
    above: Vec<Above>,
}

/// An object above another.
#[derive(Debug, Clone)]
struct Above {
    file: Arc<File>,
    address: u64,
    path: Arc<str>,
}

/// The last path that was walked, where only hard links were on it. A caller that lists a tree asks for neighbours next, and
/// does not walk from the root again.
#[derive(Debug)]
pub(crate) struct LastWalk {
    asked: String,
    address: u64,
    path: String,
    above: Vec<(u64, Arc<str>)>,
}

/// A part of a path still to walk.
struct Part {
    name: String,
    /// Does a part of the path that was asked for end here?
    asked: bool,
}

/// Walks from object to object.
struct Walker {
    file: Arc<File>,
    address: u64,
    path: String,
    parts: VecDeque<Part>,
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
            parts: parts(path).map(|name| Part { name, asked: true }).collect(),
            above: Vec::new(),
            links: 0,
        }
    }

    /// Goes on from the deepest group that the last walk passed as well.
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
            parts: wanted.map(|name| Part { name, asked: true }).collect(),
            above: last.above.iter().take(depth).map(above).collect(),
            links: 0,
        })
    }

    /// Notes the object that the walk leaves.
    fn leave(&mut self) {
        let (file, path) = (Arc::clone(&self.file), Arc::from(self.path.as_str()));
        self.above.push(Above { file, address: self.address, path });
    }

    fn run(mut self, asked_path: &str) -> Result<Found> {
        let root = Arc::clone(&self.file);
        while let Some(part) = self.parts.pop_front() {
            let group = self.file.group(self.address)?;
            let Some(link) = group.find(&self.file, &part.name)? else {
                let what = child_path(&self.path, &part.name);
                if self.links > 0 && self.parts.is_empty() {
                    return Ok(Found::Dangling(what));
                }
                return Err(Error::not_found(Arc::clone(&self.file.name), what));
            };
            match link.target {
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
                            return Ok(Found::Dangling(words));
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
        Ok(Found::Object(Object {
            file: self.file,
            address: self.address,
            path: self.path,
            above: self.above,
        }))
    }

    /// Puts a link's target in front of what is left; `false` when it leads nowhere that we go.
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
            self.parts.push_front(Part { name, asked: false });
        }
        Ok(true)
    }
}

/// Another file that this one refers to; `None` when there is none, or none that may be opened.
pub(crate) fn open_external(file: &Arc<File>, name: &str) -> Result<Option<Arc<File>>> {
    if file.distance >= MAX_FILES {
        return Ok(None);
    }
    let Some(External { blob, externals }) = file.externals.open(name)? else { return Ok(None) };
    Ok(Some(Arc::new(File::open(blob, externals, file.distance + 1)?)))
}

/// What a path of a file leads to.
pub(crate) fn find(file: &Arc<File>, path: &str) -> Result<Found> {
    Walker::resume(file, path).unwrap_or_else(|| Walker::new(file, path)).run(path)
}

impl Object {
    /// The path of the group above that this object is, where a link leads back up.
    fn circle(&self) -> Option<String> {
        let same = |above: &&Above| {
            let same_file = Arc::ptr_eq(&above.file, &self.file)
                || above.file.name == self.file.name && above.file.distance != self.file.distance;
            same_file && above.address == self.address
        };
        self.above.iter().find(same).map(|above| above.path.to_string())
    }

    /// The node, which `asked` leads to from the root of `root`.
    fn node(&self, root: &File, asked: &str) -> Result<Node> {
        let header = Header::read(&self.file, self.address)?;
        // References mostly lead to neighbours and to what is above them.
        if header.has(kind::ATTRIBUTE) || header.has(kind::ATTRIBUTE_INFO) {
            self.learn();
        }
        match header.kind(&self.file)? {
            Kind::Group => match self.circle() {
                Some(path) => Ok(Node::Link(path)),
                None if !lock(&root.reached).reach(&self.file.name, self.address, asked) => {
                    let path = paths::path_of(&self.file, self.address);
                    Ok(Node::Link(path.unwrap_or_else(|| self.path.clone())))
                }
                None => {
                    let raw = attributes::raw(&self.file, &header)?;
                    Ok(Node::Group(attributes::decode(&self.file, &raw)))
                }
            },
            Kind::Dataset => Ok(Node::Array(Arc::new(Dataset::open(&self.file, &header, &self.path)?))),
            Kind::Type => {
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

    /// Remembers the paths of the neighbours, once per group.
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
        self.file.operation(|| match find(&self.file, &path)? {
            Found::Object(object) if object.file.blob.is_remote() => {
                let links = object.file.group(object.address)?.all(&object.file)?;
                // Whoever lists a group mostly wants to know what is in it.
                let headers = links.iter().filter_map(|link| match &link.target {
                    LinkTarget::Hard(address) => Some(*address),
                    _ => None,
                });
                object.file.prefetch(headers, OBJECT_HEADER);
                Ok(links.into_iter().map(|link| link.name).collect())
            }
            Found::Object(object) => object.file.group(object.address)?.names(&object.file),
            Found::Dangling(_) => Ok(Vec::new()),
        })
    }

    fn node(&self, path: &str) -> Result<Node> {
        let path = normal_path(path);
        self.file.operation(|| match find(&self.file, &path)? {
            Found::Object(object) => object.node(&self.file, &path),
            Found::Dangling(target) => Ok(Node::Link(target)),
        })
    }

    fn variant(&self) -> Option<&'static str> {
        // The NetCDF library marks its files so since 4.4.1.
        let root = self.file.operation(|| {
            let header = Header::read(&self.file, self.file.superblock.root)?;
            attributes::raw(&self.file, &header)
        });
        root.ok()?.iter().any(|attribute| attribute.name == "_NCProperties").then_some("netcdf4")
    }

    fn links(&self, path: &str) -> Result<Option<Vec<Link>>> {
        let path = normal_path(path);
        self.file.operation(|| match find(&self.file, &path)? {
            Found::Object(object) => {
                let links = object.file.group(object.address)?.all(&object.file)?;
                Ok(Some(links.into_iter().map(StoredLink::into_model).collect()))
            }
            Found::Dangling(_) => Ok(None),
        })
    }

    fn identity(&self, path: &str) -> Result<Option<ObjectId>> {
        let path = normal_path(path);
        self.file.operation(|| match find(&self.file, &path)? {
            Found::Object(object) if Arc::ptr_eq(&object.file, &self.file) => {
                Ok(Some(ObjectId(object.address)))
            }
            _ => Ok(None),
        })
    }

    fn stored_group(&self, path: &str) -> Result<StoredGroup> {
        let path = normal_path(path);
        self.file.operation(|| {
            let Found::Object(object) = find(&self.file, &path)? else { return Ok(StoredGroup::default()) };
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
            let Found::Object(object) = find(&self.file, &path)? else { return Ok(None) };
            let header = Header::read(&object.file, object.address)?;
            if header.kind(&object.file)? != Kind::Type {
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
