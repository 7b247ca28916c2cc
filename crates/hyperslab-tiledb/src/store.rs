//! A TileDB directory as a store: an array, or a group of arrays.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use hyperslab_core::{
    Depth, Error, Labels, LocalStorage, Node, Report, Result, Storage, Store, child_path, normal_path,
};

use crate::OpenOptions;
use crate::array::OpenArray;
use crate::dense::DenseAttribute;
use crate::group::{Group, Member};
use crate::listing::MOST_LISTED;
use crate::schema::ArrayKind;
use crate::sparse::SparseTable;
use crate::{label, metadata};

/// The maximum nesting of groups. A limit is needed because a group can contain itself.
const MAX_DEPTH: usize = 32;

/// The maximum number of paths to one group. Members can make a few groups a tree with any number of paths.
const MAX_PATHS: usize = 16;

/// An opened array or group.
#[derive(Debug)]
pub struct TileDbStore {
    directory: Arc<dyn Storage>,
    name: Arc<str>,
    options: OpenOptions,
    /// The absolute path of the root. Absolute member addresses below it resolve to this store.
    location: Option<String>,
    root: Entry,
    /// The paths by which groups were reached, by the group's prefix.
    paths: Mutex<HashMap<String, Vec<String>>>,
}

/// The suffix for an attribute that has the same name as a dimension.
pub(crate) const COORDINATE_ENDING: &str = ".data";

/// The object at some prefix of the directory.
#[derive(Debug, Clone)]
enum Entry {
    Array(Arc<OpenArray>),
    Group(Arc<Group>),
}

/// The object that a path leads to.
enum Resolved {
    Entry(Entry),
    Attribute(Arc<OpenArray>, usize),
    /// Labels of a dimension: their array, and the label's position.
    Label(Arc<OpenArray>, usize),
    Link(String),
}

/// Returns true if this directory is a TileDB array or group.
///
/// # Errors
///
/// [`Io`](Error::Io) if it cannot be listed.
pub fn probe(directory: &dyn Storage) -> Result<bool> {
    Ok(is_group(directory, "")? || is_array(directory, "")?)
}

fn is_array(directory: &dyn Storage, prefix: &str) -> Result<bool> {
    if directory.is_remote() {
        return has_any(directory, prefix, &["__array_schema.tdb", "__schema"]);
    }
    if directory.size(&format!("{prefix}__array_schema.tdb"))?.is_some() {
        return Ok(true);
    }
    Ok(!directory.list(&format!("{prefix}__schema"))?.is_empty())
}

fn is_group(directory: &dyn Storage, prefix: &str) -> Result<bool> {
    if directory.is_remote() {
        return has_any(directory, prefix, &["__tiledb_group.tdb", "__group"]);
    }
    if directory.size(&format!("{prefix}__tiledb_group.tdb"))?.is_some() {
        return Ok(true);
    }
    Ok(!directory.list(&format!("{prefix}__group"))?.is_empty())
}

/// Returns true if one of these names exists under a prefix. Needs a single listing.
fn has_any(directory: &dyn Storage, prefix: &str, names: &[&str]) -> Result<bool> {
    let entries = directory.list(prefix.trim_end_matches('/'))?;
    Ok(entries.iter().any(|entry| names.contains(&entry.name.as_str())))
}

/// Opens the array or group in this directory.
///
/// # Errors
///
/// [`NotFound`](Error::NotFound) if there is none; otherwise any error in its schema.
pub fn open(directory: Arc<dyn Storage>, options: OpenOptions) -> Result<TileDbStore> {
    directory.prefetch_tree("", MOST_LISTED);
    let root = Entry::open(&directory, String::new(), &options)?;
    let name = Arc::clone(directory.name());
    Ok(TileDbStore { directory, name, options, location: None, root, paths: Mutex::default() })
}

/// Opens the array or group at this path.
///
/// # Errors
///
/// Like [`open`].
pub fn open_path(path: &Path, options: OpenOptions) -> Result<TileDbStore> {
    let mut store = open(Arc::new(LocalStorage::new(path)), options)?;
    store.location = path.canonicalize().ok().map(|path| path.display().to_string());
    Ok(store)
}

impl Entry {
    fn open(directory: &Arc<dyn Storage>, prefix: String, options: &OpenOptions) -> Result<Self> {
        if is_array(&**directory, &prefix)? {
            let array = OpenArray::open(Arc::clone(directory), prefix, options.clone())?;
            return Ok(Self::Array(Arc::new(array)));
        }
        if is_group(&**directory, &prefix)? {
            return Ok(Self::Group(Arc::new(Group::open(&**directory, prefix, options)?)));
        }
        Err(Error::not_found(Arc::clone(directory.name()), format!("a TileDB array or group in {prefix:?}")))
    }
}

impl TileDbStore {
    /// The name of an attribute's node: its [plain name](Self::plain_name), or that of its file.
    pub(crate) fn node_name(array: &OpenArray, index: usize) -> String {
        Self::plain_name(array, index).map_or_else(|| format!("a{index}"), str::to_owned)
    }

    /// The name of an attribute, unless it is empty or contains a slash. TileDB does not allow an attribute to share
    /// a dimension's name, so the values of the coordinate `x` are stored as `x.data`, both here and by TileDB's own
    /// NetCDF converter.
    fn plain_name(array: &OpenArray, index: usize) -> Option<&str> {
        let own = array.schema.attributes[index].name.as_str();
        let coordinate = own
            .strip_suffix(COORDINATE_ENDING)
            .filter(|short| array.schema.dimensions.iter().any(|dimension| dimension.name == *short));
        Some(coordinate.unwrap_or(own)).filter(|name| !name.is_empty() && !name.contains('/'))
    }

    /// Returns true if this array of a group has a single attribute with the array's own name. Groups are written
    /// this way, and the attribute becomes the node: `/temp`, not `/temp/temp`.
    pub(crate) fn is_single_field(array: &OpenArray, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        !array.prefix.is_empty()
            && array.schema.kind == ArrayKind::Dense
            && array.schema.attributes.len() == 1
            && Self::has_node_name(array, 0, name)
            && label::shown(&array.schema).next().is_none()
            && array.attributes().is_ok_and(|own| own.is_empty())
    }

    /// An attribute of an array as a node. In a group, a one-dimensional attribute with the dimension's name holds
    /// its labels.
    fn field(&self, array: Arc<OpenArray>, index: usize, path: &str) -> Result<Node> {
        let beside = Self::is_single_field(&array, path).then(|| path.rsplit_once('/')).flatten();
        let mut field = DenseAttribute::new(array, index, path)?;
        if let Some((group, own)) = beside {
            let schema = field.schema_mut();
            for axis in 0..schema.dimensions.len() {
                let Some(name) = schema.dimensions[axis].as_deref().filter(|name| *name != own) else {
                    continue;
                };
                let place = format!("{group}/{name}");
                if schema.labels[axis] == Labels::None
                    && let Ok(Resolved::Entry(Entry::Array(labels))) = self.find(&place)
                    && labels.schema.dimensions.len() == 1
                    && labels.schema.dimensions[0].name == name
                    && Self::is_single_field(&labels, &place)
                {
                    schema.labels[axis] = Labels::Node(place);
                }
            }
        }
        Ok(Node::Array(Arc::new(field)))
    }

    /// Returns true if this is the [name](Self::node_name) of an attribute's node.
    fn has_node_name(array: &OpenArray, index: usize, name: &str) -> bool {
        // Most attributes have a plain name, which can be compared without a copy.
        match Self::plain_name(array, index) {
            Some(own) => own == name,
            None => Self::node_name(array, index) == name,
        }
    }

    /// Resolves a path from the root.
    fn find(&self, path: &str) -> Result<Resolved> {
        let normal = normal_path(path);
        let mut place = self.root.clone();
        let parts: Vec<&str> = normal.split('/').filter(|part| !part.is_empty()).collect();
        if parts.len() > MAX_DEPTH {
            return Err(Error::invalid(format!("{}: a path of more than {MAX_DEPTH} parts", self.name)));
        }
        for (depth, part) in parts.iter().enumerate() {
            let last = depth + 1 == parts.len();
            let missing = || Error::not_found(Arc::clone(&self.name), normal.clone());
            match &place {
                Entry::Array(array) => {
                    if array.schema.kind != ArrayKind::Dense || !last {
                        return Err(missing());
                    }
                    let mut attributes = 0..array.schema.attributes.len();
                    if let Some(index) = attributes.find(|&index| Self::has_node_name(array, index, part)) {
                        return Ok(Resolved::Attribute(Arc::clone(array), index));
                    }
                    let label = label::shown(&array.schema).find(|(_, label)| label.name == **part);
                    let (index, _) = label.ok_or_else(missing)?;
                    return Ok(Resolved::Label(Arc::clone(array), index));
                }
                Entry::Group(group) => {
                    let member = group.member(part).ok_or_else(missing)?;
                    let prefix = self.member_prefix(group, member)?;
                    let entry = match &prefix {
                        Some(prefix) => Some(Entry::open(&self.directory, prefix.clone(), &self.options)?),
                        None => None,
                    };
                    let is_followed = |entry: &Entry| {
                        let is_group = matches!(entry, Entry::Group(_));
                        !is_group || prefix.as_ref().is_some_and(|at| self.follows(at, &parts[..=depth]))
                    };
                    match entry.filter(is_followed) {
                        Some(entry) => place = entry,
                        None if last => return Ok(Resolved::Link(member.uri.clone())),
                        None => return Err(missing()),
                    }
                }
            }
        }
        Ok(Resolved::Entry(place))
    }

    /// Returns true if a path to the group at a prefix is followed: if it is one of the first.
    fn follows(&self, prefix: &str, parts: &[&str]) -> bool {
        let path = parts.join("/");
        // The map stays consistent even if a thread panicked.
        let mut all = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.entry(prefix.to_owned()).or_default();
        let is_known = known.contains(&path);
        if !is_known && known.len() < MAX_PATHS {
            known.push(path);
            return true;
        }
        is_known
    }

    /// The prefix of a member in the directory; `None` if it is outside.
    fn member_prefix(&self, group: &Group, member: &Member) -> Result<Option<String>> {
        let inside = |key: String| -> Result<Option<String>> {
            // One spelling of each prefix.
            let parts: Vec<&str> = key.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
            if parts.is_empty() {
                return Ok(None);
            }
            let key = parts.join("/");
            let prefix = format!("{key}/");
            let there = is_array(&*self.directory, &prefix)? || is_group(&*self.directory, &prefix)?;
            Ok(there.then_some(prefix))
        };
        if member.relative {
            let uri = member.uri.trim_matches('/');
            if uri.split('/').any(|part| part == ".." || part.is_empty()) {
                return Ok(None);
            }
            return inside(format!("{}{uri}", group.prefix));
        }
        // An absolute address inside this directory, even if the directory was moved since.
        let path = member.uri.strip_prefix("file://").unwrap_or(&member.uri).trim_end_matches('/');
        if let Some(below) = self.location.as_deref().and_then(|root| path.strip_prefix(root)) {
            let below = below.trim_matches('/');
            if !below.is_empty() && !below.split('/').any(|part| part == "..") {
                return inside(below.to_owned());
            }
        }
        match path.rsplit('/').next() {
            Some(last) if !last.is_empty() && last != ".." => inside(format!("{}{last}", group.prefix)),
            _ => Ok(None),
        }
    }

    /// Returns true if the store is a group, not a single array.
    pub(crate) const fn is_group(&self) -> bool {
        matches!(self.root, Entry::Group(_))
    }

    /// Returns true if a node exists at a path.
    pub(crate) fn node_exists(&self, path: &str) -> Result<bool> {
        Ok(self.is_group_at(path)?.is_some())
    }

    /// Whether the node at a path is a group; `None` if there is none.
    pub(crate) fn is_group_at(&self, path: &str) -> Result<Option<bool>> {
        match self.find(path) {
            Ok(found) => Ok(Some(matches!(found, Resolved::Entry(Entry::Group(_))))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The folder of the array or group at a path, relative to the store; `None` if there is none.
    pub(crate) fn folder_of(&self, path: &str) -> Result<Option<String>> {
        let prefix = match self.find(path) {
            Ok(Resolved::Entry(Entry::Array(array))) => array.prefix.clone(),
            Ok(Resolved::Entry(Entry::Group(group))) => group.prefix.clone(),
            Ok(_) => return Ok(None),
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(prefix.trim_end_matches('/').to_owned()))
    }

    fn table(array: &Arc<OpenArray>, path: &str) -> Result<Node> {
        Ok(Node::Table(Arc::new(SparseTable::new(Arc::clone(array), path)?)))
    }

    /// The sparse array at a path; `None` if the node is something else.
    pub(crate) fn sparse_table(&self, path: &str) -> Result<Option<SparseTable>> {
        match self.find(path) {
            Ok(Resolved::Entry(Entry::Array(array))) if array.schema.kind == ArrayKind::Sparse => {
                SparseTable::new(array, path).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Visits each array under a path once, in order, with its path. Arrays of labels follow the array that they
    /// belong to.
    pub(crate) fn walk(&self, path: &str, depth: usize, visit: &mut dyn FnMut(&str, Result<Arc<OpenArray>>)) {
        if depth > MAX_DEPTH {
            return;
        }
        match self.find(path) {
            Ok(Resolved::Entry(Entry::Array(array))) => {
                visit(path, Ok(Arc::clone(&array)));
                for (_, own) in label::shown(&array.schema).filter(|(_, own)| own.relative) {
                    let labels = label::open(&array, own).map(|(labels, _)| labels);
                    visit(&child_path(path, &own.name), labels);
                }
            }
            Ok(Resolved::Entry(Entry::Group(group))) => {
                for member in &group.members {
                    self.walk(&child_path(path, &member.name), depth + 1, visit);
                }
            }
            Ok(_) => {}
            Err(error) => visit(path, Err(error)),
        }
    }
}

impl Store for TileDbStore {
    fn format(&self) -> &'static str {
        "tiledb"
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn is_remote(&self) -> bool {
        self.directory.is_remote()
    }

    fn children(&self, path: &str) -> Result<Vec<String>> {
        match self.find(path)? {
            Resolved::Entry(Entry::Array(array)) if Self::is_single_field(&array, path) => Ok(Vec::new()),
            Resolved::Entry(Entry::Array(array)) if array.schema.kind == ArrayKind::Dense => {
                let attributes =
                    (0..array.schema.attributes.len()).map(|index| Self::node_name(&array, index));
                let labels = label::shown(&array.schema).map(|(_, label)| label.name.clone());
                Ok(attributes.chain(labels).collect())
            }
            Resolved::Entry(Entry::Group(group)) => {
                Ok(group.members.iter().map(|member| member.name.clone()).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    fn node(&self, path: &str) -> Result<Node> {
        let normal = normal_path(path);
        match self.find(&normal)? {
            Resolved::Entry(Entry::Array(array)) => match array.schema.kind {
                ArrayKind::Dense if Self::is_single_field(&array, &normal) => self.field(array, 0, &normal),
                ArrayKind::Dense => Ok(Node::Group(metadata::or_unreadable(array.attributes())?)),
                ArrayKind::Sparse => Self::table(&array, &normal),
            },
            Resolved::Entry(Entry::Group(group)) => {
                let (window, key) = (self.options.at, self.options.key.as_ref());
                let read = metadata::read(&*self.directory, &group.prefix, window, key);
                let attributes = read.map(|attributes| attributes.into_iter().collect());
                Ok(Node::Group(metadata::or_unreadable(attributes)?))
            }
            Resolved::Attribute(array, index) => self.field(array, index, &normal),
            Resolved::Label(array, index) => {
                Ok(Node::Array(Arc::new(label::node(&array, &array.schema.labels[index], &normal)?)))
            }
            Resolved::Link(target) => Ok(Node::Link(target)),
        }
    }

    fn details(&self) -> Result<serde_json::Map<String, serde_json::Value>> {
        let mut fragments = Vec::new();
        self.walk("/", 0, &mut |path, array| {
            let Ok(array) = array else { return };
            for fragment in array.fragments().unwrap_or_default() {
                fragments.push(serde_json::json!({
                    "node": path,
                    "fragment": fragment.name.stem,
                    "time": [fragment.name.start, fragment.name.end],
                    "version": fragment.version(),
                    "tiles": fragment.footer.tiles(&fragment.schema),
                }));
            }
        });
        Ok(serde_json::Map::from_iter([("fragments".to_owned(), fragments.into())]))
    }

    fn verify(&self, depth: Depth, report: &mut Report) -> Result<()> {
        crate::verify::verify(self, depth, report)
    }
}
