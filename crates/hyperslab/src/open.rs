//! Opens stores. The format is recognised from the bytes, not from the name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::{
    Array, Capabilities, DType, Error, ExternalFiles, Node, OpenContext, Report, Result, Store, Threads,
    child_path, did_you_mean, is_child_path, normal_path,
};
#[cfg(feature = "remote")]
use hyperslab_remote::RemoteOptions;

use crate::catalog::Catalog;
use crate::forms::restored;
use crate::geometry::GeometryReader;
use crate::memory::process_memory;
use crate::{ArrayReader, Format, TableReader, location};
use hyperslab_core::{Depth, EncryptionKey};

/// The number of names in a group that are considered for suggestions.
const MOST_NAMES: usize = 256;

/// Options for opening a store.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenOptions {
    /// The format; recognised from the bytes by default.
    pub format: Option<Format>,
    /// Map files (the default), or read them by position, which is safe for files that others may truncate.
    pub mapped: bool,
    /// The memory limit for a result.
    pub memory: u64,
    /// Read the array as of a time range, in milliseconds since 1970 (TileDB).
    pub at: Option<(u64, u64)>,
    /// The key of an encrypted array (TileDB).
    pub key: Option<EncryptionKey>,
    /// Use consolidated metadata (the default), or read each node's own document. Outdated consolidated metadata hides later
    /// additions and changes (Zarr).
    pub consolidated: bool,
    /// Which other files a store may refer to (HDF5).
    pub external: ExternalFiles,
    /// A folder that symbolic links inside a directory store must not leave, for stores shown to untrusted clients.
    pub within: Option<PathBuf>,
    /// Options for remote storage.
    #[cfg(feature = "remote")]
    pub remote: RemoteOptions,
}

hyperslab_core::option_setters! { OpenOptions {
    with_format = format: into Option<Format>,
    with_mapped = mapped: bool,
    with_memory = memory: u64,
    with_at = at: into Option<(u64, u64)>,
    with_key = key: into Option<EncryptionKey>,
    with_consolidated = consolidated: bool,
    with_external = external: ExternalFiles,
    with_within = within: into Option<PathBuf>,
    #[cfg(feature = "remote")] with_remote = remote: RemoteOptions,
} }

impl OpenOptions {
    /// The context for a driver that changes a local store.
    pub(crate) fn context<'a>(&self, path: &'a Path) -> OpenContext<'a> {
        OpenContext {
            path: Some(path),
            mapped: self.mapped,
            at: self.at,
            key: self.key.clone(),
            ..OpenContext::default()
        }
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            format: None,
            mapped: true,
            memory: default_memory(),
            at: None,
            key: None,
            consolidated: true,
            external: ExternalFiles::default(),
            within: None,
            #[cfg(feature = "remote")]
            remote: RemoteOptions::default(),
        }
    }
}

/// Three quarters of the memory available to the process.
fn default_memory() -> u64 {
    process_memory() / 4 * 3
}

/// Opens a store of any format: a local path or a URL (`s3://bucket/x.zarr`, `https://host/x.nc`).
///
/// # Errors
///
/// [`Io`](Error::Io) if it cannot be read, [`Invalid`](Error::Invalid) if no format is recognised, otherwise any error from the
/// format.
pub fn open(path: impl AsRef<Path>) -> Result<OpenStore> {
    open_with(path, &OpenOptions::default())
}

/// Like [`open`], with options.
///
/// # Errors
///
/// As [`open`].
pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<OpenStore> {
    let found = location::find(path.as_ref(), options)?;
    let store = found.format.driver().open(found.content.clone(), &found.context(options))?;
    let (store, stored) = (restored(Arc::clone(&store)), store);
    Ok(OpenStore { store, stored, driver: Some(found.format), memory: options.memory, path: found.name })
}

/// Detects the format at a location, without opening it.
///
/// # Errors
///
/// As [`open`].
pub fn detect(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Format> {
    Ok(location::find(path.as_ref(), options)?.format)
}

/// A limit on visited nodes. Links can lead to one node by many paths, and a hostile file can make those paths endless.
pub(crate) const MOST_NODES: u64 = 1 << 22;

/// An open store.
#[derive(Debug, Clone)]
pub struct OpenStore {
    store: Arc<dyn Store>,
    /// The store as opened by its driver.
    stored: Arc<dyn Store>,
    driver: Option<Format>,
    memory: u64,
    path: PathBuf,
}

impl OpenStore {
    /// Wraps a store opened by other means. `path` is its name in messages.
    pub fn from_store(store: Arc<dyn Store>, path: impl Into<PathBuf>) -> Self {
        let driver = Format::from_name(store.format());
        let (store, stored) = (restored(Arc::clone(&store)), store);
        Self { store, stored, driver, memory: default_memory(), path: path.into() }
    }

    /// The format, or `None` if the store was opened by other means and its format is not registered.
    #[must_use]
    pub const fn driver(&self) -> Option<Format> {
        self.driver
    }

    /// The capabilities of its format.
    pub(crate) fn capabilities(&self) -> Capabilities {
        self.driver.map_or(Capabilities::NONE, |format| format.info().capabilities)
    }

    /// The format's name.
    #[must_use]
    pub fn format(&self) -> &'static str {
        self.store.format()
    }

    /// The path that was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same store with its nodes as they are stored, under the names that they have in the file. Content stored in another
    /// form (such as a mask beside the values) is not reassembled.
    #[must_use]
    pub fn as_stored(&self) -> Self {
        let store = self.stored.as_stored().unwrap_or_else(|| Arc::clone(&self.stored));
        Self { store, ..self.clone() }
    }

    /// The same store without restoring content that is stored in another form. Its nodes keep the names of the format.
    #[must_use]
    pub(crate) fn with_forms_as_stored(&self) -> Self {
        Self { store: Arc::clone(&self.stored), ..self.clone() }
    }

    /// The underlying store, as implemented by its format.
    #[must_use]
    pub const fn inner(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The names directly under a group.
    ///
    /// # Errors
    ///
    /// [`NotFound`](Error::NotFound) if there is no such node.
    pub fn children(&self, path: &str) -> Result<Vec<String>> {
        self.store.children(&normal_path(path))
    }

    /// The node at a path.
    ///
    /// # Errors
    ///
    /// [`NotFound`](Error::NotFound) if there is no such node.
    pub fn node(&self, path: &str) -> Result<Node> {
        self.store.node(&normal_path(path))
    }

    /// Like [`node`](Self::node), for a path that a user has named: the error suggests the closest name.
    ///
    /// # Errors
    ///
    /// As [`node`](Self::node).
    pub fn find(&self, path: &str) -> Result<Node> {
        let path = normal_path(path);
        self.store.node(&path).map_err(|why| match self.hint(&path, &why) {
            Some(hint) => Error::NotFound { store: Arc::clone(self.name()), what: path.clone(), hint },
            None => why,
        })
    }

    /// The end of the message about a node that cannot be opened; `None` if it exists or nothing is known about it.
    fn hint(&self, path: &str, why: &Error) -> Option<String> {
        if !why.is_not_found() && !why.is_corrupt() {
            return None;
        }
        let mut above = path;
        let node = loop {
            above = match above.rsplit_once('/')? {
                ("", "") => return None,
                ("", _) => "/",
                (above, _) => above,
            };
            if let Ok(node) = self.store.node(above) {
                break node;
            }
        };
        if !matches!(node, Node::Group(_)) {
            return Some(format!("; {above} is {}, not a group", node.kind().one()));
        }
        if !why.is_not_found() {
            return None;
        }
        let names = self.store.children(above).ok()?.into_iter().map(|name| child_path(above, &name));
        let is_shown = |path: &String| match self.store.node(path) {
            Ok(Node::Array(array)) => !array.schema().is_dimension,
            _ => true,
        };
        let names: Vec<String> = names.take(MOST_NAMES).filter(is_shown).collect();
        Some(did_you_mean(path, names.iter().map(String::as_str)))
    }

    /// The array at a path.
    ///
    /// # Errors
    ///
    /// [`NotFound`](Error::NotFound) if there is no such node, [`Invalid`](Error::Invalid) if it is not an
    /// array.
    pub fn array(&self, path: &str) -> Result<ArrayReader> {
        match self.find(path)? {
            Node::Array(array) => Ok(self.reader(array)),
            other => Err(Error::invalid(format!(
                "{}: {path} is {}, not an array",
                self.name(),
                other.kind().one()
            ))),
        }
    }

    /// Wraps an array of this store for reading.
    #[must_use]
    pub fn reader(&self, array: Arc<dyn Array>) -> ArrayReader {
        ArrayReader::new(array, Arc::clone(&self.store), self.memory)
    }

    /// The table at a path.
    ///
    /// # Errors
    ///
    /// [`NotFound`](Error::NotFound) if there is no such node, [`Invalid`](Error::Invalid) if it is not a table.
    pub fn table(&self, path: &str) -> Result<TableReader> {
        match self.find(path)? {
            Node::Table(table) => Ok(TableReader::new(table)),
            other => Err(self.not_a(path, &other, "table")),
        }
    }

    /// The geometry at a path.
    ///
    /// # Errors
    ///
    /// [`NotFound`](Error::NotFound) if there is no such node, [`Invalid`](Error::Invalid) if it is not a geometry.
    pub fn geometry(&self, path: &str) -> Result<GeometryReader> {
        match self.find(path)? {
            Node::Geometry(geometry) => Ok(GeometryReader::new(geometry)),
            other => Err(self.not_a(path, &other, "geometry")),
        }
    }

    pub(crate) fn no_path(&self, path: &str) -> Error {
        Error::invalid(format!(
            "{}: {path:?} is not the path of a node: one of its names is empty or \".\"",
            self.name()
        ))
    }

    fn not_a(&self, path: &str, node: &Node, wanted: &str) -> Error {
        Error::invalid(format!("{}: {path} is {}, not a {wanted}", self.name(), node.kind().one()))
    }

    /// Every node with its shape, type, filters and attributes.
    ///
    /// # Errors
    ///
    /// Only if the root cannot be read. A damaged node is listed as damaged.
    pub fn catalog(&self) -> Result<Catalog> {
        Catalog::of(self)
    }

    /// Visits all nodes, parents first. A node that cannot be read is passed to `visit` as an error.
    ///
    /// # Errors
    ///
    /// Any error from `visit`.
    pub fn walk(&self, visit: &mut dyn FnMut(&str, Result<Node>) -> Result<()>) -> Result<()> {
        let mut pending = vec!["/".to_owned()];
        let mut visited = 0_u64;
        while let Some(path) = pending.pop() {
            visited += 1;
            if visited > MOST_NODES {
                return Err(Error::invalid(format!(
                    "{}: more than {MOST_NODES} nodes; links probably form a cycle",
                    self.name()
                )));
            }
            let node = self.store.node(&path);
            let below = match &node {
                Ok(Node::Group(_)) => self.store.children(&path),
                _ => Ok(Vec::new()),
            };
            match below {
                Ok(names) => {
                    visit(&path, node)?;
                    for below in names.iter().rev().map(|name| child_path(&path, name)) {
                        if is_child_path(&below) {
                            pending.push(below);
                        } else {
                            visit(&below, Err(self.no_path(&below)))?;
                        }
                    }
                }
                // A group whose members cannot be listed counts as damaged.
                Err(error) => visit(&path, Err(error))?,
            }
        }
        Ok(())
    }

    /// The only readable node, for use if none is named. Arrays that only label the dimension of the same name are ignored,
    /// unless there are no others.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Invalid) if there are none or several; the message lists them. If nodes exist but none can be read, the
    /// error of the first.
    pub fn only_node(&self) -> Result<String> {
        let (mut found, mut labels, mut failed) = (Vec::new(), 0, None);
        self.walk(&mut |path, node| {
            match node {
                // Nodes other than labels come first.
                Ok(Node::Array(array)) if is_label(path, array.schema()) => {
                    labels += 1;
                    found.push(path.to_owned());
                }
                Ok(Node::Array(_) | Node::Table(_) | Node::Geometry(_)) => {
                    found.insert(found.len() - labels, path.to_owned());
                }
                Err(error) if failed.is_none() => failed = Some(error),
                _ => {}
            }
            Ok(())
        })?;
        match (found.as_slice(), failed) {
            ([only], _) => Ok(only.clone()),
            ([only, ..], _) if found.len() - labels == 1 => Ok(only.clone()),
            // The reason why the only node cannot be read says more than that there is none.
            ([], Some(error)) => Err(error),
            ([], None) => {
                Err(Error::invalid(format!("{}: it contains no array, table or geometry", self.name())))
            }
            (several, _) => {
                let some: Vec<_> = several.iter().take(8).map(String::as_str).collect();
                let more = if several.len() > some.len() { ", …" } else { "" };
                Err(Error::invalid(format!(
                    "{}: the file has several nodes; choose one of: {}{more}",
                    self.name(),
                    some.join(", ")
                )))
            }
        }
    }

    /// Checks the store.
    ///
    /// # Errors
    ///
    /// Only if checking itself was impossible. Damage is a finding.
    pub fn verify(&self, depth: Depth) -> Result<Report> {
        let mut report = Report::default();
        if self.store.is_remote() {
            // Each chunk is a request, and more threads keep more requests in flight.
            Threads::for_remote().install(|| self.store.verify(depth, &mut report))?;
        } else {
            self.store.verify(depth, &mut report)?;
        }
        crate::verify::note_coverage(self, &mut report)?;
        Ok(report)
    }

    fn name(&self) -> &Arc<str> {
        self.store.name()
    }
}

/// Returns true if the array is the coordinate of the dimension with the same name. Texts may be stored as characters along a
/// second dimension.
pub(crate) fn is_label(path: &str, schema: &hyperslab_core::ArraySchema) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    match &schema.dimensions[..] {
        [Some(dimension)] => dimension == name,
        [Some(dimension), _] => dimension == name && schema.dtype == DType::FixedBytes(1),
        _ => false,
    }
}
