//! Writes new stores, converts and compares stores.

use std::ffi::CString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyperslab::convert::{ConvertOptions, TableOptions, default_chunk_shape};
use hyperslab::diff::{DiffOptions, Tolerance};
use hyperslab::{
    ArraySpec, Attribute, Attributes, CreateOptions, Fill, Filter, Format, Grid, RegionWriter, Sink, Values,
    Variant,
};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::array::Array;
use crate::errors::{detached, invalid, raised};
use crate::key::Key;
use crate::store::{StorageOptions, Store};
use crate::{dtype, threads, values};

/// A store that is being written. Nothing is visible before `commit`.
#[pyclass(frozen, module = "hyperslab._native")]
#[derive(Debug)]
pub(crate) struct Writer {
    /// `None` after it was committed or dropped.
    sink: Mutex<Option<Box<dyn Sink>>>,
    targets: Mutex<Vec<Arc<RegionWriter>>>,
    path: String,
}

/// The named format and variant, or those for the extension.
pub(crate) fn format_of(
    py: Python<'_>,
    path: &std::path::Path,
    format: Option<&str>,
) -> PyResult<(Format, Option<Variant>)> {
    let found = hyperslab::format_of_target(path, format, false).map_err(|error| raised(py, &error))?;
    found.ok_or_else(|| {
        invalid(py, format!("{}: cannot infer the format from the extension; pass format=", path.display()))
    })
}

impl Writer {
    fn sink(&self) -> MutexGuard<'_, Option<Box<dyn Sink>>> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_sink<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut dyn Sink) -> hyperslab::Result<T> + Send,
    ) -> PyResult<T> {
        detached(py, || match self.sink().as_mut() {
            Some(sink) => work(&mut **sink),
            None => Err(hyperslab::Error::invalid(format!("{} is finished", self.path))),
        })
    }
}

#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (path, *, format=None, overwrite=false, append=false, shards=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        format: Option<&str>,
        overwrite: bool,
        append: bool,
        shards: Option<Vec<u64>>,
    ) -> PyResult<Self> {
        // An extension alone chooses no variant: what is written need not be NetCDF.
        let (found, variant) = format_of(py, &path, format)?;
        let options = CreateOptions::default()
            .with_replace(overwrite)
            .with_append(append)
            .with_shard_shape(shards)
            .with_variant(variant.filter(|_| format.is_some()));
        let sink = detached(py, || hyperslab::create(&path, found, &options))?;
        Ok(Self {
            sink: Mutex::new(Some(sink)),
            targets: Mutex::default(),
            path: path.to_string_lossy().into_owned(),
        })
    }

    /// Create a group.
    #[pyo3(signature = (path, attrs=None))]
    fn group(&self, py: Python<'_>, path: &str, attrs: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let attributes = attributes_of(py, attrs)?;
        let path = hyperslab::driver::normal_path(path);
        self.with_sink(py, move |sink| sink.group(&path, &attributes))
    }

    /// Create an array, to be filled by assignment.
    #[pyo3(signature = (path, *, shape, dtype, chunks=None, filters=None, dims=None, attrs=None, fill_value=None, maxshape=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn array(
        &self,
        py: Python<'_>,
        path: &str,
        shape: Vec<u64>,
        dtype: &Bound<'_, PyAny>,
        chunks: Option<Vec<u64>>,
        filters: Option<&Bound<'_, PyAny>>,
        dims: Option<Vec<Option<String>>>,
        attrs: Option<&Bound<'_, PyDict>>,
        fill_value: Option<&Bound<'_, PyAny>>,
        maxshape: Option<Vec<Option<u64>>>,
    ) -> PyResult<ArrayWriter> {
        let numpy =
            py.import("numpy")?.getattr("dtype")?.call1((dtype,))?.call_method1("newbyteorder", ("=",))?;
        let held = dtype::from_numpy(&numpy)?;
        let item = held.size().unwrap_or(16) as u64;
        let chunks = chunks.unwrap_or_else(|| default_chunk_shape(&shape, item));
        let grid = Grid::new(&shape, &chunks).map_err(|error| raised(py, &error))?;
        let mut spec = ArraySpec::new(held, grid);
        spec.filters = filters.map(filters_of).transpose()?.unwrap_or_default();
        for (what, length) in
            [("dims", dims.as_ref().map(Vec::len)), ("maxshape", maxshape.as_ref().map(Vec::len))]
        {
            if length.is_some_and(|length| length != shape.len()) {
                return Err(invalid(py, format!("{what} of {length:?} for {} dimensions", shape.len())));
            }
        }
        spec.dimensions = dims.unwrap_or(spec.dimensions);
        spec.max_shape = maxshape.unwrap_or(spec.max_shape);
        spec.attributes = attributes_of(py, attrs)?;
        if let Some(fill) = fill_value {
            let fill = fitted(py, fill, &numpy)?;
            spec.fill = Fill::Element(dtype::values_of(py, &fill)?.elements);
        }
        let path = hyperslab::driver::normal_path(path);
        let sink = self.with_sink(py, |sink| sink.array(&path, &spec))?;
        let target = Arc::new(RegionWriter::new(sink, spec.dtype.clone(), spec.fill.clone()));
        self.targets.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&target));
        let given = attrs.map_or_else(|| Ok(PyDict::new(py)), |attrs| attrs.copy())?;
        let attrs = py.import("hyperslab._attributes")?.getattr("NewAttributes")?.call1((given,))?;
        Ok(ArrayWriter { target, dtype: numpy.unbind(), path, attrs: attrs.unbind() })
    }

    /// Append values to an existing array.
    fn extend(
        &self,
        py: Python<'_>,
        array: &Bound<'_, Array>,
        values: &Bound<'_, PyAny>,
        axis: usize,
    ) -> PyResult<()> {
        let array = array.get();
        let values = fitted(py, values, array.numpy_dtype(py).bind(py).as_any())?;
        let values = dtype::values_of(py, &values)?;
        threads::within(py, None, || match self.sink().as_mut() {
            Some(sink) => hyperslab::extend(&mut **sink, &array.reader, &array.path, axis, &values),
            None => Err(hyperslab::Error::invalid(format!("{} is finished", self.path))),
        })
    }

    /// Set attributes of a node. Replaces those with the same names.
    fn attributes(&self, py: Python<'_>, path: &str, attrs: &Bound<'_, PyDict>) -> PyResult<()> {
        let attributes = attributes_of(py, Some(attrs))?;
        let path = hyperslab::driver::normal_path(path);
        self.with_sink(py, move |sink| sink.attributes(&path, &attributes))
    }

    /// Make everything visible at once.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let targets = std::mem::take(&mut *self.targets.lock().unwrap_or_else(PoisonError::into_inner));
        threads::within(py, None, || {
            for target in &targets {
                target.finish()?;
            }
            match self.sink().take() {
                Some(sink) => sink.commit(),
                None => Err(hyperslab::Error::invalid(format!("{} is finished", self.path))),
            }
        })
    }

    /// Discard everything.
    fn abandon(&self) {
        self.sink().take();
    }
}

/// An array that is being written: `w[10:20] = values`.
#[pyclass(frozen, module = "hyperslab")]
#[derive(Debug)]
pub(crate) struct ArrayWriter {
    target: Arc<RegionWriter>,
    dtype: Py<PyAny>,
    path: String,
    attrs: Py<PyAny>,
}

#[pymethods]
impl ArrayWriter {
    /// Elements per dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, self.target.grid().shape())
    }

    /// The shape of a chunk. Assignments of whole chunks are stored at once; parts wait until their chunk is
    /// complete.
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, self.target.grid().chunk_shape())
    }

    /// NumPy's type of the elements.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> Py<PyAny> {
        self.dtype.clone_ref(py)
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.target.grid().shape().len()
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> Option<u64> {
        hyperslab::driver::product(self.target.grid().shape())
    }

    /// The path in the store.
    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    /// The last part of the path.
    #[getter]
    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The attributes of the array, which can be changed until the store is finished.
    #[getter]
    fn attrs(&self, py: Python<'_>) -> Py<PyAny> {
        self.attrs.clone_ref(py)
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.target.grid().shape().first() {
            Some(extent) => Ok(usize::try_from(*extent)?),
            None => Err(pyo3::exceptions::PyTypeError::new_err("an array without dimensions has no length")),
        }
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let _ = key;
        let why = "reading an array that is being written: close the store and open it again";
        Err(raised(py, &hyperslab::Error::unsupported(self.path.as_str(), why)))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (shape, dtype) = (self.shape(py)?.repr()?, self.dtype.bind(py).str()?);
        Ok(format!("<hyperslab.ArrayWriter {:?} {dtype} {shape}>", self.path))
    }

    fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = Key::parse(key, self.target.grid().shape())?;
        let positions = key.positions().filter(|positions| positions.axes.iter().all(|axis| axis.step == 1));
        let positions = positions.ok_or_else(|| invalid(py, "assignments take slices without steps"))?;
        let numpy = py.import("numpy")?;
        let value = fitted(py, value, self.dtype.bind(py))?;
        let value = numpy.call_method1("broadcast_to", (value, key.shape().to_vec()))?;
        let held = dtype::values_of(py, &value)?;
        let region = hyperslab::Region {
            start: positions.axes.iter().map(|axis| axis.start).collect(),
            shape: positions.counts(),
        };
        // Axes that an index dropped have length one in the region.
        let held = Values { shape: region.shape.clone(), ..held };
        threads::within(py, None, || self.target.assign(&region, &held))
    }
}

/// Converts values to a NumPy array of a type. Fails if a value does not fit.
fn fitted<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("hyperslab._casting")?.call_method1("fit", (values, dtype))
}

/// Filters in short or long notation: ``"shuffle,gzip:9"``, ``["shuffle", "gzip:9"]``, ``[{"name": "gzip", "level":
/// 9}]``.
fn filters_of(filters: &Bound<'_, PyAny>) -> PyResult<Vec<Filter>> {
    let py = filters.py();
    let all = if filters.is_instance_of::<PyString>() || filters.is_instance_of::<PyDict>() {
        filter_of(filters)?
    } else {
        let each = filters.try_iter()?.map(|filter| filter_of(&filter?));
        each.collect::<PyResult<Vec<_>>>()?.concat()
    };
    for filter in &all {
        filter.check_level().map_err(|error| raised(py, &error))?;
    }
    Ok(all)
}

/// ``"zstd:3"``, ``{"name": "gzip", "level": 4}``.
fn filter_of(filter: &Bound<'_, PyAny>) -> PyResult<Vec<Filter>> {
    let py = filter.py();
    if let Ok(text) = filter.cast::<PyString>() {
        return Filter::parse_list(text.to_str()?).map_err(|error| raised(py, &error));
    }
    let value = to_json(py, filter)?;
    let serde_json::Value::Object(mut members) = value else {
        return Err(invalid(py, "a filter is a name, or a dictionary with a name"));
    };
    match members.remove("name") {
        Some(serde_json::Value::String(name)) => Ok(vec![Filter { name, parameters: members }]),
        _ => Err(invalid(py, "a filter needs a name")),
    }
}

fn to_json(py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<serde_json::Value> {
    let text: String = py.import("json")?.call_method1("dumps", (value,))?.extract()?;
    serde_json::from_str(&text).map_err(|error| invalid(py, error.to_string()))
}

/// Attributes from a dictionary: text, numbers and arrays with NumPy's types, everything else as JSON.
pub(crate) fn attributes_of(py: Python<'_>, attrs: Option<&Bound<'_, PyDict>>) -> PyResult<Attributes> {
    let mut attributes = Attributes::new();
    let Some(attrs) = attrs else { return Ok(attributes) };
    for (name, value) in attrs.iter() {
        let name: String = name.extract()?;
        let attribute = if let Ok(text) = value.cast::<PyString>() {
            Attribute::from(text.to_str()?)
        } else if value.is_instance_of::<PyDict>() || value.is_none() {
            Attribute::Json(to_json(py, &value)?)
        } else {
            match dtype::values_of(py, &value) {
                Ok(values) => Attribute::Values(values),
                Err(_) => Attribute::Json(to_json(py, &value)?),
            }
        };
        attributes.set(name, attribute);
    }
    Ok(attributes)
}

/// Converts a store to another format. Returns a report.
#[pyfunction]
#[pyo3(signature = (source, target, *, format=None, node=None, chunks=None, shards=None, filters=None, overwrite=false, strict=false, append=false, dimensions=None, duplicates=None, order=None, selection=None, chunk_extents=None, chunk_bytes=None, rename=None, drop=None, keep=None, storage_options=None, anonymous=false))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn convert<'py>(
    py: Python<'py>,
    source: &Bound<'py, Store>,
    target: PathBuf,
    format: Option<&str>,
    node: Option<String>,
    chunks: Option<Vec<u64>>,
    shards: Option<Vec<u64>>,
    filters: Option<&Bound<'py, PyAny>>,
    overwrite: bool,
    strict: bool,
    append: bool,
    dimensions: Option<Vec<String>>,
    duplicates: Option<bool>,
    order: Option<&str>,
    selection: Option<&str>,
    chunk_extents: Option<Vec<(String, u64)>>,
    chunk_bytes: Option<u64>,
    rename: Option<Vec<(String, String)>>,
    drop: Option<Vec<String>>,
    keep: Option<Vec<String>>,
    storage_options: Option<Vec<(String, String)>>,
    anonymous: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let selection = selection.map(str::parse).transpose().map_err(|error| raised(py, &error))?;
    let order = order.map(str::parse).transpose().map_err(|error| raised(py, &error))?;
    let table = TableOptions::default()
        .with_dimensions(dimensions.unwrap_or_default())
        .with_duplicates(duplicates)
        .with_order(order);
    let to_rows = format.is_none() && hyperslab::convert::is_file_of_rows(&target);
    let format = if to_rows { None } else { Some(format_of(py, &target, format)?) };
    let variant = format.and_then(|(_, variant)| variant);
    let filters = filters.map(filters_of).transpose()?;
    let options = ConvertOptions::default()
        .with_node(node)
        .with_selection(selection.unwrap_or_default())
        .with_chunk_shape(chunks)
        .with_chunk_extents(chunk_extents.unwrap_or_default())
        .with_chunk_bytes(chunk_bytes)
        .with_rename(rename.unwrap_or_default())
        .with_drop(drop.unwrap_or_default())
        .with_keep(keep.unwrap_or_default())
        .with_shard_shape(shards)
        .with_filters(filters)
        .with_replace(overwrite)
        .with_strict(strict)
        .with_append(append)
        .with_variant(variant)
        .with_table(table)
        .with_remote(StorageOptions::new(storage_options.unwrap_or_default()).remote(anonymous));
    let store = source.get().inner(py)?;
    let report = threads::within_stoppable(py, source.get().origin.threads, |progress| match format {
        Some((format, _)) => hyperslab::convert::convert(&store, &target, format, &options, progress),
        None => hyperslab::convert::convert_to_rows(&store, &target, &options, progress),
    })?;
    for loss in report.dropped() {
        let text = CString::new(loss.to_string()).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    let report = serde_json::json!({
        "arrays": report.arrays, "rows": report.rows, "bytes": report.bytes, "notes": report.notes(),
        "losses": report.losses,
    });
    values::from_json(py, &report)
}

/// The differences between two stores.
#[pyfunction]
#[pyo3(signature = (a, b, *, rtol=0.0, atol=0.0, attributes=true))]
pub(crate) fn diff<'py>(
    py: Python<'py>,
    a: &Bound<'py, Store>,
    b: &Bound<'py, Store>,
    rtol: f64,
    atol: f64,
    attributes: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (one, other) = (a.get().inner(py)?, b.get().inner(py)?);
    let options = DiffOptions::default()
        .with_tolerance(Tolerance { relative: rtol, absolute: atol })
        .with_attributes(attributes);
    let report = threads::within(py, a.get().origin.threads, || {
        hyperslab::diff::diff((&one, "/"), (&other, "/"), &options)
    })?;
    values::from_json(py, &report.to_json())
}
