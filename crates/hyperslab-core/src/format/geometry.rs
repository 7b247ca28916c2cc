//! Writing geometries, in batches.

use std::fmt::Debug;

use crate::{DType, Error, GeometryData, Result, Values};

/// The geometry to write and its options.
#[derive(Debug, Clone)]
pub struct GeometrySpec {
    /// One of the format's [kinds](super::FormatInfo::geometry_kinds).
    pub kind: String,
    /// The number of axes.
    pub rank: usize,
    /// The type of coordinates.
    pub dtype: DType,
    /// Vertex attributes: one value or one row of values per vertex.
    pub attributes: Vec<GeometryColumn>,
    /// The number of vertices per link; `None` without links.
    pub link_width: Option<usize>,
    /// Whether vertices belong to objects.
    pub objects: bool,
    /// The objects of each group. Only for geometry written in one batch.
    pub groups: Vec<Vec<i64>>,
    /// The names of the axes.
    pub axes: Option<Vec<String>>,
    /// The chunk size along each axis, in units of space.
    pub chunk_shape: Vec<f64>,
    /// The number of coarser levels, each with half the detail of the one before.
    pub levels: usize,
    /// The memory budget for data not yet written, in bytes.
    pub memory: u64,
    /// Replace the store at the target.
    pub replace: bool,
    /// Make a new store durable before it is committed.
    pub sync: bool,
}

/// A column of values, one row per vertex.
#[derive(Debug, Clone, PartialEq)]
pub struct GeometryColumn {
    /// The name.
    pub name: String,
    /// The type of a value.
    pub dtype: DType,
    /// Values per row, unless a row is a single value.
    pub width: Option<u64>,
}

/// A geometry that is being written. Nothing is visible before [`commit`](GeometrySink::commit).
pub trait GeometrySink: Send + Debug {
    /// Adds vertices: one row each, the values of every attribute and, if vertices belong to objects, the object of each. Without
    /// objects, `objects` is empty.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::Error::Invalid) if lengths or types do not match; [`Io`](crate::Error::Io) if the system reports an
    /// error.
    fn vertices(
        &mut self,
        vertices: &Values,
        attributes: &[(String, Values)],
        objects: &[Option<i64>],
    ) -> Result<()>;

    /// Adds links: vertex numbers, as many per link as the spec says.
    ///
    /// # Errors
    ///
    /// As [`vertices`](Self::vertices).
    fn links(&mut self, ends: &[u64]) -> Result<()>;

    /// Adds a geometry that is in memory, with its objects and their groups. Its links and objects refer to its own vertices.
    ///
    /// # Errors
    ///
    /// As [`vertices`](Self::vertices).
    fn geometry(&mut self, data: &GeometryData, groups: &[Vec<i64>]) -> Result<()> {
        let _ = (data, groups);
        Err(Error::invalid("this writer takes vertices and links in batches, not whole geometries"))
    }

    /// Makes everything visible at once.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::Error::Io) if the system reports an error. Nothing is visible then.
    fn commit(self: Box<Self>) -> Result<()>;
}
