//! `Store`: an open file, its groups and nodes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use hyperslab::driver::normal_path;
use hyperslab::{Depth, EncryptionKey, ExternalFiles, Format, Node, OpenOptions, OpenStore, RemoteOptions};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::array::Array;
use crate::errors::{detached, invalid, raised};
use crate::geometry::Geometry;
use crate::table::Table;
use crate::{signals, threads, values};

/// The location and the options of a store: enough to open it again in another process.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The absolute path or the URL as given. The query of a URL may contain a signature.
    pub(crate) location: String,
    /// The location without secrets, for display.
    pub(crate) path: String,
    pub(crate) format: Option<String>,
    pub(crate) mapped: bool,
    /// Whether results may be views into mapped files.
    pub(crate) views: bool,
    pub(crate) threads: Option<usize>,
    memory: Option<u64>,
    at: Option<(u64, u64)>,
    /// The policy for external files, if it is not the default.
    external: Option<String>,
    /// The given options for remote storage that may be pickled: without secrets, and without those from the environment.
    storage: StorageOptions,
    /// The names of the given options that are left out of pickles.
    withheld: Vec<String>,
    anonymous: bool,
    /// Identifies one opening of a URL, because a URL has no modification time to compare.
    pub(crate) opening: Option<String>,
}

/// Names and values, sorted by name.
#[derive(Default)]
pub(crate) struct StorageOptions(Vec<(String, String)>);

impl std::fmt::Debug for StorageOptions {
    /// Shows only names, because values may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl StorageOptions {
    pub(crate) fn new(mut options: Vec<(String, String)>) -> Self {
        options.sort();
        Self(options)
    }

    /// Converts to the engine's options.
    pub(crate) fn remote(&self, anonymous: bool) -> RemoteOptions {
        self.add_to(RemoteOptions::default().with_anonymous(anonymous))
    }

    fn add_to(&self, options: RemoteOptions) -> RemoteOptions {
        self.0.iter().fold(options, |options, (name, value)| options.with_option(name, value))
    }
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
        if self.views {
            options.set_item("views", true)?;
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
        if let Some(external) = &self.external {
            options.set_item("external", external)?;
        }
        if !self.storage.0.is_empty() {
            options.set_item("storage_options", PyTuple::new(py, &self.storage.0)?)?;
        }
        if !self.withheld.is_empty() {
            options.set_item("_withheld", PyTuple::new(py, &self.withheld)?)?;
        }
        if self.anonymous {
            options.set_item("anonymous", true)?;
        }
        if let Some(opening) = &self.opening {
            options.set_item("_opening", opening)?;
        }
        Ok(options)
    }
}

/// An open file or directory.
#[pyclass(frozen, module = "hyperslab._native")]
#[derive(Debug)]
pub(crate) struct Store {
    /// `None` after it was closed. Arrays keep what they need.
    open: RwLock<Option<OpenStore>>,
    pub(crate) origin: Arc<Origin>,
}

impl Store {
    /// A store that exists only in this process.
    pub(crate) fn in_memory(open: OpenStore) -> Self {
        let name = open.path().to_string_lossy().into_owned();
        let origin = Origin {
            location: name.clone(),
            path: name,
            format: None,
            mapped: true,
            views: false,
            threads: None,
            memory: None,
            at: None,
            external: None,
            storage: StorageOptions::default(),
            withheld: Vec::new(),
            anonymous: false,
            opening: None,
        };
        Self { open: RwLock::new(Some(open)), origin: Arc::new(origin) }
    }

    pub(crate) fn inner(&self, py: Python<'_>) -> PyResult<OpenStore> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or_else(|| invalid(py, format!("{} is closed", self.origin.path)))
    }
}

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (
        path, *, format=None, mapped=true, views=false, threads=None, memory=None, at=None, key=None, external="beside",
        storage_options=None, secrets=None, withheld=None, anonymous=false, opening=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        format: Option<String>,
        mapped: bool,
        views: bool,
        threads: Option<usize>,
        memory: Option<u64>,
        at: Option<(u64, u64)>,
        key: Option<[u8; 32]>,
        external: &str,
        storage_options: Option<Vec<(String, String)>>,
        secrets: Option<Vec<(String, String)>>,
        withheld: Option<Vec<String>>,
        anonymous: bool,
        opening: Option<String>,
    ) -> PyResult<Self> {
        let location = hyperslab::absolute_location(&path);
        let wanted = format.as_deref().map(str::parse::<Format>).transpose();
        let wanted = wanted.map_err(|error| raised(py, &error))?;
        let rule: ExternalFiles = external.parse().map_err(|error| raised(py, &error))?;
        // The key is never pickled. A process that reopens the store takes it from its environment.
        let key = match key {
            Some(key) => Some(EncryptionKey::new(key)),
            None => EncryptionKey::from_environment().map_err(|error| raised(py, &error))?,
        };
        let storage = StorageOptions::new(storage_options.unwrap_or_default());
        let remote = StorageOptions::new(secrets.unwrap_or_default()).add_to(storage.remote(anonymous));
        let mut options = OpenOptions::default()
            .with_format(wanted)
            .with_mapped(mapped)
            .with_at(at)
            .with_key(key)
            .with_remote(remote);
        options.external = rule;
        options.memory = memory.unwrap_or(options.memory);
        signals::expect_server(&location, rule == ExternalFiles::Any);
        let open = detached(py, || hyperslab::open_with(&location, &options))?;
        let origin = Origin {
            location: location.to_string_lossy().into_owned(),
            path: open.path().to_string_lossy().into_owned(),
            format,
            mapped,
            views,
            threads,
            memory,
            at,
            external: (rule != ExternalFiles::default()).then(|| external.to_owned()),
            storage,
            withheld: withheld.unwrap_or_default(),
            anonymous,
            opening,
        };
        Ok(Self { open: RwLock::new(Some(open)), origin: Arc::new(origin) })
    }

    /// The format's name: ``tet``, ``hdf5``, ``tiledb``, ``zarr``, ``npy`` …
    #[getter]
    fn format(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.inner(py)?.format())
    }

    /// The absolute path, or the URL without secrets.
    #[getter]
    fn path(&self) -> &str {
        &self.origin.path
    }

    /// The absolute path or the URL, as given.
    #[getter]
    fn location(&self) -> &str {
        &self.origin.location
    }

    /// The options that differ from the default.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.origin.options(py)
    }

    /// Whether the store is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.open.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Release the file. Arrays of the store remain readable.
    fn close(&self) {
        self.open.write().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// The names directly below a group.
    fn children(&self, py: Python<'_>, path: &str) -> PyResult<Vec<String>> {
        let store = self.inner(py)?;
        detached(py, || store.children(path))
    }

    /// Whether there is a node at a path, damaged or not.
    fn has_node(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        let store = self.inner(py)?;
        detached(py, || {
            Ok(match store.node(path) {
                Ok(_) => true,
                Err(why) if why.is_not_found() => false,
                // The path may be below an array, where a node reports damage instead of absence.
                Err(_) => !store.find(path).is_err_and(|why| why.is_not_found()),
            })
        })
    }

    /// The kind of the node at a path, and the node itself: an `Array`, the attributes of a group, or the target of a
    /// link.
    fn node<'py>(&self, py: Python<'py>, path: &str) -> PyResult<(String, Bound<'py, PyAny>)> {
        let store = self.inner(py)?;
        let node = detached(py, || store.find(path))?;
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

    /// The path of the only array, table or geometry.
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

    /// The nodes below a path as an indented tree, as in ``tet info --tree``.
    #[pyo3(signature = (path="/", depth=None))]
    fn tree(&self, py: Python<'_>, path: &str, depth: Option<usize>) -> PyResult<String> {
        let store = self.inner(py)?;
        detached(py, || {
            let mut catalog = store.catalog()?;
            catalog.restrict(path)?;
            depth.into_iter().for_each(|levels| catalog.limit_depth(levels));
            Ok(catalog.tree())
        })
    }

    /// Format-specific details of the file, beyond its nodes.
    fn details<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let store = self.inner(py)?;
        let details = threads::within(py, self.origin.threads, || store.inner().details())?;
        values::from_json(py, &serde_json::Value::Object(details))
    }

    /// Check the store. Returns findings and recommendations.
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

/// The names of the supported formats.
#[pyfunction]
pub(crate) fn formats() -> Vec<&'static str> {
    Format::all().into_iter().map(Format::name).collect()
}

/// The absolute path, or the unchanged URL.
#[pyfunction]
pub(crate) fn absolute_location(path: PathBuf) -> OsString {
    hyperslab::absolute_location(&path).into()
}

/// Whether the location is a URL of remote storage.
#[pyfunction]
pub(crate) fn is_remote(path: PathBuf) -> bool {
    hyperslab::is_remote(&path)
}

/// The name of the format for the extension of a path or URL.
#[pyfunction]
pub(crate) fn format_of_name(path: PathBuf) -> Option<&'static str> {
    let path =
        path.to_str().and_then(|text| text.split('?').next()).map(|text| text.trim_end_matches('/'))?;
    Format::from_extension(Path::new(path)).map(Format::name)
}
