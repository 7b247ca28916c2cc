//! Reductions by the engine, folded chunk by chunk without loading the whole array.

use hyperslab::query::{Axis, Operation, Query};
use hyperslab::{AxisSelection, DType, Selection, Threads};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::array::{Array, text_selection};
use crate::errors::{invalid, raised, warn_of_conventions};
use crate::key::Key;
use crate::{threads, values};

/// The parameters besides the operation.
#[derive(Debug, Default)]
pub(crate) struct Asked<'a, 'py> {
    pub(crate) over: Option<&'a Bound<'py, PyAny>>,
    pub(crate) selection: Option<&'a Bound<'py, PyAny>>,
    pub(crate) filter: Option<&'a str>,
    pub(crate) skip_nan: bool,
    /// Use stored values, ignoring the conventions of the file.
    pub(crate) raw: bool,
}

/// Keyword arguments by which NumPy's functions, such as `np.mean`, call the methods of an array.
#[derive(Debug, Default)]
pub(crate) struct NumpyWords<'a, 'py> {
    pub(crate) axis: Option<&'a Bound<'py, PyAny>>,
    pub(crate) dtype: Option<&'a Bound<'py, PyAny>>,
    pub(crate) out: Option<&'a Bound<'py, PyAny>>,
    pub(crate) keepdims: bool,
}

/// Like [`reduce`], with NumPy's keyword arguments.
pub(crate) fn reduce_like_numpy<'a, 'py>(
    py: Python<'py>,
    array: &Array,
    operation: Operation,
    mut asked: Asked<'a, 'py>,
    words: &NumpyWords<'a, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    if asked.over.is_some() && words.axis.is_some() {
        return Err(invalid(py, "give the axes once: over and axis mean the same"));
    }
    asked.over = asked.over.or(words.axis);
    let numpy = py.import("numpy")?;
    let mut answer = reduce(py, array, operation, &asked)?;
    if words.keepdims {
        let schema = array.reader.schema();
        let rank = schema.shape().len();
        let reduced = match asked.over {
            None => (0..rank).collect(),
            Some(over) => axes(over, rank)?
                .iter()
                .map(|axis| axis.resolve(schema).map_err(|error| raised(py, &error)))
                .collect::<PyResult<Vec<usize>>>()?,
        };
        answer = numpy.call_method1("expand_dims", (answer, PyTuple::new(py, reduced)?))?;
    }
    if let Some(dtype) = words.dtype {
        answer = numpy.call_method1("asanyarray", (answer,))?.call_method1("astype", (dtype,))?;
        answer = answer.get_item(PyTuple::empty(py))?;
    }
    if let Some(out) = words.out {
        numpy.call_method1("copyto", (out, answer))?;
        answer = out.clone();
    }
    Ok(answer)
}

/// Reduces an array to a scalar, or to an array over the kept axes.
pub(crate) fn reduce<'py>(
    py: Python<'py>,
    array: &Array,
    operation: Operation,
    asked: &Asked<'_, 'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut query = Query::new(operation);
    query.skip_nan = asked.skip_nan;
    if let Some(over) = asked.over {
        query.over = axes(over, array.reader.schema().shape().len())?;
    }
    if let Some(selection) = asked.selection {
        query.selection = match text_selection(py, selection)? {
            Some(labels) => labels,
            None => box_of(selection, array.reader.schema().shape())?,
        };
    }
    if let Some(filter) = asked.filter {
        query.conditions = filter.parse().map_err(|error| raised(py, &error))?;
    }
    let reader = if asked.raw || operation.is_about_stored_values() {
        array.reader.clone()
    } else {
        warn_of_conventions(py, &array.reader)?;
        array.reader.decoded_for_query(false).map_err(|error| raised(py, &error))?
    };
    // All chunks share the pool that `within` runs in.
    let reader = reader.with_threads(Threads::Shared);
    let (stored, raw) = (&array.reader, asked.raw);
    let answer = threads::within(py, array.origin.threads, || {
        let answer = query.run(&reader)?;
        if raw {
            return answer.values();
        }
        let dated = answer.dated(stored);
        match dated.dates()? {
            // NumPy's dates mark missing ones themselves.
            Some(mut dates) if matches!(dates.dtype, DType::DateTime(_)) => {
                dates.elements.validity = None;
                Ok(dates)
            }
            Some(texts) => Ok(texts),
            None => dated.values(),
        }
    })?;
    values::to_python(py, answer, true)
}

/// Axes by number (negative ones from the end) or name; one or several.
fn axes(over: &Bound<'_, PyAny>, rank: usize) -> PyResult<Vec<Axis>> {
    let py = over.py();
    if over.is_instance_of::<PyTuple>() || over.is_instance_of::<PyList>() {
        let mut all = Vec::new();
        for axis in over.try_iter()? {
            all.extend(axes(&axis?, rank)?);
        }
        return Ok(all);
    }
    if let Ok(name) = over.extract::<String>() {
        return Ok(vec![Axis::Name(name)]);
    }
    let number: i64 = over.extract()?;
    let axis = if number < 0 { number + rank as i64 } else { number };
    match usize::try_from(axis) {
        Ok(axis) if axis < rank => Ok(vec![Axis::Number(axis)]),
        _ => Err(invalid(py, format!("axis {number} is out of bounds for an array with {rank} axes"))),
    }
}

/// Converts an index without lists to a selection.
fn box_of(selection: &Bound<'_, PyAny>, shape: &[u64]) -> PyResult<Selection> {
    let py = selection.py();
    let key = Key::parse(selection, shape)?;
    let positions =
        key.positions().ok_or_else(|| invalid(py, "reductions take slices and integers, not lists"))?;
    let axes: Vec<AxisSelection> = positions
        .axes
        .iter()
        .map(|axis| {
            let start = axis.start as i64;
            if !axis.keep {
                return AxisSelection::Index(start);
            }
            let end = start + axis.step * axis.count as i64;
            // A negative step down to the first cell ends at -1, which a slice expresses as `None`.
            let stop = if end < 0 { None } else { Some(end) };
            AxisSelection::Slice { start: Some(start), stop, step: axis.step }
        })
        .collect();
    Ok(Selection::positions(axes))
}
