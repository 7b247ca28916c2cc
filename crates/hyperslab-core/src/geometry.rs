//! Points, lines, graphs and meshes at several levels of detail.

use std::fmt::Debug;

use crate::{Attributes, Result, Values};

/// Points, lines and meshes: what a box, an object or a group selects at a level.
pub trait Geometry: Send + Sync + Debug {
    /// The description of the geometry.
    fn schema(&self) -> &GeometrySchema;

    /// The store and node, for messages.
    fn name(&self) -> &str;

    /// The levels, finest first.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::Error::Corrupt) when a level cannot be counted.
    fn levels(&self) -> Result<Vec<GeometryLevel>>;

    /// Reads what the query selects.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::Error::Invalid) for a level, object or attribute that is not there.
    fn query(&self, query: &GeometryQuery) -> Result<GeometryData>;
}

/// The description of a geometry.
#[derive(Debug, Clone)]
pub struct GeometrySchema {
    /// Its kinds, in the format's own words: `point_cloud`, `mesh`.
    pub kinds: Vec<String>,
    /// A name per spatial dimension.
    pub axes: Vec<String>,
    /// The lowest and highest corner.
    pub bounds: Option<[Vec<f64>; 2]>,
    /// The attributes of the geometry.
    pub attributes: Attributes,
}

/// One level of detail.
#[derive(Debug, Clone, PartialEq)]
pub struct GeometryLevel {
    /// Its path: `/0`.
    pub path: String,
    /// Vertices.
    pub vertices: u64,
    /// Links between them.
    pub links: u64,
    /// Objects.
    pub objects: u64,
}

/// Which part of a geometry to read. A field that is not set does not restrict.
#[derive(Debug, Clone, Default)]
pub struct GeometryQuery {
    /// The level; the finest when left out.
    pub level: Option<usize>,
    /// The lowest and highest corner of a closed box.
    pub region: Option<[Vec<f64>; 2]>,
    /// Objects by their id.
    pub objects: Vec<i64>,
    /// Groups of objects.
    pub groups: Vec<u64>,
    /// Attributes of vertices to bring; `None` for all of them, and for those of links and objects.
    pub attributes: Option<Vec<String>>,
}

/// Selected geometry. Links and objects name rows of `vertices`.
#[derive(Debug, Clone)]
pub struct GeometryData {
    /// One row a vertex, one column an axis.
    pub vertices: Values,
    /// By name, one row a vertex.
    pub attributes: Vec<(String, Values)>,
    /// One row per link: two vertices for an edge, three for a triangle. `None` if the kind has no links.
    pub links: Option<Values>,
    /// By name, one row a link.
    pub link_attributes: Vec<(String, Values)>,
    /// An object's id and its vertices, in order.
    pub objects: Vec<(i64, Vec<u64>)>,
    /// By name, one row an object, in the order of `objects`.
    pub object_attributes: Vec<(String, Values)>,
}

impl GeometryData {
    /// Vertices, and nothing beside them.
    #[must_use]
    pub const fn points(vertices: Values) -> Self {
        Self {
            vertices,
            attributes: Vec::new(),
            links: None,
            link_attributes: Vec::new(),
            objects: Vec::new(),
            object_attributes: Vec::new(),
        }
    }
}
