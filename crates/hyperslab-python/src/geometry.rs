//! `Geometry`: points, lines, graphs and meshes.

use std::sync::Arc;

use hyperslab::GeometryQuery;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::show;
use crate::store::Origin;
use crate::threads::within;
use crate::values;

/// Points, lines and meshes at several levels of detail.
#[pyclass(frozen, module = "hyperslab")]
#[derive(Debug)]
pub(crate) struct Geometry {
    inner: Arc<dyn hyperslab::driver::Geometry>,
    origin: Arc<Origin>,
    path: String,
}

impl Geometry {
    pub(crate) fn new(
        inner: Arc<dyn hyperslab::driver::Geometry>,
        origin: Arc<Origin>,
        path: String,
    ) -> Self {
        Self { inner, origin, path }
    }
}

#[pymethods]
impl Geometry {
    /// Its kinds, in the format's own terms: ``point_cloud``, ``mesh``.
    #[getter]
    fn kinds(&self) -> Vec<String> {
        self.inner.schema().kinds.clone()
    }

    /// The names of the spatial dimensions.
    #[getter]
    fn axes(&self) -> Vec<String> {
        self.inner.schema().axes.clone()
    }

    /// The lowest and the highest corner.
    #[getter]
    fn bounds(&self) -> Option<(Vec<f64>, Vec<f64>)> {
        self.inner.schema().bounds.clone().map(|[low, high]| (low, high))
    }

    /// The attributes of the geometry.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        values::attributes(py, &self.inner.schema().attributes)
    }

    /// The path in the store.
    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    /// The levels, finest first, each with its path and its numbers of vertices, links and objects.
    fn levels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let found = within(py, self.origin.threads, || self.inner.levels())?;
        let levels = PyList::empty(py);
        for level in found {
            let row = PyDict::new(py);
            row.set_item("path", level.path)?;
            row.set_item("vertices", level.vertices)?;
            row.set_item("links", level.links)?;
            row.set_item("objects", level.objects)?;
            levels.append(row)?;
        }
        Ok(levels)
    }

    /// Query by level, closed box, objects and groups; omitted parameters do not restrict. Returns ``vertices``,
    /// ``links``, ``attributes`` by name, and ``objects``: the vertices of each id.
    #[pyo3(signature = (*, level=None, region=None, objects=None, groups=None, attributes=None))]
    fn query<'py>(
        &self,
        py: Python<'py>,
        level: Option<usize>,
        region: Option<(Vec<f64>, Vec<f64>)>,
        objects: Option<Vec<i64>>,
        groups: Option<Vec<u64>>,
        attributes: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let query = GeometryQuery {
            level,
            region: region.map(|(low, high)| [low, high]),
            objects: objects.unwrap_or_default(),
            groups: groups.unwrap_or_default(),
            attributes,
        };
        let data = within(py, self.origin.threads, || self.inner.query(&query))?;
        let found = PyDict::new(py);
        found.set_item("vertices", values::to_python(py, data.vertices, false)?)?;
        let links = data.links.map(|links| values::to_python(py, links, false)).transpose()?;
        found.set_item("links", links)?;
        let named = PyDict::new(py);
        for (name, column) in data.attributes {
            named.set_item(name, values::to_python(py, column, false)?)?;
        }
        found.set_item("attributes", named)?;
        let objects = PyDict::new(py);
        for (id, vertices) in data.objects {
            objects.set_item(id, numpy::PyArray1::from_vec(py, vertices))?;
        }
        found.set_item("objects", objects)?;
        Ok(found)
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        show::call(slf, "hyperslab._html", "geometry_text")
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        show::call(slf, "hyperslab._html", "geometry_html")
    }

    /// Draw a level with matplotlib: points, and lines between linked vertices, over the first two axes. ``axes``
    /// names two or three others. Further options are passed to matplotlib. Returns the axes.
    #[pyo3(signature = (*, level=None, axes=None, ax=None, **options))]
    fn plot<'py>(
        slf: &Bound<'py, Self>,
        level: Option<usize>,
        axes: Option<Vec<String>>,
        ax: Option<Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let words = (level, axes, ax, options).into_pyobject(slf.py())?;
        show::call_with(slf, "hyperslab._plot", "geometry", &words, None)
    }
}
