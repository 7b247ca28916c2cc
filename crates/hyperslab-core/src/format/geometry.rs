//! New geometries, written in batches.

use std::fmt::Debug;

use crate::{DType, Result, Values};

/// What geometry to write, and how.
#[derive(Debug, Clone)]
pub struct GeometrySpec {
    /// One of the format's [kinds](super::FormatInfo::geometry_kinds).
    pub kind: String,
    /// The number of axes.
    pub rank: usize,
    /// The type of coordinates.
    pub dtype: DType,
    /// One value or row of values a vertex.
    pub attributes: Vec<GeometryColumn>,
    /// The vertices that a link connects; `None` without links.
    pub link_width: Option<usize>,
    /// Do vertices belong to objects?
    pub objects: bool,
    /// The objects of each group. Only of geometry that is written at once.
    pub groups: Vec<Vec<i64>>,
    /// The names of the axes.
    pub axes: Option<Vec<String>>,
    /// The size of a chunk along each axis, in units of space.
    pub chunk_shape: Vec<f64>,
    /// Coarser levels, each of half the detail of the one before.
    pub levels: usize,
    /// Memory for what is not written yet, in bytes.
    pub memory: u64,
    /// Replace the store at the target.
    pub replace: bool,
    /// Make a new store durable before it is committed.
    pub sync: bool,
}

/// A column of values, one row a vertex.
#[derive(Debug, Clone, PartialEq)]
pub struct GeometryColumn {
    /// The name.
    pub name: String,
    /// The type of a value.
    pub dtype: DType,
    /// Values in a row, where a row is not one value.
    pub width: Option<u64>,
}

/// A geometry that is being written. Nothing is visible before [`commit`](GeometrySink::commit).
pub trait GeometrySink: Send + Debug {
    /// More vertices: one row each, the values of every attribute and, where vertices belong to objects, the object of each.
    /// Without objects, `objects` is empty.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::Error::Invalid) when lengths or types do not fit; [`Io`](crate::Error::Io) when the system refuses.
    fn vertices(
        &mut self,
        vertices: &Values,
        attributes: &[(String, Values)],
        objects: &[Option<i64>],
    ) -> Result<()>;

    /// More links: the numbers of vertices, as many a link as the spec says.
    ///
    /// # Errors
    ///
    /// As [`vertices`](Self::vertices).
    fn links(&mut self, ends: &[u64]) -> Result<()>;

    /// Makes everything visible at once.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::Error::Io) when the system refuses; nothing is visible then.
    fn commit(self: Box<Self>) -> Result<()>;
}
