//! Points, lines, graphs and meshes at several levels of detail.

use std::fmt::Debug;

use crate::{Attributes, Result, Values};

/// Points, lines and meshes, read by box, object or group at one level of detail.
pub trait Geometry: Send + Sync + Debug {
    /// The description of the geometry.
    fn schema(&self) -> &GeometrySchema;

    /// The store and node, for messages.
    fn name(&self) -> &str;

    /// The levels, finest first.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::Error::Corrupt) if a level cannot be counted.
    fn levels(&self) -> Result<Vec<GeometryLevel>>;

    /// Reads the selected part.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::Error::Invalid) for a level, object or attribute that does not exist.
    fn query(&self, query: &GeometryQuery) -> Result<GeometryData>;
}

/// The description of a geometry.
#[derive(Debug, Clone)]
pub struct GeometrySchema {
    /// Its kinds, in the format's own terms: `point_cloud`, `mesh`.
    pub kinds: Vec<String>,
    /// One name per spatial dimension.
    pub axes: Vec<String>,
    /// The lowest and highest corners.
    pub bounds: Option<[Vec<f64>; 2]>,
    /// The attributes of the geometry.
    pub attributes: Attributes,
}

/// One level of detail.
#[derive(Debug, Clone, PartialEq)]
pub struct GeometryLevel {
    /// Its path, such as `/0`.
    pub path: String,
    /// The number of vertices.
    pub vertices: u64,
    /// The number of links between vertices.
    pub links: u64,
    /// The number of objects.
    pub objects: u64,
}

/// The part of a geometry to read. Unset fields do not restrict it.
#[derive(Debug, Clone, Default)]
pub struct GeometryQuery {
    /// The level; the finest by default.
    pub level: Option<usize>,
    /// The lowest and highest corners of a closed box.
    pub region: Option<[Vec<f64>; 2]>,
    /// Object ids.
    pub objects: Vec<i64>,
    /// Object groups.
    pub groups: Vec<u64>,
    /// Vertex attributes to read. `None` reads all attributes, including those of links and objects.
    pub attributes: Option<Vec<String>>,
}

/// Selected geometry. Links and objects refer to rows of `vertices`.
#[derive(Debug, Clone)]
pub struct GeometryData {
    /// One row per vertex, one column per axis.
    pub vertices: Values,
    /// Attributes by name, one row per vertex.
    pub attributes: Vec<(String, Values)>,
    /// One row per link: two vertices for an edge, three for a triangle. `None` if this kind has no links.
    pub links: Option<Values>,
    /// Attributes by name, one row per link.
    pub link_attributes: Vec<(String, Values)>,
    /// Object ids and their vertices, in order.
    pub objects: Vec<(i64, Vec<u64>)>,
    /// Attributes by name, one row per object, in the order of `objects`.
    pub object_attributes: Vec<(String, Values)>,
}

impl GeometryData {
    /// Vertices without attributes, links or objects.
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
