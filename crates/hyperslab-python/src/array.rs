//! `Array`: properties of an array, and reads.

mod indexers;
mod label;
mod select;

use std::sync::Arc;

use hyperslab::driver::{Buffer, Labels, Plan, needs_elements};
use hyperslab::query::{Operation, OperationInfo, Parameters};
use hyperslab::{ArrayReader, Fill, Selection, SelectionItem, Threads, Values};
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyEllipsis, PySlice, PyTuple};

pub(crate) use indexers::{Outer, Points};
pub(crate) use select::text_selection;

use crate::errors::{detached, invalid, raised, warn_of_conventions};
use crate::key::Key;
use crate::memory::{self, Cells};
use crate::reduce::{self, Asked, NumpyWords};
use crate::show;
use crate::store::Origin;
use crate::{dtype, refs, threads, values};

/// Raw results below this size are copied on the caller's thread. The engine uses the same limit.
const SMALL_RESULT: u64 = 64 << 10;

/// A dense array of a store, read when it is indexed.
///
/// >>> a = getfixture("store")["/t"]
/// >>> a.shape, a.dtype, a.chunks
/// ((4, 6), dtype('float32'), None)
/// >>> a[1, ::2]
/// array([ 6.,  8., 10.], dtype=float32)
/// >>> a[:, [5, 0]].tolist()
/// [[5.0, 0.0], [11.0, 6.0], [17.0, 12.0], [23.0, 18.0]]
#[pyclass(frozen, module = "hyperslab")]
pub(crate) struct Array {
    pub(crate) reader: ArrayReader,
    pub(crate) origin: Arc<Origin>,
    pub(crate) path: String,
    dtype: Py<PyArrayDescr>,
    attributes: PyOnceLock<Py<PyAny>>,
}

impl Array {
    pub(crate) fn new(
        py: Python<'_>,
        reader: ArrayReader,
        origin: Arc<Origin>,
        path: String,
    ) -> PyResult<Self> {
        let dtype = dtype::to_numpy(py, &reader.schema().dtype)?.unbind();
        let reader = reader.with_threads(Threads::Caller);
        Ok(Self { reader, origin, path, dtype, attributes: PyOnceLock::new() })
    }

    pub(crate) fn numpy_dtype(&self, py: Python<'_>) -> Py<PyArrayDescr> {
        self.dtype.clone_ref(py)
    }

    fn shape_of(&self) -> &[u64] {
        self.reader.schema().shape()
    }

    /// The reader with the threads for reading this many chunks.
    fn reader_for(&self, py: Python<'_>, chunks: u64, cells: Option<u64>) -> PyResult<ArrayReader> {
        let schema = self.reader.schema();
        let bytes = cells.unwrap_or(u64::MAX).saturating_mul(schema.dtype.size().unwrap_or(64) as u64);
        let small = bytes < SMALL_RESULT && schema.filters.is_empty();
        Ok(if chunks <= 1 || small {
            self.reader.clone()
        } else {
            self.reader.clone().with_threads(threads::wanted(py, self.origin.threads)?)
        })
    }

    pub(crate) fn read<'py>(&self, py: Python<'py>, key: &Key) -> PyResult<Bound<'py, PyAny>> {
        let schema = self.reader.schema();
        if needs_elements(&**self.reader.inner()) {
            return self.read_elements(py, key);
        }
        let shape = key.shape();
        let cells = match key.positions() {
            Some(positions) => {
                let plan = Plan::new(&schema.grid, positions).map_err(|error| raised(py, &error))?;
                let reader = self.reader_for(py, plan.len(), plan.positions().cells())?;
                detached(py, || read_cells(&reader, &plan, self.origin.views))?
            }
            None => {
                let reader = self.reader.clone().with_threads(threads::wanted(py, self.origin.threads)?);
                let bytes = result_bytes(py, &shape, schema.dtype.size())?;
                detached(py, || {
                    let mut buffer = Buffer::zeroed(bytes)?;
                    reader.read_outer_into(&key.axes, buffer.as_mut_slice())?;
                    Ok(Cells::Fresh(buffer))
                })?
            }
        };
        memory::array(py, self.dtype.bind(py), &shape, cells, !key.ellipsis)
    }

    fn read_elements<'py>(&self, py: Python<'py>, key: &Key) -> PyResult<Bound<'py, PyAny>> {
        let reader = self.reader.clone().with_threads(threads::wanted(py, self.origin.threads)?);
        let read = detached(py, || match key.positions() {
            Some(positions) => reader.read_positions(positions),
            None => reader.read_outer(&key.axes),
        })?;
        let read = Values { shape: key.shape().as_slice().into(), ..read };
        values::to_python(py, read, !key.ellipsis)
    }
}

/// Returns a view into the mapped file if views are enabled and the selection is one contiguous run of raw bytes;
/// otherwise a fresh buffer.
fn read_cells(reader: &ArrayReader, plan: &Plan, views: bool) -> hyperslab::Result<Cells> {
    if views && let Some(view) = reader.view(plan)? {
        return Ok(Cells::View(view));
    }
    let mut buffer = Buffer::zeroed(reader.result_bytes(plan)?)?;
    reader.fill(plan, buffer.as_mut_slice())?;
    Ok(Cells::Fresh(buffer))
}

fn result_bytes(py: Python<'_>, shape: &[u64], item: Option<usize>) -> PyResult<usize> {
    let bytes = hyperslab::driver::product(shape).and_then(|cells| cells.checked_mul(item? as u64));
    let bytes = bytes.and_then(|bytes| isize::try_from(bytes).ok());
    bytes
        .map(isize::cast_unsigned)
        .ok_or_else(|| invalid(py, format!("a result of {shape:?} elements is larger than memory")))
}

#[pymethods]
impl Array {
    /// Elements per dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.shape_of())
    }

    /// NumPy's type of the elements: ``object`` for strings and lists of variable length.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> Py<PyArrayDescr> {
        self.dtype.clone_ref(py)
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape_of().len()
    }

    /// The number of elements.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        hyperslab::driver::product(self.shape_of())
            .ok_or_else(|| invalid(py, "more elements than can be counted"))
    }

    /// The size of all elements in memory, in bytes.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        let item = self.dtype.bind(py).itemsize() as u64;
        Ok(self.size(py)?.saturating_mul(item))
    }

    /// The shape of a chunk; ``None`` for an array without chunks.
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let schema = self.reader.schema();
        schema.chunked.then(|| PyTuple::new(py, schema.grid.chunk_shape())).transpose()
    }

    /// The maximum length of each dimension: ``None`` if unlimited.
    #[getter]
    fn maxshape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.reader.schema().max_shape)
    }

    /// Whether the array only declares a dimension's name and length, without meaningful values.
    #[getter]
    fn is_dimension(&self) -> bool {
        self.reader.schema().is_dimension
    }

    /// The names of the dimensions; ``None`` for unnamed ones.
    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.reader.schema().dimensions)
    }

    /// The attributes of the array.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let make = || values::attributes(py, &self.reader.schema().attributes).map(Bound::unbind);
        Ok(self.attributes.get_or_try_init(py, make)?.bind(py).clone())
    }

    /// The value of cells that were never written; ``None`` if the format has no such value.
    #[getter]
    fn fill_value<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let schema = self.reader.schema();
        let element = match &schema.fill {
            Fill::Undefined => return Ok(None),
            Fill::Zero => hyperslab::Elements::zero(&schema.dtype),
            Fill::Element(element) => element.clone(),
        };
        let value = Values::scalar(schema.dtype.clone(), element).map_err(|error| raised(py, &error))?;
        values::to_python(py, value, true).map(Some)
    }

    /// The filters in the order of writing: ``[{"name": "shuffle", …}, {"name": "gzip", "level": 4}]``.
    #[getter]
    fn filters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let filters = self.reader.schema().filters.iter().map(hyperslab::Filter::to_json).collect();
        values::from_json(py, &serde_json::Value::Array(filters))
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

    /// The path of the file or directory, or the URL without secrets.
    #[getter]
    fn file(&self) -> &str {
        &self.origin.path
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (slf.py(), slf.get());
        if let Some((names, rest)) = own.members_in(key)? {
            return Self::fields(slf, names)?.get_item(rest);
        }
        own.read_key(py, key)
    }

    /// Select by label as in xarray: ``a.sel(lat=slice(30, 60), time="2000-01", x=[1, 5])``. Slices include both ends.
    /// A missing label is an error; ``method="nearest"`` selects the nearest.
    #[pyo3(signature = (*, method=None, **labels))]
    fn sel<'py>(
        &self,
        py: Python<'py>,
        method: Option<&str>,
        labels: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let nearest = match method {
            None => false,
            Some("nearest") => true,
            Some(other) => return Err(invalid(py, format!("method {other:?}: only \"nearest\" is known"))),
        };
        let (mut selection, mut lists) = (Selection::all(), Vec::new());
        for (dimension, label) in labels.into_iter().flatten() {
            let dimension: String = dimension.extract()?;
            if let Ok(slice) = label.cast::<PySlice>() {
                let end = |name: &str| slice.getattr(name).and_then(|end| label::text(&end));
                if !slice.getattr("step")?.is_none() {
                    return Err(invalid(py, format!("{dimension}: a slice of labels has no step")));
                }
                let (from, to) = (end("start")?, end("stop")?);
                selection.items.push(SelectionItem::Labels { dimension, from, to, single: false });
            } else if let Some(texts) = label::texts(&label)? {
                lists.push((dimension, texts));
            } else {
                let text = label::text(&label)?;
                let label = text.ok_or_else(|| invalid(py, format!("{dimension}: a label is missing")))?;
                selection.items.push(match nearest {
                    true => SelectionItem::Nearest { dimension, label },
                    false => {
                        let (from, to) = (Some(label.clone()), Some(label));
                        SelectionItem::Labels { dimension, from, to, single: true }
                    }
                });
            }
        }
        self.read_selection(py, &selection, &lists, nearest)
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.shape_of().first() {
            Some(extent) => Ok(usize::try_from(*extent)?),
            None => Err(pyo3::exceptions::PyTypeError::new_err("an array without dimensions has no length")),
        }
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        self.size(py).map(|size| size > 0)
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        show::call(slf, "hyperslab._html", "array_text")
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        show::call(slf, "hyperslab._html", "array_html")
    }

    /// Draw the array with matplotlib: a line for one dimension, an image for two, an image of the first slice for
    /// more. A selection as in :meth:`__getitem__` restricts it: ``a.plot("time=2000-01-01")``, ``a.plot(0)``. Values
    /// are decoded by the conventions of the file. ``ax`` gives the axes to draw on; further options are passed to
    /// matplotlib. Returns the axes.
    #[pyo3(signature = (*selection, ax=None, decode=true, **options))]
    fn plot<'py>(
        slf: &Bound<'py, Self>,
        selection: &Bound<'py, PyTuple>,
        ax: Option<Bound<'py, PyAny>>,
        decode: bool,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let words = (selection, ax, decode, options).into_pyobject(slf.py())?;
        show::call_with(slf, "hyperslab._plot", "array", &words, None)
    }

    /// The array with its elements converted to another type, as in h5py: ``a.astype("float64")[0]``.
    fn astype<'py>(slf: &Bound<'py, Self>, dtype: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        show::call_with(slf, "hyperslab._h5py", "astype", &(dtype,).into_pyobject(slf.py())?, None)
    }

    /// The array with bytes decoded to text, as in h5py. Variable-length text is already decoded.
    #[pyo3(signature = (encoding=None, errors="strict"))]
    fn asstr<'py>(
        slf: &Bound<'py, Self>,
        encoding: Option<&str>,
        errors: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        show::call_with(slf, "hyperslab._h5py", "asstr", &(encoding, errors).into_pyobject(slf.py())?, None)
    }

    /// Members of an array of structs, as in h5py: ``a.fields("x")[:10]``, ``a.fields(["x", "y"])[:10]``.
    fn fields<'py>(slf: &Bound<'py, Self>, names: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        show::call_with(slf, "hyperslab._h5py", "fields", &(names,).into_pyobject(slf.py())?, None)
    }

    /// Slices of the chunks in C order, one tuple per chunk; with a selection, only the chunks that it touches.
    ///
    /// >>> list(getfixture("store")["/t"].iter_chunks())
    /// [(slice(0, 4, 1), slice(0, 6, 1))]
    #[pyo3(signature = (sel=None))]
    fn iter_chunks<'py>(
        slf: &Bound<'py, Self>,
        sel: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        show::call_with(slf, "hyperslab._h5py", "iter_chunks", &(sel,).into_pyobject(slf.py())?, None)
    }

    /// Read into a part of the caller's array, as in h5py.
    #[pyo3(signature = (dest, source_sel=None, dest_sel=None))]
    fn read_direct<'py>(
        slf: &Bound<'py, Self>,
        dest: Bound<'py, PyAny>,
        source_sel: Option<Bound<'py, PyAny>>,
        dest_sel: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let words = (dest, source_sel, dest_sel).into_pyobject(slf.py())?;
        show::call_with(slf, "hyperslab._h5py", "read_direct", &words, None)
    }

    /// The compression under h5py's name: ``"gzip"``, ``"lzf"``, ``"szip"``; otherwise the filter's own name.
    /// ``None`` if uncompressed.
    #[getter]
    fn compression<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        show::call(slf, "hyperslab._h5py", "compression")
    }

    /// The level of the compression, if it has one.
    #[getter]
    fn compression_opts<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        show::call(slf, "hyperslab._h5py", "compression_opts")
    }

    /// Whether bytes are shuffled before compression.
    #[getter]
    fn shuffle(&self) -> bool {
        self.reader.schema().filters.iter().any(|filter| filter.name == "shuffle")
    }

    /// Whether chunks have a Fletcher-32 checksum.
    #[getter]
    fn fletcher32(&self) -> bool {
        self.reader.schema().filters.iter().any(|filter| filter.name == "fletcher32")
    }

    /// The fill value, for h5py compatibility.
    #[getter]
    fn fillvalue<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.fill_value(py)
    }

    /// All elements, optionally converted to another type.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = self.read(py, &Key::parse(PyEllipsis::get(py).as_any(), self.shape_of())?)?;
        let array = match dtype {
            Some(dtype) => {
                let options = pyo3::types::PyDict::new(py);
                options.set_item("copy", false)?;
                array.call_method("astype", (dtype,), Some(&options))?
            }
            None => array,
        };
        let writable: bool = array.getattr("flags")?.getattr("writeable")?.extract()?;
        if copy == Some(true) && !writable { array.call_method0("copy") } else { Ok(array) }
    }

    /// Select by arrays of integers or booleans per axis: ``a.oindex[[3, 1], :, mask]``.
    #[getter]
    fn oindex(slf: Py<Self>) -> Outer {
        Outer { array: slf }
    }

    /// Select single cells by arrays of integers: ``a.vindex[rows, columns]``.
    #[getter]
    fn vindex(slf: Py<Self>) -> Points {
        Points { array: slf }
    }

    /// Read a selection into the caller's array. It must be writable, contiguous in C order, and of the same type and
    /// size. Other threads must not access it meanwhile.
    ///
    /// >>> import numpy as np
    /// >>> out = np.empty((2, 3), "float32")
    /// >>> getfixture("store")["/t"].read_into(out, np.s_[:2, :3])
    /// >>> out
    /// array([[0., 1., 2.],
    ///        [6., 7., 8.]], dtype=float32)
    #[pyo3(signature = (buffer, selection=None))]
    fn read_into(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        selection: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let array = py.import("numpy")?.call_method1("asarray", (buffer,))?;
        let bytes: bool = array.getattr("dtype")?.eq(PyArrayDescr::new(py, "u1")?)?;
        if !bytes && !array.getattr("dtype")?.eq(self.dtype.bind(py))? {
            let given = array.getattr("dtype")?;
            return Err(invalid(py, format!("a buffer of {given} for elements of {}", self.dtype.bind(py))));
        }
        let all = PyEllipsis::get(py).to_owned().into_any();
        let key = Key::parse(selection.unwrap_or(&all), self.shape_of())?;
        if needs_elements(&**self.reader.inner()) {
            return Err(invalid(py, "elements of variable length cannot be read into a buffer"));
        }
        memory::with_writable(&array, |out| match key.positions() {
            Some(positions) => {
                let plan = Plan::new(&self.reader.schema().grid, positions);
                let plan = plan.map_err(|error| raised(py, &error))?;
                let reader = self.reader_for(py, plan.len(), plan.positions().cells())?;
                detached(py, || reader.fill(&plan, out))
            }
            None => {
                let reader = self.reader.clone().with_threads(threads::wanted(py, self.origin.threads)?);
                detached(py, || reader.read_outer_into(&key.axes, out))
            }
        })
    }

    /// The locations of the stored chunks: one row per stored span.
    ///
    /// >>> refs = getfixture("store")["/t"].chunk_refs()
    /// >>> refs.coords.tolist()
    /// [[0, 0]]
    fn chunk_refs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        refs::chunk_refs(py, self)
    }

    /// The number of stored chunks, and their size in bytes.
    fn usage(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let usage = detached(py, || self.reader.inner().usage())?;
        Ok((usage.chunks, usage.bytes))
    }

    /// Whether elements may be missing. Results are then masked arrays, or contain ``None``.
    #[getter]
    fn nullable(&self) -> bool {
        self.reader.schema().nullable
    }

    /// The labels of each dimension: ``None``, an array, or the path of the array that contains them.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let schema = self.reader.schema();
        let one = |(labels, extent): (&Labels, &u64)| match labels {
            Labels::None => Ok(py.None().into_bound(py)),
            Labels::Node(path) => Ok(path.into_pyobject(py)?.into_any()),
            Labels::Texts(texts) => {
                let texts = texts.iter().map(|text| Ok(text.into_pyobject(py)?.into_any()));
                memory::objects(py, &[*extent], texts)
            }
            Labels::Domain { first, dtype } => {
                let end = first.saturating_add_unsigned(*extent);
                let ticks = py.import("numpy")?.call_method1("arange", (first, end, 1, "int64"))?;
                ticks.call_method1("astype", (dtype::to_numpy(py, dtype)?,))
            }
        };
        let all: Vec<_> = schema.labels.iter().zip(schema.shape()).map(one).collect::<PyResult<_>>()?;
        PyTuple::new(py, all)
    }

    /// Reduce by name: ``count sum mean min max var std product norm_l1 norm_l2 argmin argmax median quantile any_nan
    /// any_inf all_finite nan_count inf_count null_count``. ``over`` gives the axes to reduce, by number or name; all
    /// by default. ``where`` restricts the values: ``"> 0, < 10"``.
    ///
    /// Values are decoded by the conventions of the file (``_FillValue``, ``missing_value``, ``scale_factor``,
    /// ``add_offset``, ``_Unsigned``), and missing ones are ignored. ``decode=False`` uses the stored values.
    ///
    /// >>> a = getfixture("store")["/t"]
    /// >>> a.reduce("sum", over=0, where="> 5")
    /// array([36., 39., 42., 45., 48., 51.])
    #[pyo3(signature = (operation, over=None, *, selection=None, r#where=None, skip_nan=false, ddof=0, q=0.5, decode=true))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn reduce<'py>(
        &self,
        py: Python<'py>,
        operation: &str,
        over: Option<&Bound<'py, PyAny>>,
        selection: Option<&Bound<'py, PyAny>>,
        r#where: Option<&str>,
        skip_nan: bool,
        ddof: u32,
        q: f64,
        decode: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let parameters = Parameters { ddof, q, ..Parameters::default() };
        let found = OperationInfo::named(operation).map(|info| info.operation(&parameters));
        let found = found.filter(|found| !matches!(found, Operation::Histogram { .. }));
        let operation = found.ok_or_else(|| invalid(py, format!("no reduction {operation}")))?;
        reduce::reduce(
            py,
            self,
            operation,
            &Asked { over, selection, filter: r#where, skip_nan, raw: !decode },
        )
    }

    /// The array with values decoded by the conventions of the file: scaled, shifted, and NaN if missing. Times are
    /// ``datetime64`` if that holds them all, which reads them all once. Without such conventions, returns the array
    /// itself.
    #[getter]
    fn decoded(&self, py: Python<'_>) -> PyResult<Self> {
        warn_of_conventions(py, &self.reader)?;
        let reader = detached(py, || self.reader.decoded_dates())?;
        Self::new(py, reader, Arc::clone(&self.origin), self.path.clone())
    }

    /// The mean over the given axes; by default over all. NumPy's functions call it: ``np.mean(a, axis=0)``.
    ///
    /// >>> getfixture("store")["/t"].mean()
    /// np.float64(11.5)
    /// >>> import numpy as np
    /// >>> np.mean(getfixture("store")["/t"], axis=0, keepdims=True).shape
    /// (1, 6)
    #[pyo3(signature = (over=None, *, axis=None, dtype=None, out=None, keepdims=false, skip_nan=false, decode=true))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn mean<'py>(
        &self,
        py: Python<'py>,
        over: Option<&Bound<'py, PyAny>>,
        axis: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        keepdims: bool,
        skip_nan: bool,
        decode: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = Asked { over, skip_nan, raw: !decode, ..Asked::default() };
        reduce::reduce_like_numpy(
            py,
            self,
            Operation::Mean,
            asked,
            &NumpyWords { axis, dtype, out, keepdims },
        )
    }

    /// The sum over the given axes; by default over all. Exact for integers.
    #[pyo3(signature = (over=None, *, axis=None, dtype=None, out=None, keepdims=false, skip_nan=false, decode=true))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn sum<'py>(
        &self,
        py: Python<'py>,
        over: Option<&Bound<'py, PyAny>>,
        axis: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        keepdims: bool,
        skip_nan: bool,
        decode: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = Asked { over, skip_nan, raw: !decode, ..Asked::default() };
        reduce::reduce_like_numpy(py, self, Operation::Sum, asked, &NumpyWords { axis, dtype, out, keepdims })
    }

    /// The minimum over the given axes; by default over all.
    #[pyo3(signature = (over=None, *, axis=None, dtype=None, out=None, keepdims=false, skip_nan=false, decode=true))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn min<'py>(
        &self,
        py: Python<'py>,
        over: Option<&Bound<'py, PyAny>>,
        axis: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        keepdims: bool,
        skip_nan: bool,
        decode: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = Asked { over, skip_nan, raw: !decode, ..Asked::default() };
        reduce::reduce_like_numpy(py, self, Operation::Min, asked, &NumpyWords { axis, dtype, out, keepdims })
    }

    /// The maximum over the given axes; by default over all.
    #[pyo3(signature = (over=None, *, axis=None, dtype=None, out=None, keepdims=false, skip_nan=false, decode=true))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn max<'py>(
        &self,
        py: Python<'py>,
        over: Option<&Bound<'py, PyAny>>,
        axis: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        keepdims: bool,
        skip_nan: bool,
        decode: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = Asked { over, skip_nan, raw: !decode, ..Asked::default() };
        reduce::reduce_like_numpy(py, self, Operation::Max, asked, &NumpyWords { axis, dtype, out, keepdims })
    }

    /// The variance over the given axes; by default over all. ``ddof=1`` for a sample.
    #[pyo3(signature = (over=None, *, ddof=0, axis=None, dtype=None, out=None, keepdims=false, skip_nan=false, decode=true))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn var<'py>(
        &self,
        py: Python<'py>,
        over: Option<&Bound<'py, PyAny>>,
        ddof: u32,
        axis: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        keepdims: bool,
        skip_nan: bool,
        decode: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = Asked { over, skip_nan, raw: !decode, ..Asked::default() };
        reduce::reduce_like_numpy(
            py,
            self,
            Operation::Var { ddof },
            asked,
            &NumpyWords { axis, dtype, out, keepdims },
        )
    }

    /// The standard deviation over the given axes; by default over all. ``ddof=1`` for a sample.
    #[pyo3(signature = (over=None, *, ddof=0, axis=None, dtype=None, out=None, keepdims=false, skip_nan=false, decode=true))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn std<'py>(
        &self,
        py: Python<'py>,
        over: Option<&Bound<'py, PyAny>>,
        ddof: u32,
        axis: Option<&Bound<'py, PyAny>>,
        dtype: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        keepdims: bool,
        skip_nan: bool,
        decode: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = Asked { over, skip_nan, raw: !decode, ..Asked::default() };
        reduce::reduce_like_numpy(
            py,
            self,
            Operation::Std { ddof },
            asked,
            &NumpyWords { axis, dtype, out, keepdims },
        )
    }

    /// The median over the given axes; by default over all.
    #[pyo3(signature = (over=None, *, axis=None, keepdims=false, skip_nan=false, decode=true))]
    fn median<'py>(
        &self,
        py: Python<'py>,
        over: Option<&Bound<'py, PyAny>>,
        axis: Option<&Bound<'py, PyAny>>,
        keepdims: bool,
        skip_nan: bool,
        decode: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = Asked { over, skip_nan, raw: !decode, ..Asked::default() };
        let words = NumpyWords { axis, keepdims, ..NumpyWords::default() };
        reduce::reduce_like_numpy(py, self, Operation::Median, asked, &words)
    }

    /// The quantile ``q``, between 0 and 1, over the given axes; by default over all.
    #[pyo3(signature = (q, over=None, *, axis=None, keepdims=false, skip_nan=false, decode=true))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn quantile<'py>(
        &self,
        py: Python<'py>,
        q: f64,
        over: Option<&Bound<'py, PyAny>>,
        axis: Option<&Bound<'py, PyAny>>,
        keepdims: bool,
        skip_nan: bool,
        decode: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = Asked { over, skip_nan, raw: !decode, ..Asked::default() };
        let words = NumpyWords { axis, keepdims, ..NumpyWords::default() };
        reduce::reduce_like_numpy(py, self, Operation::Quantile(q), asked, &words)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let reopen = py.import("hyperslab._store")?.getattr("_reopen")?;
        let options = self.origin.options(py)?;
        if self.reader.is_decoded() {
            options.set_item("decoded", true)?;
        }
        (reopen, (self.origin.location.as_str(), self.path.as_str(), options)).into_pyobject(py)
    }

    fn __dask_tokenize__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let token = py.import("hyperslab._store")?.getattr("_token")?;
        token.call1((self.origin.location.as_str(), self.path.as_str(), self.origin.opening.as_deref()))
    }
}
