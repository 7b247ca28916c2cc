//! Values, attributes and JSON as Python objects.

use hyperslab::driver::Buffer;
use hyperslab::{Attribute, Attributes, DType, Data, Elements, Values};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::dtype::to_numpy;
use crate::memory::{self, Cells};

/// Values as a NumPy array, or a single value as a scalar if `scalar` is set.
pub(crate) fn to_python<'py>(py: Python<'py>, values: Values, scalar: bool) -> PyResult<Bound<'py, PyAny>> {
    let Values { dtype, shape, elements } = values;
    let mask = elements.validity.clone();
    let array = match elements.data {
        Data::Fixed(bytes) => {
            // Rare: most results are not `Bytes`. They may belong to a mapped file, which others can truncate, so
            // copy them.
            let cells = fresh(py, &bytes)?;
            memory::array(py, &to_numpy(py, &dtype)?, &shape, cells, scalar && mask.is_none())?
        }
        data => {
            let elements = Elements { data, validity: mask };
            if shape.is_empty() && scalar {
                return element(py, &dtype, &elements, 0);
            }
            let count = hyperslab::driver::product(&shape).unwrap_or(0) as usize;
            return memory::objects(
                py,
                &shape,
                (0..count).map(|index| element(py, &dtype, &elements, index)),
            );
        }
    };
    let Some(mask) = mask else { return Ok(array) };
    let flags: Vec<bool> = (0..mask.len()).map(|index| !mask.get(index)).collect();
    let flags =
        py.import("numpy")?.call_method1("array", (flags,))?.call_method1("reshape", (shape.to_vec(),))?;
    let options = PyDict::new(py);
    options.set_item("mask", flags)?;
    py.import("numpy.ma")?.call_method("MaskedArray", (array,), Some(&options))
}

fn fresh(py: Python<'_>, bytes: &[u8]) -> PyResult<Cells> {
    let mut buffer = Buffer::zeroed(bytes.len()).map_err(|error| crate::errors::raised(py, &error))?;
    buffer.as_mut_slice().copy_from_slice(bytes);
    Ok(Cells::Fresh(buffer))
}

/// One element of variable length: text, bytes, an array or a tuple; `None` if it is missing.
fn element<'py>(
    py: Python<'py>,
    dtype: &DType,
    elements: &Elements,
    index: usize,
) -> PyResult<Bound<'py, PyAny>> {
    if elements.is_missing(index) {
        return Ok(py.None().into_bound(py));
    }
    let part = |base: &DType, items: &Elements, start: usize, end: usize| {
        let picks: Vec<_> = (start..end).map(|item| (0, item)).collect();
        let items = Elements::gather(base, &[items], &picks)
            .and_then(|items| Values::new(base.clone(), &[(end - start) as u64], items))
            .map_err(|error| crate::errors::raised(py, &error))?;
        to_python(py, items, false)
    };
    match (&elements.data, dtype) {
        (Data::Variable { .. }, DType::Bytes) => {
            Ok(PyBytes::new(py, elements.variable_at(index).unwrap_or_default()).into_any())
        }
        (Data::Variable { .. }, _) => {
            let bytes = elements.variable_at(index).unwrap_or_default();
            Ok(PyString::new(py, &String::from_utf8_lossy(bytes)).into_any())
        }
        (Data::List { offsets, items }, DType::List(base)) => {
            part(base, items, offsets[index] as usize, offsets[index + 1] as usize)
        }
        (Data::FixedList { each, items }, DType::Array(base, _)) => {
            part(base, items, index * each, (index + 1) * each)
        }
        (Data::Struct { members, .. }, DType::Struct(fields)) => {
            let parts = fields.members.iter().zip(members);
            let parts: Vec<_> =
                parts.map(|(member, row)| element(py, &member.dtype, row, index)).collect::<PyResult<_>>()?;
            Ok(PyTuple::new(py, parts)?.into_any())
        }
        _ => {
            let one = Elements::gather(dtype, &[elements], &[(0, index)])
                .and_then(|one| Values::scalar(dtype.clone(), one))
                .map_err(|error| crate::errors::raised(py, &error))?;
            to_python(py, one, true)
        }
    }
}

/// Converts JSON like Python's `json` module.
pub(crate) fn from_json<'py>(py: Python<'py>, value: &serde_json::Value) -> PyResult<Bound<'py, PyAny>> {
    use serde_json::Value;
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => {
            if let Some(value) = number.as_i64() {
                value.into_pyobject(py)?.into_any()
            } else if let Some(value) = number.as_u64() {
                value.into_pyobject(py)?.into_any()
            } else {
                number.as_f64().unwrap_or(f64::NAN).into_pyobject(py)?.into_any()
            }
        }
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| from_json(py, item)).collect::<PyResult<_>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Object(members) => {
            let object = PyDict::new(py);
            for (name, member) in members {
                object.set_item(name, from_json(py, member)?)?;
            }
            object.into_any()
        }
    })
}

/// Attributes as a mapping. An unreadable one raises on access.
pub(crate) fn attributes<'py>(py: Python<'py>, attributes: &Attributes) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        py.import("hyperslab._attributes")?.getattr("Attributes").map(Bound::unbind)
    })?;
    let (readable, unreadable) = (PyDict::new(py), PyDict::new(py));
    for (name, attribute) in attributes.iter() {
        match attribute {
            Attribute::Values(values) => readable.set_item(name, attribute_value(py, values)?)?,
            Attribute::Json(document) => readable.set_item(name, from_json(py, document)?)?,
            Attribute::Unreadable(reason) => unreadable.set_item(name, reason)?,
            _ => unreadable.set_item(name, "of a kind that this version does not know")?,
        }
    }
    class.bind(py).call1((readable, unreadable))
}

/// Converts fixed-length text in attributes to strings.
fn attribute_value<'py>(py: Python<'py>, values: &Values) -> PyResult<Bound<'py, PyAny>> {
    if let (DType::FixedBytes(size @ 1..), Some(bytes)) = (&values.dtype, values.elements.as_fixed()) {
        let texts: Option<Vec<&str>> = bytes
            .chunks_exact(*size)
            .map(|text| std::str::from_utf8(text).ok().map(|text| text.trim_end_matches('\0')))
            .collect();
        match (texts, values.shape.is_empty()) {
            (Some(texts), true) => {
                return Ok(PyString::new(py, texts.first().copied().unwrap_or_default()).into_any());
            }
            (Some(texts), false) => {
                let texts = texts.into_iter().map(|text| Ok(PyString::new(py, text).into_any()));
                return memory::objects(py, &values.shape, texts);
            }
            (None, _) => {}
        }
    }
    to_python(py, values.clone(), true)
}
