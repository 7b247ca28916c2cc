//! Opened files and directories: their trees of nodes, and integrity checks.

use std::fmt::{self, Debug};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    Array, Attributes, DType, Geometry, Link, ObjectId, Report, Result, StoredGroup, StoredNamedType, Table,
};

/// An opened file or directory. Nodes are looked up on request, not when it is opened.
pub trait Store: Send + Sync + Debug {
    /// The format's name, as used by `--format`: `tet`, `hdf5`, `tiledb`, `zarr`, `zvf`.
    fn format(&self) -> &'static str;

    /// The variant of the format, if several can be chosen when writing: `zarr2`, `zarr3`, `netcdf4`.
    fn variant(&self) -> Option<&'static str> {
        None
    }

    /// The same store with its nodes under their stored names; `None` if it already shows those. NetCDF-4
    /// stores some variables under other names than their own.
    fn as_stored(&self) -> Option<Arc<dyn Store>> {
        None
    }

    /// The path or URL, for messages.
    fn name(&self) -> &Arc<str>;

    /// Returns true if the store is on another machine. Opening several nodes at once then saves time.
    fn is_remote(&self) -> bool {
        false
    }

    /// The names directly under a group, in the file's order. Cheap: no child is opened.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::Error::NotFound) if there is no such node, [`Corrupt`](crate::Error::Corrupt) if
    /// the group cannot be read.
    fn children(&self, path: &str) -> Result<Vec<String>>;

    /// The node at a path: `/`, `/group/array`. Soft links inside the path are followed. A link at the end is followed unless it
    /// dangles.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::Error::NotFound) if there is no such node; otherwise any problem of the node.
    fn node(&self, path: &str) -> Result<Node>;

    /// The links of a group, in the file's order, without following them; `None` in formats that do not distinguish names
    /// from nodes.
    ///
    /// # Errors
    ///
    /// As [`children`](Self::children).
    fn links(&self, _path: &str) -> Result<Option<Vec<Link>>> {
        Ok(None)
    }

    /// The identity of the object at a path; `None` in formats where each node has one path.
    ///
    /// # Errors
    ///
    /// As [`node`](Self::node).
    fn identity(&self, _path: &str) -> Result<Option<ObjectId>> {
        Ok(None)
    }

    /// Properties of a group beyond its attributes and links.
    ///
    /// # Errors
    ///
    /// As [`node`](Self::node).
    fn stored_group(&self, _path: &str) -> Result<StoredGroup> {
        Ok(StoredGroup::default())
    }

    /// The named type at a path as it is stored; `None` if the path is something else.
    ///
    /// # Errors
    ///
    /// As [`node`](Self::node).
    fn stored_type(&self, _path: &str) -> Result<Option<StoredNamedType>> {
        Ok(None)
    }

    /// The bytes before the file's content that the format reserves for other programs (HDF5's user block).
    ///
    /// # Errors
    ///
    /// [`Io`](crate::Error::Io) if they cannot be read.
    fn preamble(&self) -> Result<Option<bytes::Bytes>> {
        Ok(None)
    }

    /// The page size of the file, in formats that have pages (HDF5).
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::Error::Corrupt) if it cannot be read.
    fn page_size(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Details of the file besides its nodes (`layout`, `history` …), for `info --all`.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::Error::Corrupt) if they cannot be read.
    fn details(&self) -> Result<Map<String, Value>> {
        Ok(Map::new())
    }

    /// The memory budget that the file recommends on a machine with this much memory. It is advisory: nothing fails because of
    /// it.
    fn advised_memory(&self, _machine: u64) -> Option<u64> {
        None
    }

    /// Returns true if the store keeps a checksum of every chunk, besides those added by filters.
    fn keeps_checksums(&self) -> bool {
        false
    }

    /// Checks the store and reports the results. Damage is a finding, not an error.
    ///
    /// # Errors
    ///
    /// Only if the check itself fails.
    fn verify(&self, depth: Depth, report: &mut Report) -> Result<()>;
}

/// The thoroughness of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Structures, offsets, counts.
    Quick,
    /// Every chunk as well: decoded, with its checksums verified.
    Deep,
}

/// A node of a store.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Node {
    /// A group and its attributes.
    Group(Attributes),
    /// A dense array.
    Array(Arc<dyn Array>),
    /// Rows and columns.
    Table(Arc<dyn Table>),
    /// Points, lines, graphs or meshes.
    Geometry(Arc<dyn Geometry>),
    /// A link that dangles or leads out of the store, with its target.
    Link(String),
    /// A named type and its attributes.
    Type(DType, Attributes),
}

impl Node {
    /// `group`, `array`, `table`, `geometry`, `link` or `type`.
    #[must_use]
    pub const fn kind(&self) -> NodeKind {
        match self {
            Self::Group(_) => NodeKind::Group,
            Self::Array(_) => NodeKind::Array,
            Self::Table(_) => NodeKind::Table,
            Self::Geometry(_) => NodeKind::Geometry,
            Self::Link(_) => NodeKind::Link,
            Self::Type(..) => NodeKind::Type,
        }
    }
}

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "as the variants of `Node`")]
pub enum NodeKind {
    Group,
    Array,
    Table,
    Geometry,
    Link,
    Type,
}

impl NodeKind {
    /// The kind with its article, for sentences: "an array".
    #[must_use]
    pub const fn one(self) -> &'static str {
        match self {
            Self::Group => "a group",
            Self::Array => "an array",
            Self::Table => "a table",
            Self::Geometry => "a geometry",
            Self::Link => "a link",
            Self::Type => "a type",
        }
    }
}

impl fmt::Display for NodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Group => "group",
            Self::Array => "array",
            Self::Table => "table",
            Self::Geometry => "geometry",
            Self::Link => "link",
            Self::Type => "type",
        })
    }
}

/// Normalises a path: a leading slash, no trailing one, no empty or `.` parts.
///
/// ```
/// use hyperslab_core::normal_path;
/// assert_eq!(normal_path("a//b/."), "/a/b");
/// assert_eq!(normal_path(""), "/");
/// ```
#[must_use]
pub fn normal_path(path: &str) -> String {
    let mut normal = String::with_capacity(path.len() + 1);
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        normal.push('/');
        normal.push_str(part);
    }
    if normal.is_empty() { "/".to_owned() } else { normal }
}

/// Returns true if a path made of a store's names is below the root. A name such as "" or "." leads back to its group, and a
/// walk that follows it never ends.
///
/// ```
/// use hyperslab_core::{child_path, is_child_path};
/// assert!(is_child_path(&child_path("/", "a")) && is_child_path("/a/.."));
/// assert!(!is_child_path(&child_path("/", "")) && !is_child_path(&child_path("/a", ".")));
/// ```
#[must_use]
pub fn is_child_path(path: &str) -> bool {
    path != "/" && normal_path(path) == path
}

/// Joins a group's path and the name of a child.
#[must_use]
pub fn child_path(parent: &str, name: &str) -> String {
    if parent == "/" { format!("/{name}") } else { format!("{parent}/{name}") }
}
