//! `oindex` and `vindex`: positions per axis, and single cells.

use hyperslab::Values;
use hyperslab::driver::{Buffer, needs_elements};
use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::{Array, result_bytes};
use crate::errors::{bad_index, detached};
use crate::key::{self, Key};
use crate::memory::{self, Cells};
use crate::{threads, values};

/// `a.oindex[...]`: arrays select positions per axis.
#[pyclass(frozen, module = "hyperslab")]
#[derive(Debug)]
pub(crate) struct Outer {
    pub(super) array: Py<Array>,
}

#[pymethods]
impl Outer {
    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let array = self.array.get();
        array.read(py, &Key::parse(key, array.shape_of())?)
    }
}

/// `a.vindex[...]`: arrays select single cells.
#[pyclass(frozen, module = "hyperslab")]
#[derive(Debug)]
pub(crate) struct Points {
    pub(super) array: Py<Array>,
}

#[pymethods]
impl Points {
    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let array = self.array.get();
        let shape = array.shape_of();
        if let Some(points) = whole_mask(key, shape)? {
            return array.read_points(py, &points, &[points.first().map_or(0, Vec::len) as u64]);
        }
        let numpy = py.import("numpy")?;
        let lists = match key.cast::<PyTuple>() {
            Ok(lists) => lists.clone(),
            Err(_) => PyTuple::new(py, [key])?,
        };
        if lists.len() != shape.len() {
            return Err(bad_index(
                py,
                format!("vindex needs an array of integers per axis: {}", shape.len()),
            ));
        }
        let lists = numpy.getattr("broadcast_arrays")?.call1(&lists)?;
        let mut points = Vec::with_capacity(shape.len());
        let mut result: Vec<u64> = Vec::new();
        for (axis, list) in lists.try_iter()?.enumerate() {
            let list = list?;
            let kind: String = list.getattr("dtype")?.getattr("kind")?.extract()?;
            if !matches!(kind.as_str(), "i" | "u") && list.getattr("size")?.extract::<usize>()? > 0 {
                return Err(bad_index(
                    py,
                    format!("axis {axis}: vindex takes integers, or one mask of the array's shape"),
                ));
            }
            result = list.getattr("shape")?.extract()?;
            points.push(key::positions(&list, axis, shape[axis])?);
        }
        array.read_points(py, &points, &result)
    }
}

impl Array {
    /// Reads single cells, in the requested shape.
    pub(super) fn read_points<'py>(
        &self,
        py: Python<'py>,
        points: &[Vec<u64>],
        shape: &[u64],
    ) -> PyResult<Bound<'py, PyAny>> {
        let reader = self.reader.clone().with_threads(threads::wanted(py, self.origin.threads)?);
        if needs_elements(&**self.reader.inner()) {
            let read = detached(py, || reader.read_points(points))?;
            return values::to_python(py, Values { shape: shape.into(), ..read }, true);
        }
        let bytes = result_bytes(py, shape, self.reader.schema().dtype.size())?;
        let cells = detached(py, || {
            let mut buffer = Buffer::zeroed(bytes)?;
            reader.read_points_into(points, buffer.as_mut_slice())?;
            Ok(Cells::Fresh(buffer))
        })?;
        memory::array(py, self.dtype.bind(py), shape, cells, true)
    }
}

/// The cells that a mask over the whole array selects; `None` if the key is not such a mask.
pub(super) fn whole_mask(key: &Bound<'_, PyAny>, shape: &[u64]) -> PyResult<Option<Vec<Vec<u64>>>> {
    // Only an array as the whole key, on at least two dimensions, can be such a mask. Other keys need no further
    // checks.
    if shape.len() < 2 || !key.is_instance_of::<PyUntypedArray>() {
        return Ok(None);
    }
    let py = key.py();
    let kind: String = key.getattr("dtype")?.getattr("kind")?.extract()?;
    if kind != "b" || key.getattr("ndim")?.extract::<usize>()? != shape.len() {
        return Ok(None);
    }
    if key.getattr("shape")?.extract::<Vec<u64>>()? != shape {
        return Err(bad_index(
            py,
            format!("a mask of shape {} for the shape {shape:?}", key.getattr("shape")?),
        ));
    }
    let found = py.import("numpy")?.call_method1("nonzero", (key,))?;
    let lists = found.try_iter()?.enumerate();
    lists.map(|(axis, list)| key::positions(&list?, axis, shape[axis])).collect::<PyResult<_>>().map(Some)
}
