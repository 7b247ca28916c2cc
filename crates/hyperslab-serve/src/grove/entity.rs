//! Maps nodes of any format to h5grove's entities: groups, datasets, named types and links.

use std::collections::HashSet;

use hyperslab::driver::{Link, LinkTarget, ObjectId, StoredNamedType, child_path, normal_path};
use hyperslab::geometry::GeometryReader;
use hyperslab::{ArrayReader, Attributes, DType, GeometryQuery, Node, Progress, TableReader, Values};

use crate::answer::Failure;
use crate::stores::Opened;

/// The maximum number of paths in a listing.
const MAX_PATHS: usize = 1 << 20;

/// The name of the only member if the store's root is an array or a table: h5grove's clients expect it in a group.
pub(crate) const ROOT_MEMBER: &str = "data";

/// Which links to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// None.
    None,
    /// Those with a valid target.
    OnlyValid,
    /// All. A dangling link is an error.
    All,
}

impl Links {
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, Failure> {
        match text.map(str::to_ascii_lowercase).as_deref() {
            None | Some("only_valid") => Ok(Self::OnlyValid),
            Some("true" | "all") => Ok(Self::All),
            Some("false" | "none") => Ok(Self::None),
            Some(_) => Err(Failure::query(format!(
                "{} is not a valid value for link resolution. Accepted values are: all, none or only_valid",
                text.unwrap_or_default()
            ))),
        }
    }
}

/// A node as an h5grove entity.
#[derive(Debug)]
pub(crate) enum Entity {
    Group(Attributes),
    Array(Box<ArrayReader>),
    Table(TableReader),
    /// A geometry; its parts are datasets.
    Geometry(GeometryReader),
    Part(GeometryPart),
    Type(DType, Attributes, Option<StoredNamedType>),
    SoftLink(String),
    ExternalLink(String, String),
}

/// The vertices, links or an attribute of a geometry.
#[derive(Debug)]
pub(crate) struct GeometryPart {
    pub(crate) geometry: GeometryReader,
    pub(crate) name: String,
}

impl Entity {
    /// Finds the entity at a path.
    pub(crate) fn find(opened: &Opened, path: &str, links: Links) -> Result<Self, Failure> {
        let normal = normal_path(path);
        if opened.has_leaf_root() {
            return match normal.strip_prefix('/') {
                Some("") => Ok(Self::Group(Attributes::new())),
                Some(ROOT_MEMBER) => Self::root_member(opened),
                _ => Err(Failure::no_path(path, &opened.name)),
            };
        }
        if normal == "/" {
            return Self::of_node(opened, &normal, opened.store.node("/")?);
        }
        // For most paths, avoid reading the links of the group, which may have many.
        if links != Links::None
            && let Ok(node) = opened.store.node(&normal)
            && !matches!(node, Node::Link(_))
        {
            return match geometry_part(opened, &normal) {
                Some(part) => Ok(part),
                None => Self::of_node(opened, &normal, node),
            };
        }
        let (parent, name) = normal.rsplit_once('/').unwrap_or(("", &normal));
        let parent = if parent.is_empty() { "/" } else { parent };
        let link = opened.store.inner().links(parent).ok().flatten();
        let link = link.and_then(|links| links.into_iter().find(|link| link.name == name));
        Self::of_link(opened, &normal, link.as_ref(), links)?
            .ok_or_else(|| Failure::no_path(path, &opened.name))
    }

    /// Finds the dataset at a path. If the store's root is the only dataset, `/` also refers to it.
    pub(crate) fn find_dataset(opened: &Opened, path: &str) -> Result<Self, Failure> {
        if normal_path(path) == "/" && opened.has_leaf_root() {
            return Self::root_member(opened);
        }
        Self::find(opened, path, Links::OnlyValid)
    }

    fn root_member(opened: &Opened) -> Result<Self, Failure> {
        Self::of_node(opened, "/", opened.store.node("/")?)
    }

    /// The entity of a group's member; `None` if there is no such node.
    pub(crate) fn of_link(
        opened: &Opened,
        path: &str,
        link: Option<&Link>,
        links: Links,
    ) -> Result<Option<Self>, Failure> {
        let unresolved = link.and_then(|link| match &link.target {
            LinkTarget::Soft(target) => Some(Self::SoftLink(target.clone())),
            LinkTarget::External { file, path } => Some(Self::ExternalLink(file.clone(), path.clone())),
            _ => None,
        });
        if links == Links::None && unresolved.is_some() {
            return Ok(unresolved);
        }
        let broken = |unresolved: Option<Self>| match (unresolved, links) {
            (Some(_), Links::All) => {
                let name = opened.name.rsplit('/').next().unwrap_or(&opened.name);
                Err(Failure::new(
                    axum::http::StatusCode::NOT_FOUND,
                    format!("Cannot resolve the link at {path} of {name}"),
                ))
            }
            (unresolved, _) => Ok(unresolved),
        };
        match opened.store.node(path) {
            Ok(Node::Link(target)) => {
                // The store may report another kind of link than the group.
                broken(unresolved.or(Some(Self::SoftLink(target))))
            }
            Ok(node) => {
                if let Some(part) = geometry_part(opened, path) {
                    return Ok(Some(part));
                }
                Self::of_node(opened, path, node).map(Some)
            }
            Err(error) if error.is_not_found() => match geometry_part(opened, path) {
                Some(part) => Ok(Some(part)),
                None => broken(unresolved),
            },
            Err(error) => Err(error.into()),
        }
    }

    fn of_node(opened: &Opened, path: &str, node: Node) -> Result<Self, Failure> {
        Ok(match node {
            Node::Group(attributes) => Self::Group(attributes),
            Node::Array(array) => Self::Array(Box::new(opened.store.reader(array))),
            Node::Table(_) => Self::Table(opened.store.table(path)?),
            Node::Geometry(_) => Self::Geometry(opened.store.geometry(path)?),
            Node::Link(target) => Self::SoftLink(target),
            Node::Type(dtype, attributes) => {
                Self::Type(dtype, attributes, opened.store.inner().stored_type(path)?)
            }
            other => return Err(Failure::internal(format!("a node of the kind {}", other.kind()))),
        })
    }

    /// The attributes; `None` for a link that was not followed.
    pub(crate) fn attributes(&self) -> Option<&Attributes> {
        static NONE: Attributes = Attributes::new();
        match self {
            Self::Group(attributes) | Self::Type(_, attributes, _) => Some(attributes),
            Self::Array(array) => Some(&array.schema().attributes),
            Self::Table(table) => Some(&table.schema().attributes),
            Self::Geometry(geometry) => Some(&geometry.schema().attributes),
            Self::Part(_) => Some(&NONE),
            Self::SoftLink(_) | Self::ExternalLink(..) => None,
        }
    }
}

/// The geometry part at a path, if the store has geometries.
fn geometry_part(opened: &Opened, path: &str) -> Option<Entity> {
    if !opened.has_geometry() {
        return None;
    }
    let (parent, name) = path.rsplit_once('/')?;
    let parent = if parent.is_empty() { "/" } else { parent };
    let geometry = opened.store.geometry(parent).ok()?;
    let is_part = parts_of(opened, parent, &geometry).iter().any(|part| part == name);
    is_part.then(|| Entity::Part(GeometryPart { geometry, name: name.to_owned() }))
}

/// The names of a geometry's parts. Empty if it has several levels: each level is then a member with its own parts.
pub(crate) fn parts_of(opened: &Opened, path: &str, geometry: &GeometryReader) -> Vec<String> {
    if opened.store.children(path).is_ok_and(|levels| !levels.is_empty()) {
        return Vec::new();
    }
    let mut parts = vec!["vertices".to_owned()];
    let levels = geometry.inner().levels().unwrap_or_default();
    if levels.iter().any(|level| level.links > 0) {
        parts.push("links".to_owned());
    }
    // An empty box suffices to get the names of the attributes.
    let corner = geometry.schema().bounds.as_ref().map(|[low, _]| low.clone());
    let query = GeometryQuery { region: corner.map(|low| [low.clone(), low]), ..GeometryQuery::default() };
    if query.region.is_some()
        && let Ok(found) = geometry.query(&query)
    {
        parts.extend(found.data.attributes.iter().map(|(name, _)| name.clone()));
    }
    parts
}

impl GeometryPart {
    /// The number of elements per dimension, without reading them.
    pub(crate) fn shape(&self) -> Vec<u64> {
        let level = self.geometry.inner().levels().ok().and_then(|levels| levels.into_iter().next());
        let (vertices, links) = level.map_or((0, 0), |level| (level.vertices, level.links));
        match self.name.as_str() {
            "vertices" => vec![vertices, self.geometry.schema().axes.len() as u64],
            "links" => vec![links, 2],
            _ => vec![vertices],
        }
    }

    /// Reads the part by a query.
    pub(crate) fn read(&self, region: Option<[Vec<f64>; 2]>) -> Result<Values, Failure> {
        let attributes = match self.name.as_str() {
            "vertices" | "links" => Some(Vec::new()),
            name => Some(vec![name.to_owned()]),
        };
        let found = self.geometry.query(&GeometryQuery { attributes, region, ..GeometryQuery::default() })?;
        let values = match self.name.as_str() {
            "vertices" => Some(found.data.vertices),
            "links" => found.data.links,
            name => found.data.attributes.into_iter().find(|(own, _)| own == name).map(|(_, values)| values),
        };
        values.ok_or_else(|| Failure::query(format!("the geometry has no {}", self.name)))
    }
}

/// The members of a group with their links, in the order in which h5py lists them.
pub(crate) fn members(opened: &Opened, path: &str) -> Result<Vec<(String, Option<Link>)>, Failure> {
    let links = opened.store.inner().links(path)?;
    Ok(match links {
        Some(links) => links.into_iter().map(|link| (link.name.clone(), Some(link))).collect(),
        None => opened.store.children(path)?.into_iter().map(|name| (name, None)).collect(),
    })
}

/// The paths below a group. Visits each object once.
pub(crate) fn paths(opened: &Opened, base: &str, progress: &Progress) -> Result<Vec<String>, Failure> {
    let base_entity = Entity::find(opened, base, Links::OnlyValid)?;
    if !matches!(base_entity, Entity::Group(_) | Entity::Geometry(_)) {
        return Err(Failure::query(format!("{base} is not a group")));
    }
    let (mut found, mut seen) = (vec![base.to_owned()], HashSet::new());
    if opened.has_leaf_root() {
        found.push(child_path("/", ROOT_MEMBER));
        return Ok(found);
    }
    seen.extend(opened.store.inner().identity(&normal_path(base))?);
    let mut pending = below(opened, &normal_path(base))?;
    while let Some(Below { path, followed, identity }) = pending.pop() {
        progress.check_cancelled()?;
        if found.len() >= MAX_PATHS {
            return Err(Failure::query(format!("more than {MAX_PATHS} paths")));
        }
        found.push(path.clone());
        let is_new = identity.is_none_or(|identity| seen.insert(identity));
        if followed && is_new && matches!(opened.store.node(&path), Ok(Node::Group(_) | Node::Geometry(_))) {
            pending.extend(below(opened, &path)?);
        }
    }
    Ok(found)
}

/// A path below a group.
struct Below {
    path: String,
    /// Whether to descend into it. Links are not followed.
    followed: bool,
    /// The identity of its object, for formats where an object can have several paths.
    identity: Option<ObjectId>,
}

/// The paths of a group's members in reverse order.
fn below(opened: &Opened, path: &str) -> Result<Vec<Below>, Failure> {
    let mut paths = Vec::new();
    let mut members = members(opened, path)?;
    // h5py visits links sorted by name, whatever the group's order.
    if members.iter().all(|(_, link)| link.is_some()) {
        members.sort_by(|(a, _), (b, _)| a.cmp(b));
    }
    for (name, link) in members.into_iter().rev() {
        let below = child_path(path, &name);
        // Skip names such as "" or ".", which lead back to the group.
        if normal_path(&below) == below {
            let (followed, identity) = match link.map(|link| link.target) {
                None | Some(LinkTarget::Other(_)) => (true, None),
                Some(LinkTarget::Hard(object)) => (true, Some(object)),
                Some(_) => (false, None),
            };
            paths.push(Below { path: below, followed, identity });
        }
    }
    if opened.has_geometry()
        && let Ok(geometry) = opened.store.geometry(path)
    {
        let parts = parts_of(opened, path, &geometry);
        let part = |name: &String| Below { path: child_path(path, name), followed: false, identity: None };
        paths.extend(parts.iter().rev().map(part));
    }
    Ok(paths)
}
