//! `Store`: an open file, its groups and nodes.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use hyperslab::{Depth, EncryptionKey, Format, Node, OpenOptions, OpenStore, normal_path};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::Array;
use crate::errors::{detached, invalid, raised};
use crate::geometry::Geometry;
use crate::table::Table;
use crate::{threads, values};

/// Where a store is and how it was opened: enough to open it again elsewhere.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The absolute path.
    pub(crate) path: String,
    pub(crate) format: Option<String>,
    pub(crate) mapped: bool,
    pub(crate) threads: Option<usize>,
    memory: Option<u64>,
    at: Option<(u64, u64)>,
}

impl Origin {
    /// The options that differ from the default.
    pub(crate) fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = PyDict::new(py);
        if let Some(format) = &self.format {
            options.set_item("format", format)?;
        }
        if !self.mapped {
            options.set_item("mapped", false)?;
        }
        if let Some(threads) = self.threads {
            options.set_item("threads", threads)?;
        }
        if let Some(memory) = self.memory {
            options.set_item("memory", memory)?;
        }
        if let Some(at) = self.at {
            options.set_item("at", at)?;
        }
        Ok(options)
    }
}

/// An open file or directory.
#[pyclass(frozen, module = "hyperslab._native")]
#[derive(Debug)]
pub(crate) struct Store {
    /// `None` once it was closed. Arrays hold what they need of it.
    open: RwLock<Option<OpenStore>>,
    pub(crate) origin: Arc<Origin>,
}

impl Store {
    pub(crate) fn inner(&self, py: Python<'_>) -> PyResult<OpenStore> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or_else(|| invalid(py, format!("{} is closed", self.origin.path)))
    }
}

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (path, *, format=None, mapped=true, threads=None, memory=None, at=None, key=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        format: Option<String>,
        mapped: bool,
        threads: Option<usize>,
        memory: Option<u64>,
        at: Option<(u64, u64)>,
        key: Option<[u8; 32]>,
    ) -> PyResult<Self> {
        let path = std::path::absolute(&path).unwrap_or(path);
        let wanted = format.as_deref().map(str::parse::<Format>).transpose();
        let wanted = wanted.map_err(|error| raised(py, &error))?;
        // A key is never part of a pickle: a process that opens the store again takes it from its environment.
        let key = match key {
            Some(key) => Some(EncryptionKey::new(key)),
            None => EncryptionKey::from_environment().map_err(|error| raised(py, &error))?,
        };
        let mut options = OpenOptions { format: wanted, mapped, at, key, ..OpenOptions::default() };
        options.memory = memory.unwrap_or(options.memory);
        let open = detached(py, || hyperslab::open_with(&path, &options))?;
        let path = path.to_string_lossy().into_owned();
        let origin = Origin { path, format, mapped, threads, memory, at };
        Ok(Self { open: RwLock::new(Some(open)), origin: Arc::new(origin) })
    }

    /// The format's name: ``tet``, ``hdf5``, ``tiledb``, ``zarr``, ``npy`` …
    #[getter]
    fn format(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.inner(py)?.format())
    }

    /// The absolute path.
    #[getter]
    fn path(&self) -> &str {
        &self.origin.path
    }

    /// The options that it was opened with, where they are not the default.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.origin.options(py)
    }

    /// Was it closed?
    #[getter]
    fn closed(&self) -> bool {
        self.open.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Lets go of the file. Arrays that were taken from it stay readable.
    fn close(&self) {
        self.open.write().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// The names directly under a group.
    fn children(&self, py: Python<'_>, path: &str) -> PyResult<Vec<String>> {
        let store = self.inner(py)?;
        detached(py, || store.children(path))
    }

    /// The node at a path: its kind and what is known of it. An array is an `Array`, a group its attributes, a link its
    /// target.
    fn node<'py>(&self, py: Python<'py>, path: &str) -> PyResult<(String, Bound<'py, PyAny>)> {
        let store = self.inner(py)?;
        let node = detached(py, || store.node(path))?;
        let kind = node.kind().to_string();
        let path = normal_path(path);
        let value = match node {
            Node::Group(attributes) => values::attributes(py, &attributes)?,
            Node::Array(array) => {
                let array = Array::new(py, store.reader(array), Arc::clone(&self.origin), path)?;
                Bound::new(py, array)?.into_any()
            }
            Node::Table(_) => {
                let reader = detached(py, || store.table(&path))?;
                Bound::new(py, Table::new(reader, Arc::clone(&self.origin), path))?.into_any()
            }
            Node::Geometry(geometry) => {
                Bound::new(py, Geometry::new(geometry, Arc::clone(&self.origin), path))?.into_any()
            }
            Node::Link(target) => target.into_pyobject(py)?.into_any(),
            Node::Type(dtype, _) => crate::dtype::to_numpy(py, &dtype)?.into_any(),
            _ => py.None().into_bound(py),
        };
        Ok((kind, value))
    }

    /// The only array, table or geometry.
    fn only_node(&self, py: Python<'_>) -> PyResult<String> {
        let store = self.inner(py)?;
        detached(py, || store.only_node())
    }

    /// Every node with its shape, type, filters and attributes, as ``tet info --json`` shows it.
    fn catalog<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let store = self.inner(py)?;
        let catalog = detached(py, || Ok(store.catalog()?.to_json()))?;
        values::from_json(py, &catalog)
    }

    /// What the format knows of the file beyond its nodes.
    fn details<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let store = self.inner(py)?;
        let details = threads::within(py, self.origin.threads, || store.inner().details())?;
        values::from_json(py, &serde_json::Value::Object(details))
    }

    /// Checks the store: findings and recommendations.
    #[pyo3(signature = (deep=false))]
    fn verify<'py>(&self, py: Python<'py>, deep: bool) -> PyResult<Bound<'py, PyAny>> {
        let store = self.inner(py)?;
        let depth = if deep { Depth::Deep } else { Depth::Quick };
        let report = threads::within(py, self.origin.threads, || store.verify(depth))?;
        let report = serde_json::json!({
            "ok": report.ok(), "findings": report.findings, "recommendations": report.recommendations,
        });
        values::from_json(py, &report)
    }
}

/// The names of the formats of this build.
#[pyfunction]
pub(crate) fn formats() -> Vec<&'static str> {
    Format::all().into_iter().map(Format::name).collect()
}
