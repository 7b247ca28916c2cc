//! New stores, complete or not at all: vertices are sorted into chunks in bounded memory, chunks are written on all cores.
//!
//! | step | module |
//! |---|---|
//! | collects batches of vertices by chunk | `writer`, `chunks`, `buckets` |
//! | writes each chunk: row order, fragments, cells | `arrange`, `finish` |
//! | writes objects: the fragments of all chunks, by object | `objects` |
//! | writes links: resolves vertices to rows, then builds arrays | `links`, `segments` |
//! | extends an existing store: reads it and writes it again with the additions | `append` |

pub(crate) mod append;
pub(crate) mod arrange;
pub(crate) mod buckets;
pub(crate) mod cells;
mod chunks;
pub(crate) mod columns;
pub(crate) mod documents;
pub(crate) mod finish;
pub(crate) mod forest;
mod links;
pub(crate) mod objects;
mod options;
pub(crate) mod segments;
mod whole;
mod writer;

pub use columns::ColumnSpec;
pub use options::{CrossLevel, WriteOptions};
pub use whole::write;
pub use writer::{GeometrySpec, ZvfWriter};

/// The kind of geometry to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the format's own")]
pub enum GeometryKind {
    PointCloud,
    Line,
    Polyline,
    Streamline,
    Graph,
    Skeleton,
    Mesh,
}

impl GeometryKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::PointCloud,
        Self::Line,
        Self::Polyline,
        Self::Streamline,
        Self::Graph,
        Self::Skeleton,
        Self::Mesh,
    ];

    /// The format's name for the kind, such as `point_cloud`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PointCloud => "point_cloud",
            Self::Line => "line",
            Self::Polyline => "polyline",
            Self::Streamline => "streamline",
            Self::Graph => "graph",
            Self::Skeleton => "skeleton",
            Self::Mesh => "mesh",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(crate) const fn is_path(self) -> bool {
        matches!(self, Self::Line | Self::Polyline | Self::Streamline)
    }

    /// Returns true if all links are stored, not only those where lines cross into another chunk.
    pub(crate) const fn stores_links(self) -> bool {
        matches!(self, Self::Graph | Self::Skeleton | Self::Mesh)
    }

    pub(crate) const fn links_convention(self) -> &'static str {
        match self {
            Self::Graph | Self::Mesh => "explicit",
            Self::Skeleton => "implicit_sequential_with_branches",
            _ => "implicit_sequential",
        }
    }
}
