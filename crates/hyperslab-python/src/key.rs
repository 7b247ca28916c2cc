//! Converts the brackets of `a[...]` to positions.

use hyperslab::AxisPick;
use hyperslab::driver::AxisPositions;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PySlice, PySliceMethods, PyTuple};
use smallvec::SmallVec;

use crate::errors::bad_index;

/// A parsed index for an array of some shape.
#[derive(Debug)]
pub(crate) struct Key {
    /// The selection along each axis of the array.
    pub(crate) axes: SmallVec<[AxisPick; 4]>,
    /// The positions of new axes (`None`) in the final result.
    pub(crate) new_axes: SmallVec<[usize; 2]>,
    /// Whether a list selects along an axis.
    pub(crate) listed: bool,
    /// Whether there was an ellipsis. A single value then remains an array, as in NumPy.
    pub(crate) ellipsis: bool,
}

impl Key {
    /// Parses the brackets. Each array selects positions along its own axis.
    pub(crate) fn parse(key: &Bound<'_, PyAny>, shape: &[u64]) -> PyResult<Self> {
        let py = key.py();
        let mut parsed =
            Self { axes: SmallVec::new(), new_axes: SmallVec::new(), listed: false, ellipsis: false };
        let items: SmallVec<[Bound<'_, PyAny>; 4]> = match key.cast::<PyTuple>() {
            Ok(items) => items.iter().collect(),
            Err(_) => std::iter::once(key.clone()).collect(),
        };
        let given =
            items.iter().filter(|item| !item.is_none() && !item.is_instance_of::<PyEllipsis>()).count();
        if given > shape.len() {
            return Err(bad_index(py, format!("{given} indices for an array of {} dimensions", shape.len())));
        }
        let mut place = 0;
        for item in &items {
            if item.is_none() {
                parsed.new_axes.push(place);
                place += 1;
            } else if item.is_instance_of::<PyEllipsis>() {
                if parsed.ellipsis {
                    return Err(bad_index(py, "an index can have only one ellipsis"));
                }
                parsed.ellipsis = true;
                for _ in given..shape.len() {
                    let extent = shape[parsed.axes.len()];
                    parsed.axes.push(whole(extent));
                    place += 1;
                }
            } else {
                let axis = parsed.axes.len();
                let pick = axis_pick(item, axis, shape[axis])?;
                parsed.listed |= matches!(pick, AxisPick::List(_));
                place += usize::from(pick.keep());
                parsed.axes.push(pick);
            }
        }
        for extent in &shape[parsed.axes.len()..] {
            parsed.axes.push(whole(*extent));
        }
        Ok(parsed)
    }

    /// The shape of the result.
    pub(crate) fn shape(&self) -> SmallVec<[u64; 8]> {
        let mut shape: SmallVec<[u64; 8]> =
            self.axes.iter().filter(|axis| axis.keep()).map(AxisPick::count).collect();
        for place in &self.new_axes {
            shape.insert((*place).min(shape.len()), 1);
        }
        shape
    }

    /// The positions, unless a list selects along an axis.
    pub(crate) fn positions(&self) -> Option<hyperslab::Positions> {
        let even = |pick: &AxisPick| match pick {
            AxisPick::Even(positions) => Some(*positions),
            AxisPick::List(_) => None,
        };
        Some(hyperslab::Positions { axes: self.axes.iter().map(even).collect::<Option<_>>()? })
    }
}

const fn whole(extent: u64) -> AxisPick {
    AxisPick::Even(AxisPositions { start: 0, count: extent, step: 1, keep: true })
}

fn axis_pick(item: &Bound<'_, PyAny>, axis: usize, extent: u64) -> PyResult<AxisPick> {
    let py = item.py();
    if let Ok(slice) = item.cast::<PySlice>() {
        let length = isize::try_from(extent).unwrap_or(isize::MAX);
        let slice = slice.indices(length)?;
        let count = slice.slicelength as u64;
        let (start, step) = if count == 0 { (0, 1) } else { (slice.start as u64, slice.step as i64) };
        let step = if count <= 1 { 1 } else { step };
        return Ok(AxisPick::Even(AxisPositions { start, count, step, keep: true }));
    }
    if item.is_instance_of::<PyInt>() && !item.is_instance_of::<PyBool>() {
        return index(item, axis, extent);
    }
    let sequence = item.is_instance_of::<PyList>() || item.hasattr("__array__")?;
    if sequence && item.getattr("ndim").and_then(|ndim| ndim.extract::<usize>()).unwrap_or(1) > 0 {
        return Ok(AxisPick::List(list(item, axis, extent)?));
    }
    if item.is_instance_of::<PyBool>() || !item.hasattr("__index__")? {
        let kind = item.get_type().name()?.to_string();
        return Err(bad_index(
            py,
            format!(
                "only integers, slices, `...`, `None` and arrays of integers or booleans select, not {kind}"
            ),
        ));
    }
    index(&item.call_method0("__index__")?, axis, extent)
}

fn index(item: &Bound<'_, PyAny>, axis: usize, extent: u64) -> PyResult<AxisPick> {
    let at: Option<i64> = item.extract().ok();
    match at.and_then(|at| from_end(at, extent)) {
        Some(start) => Ok(AxisPick::Even(AxisPositions { start, count: 1, step: 1, keep: false })),
        None => Err(outside(item.py(), &item.to_string(), axis, extent)),
    }
}

fn outside(py: Python<'_>, index: &str, axis: usize, extent: u64) -> PyErr {
    bad_index(py, format!("index {index} is out of bounds for axis {axis} with size {extent}"))
}

fn from_end(at: i64, extent: u64) -> Option<u64> {
    let at = if at < 0 { i128::from(at) + i128::from(extent) } else { i128::from(at) };
    u64::try_from(at).ok().filter(|at| *at < extent)
}

/// The positions given by a list of integers, or by a mask over the axis.
pub(crate) fn list(item: &Bound<'_, PyAny>, axis: usize, extent: u64) -> PyResult<Vec<u64>> {
    let py = item.py();
    let numpy = py.import("numpy")?;
    let mut array = numpy.call_method1("asarray", (item,))?;
    if array.getattr("ndim")?.extract::<usize>()? != 1 {
        return Err(bad_index(
            py,
            format!("axis {axis}: an array of one dimension selects; see .vindex for points"),
        ));
    }
    match array.getattr("dtype")?.getattr("kind")?.extract::<String>()?.as_str() {
        "b" => {
            let length: u64 = array.getattr("size")?.extract()?;
            if length != extent {
                return Err(bad_index(
                    py,
                    format!("axis {axis}: a mask of {length} values for {extent} positions"),
                ));
            }
            array = numpy.call_method1("flatnonzero", (array,))?;
        }
        "i" | "u" => {}
        // NumPy gives an empty list the type float.
        _ if array.getattr("size")?.extract::<usize>()? == 0 => return Ok(Vec::new()),
        kind => {
            return Err(bad_index(
                py,
                format!("axis {axis}: an array of integers or booleans selects, not of kind {kind}"),
            ));
        }
    }
    positions(&array, axis, extent)
}

/// The positions given by an integer array of any shape, in C order. Negative ones count from the end.
pub(crate) fn positions(array: &Bound<'_, PyAny>, axis: usize, extent: u64) -> PyResult<Vec<u64>> {
    let py = array.py();
    let numpy = py.import("numpy")?;
    let flat = numpy.call_method1("ascontiguousarray", (array, "int64"))?.call_method0("ravel")?;
    let flat = flat.cast_into::<numpy::PyArray1<i64>>()?;
    let flat =
        numpy::PyArrayMethods::try_readonly(&flat).map_err(|error| bad_index(py, error.to_string()))?;
    let flat = flat.as_slice().map_err(|error| bad_index(py, error.to_string()))?;
    flat.iter()
        .map(|at| from_end(*at, extent).ok_or_else(|| outside(py, &at.to_string(), axis, extent)))
        .collect()
}
